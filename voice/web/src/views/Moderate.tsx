import {useState} from 'preact/hooks';
import {Button, Dialog, Name, useApp} from './parts.tsx';

/** Moderate is every player with their group, to be moved at once and moved back. */
export function Moderate() {
  const app = useApp();
  const [search, setSearch] = useState('');
  const g = app.groups.value, people = app.roster.value?.people ?? [];
  const shown = people.filter((p) => p.name.toLowerCase().includes(search.trim().toLowerCase()));
  const at = new Map(g?.members.map((m) => [m.player, m.group]));
  const result = app.result.value;
  return (
    <Dialog title={app.t('mod.title')} wide>
      <label class="field"><span>{app.t('mod.search')}</span><input type="search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} /></label>
      <div class={`answer ${result && !result.ok ? 'bad' : ''}`} role="status">
        {result && <span>{result.text}</span>}
        {result?.undo && <Button onClick={result.undo}>{app.t('undo')}</Button>}
      </div>
      {shown.length === 0 ? <p class="empty">{app.t('mod.nobody')}</p> : (
        <table>
          <thead><tr><th scope="col">{app.t('mod.player')}</th><th scope="col">{app.t('mod.group')}</th></tr></thead>
          <tbody>
            {shown.map((p) => (
              <tr key={p.id}>
                <th scope="row"><Name>{p.name}</Name></th>
                <td>
                  <select aria-label={app.t('mod.groupOf', {name: p.name})} value={at.get(p.id) ?? ''} onChange={(e) => app.move(p.id, e.currentTarget.value || null)}>
                    <option value="">{app.t('group.noneOpen')}</option>
                    {g?.groups.map((r) => <option key={r.id} value={r.id}>{r.name}</option>)}
                  </select>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}
