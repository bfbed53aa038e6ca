package session

import (
	"slices"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of the words of a client that are kept.
const (
	maxQueued        = 1024    // messages waiting for a backend
	maxQueuedBytes   = 4 << 20 // their bytes
	maxChannelBytes  = 32767   // their names with a separator each, so that they fit one message
	maxInformation   = 1 << 10 // client information; a vanilla one has some 30 bytes
	maxBrand         = 1 << 10
	maxClientMessage = 32767 // vanilla bound of a serverbound plugin message
)

// facts are words of the client that every backend has to hear. It says them once, perhaps before there is a backend.
type facts struct {
	information []byte   // body of the last client information; same layout in configuration and play
	brand       []byte   // body of the brand message
	channels    []string // registered by the client (never by a backend), in order
	known       map[string]bool
	nameBytes   int

	queue  []waiting // for the next backend, in order
	queued int       // bytes in queue
	heard  bool      // some backend has got the queue up to now
}

// waiting is one packet for the next backend.
type waiting struct {
	packet proto.Packet
	body   []byte
	stated bool // it is also kept as one of the facts above
}

// wait queues a packet and reports whether there was room.
func (f *facts) wait(p proto.Packet, body []byte, stated bool) bool {
	if len(f.queue) >= maxQueued || f.queued+len(body) > maxQueuedBytes {
		return false
	}
	f.queue = append(f.queue, waiting{p, append([]byte(nil), body...), stated})
	f.queued += len(body)
	return true
}

// register remembers new names, as long as there is room.
func (f *facts) register(names []string) {
	for _, n := range names {
		if f.known[n] || len(f.channels) >= packet.MaxChannels || f.nameBytes+len(n)+1 > maxChannelBytes {
			continue
		}
		if f.known == nil {
			f.known = map[string]bool{}
		}
		f.known[n] = true
		f.channels = append(f.channels, n)
		f.nameBytes += len(n) + 1
	}
}

func (f *facts) unregister(names []string) {
	for _, n := range names {
		if !f.known[n] {
			continue
		}
		delete(f.known, n)
		f.nameBytes -= len(n) + 1
		f.channels = slices.DeleteFunc(f.channels, func(have string) bool { return have == n })
	}
}

// feed gives a backend everything it has missed: to the first one exactly what the client sent, in order; to a later
// one the standing facts and the packets that have waited since.
func (f *facts) feed(protocol int32, send func(p proto.Packet, body []byte)) {
	if f.heard {
		if f.information != nil {
			send(proto.ClientInformation, f.information)
		}
		if f.brand != nil {
			send(proto.CustomPayload, f.brand)
		}
		if len(f.channels) > 0 {
			send(proto.CustomPayload, packet.AppendPluginMessage(nil, packet.PluginMessage{
				Channel: packet.RegisterChannel(protocol), Data: packet.AppendChannels(nil, f.channels),
			}))
		}
	}
	for _, w := range f.queue {
		if !f.heard || !w.stated {
			send(w.packet, w.body)
		}
	}
	f.queue, f.queued, f.heard = nil, 0, true
}
