import captureURL from './capture.worklet.ts?worker&url';
import {faultOf, type Fault} from './devices.ts';
import {rate} from './level.ts';

/** Processing is what the browser does with the sound of a microphone. */
export interface Processing {
  echo: boolean;
  noise: boolean;
  gain: boolean;
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Microphone is one open capture. Its frames go to a port, past this thread. */
export class Microphone {
  readonly label: string;
  readonly id: string;
  private readonly track: MediaStreamTrack;
  private node: AudioWorkletNode | null = null;
  private source: MediaStreamAudioSourceNode | null = null;
  private own: AudioContext | null = null;

  private constructor(track: MediaStreamTrack) {
    this.track = track;
    this.label = track.label;
    this.id = track.getSettings().deviceId ?? '';
  }

  /** open asks for the microphone; it throws a Fault. An id is a wish, never a must. */
  static async open(id: string, p: Processing): Promise<Microphone> {
    const audio: MediaTrackConstraints = {
      echoCancellation: p.echo, noiseSuppression: p.noise, autoGainControl: p.gain, channelCount: 1, ...(id ? {deviceId: {ideal: id}} : {}),
    };
    for (let tries = 0; ; tries++) {
      try {
        const stream = await navigator.mediaDevices.getUserMedia({audio});
        return new Microphone(stream.getAudioTracks()[0]!);
      } catch (e) {
        const fault = faultOf(e);
        if (fault !== 'busy' || tries === 2) throw fault satisfies Fault;
        await pause(300); // a track that was stopped just now may still hold the device
      }
    }
  }

  /** connect begins to capture. A browser that wants one rate for all gets a context at the device's, and the worklet resamples. */
  async connect(context: AudioContext, port: MessagePort, ended: () => void): Promise<void> {
    const stream = new MediaStream([this.track]);
    let at = context;
    try {
      this.source = context.createMediaStreamSource(stream);
    } catch {
      at = this.own = new AudioContext({latencyHint: 'interactive', sampleRate: this.track.getSettings().sampleRate ?? 44100});
      this.source = at.createMediaStreamSource(stream);
    }
    await at.audioWorklet.addModule(captureURL);
    this.node = new AudioWorkletNode(at, 'capture', {numberOfInputs: 1, numberOfOutputs: 0});
    this.node.port.postMessage({port}, [port]);
    this.source.connect(this.node);
    this.track.addEventListener('ended', ended);
    if (at.sampleRate !== rate && at === context) console.info(`The microphone runs at ${at.sampleRate} Hz and is resampled.`);
  }

  /** adjust sets the browser's processing at once where it can; false asks for a new capture. */
  async adjust(p: Processing): Promise<boolean> {
    try {
      await this.track.applyConstraints({echoCancellation: p.echo, noiseSuppression: p.noise, autoGainControl: p.gain, channelCount: 1});
      const s = this.track.getSettings();
      return s.echoCancellation === p.echo && s.noiseSuppression === p.noise && s.autoGainControl === p.gain;
    } catch {
      return false;
    }
  }

  close(): void {
    this.track.stop();
    this.source?.disconnect();
    this.node?.port.postMessage({end: true});
    void this.own?.close();
  }
}
