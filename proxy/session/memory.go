package session

import (
	"slices"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of what is kept of a client's words.
const (
	maxQueued        = 1024    // messages waiting for a backend
	maxQueuedBytes   = 4 << 20 // their bytes
	maxChannelBytes  = 32767   // their names with a separator each, so that they fit one message
	maxInformation   = 1 << 10 // client information; a vanilla one has some 30 bytes
	maxBrand         = 1 << 10
	maxClientMessage = 32767 // vanilla bound of a serverbound plugin message
)

// memory is what the client says once, perhaps before there is a backend, and every backend has to hear.
type memory struct {
	information []byte   // body of the last client information; same layout in configuration and play
	brand       []byte   // body of the brand message
	channels    []string // registered by the client (never by a backend), in order
	known       map[string]bool
	nameBytes   int

	queue  []waiting // for the next backend, in order
	queued int       // bytes in queue
	heard  bool      // some backend has got the queue up to now
}

// waiting is one packet for the backend to come.
type waiting struct {
	packet proto.Packet
	body   []byte
	stated bool // it is also kept elsewhere in the memory
}

// wait queues a packet and reports whether there was room.
func (m *memory) wait(p proto.Packet, body []byte, stated bool) bool {
	if len(m.queue) >= maxQueued || m.queued+len(body) > maxQueuedBytes {
		return false
	}
	m.queue = append(m.queue, waiting{p, append([]byte(nil), body...), stated})
	m.queued += len(body)
	return true
}

// register remembers those of names that are new, as long as there is room.
func (m *memory) register(names []string) {
	for _, n := range names {
		if m.known[n] || len(m.channels) >= packet.MaxChannels || m.nameBytes+len(n)+1 > maxChannelBytes {
			continue
		}
		if m.known == nil {
			m.known = map[string]bool{}
		}
		m.known[n] = true
		m.channels = append(m.channels, n)
		m.nameBytes += len(n) + 1
	}
}

func (m *memory) unregister(names []string) {
	for _, n := range names {
		if !m.known[n] {
			continue
		}
		delete(m.known, n)
		m.nameBytes -= len(n) + 1
		m.channels = slices.DeleteFunc(m.channels, func(have string) bool { return have == n })
	}
}

// feed gives a backend everything it has missed: to the first one exactly what the client sent, in order; to a later
// one the standing facts and whatever has been waiting since.
func (m *memory) feed(protocol int32, send func(p proto.Packet, body []byte)) {
	if m.heard {
		if m.information != nil {
			send(proto.ClientInformation, m.information)
		}
		if m.brand != nil {
			send(proto.CustomPayload, m.brand)
		}
		if len(m.channels) > 0 {
			send(proto.CustomPayload, packet.AppendPluginMessage(nil, packet.PluginMessage{
				Channel: packet.RegisterChannel(protocol), Data: packet.AppendChannels(nil, m.channels),
			}))
		}
	}
	for _, w := range m.queue {
		if !m.heard || !w.stated {
			send(w.packet, w.body)
		}
	}
	m.queue, m.queued, m.heard = nil, 0, true
}
