// Tries the built page in a real Chromium: node check/check.mjs [talk] [errors] [shots] (all without a name).
// talk needs EARSHOT_GATEWAY, the program built from itest/voicetarget. Pictures go to EARSHOT_SHOTS, else to a new folder.
import {spawn} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {chromium} from 'playwright-core';
import {scene} from './scene.mjs';
import {serve} from './serve.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const executablePath = process.env.EARSHOT_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync);
const work = mkdtempSync(join(tmpdir(), 'earshot-page-'));
const shotsIn = process.env.EARSHOT_SHOTS ?? join(work, 'shots');
let failed = 0;
const ok = (what, good, detail = '') => {
  console.log(`${good ? 'ok  ' : 'FAIL'} ${what} ${detail}`);
  if (!good) failed++;
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(what, f, ms = 10000) {
  const end = Date.now() + ms;
  for (;;) {
    const v = await f();
    if (v) return v;
    if (Date.now() > end) {
      ok(`in time: ${what}`, false);
      return null;
    }
    await sleep(50);
  }
}

/** wav writes a tone that comes and goes, as speech does. */
function wav(name, hertz) {
  const rate = 48000, n = rate * 4, b = Buffer.alloc(44 + n * 2);
  b.write('RIFF', 0); b.writeUInt32LE(36 + n * 2, 4); b.write('WAVEfmt ', 8); b.writeUInt32LE(16, 16); b.writeUInt16LE(1, 20); b.writeUInt16LE(1, 22);
  b.writeUInt32LE(rate, 24); b.writeUInt32LE(rate * 2, 28); b.writeUInt16LE(2, 32); b.writeUInt16LE(16, 34); b.write('data', 36); b.writeUInt32LE(n * 2, 40);
  for (let i = 0; i < n; i++) b.writeInt16LE(Math.round(9000 * Math.sin((2 * Math.PI * hertz * i) / rate)), 44 + i * 2);
  const path = join(work, name);
  writeFileSync(path, b);
  return path;
}

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--use-fake-device-for-media-stream'];

async function browser({file, deny = false, autoplay = false, more = []} = {}) {
  return chromium.launch({
    executablePath, headless: true,
    args: [...flags, `--use-fake-ui-for-media-stream${deny ? '=deny' : ''}`, ...(file ? [`--use-file-for-fake-audio-capture=${file}`] : []), ...(autoplay ? ['--autoplay-policy=no-user-gesture-required'] : []), ...more],
  });
}

/** listening taps what the page plays, left and right. */
const listening = () => {
  window.contexts = [];
  const Real = window.AudioContext;
  window.AudioContext = class extends Real { constructor(o) { super(o); window.contexts.push(this); } };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (this instanceof AudioWorkletNode && to instanceof AudioDestinationNode) {
      const split = this.context.createChannelSplitter(2);
      connect.call(this, split);
      window.ears = [0, 1].map((i) => {
        const a = this.context.createAnalyser();
        a.fftSize = 8192;
        connect.call(split, a, i);
        return a;
      });
    }
    return connect.call(this, to, ...rest);
  };
  window.hear = () => (window.ears ?? []).map((a) => {
    const time = new Float32Array(a.fftSize), freq = new Float32Array(a.frequencyBinCount);
    a.getFloatTimeDomainData(time);
    a.getFloatFrequencyData(freq);
    let at = 0;
    for (let i = 1; i < freq.length; i++) if (freq[i] > freq[at]) at = i;
    return {rms: Math.sqrt(time.reduce((s, v) => s + v * v, 0) / time.length), hertz: (at * a.context.sampleRate) / a.fftSize};
  });
};

async function open(b, url, options = {}) {
  const context = await b.newContext({viewport: {width: 1280, height: 800}, ...options});
  const page = await context.newPage();
  page.on('pageerror', (e) => ok('no error in the page', false, e.stack));
  page.on('console', (m) => m.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(m.text()) && ok('no error on the console', false, m.text()));
  await page.addInitScript(listening);
  await page.goto(url);
  return page;
}

