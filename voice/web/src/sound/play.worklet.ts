import {decibels, meter} from './level.ts';
import type {FromPlay, ToPlay} from './messages.ts';
import {Limiter, Talker, Yaw} from './mix.ts';

// Plays all talkers. Frames come from the worker by a port of their own, past the main thread.
class Play extends AudioWorkletProcessor {
  private readonly talkers = new Map<string, {id: string; talker: Talker}>();
  private readonly limiter = new Limiter();
  private readonly yaw = new Yaw();
  private surround = false;
  private ended = false;
  private nextTold = 0;
  private gone = {underruns: 0, concealed: 0, dropped: 0}; // of talkers that are no more

  constructor() {
    super();
    this.port.onmessage = (e: MessageEvent<{port?: MessagePort; end?: true}>) => {
      if (e.data.end) this.ended = true;
      if (e.data.port) e.data.port.onmessage = (m: MessageEvent<ToPlay>) => this.take(m.data);
    };
  }

  private take(m: ToPlay): void {
    if ('yaw' in m) this.yaw.set(m.yaw);
    else if ('surround' in m) this.surround = m.surround;
    else if ('end' in m) this.forget(m.end);
    else if ('clear' in m) for (const key of [...this.talkers.keys()]) this.forget(key);
    else {
      let t = this.talkers.get(m.key);
      if (!t) this.talkers.set(m.key, (t = {id: m.id, talker: new Talker()}));
      t.talker.push(m.sound, m.missing, m.begins, currentTime * 1000);
    }
  }

  private forget(key: string): void {
    const t = this.talkers.get(key)?.talker;
    if (!t) return;
    this.gone.underruns += t.jitter.underruns;
    this.gone.concealed += t.concealed;
    this.gone.dropped += t.jitter.dropped;
    this.talkers.delete(key);
  }

  process(_: Float32Array[][], outputs: Float32Array[][]): boolean {
    const [left, right = left] = outputs[0] ?? [];
    if (!left || !right) return !this.ended;
    const n = left.length, now = currentTime * 1000;
    const yaw = this.yaw.advance(n / sampleRate);
    for (const {talker} of this.talkers.values()) talker.add(left, right, n, yaw, this.surround, now);
    this.limiter.apply(left, right, n);
    if (currentTime >= this.nextTold) {
      this.nextTold = currentTime + 0.1;
      this.tell(now);
    }
    return !this.ended;
  }

  private tell(now: number): void {
    const loud = new Map<string, number>();
    const m: FromPlay = {levels: [], depth: 0, ...this.gone};
    for (const {id, talker} of this.talkers.values()) {
      if (now - talker.lastPlayed < 200) loud.set(id, Math.max(loud.get(id) ?? 0, meter(decibels(talker.level))));
      talker.level *= 0.5;
      m.depth = Math.max(m.depth, talker.jitter.depth * 20);
      m.underruns += talker.jitter.underruns;
      m.concealed += talker.concealed;
      m.dropped += talker.jitter.dropped;
    }
    m.levels = [...loud];
    this.port.postMessage(m);
  }
}

registerProcessor('play', Play);
