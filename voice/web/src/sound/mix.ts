import {Jitter} from './jitter.ts';
import {frameSize, rate, rms} from './level.ts';

// From the frames of many talkers to two channels.

/** Place is where a sound stands for the listener: side -1 is left and 1 right, ahead -1 behind and 1 in front. */
export interface Place {side: number; ahead: number}

/**
 * placeOf turns a distance on the world's axes by where the listener looks. Yaw is the game's: 0 looks to +z, 90 to -x. Close by
 * the sides blur, so that somebody inside you is not in one ear.
 */
export function placeOf(dx: number, dz: number, yaw: number): Place {
  const distance = Math.hypot(dx, dz);
  if (distance < 1e-6) return {side: 0, ahead: 0};
  const angle = (yaw * Math.PI) / 180;
  const near = Math.min(1, distance / 2);
  return {
    side: (near * (dx * -Math.cos(angle) + dz * -Math.sin(angle))) / distance,
    ahead: (near * (dx * -Math.sin(angle) + dz * Math.cos(angle))) / distance,
  };
}

const widest = 0.9; // the far ear keeps a little: sound in one ear alone is hard to bear

/** panOf gives the gain of each channel, at equal power. */
export function panOf(side: number): [left: number, right: number] {
  const at = ((side * widest + 1) * Math.PI) / 4;
  return [Math.cos(at), Math.sin(at)];
}

/** Sound is one frame for the mixer. */
export interface Sound {
  pcm: Float32Array;
  gain: number; // all of the wire's gain and the listener's volumes
  dx: number;
  dz: number;
}

type Item = Sound | 'conceal';

export const mostConcealed = 3;
const fades = [1, 0.6, 0.25]; // of concealed frames, at their beginning
const blend = 120; // samples over which two pieces of sound are joined
const earDelay = 30; // samples, 0.63 ms: from one ear to the other

/** Talker plays one source. */
export class Talker {
  readonly jitter = new Jitter<Item>();
  concealed = 0;
  /** level is the loudest of the frames since it was last taken, as played. */
  level = 0;
  lastPlayed = -Infinity;
  private frame: Float32Array | null = null;
  private at = 0;
  private previous: Float32Array | null = null; // the last real frame, to conceal with
  private inARow = 0;
  private tail = 0; // what still sounds of a frame that was cut off
  private left = 0;
  private right = 0;
  private wantLeft = 0;
  private wantRight = 0;
  private sound: Sound | null = null;
  // For the surround option: the sound as it was, and the two shadowed ears.
  private readonly past = new Float32Array(64);
  private pastAt = 0;
  private shadowLeft = 0;
  private shadowRight = 0;

  /** push takes a frame before which so many are proven to be missing. */
  push(sound: Sound, missing: number, begins: boolean, now: number): void {
    for (let i = Math.min(missing, mostConcealed); i > 0; i--) this.jitter.push('conceal', false, now);
    this.jitter.push(sound, begins, now);
  }

  /** add mixes n samples onto both channels. */
  add(left: Float32Array, right: Float32Array, n: number, yaw: number, surround: boolean, now: number): void {
    let aim: Place | null = null;
    for (let i = 0; i < n; i++) {
      if (!this.frame || this.at === frameSize) this.advance(now);
      if (!this.frame && Math.abs(this.tail) < 1e-5) {
        if (i === 0) return this.rest();
        break;
      }
      if (!aim && this.sound) {
        aim = placeOf(this.sound.dx, this.sound.dz, yaw);
        const [l, r] = surround ? [0.75 - 0.2 * aim.side, 0.75 + 0.2 * aim.side] : panOf(aim.side);
        this.wantLeft = l * this.sound.gain;
        this.wantRight = r * this.sound.gain;
        if (this.left === 0 && this.right === 0) [this.left, this.right] = [this.wantLeft, this.wantRight];
      }
      this.left += (this.wantLeft - this.left) * 0.002;
      this.right += (this.wantRight - this.right) * 0.002;
      this.tail *= 0.96;
      const v = (this.frame ? this.frame[this.at++]! : 0) + this.tail;
      if (surround) this.ears(v, aim ?? {side: 0, ahead: 0}, left, right, i);
      else {
        left[i]! += v * this.left;
        right[i]! += v * this.right;
      }
    }
  }

