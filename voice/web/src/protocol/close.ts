// Why a server ends a voice socket.

export const shuttingDown = 1001;
export const lost = 1006; // what a browser says when it never learned why, refused upgrades included
export const replaced = 4001;
export const leftNetwork = 4003;

/** Ending says what a client does next. */
export type Ending = 'again' | 'elsewhere' | 'away' | 'stopped';

/** endingOf reads a close code: whether to connect again, and if not, why. */
export function endingOf(code: number): Ending {
  switch (code) {
    case replaced: return 'elsewhere';
    case leftNetwork: return 'away';
    case 1002: case 1003: case 1007: case 1009: case 4008: return 'stopped'; // what we sent was wrong, and would be again
    default: return 'again';
  }
}
