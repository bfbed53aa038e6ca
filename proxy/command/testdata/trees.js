// Writes trees.jsonl.gz and parsers.jsonl.
//
//   npm ci --prefix itest/peers && node proxy/command/testdata/trees.js
//
// trees.jsonl.gz has command trees as npm minecraft-protocol serializes them for every protocol number from 393 to 777,
// and how each must look with the commands of table_test.go in it: {kind, protocols, in, out} in hex. The kinds:
// "parsers" has an argument of each parser that the version has, "rivals" literals with the names of ours, "late" its
// root at the end, "wrapped" parsers of a mod in the wrapper of CrossStitch (bare in out), "vanilla" is the game's own
// tree, without out. parsers.jsonl says for each protocol which shape the properties of each parser have, by number or
// by name, read from the protocol definitions of minecraft-data.
'use strict'
const fs = require('fs')
const path = require('path')
const zlib = require('zlib')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const newer = require('../../../itest/peers/newer')
const { createSerializer } = require(path.join(peers, 'minecraft-protocol'))
const minecraftData = require(path.join(peers, 'minecraft-data'))
const root = path.join(peers, 'minecraft-data/minecraft-data/data')
const releases = require(path.join(root, 'pc/common/protocolVersions.json'))
const dataPaths = require(path.join(root, 'dataPaths.json')).pc

const FIRST = 393
const LAST = 777
const BORROW = { 485: 480 } // 1.14.2 has no data of its own
const VANILLA = { 393: '1.13', 498: '1.14.4', 751: '1.16.2', 764: '1.20.2', 765: '1.20.3', 766: '1.20.5', 770: '1.21.5', 771: '1.21.6', 775: '26.1' }

