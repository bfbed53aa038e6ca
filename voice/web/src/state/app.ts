import {batch, computed, effect, signal, type Signal} from '@preact/signals';
import {none, type Caps} from '../protocol/caps.ts';
import {request, type Code, type GroupRequest, type Verb} from '../protocol/group.ts';
import type {Groups, Near, Pose, Ranges, Rights, Roster, S2CLine, Speakers, Tier} from '../protocol/line.ts';
import {Roll} from '../protocol/roll.ts';
import {askEvery, askFor, type Connection} from '../protocol/socket.ts';
import type {Clip} from '../sound/clips.ts';
import {choose, gatherFor, OutputWatch, plan, Reopening, type Device, type Fault} from '../sound/devices.ts';
import type * as Engine from '../sound/engine.ts';
import {meter} from '../sound/level.ts';
import type {FromPlay, FromWorker, Stats, ToWorker} from '../sound/messages.ts';
import type {Key} from '../text/en.ts';
import {clock, english, parts, preferred, pseudo, write, type Holes, type Language, type Part} from '../text/format.ts';
import {call, codeFrom, fragment, sessionFrom, type About, type Refused} from './api.ts';
import {arrive, noticeOf, wordOf, type Arrival, type Entry, type Session} from './connection.ts';
import {Keys, Latch, type Held} from './keys.ts';
import {clickOf, mayOpen, micState, Nag, type MicFacts} from './mic.ts';
import {hearersOf, listsOf} from './people.ts';
import {milestone, Say} from './say.ts';
import {defaults, Keeper, type Action, type Bound, type Settings} from './settings.ts';

// All state of the page, and all that changes it. Views read the signals and call the methods; nothing else holds state.

export type Panel =
  | {panel: 'person'; id: string}
  | {panel: 'settings' | 'group' | 'moderate' | 'sounds' | 'diagnosis' | 'blocked'}
  | null;

export type Tab = 'people' | 'map' | 'group' | 'sounds';

/** Note is a banner that somebody can close, or that closes itself. */
export interface Note {
  kind: 'front' | 'device' | 'tap' | 'output' | 'storage' | 'back' | 'mutedTalking' | 'keep';
  key: Key;
  more?: Key;
  holes?: Holes;
  button?: Key;
  act?: () => void;
}

export interface MuteState {
  kind: 0 | 1 | 2;
  until: number | null; // of performance.now(): the two machines share no clock, and Date may be wrong
  reason: string;
}

const noStats: Stats = {sent: 0, sendDropped: 0, received: 0, discarded: 0, gaps: 0, crowded: 0, decodeErrors: 0, talkers: 0, bursts: false, unheard: false};
const now = (): number => performance.now();

export const languages: Record<string, {name: string; load(): Promise<Language>}> = {
  en: {name: 'English', load: async () => english},
  de: {name: 'Deutsch', load: async () => ({code: 'de', table: (await import('../text/de.ts')).de})},
};

export class App {
  readonly entry: Signal<Entry> = signal({phase: 'trading', session: null, error: null});
  readonly about = signal<About>({network: 'Earshot', address: '', voice: true, walk: false, secure: true});
  readonly support = signal<Engine.Support | null>(null);
  readonly language = signal<Language>(english);
  readonly settings = signal<Settings>(structuredClone(defaults) as Settings);
  readonly touch = signal(false);

  readonly connection = signal<Connection>({state: 'idle'});
  readonly left = signal(0); // seconds until the connection's next try
  readonly caps = signal<Caps>({...none});
  readonly roundTrip = signal<number | null>(null);
  readonly offline = signal(false);
  readonly stats = signal<Stats>(noStats);
  readonly heard = signal<FromPlay>({levels: [], depth: 0, underruns: 0, concealed: 0, dropped: 0});

  readonly roster = signal<Roster | null>(null);
  private roll = new Roll();
  readonly near = signal<Near | null>(null);
  readonly pose = signal<Pose | null>(null);
  readonly groups = signal<Groups | null>(null);
  readonly groupsAt = signal(0);
  readonly namedSpeakers = signal<Speakers['list']>([]);
  readonly ranges = signal<Ranges>({line: 'ranges', whisper: false, shout: false});
  readonly rights = signal<Rights>({line: 'rights', speak: true, listen: true, clips: true});
  readonly mute = signal<MuteState>({kind: 0, until: null, reason: ''});
  readonly clock = signal(now()); // each second, for what counts down

  readonly levels = signal<ReadonlyMap<string, number>>(new Map());
  readonly speaking = signal<ReadonlySet<string>>(new Set());
  readonly recent = signal<ReadonlySet<string>>(new Set());
  readonly inputLevel = signal(0); // 0 to 1
  readonly live = signal(false);

  readonly micWanted = signal(false);
  readonly micAsking = signal(false);
  readonly micLate = signal(false); // the question is open for eight seconds
  readonly micFault = signal<Fault | null>(null);
  readonly micSilent = signal(false);
  readonly micDevice = signal<Device | null>(null);
  readonly inputs = signal<Device[]>([]);
  readonly outputs = signal<Device[]>([]);
  readonly tier = signal<Tier>('normal');
  readonly ownVoice = signal(false);

