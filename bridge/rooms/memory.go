package rooms

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// MemoryConfig says how a pipe behaves. The zero value delivers at once.
type MemoryConfig struct {
	Loss     float64       // of state frames, 0 to 1
	Delay    time.Duration // of all frames to the peer
	Jitter   time.Duration // that state frames may come later still, and overtake each other
	Seed     uint64        // of loss and jitter
	Identity string        // of the peer
	TextOnly bool          // binary frames are not carried
}

// Bounds of the frames that wait in a pipe.
const (
	memoryControl = 256 << 10 // bytes, or eight of the longest frame
	memoryStates  = 1024      // frames on a lossy lane
)

// MemoryPair returns both ends of a pipe: the one, which is a [BinaryConn], for [Hub.Attach], the other for a client.
func MemoryPair(c MemoryConfig) (Conn, *MemoryTransport) {
	t := &MemoryTransport{conf: c, wake: make(chan struct{}, 1), random: rand.New(rand.NewPCG(c.Seed, 1))}
	end := memoryConn{t}
	if c.TextOnly {
		return textOnly{end}, t
	}
	return end, t
}

// memoryConn is the room's end of a pipe.
type memoryConn struct{ pipe *MemoryTransport }

// bind says which peer the pipe belongs to.
func (c memoryConn) bind(p *Peer) { c.pipe.peer.Store(p) }

// textOnly is one that carries no binary frames.
type textOnly struct{ Conn }

func (c textOnly) bind(p *Peer) { c.Conn.(memoryConn).bind(p) }

// MemoryTransport is the peer's end of a pipe.
type MemoryTransport struct {
	conf MemoryConfig
	peer atomic.Pointer[Peer]
	wake chan struct{}

	mu      sync.Mutex // guards these
	random  *rand.Rand
	control []parcel
	states  []parcel
	bytes   int // of control
	longest int
	ended   *frame.Ended // once the room has closed
	gone    bool         // the peer has
}

// parcel is a frame on its way.
type parcel struct {
	frame    []byte
	binary   bool
	recovery bool
	due      time.Time
}

func (t *MemoryTransport) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *MemoryTransport) send(b []byte, binary, recovery bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil || t.gone {
		return nil
	}
	t.longest = max(t.longest, len(b))
	if !recovery && t.bytes+len(b) > max(memoryControl, 8*t.longest) {
		return ErrFull
	}
	t.bytes += len(b)
	t.control = append(t.control, parcel{b, binary, recovery, time.Now().Add(t.conf.Delay)})
	t.poke()
	return nil
}

func (t *MemoryTransport) recover(frames [][]byte, binary bool) {
	t.mu.Lock()
	kept := t.control[:0]
	for _, p := range t.control {
		if p.recovery {
			t.bytes -= len(p.frame)
			continue
		}
		kept = append(kept, p)
	}
	clear(t.control[len(kept):])
	t.control = kept
	t.mu.Unlock()
	for _, b := range frames {
		t.send(b, binary, true)
	}
}

func (t *MemoryTransport) state(b []byte, binary bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil || t.gone || t.random.Float64() < t.conf.Loss {
		return
	}
	p := parcel{frame: b, binary: binary, due: time.Now().Add(t.conf.Delay)}
	if t.lossy() {
		if t.conf.Jitter > 0 {
			p.due = p.due.Add(time.Duration(t.random.Int64N(int64(t.conf.Jitter))))
		}
		if len(t.states) == memoryStates {
			t.states = t.states[1:]
		}
	} else if n := len(t.states); n > 0 { // in place of a waiting one, with its time
		p.due = t.states[0].due
		t.states = t.states[:0]
	}
	t.states = append(t.states, p)
	t.poke()
}

func (t *MemoryTransport) lossy() bool { return t.conf.Loss > 0 || t.conf.Jitter > 0 }

// Control implements [Conn].
func (c memoryConn) Control(b []byte) error { return c.pipe.send(b, false, false) }

