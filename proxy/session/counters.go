package session

import (
	"sync/atomic"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// Counters are what the sessions of a [Core] count, all since the start. Read them at any time.
type Counters struct {
	Connections atomic.Uint64          // accepted
	Logins      atomic.Uint64          // login success sent
	ended       [endings]atomic.Uint64 // connections by ending
	decode      [2][256]atomic.Uint64  // packets that could not be decoded, by direction and packet
	Traffic     [2]Traffic             // by proto.Dir
	Overflows   atomic.Uint64          // messages that a full queue refused
	Forged      [2]atomic.Uint64       // plugin messages on channels of ours that were not forwarded, by proto.Dir
	Dropped     [2]atomic.Uint64       // packets that came in a state in which they could not go on, by proto.Dir
	Switches    Switches
	Lite        Lite
	Dials       atomic.Uint64 // backend connections tried
	DialFails   atomic.Uint64 // of these, refused or failed before the login was complete
	Held        atomic.Int64  // players who are in the built-in world, at the moment, because no server took them
}

// Traffic is what one direction carried. Frames are counted once: by the most costly thing that happened to them.
type Traffic struct {
	Passed, Tapped, Held, Recoded atomic.Uint64 // frames: never opened, shown to the observer, decided by the owner, framed anew
	Bytes                         atomic.Uint64 // wire bytes read
}

// Lite are the connections that are passed on to a server as they are.
type Lite struct {
	Connections, Failed atomic.Uint64    // passed on; refused since no server could be reached
	Open                atomic.Int64     // of the first, those that are open
	Bytes               [2]atomic.Uint64 // by proto.Dir; of a connection that is open it may lag behind
}

// Switches are what became of players' ways to another server.
type Switches struct {
	Done     atomic.Uint64 // from one server to another, by request
	Refused  atomic.Uint64 // the other server did not take the player, who stayed
	Rescued  atomic.Uint64 // a player who had lost its server came to be on another
	Returned atomic.Uint64 // a player whom no server had taken was brought back from the built-in world
}

// Ended is how many connections ended with e.
func (c *Counters) Ended(e Ending) uint64 {
	if e >= endings {
		return 0
	}
	return c.ended[e].Load()
}

// Undecoded is how many packets p of a direction could not be decoded; they were forwarded all the same.
func (c *Counters) Undecoded(d proto.Dir, p proto.Packet) uint64 { return c.decode[d&1][p].Load() }

// EachUndecoded calls visit for every packet that a session reads of its own accord, zeros included, and for any other
// that could not be opened for whoever else wanted to see it. A packet that the observer is shown is for the observer to
// count, but for the opening.
func (c *Counters) EachUndecoded(visit func(p proto.Packet, n uint64)) {
	read := map[proto.Packet]bool{proto.PlayerInfo: true, proto.PlayerRemove: true, proto.BossBar: true}
	for _, n := range needs {
		for _, p := range n.packets {
			read[p] = true
		}
	}
	for i := range c.decode[0] {
		p := proto.Packet(i)
		if n := c.Undecoded(proto.Serverbound, p) + c.Undecoded(proto.Clientbound, p); n > 0 || read[p] {
			visit(p, n)
		}
	}
}

// tally is what a relay counted in one batch; one goroutine's, added to the shared Traffic once per read.
type tally struct{ passed, tapped, held, recoded, bytes uint64 }

func (t *tally) addTo(c *Traffic) {
	for _, x := range [...]struct {
		n *uint64
		c *atomic.Uint64
	}{{&t.passed, &c.Passed}, {&t.tapped, &c.Tapped}, {&t.held, &c.Held}, {&t.recoded, &c.Recoded}, {&t.bytes, &c.Bytes}} {
		if *x.n != 0 {
			x.c.Add(*x.n)
			*x.n = 0
		}
	}
}
