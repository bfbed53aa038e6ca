/** Latest is a piece of state that a server is to know: only its newest value goes out, and no more often than every so many ms. */
export class Latest<T> {
  want: T;
  private sent: T;
  private at = -Infinity;
  private readonly every: number;

  constructor(first: T, every: number) {
    this.want = this.sent = first;
    this.every = every;
  }

  /** renew is for a new connection, which believes this value. */
  renew(believed: T): void {
    this.sent = believed;
    this.at = -Infinity;
  }

  /** due gives the value to send now, or null. */
  due(now: number): T | null {
    if (this.want === this.sent || now - this.at < this.every) return null;
    this.at = now;
    return (this.sent = this.want);
  }
}
