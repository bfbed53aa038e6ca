import {useState} from 'preact/hooks';
import {Button, Check, Dialog, Name, useApp, Volume} from './parts.tsx';
import {Sigil} from './sigil.tsx';

/** Person is what can be done about one of the others. */
export function Person({id}: {id: string}) {
  const app = useApp();
  const [why, setWhy] = useState<string | null>(null);
  const name = app.nameOf(id), s = app.settings.value, group = app.ownGroup.value;
  const ask = async (): Promise<void> => {
    setWhy(app.t('sheet.asking'));
    setWhy(await app.why(name));
  };
  return (
    <Dialog title={<><Sigil id={id} size={28} /> <Name>{name}</Name></>}>
      <div class="field"><span>{app.t('sheet.volume')}</span><Volume label={app.t('row.volume', {name})} value={app.volumeOf(id)} onInput={(v) => app.setVolume(id, v)} /></div>
      {app.caps.value.soundboard > 0 && (
        <div class="field"><span>{app.t('sheet.clips')}</span><Volume label={app.t('sheet.clips')} value={s.clips[id] ?? 1} onInput={(v) => app.change({clips: {...s.clips, [id]: v}})} /></div>
      )}
      <Check label={app.t('sheet.mute')} on={app.isMuted(id)} onChange={() => app.toggleMuted(id)} />
      {group && app.groups.value?.may.invite && !app.ownMembers.value.has(id) && (
        <Button icon="group" onClick={() => app.group({verb: 'INVITE', group: group.id, player: id})}>{app.t('sheet.invite', {group: group.name})}</Button>
      )}
      <Button icon="help" onClick={() => void ask()}>{app.t('sheet.why', {name})}</Button>
      <p class="answer" role="status">{why ?? app.result.value?.text ?? ''}</p>
    </Dialog>
  );
}

/** Blocked says where to click, by the reason that the browser gave. */
export function Blocked() {
  const app = useApp();
  const fault = app.micFault.value;
  const key = fault === 'system' ? 'help.blocked.system' : fault === 'dismissed' ? 'help.blocked.dismissed' : 'help.blocked.denied';
  return (
    <Dialog title={app.t('help.blocked.title')}>
      <p>{app.parts(key).map((p, i) => (p.mark === 'bold' ? <strong key={i}>{p.text}</strong> : <span key={i}>{p.text}</span>))}</p>
      <Button kind="main" icon="mic" onClick={() => void app.openMic()}>{app.t('help.askAgain')}</Button>
    </Dialog>
  );
}
