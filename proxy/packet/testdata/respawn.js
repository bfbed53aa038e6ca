// Writes respawn.jsonl: join games of 47 to 763, and what must become of them for a client that is in another world
// already, as npm minecraft-protocol serializes both.
//
//   npm ci --prefix itest/peers && node proxy/packet/testdata/respawn.js
//
// One line per distinct join game: {protocols, join, first, respawn}, all hex of the body after the packet id.
'use strict'
const fs = require('fs')
const path = require('path')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const { createSerializer } = require(path.join(peers, 'minecraft-protocol'))
const root = path.join(peers, 'minecraft-data/minecraft-data/data')
const releases = require(path.join(root, 'pc/common/protocolVersions.json'))
const dataPaths = require(path.join(root, 'dataPaths.json')).pc

const BORROW = { 485: 480 } // 1.14.2 has no data of its own
const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= 47 && r.version <= 763 && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json')))
const versionOf = p => versions.find(v => v.version === p).minecraftVersion
const body = b => b.subarray(b.findIndex(c => c < 128) + 1).toString('hex')

const N = (type, value) => ({ type, value })
const registries = { type: 'compound', name: '', value: { list: N('list', { type: 'compound', value: [{ id: N('int', 1) }] }) } }
const kind = { type: 'compound', name: '', value: { natural: N('byte', 1), height: N('int', 384) } }
const death = { dimensionName: 'minecraft:the_nether', location: { x: 1, y: 64, z: -2 } }
const i8 = v => v > 127 ? v - 256 : v

const cases = [
  { dim: 0, mode: 0, prev: 255, hard: false, world: 'minecraft:overworld', flat: false, debug: false },
  { dim: -1, mode: 1, prev: 0, hard: true, world: 'minecraft:the_nether', flat: true, debug: false, death },
  { dim: 1, mode: 2, prev: 1, hard: false, world: 'minecraft:the_end', flat: false, debug: true },
  { dim: 7, mode: 3, prev: 2, hard: true, world: 'lobby:spawn', flat: true, debug: true, death }
]

const lines = new Map()
for (const p of protocols) {
  const s = createSerializer({ state: 'play', isServer: true, version: versionOf(BORROW[p] ?? p) })
  const write = (name, params) => body(s.createPacketBuffer({ name, params }))
  for (const c of cases) {
    const dimension = p < 735 ? c.dim : p >= 751 && p <= 758 ? kind : 'minecraft:' + (c.flat ? 'overworld' : 'the_end')
    const login = {
      entityId: 70000 + c.mode, isHardcore: c.hard, gameMode: p <= 736 && c.hard ? c.mode | 8 : c.mode, previousGameMode: p >= 755 ? i8(c.prev) : c.prev,
      worldNames: ['minecraft:overworld', c.world], dimensionCodec: registries, dimension, worldType: dimension, worldName: c.world,
      difficulty: 2, maxPlayers: 200, levelType: 'flat', hashedSeed: [0x12345678, -2], viewDistance: 200, simulationDistance: 150,
      reducedDebugInfo: true, enableRespawnScreen: false, isDebug: c.debug, isFlat: c.flat, death: c.death, portalCooldown: 300
    }
    const join = write('login', login)
    const first = p < 735 ? write('login', { ...login, dimension: c.dim === 0 ? -1 : 0 }) : join
    const respawn = write('respawn', {
      dimension, worldName: c.world, difficulty: 2, hashedSeed: login.hashedSeed, gamemode: c.mode, previousGamemode: c.prev, levelType: 'flat',
      isDebug: c.debug, isFlat: c.flat, copyMetadata: false, death: c.death, portalCooldown: 300
    })
    const key = join + first + respawn
    if (!lines.has(key)) lines.set(key, { protocols: [], join, first, respawn })
    lines.get(key).protocols.push(p)
  }
}
fs.writeFileSync(path.join(__dirname, 'respawn.jsonl'), [...lines.values()].map(l => JSON.stringify(l) + '\n').join(''))
console.log(`${protocols.length} protocols, ${lines.size} vectors`)