  readonly panel = signal<Panel>(null);
  readonly tab = signal<Tab>('people');
  readonly sortBy = signal<'near' | 'name'>('near');
  readonly notes = signal<Note[]>([]);
  readonly result = signal<{text: string; ok: boolean; undo?: (() => void) | undefined} | null>(null);
  readonly said = signal<{assertive: string; polite: string}>({assertive: '', polite: ''});
  readonly clips = signal<Clip[]>([]);
  readonly playing = signal<ReadonlySet<string>>(new Set());
  readonly mini = signal<Window | null>(null);
  readonly heldKeys = signal<ReadonlySet<Held>>(new Set());

  // ---- what follows from it

  readonly session = computed<Session | null>(() => this.entry.value.session);
  readonly network = computed(() => this.session.value?.network ?? this.about.value.network);
  readonly joined = computed(() => this.entry.value.phase === 'joined');
  readonly ownGroup = computed(() => {
    const g = this.groups.value, me = this.session.value?.uuid;
    const at = g?.members.find((m) => m.player === me)?.group;
    return g?.groups.find((x) => x.id === at) ?? null;
  });
  readonly ownMembers = computed<ReadonlySet<string>>(() => {
    const own = this.ownGroup.value?.id;
    return new Set(this.groups.value?.members.filter((m) => m.group === own && own !== undefined).map((m) => m.player));
  });
  readonly lists = computed(() => listsOf({
    me: this.session.value?.uuid ?? '', roster: this.roster.value, near: this.near.value, range: this.session.value?.range ?? 48, speaking: this.speaking.value,
    recent: this.recent.value, muted: new Set(this.settings.value.muted), group: this.ownMembers.value,
  }));
  readonly muteLeft = computed(() => {
    const m = this.mute.value;
    return m.until === null ? null : Math.max(0, (m.until - this.clock.value) / 1000);
  });
  readonly micFacts = computed<MicFacts>(() => ({
    wanted: this.micWanted.value, asking: this.micAsking.value, fault: this.micFault.value, silent: this.micSilent.value,
    serverMute: {kind: this.mute.value.kind, left: this.muteLeft.value, reason: this.mute.value.reason}, maySpeak: this.rights.value.speak,
    deafened: this.settings.value.deafened, muted: this.settings.value.muteSelf, live: this.live.value && this.connection.value.state === 'on', mode: this.settings.value.mode,
  }));
  readonly mic = computed(() => micState(this.micFacts.value));
  readonly mayClip = computed(() => this.caps.value.soundboard > 0 && this.rights.value.clips);
  readonly hearers = computed(() => {
    const s = this.mic.value;
    if (s !== 'open' && s !== 'live' && s !== 'held') return 0;
    return hearersOf({
      near: this.near.value, roster: this.roster.value, range: this.session.value?.range ?? 48, tier: this.tier.value, group: this.ownMembers.value,
      groupType: this.ownGroup.value?.type ?? null, me: this.session.value?.uuid ?? '',
    });
  });

  private readonly keeper = new Keeper(() => localStorage, `earshot ${location.pathname}`);
  private engine: typeof Engine | null = null;
  private worker: Worker | null = null;
  private output: Engine.Output | null = null;
  private readonly watch = new OutputWatch();
  private microphone: Engine.Microphone | null = null;
  private opening: Promise<void> | null = null;
  private readonly reopening = new Reopening();
  private readonly say = new Say();
  private readonly nag = new Nag();
  private readonly latch = new Latch();
  private readonly heardAt = new Map<string, number>();
  private changeTimer: ReturnType<typeof setTimeout> | undefined;
  private wakeLock: {release(): Promise<void>} | null = null;
  private wasOn = false;
  private hiddenMute = false; // muted because the page is behind others, and only for so long
  private asked = 0; // how often for a player who has left
  private lastMoves: {verb: Verb; undo: (() => void) | undefined}[] = [];
  readonly keys = new Keys(this.settings.value.keys, (held) => this.holdsChanged(held));

  // ---- texts

  t(key: Key, holes: Holes = {}): string {
    return write(this.language.value, key, {network: this.network.value, ...holes});
  }

  parts(key: Key, holes: Holes = {}): Part[] {
    return parts(this.language.value, key, {network: this.network.value, ...holes});
  }

  keyName(a: Action): string {
    return this.settings.value.keys[a].key;
  }

  // ---- the beginning

  async start(): Promise<void> {
    this.settings.value = this.keeper.load();
    this.touch.value = matchMedia('(pointer: coarse)').matches;
    this.offline.value = navigator.onLine === false;
    this.keys.bindings = this.settings.value.keys;
    this.keys.on = this.settings.value.keysOn;
    this.look();
    void this.speakLanguage();
    this.listen();
    effect(() => this.tellTalk());
    effect(() => {
      document.title = this.title();
    });
    void call<About>('GET', 'api/about').then((a) => {
      if (a.ok) this.about.value = {...this.about.value, ...a.value};
    });
    void this.prepare();
    await this.enter();
  }

  /** prepare loads what sound needs while a person reads. */
  private async prepare(): Promise<void> {
    try {
      this.engine = await import('../sound/engine.ts');
      this.support.value = await this.engine.support();
    } catch {
      this.support.value = {secure: globalThis.isSecureContext !== false, listen: false, speak: false, missing: ['ES modules']};
    }
  }

  private arrive(a: Arrival): void {
    this.entry.value = arrive(this.entry.value, a, clock);
  }

  private async enter(): Promise<void> {
    const code = fragment(location.hash);
    if (code) {
      history.replaceState(null, '', location.pathname + location.search); // nobody else is to see it
      this.arrive({what: 'fragment'});
      return this.trade(code);
    }
    this.arrive({what: 'session'});
    await this.resume();
  }

