'use strict'
// A client of the walk protocol, version 1, written from the protocol's own document, and so with none of Earshot's code. As a
// program it plays through what the document promises, in an area of 400 by 250.5 blocks with one obstacle of radius 3 at 210.5,
// 105, where people begin at 200, 125: node walk.js ws://HOST/ws/game. It prints a line of JSON for each thing that it looked at.
// Node's own WebSocket carries the frames.
const url = process.argv[2]
const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
const UP = 1; const DOWN = 2; const LEFT = 4; const RIGHT = 8

const hello = (name, version = 1) => {
  const text = Buffer.from(name)
  return Buffer.concat([Buffer.from([0x01, version, text.length]), text])
}
const input = (sequence, mask) => {
  const b = Buffer.alloc(6)
  b.writeUInt8(0x02, 0)
  b.writeUInt32LE(sequence, 1)
  b.writeUInt8(mask, 5)
  return b
}
const ping = clock => {
  const b = Buffer.alloc(9)
  b.writeUInt8(0x03, 0)
  b.writeBigInt64LE(clock, 1)
  return b
}

class Guest {
  constructor (name) {
    this.got = [] // ids, in order
    this.snapshots = []
    this.entities = new Map()
    this.gone = []
    this.pongs = []
    this.sequence = 0
    this.ws = new WebSocket(url)
    this.ws.binaryType = 'arraybuffer'
    this.open = new Promise((resolve, reject) => {
      this.ws.onopen = () => { if (name !== undefined) this.send(hello(name)); resolve() }
      this.ws.onerror = e => reject(new Error(e.message || 'no connection'))
    })
    this.closed = new Promise(resolve => { this.ws.onclose = e => { clearInterval(this.timer); resolve({ code: e.code, reason: e.reason, at: Date.now() }) } })
    this.ws.onmessage = e => this.take(Buffer.from(e.data))
  }

  send (b) { this.ws.send(b) }

  take (b) {
    const id = b.readUInt8(0)
    this.got.push(id)
    if (id === 0x81) {
      if (b.length !== 15) throw new Error(`a welcome of ${b.length} bytes`)
      this.welcome = { version: b.readUInt8(1), own: b.readUInt32LE(2), rate: b.readUInt8(6), width: b.readFloatLE(7), height: b.readFloatLE(11) }
    } else if (id === 0x82) {
      const s = { tick: b.readUInt32LE(1), n: b.readUInt16LE(5), at: Date.now(), size: b.length, entities: new Map() }
      for (let i = 0, o = 7; i < s.n; i++, o += 21) {
        s.entities.set(b.readUInt32LE(o), { kind: b.readUInt8(o + 4), x: b.readFloatLE(o + 5), y: b.readFloatLE(o + 9), radius: b.readFloatLE(o + 13), colour: b.readUInt32LE(o + 17) })
      }
      for (const known of this.entities.keys()) if (!s.entities.has(known)) this.gone.push(known)
      this.entities = s.entities
      this.snapshots.push(s)
    } else if (id === 0x83) {
      this.pongs.push({ clock: b.readBigInt64LE(1), tick: b.readUInt32LE(9), size: b.length, seen: this.snapshots.at(-1)?.tick })
    } // others are from a newer server, and mean nothing here
  }

  get own () { return this.entities.get(this.welcome?.own) }

  // hold sends input at 30 Hz, whether or not the mask has changed.
  hold (mask) {
    this.mask = mask
    this.send(input(++this.sequence, mask))
    this.timer ??= setInterval(() => this.send(input(++this.sequence, this.mask)), 33)
  }

  // still resolves once the avatar stands.
  async still () {
    for (let was; ;) {
      await wait(300)
      const { x, y } = this.own
      if (was && was.x === x && was.y === y) return { x, y }
      was = { x, y }
    }
  }

  async until (what, ok, within = 20000) {
    for (const end = Date.now() + within; !ok(); await wait(10)) {
      if (Date.now() > end) throw new Error(`${what} does not come`)
    }
  }

  leave () { this.ws.close(); return this.closed }
}

const must = (ok, why) => { if (!ok) throw new Error(typeof why === 'string' ? why : JSON.stringify(why, (_, v) => typeof v === 'bigint' ? `${v}` : v)) }

// ends says what messages a connection ends with.
async function ends (...messages) {
  const g = new Guest()
  await g.open
  for (const m of messages) g.send(m)
  return Promise.race([g.closed, wait(20000).then(() => ({ code: 0, reason: 'not closed' }))])
}

