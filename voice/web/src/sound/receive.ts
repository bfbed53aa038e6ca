import type {S2C} from '../protocol/frame.ts';
import {mostConcealed} from './mix.ts';

// Which received frames are decoded, in what order, and what is proven to be missing before them.

export const mostSources = 16; // decoded at once; of more the quietest go
export const idleAfter = 10_000;
const activeWithin = 500;

/** Verdict on one frame: what decoder it goes to, and whether that one must forget what it has heard. */
export interface Verdict {
  key: string;
  missing: number; // frames to conceal before it
  begins: boolean; // nothing before it was late
  fresh: boolean; // the decoder starts again
}

interface Source {
  stream: bigint;
  last: bigint;
  heard: number;
  gain: number;
}

export class Receiver {
  gaps = 0;
  stale = 0;
  crowded = 0;
  private readonly sources = new Map<string, Source>();

  get size(): number {
    return this.sources.size;
  }

  /** frame takes one; null is one that is not played. evict is told of sources that make room. */
  frame(f: S2C, gain: number, now: number, evict: (key: string) => void): Verdict | null {
    // A channel's decoder is never its origin's; a player's clips are several streams at once.
    const key = `${f.kind} ${f.source}${f.kind === 'board' ? ` ${f.stream}` : ''}`;
    let s = this.sources.get(key);
    if (!s) {
      if (!this.room(gain, now, evict)) {
        this.crowded++;
        return null;
      }
      s = {stream: f.stream, last: f.seq, heard: now, gain};
      this.sources.set(key, s);
      return {key, missing: 0, begins: true, fresh: true};
    }
    const v: Verdict = {key, missing: 0, begins: false, fresh: false};
    if (f.stream !== s.stream) v.begins = v.fresh = true;
    else if (f.stream === 0n) v.begins = now - s.heard > activeWithin; // a speaker who does not count: nothing to infer
    else if (f.seq <= s.last) {
      this.stale++;
      return null;
    } else if (f.seq > s.last + 1n) {
      const missing = Number(f.seq - s.last - 1n);
      this.gaps = Math.min(Number.MAX_SAFE_INTEGER, this.gaps + missing);
      if (missing > mostConcealed) v.begins = v.fresh = true;
      else v.missing = missing;
    }
    s.stream = f.stream;
    s.last = f.seq;
    s.heard = now;
    s.gain = gain;
    return v;
  }

  /** room makes place for one more source of that gain, at the cost of one that is quieter or no longer heard. */
  private room(gain: number, now: number, evict: (key: string) => void): boolean {
    if (this.sources.size < mostSources) return true;
    let worst: string | null = null, least = Infinity;
    for (const [key, s] of this.sources) {
      const worth = now - s.heard > activeWithin ? -1 : s.gain;
      if (worth < least) [worst, least] = [key, worth];
    }
    if (worst === null || (least >= 0 && least >= gain - 0.05)) return false;
    this.sources.delete(worst);
    evict(worst);
    return true;
  }

  expire(now: number, evict: (key: string) => void): void {
    for (const [key, s] of this.sources) {
      if (now - s.heard < idleAfter) continue;
      this.sources.delete(key);
      evict(key);
    }
  }

  clear(evict: (key: string) => void): void {
    for (const key of this.sources.keys()) evict(key);
    this.sources.clear();
  }
}
