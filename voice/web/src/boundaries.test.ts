import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {dirname, join, relative, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {describe, expect, test} from 'vitest';

const src = dirname(fileURLToPath(import.meta.url));
const files = (readdirSync(src, {recursive: true}) as string[]).filter((f) => /\.tsx?$/.test(f) && !/\.test\.tsx?$|\.d\.ts$|vectors\.ts$/.test(f));
const text = (f: string): string => readFileSync(join(src, f), 'utf8');
const imports = (f: string): string[] => [...text(f).matchAll(/(?:^import.*from |\} from |import\(|^import |new URL\((?=.*import\.meta))'([^']+)'/gm)].map((m) => m[1]!);
const folder = (f: string): string => (f.includes('/') ? f.split('/')[0]! : '');

// What a folder may know in addition to itself.
const rooms: Record<string, string[]> = {protocol: [], text: [], sound: ['protocol'], state: ['protocol', 'sound', 'text'], views: ['protocol', 'sound', 'state', 'text'], style: [], '': ['state', 'views', 'style']};
// Outside libraries, and who may have them: signals live in the state only.
const doors: Record<string, string[]> = {'@preact/signals': ['state', 'views'], preact: ['views', ''], 'preact/hooks': ['views']};

test('there is something to look at', () => expect(files.length).toBeGreaterThan(35));

describe('imports go down', () => {
  test.each(files)('%s', (f) => {
    for (const i of imports(f)) {
      if (i.startsWith('.')) {
        const to = folder(relative(src, resolve(src, dirname(f), i.split('?')[0]!)));
        if (to !== folder(f)) expect(rooms[folder(f)], `${f} imports ${i}`).toContain(to);
      } else expect(doors[i] ?? [], `${f} imports ${i}`).toContain(folder(f));
    }
  });
});

test('what a view makes of state it computes, and keeps none', () => {
  for (const f of files.filter((f) => folder(f) === 'views')) expect(text(f), f).not.toMatch(/\b(signal|useSignal)\(/);
});

test('nothing writes HTML, runs text or asks another host', () => {
  for (const f of files) {
    expect(text(f), f).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function/);
    expect(text(f), f).not.toMatch(/['"`]https?:\/\//);
  }
});

test('no countdown and no back-off goes by a clock that may be wrong', () => {
  for (const f of files) expect(text(f), f).not.toMatch(/Date\.now|new Date\b/);
});

test('every text is used', () => {
  const all = files.map(text).join('\n');
  const keys = [...text('text/en.ts').matchAll(/(?:^|, )\s*'([\w.]+)':/gm)].map((m) => m[1]!);
  expect(keys.length).toBeGreaterThan(200);
  const made = /^(mic\.\w+(\.hint)?|main\.tab\.|result\.|done\.|group\.(NORMAL|OPEN|ISOLATED)|set\.theme\.|key\.|tier\.|error\.|net\.(tryNow|useHere|reload))/;
  const without = all.replace(text('text/en.ts'), '').replace(text('text/de.ts'), '');
  expect(keys.filter((k) => !without.includes(`'${k}'`) && !without.includes(`"${k}"`) && !made.test(k))).toEqual([]);
});

// ---- the contrasts that the design promises, computed

const luminance = (hex: string): number => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
};
const contrast = (a: string, b: string): number => {
  const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
  return (x! + 0.05) / (y! + 0.05);
};
const tokens = (css: string): Record<string, string> => Object.fromEntries([...css.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map((m) => [m[1]!, m[2]!]));
const css = readFileSync(join(src, 'style/tokens.css'), 'utf8');
const dark = tokens(css.slice(0, css.indexOf('@media')));
const light = {...dark, ...tokens(css.slice(css.indexOf('[data-theme="light"]')))};

describe.each([['dark', dark], ['light', light]] as const)('contrast, %s', (_, t) => {
  test.each([
    ['text', 'bg', 7], ['text', 'surface', 7], ['text', 'raised', 7], ['text', 'bad-bg', 7], ['text', 'voice-bg', 7], ['text', 'land', 7],
    ['dim', 'bg', 4.5], ['dim', 'surface', 4.5], ['dim', 'raised', 4.5], ['dim', 'land', 4.5], ['ink', 'accent', 7], ['voice', 'surface', 4.5], ['voice', 'voice-bg', 4.5], ['bad', 'bad-bg', 4.5], ['bad', 'surface', 4.5],
    ['link', 'surface', 4.5], ['edge', 'raised', 3], ['edge', 'bg', 3], ['edge', 'surface', 3], ['mark', 'surface', 3], ['accent-edge', 'surface', 3], ['focus', 'bg', 7], ['group', 'surface', 4.5],
  ] as const)('%s on %s', (a, b, least) => expect(contrast(t[a]!, t[b]!)).toBeGreaterThanOrEqual(least));
});

test('the theme by choice is the theme by the system', () => {
  const media = tokens(css.slice(css.indexOf('@media'), css.indexOf(':root[data-theme="light"]')));
  expect(media).toEqual(tokens(css.slice(css.indexOf(':root[data-theme="light"]'))));
});

// ---- the budget: what the first load brings, sound included, is below 60 KB

test('the first load is below 60 KB, with all of sound', () => {
  const dist = resolve(src, '../dist');
  expect(existsSync(dist), 'build first').toBe(true);
  const lazy = /^(Settings|Group|Moderate|Sounds|Diagnosis|clips|de)-/;
  const loaded = (readdirSync(join(dist, 'assets')) as string[]).filter((f) => !lazy.test(f)).map((f) => join(dist, 'assets', f)).concat(join(dist, 'index.html'));
  const size = loaded.map((f) => gzipSync(readFileSync(f), {level: 9}).length).reduce((a, b) => a + b, 0);
  expect(loaded.length).toBeGreaterThan(5);
  console.info(`first load ${(size / 1024).toFixed(1)} KB`);
  expect(size).toBeLessThan(60 * 1024);
});
