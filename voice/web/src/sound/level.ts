// Levels of samples between -1 and 1.

/** frameSize is 20 ms at 48 kHz, the unit in which voice travels. */
export const frameSize = 960;
export const rate = 48000;
export const frameMs = 20;

export function rms(pcm: Float32Array, from = 0, to = pcm.length): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += pcm[i]! * pcm[i]!;
  return to > from ? Math.sqrt(sum / (to - from)) : 0;
}

/** decibels of a linear level; silence is -120. */
export const decibels = (level: number): number => (level > 1e-6 ? 20 * Math.log10(level) : -120);

/** meter maps decibels to 0 to 1 for a person to look at: -60 and less is nothing. */
export const meter = (db: number): number => Math.min(1, Math.max(0, (db + 60) / 54));
