import type {Action, Bound} from './settings.ts';

// Keys by their place, held and pressed. A held key ends on anything that could be its release: a key that sticks is an open
// microphone. No DOM: what happened is told.

export type Held = 'talk' | 'whisper' | 'shout';
const holds: readonly Action[] = ['talk', 'whisper', 'shout'];
const isHeld = (a: Action): a is Held => holds.includes(a);

export interface Down {
  code: string;
  repeat: boolean;
  modified: boolean; // Ctrl, Alt or Meta
  field: boolean; // it goes into a text field
}

export interface Effect {
  /** prevent keeps the browser from clicking, typing or scrolling with it. */
  prevent: boolean;
  press?: Exclude<Action, Held>;
}

/** kept are keys that the browser or the page itself needs. */
const kept = /^(Tab|Escape|Enter|NumpadEnter|F\d+|Alt|AltLeft|AltRight|Meta\w*|OS\w*|Control\w*|Arrow\w+|Page\w+|Home|End|ContextMenu|CapsLock|Unidentified|)$/;

export const bindable = (code: string): boolean => !kept.test(code);

/** Endings are what ends every hold. */
export type Ending = 'blur' | 'hidden' | 'pagehide' | 'dialog' | 'field' | 'touchcancel' | 'servermute' | 'off' | 'frozen';

export class Keys {
  bindings: Record<Action, Bound>;
  on = true;
  private readonly down = new Map<string, Held>(); // by code, or by the name of a pointer
  private readonly changed: (held: ReadonlySet<Held>) => void;

  constructor(bindings: Record<Action, Bound>, changed: (held: ReadonlySet<Held>) => void) {
    this.bindings = bindings;
    this.changed = changed;
  }

  get held(): ReadonlySet<Held> {
    return new Set(this.down.values());
  }

  keydown(e: Down): Effect {
    const action = this.on && !e.modified && !e.field ? this.actionOf(e.code) : undefined;
    if (!action) return {prevent: this.down.has(e.code)};
    if (isHeld(action)) {
      if (!e.repeat && !this.down.has(e.code)) this.begin(e.code, action);
      return {prevent: true};
    }
    return e.repeat ? {prevent: true} : {prevent: true, press: action};
  }

  /** keyup ends a hold whatever the target, the modifiers and the switch say. */
  keyup(code: string): Effect {
    const was = this.down.has(code);
    this.end(code);
    return {prevent: was};
  }

  /** press is a finger or a mouse button on the control itself. */
  press(pointer: string, what: Held): void {
    this.begin(pointer, what);
  }

  release(pointer: string): void {
    this.end(pointer);
  }

  endAll(_why: Ending): void {
    if (this.down.size === 0) return;
    this.down.clear();
    this.changed(this.held);
  }

  private actionOf(code: string): Action | undefined {
    return (Object.keys(this.bindings) as Action[]).find((a) => this.bindings[a].code === code);
  }

  private begin(name: string, what: Held): void {
    this.down.set(name, what);
    this.changed(this.held);
  }

  private end(name: string): void {
    if (this.down.delete(name)) this.changed(this.held);
  }
}

/** Latch turns two quick taps on a control that is held into one that stays, until the next tap. */
export class Latch {
  latched = false;
  private last = -Infinity;
  private downAt = 0;

  down(now: number): void {
    this.downAt = now;
    if (this.latched) {
      this.latched = false;
      this.last = -Infinity;
      this.downAt = -Infinity; // the tap that lets go is no first tap
    }
  }

  /** up tells whether the control stays pressed. */
  up(now: number): boolean {
    const short = now - this.downAt < 300;
    if (short && this.downAt - this.last < 350) this.latched = true;
    this.last = short ? now : -Infinity;
    return this.latched;
  }

  clear(): void {
    this.latched = false;
    this.last = -Infinity;
  }
}
