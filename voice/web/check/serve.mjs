// A throwaway server that speaks the page's contract, to try the page in a browser without the game: either with a scene that it
// makes up, or with the real voice gateway behind it (itest/voicetarget), whose sockets it passes on.
import {createServer} from 'node:http';
import {connect} from 'node:net';
import {readFile} from 'node:fs/promises';
import {WebSocketServer} from 'ws';

const types = {html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', png: 'image/png', webmanifest: 'application/manifest+json'};
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self' data:; media-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** serve({gateway, scene}) gives {url, close, players}. Sessions are made by POSTing a code; the code `error:CODE` gives that error. */
export async function serve({gateway, scene, prefix = '', host = '127.0.0.1'} = {}) {
  const dist = new URL('../dist/', import.meta.url);
  let n = 0;
  const sessions = new Map();
  const json = (res, status, body, headers = {}) => res.writeHead(status, {'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers}).end(JSON.stringify(body));
  const server = createServer(async (req, res) => {
    try {
      const path = new URL(req.url, 'http://x').pathname;
      if (!path.startsWith(prefix + '/')) return res.writeHead(404).end();
      const at = path.slice(prefix.length + 1);
      const sid = /(?:^|; )earshot=(\w+)/.exec(req.headers.cookie ?? '')?.[1];
      const session = sessions.get(sid);
      if (at.startsWith('api/')) {
        let body = '';
        for await (const part of req) body += part;
        const asked = body ? JSON.parse(body) : {};
        switch (`${req.method} ${at}`) {
          case 'GET api/about':
            return json(res, 200, {network: 'Pinefall', address: 'play.pinefall.example', voice: true, walk: false, secure: true});
          case 'GET api/session':
            return session ? json(res, 200, session) : json(res, 401, {code: 'session_ended', message: 'There is no session.'});
          case 'DELETE api/session':
            sessions.delete(sid);
            return res.writeHead(204).end();
          case 'POST api/session': {
            const error = /^ERROR:(\w+)$/i.exec(asked.code);
            if (error) return json(res, 403, {code: error[1].toLowerCase(), message: 'It was refused.', wait: 30});
            const i = n++, group = 1;
            const uuid = scene?.me ?? `${group.toString(16).padStart(8, '0')}-0000-4000-8000-${i.toString(16).padStart(12, '0')}`;
            const s = {name: scene ? 'Ash_Weaver' : `p${group}.${i}`, uuid, server: 'survival', near: 6, range: 48, network: 'Pinefall', recording: false, i, group};
            const id = `s${i}x${Math.random().toString(36).slice(2)}`;
            sessions.set(id, s);
            return json(res, 200, s, asked.code === 'NOCOOKIE' ? {} : {'Set-Cookie': `earshot=${id}; HttpOnly; SameSite=Strict; Path=${prefix}/`});
          }
          case 'POST api/token':
            if (serve.refuse) return json(res, serve.refuse.status, serve.refuse);
            return session ? json(res, 200, {token: `${session.group}.${session.i}`, uuid: session.uuid, path: 'voice', ttl: 60}) : json(res, 401, {code: 'session_ended', message: ''});
          case 'POST api/why':
            return json(res, 200, {sentence: `You do not hear ${asked.name}: 61 blocks are between you, and voices carry 48.`});
        }
        return json(res, 404, {code: 'bad_request', message: 'No such thing.'});
      }
      const file = at === '' ? 'index.html' : at;
      const data = await readFile(new URL(file, dist));
      res.writeHead(200, {
        'Content-Type': types[file.split('.').pop()] ?? 'application/octet-stream', 'Content-Security-Policy': policy, 'Permissions-Policy': 'microphone=(self)',
        'X-Content-Type-Options': 'nosniff', 'Cache-Control': file.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      }).end(data);
    } catch {
      res.writeHead(404).end();
    }
  });
  const sockets = new WebSocketServer({noServer: true, handleProtocols: (all) => [...all].find((t) => !scene?.without?.some((w) => t.includes(w))) ?? false});
  const open = new Set();
  server.on('upgrade', (req, socket, head) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    if (serve.blockSockets) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    if (gateway) {
      const [h, p] = gateway.split(':');
      const to = connect(Number(p), h, () => {
        const lines = [`GET ${req.url.slice(prefix.length)} HTTP/1.1`];
        for (let i = 0; i < req.rawHeaders.length; i += 2) lines.push(`${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}`);
        to.write(lines.join('\r\n') + '\r\n\r\n');
        if (head.length) to.write(head);
        socket.pipe(to).pipe(socket);
      });
      to.on('error', () => socket.destroy());
      socket.on('error', () => to.destroy());
      socket.on('close', () => to.destroy());
      to.on('close', () => socket.destroy());
      return;
    }
    sockets.handleUpgrade(req, socket, head, (ws) => scene?.connected?.(ws));
  });
  await new Promise((done) => server.listen(0, host, done));
  const {port} = server.address();
  return {
    port, url: `http://${host}:${port}${prefix}/`, sockets: open,
    close: () => {
      for (const s of open) s.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}
