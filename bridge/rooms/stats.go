package rooms

import (
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// Count is a number for each of a few words that are known beforehand.
type Count struct {
	words []string
	n     map[string]*atomic.Uint64
}

func newCount(words ...string) Count {
	c := Count{words, map[string]*atomic.Uint64{}}
	for _, w := range words {
		c.n[w] = new(atomic.Uint64)
	}
	return c
}

// add counts under a word, or under the last one if that is not known.
func (c Count) add(word string, n int) {
	at := c.n[word]
	if at == nil {
		at = c.n[c.words[len(c.words)-1]]
	}
	at.Add(uint64(n))
}

// Words lists the words.
func (c Count) Words() []string { return c.words }

// Of returns the number of a word.
func (c Count) Of(word string) uint64 {
	if at := c.n[word]; at != nil {
		return at.Load()
	}
	return 0
}

// LateBounds are the upper bounds of [Stats].Late.
var LateBounds = []time.Duration{time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second}

// Stats count what happens in rooms. Make them with [NewStats].
type Stats struct {
	In, Out Count // frames by type; those of games under "game"
	Bytes   Count // sent, by "control json", "control binary", "state json" and "state binary"
	Refused Count // joins, by reason
	Closed  Count // transports, by reason
	Dropped Count // frames, by reason

	Rooms, Peers, Blocked atomic.Int64 // that there are now
	Clamped               atomic.Int64 // simulated time that stalls have cost, in ns

	Late    []atomic.Uint64 // wake-ups, by LateBounds, one more for later ones
	LateSum atomic.Int64    // in ns
}

// NewStats returns stats in which everything is zero.
func NewStats() *Stats {
	return &Stats{
		In:      newCount(frame.Join, frame.Ack, frame.Chat, frame.Ping, frame.Moderate, frame.Leave, "invalid", "game"),
		Out:     newCount(frame.Welcome, frame.Baseline, frame.Snapshot, frame.State, frame.Social, frame.Chat, frame.Ping, frame.Left, frame.Remove, frame.Notice, frame.Error),
		Bytes:   newCount("control json", "control binary", "state json", "state binary"),
		Refused: newCount("protocol", "name", "banned", "locked", "full", "often", "token", "validate"),
		Closed:  newCount("elsewhere", "closed", "stalled", "timeout", "invalid", "removed", "left", "lost"),
		Dropped: newCount("expired", "stale_epoch", "bad_ack", "not_finite", "codec"),
		Late:    make([]atomic.Uint64, len(LateBounds)+1),
	}
}

func (s *Stats) late(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(LateBounds) && d > LateBounds[i] {
		i++
	}
	s.Late[i].Add(1)
	s.LateSum.Add(int64(d))
}
