import {expect, test} from 'vitest';
import {levelled, longestClip, samples, type Clip} from './clips.ts';
import {frameSize, rate, rms} from './level.ts';
import {Resampler} from './resample.ts';

function resampled(from: number, seconds: number, hertz: number): Float32Array[] {
  const out: Float32Array[] = [];
  const r = new Resampler(from, (f) => out.push(f));
  for (let at = 0; at < from * seconds; at += 128) r.push(Float32Array.from({length: 128}, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * (at + i)) / from)));
  return out;
}

// crossings counts how often a wave goes up through zero: its pitch.
const pitch = (frames: Float32Array[]): number => {
  const all = frames.flatMap((f) => [...f]);
  let n = 0;
  for (let i = 1; i < all.length; i++) if (all[i - 1]! < 0 && all[i]! >= 0) n++;
  return (n * rate) / all.length;
};

test.each([8000, 16000, 44100, 48000, 96000])('a microphone at %d Hz keeps its pitch, length and loudness', (from) => {
  const out = resampled(from, 2, 440);
  expect(Math.abs(out.length - 100)).toBeLessThanOrEqual(1);
  expect(pitch(out)).toBeCloseTo(440, -1);
  expect(rms(out[50]!)).toBeCloseTo(0.5 * Math.SQRT1_2, 1);
  for (const f of out) expect(f.length).toBe(frameSize);
});

test('at 48 kHz samples are the same samples', () => {
  const out: Float32Array[] = [];
  const r = new Resampler(rate, (f) => out.push(f));
  const input = Float32Array.from({length: 2000}, (_, i) => i);
  r.push(input);
  expect([...out[0]!.slice(1, 5)]).toEqual([0, 1, 2, 3]);
});

const clip = (pcm: Int16Array<ArrayBuffer>, more: Partial<Clip> = {}): Clip => ({id: 'c', name: 'c', pcm, from: 0, to: 1000, gain: 1, ...more});

test('a clip is cut to its trim, at its level, without clicks, and never longer than allowed', () => {
  const pcm = new Int16Array(rate * 60).fill(16384);
  const cut = samples(clip(pcm, {from: 1, to: 3, gain: 0.5}));
  expect(cut.length).toBe(2 * rate);
  expect(cut[rate]).toBeCloseTo(0.25, 3);
  expect(cut[0]).toBe(0);
  expect(Math.abs(cut.at(-1)!)).toBe(0);
  expect(samples(clip(pcm)).length).toBe(longestClip * rate);
  expect(samples(clip(pcm, {from: 5, to: 2})).length).toBe(0);
  expect(Math.max(...samples(clip(pcm.slice(0, 4800), {gain: 9})))).toBeLessThanOrEqual(1);
});

test('quiet files are lifted, loud ones brought down, and none clips', () => {
  const wave = (a: number): Int16Array => Int16Array.from({length: 48000}, (_, i) => a * 32767 * Math.sin(i * 0.1));
  expect(levelled(wave(0.02))).toBeGreaterThan(4);
  expect(levelled(wave(0.9))).toBeLessThan(0.3);
  expect(levelled(new Int16Array(1000))).toBe(1);
  const peaky = new Int16Array(48000);
  peaky[100] = 32767;
  expect(levelled(peaky)).toBeLessThanOrEqual(1);
});
