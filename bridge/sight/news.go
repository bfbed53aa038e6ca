package sight

import "sync"

// news lists sessions with changes that the reader has not taken yet. There is one reader.
type news struct {
	mu          sync.Mutex
	first, last *Session // whose sight has, the oldest first
	revealed    map[*Session]struct{}
}

// much bounds the changes of one sight that are kept apart; beyond, the whole is read.
const much = 64

// put adds a session, unless it waits already.
func (n *news) put(s *Session) {
	if s.waiting.Load() || s.waiting.Swap(true) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.prev = n.last; n.last != nil {
		n.last.next = s
	} else {
		n.first = s
	}
	n.last = s
}

// take takes the session that has waited longest, nil when none waits.
func (n *news) take() *Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.first
	if s != nil {
		n.cut(s)
		s.waiting.Store(false) // before anything is read: a later change is another one
	}
	return s
}

func (n *news) cut(s *Session) {
	if s.prev != nil {
		s.prev.next = s.next
	} else if n.first == s {
		n.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else if n.last == s {
		n.last = s.prev
	}
	s.prev, s.next = nil, nil
}

func (n *news) reveal(s *Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.revealed[s] = struct{}{}
}

// forget drops a session that has ended, for good.
func (n *news) forget(s *Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.revealed, s)
	n.cut(s)
	s.waiting.Store(true)
}

// note remembers that the player's sight of another one may have changed: shown or not, in one place or not.
func (q *seat) note(other *Session) {
	switch {
	case q.whole:
	case len(q.news) < much:
		q.news = append(q.news, other)
	default:
		q.whole, q.news = true, nil
	}
	q.net.news.put(q.Session)
}

// void has a player's whole sight read.
func (v *server) void(q *seat) {
	q.whole, q.news = true, nil
	q.net.news.put(q.Session)
}

// Next returns a session whose sight has changed since it was last returned, nil when there is none. [Session.News] has
// the changes. There may be one reader of these.
func (n *Network) Next() *Session { return n.news.take() }

// Again makes the session returned by [Network.Next], and all of its sight, news.
func (s *Session) Again() {
	s.read(func(v *server, q *seat) { v.void(q) })
	s.net.news.put(s)
}

// News calls visit for every player whose state for this session may have changed since the last call: shown or not,
// apart or not. With whole there was too much for that: see [Session.EachShown].
func (s *Session) News(visit func(other *Session, shown, apart bool)) (whole bool) {
	whole = true
	s.read(func(v *server, q *seat) {
		whole = q.whole
		for _, o := range q.news {
			t := o.seated.Load()
			shown := t != nil && t.v == v && q.shown.has(t.slot)
			visit(o, shown, shown && q.apart.has(t.slot))
		}
		q.whole = false
		clear(q.news)
		q.news = q.news[:0]
	})
	return whole
}

// Revealed calls visit for every session whose [Session.Public] or [Session.EachHiddenFrom] has changed since the last
// call.
func (n *Network) Revealed(visit func(*Session)) {
	n.news.mu.Lock()
	defer n.news.mu.Unlock()
	for s := range n.news.revealed {
		visit(s)
	}
	clear(n.news.revealed)
}
