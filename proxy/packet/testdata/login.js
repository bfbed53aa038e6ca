// Writes login.jsonl: handshake, status, login, configuration and the play packets every session needs, as npm
// minecraft-protocol serializes them for every protocol number from 47 to 777, beside what our decoders must make of
// them.
//
//   npm ci --prefix itest/peers && node proxy/packet/testdata/login.js
//
// One line per distinct body: {state, dir, packet, protocols, hex, fields}; packet is the name in minecraft-data, hex
// the body after the packet id, fields those of the Go value (bytes in base64).
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

const ID = '069a79f4-44e9-4726-a5be-fca90e38aaf5'
const SESSION = 'f84c6a79-0a4e-45e0-879b-cd49ebd4c4e2'
const bytes = (n, first) => Buffer.from(Array.from({ length: n }, (_, i) => (first + i) & 0xff))
const b64 = b => b.toString('base64')
const KEY = bytes(294, 1)
const SIGN = bytes(512, 7)
const key = { timestamp: 1700000000123n, publicKey: KEY, signature: SIGN }
const Key = { Expires: 1700000000123, PublicKey: b64(KEY), Signature: b64(SIGN) }
const properties = [{ name: 'textures', value: 'eyJ0', signature: 'c2ln' }, { name: 'x', value: '', signature: undefined }]
const Properties = [{ name: 'textures', value: 'eyJ0', signature: 'c2ln' }, { name: 'x', value: '' }]
const N = (type, value) => ({ type, value })

// Components: JSON with sorted keys, and the same as network NBT.
const texts = [
  ['{"text":"bye"}', N('string', 'bye')],
  ['{"color":"red","text":"Größe €"}', N('compound', { color: N('string', 'red'), text: N('string', 'Größe €') })],
  ['{"extra":[{"bold":true,"text":"a"},{"text":"b"}],"text":""}', N('compound', {
    extra: N('list', { type: 'compound', value: [{ bold: N('byte', 1), text: N('string', 'a') }, { text: N('string', 'b') }] }), text: N('string', '')
  })],
  ['{"translate":"multiplayer.disconnect.kicked","with":["x","y"]}', N('compound', {
    translate: N('string', 'multiplayer.disconnect.kicked'), with: N('list', { type: 'string', value: ['x', 'y'] })
  })]
]
const component = p => texts.map(([json, nbt]) => p >= 765 ? [nbt, json] : [json, json])
const line = (...p) => p // reads better below

const login = {
  toServer: {
    login_start: p => [
      line({ username: 'Notch', signature: null, playerUUID: p >= 764 ? ID : null }, { Name: 'Notch', ...(p >= 764 && { ID, HasID: true }) }),
      ...(p === 759 || p === 760 ? [line({ username: 'jeb_', signature: key, playerUUID: null }, { Name: 'jeb_', Key })] : []),
      ...(p >= 760 && p < 764 ? [line({ username: 'a', signature: p === 760 ? key : null, playerUUID: ID }, { Name: 'a', ...(p === 760 && { Key }), ID, HasID: true })] : [])
    ],
    encryption_begin: p => [
      line({ sharedSecret: bytes(128, 3), verifyToken: bytes(128, 9), hasVerifyToken: true, crypto: { verifyToken: bytes(128, 9) } }, { Secret: b64(bytes(128, 3)), Token: b64(bytes(128, 9)) }),
      ...(p === 759 || p === 760 ? [line({ sharedSecret: bytes(128, 3), hasVerifyToken: false, crypto: { salt: -5n, messageSignature: SIGN } }, { Secret: b64(bytes(128, 3)), Signed: true, Salt: -5, Signature: b64(SIGN) })] : [])
    ],
    login_plugin_response: p => p < 393 ? [] : [
      line({ messageId: 300, data: null }, { ID: 300, Understood: false }),
      line({ messageId: 0, data: bytes(5, 1) }, { ID: 0, Understood: true, Data: b64(bytes(5, 1)) })
    ],
    cookie_response: p => p < 766 ? [] : [
      line({ key: 'a:b', value: null }, { Key: 'a:b', Found: false }), line({ key: 'minecraft:x', value: bytes(200, 0) }, { Key: 'minecraft:x', Found: true, Value: b64(bytes(200, 0)) })
    ]
  },
  toClient: {
    disconnect: p => texts.map(([json]) => line({ reason: json }, json)),
    encryption_begin: p => [true, false].slice(0, p < 766 ? 1 : 2).map(shouldAuthenticate =>
      line({ serverId: '', publicKey: bytes(162, 0), verifyToken: bytes(4, 250), shouldAuthenticate }, { ServerID: '', PublicKey: b64(bytes(162, 0)), Token: b64(bytes(4, 250)), Authenticate: shouldAuthenticate })),
    success: p => [false, true].slice(0, p === 766 || p === 767 ? 2 : 1).flatMap(strict => [[], properties].slice(0, p < 759 ? 1 : 2).map(list =>
      line({ uuid: ID, username: 'Notch', properties: list, strictErrorHandling: strict, sessionId: SESSION }, { ID, Name: 'Notch', ...(list.length && { Properties }), ...(strict && { Strict: true }), ...(p >= 776 && { Session: SESSION }) }))),
    compress: p => [256, 0, -1].map(threshold => line({ threshold }, threshold)),
    login_plugin_request: p => p < 393 ? [] : [[], [4]].map(data => line({ messageId: 7, channel: 'velocity:player_info', data: Buffer.from(data) }, { ID: 7, Channel: 'velocity:player_info', Data: b64(Buffer.from(data)) })),
    cookie_request: p => p < 766 ? [] : [line({ cookie: 'minecraft:x' }, 'minecraft:x')]
  }
}

