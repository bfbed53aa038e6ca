// Writes chat.jsonl: chat, commands, acknowledgements and completion as npm minecraft-protocol serializes them for
// every protocol number from 47 to 777, beside what our decoders must make of them.
//
//   npm ci --prefix itest/peers && node proxy/packet/testdata/chat.js
//
// One line per distinct body: {dir, packet, protocols, hex, fields}; packet is the name in minecraft-data, hex the body
// after the packet id, fields those of the Go value (bytes in base64, tooltips as JSON in a string).
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

const A = '069a79f4-44e9-4726-a5be-fca90e38aaf5'
const B = 'f84c6a79-0a4e-45e0-879b-cd49ebd4c4e2'
const bytes = (n, first) => Buffer.from(Array.from({ length: n }, (_, i) => (first + i) & 0xff))
const b64 = b => b.toString('base64')
const SIGN = bytes(256, 3)
const TIME = 1700000000123n
const SALT = -7n
const T = { Time: Number(TIME), Salt: Number(SALT) }
const line = (...p) => p
const S = (s, text) => ({ type: 'string', value: s, text })

// What a client has seen: serialized, and the Go value.
const seens = p => {
  if (p < 760) return [[{}, {}]]
  if (p === 760) {
    return [
      [{ previousMessages: [], lastRejectedMessage: undefined }, {}],
      [{
        previousMessages: [{ messageSender: A, messageSignature: SIGN }, { messageSender: B, messageSignature: bytes(256, 9) }],
        lastRejectedMessage: { sender: B, signature: bytes(256, 77) }
      }, { Messages: [{ Sender: A, Signature: b64(SIGN) }, { Sender: B, Signature: b64(bytes(256, 9)) }], Last: { Sender: B, Signature: b64(bytes(256, 77)) } }]
    ]
  }
  return [[0, [0, 0, 0], 0], [3, [7, 0, 8], 100], [300, [255, 255, 15], 1]].map(([offset, bits, sum]) => [
    { offset, messageCount: offset, acknowledged: Buffer.from(bits), checksum: sum },
    { Offset: offset, Bits: bits, ...(p >= 770 && { Checksum: sum }) }
  ])
}
const texts = ['Größe € \u{1f600} & <b>', 'x'.repeat(256)]
const commands = ['msg Notch größer €', '']
const signed = p => [
  [p < 761 ? Buffer.alloc(0) : undefined, {}],
  [SIGN, { Signature: b64(SIGN) }]
]
const args = [[], ['a', 'abcdefghijklmnop']]
const fullCommand = p => commands.flatMap(command => args.flatMap(names => seens(p).flatMap(([seen, Seen]) => [false, true].slice(0, p < 761 ? 2 : 1).map(preview =>
  line({ command, timestamp: TIME, salt: SALT, argumentSignatures: names.map(argumentName => ({ argumentName, signature: SIGN })), signedPreview: preview, ...seen },
    { Text: command, ...T, ...(names.length && { Arguments: names.map(Name => ({ Name, Signature: b64(SIGN) })) }), Preview: preview, Seen })))))

const requests = ['/server lob', '/', 'Größe']
const tooltip = p => p >= 765 ? { type: 'string', value: 'tip' } : '{"text":"tip"}'
const packets = {
  toServer: {
    chat: p => p >= 759 ? [] : ['/server lobby', ...texts].map(message => line({ message }, { Text: message })),
    chat_message: p => p < 759 ? [] : texts.flatMap(message => signed(p).flatMap(([signature, Signature]) => seens(p).flatMap(([seen, Seen]) => [false, true].slice(0, p < 761 ? 2 : 1).map(preview =>
      line({ message, timestamp: TIME, salt: SALT, signature, signedPreview: preview, ...seen }, { Text: message, ...T, ...Signature, Preview: preview, Seen }))))),
    chat_command: p => p < 759 ? [] : p >= 766 ? [...commands, 'server lobby', 'y'.repeat(300)].map(command => line({ command }, { Text: command })) : fullCommand(p),
    chat_command_signed: p => p < 766 ? [] : fullCommand(p),
    message_acknowledgement: p => p < 760 ? [] : seens(p).map(([seen, Seen]) => line({ count: seen.offset, ...seen }, p === 760 ? Seen : { Offset: Seen.Offset })),
    tab_complete: p => requests.flatMap(text => p >= 393
      ? [0, 300, -1].map(transactionId => line({ transactionId, text }, { ID: transactionId, Text: text }))
      : [false, true].slice(0, p < 107 ? 1 : 2).flatMap(assumeCommand => [undefined, { x: 5, y: 64, z: -3 }].map(at =>
          line({ text, assumeCommand, block: at, lookedAtBlock: at }, { Text: text, InBlock: assumeCommand, ...(at && { LookedAt: packed(at) }) }))))
  },
  toClient: {
    tab_complete: p => p < 393
      ? [[], ['/server'], ['a', 'Größe', '']].map(matches => line({ matches }, { Matches: matches.map(Text => ({ Text })) }))
      : [[0, 0, 0], [300, 8, 3]].flatMap(([transactionId, start, length]) => [[], [['lobby']], [['lobby', true], ['größe'], ['', true]]].map(matches =>
          line({ transactionId, start, length, matches: matches.map(([match, tip]) => ({ match, tooltip: tip && tooltip(p) })) },
            { ID: transactionId, Start: start, Length: length, Matches: matches.map(([Text, tip]) => ({ Text, Tip: tip ? '{"text":"tip"}' : '' })) })))
  }
}
// A packed block position of protocols up to 404, as a number that JSON can hold without loss.
const packed = ({ x, y, z }) => Number(BigInt.asIntN(64, (BigInt(x & 0x3ffffff) << 38n) | (BigInt(y & 0xfff) << 26n) | BigInt(z & 0x3ffffff)))

const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= FIRST && r.version <= LAST && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = [...Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json'))), ...newer.versions]
const versionOf = p => versions.find(v => v.version === p && !v.minecraftVersion.includes('30c')).minecraftVersion
const bodyAfterID = b => b.subarray(b.findIndex(c => c < 128) + 1)

const lines = new Map()
for (const p of protocols) {
  const version = versionOf(BORROW[p] ?? p)
  for (const dir in packets) {
    const serializer = createSerializer({ state: 'play', isServer: dir === 'toClient', version })
    for (const packet in packets[dir]) {
      for (const [params, fields] of packets[dir][packet](p)) {
        const hex = bodyAfterID(serializer.createPacketBuffer({ name: packet, params })).toString('hex')
        const key = JSON.stringify([dir, packet, hex, fields])
        if (!lines.has(key)) lines.set(key, { dir, packet, protocols: [], hex, fields })
        const at = lines.get(key).protocols
        if (at.at(-1) !== p) at.push(p)
      }
    }
  }
}
const out = [...lines.values()].map(l => JSON.stringify(l) + '\n').join('')
fs.writeFileSync(path.join(__dirname, 'chat.jsonl'), out)
console.log(`${protocols.length} protocols, ${lines.size} vectors, ${out.length} bytes`)
