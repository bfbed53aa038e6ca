'use strict'
// Writes ../world.bin: for every protocol all packets (id and body) that the built-in world sends to a joining player and
// that do not depend on the player. Run by `go generate ./proxy/limbo` once itest/peers is installed; the same package
// versions give the same file. `node generate.js --check [VERSION…]` compares instead of writing. All takes about 20 s.
//
// The packets come from minecraft-protocol's own serializer. The layout of the file is described in ../data.go.
//
// A real client refuses a registry that lacks an entry, has one it cannot decode or names an unknown tag, so this file
// is careful about those three where minecraft-data has no registries of the very version (see `registriesOf`).
const fs = require('fs')
const path = require('path')
const zlib = require('zlib')
const load = require('module').createRequire(path.join(__dirname, '../../../itest/peers/package.json'))
load('./newer.js')
const minecraftData = load('minecraft-data')
const { createSerializer } = load('minecraft-protocol')
const prismarineRegistry = load('prismarine-registry')
const prismarineChunk = load('prismarine-chunk')
const { Vec3 } = load('vec3')

// Release names with data of their own. Other names of minecraft-data silently mean another protocol.
const versions = ['1.8', '1.9', '1.9.1-pre2', '1.9.2', '1.9.4', '1.10.2', '1.11', '1.11.2', '1.12', '1.12.1', '1.12.2', '1.13', '1.13.1',
  '1.13.2', '1.14', '1.14.1', '1.14.3', '1.14.4', '1.15', '1.15.1', '1.15.2', '1.16', '1.16.1', '1.16.2', '1.16.3', '1.16.5', '1.17', '1.17.1',
  '1.18', '1.18.2', '1.19', '1.19.2', '1.19.3', '1.19.4', '1.20.1', '1.20.2', '1.20.4', '1.20.6', '1.21.1', '1.21.3', '1.21.4', '1.21.5',
  '1.21.6', '1.21.8', '1.21.9', '1.21.11', '26.1', '26.2', '26.3']
// 1.14.2 has none; all of 1.14.x has the layouts and block states of 1.14.1.
const borrowed = { 485: 480 }

const floor = 69 // the stone; players stand on top of it
const spawn = { x: 8, y: floor + 1, z: 8 }
const near = 2 // chunks with floor in each direction from that of the spawn
const far = 3 // a ring of air beyond: a client does not move, so cannot fall, where it has no chunk
const adventure = 2

// ---- NBT in the form minecraft-protocol takes

const nbt = {
  int: value => ({ type: 'int', value }),
  float: value => ({ type: 'float', value }),
  string: value => ({ type: 'string', value }),
  longs: value => ({ type: 'longArray', value }),
  compound: value => ({ type: 'compound', name: '', value })
}

// ---- registries and tags, 766 on

const clone = value => JSON.parse(JSON.stringify(value))
const codec = version => clone(minecraftData(version).loginPacket.dimensionCodec)

// What 26.2 and 26.3 have beyond 26.1. Items of the client name elements of these registries, so it refuses to join without.
const pots = 'angler archer arms_up blade brewer burn danger explorer flow friend guster heart heartbreak howl miner mourner plenty prize scrape sheaf shelter skull snort'.split(' ')
const element = (name, value) => ({ key: 'minecraft:' + name, value })
function since26 (protocol) {
  const out = codec('26.1')
  const entries = name => out['minecraft:' + name].entries
  for (const enchantment of entries('enchantment')) delete enchantment.value.value.effects // predicates changed form
  entries('jukebox_song').push(element('bounce', nbt.compound({
    comparator_output: nbt.int(8), description: nbt.compound({ translate: nbt.string('jukebox_song.minecraft.bounce') }),
    length_in_seconds: nbt.float(234), sound_event: nbt.string('minecraft:music_disc.bounce')
  })))
  entries('worldgen/biome').push(element('sulfur_caves', clone(entries('worldgen/biome').find(e => e.key === 'minecraft:dripstone_caves').value))) // nobody sees it here
  if (protocol < 777) return out
  for (const { key, value } of entries('trim_material')) {
    delete value.value.asset_name
    delete value.value.override_armor_assets
    value.value.palette_id = nbt.string('minecraft:trim/' + key.replace('minecraft:', ''))
  }
  const add = (name, entries) => { out['minecraft:' + name] = { id: 'minecraft:' + name, entries } }
  add('decorated_pot_pattern', pots.map(name => element(name, nbt.compound({ asset_id: nbt.string(name + '_pottery_pattern') }))))
  // An element is the list of what a tool makes of blocks. Nobody here has a tool.
  add('block_transformer', ['axe', 'hoe', 'shovel'].map(name => element(name, { type: 'list', value: { type: 'end', value: [] } })))
  return out
}

