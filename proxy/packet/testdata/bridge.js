// Writes bridge.jsonl: the packets the bridge reads, as npm minecraft-protocol serializes them for every protocol
// number from 47 to 777, beside what our decoders must make of them.
//
//   npm ci --prefix itest/peers && node proxy/packet/testdata/bridge.js
//
// One line per distinct body: {packet, dir, protocols, hex, fields}. hex is the body after the packet id; fields are
// those of the Go struct. Numbers are chosen to be exact in the wire format, so a test compares them for equality.
'use strict'
const fs = require('fs')
const path = require('path')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const newer = require('../../../itest/peers/newer')
const { createSerializer } = require(path.join(peers, 'minecraft-protocol'))
const root = path.join(peers, 'minecraft-data/minecraft-data/data')
const releases = require(path.join(root, 'pc/common/protocolVersions.json'))
const dataPaths = require(path.join(root, 'dataPaths.json')).pc

const FIRST = 47
const LAST = 777
const BORROW = { 485: 480 } // 1.14.2 has no data of its own

// Go fields, wire parameters. A case of a packet is [params, fields]; undefined means the version lacks the packet.
const UUIDS = ['00112233-4455-6677-8899-aabbccddeeff', 'ffffffff-0000-4000-8000-000000000001', '069a79f4-44e9-4726-a5be-fca90e38aaf5']
const flagNames = ['x', 'y', 'z', 'yaw', 'pitch', 'dx', 'dy', 'dz', 'yawDelta']
const relatives = (p, bits) => p >= 766 ? Object.fromEntries(flagNames.map((n, i) => [n, (bits >> i & 1) === 1])) : bits
const ground = (p, on, wall) => p >= 768 ? { flags: { onGround: on, hasHorizontalCollision: wall } } : { onGround: on }
const AT = { x: -1234.5, y: 70.0625, z: 29999999.75 }
const At = { X: AT.x, Y: AT.y, Z: AT.z }

// An NBT value with every tag type, so that a decoder that only skips it has met each.
const N = (type, value) => ({ type, value })
const nbtTree = {
  b: N('byte', -1), s: N('short', 300), i: N('int', -70000), l: N('long', [1, 2]), f: N('float', 1.5), d: N('double', -2.25),
  ba: N('byteArray', [1, 2, 3]), st: N('string', 'grüße'), ia: N('intArray', [1, -2]), la: N('longArray', [[0, 1], [2, 3]]),
  el: N('list', { type: 'end', value: [] }), li: N('list', { type: 'int', value: [1, 2] }), ls: N('list', { type: 'string', value: ['a', ''] }),
  lc: N('list', { type: 'compound', value: [{ a: N('byte', 1) }, {}] }), ll: N('list', { type: 'list', value: [{ type: 'byte', value: [1] }, { type: 'end', value: [] }] }),
  c: N('compound', { name: N('string', 'minecraft:overworld'), deep: N('compound', {}) })
}
const nbtRoot = { type: 'compound', name: '', value: nbtTree }
const dimName = d => ({ '-1': 'minecraft:the_nether', 0: 'minecraft:overworld', 1: 'minecraft:the_end' })[d]
const MODES = ['survival', 'creative', 'adventure', 'spectator']
const death = { dimensionName: 'minecraft:the_end', location: { x: -5, y: 60, z: 7 } }

// spawnCases are the variations that login and respawn share.
const spawnCases = p => p < 735
  ? [[-1, 0], [0, 1], [1, 2], [0, 3]].map(([dim, mode]) => ({ dim, mode, world: dimName(dim), prev: 0, dead: undefined }))
  : [['minecraft:overworld', 0, 255], ['minecraft:the_nether', 1, 0], ['lobby:spawn', 2, 1], ['minecraft:the_end', 3, 2],
      ...(p < 777 ? [] : [['lobby:a', 0, 3], ['lobby:b', 1, 255], ['lobby:c', 2, 255], ['lobby:d', 3, 255]])]
      .map(([world, mode, prev], i) => ({ dim: i, mode, world, prev, dead: i === 1 ? death : undefined }))
