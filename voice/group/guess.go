package group

import (
	"time"

	"github.com/google/uuid"
)

// MaxMisses bounds the wrong passwords of everybody together that one group takes within [MissTime]. After that each
// player has one guess in that time, and not [Misses]: so many strangers together find out little, and still nobody is
// locked out by others.
const MaxMisses = 50

// maxGuessers bounds the guessers of one group that are remembered.
const maxGuessers = 4096

// misses counts the wrong passwords for one group.
type misses struct {
	by    map[uuid.UUID]missed
	all   int
	since time.Time // the first of all
}

// missed counts the wrong passwords of one player.
type missed struct {
	n     int
	since time.Time
}

// may tells whether a player's guess is checked.
func (m *misses) may(who uuid.UUID, now time.Time) bool {
	own := m.by[who]
	if now.Sub(own.since) >= MissTime {
		own.n = 0
	}
	if m.all >= MaxMisses && now.Sub(m.since) < MissTime {
		return own.n == 0
	}
	return own.n < Misses
}

// add counts a wrong guess.
func (m *misses) add(who uuid.UUID, now time.Time) {
	if m.by == nil {
		m.by = make(map[uuid.UUID]missed)
	}
	if now.Sub(m.since) >= MissTime {
		m.all, m.since = 0, now
		for id, own := range m.by {
			if now.Sub(own.since) >= MissTime {
				delete(m.by, id)
			}
		}
	}
	m.all++
	own, known := m.by[who]
	if now.Sub(own.since) >= MissTime {
		own = missed{since: now}
	}
	own.n++
	if known || len(m.by) < maxGuessers {
		m.by[who] = own
	}
}
