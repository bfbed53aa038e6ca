package rooms

import (
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
	"github.com/earshot-mc/earshot/bridge/step"
	"github.com/earshot-mc/earshot/handshake/budget"
)

// Hub is a room. Its methods may be called from any goroutine.
type Hub struct {
	auth     Authority
	viewer   Viewer
	social   SocialAuthority
	talk     Talk
	audience Audience
	conf     Config
	log      *slog.Logger
	start    time.Time

	wake chan struct{} // one place
	quit chan struct{}
	done chan struct{}
	once sync.Once

	due  atomic.Int64 // when the goroutine should be there at the latest; 0: at no time
	late atomic.Int64 // when it last was not, in time

	mu     sync.Mutex // guards these
	ready  []*Peer    // with waiting frames, each once
	posted []func()
	coming []*Peer // that are new
	closed bool

	// The rest belongs to the room's goroutine.
	all      map[*Peer]struct{}
	pending  []*Peer // that have not joined, by their deadlines
	slots    []*slot // by number
	reserved []*slot // places of peers that may come back, by the end of that
	numbers  int     // of ids so far
	round    []*Peer

	clock  *step.Clock
	each   int64         // steps from snapshot to snapshot
	period time.Duration // between wakes
	next   time.Duration // the next wake; 0: the room stands
	lost   time.Duration // of the clock, that is counted

	locked   bool
	leader   string
	bans     []string
	history  []said
	messages int64 // ids
	secret   int64 // ids of messages that are not for everybody
	pings    int64
	edition  uint64        // of the roster
	told     uint64        // the edition that everybody has
	rosterAt time.Duration // when the next may go

	views   map[View]*lane // shared
	objects map[View]state.Object
	scratch []state.Object
	spare   state.Object
	turn    uint64 // counts snapshots and entries
	noted   map[string]bool
}

// New starts a room. Close it.
func New(a Authority, c Config) *Hub {
	c = c.complete()
	h := &Hub{
		auth: a, conf: c, log: c.Log, start: time.Now(),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		all: map[*Peer]struct{}{}, views: map[View]*lane{}, objects: map[View]state.Object{}, noted: map[string]bool{},
		clock: step.New(c.SimulationHz, clamp), each: int64(c.SimulationHz / c.SnapshotHz), period: time.Second / time.Duration(c.SnapshotHz),
	}
	h.viewer, _ = a.(Viewer)
	h.social, _ = a.(SocialAuthority)
	h.talk, _ = a.(Talk)
	h.audience, _ = a.(Audience)
	if f, ok := a.(Fine); ok && f.FineSteps() {
		h.period = time.Second / time.Duration(c.SimulationHz)
	}
	c.Stats.Rooms.Add(1)
	go h.run()
	return h
}

// Attach takes a transport into the room; it has five seconds to join. The room closes it when it ends.
func (h *Hub) Attach(c Conn) *Peer {
	p := &Peer{hub: h, conn: c, rate: budget.Second(frame.FramesPerSecond)}
	if m, ok := c.(interface{ bind(*Peer) }); ok {
		m.bind(p)
	}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.coming = append(h.coming, p)
	}
	h.mu.Unlock()
	if closed {
		p.over.Store(true)
		c.Close(frame.GoingAway, frame.Closed)
	} else {
		h.poke()
	}
	return p
}

// Close sends everybody away with 1001, and returns when the room has ended. It must not be called by the authority.
func (h *Hub) Close() {
	h.once.Do(func() { close(h.quit) })
	<-h.done
}

// Done returns a channel that is closed when the room has ended, by Close or by a fault of its authority.
func (h *Hub) Done() <-chan struct{} { return h.done }

// Do calls f in the room's goroutine and waits for it. It returns false where the room has ended instead. The authority
// must not call it: it would wait for ever.
func (h *Hub) Do(f func()) bool {
	did := make(chan struct{})
	if !h.post(func() { f(); close(did) }) {
		return false
	}
	select {
	case <-did:
		return true
	case <-h.done:
		select {
		case <-did:
			return true
		default:
			return false
		}
	}
}

