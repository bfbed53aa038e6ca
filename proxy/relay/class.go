package relay

import (
	"slices"
	"sync"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// Class says what a pump does with a packet id, beyond forwarding it. The zero Class is a pass: the frame is never
// opened. Bits combine.
type Class uint8

// The classes that an owner may want.
const (
	Observed  Class = 1 << iota // shown to the observer
	Held                        // waits for the owner's decision
	Channeled                   // a plugin message: held only when its channel concerns the owner

	noted    // adds to the traces, by being there
	recorded // adds to the leftovers
)

// Wants adds the packets that an owner wants to look at.
type Wants func(v *proto.Version, s proto.State, d proto.Dir, add func(Class, ...proto.Packet))

// classes has the class of each id in one state and direction. Ids from 256 on do not exist and pass.
type classes [256]Class

// A pump always notes these, and records leftovers of the versions whose clients keep them.
var (
	notedInConfig    = []proto.Packet{proto.RegistryData, proto.SelectKnownPacks, proto.PostEffects}
	notedInPlay      = []proto.Packet{proto.BundleDelimiter, proto.PostEffects}
	recordedLeftover = []proto.Packet{proto.PlayerInfo, proto.PlayerRemove, proto.BossBar}
)

// Reads lists the packets that a pump always looks for.
func Reads() []proto.Packet { return slices.Concat(notedInConfig, notedInPlay, recordedLeftover) }

// tables compiles each table once and keeps it; a version's wants never change.
type tables struct {
	wants Wants
	mu    sync.Mutex
	done  map[tableKey]*classes
}

type tableKey struct {
	v *proto.Version
	s proto.State
	d proto.Dir
}

// nothing is the table of unknown versions. Each of their clients brings one of its own, which is not kept.
var nothing classes

func (t *tables) get(v *proto.Version, s proto.State, d proto.Dir) *classes {
	if v.Blind() {
		return &nothing
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := tableKey{v, s, d}
	if c := t.done[key]; c != nil {
		return c
	}
	c := new(classes)
	add := func(bits Class, packets ...proto.Packet) {
		for _, p := range packets {
			if id, ok := v.ID(s, d, p); ok {
				c[id] |= bits
			}
		}
	}
	if d == proto.Clientbound {
		switch s {
		case proto.Config:
			add(noted, notedInConfig...)
		case proto.Play:
			add(noted, notedInPlay...)
			if !v.HasConfiguration() {
				add(recorded, recordedLeftover...)
			}
		}
	}
	t.wants(v, s, d, add)
	if t.done == nil {
		t.done = map[tableKey]*classes{}
	}
	t.done[key] = c
	return c
}
