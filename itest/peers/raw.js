'use strict'
// node raw.js '{"version":"1.20.4"}' — any number of raw clients of one version. They do only what
// they are told, apart from logging in, keep-alives and confirming teleports.
require('./newer')
const mc = require('minecraft-protocol')
const { say, commands, failure, strict, text, options } = require('./lines')

const { version } = options()
const P = require('minecraft-data')(version).version.version
const clients = new Map()
const client = name => { const c = clients.get(name); if (!c) throw new Error(`${name} is not here`); return c }
const raw = d => (Buffer.isBuffer(d) ? d : Buffer.from(Array.isArray(d) ? d.join('\0') : String(d))).toString('base64')
const ground = { onGround: true, flags: { onGround: true } } // from 1.21.2 the second one counts

// online logs in with an account at a session server of the test: {url, id, token}.
function online (name, s) {
  return {
    sessionServer: s.url,
    auth (c, o) {
      c.username = name
      c.session = { accessToken: s.token, selectedProfile: { id: s.id, name } }
      c.uuid = s.id
      o.accessToken = s.token
      o.haveCredentials = true
      o.connect(c)
    }
  }
}

function join ({ name, host, port, fakeHost, session, pluginAnswers = true, forge, watch = [] }) {
  if (clients.has(name)) throw new Error(`${name} is here already`)
  const c = mc.createClient({ host, port, version, username: name, fakeHost, ...(session ? online(name, session) : { auth: 'offline' }) })
  clients.set(name, c)
  strict(c, () => name)
  c.seen = {}
  c.watched = new Set(watch)
  c.at = { x: 0, y: 0, z: 0, yaw: 0, pitch: 0 }
  if (forge) require('./forge').client(c, P, e => say({ ...e, name }))
  if (!pluginAnswers) c.removeAllListeners('login_plugin_request')
  c.on('packet', (data, meta) => {
    c.seen[meta.name] = (c.seen[meta.name] ?? 0) + 1
    if (c.watched.has(meta.name)) say({ ev: 'packet', name, packet: meta.name, state: meta.state, params: data })
  })
  c.on('success', p => say({ ev: 'success', name, uuid: p.uuid, text: p.username, encrypted: c.cipher !== null, params: p.properties }))
  c.on('login', p => say({ ev: 'login', name, entity: p.entityId, uuid: c.uuid, world: p.worldState?.name ?? p.worldName ?? String(p.dimension) }))
  c.on('position', p => {
    const rel = (key, bit) => typeof p.flags === 'object' ? p.flags[key] : p.flags & bit
    for (const [i, k] of ['x', 'y', 'z', 'yaw', 'pitch'].entries()) c.at[k] = (rel(k, 1 << i) ? c.at[k] : 0) + p[k]
    if (P >= 107) c.write('teleport_confirm', { teleportId: p.teleportId, ...c.at })
    if (P < 777) c.write('position_look', { ...c.at, onGround: false, flags: {} }) // from then on the answer is all
    say({ ev: 'moved', name, ...c.at })
  })
  c.on('custom_payload', p => say({ ev: 'payload', name, state: c.state, channel: p.channel, data: raw(p.data) }))
  c.on('state', state => say({ ev: 'state', name, state }))
  for (const n of ['disconnect', 'kick_disconnect']) c.on(n, p => say({ ev: 'kicked', name, text: text(p.reason), state: c.state }))
  c.on('error', e => failure(name, e))
  c.on('end', why => { clearInterval(c.wandering); clients.delete(name); say({ ev: 'end', name, text: why }) })
}

function move (c, q) {
  for (const k of ['x', 'y', 'z', 'yaw', 'pitch']) c.at[k] = q[k] ?? c.at[k]
  if (q.x === undefined) c.write('look', { yaw: c.at.yaw, pitch: c.at.pitch, ...ground })
  else if (q.yaw === undefined) c.write('position', { x: c.at.x, y: c.at.y, z: c.at.z, ...ground })
  else c.write('position_look', { ...c.at, ...ground })
}

commands({
  join,
  move (q) { move(client(q.name), q) },
  vehicle (q) { client(q.name).write('vehicle_move', { x: q.x, y: q.y, z: q.z, yaw: q.yaw ?? 0, pitch: q.pitch ?? 0, onGround: true }) },
  respawn (q) { client(q.name).write('client_command', P < 107 ? { payload: 0 } : { actionId: 0 }) },
  write (q) { client(q.name).write(q.packet, q.params) },
  raw (q) { client(q.name).writeRaw(Buffer.from(q.data, 'base64')) },
  payload (q) { client(q.name).write('custom_payload', { channel: q.channel, data: Buffer.from(q.data, 'base64') }) },
  register (q) { client(q.name).write('custom_payload', { channel: P < 393 ? 'REGISTER' : 'minecraft:register', data: Buffer.from(q.channels.join('\0')) }) },
  where (q) { const c = client(q.name); return { ...c.at, uuid: c.uuid, state: c.state } },
  // command is one without its slash, signed by nobody and with no arguments to sign.
  command (q) {
    const c = client(q.name)
    if (P < 759) { c.write('chat', { message: '/' + q.text }); return }
    c.write('chat_command', {
      command: q.text, timestamp: BigInt(Date.now()), salt: 0n, argumentSignatures: [], signedPreview: false, previousMessages: [],
      messageCount: 0, acknowledged: Buffer.alloc(3), checksum: 0
    })
  },
  // watch prints these packets from now on; seen says how many of each kind have come so far.
  watch (q) { for (const n of q.packets) client(q.name).watched.add(n) },
  seen (q) { return { seen: client(q.name).seen } },
  // wander makes everybody here walk in a circle, rate positions a second.
  wander (q) {
    let n = 0
    for (const c of clients.values()) {
      let a = n++
      const centre = { ...c.at }
      clearInterval(c.wandering)
      c.wandering = setInterval(() => { a += 0.05; move(c, { x: centre.x + 3 * Math.cos(a), y: centre.y, z: centre.z + 3 * Math.sin(a) }) }, 1000 / q.rate)
    }
  },
  rest () { for (const c of clients.values()) clearInterval(c.wandering) },
  async ping (q) { return { params: await mc.ping({ host: q.host, port: q.port, version, closeTimeout: 15000 }) } },
  // One whose connection has just ended leaves nothing behind.
  quit (q) { clients.get(q.name)?.end('quit') },
  vanish (q) { clients.get(q.name)?.socket.destroy() }
})
say({ ev: 'ready', protocol: P })
