package limbo

import "sync"

// outboxLimit bounds the bytes that wait for a player who does not read: some thousand lines of chat. Leaving frames
// out would break the player's picture of who is there, so beyond it the player is thrown out.
const outboxLimit = 1 << 20

// outbox holds frames until the player's writer takes them.
type outbox struct {
	mu     sync.Mutex
	runs   [][]byte      // in order
	mine   bool          // the last run is a copy that may be appended to
	copied int           // bytes of the copies
	ended  bool          // nothing is added any more; the rest is the last
	full   bool          // ended because of outboxLimit
	wake   chan struct{} // one slot
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1)} }

// send adds a copy of frames and never blocks.
func (o *outbox) send(frames []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && o.copied+len(frames) > outboxLimit {
		o.ended, o.full, o.runs = true, true, nil
	}
	o.add(frames)
	o.poke()
}

// share adds frames as they are; nobody writes to them.
func (o *outbox) share(frames []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && len(frames) > 0 {
		o.runs, o.mine = append(o.runs, frames), false
		o.poke()
	}
}

// end adds last and lets nothing follow.
func (o *outbox) end(last []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(last)
	o.ended = true
	o.poke()
}

func (o *outbox) add(frames []byte) {
	switch n := len(o.runs) - 1; {
	case o.ended || len(frames) == 0:
		return
	case o.mine:
		o.runs[n] = append(o.runs[n], frames...)
	default:
		o.runs, o.mine = append(o.runs, append([]byte(nil), frames...)), true
	}
	o.copied += len(frames)
}

func (o *outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take empties the outbox; ended says that nothing will follow.
func (o *outbox) take() (runs [][]byte, ended, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	runs = o.runs
	o.runs, o.mine, o.copied = nil, false, 0
	return runs, o.ended, o.full
}
