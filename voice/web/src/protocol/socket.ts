import {endingOf, lost} from './close.ts';

// The life of a connection, as a machine without clock, timers or sockets: it is told what happened and when, and says what to do.
// Times are milliseconds of a clock that only goes forward.

/** Refusal is why no token was minted: a code of the page's HTTP errors, or 'unreachable' for no answer or a strange one. */
export type Refusal = string;

export type Waiting = {state: 'waiting'; why: 'lost' | 'busy' | 'slow' | 'blocked'; at: number};

export type Connection =
  | {state: 'idle'} // nobody has asked to join
  | {state: 'joining'; since: number; step: 'token' | 'opening' | 'proving'}
  | {state: 'on'; since: number}
  | Waiting
  | {state: 'away'; since: number; at: number; asking: boolean} // the player has left the game; asked again at at, Infinity: on a click
  | {state: 'elsewhere'}
  | {state: 'stopped'; code: number}
  | {state: 'ended'; why: 'session_ended' | 'no_permission' | 'voice_off'};

export type Event =
  | {event: 'join'} // a click: join, try now, use it here
  | {event: 'leave'}
  | {event: 'token'}
  | {event: 'refused'; code: Refusal; wait?: number | undefined} // wait: seconds
  | {event: 'opened'}
  | {event: 'proved'} // the server has answered on this socket
  | {event: 'answered'} // a beat came back
  | {event: 'closed'; code: number}
  | {event: 'online'} // the network is back, the page is seen again
  | {event: 'woken'} // the clock has jumped: whatever the socket holds is of the past
  | {event: 'tick'};

/** Action is what the caller does: mint a token, open a socket with it, close the socket, send a beat. */
export type Action = {do: 'token'} | {do: 'open'} | {do: 'close'; code: number} | {do: 'beat'; n: number};

const steps = [500, 1000, 2000, 4000, 8000, 15000, 30000];
export const steadyAfter = 30_000; // on for so long, and the next back-off is short again
export const beatEvery = 2000;
export const deadAfter = 5000; // a beat without an answer
export const joinWithin = 10_000;
export const askEvery = 5000; // whether a player who left is back
export const askFor = 600_000;
const neverOpened = 3; // then something between here and the server keeps sockets from it

/** Machine is one connection. `beats` is whether the server has agreed to them. */
export class Machine {
  connection: Connection = {state: 'idle'};
  beats = false;
  private tries = 0;
  private failedOpens = 0; // tokens that were good and sockets that were not
  private beat = 0;
  private beatAt = 0; // of the last beat sent
  private askedAt = 0; // of the oldest beat without an answer; 0: none
  private readonly random: () => number;

  /** random gives 0 to 1, for the spread of the back-off. */
  constructor(random: () => number) {
    this.random = random;
  }

  /** roundTrip is the last one measured, in milliseconds; null before the first. */
  roundTrip: number | null = null;

  handle(e: Event, now: number): Action[] {
    const c = this.connection;
    switch (e.event) {
      case 'join':
        if (c.state === 'joining' || c.state === 'on') return [];
        this.tries = 0;
        this.failedOpens = 0;
        return this.begin(now);
      case 'leave': {
        const open = this.hasSocket();
        this.connection = {state: 'idle'};
        return open ? [{do: 'close', code: 1000}] : [];
      }
      case 'token':
        if (c.state === 'away' && c.asking) {
          this.connection = {state: 'joining', since: now, step: 'opening'};
          return [{do: 'open'}];
        }
        if (c.state !== 'joining' || c.step !== 'token') return [];
        this.connection = {...c, step: 'opening'};
        return [{do: 'open'}];
      case 'refused':
        return this.refused(e.code, e.wait, now);
      case 'opened':
        if (c.state !== 'joining' || c.step !== 'opening') return [];
        this.failedOpens = 0;
        this.connection = {...c, step: 'proving'};
        this.askedAt = 0;
        return this.beats ? this.sendBeat(now) : [];
      case 'proved':
        // With beats only their answer proves that bytes go both ways.
        return c.state === 'joining' && c.step === 'proving' && !this.beats ? this.on(now) : [];
      case 'answered':
        if (this.askedAt) this.roundTrip = now - this.askedAt;
        this.askedAt = 0;
        return c.state === 'joining' && c.step === 'proving' ? this.on(now) : [];
      case 'closed':
        return this.closed(e.code, now);
      case 'online':
        return c.state === 'waiting' || (c.state === 'away' && !c.asking) ? this.ask(now) : [];
      case 'woken':
        if (c.state === 'waiting' || (c.state === 'away' && !c.asking)) return this.ask(now);
        if (c.state !== 'on' && c.state !== 'joining') return [];
        this.tries = 0;
        return [...(this.hasSocket() ? [{do: 'close', code: 4000} as const] : []), ...this.begin(now)];
      case 'tick':
        return this.tick(now);
    }
  }

