import {render} from 'preact';
import type {App} from '../state/app.ts';
import {MicButton} from './Dock.tsx';
import {AppContext, Bars, Button, Name, useApp} from './parts.tsx';
import {Sigil} from './sigil.tsx';

/** Mini is the small window that stays in front of the game: who speaks, and the own microphone. */
export function Mini() {
  const app = useApp();
  return (
    <div class="mini">
      <div class="buttons">
        <MicButton />
        <Button icon={app.settings.value.deafened ? 'deaf' : 'hear'} label={app.t('deaf.label')} pressed={app.settings.value.deafened} onClick={() => app.toggleDeafen()} />
      </div>
      <ul>
        {[...app.speaking.value].filter((id) => id !== 'self').slice(0, 6).map((id) => (
          <li key={id}><Sigil id={id} size={21} /><Bars level={() => app.levels.value.get(id) ?? 0} /><Name>{app.nameOf(id)}</Name></li>
        ))}
      </ul>
    </div>
  );
}

export async function openMini(app: App): Promise<void> {
  if (app.mini.value) {
    app.mini.value.close();
    return;
  }
  const pip = (window as unknown as {documentPictureInPicture: {requestWindow(o: {width: number; height: number}): Promise<Window>}}).documentPictureInPicture;
  try {
    const w = await pip.requestWindow({width: 320, height: 160});
    for (const sheet of document.querySelectorAll('link[rel=stylesheet]')) w.document.head.append(sheet.cloneNode());
    for (const [name, value] of Object.entries(document.documentElement.dataset)) w.document.documentElement.dataset[name] = value;
    w.document.documentElement.lang = document.documentElement.lang;
    w.document.title = app.network.value;
    const root = w.document.createElement('div');
    w.document.body.append(root);
    render(<AppContext.Provider value={app}><Mini /></AppContext.Provider>, root);
    app.mini.value = w;
    w.addEventListener('pagehide', () => {
      render(null, root);
      app.mini.value = null;
    });
  } catch {
    // Refused: nothing has changed.
  }
}
