package client

import (
	"math"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Bounds of how far a playback is behind, and how it gets to where it should be.
const (
	minBehind = 100 * time.Millisecond
	maxBehind = 500 * time.Millisecond
	jumpOver  = 500 * time.Millisecond
	silence   = time.Second
	smooth    = 1.0 / 16
	slower    = 0.95
	faster    = 1.05
	keptShots = 128
)

// PlaybackClock shows snapshots smoothly: a little later than they come, so that there is mostly one to move towards.
// The zero value is for the protocol's rates. It is not for use by several goroutines at once.
type PlaybackClock struct {
	SimulationHz, SnapshotHz int

	shots    []*state.Snapshot // by tick
	last     time.Time         // arrival
	offset   float64           // of arrivals against the time of ticks, in s
	jitter   float64           // mean deviation, in s
	head     float64           // that is shown, in s of ticks
	at       time.Time         // when it was there
	running  bool              // for this epoch
	settling bool
	origin   time.Time
}

func (c *PlaybackClock) rates() (sim, interval float64) {
	if c.SimulationHz == 0 {
		c.SimulationHz, c.SnapshotHz = frame.SimulationHz, frame.SnapshotHz
	}
	return float64(c.SimulationHz), 1 / float64(c.SnapshotHz)
}

// Arrived takes a snapshot and the time of its arrival.
func (c *PlaybackClock) Arrived(s *state.Snapshot, at time.Time) {
	sim, interval := c.rates()
	if c.origin.IsZero() {
		c.origin = at
	}
	n := len(c.shots)
	switch {
	case n > 0 && s.Epoch != c.shots[n-1].Epoch:
		c.shots, c.running = nil, false
	case n > 0 && s.Tick == c.shots[n-1].Tick:
		c.shots[n-1] = s
		return
	case n > 0 && s.Tick < c.shots[n-1].Tick:
		return
	}
	off := at.Sub(c.origin).Seconds() - float64(s.Tick)/sim
	since := at.Sub(c.last)
	// Arrivals at a hidden tab do not count for the mean, nor a backlog that comes all at once.
	c.settling = c.last.IsZero() || since > silence || !c.running || c.settling && since.Seconds() < interval/2
	if c.settling {
		c.offset = off
	} else {
		c.jitter += (math.Abs(off-c.offset) - c.jitter) * smooth
		c.offset += (off - c.offset) * smooth
	}
	c.last, c.running = at, true
	if c.shots = append(c.shots, s); len(c.shots) > keptShots {
		c.shots = c.shots[1:]
	}
	if c.settling {
		c.head, c.at = c.target(at), at
	}
}

// Delay returns how far the shown state is behind the newest snapshot.
func (c *PlaybackClock) Delay() time.Duration {
	_, interval := c.rates()
	d := time.Duration((2*interval + 2*c.jitter) * float64(time.Second))
	return min(max(d, minBehind), maxBehind)
}

func (c *PlaybackClock) target(at time.Time) float64 {
	return at.Sub(c.origin).Seconds() - c.offset - c.Delay().Seconds()
}

// Sample returns the snapshots around the time to show, and how far from a to b it is: 0 to 1. Both are the same where
// there is nothing to move towards; nil: there is no snapshot yet.
func (c *PlaybackClock) Sample(at time.Time) (a, b *state.Snapshot, t float64) {
	sim, interval := c.rates()
	if len(c.shots) == 0 {
		return nil, nil, 0
	}
	if passed := at.Sub(c.at).Seconds(); passed > 0 {
		rate := 1.0
		switch off := c.target(at) - (c.head + passed); {
		case math.Abs(off) > jumpOver.Seconds():
			c.head, rate = c.target(at)-passed, 1
		case off > interval:
			rate = faster
		case off < -interval:
			rate = slower
		}
		c.head += passed * rate
		c.at = at
	}
	for len(c.shots) > 1 && float64(c.shots[1].Tick)/sim <= c.head {
		c.shots = c.shots[1:]
	}
	a = c.shots[0]
	if len(c.shots) == 1 {
		return a, a, 0
	}
	b = c.shots[1]
	from, to := float64(a.Tick)/sim, float64(b.Tick)/sim
	if to-from > 2*interval {
		from = to - interval // nothing has moved before
	}
	if c.head <= from {
		return a, b, 0
	}
	return a, b, min((c.head-from)/(to-from), 1)
}

// Between returns the value that lies t of the way from a to b.
func Between(a, b, t float64) float64 { return a + (b-a)*t }

// Turn returns the angle that lies t of the short way from a to b, in degrees from 0 to 360.
func Turn(a, b, t float64) float64 {
	d := math.Mod(b-a, 360)
	switch {
	case d > 180:
		d -= 360
	case d < -180:
		d += 360
	}
	v := math.Mod(a+d*t, 360)
	if v < 0 {
		v += 360
	}
	return v
}
