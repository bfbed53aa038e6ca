import {base as baseToken, c2sFormat, fromToken, none, offers, s2cFormat, type Caps} from '../protocol/caps.ts';
import {encodeC2S, newStream, opusOK, parseS2C, type C2S} from '../protocol/frame.ts';
import {encodeC2S as encodeLine, parseS2C as parseLine, type C2SLine, type Tier} from '../protocol/line.ts';
import type {GroupRequest} from '../protocol/group.ts';
import {Latest} from '../protocol/latest.ts';
import {Machine, type Action, type Event} from '../protocol/socket.ts';
import {zeroUUID} from '../protocol/text.ts';
import {Decoder, Encoder} from './codec.ts';
import {Gate, History, Silence, SlowGain, type Talk} from './gate.ts';
import {decibels, frameMs, frameSize, rms} from './level.ts';
import type {FromWorker, Stats, ToPlay, ToWorker, Volumes} from './messages.ts';
import type {Sound} from './mix.ts';
import {Receiver, type Verdict} from './receive.ts';

// Socket, encoder, decoders and every clock that sound depends on: the page's own thread may be blocked or its tab hidden.

const scope = self as unknown as {postMessage(m: FromWorker): void; onmessage: ((e: MessageEvent<ToWorker>) => void) | null};
const tell = (m: FromWorker): void => scope.postMessage(m);
const now = (): number => performance.now();

let base = '';
let play: MessagePort | null = null;
let capture: MessagePort | null = null;
const toPlay = (m: ToPlay, transfer: Transferable[] = []): void => play?.postMessage(m, transfer);

// ---- the connection

const machine = new Machine(Math.random);
let socket: WebSocket | null = null;
let caps: Caps = {...none};
let token = {token: '', uuid: '', path: 'voice'};
let told = '';

function handle(e: Event): void {
  for (const a of machine.handle(e, now())) act(a);
  const c = machine.connection;
  const key = JSON.stringify([c, caps]);
  if (key === told) return;
  told = key;
  tell({from: 'connection', connection: c, left: 'at' in c ? c.at - now() : 0, caps});
}

function act(a: Action): void {
  switch (a.do) {
    case 'token':
      void mint();
      break;
    case 'open':
      open();
      break;
    case 'close':
      drop(a.code);
      break;
    case 'beat':
      say({line: 'beat', n: a.n});
  }
}

let minting = 0;

async function mint(): Promise<void> {
  const mine = ++minting;
  let e: Event = {event: 'refused', code: 'unreachable'};
  try {
    const answer = await fetch(new URL('api/token', base), {
      method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}, credentials: 'same-origin', cache: 'no-store',
      signal: AbortSignal.timeout(8000),
    });
    const body: unknown = await answer.json();
    if (body && typeof body === 'object') {
      const b = body as Record<string, unknown>;
      if (answer.ok && typeof b['token'] === 'string' && typeof b['uuid'] === 'string') {
        token = {token: b['token'], uuid: b['uuid'], path: typeof b['path'] === 'string' ? b['path'] : 'voice'};
        e = {event: 'token'};
      } else if (!answer.ok && typeof b['code'] === 'string') {
        e = {event: 'refused', code: b['code'], wait: typeof b['wait'] === 'number' ? b['wait'] : undefined};
      }
    }
  } catch {
    // No answer, or none of ours: the machine tries again.
  }
  if (mine === minting) handle(e);
}

