package itest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lateness is how much too late this machine wakes sleepers, at the worst since the last call. Anything that has to
// happen within a time may take that much longer for each process on its way: a busy machine is no fault of the
// program's.
type lateness struct{ worst atomic.Int64 }

// hops is how many processes a message passes here that may each be woken late, and the timer in the program.
const hops = 4

func newLateness(t *testing.T) *lateness {
	l, quit := new(lateness), make(chan struct{})
	var task sync.WaitGroup
	task.Go(func() {
		const step = 5 * time.Millisecond
		for {
			at := time.Now().Add(step)
			select {
			case <-quit:
				return
			case <-time.After(step):
			}
			late := int64(time.Since(at))
			for was := l.worst.Load(); late > was && !l.worst.CompareAndSwap(was, late); was = l.worst.Load() {
			}
		}
	})
	t.Cleanup(func() { close(quit); task.Wait() })
	return l
}

// slack returns what a bound is to be widened by.
func (l *lateness) slack() time.Duration { return hops * time.Duration(l.worst.Load()) }

// forget makes what has been until now count no longer.
func (l *lateness) forget() { l.worst.Store(0) }
