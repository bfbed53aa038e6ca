import {useRef, useState} from 'preact/hooks';
import {noticeOf} from '../state/connection.ts';
import type {Tab} from '../state/app.ts';
import {mostShown, Order, type Row as Person} from '../state/people.ts';
import {clock} from '../text/format.ts';
import {Dial} from './Dial.tsx';
import {Dock} from './Dock.tsx';
import {Top} from './Frame.tsx';
import {Icon, type IconName} from './icons.tsx';
import {Button, Part, Text, useApp, Volume} from './parts.tsx';
import {Row} from './Row.tsx';

const tabs: readonly [Tab, IconName][] = [['people', 'list'], ['map', 'map'], ['group', 'group'], ['sounds', 'board']];

/** Main is the page while somebody talks. */
export function Main() {
  const app = useApp();
  const tab = app.tab.value;
  const shown = tabs.filter(([t]) => (t !== 'group' || app.groups.value) && (t !== 'sounds' || app.mayClip.value || app.namedSpeakers.value.length > 0));
  return (
    <div class={`app tab-${tab}`}>
      <a class="skip" href="#mic" onClick={(e) => { e.preventDefault(); document.getElementById('mic')?.focus(); }}>{app.t('main.skip')}</a>
      <Top connected />
      <div class="banners" role="region" aria-label={app.t('main.notices')}><Banner /></div>
      <div class="columns">
        <main>
          <Part><Invitations /></Part>
          <Part><People /></Part>
        </main>
        <aside aria-label={app.t('main.around')}>
          <Part><Around /></Part>
          <Part><GroupCard /></Part>
          <Part><SoundsCard /></Part>
          <Part><SpeakersCard /></Part>
        </aside>
      </div>
      <Part><Dock /></Part>
      {shown.length > 1 && (
        <nav class="tabs" aria-label={app.t('main.views')}>
          {shown.map(([t, icon]) => (
            <button key={t} type="button" aria-current={tab === t ? 'page' : undefined} onClick={() => (app.tab.value = t)}>
              <Icon name={icon} /><span>{app.t(`main.tab.${t}`)}</span>
            </button>
          ))}
        </nav>
      )}
    </div>
  );
}

/** Banner is one: the most severe of what there is to tell. */
function Banner() {
  const app = useApp();
  const c = app.connection.value, mute = app.mute.value;
  const n = noticeOf(c, app.left.value, app.offline.value);
  if (n) {
    const act = n.button === 'reload' ? () => location.reload() : () => app.tryNow();
    return (
      <div class={`banner ${n.severe ? 'bad' : ''}`}>
        <Icon name={c.state === 'elsewhere' ? 'popout' : 'bars'} />
        <p><strong><Text k={n.key} holes={n.holes} /></strong> {n.more && <Text k={n.more} holes={n.holes} />}</p>
        {n.button && <Button onClick={act}>{app.t(`net.${n.button}`)}</Button>}
      </div>
    );
  }
  if (mute.kind !== 0) {
    const left = app.muteLeft.value;
    const key = mute.kind === 2 ? (left === null ? 'banner.muted.all' : 'banner.muted.all.time') : left === null ? 'banner.muted.ever' : 'banner.muted';
    return (
      <div class="banner bad">
        <Icon name="lock" />
        <p>
          <strong><Text k={key} holes={{time: clock(left ?? 0)}} /></strong>{' '}
          {mute.reason && <><Text k="banner.reason" holes={{reason: mute.reason}} />{' '}</>}
          <Text k="banner.stillHear" />
        </p>
      </div>
    );
  }
  if (!app.rights.value.listen) return <div class="banner"><Icon name="deaf" /><p><strong>{app.t('net.noListen')}</strong></p></div>;
  if (app.stats.value.unheard && c.state === 'on') return <div class="banner bad"><Icon name="warn" /><p><strong>{app.t('net.unheard')}</strong></p></div>;
  const rank = ['tap', 'keep', 'device', 'output', 'mutedTalking', 'storage', 'back', 'front'];
  const note = [...app.notes.value].sort((a, b) => rank.indexOf(a.kind) - rank.indexOf(b.kind))[0];
  if (!note) return null;
  const icons: Record<string, IconName> = {tap: 'vol', output: 'vol', front: 'popout', storage: 'warn', back: 'check'};
  return (
    <div class="banner">
      <Icon name={icons[note.kind] ?? 'mic'} />
      <p><strong><Text k={note.key} holes={note.holes} /></strong> {note.more && <Text k={note.more} />}</p>
      {note.button && <Button onClick={() => { app.closeNote(note.kind); note.act?.(); }}>{app.t(note.button)}</Button>}
      {note.act && <Button icon="close" label={app.t('close')} kind="plain" onClick={() => app.closeNote(note.kind)} />}
    </div>
  );
}

