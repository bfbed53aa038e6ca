import {describe, expect, test} from 'vitest';
import {forms, type GroupRequest} from './group.ts';
import {encodeC2S, encodeS2C, parseC2S, parseS2C, type C2SLine, type S2CLine} from './line.ts';
import {goFloat, lineVectors, vectorFiles} from './vectors.ts';

// The vector files of the server's codec by who says the lines in them.
const folder = 'voice/line/testdata/';
const fromClients = ['c2s.txt', 'group.txt', 'page-c2s.txt'];
const fromServers = ['page.txt', 'roster.txt', 's2c.txt'];

test('every vector file is read', () => {
  expect(vectorFiles(folder)).toEqual([...fromClients, ...fromServers].sort());
});

const digit = (id: string): string => parseInt(id.slice(-2), 16).toString(16);
const bytes = (s: string): Uint8Array => new Uint8Array(Buffer.from(s));

function short(s: string): string {
  return Buffer.byteLength(s) <= 60 ? JSON.stringify(s) : `${[...s].slice(0, 3).join('')}… (${s.length})`;
}

function describeC2S(l: C2SLine): string {
  switch (l.line) {
    case 'deafen': return `deafen ${l.deafened}`;
    case 'range': return `range ${l.tier}`;
    case 'beat': return `beat ${l.n}`;
    case 'group': return describeRequest(l.request);
  }
}

function describeRequest(g: GroupRequest): string {
  return g.verb + forms[g.verb].map((f) => {
    switch (f) {
      case 'destination': return g.out ? ' out' : ` group=${digit(g.group)}`;
      case 'group': return ` group=${digit(g.group)}`;
      case 'player': return ` player=${digit(g.player)}`;
      case 'type': return ` type=${g.type}`;
      case 'persistent': return ` persistent=${g.persistent}`;
      case 'name': return ` name=${short(g.name)}`;
      default: return g.password === null ? ' garbled' : ` password=${short(g.password)}`;
    }
  }).join('');
}

// What the vectors of the server say of a line.
function describeS2C(l: S2CLine): string {
  switch (l.line) {
    case 'pose': return `pose ${goFloat(l.yaw)} ${goFloat(l.x)} ${goFloat(l.y)} ${l.z} ${l.world}`;
    case 'roster': {
      const people = l.people.map((p) => (p.name.length > 100 ? ` ${digit(p.id)}= and ${p.name.length - 5} more` : ` ${digit(p.id)}=${p.name}`));
      const list = (ids: string[]): string => `[${ids.map(digit).join(' ')}]`;
      return 'roster' + people.join('') + (l.status ? ` deaf${list(l.deafened)} low${list(l.whispering)} high${list(l.shouting)}` : '');
    }
    case 'changes':
      return `changes ${l.from?.replace(/^0+/, '') ?? 'whole'}>${l.to.replace(/^0+/, '')}` +
        l.put.map((p) => ` +${digit(p.id)}=${p.name}${p.deafened ? '/deaf' : ''}${p.tier === 'normal' ? '' : `/${p.tier}`}`).join('') + l.gone.map((id) => ` -${digit(id)}`).join('');
    case 'speakers': return 'speakers' + l.list.map((p) => ` ${digit(p.id)}=${short(p.name)}`).join('');
    case 'groups':
      return 'groups C' + [l.may.use, l.may.create, l.may.admin, l.may.invite].map(Number).join('') +
        l.invites.map((i) => ` I${digit(i.group)}<${digit(i.from)}:${i.seconds}`).join('') +
        l.groups.map((g) => ` G${digit(g.id)}=${g.type}/${g.locked}/${g.persistent}/${digit(g.owner)}/${JSON.stringify(g.name)}`).join('') +
        l.members.map((m) => ` M${digit(m.group)}:${digit(m.player)}`).join('');
    case 'result': return `result ${l.verb} ${l.code}`;
    case 'mute': return `mute ${l.kind} ${l.seconds ?? '-'} ${short(l.reason)}`;
    case 'ranges': return `ranges ${l.whisper} ${l.shout}`;
    case 'near': return 'near' + l.people.map((p) => ` ${digit(p.id)}@${p.dx}/${p.dy}/${p.dz}`).join('');
    case 'rights': return `rights ${l.speak} ${l.listen} ${l.clips}`;
    case 'mic': return `mic ${l.what}`;
    case 'beat': return `beaten ${l.n} ${l.accepted}`;
  }
}

describe('a client’s lines are those of the server codec', () => {
  test.each(fromClients.flatMap((f) => lineVectors(folder + f)))('$name', (v) => {
    const l = parseC2S(v.text);
    if (l === null) {
      expect('close 1003').toBe(v.outcome);
      return;
    }
    const again = encodeC2S(l);
    expect(Buffer.from(again).equals(v.text) ? 'ok' : 'tolerated').toBe(v.outcome);
    expect(describeC2S(l)).toBe(v.want);
    expect(parseC2S(again)).toEqual(l);
  });
});

