import {frameMs} from './level.ts';

// How long sound waits before it is played: as little as the network allows. It grows when playing ran dry too early, and shrinks
// when for a second more was waiting than is wanted; a queue that only grows stays late for good.

export const leastFrames = 2;
export const mostFrames = 12;
const bound = 25; // half a second: what is older is never played
const lateWithin = 500; // a frame that comes so soon after the queue ran dry was late; later it is a pause
const calm = 10_000;

export interface Next<T> {
  item: T;
  skipped: T | null; // what was left out before it, to be faded over
}

export class Jitter<T> {
  target = leastFrames;
  underruns = 0;
  dropped = 0;
  private queue: T[] = [];
  private playing = false;
  private waitingSince: number | null = null; // since when a frame waits for the queue to fill
  private dryAt: number | null = null;
  private least = Infinity; // depth after a pull, in the window
  private windowEnds = 0;
  private calmSince = 0;

  get depth(): number {
    return this.queue.length;
  }

  /** push takes a frame; begins tells that it is the first of a stretch of speech, so that nothing before it was late. */
  push(item: T, begins: boolean, now: number): void {
    if (this.dryAt !== null && !begins && now - this.dryAt < lateWithin) {
      this.underruns++;
      this.target = Math.min(mostFrames, this.target + 1);
      this.calmSince = now;
    }
    this.dryAt = null;
    this.queue.push(item);
    this.waitingSince ??= now;
    if (this.queue.length > bound) {
      const many = this.queue.length - this.target;
      this.queue.splice(0, many);
      this.dropped += many;
    }
  }

  /** pull gives the next frame, or null while there is nothing to play. */
  pull(now: number): Next<T> | null {
    if (!this.playing) {
      // A short word never fills the queue; it waits as long as one that does.
      const ready = this.queue.length >= this.target || (this.queue.length > 0 && now - this.waitingSince! >= this.target * frameMs);
      if (!ready) return null;
      this.playing = true;
      this.openWindow(now);
      this.calmSince ||= now;
    }
    if (this.queue.length === 0) {
      this.playing = false;
      this.waitingSince = null;
      this.dryAt = now;
      return null;
    }
    let item = this.queue.shift()!;
    this.least = Math.min(this.least, this.queue.length);
    let skipped: T | null = null;
    if (now >= this.windowEnds) {
      if (this.least >= this.target && this.queue.length > 0) {
        skipped = item;
        item = this.queue.shift()!;
        this.dropped++;
      }
      if (now - this.calmSince >= calm && this.target > leastFrames) {
        this.target--;
        this.calmSince = now;
      }
      this.openWindow(now);
    }
    return {item, skipped};
  }

  private openWindow(now: number): void {
    this.least = Infinity;
    this.windowEnds = now + 1000;
  }
}