  private async resume(): Promise<void> {
    const s = await call<Session>('GET', 'api/session');
    if (s.ok) this.arrive({what: 'traded', session: sessionFrom(s.value, this.about.value.network)});
    else if (s.refused.code === 'session_ended') this.arrive({what: 'neither'});
    else this.refused(s.refused, () => this.resume());
  }

  /** refused says why there is no session. For a player who has left it asks again until they are back, for ten minutes. */
  private refused(r: Refused, again: () => Promise<void>): void {
    this.arrive({what: 'refused', ...r});
    if (r.code !== 'player_left') {
      this.asked = 0;
      return;
    }
    if (this.asked++ >= askFor / askEvery) return;
    setTimeout(() => {
      if (this.entry.value.error?.key === 'net.away') void again();
    }, askEvery);
  }

  /** trade gives a code for a session. The cookie is looked for at once, for some browsers take none. */
  async trade(code: string): Promise<void> {
    const s = await call<Session>('POST', 'api/session', {code});
    if (!s.ok) return this.refused(s.refused, () => this.trade(code));
    const again = await call<Session>('GET', 'api/session');
    if (!again.ok && again.refused.code === 'session_ended') return this.arrive({what: 'noCookie'});
    this.arrive({what: 'traded', session: sessionFrom(s.value, this.about.value.network)});
  }

  /** typed takes the six letters; false where they cannot be a code. */
  async typed(text: string): Promise<boolean> {
    const code = codeFrom(text);
    if (code.length < 6) return false;
    await this.trade(code);
    return true;
  }

  /** join is called in a click, for only there a browser lets sound begin. */
  join(listenOnly: boolean): void {
    if (!this.engine || this.entry.value.phase !== 'ready') return;
    this.startOutput();
    this.worker = this.engine.makeWorker();
    this.worker.onmessage = (e: MessageEvent<FromWorker>) => this.fromWorker(e.data);
    this.post({to: 'start', base: new URL('.', location.href).href});
    this.connectOutput();
    this.tellVolumes();
    this.post({to: 'deafen', on: this.settings.value.deafened});
    this.post({to: 'surround', on: this.settings.value.surround});
    this.post({to: 'join'});
    this.arrive({what: 'click'});
    this.stayAwake();
    if (listenOnly || !this.support.value?.speak) this.sessionKind('playback');
    else void this.openMic();
    if (!this.settings.value.toldFront) {
      this.note(this.settings.value.mode === 'hold'
        ? {kind: 'front', key: 'banner.front.hold', button: 'banner.switchVoice', act: () => this.change({mode: 'voice'})}
        : {kind: 'front', key: this.touch.value ? 'banner.front.touch' : 'banner.front', button: 'banner.gotIt'});
    }
    if (this.keeper.lost) this.note({kind: 'storage', key: 'banner.storage', button: 'banner.gotIt'});
    void import('../sound/clips.ts').then(async (c) => (this.clips.value = await c.kept()));
  }

  private startOutput(): void {
    this.output = new this.engine!.Output();
    this.watch.reset();
  }

  private connectOutput(): void {
    const {port1, port2} = new MessageChannel();
    this.post({to: 'play', port: port1}, [port1]);
    const output = this.output!;
    output.start(port2, choose(this.settings.value.output, this.outputs.value), (m) => this.played(m)).catch(() => this.tapToHear());
    this.post({to: 'surround', on: this.settings.value.surround});
    setTimeout(() => {
      if (this.output === output && output.context.state !== 'running') this.tapToHear();
    }, 1000);
  }

  private tapToHear(): void {
    this.note({
      kind: 'tap', key: 'banner.tap', more: 'banner.tap.more', button: 'banner.tap.do', act: () => {
        this.output?.close();
        this.startOutput();
        this.connectOutput();
      },
    });
  }

  leave(): void {
    this.post({to: 'leave'});
    this.closeMic();
    this.output?.close();
    this.output = null;
    this.worker?.terminate();
    this.worker = null;
    this.forgetServer();
    batch(() => {
      this.connection.value = {state: 'idle'};
      this.micWanted.value = false;
      this.notes.value = [];
      this.panel.value = null;
    });
    this.wasOn = false;
    this.keys.endAll('off');
    void this.wakeLock?.release().catch(() => {});
    this.wakeLock = null;
  }

  private post(m: ToWorker, transfer: Transferable[] = []): void {
    this.worker?.postMessage(m, transfer);
  }

  // ---- what the worker says

  private fromWorker(m: FromWorker): void {
    switch (m.from) {
      case 'connection':
        this.connected(m.connection, m.left / 1000, m.caps);
        break;
      case 'line':
        this.line(m.line);
        break;
      case 'level':
        this.level(m.db, m.live);
        break;
      case 'input':
        if (m.what === 'reopen') void this.reopenMic();
        else {
          this.micSilent.value = m.what === 'silent';
          if (m.what === 'silent') this.say.urgently('mic', this.t('mic.silent'));
          else this.say.over('mic');
        }
        break;
      case 'second':
        batch(() => {
          this.stats.value = m.stats;
          this.roundTrip.value = m.roundTrip;
          this.left.value = m.left / 1000;
          this.second();
        });
        break;
      case 'clipEnd':
        this.playing.value = new Set([...this.playing.value].filter((id) => id !== m.id));
    }
  }

