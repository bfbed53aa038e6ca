import {useState} from 'preact/hooks';
import type {Key} from '../text/en.ts';
import type {Action} from '../state/settings.ts';
import {Button, Dialog, useApp} from './parts.tsx';

/** Diagnosis answers why somebody is not heard, in the server's words, and shows the numbers of this connection. */
export function Diagnosis() {
  const app = useApp();
  const [who, setWho] = useState('');
  const [why, setWhy] = useState('');
  const [copied, setCopied] = useState(false);
  const s = app.stats.value, h = app.heard.value, caps = app.caps.value, me = app.session.value?.uuid;
  const ms = (n: number): string => app.t('diag.ms', {n: Math.round(n)});
  const rows: [Key, string | number][] = [
    ['diag.format', caps.audio === 2 ? 'v2' : 'v1'], ['diag.trip', app.roundTrip.value === null ? '–' : ms(app.roundTrip.value)], ['diag.jitter', ms(h.depth)],
    ['diag.gaps', s.gaps], ['diag.concealed', h.concealed], ['diag.discarded', s.discarded], ['diag.underruns', h.underruns], ['diag.crowded', s.crowded], ['diag.sent', s.sent],
    ['diag.device', app.micDevice.value?.label || '–'], ['diag.output', app.settings.value.output?.label ?? app.t('set.system')],
  ];
  const ask = async (): Promise<void> => {
    setWhy(app.t('sheet.asking'));
    setWhy(await app.why(who));
  };
  const copy = async (): Promise<void> => {
    const lines = [...rows.map(([k, v]) => `${app.t(k)}: ${v}`), `caps ${JSON.stringify(caps)}`, `state ${app.connection.value.state} ${app.mic.value}`, `${JSON.stringify(s)} ${JSON.stringify({...h, levels: undefined})}`, navigator.userAgent];
    try {
      await navigator.clipboard.writeText(lines.join('\n'));
      setCopied(true);
    } catch {
      setCopied(false);
    }
  };
  return (
    <Dialog title={app.t('diag.title')} wide>
      <section>
        <h3>{app.t('diag.why')}</h3>
        <form class="line" onSubmit={(e) => { e.preventDefault(); if (who) void ask(); }}>
          <label><span class="hidden">{app.t('diag.choose')}</span>
            <select value={who} onChange={(e) => setWho(e.currentTarget.value)}>
              <option value="">{app.t('diag.choose')}</option>
              {app.roster.value?.people.filter((p) => p.id !== me).map((p) => <option key={p.id} value={p.name}>{p.name}</option>)}
            </select></label>
          <button type="submit" class="button" disabled={!who}><span>{app.t('diag.ask')}</span></button>
        </form>
        <p class="answer" role="status">{why}</p>
      </section>
      <section>
        <dl class="numbers">{rows.map(([k, v]) => <div key={k}><dt>{app.t(k)}</dt><dd>{typeof v === 'number' ? v.toLocaleString(app.language.value.code) : v}</dd></div>)}</dl>
        {s.bursts && <p class="note">{app.t('diag.bursts')}</p>}
        <Button icon="list" onClick={() => void copy()}>{app.t(copied ? 'diag.copied' : 'diag.report')}</Button>
      </section>
      <section>
        <h3>{app.t('diag.keys')}</h3>
        <ul class="keys">{(Object.keys(app.settings.value.keys) as Action[]).map((a) => <li key={a}><span>{app.t(`key.${a}`)}</span><kbd>{app.keyName(a)}</kbd></li>)}</ul>
      </section>
    </Dialog>
  );
}
