package relay

import "sync/atomic"

// Traffic counts what one direction carried. It counts a frame once: by the most costly thing that happened to it.
type Traffic struct {
	Passed, Tapped, Held, Recoded atomic.Uint64 // frames: never opened, observed, decided by the owner, re-framed
	Bytes                         atomic.Uint64 // wire bytes read
}

// tally is a relay's count of one batch; one goroutine's, added to the shared Traffic once per read.
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
