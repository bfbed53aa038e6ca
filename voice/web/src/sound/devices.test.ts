import {describe, expect, test} from 'vitest';
import {choose, faultOf, OutputWatch, plan, Reopening, type Device} from './devices.ts';

const headset: Device = {id: 'h', label: 'Headset'}, builtIn: Device = {id: 'b', label: 'Built-in'}, renamed: Device = {id: 'h2', label: 'Headset'};

test('a wish is found by id, else by label, else it is the default', () => {
  expect(choose(headset, [builtIn, headset])).toBe('h');
  expect(choose(headset, [builtIn, renamed])).toBe('h2');
  expect(choose(headset, [builtIn])).toBe('');
  expect(choose(null, [headset])).toBe('');
  expect(choose({id: 'x', label: ''}, [{id: 'y', label: ''}])).toBe(''); // before permission no device has a name
});

describe('the plan', () => {
  test.each([
    ['nothing in use', headset, null, [headset], {change: 'none'}],
    ['all as it was', headset, headset, [headset, builtIn], {change: 'none'}],
    ['the one in use is unplugged', headset, headset, [builtIn], {change: 'lost', use: ''}],
    ['the wished one comes back', headset, builtIn, [headset, builtIn], {change: 'back', use: 'h'}],
    ['it comes back under another id', headset, builtIn, [renamed, builtIn], {change: 'back', use: 'h2'}],
    ['the default is unplugged', null, builtIn, [headset], {change: 'lost', use: ''}],
    ['another is plugged in', null, builtIn, [headset, builtIn], {change: 'none'}],
    ['the wished one is still away', headset, builtIn, [builtIn], {change: 'none'}],
    ['ids changed under the one in use', headset, headset, [renamed], {change: 'none'}],
    ['everything is gone', headset, headset, [], {change: 'lost', use: ''}],
  ] as const)('%s', (_, wish, using, there, want) => expect(plan(wish, using, there)).toEqual(want));
});

describe('why there is no microphone', () => {
  test.each([
    ['NotAllowedError', 'Permission dismissed', 'dismissed'],
    ['NotAllowedError', 'Permission denied', 'denied'],
    ['NotAllowedError', 'Permission denied by system', 'system'],
    ['NotFoundError', 'Requested device not found', 'absent'],
    ['OverconstrainedError', '', 'absent'],
    ['NotReadableError', 'Could not start audio source', 'busy'],
    ['NotReadableError', 'Concurrent mic process limit.', 'busy'],
    ['AbortError', '', 'busy'],
    ['TypeError', 'x', 'other'],
  ])('%s %s', (name, message, want) => expect(faultOf({name, message})).toBe(want));
  test('anything thrown', () => {
    for (const e of [undefined, null, 'x', 7]) expect(faultOf(e)).toBe('other');
  });
});

test('five reopenings a minute, then a button', () => {
  const r = new Reopening();
  expect(Array.from({length: 20}, (_, i) => r.may(i * 500)).filter(Boolean).length).toBe(5);
  expect(r.may(61_000)).toBe(true);
});

describe('the output by its clock', () => {
  test('a clock that goes is fine', () => {
    const w = new OutputWatch();
    for (let t = 0; t < 60; t++) expect(w.look(t, 'running', t * 1000)).toBe('fine');
  });

  test('a clock that stands, though it says running: default sink, then a new context, then a tap', () => {
    const w = new OutputWatch();
    const said = Array.from({length: 8}, (_, t) => w.look(t < 2 ? t : 1, 'running', t * 1000)).filter((v) => v !== 'fine');
    expect(said.slice(0, 3)).toEqual(['sink', 'context', 'tap']);
  });

  test('a suspended context is a stall though its clock was read late', () => {
    const w = new OutputWatch();
    w.look(0, 'running', 0);
    expect(w.look(0.9, 'suspended', 1000)).toBe('sink');
  });

  test('an interrupted one is not asked for', () => {
    const w = new OutputWatch();
    w.look(0, 'running', 0);
    expect(w.look(0, 'interrupted', 1000)).toBe('tap');
  });

  test('a page that slept measures again', () => {
    const w = new OutputWatch();
    w.look(0, 'running', 0);
    expect(w.look(0.1, 'running', 60_000)).toBe('fine');
    expect(w.look(1.1, 'running', 61_000)).toBe('fine');
  });

  test('one hiccup of less than a second is let pass, and forgotten', () => {
    const w = new OutputWatch();
    w.look(0, 'running', 0);
    expect(w.look(0.1, 'running', 900)).toBe('fine');
    for (let t = 1; t < 20; t++) expect(w.look(t, 'running', t * 1000)).toBe('fine');
  });
});