function open(): void {
  drop(4000);
  const url = new URL(token.path, base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = new URLSearchParams({token: token.token, uuid: token.uuid}).toString();
  const s = new WebSocket(url, offers());
  s.binaryType = 'arraybuffer';
  socket = s;
  fresh();
  s.onopen = () => {
    if (s !== socket) return;
    const granted = fromToken(s.protocol || baseToken);
    if (!granted) {
      handle({event: 'closed', code: 1003});
      return drop(4000);
    }
    caps = granted;
    machine.beats = caps.page === 1;
    handle({event: 'opened'});
    handle({event: 'tick'});
    sayDeafen.renew('0');
    sayTier.renew('normal');
    requests.length = 0;
    utter();
  };
  s.onmessage = (e: MessageEvent<string | ArrayBuffer>) => {
    if (s === socket && !asleep()) receive(e.data);
  };
  s.onclose = (e) => {
    if (s !== socket) return;
    socket = null;
    silence();
    handle({event: 'closed', code: e.code});
  };
}

/** drop lets go of the socket; what it still says is nobody's. */
function drop(code: number): void {
  const s = socket;
  socket = null;
  if (!s) return;
  silence();
  try {
    s.close(code);
  } catch {
    // It was closing already.
  }
}

function say(l: C2SLine): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  if (l.line === 'deafen' || l.line === 'range' ? caps.status !== 1 : l.line === 'beat' ? caps.page !== 1 : caps.groups !== 2) return;
  socket.send(encodeLine(l));
}

// What a server is told by its newest value, no more often than it wants to hear it.
const sayDeafen = new Latest<'0' | '1'>('0', 1000), sayTier = new Latest<Tier>('normal', 100);
const requests: GroupRequest[] = [];
let requestedAt = -1000;

/** utter says what is due. */
function utter(): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const t = now();
  const deaf = sayDeafen.due(t), loud = sayTier.due(t);
  if (deaf) say({line: 'deafen', deafened: deaf === '1'});
  if (loud) say({line: 'range', tier: loud});
  if (requests.length && t - requestedAt >= 220) {
    requestedAt = t;
    say({line: 'group', request: requests.shift()!});
  }
}

// ---- counts of one connection

let stats: Stats, sentAt: {sent: number; accepted: number; since: number}, trips: number[];

function fresh(): void {
  stats = {sent: 0, sendDropped: 0, received: 0, discarded: 0, gaps: 0, crowded: 0, decodeErrors: 0, talkers: 0, bursts: false, unheard: false};
  sentAt = {sent: 0, accepted: 0, since: now()};
  trips = [];
  receiver = new Receiver();
}

// ---- what is heard

interface Tag extends Verdict {
  id: string;
  gain: number;
  dx: number;
  dz: number;
}

let deafened = false;
let receiver: Receiver;
fresh();
const decoders = new Map<string, Decoder<Tag>>();
let volumes: Volumes = {master: 1, players: {}, clips: {}, speakers: {}};

const evict = (key: string): void => {
  const d = decoders.get(key);
  if (d) stats.decodeErrors += d.errors;
  d?.close();
  decoders.delete(key);
  toPlay({end: key});
};

/** silence forgets every source: what comes next is no continuation. */
function silence(): void {
  receiver.clear(evict);
  toPlay({clear: true});
}

function receive(data: string | ArrayBuffer): void {
  if (typeof data === 'string') {
    const l = parseLine(data);
    if (l === 'reject' || l === 'ignored') return;
    handle({event: 'proved'});
    if (l.line === 'beat') answered(l.accepted);
    else {
      if (l.line === 'pose') toPlay({yaw: l.yaw});
      tell({from: 'line', line: l});
    }
    return;
  }
  stats.received++;
  const f = parseS2C(s2cFormat(caps), new Uint8Array(data));
  if (typeof f === 'string' || !opusOK(f.opus)) {
    stats.discarded++;
    return;
  }
  handle({event: 'proved'});
  if (deafened) return;
  const mine = (set: Record<string, number>, id: string): number => set[id] ?? 1;
  let gain = (f.gain / 255) * volumes.master;
  if (f.kind === 'player') gain *= mine(volumes.players, f.source);
  else if (f.kind === 'board') gain *= mine(volumes.clips, f.source);
  else gain *= mine(volumes.speakers, f.source) * (f.origin === zeroUUID ? 1 : mine(volumes.players, f.origin));
  const v = receiver.frame(f, gain, now(), evict);
  if (!v) return;
  decode({...v, id: f.source, gain, dx: f.dx, dz: f.dz}, f.opus);
}

