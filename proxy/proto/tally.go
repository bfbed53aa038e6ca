package proto

import (
	"cmp"
	"slices"
	"sync"
)

// Tally counts packets by version and name, such as those that could not be decoded. Its zero value is ready for use, by
// any goroutine. Only versions that are known are to be counted, so that strangers cannot make it grow.
type Tally struct {
	mu     sync.Mutex
	counts map[tallied]uint64
}

type tallied struct {
	protocol int32
	packet   Packet
}

// Add counts one more, and returns how many of these there have been.
func (t *Tally) Add(protocol int32, p Packet) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[tallied]uint64{}
	}
	k := tallied{protocol, p}
	t.counts[k]++
	return t.counts[k]
}

// Count is how many of a packet there have been, in all versions.
func (t *Tally) Count(p Packet) (n uint64) {
	t.Each(func(_ int32, q Packet, m uint64) {
		if p == q {
			n += m
		}
	})
	return n
}

// Each calls visit for everything that was counted, by version and packet.
func (t *Tally) Each(visit func(protocol int32, p Packet, n uint64)) {
	type row struct {
		tallied
		n uint64
	}
	t.mu.Lock()
	rows := make([]row, 0, len(t.counts))
	for k, n := range t.counts {
		rows = append(rows, row{k, n})
	}
	t.mu.Unlock()
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.packet, b.packet))
	})
	for _, r := range rows {
		visit(r.protocol, r.packet, r.n)
	}
}