// The registries of a version by name. minecraft-data has true ones for 766-768, 774 and 775. What it gives for the
// versions between is that of 768 or, for 773, of 767; a real client of those lacks five kinds of animals there and
// refuses what has changed its form. They are put together here from 768 and 774, leaving out what is optional.
function registriesOf (md) {
  const protocol = md.version.version
  if (protocol >= 776) return since26(protocol)
  if (protocol < 769 || protocol > 773) return codec(md.version.minecraftVersion)
  const out = codec('1.21.3')
  for (const biome of out['minecraft:worldgen/biome'].entries) delete biome.value.value.effects.value.music // a list from 769 on
  for (const enchantment of out['minecraft:enchantment'].entries) delete enchantment.value.value.effects // conditions changed form
  if (protocol >= 770) {
    const later = codec('1.21.11')
    for (const name of ['trim_material', 'wolf_variant', 'wolf_sound_variant', 'pig_variant', 'frog_variant', 'cat_variant', 'cow_variant', 'chicken_variant']) {
      out['minecraft:' + name] = later['minecraft:' + name]
    }
  }
  if (protocol >= 771) {
    const overworld = out['minecraft:dimension_type'].entries.find(e => e.key === 'minecraft:overworld')
    overworld.value.value.cloud_height = nbt.int(192)
  }
  return out
}

// To which registry a tag belongs that is named at a place inside an entry of another registry.
const tagPlaces = [
  [/^minecraft:wolf_variant\.biomes$/, 'minecraft:worldgen/biome'],
  [/^minecraft:dimension_type\.infiniburn$/, 'minecraft:block'],
  [/^minecraft:dimension_type\.timelines$/, 'minecraft:timeline'],
  [/^minecraft:dialog\.dialogs$/, 'minecraft:dialog'],
  [/^minecraft:enchantment\.(supported|primary)_items$/, 'minecraft:item'],
  [/^minecraft:enchantment\.exclusive_set$/, 'minecraft:enchantment'],
  [/^minecraft:enchantment\.effects\..*\.predicate\.items$/, 'minecraft:item'],
  [/^minecraft:enchantment\.effects\..*\.predicate\.type$/, 'minecraft:entity_type'],
  [/^minecraft:enchantment\.effects\..*\.(blocks|immune_blocks)$/, 'minecraft:block']
]

const words = text => text.split(' ')
const known = { // members by pattern or name; those that a version lacks are left out
  'minecraft:block': {
    infiniburn_overworld: words('netherrack magma_block'),
    infiniburn_nether: words('netherrack magma_block'),
    infiniburn_end: words('netherrack magma_block bedrock'),
    soul_speed_blocks: words('soul_sand soul_soil'),
    blocks_wind_charge_explosions: words('barrier bedrock'),
    lightning_rods: /lightning_rod$/
  },
  'minecraft:entity_type': {
    arrows: words('arrow spectral_arrow'),
    sensitive_to_smite: words('skeleton stray wither_skeleton skeleton_horse bogged parched zombie_horse camel_husk zombie zombie_villager husk zombified_piglin zoglin drowned zombie_nautilus wither phantom'),
    sensitive_to_bane_of_arthropods: words('bee endermite silverfish spider cave_spider'),
    sensitive_to_impaling: words('turtle axolotl guardian elder_guardian cod pufferfish salmon tropical_fish dolphin squid glow_squid tadpole nautilus zombie_nautilus')
  },
  'minecraft:worldgen/biome': { is_jungle: /jungle/, is_savanna: /savanna/, is_badlands: /badlands/ },
  'minecraft:timeline': {
    in_overworld: words('villager_schedule day moon early_game'),
    in_nether: words('villager_schedule'),
    in_end: words('villager_schedule')
  },
  'minecraft:dialog': { pause_screen_additions: [], quick_actions: [] }
}