const has = (page, text, ms = 8000) => page.getByText(text).first().waitFor({timeout: ms}).then(() => true, () => false);

async function talk() {
  const program = process.env.EARSHOT_GATEWAY;
  if (!program) return ok('EARSHOT_GATEWAY names the gateway program', false);
  const gateway = spawn(program, ['-all'], {stdio: ['ignore', 'pipe', 'inherit']});
  const address = await new Promise((done) => gateway.stdout.once('data', (d) => done(String(d).trim())));
  const s = await serve({gateway: address, prefix: '/voice-page'});
  const [one, two] = [await browser({file: wav('a.wav', 440)}), await browser({file: wav('b.wav', 700)})];
  const a = await open(one, `${s.url}#AAAAAA`), c = await open(two, `${s.url}#BBBBBB`);
  ok('the fragment is gone at once', !(await a.evaluate(() => location.hash)));
  const t0 = Date.now();
  await a.getByRole('button', {name: 'Join voice'}).click();
  await c.getByRole('button', {name: 'Join voice'}).click();
  ok('connected', await has(a, /^Connected/) && await has(c, /^Connected/));
  const loud = await until('B hears A', async () => {
    const [l, r] = await c.evaluate(() => window.hear());
    return l && Math.max(l.rms, r.rms) > 0.02 && Math.abs(l.hertz - 440) < 12 ? [l, r] : null;
  });
  ok('B hears 440 Hz of A through the real gateway', loud !== null, JSON.stringify(loud ?? await c.evaluate(() => [window.hear(), window.contexts.map((x) => [x.state, x.currentTime, x === window.ears?.[0].context]), document.querySelector('.banners').textContent, document.querySelector('.row')?.textContent])));
  console.log(`     ${Date.now() - t0} ms from the click to being heard`);
  const back = await until('A hears B', async () => {
    const [l, r] = await a.evaluate(() => window.hear());
    return l && Math.max(l.rms, r.rms) > 0.02 && Math.abs(l.hertz - 700) < 12 ? [l, r] : null;
  });
  ok('A hears 700 Hz of B', back !== null, JSON.stringify(back));
  ok('A is shown as speaking', await until('speaking', async () => (await c.locator('.row.speaking').count()) > 0) !== null);
  await a.keyboard.press('m');
  ok('M mutes', await has(a, 'You are muted'));
  await sleep(800);
  ok('and B hears nothing', Math.max(...(await c.evaluate(() => window.hear())).map((e) => e.rms)) < 0.002);
  ok('nor shows A as speaking', !(await c.locator('.row.speaking').isVisible().catch(() => false)));
  await a.keyboard.press('m');
  ok('M again opens', await until('B hears again', async () => (await c.evaluate(() => window.hear()))[0].rms > 0.02) !== null);
  await c.getByRole('button', {name: 'Deafen', exact: true}).click();
  await sleep(600);
  ok('deafened, B hears nothing', Math.max(...(await c.evaluate(() => window.hear())).map((e) => e.rms)) < 0.002);
  ok('and A sees it', await has(a, 'deafened'));
  await c.getByRole('button', {name: 'Deafen', exact: true}).click();
  // Push to talk: held, released, and held over a change of focus.
  await a.evaluate(() => {});
  await a.getByRole('button', {name: 'Settings'}).click();
  await a.getByLabel('Speak while you hold V').check();
  await a.keyboard.press('Escape');
  ok('push to talk waits for the key', await has(a, 'Hold V to talk'));
  await a.locator('body').click({position: {x: 640, y: 300}});
  await a.keyboard.down('v');
  ok('held, it speaks', await has(a, 'You are speaking'));
  await a.keyboard.up('v');
  ok('released, it does not', await has(a, 'Hold V to talk'));
  await a.keyboard.down('v');
  await has(a, 'You are speaking');
  await a.evaluate(() => dispatchEvent(new Event('blur')));
  ok('losing the focus ends it', await has(a, 'Hold V to talk'));
  await a.keyboard.up('v');
  // From the key to the other's ear, by the pages' own clocks: a frame is gathered, sent, buffered and played.
  const delays = [];
  for (let i = 0; i < 5; i++) {
    await sleep(900);
    await a.evaluate(() => addEventListener('keydown', () => (window.pressedAt = Date.now()), {once: true, capture: true}));
    await c.evaluate(() => {
      const e = window.ears[0], b = new Float32Array(e.fftSize); // the newest samples are the last
      window.heardAt = 0;
      const t = setInterval(() => { e.getFloatTimeDomainData(b); if (b.subarray(-256).some((v) => Math.abs(v) > 0.005)) { clearInterval(t); window.heardAt = Date.now(); } }, 2);
    });
    await a.keyboard.down('v');
    await until('the key is heard', () => c.evaluate(() => window.heardAt));
    delays.push((await c.evaluate(() => window.heardAt)) - (await a.evaluate(() => window.pressedAt)));
    await a.keyboard.up('v');
  }
  ok('from the key to the ear in less than 120 ms', delays.sort((x, y) => x - y)[2] < 120, `${delays.join(', ')} ms`);
  // Groups through the real gateway.
  await a.getByRole('button', {name: 'In no group'}).click();
  await a.getByRole('button', {name: 'Create a group'}).click();
  await a.getByLabel('Name').fill('Miners');
  await a.getByRole('button', {name: 'Create a group'}).click();
  ok('a group is made', await has(a, 'You made a group.'));
  await a.keyboard.press('Escape');
  ok('B can join it', await has(c, 'In no group'));
  await c.getByRole('button', {name: 'In no group'}).click();
  await c.getByRole('button', {name: 'Join Miners'}).click();
  ok('B has joined', await has(c, 'You joined the group.'));
  // A clip of A's own, heard by B.
  await a.locator('.sounds .title .button').click();
  await a.locator('dialog[open] input[type=file]').setInputFiles(wav('bell.wav', 1500));
  await a.locator('dialog[open] .clip').waitFor();
  await a.keyboard.press('Escape');
  await c.keyboard.press('Escape');
  await a.locator('body').click({position: {x: 640, y: 300}});
  await a.keyboard.press('1');
  ok('B hears the clip of A', await until('1500 Hz', async () => {
    const [l] = await c.evaluate(() => window.hear());
    return l.rms > 0.01 && Math.abs(l.hertz - 1500) < 12 ? l : null;
  }, 5000) !== null);
  ok('and it ends by itself', await until('ended', async () => (await a.locator('.pads [aria-pressed=true]').count()) === 0, 8000) !== null);
  await a.getByRole('radio', {name: 'Whisper'}).check();
  ok('B sees that A whispers', await until('whispers', async () => {
    await a.keyboard.down('v');
    await sleep(700);
    const seen = (await c.locator('.row').first().textContent()).includes('whispers');
    await a.keyboard.up('v');
    return seen;
  }, 8000) !== null);
  await a.getByRole('radio', {name: 'Normal'}).check();
  // Two tabs of one player: the newer wins.
  const again = await c.context().newPage();
  await again.addInitScript(listening);
  await again.goto(s.url);
  await again.getByRole('button', {name: 'Join voice'}).click();
  ok('the older tab says so', await has(c, 'Voice is open in another tab or device.'));
  await again.close();
  await c.keyboard.press('Escape');
  await c.getByRole('button', {name: 'Use it here'}).click();
  ok('and can take it back', await has(c, /^Connected/));
  // The main thread blocked for 150 ms in every 700.
  await a.getByRole('button', {name: 'Settings'}).click();
  await a.getByLabel('Speak when you talk').check();
  await a.keyboard.press('Escape');
  await sleep(2000);
  const numbers = async (p) => {
    await p.getByRole('button', {name: 'Help and diagnosis'}).click();
    await p.locator('.numbers').waitFor();
    const all = await p.evaluate(() => Object.fromEntries([...document.querySelectorAll('.numbers div')].map((d) => [d.querySelector('dt').textContent, d.querySelector('dd').textContent])));
    await p.keyboard.press('Escape');
    return all;
  };
  const before = await numbers(c);
  for (const p of [a, c]) await p.evaluate(() => { window.blocker = setInterval(() => { const end = performance.now() + 150; while (performance.now() < end); }, 700); });
  await sleep(8000);
  for (const p of [a, c]) await p.evaluate(() => clearInterval(window.blocker));
  const after = await numbers(c);
  const dry = Number(after['Ran dry']) - Number(before['Ran dry']);
  ok('a blocked main thread runs dry at most twice in 8 s', dry <= 2, `${dry} ${JSON.stringify(after)}`);
  // The server restarts: back by itself, with the state kept.
  await a.keyboard.press('m');
  for (const k of s.sockets) k.destroy();
  ok('a lost connection comes back by itself', await until('back', async () => (await has(a, 'You are back.', 3000)), 6000) !== null);
  ok('and the microphone stays closed', await has(a, 'You are muted'));
  await one.close();
  await two.close();
  s.close();
  gateway.kill();
}

