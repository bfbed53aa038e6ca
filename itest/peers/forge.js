'use strict'
// Both ends of Forge's handshakes, as mocks: no client with mods can run here, and no server of Forge. server() asks what
// Forge's asks and insists on its client's answers, client() takes only what Forge's takes.

const varint = n => n < 128 ? Buffer.from([n]) : Buffer.concat([Buffer.from([n & 127 | 128]), varint(n >>> 7)])
const string = s => { const b = Buffer.from(s); return Buffer.concat([varint(b.length), b]) }

// ---- 1.13 to 1.20.1: login plugin requests on fml:loginwrapper

const wrap = message => Buffer.concat([string('fml:handshake'), varint(message.length), message])
// What a server asks: its mods, registries as large as those of a mod pack, a config file.
const asks = registries => [
  wrap(Buffer.concat([Buffer.from([1, 1]), string('somemod'), Buffer.from([0, 0])])),
  wrap(Buffer.concat([Buffer.from([3]), string('minecraft:block'), Buffer.from(registries.repeat(50000))])),
  wrap(Buffer.concat([Buffer.from([4]), string('somemod-server.toml'), Buffer.from('a = 1')]))
]
const answer = data => {
  const length = 1 + 'fml:handshake'.length
  const at = data[length] < 128 ? length + 1 : data[length + 1] < 128 ? length + 2 : length + 3
  return data[at] === 1 ? wrap(Buffer.concat([Buffer.from([2, 1]), string('somemod'), Buffer.from([0, 0])])) : wrap(Buffer.from([99]))
}

// ask goes through a login and calls done, or tells what is wrong.
exports.ask = (c, registries, done, wrong) => {
  const open = new Map()
  for (const [messageId, data] of asks(registries).entries()) {
    open.set(messageId, answer(data))
    c.write('login_plugin_request', { messageId, channel: 'fml:loginwrapper', data })
  }
  c.on('login_plugin_response', r => {
    const want = open.get(r.messageId)
    open.delete(r.messageId)
    if (!want || !r.data || !want.equals(r.data)) return wrong('This server has mods that require Forge to be installed on the client.')
    if (open.size === 0) done()
  })
}

// ---- 1.8 to 1.12.2: FML|HS in play

const hs = (c, ...bytes) => c.write('custom_payload', { channel: 'FML|HS', data: Buffer.from(bytes) })
const channels = ['FML|HS', 'FML', 'FML|MP', 'FORGE']
const mods = [2, 1, ...string('somemod'), ...string('1.0')]

// shake goes through the handshake before the join game.
exports.shake = (c, done, wrong) => {
  let step = 0
  const want = [[1, 2], mods, [255, 2], [255, 3], [255, 4], [255, 5]]
  c.removeAllListeners('custom_payload')
  c.on('custom_payload', p => {
    if (p.channel !== 'FML|HS') return
    if (!Buffer.from(want[step] ?? []).equals(p.data)) return wrong(`Forge expects ${want[step]} and not ${[...p.data]}`)
    switch (step++) {
      case 1: hs(c, ...mods); break
      case 2: c.write('custom_payload', { channel: 'FML|HS', data: Buffer.concat([Buffer.from([3, 0]), Buffer.alloc(200000)]) }); break
      case 3: hs(c, 255, 2); break
      case 4: hs(c, 255, 3); break
      case 5: done()
    }
  })
  c.write('custom_payload', { channel: 'REGISTER', data: Buffer.from(channels.join('\0')) })
  hs(c, 0, 2, 0, 0, 0, 0)
}

// client makes a raw client one of Forge; say gets what it comes through.
exports.client = (c, protocol, say) => {
  if (protocol >= 393) {
    c.removeAllListeners('login_plugin_request')
    let asked = 0
    c.on('login_plugin_request', r => {
      asked++
      c.write('login_plugin_response', { messageId: r.messageId, data: r.channel === 'fml:loginwrapper' ? answer(r.data) : undefined })
    })
    c.on('login', () => { say({ ev: 'forge', text: String(asked) }); asked = 0 })
    return
  }
  let stage = 0 // of the message that comes next: hello, mods, registry, acknowledgement, last one, reset
  let resets = 0
  const expect = [0, 2, 3, 255, 255, 254]
  c.on('custom_payload', p => {
    if (p.channel !== 'FML|HS') return
    if (p.data[0] !== expect[stage]) return say({ ev: 'broken', text: `Forge got ${p.data[0]} in stage ${stage}` })
    switch (stage) {
      case 0:
        c.write('custom_payload', { channel: 'REGISTER', data: Buffer.from(channels.join('\0')) })
        hs(c, 1, 2)
        hs(c, ...mods)
        break
      case 5: resets++; stage = 0; return
      default: hs(c, 255, stage + 1)
    }
    stage++
  })
  c.on('login', () => {
    if (stage === 0 && resets === 0) stage = 5 // a server without mods
    say({ ev: 'forge', text: `${stage} ${resets}` })
  })
}