function decode(tag: Tag, opus: Uint8Array): void {
  let d = decoders.get(tag.key);
  if (!d) {
    d = new Decoder<Tag>((pcm, t) => {
      if (pcm.length !== frameSize || deafened) return;
      const sound: Sound = {pcm, gain: t.gain, dx: t.dx, dz: t.dz};
      toPlay({key: t.key, id: t.id, sound, missing: t.missing, begins: t.begins}, [pcm.buffer]);
    });
    decoders.set(tag.key, d);
  } else if (tag.fresh) d.begin();
  d.decode(opus, tag);
}

function answered(accepted: number): void {
  handle({event: 'answered'});
  if (machine.roundTrip !== null) trips.push(machine.roundTrip);
  if (trips.length > 8) trips.shift();
  stats.bursts = trips.length >= 4 && Math.min(...trips.slice(-4)) > 300;
  if (accepted > sentAt.accepted || stats.sent === sentAt.sent) {
    sentAt = {sent: stats.sent, accepted, since: now()};
    stats.unheard = false;
  } else if (stats.sent - sentAt.sent >= 25) stats.unheard = true;
}

// ---- what is said

let talk: Talk = {mode: 'voice', open: false, held: false, threshold: -45};
let ownGain = true;
let ownVoice = false; // the own-voice test: to our own ears, and to nobody else's
const gate = new Gate(), history = new History(), quiet = new Silence(), slow = new SlowGain();
let stream = 0n, seq = 0n, silentFrames = 0;
let frameAt = 0, level = -120, live = false, levelAt = 0;

const random64 = (): bigint => crypto.getRandomValues(new BigUint64Array(1))[0]!;

const mouth = new Encoder<Omit<C2S, 'opus'>>((opus, tag) => {
  if (ownVoice) return decode({key: 'self', id: 'self', gain: 1, dx: 0, dz: 0, missing: 0, begins: tag.seq === 0n, fresh: tag.seq === 0n}, opus);
  transmit(opus, tag);
});

function transmit(opus: Uint8Array, tag: Omit<C2S, 'opus'>): void {
  if (machine.connection.state !== 'on' || socket?.readyState !== WebSocket.OPEN) return;
  if (!opusOK(opus)) return;
  // What waits here longer than half a second is of no use to anybody; it is a gap by its number.
  if (socket.bufferedAmount > 4096) {
    stats.sendDropped++;
    return;
  }
  socket.send(encodeC2S(c2sFormat(caps), {...tag, opus}));
  if (tag.source === 'mic') stats.sent++;
}

function captured(frame: Float32Array<ArrayBuffer>): void {
  const t = now();
  frameAt = t;
  const db = decibels(rms(frame));
  const what = talk.open || ownVoice ? quiet.frame(db, t) : (quiet.pause(), null);
  if (what) tell({from: 'input', what});
  const verdict = gate.frame(db, ownVoice ? {...talk, open: true, mode: 'hold', held: true} : talk);
  if (ownGain) slow.apply(frame, db, verdict !== 'silent');
  if (verdict === 'silent') {
    history.keep(frame);
    // The encoder forgets while nobody speaks, so that it need not when somebody begins. What it still holds has gone by then.
    if (++silentFrames === 5) mouth.begin();
  } else {
    if (verdict === 'begin' && silentFrames < 5) mouth.begin();
    silentFrames = 0;
    if (verdict === 'begin') {
      stream = newStream(random64);
      seq = 0n;
      if (talk.mode === 'voice' && !ownVoice) for (const before of history.take()) speak(before as Float32Array<ArrayBuffer>);
      history.take();
    }
    speak(frame);
  }
  level = Math.max(level, db);
  const isLive = verdict !== 'silent' && !ownVoice;
  if (isLive !== live || t >= levelAt) {
    live = isLive;
    tell({from: 'level', db: level, live, slept: false});
    level = -120;
    levelAt = t + 95;
  }
}

function speak(frame: Float32Array<ArrayBuffer>): void {
  mouth.encode(frame, {source: 'mic', stream, seq: seq++});
}

// ---- clips

interface Clip {
  pcm: Float32Array<ArrayBuffer>;
  at: number;
  stream: bigint;
  seq: bigint;
  begun: number; // when its first frame went
  encoder: Encoder<Omit<C2S, 'opus'>>;
}

const mostClips = 10;
const clips = new Map<string, Clip>();

