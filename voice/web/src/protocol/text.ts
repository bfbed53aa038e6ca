// The words of which text lines are made. No DOM here: this folder runs in a page, a worker, Node or a bot.

declare const TextDecoder: new (label: string, options: {fatal: boolean; ignoreBOM: boolean}) => {decode(b: Uint8Array): string};
declare const TextEncoder: new () => {encode(s: string): Uint8Array};

const utf8 = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true});
const encoder = new TextEncoder();

/** utf8Decode reads UTF-8, and gives null for bytes that are none. */
export function utf8Decode(b: Uint8Array): string | null {
  try {
    return utf8.decode(b);
  } catch {
    return null;
  }
}

/** utf8Length is how many bytes s takes; an unpaired surrogate takes three. */
export function utf8Length(s: string): number {
  return encoder.encode(s).length;
}

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** isUUID tells whether s is a UUID as it travels: lower case, with dashes. */
export const isUUID = (s: string | undefined): s is string => s !== undefined && uuidShape.test(s);

export const zeroUUID = '00000000-0000-0000-0000-000000000000';

const hex = Array.from({length: 256}, (_, i) => i.toString(16).padStart(2, '0'));

/** uuidFrom writes the 16 bytes at the offset. */
export function uuidFrom(b: Uint8Array, at: number): string {
  let s = '';
  for (let i = 0; i < 16; i++) s += (i === 4 || i === 6 || i === 8 || i === 10 ? '-' : '') + hex[b[at + i]!];
  return s;
}

/** uuidInto writes a UUID as 16 bytes at the offset. */
export function uuidInto(id: string, b: Uint8Array, at: number): void {
  const digits = id.replaceAll('-', '');
  for (let i = 0; i < 16; i++) b[at + i] = parseInt(digits.slice(2 * i, 2 * i + 2), 16);
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const base64Shape = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** fromBase64 reads standard base64 with padding and no stray bits; null for all else. */
export function fromBase64(s: string): Uint8Array | null {
  if (!base64Shape.test(s)) return null;
  const digits = s.replace(/=+$/, '');
  const out = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let bits = 0, have = 0, n = 0;
  for (const c of digits) {
    bits = ((bits << 6) | alphabet.indexOf(c)) & 0xffff;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out[n++] = (bits >> have) & 0xff;
    }
  }
  return (bits & ((1 << have) - 1)) === 0 ? out : null;
}

/** toBase64 writes standard base64 with padding. */
export function toBase64(b: Uint8Array): string {
  let s = '';
  for (let i = 0; i < b.length; i += 3) {
    const v = (b[i]! << 16) | ((b[i + 1] ?? 0) << 8) | (b[i + 2] ?? 0);
    s += alphabet[v >> 18]! + alphabet[(v >> 12) & 63]!;
    s += i + 1 < b.length ? alphabet[(v >> 6) & 63]! : '=';
    s += i + 2 < b.length ? alphabet[v & 63]! : '=';
  }
  return s;
}

/** absent stands where there is no value. */
export const absent = '-';

/** decodeText reads base64 of UTF-8; null where it is none. */
export function decodeText(word: string | undefined): string | null {
  const b = word === undefined ? null : fromBase64(word);
  return b && utf8Decode(b);
}

/** encodeText is decodeText's other way; the empty text is absent. */
export const encodeText = (s: string): string => (s === '' ? absent : toBase64(encoder.encode(s)));

/** readFlag reads 0 or 1; null for any other word. */
export const readFlag = (word: string | undefined): boolean | null => (word === '1' ? true : word === '0' ? false : null);

export const writeFlag = (on: boolean): string => (on ? '1' : '0');

export const maxNumber = 2 ** 31 - 1;

/** readNumber reads a whole number from 0 to 2^31-1 in its shortest form; null for all else. */
export function readNumber(word: string | undefined, most = maxNumber): number | null {
  if (word === undefined || !/^(?:0|[1-9][0-9]{0,15})$/.test(word)) return null;
  const n = Number(word);
  return n <= most ? n : null;
}

const unusual = /[\p{Cc}\p{Cf}§]/u;
const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** ordinary bounds a text by UTF-16 units and keeps out what could hide or break a line. */
export const ordinary = (s: string, most: number): boolean => s !== '' && s.length <= most && !unusual.test(s) && !lone.test(s);

export const maxGroupName = 24;
export const maxPassword = 64;
export const maxSpeakerName = 64;
export const maxReason = 256;

export const validGroupName = (s: string): boolean => ordinary(s, maxGroupName) && s.trim() !== '';
export const validPassword = (s: string): boolean => ordinary(s, maxPassword);
export const validSpeakerName = (s: string): boolean => ordinary(s, maxSpeakerName) && s.trim() !== '';
export const validReason = (s: string): boolean => ordinary(s, maxReason) && s.trim() !== '';

/** plain is a word that can stand between blanks. */
export const plain = (s: string): boolean => s !== '' && !/[\0-\x20\x7f]/.test(s);
