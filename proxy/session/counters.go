package session

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/earshot-mc/earshot/proxy/lite"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Counters count what the sessions of a [Core] do, from the start. Read them at any time.
type Counters struct {
	Connections atomic.Uint64          // accepted
	Logins      atomic.Uint64          // login success sent
	ended       [endings]atomic.Uint64 // connections by ending
	Undecoded   proto.Tally            // packets that could not be decoded, and were forwarded all the same
	Relayed     Relayed
	Traffic     [2]relay.Traffic // by proto.Dir
	Overflows   atomic.Uint64    // messages that a full queue refused
	Forged      [2]atomic.Uint64 // plugin messages on channels of ours that were not forwarded, by proto.Dir
	Dropped     [2]atomic.Uint64 // packets that came in a state in which they could not go on, by proto.Dir
	Switches    Switches
	NotAllowed  NotAllowed
	Lite        lite.Counters // of the connections that are passed on as they are
	Dials       atomic.Uint64 // backend connections tried
	DialFails   atomic.Uint64 // of these, refused or failed before the login was complete
	Held        atomic.Int64  // players in the built-in world at the moment because no server took them
}

// NotAllowed counts what servers wanted of their players' clients and the settings refuse.
type NotAllowed struct{ Transfers, Cookies atomic.Uint64 }

// Switches count the outcomes of players' ways to another server.
type Switches struct {
	Done     atomic.Uint64 // from one server to another, by request
	Refused  atomic.Uint64 // the other server did not take the player, who stayed
	Rescued  atomic.Uint64 // a player who had lost their server came to another
	Returned atomic.Uint64 // a player was brought back from the built-in world
}

// Ended returns how many connections ended with e.
func (c *Counters) Ended(e Ending) uint64 {
	if e >= endings {
		return 0
	}
	return c.ended[e].Load()
}

// undecoded counts a packet that could not be decoded. The first of a version is worth a warning: the version may be
// other than we think.
func (s *Session) undecoded(p proto.Packet) {
	if n := s.core.Counters.Undecoded.Add(s.client.version.Protocol, p); n == 1 {
		s.log.Warn("a packet of this version is not understood, and is forwarded all the same", "packet", p, "protocol", s.client.version.Protocol)
	}
}

// Relayed counts the players of unknown versions.
type Relayed struct {
	Players atomic.Int64  // at the moment
	Logins  atomic.Uint64 // since the start
	Misfits atomic.Uint64 // logins that do not fit the newest version

	mu     sync.Mutex
	logins map[int32]uint64
}

// maxRelayed bounds the versions that are told apart: the numbers come from strangers.
const maxRelayed = 16

// add counts a login, and reports whether it is the first one of its version.
func (r *Relayed) add(protocol int32) (first bool) {
	r.Players.Add(1)
	r.Logins.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logins == nil {
		r.logins = map[int32]uint64{}
	}
	if _, has := r.logins[protocol]; !has && len(r.logins) >= maxRelayed {
		return false
	}
	r.logins[protocol]++
	return r.logins[protocol] == 1
}

// Each calls visit for every version of these players, by its number: at most 16 of them.
func (r *Relayed) Each(visit func(protocol int32, logins uint64)) {
	r.mu.Lock()
	rows := maps.Clone(r.logins)
	r.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(rows)) {
		visit(p, rows[p])
	}
}
