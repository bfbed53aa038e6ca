import {readFileSync} from 'node:fs';
import {expect, test} from 'vitest';
import {base, c2sFormat, fromToken, headerOf, negotiate, newest, none, offers, s2cFormat, toToken, type Caps} from './caps.ts';

const full = 'socketsvc.audio-2.status-1.spatial-1.speakers-1.soundboard-2.groups-2.group-edit-1.pose-1.page-1.roster-2';

test('the full token', () => {
  expect(toToken(newest)).toBe(full);
  expect(fromToken(full)).toEqual(newest);
});

test('tokens are read in their order and nothing else', () => {
  for (const bad of ['', 'socketsv', 'Socketsvc', 'socketsvc.', 'socketsvc.audio', 'socketsvc.audio-0', 'socketsvc.audio-22', 'socketsvc.audio-2.audio-2',
    'socketsvc.status-1.audio-2', 'socketsvc.video-1', 'socketsvc.audio-2.video-1', 'chat']) expect(fromToken(bad)).toBeNull();
  expect(fromToken('socketsvc.groups-2.group-edit-1')).toEqual({...none, groups: 2, groupEdit: 1});
  expect(fromToken(base)).toEqual(none);
});

// The words and headers come from the Go table, in its order.
test('the words are those of the server', () => {
  const go = readFileSync(new URL('../../../../handshake/caps/caps.go', import.meta.url), 'utf8');
  const rows = [...go.matchAll(/\{"(X-SocketSVC-[\w-]+)", "([\w-]+)",/g)];
  expect(rows.length).toBeGreaterThanOrEqual(8);
  const words = toToken(newest).split('.').slice(1).map((w) => w.replace(/-\d$/, ''));
  expect(words.slice(0, rows.length)).toEqual(rows.map((r) => r[2]));
  const keys = Object.keys(newest) as (keyof Caps)[];
  expect(keys.slice(0, rows.length).map(headerOf)).toEqual(rows.map((r) => r[1]));
});

test('nothing is granted without what it builds on', () => {
  expect(negotiate(newest, newest)).toEqual(newest);
  expect(negotiate(newest, {...newest, audio: 0})).toEqual({...none, status: 1, groups: 2, groupEdit: 1, roster: 2});
  expect(negotiate(newest, {...newest, groups: 0})).toEqual({...newest, groups: 0, groupEdit: 0});
  expect(negotiate({...newest, soundboard: 1}, newest).soundboard).toBe(1);
  expect(negotiate({...newest, spatial: 0}, newest)).toEqual({...none, audio: 2, status: 1, groups: 2, groupEdit: 1, roster: 2});
});

test('the list of offers begins with everything, ends with the base, and fits a header', () => {
  const list = offers();
  expect(list[0]).toBe(full);
  expect(list.at(-1)).toBe(base);
  expect(new Set(list).size).toBe(list.length);
  expect(list.join(', ').length).toBeLessThan(1024);
  for (const t of list) expect(negotiate(fromToken(t)!, newest)).toEqual(fromToken(t));
  // A server with any of these switched off still finds a token that has all the rest.
  for (const page of [1, 0]) for (const groups of [2, 0]) for (const soundboard of [2, 0]) {
    const offered = {...newest, page, roster: page ? 2 : 0, groups, groupEdit: groups ? 1 : 0, soundboard};
    expect(list.find((t) => toToken(negotiate(fromToken(t)!, offered)) === t)).toBe(toToken(offered));
  }
});

test('formats follow what was granted', () => {
  expect([c2sFormat(newest), s2cFormat(newest)]).toEqual(['board', 'spatial']);
  expect([c2sFormat({...none, audio: 2}), s2cFormat({...none, audio: 2})]).toEqual(['v2', 'v2']);
  expect([c2sFormat(none), s2cFormat(none)]).toEqual(['v1', 'v1']);
});
