'use strict'
// A client of the Rooms protocol, written from the protocol's own document, and so with none of Earshot's code. As a
// program it plays through what the document promises, against a relay room: node rooms.js ws://HOST/play/ROOM [token].
// It prints a line of JSON for each thing that it looked at. Node's own WebSocket carries the frames.
const url = process.argv[2]
const began = Date.now()
const wait = ms => new Promise(resolve => setTimeout(resolve, ms))
const clone = v => JSON.parse(JSON.stringify(v))

// apply makes the state that a delta describes of a baseline.
function apply (base, delta) {
  const out = clone(base)
  for (const path of delta.remove ?? []) {
    let at = out
    for (const key of path.slice(0, -1)) at = at?.[key]
    if (at) delete at[path[path.length - 1]]
  }
  const merge = (to, from) => {
    for (const [k, v] of Object.entries(from)) {
      const deep = v !== null && typeof v === 'object' && !Array.isArray(v)
      if (deep && to[k] !== null && typeof to[k] === 'object' && !Array.isArray(to[k])) merge(to[k], v)
      else to[k] = v
    }
  }
  merge(out, delta.set)
  return out
}

const frameFields = ['type', 'epoch', 'tick', 'initial', 'base', 'delta']
const stateOf = f => Object.fromEntries(Object.entries(f).filter(([k]) => !frameFields.includes(k)))

class Peer {
  constructor (options = {}) {
    this.frames = []
    this.acks = options.acks ?? true
    this.shown = null
    this.ws = new WebSocket(url)
    this.open = new Promise((resolve, reject) => { this.ws.onopen = resolve; this.ws.onerror = e => reject(new Error(e.message || 'no connection')) })
    this.closed = new Promise(resolve => { this.ws.onclose = e => { this.end = { code: e.code, reason: e.reason, after: Date.now() }; resolve(this.end) } })
    this.ws.onmessage = e => this.take(JSON.parse(e.data))
  }

  take (f) {
    this.frames.push({ at: Date.now(), ...f })
    if (f.type === 'welcome') { this.id = f.id; this.token = f.resume }
    if (f.type === 'baseline') this.base = { epoch: f.epoch, tick: f.tick, state: stateOf(f) }
    let state
    if (f.type === 'snapshot') state = stateOf(f)
    if (f.type === 'state' && f.base === this.base.tick && f.epoch === this.base.epoch) state = apply(this.base.state, f.delta)
    if (!state) return
    this.shown = { tick: f.tick, state }
    if (this.acks) this.send({ type: 'ack', ack: f.tick })
  }

  send (f) { if (this.ws.readyState === 1) this.ws.send(typeof f === 'string' ? f : JSON.stringify(f)); return this }

  of (type) { return this.frames.filter(f => f.type === type) }

  last (type) { return this.of(type).pop() }

  async until (what, condition, within = 8000) {
    for (const end = Date.now() + within; Date.now() < end; await wait(10)) {
      const v = condition()
      if (v) return v
    }
    throw new Error(`not in time: ${what}; there came ${this.frames.slice(-8).map(f => f.type)}${this.end ? ', ' + JSON.stringify(this.end) : ''}`)
  }

  async join (name, more = {}) {
    await this.open
    this.send({ type: 'join', protocol: 1, name, ...more })
    await this.until(name + ' is in', () => this.last('social'))
    return this
  }

  async refused (message, within) {
    await this.until('an error', () => this.last('error'), within)
    const end = await this.closed
    if (end.code !== 1008 || end.reason !== 'Invalid request') throw new Error(`closed with ${end.code} ${end.reason}`)
    if (message && !this.last('error').message.includes(message)) throw new Error(this.last('error').message)
  }

  // toldOff sends a frame that is answered by a notice.
  async toldOff (f) {
    const n = this.of('socialNotice').length
    this.send(f)
    await this.until('a notice', () => this.of('socialNotice').length > n)
    if (this.end) throw new Error('sent away for it')
  }

  quit () { this.ws.close() }
}

const fresh = (first, more) => new Peer().join(first, more)
const must = (ok, why) => { if (!ok) throw new Error(typeof why === 'string' ? why : JSON.stringify(why)) }

