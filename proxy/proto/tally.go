package proto

import (
	"cmp"
	"slices"
	"sync"
)

// Tally counts packets by version and name, such as those that could not be decoded. Its zero value is ready for use,
// by any goroutine. Count only versions that are known, so that strangers cannot make it grow.
type Tally struct {
	mu     sync.Mutex
	counts map[tallied]uint64
}

type tallied struct {
	protocol int32
	packet   Packet
}

// Add counts one more, and returns the new count of that packet and version.
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

// Count returns the count of a packet in all versions.
func (t *Tally) Count(p Packet) (n uint64) {
	t.Each(func(_ int32, q Packet, m uint64) {
		if p == q {
			n += m
		}
	})
	return n
}

// Each calls visit for everything counted, by version and packet.
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
