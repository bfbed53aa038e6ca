package rooms

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/handshake/budget"
)

// Peer is one transport in a room. Its reader calls Text, Binary, TooLong and Gone, one at a time. None of them waits
// for the room.
type Peer struct {
	hub  *Hub
	conn Conn

	joined      atomic.Bool
	over        atomic.Bool  // nothing more is taken from it
	sent, acked atomic.Int64 // ticks
	rate        budget.Budget
	beyond      int // frames over the rate, while the room stalls

	mu     sync.Mutex // guards these
	queue  []item
	bytes  int
	listed bool // the hub has it on its list

	// The rest belongs to the room's goroutine.
	ended    bool
	deadline time.Duration // to join
	slot     *slot
	binary   BinaryConn // nil: states go as JSON
	roster   uint64     // that it has

	want      View
	lane      *lane
	blocked   bool
	blockedAt time.Duration
	blockedOn int64 // what was acknowledged then
	recovered time.Duration
}

// item is a frame that waits for the room's goroutine, or the end of the frames.
type item struct {
	at    time.Duration
	size  int
	frame *frame.Client
	fault Refusal
	gone  bool
}

// Text takes a text message. The bytes are the caller's again when it returns.
func (p *Peer) Text(b []byte) {
	if p.over.Load() {
		return
	}
	now := time.Now()
	p.expire(p.hub.since(now))
	if !p.allowed(now) {
		p.fault(ErrRate)
		return
	}
	f, err := frame.Parse(b)
	if err != nil {
		p.fault(err.(Refusal))
		return
	}
	p.hub.conf.Stats.In.add(f.Type, 1)
	joined := p.joined.Load()
	if f.HasAck && joined {
		p.acknowledge(f.Ack)
	}
	if f.Type == frame.Ack && joined {
		return
	}
	p.push(item{at: p.hub.since(now), size: len(b), frame: f})
}

// Binary takes a binary message. The protocol has none from clients.
func (p *Peer) Binary([]byte) { p.fault(frame.ErrInvalid) }

// TooLong notes a message that was too long to be read.
func (p *Peer) TooLong() { p.fault(frame.ErrLong) }

// Gone notes that the transport is gone. Nothing may come afterwards.
func (p *Peer) Gone(error) {
	p.over.Store(true)
	p.push(item{gone: true})
}

// Joined reports whether the peer is in the room, or was.
func (p *Peer) Joined() bool { return p.joined.Load() }

// fault sends the peer away, after its earlier frames.
func (p *Peer) fault(why Refusal) {
	if p.over.Swap(true) {
		return
	}
	p.hub.conf.Stats.In.add("invalid", 1)
	p.push(item{fault: why})
}

// allowed takes a frame off the peer's budget. While the room is behind, or has just been, as many may wait as would
// have come in time.
func (p *Peer) allowed(now time.Time) bool {
	in := p.rate.Take(now, 1)
	if !p.hub.stalls(p.hub.since(now)) {
		p.beyond = 0
		return in
	}
	p.mu.Lock()
	waiting := len(p.queue)
	p.mu.Unlock()
	if !in {
		p.beyond++
	}
	return waiting < frame.MaxBurst && p.beyond <= frame.MaxBurst
}

// expires reports whether a frame is of no use after a while: a command is for the moment, a chat message is not.
func (i *item) expires() bool {
	if i.frame == nil {
		return false
	}
	switch i.frame.Type {
	case frame.Join, frame.Chat, frame.Moderate, frame.Leave:
		return false
	}
	return true
}

// expire takes frames out that have waited for too long.
func (p *Peer) expire(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || now-p.queue[0].at <= expiry {
		return
	}
	kept := p.queue[:0]
	for _, i := range p.queue {
		if i.expires() && now-i.at > expiry {
			p.bytes -= i.size
			p.hub.conf.Stats.Dropped.add("expired", 1)
			continue
		}
		kept = append(kept, i)
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}

func (p *Peer) push(i item) {
	p.mu.Lock()
	full := p.bytes+i.size > maxQueued
	if !full {
		p.queue = append(p.queue, i)
		p.bytes += i.size
	}
	list := !p.listed && len(p.queue) > 0
	p.listed = p.listed || list
	p.mu.Unlock()
	if list {
		p.hub.enlist(p)
	}
	if full {
		p.fault(ErrRate)
	}
}

// pull takes the oldest frame out. more is false where it was the last: the peer is off the list then.
func (p *Peer) pull() (i item, ok, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) > 0 {
		i, ok = p.queue[0], true
		p.queue[0] = item{}
		p.queue = p.queue[1:]
		p.bytes -= i.size
	}
	if len(p.queue) == 0 {
		p.queue = nil
		p.listed = false
	}
	return i, ok, p.listed
}

// acknowledge takes the tick of an applied snapshot, and those before it with it.
func (p *Peer) acknowledge(tick int64) {
	for {
		was := p.acked.Load()
		if tick < was || tick > p.sent.Load() {
			p.hub.conf.Stats.Dropped.add("bad_ack", 1)
			return
		}
		if p.acked.CompareAndSwap(was, tick) {
			return
		}
	}
}