const i8 = v => v > 127 ? v - 256 : v
const worldState = (c, p) => ({
  dimension: c.dim, name: c.world, hashedSeed: [1, 2], gamemode: MODES[c.mode], previousGamemode: c.prev, isDebug: false, isFlat: true,
  death: c.dead, portalCooldown: 300, seaLevel: -63
})

// As text, since they are too long for a number here; unquoted where the vectors are written.
const seeds = { state: '4294967298', login: '1311768469162688510', respawn: '21474836486' }

const login = p => spawnCases(p).map((c, i) => {
  const hardcore = i === 2
  const params = {
    entityId: 1000 + i, isHardcore: hardcore, gameMode: p <= 736 && hardcore ? c.mode | 8 : c.mode,
    previousGameMode: p >= 755 ? i8(c.prev) : c.prev, worldNames: ['minecraft:overworld', c.world], dimensionCodec: nbtRoot,
    dimension: p < 735 ? c.dim : p < 751 ? 'minecraft:overworld' : nbtRoot, worldType: 'minecraft:overworld', worldName: c.world,
    difficulty: 2, maxPlayers: 100, levelType: 'default', hashedSeed: [0x12345678, -2], viewDistance: 10, simulationDistance: 8,
    reducedDebugInfo: false, enableRespawnScreen: true, doLimitedCrafting: false, isDebug: false, isFlat: true, death: c.dead,
    portalCooldown: 300, worldState: worldState(c, p), onlineMode: i === 1, enforcesSecureChat: true
  }
  return [params, { EntityID: 1000 + i, Mode: c.mode, World: c.world, ...(p >= 573 && { Seed: p >= 766 ? seeds.state : seeds.login }) }]
})

const respawn = p => spawnCases(p).map(c => [{
  dimension: p < 735 ? c.dim : p >= 751 && p <= 758 ? nbtRoot : 'minecraft:overworld', worldName: c.world, difficulty: 1,
  hashedSeed: [5, 6], gamemode: c.mode, previousGamemode: c.prev, levelType: 'flat', isDebug: true, isFlat: false,
  copyMetadata: p >= 766 ? 3 : true, death: c.dead, portalCooldown: 1, worldState: worldState(c, p)
}, { Mode: c.mode, World: c.world, ...(p >= 573 && { Seed: p >= 766 ? seeds.state : seeds.respawn }) }])

const text = p => p >= 765 ? { type: 'compound', value: { text: N('string', 'Ann'), color: N('string', 'red') } } : '{"text":"Ann"}'
const textField = p => p >= 765
  ? '0a080004746578740003416e6e080005636f6c6f72000372656400'
  : '0e' + Buffer.from('{"text":"Ann"}').toString('hex')
const b64 = hex => Buffer.from(hex, 'hex').toString('base64')
const bytes = (first, n) => Buffer.from(Array.from({ length: n }, (_, i) => (first + i) & 255))
const props = [{ name: 'textures', value: 'eyJ0ZXh0dXJlcyI6e319', signature: 'c2ln' }, { name: 'x', value: '', signature: undefined }]
const Props = [{ Name: 'textures', Value: 'eyJ0ZXh0dXJlcyI6e319', Signature: 'c2ln' }, { Name: 'x', Value: '' }]
const hexInt64 = (hi, lo) => { const b = Buffer.alloc(8); b.writeInt32BE(hi, 0); b.writeUInt32BE(lo, 4); return b.toString('hex') }
const varint = n => n < 128 ? Buffer.from([n]).toString('hex') : Buffer.from([n & 127 | 128, n >> 7]).toString('hex')

