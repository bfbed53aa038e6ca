import {frameSize, rate} from './level.ts';

/** Resampler brings samples of any rate to frames of 48 kHz, linearly between neighbours: enough for speech. */
export class Resampler {
  private readonly step: number;
  private at = 0; // place of the next output sample, counted from the last input sample of the former call
  private last = 0;
  private frame = new Float32Array(frameSize);
  private filled = 0;
  private readonly emit: (frame: Float32Array<ArrayBuffer>) => void;

  constructor(from: number, emit: (frame: Float32Array<ArrayBuffer>) => void) {
    this.step = from / rate;
    this.emit = emit;
  }

  push(input: Float32Array): void {
    const n = input.length;
    for (; this.at < n; this.at += this.step) {
      const i = Math.floor(this.at), part = this.at - i;
      const a = i === 0 ? this.last : input[i - 1]!;
      this.put(part === 0 ? a : a + (input[i]! - a) * part);
    }
    this.at -= n;
    if (n > 0) this.last = input[n - 1]!;
  }

  private put(v: number): void {
    this.frame[this.filled++] = v;
    if (this.filled < frameSize) return;
    this.emit(this.frame);
    this.frame = new Float32Array(frameSize);
    this.filled = 0;
  }
}
