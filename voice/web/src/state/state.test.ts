import {describe, expect, test} from 'vitest';
import type {Connection} from '../protocol/socket.ts';
import {clock} from '../text/format.ts';
import {codeFrom, fragment, sessionFrom} from './api.ts';
import {arrive, noticeOf, wordOf, type Entry, type Session} from './connection.ts';
import {bindable, Keys, Latch, type Ending} from './keys.ts';
import {clickOf, mayOpen, micState, micText, Nag, type MicFacts, type MicState} from './mic.ts';
import {milestone, Say} from './say.ts';
import {defaults, Keeper, read, type Settings} from './settings.ts';

const session: Session = {name: 'Ann', uuid: 'u', server: 's', near: 1, range: 48, network: 'N', recording: false};
const at = (phase: Entry['phase']): Entry => ({phase, session: phase === 'ready' || phase === 'joined' ? session : null, error: null});

describe('from opening the page to talking', () => {
  test.each<[string, Entry, Parameters<typeof arrive>[1], Entry['phase'], string | null]>([
    ['a fragment', at('trading'), {what: 'fragment'}, 'trading', null],
    ['a session to look for', at('trading'), {what: 'session'}, 'trading', null],
    ['neither', at('trading'), {what: 'neither'}, 'landing', null],
    ['traded', at('trading'), {what: 'traded', session}, 'ready', null],
    ['a used link', at('trading'), {what: 'refused', code: 'link_used', message: ''}, 'landing', 'error.link_used'],
    ['an old link', at('trading'), {what: 'refused', code: 'link_expired', message: ''}, 'landing', 'error.link_used'],
    ['no permission', at('ready'), {what: 'refused', code: 'no_permission', message: ''}, 'landing', 'error.no_permission'],
    ['voice off', at('ready'), {what: 'refused', code: 'voice_off', message: ''}, 'landing', 'error.voice_off'],
    ['too many tries', at('landing'), {what: 'refused', code: 'too_many_tries', message: '', wait: 61}, 'landing', 'error.too_many_tries'],
    ['a wrong code', at('landing'), {what: 'refused', code: 'wrong_code', message: ''}, 'landing', 'error.wrong_code'],
    ['no answer', at('trading'), {what: 'refused', code: 'unreachable', message: ''}, 'landing', 'error.unreachable'],
    ['a code of a later server', at('trading'), {what: 'refused', code: 'moon', message: 'The moon is full.'}, 'landing', 'error.other'],
    ['no cookie', at('trading'), {what: 'noCookie'}, 'landing', 'error.no_cookie'],
    ['a click', at('ready'), {what: 'click'}, 'joined', null],
    ['a click too early', at('trading'), {what: 'click'}, 'trading', null],
    ['the session ended', at('joined'), {what: 'ended', why: 'session_ended'}, 'landing', 'error.session_ended'],
  ])('%s', (_, from, event, phase, error) => {
    const e = arrive(from, event, clock);
    expect(e.phase).toBe(phase);
    expect(e.error?.key ?? null).toBe(error);
    if (error === 'error.too_many_tries') expect(e.error!.holes).toEqual({time: '1:01'});
    if (error === 'error.other') expect(e.error!.holes).toEqual({message: 'The moon is full.'});
  });
});

describe('what is told of a connection', () => {
  test.each<[string, Connection, boolean, string | null, string | null]>([
    ['lost', {state: 'waiting', why: 'lost', at: 0}, false, 'net.lost', 'tryNow'],
    ['slow to join', {state: 'waiting', why: 'slow', at: 0}, false, 'net.lost', 'tryNow'],
    ['busy', {state: 'waiting', why: 'busy', at: 0}, false, 'net.busy', null],
    ['blocked', {state: 'waiting', why: 'blocked', at: 0}, false, 'net.blocked', 'tryNow'],
    ['offline', {state: 'waiting', why: 'lost', at: 0}, true, 'net.offline', null],
    ['left', {state: 'away', since: 0, at: 5, asking: false}, false, 'net.away', null],
    ['left for long', {state: 'away', since: 0, at: Infinity, asking: false}, false, 'net.away', 'tryNow'],
    ['elsewhere', {state: 'elsewhere'}, false, 'net.elsewhere', 'useHere'],
    ['stopped', {state: 'stopped', code: 1003}, false, 'net.stopped', 'reload'],
    ['on', {state: 'on', since: 0}, true, null, null],
    ['joining', {state: 'joining', since: 0, step: 'token'}, false, null, null],
  ])('%s', (_, c, offline, key, button) => {
    const n = noticeOf(c, 3.2, offline);
    expect(n?.key ?? null).toBe(key);
    expect(n?.button ?? null).toBe(button);
    if (key === 'net.lost') expect(n!.holes).toEqual({s: 4});
  });

  test('the word in the header', () => {
    expect(wordOf({state: 'on', since: 0}, 37.6)).toEqual({key: 'net.ms', holes: {ms: 38}});
    expect(wordOf({state: 'on', since: 0}, null).key).toBe('net.on');
    expect(wordOf({state: 'joining', since: 0, step: 'proving'}, 5).key).toBe('net.joining');
    expect(wordOf({state: 'elsewhere'}, 5).key).toBe('net.off');
  });
});

