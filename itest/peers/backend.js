'use strict'
// node backend.js '{"version":"1.20.4"}' — a small game server for every version from 1.8 to 26.3.
// Options: version, mode (none, legacy, bungeeguard, modern), secret, threshold (of compression, -1 for
// none), world, floodgate (its key in hex), forge (see forge.js), ask (the newest modern forwarding version it asks for), refuse ({name: {phase, reason}}),
// quiet (events not to print), own (players have UUIDs that nobody else knows them by), bodies (players get the bodies of
// those within so many blocks; without it nobody has one), ages ({world: ticks}: how old worlds are at the start, of which
// players are told each second; without it they are not told), seeds ({world: [high, low]} instead of the library's).
// A world may be called NAME#ANYTHING: clients are told NAME, so there can be several worlds that they know by one name.
const crypto = require('crypto')
require('./newer')
const mc = require('minecraft-protocol')
const nbt = require('prismarine-nbt')
const { Vec3 } = require('vec3')
const { say, commands, failure, strict, options } = require('./lines')

const { version, mode = 'none', secret = '', threshold = 256, world: home = 'minecraft:overworld', ask = 4, refuse = {}, quiet = [], floodgate, forge, own, bodies, ages, seeds = {} } = options()
const md = require('minecraft-data')(version)
const P = md.version.version
const modes = ['survival', 'creative', 'adventure', 'spectator']

// ---- forwarded identities

class Bytes {
  constructor (b) { this.b = b; this.o = 0 }
  take (n) {
    if (n < 0 || this.o + n > this.b.length) throw new Error('forwarded data cut short')
    this.o += n
    return this.b.subarray(this.o - n, this.o)
  }

  varint () { for (let v = 0, s = 0; ; s += 7) { const c = this.take(1)[0]; v |= (c & 127) << s; if (c < 128) return v } }
  bytes () { return this.take(this.varint()) }
  string () { return this.bytes().toString('utf8') }
  bool () { return this.take(1)[0] !== 0 }
  uuid () { return dashed(this.take(16).toString('hex')) }
}

const dashed = h => h.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

function modern (data) {
  const signed = data.subarray(32)
  const mac = crypto.createHmac('sha256', secret).update(signed).digest()
  if (data.length < 32 || !crypto.timingSafeEqual(data.subarray(0, 32), mac)) throw new Error('bad forwarding signature')
  const r = new Bytes(signed)
  const f = { version: r.varint(), address: r.string(), uuid: r.uuid(), name: r.string(), properties: [] }
  for (let n = r.varint(); n > 0; n--) f.properties.push({ name: r.string(), value: r.string(), signature: r.bool() ? r.string() : undefined })
  if (f.version === 2 || f.version === 3) f.key = { expires: r.take(8).readBigInt64BE(), public: r.bytes(), signature: r.bytes() }
  if (f.version === 3 && r.bool()) f.signer = r.uuid()
  if (r.o !== signed.length) throw new Error(`${signed.length - r.o} bytes behind the forwarded data`)
  return f
}

function legacy (host) {
  const part = host.split('\0')
  if (part.length < 3) throw new Error('no forwarded data in the handshake')
  if (!/^[0-9a-f]{32}$/.test(part[2])) throw new Error('forwarded uuid is not 32 hex digits')
  const f = { host: part[0], address: part[1], uuid: dashed(part[2]), properties: JSON.parse(part[3] ?? '[]') }
  if (mode === 'bungeeguard') {
    const tokens = f.properties.filter(p => p.name === 'bungeeguard-token')
    if (tokens.length !== 1 || tokens[0].value !== secret) throw new Error('bad bungeeguard token')
    f.properties = f.properties.filter(p => p.name !== 'bungeeguard-token')
  }
  return f
}

// ---- players

