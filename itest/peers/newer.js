'use strict'
// Teaches minecraft-data, and with it minecraft-protocol and mineflayer, the versions 26.2 (776) and 26.3 (777), which the
// published minecraft-data lacks. Whatever is not said here is 26.1's, from which both are made when this is loaded. It has
// to be loaded before the first client, server or serializer is made; nothing on disk is changed, and a minecraft-data that
// knows a version itself wins.
//
// Not here, so 26.1's and wrong at 777: items and entity data beyond a player's body, particles, explosion, signs,
// advancements, block_dig, and at both the numbers of blocks and items.
const { types: { varint: [readVarInt, writeVarInt, sizeOfVarInt] }, utils: { PartialReadError } } = require('protodef')
const data = require('minecraft-data/data')

const clone = value => JSON.parse(JSON.stringify(value))

// ---- definitions of packets: {state: {direction: types}} in protodef's JSON

const container = fields => ['container', Object.entries(fields).map(([name, type]) => ({ name, type }))]
const strings = ['array', { countType: 'varint', type: 'string' }]
const flat = (type, found = []) => { // every object inside a definition
  if (type && typeof type === 'object') {
    if (!Array.isArray(type)) found.push(type)
    Object.values(type).forEach(part => flat(part, found))
  }
  return found
}
const field = (type, name) => {
  const found = flat(type).filter(part => part.name === name)
  if (!found.length) throw new Error(`26.1 has no field ${name} any more`)
  return found[0]
}
const before = (type, name, added) => { const at = type[1].indexOf(field(type[1], name)); type[1].splice(at, 0, added) }

// renumber gives the packets of a state and direction their places in a list that change makes of the old one.
function renumber (types, change) {
  const names = field(types.packet, 'name').type[1]
  const params = field(types.packet, 'params').type[1].fields
  const list = Object.keys(names.mappings).sort((a, b) => a - b).map(id => names.mappings[id])
  change({
    add (name, next, type) { list.splice(place(list, next), 0, name); types['packet_' + name] = type; params[name] = 'packet_' + name },
    drop (name) { list.splice(place(list, name), 1); delete params[name] }
  })
  names.mappings = Object.fromEntries(list.map((name, id) => ['0x' + id.toString(16), name]))
}
const place = (list, name) => { const at = list.indexOf(name); if (at < 0) throw new Error(`26.1 has no ${name} any more`); return at }

// parsers sets the kinds of arguments in command trees; a new one has no properties.
function parsers (protocol, change) {
  const { mappings } = field(protocol.types.command_node, 'parser').type[1]
  const list = Object.keys(mappings).sort((a, b) => a - b).map(id => mappings[id])
  change(list)
  field(protocol.types.command_node, 'parser').type[1].mappings = Object.fromEntries(list.map((name, id) => [id, name]))
}

function to776 (protocol) {
  const { login, play } = protocol
  login.toClient.types.packet_success[1].push({ name: 'sessionId', type: 'UUID' })
  before(play.toClient.types.packet_login, 'enforcesSecureChat', { name: 'onlineMode', type: 'bool' })
  const team = field(play.toClient.types.packet_teams, 'mode') && play.toClient.types.packet_teams[1].find(part => part.anon).type[1].fields
  for (const action of ['add', 'change']) {
    const old = team[action]
    field(old, 'formatting').type = ['option', 'varint']
    team[action] = ['container', ['name', 'prefix', 'suffix', 'nameTagVisibility', 'collisionRule', 'formatting', 'flags'].map(name => old[1].find(part => part.name === name))]
  }
  field(play.toServer.types.packet_spectate_entity, 'entityId').type = 'optionalNumber'
  parsers(protocol, list => { list[place(list, 'minecraft:color')] = 'minecraft:team_color' })
}

function to777 (protocol) {
  const { configuration, play } = protocol
  const client = play.toClient.types
  const server = play.toServer.types
  const postEffects = container({ effects: strings })
  renumber(configuration.toClient.types, ({ add }) => add('post_effects', 'store_cookie', postEffects))
  renumber(client, ({ add }) => {
    add('add_transient_block', 'unload_chunk', container({ location: 'position', state: 'varint' }))
    add('post_effects', 'respawn', postEffects)
    add('swing_animation', 'system_chat', container({ entityId: 'varint', hand: 'varint', kind: 'varint', ticks: 'varint' }))
  })
  renumber(server, ({ add, drop }) => {
    add('punch', 'recipe_book', container({}))
    drop('arm_animation')
  })
  field(client.SpawnInfo, 'gamemode').type[1].type = 'varint'
  field(client.SpawnInfo, 'previousGamemode').type = 'previousMode'
  server.packet_teleport_confirm = container({ teleportId: 'varint', x: 'f64', y: 'f64', z: 'f64', yaw: 'f32', pitch: 'f32' })
  client.packet_rel_entity_move = 'steppedMove'
  client.packet_entity_move_look = 'steppedMoveLook'
  client.packet_entity_look = container({ entityId: 'varint', onGround: 'bool', yaw: 'i8', pitch: 'i8' })
  client.packet_sync_entity_position = 'steppedSync'
  for (const packet of [client.packet_map_chunk, client.packet_update_light]) {
    for (const mask of ['skyLightMask', 'blockLightMask', 'emptySkyLightMask', 'emptyBlockLightMask']) field(packet, mask).type = 'bits'
  }
  field(client.packet_player_chat, 'filterTypeMask').type[1].fields[2] = 'bits'
  parsers(protocol, list => {
    list.splice(place(list, 'minecraft:dialog'), 0, 'minecraft:context_float_provider', 'minecraft:context_int_provider', 'minecraft:slot_source')
    list.splice(place(list, 'minecraft:uuid'), 0, 'minecraft:feature', 'minecraft:swing_animation')
  })
}

