import {frameMs} from './level.ts';

// When the microphone sends. All of it goes by captured frames, so that no timer of a hidden tab can hold it up.

export const hangover = 400; // ms under the threshold until a stretch of speech ends
export const preRoll = 2; // frames from before the threshold was passed: the first consonant is quiet

/** Talk is what decides about sending; the state of the page makes it. */
export interface Talk {
  mode: 'voice' | 'hold';
  open: boolean; // not muted by anybody, not deafened, allowed to speak
  held: boolean; // of hold: the key is down
  threshold: number; // of voice: dBFS
}

/** Gate says for each frame whether it is sent, and whether with it a new stretch of speech begins. */
export class Gate {
  live = false;
  private quiet = 0; // ms under the threshold

  frame(db: number, t: Talk): 'silent' | 'begin' | 'on' {
    const was = this.live;
    if (!t.open || (t.mode === 'hold' && !t.held)) {
      this.live = false; // at once: what a person has closed is closed
    } else if (t.mode === 'hold') {
      this.live = true;
    } else if (db >= t.threshold - (was ? 6 : 0)) {
      this.live = true;
      this.quiet = 0;
    } else if (was) {
      this.quiet += frameMs;
      this.live = this.quiet < hangover;
    }
    if (!this.live) this.quiet = 0;
    return !this.live ? 'silent' : was ? 'on' : 'begin';
  }
}

/** History keeps the last frames, which go before a stretch of speech. */
export class History {
  private frames: Float32Array[] = [];

  keep(pcm: Float32Array): void {
    this.frames.push(pcm);
    if (this.frames.length > preRoll) this.frames.shift();
  }

  take(): Float32Array[] {
    const frames = this.frames;
    this.frames = [];
    return frames;
  }
}

export const digitalSilence = -100; // dBFS; no real microphone is so quiet
export const reopenAfter = 1000;
export const askAfter = 3000;

/**
 * Silence watches the samples of an open microphone: an unplugged one gives zeros for seconds before any event says so. It asks for
 * one reopening, then tells the person, and takes it back at the first louder sample.
 */
export class Silence {
  private since: number | null = null;
  private reopened = false;
  private told = false;

  /** frame is told each frame's level; with null, each second or so, that no frames came at all. */
  frame(db: number | null, now: number): 'reopen' | 'silent' | 'sound' | null {
    if (db !== null && db > digitalSilence) {
      const told = this.told;
      this.since = null;
      this.reopened = this.told = false;
      return told ? 'sound' : null;
    }
    this.since ??= now;
    if (!this.reopened && now - this.since >= reopenAfter) {
      this.reopened = true;
      return 'reopen';
    }
    if (!this.told && now - this.since >= askAfter) {
      this.told = true;
      return 'silent';
    }
    return null;
  }

  /** pause is for when the microphone is closed on purpose. */
  pause(): void {
    if (!this.told) this.since = null;
  }
}

/** SlowGain brings speech to one loudness over seconds; it never moves the system's slider and never pumps. */
export class SlowGain {
  gain = 1;

  /** apply works on a frame in place; speech tells whether it is one to learn from. */
  apply(pcm: Float32Array, db: number, speech: boolean): void {
    if (speech && db > -50) {
      const want = Math.min(4, Math.max(0.5, 10 ** ((-22 - db) / 20)));
      this.gain += (want - this.gain) * (want < this.gain ? 0.02 : 0.005);
    }
    for (let i = 0; i < pcm.length; i++) pcm[i] = Math.max(-1, Math.min(1, pcm[i]! * this.gain));
  }
}