  private connected(c: Connection, left: number, caps: Caps): void {
    const before = this.connection.value.state;
    batch(() => {
      this.connection.value = c;
      this.left.value = left;
      this.caps.value = caps;
      if (c.state !== 'on' && before === 'on') {
        this.forgetRights();
        this.keys.endAll('off');
        this.cue(330);
      }
    });
    if (c.state === 'on' && before !== 'on') {
      batch(() => { // what this connection will not say again
        if (!caps.page) this.near.value = null;
        if (!caps.pose) this.pose.value = null;
        if (!caps.groups) this.groups.value = null;
        if (!caps.speakers) this.namedSpeakers.value = [];
      });
      this.say.over('net');
      if (this.wasOn) {
        this.say.politely('net', this.t('net.back'));
        this.note({kind: 'back', key: 'net.back'});
        setTimeout(() => this.closeNote('back'), 4000);
        this.cue(660);
      } else this.say.politely('net', this.t('net.on'));
      this.wasOn = true;
    }
    const n = noticeOf(c, left, this.offline.value);
    if (n && before !== c.state) this.say.urgently('net', this.t(n.key, n.holes));
    if (c.state === 'ended') {
      this.leave();
      this.arrive({what: 'ended', why: c.why});
    }
  }

  /** forgetServer drops all that a server said. */
  private forgetServer(): void {
    batch(() => {
      this.roster.value = null;
      this.roll = new Roll();
      this.near.value = null;
      this.pose.value = null;
      this.groups.value = null;
      this.namedSpeakers.value = [];
      this.ranges.value = {line: 'ranges', whisper: false, shout: false};
      this.forgetRights();
    });
  }

  /** forgetRights drops what holds no longer than its connection. Who was near stays in sight until the next one says who is. */
  private forgetRights(): void {
    batch(() => {
      this.mute.value = {kind: 0, until: null, reason: ''};
      this.rights.value = {line: 'rights', speak: true, listen: true, clips: true};
      this.levels.value = new Map();
      this.speaking.value = new Set();
      this.result.value = null;
    });
  }

  private line(l: S2CLine): void {
    switch (l.line) {
      case 'roster': this.roster.value = l; break;
      case 'changes': this.roster.value = this.roll.apply(l) ?? this.roster.value; break;
      case 'near': {
        const known = new Set(this.near.value?.people.map((p) => p.id));
        if (this.near.value && this.settings.value.announce) this.say.cameNear(l.people.filter((p) => !known.has(p.id)).length);
        this.near.value = l;
        break;
      }
      case 'pose': this.pose.value = l; break;
      case 'groups':
        batch(() => {
          const invited = new Set(this.groups.value?.invites.map((i) => i.group));
          this.groups.value = l;
          this.groupsAt.value = now();
          for (const i of l.invites) {
            if (!invited.has(i.group)) this.say.politely('invitation', this.t('group.invitation', {...this.invitation(i), s: i.seconds}));
          }
        });
        break;
      case 'speakers': this.namedSpeakers.value = l.list; break;
      case 'ranges':
        this.ranges.value = l;
        if ((this.tier.value === 'whisper' && !l.whisper) || (this.tier.value === 'shout' && !l.shout)) this.setTier('normal');
        break;
      case 'rights':
        this.rights.value = l;
        if (!l.speak) this.say.urgently('rights', this.t('mic.denied'));
        else this.say.over('rights');
        break;
      case 'mute': {
        const before = this.mute.value;
        this.clock.value = now();
        this.mute.value = {kind: l.kind, until: l.seconds === null ? null : now() + l.seconds * 1000, reason: l.reason};
        if (l.kind !== 0) {
          this.keys.endAll('servermute');
          this.latch.clear();
          if (before.kind !== l.kind || before.reason !== l.reason) this.say.urgently('mute', this.muteText());
        } else if (before.kind !== 0) {
          this.say.over('mute');
          this.say.politely('mute', this.t('say.unmuted'));
        }
        break;
      }
      case 'mic':
        if (this.micWanted.value) this.toggleMute();
        break;
      case 'result': this.answered(l.verb, l.code);
    }
  }

  muteText(): string {
    const m = this.mute.value, left = this.muteLeft.value;
    const key: Key = m.kind === 2 ? (left === null ? 'banner.muted.all' : 'banner.muted.all.time') : left === null ? 'banner.muted.ever' : 'banner.muted';
    const reason = m.reason ? ` ${this.t('banner.reason', {reason: m.reason})}` : '';
    return `${this.t(key, {time: clock(left ?? 0)})}${reason} ${this.t('banner.stillHear')}`;
  }

  invitation(i: {group: string; from: string}): {name: string; group: string} {
    return {name: this.nameOf(i.from), group: this.groups.value?.groups.find((g) => g.id === i.group)?.name ?? '?'};
  }

  nameOf(id: string): string {
    return this.roster.value?.people.find((p) => p.id === id)?.name ?? this.namedSpeakers.value.find((p) => p.id === id)?.name ?? '?';
  }

  private level(db: number, live: boolean): void {
    const m = meter(db);
    if (m !== this.inputLevel.value) this.inputLevel.value = m;
    if (live !== this.live.value) this.live.value = live;
    const s = this.settings.value;
    if (this.nag.level(db >= s.threshold + 6, s.muteSelf && this.micWanted.value, s.mode === 'hold')) {
      this.note({kind: 'mutedTalking', key: 'mic.mutedTalking', button: 'banner.gotIt'});
      this.say.politely('nag', this.t('mic.mutedTalking'));
    }
  }

