// Package budget bounds how much of one kind a peer may send. It promises to be arithmetic alone: it neither waits nor
// asks for the time.
package budget

import "time"

// Budget bounds how much of one kind a peer may send: AtOnce, and PerSecond from then on. It starts full. It is not
// safe for concurrent use.
type Budget struct {
	PerSecond, AtOnce int
	spent             time.Time // up to when, where each second buys PerSecond
}

// Second returns a budget with one second of burst.
func Second(rate int) Budget { return Budget{PerSecond: rate, AtOnce: rate} }

// Take spends n, unless that is more than there is at now, and reports whether it has.
func (b *Budget) Take(now time.Time, n int) bool {
	step := time.Second / time.Duration(b.PerSecond)
	if full := now.Add(-step * time.Duration(b.AtOnce)); b.spent.Before(full) {
		b.spent = full
	}
	next := b.spent.Add(step * time.Duration(n))
	if next.After(now) {
		return false
	}
	b.spent = next
	return true
}
