import {later, Part, useApp} from './parts.tsx';
import {Insecure, Landing, TooOld, Trading} from './Landing.tsx';
import {Join} from './Join.tsx';
import {Main} from './Main.tsx';
import {Blocked, Person} from './Person.tsx';

const panels = {
  settings: later(async () => (await import('./Settings.tsx')).Settings),
  group: later(async () => (await import('./Group.tsx')).Group),
  moderate: later(async () => (await import('./Moderate.tsx')).Moderate),
  sounds: later(async () => (await import('./Sounds.tsx')).Sounds),
  diagnosis: later(async () => (await import('./Diagnosis.tsx')).Diagnosis),
  blocked: Blocked,
};

/** Page is the screen that the state asks for, the dialog over it, and what a screen reader is told. */
export function Page() {
  const app = useApp();
  return (
    <>
      <Part><Body /></Part>
      <Part><Panel /></Part>
      <div class="hidden" role="alert" aria-live="assertive">{app.said.value.assertive}</div>
      <div class="hidden" role="status" aria-live="polite">{app.said.value.polite}</div>
    </>
  );
}

function Body() {
  const app = useApp();
  const {phase} = app.entry.value, s = app.support.value;
  if (s && !s.secure) return <Insecure />;
  if (s && !s.listen) return <TooOld features={s.missing.join(', ')} />;
  switch (phase) {
    case 'trading': return <Trading />;
    case 'landing': return <Landing />;
    case 'ready': return <Join />;
    case 'joined': return <Main />;
  }
}

function Panel() {
  const app = useApp();
  const p = app.panel.value;
  if (!p) return null;
  if (p.panel === 'person') return <Person key={p.id} id={p.id} />;
  const C = panels[p.panel];
  return <C key={p.panel} />;
}