  private played(m: FromPlay): void {
    const speaking = new Set(m.levels.map(([id]) => id));
    const same = speaking.size === this.speaking.value.size && [...speaking].every((id) => this.speaking.value.has(id));
    batch(() => {
      if (m.levels.length || this.levels.value.size) this.levels.value = new Map(m.levels);
      if (!same) {
        const before = this.speaking.value;
        this.speaking.value = speaking;
        if (this.settings.value.announce) for (const id of speaking) if (!before.has(id) && id !== 'self') this.say.politely('speaks', this.t('say.speaks', {name: this.nameOf(id)}));
      }
    });
    for (const id of speaking) this.heardAt.set(id, now());
    this.heard.value = m;
  }

  private second(): void {
    const before = this.muteLeft.value;
    this.clock.value = now();
    const left = this.muteLeft.value;
    if (before !== null && left !== null && milestone(before, left)) this.say.politely('countdown', this.muteText());
    if (this.mute.value.kind !== 0 && left === 0) this.mute.value = {kind: 0, until: null, reason: ''}; // the server says so too, in a moment
    const recent = new Set([...this.heardAt].filter(([, t]) => now() - t < 60_000).map(([id]) => id));
    for (const id of this.heardAt.keys()) if (!recent.has(id)) this.heardAt.delete(id);
    if (recent.size !== this.recent.value.size || [...recent].some((id) => !this.recent.value.has(id))) this.recent.value = recent;
    const s = this.say.due(now(), (n) => this.t('say.came', {n}));
    if (s) this.said.value = {...this.said.value, [s.how]: s.text === this.said.value[s.how] ? `${s.text}\u00a0` : s.text};
    if (this.output) this.judge(this.output);
  }

  private judge(output: Engine.Output): void {
    switch (this.watch.look(output.context.currentTime, output.context.state, now())) {
      case 'fine':
        if (output.context.state === 'running') this.closeNote('tap');
        break;
      case 'sink':
        void output.context.resume().catch(() => {});
        void output.use('').then(() => {
          if (this.settings.value.output) this.note({kind: 'output', key: 'banner.output', button: 'banner.gotIt'});
        });
        break;
      case 'context':
        output.close();
        this.startOutput();
        this.connectOutput();
        this.note({kind: 'output', key: 'banner.output.context', button: 'banner.gotIt'});
        void this.reopenMic();
        break;
      case 'tap':
        this.tapToHear();
    }
  }

  // ---- the microphone

  private processing(): Engine.Processing {
    const s = this.settings.value;
    return {echo: s.echo, noise: s.noise, gain: s.browserGain};
  }

  /** openMic asks for the microphone, one at a time. */
  openMic(): Promise<void> {
    this.opening ??= this.reallyOpen().finally(() => (this.opening = null));
    return this.opening;
  }

  private async reallyOpen(): Promise<void> {
    const {engine, output} = this;
    if (!engine || !output) return;
    this.closeMic();
    batch(() => {
      this.micWanted.value = true;
      this.micAsking.value = true;
      this.micLate.value = false;
      this.micFault.value = null;
      this.micSilent.value = false;
    });
    const late = setTimeout(() => (this.micLate.value = true), 8000);
    this.sessionKind('play-and-record');
    try {
      const mic = await engine.Microphone.open(choose(this.settings.value.mic, this.inputs.value), this.processing());
      if (!this.worker || this.output !== output) return mic.close();
      this.microphone = mic;
      const {port1, port2} = new MessageChannel();
      this.post({to: 'capture', port: port1}, [port1]);
      await mic.connect(output.context, port2, () => this.devicesChanged());
      this.micDevice.value = {id: mic.id, label: mic.label};
      if (this.panel.value?.panel === 'blocked') this.panel.value = null; // help closes itself
      this.say.over('mic');
    } catch (e) {
      const fault: Fault = typeof e === 'string' ? (e as Fault) : 'other';
      this.micFault.value = fault;
      this.say.urgently('mic', this.t(`mic.${this.mic.value === 'asking' ? 'blocked' : this.mic.value}` as Key));
      if (fault === 'denied' || fault === 'system' || fault === 'dismissed') void this.watchPermission();
    } finally {
      clearTimeout(late);
      this.micAsking.value = false;
      void this.listDevices();
    }
  }

  closeMic(): void {
    if (!this.microphone) return;
    this.microphone.close();
    this.microphone = null;
    this.micDevice.value = null;
    this.post({to: 'uncapture'});
  }

  /** reopenMic is for a microphone that was open: it never opens one that somebody closed. */
  private async reopenMic(): Promise<void> {
    if (!this.micWanted.value || (this.micFault.value !== null && this.micFault.value !== 'absent' && this.micFault.value !== 'busy')) return;
    if (!this.reopening.may(now())) return this.note({kind: 'keep', key: 'mic.keep', button: 'banner.gotIt'});
    const before = this.micDevice.value;
    await this.listDevices();
    const gone = before !== null && !this.inputs.value.some((d) => d.id === before.id || d.label === before.label);
    await this.openMic();
    const other = this.micDevice.value;
    if (gone && other && other.label !== before.label) this.lost(before, other);
  }

  private lost(device: Device, other: Device): void {
    const holes = {device: device.label, other: other.label || this.t('mic.defaultDevice')};
    this.note({kind: 'device', key: 'mic.unplugged', holes, button: 'mic.change', act: () => (this.panel.value = {panel: 'settings'})});
    this.say.urgently('device', this.t('mic.unplugged', holes));
  }

