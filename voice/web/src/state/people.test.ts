import {describe, expect, test} from 'vitest';
import type {Roster} from '../protocol/line.ts';
import {directionOf, hearersOf, listsOf, Order, statusOf, turnOf, type Facts, type Row} from './people.ts';

const roster: Roster = {line: 'roster', people: ['me', 'ann', 'bo', 'cy', 'di'].map((id) => ({id, name: id})), status: true, deafened: ['bo'], whispering: ['ann'], shouting: ['cy']};
const near = {line: 'near' as const, people: [{id: 'ann', dx: 3, dy: 0, dz: 4}, {id: 'bo', dx: 0, dy: 0, dz: 40}, {id: 'cy', dx: 0, dy: 0, dz: 80}]};
const none: ReadonlySet<string> = new Set();
const facts: Facts = {me: 'me', roster, near, range: 48, speaking: none, recent: none, muted: none, group: none};

describe('a row says the first that holds', () => {
  test.each<[string, string, Partial<Facts>, number | null, boolean]>([
    ['row.muted', 'ann', {muted: new Set(['ann']), speaking: new Set(['ann'])}, 5, false],
    ['row.whispers', 'ann', {speaking: new Set(['ann'])}, 5, false],
    ['row.shouts', 'cy', {speaking: new Set(['cy'])}, 80, false],
    ['row.speaking', 'bo', {speaking: new Set(['bo'])}, 40, false],
    ['row.deafened', 'bo', {}, 40, false],
    ['row.far', 'cy', {}, 80, false],
    ['row.group', 'di', {}, null, true],
    ['row.quiet', 'ann', {}, 5, false],
  ])('%s', (want, id, some, blocks, inGroup) => expect(statusOf(id, {...facts, ...some}, blocks, inGroup)).toBe(want));
});

test('who is in earshot, in the group, elsewhere', () => {
  const l = listsOf(facts);
  expect(l.near.map((r) => [r.id, r.blocks])).toEqual([['ann', 5], ['bo', 40]]);
  expect(l.others.map((r) => r.id)).toEqual(['cy', 'di']);
  const g = listsOf({...facts, group: new Set(['me', 'di'])});
  expect(g.group.map((r) => r.id)).toEqual(['di']);
  expect([...g.near, ...g.others].some((r) => r.id === 'di')).toBe(false);
});

test('where a server does not say who is near, it is those who are heard', () => {
  const l = listsOf({...facts, near: null, speaking: new Set(['ann']), recent: new Set(['cy'])});
  expect(l.near.map((r) => r.id)).toEqual(['ann', 'cy']);
});

test('nobody is shown whom the roster does not name', () => {
  const l = listsOf({...facts, roster: {...roster, people: roster.people.filter((p) => p.id !== 'ann')}});
  expect([...l.near, ...l.group, ...l.others].some((r) => r.id === 'ann')).toBe(false);
});

const row = (id: string, blocks: number | null): Row => ({id, name: id, blocks, dx: 0, dy: 0, dz: 0, status: 'row.quiet', speaking: false, inGroup: false});
const ids = (rows: Row[]): string => rows.map((r) => r.id).join('');

describe('the order is calm', () => {
  test('nearest first; sorted again each two seconds at most, and only by three blocks', () => {
    const o = new Order();
    expect(ids(o.sort([row('b', 9), row('a', 3)], 'near', false, 0))).toBe('ab');
    expect(ids(o.sort([row('b', 2), row('a', 3)], 'near', false, 5000))).toBe('ab'); // one block is nothing
    expect(ids(o.sort([row('b', 1), row('a', 9)], 'near', false, 5000))).toBe('ba');
    expect(ids(o.sort([row('b', 20), row('a', 9)], 'near', false, 6000))).toBe('ba'); // too soon
    expect(ids(o.sort([row('b', 20), row('a', 9)], 'near', false, 7000))).toBe('ab');
  });

  test('never under a pointer or the focus', () => {
    const o = new Order();
    o.sort([row('a', 3), row('b', 9)], 'near', false, 0);
    expect(ids(o.sort([row('a', 30), row('b', 9), row('c', 1)], 'near', true, 60_000))).toBe('abc');
    expect(ids(o.sort([row('a', 30), row('b', 9), row('c', 1)], 'near', false, 60_000))).toBe('cba');
  });

  test('who comes has their place, who goes leaves no hole', () => {
    const o = new Order();
    o.sort([row('a', 3), row('c', 9)], 'near', false, 0);
    expect(ids(o.sort([row('a', 3), row('b', 6), row('c', 9)], 'near', false, 100))).toBe('abc');
    expect(ids(o.sort([row('b', 6), row('c', 9)], 'near', false, 200))).toBe('bc');
  });

  test('by name at once when asked', () => {
    const o = new Order();
    o.sort([row('b', 3), row('a', 9)], 'near', false, 0);
    expect(ids(o.sort([row('b', 3), row('a', 9)], 'name', true, 10))).toBe('ab');
  });
});

describe('directions', () => {
  test.each([
    [0, 10, 0, 0, 'dir.ahead'], [-10, 0, 0, 90, 'dir.right'], [10, 0, 0, 270, 'dir.left'], [0, -10, 0, 180, 'dir.behind'], // looking south
    [10, 0, -90, 0, 'dir.ahead'], [0, 10, -90, 90, 'dir.right'], [0, -10, 180, 0, 'dir.ahead'], [10, -10, 180, 45, 'dir.aheadRight'], [-10, 0, 90, 0, 'dir.ahead'],
  ])('%d,%d looking %d', (dx, dz, yaw, turn, word) => {
    expect(turnOf(dx, dz, yaw)).toBeCloseTo(turn, 5);
    expect(directionOf({dx, dy: 0, dz}, yaw)).toBe(word);
  });

  test('above and below past four blocks', () => {
    expect(directionOf({dx: 0, dy: 5, dz: 2}, 0)).toBe('dir.above');
    expect(directionOf({dx: 0, dy: -9, dz: 2}, 0)).toBe('dir.below');
    expect(directionOf({dx: 0, dy: 4, dz: 2}, 0)).toBe('dir.ahead');
    expect(directionOf({dx: 0, dy: 5, dz: 20}, 0)).toBe('dir.ahead');
    expect(directionOf({dx: 0, dy: 0, dz: 0}, 0)).toBe('dir.here');
  });
});

describe('who hears you', () => {
  const h = {near, roster, range: 48, tier: 'normal' as const, group: none, groupType: null, me: 'me'};
  test('near enough, without the deafened', () => expect(hearersOf(h)).toBe(1));
  test('a shout carries farther, a whisper less', () => {
    expect(hearersOf({...h, tier: 'shout'})).toBe(2);
    expect(hearersOf({...h, tier: 'whisper', near: {...near, people: [{id: 'ann', dx: 25, dy: 0, dz: 0}]}})).toBe(0);
  });
  test('in a group that keeps its talk inside, the members', () => {
    expect(hearersOf({...h, group: new Set(['me', 'di']), groupType: 'NORMAL'})).toBe(1);
    expect(hearersOf({...h, group: new Set(['me', 'di']), groupType: 'OPEN'})).toBe(2);
  });
  test('not known where the server does not say', () => expect(hearersOf({...h, near: null})).toBeNull());
});
