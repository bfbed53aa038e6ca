// Writes keys.json: chat keys of 1.19 (v1) and 1.19.1 (v2) signed by services of our own, and a signed token, all made
// the way npm minecraft-protocol's server checks them. Times are in milliseconds; "old" expired in 2001.
//
//   npm ci --prefix itest/peers && node proxy/auth/testdata/keys.js
'use strict'
const crypto = require('crypto')
const fs = require('fs')
const path = require('path')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const { concat } = require(path.join(peers, 'minecraft-protocol/src/transforms/binaryStream'))

const pair = () => crypto.generateKeyPairSync('rsa', { modulusLength: 2048 })
const der = k => k.export({ type: 'spki', format: 'der' })
const services = pair()
const player = pair()
const id = '069a79f4-44e9-4726-a5be-fca90e38aaf5'
const pem = '-----BEGIN RSA PUBLIC KEY-----\n' + der(player.publicKey).toString('base64').match(/.{1,76}/g).join('\n') + '\n-----END RSA PUBLIC KEY-----\n'
const sign = (alg, data, key) => crypto.sign(alg, data, key).toString('base64')
const signed = expires => ({
  expires,
  v1: sign('RSA-SHA1', Buffer.from(expires + pem), services.privateKey),
  v2: sign('RSA-SHA1', concat('UUID', id, 'i64', BigInt(expires), 'buffer', der(player.publicKey)), services.privateKey)
})
const token = Buffer.from([1, 2, 253, 254])
const salt = -1234567890123n
fs.writeFileSync(path.join(__dirname, 'keys.json'), JSON.stringify({
  services: der(services.publicKey).toString('base64'),
  player: der(player.publicKey).toString('base64'),
  id,
  current: signed(4102444800000),
  old: signed(1000000000000),
  nonce: { token: token.toString('base64'), salt: Number(salt), signature: sign('sha256WithRSAEncryption', concat('buffer', token, 'i64', salt), player.privateKey) }
}, null, 1) + '\n')
