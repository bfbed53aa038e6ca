import {describe, expect, test} from 'vitest';
import {de} from './de.ts';
import {en, type Key, type Text} from './en.ts';
import {clock, english, parts, preferred, pseudo, write} from './format.ts';

const german = {code: 'de', table: de};
const forms = (t: Text): string[] => (typeof t === 'string' ? [t] : [t.one, t.other]);
const holes = (s: string): string[] => (s.match(/\{\w+\}/g) ?? []).sort();
const marks = (s: string): number => (s.match(/\*\*|`/g) ?? []).length;

describe('German has every text, with the same holes and mark-up', () => {
  test('the same keys', () => expect(Object.keys(de).sort()).toEqual(Object.keys(en).sort()));
  test.each(Object.keys(en) as Key[])('%s', (key) => {
    const e = forms(en[key]), d = forms(de[key]);
    expect(d.length).toBe(e.length);
    e.forEach((text, i) => {
      expect(holes(d[i]!)).toEqual(holes(text));
      expect(marks(d[i]!)).toBe(marks(text));
      expect(marks(text) % 2).toBe(0);
      expect(d[i]!.trim()).toBe(d[i]);
    });
  });
});

test('plurals and numbers are the language’s', () => {
  expect(write(english, 'row.blocks', {n: 1})).toBe('1 block');
  expect(write(english, 'row.blocks', {n: 0})).toBe('0 blocks');
  expect(write(english, 'row.blocks', {n: 12345})).toBe('12,345 blocks');
  expect(write(german, 'row.blocks', {n: 1})).toBe('1 Block');
  expect(write(german, 'row.blocks', {n: 12345})).toBe('12.345 Blöcke');
});

test('what comes from outside is told apart, and is no mark-up', () => {
  expect(parts(english, 'join.hello', {name: '**.Penny** `x` {name}'})).toEqual([
    {text: 'Hello, ', mark: 'plain', hole: false},
    {text: '**.Penny** `x` {name}', mark: 'plain', hole: true},
  ]);
  expect(parts(english, 'landing.step1', {network: 'N', address: 'a'}).map((p) => [p.text, p.mark])).toEqual([
    ['Join ', 'plain'], ['N', 'bold'], [' in Minecraft: ', 'plain'], ['a', 'code'],
  ]);
});

test('clocks', () => expect([0, 0.2, 59, 61, 272, 3600, -5].map(clock)).toEqual(['0:00', '0:01', '0:59', '1:01', '4:32', '1:00:00', '0:00']));

test('the first language that there is', () => {
  expect(preferred(['fr-FR', 'de-AT', 'en'], ['en', 'de'])).toBe('de');
  expect(preferred(['fr'], ['en', 'de'])).toBe('en');
  expect(preferred([], ['en'])).toBe('en');
});

test('a longer language keeps its holes', () => {
  const long = pseudo(en);
  expect(forms(long['row.blocks'])[0]).toContain('{n}');
  expect(forms(long['join.go'])[0]!.length).toBeGreaterThan(en['join.go'].length * 1.3);
});
