import type {Wish} from '../sound/devices.ts';

// What this page remembers of somebody, in their browser only. Reading and writing never throw: storage may be blocked or full.

export type Action = 'talk' | 'mute' | 'deafen' | 'whisper' | 'shout' | 'search' | 'group' | 'help' | 'settings';

/** Bound is a key by its place on the keyboard, and how it is written there. */
export interface Bound {
  code: string;
  key: string;
}

export interface Settings {
  mode: 'voice' | 'hold';
  threshold: number; // dBFS
  echo: boolean;
  noise: boolean;
  gain: boolean; // our own, slow one
  browserGain: boolean;
  mic: Wish;
  output: Wish;
  surround: boolean;
  master: number; // 0 to 2
  cues: boolean;
  announce: boolean;
  muteHidden: boolean;
  keysOn: boolean;
  keys: Record<Action, Bound>;
  theme: 'auto' | 'dark' | 'light';
  language: string; // empty: the browser's
  volumes: Record<string, number>; // by player, 0 to 2
  muted: string[]; // players
  clips: Record<string, number>;
  speakers: Record<string, number>;
  muteSelf: boolean;
  deafened: boolean;
  toldFront: boolean;
}

const key = (code: string, name: string): Bound => ({code, key: name});

export const defaults: Readonly<Settings> = {
  mode: 'voice', threshold: -45, echo: true, noise: true, gain: true, browserGain: false, mic: null, output: null, surround: false, master: 1, cues: true,
  announce: false, muteHidden: false, keysOn: true,
  keys: {
    talk: key('KeyV', 'V'), mute: key('KeyM', 'M'), deafen: key('KeyD', 'D'), whisper: key('KeyQ', 'Q'), shout: key('KeyE', 'E'), search: key('Slash', '/'),
    group: key('KeyG', 'G'), help: key('Minus', '?'), settings: key('Comma', ','),
  },
  theme: 'auto', language: '', volumes: {}, muted: [], clips: {}, speakers: {}, muteSelf: false, deafened: false, toldFront: false,
};

const mostPeople = 1000;

/** read takes what is stored for what it is: anything of another shape is the default. */
export function read(text: string | null): Settings {
  const s = structuredClone(defaults) as Settings;
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? '{}');
  } catch {
    return s;
  }
  if (!stored || typeof stored !== 'object') return s;
  const from = stored as Record<string, unknown>, to = s as unknown as Record<string, unknown>;
  for (const [name, value] of Object.entries(defaults)) {
    const got = from[name];
    if (name === 'mic' || name === 'output') to[name] = wish(got);
    else if (name === 'keys') {
      for (const action of Object.keys(s.keys) as Action[]) s.keys[action] = bound((got as Record<string, unknown> | undefined)?.[action]) ?? s.keys[action];
    } else if (name === 'muted') to[name] = Array.isArray(got) ? got.filter((x) => typeof x === 'string').slice(-mostPeople) : value;
    else if (name === 'volumes' || name === 'clips' || name === 'speakers') to[name] = levels(got);
    else if (typeof got === typeof value && (typeof got !== 'number' || Number.isFinite(got))) to[name] = got;
  }
  if (s.mode !== 'hold') s.mode = 'voice';
  if (!['dark', 'light'].includes(s.theme)) s.theme = 'auto';
  s.threshold = Math.min(-10, Math.max(-70, s.threshold));
  s.master = Math.min(2, Math.max(0, s.master));
  return s;
}

function wish(v: unknown): Wish {
  const w = v as {id?: unknown; label?: unknown} | null;
  return w && typeof w === 'object' && typeof w.id === 'string' && typeof w.label === 'string' ? {id: w.id, label: w.label} : null;
}

function bound(v: unknown): Bound | null {
  const b = v as {code?: unknown; key?: unknown} | null;
  return b && typeof b === 'object' && typeof b.code === 'string' && typeof b.key === 'string' && b.code ? {code: b.code, key: b.key} : null;
}

function levels(v: unknown): Record<string, number> {
  if (!v || typeof v !== 'object') return {};
  const good = Object.entries(v).filter(([, n]) => typeof n === 'number' && n >= 0 && n <= 2);
  return Object.fromEntries(good.slice(-mostPeople));
}

/** Keeper reads and writes one entry of a storage that may refuse, and says so once it has. */
export class Keeper {
  /** lost is set when something could not be kept. */
  lost = false;
  private readonly storage: () => Storage;
  private readonly name: string;

  constructor(storage: () => Storage, name: string) {
    this.storage = storage;
    this.name = name;
  }

  load(): Settings {
    try {
      return read(this.storage().getItem(this.name));
    } catch {
      this.lost = true;
      return read(null);
    }
  }

  save(s: Settings): void {
    try {
      this.storage().setItem(this.name, JSON.stringify(s));
      this.lost = false;
    } catch {
      this.lost = true;
    }
  }

  forget(): void {
    try {
      this.storage().removeItem(this.name);
    } catch {
      this.lost = true;
    }
  }
}