const server = mc.createServer({
  host: '127.0.0.1',
  port: 0,
  version,
  'online-mode': false,
  maxPlayers: 1000,
  motd: 'stub',
  beforeLogin (c) {
    const f = c.forwarded
    if (f) { c.uuid = f.uuid; c.username = f.name ?? c.username; c.profile = { properties: f.properties } }
    if (own) c.uuid = crypto.randomUUID()
  },
  errorHandler (c, e) { failure(c.username, e); c.end(e.message) }
})
const players = new Map() // name -> client in play
const vehicles = new Map() // entity id -> {type, x, y, z, yaw, riders: [names]}
let nextId = 100
let nextTeleport = 1
let hold = false // first configurations wait for "finish"

const event = e => { if (!quiet.includes(e.ev)) say(e) }
const player = name => { const c = players.get(name); if (!c) throw new Error(`${name} is not here`); return c }
const anywhere = name => name !== undefined && configuring.has(name) ? [configuring.get(name)] : named(name)
const named = name => name === undefined ? [...players.values()] : [player(name)]

// The library always compresses from 256 bytes on; this puts our own threshold in its place. It knows no session ids either.
function compress (c) {
  const write = c.write
  c.write = (name, params) => {
    if (name === 'success' && P >= 776) return write.call(c, name, { sessionId: crypto.randomUUID(), ...params })
    if (name !== 'compress') return write.call(c, name, params)
    if (threshold >= 0) write.call(c, name, { threshold })
  }
  Object.defineProperty(c, 'compressionThreshold', { get: () => threshold, set () { if (threshold >= 0) c.setCompressionThreshold(threshold) } })
}

// bedrock does what the Floodgate plugin does: it takes its data out of the host.
function bedrock (c) {
  const parts = c.serverHost.split('\0')
  const at = parts.findIndex(p => p.startsWith('^Floodgate^'))
  if (at < 0) return
  c.bedrock = require('./floodgate').open(Buffer.from(floodgate, 'hex'), parts.splice(at, 1)[0])
  c.serverHost = parts.join('\0')
}

// Somebody who sends a forwarding message gets the login handler only after it was checked. The
// handler of the library is installed by now: its listener for 'connection' came first.
server.on('connection', c => {
  strict(c, () => c.username)
  compress(c)
  const login = c.listeners('login_start')[0]
  c.removeAllListeners('login_start')
  c.once('login_start', packet => {
    c.asked = packet.username
    if (floodgate) bedrock(c)
    const denied = refuse[packet.username]
    if (denied?.phase === 'login') return c.end(denied.reason)
    const enter = () => forge && P >= 393 && P < 764 ? require('./forge').ask(c, forge, () => login(packet), why => c.end(why)) : login(packet)
    const check = f => {
      try { c.forwarded = f() } catch (e) {
        event({ ev: 'refused', name: packet.username, text: e.message })
        return c.end(e.message)
      }
      enter()
    }
    if (mode === 'none') return enter()
    if (mode !== 'modern') return check(() => legacy(c.serverHost))
    const messageId = crypto.randomInt(1, 2 ** 31 - 1)
    c.once('login_plugin_response', r => check(() => {
      if (r.messageId !== messageId || !r.data) throw new Error('identity not forwarded')
      return modern(r.data)
    }))
    c.write('login_plugin_request', { messageId, channel: 'velocity:player_info', data: Buffer.from([ask]) })
  })
})

// The configuration phase is ours from the start, so that the first one and later ones are alike.
server.on('login', c => {
  if (P < 764) return
  c.removeAllListeners('login_acknowledged')
  c.once('login_acknowledged', () => configure(c, hold))
  c.on('configuration_acknowledged', () => { // the client's next packet is a configuration packet already
    event({ ev: 'reconfiguring', name: c.username })
    leave(c)
    configure(c, c.holdNext)
  })
})

