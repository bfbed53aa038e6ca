import {useComputed} from '@preact/signals';
import {directionOf, turnOf, type Row as Person} from '../state/people.ts';
import {Arrow, Icon, type IconName} from './icons.tsx';
import {Bars, Name, useApp, Volume} from './parts.tsx';
import {Sigil} from './sigil.tsx';

const icons: Partial<Record<Person['status'], IconName>> = {'row.muted': 'volOff', 'row.deafened': 'deaf'};
const loud = new Set<Person['status']>(['row.speaking', 'row.whispers', 'row.shouts']);

/** Row is one person in a list. */
export function Row({person: p}: {person: Person}) {
  const app = useApp();
  const muted = app.isMuted(p.id), speaks = loud.has(p.status);
  return (
    <li class={`row ${speaks ? 'speaking' : ''}`}>
      <button type="button" class="who" onClick={() => (app.panel.value = {panel: 'person', id: p.id})} aria-label={app.t('row.more', {name: p.name})} aria-describedby={`s-${p.id}`} />
      <span class="face"><Sigil id={p.id} size={42} /></span>
      <span class="text">
        <Name>{p.name}</Name>
        <span class="second" id={`s-${p.id}`}>
          {speaks ? <Bars level={() => app.levels.value.get(p.id) ?? 0} /> : icons[p.status] && <Icon name={icons[p.status]!} size={12} />}
          <span>{app.t(p.status)}</span>
        </span>
      </span>
      {p.blocks !== null ? <Where person={p} /> : <span class="where" />}
      <span class="loudness">
        <Volume label={app.t('row.volume', {name: p.name})} value={muted ? 0 : app.volumeOf(p.id)} onInput={(v) => app.setVolume(p.id, v)} />
      </span>
      <button type="button" class="button plain square" aria-pressed={muted} aria-label={app.t('row.mute', {name: p.name})} title={app.t('row.mute', {name: p.name})} onClick={() => app.toggleMuted(p.id)}>
        <Icon name={muted ? 'volOff' : 'vol'} />
      </button>
    </li>
  );
}

function Where({person: p}: {person: Person}) {
  const app = useApp();
  // The arrow turns with the player in steps of three degrees: what is less is not seen, and costs.
  const turn = useComputed(() => Math.round(turnOf(p.dx, p.dz, app.pose.value?.yaw ?? 0) / 3) * 3);
  const word = useComputed(() => (app.pose.value ? directionOf(p, app.pose.value.yaw) : null));
  return (
    <span class="where">
      {word.value !== null && <Arrow turn={turn.value} />}
      <span>
        <span class="blocks">{app.t('row.blocks', {n: p.blocks!})}</span>
        {word.value && <span class="way">{app.t(word.value)}</span>}
      </span>
    </span>
  );
}
