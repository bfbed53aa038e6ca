import {decoding, encoding} from './codec.ts';

/** Support is what this browser can do of what we need. Missing lists features by the words that a person can search for. */
export interface Support {
  secure: boolean;
  listen: boolean;
  speak: boolean;
  missing: string[];
}

/** support asks for Opus with the configurations that are really used, each way, before anybody is asked for a microphone. */
export async function support(): Promise<Support> {
  const secure = globalThis.isSecureContext !== false;
  const missing: string[] = [];
  const need = (there: boolean, name: string): boolean => {
    if (!there) missing.push(name);
    return there;
  };
  const worklets = need(typeof AudioWorkletNode !== 'undefined' && typeof AudioContext !== 'undefined', 'AudioWorklet');
  need(typeof WebSocket !== 'undefined', 'WebSocket');
  need(typeof Worker !== 'undefined', 'Worker');
  const decodes = need(typeof AudioDecoder !== 'undefined' && (await known(() => AudioDecoder.isConfigSupported(decoding))), 'AudioDecoder (Opus)');
  const listen = worklets && decodes && missing.length === 0;
  const encodes = need(typeof AudioEncoder !== 'undefined' && (await known(() => AudioEncoder.isConfigSupported(encoding))), 'AudioEncoder (Opus)');
  const asks = need(typeof navigator !== 'undefined' && !!navigator.mediaDevices?.getUserMedia, 'getUserMedia');
  return {secure, listen, speak: listen && encodes && asks, missing};
}

async function known(ask: () => Promise<{supported?: boolean}>): Promise<boolean> {
  try {
    return (await ask()).supported === true;
  } catch {
    return false;
  }
}