function configure (c, wait) {
  c.state = 'configuration'
  event({ ev: 'configuring', name: c.username })
  const denied = refuse[c.username]
  if (denied?.phase === 'config') return kick(c, denied.reason)
  c.write('custom_payload', { channel: 'minecraft:brand', data: Buffer.from('\x04stub') })
  c.removeAllListeners('custom_payload')
  c.on('custom_payload', p => payload(c, p))
  c.removeAllListeners('select_known_packs')
  c.on('select_known_packs', p => event({ ev: 'packs', name: c.username, text: String(p.packs.length) }))
  configuring.set(c.username, c)
  c.once('end', () => { if (configuring.get(c.username) === c) configuring.delete(c.username) })
  if (!wait) finish(c)
}
const configuring = new Map()

function finish (c) {
  const codec = server.options.registryCodec
  if (P >= 766) for (const k in codec) c.write('registry_data', codec[k]); else c.write('registry_data', { codec })
  c.once('finish_configuration', () => {
    configuring.delete(c.username)
    c.state = 'play'
    join(c)
  })
  c.write('finish_configuration', {})
}

// the library's own way into play, before 1.20.2
server.on('playerJoin', c => forge && P < 393 ? require('./forge').shake(c, () => join(c), why => { event({ ev: 'refused', name: c.username, text: why }); c.end(why) }) : join(c))

function payload (c, p) { event({ ev: 'payload', name: c.username, state: c.state, channel: p.channel, data: raw(p.data) }) }
// The library has parsed the channels it knows: lists of names and one string.
const raw = d => (Buffer.isBuffer(d) ? d : Buffer.from(Array.isArray(d) ? d.join('\0') : String(d))).toString('base64')

function join (c) {
  const denied = refuse[c.username]
  if (denied?.phase === 'play') return kick(c, denied.reason)
  c.eid = ++nextId
  c.mode ??= 0
  c.world ??= home
  c.at = { x: 8, y: 70, z: 8, yaw: 0, pitch: 0 }
  for (const n of ['position', 'position_look', 'look', 'flying', 'vehicle_move', 'teleport_confirm', 'chat', 'chat_message', 'chat_command', 'chat_command_signed', 'client_command', 'settings', 'custom_payload']) {
    c.removeAllListeners(n)
  }
  for (const n of ['position', 'position_look']) {
    c.on(n, p => {
      step(c, p)
      event({ ev: 'pos', name: c.username, x: p.x, y: p.y, z: p.z, yaw: p.yaw, pitch: p.pitch })
    })
  }
  c.on('look', p => event({ ev: 'look', name: c.username, yaw: p.yaw, pitch: p.pitch }))
  c.on('vehicle_move', p => event({ ev: 'vehicle', name: c.username, x: p.x, y: p.y, z: p.z, yaw: p.yaw, pitch: p.pitch }))
  c.on('teleport_confirm', p => {
    if (c.expected === p.teleportId) c.expected = undefined
    if (P >= 777) step(c, p)
    event({ ev: 'confirmed', name: c.username, teleport: p.teleportId })
    if (P >= 777) event({ ev: 'pos', name: c.username, x: p.x, y: p.y, z: p.z, yaw: p.yaw, pitch: p.pitch }) // no movement says so
  })
  for (const n of ['chat', 'chat_message']) c.on(n, p => event({ ev: 'chat', name: c.username, text: p.message }))
  for (const n of ['chat_command', 'chat_command_signed']) c.on(n, p => event({ ev: 'chat', name: c.username, text: '/' + p.command }))
  c.on('client_command', p => { if ([0, 'perform_respawn'].includes(p.actionId ?? p.payload) && c.dead) { c.dead = false; respawn(c, c.world, 0, c.at); event({ ev: 'respawned', name: c.username }) } })
  c.on('settings', p => event({ ev: 'settings', name: c.username, text: p.locale }))
  c.on('custom_payload', p => payload(c, p))
  if (!c.ending) {
    c.ending = true
    c.once('end', why => { leave(c); say({ ev: 'leave', name: c.username, text: why }) })
  }
  c.entries = new Set()
  c.unlisted = new Set()
  c.bodies = new Map()
  c.culled = new Set()
  players.set(c.username, c)
  say({
    ev: 'join', name: c.username, uuid: c.uuid, entity: c.eid, host: c.serverHost, port: c.serverPort, protocol: c.protocolVersion, from: `${c.socket.remoteAddress}:${c.socket.remotePort}`, forwarded: c.forwarded, bedrock: c.bedrock
  })
  enter(c)
  for (const other of players.values()) {
    other.unlisted.delete(c.username)
    enlist(c, other)
    if (other !== c) enlist(other, c)
  }
  look()
  for (const id of vehicles.keys()) appear(c, id)
}

