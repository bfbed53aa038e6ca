import {describe, expect, test} from 'vitest';
import {encodeC2S, encodeS2C, maxOpus, newStream, opusOK, parseC2S, parseS2C, type C2SFormat, type S2CFormat} from './frame.ts';
import {frameVectors, goFloat, vectorFiles} from './vectors.ts';

test('every vector file is read', () => {
  expect(vectorFiles('voice/wire/testdata/')).toEqual(['c2s.txt', 's2c.txt']);
});

const lastByte = (id: string): number => parseInt(id.slice(-2), 16);

describe('frames from the client are those of the server codec', () => {
  test.each(frameVectors('voice/wire/testdata/c2s.txt'))('$name', (v) => {
    const f = parseC2S(v.format as C2SFormat, v.bytes);
    if (typeof f === 'string') {
      expect(`discard ${f}`).toBe(v.outcome);
      return;
    }
    expect('ok').toBe(v.outcome);
    expect(`${f.source} ${f.stream} ${f.seq} ${f.opus.length}`).toBe(v.want);
    expect(encodeC2S(v.format as C2SFormat, f)).toEqual(v.bytes);
  });
});

describe('frames to the client are those of the server codec', () => {
  test.each(frameVectors('voice/wire/testdata/s2c.txt'))('$name', (v) => {
    const f = parseS2C(v.format as S2CFormat, v.bytes);
    if (typeof f === 'string') {
      expect(`discard ${f}`).toBe(v.outcome);
      return;
    }
    expect('ok').toBe(v.outcome);
    const place = `${goFloat(f.dx, true)} ${goFloat(f.dz, true)}`;
    expect(`${f.kind} ${lastByte(f.source)} ${lastByte(f.origin)} ${f.gain} ${place} ${f.stream} ${f.seq} ${f.opus.length}`).toBe(v.want);
    expect(encodeS2C(v.format as S2CFormat, f)).toEqual(v.bytes);
  });
});

test('a frame inside a larger buffer is read at its own place', () => {
  const whole = new Uint8Array([9, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0xf8, 9]);
  expect(parseC2S('v2', whole.subarray(2, 19))).toMatchObject({stream: 7n, seq: 1n, opus: new Uint8Array([0xf8])});
});

test('only spatial sockets carry other kinds', () => {
  const f = {source: '00000000-0000-0000-0000-000000000001', origin: '', gain: 1, dx: 0, dz: 0, stream: 1n, seq: 0n, opus: new Uint8Array([0xf8])};
  for (const kind of ['channel', 'board'] as const) for (const format of ['v1', 'v2'] as const) expect(encodeS2C(format, {...f, kind})).toBeNull();
});

test('nine first bytes of Opus pass', () => {
  const good = Array.from({length: 256}, (_, i) => i).filter((i) => opusOK(new Uint8Array([i, 1])));
  expect(good).toEqual([0x08, 0x28, 0x48, 0x68, 0x78, 0x98, 0xb8, 0xd8, 0xf8]);
  expect(opusOK(new Uint8Array(0))).toBe(false);
  expect(opusOK(new Uint8Array(maxOpus + 1).fill(0xf8))).toBe(false);
});

test('streams are positive whatever the random bits', () => {
  expect(newStream(() => 0n)).toBe(1n);
  expect(newStream(() => 2n ** 64n - 1n)).toBe(2n ** 63n - 1n);
  expect(newStream(() => 2n ** 63n)).toBe(1n);
});
