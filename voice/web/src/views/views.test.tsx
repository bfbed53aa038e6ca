// @vitest-environment happy-dom
import {render} from 'preact';
import {afterEach, beforeEach, describe, expect, test, vi} from 'vitest';
import {newest} from '../protocol/caps.ts';
import {App} from '../state/app.ts';
import {Page} from './Page.tsx';
import {AppContext} from './parts.tsx';
import {cellsOf} from './sigil.tsx';

const id = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
let app: App, root: HTMLElement;

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
  app = new App();
  app.support.value = {secure: true, listen: true, speak: true, missing: []};
  render(<AppContext.Provider value={app}><Page /></AppContext.Provider>, root);
});

afterEach(() => {
  render(null, root);
  root.remove();
});

const settled = (): Promise<void> => new Promise((done) => setTimeout(done, 20));
const session = {name: '.Penny', uuid: id(1), server: 'survival', near: 2, range: 48, network: 'Pinefall', recording: false};

async function joined(): Promise<void> {
  app.entry.value = {phase: 'joined', session, error: null};
  app.connection.value = {state: 'on', since: 0};
  app.caps.value = {...newest};
  app.micWanted.value = true;
  app.roster.value = {line: 'roster', people: [1, 2, 3].map((n) => ({id: id(n), name: `<b>p${n}</b>`.replaceAll(' ', '')})), status: true, deafened: [id(3)], whispering: [], shouting: []};
  app.near.value = {line: 'near', people: [{id: id(2), dx: 0, dy: 0, dz: 6}, {id: id(3), dx: 9, dy: 0, dz: 0}]};
  app.pose.value = {line: 'pose', yaw: 0, x: 0, y: 0, z: 0, world: 'w'};
  await settled();
}

// named gives every control without a name that a reader could say.
const unnamed = (): string[] => [...root.querySelectorAll('button, select, input, canvas, a[href]')].filter((e) =>
  !(e.getAttribute('aria-label') || e.textContent?.trim() || e.closest('label')?.textContent?.trim())).map((e) => e.outerHTML);

describe('each screen', () => {
  test('landing: three steps and a box', async () => {
    app.entry.value = {phase: 'landing', session: null, error: {key: 'error.wrong_code', holes: {}}};
    await settled();
    expect(root.querySelector('h1')!.textContent).toBe('Talk with the people near you in the game');
    expect(root.querySelectorAll('.steps li').length).toBe(3);
    expect(root.querySelector('[role=alert]')!.textContent).toContain('That code is not right');
    expect(root.querySelector('input')!.getAttribute('autocomplete')).toBe('one-time-code');
    expect(unnamed()).toEqual([]);
  });

  test('join: the name as it is, and what will happen', async () => {
    app.entry.value = {phase: 'ready', session, error: null};
    await settled();
    expect(root.querySelector('h1 bdi')!.textContent).toBe('.Penny');
    expect(root.textContent).toContain('2 people near you have voice.');
    expect(root.textContent).toContain('Nothing is recorded.');
    app.entry.value = {phase: 'ready', session: {...session, recording: true}, error: null};
    await settled();
    expect(root.textContent).not.toContain('recorded');
  });

  test('join without an encoder offers to listen', async () => {
    app.support.value = {secure: true, listen: true, speak: false, missing: ['AudioEncoder (Opus)']};
    app.entry.value = {phase: 'ready', session, error: null};
    await settled();
    expect(root.textContent).toContain('it lacks AudioEncoder (Opus)');
    expect([...root.querySelectorAll('button')].map((b) => b.textContent)).toEqual(['Listen only']);
  });

  test('without https, and with a browser that is too old', async () => {
    app.support.value = {secure: false, listen: false, speak: false, missing: ['AudioDecoder (Opus)']};
    await settled();
    expect(root.textContent).toContain('no microphone to pages without https');
    app.support.value = {secure: true, listen: false, speak: false, missing: ['AudioDecoder (Opus)']};
    await settled();
    expect(root.textContent).toContain('lacks AudioDecoder (Opus)');
  });

  test('main: rows with words, and every control has a name', async () => {
    await joined();
    const rows = [...root.querySelectorAll('.row')].map((r) => r.textContent);
    expect(rows[0]).toContain('<b>p2</b>'); // a name is text, whatever is in it
    expect(rows[0]).toContain('6 blocks');
    expect(rows[0]).toContain('ahead');
    expect(rows[1]).toContain('deafened');
    expect(root.querySelector('b.p2, .row b')).toBeNull();
    expect(unnamed()).toEqual([]);
    expect(root.querySelector('.dock')!.textContent).toContain('1 person near enough to hear you');
    expect([...root.querySelectorAll('[aria-pressed]')].length).toBeGreaterThan(2);
  });

  test('what is not offered is not shown', async () => {
    await joined();
    expect(root.querySelector('.tiers')).toBeNull();
    expect(root.querySelector('.groups')).toBeNull();
    app.ranges.value = {line: 'ranges', whisper: true, shout: false};
    app.groups.value = {line: 'groups', may: {use: true, create: true, admin: false, invite: true}, invites: [], groups: [], members: []};
    app.rights.value = {line: 'rights', speak: true, listen: true, clips: false};
    await settled();
    expect([...root.querySelectorAll('.tiers label')].map((l) => l.textContent)).toEqual(['Whisper', 'Normal']);
    expect(root.querySelector('.groups')).not.toBeNull();
    expect(root.querySelector('.sounds')).toBeNull();
  });
});

