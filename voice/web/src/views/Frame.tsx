import type {ComponentChildren} from 'preact';
import {languages} from '../state/app.ts';
import {Button, Name, useApp} from './parts.tsx';
import {Icon, Logo} from './icons.tsx';

/** Top is the header of every screen. */
export function Top({connected}: {connected?: boolean}) {
  const app = useApp();
  return (
    <header class="top">
      <Logo />
      {connected ? <h1 class="network"><Name>{app.network.value}</Name></h1> : <span class="network"><Name>{app.network.value}</Name></span>}
      {connected ? <Status /> : <Language />}
    </header>
  );
}

function Status() {
  const app = useApp();
  const state = app.connection.value.state;
  return (
    <>
      <span class={`status ${state === 'on' ? 'on' : state === 'joining' ? '' : 'off'}`}>
        <Icon name={state === 'on' || state === 'joining' ? 'bars' : 'warn'} />
        <span class="word">{app.word()}</span>
      </span>
      <Button icon="gear" label={app.t('main.settings')} kind="plain" onClick={() => (app.panel.value = {panel: 'settings'})} />
      <Button icon="help" label={app.t('main.help')} kind="plain" onClick={() => (app.panel.value = {panel: 'diagnosis'})} />
    </>
  );
}

function Language() {
  const app = useApp();
  return (
    <label class="language">
      <span class="hidden">{app.t('set.language')}</span>
      <select value={app.language.value.code} onChange={(e) => app.change({language: e.currentTarget.value})}>
        {Object.entries(languages).map(([code, l]) => <option key={code} value={code} lang={code}>{l.name}</option>)}
      </select>
    </label>
  );
}

export function Screen({children, title, narrow}: {children: ComponentChildren; title?: string; narrow?: boolean}) {
  return (
    <div class="screen">
      <Top />
      <main class={narrow ? 'narrow' : ''} aria-label={title}>{children}</main>
    </div>
  );
}
