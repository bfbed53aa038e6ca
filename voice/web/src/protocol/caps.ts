// What a socket can do, asked for by one subprotocol token since a browser can set no headers.

export interface Caps {
  audio: number;
  status: number;
  spatial: number;
  speakers: number;
  soundboard: number;
  groups: number;
  groupEdit: number;
  pose: number;
  page: number;
  roster: number;
}

/** base asks for nothing: format v1. Every server takes it. */
export const base = 'socketsvc';

export const none: Readonly<Caps> = {audio: 0, status: 0, spatial: 0, speakers: 0, soundboard: 0, groups: 0, groupEdit: 0, pose: 0, page: 0, roster: 0};

/** newest has everything that this module speaks. */
export const newest: Readonly<Caps> = {audio: 2, status: 1, spatial: 1, speakers: 1, soundboard: 2, groups: 2, groupEdit: 1, pose: 1, page: 1, roster: 2};

const spatial = (c: Caps): boolean => c.audio === 2 && c.spatial === 1;

// In the order of a token's words, each after all that it builds on.
const table: readonly {word: string; key: keyof Caps; builds(c: Caps): boolean}[] = [
  {word: 'audio', key: 'audio', builds: () => true},
  {word: 'status', key: 'status', builds: () => true},
  {word: 'spatial', key: 'spatial', builds: (c) => c.audio === 2},
  {word: 'speakers', key: 'speakers', builds: spatial},
  {word: 'soundboard', key: 'soundboard', builds: spatial},
  {word: 'groups', key: 'groups', builds: (c) => c.status === 1},
  {word: 'group-edit', key: 'groupEdit', builds: (c) => c.groups === 2},
  {word: 'pose', key: 'pose', builds: spatial},
  {word: 'page', key: 'page', builds: spatial},
  {word: 'roster', key: 'roster', builds: (c) => c.status === 1},
];

/** headerOf names the HTTP header by which other clients ask for the same. */
export const headerOf = (key: keyof Caps): string =>
  'X-SocketSVC-' + table.find((c) => c.key === key)!.word.split('-').map((w) => w[0]!.toUpperCase() + w.slice(1)).join('-');

export function toToken(c: Caps): string {
  let token = base;
  for (const {word, key} of table) if (c[key]) token += `.${word}-${c[key]}`;
  return token;
}

/** fromToken reads a token: the base, then any capabilities in the order of the table. Null for anything else. */
export function fromToken(token: string): Caps | null {
  if (!token.startsWith(base)) return null;
  let rest = token.slice(base.length);
  const c = {...none};
  for (const {word, key} of table) {
    const m = new RegExp(`^\\.${word}-([1-9])`).exec(rest);
    if (!m) continue;
    c[key] = Number(m[1]);
    rest = rest.slice(m[0].length);
  }
  return rest === '' ? c : null;
}

/** negotiate is what a server that offers this grants of what was asked. */
export function negotiate(asked: Caps, offered: Caps): Caps {
  const granted = {...none};
  for (const {word, key, builds} of table) {
    const known = asked[key] === offered[key] || (word === 'soundboard' && asked[key] === 1 && offered[key] === 2);
    if (known && builds(granted)) granted[key] = asked[key];
  }
  return granted;
}

/**
 * offers is the list of tokens that a page asks with: everything first, then what a server of ours may have switched off or not
 * know yet, and last the base, for a browser fails where the server picks none.
 */
export function offers(): string[] {
  const lists: Caps[] = [];
  for (const page of [1, 0])
    for (const groups of [2, 0])
      for (const soundboard of [2, 0]) lists.push({...newest, page, roster: page ? 2 : 0, groups, groupEdit: groups ? 1 : 0, soundboard});
  lists.push({...none, audio: 2, status: 1, spatial: 1}, {...none, audio: 2, status: 1}, {...none, audio: 2}, {...none});
  return lists.map(toToken);
}

export const c2sFormat = (c: Caps): 'v1' | 'v2' | 'board' => (c.soundboard ? 'board' : c.audio === 2 ? 'v2' : 'v1');
export const s2cFormat = (c: Caps): 'v1' | 'v2' | 'spatial' => (c.spatial ? 'spatial' : c.audio === 2 ? 'v2' : 'v1');