function playerInfoOld (p) {
  const key = { timestamp: [1, 2], publicKey: bytes(1, 3), signature: bytes(9, 200) }
  const Key = b64(hexInt64(1, 2) + '03' + bytes(1, 3).toString('hex') + varint(200) + bytes(9, 200).toString('hex'))
  const display = b64(textField(p))
  return [
    [{ action: 'add_player', data: [
      { uuid: UUIDS[0], name: 'Ann', properties: props, gamemode: 1, ping: 250, displayName: text(p), crypto: key },
      { uuid: UUIDS[1], name: 'Bob_with_16_char', properties: [], gamemode: 0, ping: 0, displayName: undefined, crypto: undefined }
    ] }, { Actions: 1, Players: [
      { ID: UUIDS[0], Name: 'Ann', Properties: Props, Mode: 1, Latency: 250, DisplayName: display, ...(p >= 759 && { ChatKey: Key }) },
      { ID: UUIDS[1], Name: 'Bob_with_16_char', Mode: 0, Latency: 0 }
    ] }],
    [{ action: 'update_game_mode', data: [{ uuid: UUIDS[0], gamemode: 3 }] }, { Actions: 4, Players: [{ ID: UUIDS[0], Mode: 3 }] }],
    [{ action: 'update_latency', data: [{ uuid: UUIDS[0], ping: 77 }, { uuid: UUIDS[2], ping: 1000 }] }, { Actions: 16, Players: [{ ID: UUIDS[0], Latency: 77 }, { ID: UUIDS[2], Latency: 1000 }] }],
    [{ action: 'update_display_name', data: [{ uuid: UUIDS[0], displayName: text(p) }, { uuid: UUIDS[1], displayName: undefined }] },
      { Actions: 32, Players: [{ ID: UUIDS[0], DisplayName: display }, { ID: UUIDS[1] }] }],
    [{ action: 'remove_player', data: [{ uuid: UUIDS[0] }, { uuid: UUIDS[2] }] }, { Remove: true, Players: [{ ID: UUIDS[0] }, { ID: UUIDS[2] }] }],
    [{ action: 'add_player', data: [] }, { Actions: 1, Players: [] }]
  ]
}

function playerInfoNew (p) {
  const names = ['add_player', 'initialize_chat', 'update_game_mode', 'update_listed', 'update_latency', 'update_display_name']
  if (p === 768) names.push('update_list_order')
  if (p >= 769) names.push('update_hat', 'update_list_order') // bits 6 and 7; see playerlist.go about their names
  const session = { uuid: UUIDS[2], publicKey: { expireTime: [3, 4], keyBytes: bytes(1, 5), keySignature: bytes(7, 130) } }
  const Session = b64(UUIDS[2].replaceAll('-', '') + hexInt64(3, 4) + '05' + bytes(1, 5).toString('hex') + varint(130) + bytes(7, 130).toString('hex'))
  const one = (uuid, on, full) => {
    const w = { uuid }
    const g = { ID: uuid }
    if (on.has('add_player')) { const profile = { name: full ? 'Ann' : 'Bob', properties: full ? props : [] }; w.player = profile; g.Name = profile.name; if (full) g.Properties = Props }
    if (on.has('initialize_chat')) { w.chatSession = full ? session : undefined; if (full) g.ChatKey = Session }
    if (on.has('update_game_mode')) g.Mode = w.gamemode = full ? 3 : 1
    if (on.has('update_listed')) { w.listed = full ? 1 : 0; if (full) g.Listed = true }
    if (on.has('update_latency')) g.Latency = w.latency = full ? 300 : 5
    if (on.has('update_display_name')) { w.displayName = full ? text(p) : undefined; if (full) g.DisplayName = b64(textField(p)) }
    if (on.has('update_list_order')) { w.listPriority = full ? -7 : 2; g[p === 768 ? 'Bit6' : on.has('update_hat') ? 'Bit6' : 'Bit7'] = w.listPriority }
    if (on.has('update_hat')) { w.showHat = full; if (full) g[on.has('update_list_order') ? 'Bit7' : 'Bit6'] = 1 }
    return [w, g]
  }
  const all = new Set(names)
  const sets = [all, ...names.map(n => new Set([n])), new Set(names.slice(0, 5)), new Set(['add_player', 'update_listed']), new Set(names.slice(2)), new Set()]
  return sets.map(on => {
    const both = [one(UUIDS[0], on, true), one(UUIDS[1], on, false)]
    const action = Object.fromEntries(names.map(n => [n, on.has(n)]))
    return [{ action, data: both.map(x => x[0]) }, { Actions: names.reduce((a, n, i) => on.has(n) ? a | 1 << i : a, 0), Players: both.map(x => x[1]) }]
  })
}

