package group

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Decision is the word of groups about a talker and a listener.
type Decision uint8

// The decisions.
const (
	Silent   Decision = iota // the listener hears nothing of the talker
	Distance                 // the rules of place and distance decide
	Together                 // heard at full gain, from no direction, in any world
)

var decisions = [...]string{Silent: "silent", Distance: "distance", Together: "together"}

// String names the decision.
func (d Decision) String() string {
	if int(d) < len(decisions) {
		return decisions[d]
	}
	return "unknown"
}

// decide applies the whole rule; nil is no group.
func decide(talker, listener *group) Decision {
	switch {
	case talker != nil && talker == listener:
		return Together
	case talker != nil && talker.Type != talk.OpenGroup: // a NORMAL group's talk stays inside, an ISOLATED one's too
		return Silent
	case listener != nil && listener.Type == talk.IsolatedGroup:
		return Silent
	}
	return Distance
}

// isolates tells whether nobody outside reaches a group's members.
func isolates(g *group) bool { return decide(nil, g) == Silent }

// Decide returns the decision for a pair; an unknown player is in no group.
func (s *State) Decide(talker, listener uuid.UUID) Decision {
	return decide(s.groupOf(s.players[talker]), s.groupOf(s.players[listener]))
}

func (s *State) groupOf(p *player) *group {
	if p == nil || !s.limits.Enabled {
		return nil
	}
	return p.group
}

// Moved calls visit for every slot whose [State.Split] may differ since the last call. Only the compiler of voice may
// call it.
func (s *State) Moved(visit func(slot int)) {
	for _, slot := range s.moved {
		visit(slot)
	}
	s.moved = s.moved[:0]
}

// Split divides the listeners of the member in a slot by [State.Decide]. ears are those who may hear it, one bit for
// each slot from the 64 times at'th on. Members of its group go to together, and ears keeps those that distance decides
// about. together has to be as long as ears. It costs a few operations for 64 listeners.
func (s *State) Split(slot, at int, ears, together []uint64) {
	clear(together)
	if !s.limits.Enabled {
		return
	}
	var g *group
	if slot < len(s.slots) {
		g = s.groupOf(s.slots[slot])
	}
	if g != nil {
		for i, in := range window(g.set, at, len(ears)) {
			together[i] = ears[i] & in
		}
		if decide(g, nil) == Silent {
			clear(ears)
			return
		}
		for i, in := range together {
			ears[i] &^= in
		}
	}
	for i, in := range window(s.isolated, at, len(ears)) {
		ears[i] &^= in
	}
}

// window returns a set's n words from at on.
func window(s set, at, n int) set {
	if at >= len(s) {
		return nil
	}
	return s[at:min(at+n, len(s))]
}

// Fellows returns the slots of the members of a group, by the slot of one of them, one bit each; without a group
// nobody's. It is valid until the next change.
func (s *State) Fellows(slot int) []uint64 {
	if slot >= len(s.slots) {
		return nil
	}
	if g := s.groupOf(s.slots[slot]); g != nil {
		return g.set
	}
	return nil
}

// set is a set of slots.
type set []uint64

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }
func (s set) del(i int) { s[i/64] &^= 1 << (i % 64) }

func (s set) grown(words int) set { return append(s, make(set, words-len(s))...) }

// sees tells whether a reader's set holds a slot; the set nil holds all.
func sees(in []uint64, slot int) bool {
	return in == nil || slot/64 < len(in) && in[slot/64]>>(slot%64)&1 != 0
}
