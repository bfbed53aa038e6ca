import {useEffect, useState} from 'preact/hooks';
import {Button, Text, useApp} from './parts.tsx';
import {Screen} from './Frame.tsx';
import {Icon} from './icons.tsx';
import {Sigil} from './sigil.tsx';

/** Join is the one click between the link and talking. */
export function Join() {
  const app = useApp();
  const s = app.session.value!, support = app.support.value;
  const [granted, setGranted] = useState(false);
  useEffect(() => {
    navigator.permissions?.query({name: 'microphone' as PermissionName}).then((p) => setGranted(p.state === 'granted'), () => {});
  }, []);
  return (
    <Screen narrow>
      <section class="card centred join">
        <Sigil id={s.uuid} size={88} />
        <h1><Text k="join.hello" holes={{name: s.name}} /></h1>
        <p><Text k={s.near > 0 ? 'join.where' : 'join.where.none'} holes={{server: s.server, n: s.near}} /></p>
        {support?.speak === false
          ? <p class="note"><Text k="join.listenOnly" holes={{features: support.missing.join(', ')}} /></p>
          : <Button kind="main" icon="mic" autofocus disabled={!support} class="go" onClick={() => app.join(false)}>{app.t('join.go')}</Button>}
        <ul class="facts">
          {!granted && support?.speak && <li><Icon name="mic" /><Text k="join.allow" /></li>}
          <li><Icon name="hear" /><Text k="join.headphones" /></li>
          {support?.speak && <li><Icon name="lock" /><Text k={s.recording ? 'join.range' : 'join.range.private'} holes={{range: s.range}} /></li>}
        </ul>
        <Button kind={support?.speak === false ? 'main' : 'plain'} disabled={!support} onClick={() => app.join(true)}>{app.t('join.listen')}</Button>
      </section>
      <p class="under"><Text k="join.notYou" /></p>
    </Screen>
  );
}