function leave (c) {
  if (players.get(c.username) !== c) return
  players.delete(c.username)
  for (const other of players.values()) {
    unlist(other, c)
    disembody(other, c)
  }
}

function kick (c, reason) {
  if (c.state === 'configuration') c.write('disconnect', { reason: P >= 765 ? nbt.comp({ text: nbt.string(reason) }) : JSON.stringify({ text: reason }) })
  c.end(reason)
}

// ---- who is shown to whom

let perWorld = false // lists have those of one's own world alone, as a plugin makes them
const vanished = new Map() // name -> names of the players it is hidden from, or undefined for all
const unseen = (to, p) => vanished.has(p.username) && (vanished.get(p.username) ?? [to.username]).includes(to.username)

// enlist puts p onto somebody's list, or takes them off, as it should be.
function enlist (to, p) {
  const should = to === p || (!unseen(to, p) && !to.unlisted.has(p.username) && (!perWorld || to.world === p.world))
  if (should === to.entries.has(p.username)) return
  if (should) list(to, p)
  else unlist(to, p)
}

// look gives everybody the bodies that there should be, and takes away the others. A body comes behind its entry.
function look () {
  if (bodies === undefined) return
  const all = [...players.values()]
  for (const to of all) {
    for (const p of all) {
      if (to === p) continue
      const near = Math.hypot(to.feet.x - p.feet.x, to.feet.y - p.feet.y, to.feet.z - p.feet.z) <= bodies
      if (near && to.world === p.world && !p.dead && p.mode !== 3 && !unseen(to, p) && !to.culled.has(p.username)) embody(to, p)
      else disembody(to, p)
    }
  }
}

const fractions = ({ x, y, z }) => P < 107 ? { x: fixed(x), y: fixed(y), z: fixed(z) } : { x, y, z }

function embody (to, p) {
  const was = to.bodies.get(p.eid)
  if (was === p.feet) return
  to.bodies.set(p.eid, p.feet)
  const still = { dx: 0, dy: 0, dz: 0, yaw: 0, pitch: 0, flags: {}, onGround: true }
  if (was) return to.write(P >= 768 ? 'sync_entity_position' : 'entity_teleport', { entityId: p.eid, ...fractions(p.feet), ...still })
  if (P < 764) return to.write('named_entity_spawn', { entityId: p.eid, playerUUID: p.uuid, ...fractions(p.feet), yaw: 0, pitch: 0, currentItem: 0, metadata: [] })
  to.write('spawn_entity', { entityId: p.eid, objectUUID: p.uuid, type: registry.entitiesByName.player.id, ...p.feet, pitch: 0, yaw: 0, headPitch: 0, objectData: 0, velocity: { x: 0, y: 0, z: 0 } })
}

function disembody (to, p) {
  if (to.bodies.delete(p.eid)) gone(to, p.eid)
}

const gone = (to, id) => P === 755 ? to.write('destroy_entity', { entityId: id }) : to.write('entity_destroy', { entityIds: [id] })

// step takes over where a client stands, but for what it said before it heard of the last teleport.
function step (c, { x, y, z }) {
  if (P < 107 && c.expected && Math.hypot(c.expected.x - x, c.expected.y - y, c.expected.z - z) < 0.5) c.expected = undefined
  if (c.expected === undefined) c.feet = { x, y, z }
}

// ---- the age of worlds, in ticks of 50 ms

const born = Date.now()
const now = () => Math.floor((Date.now() - born) / 50)
const toldAge = new WeakMap() // player -> tick

