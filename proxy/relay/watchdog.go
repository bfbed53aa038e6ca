package relay

import (
	"sync"
	"sync/atomic"
	"time"
)

// Tick is how often waits are looked at, and so bounds how late the end of one is noticed. It saves setting a deadline
// on a socket for each packet, which costs more than reading a small one.
const Tick = time.Second

// clock is the time since the start, good to one Tick and free to read.
type clock struct{ at atomic.Int64 }

func (c *clock) now() int64 { return c.at.Load() }

// mark is a wait for bytes that may be going on. Only the wait counts: a reader that is busy writing to a slow peer is
// not idle.
type mark struct {
	since atomic.Int64 // clock time plus one; 0: not waiting
	limit atomic.Int64 // ns; 0: no limit
	late  atomic.Bool  // the limit was passed
}

func (m *mark) begin(now int64) { m.since.Store(now + 1) }
func (m *mark) end()            { m.since.Store(0) }

// allow sets how long a wait may take, also one that is going on.
func (m *mark) allow(d time.Duration) { m.limit.Store(int64(d)) }

// waited returns how long a wait has been going on; 0: none is.
func (m *mark) waited(now int64) time.Duration {
	if since := m.since.Load(); since != 0 {
		return time.Duration(now - (since - 1))
	}
	return 0
}

func (m *mark) overdue(now int64) bool {
	since, limit := m.since.Load(), m.limit.Load()
	return limit > 0 && since != 0 && now-(since-1) > limit
}

// watchdog ends waits that take too long.
type watchdog struct {
	clock clock
	mu    sync.Mutex
	marks map[*mark]func() // to be called once when the wait is overdue; must not block
	stop  chan struct{}
	gone  chan struct{}
}

func newWatchdog() *watchdog {
	w := &watchdog{marks: map[*mark]func(){}, stop: make(chan struct{}), gone: make(chan struct{})}
	go w.run()
	return w
}

func (w *watchdog) run() {
	defer close(w.gone)
	start, t := time.Now(), time.NewTicker(Tick)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			now := int64(time.Since(start))
			w.clock.at.Store(now)
			w.check(now)
		}
	}
}

func (w *watchdog) check(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for m, late := range w.marks {
		if m.overdue(now) && m.late.CompareAndSwap(false, true) {
			late()
		}
	}
}

func (w *watchdog) watch(m *mark, late func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks[m] = late
}

func (w *watchdog) forget(m *mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.marks, m)
}

func (w *watchdog) close() {
	close(w.stop)
	<-w.gone
}
