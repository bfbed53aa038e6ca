// Writes modern.json: the four versions of a signed identity, put together by hand for the players of the test.
//
//   node proxy/backend/testdata/modern.js
'use strict'
const crypto = require('crypto')
const fs = require('fs')
const path = require('path')

const varint = n => n < 128 ? Buffer.from([n]) : Buffer.concat([Buffer.from([n & 127 | 128]), varint(n >> 7)])
const bytes = b => Buffer.concat([varint(b.length), b])
const string = s => bytes(Buffer.from(s, 'utf8'))
const i64 = n => { const b = Buffer.alloc(8); b.writeBigInt64BE(n); return b }

const secret = 'geheim é'
const id = Buffer.from('069a79f444e94726a5befca90e38aaf5', 'hex')
const properties = [varint(2), string('textures'), string('eyJ0'), Buffer.from([1]), string('c2ln'), string('x'), string('<&>'), Buffer.from([0])]
const key = [i64(1700000000123n), bytes(Buffer.from([...Array(300).keys()])), bytes(Buffer.from([...Array(512).keys()].map(i => i * 7)))]
const answers = {}
for (const version of [1, 2, 3, 4]) {
  const data = Buffer.concat([varint(version), string('203.0.113.7'), id, string('Notch'), ...properties,
    ...(version === 2 || version === 3 ? key : []), ...(version === 3 ? [Buffer.from([1]), id] : [])])
  answers[version] = Buffer.concat([crypto.createHmac('sha256', secret).update(data).digest(), data]).toString('hex')
}
fs.writeFileSync(path.join(__dirname, 'modern.json'), JSON.stringify({ secret, answers }, null, 1) + '\n')