// A release that is made up: every packet of play is one id further.
function to900 (protocol) {
  for (const { types } of [protocol.play.toClient, protocol.play.toServer]) {
    renumber(types, ({ add }) => add('made_up', field(types.packet, 'name').type[1].mappings['0x0'] ?? field(types.packet, 'name').type[1].mappings['0x00'], container({})))
  }
}

// ---- types that protodef's JSON cannot say

class Reader {
  constructor (buffer, offset) { this.buffer = buffer; this.offset = this.start = offset }
  take (size) {
    const at = this.offset
    if (size < 0 || at + size > this.buffer.length) throw new PartialReadError()
    this.offset += size
    return at
  }

  varint () { const { value, size } = readVarInt(this.buffer, this.offset); this.offset += size; return value }
  f64 () { return this.buffer.readDoubleBE(this.take(8)) }
  f32 () { return this.buffer.readFloatBE(this.take(4)) }
  i16 () { return this.buffer.readInt16BE(this.take(2)) }
  i8 () { return this.buffer.readInt8(this.take(1)) }
  count (size) { const n = this.varint(); if (n < 0 || this.offset + n * size > this.buffer.length) throw new PartialReadError(); return n }
  bytes () { const n = this.count(1); return this.buffer.subarray(this.take(n), this.offset) }
}

class Writer {
  constructor () { this.parts = [] }
  fixed (size, method, value) { const b = Buffer.alloc(size); b[method](value ?? 0); this.parts.push(b) }
  varint (value) { const b = Buffer.alloc(sizeOfVarInt(value)); writeVarInt(value, b, 0); this.parts.push(b) }
  f64 (value) { this.fixed(8, 'writeDoubleBE', value) }
  f32 (value) { this.fixed(4, 'writeFloatBE', value) }
  i16 (value) { this.fixed(2, 'writeInt16BE', value) }
  i8 (value) { this.fixed(1, 'writeInt8', value) }
  bytes (value) { this.varint(value.length); this.parts.push(value) }
}

// native makes protodef's three functions of two.
function native (read, write) {
  const encode = value => { const w = new Writer(); write(w, value); return Buffer.concat(w.parts) }
  return [
    (buffer, offset) => { const r = new Reader(buffer, offset); return { value: read(r), size: r.offset - r.start } },
    (value, buffer, offset) => { const b = encode(value); b.copy(buffer, offset); return offset + b.length },
    value => encode(value).length
  ]
}

// A move with steps: dX, dY and dZ are the whole way, as in a move without.
const axes = ['dX', 'dY', 'dZ']
const steppedMove = look => native(r => {
  const move = { entityId: r.varint() }
  const packed = r.varint() >>> 0
  const step = () => Object.fromEntries(axes.map(axis => [axis, r.i16()]))
  if (packed >>> 1 === 0) Object.assign(move, step())
  else {
    move.steps = []
    for (let n = packed >>> 1; n > 0; n--) move.steps.push({ ticks: r.varint(), ...step() })
    for (const axis of axes) move[axis] = move.steps.reduce((sum, s) => sum + s[axis], 0)
  }
  if (look) Object.assign(move, { yaw: r.i8(), pitch: r.i8() })
  return { ...move, onGround: (packed & 1) === 1 }
}, (w, move) => {
  const steps = move.steps ?? []
  w.varint(move.entityId)
  w.varint(steps.length << 1 | (move.onGround ? 1 : 0))
  if (!steps.length) for (const axis of axes) w.i16(move[axis])
  for (const s of steps) { w.varint(s.ticks); for (const axis of axes) w.i16(s[axis]) }
  if (look) { w.i8(move.yaw); w.i8(move.pitch) }
})

// A place with steps on the way to it: x, y and z are where the last one ends.
const steppedSync = native(r => {
  const sync = { entityId: r.varint() }
  const xyz = () => ({ x: r.f64(), y: r.f64(), z: r.f64() })
  const kind = r.varint()
  if (kind === 0) Object.assign(sync, xyz())
  else if (kind === 1) {
    sync.steps = Array.from({ length: r.count(25) }, () => ({ ...xyz(), ticks: r.varint() }))
    const { x, y, z } = sync.steps.at(-1) ?? {}
    Object.assign(sync, { x, y, z })
  } else throw new Error(`a place of kind ${kind}`)
  return { ...sync, dx: 0, dy: 0, dz: 0, yaw: r.f32(), pitch: r.f32(), onGround: r.i8() !== 0 } // 26.1 has a velocity
}, (w, sync) => {
  const xyz = at => { w.f64(at.x); w.f64(at.y); w.f64(at.z) }
  w.varint(sync.entityId)
  w.varint(sync.steps ? 1 : 0)
  if (sync.steps) { w.varint(sync.steps.length); for (const s of sync.steps) { xyz(s); w.varint(s.ticks) } } else xyz(sync)
  w.f32(sync.yaw)
  w.f32(sync.pitch)
  w.i8(sync.onGround ? 1 : 0)
})

