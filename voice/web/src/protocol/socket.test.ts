import {describe, expect, test} from 'vitest';
import {askEvery, askFor, beatEvery, deadAfter, joinWithin, Machine, steadyAfter, type Action, type Event} from './socket.ts';

// A machine with a clock that the test winds.
function machine(beats = true) {
  const m = new Machine(() => 0.5); // no spread
  m.beats = beats;
  let now = 1000;
  const done: Action[] = [];
  const send = (e: Event): Action[] => {
    const actions = m.handle(e, now);
    done.push(...actions);
    return actions;
  };
  return {
    m, done, send,
    now: () => now,
    state: () => m.connection.state,
    // pass lets time go by in ticks of 100 ms.
    pass(ms: number, each?: (actions: Action[]) => void) {
      for (const end = now + ms; now < end; ) {
        now = Math.min(end, now + 100);
        const actions = send({event: 'tick'});
        each?.(actions);
      }
    },
    connect() {
      send({event: 'join'});
      send({event: 'token'});
      send({event: 'opened'});
      send({event: beats ? 'answered' : 'proved'});
    },
    // answering lets time go by while the server answers every beat.
    answering(ms: number) {
      this.pass(ms, (actions) => actions.some((a) => a.do === 'beat') && send({event: 'answered'}));
    },
  };
}

test('a click mints a token, then opens, then proves', () => {
  const s = machine();
  expect(s.send({event: 'join'})).toEqual([{do: 'token'}]);
  expect(s.send({event: 'join'})).toEqual([]); // a second click changes nothing
  expect(s.send({event: 'token'})).toEqual([{do: 'open'}]);
  expect(s.send({event: 'opened'})).toEqual([{do: 'beat', n: 1}]);
  expect(s.send({event: 'proved'})).toEqual([]);
  expect(s.m.connection).toMatchObject({state: 'joining', step: 'proving'}); // bytes must have gone both ways
  s.pass(300);
  s.send({event: 'answered'});
  expect(s.state()).toBe('on');
  expect(s.m.roundTrip).toBe(300);
});

test('without beats the first word of the server proves', () => {
  const s = machine(false);
  s.connect();
  expect(s.state()).toBe('on');
  s.pass(60_000);
  expect(s.state()).toBe('on');
  expect(s.done.filter((a) => a.do === 'beat')).toEqual([]);
});

test('it beats every two seconds, one answer at a time', () => {
  const s = machine();
  s.connect();
  s.answering(20_000);
  const beats = s.done.filter((a) => a.do === 'beat');
  expect(beats.length).toBe(1 + 20_000 / beatEvery);
  expect(s.state()).toBe('on');
});

test('no answer for five seconds is a lost connection', () => {
  const s = machine();
  s.connect();
  s.answering(10_000);
  s.pass(deadAfter + beatEvery);
  expect(s.done.at(-1)).toEqual({do: 'close', code: 4000});
  expect(s.m.connection).toMatchObject({state: 'waiting', why: 'lost'});
  s.send({event: 'closed', code: 1006}); // of the socket that was given up: nothing more
  expect(s.state()).toBe('waiting');
});

test('joining that takes ten seconds waits and tries again', () => {
  for (const upTo of [['join'], ['join', 'token'], ['join', 'token', 'opened']] as const) {
    const s = machine();
    for (const event of upTo) s.send({event});
    s.pass(joinWithin);
    expect(s.m.connection).toMatchObject({state: 'waiting', why: 'slow'});
    s.pass(600);
    expect(s.done.at(-1)).toEqual({do: 'token'});
  }
});

describe('close codes', () => {
  test.each([
    [1000, 'waiting'], [1001, 'waiting'], [1006, 'waiting'], [1011, 'waiting'], [1005, 'waiting'], [4001, 'elsewhere'], [4003, 'away'],
    [1003, 'stopped'], [1007, 'stopped'], [1009, 'stopped'], [4008, 'stopped'],
  ])('%d → %s', (code, state) => {
    const s = machine();
    s.connect();
    s.send({event: 'closed', code});
    expect(s.state()).toBe(state);
  });
});

test('what is final stays until a click', () => {
  for (const code of [4001, 1003, 1007, 1009, 4008]) {
    const s = machine();
    s.connect();
    s.send({event: 'closed', code});
    const before = s.done.length;
    s.pass(120_000);
    s.send({event: 'online'});
    s.send({event: 'woken'});
    expect(s.done.length).toBe(before);
    expect(s.send({event: 'join'})).toEqual([{do: 'token'}]);
  }
});

test('the back-off grows to thirty seconds and is short again after thirty on', () => {
  const s = machine();
  s.connect();
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    s.send({event: 'closed', code: 1006});
    const c = s.m.connection;
    if (c.state !== 'waiting') throw new Error(c.state);
    waits.push(c.at - s.now());
    s.pass(c.at - s.now());
    s.send({event: 'token'});
    s.send({event: 'opened'});
    s.send({event: 'answered'});
  }
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15000, 30000, 30000]);
  s.answering(steadyAfter);
  s.send({event: 'closed', code: 1001});
  expect(s.m.connection).toMatchObject({state: 'waiting', at: s.now() + 500});
});

