package session

import (
	"time"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// keepAlives are a backend's questions that the client has not answered: the newest 32, so that a backend that never
// waits costs nothing.
type keepAlives struct {
	asked [32]question
	next  int
}

type question struct {
	id    int64
	at    time.Time
	state proto.State // in which it was asked
	open  bool
}

func (k *keepAlives) ask(id int64, st proto.State, now time.Time) {
	k.asked[k.next] = question{id, now, st, true}
	k.next = (k.next + 1) % len(k.asked)
}

// answer takes a question off the list. An answer to no question, or a second one to the same, must not reach the
// backend: it would kick for it.
func (k *keepAlives) answer(id int64) (q question, ok bool) {
	for i := range k.asked {
		if a := &k.asked[i]; a.open && a.id == id {
			a.open = false
			return *a, true
		}
	}
	return q, false
}