  private async listDevices(): Promise<void> {
    try {
      const all = await navigator.mediaDevices.enumerateDevices();
      const of = (kind: string): Device[] => all
        .filter((d) => d.kind === kind && d.deviceId !== '' && d.deviceId !== 'default' && d.deviceId !== 'communications')
        .map((d) => ({id: d.deviceId, label: d.label}));
      this.inputs.value = of('audioinput');
      this.outputs.value = of('audiooutput');
    } catch {
      // A browser that lists none uses its default.
    }
  }

  /** devicesChanged gathers what comes in swarms. */
  devicesChanged(): void {
    clearTimeout(this.changeTimer);
    this.changeTimer = setTimeout(() => void this.adapt(), gatherFor);
  }

  private async adapt(): Promise<void> {
    await this.listDevices();
    if (!this.joined.value) return;
    const s = this.settings.value, before = this.micDevice.value;
    if (this.micWanted.value && (this.micFault.value === 'absent' || this.micFault.value === 'busy')) return void this.reopenMic();
    const change = plan(s.mic, before, this.inputs.value);
    if (change.change !== 'none' && before) {
      if (!this.reopening.may(now())) return this.note({kind: 'keep', key: 'mic.keep', button: 'banner.gotIt'});
      await this.openMic();
      const device = this.micDevice.value;
      if (device && change.change === 'back') {
        this.note({kind: 'device', key: 'mic.backOn', holes: {device: device.label}, button: 'banner.gotIt'});
        this.say.politely('device', this.t('mic.backOn', {device: device.label}));
      } else if (device) this.lost(before, device);
    }
    const sink = choose(s.output, this.outputs.value);
    if (s.output && sink) void this.output?.use(sink);
  }

  private async watchPermission(): Promise<void> {
    try {
      const p = await navigator.permissions.query({name: 'microphone' as PermissionName});
      p.onchange = () => {
        if (p.state === 'granted' && this.micFault.value) void this.openMic();
      };
    } catch {
      // Old browsers throw; coming back to the page asks again.
    }
  }

  clickMic(): void {
    switch (clickOf(this.mic.value)) {
      case 'ask': void this.openMic(); break;
      case 'help': this.panel.value = {panel: 'blocked'}; break;
      case 'mute': case 'unmute': this.toggleMute(); break;
      case 'undeafen': this.toggleDeafen();
    }
  }

  toggleMute(): void {
    const muteSelf = !this.settings.value.muteSelf;
    this.hiddenMute = false;
    this.latch.clear();
    this.change({muteSelf});
    this.closeNote('mutedTalking');
    this.cue(muteSelf ? 330 : 523);
    this.say.politely('own', this.t(muteSelf ? 'mic.muted' : 'mic.open'));
  }

  toggleDeafen(): void {
    const deafened = !this.settings.value.deafened;
    this.change({deafened});
    this.post({to: 'deafen', on: deafened});
    this.cue(deafened ? 262 : 523);
    this.say.politely('own', this.t(deafened ? 'mic.deafened' : 'net.on'));
  }

  setTier(tier: Tier): void {
    this.tier.value = tier;
    this.tellTier();
    this.say.politely('tier', this.t('say.tier', {tier: this.t(`tier.${tier}`)}));
  }

  private tellTier(): void {
    const held = this.heldKeys.value, r = this.ranges.value;
    this.post({to: 'tier', tier: held.has('whisper') && r.whisper ? 'whisper' : held.has('shout') && r.shout ? 'shout' : this.tier.value});
  }

  private holdsChanged(held: ReadonlySet<Held>): void {
    this.heldKeys.value = held;
    this.tellTier();
  }

  /** pressMic and releaseMic are a finger or a button on the control, in push to talk. */
  pressMic(pointer: number): void {
    this.latch.down(now());
    this.keys.press(`pointer ${pointer}`, 'talk');
  }

  releaseMic(pointer: number): void {
    if (this.latch.up(now())) return;
    this.keys.release(`pointer ${pointer}`);
    this.keys.release('latch');
  }

  private tellTalk(): void {
    const s = this.settings.value, facts = this.micFacts.value, held = this.heldKeys.value;
    // A whisper or a shout that is held is spoken, in push to talk too.
    const talk = {mode: s.mode, open: mayOpen(facts), held: held.size > 0, threshold: s.threshold};
    this.post({to: 'talk', talk, gain: s.gain});
  }

  private cue(hertz: number): void {
    if (this.settings.value.cues && this.joined.value && !document.hidden) this.output?.cue(hertz);
  }

  hearSelf(): void {
    if (this.ownVoice.value || !this.microphone) return;
    this.ownVoice.value = true;
    this.post({to: 'self', on: true});
    setTimeout(() => {
      this.ownVoice.value = false;
      this.post({to: 'self', on: false});
    }, 5000);
  }

  // ---- settings