// Say tells a message from elsewhere and keeps it like those of peers. It gives the message its ID. PlayerID may be
// empty.
func (h *Hub) Say(m Message) { h.post(func() { h.tell(m.PlayerID, m) }) }

// Remove sends a peer away, with a text, and frees its place. The authority may call it.
func (h *Hub) Remove(id, message string) {
	h.post(func() {
		if s := h.slot(id); s != nil {
			h.remove(s, message)
		}
	})
}

// Ban removes a peer and keeps its identity out. It fails where it cannot.
func (h *Hub) Ban(id string) (why error) {
	if !h.Do(func() { why = h.ban(h.slot(id)) }) {
		return ErrNoRoom
	}
	return why
}

// Lock keeps peers out who have no place, or lets them in again.
func (h *Hub) Lock(locked bool) {
	h.post(func() {
		if h.locked != locked {
			h.locked = locked
			h.changed()
		}
	})
}

// Changed sends the roster once more: who may know whom, or who leads, has changed. The authority may call it.
func (h *Hub) Changed() { h.post(h.changed) }

// Members returns who has a place, the leader, and whether the room is locked.
func (h *Hub) Members() (members []Member, leader string, locked bool) {
	h.Do(func() { members, leader, locked = h.members(), h.leader, h.locked })
	return members, leader, locked
}

// post calls f in the room's goroutine; false: the room has ended.
func (h *Hub) post(f func()) bool {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return false
	}
	h.posted = append(h.posted, f)
	h.mu.Unlock()
	h.poke()
	return true
}

func (h *Hub) enlist(p *Peer) {
	h.mu.Lock()
	if !h.closed {
		h.ready = append(h.ready, p)
	}
	h.mu.Unlock()
	h.poke()
}

func (h *Hub) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// since returns the room's time; it is never 0.
func (h *Hub) since(t time.Time) time.Duration { return t.Sub(h.start) + 1 }

func (h *Hub) now() time.Duration { return h.since(time.Now()) }

// stalls reports whether the room is behind, or was within the last second.
func (h *Hub) stalls(now time.Duration) bool {
	due, late := time.Duration(h.due.Load()), time.Duration(h.late.Load())
	return due != 0 && now-due > clamp || late != 0 && now-late < expiry
}

func (h *Hub) run() {
	defer close(h.done)
	defer h.conf.Stats.Rooms.Add(-1)
	defer h.shut()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at := h.until(); at == 0 {
			timer.Stop()
		} else {
			timer.Reset(at - h.now())
		}
		select {
		case <-h.quit:
			return
		case <-h.wake:
		case <-timer.C:
		}
		if !h.work() {
			return
		}
	}
}

// until returns when there is something to do next; 0: at no time.
func (h *Hub) until() time.Duration {
	at := h.next
	sooner := func(t time.Duration) {
		if at == 0 || t < at {
			at = t
		}
	}
	if len(h.pending) > 0 {
		sooner(h.pending[0].deadline)
	}
	if len(h.reserved) > 0 {
		sooner(h.reserved[0].until)
	}
	if h.told != h.edition {
		sooner(max(h.rosterAt, 1))
	}
	return at
}

// work does what is due; false: the room ends, as its authority has failed.
func (h *Hub) work() (fine bool) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
			return
		case stateError:
			h.log.Error("room closed, as its state cannot be sent; please report this", "error", fault.error)
		default:
			h.log.Error("room closed by a bug of its authority; please report this", "panic", fault, "stack", string(debug.Stack()))
		}
		fine = false
	}()
	h.drain()
	now := h.now()
	for len(h.pending) > 0 && h.pending[0].deadline <= now {
		p := h.pending[0]
		h.control(p, frame.Error, frame.AppendSaid(nil, frame.Error, frame.Timeout))
		h.end(p, frame.Policy, frame.Timeout, "timeout")
	}
	for len(h.reserved) > 0 && h.reserved[0].until <= now {
		h.free(h.reserved[0], "left")
	}
	if h.next != 0 && h.next <= now {
		h.tick(now)
	}
	if now = h.now(); h.told != h.edition && h.rosterAt <= now {
		h.sendRoster(now)
	}
	h.keepTime(h.now())
	return true
}

