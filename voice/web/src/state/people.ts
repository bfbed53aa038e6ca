import type {Near, Roster} from '../protocol/line.ts';
import type {Key} from '../text/en.ts';

// Who is near, in what direction, in what order, and what is said of them.

export interface Row {
  id: string;
  name: string;
  blocks: number | null; // rounded; null where the server does not say
  dx: number;
  dy: number;
  dz: number;
  status: Key;
  speaking: boolean;
  inGroup: boolean;
}

export interface Facts {
  me: string;
  roster: Roster | null;
  near: Near | null;
  range: number;
  speaking: ReadonlySet<string>; // whose sound is played
  recent: ReadonlySet<string>; // who was heard of late, for servers that do not say who is near
  muted: ReadonlySet<string>; // by this person
  group: ReadonlySet<string>; // members of the own group
}

export const distance = (p: {dx: number; dy: number; dz: number}): number => Math.hypot(p.dx, p.dy, p.dz);

/** statusOf is a row's second line: the first that holds. */
export function statusOf(id: string, f: Facts, blocks: number | null, inGroup: boolean): Key {
  const speaking = f.speaking.has(id);
  if (f.muted.has(id)) return 'row.muted';
  if (f.roster?.whispering.includes(id) && speaking) return 'row.whispers';
  if (f.roster?.shouting.includes(id) && speaking) return 'row.shouts';
  if (speaking) return 'row.speaking';
  if (f.roster?.deafened.includes(id)) return 'row.deafened';
  if (blocks !== null && blocks > f.range && !inGroup) return 'row.far';
  if (blocks === null && inGroup) return 'row.group';
  return 'row.quiet';
}

export interface Lists {
  near: Row[]; // in earshot
  group: Row[];
  others: Row[]; // with voice, elsewhere or too far
}

export function listsOf(f: Facts): Lists {
  const near = new Map(f.near?.people.map((p) => [p.id, p]));
  const lists: Lists = {near: [], group: [], others: []};
  for (const {id, name} of f.roster?.people ?? []) {
    if (id === f.me) continue;
    const at = near.get(id), inGroup = f.group.has(id);
    const blocks = at ? Math.round(distance(at)) : null;
    const row: Row = {
      id, name, blocks, dx: at?.dx ?? 0, dy: at?.dy ?? 0, dz: at?.dz ?? 0, status: statusOf(id, f, blocks, inGroup), speaking: f.speaking.has(id), inGroup,
    };
    const close = blocks !== null ? blocks <= f.range || row.speaking : f.near === null && (row.speaking || f.recent.has(id));
    if (inGroup) lists.group.push(row);
    else (close ? lists.near : lists.others).push(row);
  }
  return lists;
}

export const mostShown = 200;

const worth = (r: Row): number => r.blocks ?? Infinity;
const byName = (a: Row, b: Row): number => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1);

/**
 * Order keeps a list calm: nearest first, sorted again each two seconds at most, only when somebody is three blocks out of place, and
 * never while a pointer, the focus or a slider is in it. Who speaks does not jump.
 */
export class Order {
  private ids: string[] = [];
  private at = -Infinity;
  private sortedBy: 'near' | 'name' = 'near';

  sort(rows: readonly Row[], by: 'near' | 'name', busy: boolean, now: number): Row[] {
    const byId = new Map(rows.map((r) => [r.id, r]));
    const kept = this.ids.filter((id) => byId.has(id)).map((id) => byId.get(id)!);
    const known = new Set(this.ids);
    const fresh = rows.filter((r) => !known.has(r.id));
    const compare = by === 'name' ? byName : (a: Row, b: Row): number => worth(a) - worth(b) || byName(a, b);
    let out = [...kept];
    for (const r of fresh.sort(compare)) {
      const before = out.findIndex((o) => compare(r, o) < 0);
      out.splice(busy || before < 0 ? out.length : before, 0, r);
    }
    const forced = by !== this.sortedBy || this.ids.length === 0;
    if (forced || (!busy && now - this.at >= 2000 && this.wrong(out, by))) {
      out = [...rows].sort(compare);
      this.at = now;
      this.sortedBy = by;
    }
    this.ids = out.map((r) => r.id);
    return out;
  }

  private wrong(rows: readonly Row[], by: 'near' | 'name'): boolean {
    let most = -Infinity;
    for (const [i, r] of rows.entries()) {
      if (by === 'name' ? i > 0 && byName(rows[i - 1]!, r) > 0 : worth(r) <= most - 3) return true;
      most = Math.max(most, worth(r));
    }
    return false;
  }
}

const eight: readonly Key[] = ['dir.ahead', 'dir.aheadRight', 'dir.right', 'dir.behindRight', 'dir.behind', 'dir.behindLeft', 'dir.left', 'dir.aheadLeft'];

/** turnOf is the angle at which something stands for the listener: 0 ahead, 90 right. Yaw is the game's. */
export function turnOf(dx: number, dz: number, yaw: number): number {
  const bearing = (Math.atan2(-dx, dz) * 180) / Math.PI; // as a yaw that would look at it
  return (((bearing - yaw) % 360) + 360) % 360;
}

/** directionOf gives one of eight words, or that it is over or under, past four blocks of height and more so than to the side. */
export function directionOf(p: {dx: number; dy: number; dz: number}, yaw: number): Key {
  const flat = Math.hypot(p.dx, p.dz);
  if (Math.abs(p.dy) > 4 && Math.abs(p.dy) >= flat) return p.dy > 0 ? 'dir.above' : 'dir.below';
  if (flat < 1) return 'dir.here';
  return eight[Math.round(turnOf(p.dx, p.dz, yaw) / 45) % 8]!;
}

export interface Hearing {
  near: Near | null;
  roster: Roster | null;
  range: number;
  tier: 'normal' | 'whisper' | 'shout';
  group: ReadonlySet<string>;
  groupType: 'NORMAL' | 'OPEN' | 'ISOLATED' | null;
  me: string;
}

/** hearersOf counts who would hear this person now: not the deafened, and by the rules of the group. Null where it cannot be known. */
export function hearersOf(h: Hearing): number | null {
  if (!h.roster || (!h.near && h.groupType !== 'NORMAL' && h.groupType !== 'ISOLATED')) return null;
  const deaf = new Set(h.roster.deafened);
  const reach = h.range * (h.tier === 'whisper' ? 0.5 : h.tier === 'shout' ? 2 : 1);
  const out = new Set(h.group);
  if (h.groupType === null || h.groupType === 'OPEN') for (const p of h.near?.people ?? []) if (distance(p) < reach) out.add(p.id);
  out.delete(h.me);
  return [...out].filter((id) => !deaf.has(id)).length;
}