function tagsOf (md, registries) {
  const builtin = {
    'minecraft:block': md.blocksArray.map(b => [b.name, b.id]),
    'minecraft:item': md.itemsArray.map(i => [i.name, i.id]),
    'minecraft:entity_type': md.entitiesArray.map(e => [e.name, e.internalId ?? e.id])
  }
  const entries = name => builtin[name] ?? registries[name].entries.map((e, i) => [e.key.replace('minecraft:', ''), i])

  function members (registry, tag) {
    if (builtin[registry] && md.version.version >= 776) return [] // their numbers are not known here, and a tag must only be there
    if (registry === 'minecraft:item') {
      const category = tag.replace('enchantable/', '')
      const ids = category === 'chest_armor'
        ? md.itemsArray.filter(i => /_chestplate$/.test(i.name)).map(i => i.id)
        : md.itemsArray.filter(i => i.enchantCategories?.includes(category)).map(i => i.id)
      if (!ids.length) throw new Error(`${md.version.minecraftVersion}: no items for ${tag}`)
      return ids
    }
    if (registry === 'minecraft:enchantment') { // every one that is excluded by one that names this set
      const users = registries[registry].entries.filter(e => e.value.value.exclusive_set?.value === '#minecraft:' + tag).map(e => e.key.replace('minecraft:', ''))
      const excluded = new Set(users.flatMap(name => md.enchantmentsByName[name].exclude))
      return entries(registry).filter(([name]) => excluded.has(name)).map(([, id]) => id)
    }
    const rule = known[registry]?.[tag]
    if (!rule) throw new Error(`${md.version.minecraftVersion}: no members known for the tag ${tag} of ${registry}`)
    return entries(registry).filter(([name]) => Array.isArray(rule) ? rule.includes(name) : rule.test(name)).map(([, id]) => id)
  }

  const wanted = new Map()
  function walk (place, node) {
    if (!node) return
    if (node.type === 'compound') for (const key in node.value) walk(place + '.' + key, node.value[key])
    if (node.type === 'list') for (const value of node.value.value) walk(place, { type: node.value.type, value })
    const tag = node.type === 'string' && /^#minecraft:([a-z0-9_/.-]+)$/.exec(node.value)?.[1]
    if (!tag) return
    const registry = tagPlaces.find(([pattern]) => pattern.test(place))?.[1]
    if (!registry) throw new Error(`${md.version.minecraftVersion}: whose tag is ${node.value} at ${place}?`)
    if (!wanted.has(registry)) wanted.set(registry, new Set())
    wanted.get(registry).add(tag)
  }
  for (const name in registries) for (const entry of registries[name].entries) walk(name, entry.value)

  return [...wanted.keys()].sort().map(registry => ({
    tagType: registry,
    tags: [...wanted.get(registry)].sort().map(tag => ({ tagName: 'minecraft:' + tag, entries: members(registry, tag).sort((a, b) => a - b) }))
  }))
}

// ---- chunks

const nibbles = fill => { // 4096 values of 4 bits, y slowest, by height inside the section
  const out = Buffer.alloc(2048)
  for (let y = 0; y < 16; y++) out.fill(fill(y) * 0x11, y * 128, (y + 1) * 128)
  return out
}
const sunAt = y => y > (floor & 15) ? 15 : 0