  private rest(): void {
    this.left = this.right = this.tail = 0;
  }

  private ears(v: number, aim: Place, left: Float32Array, right: Float32Array, i: number): void {
    this.past[this.pastAt & 63] = v;
    const heard = (late: number): number => this.past[(this.pastAt - Math.round(late)) & 63]!;
    // The head shadows the ear that is turned away, and the ears themselves what is behind.
    const behind = Math.max(0, -aim.ahead) * 0.45;
    const dull = (side: number): number => 1 - Math.min(0.8, Math.max(0, side) * 0.6 + behind);
    this.shadowLeft += (heard(Math.max(0, aim.side) * earDelay) - this.shadowLeft) * dull(aim.side);
    this.shadowRight += (heard(Math.max(0, -aim.side) * earDelay) - this.shadowRight) * dull(-aim.side);
    left[i]! += this.shadowLeft * this.left;
    right[i]! += this.shadowRight * this.right;
    this.pastAt++;
  }

  private advance(now: number): void {
    const before = this.frame;
    const last = before ? before[frameSize - 1]! : 0;
    let next = this.jitter.pull(now);
    // What is missing after a silence is over already: making it up would only come too late.
    while (next?.item === 'conceal' && !before) next = this.jitter.pull(now);
    this.at = 0;
    if (next?.item === 'conceal') {
      this.frame = this.conceal();
      this.tail += last - (this.frame?.[0] ?? 0); // from one piece to the next without a click
      return;
    }
    const wasMadeUp = this.inARow > 0;
    this.inARow = 0;
    if (!next) {
      this.tail += last;
      this.frame = null;
      return;
    }
    this.sound = next.item;
    const pcm = next.item.pcm;
    const over = next.skipped && next.skipped !== 'conceal' ? next.skipped.pcm : null;
    if (over) for (let i = 0; i < blend; i++) pcm[i] = over[i]! * (1 - i / blend) + pcm[i]! * (i / blend);
    else if (!before) for (let i = 0; i < blend; i++) pcm[i]! *= i / blend;
    else if (wasMadeUp) this.tail += last - pcm[0]!;
    this.previous = this.frame = pcm;
    this.lastPlayed = now;
    this.level = Math.max(this.level, rms(pcm));
  }

  private conceal(): Float32Array | null {
    const k = this.inARow++;
    this.concealed++;
    if (!this.previous || k >= mostConcealed) return null;
    const made = new Float32Array(frameSize), from = fades[k]!, to = fades[k + 1] ?? 0;
    for (let i = 0; i < frameSize; i++) made[i] = this.previous[i]! * (from + ((to - from) * i) / frameSize);
    return made;
  }
}

/** Limiter keeps any number of talkers, and random bytes that decode to noise, from ever being louder than the ceiling. */
export class Limiter {
  static readonly ceiling = 0.95;
  gain = 1;

  apply(left: Float32Array, right: Float32Array, n: number): void {
    let peak = 0;
    for (let i = 0; i < n; i++) peak = Math.max(peak, Math.abs(left[i]!), Math.abs(right[i]!));
    const want = peak * this.gain > Limiter.ceiling ? Limiter.ceiling / peak : Math.min(1, this.gain + (n / rate) * 4);
    const safe = Math.min(want, peak > 0 ? Limiter.ceiling / peak : 1);
    const from = Math.min(this.gain, safe); // down at once, up over the block
    for (let i = 0; i < n; i++) {
      const g = from + ((safe - from) * i) / n;
      left[i]! *= g;
      right[i]! *= g;
    }
    this.gain = safe;
  }
}

/** Yaw follows the poses, ten to twenty a second, in even steps and the short way round. */
export class Yaw {
  now = 0;
  private want = 0;
  private known = false;

  set(degrees: number): void {
    this.want = degrees;
    if (!this.known) this.now = degrees;
    this.known = true;
  }

  advance(seconds: number): number {
    const turn = ((((this.want - this.now) % 360) + 540) % 360) - 180;
    this.now += turn * Math.min(1, seconds * 20);
    return this.now;
  }
}