const facts: MicFacts = {
  wanted: true, asking: false, fault: null, silent: false, serverMute: {kind: 0, left: null, reason: ''}, maySpeak: true, deafened: false, muted: false, live: false, mode: 'voice',
};
const serverMute = {kind: 1 as const, left: 272, reason: 'music'};

describe('the microphone is the first state that holds', () => {
  test.each<[MicState, Partial<MicFacts>]>([
    ['none', {wanted: false}],
    ['asking', {asking: true, muted: true}],
    ['blocked', {fault: 'denied'}], ['blocked', {fault: 'system', muted: true}], ['blocked', {fault: 'dismissed', deafened: true}],
    ['absent', {fault: 'absent', serverMute}],
    ['busy', {fault: 'busy'}], ['busy', {fault: 'other'}],
    ['silent', {silent: true, muted: true}],
    ['servermuted', {serverMute, maySpeak: false, deafened: true, muted: true}],
    ['denied', {maySpeak: false, deafened: true, muted: true}],
    ['deafened', {deafened: true, muted: true, live: true}], ['deafened', {deafened: true, wanted: false}],
    ['muted', {muted: true, live: true}],
    ['live', {live: true}], ['live', {live: true, mode: 'hold'}],
    ['open', {}], ['held', {mode: 'hold'}],
  ])('%s %j', (want, some) => expect(micState({...facts, ...some})).toBe(want));

  test('it may send in exactly the states that say so', () => {
    for (const wanted of [true, false]) for (const fault of [null, 'denied'] as const) for (const mute of [serverMute, facts.serverMute]) for (const maySpeak of [true, false])
      for (const deafened of [true, false]) for (const muted of [true, false]) {
        const f = {...facts, wanted, fault, serverMute: mute, maySpeak, deafened, muted};
        expect(mayOpen(f)).toBe(['open', 'live', 'held'].includes(micState(f)));
      }
  });

  test('clicks', () => {
    expect(Object.fromEntries((['none', 'blocked', 'absent', 'open', 'live', 'held', 'muted', 'deafened', 'servermuted', 'denied', 'asking'] as const).map((s) => [s, clickOf(s)]))).toEqual({
      none: 'ask', blocked: 'help', absent: 'ask', open: 'mute', live: 'mute', held: 'mute', muted: 'unmute', deafened: 'undeafen', servermuted: 'nothing', denied: 'nothing', asking: 'nothing',
    });
  });

  test('words', () => {
    const keys = {mute: 'M', deafen: 'D', talk: 'V'};
    expect(micText('held', {...facts, mode: 'hold'}, keys, false, false)).toEqual({title: 'mic.held', hint: 'mic.held.hint', holes: {key: 'V'}});
    expect(micText('servermuted', {...facts, serverMute}, keys, false, false).holes).toEqual({time: '4:32'});
    expect(micText('servermuted', {...facts, serverMute: {...serverMute, left: null}}, keys, false, false).hint).toBe('mic.servermuted.ever');
    expect(micText('asking', facts, keys, false, true).hint).toBe('mic.asking.late');
    expect(micText('muted', facts, keys, true, false).hint).toBe('mic.muted.hintTouch');
  });
});

test('it says that you are muted after three seconds of speech, once a mute, never in push to talk', () => {
  const n = new Nag();
  const talk = (times: number, muted: boolean, hold = false): number => Array.from({length: times}, () => n.level(true, muted, hold)).filter(Boolean).length;
  expect(talk(29, true)).toBe(0);
  expect(talk(100, true)).toBe(1);
  expect(talk(1, false)).toBe(0);
  expect(talk(100, true)).toBe(1);
  expect(talk(100, true, true)).toBe(0);
  const quiet = new Nag();
  expect(Array.from({length: 200}, (_, i) => quiet.level(i % 4 === 0, true, false)).some(Boolean)).toBe(false);
});

