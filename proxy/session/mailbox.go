package session

import (
	"slices"
	"sync"
)

// Bounds of the requests of other goroutines to one player, and of those that wait until the client is in play.
const (
	maxMail      = 256
	maxMailBytes = 2 << 20
)

var (
	errMailFull = refusal("too much is waiting to be sent to this player", "too-much")
	errGone     = refusal("the player has left", "player-gone")
)

// letter is one request of another goroutine to the session.
type letter struct {
	bytes int    // that do holds
	any   bool   // in any state of the client; else only in play
	do    func() // by the owner
}

// mailbox carries letters, and at most one order to leave, to the owner.
type mailbox struct {
	poke chan struct{} // one slot: there is something

	mu      sync.Mutex
	letters []letter
	bytes   int
	closed  bool
	leave   *leave
}

// leave is an order to disconnect the player. The first one counts.
type leave struct {
	ending Ending
	reason reason
}

func newMailbox() *mailbox { return &mailbox{poke: make(chan struct{}, 1)} }

func (m *mailbox) post(l letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return errGone
	case len(m.letters) >= maxMail || m.bytes+l.bytes > maxMailBytes:
		return errMailFull
	}
	m.letters = append(m.letters, l)
	m.bytes += l.bytes
	m.wake()
	return nil
}

func (m *mailbox) order(l leave) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leave == nil {
		m.leave = &l
		m.wake()
	}
}

func (m *mailbox) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// orders returns the order to leave, nil when there is none.
func (m *mailbox) orders() *leave {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leave
}

// next takes the first letter out of the box that can be done now; ok is false when there is none.
func (m *mailbox) next(playing bool) (l letter, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, l := range m.letters {
		if playing || l.any {
			m.letters = slices.Delete(m.letters, i, i+1)
			m.bytes -= l.bytes
			return l, true
		}
	}
	return l, false
}

func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.letters, m.bytes = true, nil, 0
}