  change(some: Partial<Settings>): void {
    const before = this.settings.value, s = {...before, ...some};
    this.settings.value = s;
    this.keeper.save(s);
    if (this.keeper.lost && this.joined.value) this.note({kind: 'storage', key: 'banner.storage', button: 'banner.gotIt'});
    this.keys.bindings = s.keys;
    if (this.keys.on !== s.keysOn) {
      this.keys.on = s.keysOn;
      this.keys.endAll('off');
    }
    if ('theme' in some) this.look();
    if ('language' in some) void this.speakLanguage();
    if ('volumes' in some || 'muted' in some || 'clips' in some || 'speakers' in some || 'master' in some) this.tellVolumes();
    if ('surround' in some) this.post({to: 'surround', on: s.surround});
    if ('output' in some) void this.output?.use(choose(s.output, this.outputs.value));
    if ('mic' in some && this.micWanted.value) void this.openMic();
    if (('echo' in some || 'noise' in some || 'browserGain' in some) && this.microphone) {
      void this.microphone.adjust(this.processing()).then((done) => {
        if (!done) void this.openMic();
      });
    }
    if ('mode' in some) {
      this.keys.endAll('off');
      this.closeNote('front');
    }
  }

  bind(a: Action, b: Bound): void {
    this.change({keys: {...this.settings.value.keys, [a]: b}});
  }

  volumeOf(id: string): number {
    return this.settings.value.volumes[id] ?? 1;
  }

  setVolume(id: string, v: number): void {
    const volumes = {...this.settings.value.volumes};
    if (v === 1) delete volumes[id];
    else volumes[id] = v;
    this.change({volumes, muted: v > 0 ? this.settings.value.muted.filter((m) => m !== id) : this.settings.value.muted});
  }

  isMuted(id: string): boolean {
    return this.settings.value.muted.includes(id);
  }

  toggleMuted(id: string): void {
    const {muted} = this.settings.value;
    this.change({muted: muted.includes(id) ? muted.filter((m) => m !== id) : [...muted, id]});
  }

  private tellVolumes(): void {
    const s = this.settings.value;
    const silent = Object.fromEntries(s.muted.map((id) => [id, 0]));
    this.post({to: 'volumes', volumes: {master: s.master, players: {...s.volumes, ...silent}, clips: {...s.clips, ...silent}, speakers: s.speakers}});
  }

  private look(): void {
    const root = document.documentElement;
    if (this.settings.value.theme === 'auto') root.removeAttribute('data-theme');
    else root.setAttribute('data-theme', this.settings.value.theme);
  }

  private async speakLanguage(): Promise<void> {
    const asked = new URLSearchParams(location.search).get('lang') ?? '';
    if (asked === 'pseudo' || asked === 'pseudo-rtl') { // to see what does not fit, and what does not turn
      if (asked === 'pseudo-rtl') document.documentElement.dir = 'rtl';
      this.language.value = {code: 'en', table: pseudo(english.table)};
      return;
    }
    const code = preferred([this.settings.value.language || asked, ...navigator.languages].filter(Boolean), Object.keys(languages));
    try {
      this.language.value = await languages[code]!.load();
    } catch {
      this.language.value = english;
    }
    document.documentElement.lang = this.language.value.code;
  }

  async forgetAll(): Promise<void> {
    this.keeper.forget();
    await (await import('../sound/clips.ts')).forget();
    await call('DELETE', 'api/session');
    this.leave();
    location.reload();
  }

  // ---- notes

  note(n: Note): void {
    this.notes.value = [...this.notes.value.filter((o) => o.kind !== n.kind), n];
  }

  closeNote(kind: Note['kind']): void {
    if (kind === 'front' && !this.settings.value.toldFront && this.notes.value.some((n) => n.kind === 'front')) {
      const s = {...this.settings.value, toldFront: true};
      this.settings.value = s;
      this.keeper.save(s);
    }
    if (this.notes.value.some((n) => n.kind === kind)) this.notes.value = this.notes.value.filter((n) => n.kind !== kind);
  }

  word(): string {
    const w = wordOf(this.connection.value, this.roundTrip.value);
    return this.t(w.key, w.holes);
  }

  private title(): string {
    if (!this.joined.value) return this.network.value;
    if (this.connection.value.state !== 'on') return this.t('title.away');
    switch (this.mic.value) {
      case 'live': return this.t('title.live');
      case 'open': case 'held': return this.t('title.open');
      case 'muted': case 'servermuted': case 'deafened': case 'denied': return this.t('title.muted');
      default: return this.network.value;
    }
  }

  // ---- connection, by hand

  tryNow(): void {
    this.post({to: 'join'});
  }

  // ---- groups

  group(r: Partial<GroupRequest> & {verb: Verb}, undo?: () => void): void {
    this.result.value = null;
    this.lastMoves.push({verb: r.verb, undo});
    this.post({to: 'group', request: request(r)});
  }

  move(player: string, to: string | null): void {
    const before = this.groups.value?.members.find((m) => m.player === player)?.group ?? null;
    const go = (group: string | null): Partial<GroupRequest> & {verb: Verb} => ({verb: 'MOVE', player, ...(group === null ? {out: true} : {group})});
    this.group(go(to), () => this.group(go(before)));
  }

  private answered(verb: Verb, code: Code): void {
    const at = this.lastMoves.findIndex((m) => m.verb === verb);
    const [asked] = at < 0 ? [] : this.lastMoves.splice(at, 1);
    const ok = code === 'OK';
    const text = this.t(ok ? `done.${verb}` : `result.${code}`);
    this.result.value = {text, ok, undo: ok ? asked?.undo : undefined};
    this.say.politely('result', text);
  }

  async why(name: string): Promise<string> {
    const a = await call<{sentence: string}>('POST', 'api/why', {name});
    if (a.ok && typeof a.value.sentence === 'string') return a.value.sentence;
    const e = a.ok ? null : a.refused;
    return this.t('error.other', {message: e?.message || e?.code || '?'});
  }

