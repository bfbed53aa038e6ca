package track

import (
	"log/slog"
	"sync/atomic"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// Failures counts, by packet, what no Track could decode. One is shared by all sessions.
type Failures struct {
	Log *slog.Logger // told at debug of the 1st, 2nd, 4th, 8th … failure of each packet; may be nil

	counts [256]atomic.Uint64
}

// Count is how many of these packets could not be decoded so far.
func (f *Failures) Count(p proto.Packet) uint64 { return f.counts[p].Load() }

// Each calls visit for every packet that a Track looks at, with the same order each time and zeros included.
func (f *Failures) Each(visit func(p proto.Packet, n uint64)) {
	for _, p := range clientbound {
		visit(p, f.Count(p))
	}
	for _, p := range serverbound {
		if p != proto.Position && p != proto.VehicleMove { // these two go both ways and are counted as one
			visit(p, f.Count(p))
		}
	}
}

func (f *Failures) add(p proto.Packet, protocol int32, player string, err error) {
	n := f.counts[p].Add(1)
	if f.Log != nil && n&(n-1) == 0 {
		f.Log.Debug("packet not understood, forwarded all the same", "packet", p, "protocol", protocol, "player", player, "count", n, "error", err)
	}
}
