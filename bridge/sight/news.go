package sight

import "sync"

// news is of whom something has changed that the reader has not taken yet. There is one reader.
type news struct {
	mu          sync.Mutex
	first, last *Session // whose sight has, the oldest first
	revealed    map[*Session]struct{}
}

// much is how many changes of one sight are kept apart; with more of them the whole is read.
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
		s.waiting.Store(false) // before anything is read: a change from now on is another one
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

// note remembers that whether the player is shown another one, or is in one place with it, may have changed.
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

// void has everything read that a player is shown.
func (v *server) void(q *seat) {
	q.whole, q.news = true, nil
	q.net.news.put(q.Session)
}

// Next takes a session of whom whom it is shown has changed since it was taken the last time, nil when there is none.
// What has, [Session.News] tells. There may be one reader of these.
func (n *Network) Next() *Session { return n.news.take() }

// Again has the session returned by [Network.Next], and all of its sight be news.
func (s *Session) Again() {
	s.read(func(v *server, q *seat) { v.void(q) })
	s.net.news.put(s)
}

// News calls for everybody of whom it may have changed since the last call whether the session is shown them, or whether
// they are apart. With whole there was too much for that: see [Session.EachShown].
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

// Revealed calls for every session whose [Session.Public] has changed since the last call.
func (n *Network) Revealed(visit func(*Session)) {
	n.news.mu.Lock()
	defer n.news.mu.Unlock()
	for s := range n.news.revealed {
		visit(s)
	}
	clear(n.news.revealed)
}
