import {codes, encodeGroup, isGroupType, isVerb, parseGroup, type Code, type GroupRequest, type GroupType, type Verb} from './group.ts';
import {
  absent, decodeText, encodeText, isUUID, plain, readFlag, readNumber, utf8Decode, utf8Length, validGroupName, validReason,
  validSpeakerName, writeFlag, zeroUUID,
} from './text.ts';

// Text lines, each way.

export const maxC2S = 1024; // UTF-16 units of a client's message
export const maxS2C = 262_144; // bytes of a server's
export const maxChanges = 1_048_576; // of a message of roster 2

export type Tier = 'normal' | 'whisper' | 'shout';

/** C2SLine is what a client says. */
export type C2SLine =
  | {line: 'deafen'; deafened: boolean}
  | {line: 'range'; tier: Tier}
  | {line: 'group'; request: GroupRequest}
  | {line: 'beat'; n: number};

const deafenPrefix = 'SSVC_DEAFEN_V1:';
const rangePrefix = 'SSVC_RANGE_V1:';
const groupPrefix = 'SSVC_GROUP_V1:';
const beatPrefix = 'SSVC_BEAT_V1:';

/** parseC2S reads a client's message; null for one that a server closes with 1003. */
export function parseC2S(text: string | Uint8Array): C2SLine | null {
  const s = typeof text === 'string' ? text : utf8Decode(text);
  if (s === null || s.length > maxC2S) return null;
  switch (s) {
    case deafenPrefix + '0': return {line: 'deafen', deafened: false};
    case deafenPrefix + '1': return {line: 'deafen', deafened: true};
    case rangePrefix + 'whisper': return {line: 'range', tier: 'whisper'};
    case rangePrefix + 'normal': return {line: 'range', tier: 'normal'};
    case rangePrefix + 'shout': return {line: 'range', tier: 'shout'};
  }
  if (s.startsWith(beatPrefix)) {
    const n = readNumber(s.slice(beatPrefix.length));
    return n === null ? null : {line: 'beat', n};
  }
  if (!s.startsWith(groupPrefix)) return null;
  const request = parseGroup(s.slice(groupPrefix.length));
  return request && {line: 'group', request};
}

export function encodeC2S(l: C2SLine): string {
  switch (l.line) {
    case 'deafen': return deafenPrefix + writeFlag(l.deafened);
    case 'range': return rangePrefix + l.tier;
    case 'group': return groupPrefix + encodeGroup(l.request);
    case 'beat': return beatPrefix + l.n;
  }
}

export interface Person {id: string; name: string}
export interface Roster {line: 'roster'; people: Person[]; status: boolean; deafened: string[]; whispering: string[]; shouting: string[]}
/**
 * Changes turns the roster of one revision into that of another one, see Roll. From null it is whole: nobody else is in it.
 */
export interface Changes {line: 'changes'; from: string | null; to: string; put: State[]; gone: string[]}
export interface State extends Person {deafened: boolean; tier: Tier}
export interface Pose {line: 'pose'; yaw: number; x: number; y: number; z: number; world: string}
export interface Speakers {line: 'speakers'; list: Person[]}
export interface Invitation {group: string; from: string; seconds: number}
export interface GroupRow {id: string; type: GroupType; locked: boolean; persistent: boolean; owner: string; name: string}
export interface Groups {
  line: 'groups';
  may: {use: boolean; create: boolean; admin: boolean; invite: boolean};
  invites: Invitation[];
  groups: GroupRow[];
  members: {group: string; player: string}[];
}
export interface GroupResult {line: 'result'; verb: Verb; code: Code}
/** Mute has seconds of null where it stays until it is lifted; kind 1 is this player, 2 everybody. */
export interface Mute {line: 'mute'; kind: 0 | 1 | 2; seconds: number | null; reason: string}
export interface Ranges {line: 'ranges'; whisper: boolean; shout: boolean}
/** Near has whole blocks, them minus you, nearest first. */
export interface Near {line: 'near'; people: {id: string; dx: number; dy: number; dz: number}[]}
export interface Rights {line: 'rights'; speak: boolean; listen: boolean; clips: boolean}
export interface Mic {line: 'mic'; what: 'toggle'}
export interface Beat {line: 'beat'; n: number; accepted: number}
export type S2CLine = Roster | Changes | Pose | Speakers | Groups | GroupResult | Mute | Ranges | Near | Rights | Mic | Beat;

