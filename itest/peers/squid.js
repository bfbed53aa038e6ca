'use strict'
// node squid.js '{"version":"1.20.4"}' — flying-squid, a game server, offline, flat, in memory only.
const { say, commands, options } = require('./lines')
const { version } = options()
// It reads commands from stdin and moves a cursor on stdout, and both are ours: give it a console of its own.
const readline = require('readline')
const { createInterface } = readline
readline.createInterface = () => createInterface({ input: new (require('stream').PassThrough)() })
readline.cursorTo = () => true
// It logs what it does on stdout; complaints about packets are not logging.
const log = line => /Chunk size is|PartialReadError|Parse error/.test(line) ? say({ ev: 'broken', text: line }) : process.stderr.write(line + '\n')
console.log = console.info = console.debug = (...args) => log(args.map(String).join(' '))

const server = require('flying-squid').createMCServer({
  version,
  host: '127.0.0.1',
  port: 0,
  motd: 'squid',
  'max-players': 50,
  'online-mode': false,
  logging: false,
  gameMode: 1,
  difficulty: 1,
  generation: { name: 'superflat', options: {} },
  kickTimeout: 10000,
  plugins: {},
  modpe: false,
  'view-distance': 2,
  'everybody-op': true,
  'max-entities': 100,
  'player-list-text': { header: { text: '' }, footer: { text: '' } }
})
readline.createInterface = createInterface
const player = name => { const p = server.players.find(p => p.username === name); if (!p) throw new Error(`${name} is not here`); return p }
server.on('ready', () => say({ ev: 'listening', port: server._server.socketServer.address().port }))
server.on('newPlayer', p => {
  p.on('spawned', () => say({ ev: 'join', name: p.username, uuid: p.uuid, entity: p.id }))
  p.on('disconnected', () => say({ ev: 'leave', name: p.username }))
})
commands({
  where (q) { const p = player(q.name).position; return { x: p.x, y: p.y, z: p.z } },
  say (q) { server.broadcast(q.text) },
  kick (q) { player(q.name).kick(q.reason ?? 'kicked') }
})
