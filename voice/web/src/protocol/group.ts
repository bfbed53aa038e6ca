import {absent, decodeText, encodeText, isUUID, plain, readFlag, writeFlag, zeroUUID} from './text.ts';

// A client's group requests, and the answers to them.

export type GroupType = 'NORMAL' | 'OPEN' | 'ISOLATED';
export const groupTypes: readonly GroupType[] = ['NORMAL', 'OPEN', 'ISOLATED'];
export const isGroupType = (w: string | undefined): w is GroupType => groupTypes.includes(w as GroupType);

export type Verb = 'CREATE' | 'JOIN' | 'LEAVE' | 'INVITE' | 'ACCEPT' | 'DECLINE' | 'MOVE' | 'RENAME' | 'PASSWORD' | 'TYPE' | 'KICK' | 'DELETE';

/** GroupRequest has the fields that its verb names; the others are at their zero. */
export interface GroupRequest {
  verb: Verb;
  group: string;
  out: boolean; // of MOVE: out of every group
  player: string;
  type: GroupType;
  persistent: boolean;
  name: string;
  password: string | null; // empty: none; null, of PASSWORD only: what was sent could not be read
}

type Field = 'group' | 'destination' | 'player' | 'type' | 'persistent' | 'name' | 'password' | 'newPassword';

export const forms: Readonly<Record<Verb, readonly Field[]>> = {
  CREATE: ['type', 'persistent', 'name', 'password'],
  JOIN: ['group', 'password'],
  LEAVE: [],
  INVITE: ['group', 'player'],
  ACCEPT: ['group'],
  DECLINE: ['group'],
  MOVE: ['player', 'destination'],
  RENAME: ['group', 'name'],
  PASSWORD: ['group', 'newPassword'],
  TYPE: ['group', 'type'],
  KICK: ['group', 'player'],
  DELETE: ['group'],
};

export const isVerb = (w: string | undefined): w is Verb => w !== undefined && Object.hasOwn(forms, w);

export const codes = [
  'OK', 'DISABLED', 'NO_PERMISSION', 'INVALID_NAME', 'INVALID_PASSWORD', 'NAME_TAKEN', 'TOO_MANY_GROUPS', 'NOT_FOUND', 'WRONG_PASSWORD',
  'GROUP_FULL', 'ALREADY_IN_GROUP', 'NOT_IN_GROUP', 'TYPE_NOT_ALLOWED', 'PASSWORDS_NOT_ALLOWED', 'PERSISTENT_NOT_ALLOWED',
  'ALREADY_INVITED', 'INBOX_FULL',
] as const;
export type Code = (typeof codes)[number];

/** request makes a GroupRequest of what its verb needs. */
export const request = (r: Partial<GroupRequest> & {verb: Verb}): GroupRequest => ({
  group: zeroUUID, out: false, player: zeroUUID, type: 'NORMAL', persistent: false, name: '', password: '', ...r,
});

/** parseGroup reads what stands behind the prefix; null for an unsupported message. */
export function parseGroup(s: string): GroupRequest | null {
  const [verb, ...words] = s.split(' ');
  if (!isVerb(verb) || words.length !== forms[verb].length) return null;
  const r = request({verb});
  for (const [i, field] of forms[verb].entries()) {
    const word = words[i]!;
    if (!plain(word) || !read(r, field, word)) return null;
  }
  return r;
}

function read(r: GroupRequest, field: Field, word: string): boolean {
  switch (field) {
    case 'destination':
      r.out = word === absent;
      if (!r.out) r.group = word;
      return r.out || isUUID(word);
    case 'group':
      r.group = word;
      return isUUID(word);
    case 'player':
      r.player = word;
      return isUUID(word);
    case 'type':
      if (!isGroupType(word)) return false;
      r.type = word;
      return true;
    case 'persistent': {
      const on = readFlag(word);
      r.persistent = on ?? false;
      return on !== null;
    }
    case 'name':
      r.name = decodeText(word) ?? '';
      return true;
    case 'password':
      r.password = decodeText(word) ?? '';
      return true;
    case 'newPassword':
      r.password = word === absent ? '' : decodeText(word);
      return true;
  }
}

/** encodeGroup writes what stands behind the prefix. */
export function encodeGroup(r: GroupRequest): string {
  return [r.verb, ...forms[r.verb].map((field) => {
    switch (field) {
      case 'destination': return r.out ? absent : r.group;
      case 'group': return r.group;
      case 'player': return r.player;
      case 'type': return r.type;
      case 'persistent': return writeFlag(r.persistent);
      case 'name': return encodeText(r.name);
      default: return r.password === null ? '/w==' : encodeText(r.password); // a byte that is no UTF-8
    }
  })].join(' ');
}