const maxSpeakers = 32, maxSpeakersChars = 10_000, maxInvitations = 8, maxNear = 50, maxCoordinate = 1e9;
const maxAway = 60_000_000; // blocks between two people, as the server has it

const speakersHeader = 'SSVC_SPEAKERS_V1';
const groupsHeader = 'SSVC_GROUPS_V1';
const nearHeader = 'SSVC_NEAR_V1';
const rosterPrefix = 'SSVC_ROSTER_V2 ';

/** 'reject' is a message that is dropped whole, 'ignored' one of a later version. */
export type Unread = 'reject' | 'ignored';

const singles: readonly [prefix: string, parse: (rest: string) => S2CLine | Unread][] = [
  ['SSVC_POSE_V1 ', parsePose],
  [rosterPrefix, parseChanges],
  ['SSVC_MUTE_V1 ', parseMute],
  ['SSVC_RANGES_V1 ', parseRanges],
  ['SSVC_GROUP_RESULT_V1 ', parseResult],
  ['SSVC_RIGHTS_V1 ', parseRights],
  ['SSVC_MIC_V1 ', (rest) => (rest === 'toggle' ? {line: 'mic', what: 'toggle'} : plain(rest) ? 'ignored' : 'reject')],
  ['SSVC_BEAT_V1 ', parseBeat],
];

/** parseS2C reads a server's message. */
export function parseS2C(text: string | Uint8Array): S2CLine | Unread {
  const s = typeof text === 'string' ? text : text.length <= maxChanges ? utf8Decode(text) : null;
  const most = s?.startsWith(rosterPrefix) ? maxChanges : maxS2C;
  if (s === null || s.length > most || (s.length > most / 3 && utf8Length(s) > most)) return 'reject';
  for (const [prefix, parse] of singles) if (s.startsWith(prefix)) return parse(s.slice(prefix.length));
  const end = s.indexOf('\n');
  const row = end < 0 ? s : s.slice(0, end);
  switch (row) {
    case speakersHeader: return parseSpeakers(s, end);
    case groupsHeader: return parseGroups(s, end);
    case nearHeader: return parseNear(s, end);
  }
  return isUUID(row.split(' ', 1)[0]) ? parseRoster(s) : 'ignored';
}

/** rowsOf gives the rows of a message of which each must end in a line end; null where one does not. */
function rowsOf(s: string): string[] | null {
  if (s === '') return [];
  if (!s.endsWith('\n')) return null;
  return s.slice(0, -1).split('\n');
}

const lists = {SSVC_DEAFENED_V1: 'deafened', SSVC_WHISPERING_V1: 'whispering', SSVC_SHOUTING_V1: 'shouting'} as const;

function parseRoster(s: string): Roster | 'reject' {
  const r: Roster = {line: 'roster', people: [], status: false, deafened: [], whispering: [], shouting: []};
  const seen = new Set<string>();
  for (const row of rowsOf(s) ?? ['']) {
    const blank = row.indexOf(' ');
    const word = blank < 0 ? row : row.slice(0, blank);
    const rest = blank < 0 ? '' : row.slice(blank + 1);
    if (blank >= 0 && Object.hasOwn(lists, word)) {
      const ids = rest === '' ? [] : rest.split(',');
      if (seen.has(word) || !ids.every(isUUID)) return 'reject';
      seen.add(word);
      r.status = true;
      r[lists[word as keyof typeof lists]] = ids;
    } else if (!row.startsWith('SSVC_')) { // else a row of a later version
      if (!isUUID(word) || !plain(rest)) return 'reject';
      r.people.push({id: word, name: rest});
    }
  }
  return r;
}

function parseChanges(s: string): Changes | 'reject' {
  const [head, ...rows] = rowsOf(s) ?? [];
  const [from, to, ...more] = head?.split(' ') ?? [];
  const revision = /^[0-9a-f]{16}$/;
  if (more.length || !revision.test(to ?? '') || (from !== absent && !revision.test(from ?? ''))) return 'reject';
  const c: Changes = {line: 'changes', from: from === absent ? null : from!, to: to!, put: [], gone: []};
  const seen = new Set<string>();
  for (const row of rows) {
    const [kind, id, deaf, tier, name, ...rest] = row.split(' ');
    if (!isUUID(id) || seen.has(id)) return 'reject';
    seen.add(id);
    const deafened = readFlag(deaf);
    if (kind === 'D' && deaf === undefined && c.from !== null) {
      c.gone.push(id);
    } else if (kind === 'P' && deafened !== null && isTier(tier) && name !== undefined && plain(name) && !rest.length) {
      c.put.push({id, name, deafened, tier});
    } else {
      return 'reject';
    }
  }
  return c;
}

