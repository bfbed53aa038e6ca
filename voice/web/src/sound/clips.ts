import {rate} from './level.ts';

// Sounds from a person's own files, kept in the browser and nowhere else.

export const longestClip = 30; // seconds
export const largestFile = 32 * 1024 * 1024;

export interface Clip {
  id: string;
  name: string;
  pcm: Int16Array<ArrayBuffer>; // the whole file, 48 kHz, one channel
  from: number; // seconds
  to: number;
  gain: number;
}

/** read decodes a file; null for one that is no sound. */
export async function read(file: Blob & {name?: string}): Promise<Int16Array<ArrayBuffer> | null> {
  if (file.size === 0 || file.size > largestFile) return null;
  try {
    const context = new OfflineAudioContext(1, 1, rate);
    const sound = await context.decodeAudioData(await file.arrayBuffer());
    const out = new Int16Array(sound.length);
    const channels = Array.from({length: sound.numberOfChannels}, (_, i) => sound.getChannelData(i));
    for (let i = 0; i < out.length; i++) {
      let v = 0;
      for (const c of channels) v += c[i]!;
      out[i] = Math.max(-1, Math.min(1, v / channels.length)) * 32767;
    }
    return out.length ? out : null;
  } catch {
    return null;
  }
}

/** levelled is the gain that brings a clip to the loudness of speech, and never over full scale. */
export function levelled(pcm: Int16Array): number {
  let sum = 0, peak = 1;
  for (const v of pcm) {
    sum += v * v;
    peak = Math.max(peak, Math.abs(v));
  }
  const loud = Math.sqrt(sum / Math.max(1, pcm.length)) / 32767;
  if (loud < 1e-4) return 1;
  return Math.min(0.1 / loud, 32767 / peak, 8);
}

/** samples cuts a clip to its trim and applies its level, ready to be sent. */
export function samples(c: Clip): Float32Array<ArrayBuffer> {
  const at = (s: number): number => Math.min(c.pcm.length, Math.max(0, Math.round(s * rate)));
  const cut = c.pcm.subarray(at(c.from), at(Math.min(c.to, c.from + longestClip)));
  const out = new Float32Array(cut.length);
  const edge = Math.min(240, cut.length >> 1); // 5 ms, against clicks
  for (let i = 0; i < cut.length; i++) {
    const fade = Math.min(1, i / edge, (cut.length - 1 - i) / edge);
    out[i] = Math.max(-1, Math.min(1, (cut[i]! / 32768) * c.gain)) * fade;
  }
  return out;
}

// ---- where they are kept

function database(): Promise<IDBDatabase> {
  return new Promise((done, failed) => {
    const r = indexedDB.open('earshot', 1);
    r.onupgradeneeded = () => r.result.createObjectStore('clips', {keyPath: 'id'});
    r.onsuccess = () => done(r.result);
    r.onerror = () => failed(r.error);
    r.onblocked = () => failed(new Error('blocked'));
  });
}

async function store<T>(mode: IDBTransactionMode, act: (s: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const db = await database();
  try {
    return await new Promise<T>((done, failed) => {
      const t = db.transaction('clips', mode), r = act(t.objectStore('clips'));
      t.oncomplete = () => done(r.result);
      t.onerror = t.onabort = () => failed(t.error ?? r.error);
    });
  } finally {
    db.close();
  }
}

/** kept gives the clips of this browser; none where it keeps nothing. */
export async function kept(): Promise<Clip[]> {
  try {
    return await store<Clip[]>('readonly', (s) => s.getAll());
  } catch {
    return [];
  }
}

/** keep tells whether the browser took it: storage may be full, or blocked. */
export async function keep(c: Clip): Promise<boolean> {
  try {
    await store('readwrite', (s) => s.put(c));
    return true;
  } catch {
    return false;
  }
}

export async function forget(id?: string): Promise<void> {
  try {
    await store('readwrite', (s) => (id === undefined ? s.clear() : s.delete(id)) as IDBRequest<undefined>);
  } catch {
    // Nothing was kept.
  }
}
