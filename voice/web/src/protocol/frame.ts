import {uuidFrom, uuidInto, zeroUUID} from './text.ts';

// Binary frames of the voice socket, big-endian. Only what would be written again to the same bytes is read.

export const maxOpus = 1275;

/** C2SFormat is what one socket sends: opus alone, with stream and sequence, or with a kind before them. */
export type C2SFormat = 'v1' | 'v2' | 'board';

/** S2CFormat is what one socket receives. */
export type S2CFormat = 'v1' | 'v2' | 'spatial';

export const c2sHead: Record<C2SFormat, number> = {v1: 0, v2: 16, board: 17};

const headV1 = 25;
const headV2 = 41;

/** Discard says why a frame is thrown away. */
export type Discard = 'length' | 'kind' | 'stream' | 'sequence' | 'position';

/** C2S is one frame from a client; stream and seq are 0 in v1. */
export interface C2S {
  source: 'mic' | 'board';
  stream: bigint;
  seq: bigint;
  opus: Uint8Array;
}

/** S2C is one frame to a client. With stream and seq 0 the speaker does not count its frames. */
export interface S2C {
  kind: 'player' | 'channel' | 'board';
  source: string; // the speaker's UUID; of a channel the channel's
  origin: string; // of a channel: whose microphone, or zero
  gain: number; // 0 to 255 for 0 to 1
  dx: number; // source minus listener, in blocks
  dz: number;
  stream: bigint;
  seq: bigint;
  opus: Uint8Array; // a view of the parsed bytes
}

const view = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.byteLength);

const last = 2n ** 63n - 1n;

function badCount(stream: bigint, seq: bigint): Discard | null {
  if (stream <= 0n) return 'stream';
  return seq < 0n || seq === last ? 'sequence' : null;
}

export function parseC2S(format: C2SFormat, b: Uint8Array): C2S | Discard {
  const head = c2sHead[format];
  if (b.length <= head || b.length > head + maxOpus) return 'length';
  const opus = b.subarray(head);
  if (format === 'v1') return {source: 'mic', stream: 0n, seq: 0n, opus};
  if (format === 'board' && b[0]! > 1) return 'kind';
  const v = view(b), at = head - 16;
  const stream = v.getBigInt64(at), seq = v.getBigInt64(at + 8);
  return badCount(stream, seq) ?? {source: format === 'board' && b[0] === 1 ? 'board' : 'mic', stream, seq, opus};
}

/** encodeC2S writes one frame, as a client does. It does not check it. */
export function encodeC2S(format: C2SFormat, f: C2S): Uint8Array<ArrayBuffer> {
  const head = c2sHead[format];
  const b = new Uint8Array(head + f.opus.length);
  if (format !== 'v1') {
    if (format === 'board') b[0] = f.source === 'board' ? 1 : 0;
    const v = view(b);
    v.setBigInt64(head - 16, f.stream);
    v.setBigInt64(head - 8, f.seq);
  }
  b.set(f.opus, head);
  return b;
}

const kinds = ['player', 'channel', 'board'] as const;

export function parseS2C(format: S2CFormat, b: Uint8Array): S2C | Discard {
  let head = format === 'v1' ? headV1 : headV2, at = 0;
  let kind: S2C['kind'] = 'player';
  if (format === 'spatial') {
    if (b.length === 0) return 'length';
    const known = kinds[b[0]!];
    if (!known) return 'kind';
    kind = known;
    head += kind === 'channel' ? 17 : 1;
    at = 1;
  }
  if (b.length <= head || b.length > head + maxOpus) return 'length';
  const source = uuidFrom(b, at);
  at += 16;
  let origin = zeroUUID;
  if (kind === 'channel') {
    origin = uuidFrom(b, at);
    at += 16;
  }
  const v = view(b);
  const dx = v.getFloat32(at + 1), dz = v.getFloat32(at + 5);
  let stream = 0n, seq = 0n;
  if (format !== 'v1') {
    stream = v.getBigInt64(at + 9);
    seq = v.getBigInt64(at + 17);
    // 0/0 is a speaker without sequence numbers; a channel always has them.
    if (kind === 'channel' || stream !== 0n || seq !== 0n) {
      const bad = badCount(stream, seq);
      if (bad) return bad;
    }
  }
  if (!Number.isFinite(dx) || !Number.isFinite(dz)) return 'position';
  return {kind, source, origin, gain: b[at]!, dx, dz, stream, seq, opus: b.subarray(head)};
}

/** encodeS2C writes one frame, as a server does; null where the format cannot carry its kind. */
export function encodeS2C(format: S2CFormat, f: S2C): Uint8Array<ArrayBuffer> | null {
  if (format !== 'spatial' && f.kind !== 'player') return null;
  const head = (format === 'v1' ? headV1 : headV2) + (format === 'spatial' ? 1 : 0) + (f.kind === 'channel' ? 16 : 0);
  const b = new Uint8Array(head + f.opus.length);
  let at = 0;
  if (format === 'spatial') b[at++] = kinds.indexOf(f.kind);
  uuidInto(f.source, b, at);
  at += 16;
  if (f.kind === 'channel') {
    uuidInto(f.origin, b, at);
    at += 16;
  }
  const v = view(b);
  b[at] = f.gain;
  v.setFloat32(at + 1, f.dx);
  v.setFloat32(at + 5, f.dz);
  if (format !== 'v1') {
    v.setBigInt64(at + 9, f.stream);
    v.setBigInt64(at + 17, f.seq);
  }
  b.set(f.opus, head);
  return b;
}

const twentyMs = new Set([0x08, 0x28, 0x48, 0x68, 0x78, 0x98, 0xb8, 0xd8, 0xf8]);

/** opusOK tells by the first byte whether the packet is one frame of 20 ms and one channel. */
export const opusOK = (opus: Uint8Array): boolean => opus.length > 0 && opus.length <= maxOpus && twentyMs.has(opus[0]!);

/** newStream is a random positive stream number of 63 bits; random gives 64 random bits. */
export function newStream(random: () => bigint): bigint {
  return (random() & last) || 1n;
}
