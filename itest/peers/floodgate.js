'use strict'
// Floodgate's data, made and read by node's crypto and so by none of Earshot's code. As a module: seal() and open(). As a
// program it prints what Geyser says of a player: node floodgate.js '{"key":"00…","player":{"name":"Steve"}}', or without
// that the vectors of proxy/floodgate/testdata: node floodgate.js > ../../proxy/floodgate/testdata/vectors.json
const crypto = require('crypto')

// fields of a player, in the order of the format
const order = ['version', 'name', 'xuid', 'device', 'language', 'ui', 'input', 'ip', 'linked', 'proxy', 'subscribe', 'verify']
const usual = { version: '1.21.60', name: 'Steve', xuid: '2535428712345678', device: '7', language: 'en_GB', ui: '0', input: '1', ip: '203.0.113.9', linked: 'null', proxy: '0', subscribe: '42', verify: 'code' }

// seal makes the part of the handshake host that is behind the NUL.
function seal (key, player = {}, nonce = crypto.randomBytes(12)) {
  const all = { ...usual, ...player }
  const cipher = crypto.createCipheriv(`aes-${key.length * 8}-gcm`, key, nonce)
  const sealed = Buffer.concat([cipher.update((player.fields ?? order.map(k => all[k])).join('\0')), cipher.final(), cipher.getAuthTag()])
  return `^Floodgate^>${nonce.toString('base64')}!${sealed.toString('base64')}`
}
exports.seal = seal

// open is what the Floodgate plugin on a server makes of it.
exports.open = (key, data) => {
  const [nonce, sealed] = data.slice('^Floodgate^>'.length).split('!').map(s => Buffer.from(s, 'base64'))
  const cipher = crypto.createDecipheriv(`aes-${key.length * 8}-gcm`, key, nonce).setAuthTag(sealed.subarray(-16))
  const fields = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]).toString().split('\0')
  return Object.fromEntries(order.map((k, i) => [k, fields[i]]))
}

if (require.main === module && process.argv[2]) {
  const { key, player } = JSON.parse(process.argv[2])
  console.log(seal(Buffer.from(key, 'hex'), player ?? {}))
} else if (require.main === module) {
  let n = 0
  const nonce = () => Buffer.from(String(++n).padStart(12, '0'))
  const key = size => Buffer.from(Array.from({ length: size }, (_, i) => 7 * i + size & 255))
  const id = `00000000-0000-0000-${BigInt(usual.xuid).toString(16).padStart(16, '0').replace(/^(.{4})/, '$1-')}`
  const v = (name, size, player, want) => ({ name, key: key(size).toString('hex'), data: seal(key(size), player, nonce()), ...want })
  const good = [
    v('AES-128', 16, {}, { tag: 'Steve', id, as: '.Steve', ip: '203.0.113.9' }),
    v('AES-192', 24, {}, { tag: 'Steve', id, as: '.Steve', ip: '203.0.113.9' }),
    v('AES-256', 32, {}, { tag: 'Steve', id, as: '.Steve', ip: '203.0.113.9' }),
    v('spaces', 16, { name: 'Big Steve 12' }, { tag: 'Big Steve 12', id, as: '.Big_Steve_12', ip: '203.0.113.9' }),
    v('long', 16, { name: 'abcdefghijklmnopqrstuvwxyz' }, { tag: 'abcdefghijklmnopqrstuvwxyz', id, as: '.abcdefghijklmno', ip: '203.0.113.9' }),
    v('not ASCII', 16, { name: 'Žluťoučký' }, { tag: 'Žluťoučký', id, as: '._lu_ou_k_', ip: '203.0.113.9' }),
    v('largest', 16, { xuid: '18446744073709551615' }, { tag: 'Steve', id: '00000000-0000-0000-ffff-ffffffffffff', as: '.Steve', ip: '203.0.113.9' }),
    v('IPv6', 16, { ip: '2001:db8::1' }, { tag: 'Steve', id, as: '.Steve', ip: '2001:db8::1' }),
    v('no address', 16, { ip: 'unknown' }, { tag: 'Steve', id, as: '.Steve', ip: '' }),
    v('empty verify code', 16, { verify: '' }, { tag: 'Steve', id, as: '.Steve', ip: '203.0.113.9' }),
    v('linked', 16, { linked: `Notch;069a79f4-44e9-4726-a5be-fca90e38aaf5;${id}` }, { tag: 'Steve', id: '069a79f4-44e9-4726-a5be-fca90e38aaf5', as: 'Notch', ip: '203.0.113.9' })
  ]
  const plain = seal(key(16), {}, nonce())
  const bad = [
    ['another key', seal(key(32), {}, nonce()), 'key'],
    ['changed', plain.slice(0, -5) + (plain.at(-5) === 'A' ? 'B' : 'A') + plain.slice(-4), 'key'],
    ['another nonce', plain.replace('>M', '>N'), 'key'],
    ['version 1', plain.replace('>', '?'), 'version'],
    ['no version', '^Floodgate^', 'version'],
    ['no nonce', '^Floodgate^>', 'format'],
    ['no cipher text', plain.split('!')[0], 'format'],
    ['empty cipher text', plain.split('!')[0] + '!', 'key'],
    ['short nonce', '^Floodgate^>AAAA!' + plain.split('!')[1], 'format'],
    ['not base64', plain + '*', 'format'],
    ['too long', plain + 'A'.repeat(5000), 'format'],
    ['old, with a time', seal(key(16), { fields: [...order.map(k => usual[k]), '1600000000000'] }, nonce()), 'format'],
    ['too few fields', seal(key(16), { fields: ['1', 'Steve', '1'] }, nonce()), 'format'],
    ['no fields', seal(key(16), { fields: [] }, nonce()), 'format'],
    ['XUID 0', seal(key(16), { xuid: '0' }, nonce()), 'format'],
    ['no XUID', seal(key(16), { xuid: '' }, nonce()), 'format'],
    ['XUID is no number', seal(key(16), { xuid: '-1' }, nonce()), 'format'],
    ['XUID too large', seal(key(16), { xuid: '18446744073709551616' }, nonce()), 'format'],
    ['no name', seal(key(16), { name: '' }, nonce()), 'format'],
    ['half a link', seal(key(16), { linked: 'Notch;069a79f4-44e9-4726-a5be-fca90e38aaf5' }, nonce()), 'format'],
    ['link to nobody', seal(key(16), { linked: `;069a79f4-44e9-4726-a5be-fca90e38aaf5;${id}` }, nonce()), 'format'],
    ['link without UUID', seal(key(16), { linked: `Notch;x;${id}` }, nonce()), 'format'],
    ['link with a bad name', seal(key(16), { linked: `No tch;069a79f4-44e9-4726-a5be-fca90e38aaf5;${id}` }, nonce()), 'format']
  ].map(([name, data, why]) => ({ name, key: key(16).toString('hex'), data, why }))
  console.log(JSON.stringify({ good, bad }, null, 1))
}
