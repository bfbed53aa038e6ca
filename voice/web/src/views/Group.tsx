import {useState} from 'preact/hooks';
import {groupTypes, type GroupType} from '../protocol/group.ts';
import type {GroupRow} from '../protocol/line.ts';
import {Icon} from './icons.tsx';
import {Button, Check, Dialog, Name, useApp} from './parts.tsx';
import {Sigil} from './sigil.tsx';

/** Group is the own group with its members, or the list of groups to join. */
export function Group() {
  const app = useApp();
  const g = app.groups.value, own = app.ownGroup.value;
  return (
    <Dialog title={app.t('group.title')} wide>
      <p class={`answer ${app.result.value && !app.result.value.ok ? 'bad' : ''}`} role="status">{app.result.value?.text ?? ''}</p>
      {!g ? <p>{app.t('group.off')}</p> : own ? <Own group={own} /> : <List />}
    </Dialog>
  );
}

function Own({group}: {group: GroupRow}) {
  const app = useApp();
  const g = app.groups.value!, me = app.session.value!.uuid;
  const mayEdit = app.caps.value.groupEdit === 1 && (group.owner === me || g.may.admin);
  const [editing, setEditing] = useState(false);
  return (
    <section>
      <h3>{app.t('group.yours', {name: group.name})}</h3>
      <p class="note">{app.t(`group.${group.type}`)}</p>
      <ul class="members">
        {g.members.filter((m) => m.group === group.id).map(({player}) => (
          <li key={player}>
            <Sigil id={player} size={28} /><Name>{player === me ? app.session.value!.name : app.nameOf(player)}</Name>
            {mayEdit && player !== me && <Button icon="close" kind="plain" label={app.t('group.kick', {name: app.nameOf(player)})} onClick={() => app.group({verb: 'KICK', group: group.id, player})} />}
          </li>
        ))}
      </ul>
      <div class="actions">
        {mayEdit && <Button icon="gear" pressed={editing} onClick={() => setEditing(!editing)}>{app.t('group.edit')}</Button>}
        <Button icon="leave" onClick={() => app.group({verb: 'LEAVE'})}>{app.t('group.leave')}</Button>
      </div>
      {editing && <Edit group={group} />}
    </section>
  );
}

function Edit({group}: {group: GroupRow}) {
  const app = useApp();
  return (
    <div class="edit">
      <Field label={app.t('group.name')} value={group.name} most={24} button={app.t('group.rename')} onDone={(name) => app.group({verb: 'RENAME', group: group.id, name})} />
      <Field label={app.t('group.password')} value="" most={64} secret button={app.t('group.setPassword')} onDone={(password) => app.group({verb: 'PASSWORD', group: group.id, password})} />
      {group.locked && <Button onClick={() => app.group({verb: 'PASSWORD', group: group.id})}>{app.t('group.noPassword')}</Button>}
      <Types value={group.type} onChange={(type) => app.group({verb: 'TYPE', group: group.id, type})} />
      <Button kind="bad" onClick={() => app.group({verb: 'DELETE', group: group.id})}>{app.t('group.delete')}</Button>
    </div>
  );
}

function Field({label, value, most, secret, button, onDone}: {label: string; value: string; most: number; secret?: boolean; button: string; onDone(v: string): void}) {
  const [text, set] = useState(value);
  return (
    <form class="line" onSubmit={(e) => { e.preventDefault(); onDone(text); }}>
      <label><span>{label}</span>
        {secret
          ? <input type="password" autocomplete="off" maxLength={most} value={text} onInput={(e) => set(e.currentTarget.value)} />
          : <input type="text" autocomplete="off" maxLength={most} value={text} onInput={(e) => set(e.currentTarget.value)} />}
      </label>
      <button type="submit" class="button" disabled={text.trim() === ''}><span>{button}</span></button>
    </form>
  );
}

function Types({value, onChange}: {value: GroupType; onChange(t: GroupType): void}) {
  const app = useApp();
  return (
    <fieldset class="choices">
      <legend>{app.t('group.type')}</legend>
      {groupTypes.map((t) => <label key={t} class="check"><input type="radio" name="type" checked={value === t} onChange={() => onChange(t)} /><span>{app.t(`group.${t}`)}</span></label>)}
    </fieldset>
  );
}

function List() {
  const app = useApp();
  const g = app.groups.value!;
  const [asking, setAsking] = useState<string | null>(null);
  const [creating, setCreating] = useState(false);
  return (
    <section>
      <h3>{app.t('group.list')}</h3>
      {g.groups.length === 0 && <p class="empty">{app.t('group.none')}</p>}
      <ul class="members">
        {g.groups.map((r) => (
          <li key={r.id}>
            <Icon name={r.locked ? 'lock' : 'group'} />
            <span class="text"><Name>{r.name}</Name><small>{app.t('group.members', {n: g.members.filter((m) => m.group === r.id).length})} · {app.t(`group.${r.type}`)}{r.locked ? ` · ${app.t('group.locked')}` : ''}</small></span>
            {g.may.use && <button type="button" class="button" aria-label={app.t('group.join.name', {name: r.name})} onClick={() => (r.locked ? setAsking(r.id) : app.group({verb: 'JOIN', group: r.id}))}><span>{app.t('group.join')}</span></button>}
            {asking === r.id && <Field label={app.t('group.password')} value="" most={64} secret button={app.t('group.join')} onDone={(password) => app.group({verb: 'JOIN', group: r.id, password})} />}
          </li>
        ))}
      </ul>
      {g.may.create && !creating && <Button icon="group" onClick={() => setCreating(true)}>{app.t('group.create')}</Button>}
      {creating && <Create />}
    </section>
  );
}

function Create() {
  const app = useApp();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [type, setType] = useState<GroupType>('OPEN');
  const [persistent, setPersistent] = useState(false);
  return (
    <form class="edit" onSubmit={(e) => { e.preventDefault(); app.group({verb: 'CREATE', name, password, type, persistent}); }}>
      <label class="field"><span>{app.t('group.name')}</span><input type="text" required maxLength={24} autocomplete="off" value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
      <label class="field"><span>{app.t('group.passwordOptional')}</span><input type="password" maxLength={64} autocomplete="new-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} /></label>
      <Types value={type} onChange={setType} />
      <Check label={app.t('group.persistent')} on={persistent} onChange={setPersistent} />
      <button type="submit" class="button main" disabled={name.trim() === ''}><span>{app.t('group.create')}</span></button>
    </form>
  );
}
