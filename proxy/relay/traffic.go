package relay

import "sync/atomic"

// Traffic is what one direction carried. Frames are counted once: by the most costly thing that happened to them.
type Traffic struct {
	Passed, Tapped, Held, Recoded atomic.Uint64 // frames: never opened, shown to the observer, decided by the owner, framed anew
	Bytes                         atomic.Uint64 // wire bytes read
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
