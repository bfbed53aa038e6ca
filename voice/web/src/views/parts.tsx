import {Component, createContext, type ComponentChildren, type ComponentType} from 'preact';
import {useContext, useEffect, useRef, useState} from 'preact/hooks';
import type {App} from '../state/app.ts';
import type {Key} from '../text/en.ts';
import type {Holes} from '../text/format.ts';
import {Icon, type IconName} from './icons.tsx';

// Small pieces of which the screens are made.

export const AppContext = createContext<App>(null as unknown as App);
export const useApp = (): App => useContext(AppContext);

/**
 * Text writes a text. Each piece is an element of its own, so that a translator that rewrites text nodes breaks nothing, and what
 * comes from outside is isolated, so that a name that begins with a dot keeps it in front.
 */
export function Text({k, holes}: {k: Key; holes?: Holes | undefined}) {
  const app = useApp();
  return (
    <span>
      {app.parts(k, holes).map((p, i) => {
        const inner = p.hole ? <bdi translate={false}>{p.text}</bdi> : p.text;
        return p.mark === 'bold' ? <strong key={i}>{inner}</strong> : p.mark === 'code' ? <code key={i} translate={false}>{inner}</code> : <span key={i}>{inner}</span>;
      })}
    </span>
  );
}

export const Name = ({children}: {children: string}) => <bdi class="name" translate={false}>{children}</bdi>;

interface ButtonProps {
  icon?: IconName;
  label?: string; // for a button of an icon only
  kind?: 'main' | 'plain' | 'bad';
  pressed?: boolean | undefined;
  disabled?: boolean;
  class?: string;
  autofocus?: boolean;
  onClick(): void;
  children?: ComponentChildren;
}

export function Button({icon, label, kind, pressed, disabled, class: more, autofocus, onClick, children}: ButtonProps) {
  const ref = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (autofocus) ref.current?.focus();
  }, []);
  return (
    <button
      ref={ref} type="button" class={`button ${kind ?? ''} ${children ? '' : 'square'} ${more ?? ''}`} aria-label={label} title={label} aria-pressed={pressed} disabled={disabled}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

/** Dialog is a native one: focus stays inside, Escape closes it, and focus returns. */
export function Dialog({title, wide, children}: {title: ComponentChildren; wide?: boolean; children: ComponentChildren}) {
  const app = useApp();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = ref.current!;
    if (!d.open) d.showModal();
    d.querySelector('h2')?.focus(); // not the first control, which would only be the cross
    return () => d.close();
  }, []);
  const mine = useRef(app.panel.value);
  // A browser tells of closing a moment later: what was opened since then is to stay.
  const close = (): void => {
    if (app.panel.value === mine.current) app.panel.value = null;
  };
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby="dialog-title" onClose={close} onClick={(e) => e.target === ref.current && close()}>
      <div class="sheet">
        <header>
          <h2 id="dialog-title" tabIndex={-1}>{title}</h2>
          <Button icon="close" label={app.t('close')} kind="plain" onClick={close} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface SliderProps {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  text: string;
  middle?: boolean; // a mark at the middle
  onInput(v: number): void;
}

export function Slider({label, value, min, max, step, text, middle, onInput}: SliderProps) {
  const at = `${((value - min) / (max - min)) * 100}%`;
  return (
    <span class="slider">
      <input
        type="range" class={middle ? 'middle' : ''} aria-label={label} aria-valuetext={text} min={min} max={max} step={step} value={value} style={{'--at': at}}
        onInput={(e) => onInput(e.currentTarget.valueAsNumber)}
      />
      <span class="number" aria-hidden="true">{text}</span>
    </span>
  );
}

export function Volume({label, value, onInput}: {label: string; value: number; onInput(v: number): void}) {
  const app = useApp();
  const percent = Math.round(value * 100);
  return <Slider label={label} value={percent} min={0} max={200} step={5} middle text={app.t('row.percent', {n: percent})} onInput={(v) => onInput(v / 100)} />;
}

export function Check({label, on, note, onChange}: {label: string; on: boolean; note?: string; onChange(on: boolean): void}) {
  return (
    <label class="check">
      <input type="checkbox" checked={on} onChange={(e) => onChange(e.currentTarget.checked)} />
      <span>{label}{note && <small>{note}</small>}</span>
    </label>
  );
}

/** Bars draws a level on a small canvas: of all ways to move a meter the one that costs least. */
export function Bars({level}: {level: () => number}) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const c = ref.current, d = c?.getContext('2d');
    if (!c || !d) return;
    const draw = (): void => {
      const lit = Math.min(4, Math.max(1, Math.round(level() * 4)));
      const style = getComputedStyle(c);
      d.clearRect(0, 0, 24, 14);
      for (let i = 0; i < 4; i++) {
        d.fillStyle = i < lit ? style.color : style.borderTopColor;
        d.fillRect(i * 6, 11 - i * 3, 4, 3 + i * 3);
      }
    };
    draw();
    const t = setInterval(draw, 100);
    return () => clearInterval(t);
  }, []);
  return <canvas ref={ref} class="bars" width="24" height="14" aria-hidden="true" />;
}

/** Part catches what a piece of the page throws: the rest, and the sound, go on. */
export class Part extends Component<{children: ComponentChildren}, {failed: boolean}> {
  static override contextType = AppContext;
  override state = {failed: false};

  override componentDidCatch(e: unknown): void {
    console.error(e);
    this.setState({failed: true});
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    const app = this.context as App;
    return (
      <div class="failed" role="alert">
        <p>{app.t('main.broken')}</p>
        <button type="button" class="button" onClick={() => this.setState({failed: false})}><span>{app.t('main.broken.again')}</span></button>
      </div>
    );
  }
}

/** later makes a component that is fetched when it is first shown. */
export function later(load: () => Promise<ComponentType>) {
  return function Later() {
    const [C, set] = useState<ComponentType | null>(null);
    useEffect(() => {
      let there = true;
      load().then((c) => there && set(() => c), () => {});
      return () => {
        there = false;
      };
    }, []);
    return C && <C />;
  };
}
