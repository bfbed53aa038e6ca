import {readFileSync, readdirSync} from 'node:fs';

// Reads the vector files that stand beside the Go codecs. A file without vectors is a failure, for then nothing would be tested.

const folder = new URL('../../../../', import.meta.url); // the project

/** vectorFiles names the vector files of a folder, sorted. */
export const vectorFiles = (of: string): string[] => readdirSync(new URL(of, folder)).filter((name) => name.endsWith('.txt')).sort();

function rows(file: string, columns: number): string[][] {
  const text = readFileSync(new URL(file, folder), 'utf8');
  const out: string[][] = [];
  for (const [i, row] of text.split('\n').entries()) {
    if (row === '' || row.startsWith('#')) continue;
    const parts = row.split('|');
    if (parts.length < columns) throw new Error(`${file}:${i + 1}: ${parts.length} columns, want ${columns}`);
    out.push([...parts.slice(0, columns - 1), parts.slice(columns - 1).join('|')].map((c) => c.trim()));
  }
  if (out.length === 0) throw new Error(`${file} holds no vectors`);
  return out;
}

/** bytesOf reads hex with blanks, where XX*n repeats a byte and 'text' in quotes stands for itself. */
export function bytesOf(s: string): Uint8Array {
  const out: number[] = [];
  for (const word of s.match(/'[^']*'|\S+/g) ?? []) {
    if (word.startsWith("'")) {
      out.push(...Buffer.from(word.slice(1, -1)));
      continue;
    }
    const [digits, times] = word.split('*');
    for (let n = Number(times ?? 1); n > 0; n--) out.push(...Buffer.from(digits!, 'hex'));
  }
  return Uint8Array.from(out);
}

/** unquote joins Go strings, each of which may be followed by *n, to the bytes that they stand for. */
export function unquote(s: string): Uint8Array {
  const escapes: Record<string, string> = {n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v', '\\': '\\', '"': '"'};
  const out: Buffer[] = [];
  for (let rest = s.trim(); rest !== ''; ) {
    const m = /^"((?:[^"\\]|\\.)*)"(?:\*(\d+))?\s*/.exec(rest);
    if (!m) throw new Error(`not a quoted string: ${rest.slice(0, 60)}`);
    rest = rest.slice(m[0].length);
    const parts: Buffer[] = [];
    const text = m[1]!.replace(/\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\([^xu])|([^\\]+)/gs, (_, x, u, e, plain) => {
      if (x) parts.push(Buffer.from(x, 'hex'));
      else if (u) parts.push(Buffer.from(String.fromCharCode(parseInt(u, 16))));
      else if (e) parts.push(Buffer.from(escapes[e] ?? '?'));
      else parts.push(Buffer.from(plain));
      return '';
    });
    if (text !== '') throw new Error(`escape not known: ${text}`);
    const one = Buffer.concat(parts);
    for (let n = Number(m[2] ?? 1); n > 0; n--) out.push(one);
  }
  return new Uint8Array(Buffer.concat(out));
}

export const frameVectors = (file: string) =>
  rows(file, 5).map(([name, format, outcome, want, bytes]) => ({name: name!, format: format!, outcome: outcome!, want: want!, bytes: bytesOf(bytes!)}));

export const lineVectors = (file: string) =>
  rows(file, 4).map(([name, outcome, want, text]) => ({name: name!, outcome: outcome!, want: want!, text: unquote(text!)}));

/** goFloat writes a number as Go's %v does. */
export function goFloat(v: number, single = false): string {
  if (Object.is(v, -0)) return '-0';
  let digits = 1;
  while (digits < 17 && (single ? Math.fround(Number(v.toExponential(digits - 1))) : Number(v.toExponential(digits - 1))) !== v) digits++;
  const [mantissa, exponent] = v.toExponential(digits - 1).split('e');
  const e = Number(exponent);
  if (v !== 0 && (e < -4 || e >= 21 || e >= Math.max(digits, 6) && e > 5 && digits <= e)) {
    return `${mantissa}e${e < 0 ? '-' : '+'}${String(Math.abs(e)).padStart(2, '0')}`;
  }
  return Number(v.toExponential(digits - 1)).toString();
}
