import type {Fault} from '../sound/devices.ts';
import type {Key} from '../text/en.ts';
import {clock, type Holes} from '../text/format.ts';

// The dock's button: one state of many, and the first that holds.

export type MicState =
  | 'none' | 'asking' | 'blocked' | 'absent' | 'busy' | 'silent' | 'open' | 'live' | 'held' | 'muted' | 'servermuted' | 'denied' | 'deafened';

export interface MicFacts {
  wanted: boolean; // somebody asked for a microphone: else they listen only
  asking: boolean; // the browser's question is open
  fault: Fault | null;
  silent: boolean; // it gives nothing
  serverMute: {kind: 0 | 1 | 2; left: number | null; reason: string}; // left: seconds
  maySpeak: boolean;
  deafened: boolean;
  muted: boolean;
  live: boolean; // by the gate
  mode: 'voice' | 'hold';
}

export function micState(f: MicFacts): MicState {
  if (f.asking) return 'asking';
  if (f.wanted && f.fault) return f.fault === 'absent' ? 'absent' : f.fault === 'busy' || f.fault === 'other' ? 'busy' : 'blocked';
  if (f.wanted && f.silent) return 'silent';
  if (f.serverMute.kind !== 0) return 'servermuted';
  if (!f.maySpeak) return 'denied';
  if (f.deafened) return 'deafened';
  if (!f.wanted) return 'none';
  if (f.muted) return 'muted';
  if (f.live) return 'live';
  return f.mode === 'hold' ? 'held' : 'open';
}

/** mayOpen tells whether the microphone may send: exactly in the states that say so. A silent one may, or it would never be heard again. */
export const mayOpen = (f: MicFacts): boolean =>
  f.wanted && !f.fault && f.serverMute.kind === 0 && f.maySpeak && !f.deafened && !f.muted;

/** What a click on the button does. */
export type MicClick = 'ask' | 'help' | 'mute' | 'unmute' | 'undeafen' | 'nothing';

export function clickOf(s: MicState): MicClick {
  switch (s) {
    case 'none': case 'absent': case 'busy': case 'silent': return 'ask';
    case 'blocked': return 'help';
    case 'open': case 'live': case 'held': return 'mute';
    case 'muted': return 'unmute';
    case 'deafened': return 'undeafen';
    default: return 'nothing';
  }
}

/** micText gives the button's two lines. */
export function micText(s: MicState, f: MicFacts, keys: {mute: string; deafen: string; talk: string}, touch: boolean, late: boolean): {title: Key; hint: Key; holes: Holes} {
  const holes: Holes = {key: keys.mute};
  switch (s) {
    case 'asking': return {title: 'mic.asking', hint: late ? 'mic.asking.late' : 'mic.asking.hint', holes};
    case 'open': return {title: 'mic.open', hint: touch ? 'mic.open.hintTouch' : 'mic.open.hint', holes};
    case 'live':
      return f.mode === 'hold' && !touch ? {title: 'mic.live', hint: 'mic.live.held', holes: {key: keys.talk}} : {title: 'mic.live', hint: touch ? 'mic.open.hintTouch' : 'mic.live.hint', holes};
    case 'held':
      return touch ? {title: 'mic.held.touch', hint: 'mic.held.touchHint', holes} : {title: 'mic.held', hint: 'mic.held.hint', holes: {key: keys.talk}};
    case 'muted': return {title: 'mic.muted', hint: touch ? 'mic.muted.hintTouch' : 'mic.muted.hint', holes};
    case 'deafened': return {title: 'mic.deafened', hint: touch ? 'mic.deafened.hintTouch' : 'mic.deafened.hint', holes: {key: keys.deafen}};
    case 'servermuted':
      return f.serverMute.left === null ? {title: 'mic.servermuted', hint: 'mic.servermuted.ever', holes} : {title: 'mic.servermuted', hint: 'mic.servermuted.hint', holes: {time: clock(f.serverMute.left)}};
    default: return {title: `mic.${s}`, hint: `mic.${s}.hint`, holes};
  }
}

export const nagAfter = 3000; // of speech while muted

/** Nag tells once a mute that somebody speaks and is not heard; never in push to talk. */
export class Nag {
  private spoken = 0;
  private told = false;

  /** level is told ten times a second. */
  level(loud: boolean, muted: boolean, hold: boolean): boolean {
    if (!muted || hold) {
      this.spoken = 0;
      this.told = false;
      return false;
    }
    this.spoken = loud ? this.spoken + 100 : Math.max(0, this.spoken - 50);
    if (this.told || this.spoken < nagAfter) return false;
    this.told = true;
    return true;
  }
}
