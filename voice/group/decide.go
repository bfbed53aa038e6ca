package group

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Decision is what groups say about a talker and a listener.
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

// decide is the whole rule; nil is no group.
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

// isolates tells whether a group's members are reached by nobody outside.
func isolates(g *group) bool { return decide(nil, g) == Silent }

// Decide says what holds for a pair; a player of whom nothing is known is in no group.
func (s *State) Decide(talker, listener uuid.UUID) Decision {
	return decide(s.groupOf(s.players[talker]), s.groupOf(s.players[listener]))
}

func (s *State) groupOf(p *player) *group {
	if p == nil || !s.limits.Enabled {
		return nil
	}
	return p.group
}

// Moved calls for every slot of which [State.Split] may say something else than when Moved was called last. Whoever asks
// compiles voice, and nobody else may.
func (s *State) Moved(visit func(slot int)) {
	for _, slot := range s.moved {
		visit(slot)
	}
	s.moved = s.moved[:0]
}

// Split divides those who may hear the member in a slot, given as one bit for each slot from the 64 times at'th on, by
// what [State.Decide] says of them: together gets those who hear it as members of its group, ears keeps those for whom
// distance decides. together has to be as long as ears. It costs a few operations for 64 listeners.
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

// window is what a set has of n words.
func window(s set, at, n int) set {
	if at >= len(s) {
		return nil
	}
	return s[at:min(at+n, len(s))]
}

// Fellows has the slots of those who are in the group of the member in a slot, that one included, one bit each; without a
// group nobody. It is valid until the next change.
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