function plainsOf (md) {
  const protocol = md.version.version
  if (protocol < 751) return 1
  const biomes = md.loginPacket.dimensionCodec.value?.['minecraft:worldgen/biome'].value.value.value.value
  if (biomes) return biomes.find(b => b.name.value === 'minecraft:plains').id.value
  return registriesOf(md)['minecraft:worldgen/biome'].entries.findIndex(e => e.key === 'minecraft:plains')
}

// Heights are counted from the lowest block, 9 bits each: packed without gaps below 735, else 7 to a long.
function heightLongs (protocol, height) {
  const longs = []
  const width = 9n
  if (protocol < 735) {
    let all = 0n
    for (let i = 255; i >= 0; i--) all = all << width | BigInt(height)
    for (let i = 0; i < 36; i++) longs.push(all >> BigInt(64 * i) & 0xffffffffffffffffn)
  } else {
    for (let i = 0; i < 37; i++) {
      let one = 0n
      for (let k = Math.min(7, 256 - 7 * i) - 1; k >= 0; k--) one = one << width | BigInt(height)
      longs.push(one)
    }
  }
  return longs.map(l => [Number(BigInt.asIntN(32, l >> 32n)), Number(BigInt.asIntN(32, l))])
}

// The packets of one chunk column, with floor or only air.
function chunkPackets (md, x, z, solid) {
  const protocol = md.version.version
  const minY = protocol >= 757 ? -64 : 0
  const section = floor >> 4
  const plains = plainsOf(md)
  if (protocol < 107) { // mask 0 would unload the chunk, so air too has a section
    const blocks = Buffer.alloc(8192)
    if (solid) for (let i = 0; i < 256; i++) blocks.writeUInt16LE(md.blocksByName.stone.id << 4, ((floor & 15) * 256 + i) * 2)
    const chunkData = Buffer.concat([blocks, Buffer.alloc(2048), nibbles(solid ? sunAt : () => 15), Buffer.alloc(256, plains)])
    return [['map_chunk', { x, z, groundUp: true, bitMap: 1 << section, chunkData }]]
  }

  const registry = prismarineRegistry(md.version.minecraftVersion)
  const Chunk = prismarineChunk(registry)
  const chunk = new Chunk({ minY, worldHeight: protocol >= 757 ? 384 : 256 })
  const stone = protocol < 393 ? md.blocksByName.stone.id << 4 : md.blocksByName.stone.defaultState
  const at = new Vec3(0, 0, 0)
  for (at.x = 0; at.x < 16; at.x++) {
    for (at.z = 0; at.z < 16; at.z++) {
      at.y = floor
      if (protocol < 573) chunk.setBiome(at, plains)
      if (!solid && protocol >= 757) continue
      chunk.setBlockStateId(at, stone)
      if (!solid) chunk.setBlockStateId(at, 0)
      if (protocol < 477) for (at.y = solid ? floor + 1 : floor & ~15; at.y >> 4 === section; at.y++) chunk.setSkyLight(at, 15)
    }
  }
  if (protocol >= 757) for (const biomes of chunk.biomes) biomes.data.value = plains
  // Some clients take a column without any section for one to be unloaded, so there air has a section too.
  else chunk.sections[section].isEmpty = () => false

  const height = solid ? floor + 1 - minY : 0
  const longs = heightLongs(protocol, height)
  const heightmaps = protocol >= 770
    ? [[1, 'world_surface'], [4, 'motion_blocking']].map(([id, name]) => ({ type: protocol >= 771 ? name : id, data: longs }))
    : nbt.compound({ MOTION_BLOCKING: nbt.longs(longs), WORLD_SURFACE: nbt.longs(longs) })
  const packet = {
    x, z, groundUp: true, ignoreOldData: false, bitMap: chunk.getMask(), heightmaps, blockEntities: [],
    biomes: new Array(1024).fill(plains), chunkData: chunk.dump()
  }
  if (protocol >= 755 && protocol < 757) packet.bitMap = [[0, 1 << section]]
  if (protocol < 477) return [['map_chunk', packet]]

  // As a vanilla server does it: light for the section with blocks and the ones below and above it, nothing elsewhere,
  // which a client takes for the light of the open sky above and for darkness below.
  const first = section - (minY >> 4) // counted from one below the lowest
  const bits = list => list.reduce((mask, i) => mask | 1 << i, 0)
  const mask = list => protocol < 755 ? bits(list) : list.length ? [[0, bits(list)]] : []
  const lit = solid ? [first + 1, first + 2] : protocol < 757 ? [first + 1] : []
  const sun = solid ? [nibbles(sunAt), nibbles(() => 15)] : lit.map(() => nibbles(() => 15))
  const light = {
    trustEdges: true,
    skyLightMask: mask(lit),
    blockLightMask: mask([]),
    emptySkyLightMask: mask(solid ? [first] : []),
    emptyBlockLightMask: mask(solid ? [first, first + 1, first + 2] : []),
    skyLight: sun.map(b => [...b]),
    blockLight: [],
    data: Buffer.concat(sun.flatMap(b => [Buffer.from([0x80, 0x10]), b])) // VarInt 2048 before each
  }
  if (protocol >= 757) return [['map_chunk', { ...packet, ...light }]]
  return [['update_light', { chunkX: x, chunkZ: z, ...light }], ['map_chunk', packet]]
}