const keepAlive = p => (p >= 340 ? [0n, -2n, 1700000000123n] : [0, -2, 70000]).map(id => line({ keepAliveId: id }, Number(id)))
const payload = p => [line({ channel: p < 393 ? 'REGISTER' : 'minecraft:register', data: bytes(9, 60) }, { Channel: p < 393 ? 'REGISTER' : 'minecraft:register', Data: b64(bytes(9, 60)) }),
  line({ channel: 'a:b', data: Buffer.alloc(0) }, { Channel: 'a:b', Data: '' })]
const settings = p => [true, false].map(on => line({
  locale: 'de_DE', viewDistance: on ? 12 : -1, chatFlags: on ? 2 : 0, chatColors: on, skinParts: on ? 127 : 0, mainHand: on ? 1 : 0,
  enableTextFiltering: on, disableTextFiltering: on, enableServerListing: on, particleStatus: on ? 'minimal' : 'all'
}, {
  Locale: 'de_DE', ViewDistance: on ? 12 : -1, ChatMode: on ? 2 : 0, Colors: on, SkinParts: on ? 127 : 0, ...(p >= 107 && { MainHand: on ? 1 : 0 }),
  ...(p >= 755 && { Filtering: on }), Listed: p >= 757 ? on : true, ...(p >= 768 && { Particles: on ? 2 : 0 })
}))

const packets = {
  handshaking: {
    toServer: {
      set_protocol: p => [1, 2, ...(p >= 766 ? [3] : [])].map(n => line({ protocolVersion: p, serverHost: 'Play.Example.org\0FML\0', serverPort: 65535, nextState: n },
        { Protocol: p, Host: 'Play.Example.org\0FML\0', Port: 65535, Intent: n }))
    }
  },
  status: {
    toServer: { ping: () => [line({ time: -3n }, -3)] },
    toClient: { ping: () => [line({ time: 1700000000123n }, 1700000000123)], server_info: () => [line({ response: '{"description":"€"}' }, '{"description":"€"}')] }
  },
  login,
  configuration: {
    toServer: { settings, custom_payload: payload, keep_alive: keepAlive, cookie_response: login.toServer.cookie_response },
    toClient: { custom_payload: payload, keep_alive: keepAlive, disconnect: p => component(p).map(([reason, json]) => line({ reason }, json)), cookie_request: login.toClient.cookie_request }
  },
  play: {
    toServer: { settings, custom_payload: payload, keep_alive: keepAlive },
    toClient: {
      custom_payload: payload,
      keep_alive: keepAlive,
      kick_disconnect: p => component(p).map(([reason, json]) => line({ reason }, json)),
      system_chat: p => p < 759 ? [] : component(p).map(([content, json]) => line({ content, type: 1, isActionBar: false }, json)),
      chat: p => p >= 759 ? [] : component(p).map(([message, json]) => line({ message, position: 1, sender: '00000000-0000-0000-0000-000000000000' }, json)),
      action_bar: p => p < 755 ? [] : component(p).map(([text, json]) => line({ text }, json)),
      title: p => p < 315 || p >= 755 ? [] : component(p).map(([text, json]) => line({ action: 2, text }, json))
    }
  }
}

const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= FIRST && r.version <= LAST && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = [...Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json'))), ...newer.versions]
const versionOf = p => versions.find(v => v.version === p && !v.minecraftVersion.includes('30c')).minecraftVersion
const bodyAfterID = b => b.subarray(b.findIndex(c => c < 128) + 1)

const lines = new Map()
for (const p of protocols) {
  const version = versionOf(BORROW[p] ?? p)
  for (const state in packets) {
    if (state === 'configuration' && p < 764) continue
    for (const dir in packets[state]) {
      const serializer = createSerializer({ state, isServer: dir === 'toClient', version })
      for (const packet in packets[state][dir]) {
        for (const [params, fields] of packets[state][dir][packet](p)) {
          const hex = bodyAfterID(serializer.createPacketBuffer({ name: packet, params })).toString('hex')
          const key = JSON.stringify([state, dir, packet, hex, fields])
          if (!lines.has(key)) lines.set(key, { state, dir, packet, protocols: [], hex, fields })
          const at = lines.get(key).protocols
          if (at.at(-1) !== p) at.push(p)
        }
      }
    }
  }
}
const out = [...lines.values()].map(l => JSON.stringify(l) + '\n').join('')
fs.writeFileSync(path.join(__dirname, 'login.jsonl'), out)
console.log(`${protocols.length} protocols, ${lines.size} vectors, ${out.length} bytes`)