async function errors() {
  const b = await browser();
  const made = scene();
  const s = await serve({scene: made});
  const tries = [
    ['error:link_used', 'This link was used or has run out.'], ['error:link_expired', 'This link was used or has run out.'], ['error:wrong_code', 'That code is not right or has run out.'],
    ['error:too_many_tries', 'Too many tries. Wait 0:30.'], ['error:no_permission', 'You may not use voice here.'], ['error:voice_off', 'Voice is switched off on Pinefall.'],
    ['error:player_left', 'Your player left the game.'], ['error:bad_origin', 'It was refused.'], ['NOCOOKIE', 'Allow cookies for this page'],
  ];
  for (const [code, words] of tries) {
    const page = await open(b, `${s.url}#${code}`);
    ok(`${code} is said in words`, (await has(page, words)) || ((await page.textContent('body')).includes(words)), '');
    await page.context().close();
  }
  const typed = await open(b, s.url);
  await typed.getByLabel('The six letters').fill('ab c');
  await typed.getByRole('button', {name: 'Continue'}).click();
  ok('a short code is told', await has(typed, 'The code has six letters.'));
  await typed.getByLabel('The six letters').fill('ab c-D ef');
  await typed.getByRole('button', {name: 'Continue'}).click();
  ok('a code with blanks is taken', await has(typed, 'Hello, Ash_Weaver'));
  await typed.getByRole('button', {name: 'Listen only'}).click();
  ok('listening asks for no microphone', await has(typed, 'Listening only'));
  for (const [refuse, words] of [[{status: 401, code: 'session_ended'}, 'Your session has ended.'], [{status: 409, code: 'player_left'}, 'Your player left the game.'], [{status: 503, code: 'busy', wait: 9}, 'The server is busy.']]) {
    const page = await open(b, `${s.url}#AAAAAA`);
    serve.refuse = refuse;
    await page.getByRole('button', {name: 'Join voice'}).click();
    ok(`${refuse.code} at joining is said in words`, (await has(page, words)) || (await page.textContent('body')).includes(words));
    serve.refuse = null;
    await page.context().close();
  }
  for (const [code, words] of [[4001, 'Voice is open in another tab or device.'], [4003, 'Your player left the game.'], [1003, 'The server closed voice (1003).'], [4008, 'The server closed voice (4008).'], [1001, 'Connection lost.']]) {
    const page = await open(b, `${s.url}#AAAAAA`);
    await page.getByRole('button', {name: 'Join voice'}).click();
    await has(page, /^Connected/);
    if (code === 1001) serve.refuse = {status: 503, code: 'nothing'};
    made.ws.close(code);
    ok(`close ${code} is said in words`, (await until(words, async () => (await page.textContent('.banners')).includes(words))) !== null);
    serve.refuse = null;
    await page.context().close();
  }
  // No heartbeat answer: given up after five seconds, and back.
  const quiet = await open(b, `${s.url}#AAAAAA`);
  await quiet.getByRole('button', {name: 'Join voice'}).click();
  await has(quiet, /^Connected/);
  made.deafToBeats = true;
  const t0 = Date.now();
  await until('the socket is given up', async () => made.closes.includes(4000), 12000);
  ok('a server that stops answering is given up', made.closes.includes(4000), `${Date.now() - t0} ms`);
  made.deafToBeats = false;
  ok('and tried again', await until('back', async () => (await quiet.textContent('.status')).startsWith('Connected'), 20000) !== null);
  // The page behind: frozen, then thawed.
  const cdp = await quiet.context().newCDPSession(quiet);
  await cdp.send('Page.setWebLifecycleState', {state: 'frozen'});
  await sleep(500);
  const beats = made.lines.length;
  await sleep(6000);
  console.log(`     frozen for 6 s, its worker said ${made.lines.length - beats} lines`);
  const frozen = made.lines.length;
  await cdp.send('Page.setWebLifecycleState', {state: 'active'});
  const woke = Date.now();
  ok('a frozen page is back after waking', await until('back', async () => made.lines.length > frozen && (await quiet.textContent('.status')).startsWith('Connected'), 6000) !== null, `${Date.now() - woke} ms`);
  await quiet.context().close();
  // Space as the talk key: it talks, and presses no button that has the focus. And the small window.
  const space = await open(b, `${s.url}#AAAAAA`);
  await space.evaluate(() => localStorage.setItem(`earshot ${location.pathname}`, JSON.stringify({mode: 'hold', keys: {talk: {code: 'Space', key: 'Space'}}})));
  await space.reload();
  await space.getByRole('button', {name: 'Join voice'}).click();
  await has(space, 'Hold Space to talk');
  await has(space, /^Connected/);
  await space.getByRole('button', {name: 'Deafen', exact: true}).focus();
  await space.keyboard.down(' ');
  ok('Space talks', await has(space, 'You are speaking'));
  await space.keyboard.up(' ');
  ok('and ends', await has(space, 'Hold Space to talk'));
  ok('and presses nothing', (await space.getByRole('button', {name: 'Deafen', exact: true}).getAttribute('aria-pressed')) === 'false');
  await space.keyboard.down(' ');
  await has(space, 'You are speaking');
  await space.getByRole('button', {name: 'Help and diagnosis'}).click();
  ok('a dialog ends a held key', await has(space, 'Hold Space to talk'));
  await space.keyboard.up(' ');
  await space.keyboard.press('Escape');
  await space.getByRole('button', {name: 'Small window that stays in front'}).click();
  const mini = await until('the small window', () => space.evaluate(() => {
    const w = documentPictureInPicture.window, m = w?.document.querySelector('.mini .mic');
    return m && w.getComputedStyle(m).backgroundColor !== 'rgba(0, 0, 0, 0)' ? m.textContent : null;
  }));
  ok('the small window has the microphone, and its look', !!mini, mini ?? '');
  await space.evaluate(() => documentPictureInPicture.window.document.querySelector('.mini .button').click());
  ok('and its buttons work', await has(space, 'You are deafened'));
  await space.context().close();
  // A laptop that sleeps: all of the browser stands still for eight seconds, while the server goes on talking.
  const server = await chromium.launchServer({executablePath, headless: true, args: [...flags, '--use-fake-ui-for-media-stream']});
  const laptop = await chromium.connect(server.wsEndpoint());
  const asleep = await open(laptop, `${s.url}#AAAAAA`);
  await asleep.getByRole('button', {name: 'Join voice'}).click();
  await has(asleep, /^Connected/);
  await asleep.keyboard.press('m');
  await has(asleep, 'You are muted');
  await sleep(2500);
  const before = made.ws;
  process.kill(-server.process().pid, 'SIGSTOP');
  await sleep(8000);
  process.kill(-server.process().pid, 'SIGCONT');
  const awake = Date.now();
  ok('woken, it has a new socket', await until('new socket', async () => made.ws !== before && made.ws.readyState === 1, 6000) !== null, `${Date.now() - awake} ms`);
  ok('and is connected', await until('connected', async () => (await asleep.textContent('.status')).startsWith('Connected'), 6000) !== null, `${Date.now() - awake} ms`);
  ok('with the microphone closed as it was', await asleep.getByText('You are muted').first().isVisible());
  await laptop.close();
  await server.close();
  // Refused upgrades are named after the third.
  serve.blockSockets = true;
  const blocked = await open(b, `${s.url}#AAAAAA`);
  await blocked.getByRole('button', {name: 'Join voice'}).click();
  ok('a network that blocks sockets is named', (await until('named', async () => (await blocked.textContent('.banners').catch(() => '')).includes('This network lets the page through but not the voice.'), 15000)) !== null);
  serve.blockSockets = false;
  await blocked.context().close();
  // A translator that wraps all text nodes, again and again.
  const translated = await open(b, `${s.url}#AAAAAA`);
  await translated.evaluate(() => setInterval(() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const all = [];
    while (walk.nextNode()) all.push(walk.currentNode);
    for (const n of all) if (n.parentElement && n.parentElement.tagName !== 'FONT' && n.data.trim() && !n.parentElement.closest('[translate=no], select, script')) { const f = document.createElement('font'); n.replaceWith(f); f.append(n); }
  }, 300));
  await translated.getByRole('button', {name: 'Join voice'}).click();
  await translated.locator('.row').first().waitFor();
  await sleep(1500);
  for (let i = 0; i < 4; i++) {
    await translated.keyboard.press('m');
    await sleep(400);
  }
  await translated.getByRole('button', {name: 'Settings'}).click();
  await sleep(700);
  await translated.keyboard.press('Escape');
  ok('a translator breaks nothing', (await translated.locator('.row').count()) > 5 && !(await translated.getByText('failed to draw').isVisible()));
  await translated.context().close();
  await b.close();
  const no = await browser({deny: true});
  const denied = await open(no, `${s.url}#AAAAAA`);
  await denied.getByRole('button', {name: 'Join voice'}).click();
  ok('a denied microphone is named', await has(denied, 'Microphone is blocked'));
  await denied.locator('#mic').click();
  ok('and its help opens', await has(denied, 'How to allow the microphone'));
  await no.close();
  const plain = await browser({more: ['--host-resolver-rules=MAP proxy.test 127.0.0.1']});
  const http = await open(plain, s.url.replace('127.0.0.1', 'proxy.test'));
  ok('a page without https says why', await has(http, 'Your browser gives no microphone to pages without https.'));
  const old = await open(plain, s.url);
  await old.addInitScript(() => { delete window.AudioDecoder; });
  await old.reload();
  ok('a browser that is too old is told what it lacks', (await until('AudioDecoder', async () => (await old.textContent('body')).includes('AudioDecoder'))) !== null);
  const half = await open(plain, s.url);
  await half.addInitScript(() => { delete window.AudioEncoder; });
  await half.goto(`${s.url}#AAAAAA`);
  await half.reload();
  ok('one that can only decode may listen', await has(half, 'Listen only') && !(await half.getByRole('button', {name: 'Join voice'}).isVisible()));
  const shifted = await open(plain, `${s.url}#AAAAAA`);
  await shifted.addInitScript(() => { const real = Date.now; Date.now = () => real() + 7200e3; });
  await shifted.reload();
  await shifted.getByRole('button', {name: 'Join voice'}).click();
  await has(shifted, /^Connected/);
  made.ws.send(`SSVC_MUTE_V1 1 60 ${Buffer.from('music').toString('base64')}`);
  ok('a wrong clock counts down right', (await until('0:5', async () => /for 0:5\d more/.test(await shifted.textContent('.banners')))) !== null);
  await plain.close();
  s.close();
}