test('the most severe banner stands alone', async () => {
  await joined();
  app.note({kind: 'front', key: 'banner.front'});
  app.mute.value = {kind: 1, until: null, reason: '<i>music</i>'};
  await settled();
  expect(root.querySelectorAll('.banners .banner').length).toBe(1);
  expect(root.querySelector('.banners')!.textContent).toContain('The server has muted you until it is lifted. Reason: <i>music</i>.');
  app.connection.value = {state: 'elsewhere'};
  await settled();
  expect(root.querySelector('.banners')!.textContent).toContain('Voice is open in another tab or device.');
  expect(root.querySelectorAll('.banners .banner').length).toBe(1);
});

test('a click on the microphone mutes, and what is pressed is said', async () => {
  await joined();
  const mic = (): HTMLButtonElement => root.querySelector('#mic')!;
  expect(mic().getAttribute('aria-pressed')).toBe('true');
  mic().click();
  await settled();
  expect(app.settings.value.muteSelf).toBe(true);
  expect(mic().textContent).toContain('You are muted');
  expect(mic().getAttribute('aria-pressed')).toBe('false');
});

test('a person’s volume and mute', async () => {
  await joined();
  const slider = root.querySelector<HTMLInputElement>('.row input[type=range]')!;
  expect(slider.getAttribute('aria-valuetext')).toBe('100 %');
  slider.value = '140';
  slider.dispatchEvent(new Event('input', {bubbles: true}));
  await settled();
  expect(app.settings.value.volumes).toEqual({[id(2)]: 1.4});
  root.querySelector<HTMLButtonElement>('.row .button')!.click();
  await settled();
  expect(root.querySelector('.row')!.textContent).toContain('muted by you');
});

test('a part that cannot be drawn is said, and the rest stays', async () => {
  await joined();
  const quiet = vi.spyOn(console, 'error').mockImplementation(() => {});
  app.roster.value = {...app.roster.value!, people: [{id: id(2), name: null as unknown as string}, {id: id(3), name: 'x'}]};
  await settled();
  quiet.mockRestore();
  expect(root.querySelector('.dock')).not.toBeNull();
});

test('texts change with the language at once', async () => {
  await joined();
  const {de} = await import('../text/de.ts');
  app.language.value = {code: 'de', table: de};
  await settled();
  expect(root.querySelector('#near-title')!.textContent).toContain('In Hörweite');
});

test('sigils differ, and are the same for the same person', () => {
  const all = Array.from({length: 200}, (_, n) => cellsOf(id(n)));
  expect(new Set(all.map((s) => s.path + s.back)).size).toBeGreaterThan(190);
  expect(cellsOf(id(7))).toEqual(cellsOf(id(7)));
});