// Both minecarts' steps of minecraft-data are single precision; the game's are double (ride_test.go has those).
const step = (x, v) => ({ position: { x, y: 64.5, z: -3 }, movement: v, velocity: v, yaw: 90, pitch: 0, weight: 0.5 })
const fixed = p => p < 107 // coordinates in 1/32 block
const coord = (p, v) => fixed(p) ? v * 32 : v
const place = p => ({ x: coord(p, -100.5), y: coord(p, 64.25), z: coord(p, 2000.03125) })
const Placed = { X: -100.5, Y: 64.25, Z: 2000.03125 }
const delta = p => fixed(p) ? [32, -128, 127].map(d => [d, d / 32]) : [4096, -32768, 1].map(d => [d, d / 4096])
function sum (list, column) { return list.reduce((n, step) => n + step[column], 0) / 4096 }
const relMove = p => delta(p).map(([d, v], i) => [{ entityId: [1, 300, -1][i], dX: d, dY: -Math.sign(d), dZ: 0, yaw: 64, pitch: -1, onGround: i === 1 },
  { ID: [1, 300, -1][i], X: v, Y: -Math.sign(d) / (fixed(p) ? 32 : 4096), Relative: 7 }]).concat(p < 777 ? [] : steppedMoves)
// From 777 on a move can have steps, which add up.
const steps = list => list.map(([ticks, dX, dY, dZ]) => ({ ticks, dX, dY, dZ }))
const steppedMoves = [[[1, 10, 0, -3], [2, 5, 1, 0]], [[0, 32767, -32768, 1]], [[300, 4096, 0, 0], [1, 4096, -8192, 0], [1, -1, 0, 4096]]].map((list, i) => [
  { entityId: 300 + i, steps: steps(list), yaw: 64, pitch: -1, onGround: i === 1 },
  { ID: 300 + i, X: sum(list, 1), Y: sum(list, 2), Z: sum(list, 3), Relative: 7 }])
// From 777 on a place can have steps on the way to it, of which the last one is the place.
const steppedSyncs = [[[2, 1.25]], [[0, 5], [1, 6.5], [300, -7]]].map((list, i) => [
  { entityId: 3510 + i, steps: list.map(([ticks, x]) => ({ x, y: 64.5, z: -x, ticks })), yaw: 326.5, pitch: 0, onGround: i === 1 },
  { ID: 3510 + i, X: list.at(-1)[1], Y: 64.5, Z: -list.at(-1)[1] }])
const velocities = [{ x: 0, y: 0, z: 0 }, { x: 100, y: -200, z: 300 }]