const checks = {
  async 'spec' () {
    const r = await fetch(url.replace(/^ws/, 'http').replace(/\/play\/.*/, '/spec/rooms-protocol.json'))
    const s = await r.json()
    must(s.protocol === 1 && s.simulationHz === 120 && s.snapshotHz === 20 && s.limits.frameChars === 4096 && s.limits.framesPerSecond === 120, s)
    const codes = s.closeCodes.map(c => `${c.code} ${c.reason}`)
    for (const c of ['1000 Reconnected elsewhere', '1001 Host closed the room', '1001 State receiver stalled', '1008 Join timeout', '1008 Invalid request', '1008 Removed by host']) must(codes.includes(c), codes)
  },
  async 'protocol has to match' () {
    for (const protocol of [2, '1', undefined]) {
      const p = new Peer()
      await p.open
      p.send({ type: 'join', protocol, name: 'Ann' })
      await p.refused('')
    }
  },
  async 'order of the handshake' () {
    const p = await fresh('Ann')
    const kinds = p.frames.slice(0, 4).map(f => f.type)
    must(kinds.join() === 'welcome,baseline,snapshot,social', kinds)
    const [w, b, s, social] = p.frames
    must(w.protocol === 1 && /^p\d+$/.test(w.id) && w.resume.length > 20 && w.capacity > 0, w)
    must(s.initial === true && s.tick === b.tick && s.epoch === b.epoch, s)
    must(Array.isArray(social.history) && social.members.some(m => m.id === w.id && m.name === 'Ann' && m.connected === true && m.canBan === false) && social.locked === false, social)
    p.send({ type: 'leave' })
    await p.until('left', () => p.last('left'))
    await p.closed
  },
  async 'what is published is seen' () {
    const a = await fresh('Ann'); const b = await fresh('Bob')
    a.send({ type: 'publish', state: { n: 5, on: true, name: 'x', at: { x: 1.5 }, gone: 1 } })
    await b.until('it', () => b.shown.state.peers[a.id]?.n === 5)
    await b.until('a newer baseline', () => b.base.state.peers[a.id]?.n === 5)
    a.send({ type: 'publish', state: { n: 0, on: false, name: null, at: {} } })
    const s = await b.until('resets', () => b.shown.state.peers[a.id]?.n === 0 && b.shown.state.peers[a.id])
    must(JSON.stringify(Object.entries(s).sort()) === JSON.stringify([['at', {}], ['n', 0], ['name', null], ['on', false]]), s)
    a.quit(); b.quit()
  },
  async 'a baseline each second and a snapshot with it' () {
    const p = await fresh('Ann')
    const from = p.frames.length
    await wait(5200)
    const since = p.frames.slice(from)
    const n = since.filter(f => f.type === 'baseline').length
    must(n >= 4 && n <= 6, `${n} baselines in 5 s`)
    since.forEach((f, i) => { if (f.type === 'baseline' && since[i + 1]) must(since[i + 1].type === 'snapshot' && since[i + 1].tick === f.tick, since[i + 1]) })
    must(since.filter(f => f.type === 'state').every(f => Number.isInteger(f.base) && f.tick > f.base && f.delta.set), 'a state without set')
    p.quit()
  },
  async 'chat' () {
    const a = await fresh('Ann'); const b = await fresh('Bob')
    await a.toldOff({ type: 'chat', text: 'a'.repeat(281) })
    for (const bad of ['', 'a\nb', 'a\u202eb', 'a\u0007b']) await a.toldOff({ type: 'chat', text: bad })
    for (const text of ['a'.repeat(280), 'two', 'three', 'four']) a.send({ type: 'chat', text })
    const m = await b.until('four', () => b.of('chat').map(f => f.message).find(m => m.text === 'four'))
    must(m.playerId === a.id && m.playerName === 'Ann' && m.system === false && Number.isInteger(m.id), m)
    await a.toldOff({ type: 'chat', text: 'five' })
    must(b.of('chat').some(f => f.message.system && f.message.playerId === b.id && f.message.text.includes('joined')), 'no system message')
    const late = await fresh('Cid')
    must(late.last('social').history.some(m => m.text === 'four'), 'not in the history')
    a.quit(); b.quit(); late.quit()
  },
  async 'resume' () {
    const a = await fresh('Ann'); const b = await fresh('Bob')
    a.quit(); await a.closed
    await b.until('Ann is away', () => b.last('social').members.some(m => m.id === a.id && !m.connected))
    const again = new Peer(); await again.open
    again.send({ type: 'join', protocol: 1, resume: a.token })
    await again.until('back', () => again.last('social'))
    must(again.id === a.id && again.token !== a.token && again.last('social').history, again.frames[0])
    const twice = new Peer(); await twice.open
    twice.send({ type: 'join', protocol: 1, resume: a.token })
    await twice.refused('')
    must(!again.end, 'the first was sent away')
    const none = new Peer(); await none.open
    none.send({ type: 'join', protocol: 1, name: 'Ann', resume: '' })
    await none.refused('')
    const elsewhere = new Peer(); await elsewhere.open
    elsewhere.send({ type: 'join', protocol: 1, resume: again.token })
    const end = await again.closed
    must(end.code === 1000 && end.reason === 'Reconnected elsewhere', end)
    await elsewhere.until('in', () => elsewhere.last('social'))
    must(elsewhere.id === a.id, elsewhere.id)
    elsewhere.quit(); b.quit()
  },
  async 'moderation' () {
    const a = await fresh('Ann'); const b = await fresh('Bob')
    const leads = () => a.last('social').leaderId
    await a.until('the lead', () => leads() === a.id) // the peers before have gone
    await b.toldOff({ type: 'moderate', action: 'kick', playerId: a.id })
    await a.toldOff({ type: 'moderate', action: 'ban', playerId: b.id }) // nobody has verified who that is
    a.send({ type: 'moderate', action: 'lock', locked: true })
    await b.until('the lock', () => b.last('social').locked)
    const out = new Peer(); await out.open
    out.send({ type: 'join', protocol: 1, name: 'Cid' })
    await out.refused('locked')
    b.quit(); await b.closed
    const again = new Peer(); await again.open
    again.send({ type: 'join', protocol: 1, resume: b.token })
    await again.until('back in spite of the lock', () => again.last('social'))
    a.send({ type: 'moderate', action: 'kick', playerId: b.id })
    const end = await again.closed
    must(end.code === 1008 && end.reason === 'Removed by host' && again.last('removed').message, end)
    await a.until('gone from the roster', () => !a.last('social').members.some(m => m.id === b.id), 1000)
    a.send({ type: 'moderate', action: 'lock', locked: false })
    await a.until('unlocked', () => !a.last('social').locked)
    a.quit()
  },
  async 'limits' () {
    const long = n => { const s = JSON.stringify({ type: 'chat', text: '' }); return s.replace('""', '"' + '€'.repeat(n - s.length) + '"') }
    const a = await fresh('Ann')
    await a.toldOff(long(4096))
    a.send(long(4097))
    await a.refused('')
    const b = await fresh('Bob')
    for (let i = 0; i < 300; i++) b.send({ type: 'ack', ack: b.base.tick })
    await b.refused('')
    const c = await fresh('Cid')
    c.send({ type: 'nothing that a relay knows' })
    await c.refused('')
    const d = await fresh('Dan')
    d.send('not JSON')
    await d.refused('')
    const e = await fresh('Eve')
    e.ws.send(new Uint8Array([1, 2, 3]))
    await e.refused('')
    const f = await fresh('Fay')
    f.send({ type: 'ack', ack: f.base.tick + 1e6 }).send({ type: 'ack', ack: -5 })
    await f.toldOff({ type: 'ping', kind: 'here' })
    f.quit()
  },
  async 'five seconds to join' () {
    const p = new Peer(); await p.open
    const from = Date.now()
    const end = await p.closed
    must(end.code === 1008 && end.reason === 'Join timeout' && end.after - from > 4500 && end.after - from < 8000, { ...end, took: end.after - from })
  },
  async 'silence is not kept' () {
    const p = new Peer({ acks: false })
    await p.join('Ann')
    const from = Date.now()
    const end = await p.closed
    must(end.code === 1001 && end.reason === 'State receiver stalled', end)
    must(end.after - from > 7500 && end.after - from < 12000, `after ${end.after - from} ms`)
    must(p.of('snapshot').filter(f => f.initial).length >= 4, 'no recovery')
  },
  async 'acks on any frame keep a peer' () {
    const p = new Peer({ acks: false })
    await p.join('Ann')
    for (let i = 0; i < 10; i++) { await wait(1000); p.send({ type: 'publish', state: { i }, ack: p.shown.tick }) }
    must(!p.end && p.shown.state.peers[p.id].i >= 8, p.end ?? p.shown)
    p.quit()
  }
}

// Those that are about a whole room go one after the other; the rooms are free again when all places are.
async function main () {
  for (const [name, check] of Object.entries(checks)) {
    if (process.argv[3] && !name.includes(process.argv[3])) continue
    let why = ''
    try { await check() } catch (e) { why = e.message }
    console.log(JSON.stringify({ check: name, ok: !why, why, ms: Date.now() - began }))
  }
  process.exit(0)
}
main()
