package relay

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// maxLeftovers bounds the entries of each kind that are remembered. Servers do fill the player list with thousands of
// entries, and forgotten ones stay on the screen. So many fit into one packet that takes them off.
const maxLeftovers = 1 << 16

const bossAdd = 0

// BossRemove is the action of a boss bar packet that takes the bar away.
const BossRemove = 1

// Leftovers lists what a backend put on its player's screen and a change of world leaves there: entries of the player
// list and boss bars. Only clients without a configuration phase need it.
type Leftovers struct {
	Players List
	Bars    IDs
}

// IDs is a bounded set.
type IDs map[uuid.UUID]struct{}

func (m *IDs) put(id uuid.UUID) {
	if len(*m) >= maxLeftovers {
		return
	}
	if *m == nil {
		*m = IDs{}
	}
	(*m)[id] = struct{}{}
}

// All lists the set, in no order.
func (m IDs) All() (ids []uuid.UUID) {
	for id := range m {
		ids = append(ids, id)
	}
	return ids
}

// Add takes in the entries of another one.
func (d *Leftovers) Add(from *Leftovers) {
	for _, id := range from.Players.All() {
		d.Players.put(id)
	}
	for id := range from.Bars {
		d.Bars.put(id)
	}
}

// see notes what a packet of the backend adds or takes away. It fails for a packet that cannot be read.
func (d *Leftovers) see(protocol int32, p proto.Packet, body []byte) error {
	switch p {
	case proto.PlayerInfo:
		ids, change, err := packet.PlayersChanged(nil, protocol, body)
		for _, id := range ids {
			if change == packet.InfoShown {
				d.Players.put(id)
			} else {
				d.Players.del(id)
			}
		}
		return err
	case proto.PlayerRemove:
		ids, err := packet.ParsePlayerRemove(nil, body)
		for _, id := range ids {
			d.Players.del(id)
		}
		return err
	case proto.BossBar:
		r := field.NewReader(body)
		id, action := r.UUID(), r.VarInt()
		switch {
		case r.Err() != nil:
			return r.Err()
		case action == bossAdd:
			d.Bars.put(id)
		case action == BossRemove:
			delete(d.Bars, id)
		}
	}
	return nil
}