const packets = {
  clientbound: {
    position: ['position', p => [[0, 1], [0b11111, 200], [0b01010, 2], [0b00101, 70000]].map(([bits, id]) => [
      { ...AT, dx: 0.5, dy: -0.25, dz: 0, yaw: -180.5, pitch: 45, flags: relatives(p, bits), teleportId: id, dismountVehicle: bits === 0 },
      { ...At, Yaw: -180.5, Pitch: 45, Relative: bits, ...(p >= 107 && { ID: id }), ...(p >= 755 && p <= 761 && bits === 0 && { Dismount: true }), ...(p >= 768 && { DX: 0.5, DY: -0.25 }) }
    ])],
    player_rotation: ['player_rotation', p => p < 768 ? undefined : [[false, false], [true, false], [false, true]].slice(0, p < 773 ? 1 : 3).map(([a, b]) => [
      { yaw: 12.5, relativeYaw: a, pitch: -90, relativePitch: b }, { Yaw: 12.5, Pitch: -90, Relative: (a ? 8 : 0) | (b ? 16 : 0) }])],
    vehicle_move: ['vehicle_move', p => p < 107 ? undefined : [[{ ...AT, yaw: 1.5, pitch: -2.5 }, { ...At, Yaw: 1.5, Pitch: -2.5 }]]],
    login: ['join_game', login],
    respawn: ['respawn', respawn],
    game_state_change: ['game_state_change', p => [['no_respawn_block_available', 0, 0], ['change_game_mode', 3, 3], ['change_game_mode', 3, 1], ['rain_level_change', 7, 0.25],
      ...(p >= 573 ? [['immediate_respawn', 11, 1]] : []), ...(p >= 765 ? [['level_chunks_load_start', 13, 0]] : [])]
      .map(([reason, n, v]) => [{ reason, gameMode: v }, { Reason: n, Value: v }])],
    entity_status: ['entity_status', () => [[1, 24], [-1, -128], [70000, 28]].map(([id, s]) => [{ entityId: id, entityStatus: s }, { ID: id, Status: s }])],
    player_info: ['player_info', p => p < 761 ? playerInfoOld(p) : playerInfoNew(p)],
    player_remove: ['player_remove', p => p < 761 ? undefined : [[{ players: [] }, []], [{ players: UUIDS }, UUIDS]]],
    set_passengers: ['set_passengers', p => p < 107 ? undefined : [[7, []], [300, [1]], [0, [70000, -1, 2]]].map(([v, r]) => [{ entityId: v, passengers: r }, { Vehicle: v, Riders: r }])],
    attach_entity: ['attach_entity', p => [[5, 6, false], [5, -1, false], [5, 70000, true]].map(([e, v, l]) => [{ entityId: e, vehicleId: v, leash: l },
      { ID: e, Vehicle: v, ...((l || p >= 107) && { Leash: true }) }])],
    camera: ['camera', () => [1, 70000].map(id => [{ cameraId: id }, id])],
    rel_entity_move: ['rel_entity_move', relMove],
    entity_move_look: ['entity_move_look', relMove],
    entity_teleport: ['entity_teleport', p => [0, 0b10101].slice(0, p < 768 ? 1 : 2).map(bits => [
      { entityId: 300, ...place(p), dx: 1, dy: 2, dz: 3, yaw: 64, pitch: -64, flags: relatives(p, bits), onGround: true }, { ID: 300, ...Placed, ...(bits && { Relative: bits }) }])],
    sync_entity_position: ['sync_entity_position', p => p < 768 ? undefined : [[{ entityId: 300, ...place(p), dx: 1, dy: 2, dz: 3, yaw: 64, pitch: -64, onGround: true }, { ID: 300, ...Placed }], ...(p < 777 ? [] : steppedSyncs)]],
    move_minecart: ['move_minecart', p => p < 768 ? undefined : [[{ entityId: 9, steps: [step(1, { x: 0, y: 0, z: 0 }), step(2.5, { x: 1, y: 0, z: 0 })] }, { ID: 9, X: 2.5, Y: 64.5, Z: -3 }],
      [{ entityId: 300, steps: [step(-8, { x: 0, y: 0, z: 0 })] }, { ID: 300, X: -8, Y: 64.5, Z: -3 }]]],
    entity_destroy: ['entity_destroy', p => p === 755 ? undefined : [[], [1], [300, 2, -1]].map(ids => [{ entityIds: ids }, ids])],
    destroy_entity: ['destroy_entity', p => p !== 755 ? undefined : [1, 300].map(id => [{ entityId: id }, [id]])],
    spawn_entity: ['spawn_entity', p => velocities.map((v, i) => [{
      entityId: 300, objectUUID: UUIDS[0], type: 41, ...place(p), pitch: 0, yaw: 64, headPitch: 0, objectData: i, velocity: p >= 773 ? { x: v.x / 100, y: v.y / 100, z: v.z / 100 } : v
    }, { ID: 300, ...Placed, ...(p >= 107 && { UUID: UUIDS[0] }) }])],
    spawn_entity_living: ['spawn_entity_living', p => p >= 759 ? undefined : [[{ entityId: 301, entityUUID: UUIDS[0], type: 100, ...place(p), yaw: 1, pitch: 2, headPitch: 3, velocity: velocities[1], metadata: [] }, { ID: 301, ...Placed, ...(p >= 107 && { UUID: UUIDS[0] }) }]]],
    named_entity_spawn: ['named_entity_spawn', p => p >= 764 ? undefined : [[{ entityId: 302, playerUUID: UUIDS[0], ...place(p), yaw: 1, pitch: 2, currentItem: 0, metadata: [] }, { ID: 302, ...Placed, UUID: UUIDS[0] }]]]
  },
  serverbound: {
    position: ['position', p => [[false, false], [true, p >= 768]].map(([on, wall]) => [{ ...AT, ...ground(p, on, wall) }, { ...At, HasPlace: true, ...(on && { OnGround: true }) }])],
    position_look: ['position_look', p => [[{ ...AT, yaw: 720.25, pitch: 12.5, ...ground(p, true, false) }, { ...At, HasPlace: true, Yaw: 720.25, Pitch: 12.5, HasLook: true, OnGround: true }]]],
    look: ['look', p => [[{ yaw: -33.75, pitch: 0, ...ground(p, false, p >= 768) }, { Yaw: -33.75, HasLook: true }]]],
    flying: ['flying', p => [[ground(p, true, false), { OnGround: true }]]],
    vehicle_move: ['vehicle_move', p => p < 107 ? undefined : [[{ ...AT, yaw: 1.5, pitch: -2.5, onGround: true }, { ...At, Yaw: 1.5, Pitch: -2.5 }]]],
    teleport_confirm: ['teleport_confirm', p => p < 107 ? undefined : [[1, 1.5], [70000, -29999999.75]].map(([id, x]) => [{ teleportId: id, x, y: 70.0625, z: -2.5, yaw: -180.5, pitch: 45 },
      { ID: id, ...(p >= 777 && { X: x, Y: 70.0625, Z: -2.5, Yaw: -180.5, Pitch: 45 }) }])]
  }
}

