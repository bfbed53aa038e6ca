package session

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// maxLeftovers is how many entries of each kind are remembered. Servers do fill the player list with thousands of entries, and
// what is not remembered stays on the screen. So many fit into one packet that takes them off.
const maxLeftovers = 1 << 16

// Actions of a boss bar packet.
const (
	bossAdd    = 0
	bossRemove = 1
)

// leftovers is what a backend put on its player's screen that a change of world leaves there. Only clients without a
// configuration phase need it.
type leftovers struct{ players, bars idSet }

// idSet is a bounded set.
type idSet map[uuid.UUID]struct{}

func (m *idSet) put(id uuid.UUID) {
	if len(*m) >= maxLeftovers {
		return
	}
	if *m == nil {
		*m = idSet{}
	}
	(*m)[id] = struct{}{}
}

func (m idSet) all() (ids []uuid.UUID) {
	for id := range m {
		ids = append(ids, id)
	}
	return ids
}

// add takes in what another has.
func (d *leftovers) add(from *leftovers) {
	for id := range from.players {
		d.players.put(id)
	}
	for id := range from.bars {
		d.bars.put(id)
	}
}

// see notes what a packet of the backend's adds or takes away; the error is that of a packet which cannot be read.
func (d *leftovers) see(protocol int32, p proto.Packet, body []byte) error {
	switch p {
	case proto.PlayerInfo:
		ids, change, err := packet.PlayersChanged(nil, protocol, body)
		for _, id := range ids {
			if change == packet.InfoShown {
				d.players.put(id)
			} else {
				delete(d.players, id)
			}
		}
		return err
	case proto.PlayerRemove:
		ids, err := packet.ParsePlayerRemove(nil, body)
		for _, id := range ids {
			delete(d.players, id)
		}
		return err
	case proto.BossBar:
		r := field.NewReader(body)
		id, action := r.UUID(), r.VarInt()
		switch {
		case r.Err() != nil:
			return r.Err()
		case action == bossAdd:
			d.bars.put(id)
		case action == bossRemove:
			delete(d.bars, id)
		}
	}
	return nil
}
