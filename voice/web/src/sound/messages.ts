import type {Caps} from '../protocol/caps.ts';
import type {GroupRequest} from '../protocol/group.ts';
import type {S2CLine, Tier} from '../protocol/line.ts';
import type {Connection} from '../protocol/socket.ts';
import type {Talk} from './gate.ts';
import type {Sound} from './mix.ts';

// What the page's thread, the codec worker and the play worklet say to each other.

/** Volumes are multipliers, 1 where nothing is set. */
export interface Volumes {
  master: number;
  players: Record<string, number>;
  clips: Record<string, number>;
  speakers: Record<string, number>;
}

export type ToWorker =
  | {to: 'join' | 'leave' | 'online' | 'look'}
  | {to: 'start'; base: string}
  | {to: 'capture'; port: MessagePort}
  | {to: 'uncapture'}
  | {to: 'play'; port: MessagePort}
  | {to: 'talk'; talk: Talk; gain: boolean}
  | {to: 'deafen'; on: boolean}
  | {to: 'tier'; tier: Tier}
  | {to: 'volumes'; volumes: Volumes}
  | {to: 'surround'; on: boolean}
  | {to: 'group'; request: GroupRequest}
  | {to: 'clip'; id: string; pcm: Float32Array<ArrayBuffer>}
  | {to: 'clipEnd'; id: string}
  | {to: 'self'; on: boolean};

/** Stats are what the diagnosis shows of one connection. */
export interface Stats {
  sent: number;
  sendDropped: number;
  received: number;
  discarded: number;
  gaps: number;
  crowded: number;
  decodeErrors: number;
  talkers: number;
  bursts: boolean; // the network holds bytes back and lets them go in heaps
  unheard: boolean; // we send, and the server counts none of it
}

export type FromWorker =
  /** left: milliseconds until the connection's `at`, for the threads do not share a clock */
  | {from: 'connection'; connection: Connection; left: number; caps: Caps}
  | {from: 'line'; line: S2CLine}
  | {from: 'level'; db: number; live: boolean; slept: boolean}
  | {from: 'input'; what: 'reopen' | 'silent' | 'sound'}
  | {from: 'second'; stats: Stats; roundTrip: number | null; left: number}
  | {from: 'clipEnd'; id: string};

/** ToPlay goes from the worker to the play worklet, frame by frame. */
export type ToPlay =
  | {key: string; id: string; sound: Sound; missing: number; begins: boolean}
  | {end: string}
  | {clear: true}
  | {yaw: number}
  | {surround: boolean};

/** FromPlay comes ten times a second from the play worklet: who is heard, and how loud. */
export interface FromPlay {
  levels: [id: string, level: number][];
  depth: number; // ms that the fullest queue holds
  underruns: number;
  concealed: number;
  dropped: number;
}
