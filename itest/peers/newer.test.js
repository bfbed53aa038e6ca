'use strict'
// node --test newer.test.js: what newer.js makes of the packets that changed, against bytes that are written down here by hand
// or captured from a server, and the numbers of the packets against the game's own. TestPeers of itest/peer then has clients
// and servers of these versions talk to each other through all states.
const test = require('node:test')
const assert = require('node:assert')
require('./newer')
const { createSerializer, createDeserializer } = require('minecraft-protocol')
const minecraftData = require('minecraft-data')

const plain = value => JSON.parse(JSON.stringify(value, (_, v) => typeof v === 'bigint' ? v.toString() : v))

// both reads bytes as a packet of a version, and writes what it read.
function both (version, direction, name, hex, want, state = 'play') {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  const isServer = direction === 'toServer' // who reads
  const { data } = createDeserializer({ state, isServer, version, noErrorLogging: true }).parsePacketBuffer(bytes)
  assert.strictEqual(data.name, name)
  for (const key in want) assert.deepStrictEqual(plain(data.params[key] ?? null), want[key], `${name}.${key}`)
  const again = createSerializer({ state, isServer: !isServer, version }).createPacketBuffer({ name, params: data.params })
  assert.strictEqual(again.toString('hex'), bytes.toString('hex'), name)
}

const text = '0800016e' // the component "n"
const uuid = 'f84c6a790a4e45e0879bcd49ebd4c4e2'
const dashed = 'f84c6a79-0a4e-45e0-879b-cd49ebd4c4e2'
// A play login up to the game mode: entity 7, one world w, 20 players, sight 8 and 5, dimension 0 of w, seed 0.
const joined = '00000007 00 010177 14 08 05 00 01 00 00 0177 0000000000000000'

test('26.1 is as it was', () => {
  both('26.1', 'toClient', 'login', `31 ${joined} 00 ff 00 01 00 00 c1ffffff0f 01`, { enforcesSecureChat: true, onlineMode: null })
  both('26.1', 'toServer', 'teleport_confirm', '00 05', { teleportId: 5 })
  both('26.1', 'toClient', 'rel_entity_move', '35 ac02 000a 0000 fffd 01', { entityId: 300, dX: 10, onGround: true })
})

test('26.2', () => {
  const v = '26.2'
  both(v, 'toClient', 'success', `02 ${uuid} 0141 00 ${uuid}`, { uuid: dashed, sessionId: dashed }, 'login')
  both(v, 'toClient', 'login', `31 ${joined} 00 ff 00 01 00 00 c1ffffff0f 01 00`, { onlineMode: true, enforcesSecureChat: false })
  both(v, 'toClient', 'teams', `6d 0174 00 ${text} ${text} ${text} 00 03 01 04 02 01 0161`, { mode: 'add', formatting: 4, players: ['a'], collisionRule: 'push_own_team' })
  both(v, 'toClient', 'teams', `6d 0174 02 ${text} ${text} ${text} 01 00 00 01`, { mode: 'change', formatting: null })
  both(v, 'toServer', 'spectate_entity', '3e 00', { entityId: null })
  both(v, 'toServer', 'spectate_entity', '3e 06', { entityId: 5 })
  both(v, 'toServer', 'teleport_confirm', '00 05', { teleportId: 5 })
  both(v, 'toClient', 'rel_entity_move', '35 ac02 000a 0000 fffd 01', { entityId: 300, dX: 10, onGround: true })
})