// ---- the join sequence

function loginPacket (md) {
  const protocol = md.version.version
  const fixed = { entityId: 0, onlineMode: false, maxPlayers: 20, viewDistance: 8, simulationDistance: 8, reducedDebugInfo: false, enableRespawnScreen: true, isFlat: true, isDebug: false, hashedSeed: [0, 0], enforcesSecureChat: false }
  if (!md.loginPacket) {
    return { ...fixed, gameMode: adventure, dimension: 0, difficulty: 0, levelType: 'flat' }
  }
  const out = { ...clone(md.loginPacket), ...fixed, gameMode: adventure, previousGameMode: protocol >= 755 ? -1 : 255, portalCooldown: 0 }
  if (protocol >= 766) {
    const dimension = registriesOf(md)['minecraft:dimension_type'].entries.findIndex(e => e.key === 'minecraft:overworld')
    out.worldState = { dimension, name: 'minecraft:overworld', hashedSeed: [0, 0], gamemode: 'adventure', previousGamemode: 255, isDebug: false, isFlat: true, portalCooldown: 0, seaLevel: 63 }
  }
  return out
}

function brand (md) {
  const name = Buffer.from('Earshot')
  return ['custom_payload', { channel: md.version.version >= 393 ? 'minecraft:brand' : 'MC|Brand', data: Buffer.concat([Buffer.from([name.length]), name]) }]
}

function configuration (md) {
  const out = [brand(md), ['feature_flags', { features: ['minecraft:vanilla'] }]]
  if (md.version.version < 766) return [...out, ['registry_data', { codec: md.loginPacket.dimensionCodec }]]
  const registries = registriesOf(md)
  for (const name in registries) out.push(['registry_data', registries[name]])
  return [...out, ['tags', { tags: tagsOf(md, registries) }]]
}