  private hasSocket(): boolean {
    const c = this.connection;
    return c.state === 'on' || (c.state === 'joining' && c.step !== 'token');
  }

  private begin(now: number): Action[] {
    this.connection = {state: 'joining', since: now, step: 'token'};
    return [{do: 'token'}];
  }

  private on(now: number): Action[] {
    this.connection = {state: 'on', since: now};
    return [];
  }

  private sendBeat(now: number): Action[] {
    this.beatAt = now;
    this.askedAt ||= now;
    this.beat = (this.beat + 1) % 2 ** 31;
    return [{do: 'beat', n: this.beat}];
  }

  private ask(now: number): Action[] {
    const c = this.connection;
    if (c.state !== 'away') return this.begin(now);
    this.connection = {...c, asking: true};
    return [{do: 'token'}];
  }

  private refused(code: Refusal, wait: number | undefined, now: number): Action[] {
    const c = this.connection;
    const asked = (c.state === 'joining' && c.step === 'token') || (c.state === 'away' && c.asking);
    if (!asked) return [];
    switch (code) {
      case 'session_ended': case 'no_permission': case 'voice_off':
        this.connection = {state: 'ended', why: code};
        return [];
      case 'player_left': {
        const since = c.state === 'away' ? c.since : now;
        this.connection = {state: 'away', since, asking: false, at: now - since < askFor ? now + askEvery : Infinity};
        return [];
      }
      case 'busy': case 'too_many_tries':
        return this.wait('busy', now, wait ? wait * 1000 : 0);
      default:
        return this.wait('lost', now);
    }
  }

  private closed(code: number, now: number): Action[] {
    const c = this.connection;
    if (!this.hasSocket()) return [];
    switch (endingOf(code)) {
      case 'elsewhere':
        this.connection = {state: 'elsewhere'};
        return [];
      case 'away':
        this.connection = {state: 'away', since: now, at: now + askEvery, asking: false};
        return [];
      case 'stopped':
        this.connection = {state: 'stopped', code};
        return [];
    }
    if (c.state === 'on' && now - c.since >= steadyAfter) this.tries = 0;
    if (c.state === 'joining' && c.step === 'opening' && code === lost) this.failedOpens++;
    return this.wait(this.failedOpens >= neverOpened ? 'blocked' : 'lost', now);
  }

  private wait(why: Waiting['why'], now: number, least = 0): Action[] {
    const step = steps[Math.min(this.tries++, steps.length - 1)]!;
    this.connection = {state: 'waiting', why, at: now + Math.max(least, step * (0.8 + 0.4 * this.random()))};
    return [];
  }

  private tick(now: number): Action[] {
    const c = this.connection;
    switch (c.state) {
      case 'waiting':
        return now >= c.at ? this.begin(now) : [];
      case 'away':
        return !c.asking && now >= c.at ? this.ask(now) : [];
      case 'joining': {
        if (now - c.since >= joinWithin) {
          const close: Action[] = this.hasSocket() ? [{do: 'close', code: 4000}] : [];
          this.wait('slow', now);
          return close;
        }
        return [];
      }
      case 'on':
        if (!this.beats) return [];
        if (this.askedAt && now - this.askedAt >= deadAfter) {
          if (now - c.since >= steadyAfter) this.tries = 0;
          this.wait('lost', now);
          return [{do: 'close', code: 4000}];
        }
        return now - this.beatAt >= beatEvery ? this.sendBeat(now) : [];
    }
    return [];
  }
}
