'use strict'
// One JSON object a line: events on stdout, commands on stdin. Whatever else a library prints on
// stdout is a complaint about the protocol, and the Go side fails the test for it.

// plain makes packet fields printable: bigints as strings, buffers as base64.
function plain (key, value) {
  if (typeof value === 'bigint') return value.toString()
  if (value && value.type === 'Buffer' && Array.isArray(value.data)) return Buffer.from(value.data).toString('base64')
  return value
}

exports.say = event => { process.stdout.write(JSON.stringify(event, plain) + '\n') }

// commands answers each {"cmd":…,"id":…} with {"ev":"done","id":…,…result}, or with "failed" and a
// text. The process ends with its stdin, so that no peer outlives the test that started it.
exports.commands = handlers => {
  require('readline').createInterface({ input: process.stdin }).on('line', async line => {
    const q = JSON.parse(line)
    try {
      if (!Object.hasOwn(handlers, q.cmd)) throw new Error('no such command')
      exports.say({ ...await handlers[q.cmd](q), ev: 'done', id: q.id })
    } catch (e) {
      exports.say({ ev: 'failed', id: q.id, text: `${q.cmd}: ${e.message}` })
    }
  }).on('close', () => process.exit(0))
}

// failure tells broken packets, which fail a test, from connections that end in passing.
exports.failure = (name, e) => exports.say(
  e.code ? { ev: 'lost', name, text: `${e.code} ${e.message}` } : { ev: 'broken', name, text: e.message })

// strict reports packets whose id the library does not know, about which it says nothing itself.
exports.strict = (client, name) => client.on('packet', (data, meta) => {
  if (typeof meta.name !== 'string') exports.say({ ev: 'broken', name: name(), text: `packet ${meta.name} is unknown in ${meta.state}` })
})

// text of a chat component in any of its forms: JSON, NBT as the library reads it, or plain.
exports.text = function text (c) {
  if (typeof c === 'string') {
    try { c = JSON.parse(c) } catch { return c }
  }
  if (c === null || typeof c !== 'object') return String(c)
  if (Array.isArray(c)) return c.map(text).join('')
  if (c.type && 'value' in c) return text(require('prismarine-nbt').simplify(c))
  return [c.text ?? c.translate ?? c[''] ?? '', ...(c.with ?? []).map(text), ...(c.extra ?? []).map(text)].join('')
}

exports.options = () => JSON.parse(process.argv[2])
