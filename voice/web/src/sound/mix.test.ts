import {describe, expect, test} from 'vitest';
import {frameSize, rate, rms} from './level.ts';
import {Limiter, mostConcealed, panOf, placeOf, Talker, Yaw} from './mix.ts';

describe('where a sound stands', () => {
  // The game's yaw: 0 south (+z), 90 west (-x), 180 north (-z), -90 east (+x).
  test.each([
    ['looking south, it is west', -10, 0, 0, 1, 0],
    ['looking south, it is east', 10, 0, 0, -1, 0],
    ['looking south, it is south', 0, 10, 0, 0, 1],
    ['looking north, it is east', 10, 0, 180, 1, 0],
    ['looking north, it is south', 0, 10, -180, 0, -1],
    ['looking east, it is south', 0, 10, -90, 1, 0],
    ['looking east, it is east', 10, 0, 270, 0, 1],
    ['looking west, it is north', 0, -10, 90, 1, 0],
  ])('%s', (_, dx, dz, yaw, side, ahead) => {
    const p = placeOf(dx, dz, yaw);
    expect(p.side).toBeCloseTo(side, 5);
    expect(p.ahead).toBeCloseTo(ahead, 5);
  });

  test('inside you, and in a group, it is in the middle', () => {
    expect(placeOf(0, 0, 123)).toEqual({side: 0, ahead: 0});
    expect(Math.abs(placeOf(0.1, 0, 0).side)).toBeLessThan(0.1);
  });

  test('both ears together are as loud on every side', () => {
    for (let side = -1; side <= 1; side += 0.1) {
      const [l, r] = panOf(side);
      expect(l * l + r * r).toBeCloseTo(1, 6);
    }
    expect(panOf(0)[0]).toBeCloseTo(panOf(0)[1], 9);
    expect(panOf(1)[1] / panOf(1)[0]).toBeGreaterThan(10);
    expect(panOf(-1)[0] / panOf(-1)[1]).toBeGreaterThan(10);
  });
});

const tone = (n: number, amplitude = 0.5): Float32Array =>
  Float32Array.from({length: frameSize}, (_, i) => amplitude * Math.sin((2 * Math.PI * 440 * (n * frameSize + i)) / rate));

// play renders so many quanta of a talker whose frames come in time.
function play(frames: (number | 'gap')[], options: {dx?: number; gain?: number; surround?: boolean; extra?: number} = {}) {
  const t = new Talker(), quanta = Math.ceil(((frames.length + (options.extra ?? 6)) * frameSize) / 128);
  const left = new Float32Array(quanta * 128), right = new Float32Array(quanta * 128);
  let fed = 0, missing = 0;
  for (let q = 0; q < quanta; q++) {
    const now = (q * 128 * 1000) / rate;
    while (fed < frames.length && fed * 20 <= now) {
      const f = frames[fed++]!;
      if (f === 'gap') missing++;
      else {
        t.push({pcm: tone(f), gain: options.gain ?? 1, dx: options.dx ?? 0, dz: 0}, missing, fed === 1, now);
        missing = 0;
      }
    }
    t.add(left.subarray(q * 128, q * 128 + 128), right.subarray(q * 128, q * 128 + 128), 128, 0, options.surround ?? false, now);
  }
  return {t, left, right};
}

const steps = (b: Float32Array): number => b.reduce((most, v, i) => (i ? Math.max(most, Math.abs(v - b[i - 1]!)) : 0), 0);
const own = steps(Float32Array.from({length: 4800}, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / rate)));