describe('keys', () => {
  const key = (code: string, more: Partial<Parameters<Keys['keydown']>[0]> = {}) => ({code, repeat: false, modified: false, field: false, ...more});
  const keys = (some: Partial<Settings['keys']> = {}): {k: Keys; log: string[]} => {
    const log: string[] = [];
    return {k: new Keys({...defaults.keys, ...some}, (held) => log.push([...held].join('+'))), log};
  };

  test('held and released', () => {
    const {k, log} = keys();
    expect(k.keydown(key('KeyV'))).toEqual({prevent: true});
    expect(k.keydown(key('KeyV', {repeat: true}))).toEqual({prevent: true});
    expect(k.keyup('KeyV')).toEqual({prevent: true});
    expect(log).toEqual(['talk', '']);
  });

  test('any release ends it: with a modifier, in a field, after the keys were switched off, under another binding', () => {
    for (const meddle of [(_: Keys) => {}, (k: Keys) => (k.on = false), (k: Keys) => (k.bindings = {...k.bindings, talk: {code: 'KeyX', key: 'X'}})]) {
      const {k} = keys();
      k.keydown(key('KeyV'));
      k.keydown(key('ControlLeft', {modified: true}));
      meddle(k);
      k.keyup('KeyV');
      expect(k.held.size).toBe(0);
    }
  });

  test.each<Ending>(['blur', 'hidden', 'pagehide', 'dialog', 'field', 'touchcancel', 'servermute', 'off', 'frozen'])('%s ends it, whatever is held', (why) => {
    const {k, log} = keys();
    k.keydown(key('KeyV'));
    k.keydown(key('KeyQ'));
    k.press('pointer 1', 'talk');
    k.endAll(why);
    expect(k.held.size).toBe(0);
    k.keydown(key('KeyV', {repeat: true})); // the keyboard goes on repeating it
    expect(k.held.size).toBe(0);
    k.endAll(why);
    expect(log.at(-1)).toBe('');
  });

  test('two ways of holding end when both have ended', () => {
    const {k} = keys();
    k.keydown(key('KeyV'));
    k.press('pointer 1', 'talk');
    k.release('pointer 1');
    expect([...k.held]).toEqual(['talk']);
    k.keyup('KeyV');
    expect(k.held.size).toBe(0);
  });

  test('nothing begins in a field, with a modifier, or when keys are off', () => {
    const {k} = keys();
    for (const more of [{field: true}, {modified: true}]) expect(k.keydown(key('KeyV', more))).toEqual({prevent: false});
    k.on = false;
    expect(k.keydown(key('KeyM'))).toEqual({prevent: false});
    expect(k.held.size).toBe(0);
  });

  test('a press is told once', () => {
    const {k} = keys();
    expect(k.keydown(key('KeyM'))).toEqual({prevent: true, press: 'mute'});
    expect(k.keydown(key('KeyM', {repeat: true}))).toEqual({prevent: true});
  });

  test('by place, not by letter: KeyQ whispers whatever is written on it', () => {
    const {k} = keys();
    k.keydown(key('KeyQ'));
    expect([...k.held]).toEqual(['whisper']);
  });

  test('Space as the talk key never also clicks: down and up are both kept from the browser', () => {
    const {k} = keys({talk: {code: 'Space', key: 'Space'}});
    expect(k.keydown(key('Space')).prevent).toBe(true);
    expect(k.keyup('Space').prevent).toBe(true);
  });

  test('keys that the browser needs cannot be bound', () => {
    for (const code of ['Tab', 'Escape', 'Enter', 'F5', 'F12', 'ControlLeft', 'AltRight', 'MetaLeft', 'ArrowUp', 'PageDown', '']) expect(bindable(code)).toBe(false);
    for (const code of ['KeyV', 'Space', 'Digit1', 'Backquote', 'Numpad0', 'ShiftLeft']) expect(bindable(code)).toBe(true);
  });

  test('two taps keep a control pressed, one more lets go', () => {
    const l = new Latch();
    const tap = (t: number): boolean => {
      l.down(t);
      return l.up(t + 80);
    };
    expect(tap(0)).toBe(false);
    expect(tap(200)).toBe(true);
    expect(tap(1000)).toBe(false);
    expect(tap(3000)).toBe(false);
    expect(tap(5000)).toBe(false); // slow taps are no double tap
    l.down(6000);
    expect(l.up(8000)).toBe(false); // nor is a hold
  });
});