function tellAge (c) {
  if (!ages) return
  toldAge.set(c, now())
  const age = (ages[P >= 775 ? home : c.world] ?? 0) + now() // from 26.1 on it is that of the first world everywhere
  c.write('update_time', { age: BigInt(age), time: BigInt(age), tickDayTime: true, clockUpdates: [] })
}

if (ages || bodies !== undefined) {
  setInterval(() => {
    look()
    for (const c of players.values()) if (now() - toldAge.get(c) >= 20) tellAge(c)
  }, 50)
}

// ---- tab list

function list (to, p) {
  to.entries.add(p.username)
  if (P < 761) {
    return to.write('player_info', { action: 'add_player', data: [{ uuid: p.uuid, name: p.username, properties: [], gamemode: p.mode, ping: 7 }] })
  }
  to.write('player_info', {
    action: { add_player: true, update_game_mode: true, update_listed: true, update_latency: true, update_display_name: true, update_list_order: P >= 768, update_hat: P >= 769 },
    data: [{ uuid: p.uuid, player: { name: p.username, properties: [] }, gamemode: p.mode, listed: 1, latency: 7, listPriority: 0, showHat: true }]
  })
}

function unlist (to, p) {
  if (!to.entries.delete(p.username)) return
  if (P < 761) return to.write('player_info', { action: 'remove_player', data: [{ uuid: p.uuid }] })
  to.write('player_remove', { players: [p.uuid] })
}

// shown tells everybody of somebody who has vanished or is back.
function shown (name) {
  const p = players.get(name)
  if (!p) return
  for (const to of players.values()) enlist(to, p)
  look()
}

function listMode (to, p) {
  if (P < 761) return to.write('player_info', { action: 'update_game_mode', data: [{ uuid: p.uuid, gamemode: p.mode }] })
  to.write('player_info', { action: { update_game_mode: true }, data: [{ uuid: p.uuid, gamemode: p.mode }] })
}

// ---- world: a stone floor of 5 by 5 chunks whose top is y 70

const registry = require('prismarine-registry')(version)
if (P < 766 && md.loginPacket) registry.loadDimensionCodec(md.loginPacket.dimensionCodec)
const Chunk = require('prismarine-chunk')(registry)

function floor () {
  const chunk = new Chunk(P >= 757 ? { minY: -64, worldHeight: 384 } : { minY: 0, worldHeight: 256 })
  const stone = registry.blocksByName.stone.defaultState ?? registry.blocksByName.stone.id << 4
  for (let x = 0; x < 16; x++) for (let z = 0; z < 16; z++) chunk.setBlockStateId(new Vec3(x, 69, z), stone)
  return chunk
}
const chunk = floor()
const dark = floor() // no sky light in it, as clients before 1.14 expect of every world but the overworld
if (P < 477) for (const s of dark.sections) if (s) s.skyLight = null

const called = world => world.split('#')[0]
const seed = world => seeds[world] ?? md.loginPacket?.hashedSeed ?? md.loginPacket?.worldState.hashedSeed ?? [0, 0]
const number = { 'minecraft:overworld': 0, 'minecraft:the_nether': -1, 'minecraft:the_end': 1 }
// Before 1.16 worlds have numbers only.
function dimension (world) {
  if (!(called(world) in number)) throw new Error(`${version} has no world ${world}`)
  return number[called(world)]
}

function enter (c) {
  const l = md.loginPacket
  if (!l) {
    c.write('login', { entityId: c.eid, gameMode: c.mode, dimension: dimension(c.world), difficulty: 1, maxPlayers: 20, levelType: 'default', hashedSeed: seed(c.world), viewDistance: 10, reducedDebugInfo: false, enableRespawnScreen: true })
  } else {
    const name = called(c.world)
    const worldNames = [...new Set([...l.worldNames, name])]
    c.write('login', P >= 766
      ? { ...l, entityId: c.eid, worldNames, worldState: { ...l.worldState, name, hashedSeed: seed(c.world), gamemode: modes[c.mode] } }
      : { ...l, entityId: c.eid, worldNames, worldName: name, hashedSeed: seed(c.world), gameMode: c.mode })
  }
  if (P < 764) c.write('custom_payload', { channel: P < 393 ? 'MC|Brand' : 'minecraft:brand', data: Buffer.from('\x04stub') })
  surround(c)
}