const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= FIRST && r.version <= LAST && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = [...Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json'))), ...newer.versions]
const versionOf = p => versions.find(v => v.version === p).minecraftVersion
const bodyAfterID = b => b.subarray(b.findIndex(c => c < 128) + 1)

const lines = new Map()
for (const p of protocols) {
  const version = versionOf(BORROW[p] ?? p)
  for (const dir in packets) {
    const serializer = createSerializer({ state: 'play', isServer: dir === 'clientbound', version })
    for (const wire in packets[dir]) {
      const [name, cases] = packets[dir][wire]
      for (const [params, fields] of cases(p) ?? []) {
        const hex = bodyAfterID(serializer.createPacketBuffer({ name: wire, params })).toString('hex')
        const key = JSON.stringify([name, dir, hex, fields])
        if (!lines.has(key)) lines.set(key, { packet: name, dir, protocols: [], hex, fields })
        const at = lines.get(key).protocols
        if (at.at(-1) !== p) at.push(p)
      }
    }
  }
}
const out = [...lines.values()].map(l => JSON.stringify(l).replace(/"Seed":"(\d+)"/, '"Seed":$1') + '\n').join('')
fs.writeFileSync(path.join(__dirname, 'bridge.jsonl'), out)
console.log(`${protocols.length} protocols, ${lines.size} vectors, ${out.length} bytes`)
