// What a screen reader is told, so that it is told what matters and no more.

export interface Said {
  how: 'assertive' | 'polite';
  text: string;
}

const politeEvery = 3000;
const crowdEvery = 5000;

/** Say is told what there is to say, and asked for what is due. Of each kind the newest waits. */
export class Say {
  private readonly waiting = new Map<string, string>();
  private politeAt = -Infinity;
  private crowdAt = -Infinity;
  private came = 0;
  private urgent: string[] = [];
  private last = new Map<string, string>();

  /** urgently is for what cannot wait: a server's mute, a lost connection or microphone. The same again is not said twice. */
  urgently(kind: string, text: string): void {
    if (this.last.get(kind) === text) return;
    this.last.set(kind, text);
    this.urgent.push(text);
  }

  /** over lets the same be said again later. */
  over(kind: string): void {
    this.last.delete(kind);
  }

  politely(kind: string, text: string): void {
    this.waiting.delete(kind); // to the end of the line
    this.waiting.set(kind, text);
  }

  cameNear(n: number): void {
    this.came += n;
  }

  due(now: number, crowd: (n: number) => string): Said | null {
    const urgent = this.urgent.shift();
    if (urgent !== undefined) return {how: 'assertive', text: urgent};
    if (now - this.politeAt < politeEvery) return null;
    const next = this.waiting.entries().next();
    if (!next.done) {
      this.waiting.delete(next.value[0]);
      this.politeAt = now;
      return {how: 'polite', text: next.value[1]};
    }
    if (this.came > 0 && now - this.crowdAt >= crowdEvery) {
      const n = this.came;
      this.came = 0;
      this.politeAt = this.crowdAt = now;
      return {how: 'polite', text: crowd(n)};
    }
    return null;
  }
}

/** milestone tells whether a countdown that went from one number of seconds to another is to be said: at a minute, ten seconds, the end. */
export const milestone = (before: number, now: number): boolean => [60, 10, 0].some((m) => before > m && now <= m);
