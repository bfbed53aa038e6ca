package socket

import (
	"sync"
	"time"
)

const (
	// gap is how long ago a peer's last write has to be for a frame to go at once. A frame comes every 20 ms from one
	// talker; half of that leaves room for jitter, so that a lone talker's frames never wait.
	gap = 10 * time.Millisecond
	// gapTLS is the same where each write is a record, which costs as much as several frames: a millisecond of delay
	// among several talkers buys a tenth of the CPU. A lone talker's frames still do not wait.
	gapTLS = 12 * time.Millisecond
	// sweepEvery is how often the sweeper looks at waiting sockets.
	sweepEvery = 5 * time.Millisecond
	// checkEvery is how often it looks at all, for pings and dead peers.
	checkEvery = 500 * time.Millisecond
)

// Sweeper writes what has gathered for the sockets that share it, pings them and buries dead ones. It runs only while
// something waits, and twice a second while there are sockets.
type Sweeper struct {
	start time.Time
	wake  chan struct{} // one slot
	quit  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	queue   []*Socket // that wait, each once
	sockets map[*Socket]struct{}
	past    Stats // of sockets that are gone
}

// NewSweeper starts one. Close it after the last socket has ended.
func NewSweeper() *Sweeper {
	w := &Sweeper{
		start:   time.Now(),
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
		sockets: make(map[*Socket]struct{}),
	}
	go w.run()
	return w
}

// Close stops the sweeper and waits for it.
func (w *Sweeper) Close() {
	close(w.quit)
	<-w.done
}

// Stats adds up all sockets, gone ones included, but not what was given to them after they were gone.
func (w *Sweeper) Stats() Stats {
	w.mu.Lock()
	total, live := w.past, make([]*Socket, 0, len(w.sockets))
	for s := range w.sockets {
		live = append(live, s)
	}
	w.mu.Unlock()
	for _, s := range live {
		total.add(s.Stats())
	}
	return total
}

// Len returns the number of sockets.
func (w *Sweeper) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sockets)
}

// now returns the time on the clock of all sockets of one sweeper.
func (w *Sweeper) now() time.Duration { return time.Since(w.start) }

func (w *Sweeper) add(s *Socket) {
	w.mu.Lock()
	w.sockets[s] = struct{}{}
	w.mu.Unlock()
	w.poke()
}

func (w *Sweeper) remove(s *Socket) {
	stats := s.Stats()
	w.mu.Lock()
	delete(w.sockets, s)
	w.past.add(stats)
	w.mu.Unlock()
}

// schedule puts s on the list; its lock is held, and it is not there yet.
func (w *Sweeper) schedule(s *Socket) {
	w.mu.Lock()
	w.queue = append(w.queue, s)
	first := len(w.queue) == 1
	w.mu.Unlock()
	if first {
		w.poke()
	}
}

func (w *Sweeper) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Sweeper) run() {
	defer close(w.done)
	var (
		swept, checked   = w.now(), w.now()
		turn, spare, all []*Socket
		timer            = time.NewTimer(checkEvery)
	)
	for {
		w.mu.Lock()
		waiting, any := len(w.queue) > 0, len(w.sockets) > 0
		w.mu.Unlock()
		next := checked + checkEvery
		if waiting {
			next = min(next, swept+sweepEvery)
		}
		if waiting || any {
			timer.Reset(next - w.now())
		} else {
			timer.Stop()
		}
		select {
		case <-w.quit:
			return
		case <-w.wake:
		case <-timer.C:
		}
		now := w.now()
		if !waiting {
			swept = now // the sockets on the list now came just now, and have their time
		} else if now-swept >= sweepEvery {
			swept = now
			w.mu.Lock()
			turn, w.queue = w.queue, spare
			w.mu.Unlock()
			for _, s := range turn {
				s.swept(w.now())
			}
			clear(turn)
			spare = turn[:0]
		}
		if now-checked >= checkEvery {
			checked = now
			w.mu.Lock()
			for s := range w.sockets {
				all = append(all, s)
			}
			w.mu.Unlock()
			for _, s := range all {
				s.checked(now)
			}
			clear(all)
			all = all[:0]
		}
	}
}