function surround (c) {
  if (P >= 765) c.write('game_state_change', { reason: 'level_chunks_load_start', gameMode: 0 })
  const lit = P >= 477 || called(c.world) === 'minecraft:overworld'
  const column = lit ? chunk : dark
  const light = column.dumpLight?.()
  const common = {
    groundUp: true, ignoreOldData: true, trustEdges: true, bitMap: column.getMask(), biomes: column.dumpBiomes?.(), chunkData: P < 107 ? column.dump(0xffff, lit) : column.dump(), blockEntities: [], heightmaps: P >= 770 ? [] : { type: 'compound', name: '', value: {} }, ...(Buffer.isBuffer(light) ? {} : light)
  }
  for (let x = -2; x <= 2; x++) for (let z = -2; z <= 2; z++) c.write('map_chunk', { x, z, ...common })
  c.write('update_health', { health: 20, food: 20, foodSaturation: 5 })
  teleport(c, c.at)
  tellAge(c)
}

function teleport (c, { x, y, z, yaw = 0, pitch = 0, relative = [] }) {
  const bits = ['x', 'y', 'z', 'yaw', 'pitch']
  for (const r of relative) if (!bits.includes(r)) throw new Error(`${r} cannot be relative`)
  const flags = P >= 766
    ? Object.fromEntries(relative.map(r => [r, true]))
    : relative.reduce((v, r) => v | 1 << bits.indexOf(r), 0)
  const teleportId = nextTeleport++
  c.feet = Object.fromEntries(Object.entries({ x, y, z }).map(([a, v]) => [a, relative.includes(a) ? c.feet[a] + v : v]))
  c.expected = P < 107 ? relative.length ? undefined : c.feet : teleportId
  c.write('position', { x, y, z, dx: 0, dy: 0, dz: 0, yaw, pitch, flags, teleportId, dismountVehicle: false })
  return { teleport: teleportId }
}

function respawn (c, world, keep, at) {
  const l = md.loginPacket
  const before = c.world
  c.world = world
  c.at = { ...c.at, ...at }
  c.bodies.clear()
  for (const other of players.values()) if (before !== world) disembody(other, c)
  const common = { worldName: called(world), hashedSeed: seed(world), gamemode: c.mode, previousGamemode: 255, isDebug: false, isFlat: false, portalCooldown: 0, copyMetadata: P >= 766 ? keep : keep !== 0 }
  if (P >= 766) c.write('respawn', { worldState: { ...l.worldState, name: called(world), hashedSeed: seed(world), gamemode: modes[c.mode] }, copyMetadata: keep })
  else if (P >= 759) c.write('respawn', { ...common, dimension: l.worldType })
  else if (P >= 735) c.write('respawn', { ...common, dimension: l.dimension })
  else {
    const other = dimension(world) >= 0 ? -1 : 0
    // Clients stay in their world unless the number changes, so servers send another one first.
    const all = before !== world && dimension(before) === dimension(world) ? [other, dimension(world)] : [dimension(world)]
    for (const dimension of all) c.write('respawn', { ...common, dimension, difficulty: 1, levelType: 'default' })
  }
  surround(c)
  for (const other of players.values()) {
    enlist(c, other)
    enlist(other, c)
  }
  look()
}

// ---- vehicles

const angle = degrees => Math.round(degrees * 256 / 360) << 24 >> 24
const fixed = v => Math.round(v * 32)

function vehicleType (type) {
  if (P < 477) return { boat: 1, minecart: 10 }[type]
  return (registry.entitiesByName[type] ?? registry.entitiesByName[type === 'boat' ? 'oak_boat' : type])?.id
}

