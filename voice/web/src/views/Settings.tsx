import {useEffect, useState} from 'preact/hooks';
import {languages} from '../state/app.ts';
import {bindable} from '../state/keys.ts';
import type {Action} from '../state/settings.ts';
import {sinks} from '../sound/output.ts';
import type {Device, Wish} from '../sound/devices.ts';
import {Meter} from './Dock.tsx';
import {Button, Check, Dialog, Slider, useApp, Volume} from './parts.tsx';

export function Settings() {
  const app = useApp();
  const s = app.settings.value, mic = app.micDevice.value;
  const bluetooth = mic && /bluetooth|airpods|hands-free|headset.*\(bt\)/i.test(mic.label);
  return (
    <Dialog title={app.t('set.title')} wide>
      <section>
        <Devices label={app.t('set.mic')} list={app.inputs.value} wish={s.mic} using={mic} onChange={(w) => app.change({mic: w})} />
        {bluetooth && <p class="note">{app.t('set.bluetooth')}</p>}
        <div class="field"><span>{app.t('main.level')}</span><Meter /></div>
        <fieldset class="choices">
          <legend>{app.t('set.when')}</legend>
          <label class="check"><input type="radio" name="mode" checked={s.mode === 'voice'} onChange={() => app.change({mode: 'voice'})} /><span>{app.t('set.voice')}</span></label>
          <label class="check">
            <input type="radio" name="mode" checked={s.mode === 'hold'} onChange={() => app.change({mode: 'hold'})} />
            <span>{app.t('set.hold', {key: app.keyName('talk')})}<small>{app.t('set.hold.note')}</small></span>
          </label>
        </fieldset>
        {s.mode === 'voice' && (
          <div class="field"><span>{app.t('set.threshold')}</span>
            <Slider label={app.t('set.threshold')} value={s.threshold} min={-60} max={-15} step={1} text={`${s.threshold} dB`} onInput={(threshold) => app.change({threshold})} /></div>
        )}
        <Button icon="hear" disabled={app.ownVoice.value || !mic} onClick={() => app.hearSelf()}>{app.t(app.ownVoice.value ? 'set.hearing' : 'set.hear')}</Button>
        <Check label={app.t('set.echo')} on={s.echo} onChange={(echo) => app.change({echo})} />
        <Check label={app.t('set.noise')} on={s.noise} onChange={(noise) => app.change({noise})} />
        <Check label={app.t('set.gain')} on={s.gain} onChange={(gain) => app.change({gain})} />
        <Check label={app.t('set.browserGain')} on={s.browserGain} onChange={(browserGain) => app.change({browserGain})} />
        <Check label={app.t('set.muteHidden')} on={s.muteHidden} onChange={(muteHidden) => app.change({muteHidden})} />
      </section>
      <section>
        {sinks()
          ? <Devices label={app.t('set.output')} list={app.outputs.value} wish={s.output} using={null} onChange={(w) => app.change({output: w})} />
          : <p class="note">{app.t('set.noSink')}</p>}
        <div class="field"><span>{app.t('set.master')}</span><Volume label={app.t('set.master')} value={s.master} onInput={(master) => app.change({master})} /></div>
        <Check label={app.t('set.surround')} on={s.surround} onChange={(surround) => app.change({surround})} />
        <Check label={app.t('set.cues')} on={s.cues} onChange={(cues) => app.change({cues})} />
        <Check label={app.t('set.announce')} on={s.announce} onChange={(announce) => app.change({announce})} />
      </section>
      <section>
        <h3>{app.t('set.keys')}</h3>
        <Check label={app.t('set.keysOn')} on={s.keysOn} onChange={(keysOn) => app.change({keysOn})} />
        <ul class="keys">{(Object.keys(s.keys) as Action[]).map((a) => <KeyRow key={a} action={a} />)}</ul>
      </section>
      <section>
        <label class="field"><span>{app.t('set.theme')}</span>
          <select value={s.theme} onChange={(e) => app.change({theme: e.currentTarget.value as 'auto'})}>
            {(['auto', 'dark', 'light'] as const).map((t) => <option key={t} value={t}>{app.t(`set.theme.${t}`)}</option>)}
          </select></label>
        <label class="field"><span>{app.t('set.language')}</span>
          <select value={app.language.value.code} onChange={(e) => app.change({language: e.currentTarget.value})}>
            {Object.entries(languages).map(([code, l]) => <option key={code} value={code} lang={code}>{l.name}</option>)}
          </select></label>
        <Button icon="leave" onClick={() => { app.leave(); location.reload(); }}>{app.t('main.leave')}</Button>
        <Button kind="bad" onClick={() => void app.forgetAll()}>{app.t('set.forget')}</Button>
      </section>
    </Dialog>
  );
}

function Devices({label, list, wish, using, onChange}: {label: string; list: Device[]; wish: Wish; using: Device | null; onChange(w: Wish): void}) {
  const app = useApp();
  const named = list.filter((d) => d.label !== ''); // before permission no device has a name
  const gone = wish !== null && !named.some((d) => d.id === wish.id || d.label === wish.label);
  return (
    <label class="field"><span>{label}{using && <small>{app.t('set.using', {device: using.label || app.t('mic.defaultDevice')})}</small>}</span>
      <select
        value={wish ? (named.find((d) => d.id === wish.id)?.id ?? named.find((d) => d.label === wish.label)?.id ?? wish.id) : ''}
        onChange={(e) => onChange(named.find((d) => d.id === e.currentTarget.value) ?? null)}
      >
        <option value="">{app.t('set.system')}</option>
        {named.map((d) => <option key={d.id} value={d.id}>{d.label}</option>)}
        {gone && <option value={wish.id} disabled>{wish.label}</option>}
      </select></label>
  );
}

function KeyRow({action}: {action: Action}) {
  const app = useApp();
  const [asking, setAsking] = useState(false);
  const [refused, setRefused] = useState(false);
  useEffect(() => {
    if (!asking) return;
    const take = (e: KeyboardEvent): void => {
      e.preventDefault();
      e.stopPropagation();
      if (e.code === 'Escape') return setAsking(false);
      if (!bindable(e.code)) return setRefused(true);
      setRefused(false);
      setAsking(false);
      app.bind(action, {code: e.code, key: e.key === ' ' ? 'Space' : e.key.length === 1 ? e.key.toUpperCase() : e.key});
    };
    addEventListener('keydown', take, true);
    return () => removeEventListener('keydown', take, true);
  }, [asking]);
  return (
    <li>
      <span>{app.t(`key.${action}`)}</span>
      <button type="button" class="button" aria-pressed={asking} aria-label={`${app.t(`key.${action}`)}: ${app.keyName(action)}`} onClick={() => { setRefused(false); setAsking(!asking); }}>
        <kbd>{asking ? app.t('set.press') : app.keyName(action)}</kbd>
      </button>
      {refused && <small role="alert">{app.t('set.keyTaken')}</small>}
    </li>
  );
}
