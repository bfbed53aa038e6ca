// Package relay is a game without rules: the peers of a room publish what they like, and everybody sees it. It is for
// companion apps that share a little state.
package relay

import (
	"sync/atomic"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Bounds of what is published.
const (
	MaxPeer  = 2 << 10  // bytes of JSON of one peer
	MaxRoom  = 16 << 10 // of the room
	MaxDepth = 8        // of objects and lists in each other
)

// Refusals of commands, which end the transport that they came from.
const (
	ErrCommand = rooms.Refusal("A relay room knows publish and publishRoom")
	ErrState   = rooms.Refusal("publish needs an object named state")
	ErrLong    = rooms.Refusal("The state is too long: 2 KiB is the most for a peer, 16 KiB for the room")
	ErrDeep    = rooms.Refusal("The state is too deep: 8 objects in each other are the most")
	ErrLeader  = rooms.Refusal("Only the leader may publish for the room")
)

// Relay is what a relay room shows: {"peers": {id: state}, "room": state}. It implements [rooms.Authority].
type Relay struct {
	capacity atomic.Int64
	peers    state.Object
	room     state.Object
	leader   string
}

// New makes the authority of a relay room.
func New(capacity int) *Relay {
	r := &Relay{peers: state.Object{}, room: state.Object{}}
	r.SetCapacity(capacity)
	return r
}

// SetCapacity changes how many may be in the room. It sends nobody away. Any goroutine may call it.
func (r *Relay) SetCapacity(n int) { r.capacity.Store(int64(n)) }

// Capacity implements [rooms.Authority].
func (r *Relay) Capacity() int { return int(r.capacity.Load()) }

// ValidateJoin implements [rooms.Authority].
func (r *Relay) ValidateJoin(*rooms.Join) error { return nil }

// Joined implements [rooms.Authority].
func (r *Relay) Joined(string) {}

// Left implements [rooms.Authority]: what a peer has published goes with its place.
func (r *Relay) Left(id string) { r.peers = r.peers.Without(id) }

// Welcome implements [rooms.Authority].
func (r *Relay) Welcome(string) state.Object { return nil }

// Epoch implements [rooms.Authority].
func (r *Relay) Epoch() int64 { return 1 }

// Step implements [rooms.Authority].
func (r *Relay) Step(uint64, int) {}

// Leader implements [rooms.SocialAuthority]: the first peer that is connected.
func (r *Relay) Leader(members []rooms.Member) string {
	r.leader = ""
	for _, m := range members {
		if m.Connected {
			r.leader = m.ID
			break
		}
	}
	return r.leader
}

// PingLocation implements [rooms.SocialAuthority]: nobody is anywhere.
func (r *Relay) PingLocation(string, string) (rooms.Location, error) {
	return rooms.Location{}, rooms.Refusal("There are no places in this room")
}

// Command implements [rooms.Authority].
func (r *Relay) Command(id string, c *rooms.Command) error {
	if c.Type != "publish" && c.Type != "publishRoom" {
		return ErrCommand
	}
	v, _ := c.Fields.Get("state")
	most := MaxPeer
	if c.Type == "publishRoom" {
		most = MaxRoom
	}
	switch {
	case v.Kind() != state.Obj:
		return ErrState
	case depth(v) > MaxDepth:
		return ErrDeep
	case len(v.AppendJSON(nil)) > most:
		return ErrLong
	case c.Type == "publish":
		r.peers = r.peers.Set(id, v)
	case id != r.leader:
		return ErrLeader
	default:
		r.room = v.Obj()
	}
	return nil
}

func depth(v state.Value) int {
	if v.Kind() != state.Obj && v.Kind() != state.List {
		return 0
	}
	most := 0
	for i := range v.Len() {
		most = max(most, depth(v.At(i)))
	}
	return most + 1
}

// Snapshot implements [rooms.Authority].
func (r *Relay) Snapshot(_ rooms.View, dst state.Object) state.Object {
	return append(dst[:0], state.Member{Key: "peers", Value: state.OfObj(r.peers)}, state.Member{Key: "room", Value: state.OfObj(r.room)})
}
