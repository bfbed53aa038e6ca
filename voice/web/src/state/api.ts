import type {Session} from './connection.ts';

// The page's HTTP side. Every answer is one of ours, or 'unreachable'.

export interface About {
  network: string;
  address: string;
  voice: boolean;
  walk: boolean;
  secure: boolean;
}

export interface Refused {
  code: string;
  message: string;
  wait?: number | undefined;
}

export type Answer<T> = {ok: true; value: T} | {ok: false; refused: Refused};

/** call asks the server; paths are relative, for the page may stand below a prefix. */
export async function call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Answer<T>> {
  try {
    const r = await fetch(path, {
      method, credentials: 'same-origin', cache: 'no-store', signal: AbortSignal.timeout(10_000),
      ...(method === 'GET' ? {} : {headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body ?? {})}),
    });
    if (r.status === 204) return {ok: true, value: undefined as T};
    const value: unknown = await r.json();
    if (value && typeof value === 'object') {
      if (r.ok) return {ok: true, value: value as T};
      const e = value as Record<string, unknown>;
      if (typeof e['code'] === 'string') {
        return {ok: false, refused: {code: e['code'], message: String(e['message'] ?? ''), wait: typeof e['wait'] === 'number' ? e['wait'] : undefined}};
      }
    }
  } catch {
    // Below.
  }
  return {ok: false, refused: {code: 'unreachable', message: ''}};
}

/** sessionFrom takes what came for a session, with a default for what is missing. */
export function sessionFrom(v: Partial<Session> | undefined, network: string): Session {
  const text = (x: unknown, other: string): string => (typeof x === 'string' && x !== '' ? x : other);
  const number = (x: unknown, other: number): number => (typeof x === 'number' && Number.isFinite(x) && x >= 0 ? x : other);
  return {
    name: text(v?.name, '?'), uuid: text(v?.uuid, ''), server: text(v?.server, '?'), near: number(v?.near, 0), range: number(v?.range, 48),
    network: text(v?.network, network), recording: v?.recording !== false,
  };
}

/** fragment takes the code of a link; what is no code at all is taken as it is, for the server to refuse. */
export function fragment(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

/** codeFrom takes what somebody typed or pasted for a code: blanks, dashes and case do not matter. */
export const codeFrom = (typed: string): string => typed.replace(/[\s\-–—_.]/g, '').toUpperCase();
