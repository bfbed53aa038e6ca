import {useRef, useState} from 'preact/hooks';
import {Text, useApp} from './parts.tsx';
import {Screen} from './Frame.tsx';
import {Icon} from './icons.tsx';

/** Landing is for people without a session: how to get one, and the box for a code. */
export function Landing() {
  const app = useApp();
  const error = app.entry.value.error, about = app.about.value;
  return (
    <Screen>
      <div class="landing">
        <div class="hero">
          <h1>{app.t('landing.title')}</h1>
          <p class="sub">{app.t('landing.sub')}</p>
        </div>
        <div class="how">
          {!app.touch.value && <Picture />}
          <ol class="steps">
            <li><b aria-hidden="true">1</b><Text k={about.address ? 'landing.step1' : 'landing.step1.plain'} holes={{address: about.address}} /></li>
            <li><b aria-hidden="true">2</b><Text k="landing.step2" /></li>
            <li><b aria-hidden="true">3</b><Text k="landing.step3" /></li>
          </ol>
        </div>
        <div class="ways">
          {error && (
            <div class="banner bad" role="alert">
              <Icon name="warn" />
              <p><Text k={error.key} holes={error.holes} /></p>
            </div>
          )}
          <Code />
        </div>
      </div>
    </Screen>
  );
}

function Code() {
  const app = useApp();
  const field = useRef<HTMLInputElement>(null);
  const [short, setShort] = useState(false);
  const [busy, setBusy] = useState(false);
  const go = async (): Promise<void> => {
    setBusy(true);
    const could = await app.typed(field.current!.value);
    setBusy(false);
    setShort(!could);
    if (!could || app.entry.value.error) field.current?.focus();
  };
  return (
    <section class="card">
      <h2>{app.t('code.title')}</h2>
      <p><Text k="code.how" /></p>
      <form onSubmit={(e) => { e.preventDefault(); void go(); }}>
        <input
          ref={field} class="code" type="text" name="code" aria-label={app.t('code.label')} autocomplete="one-time-code" autocapitalize="characters" spellcheck={false} inputMode="text" maxLength={24}
          aria-invalid={short} aria-describedby="code-note" data-1p-ignore data-lpignore="true"
        />
        <p id="code-note" class="note" role="status">{short ? app.t('code.short') : ''}</p>
        <button type="submit" class="button main" disabled={busy}><span>{app.t('code.go')}</span></button>
      </form>
    </section>
  );
}

/** Picture shows what the page is about without a word: nearer is louder. */
function Picture() {
  const app = useApp();
  const figures: [x: number, color: string, bars: number, label: string][] = [
    [150, '#4a86c8', 4, app.t('landing.blocks', {n: 2})], [260, '#7d62c4', 3, '16'], [378, '#ad6838', 1, '40'], [490, '#6b7682', 0, '50'],
  ];
  return (
    <svg class="picture" viewBox="0 0 548 152" role="img" aria-label={app.t('landing.picture')} shape-rendering="crispEdges">
      <path class="ground" d="M0,122h548v30h-548z" />
      <path fill="#ffb84d" d="M30,42h40v40h-5v40h-30v-40h-5z" />
      <path fill="#1f1400" d="M55,57h12v12h-12zM60,72h10v6h-10z" />
      <path class="wave" d="M85,58h5v24h-5zM95,48h5v-6h-5zM100,48h5v44h-5zM95,92h5v6h-5zM115,38h5v-6h-5zM120,38h5v64h-5zM115,102h5v6h-5z" />
      {figures.map(([x, color, bars]) => (
        <g key={x}>
          <path fill={color} d={`M${x},42h40v40h-5v40h-30v-40h-5z`} />
          <path fill="#fff" d={`M${x + 5},57h10v10h-10z`} />
          {[0, 1, 2, 3].map((i) => <path key={i} class={i < bars ? 'wave' : 'off'} d={`M${x + i * 10},${28 - i * 8}h8v${4 + i * 8}h-8z`} />)}
        </g>
      ))}
      <g class="labels" text-anchor="middle">
        <text x="50" y="142">{app.t('landing.you')}</text>
        {figures.map(([x, , , label]) => <text key={x} x={x + 20} y="142">{label}</text>)}
      </g>
    </svg>
  );
}

/** Trading is the moment in which a link is given for a session. */
export function Trading() {
  const app = useApp();
  return <Screen narrow><p class="wait" role="status">{app.t('trading')}</p></Screen>;
}

/** Insecure is the page opened without https: it says so before anybody clicks in vain. */
export function Insecure() {
  const app = useApp();
  return (
    <Screen narrow>
      <section class="card centred">
        <Icon name="lock" size={36} />
        <h1>{app.t('http.title')}</h1>
        <p><Text k="http.text" /></p>
        <details><summary>{app.t('http.admin')}</summary><p><Text k="http.admin.text" /></p></details>
      </section>
    </Screen>
  );
}

export function TooOld({features}: {features: string}) {
  const app = useApp();
  return (
    <Screen narrow>
      <section class="card centred">
        <Icon name="warn" size={36} />
        <h1>{app.t('old.title')}</h1>
        <p><Text k="old.text" holes={{features}} /></p>
      </section>
    </Screen>
  );
}