function play (md) {
  const protocol = md.version.version
  const out = [['login', loginPacket(md)]]
  if (protocol < 764) out.push(brand(md))
  out.push(['difficulty', { difficulty: 'peaceful', difficultyLocked: true }])
  out.push(['abilities', { flags: 1, flyingSpeed: 0.05, walkingSpeed: 0.1 }]) // 1 = invulnerable
  out.push(['held_item_slot', { slot: 0 }])
  out.push(['spawn_position', { location: spawn, angle: 0, globalPos: { dimensionName: 'minecraft:overworld', location: spawn }, yaw: 0, pitch: 0 }])
  const noon = protocol >= 775 ? { clockUpdates: [{ id: 0, totalTicks: 6000, partialTick: 0, rate: 0 }] } : { time: [0, 6000], tickDayTime: false }
  if (protocol < 768) noon.time = [-1, -6000] // negative = the sun stands still
  out.push(['update_time', { age: [0, 0], ...noon }])
  if (protocol >= 477) out.push(['update_view_position', { chunkX: 0, chunkZ: 0 }])
  if (protocol >= 765) out.push(['game_state_change', { reason: 'level_chunks_load_start', gameMode: 0 }])
  if (protocol >= 764) out.push(['chunk_batch_start', {}])
  let count = 0
  for (let x = -far; x <= far; x++) {
    for (let z = -far; z <= far; z++, count++) out.push(...chunkPackets(md, x, z, Math.max(Math.abs(x), Math.abs(z)) <= near))
  }
  if (protocol >= 764) out.push(['chunk_batch_finished', { batchSize: count }])
  out.push(['update_health', { health: 20, food: 20, foodSaturation: 5 }])
  return out
}

// ---- writing

function varint (n) {
  const out = []
  for (; n > 127; n >>>= 7) out.push(n & 127 | 128)
  return Buffer.from([...out, n])
}

function script (version) {
  const md = minecraftData(version)
  const states = { play: play(md) }
  if (md.version.version >= 764) states.configuration = configuration(md)
  const parts = []
  for (const [number, state] of [[3, 'configuration'], [4, 'play']]) {
    const serializer = createSerializer({ state, isServer: true, version: md.version.minecraftVersion })
    for (const [name, params] of states[state] ?? []) {
      const packet = serializer.createPacketBuffer({ name, params })
      parts.push(Buffer.from([number]), varint(packet.length), packet)
    }
  }
  return [md.version.version, Buffer.concat(parts)]
}

// What is in a file, by protocol.
function read (file) {
  let at = 0
  const num = () => { let n = 0; let s = 0; let b; do { b = file[at++]; n |= (b & 127) << s; s += 7 } while (b & 128); return n }
  const pairs = () => Array.from({ length: num() }, () => [num(), num()])
  const index = pairs()
  const blobs = pairs().map(([packed]) => zlib.inflateRawSync(file.subarray(at, at += packed)))
  return new Map(index.map(([protocol, blob]) => [protocol, blobs[blob]]))
}

const file = path.join(__dirname, '../world.bin')
const check = process.argv[2] === '--check'
const chosen = check && process.argv.length > 3 ? process.argv.slice(3) : versions

const scripts = new Map(chosen.map(version => script(version)))
if (chosen === versions) for (const protocol in borrowed) scripts.set(+protocol, scripts.get(borrowed[protocol]))

if (check) { // by content: deflate output may differ between releases of node
  const have = read(fs.readFileSync(file))
  const wrong = [...scripts.keys()].filter(protocol => !have.get(protocol)?.equals(scripts.get(protocol)))
  if (chosen === versions) wrong.push(...[...have.keys()].filter(protocol => !scripts.has(protocol)))
  if (wrong.length) {
    console.error(`world.bin is not what this generator makes of protocol ${wrong}: run go generate ./proxy/limbo`)
    process.exit(1)
  }
} else {
  const blobs = []
  const index = []
  for (const [protocol, raw] of [...scripts].sort((a, b) => a[0] - b[0])) {
    let blob = blobs.findIndex(b => b.equals(raw))
    if (blob < 0) blob = blobs.push(raw) - 1
    index.push(varint(protocol), varint(blob))
  }
  const packed = blobs.map(raw => zlib.deflateRawSync(raw, { level: 9, memLevel: 9 }))
  fs.writeFileSync(file, Buffer.concat([
    varint(scripts.size), ...index,
    varint(blobs.length), ...blobs.flatMap((raw, i) => [varint(packed[i].length), varint(raw.length)]),
    ...packed
  ]))
  console.log(`${scripts.size} protocols, ${blobs.length} blobs, ${fs.statSync(file).size} bytes`)
}