describe('a server’s lines are those of the server codec', () => {
  test.each(fromServers.flatMap((f) => lineVectors(folder + f)))('$name', (v) => {
    const l = parseS2C(v.text);
    if (typeof l === 'string') {
      expect(l).toBe(v.outcome);
      return;
    }
    expect(Buffer.from(encodeS2C(l)).equals(v.text) ? 'ok' : 'tolerated').toBe(v.outcome);
    expect(describeS2C(l)).toBe(v.want);
  });
});

const a = '00000000-0000-0000-0000-00000000000a', b = '00000000-0000-0000-0000-00000000000b';

// The lines of page 1, each way.
describe('lines for pages', () => {
  test.each<[string, S2CLine | 'reject' | 'ignored']>([
    ['SSVC_NEAR_V1\n', {line: 'near', people: []}],
    [`SSVC_NEAR_V1\n${a} 1 -2 0\n${b} -30000000 0 7\n`, {line: 'near', people: [{id: a, dx: 1, dy: -2, dz: 0}, {id: b, dx: -30000000, dy: 0, dz: 7}]}],
    ['SSVC_NEAR_V1', 'reject'],
    [`SSVC_NEAR_V1\n${a} 1 2 3`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 1 2\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 1 2 3 4\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 1.5 2 3\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 01 2 3\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} -0 2 3\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 1 2 99999999999\n`, 'reject'],
    [`SSVC_NEAR_V1\n${a} 1 2 3\n${a} 1 2 3\n`, 'reject'],
    ['SSVC_NEAR_V1\n' + Array.from({length: 50}, (_, i) => `00000000-0000-0000-0000-0000000000${(i + 16).toString(16)} 0 0 0\n`).join(''), {line: 'near', people: Array.from({length: 50}, (_, i) => ({id: `00000000-0000-0000-0000-0000000000${(i + 16).toString(16)}`, dx: 0, dy: 0, dz: 0}))}],
    ['SSVC_NEAR_V1\n' + Array.from({length: 51}, (_, i) => `00000000-0000-0000-0000-0000000000${(i + 16).toString(16)} 0 0 0\n`).join(''), 'reject'],
    ['SSVC_NEAR_V2\n', 'ignored'],
    ['SSVC_RIGHTS_V1 1 0 1', {line: 'rights', speak: true, listen: false, clips: true}],
    ['SSVC_RIGHTS_V1 1 0', 'reject'],
    ['SSVC_RIGHTS_V1 1 0 2', 'reject'],
    ['SSVC_MIC_V1 toggle', {line: 'mic', what: 'toggle'}],
    ['SSVC_MIC_V1 open', 'ignored'],
    ['SSVC_MIC_V1 toggle\n', 'reject'],
    ['SSVC_BEAT_V1 7 1234', {line: 'beat', n: 7, accepted: 1234}],
    ['SSVC_BEAT_V1 2147483647 0', {line: 'beat', n: 2147483647, accepted: 0}],
    ['SSVC_BEAT_V1 2147483648 0', 'reject'],
    ['SSVC_BEAT_V1 7', 'reject'],
    ['SSVC_BEAT_V1 -1 0', 'reject'],
  ])('%j', (text, want) => {
    const got = parseS2C(bytes(text));
    expect(got).toEqual(want);
    expect(parseS2C(text)).toEqual(want);
    if (typeof got !== 'string') expect(encodeS2C(got)).toBe(text);
  });

  test('beats', () => {
    expect(parseC2S('SSVC_BEAT_V1:12')).toEqual({line: 'beat', n: 12});
    for (const bad of ['SSVC_BEAT_V1:', 'SSVC_BEAT_V1:01', 'SSVC_BEAT_V1:-1', 'SSVC_BEAT_V1:2147483648', 'SSVC_BEAT_V1 1']) expect(parseC2S(bad)).toBeNull();
    expect(encodeC2S({line: 'beat', n: 12})).toBe('SSVC_BEAT_V1:12');
  });
});

// Whatever a server sends, it is read or dropped, and what is read is written and read again as the same.
test('garbled messages are never more than dropped', () => {
  const seeds = fromServers.flatMap((f) => lineVectors(folder + f)).map((v) => v.text).filter((t) => t.length < 4096);
  let random = 1;
  const next = (n: number): number => (random = (random * 48271) % 0x7fffffff) % n;
  for (let i = 0; i < 20000; i++) {
    const t = Uint8Array.from(seeds[next(seeds.length)]!);
    for (let k = next(3); k >= 0 && t.length; k--) t[next(t.length)] = next(256);
    const l = parseS2C(t.subarray(0, t.length - (next(4) ? 0 : next(t.length + 1))));
    if (typeof l !== 'string') {
      const text = encodeS2C(l);
      const again = parseS2C(text);
      expect(typeof again).toBe('object');
      expect(encodeS2C(again as S2CLine)).toBe(text);
    }
  }
});
