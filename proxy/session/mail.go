package session

import (
	"errors"
	"sync"
)

// Bounds of what other goroutines may ask of a player at a time, and of what waits until the client is in play.
const (
	maxMail      = 256
	maxMailBytes = 2 << 20
)

var (
	errMailFull = errors.New("too much is waiting to be sent to this player")
	errGone     = errors.New("the player has left")
)

// letter is one thing that other goroutines want the player to get.
type letter struct {
	channel string // of a plugin message; empty: text for the action bar
	data    []byte
	text    string
}

func (l *letter) size() int { return len(l.channel) + len(l.data) + len(l.text) }

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
	case len(m.letters) >= maxMail || m.bytes+l.size() > maxMailBytes:
		return errMailFull
	}
	m.letters = append(m.letters, l)
	m.bytes += l.size()
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

// orders is the order to leave, nil when there is none.
func (m *mailbox) orders() *leave {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leave
}

// take empties the box.
func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.letters
	m.letters, m.bytes = nil, 0
	return l
}

func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.letters, m.bytes = true, nil, 0
}
