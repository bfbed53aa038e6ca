// Writes captures.jsonl: what real clients (npm minecraft-protocol, and mineflayer on top of it) send to a running
// Earshot, byte for byte as they write it to their sockets. The fuzz targets of everything that can be reached before
// the login start from here.
//
//   npm ci --prefix itest/peers && make build && node proxy/packet/testdata/captures.js bin/earshot [VERSION…]
//
// One line per version: {version, protocol, ping, login, encryption}, all hex. ping is a look at the server list, login
// a way into the built-in world with a first word in its chat, cut after 2 KiB, and encryption what is sent to a server
// that asks for encryption, up to the first encrypted byte. With versions named, the lines of all others stay.
'use strict'
const fs = require('fs')
const net = require('net')
const os = require('os')
const path = require('path')
const { spawn } = require('child_process')
const peers = path.join(__dirname, '../../../itest/peers/node_modules')
const newer = require('../../../itest/peers/newer')
const mc = require(path.join(peers, 'minecraft-protocol'))
const mineflayer = require(path.join(peers, 'mineflayer'))

const MAX = 2048
const versions = [...fs.readFileSync(path.join(__dirname, '../../../itest/peer/versions.go'), 'utf8').split('var Core')[0].matchAll(/\{"([\d.]+)", (\d+)\}/g)]
  .map(m => ({ version: m[1], protocol: Number(m[2]) }))
const wait = ms => new Promise(resolve => setTimeout(resolve, ms))

// recorded connects as options.connect does, and keeps what is sent.
function recorded (port, sent) {
  return client => {
    const socket = net.connect(port, '127.0.0.1')
    const write = socket.write
    socket.write = function (chunk, ...rest) { sent.push(Buffer.from(chunk)); return write.call(this, chunk, ...rest) }
    client.setSocket(socket)
  }
}

async function start (...args) {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'captures'))
  const program = spawn(path.resolve(process.argv[2]), ['run', '--listen', `127.0.0.1:${port}`, '--data', dir, ...args],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, EARSHOT_LIMITS_EXEMPT: '[127.0.0.0/8]', EARSHOT_SESSION_SERVER: 'http://127.0.0.1:9' } })
  await new Promise((resolve, reject) => {
    program.stderr.on('data', b => { if (String(b).includes('players go to')) resolve() })
    program.once('exit', code => reject(new Error(`the program ended with ${code}`)))
  })
  return { port, stop: () => { program.removeAllListeners('exit'); program.kill() } }
}

const hex = sent => Buffer.concat(sent).subarray(0, MAX).toString('hex')
const where = { host: 'play.example.org', port: 25565 } // as the handshake has it

async function ping ({ version }, port) {
  const sent = []
  await mc.ping({ ...where, version, connect: recorded(port, sent) })
  return hex(sent)
}

async function login ({ version }, port) {
  const sent = []
  const bot = mineflayer.createBot({ ...where, version, username: 'Notch', auth: 'offline', viewDistance: 'tiny', connect: recorded(port, sent) })
  if (version === '26.3') newer.play(bot)
  await new Promise((resolve, reject) => { bot.once('spawn', resolve); bot.once('error', reject); bot.once('end', reject) })
  bot.chat('hello')
  await wait(200)
  bot.removeAllListeners('end')
  bot.end()
  return hex(sent)
}

async function encryption ({ version }, port) {
  const sent = []
  const client = mc.createClient({ ...where, version, username: 'Notch', auth: 'offline', connect: recorded(port, sent) })
  await new Promise((resolve, reject) => { client.once('encryption_begin', resolve); client.once('disconnect', p => reject(new Error(p.reason))); client.once('error', reject) })
  const before = sent.length
  for (const end = Date.now() + 10000; sent.length === before && Date.now() < end;) await wait(5)
  client.on('error', () => {})
  client.end()
  return hex(sent.slice(0, before + 1))
}

async function main () {
  const offline = await start('--offline')
  const online = await start()
  const file = path.join(__dirname, 'captures.jsonl')
  const chosen = process.argv.slice(3)
  const old = new Map(fs.readFileSync(file, 'utf8').trim().split('\n').map(l => [JSON.parse(l).version, l + '\n']))
  const lines = []
  for (const v of versions) {
    if (chosen.length && !chosen.includes(v.version)) { lines.push(old.get(v.version)); continue }
    lines.push(JSON.stringify({ ...v, ping: await ping(v, offline.port), login: await login(v, offline.port), encryption: await encryption(v, online.port) }) + '\n')
    console.log(v.version)
  }
  offline.stop()
  online.stop()
  fs.writeFileSync(file, lines.join(''))
  console.log(`${lines.length} versions, ${lines.join('').length} bytes`)
  process.exit(0)
}
main().catch(e => { console.error(e); process.exit(1) })