// keepTime starts and stops the clock, and notes for the readers whether the room is behind.
func (h *Hub) keepTime(now time.Duration) {
	if due := time.Duration(h.due.Load()); due != 0 && now-due > clamp {
		h.late.Store(int64(now))
	}
	switch {
	case len(h.slots) == 0:
		h.next = 0
	case h.next == 0:
		h.clock.Start(h.start.Add(now))
		h.next = now + h.period
	}
	h.due.Store(int64(h.next))
}

// drain handles the waiting frames, one of each peer at a time, and the posted functions. It leaves off when a wake is
// due.
func (h *Hub) drain() {
	for {
		h.mu.Lock()
		posted, coming := h.posted, h.coming
		h.posted, h.coming = nil, nil
		h.round = append(h.round[:0], h.ready...)
		clear(h.ready)
		h.ready = h.ready[:0]
		h.mu.Unlock()
		if len(posted) == 0 && len(coming) == 0 && len(h.round) == 0 {
			return
		}
		for _, p := range coming {
			h.arrive(p)
		}
		for _, f := range posted {
			f()
		}
		for n, p := range h.round {
			h.round[n] = nil
			i, ok, more := p.pull()
			if ok {
				h.handle(p, &i)
			}
			if more {
				h.enlist(p)
			}
		}
		if h.next != 0 && h.next <= h.now() {
			h.poke()
			return
		}
	}
}

// tick simulates the steps that are due, and shows the result.
func (h *Hub) tick(now time.Duration) {
	h.conf.Stats.late(now - h.next)
	if h.next += h.period; h.next <= now {
		h.next += (now - h.next + h.period) / h.period * h.period
	}
	first, n := h.clock.Advance(h.start.Add(now))
	if lost := h.clock.Lost(); lost != h.lost {
		h.conf.Stats.Clamped.Add(int64(lost - h.lost))
		h.lost = lost
	}
	if n == 0 {
		return
	}
	// Show the last of the steps that snapshots are made at.
	last := int64(first) + int64(n) - 1
	shown := last - last%h.each
	rest := n
	if shown >= int64(first) {
		rest = int(last - shown)
		h.auth.Step(first, n-rest)
		h.snapshot(shown)
	}
	if rest > 0 {
		h.auth.Step(uint64(last)-uint64(rest)+1, rest)
	}
}

func (h *Hub) arrive(p *Peer) {
	h.all[p] = struct{}{}
	h.conf.Stats.Peers.Add(1)
	p.deadline = h.now() + joinWithin
	h.pending = append(h.pending, p)
}

// handle handles a frame of a peer.
func (h *Hub) handle(p *Peer, i *item) {
	switch {
	case p.ended:
		return
	case i.gone:
		h.lose(p, "lost")
		return
	case i.fault != "":
		h.refuse(p, i.fault)
		return
	case i.expires() && h.now()-i.at > expiry:
		h.conf.Stats.Dropped.add("expired", 1)
		return
	}
	f := i.frame
	if f.Type != frame.Join && p.slot == nil {
		h.refuse(p, frame.ErrInvalid)
		return
	}
	switch f.Type {
	case frame.Join:
		h.join(p, f)
	case frame.Ack: // it came before the room had let the peer in
	case frame.Chat:
		h.chat(p, f)
	case frame.Ping:
		h.ping(p, f)
	case frame.Moderate:
		h.moderate(p, f)
	case frame.Leave:
		h.leave(p)
	default:
		h.command(p, f)
	}
}

