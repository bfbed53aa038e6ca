import {describe, expect, test} from 'vitest';
import {Gate, hangover, History, preRoll, Silence, SlowGain, type Talk} from './gate.ts';
import {decibels, frameMs, frameSize, meter, rms} from './level.ts';

const voice: Talk = {mode: 'voice', open: true, held: false, threshold: -40};
const hold: Talk = {...voice, mode: 'hold'};

describe('voice activity', () => {
  test('opens over the threshold and closes 400 ms after the last loud frame', () => {
    const g = new Gate();
    expect(g.frame(-41, voice)).toBe('silent');
    expect(g.frame(-40, voice)).toBe('begin');
    expect(g.frame(-30, voice)).toBe('on');
    const after = Array.from({length: 25}, () => g.frame(-60, voice));
    expect(after.filter((v) => v === 'on').length).toBe(hangover / frameMs - 1);
    expect(after.at(-1)).toBe('silent');
    expect(g.frame(-20, voice)).toBe('begin'); // a new stretch
  });

  test('a voice that trails off a little stays', () => {
    const g = new Gate();
    g.frame(-30, voice);
    for (let i = 0; i < 100; i++) expect(g.frame(-45, voice)).toBe('on');
  });

  test('closing is at once, however loud', () => {
    const g = new Gate();
    g.frame(-10, voice);
    expect(g.frame(-10, {...voice, open: false})).toBe('silent');
    expect(g.frame(-10, voice)).toBe('begin');
  });
});

describe('push to talk', () => {
  test('sends while held, silence too, and nothing after', () => {
    const g = new Gate();
    expect(g.frame(-10, hold)).toBe('silent');
    expect(g.frame(-120, {...hold, held: true})).toBe('begin');
    expect(g.frame(-120, {...hold, held: true})).toBe('on');
    expect(g.frame(-10, hold)).toBe('silent');
  });

  test('a mute wins over the key', () => {
    expect(new Gate().frame(-10, {...hold, held: true, open: false})).toBe('silent');
  });
});

test('the frames before a word are kept, and only those', () => {
  const h = new History(), f = (v: number): Float32Array => new Float32Array([v]);
  for (let i = 0; i < 5; i++) h.keep(f(i));
  expect(h.take().map((x) => x[0])).toEqual([3, 4]);
  expect(preRoll).toBe(2);
  expect(h.take()).toEqual([]);
});

describe('an open microphone that gives nothing', () => {
  test('is opened again once after a second, told of after three, and taken back by one sample', () => {
    const s = new Silence();
    const told: [number, string][] = [];
    for (let t = 0; t <= 10_000; t += frameMs) {
      const what = s.frame(-120, t);
      if (what) told.push([t, what]);
    }
    expect(told).toEqual([[1000, 'reopen'], [3000, 'silent']]);
    expect(s.frame(-90, 10_020)).toBe('sound');
    expect(s.frame(-90, 10_040)).toBeNull();
    expect(s.frame(-120, 10_060)).toBeNull();
    expect(s.frame(-120, 11_100)).toBe('reopen');
  });

  test('no frames at all is silence too', () => {
    const s = new Silence();
    expect(s.frame(null, 0)).toBeNull();
    expect(s.frame(null, 1000)).toBe('reopen');
  });

  test('a closed microphone is not judged', () => {
    const s = new Silence();
    s.frame(-120, 0);
    s.pause();
    expect(s.frame(-120, 1500)).toBeNull();
  });

  test('the quietest real room is no silence', () => {
    const s = new Silence();
    for (let t = 0; t < 60_000; t += frameMs) expect(s.frame(-99, t)).toBeNull();
  });
});

test('the own gain brings quiet and loud speech together, slowly, and never clips', () => {
  const after = (amplitude: number): number => {
    const g = new SlowGain();
    let last = 0;
    for (let i = 0; i < 1500; i++) {
      const f = Float32Array.from({length: frameSize}, (_, k) => amplitude * Math.sin(k * 0.2));
      g.apply(f, decibels(rms(f)), true);
      last = rms(f);
      expect(Math.max(...f)).toBeLessThanOrEqual(1);
    }
    return decibels(last);
  };
  expect(Math.abs(after(0.04) - after(0.16))).toBeLessThan(2);
  const g = new SlowGain();
  const before = g.gain;
  g.apply(new Float32Array(frameSize), -120, true);
  expect(g.gain).toBe(before); // silence teaches nothing
});

test('levels', () => {
  expect(decibels(1)).toBe(0);
  expect(decibels(0)).toBe(-120);
  expect(decibels(rms(Float32Array.from({length: 960}, (_, i) => Math.sin((i * Math.PI) / 24))))).toBeCloseTo(-3.01, 1);
  expect([meter(-120), meter(-60), meter(0)]).toEqual([0, 0, 1]);
});
