import {useEffect, useRef} from 'preact/hooks';
import type {Tier} from '../protocol/line.ts';
import {clickOf, micText, type MicState} from '../state/mic.ts';
import {Icon, type IconName} from './icons.tsx';
import {Button, Text, useApp} from './parts.tsx';
import {openMini} from './Mini.tsx';

const micIcon: Record<MicState, IconName> = {
  none: 'hear', asking: 'mic', blocked: 'warn', absent: 'warn', busy: 'warn', silent: 'warn', open: 'mic', live: 'mic', held: 'mic', muted: 'micOff', servermuted: 'lock',
  denied: 'lock', deafened: 'deaf',
};
const bad = new Set<MicState>(['blocked', 'absent', 'busy', 'silent', 'muted', 'servermuted', 'denied', 'deafened']);

/** MicButton is the one button about the own voice; its words say what is so and what a click does. */
export function MicButton({id}: {id?: string}) {
  const app = useApp();
  const s = app.mic.value, facts = app.micFacts.value;
  const keys = {mute: app.keyName('mute'), deafen: app.keyName('deafen'), talk: app.keyName('talk')};
  const text = micText(s, facts, keys, app.touch.value, app.micLate.value);
  const hold = facts.mode === 'hold' && (s === 'held' || s === 'live');
  const click = clickOf(s);
  return (
    <button
      id={id} type="button" class={`mic ${s} ${s === 'live' ? 'on' : bad.has(s) ? 'off' : ''}`} aria-pressed={click === 'mute' || click === 'unmute' ? s !== 'muted' : undefined}
      aria-disabled={click === 'nothing'}
      onClick={() => !hold && app.clickMic()}
      onPointerDown={(e) => { if (hold && e.button === 0) { e.currentTarget.setPointerCapture(e.pointerId); app.pressMic(e.pointerId); } }}
      onPointerUp={(e) => app.releaseMic(e.pointerId)}
      onLostPointerCapture={(e) => app.releaseMic(e.pointerId)}
      onContextMenu={(e) => hold && e.preventDefault()}
    >
      <Icon name={micIcon[s]} size={36} />
      <span class="words"><strong>{app.t(text.title, text.holes)}</strong><small>{app.t(text.hint, text.holes)}</small></span>
    </button>
  );
}

export function Dock() {
  const app = useApp();
  return (
    <section class="dock" aria-label={app.t('main.voice')}>
      <div class="hearing">
        <div class="hears">
          <p><Hears /></p>
          <Meter />
        </div>
        <Button icon={app.settings.value.deafened ? 'deaf' : 'hear'} label={app.t('deaf.label')} pressed={app.settings.value.deafened} onClick={() => app.toggleDeafen()} />
      </div>
      <MicButton id="mic" />
      <div class="loud">
        <Tiers />
        {'documentPictureInPicture' in window && <Button icon="popout" label={app.t('main.window')} class="window" onClick={() => void openMini(app)} />}
      </div>
    </section>
  );
}

function Hears() {
  const app = useApp();
  const n = app.hearers.value, s = app.mic.value;
  if (app.connection.value.state !== 'on') return <span>{app.t('main.hears.muted')}</span>;
  if (s !== 'open' && s !== 'live' && s !== 'held') return <span>{app.t('main.hears.muted')}</span>;
  if (n === null) return <span>{app.t('net.on')}</span>;
  return n === 0 ? <span>{app.t('main.hears.none')}</span> : <Text k="main.hears" holes={{n}} />;
}

/** Meter shows the microphone, and where it opens. */
export function Meter() {
  const app = useApp();
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const c = ref.current, g = c?.getContext('2d');
    if (!c || !g) return;
    let shown = 0, last = '';
    const draw = (): void => {
      const w = (c.width = c.clientWidth * (devicePixelRatio || 1)), h = c.height;
      shown = Math.max(app.inputLevel.value, shown - 0.08);
      const style = getComputedStyle(c), cells = 26, at = (app.settings.value.threshold + 60) / 54;
      g.clearRect(0, 0, w, h);
      for (let i = 0; i < cells; i++) {
        g.fillStyle = i < shown * cells ? style.color : 'transparent';
        g.fillRect((i * w) / cells + 1, 2, w / cells - 2, h - 4);
      }
      if (app.settings.value.mode === 'voice') {
        g.fillStyle = style.caretColor;
        g.fillRect(at * w - 1, 0, 3, h);
      }
    };
    const t = setInterval(() => {
      const state = `${app.inputLevel.value.toFixed(2)} ${shown.toFixed(2)} ${app.settings.value.threshold} ${app.settings.value.mode} ${c.clientWidth} ${document.documentElement.dataset['theme']}`;
      if (state === last || document.hidden) return;
      last = state;
      draw();
    }, 100);
    draw();
    return () => clearInterval(t);
  }, []);
  return <canvas ref={ref} class="meter" width="260" height="12" role="img" aria-label={app.t('main.level')} />;
}

const tierIcons: Record<Tier, IconName> = {whisper: 'whisper', normal: 'normal', shout: 'shout'};

function Tiers() {
  const app = useApp();
  const r = app.ranges.value, held = app.heldKeys.value;
  if (!r.whisper && !r.shout) return null;
  const all = (['whisper', 'normal', 'shout'] as const).filter((t) => t === 'normal' || r[t]);
  const now: Tier = held.has('whisper') && r.whisper ? 'whisper' : held.has('shout') && r.shout ? 'shout' : app.tier.value;
  const next = all[(all.indexOf(now) + 1) % all.length]!;
  return (
    <>
      <fieldset class="tiers">
        <legend class="hidden">{app.t('tier.label')}</legend>
        {all.map((t) => (
          <label key={t} class={now === t ? 'chosen' : ''}>
            <input type="radio" name="tier" checked={now === t} onChange={() => app.setTier(t)} />
            <Icon name={tierIcons[t]} /><span>{app.t(`tier.${t}`)}</span>
          </label>
        ))}
      </fieldset>
      <Button class="tier" icon={tierIcons[now]} label={`${app.t('tier.label')}: ${app.t(`tier.${now}`)}`} onClick={() => app.setTier(next)} />
    </>
  );
}