test('fifty clients of one restart come back apart from each other', () => {
  let seed = 7;
  const at = Array.from({length: 50}, () => {
    const m = new Machine(() => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff);
    m.handle({event: 'join'}, 0);
    m.handle({event: 'token'}, 0);
    m.handle({event: 'opened'}, 0);
    m.handle({event: 'closed', code: 1001}, 0);
    return m.connection.state === 'waiting' ? m.connection.at : NaN;
  });
  expect(Math.min(...at)).toBeGreaterThanOrEqual(400);
  expect(Math.max(...at)).toBeLessThanOrEqual(600);
  for (let t = 400; t < 600; t += 50) expect(at.filter((v) => v >= t && v < t + 50).length).toBeLessThan(25);
});

test('the network coming back, being seen again and waking try at once', () => {
  for (const event of ['online', 'woken'] as const) {
    const s = machine();
    s.connect();
    s.send({event: 'closed', code: 1006});
    expect(s.send({event})).toEqual([{do: 'token'}]);
  }
});

test('waking with an open socket drops it, for what it holds is of the past', () => {
  const s = machine();
  s.connect();
  expect(s.send({event: 'woken'})).toEqual([{do: 'close', code: 4000}, {do: 'token'}]);
  s.send({event: 'closed', code: 4000}); // of the old one
  expect(s.m.connection).toMatchObject({state: 'joining', step: 'token'});
});

test('sockets that never open name what is between', () => {
  const s = machine();
  s.send({event: 'join'});
  const whys: string[] = [];
  for (let i = 0; i < 3; i++) {
    s.send({event: 'token'});
    s.send({event: 'closed', code: 1006});
    const c = s.m.connection;
    if (c.state !== 'waiting') throw new Error(c.state);
    whys.push(c.why);
    s.pass(c.at - s.now());
  }
  expect(whys).toEqual(['lost', 'lost', 'blocked']);
});

describe('refusals', () => {
  test.each(['session_ended', 'no_permission', 'voice_off'] as const)('%s ends it', (code) => {
    const s = machine();
    s.send({event: 'join'});
    s.send({event: 'refused', code});
    expect(s.m.connection).toEqual({state: 'ended', why: code});
    s.pass(60_000);
    expect(s.done.length).toBe(1);
  });

  test('busy waits as long as the server says', () => {
    const s = machine();
    s.send({event: 'join'});
    s.send({event: 'refused', code: 'busy', wait: 7});
    expect(s.m.connection).toMatchObject({state: 'waiting', why: 'busy', at: s.now() + 7000});
  });

  test('no answer at all is a lost connection', () => {
    const s = machine();
    s.send({event: 'join'});
    s.send({event: 'refused', code: 'unreachable'});
    expect(s.m.connection).toMatchObject({state: 'waiting', why: 'lost'});
  });

  test('a player who left is asked for every five seconds, for ten minutes', () => {
    const s = machine();
    s.connect();
    s.send({event: 'closed', code: 4003});
    let asked = 0;
    s.pass(askFor + 60_000, (actions) => {
      if (!actions.some((a) => a.do === 'token')) return;
      asked++;
      s.send({event: 'refused', code: 'player_left'});
    });
    expect(asked).toBe(askFor / askEvery);
    expect(s.m.connection).toMatchObject({state: 'away', at: Infinity});
    expect(s.send({event: 'join'})).toEqual([{do: 'token'}]); // try now
    expect(s.send({event: 'token'})).toEqual([{do: 'open'}]);
  });

  test('a player who is back is let in', () => {
    const s = machine();
    s.connect();
    s.send({event: 'closed', code: 4003});
    s.pass(askEvery);
    expect(s.done.at(-1)).toEqual({do: 'token'});
    expect(s.state()).toBe('away'); // no flicker while it asks
    expect(s.send({event: 'token'})).toEqual([{do: 'open'}]);
    s.send({event: 'opened'});
    s.send({event: 'answered'});
    expect(s.state()).toBe('on');
  });
});

test('leaving closes and stays', () => {
  const s = machine();
  s.connect();
  expect(s.send({event: 'leave'})).toEqual([{do: 'close', code: 1000}]);
  s.send({event: 'closed', code: 1000});
  s.pass(60_000);
  expect(s.state()).toBe('idle');
  expect(s.send({event: 'leave'})).toEqual([]);
});

test('answers that come late, or twice, change nothing', () => {
  const s = machine();
  for (const e of [{event: 'token'}, {event: 'opened'}, {event: 'answered'}, {event: 'proved'}, {event: 'refused', code: 'busy'}, {event: 'closed', code: 1006}] as Event[]) {
    expect(s.send(e)).toEqual([]);
    expect(s.state()).toBe('idle');
  }
});
