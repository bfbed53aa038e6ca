import type {Connection} from '../protocol/socket.ts';
import type {Key} from '../text/en.ts';
import type {Holes} from '../text/format.ts';

// From opening the page to a click on Join, and what a person is told about the connection afterwards.

/** Session is what the page's HTTP side says of who this is. */
export interface Session {
  name: string;
  uuid: string;
  server: string;
  near: number;
  range: number;
  network: string;
  recording: boolean;
}

export type Phase = 'trading' | 'landing' | 'ready' | 'joined';

export interface Entry {
  phase: Phase;
  session: Session | null;
  error: {key: Key; holes: Holes} | null;
}

export type Arrival =
  | {what: 'fragment' | 'session' | 'neither'}
  | {what: 'traded'; session: Session}
  | {what: 'refused'; code: string; message: string; wait?: number | undefined}
  | {what: 'noCookie'}
  | {what: 'click'}
  | {what: 'ended'; why: 'session_ended' | 'no_permission' | 'voice_off'};

/** errorOf gives the words for an HTTP error's code. */
export function errorOf(code: string, message: string, wait: number | undefined, time: (s: number) => string): {key: Key; holes: Holes} {
  switch (code) {
    case 'link_used': case 'link_expired': return {key: 'error.link_used', holes: {}};
    case 'wrong_code': case 'no_permission': case 'voice_off': case 'session_ended': case 'unreachable':
      return {key: `error.${code}`, holes: {}};
    case 'player_left': return {key: 'net.away', holes: {}};
    case 'too_many_tries': case 'busy': return {key: 'error.too_many_tries', holes: {time: time(wait ?? 60)}};
    case 'no_cookie': return {key: 'error.no_cookie', holes: {}};
    default: return {key: 'error.other', holes: {message: message || code}};
  }
}

export function arrive(e: Entry, a: Arrival, time: (s: number) => string): Entry {
  switch (a.what) {
    case 'fragment': case 'session': return {...e, phase: 'trading', error: null};
    case 'neither': return {...e, phase: 'landing', session: null};
    case 'traded': return {phase: 'ready', session: a.session, error: null};
    case 'noCookie': return {phase: 'landing', session: null, error: errorOf('no_cookie', '', undefined, time)};
    case 'click': return e.phase === 'ready' ? {...e, phase: 'joined', error: null} : e;
    case 'refused': return {phase: 'landing', session: null, error: errorOf(a.code, a.message, a.wait, time)};
    case 'ended': return {phase: 'landing', session: null, error: {key: `error.${a.why}`, holes: {}}};
  }
}

export type Button = 'tryNow' | 'useHere' | 'reload';

/** Notice is a banner: a first sentence in bold, more, and a button. */
export interface Notice {
  key: Key;
  more: Key | null;
  holes: Holes;
  button: Button | null;
  severe: boolean;
  told: 'assertive' | 'polite';
}

/** noticeOf says in words what is wrong with the connection; null where nothing is. left: seconds until the next try. */
export function noticeOf(c: Connection, left: number, offline: boolean): Notice | null {
  const notice = (key: Key, more: Key | null, button: Button | null, holes: Holes = {}, told: Notice['told'] = 'assertive'): Notice =>
    ({key, more, holes, button, severe: c.state === 'stopped', told});
  switch (c.state) {
    case 'waiting': {
      if (offline) return notice('net.offline', 'net.lost.more', null);
      const s = {s: Math.max(1, Math.ceil(left))};
      if (c.why === 'busy') return notice('net.busy', 'net.lost.more', null, s);
      if (c.why === 'blocked') return notice('net.blocked', 'net.blocked.more', 'tryNow', s);
      return notice('net.lost', 'net.lost.more', 'tryNow', s);
    }
    case 'away': return notice('net.away', 'net.away.more', c.at === Infinity ? 'tryNow' : null);
    case 'elsewhere': return notice('net.elsewhere', 'net.elsewhere.more', 'useHere');
    case 'stopped': return notice('net.stopped', 'net.stopped.more', 'reload', {code: String(c.code)});
    default: return null;
  }
}

/** word is the header's one word about the connection. */
export function wordOf(c: Connection, roundTrip: number | null): {key: Key; holes: Holes} {
  if (c.state === 'on') return roundTrip === null ? {key: 'net.on', holes: {}} : {key: 'net.ms', holes: {ms: Math.round(roundTrip)}};
  return {key: c.state === 'joining' ? 'net.joining' : 'net.off', holes: {}};
}
