package session

import (
	"slices"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// maxOpen bounds a backend's open questions of one kind. A new one replaces the oldest.
const maxOpen = 64

// questions are a backend's questions that the client has not answered, oldest first, each as the answer repeats it.
type questions []string

func (q *questions) ask(key string) {
	if len(*q) >= maxOpen {
		*q = slices.Delete(*q, 0, 1)
	}
	*q = append(*q, key)
}

// answer takes a question off the list.
func (q *questions) answer(key string) bool {
	i := slices.Index(*q, key)
	if i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	return i >= 0
}

// cookieKey returns the name of the cookie of a request or a response; both begin with it.
func cookieKey(body []byte) string { return field.NewReader(body).String(field.MaxString) }

// replied handles the client's answer to a backend's question. It is for that backend: the player's new one has asked
// nothing.
func (s *Session) replied(e *relay.Event, key string, open func(*link) *questions) relay.Verdict {
	for l := range s.route.links() {
		if open(l).answer(key) {
			return s.give(l, e)
		}
	}
	return s.give(nil, e)
}

// give passes a client's answer on to its backend, in the state that backend is in. A nil backend is gone, or never
// asked.
func (s *Session) give(l *link, e *relay.Event) relay.Verdict {
	if !s.route.has(l) {
		s.core.Counters.Dropped[proto.Serverbound].Add(1)
		return relay.Handled
	}
	if to := e.Pump.Dest(); to != nil && l.takes(to) {
		return relay.Forward
	}
	s.toBackend(l, e.Packet, e.Body)
	return relay.Handled
}