const vehicle = id => { const v = vehicles.get(id); if (!v) throw new Error(`no vehicle ${id}`); return v }

function appear (to, id) {
  const v = vehicle(id)
  to.write('spawn_entity', { entityId: id, objectUUID: v.uuid, type: vehicleType(v.type), ...fractions(v), pitch: 0, yaw: angle(v.yaw), headPitch: 0, objectData: 0, velocity: { x: 0, y: 0, z: 0 } })
  if (v.riders.length) sit(to, id, [], v.riders)
}

// sit tells one player who sits where. Only from 1.9 on one packet has all the riders.
function sit (to, id, before, after) {
  const eids = names => names.map(n => players.get(n)?.eid).filter(e => e !== undefined)
  if (P >= 107) return to.write('set_passengers', { entityId: id, passengers: eids(after) })
  for (const e of eids(before.filter(n => !after.includes(n)))) to.write('attach_entity', { entityId: e, vehicleId: -1, leash: false })
  for (const e of eids(after)) to.write('attach_entity', { entityId: e, vehicleId: id, leash: false })
}

function drive (id, how, q) {
  const v = vehicle(id)
  const to = { x: q.x ?? v.x + (q.dx ?? 0), y: q.y ?? v.y + (q.dy ?? 0), z: q.z ?? v.z + (q.dz ?? 0) }
  const { yaw = v.yaw, pitch = 0 } = q
  const still = { dx: 0, dy: 0, dz: 0 }
  let name, params
  switch (how) {
    case 'relative':
    case 'look': {
      const scale = P < 107 ? 32 : 4096
      const most = P < 107 ? 127 : 32767
      const d = ['x', 'y', 'z'].map(a => Math.round((to[a] - v[a]) * scale))
      if (d.some(n => Math.abs(n) > most)) throw new Error('too far for one relative move')
      for (const [i, a] of ['x', 'y', 'z'].entries()) to[a] = v[a] + d[i] / scale
      name = how === 'look' ? 'entity_move_look' : 'rel_entity_move'
      params = { dX: d[0], dY: d[1], dZ: d[2], yaw: angle(yaw), pitch: angle(pitch), onGround: true }
      break
    }
    case 'teleport':
      name = 'entity_teleport'
      params = P >= 768 ? { ...to, ...still, yaw, pitch, flags: {}, onGround: true } : { ...fractions(to), yaw: angle(yaw), pitch: angle(pitch), onGround: true }
      break
    case 'sync':
      if (P < 768) throw new Error(`${version} has no position sync`)
      name = 'sync_entity_position'
      params = { ...to, ...still, yaw, pitch, onGround: true }
      break
    case 'minecart':
      if (P < 768) throw new Error(`${version} has no minecart steps`)
      name = 'move_minecart'
      params = { steps: [0.5, 1].map(f => ({ position: { x: v.x + (to.x - v.x) * f, y: v.y + (to.y - v.y) * f, z: v.z + (to.z - v.z) * f }, movement: { x: 0, y: 0, z: 0 }, velocity: { x: 0, y: 0, z: 0 }, yaw, pitch, weight: 1 })) }
      break
    default:
      throw new Error(`no way to drive ${how}`)
  }
  Object.assign(v, to, { yaw })
  for (const c of players.values()) c.write(name, { entityId: id, ...params })
  return to
}

// ---- commands