/** opus lets the browser encode a second of a tone, for the scene's speakers. */
async function opus(b, url) {
  const page = await open(b, url);
  const frames = await page.evaluate(async () => {
    const out = [];
    const e = new AudioEncoder({output: (c) => { const d = new Uint8Array(c.byteLength); c.copyTo(d); out.push([...d]); }, error: () => {}});
    e.configure({codec: 'opus', sampleRate: 48000, numberOfChannels: 1, bitrate: 32000, opus: {frameDuration: 20000}});
    for (let n = 0; n < 50; n++) e.encode(new AudioData({format: 'f32-planar', sampleRate: 48000, numberOfFrames: 960, numberOfChannels: 1, timestamp: n * 20000, data: Float32Array.from({length: 960}, (_, i) => 0.3 * Math.sin((n * 960 + i) * 0.06))}));
    await e.flush();
    return out.slice(0, 50);
  });
  await page.context().close();
  return frames.map((f) => Uint8Array.from(f));
}

async function shots() {
  mkdirSync(shotsIn, {recursive: true});
  const b = await browser({file: wav('speech.wav', 300)});
  const first = await serve({scene: scene()});
  const frames = await opus(b, first.url);
  first.close();
  const looks = [
    {name: 'desktop-dark', viewport: {width: 1280, height: 800}, colorScheme: 'dark'}, {name: 'desktop-light', viewport: {width: 1280, height: 800}, colorScheme: 'light'},
    {name: 'phone-dark', viewport: {width: 360, height: 740}, colorScheme: 'dark', hasTouch: true, isMobile: true}, {name: 'phone-light', viewport: {width: 360, height: 740}, colorScheme: 'light', hasTouch: true, isMobile: true},
    {name: 'zoom200', viewport: {width: 640, height: 400}, colorScheme: 'dark'}, {name: 'long-360', viewport: {width: 360, height: 740}, colorScheme: 'light', hasTouch: true, isMobile: true, pseudo: 'pseudo'}, {name: 'rtl-360', viewport: {width: 360, height: 740}, colorScheme: 'light', hasTouch: true, isMobile: true, pseudo: 'pseudo-rtl'},
    {name: 'de-desktop', viewport: {width: 1280, height: 800}, colorScheme: 'light', locale: 'de-DE'},
  ];
  const only = process.env.EARSHOT_LOOKS?.split(',');
  for (const {name, pseudo, ...options} of looks) {
    if (only && !only.includes(name)) continue;
    const look = async (page, screen, dialog = false) => {
      await sleep(350);
      await page.screenshot({path: join(shotsIn, `${screen}-${name}.png`)});
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      ok(`${screen} ${name}: no sideways scroll`, wide <= 0, `${wide} px`);
      const small = await page.evaluate(() => [...document.querySelectorAll('button, select, input, a[href], summary')].filter((e) => e.checkVisibility() && !e.closest('.check, .tiers, .skip') && !e.classList.contains('skip')).map((e) => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0 && (r.width < 43.5 || r.height < 43.5)).map(([e, r]) => `${e.tagName}.${e.className} ${Math.round(r.width)}x${Math.round(r.height)}`));
      ok(`${screen} ${name}: targets of 44 px`, small.length === 0, small.join(', '));
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.any[0]?.message ?? '')).join('; ')}`)));
      ok(`${screen} ${name}: axe`, found.length === 0, found.join('\n     '));
      if (dialog) await page.keyboard.press('Escape');
    };
    const made = scene({frames});
    const s = await serve({scene: made});
    const q = pseudo ? `?lang=${pseudo}` : '';
    const page = await open(b, s.url + q, options);
    await page.locator('h1').waitFor();
    await look(page, '1-landing');
    await page.goto('about:blank');
    await page.goto(`${s.url}${q}#error:wrong_code`);
    await page.locator('.ways [role=alert] p').waitFor();
    await look(page, '1-landing-error');
    await page.goto('about:blank');
    await page.goto(`${s.url}${q}#AAAAAA`);
    await page.locator('.join').waitFor();
    await look(page, '2-join');
    await page.locator('.join .go').click();
    await page.locator('.row').first().waitFor();
    await page.locator('.row.speaking').first().waitFor();
    await sleep(1500);
    await look(page, '3-main-front');
    await page.locator('.banners .button').first().click().catch(() => {});
    await look(page, '3-main');
    await page.locator('.row .who').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog[open]').waitFor();
    await look(page, '4-person', true);
    ok(`${name}: focus returns`, await page.evaluate(() => document.activeElement?.classList.contains('who')));
    await page.evaluate(() => document.activeElement?.blur());
    for (const [tab, i] of [['map', 1], ['group', 2], ['sounds', 3]]) {
      const t = page.locator('.tabs button').nth(i);
      if (await t.isVisible()) { await t.click(); await look(page, `3-tab-${tab}`); }
    }
    if (await page.locator('.tabs button').first().isVisible()) await page.locator('.tabs button').first().click();
    for (const [key, screen] of [[',', '5-settings'], ['g', '5-group'], ['?', '5-diagnosis']]) {
      await page.keyboard.press(key === '?' ? 'Minus' : key === ',' ? 'Comma' : 'KeyG');
      await page.locator('dialog[open] h2').waitFor();
      await sleep(250);
      await look(page, screen, true);
      await page.locator('dialog[open]').waitFor({state: 'detached'});
    }
    if (await page.locator('.groups .title .button').isVisible()) {
      await page.locator('.groups .title .button').click();
      await page.locator('dialog[open] table').waitFor();
      await look(page, '5-moderate', true);
      await page.locator('.sounds .title .button').click();
      await page.locator('dialog[open] input[type=file]').setInputFiles(wav('bell.wav', 880));
      await page.locator('dialog[open] .clip').waitFor();
      await look(page, '5-sounds', true);
    }
    await page.keyboard.press('m');
    await look(page, '6-muted');
    await page.keyboard.press('m');
    made.ws.send(`SSVC_MUTE_V1 1 272 ${Buffer.from('music').toString('base64')}`);
    await page.locator('.banner.bad').waitFor();
    await look(page, '6-servermuted');
    made.ws.send('SSVC_MUTE_V1 0 - -');
    serve.refuse = {status: 503, code: 'nothing'};
    made.ws.close(1001);
    await page.locator('.banners .banner .button').waitFor();
    await look(page, '6-lost');
    serve.refuse = null;
    await page.context().close();
    s.close();
  }
  await b.close();
  const no = await browser({deny: true, more: ['--host-resolver-rules=MAP proxy.test 127.0.0.1']});
  const s = await serve({scene: scene()});
  const http = await open(no, s.url.replace('127.0.0.1', 'proxy.test'), {colorScheme: 'dark'});
  await http.locator('h1').waitFor();
  await http.screenshot({path: join(shotsIn, '7-no-https.png')});
  const denied = await open(no, `${s.url}#AAAAAA`, {colorScheme: 'dark'});
  await denied.locator('.join .go').click();
  await denied.locator('.mic.blocked').click();
  await sleep(400);
  await denied.screenshot({path: join(shotsIn, '7-blocked.png')});
  await no.close();
  s.close();
  console.log(`pictures: ${shotsIn}`);
}

const parts = {talk, errors, shots};
for (const name of process.argv.slice(2).length ? process.argv.slice(2) : Object.keys(parts)) await parts[name]();
console.log(failed ? `${failed} failed` : 'all well');
process.exit(failed ? 1 : 0);
