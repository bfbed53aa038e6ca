package track

import (
	"log/slog"
	"slices"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// Failures counts, by version and packet, what no Track could decode. One is shared by all sessions.
type Failures struct {
	// Log is warned of the first failure of a packet in a version, which may be other than we think, and told at debug
	// of the 2nd, 4th, 8th …; may be nil.
	Log *slog.Logger

	proto.Tally
}

// Reads lists the packets that a Track looks at.
func Reads() []proto.Packet {
	read := slices.Concat(clientbound, serverbound)
	slices.Sort(read)
	return slices.Compact(read) // some go both ways
}

func (f *Failures) add(p proto.Packet, protocol int32, player string, err error) {
	n := f.Add(protocol, p)
	switch {
	case f.Log == nil || n&(n-1) != 0:
	case n == 1:
		f.Log.Warn("a packet of this version is not understood, and is forwarded all the same; voice goes without what it says",
			"packet", p, "protocol", protocol, "player", player, "error", err)
	default:
		f.Log.Debug("packet not understood, forwarded all the same", "packet", p, "protocol", protocol, "player", player, "count", n, "error", err)
	}
}
