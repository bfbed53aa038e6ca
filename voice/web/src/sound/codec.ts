import {rate} from './level.ts';

// The two ends of Opus as browsers have them.

export const encoding: AudioEncoderConfig = {
  codec: 'opus', sampleRate: rate, numberOfChannels: 1, bitrate: 32000,
  // No discontinuous transmission: browsers number its frames wrong. The gate does it better.
  opus: {frameDuration: 20000, application: 'voip', signal: 'voice'} as OpusEncoderConfig,
};

export const decoding: AudioDecoderConfig = {codec: 'opus', sampleRate: rate, numberOfChannels: 1};

/** Encoder turns frames of 20 ms into packets, each with the tag that its frame had. */
export class Encoder<Tag> {
  private encoder: AudioEncoder | null = null;
  private tags: Tag[] = [];
  private count = 0;
  private readonly packet: (opus: Uint8Array, tag: Tag) => void;

  constructor(packet: (opus: Uint8Array, tag: Tag) => void) {
    this.packet = packet;
  }

  /** begin forgets what was heard so far: each stretch of speech is a stream of its own. */
  begin(): void {
    this.tags = [];
    if (this.encoder?.state === 'configured') this.encoder.reset();
    else {
      const own: AudioEncoder = new AudioEncoder({
        output: (chunk) => {
          const tag = this.tags.shift();
          if (tag === undefined || own !== this.encoder) return;
          const opus = new Uint8Array(chunk.byteLength);
          chunk.copyTo(opus);
          this.packet(opus, tag);
        },
        error: () => {
          if (own === this.encoder) this.encoder = null; // the next frame begins a new one
        },
      });
      this.encoder = own;
    }
    this.encoder.configure(encoding);
  }

  encode(pcm: Float32Array<ArrayBuffer>, tag: Tag): void {
    if (this.encoder?.state !== 'configured') this.begin();
    this.tags.push(tag);
    const data = new AudioData({
      format: 'f32-planar', sampleRate: rate, numberOfFrames: pcm.length, numberOfChannels: 1, timestamp: this.count++ * 20000, data: pcm,
    });
    this.encoder!.encode(data);
    data.close();
  }

  close(): void {
    if (this.encoder && this.encoder.state !== 'closed') this.encoder.close();
    this.encoder = null;
  }
}

/** Decoder is Encoder's other way. A bad packet closes a browser's decoder for good, so that there is a new one after it. */
export class Decoder<Tag> {
  errors = 0;
  private decoder: AudioDecoder | null = null;
  private tags: Tag[] = [];
  private count = 0;
  private readonly sound: (pcm: Float32Array<ArrayBuffer>, tag: Tag) => void;

  constructor(sound: (pcm: Float32Array<ArrayBuffer>, tag: Tag) => void) {
    this.sound = sound;
  }

  /** begin forgets what was heard so far, but not what is on its way. */
  begin(): void {
    const former = this.decoder;
    if (former?.state === 'configured') former.flush().then(() => former.close(), () => {});
    this.make();
  }

  private make(): void {
    const tags: Tag[] = (this.tags = []);
    const own: AudioDecoder = new AudioDecoder({
      output: (data) => {
        const tag = tags.shift();
        const pcm = new Float32Array(data.numberOfFrames);
        data.copyTo(pcm, {planeIndex: 0, format: 'f32-planar'});
        data.close();
        if (tag !== undefined) this.sound(pcm, tag);
      },
      error: () => {
        this.errors++;
        if (own === this.decoder) this.decoder = null;
      },
    });
    own.configure(decoding);
    this.decoder = own;
  }

  decode(opus: Uint8Array, tag: Tag): void {
    if (this.decoder?.state !== 'configured') this.make();
    this.tags.push(tag);
    this.decoder!.decode(new EncodedAudioChunk({type: 'key', timestamp: this.count++ * 20000, duration: 20000, data: opus.slice()}));
  }

  close(): void {
    if (this.decoder && this.decoder.state !== 'closed') this.decoder.close();
    this.decoder = null;
  }
}
