import {useState} from 'preact/hooks';
import {forget, keep, levelled, longestClip, read, type Clip} from '../sound/clips.ts';
import {rate} from '../sound/level.ts';
import {Button, Dialog, Slider, useApp} from './parts.tsx';

/** Sounds adds files, trims and levels them. */
export function Sounds() {
  const app = useApp();
  const [note, setNote] = useState('');
  const save = async (c: Clip): Promise<void> => {
    app.clips.value = app.clips.value.some((o) => o.id === c.id) ? app.clips.value.map((o) => (o.id === c.id ? c : o)) : [...app.clips.value, c];
    if (!(await keep(c))) setNote(app.t('sounds.full'));
  };
  const add = async (file: File): Promise<void> => {
    setNote('');
    const pcm = await read(file);
    if (!pcm) return setNote(app.t('sounds.unreadable'));
    const seconds = pcm.length / rate;
    if (seconds > longestClip) setNote(app.t('sounds.long', {s: longestClip}));
    const id = [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, '0')).join('');
    await save({id, name: file.name.replace(/\.\w+$/, '').slice(0, 40) || '?', pcm, from: 0, to: Math.min(seconds, longestClip), gain: levelled(pcm)});
  };
  return (
    <Dialog title={app.t('sounds.title')} wide>
      {!app.mayClip.value && <p class="note">{app.t('sounds.denied')}</p>}
      <label class="field"><span>{app.t('sounds.add')}</span>
        <input type="file" accept="audio/*" onChange={(e) => { const f = e.currentTarget.files?.[0]; e.currentTarget.value = ''; if (f) void add(f); }} /></label>
      <p class="answer" role="status">{note}</p>
      {app.clips.value.length === 0 && <p class="empty">{app.t('sounds.empty')}</p>}
      {app.clips.value.map((c) => <Edit key={c.id} clip={c} onSave={save} />)}
    </Dialog>
  );
}

function Edit({clip: c, onSave}: {clip: Clip; onSave(c: Clip): Promise<void>}) {
  const app = useApp();
  const seconds = c.pcm.length / rate, playing = app.playing.value.has(c.id);
  const at = (n: number): string => app.t('sounds.seconds', {n: Math.round(n * 10) / 10});
  return (
    <section class="card clip">
      <label class="field"><span>{app.t('sounds.name')}</span><input type="text" maxLength={40} value={c.name} onChange={(e) => void onSave({...c, name: e.currentTarget.value || c.name})} /></label>
      <div class="field"><span>{app.t('sounds.from')}</span><Slider label={app.t('sounds.from')} min={0} max={seconds} step={0.1} value={c.from} text={at(c.from)} onInput={(from) => void onSave({...c, from, to: Math.min(seconds, Math.max(c.to, from + 0.1), from + longestClip)})} /></div>
      <div class="field"><span>{app.t('sounds.to')}</span><Slider label={app.t('sounds.to')} min={0} max={seconds} step={0.1} value={c.to} text={at(c.to)} onInput={(to) => void onSave({...c, to, from: Math.max(0, Math.min(c.from, to - 0.1), to - longestClip)})} /></div>
      <div class="field"><span>{app.t('sounds.level')}</span><Slider label={app.t('sounds.level')} min={0} max={4} step={0.05} value={c.gain} text={app.t('row.percent', {n: Math.round(c.gain * 100)})} onInput={(gain) => void onSave({...c, gain})} /></div>
      <div class="actions">
        <Button icon="vol" disabled={!app.mayClip.value} onClick={() => void app.playClip(c)}>{app.t(playing ? 'sounds.stop' : 'sounds.play', {name: c.name})}</Button>
        <Button icon="close" onClick={() => { app.clips.value = app.clips.value.filter((o) => o.id !== c.id); void forget(c.id); }}>{app.t('sounds.remove')}</Button>
      </div>
    </section>
  );
}