func (h *Hub) command(p *Peer, f *frame.Client) {
	s := p.slot
	if v, ok := f.Fields.Get("seq"); ok && v.Kind() == state.Int && v.Int() > s.seq && v.Int() <= frame.MaxInt {
		s.seq = v.Int()
	}
	if v, ok := f.Fields.Get("epoch"); ok && v.Kind() == state.Int && v.Int() != h.auth.Epoch() {
		h.conf.Stats.Dropped.add("stale_epoch", 1)
		return
	}
	if err := h.auth.Command(s.id, &Command{f.Type, f.Fields}); err != nil {
		h.log.Debug("command refused", "peer", s.id, "type", f.Type, "error", err)
		h.refuse(p, refusal(err))
	}
}

// refusal returns what to tell a peer about an error.
func refusal(err error) Refusal {
	if r, ok := err.(Refusal); ok {
		return r
	}
	return frame.Invalid
}

// control sends a frame on the lane that loses nothing.
func (h *Hub) control(p *Peer, kind string, b []byte) {
	if p.ended {
		return
	}
	h.conf.Stats.Out.add(kind, 1)
	h.conf.Stats.Bytes.add("control json", len(b))
	if p.conn.Control(b) != nil {
		h.end(p, frame.GoingAway, frame.Stalled, "stalled")
	}
}

// refuse ends a transport for a frame that it sent.
func (h *Hub) refuse(p *Peer, why Refusal) {
	h.log.Debug("peer sent away", "identity", p.conn.Identity(), "reason", string(why))
	h.control(p, frame.Error, frame.AppendSaid(nil, frame.Error, string(why)))
	h.end(p, frame.Policy, frame.Invalid, "invalid")
}

// end closes a transport and keeps its place for a while.
func (h *Hub) end(p *Peer, code frame.Code, reason, why string) {
	if !p.ended {
		p.conn.Close(code, reason)
		h.lose(p, why)
	}
}

// lose forgets a transport that has gone.
func (h *Hub) lose(p *Peer, why string) {
	if p.ended {
		return
	}
	p.ended = true
	p.over.Store(true)
	p.mu.Lock()
	p.queue, p.bytes = nil, 0
	p.mu.Unlock()
	h.conf.Stats.Closed.add(why, 1)
	h.conf.Stats.Peers.Add(-1)
	if p.blocked {
		h.conf.Stats.Blocked.Add(-1)
	}
	delete(h.all, p)
	h.pending = without(h.pending, p)
	h.leaveLane(p)
	if s := p.slot; s != nil && s.peer == p {
		s.peer = nil
		s.until = h.now() + h.conf.Grace
		h.reserved = append(h.reserved, s)
		h.changed()
	}
}

// without returns a copy of a list without one of its elements, so that a walk along the list can go on.
func without[T comparable](list []T, x T) []T {
	if !slices.Contains(list, x) {
		return list
	}
	out := make([]T, 0, len(list))
	for _, y := range list {
		if y != x {
			out = append(out, y)
		}
	}
	return out
}

// shut sends everybody away, without a word to the authority, which may have failed.
func (h *Hub) shut() {
	h.mu.Lock()
	h.closed = true
	coming := h.coming
	h.posted, h.coming, h.ready = nil, nil, nil
	h.mu.Unlock()
	for _, p := range coming {
		p.over.Store(true)
		p.conn.Close(frame.GoingAway, frame.Closed)
	}
	for p := range h.all {
		p.ended = true
		p.over.Store(true)
		h.conf.Stats.Closed.add("closed", 1)
		h.conf.Stats.Peers.Add(-1)
		if p.blocked {
			h.conf.Stats.Blocked.Add(-1)
		}
		p.conn.Close(frame.GoingAway, frame.Closed)
	}
}