const isTier = (s: string | undefined): s is Tier => s === 'normal' || s === 'whisper' || s === 'shout';

function parsePose(s: string): Pose | 'reject' {
  const words = s.split(' ');
  const world = decodeText(words[4]);
  const [yaw, x, y, z] = words.slice(0, 4).map((w) => (/^-?(?:\d+\.?\d*|\.\d+)$/.test(w) ? Number(w) : NaN));
  if (words.length !== 5 || world === null) return 'reject';
  for (const v of [yaw, x, y, z]) if (!(Math.abs(v!) <= maxCoordinate)) return 'reject';
  return {line: 'pose', yaw: yaw!, x: x!, y: y!, z: z!, world};
}

function parseSpeakers(s: string, end: number): Speakers | 'reject' {
  const rows = end < 0 || s.length > maxSpeakersChars ? null : rowsOf(s.slice(end + 1));
  if (!rows || rows.length > maxSpeakers) return 'reject';
  const list: Person[] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    const [id, encoded, ...more] = row.split(' ');
    const name = decodeText(encoded);
    if (!isUUID(id) || more.length || name === null || !validSpeakerName(name) || seen.has(id)) return 'reject';
    seen.add(id);
    list.push({id, name});
  }
  return {line: 'speakers', list};
}

function parseGroups(s: string, end: number): Groups | 'reject' {
  const rows = end < 0 ? null : rowsOf(s.slice(end + 1));
  if (!rows) return 'reject';
  const g: Groups = {line: 'groups', may: {use: false, create: false, admin: false, invite: false}, invites: [], groups: [], members: []};
  let told = false;
  const groups = new Set<string>(), invited = new Set<string>(), members = new Set<string>();
  for (const row of rows) {
    const [kind, ...w] = row.split(' ');
    if (kind === 'C' && w.length === 4 && !told) {
      told = true;
      const on = w.map(readFlag);
      if (on.includes(null)) return 'reject';
      g.may = {use: on[0]!, create: on[1]!, admin: on[2]!, invite: on[3]!};
    } else if (kind === 'I' && w.length === 3) {
      const seconds = readNumber(w[2]);
      if (!isUUID(w[0]) || !isUUID(w[1]) || seconds === null || invited.has(w[0]) || invited.size === maxInvitations) return 'reject';
      invited.add(w[0]);
      g.invites.push({group: w[0], from: w[1], seconds});
    } else if (kind === 'G' && w.length === 6) {
      const locked = readFlag(w[2]), persistent = readFlag(w[3]);
      const owner = w[4] === absent ? zeroUUID : w[4];
      const name = decodeText(w[5]);
      if (!isUUID(w[0]) || !isGroupType(w[1]) || locked === null || persistent === null || !isUUID(owner)) return 'reject';
      if (name === null || !validGroupName(name) || groups.has(w[0])) return 'reject';
      groups.add(w[0]);
      g.groups.push({id: w[0], type: w[1], locked, persistent, owner, name});
    } else if (kind === 'M' && w.length === 2) {
      if (!isUUID(w[0]) || !isUUID(w[1]) || members.has(w[1])) return 'reject'; // a player is in one group
      members.add(w[1]);
      g.members.push({group: w[0], player: w[1]});
    } else {
      return 'reject';
    }
  }
  return told && g.members.every((m) => groups.has(m.group)) ? g : 'reject';
}

function parseResult(s: string): GroupResult | Unread {
  const [verb, code, ...more] = s.split(' ');
  if (more.length || !plain(verb!) || code === undefined || !plain(code)) return 'reject';
  return isVerb(verb) && codes.includes(code as Code) ? {line: 'result', verb, code: code as Code} : 'ignored';
}

function parseMute(s: string): Mute | 'reject' {
  const [kind, left, encoded, ...more] = s.split(' ');
  const seconds = left === absent ? null : readNumber(left);
  const reason = encoded === absent ? '' : decodeText(encoded);
  if (more.length || !/^[012]$/.test(kind!) || (left !== absent && seconds === null) || reason === null) return 'reject';
  if (encoded !== absent && !validReason(reason)) return 'reject';
  if (kind === '0') return {line: 'mute', kind: 0, seconds: null, reason: ''}; // nothing lapses, for no reason
  return {line: 'mute', kind: kind === '1' ? 1 : 2, seconds, reason};
}

