'use strict'
// node bot.js '{"version":"1.20.4"}' — any number of mineflayer players of one version.
const newer = require('./newer')
const mineflayer = require('mineflayer')
const { say, commands, failure, strict, text, options } = require('./lines')

const { version } = options()
const P = require('minecraft-data')(version).version.version
const bots = new Map()
const bot = name => { const b = bots.get(name); if (!b) throw new Error(`${name} is not here`); return b }
const place = b => ({ x: b.entity?.position.x, y: b.entity?.position.y, z: b.entity?.position.z })
const degrees = b => ({ yaw: 180 - b.entity.yaw * 180 / Math.PI, pitch: -b.entity.pitch * 180 / Math.PI })
const count = names => names.reduce((n, name) => ({ ...n, [name]: (n[name] ?? 0) + 1 }), {})
// clicks lists what clicks on a text do, as an address or a command, whichever form the version gives to them.
const clicks = v => typeof v !== 'object' || !v ? [] : v.action === 'open_url' || v.action === 'run_command' ? [v.value ?? v.url ?? v.command] : Object.values(v).flatMap(clicks)
const raw = d => (Buffer.isBuffer(d) ? d : Buffer.from(Array.isArray(d) ? d.join('\0') : String(d))).toString('base64')

function join ({ name, host, port, fakeHost }) {
  if (bots.has(name)) throw new Error(`${name} is here already`)
  const b = mineflayer.createBot({ host, port, username: name, version, auth: 'offline', viewDistance: 'tiny', fakeHost, logErrors: false })
  bots.set(name, b)
  strict(b._client, () => name)
  if (P >= 777) newer.play(b)
  b.on('login', () => say({ ev: 'login', name, entity: b.entity.id, uuid: b._client.uuid }))
  for (const ev of ['spawn', 'respawn', 'death']) b.on(ev, () => say({ ev, name, ...place(b) }))
  b.on('forcedMove', () => say({ ev: 'moved', name, ...place(b), ...degrees(b) }))
  b.on('mount', () => say({ ev: 'mount', name, entity: b.vehicle?.id }))
  b.on('dismount', () => say({ ev: 'dismount', name }))
  b.on('messagestr', t => say({ ev: 'chat', name, text: t }))
  b.on('message', m => clicks(m.json).forEach(text => say({ ev: 'click', name, text })))
  b.on('playerJoined', p => say({ ev: 'listed', name, text: p.username, uuid: p.uuid }))
  b.on('playerLeft', p => say({ ev: 'unlisted', name, text: p.username, uuid: p.uuid }))
  b.on('kicked', reason => say({ ev: 'kicked', name, text: text(reason), state: b._client.state }))
  b.on('error', e => failure(name, e))
  b.on('end', why => { bots.delete(name); say({ ev: 'end', name, text: why }) })
  b.on('game', () => say({ ev: 'game', name, mode: b.game.gameMode, world: b.game.dimension }))
  b._client.on('state', state => say({ ev: 'state', name, state }))
  b._client.on('custom_payload', p => say({ ev: 'payload', name, state: b._client.state, channel: p.channel, data: raw(p.data) }))
  for (const n of ['chat', 'system_chat']) b._client.on(n, p => { if (p.position === 2 || p.isActionBar) say({ ev: 'actionbar', name, text: text(p.message ?? p.content) }) })
  b._client.on('action_bar', p => say({ ev: 'actionbar', name, text: text(p.text) }))
  b._client.on('declare_commands', p => say({ ev: 'commands', name, names: p.nodes[p.rootIndex].children.map(i => p.nodes[i].extraNodeData?.name) }))
  let told = 0
  b.on('move', () => { if (Date.now() - told >= 100) { told = Date.now(); say({ ev: 'pos', name, ...place(b) }) } })
}

// ticked resolves after the first physics tick for which done says so; the end of the connection
// rejects. What must happen at that very tick belongs into done: several ticks may run in a row.
function ticked (b, done) {
  return new Promise((resolve, reject) => {
    const tick = () => { if (done()) stop(resolve) }
    const end = () => stop(() => reject(new Error('the connection ended')))
    const stop = then => { b.off('physicsTick', tick); b.off('end', end); then() }
    b.on('physicsTick', tick)
    b.on('end', end)
  })
}

commands({
  join,
  async walk (q) {
    const b = bot(q.name)
    let left = q.ticks
    b.setControlState('forward', true)
    await ticked(b, () => {
      if (--left > 0) return false
      b.setControlState('forward', false)
      return true
    })
    return place(b)
  },
  // goto walks straight to a place on the floor and stands still there.
  async goto (q) {
    const b = bot(q.name)
    const away = () => Math.hypot(q.x - b.entity.position.x, q.z - b.entity.position.z)
    b.setControlState('forward', true)
    await ticked(b, () => {
      b.look(Math.atan2(b.entity.position.x - q.x, b.entity.position.z - q.z), 0, true)
      if (away() > 0.4) return false // it slides on for a quarter of a block
      b.setControlState('forward', false)
      return true
    })
    await ticked(b, () => Math.hypot(b.entity.velocity.x, b.entity.velocity.z) < 0.001)
    return place(b)
  },
  async look (q) { // degrees, as the game counts them: 0 is south, 90 is west, pitch 90 is down
    await bot(q.name).look(Math.PI - q.yaw * Math.PI / 180, -q.pitch * Math.PI / 180, true)
  },
  where (q) { const b = bot(q.name); return { ...place(b), ...degrees(b), entity: b.entity.id, vehicle: b.vehicle?.id, mode: b.game.gameMode, world: b.game.dimension, names: Object.keys(b.players), seen: count(Object.values(b.entities).map(e => e.name ?? 'other')) } },
  chat (q) { bot(q.name).chat(q.text) },
  async complete (q) { return { names: (await bot(q.name).tabComplete(q.text, false, false, 40000)).map(m => typeof m === 'string' ? m : m.match) } },
  register (q) {
    bot(q.name)._client.write('custom_payload', { channel: P < 393 ? 'REGISTER' : 'minecraft:register', data: Buffer.from(q.channels.join('\0')) })
  },
  payload (q) { bot(q.name)._client.write('custom_payload', { channel: q.channel, data: Buffer.from(q.data, 'base64') }) },
  steer (q) { bot(q.name).moveVehicle(q.left, q.forward) },
  quit (q) { bot(q.name).quit() },
  // vanish ends a connection without a word, as a crash does.
  vanish (q) { bot(q.name)._client.socket.destroy() }
})
say({ ev: 'ready', protocol: P })
