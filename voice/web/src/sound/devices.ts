// Which microphone and which output are used, and when that has to change.

export interface Device {
  id: string;
  label: string;
}

/** Wish is the device that somebody chose once; by label too, for browsers give new ids when cookies go. Null is the system's. */
export type Wish = Device | null;

/** choose finds the wished device among the present ones; empty is the system's default. Never by `exact`: that fails when it is gone. */
export function choose(wish: Wish, there: readonly Device[]): string {
  if (!wish) return '';
  const same = there.find((d) => d.id === wish.id) ?? (wish.label ? there.find((d) => d.label === wish.label) : undefined);
  return same?.id ?? '';
}

export type Change = {change: 'none'} | {change: 'lost' | 'back' | 'moved'; use: string};

/**
 * plan compares what is in use with what is there now. 'lost' is a device in use that is gone, 'back' the wished one that has come
 * back, 'moved' that the system's default is another one now.
 */
export function plan(wish: Wish, using: Device | null, there: readonly Device[]): Change {
  const use = choose(wish, there);
  if (!using) return {change: 'none'};
  const still = there.some((d) => d.id === using.id || (d.label !== '' && d.label === using.label));
  const isWished = wish !== null && (using.id === wish.id || using.label === wish.label);
  if (wish && use !== '' && !isWished) return {change: 'back', use};
  if (!still) return {change: 'lost', use};
  return {change: 'none'};
}

/** Fault says why there is no microphone. */
export type Fault = 'dismissed' | 'denied' | 'system' | 'absent' | 'busy' | 'other';

/** faultOf tells the reasons apart that browsers give one name to. */
export function faultOf(e: unknown): Fault {
  const name = e instanceof Error || (typeof e === 'object' && e !== null && 'name' in e) ? String((e as {name: unknown}).name) : '';
  const message = typeof e === 'object' && e !== null && 'message' in e ? String((e as {message: unknown}).message) : '';
  switch (name) {
    case 'NotAllowedError': case 'SecurityError':
      return /dismiss/i.test(message) ? 'dismissed' : /system/i.test(message) ? 'system' : 'denied';
    case 'NotFoundError': case 'OverconstrainedError':
      return 'absent';
    case 'NotReadableError': case 'AbortError': case 'TrackStartError':
      return 'busy';
    default:
      return 'other';
  }
}

/** Reopening bounds how often capture is opened again: one at a time, events gathered, five a minute. */
export class Reopening {
  private at: number[] = [];

  /** may tells whether another one is allowed now, and counts it. */
  may(now: number): boolean {
    this.at = this.at.filter((t) => now - t < 60_000);
    if (this.at.length >= 5) return false;
    this.at.push(now);
    return true;
  }
}

export const gatherFor = 500; // ms in which device events are taken for one

/**
 * OutputWatch judges the output by its clock, for a browser sends no event when the device behind it is gone. Seconds of the
 * context against milliseconds of real time.
 */
export class OutputWatch {
  private last: {clock: number; at: number} | null = null;
  private stalled = 0; // ms
  private tries = 0;

  /** look is told about once a second. 'sink' asks for the default sink, 'context' for a new context, 'tap' for a click. */
  look(clock: number, state: string, now: number): 'fine' | 'sink' | 'context' | 'tap' {
    const last = this.last;
    this.last = {clock, at: now};
    if (!last) return 'fine';
    const real = now - last.at;
    if (real > 4000 || real <= 0) return 'fine'; // the page itself slept: no measure
    const went = (clock - last.clock) * 1000;
    if (state === 'running' && went > real / 4) {
      this.stalled = this.tries = 0;
      return 'fine';
    }
    this.stalled += real;
    if (this.stalled < 1000) return 'fine';
    this.stalled = 0;
    this.tries++;
    if (state === 'interrupted') return 'tap'; // a call has the sound; asking for it back would only fail
    if (this.tries === 1) return 'sink';
    if (this.tries === 2) return 'context';
    return 'tap';
  }

  reset(): void {
    this.last = null;
    this.stalled = 0;
  }
}
