import {Resampler} from './resample.ts';

// Gathers what the microphone gives to frames of 20 ms, and hands them to the worker, past the main thread.
class Capture extends AudioWorkletProcessor {
  private to: MessagePort | null = null;
  private ended = false;
  private readonly frames = new Resampler(sampleRate, (frame) => this.to?.postMessage(frame, [frame.buffer]));
  private mono = new Float32Array(128);

  constructor() {
    super();
    this.port.onmessage = (e: MessageEvent<{port?: MessagePort; end?: true}>) => {
      if (e.data.port) this.to = e.data.port;
      if (e.data.end) {
        this.ended = true;
        this.to?.close();
      }
    };
  }

  process(inputs: Float32Array[][]): boolean {
    const channels = inputs[0];
    const first = channels?.[0];
    if (first) {
      if (channels.length === 1) this.frames.push(first);
      else {
        if (this.mono.length !== first.length) this.mono = new Float32Array(first.length);
        for (let i = 0; i < first.length; i++) {
          let sum = 0;
          for (const c of channels) sum += c[i]!;
          this.mono[i] = sum / channels.length;
        }
        this.frames.push(this.mono);
      }
    }
    return !this.ended;
  }
}

registerProcessor('capture', Capture);
