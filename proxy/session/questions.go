package session

import (
	"slices"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// maxOpen is how many questions of one kind a backend may have open. It forgets the oldest for another.
const maxOpen = 64

// questions are what a backend asked the client and the client has not answered, oldest first, each as what the answer
// repeats.
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

// cookieKey is the name of the cookie that a request or a response is about, both of which begin with it.
func cookieKey(body []byte) string { return field.NewReader(body).String(field.MaxString) }

// replied is the client's answer to a question that a backend asked. It is for that backend: the one the player has come
// to has asked nothing.
func (s *Session) replied(e *relay.Event, key string, open func(*link) *questions) relay.Verdict {
	for l := range s.route.links() {
		if open(l).answer(key) {
			return s.give(l, e)
		}
	}
	return s.give(nil, e)
}

// give passes a client's answer on to the backend that it is for, in the state that backend is in. No backend: it is for
// one that is gone, or for nobody.
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