function People() {
  const app = useApp();
  const {near, group, others} = app.lists.value;
  const own = app.ownGroup.value;
  const list = useRef<HTMLDivElement>(null);
  const orders = useRef({near: new Order(), group: new Order(), others: new Order()});
  const [all, setAll] = useState(false);
  const busy = (): boolean => {
    const e = list.current;
    return e !== null && (e.matches(':hover') || e.contains(document.activeElement));
  };
  const by = app.sortBy.value;
  const sorted = (rows: Person[], which: 'near' | 'group' | 'others'): Person[] => orders.current[which].sort(rows, which === 'near' ? by : which === 'group' ? 'near' : 'name', busy(), performance.now());
  const nearRows = sorted(near, 'near'), most = all ? Infinity : mostShown;
  return (
    <div class="people" ref={list}>
      <section aria-labelledby="near-title">
        <div class="title">
          <h2 id="near-title">{app.t('main.inEarshot')} <small>{near.length}</small></h2>
          <Button icon="list" kind="plain" class="sort" label={app.t(by === 'near' ? 'main.sort' : 'main.sort.name')} onClick={() => (app.sortBy.value = by === 'near' ? 'name' : 'near')}>
            {app.t(by === 'near' ? 'main.sort' : 'main.sort.name')}
          </Button>
        </div>
        {near.length === 0
          ? <p class="empty"><strong>{app.t('main.empty')}</strong> <Text k="main.empty.more" /></p>
          : <ul class="rows">{nearRows.slice(0, most).map((r) => <Row key={r.id} person={r} />)}</ul>}
        {nearRows.length > most && <Button onClick={() => setAll(true)}>{app.t('main.showAll', {n: nearRows.length})}</Button>}
      </section>
      {own && (
        <section aria-labelledby="group-title" class="mine">
          <div class="title">
            <h2 id="group-title"><Text k="group.yours" holes={{name: own.name}} /> <small>{group.length + 1}</small></h2>
            <Button icon="leave" kind="plain" onClick={() => app.group({verb: 'LEAVE'})}>{app.t('group.leave')}</Button>
          </div>
          {group.length > 0 && <ul class="rows">{sorted(group, 'group').map((r) => <Row key={r.id} person={r} />)}</ul>}
        </section>
      )}
      {others.length > 0 && (
        <section aria-labelledby="others-title">
          <div class="title"><h2 id="others-title">{app.t('main.others')} <small>{others.length}</small></h2></div>
          <ul class="rows">{sorted(others, 'others').slice(0, most).map((r) => <Row key={r.id} person={r} />)}</ul>
        </section>
      )}
    </div>
  );
}

function Invitations() {
  const app = useApp();
  const g = app.groups.value;
  const passed = (app.clock.value - app.groupsAt.value) / 1000;
  const open = g?.invites.filter((i) => i.seconds - passed > 0) ?? [];
  return (
    <>
      {open.map((i) => (
        <div key={i.group} class="banner invite">
          <Icon name="group" />
          <p><Text k="group.invitation" holes={{...app.invitation(i), s: Math.ceil(i.seconds - passed)}} /></p>
          <Button kind="main" onClick={() => app.group({verb: 'ACCEPT', group: i.group})}>{app.t('group.accept')}</Button>
          <Button onClick={() => app.group({verb: 'DECLINE', group: i.group})}>{app.t('group.decline')}</Button>
        </div>
      ))}
      {app.result.value && !app.panel.value && (
        <div class={`banner ${app.result.value.ok ? '' : 'bad'}`}>
          <Icon name={app.result.value.ok ? 'check' : 'warn'} />
          <p>{app.result.value.text}</p>
          <Button icon="close" label={app.t('close')} kind="plain" onClick={() => (app.result.value = null)} />
        </div>
      )}
    </>
  );
}

function Around() {
  const app = useApp();
  return (
    <section class="around">
      <div class="title"><h2>{app.t('main.around')}</h2></div>
      <Dial />
      <p class="empty" hidden={app.near.value !== null || app.caps.value.page === 1}>{app.t('main.dial.none')}</p>
    </section>
  );
}

function GroupCard() {
  const app = useApp();
  const g = app.groups.value;
  if (!g) return null;
  return (
    <section class="card groups">
      <div class="title">
        <h2>{app.t('group.title')}</h2>
        {g.may.admin && <Button icon="list" label={app.t('group.moderate')} kind="plain" onClick={() => (app.panel.value = {panel: 'moderate'})} />}
      </div>
      <Button icon="group" onClick={() => (app.panel.value = {panel: 'group'})}>
        {app.ownGroup.value ? <Text k="group.yours" holes={{name: app.ownGroup.value.name}} /> : <Text k="group.noneOpen" />}
      </Button>
    </section>
  );
}

function SoundsCard() {
  const app = useApp();
  if (!app.mayClip.value) return null;
  return (
    <section class="card sounds">
      <div class="title">
        <h2>{app.t('sounds.title')}</h2>
        <Button icon="gear" label={app.t('sounds.manage')} kind="plain" onClick={() => (app.panel.value = {panel: 'sounds'})} />
      </div>
      {app.clips.value.length === 0
        ? <p class="empty">{app.t('sounds.empty')}</p>
        : (
          <div class="pads">
            {app.clips.value.map((c, i) => {
              const on = app.playing.value.has(c.id);
              return (
                <button key={c.id} type="button" class="button" aria-pressed={on} title={app.t(on ? 'sounds.stop' : 'sounds.play', {name: c.name})} onClick={() => void app.playClip(c)}>
                  {i < 10 && <kbd>{(i + 1) % 10}</kbd>}<span><bdi translate={false}>{c.name}</bdi></span>
                </button>
              );
            })}
          </div>
        )}
    </section>
  );
}

function SpeakersCard() {
  const app = useApp();
  const list = app.namedSpeakers.value, s = app.settings.value;
  if (list.length === 0) return null;
  return (
    <section class="card speakers">
      <h2>{app.t('speakers.title')}</h2>
      <ul>
        {list.map((p) => (
          <li key={p.id} class={app.speaking.value.has(p.id) ? 'speaking' : ''}>
            <Icon name={s.speakers[p.id] === 0 ? 'volOff' : 'vol'} />
            <bdi class="name" translate={false}>{p.name}</bdi>
            <Volume label={app.t('row.volume', {name: p.name})} value={s.speakers[p.id] ?? 1} onInput={(v) => app.change({speakers: {...s.speakers, [p.id]: v}})} />
          </li>
        ))}
      </ul>
    </section>
  );
}