test('26.3', () => {
  const v = '26.3'
  both(v, 'toClient', 'success', `02 ${uuid} 0141 00 ${uuid}`, { sessionId: dashed }, 'login')
  both(v, 'toClient', 'login', `32 ${joined} 00 00 00 01 00 00 c1ffffff0f 01 00`, { onlineMode: true, enforcesSecureChat: false })
  for (const [bytes, mode, previous] of [['00 00', 'survival', 255], ['01 01', 'creative', 0], ['02 02', 'adventure', 1], ['03 04', 'spectator', 3]]) {
    both(v, 'toClient', 'respawn', `54 00 0177 0000000000000000 ${bytes} 00 01 00 00 00 03`, {
      worldState: { dimension: 0, name: 'w', hashedSeed: [0, 0], gamemode: mode, previousGamemode: previous, isDebug: false, isFlat: true, portalCooldown: 0, seaLevel: 0 }
    })
  }
  both(v, 'toServer', 'teleport_confirm', '00 05 3ff8000000000000 4051800000000000 c004000000000000 42b40000 41200000', { teleportId: 5, x: 1.5, y: 70, z: -2.5, yaw: 90, pitch: 10 })
  // captured
  both(v, 'toClient', 'rel_entity_move', '36 ea0d 01 0356 0555 ffe2', { entityId: 1770, dX: 854, dY: 1365, dZ: -30, onGround: true })
  both(v, 'toClient', 'sync_entity_position', '23 b61b 01 01 4018154e3d1bf799 c04dca3d70c00000 4013cd2514ae9c30 02 43a30be8 00000000 00', { entityId: 3510, x: 6.020806269485456, onGround: false })
  both(v, 'toClient', 'sync_entity_position', '23 05 00 3ff0000000000000 4000000000000000 4008000000000000 00000000 00000000 01', { x: 1, y: 2, z: 3, onGround: true })
  both(v, 'toClient', 'rel_entity_move', '36 ac02 04 01 000a 0000 fffd 02 0005 0001 0000', { entityId: 300, dX: 15, dY: 1, dZ: -3, onGround: false })
  both(v, 'toClient', 'entity_move_look', '37 05 01 0001 0002 0003 40 fb', { dX: 1, yaw: 64, pitch: -5, onGround: true })
  both(v, 'toClient', 'entity_look', '39 05 01 40 fb', { onGround: true, yaw: 64, pitch: -5 })
  both(v, 'toClient', 'swing_animation', '7b 05 00 01 06', { entityId: 5, hand: 0, kind: 1, ticks: 6 })
  both(v, 'toServer', 'punch', '2e', {})
  both(v, 'toServer', 'spectate_entity', '3f 00', { entityId: null })
  both(v, 'toClient', 'post_effects', '53 02 0161 0162', { effects: ['a', 'b'] })
  both(v, 'toClient', 'post_effects', '0a 01 0161', { effects: ['a'] }, 'configuration')
  both(v, 'toClient', 'update_light', '31 01 02 03feff01 00 00 0103 00 00', { chunkX: 1, skyLightMask: [[0, 0x1fffe]], blockLightMask: [], emptyBlockLightMask: [[0, 3]] })
  both(v, 'toClient', 'player_chat', `42 05 ${uuid} 00 00 0161 0000000000000000 0000000000000000 00 00 02 0105 01 ${text} 00`, { plainMessage: 'a', filterTypeMask: [[0, 5]] })
  both(v, 'toClient', 'declare_commands', '10 02 00 01 01 02 00 0161 3d 00', { rootIndex: 0 })
})

test('what is cut short is refused', () => {
  const read = (hex, version) => createDeserializer({ state: 'play', isServer: false, version, noErrorLogging: true }).parsePacketBuffer(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
  for (const hex of ['36 ac02 04 01 000a 0000 fffd 02 0005 0001', '36 05 ffffffff0f', '23 05 01 ffffffff07', '23 05 02', '31 01 02 05feff01']) assert.throws(() => read(hex, '26.3'), hex)
})

test('numbers of packets', () => {
  const ids = (version, state, direction) => {
    const { mappings } = minecraftData(version).protocol[state][direction].types.packet[1].find(f => f.name === 'name').type[1]
    return Object.fromEntries(Object.entries(mappings).map(([id, name]) => [name, Number(id)]))
  }
  const play = ids('26.3', 'play', 'toClient')
  assert.strictEqual(Object.keys(play).length, 144)
  for (const [name, id] of Object.entries({
    bundle_delimiter: 0, sync_entity_position: 35, explosion: 36, add_transient_block: 37, unload_chunk: 38, keep_alive: 45, login: 50, rel_entity_move: 54, player_chat: 66,
    position: 73, remove_resource_pack: 81, post_effects: 83, respawn: 84, start_configuration: 120, store_cookie: 122, swing_animation: 123, system_chat: 124, transfer: 132, show_dialog: 143
  })) assert.strictEqual(play[name], id, name)
  const from = ids('26.3', 'play', 'toServer')
  assert.strictEqual(Object.keys(from).length, 69)
  for (const [name, id] of Object.entries({ pong: 45, punch: 46, recipe_book: 47, update_sign: 62, spectate_entity: 63, spectate: 64, custom_click_action: 68 })) assert.strictEqual(from[name], id, name)
  const configuration = ids('26.3', 'configuration', 'toClient')
  for (const [name, id] of Object.entries({ add_resource_pack: 9, post_effects: 10, store_cookie: 11, select_known_packs: 15, code_of_conduct: 20 })) assert.strictEqual(configuration[name], id, name)
  for (const state of ['login', 'configuration', 'play']) for (const direction of ['toClient', 'toServer']) assert.deepStrictEqual(ids('26.2', state, direction), ids('26.1', state, direction))
})

test('players among the kinds of entities', () => {
  for (const [version, id] of [['26.1', 155], ['26.2', 156], ['26.3', 159]]) assert.strictEqual(minecraftData(version).entitiesByName.player.id, id)
  assert.strictEqual(minecraftData('26.3').entitiesByName.oak_boat.id, 90)
})
