import {expect, test} from 'vitest';
import {Jitter, leastFrames, mostFrames} from './jitter.ts';
import {frameMs} from './level.ts';

// Frames leave every 20 ms and arrive as late as the network says; the player pulls one every 20 ms of its own.
function run(seconds: number, late: (n: number) => number, j = new Jitter<number>(), from = 0) {
  let arrived = 0, played = 0, gaps = 0, newest = 0;
  const depths: number[] = [];
  for (let n = 0; n < (seconds * 1000) / frameMs; n++) {
    const t = from + n * frameMs;
    for (; arrived * frameMs + late(arrived) <= n * frameMs; arrived++) j.push(arrived, arrived === 0 && from === 0, t);
    const next = j.pull(t);
    if (next) {
      played++;
      newest = next.item;
    } else if (played) gaps++;
    depths.push(n - newest);
  }
  return {j, played, gaps, delay: (depths.at(-1)! * frameMs)};
}

test('a steady network waits for two frames and no more', () => {
  const r = run(30, () => 0);
  expect(r.gaps).toBe(0);
  expect(r.j.target).toBe(leastFrames);
  expect(r.delay).toBeLessThanOrEqual(40);
});

test('it grows with a network that is uneven, until nothing runs dry', () => {
  const uneven = (n: number): number => (n % 10 === 9 ? 90 : 0);
  const first = run(5, uneven);
  expect(first.j.underruns).toBeGreaterThan(0);
  expect(first.j.target).toBeGreaterThan(leastFrames);
  const before = first.j.underruns;
  run(5, uneven, first.j, 5000);
  expect(first.j.underruns - before).toBeLessThanOrEqual(1);
  expect(first.j.target).toBeLessThanOrEqual(mostFrames);
});

test('one hiccup is forgotten: it shrinks back', () => {
  const r = run(60, (n) => (n >= 50 && n < 60 ? 200 - (n - 50) * 20 : 0));
  expect(r.j.underruns).toBeGreaterThan(0);
  expect(r.j.target).toBe(leastFrames);
  expect(r.delay).toBeLessThanOrEqual(40);
});

test('what arrives in one heap is not played half a second late', () => {
  const j = new Jitter<number>();
  for (let n = 0; n < 700; n++) j.push(n, false, 0); // as after a sleep
  expect(j.depth).toBeLessThanOrEqual(25);
  expect(j.pull(0)!.item).toBeGreaterThan(670);
});

test('a short word that never fills the queue is played all the same', () => {
  const j = new Jitter<string>();
  j.push('hm', true, 0);
  expect(j.pull(0)).toBeNull();
  expect(j.pull(20)).toBeNull();
  expect(j.pull(40)!.item).toBe('hm');
});

test('a pause is no lateness', () => {
  const j = new Jitter<number>();
  for (let word = 0; word < 20; word++) {
    const t = word * 2000;
    for (let n = 0; n < 10; n++) j.push(n, n === 0, t + n * 20);
    for (let n = 0; n < 40; n++) j.pull(t + 200 + n * 20);
  }
  expect(j.underruns).toBe(0);
  expect(j.target).toBe(leastFrames);
});

test('what is left out is handed over, to be faded', () => {
  const j = new Jitter<number>();
  for (let n = 0; n < 12; n++) j.push(n, n === 0, 0);
  let skipped = 0;
  for (let n = 0; n < 500; n++) {
    const next = j.pull(n * 20);
    if (next?.skipped != null) {
      expect(next.item).toBe(next.skipped + 1);
      skipped++;
    }
    j.push(12 + n, false, n * 20);
  }
  expect(skipped).toBe(j.dropped);
  expect(j.depth).toBeLessThanOrEqual(leastFrames + 1);
});
