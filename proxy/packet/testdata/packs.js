// Writes packs.jsonl: resource packs, the answers to them, their removal, and server data of 47 to 777, as npm
// minecraft-protocol serializes them.
//
//   npm ci --prefix itest/peers && node proxy/packet/testdata/packs.js
//
// One line per distinct packet: {packet, protocols, hex, fields}, hex being the body after the packet id.
'use strict'
const fs = require('fs')
const path = require('path')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const newer = require('../../../itest/peers/newer')
const { createSerializer } = require(path.join(peers, 'minecraft-protocol'))
const nbt = require(path.join(peers, 'prismarine-nbt'))
const root = path.join(peers, 'minecraft-data/minecraft-data/data')
const releases = require(path.join(root, 'pc/common/protocolVersions.json'))
const dataPaths = require(path.join(root, 'dataPaths.json')).pc

const BORROW = { 485: 480 } // 1.14.2 has no data of its own
const protocols = [...new Set(releases.filter(r => r.usesNetty && r.version >= 47 && r.version <= 777 && /^\d+(\.\d+)+$/.test(r.minecraftVersion)).map(r => r.version))].sort((a, b) => a - b)
const versions = [...Object.values(dataPaths).map(d => require(path.join(root, d.version, 'version.json'))), ...newer.versions]
const versionOf = p => versions.find(v => v.version === p && !v.minecraftVersion.includes('30c')).minecraftVersion
const body = b => b.subarray(b.findIndex(c => c < 128) + 1).toString('hex')

const uuid = '01234567-89ab-cdef-8123-456789abcdef'
const hash = 'da39a3ee5e6b4b0d3255bfef95601890afd80709'
const url = 'https://example.org/päck.zip'
const text = (p, s) => p >= 765 ? nbt.string(s) : JSON.stringify({ text: s })
const png = Buffer.from('89504e470d0a1a0a', 'hex')

const lines = new Map()
for (const p of protocols) {
  const version = versionOf(BORROW[p] ?? p)
  const add = (isServer, packet, params, fields) => {
    const s = createSerializer({ state: 'play', isServer, version })
    const hex = body(s.createPacketBuffer({ name: packet, params }))
    const key = JSON.stringify([packet, hex, fields])
    if (!lines.has(key)) lines.set(key, { packet, protocols: [], hex, fields })
    lines.get(key).protocols.push(p)
  }
  const several = p >= 765
  for (const h of [hash, '']) {
    for (const promptMessage of p < 755 ? [undefined] : [undefined, text(p, 'please')]) {
      add(true, several ? 'add_resource_pack' : 'resource_pack_send', { uuid, url, hash: h, forced: true, promptMessage },
        { ID: several ? uuid : undefined, URL: url, Hash: h })
    }
  }
  for (const result of [0, 1, 3, several ? 4 : 2]) {
    add(false, 'resource_pack_receive', { uuid, hash, result }, { ID: several ? uuid : undefined, Hash: p < 210 ? hash : undefined, Status: result })
  }
  if (several) {
    add(true, 'remove_resource_pack', { uuid }, { ID: uuid, All: false })
    add(true, 'remove_resource_pack', { uuid: undefined }, { All: true })
  }
  if (p >= 759) {
    for (const icon of [false, true]) {
      for (const secure of [false, true]) {
        const params = { motd: text(p, 'hello'), previewsChat: !secure, enforcesSecureChat: secure }
        if (icon) { params.icon = 'data:image/png;base64,' + png.toString('base64'); params.iconBytes = png }
        add(true, 'server_data', params, { Icon: icon, Secure: secure })
      }
    }
  }
}
fs.writeFileSync(path.join(__dirname, 'packs.jsonl'), [...lines.values()].map(l => JSON.stringify(l) + '\n').join(''))
console.log(`${protocols.length} protocols, ${lines.size} vectors`)