// Sets of bits stay the words of 64 bits that they were, each [high, low] or a bigint.
const word = w => BigInt.asUintN(64, Array.isArray(w) ? BigInt(w[0]) << 32n | BigInt(w[1] >>> 0) : BigInt(w))
const bits = native(r => {
  const bytes = r.bytes()
  const padded = Buffer.concat([bytes, Buffer.alloc(-bytes.length & 7)])
  return Array.from({ length: padded.length / 8 }, (_, i) => [padded.readInt32LE(8 * i + 4), padded.readInt32LE(8 * i)])
}, (w, words) => {
  const bytes = Buffer.alloc(8 * words.length)
  words.forEach((one, i) => bytes.writeBigUInt64LE(word(one), 8 * i))
  w.bytes(bytes.subarray(0, bytes.findLastIndex(b => b !== 0) + 1))
})

// Numbers that can be missing take 0 for that.
const optional = none => native(r => { const n = r.varint(); return n === 0 ? none : n - 1 }, (w, value) => w.varint(value === none ? 0 : value + 1))

const natives = { steppedMove: steppedMove(false), steppedMoveLook: steppedMove(true), steppedSync, bits, optionalNumber: optional(undefined), previousMode: optional(255) }

// ---- the versions

// entities renumbers them: the names of the kinds are in order, but for the last two.
function entities (old, added) {
  const kinds = old.slice(0, -2)
  for (const name of added) {
    const at = kinds.findIndex(kind => kind.name > name && kind.name !== 'splash_potion' && kind.name !== 'ender_dragon')
    kinds.splice(at < 0 ? kinds.length : at, 0, { ...old[0], name, displayName: name })
  }
  return [...kinds, ...old.slice(-2)].map((kind, id) => ({ ...kind, id, internalId: id }))
}

const additions = [
  { name: '26.2', number: 776, change: to776, kinds: ['sulfur_cube'] },
  { name: '26.3', number: 777, change: to777, kinds: ['cushion', 'poplar_boat', 'poplar_chest_boat'] },
  { name: '27.0', number: 900, change: to900, kinds: [], made: true }
]

// What the versions here are that there are, as minecraft-data's version.json has it.
exports.versions = []

// play makes a mineflayer bot, which knows 26.1, do what a client of 26.3 does: it answers a teleport by where it is now and
// sends no movement for it, and it punches with one hand.
exports.play = bot => {
  const client = bot._client
  const write = client.write
  let answered = false // and the movement that 26.1 sends behind the answer is still to come
  client.write = (name, params) => {
    if (name === 'arm_animation') return params.hand === 0 ? write.call(client, 'punch', {}) : undefined
    if (name === 'teleport_confirm') {
      answered = true
      const { position: { x, y, z }, yaw, pitch } = bot.entity
      params = { ...params, x, y, z, yaw: 180 - yaw * 180 / Math.PI, pitch: 0 - pitch * 180 / Math.PI }
    }
    if (name === 'position_look' && answered) { answered = false; return }
    return write.call(client, name, params)
  }
}

function teach () {
  const base = data.pc['26.1']
  let { protocol, entities: kinds } = base
  for (const { name, number, change, kinds: added, made } of additions) {
    protocol = clone(protocol)
    for (const type in natives) protocol.types[type] = 'native'
    change(protocol)
    kinds = entities(kinds, added)
    if (data.pc[name]) continue
    const version = { version: number, minecraftVersion: name, majorVersion: '26.1', releaseType: 'release' } // chunks and physics go by the last but one
    const own = { protocol, entities: kinds, version, loginPacket: { ...clone(base.loginPacket), onlineMode: false } }
    data.pc[name] = Object.create(base, Object.fromEntries(Object.entries(own).map(([key, value]) => [key, { value, enumerable: true }])))
    if (!made) exports.versions.push(version)
    for (const list of [require('minecraft-data').supportedVersions.pc, require('minecraft-protocol/src/version').supportedVersions, require('mineflayer/lib/version').testedVersions]) {
      if (!list.includes(name)) list.push(name)
    }
    require('minecraft-data').versionsByMinecraftVersion.pc[name] ??= { ...version, majorVersion: name, dataVersion: 99999 }
    require('mineflayer/lib/version').latestSupportedVersion = name
  }
  const compiled = require('minecraft-protocol/src/datatypes/compiler-minecraft')
  for (const [name, functions] of Object.entries(natives)) {
    ['Read', 'Write', 'SizeOf'].forEach((part, i) => { compiled[part][name] = ['native', functions[i]] })
    require('minecraft-protocol/src/datatypes/minecraft')[name] = functions
  }
}
teach()
