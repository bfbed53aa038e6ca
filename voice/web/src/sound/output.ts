import {rate} from './level.ts';
import type {FromPlay} from './messages.ts';
import playURL from './play.worklet.ts?worker&url';

type SinkContext = AudioContext & {setSinkId?(id: string): Promise<void>};
type SinkElement = HTMLAudioElement & {setSinkId?(id: string): Promise<void>};

/** sinks tells whether this browser lets a page choose its output: on contexts, on elements only, or not at all. */
export function sinks(): 'context' | 'element' | null {
  if (typeof AudioContext !== 'undefined' && 'setSinkId' in AudioContext.prototype) return 'context';
  if (typeof HTMLMediaElement !== 'undefined' && 'setSinkId' in HTMLMediaElement.prototype) return 'element';
  return null;
}

/** Output is one context with the mixer in it. It is made in the click that joins, for a browser lets no other begin to sound. */
export class Output {
  readonly context: SinkContext;
  private node: AudioWorkletNode | null = null;
  private element: SinkElement | null = null;

  constructor() {
    this.context = new AudioContext({sampleRate: rate, latencyHint: 'interactive'});
  }

  async start(port: MessagePort, sink: string, levels: (m: FromPlay) => void): Promise<void> {
    void this.context.resume().catch(() => {});
    await this.context.audioWorklet.addModule(playURL);
    // Two channels whatever the device has: the rules for speakers do the rest.
    this.node = new AudioWorkletNode(this.context, 'play', {
      numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [2], channelCount: 2, channelCountMode: 'explicit', channelInterpretation: 'speakers',
    });
    this.node.port.onmessage = (e: MessageEvent<FromPlay>) => levels(e.data);
    this.node.port.postMessage({port}, [port]);
    this.node.connect(this.context.destination);
    if (sink) await this.use(sink);
  }

  /** use plays through a device; the empty id is the system's. False where it cannot. */
  async use(sink: string): Promise<boolean> {
    try {
      if (this.context.setSinkId) {
        await this.context.setSinkId(sink);
        return true;
      }
      if (sinks() !== 'element' || !this.node) return sink === '';
      if (!this.element) {
        const through = this.context.createMediaStreamDestination();
        this.element = new Audio();
        this.element.srcObject = through.stream;
        this.node.disconnect();
        this.node.connect(through);
        await this.element.play();
      }
      await this.element.setSinkId?.(sink);
      return true;
    } catch {
      return false;
    }
  }

  /** cue plays a short tone of our own. */
  cue(hertz: number): void {
    const t = this.context.currentTime, tone = this.context.createOscillator(), loud = this.context.createGain();
    tone.frequency.value = hertz;
    loud.gain.setValueAtTime(0, t);
    loud.gain.linearRampToValueAtTime(0.08, t + 0.01);
    loud.gain.linearRampToValueAtTime(0, t + 0.12);
    tone.connect(loud).connect(this.context.destination);
    tone.start(t);
    tone.stop(t + 0.13);
  }

  close(): void {
    this.node?.port.postMessage({end: true});
    this.element?.pause();
    void this.context.close().catch(() => {});
  }
}