function parseRanges(s: string): Ranges | 'reject' {
  const [whisper, shout, ...more] = s.split(' ').map(readFlag);
  return more.length || whisper == null || shout == null ? 'reject' : {line: 'ranges', whisper, shout};
}

function parseRights(s: string): Rights | 'reject' {
  const [speak, listen, clips, ...more] = s.split(' ').map(readFlag);
  return more.length || speak == null || listen == null || clips == null ? 'reject' : {line: 'rights', speak, listen, clips};
}

function parseBeat(s: string): Beat | 'reject' {
  const [number, count, ...more] = s.split(' ');
  const n = readNumber(number), accepted = readNumber(count, Number.MAX_SAFE_INTEGER);
  return more.length || n === null || accepted === null ? 'reject' : {line: 'beat', n, accepted};
}

function parseNear(s: string, end: number): Near | 'reject' {
  const rows = end < 0 ? null : rowsOf(s.slice(end + 1));
  if (!rows || rows.length > maxNear) return 'reject';
  const people: Near['people'] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    const [id, ...words] = row.split(' ');
    if (!isUUID(id) || words.length !== 3 || seen.has(id)) return 'reject';
    const [dx, dy, dz] = words.map((w) => (/^(?:0|-?[1-9][0-9]{0,9})$/.test(w) ? Number(w) : NaN));
    for (const v of [dx, dy, dz]) if (!(Math.abs(v!) <= maxAway)) return 'reject';
    seen.add(id);
    people.push({id, dx: dx!, dy: dy!, dz: dz!});
  }
  return {line: 'near', people};
}

/** encodeS2C writes a message as a server does. */
export function encodeS2C(l: S2CLine): string {
  const owner = (id: string): string => (id === zeroUUID ? absent : id);
  switch (l.line) {
    case 'roster':
      return l.people.map((p) => `${p.id} ${p.name}\n`).join('') +
        (l.status ? Object.entries(lists).map(([word, key]) => `${word} ${l[key].join(',')}\n`).join('') : '');
    case 'changes':
      return `${rosterPrefix}${l.from ?? absent} ${l.to}\n` + l.put.map((p) => `P ${p.id} ${writeFlag(p.deafened)} ${p.tier} ${p.name}\n`).join('') +
        l.gone.map((id) => `D ${id}\n`).join('');
    case 'pose': {
      const hundredths = (v: number): number => Math.round(v * 100) / 100 + 0;
      let yaw = hundredths(l.yaw % 360);
      if (yaw >= 180) yaw -= 360;
      else if (yaw < -180) yaw += 360;
      return `SSVC_POSE_V1 ${[yaw, l.x, l.y, l.z].map((v) => hundredths(v).toFixed(2)).join(' ')} ${encodeText(l.world)}`;
    }
    case 'speakers': return `${speakersHeader}\n` + l.list.map((p) => `${p.id} ${encodeText(p.name)}\n`).join('');
    case 'groups':
      return `${groupsHeader}\nC ${[l.may.use, l.may.create, l.may.admin, l.may.invite].map(writeFlag).join(' ')}\n` +
        l.invites.map((i) => `I ${i.group} ${i.from} ${i.seconds}\n`).join('') +
        l.groups.map((g) => `G ${g.id} ${g.type} ${writeFlag(g.locked)} ${writeFlag(g.persistent)} ${owner(g.owner)} ${encodeText(g.name)}\n`).join('') +
        l.members.map((m) => `M ${m.group} ${m.player}\n`).join('');
    case 'result': return `SSVC_GROUP_RESULT_V1 ${l.verb} ${l.code}`;
    case 'mute': return `SSVC_MUTE_V1 ${l.kind} ${l.seconds ?? absent} ${encodeText(l.reason)}`;
    case 'ranges': return `SSVC_RANGES_V1 ${writeFlag(l.whisper)} ${writeFlag(l.shout)}`;
    case 'near': return `${nearHeader}\n` + l.people.map((p) => `${p.id} ${p.dx} ${p.dy} ${p.dz}\n`).join('');
    case 'rights': return `SSVC_RIGHTS_V1 ${[l.speak, l.listen, l.clips].map(writeFlag).join(' ')}`;
    case 'mic': return `SSVC_MIC_V1 ${l.what}`;
    case 'beat': return `SSVC_BEAT_V1 ${l.n} ${l.accepted}`;
  }
}