  // ---- clips

  async playClip(c: Clip): Promise<void> {
    if (this.playing.value.has(c.id)) return this.post({to: 'clipEnd', id: c.id});
    if (!this.mayClip.value || this.connection.value.state !== 'on') return;
    const {samples} = await import('../sound/clips.ts');
    const pcm = samples(c);
    if (pcm.length === 0) return;
    this.playing.value = new Set([...this.playing.value, c.id]);
    this.post({to: 'clip', id: c.id, pcm}, [pcm.buffer]);
  }

  // ---- what the browser says

  private sessionKind(kind: string): void {
    const s = (navigator as {audioSession?: {type: string}}).audioSession; // iPhones: the right loudspeaker, whatever the ring switch says
    if (s) s.type = kind;
  }

  private stayAwake(): void {
    const lock = (navigator as {wakeLock?: {request(kind: 'screen'): Promise<{release(): Promise<void>}>}}).wakeLock;
    lock?.request('screen').then((l) => (this.wakeLock = l), () => {});
    try {
      void navigator.locks?.request('earshot', {mode: 'shared'}, () => new Promise(() => {})).catch(() => {}); // a tab that holds one is not frozen
    } catch {
      // Blocked with the cookies.
    }
    try {
      navigator.mediaSession.setActionHandler('togglemicrophone' as MediaSessionAction, () => this.clickMic());
    } catch {
      // Not known here.
    }
  }

  private listen(): void {
    const field = (t: EventTarget | null): boolean =>
      t instanceof HTMLElement && (t.isContentEditable || t instanceof HTMLTextAreaElement || t instanceof HTMLSelectElement || (t instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'range'].includes(t.type)));
    addEventListener('keydown', (e) => {
      if (!this.joined.value) return;
      const down = {code: e.code, repeat: e.repeat, modified: e.ctrlKey || e.altKey || e.metaKey, field: field(e.target) || document.querySelector('dialog[open]') !== null};
      const done = this.keys.keydown(down);
      if (done.prevent) e.preventDefault();
      if (done.press) this.pressed(done.press);
      const digit = /^Digit(\d)$/.exec(e.code);
      if (digit && this.keys.on && !down.modified && !down.field && !down.repeat) {
        const clip = this.clips.value[(Number(digit[1]) + 9) % 10];
        if (clip) void this.playClip(clip);
      }
    }, true);
    addEventListener('keyup', (e) => {
      if (this.keys.keyup(e.code).prevent) e.preventDefault();
    }, true);
    addEventListener('blur', () => this.keys.endAll('blur'));
    addEventListener('focusin', (e) => {
      if (field(e.target)) this.keys.endAll('field');
    });
    addEventListener('touchcancel', () => this.keys.endAll('touchcancel'));
    addEventListener('pointercancel', () => this.keys.endAll('touchcancel'));
    addEventListener('pagehide', () => {
      this.keys.endAll('pagehide');
      this.post({to: 'leave'});
    });
    addEventListener('pageshow', (e) => {
      if (e.persisted) location.reload(); // what the cache kept is a ghost
    });
    document.addEventListener('freeze', () => this.keys.endAll('frozen'));
    document.addEventListener('visibilitychange', () => this.seen(!document.hidden));
    addEventListener('focus', () => {
      if (this.micFault.value && this.micFault.value !== 'dismissed' && this.joined.value) void this.maybeGranted();
    });
    addEventListener('online', () => {
      this.offline.value = false;
      this.post({to: 'online'});
    });
    addEventListener('offline', () => (this.offline.value = true));
    addEventListener('hashchange', () => {
      if (location.hash.length < 2) return;
      if (this.joined.value) this.leave();
      void this.enter();
    });
    navigator.mediaDevices?.addEventListener?.('devicechange', () => this.devicesChanged());
    effect(() => {
      if (this.panel.value) this.keys.endAll('dialog');
    });
  }

  private seen(visible: boolean): void {
    const s = this.settings.value;
    if (!visible) {
      this.keys.endAll('hidden');
      if (s.muteHidden && !s.muteSelf && this.joined.value) {
        this.hiddenMute = true;
        this.change({muteSelf: true});
      }
      return;
    }
    if (this.hiddenMute) {
      this.hiddenMute = false;
      this.change({muteSelf: false});
    }
    if (!this.joined.value) return;
    this.post({to: 'look'});
    this.stayAwake();
    void this.maybeGranted();
  }

  /** maybeGranted asks again where somebody may just have allowed the microphone, without a question that they did not expect. */
  private async maybeGranted(): Promise<void> {
    if (!this.micFault.value || this.opening) return;
    try {
      const p = await navigator.permissions.query({name: 'microphone' as PermissionName});
      if (p.state === 'granted' && this.reopening.may(now())) await this.openMic();
    } catch {
      // A click asks.
    }
  }

  private pressed(a: Exclude<Action, Held>): void {
    switch (a) {
      case 'mute':
        if (this.micWanted.value) this.toggleMute();
        break;
      case 'deafen': this.toggleDeafen(); break;
      case 'group': this.panel.value = {panel: 'group'}; break;
      case 'help': this.panel.value = {panel: 'diagnosis'}; break;
      case 'settings': this.panel.value = {panel: 'settings'}; break;
      case 'search': (document.querySelector('.people .row button') as HTMLElement | null)?.focus();
    }
  }
}