commands({
  payload (q) {
    for (const c of anywhere(q.name)) c.write('custom_payload', { channel: q.channel, data: Buffer.from(q.data, 'base64') })
  },
  write (q) { for (const c of anywhere(q.name)) c.write(q.packet, q.params) },
  raw (q) { for (const c of named(q.name)) c.writeRaw(Buffer.from(q.data, 'base64')) },
  say (q) {
    for (const c of named(q.name)) {
      const json = JSON.stringify({ text: q.text })
      if (P < 759) c.write('chat', { message: json, position: 1, sender: '00000000-0000-0000-0000-000000000000' })
      else c.write('system_chat', { content: P >= 765 ? nbt.comp({ text: nbt.string(q.text) }) : json, type: 1, isActionBar: false })
    }
  },
  hide (q) { const c = player(q.name); c.unlisted.add(player(q.target).username); enlist(c, player(q.target)) },
  show (q) { const c = player(q.name); c.unlisted.delete(q.target); enlist(c, player(q.target)) },
  lists (q) {
    perWorld = q.by === 'world'
    for (const to of players.values()) for (const p of players.values()) enlist(to, p)
  },
  // vanish takes somebody, who need not be here yet, off the lists and out of the sight of others, or of those named; they
  // see everybody all the same. appear undoes it.
  vanish (q) { vanished.set(q.name, q.from); shown(q.name) },
  appear (q) { vanished.delete(q.name); shown(q.name) },
  // cull keeps a body from somebody, as plugins do with what is behind walls; the list stays.
  cull (q) { const c = player(q.name); if (q.on) c.culled.add(q.target); else c.culled.delete(q.target); look() },
  teleport (q) { return teleport(player(q.name), q) },
  respawn (q) { const c = player(q.name); respawn(c, q.world ?? c.world, q.keep ?? 0, { x: q.x ?? 8, y: q.y ?? 70, z: q.z ?? 8, yaw: q.yaw, pitch: q.pitch }) },
  kill (q) { const c = player(q.name); c.dead = true; c.at = { ...c.at, x: q.x ?? 8, y: q.y ?? 70, z: q.z ?? 8 }; c.write('update_health', { health: 0, food: 20, foodSaturation: 5 }); look() },
  mode (q) {
    const c = player(q.name)
    c.mode = q.mode
    c.write('game_state_change', { reason: 'change_game_mode', gameMode: q.mode })
    for (const to of players.values()) listMode(to, c)
    look()
  },
  op (q) { const c = player(q.name); c.write('entity_status', { entityId: c.eid, entityStatus: 24 + q.level }) },
  spawn (q) {
    const id = ++nextId
    vehicles.set(id, { type: q.type, uuid: crypto.randomUUID(), x: q.x, y: q.y, z: q.z, yaw: q.yaw ?? 0, riders: [] })
    for (const c of players.values()) appear(c, id)
    return { entity: id }
  },
  seat (q) {
    const v = vehicle(q.vehicle)
    const before = v.riders
    v.riders = q.riders.map(n => player(n).username)
    for (const c of players.values()) sit(c, q.vehicle, before, v.riders)
  },
  drive (q) { return drive(q.vehicle, q.how, q) },
  destroy (q) {
    vehicle(q.vehicle)
    vehicles.delete(q.vehicle)
    for (const c of players.values()) gone(c, q.vehicle)
  },
  correct (q) { player(q.name).write('vehicle_move', { x: q.x, y: q.y, z: q.z, yaw: q.yaw ?? 0, pitch: q.pitch ?? 0 }) },
  reconfigure (q) {
    if (P < 764) throw new Error(`${version} has no configuration phase`)
    for (const c of named(q.name)) { c.holdNext = q.hold ?? false; c.write('start_configuration', {}) }
  },
  hold (q) { hold = q.on },
  finish (q) {
    const c = configuring.get(q.name)
    if (!c) throw new Error(`${q.name} is not in configuration`)
    finish(c)
  },
  // refuse makes the next connection of name end in a phase: login, config (1.20.2 and later), play.
  refuse (q) { if (q.phase) refuse[q.name] = { phase: q.phase, reason: q.reason }; else delete refuse[q.name] },
  kick (q) {
    for (const c of anywhere(q.name)) kick(c, q.reason ?? 'kicked')
  },
  // drop ends a connection without a word, as a crash does.
  drop (q) { for (const c of named(q.name)) c.socket.destroy() }
})
server.on('error', e => { throw e })
server.on('listening', () => say({ ev: 'listening', port: server.socketServer.address().port, protocol: P }))
