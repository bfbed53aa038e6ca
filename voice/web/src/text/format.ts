import {en, type Key, type Table} from './en.ts';

// From a key and what fills its holes to a text, in the language that is in use.

export type Holes = Record<string, string | number>;

/** Part is a piece of a text with its mark-up; hole is what came from outside, to be isolated as a name is. */
export interface Part {
  text: string;
  mark: 'plain' | 'bold' | 'code';
  hole: boolean;
}

export interface Language {
  code: string;
  table: Table;
}

export const english: Language = {code: 'en', table: en};

/** write fills a text's holes. Numbers are written as the language does. */
export function write(l: Language, key: Key, holes: Holes = {}): string {
  return parts(l, key, holes).map((p) => p.text).join('');
}

export function parts(l: Language, key: Key, holes: Holes = {}): Part[] {
  const text = l.table[key];
  const form = typeof text === 'string' ? text : new Intl.PluralRules(l.code).select(Number(holes['n'])) === 'one' ? text.one : text.other;
  const out: Part[] = [];
  let mark: Part['mark'] = 'plain';
  for (const piece of form.split(/(\*\*|`|\{\w+\})/)) {
    if (piece === '') continue;
    if (piece === '**') mark = mark === 'bold' ? 'plain' : 'bold';
    else if (piece === '`') mark = mark === 'code' ? 'plain' : 'code';
    else if (/^\{\w+\}$/.test(piece)) {
      const value = holes[piece.slice(1, -1)];
      out.push({text: typeof value === 'number' ? new Intl.NumberFormat(l.code).format(value) : (value ?? ''), mark, hole: typeof value === 'string'});
    } else out.push({text: piece, mark, hole: false});
  }
  return out;
}

/** clock writes seconds as m:ss. */
export const clock = (seconds: number): string => {
  const s = Math.max(0, Math.ceil(seconds));
  return s < 3600 ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}` : `${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, '0')}:${String(s % 60).padStart(2, '0')}`;
};

/** preferred picks the first language of the list that there is a table for. */
export function preferred(wanted: readonly string[], there: readonly string[]): string {
  for (const w of wanted) {
    const base = w.toLowerCase().split('-')[0]!;
    if (there.includes(base)) return base;
  }
  return 'en';
}

/** pseudo makes a language that is 40 % longer, to see what does not fit. */
export function pseudo(t: Table): Table {
  const longer = (s: string): string => `${s}${'·'.repeat(Math.ceil(s.length * 0.4))}`;
  return Object.fromEntries(Object.entries(t).map(([k, v]) => [k, typeof v === 'string' ? longer(v) : {one: longer(v.one), other: longer(v.other)}])) as unknown as Table;
}
