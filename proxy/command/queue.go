package command

import "sync"

// Queue runs one player's commands one after the other, in the order they came, on a goroutine that exists only while
// there are any. The zero Queue is ready.
type Queue struct {
	mu      sync.Mutex
	waiting []func()
	running sync.WaitGroup
	busy    bool
	closed  bool
}

// MaxWaiting bounds the commands of one player that wait for the one that runs.
const MaxWaiting = 32

// Post runs f soon. It never blocks. It returns false, and does not run f, when too many wait or the queue is closed.
func (q *Queue) Post(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) >= MaxWaiting {
		return false
	}
	q.waiting = append(q.waiting, f)
	if !q.busy {
		q.busy = true
		q.running.Go(q.run)
	}
	return true
}

func (q *Queue) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		f := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		f()
	}
}

// Drop forgets the commands that have not begun.
func (q *Queue) Drop() {
	q.mu.Lock()
	q.waiting = nil
	q.mu.Unlock()
}

// Close forgets the commands that have not begun and waits for the one that has. That one should end with its context,
// which the caller cancels first. A command must not call Close.
func (q *Queue) Close() {
	q.mu.Lock()
	q.waiting, q.closed = nil, true
	q.mu.Unlock()
	q.running.Wait()
}