// State implements [Conn].
func (c memoryConn) State(b []byte) { c.pipe.state(b, false) }

// Recover implements [Conn].
func (c memoryConn) Recover(frames ...[]byte) { c.pipe.recover(frames, false) }

// ControlBinary implements [BinaryConn].
func (c memoryConn) ControlBinary(b []byte) error { return c.pipe.send(b, true, false) }

// StateBinary implements [BinaryConn].
func (c memoryConn) StateBinary(b []byte) { c.pipe.state(b, true) }

// RecoverBinary implements [BinaryConn].
func (c memoryConn) RecoverBinary(frames ...[]byte) { c.pipe.recover(frames, true) }

// Waiting implements [Conn].
func (c memoryConn) Waiting() time.Time {
	t := c.pipe
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lossy() || len(t.states) == 0 || time.Now().Before(t.states[0].due) {
		return time.Time{}
	}
	return t.states[0].due
}

// Reliable implements [Conn].
func (c memoryConn) Reliable() bool { return !c.pipe.lossy() }

// Identity implements [Conn].
func (c memoryConn) Identity() string { return c.pipe.conf.Identity }

// Close implements [Conn].
func (c memoryConn) Close(code frame.Code, reason string) {
	t := c.pipe
	t.mu.Lock()
	if t.ended == nil {
		t.ended = &frame.Ended{Code: code, Reason: reason}
		t.states = nil
	}
	t.mu.Unlock()
	t.poke()
}

// Send sends a text frame to the room. It does not keep the bytes.
func (t *MemoryTransport) Send(b []byte) error {
	t.mu.Lock()
	ended, gone := t.ended, t.gone
	t.mu.Unlock()
	p := t.peer.Load()
	switch {
	case ended != nil:
		return ended
	case gone || p == nil:
		return &frame.Ended{}
	}
	p.Text(b)
	return nil
}

// SendBinary sends a binary frame. No client of the protocol does.
func (t *MemoryTransport) SendBinary(b []byte) { t.peer.Load().Binary(b) }

// Receive waits for a frame of the room, which must not be changed. Its error is a [*frame.Ended].
func (t *MemoryTransport) Receive() (b []byte, binary bool, err error) {
	for {
		p, wait, err := t.next()
		switch {
		case err != nil:
			return nil, false, err
		case wait < 0:
			<-t.wake
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-t.wake:
			case <-timer.C:
			}
			timer.Stop()
		default:
			return p.frame, p.binary, nil
		}
	}
}

// next takes a frame off that is due, or returns how long to wait for one; negative: nothing is on its way.
func (t *MemoryTransport) next() (p parcel, wait time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.gone {
		t.poke()
		return p, 0, &frame.Ended{}
	}
	at, lane := -1, &t.states
	for i := range t.states {
		if at < 0 || t.states[i].due.Before(t.states[at].due) {
			at = i
		}
	}
	if len(t.control) > 0 && (at < 0 || !t.states[at].due.Before(t.control[0].due)) {
		at, lane = 0, &t.control
	}
	if at < 0 {
		if t.ended != nil {
			t.poke()
			return p, 0, t.ended
		}
		return p, -1, nil
	}
	if wait = (*lane)[at].due.Sub(now); wait > 0 {
		return p, wait, nil
	}
	p = (*lane)[at]
	if lane == &t.control {
		t.bytes -= len(p.frame)
	}
	*lane = append((*lane)[:at:at], (*lane)[at+1:]...)
	return p, 0, nil
}

// Close ends the pipe from the peer's side. The room only learns that it is gone; the code and reason go nowhere.
func (t *MemoryTransport) Close(frame.Code, string) {
	t.mu.Lock()
	was := t.gone
	t.gone = true
	t.control, t.states, t.bytes = nil, nil, 0
	t.mu.Unlock()
	t.poke()
	if p := t.peer.Load(); p != nil && !was {
		p.Gone(nil)
	}
}
