import {expect, test} from 'vitest';
import {Latest} from './latest.ts';

test('the last choice goes out, and no more often than it may', () => {
  const l = new Latest<boolean>(false, 1000);
  expect(l.due(0)).toBeNull();
  l.want = true;
  expect(l.due(0)).toBe(true);
  for (let t = 1; t < 1000; t++) {
    l.want = t % 2 === 0;
    expect(l.due(t)).toBeNull();
  }
  expect(l.due(1000)).toBe(false);
  l.want = true;
  l.want = false;
  expect(l.due(3000)).toBeNull(); // back where it was
});

test('a new connection is told again', () => {
  const l = new Latest('normal', 100);
  l.want = 'shout';
  expect(l.due(0)).toBe('shout');
  l.renew('normal');
  expect(l.due(1)).toBe('shout');
  l.want = 'normal';
  l.renew('normal');
  expect(l.due(1000)).toBeNull();
});