const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= FIRST && r.version <= LAST && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = [...Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json'))), ...newer.versions]
const versionOf = p => versions.find(v => v.version === p && !v.minecraftVersion.includes('30c')).minecraftVersion
const bodyAfterID = b => b.subarray(b.findIndex(c => c < 128) + 1)

// The definition of an argument in a version: its parser ("string" or a mapper) and the switch over its properties.
const nodeOf = protocol => protocol.play.toClient.types.command_node ?? protocol.types.command_node
const argumentOf = protocol => {
  const fields = nodeOf(protocol)[1].find(f => f.name === 'extraNodeData').type[1].fields['2'][1]
  return { parser: fields.find(f => f.name === 'parser').type, properties: fields.find(f => f.name === 'properties').type[1].fields }
}
const shapeOf = type => {
  if (type === undefined || type === 'void') return 'nothing' // those left out of the switch have none
  if (type[0] === 'mapper') return 'varInt'
  if (type[0] === 'bitfield') return 'oneByte'
  const fields = type[1].map(f => f.type)
  if (fields.length === 1) return { bool: 'oneByte', i32: 'fourByte', string: 'ident' }[fields[0]]
  return { f32: 'bounds4', i32: 'bounds4', f64: 'bounds8', i64: 'bounds8' }[fields[1][1].fields['1']]
}

// Properties to try, by shape and parser.
const variants = (name, shape) => ({
  nothing: [undefined],
  varInt: ['SINGLE_WORD', 'QUOTABLE_PHRASE', 'GREEDY_PHRASE'],
  oneByte: name === 'minecraft:entity'
    ? [{ onlyAllowPlayers: 1, onlyAllowEntities: 0 }, { onlyAllowPlayers: 1, onlyAllowEntities: 1 }]
    : name === 'minecraft:range' ? [{ allowDecimals: true }] : [{ allowMultiple: 0 }, { allowMultiple: 1 }],
  fourByte: [{ min: 0 }, { min: -1 }],
  ident: [{ registry: 'minecraft:worldgen/biome' }],
  bounds4: bounds(n => n), bounds8: bounds(n => name === 'brigadier:long' ? BigInt(n) : n)
}[shape])
const bounds = num => [[0, 0], [1, 0], [0, 1], [1, 1]].map(([min, max]) => ({
  flags: { min_present: min, max_present: max }, ...(min && { min: num(-2) }), ...(max && { max: num(128) })
}))

// Nodes are objects: {type, name, executable, redirect, children, parser, properties, suggestions}. number gives them
// the order in which servers write them, the root first or, if asked, last.
const literal = (name, children = [], more = {}) => ({ type: 1, name, children, ...more })
const argument = (name, parser, properties, children = [], more = {}) => ({ type: 2, name, parser, properties, children, ...more })
function number (top, last) {
  const order = []
  const queue = [top]
  while (queue.length) {
    const n = queue.shift()
    if (order.includes(n)) continue
    order.push(n)
    queue.push(...n.children, ...(n.redirect ? [n.redirect] : []))
  }
  if (last) order.push(order.shift())
  return order
}
const packet = (order, top) => ({
  nodes: order.map(n => ({
    flags: {
      unused: 0, allows_restricted: 0, has_custom_suggestions: n.suggestions ? 1 : 0, has_redirect_node: n.redirect ? 1 : 0,
      has_command: n.executable ? 1 : 0, command_node_type: n.type
    },
    children: n.children.map(c => order.indexOf(c)),
    redirectNode: n.redirect && order.indexOf(n.redirect),
    extraNodeData: n.type === 0 ? undefined : { name: n.name, parser: n.parser, properties: n.properties, suggestionType: n.suggestions }
  })),
  rootIndex: order.indexOf(top)
})

// The commands of table_test.go, in its order, as the client has to be told of them.
const ask = { suggestions: 'minecraft:ask_server' }
const run = { executable: true }
const ourNames = ['server', 'send', 'glist', 'online', 'find', 'alert', 'hub', 'lobby', 'earshot']
function ours () {
  const word = (name, children, more) => argument(name, 'brigadier:string', 'SINGLE_WORD', children, more)
  const greedy = (name, more) => argument(name, 'brigadier:string', 'GREEDY_PHRASE', [], { ...run, ...more })
  const server = greedy('server', ask)
  const target = greedy('who', ask)
  const what = word('what', [], { ...run, ...ask })
  const player = word('player', [], { ...run, ...ask })
  const message = greedy('message')
  const reason = greedy('reason')
  const detail = word('detail', [reason], run)
  return [
    literal('server', [server], run), server,
    literal('send', [target]), target,
    literal('glist', [what], run), literal('online', [what], run), what,
    literal('find', [player]), player,
    literal('alert', [message]), message,
    literal('hub', [], run), literal('lobby', [], run),
    literal('earshot', [detail], run), detail, reason
  ]
}
// splice adds them behind all nodes and makes the literals the last children of the root, in place of the same names.
function splice (order, top) {
  const add = ours()
  top.children = top.children.filter(c => c.type !== 1 || !ourNames.includes(c.name)).concat(add.filter(n => n.type === 1))
  return [...order, ...add]
}

const trees = {
  parsers: shapes => {
    const args = shapes.flatMap(([name, shape]) => variants(name, shape).map((properties, i) => [name, properties, i]))
    const msg = literal('msg', [argument('target', 'minecraft:entity', { onlyAllowPlayers: 1, onlyAllowEntities: 0 }, [argument('message', 'minecraft:message', undefined, [], run)])])
    const top = { type: 0, children: [
      ...args.map(([name, properties, i]) => literal(`x${i}`, [argument(`größe ${name}`, name, properties, [literal('end', [], run)], i % 2 ? { ...run, suggestions: 'minecraft:ask_server' } : {})])),
      msg, literal('tell', [], { redirect: msg }), literal('w', [], { redirect: msg, ...run })
    ] }
    return [number(top), top]
  },
  rivals: () => {
    const top = { type: 0, children: [
      literal('help', [], run), literal('server', [argument('world', 'minecraft:dimension', undefined, [], run)]), literal('hub', [], run),
      argument('find', 'brigadier:string', 'SINGLE_WORD', [literal('server', [], run)], run), literal('Server', [], run), literal('online', [], run), literal('a', [literal('glist', [], run)])
    ] }
    top.children.push(literal('lobbies', [], { redirect: top }))
    return [number(top), top]
  },
  late: () => {
    const top = { type: 0, children: [
      literal('hub', [argument('where', 'brigadier:integer', { flags: { min_present: 1, max_present: 1 }, min: 1, max: 1 << 24 }, [], run)]), literal('me', [argument('action', 'minecraft:message', undefined, [], run)])
    ] }
    return [number(top, true), top]
  },
  bare: () => { const top = { type: 0, children: [] }; return [[top], top] }
}
// A tree with a mod's parser, in the wrapper or bare. The mod's numbers follow the game's.
function modTree (wrap, numeric) {
  const mod = (name, raw) => wrap
    ? argument(name, 'crossstitch:mod_argument', { id: numeric ? 300 : 'mod:thing', data: raw }, [literal('on', [], run)], ask)
    : argument(name, 'mod:thing', { data: raw }, [literal('on', [], run)], ask)
  const top = { type: 0, children: [literal('one', [mod('a', Buffer.from([1, 2, 128]))]), literal('server', [mod('b', Buffer.alloc(0))]), mod('c', Buffer.alloc(200, 254))] }
  return [number(top), top]
}

const vanillaNames = { 'minecraft:nbt_compound_tag': 'minecraft:nbt' }
function vanilla (p, types) {
  const data = require(path.join(root, 'pc', VANILLA[p], 'commands.json')).root
  const byPath = new Map()
  const build = (n, at) => {
    const out = { type: { root: 0, literal: 1, argument: 2 }[n.type], name: n.name, executable: n.executable, children: n.children.map(c => build(c, [...at, c.name])), to: n.redirects[0] }
    byPath.set(at.join(' '), out)
    if (n.type !== 'argument') return out
    const name = n.parser.parser
    out.parser = name in types ? name : vanillaNames[name]
    const m = n.parser.modifier ?? {}
    const shape = types[out.parser]
    if (shape === undefined) throw new Error(`${p}: no parser ${name}`)
    const has = k => m[k] !== undefined && m[k] !== null
    const num = name === 'brigadier:long' ? BigInt : Number
    out.properties = {
      nothing: undefined,
      varInt: { word: 'SINGLE_WORD', phrase: 'QUOTABLE_PHRASE', greedy: 'GREEDY_PHRASE' }[m.type],
      oneByte: { onlyAllowPlayers: m.type === 'players' ? 1 : 0, onlyAllowEntities: m.amount === 'single' ? 1 : 0, allowMultiple: m.amount === 'multiple' ? 1 : 0 },
      fourByte: { min: m.min ?? 0 }, ident: { registry: m.registry },
      ...Object.fromEntries(['bounds4', 'bounds8'].map(b => [b, { flags: { min_present: has('min') ? 1 : 0, max_present: has('max') ? 1 : 0 }, ...(has('min') && { min: num(m.min) }), ...(has('max') && { max: num(m.max) }) }]))
    }[shape]
    return out
  }
  const top = build(data, [])
  for (const n of byPath.values()) n.redirect = n.to && byPath.get(n.to)
  return [number(top), top]
}

const lines = new Map()
const parsers = []
for (const p of protocols) {
  const version = versionOf(BORROW[p] ?? p)
  const protocol = minecraftData(version).protocol
  const { parser, properties } = argumentOf(protocol)
  const numeric = parser !== 'string'
  if (!properties['crossstitch:mod_argument']) { // not yet prepared: versions share definitions
    for (const name of numeric ? Object.values(parser[1].mappings) : ['minecraft:nbt_tag']) properties[name] ??= 'void' // left out there
    const before = Object.fromEntries(Object.entries(properties).map(([name, type]) => [name, shapeOf(type)]))
    parsers.push({ protocols: [], shapes: numeric ? Object.values(parser[1].mappings).map(name => before[name]) : before, names: before, numeric })
    if (numeric) Object.assign(parser[1].mappings, { '-256': 'crossstitch:mod_argument', 300: 'mod:thing' })
    properties['crossstitch:mod_argument'] = ['container', [{ name: 'id', type: numeric ? 'varint' : 'string' }, { name: 'data', type: ['buffer', { countType: 'varint' }] }]]
    properties['mod:thing'] = ['container', [{ name: 'data', type: 'restBuffer' }]]
  }
  const now = parsers.at(-1)
  now.protocols.push(p)
  const names = now.numeric ? Object.keys(parser[1].mappings).filter(k => k >= 0 && k < 300).map(k => parser[1].mappings[k]) : Object.keys(now.names)
  const shapes = names.map(n => [n, now.names[n]])
  const serializer = createSerializer({ state: 'play', isServer: true, version })
  const write = (order, top) => bodyAfterID(serializer.createPacketBuffer({ name: 'declare_commands', params: packet(order, top) })).toString('hex')
  const put = (kind, before, after) => {
    const key = kind + before + after
    if (!lines.has(key)) lines.set(key, { kind, protocols: [], in: before, out: after })
    lines.get(key).protocols.push(p)
  }
  for (const kind in trees) {
    const [order, top] = trees[kind](shapes)
    const before = write(order, top)
    put(kind, before, write(splice(order, top), top))
  }
  const [order, top] = modTree(true, now.numeric)
  const [bareOrder, bareTop] = modTree(false)
  put('wrapped', write(order, top), write(splice(bareOrder, bareTop), bareTop))
  if (VANILLA[p]) put('vanilla', write(...vanilla(p, now.names)))
}
const out = [...lines.values()].map(l => JSON.stringify(l) + '\n').join('')
fs.writeFileSync(path.join(__dirname, 'trees.jsonl.gz'), zlib.gzipSync(out, { level: 9 }))
const sets = []
for (const { protocols, shapes } of parsers) {
  const same = sets.find(s => JSON.stringify(s.shapes) === JSON.stringify(shapes))
  same ? same.protocols.push(...protocols) : sets.push({ protocols, shapes })
}
fs.writeFileSync(path.join(__dirname, 'parsers.jsonl'), sets.map(s => JSON.stringify(s)).join('\n') + '\n')
console.log(`${protocols.length} protocols, ${lines.size} trees, ${out.length} bytes, ${sets.length} sets of parsers`)