function endClip(id: string): void {
  clips.get(id)?.encoder.close();
  if (clips.delete(id)) tell({from: 'clipEnd', id});
}

function playClip(id: string, pcm: Float32Array<ArrayBuffer>): void {
  endClip(id);
  const most = caps.soundboard === 2 ? mostClips : 1;
  if (!caps.soundboard) return tell({from: 'clipEnd', id});
  while (clips.size >= most) endClip(clips.keys().next().value!);
  const encoder = new Encoder<Omit<C2S, 'opus'>>(transmit);
  encoder.begin();
  clips.set(id, {pcm, at: 0, stream: newStream(random64), seq: 0n, begun: now(), encoder});
}

// ---- the clock: nothing here is the main thread's, whose timers stand still in a hidden tab

let tickAt = now(), machineAt = 0, secondAt = 0;

/** asleep tells, and does, what is due when the clock has jumped: the laptop slept, and what comes now is of the past. */
function asleep(): boolean {
  const t = now(), slept = t - tickAt > 3000;
  tickAt = t;
  if (!slept) return false;
  tell({from: 'level', db: -120, live: false, slept: true});
  silence();
  handle({event: 'woken'});
  return true;
}

setInterval(() => {
  asleep();
  for (const [id, c] of clips) {
    const due = Math.floor((now() - c.begun) / frameMs) + 2;
    while (c.seq < due && c.at < c.pcm.length) {
      const frame = new Float32Array(frameSize);
      frame.set(c.pcm.subarray(c.at, c.at + frameSize));
      c.encoder.encode(frame, {source: 'board', stream: c.stream, seq: c.seq++});
      c.at += frameSize;
    }
    if (c.at >= c.pcm.length && now() - c.begun > Number(c.seq) * frameMs + 200) endClip(id);
  }
  utter();
  const t = now();
  if (t >= machineAt) {
    machineAt = t + 200;
    handle({event: 'tick'});
  }
  if (t < secondAt) return;
  secondAt = t + 1000;
  receiver.expire(now(), evict);
  if (capture && talk.open && now() - frameAt > 1000) {
    const what = quiet.frame(null, now());
    if (what) tell({from: 'input', what});
  }
  stats.gaps = receiver.gaps;
  stats.crowded = receiver.crowded;
  stats.talkers = receiver.size;
  const c = machine.connection;
  tell({from: 'second', stats, roundTrip: machine.roundTrip, left: 'at' in c ? c.at - now() : 0});
}, frameMs);

scope.onmessage = (e) => {
  const m = e.data;
  switch (m.to) {
    case 'start':
      base = m.base;
      break;
    case 'join': case 'leave': case 'online':
      handle({event: m.to});
      break;
    case 'look': // the page is seen again
      if (!asleep()) handle({event: 'online'});
      break;
    case 'play':
      play = m.port;
      break;
    case 'capture':
      capture?.close();
      capture = m.port;
      frameAt = now();
      capture.onmessage = (f: MessageEvent<Float32Array<ArrayBuffer>>) => captured(f.data);
      break;
    case 'uncapture':
      capture?.close();
      capture = null;
      gate.frame(-120, {...talk, open: false});
      tell({from: 'level', db: -120, live: (live = false), slept: false});
      break;
    case 'talk':
      talk = m.talk;
      ownGain = m.gain;
      if (!talk.open) tell({from: 'level', db: level, live: (live = false), slept: false});
      break;
    case 'deafen':
      deafened = m.on;
      silence();
      sayDeafen.want = deafened ? '1' : '0';
      utter();
      break;
    case 'tier':
      sayTier.want = m.tier;
      utter();
      break;
    case 'volumes':
      volumes = m.volumes;
      break;
    case 'surround':
      toPlay({surround: m.on});
      break;
    case 'group':
      requests.push(m.request);
      utter();
      break;
    case 'clip':
      playClip(m.id, m.pcm);
      break;
    case 'clipEnd':
      endClip(m.id);
      break;
    case 'self':
      if (ownVoice && !m.on) evict('self');
      ownVoice = m.on;
      gate.live = false;
  }
};
