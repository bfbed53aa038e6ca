// Package step is a clock that turns time into steps of one length. It promises that a stall costs simulated time
// rather than a burst of work: it throws away the time over a bound, and counts it.
package step

import "time"

// Clock counts steps. The zero value is not ready; make one with [New]. It is not for use by several goroutines at
// once.
type Clock struct {
	length, bound time.Duration
	last          time.Time
	due           time.Duration // no steps have been made of it yet
	tick          uint64
	lost          time.Duration
}

// New returns a clock of hz steps a second that makes up for bound at most. It stands until [Clock.Start].
func New(hz int, bound time.Duration) *Clock {
	return &Clock{length: time.Second / time.Duration(hz), bound: bound}
}

// Start has time run from now on. Earlier time does not count.
func (c *Clock) Start(now time.Time) { c.last, c.due = now, 0 }

// Advance returns the number of the first step that is due, and how many are.
func (c *Clock) Advance(now time.Time) (first uint64, n int) {
	if passed := now.Sub(c.last); passed > 0 {
		c.last = now
		c.due += passed
	}
	if c.due > c.bound {
		c.lost += c.due - c.bound
		c.due = c.bound
	}
	n = int(c.due / c.length)
	c.due -= time.Duration(n) * c.length
	first = c.tick + 1
	c.tick += uint64(n)
	return first, n
}

// Tick returns how many steps there were.
func (c *Clock) Tick() uint64 { return c.tick }

// Lost returns how much time was thrown away.
func (c *Clock) Lost() time.Duration { return c.lost }