describe('what a browser keeps', () => {
  const storage = (some: Partial<Storage>): (() => Storage) => () => some as Storage;

  test('blocked or full, nothing throws, and it is said', () => {
    const blocked = new Keeper(() => { throw new DOMException('no', 'SecurityError'); }, 'x');
    expect(blocked.load()).toEqual(defaults);
    expect(blocked.lost).toBe(true);
    blocked.save(blocked.load());
    blocked.forget();
    const full = new Keeper(storage({getItem: () => null, setItem: () => { throw new DOMException('full', 'QuotaExceededError'); }}), 'x');
    expect(full.load()).toEqual(defaults);
    expect(full.lost).toBe(false);
    full.save(full.load());
    expect(full.lost).toBe(true);
  });

  test('what was kept comes back', () => {
    let kept: string | null = null;
    const k = new Keeper(storage({getItem: () => kept, setItem: (_, v) => { kept = v; }}), 'x');
    const s: Settings = {...k.load(), volumes: {a: 1.4}, muted: ['b'], mode: 'hold', mic: {id: 'i', label: 'L'}, muteSelf: true};
    k.save(s);
    expect(k.load()).toEqual(s);
  });

  test.each(['', 'null', '7', '[]', '{', '"x"', '{"keys":7,"volumes":[1],"mic":{"id":1},"threshold":"loud","mode":"shout","master":1e9,"muted":{},"theme":3}'])('%s is read as far as it makes sense', (text) => {
    const s = read(text);
    expect(s.keys).toEqual(defaults.keys);
    expect(s.mode).toBe('voice');
    expect(s.mic).toBeNull();
    expect(s.master).toBeLessThanOrEqual(2);
    expect(s.muted).toEqual([]);
    expect(s.theme).toBe('auto');
  });

  test('no more people than fit', () => {
    const many = Object.fromEntries(Array.from({length: 3000}, (_, i) => [`p${i}`, 0.5]));
    const s = read(JSON.stringify({volumes: many}));
    expect(Object.keys(s.volumes).length).toBe(1000);
    expect(s.volumes['p2999']).toBe(0.5);
  });
});

describe('what a screen reader is told', () => {
  const crowd = (n: number): string => `${n} came`;
  test('urgent things at once, and the same not again until it is over', () => {
    const s = new Say();
    s.politely('own', 'muted');
    s.urgently('net', 'lost');
    s.urgently('net', 'lost');
    expect(s.due(0, crowd)).toEqual({how: 'assertive', text: 'lost'});
    expect(s.due(0, crowd)).toEqual({how: 'polite', text: 'muted'});
    expect(s.due(10_000, crowd)).toBeNull();
    s.over('net');
    s.urgently('net', 'lost');
    expect(s.due(10_000, crowd)?.text).toBe('lost');
  });

  test('polite things one in three seconds, the newest of a kind', () => {
    const s = new Say();
    for (const t of ['muted', 'open', 'muted']) s.politely('own', t);
    s.politely('tier', 'whisper');
    const said: [number, string][] = [];
    for (let t = 0; t < 10_000; t += 500) {
      const d = s.due(t, crowd);
      if (d) said.push([t, d.text]);
    }
    expect(said).toEqual([[0, 'muted'], [3000, 'whisper']]);
  });

  test('who comes, as a number, one in five seconds', () => {
    const s = new Say();
    const said: [number, string][] = [];
    for (let t = 0; t < 12_000; t += 500) {
      if (t < 6000) s.cameNear(1);
      const d = s.due(t, crowd);
      if (d) said.push([t, d.text]);
    }
    expect(said).toEqual([[0, '1 came'], [5000, '10 came'], [10000, '1 came']]);
  });

  test('countdowns at a minute, ten seconds and the end', () => {
    const told = Array.from({length: 90}, (_, i) => 90 - i).filter((s) => milestone(s, s - 1)).map((s) => s - 1);
    expect(told).toEqual([60, 10, 0]);
  });
});

test('codes forgive blanks, dashes and case', () => {
  expect(codeFrom(' ab c-D ef ')).toBe('ABCDEF');
  expect(codeFrom('AB–CD_EF')).toBe('ABCDEF');
});

test('a link’s code is taken as it is', () => {
  expect(fragment('#Ab_c-D%20e')).toBe('Ab_c-D e');
  expect(fragment('#%zz')).toBe('%zz');
  expect(fragment('')).toBe('');
});

test('a session that lacks something has a default, and promises no silence of recorders', () => {
  expect(sessionFrom({name: 'Ann', range: -1}, 'N')).toMatchObject({name: 'Ann', range: 48, network: 'N', recording: true});
  expect(sessionFrom(undefined, 'N').name).toBe('?');
});