describe('a talker', () => {
  const sequence = Array.from({length: 50}, (_, i) => i);

  test('is as loud as the wire says, in both ears', () => {
    const {left, right} = play(sequence, {gain: 0.5});
    expect(rms(left, 9600, 38400)).toBeCloseTo(0.5 * 0.5 * Math.SQRT1_2 * Math.SQRT1_2, 2);
    expect(rms(right, 9600, 38400)).toBeCloseTo(rms(left, 9600, 38400), 5);
  });

  test('is on its side', () => {
    const {left, right} = play(sequence, {dx: 10}); // looking south, +x is left
    expect(rms(left, 9600, 38400)).toBeGreaterThan(5 * rms(right, 9600, 38400));
  });

  test('with surround the far ear is later and duller', () => {
    const {left, right} = play(sequence, {dx: 10, surround: true});
    expect(rms(left, 9600, 38400)).toBeGreaterThan(1.3 * rms(right, 9600, 38400));
    let best = 0, most = -Infinity;
    for (let lag = 0; lag < 60; lag++) {
      let sum = 0;
      for (let i = 12000; i < 16000; i++) sum += left[i]! * right[i + lag]!;
      if (sum > most) [best, most] = [lag, sum];
    }
    expect(best).toBeGreaterThan(20);
  });

  test('begins, ends and goes on without a click', () => {
    const {left, t} = play(sequence);
    expect(steps(left)).toBeLessThan(own * 1.5);
    expect(t.concealed).toBe(0);
    expect(left.at(-1)).toBe(0);
  });

  test('conceals up to three missing frames, each quieter, and does not click', () => {
    const t = new Talker(), left = new Float32Array(128 * 180);
    for (let n = 0; n < 20; n++) if (n < 8 || n > 10) t.push({pcm: tone(n), gain: 1, dx: 0, dz: 0}, n === 11 ? 3 : 0, n === 0, 0);
    for (let q = 0; q < 180; q++) t.add(left.subarray(q * 128, q * 128 + 128), new Float32Array(128), 128, 0, false, (q * 128 * 1000) / rate);
    expect(t.concealed).toBe(mostConcealed);
    expect(steps(left)).toBeLessThan(own * 2);
    const loud = [7, 8, 9, 10, 11].map((n) => rms(left, n * frameSize, (n + 1) * frameSize));
    expect(loud[1]).toBeGreaterThan(loud[2]!);
    expect(loud[2]).toBeGreaterThan(loud[3]!);
    expect(loud[4]).toBeCloseTo(loud[0]!, 1);
  });

  test('makes nothing up for what was missing before a silence', () => {
    const t = new Talker(), b = new Float32Array(128);
    t.push({pcm: tone(0), gain: 1, dx: 0, dz: 0}, 3, true, 0);
    for (let q = 0; q < 100; q++) t.add(b, b, 128, 0, false, (q * 128 * 1000) / rate);
    expect(t.concealed).toBe(0);
  });

  test('is heard as speaking only by frames that were decoded', () => {
    const t = new Talker();
    expect(t.lastPlayed).toBe(-Infinity);
    const {t: played} = play([0, 1, 2]);
    expect(played.lastPlayed).toBeGreaterThan(0);
    expect(played.level).toBeCloseTo(0.5 * Math.SQRT1_2, 1);
  });
});

test('the limiter bounds forty shouting at once, and lets one through as it is', () => {
  const l = new Limiter();
  for (let q = 0; q < 400; q++) {
    const b = Float32Array.from({length: 128}, (_, i) => 20 * Math.sin((q * 128 + i) * 0.3)), c = b.slice();
    l.apply(b, c, 128);
    for (const v of b) expect(Math.abs(v)).toBeLessThanOrEqual(Limiter.ceiling + 1e-6);
  }
  const calm = new Limiter(), one = tone(0).slice(0, 128), before = one.slice();
  calm.apply(one, one.slice(), 128);
  expect(one).toEqual(before);
  for (let q = 0; q < 400; q++) l.apply(new Float32Array(128), new Float32Array(128), 128);
  expect(l.gain).toBe(1); // and recovers
});

test('the limiter holds when a bang follows silence', () => {
  const l = new Limiter();
  const b = new Float32Array(128).fill(5);
  l.apply(b, b.slice(), 128);
  for (const v of b) expect(v).toBeLessThanOrEqual(Limiter.ceiling + 1e-6);
});

test('yaw turns the short way round', () => {
  const y = new Yaw();
  y.set(170);
  expect(y.advance(0.01)).toBe(170);
  y.set(-170);
  for (let i = 0; i < 10; i++) expect(y.advance(0.01)).toBeGreaterThan(170);
  for (let i = 0; i < 100; i++) y.advance(0.01);
  expect(y.now).toBeCloseTo(190, 1);
});