const checks = {
  async 'a welcome comes first, and then snapshots with oneself in them' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.snapshots.length > 3)
    must(g.got[0] === 0x81 && g.got.filter(id => id === 0x81).length === 1, g.got)
    must(g.welcome.version === 1 && g.welcome.rate === 20 && g.welcome.width === 400 && g.welcome.height === 250.5, g.welcome)
    for (const s of g.snapshots) {
      must(s.entities.has(g.welcome.own) && s.size === 7 + 21 * s.n && s.entities.size === s.n, s)
    }
    const me = g.own
    must(me.kind === 1 && me.x === 200 && me.y === 125 && Math.abs(me.radius - 0.3) < 1e-6 && me.colour <= 0xffffff, me)
    must([...g.entities.values()].some(e => e.kind === 2 && e.x === 210.5 && e.y === 105 && e.radius === 3 && e.colour === 0x888888), [...g.entities])
    await g.leave()
  },
  async 'every tick has a snapshot, twenty a second' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.snapshots.length > 0)
    const begin = g.snapshots.at(-1)
    await wait(3000)
    const all = g.snapshots.filter(s => s.tick > begin.tick)
    all.forEach((s, i) => must(s.tick === begin.tick + 1 + i, `tick ${s.tick} is number ${i}`))
    const rate = all.length / ((all.at(-1).at - begin.at) / 1000)
    must(rate > 17 && rate < 23, `${rate} a second`)
    await g.leave()
  },
  async 'input moves the avatar by 4.317 blocks a second and opposite buttons cancel' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.own)
    g.hold(UP | RIGHT)
    await g.until('a step', () => g.own.x > 200)
    const from = { tick: g.snapshots.at(-1).tick, ...g.own }
    await wait(1000)
    const to = { tick: g.snapshots.at(-1).tick, ...g.own }
    const want = (to.tick - from.tick) / 20 * 4.317 / Math.SQRT2
    must(Math.abs(to.x - from.x - want) < 0.01 && Math.abs(from.y - to.y - want) < 0.01, { from, to, want })
    g.hold(UP | DOWN | LEFT | RIGHT)
    const there = await g.still()
    await wait(500)
    must(g.own.x === there.x && g.own.y === there.y, { there, now: g.own })
    await g.leave()
  },
  async 'input that is older than the last one is ignored' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.own)
    for (const [sequence, mask] of [[10, RIGHT], [9, LEFT], [10, RIGHT], [9, LEFT]]) {
      g.send(input(sequence, mask))
      await wait(100)
    }
    g.send(input(11, 0))
    await g.still()
    const xs = g.snapshots.map(s => s.entities.get(g.welcome.own).x)
    must(xs.every((x, i) => i === 0 || x >= xs[i - 1]) && xs.at(-1) > 201, xs)
    await g.leave()
  },
  async 'without input the avatar stands' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.own)
    g.send(input(1, RIGHT))
    const { x } = await g.still()
    must(x > 201.9 && x < 202.7, `stands at ${x}`)
    await g.leave()
  },
  async 'an obstacle is not walked through' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.own)
    g.hold(UP)
    await g.until('the height of the obstacle', () => g.own.y <= 105.2)
    g.hold(RIGHT)
    await wait(3000)
    for (const s of g.snapshots) {
      const me = s.entities.get(g.welcome.own)
      must(Math.hypot(me.x - 210.5, me.y - 105) > 3.299, me)
    }
    await g.leave()
  },
  async 'a ping is answered with its own clock and the tick' () {
    const g = new Guest('Ann')
    await g.until('a snapshot', () => g.snapshots.length > 0)
    const clocks = [-1n, 0n, 1700000000123n, -(2n ** 63n), 2n ** 63n - 1n]
    for (const c of clocks) g.send(ping(c))
    await g.until('the pongs', () => g.pongs.length === clocks.length)
    g.pongs.forEach((p, i) => must(p.clock === clocks[i] && p.size === 13 && Math.abs(p.tick - p.seen) <= 1, p))
    await g.leave()
  },
  async 'who has left is in no snapshot, and nobody has their number' () {
    const a = new Guest('Ann')
    await a.until('a snapshot', () => a.own)
    const numbers = new Set([a.welcome.own])
    for (let i = 0; i < 3; i++) {
      const b = new Guest('Bob')
      await b.until('a snapshot', () => b.own)
      const id = b.welcome.own
      must(!numbers.has(id), `${id} is given twice`)
      numbers.add(id)
      await a.until('Bob', () => a.entities.has(id))
      await b.leave()
      await a.until('the end of Bob', () => a.gone.includes(id))
      must(!a.entities.has(id), 'there again')
    }
    await a.leave()
  },
  async 'ids that mean nothing are ignored' () {
    const g = new Guest()
    await g.open
    g.send(Buffer.from([0x10]))
    g.send(hello('Ann'))
    for (const id of [0x00, 0x04, 0x7f, 0x80, 0x82, 0xff]) g.send(Buffer.from([id, 1, 2]))
    g.send(Buffer.alloc(65536, 0x10))
    g.send(ping(5n))
    await g.until('a pong', () => g.pongs.length === 1)
    await g.leave()
  },
  async 'a message above 64 KiB ends with 1009' () {
    const end = await ends(hello('Ann'), Buffer.alloc(65537, 0x10))
    must(end.code === 1009, end)
  },
  async 'a malformed message ends with 1007' () {
    for (const m of [Buffer.from([0x01]), Buffer.from([0x01, 1]), Buffer.from([0x01, 1, 3, 65]), Buffer.from([0x01, 1, 1, 65, 66]), hello('a'.repeat(33)), Buffer.from([0x01, 1, 1, 0xff])]) {
      const end = await ends(m)
      must(end.code === 1007, { m, end })
    }
    for (const m of [input(1, 0).subarray(0, 5), Buffer.concat([input(1, 0), Buffer.alloc(1)]), ping(1n).subarray(0, 8), Buffer.alloc(0), 'text']) {
      const end = await ends(hello('Ann'), m)
      must(end.code === 1007, { m, end })
    }
  },
  async 'another version ends with 1002' () {
    for (const version of [0, 2, 255]) {
      const end = await ends(hello('Ann', version))
      must(end.code === 1002, end)
    }
  },
  async 'without a hello it ends after five seconds' () {
    const g = new Guest()
    await g.open
    const begin = Date.now()
    g.send(Buffer.from([0x10]))
    const end = await g.closed
    must(end.code === 1002 && g.got.length === 0 && end.at - begin > 4500 && end.at - begin < 9000, { ...end, after: end.at - begin })
  }
}

;(async () => {
  for (const [check, play] of Object.entries(checks)) {
    let why = ''
    try { await play() } catch (e) { why = e.message }
    console.log(JSON.stringify({ check, ok: why === '', why }))
  }
  process.exit(0)
})()
