import {expect, test} from 'vitest';
import type {State} from './line.ts';
import {Roll} from './roll.ts';

const who = (id: string, more: Partial<State> = {}): State => ({id, name: id, deafened: false, tier: 'normal', ...more});
const names = (r: Roll, from: string | null, to: string, put: State[], gone: string[] = []): string[] | undefined =>
  r.apply({line: 'changes', from, to, put, gone})?.people.map((p) => p.name);

test('changes lead from one roster to the next, and never make one of two', () => {
  const r = new Roll();
  expect(names(r, '1', '2', [who('ann')])).toBeUndefined(); // to nothing
  expect(names(r, null, '1', [who('ann'), who('bo', {deafened: true})])).toEqual(['ann', 'bo']);
  expect(names(r, '1', '2', [who('cy', {tier: 'whisper'})], ['ann'])).toEqual(['bo', 'cy']);
  expect(names(r, '1', '3', [], ['bo'])).toBeUndefined(); // to another roster
  expect(r.apply({line: 'changes', from: '2', to: '4', put: [who('bo', {tier: 'shout'})], gone: []})).toEqual({
    line: 'roster', status: true, people: [{id: 'bo', name: 'bo'}, {id: 'cy', name: 'cy'}], deafened: [], whispering: ['cy'], shouting: ['bo'],
  });
  expect(names(r, null, '4', [who('di')])).toEqual(['di']);
});
