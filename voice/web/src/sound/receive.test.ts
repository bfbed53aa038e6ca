import {expect, test} from 'vitest';
import type {S2C} from '../protocol/frame.ts';
import {idleAfter, mostSources, Receiver} from './receive.ts';

const frame = (n: number, seq: number, more: Partial<S2C> = {}): S2C => ({
  kind: 'player', source: `00000000-0000-0000-0000-0000000000${(n + 16).toString(16)}`, origin: '', gain: 255, dx: 0, dz: 0, stream: 5n, seq: BigInt(seq),
  opus: new Uint8Array([0xf8]), ...more,
});

function receiver() {
  const r = new Receiver(), gone: string[] = [];
  return {r, gone, take: (f: S2C, now = 0, gain = 1) => r.frame(f, gain, now, (k) => gone.push(k))};
}

test('only a later frame of the same stream proves a gap, and up to three are concealed', () => {
  const {r, take} = receiver();
  expect(take(frame(1, 0))).toMatchObject({missing: 0, begins: true, fresh: true});
  expect(take(frame(1, 1))).toMatchObject({missing: 0, begins: false, fresh: false});
  expect(take(frame(1, 5))).toMatchObject({missing: 3, begins: false, fresh: false});
  expect(take(frame(1, 10))).toMatchObject({missing: 0, begins: true, fresh: true});
  expect(r.gaps).toBe(7);
  expect(take(frame(1, 0, {stream: 6n}))).toMatchObject({missing: 0, begins: true, fresh: true}); // a new stretch
  expect(r.gaps).toBe(7);
});

test('what was heard is not heard again', () => {
  const {r, take} = receiver();
  take(frame(1, 5));
  expect(take(frame(1, 5))).toBeNull();
  expect(take(frame(1, 4))).toBeNull();
  expect(r.stale).toBe(2);
});

test('a speaker who does not count has no gaps', () => {
  const {r, take} = receiver();
  for (let i = 0; i < 5; i++) expect(take(frame(1, 0, {stream: 0n}), i * 20)).toMatchObject({missing: 0, fresh: i === 0});
  expect(take(frame(1, 0, {stream: 0n}), 5000)).toMatchObject({begins: true});
  expect(r.gaps).toBe(0);
});

test('microphone, channel and clips of one player are separate, and two clips at once too', () => {
  const {take} = receiver();
  const keys = [frame(1, 0), frame(1, 0, {kind: 'channel', stream: 7n}), frame(1, 0, {kind: 'board', stream: 1n}), frame(1, 0, {kind: 'board', stream: 2n})].map((f) => take(f)!.key);
  expect(new Set(keys).size).toBe(4);
});

test('of forty the loudest sixteen are decoded, the rest counted', () => {
  const {r, gone, take} = receiver();
  for (let seq = 0; seq < 20; seq++) for (let n = 0; n < 40; n++) take(frame(n, seq), seq * 20, (n + 1) / 40);
  expect(r.size).toBe(mostSources);
  expect(r.crowded).toBeGreaterThan(0);
  expect(gone.length).toBeGreaterThan(0);
  expect(take(frame(39, 20), 400)).not.toBeNull(); // the nearest is among them
  expect(take(frame(0, 20), 400, 1 / 40)).toBeNull();
});

test('decoders go ten seconds after the last frame', () => {
  const {r, gone, take} = receiver();
  take(frame(1, 0), 0);
  r.expire(idleAfter - 1, (k) => gone.push(k));
  expect(gone).toEqual([]);
  r.expire(idleAfter, (k) => gone.push(k));
  expect(gone.length).toBe(1);
  expect(r.size).toBe(0);
});

test('whatever sequences come, the count of gaps stays a number', () => {
  const {r, take} = receiver();
  take(frame(1, 0));
  take(frame(1, 0, {seq: 2n ** 63n - 2n}));
  expect(r.gaps).toBe(Number.MAX_SAFE_INTEGER);
});
