import {render} from 'preact';
import './style/tokens.css';
import './style/base.css';
import {App} from './state/app.ts';
import {AppContext} from './views/parts.tsx';
import {Page} from './views/Page.tsx';

const app = new App();
const root = document.getElementById('page')!;
root.textContent = '';
render(<AppContext.Provider value={app}><Page /></AppContext.Provider>, root);
void app.start();
