package socket

import (
	"slices"
	"time"
)

// Lanes are how a room sends. Frames are kept by reference, so that bytes which many peers are given are there once:
// they must not change afterwards.

// Bounds of what waits on a control lane.
const (
	maxControl = 256 << 10 // bytes, or
	maxLongest = 8         // of the longest frame so far
	gathered   = 16 << 10  // bytes of small frames that go in one write
)

// lanes hold what waits for a peer of a room: frames of which none is lost, and the newest of those that replace each
// other.
type lanes struct {
	control []piece // from first on
	first   int
	bytes   int
	longest int

	state   []byte
	fin     byte
	waiting time.Duration // since when a state frame could not go; 0: none waits
}

// piece is a frame on the control lane.
type piece struct {
	bytes    []byte
	fin      byte
	recovery bool
	rank     int // of [Socket.Queue]
}

func kindOf(binary bool) byte {
	if binary {
		return finBinary
	}
	return finText
}

func (l *lanes) empty() bool { return l.first == len(l.control) && l.state == nil }

func (l *lanes) add(p piece) {
	l.longest = max(l.longest, len(p.bytes))
	l.bytes += len(p.bytes)
	if l.first > 0 && len(l.control) == cap(l.control) { // somebody who never catches up
		n := copy(l.control, l.control[l.first:])
		clear(l.control[n:])
		l.control, l.first = l.control[:n], 0
	}
	l.control = append(l.control, p)
}

// pop takes the oldest frame off.
func (l *lanes) pop() piece {
	p := l.control[l.first]
	l.control[l.first] = piece{}
	l.bytes -= len(p.bytes)
	if l.first++; l.first == len(l.control) {
		l.control, l.first = l.control[:0], 0
	}
	return p
}

// dropRecovery takes out the frames of a former recovery.
func (l *lanes) dropRecovery() {
	kept := l.control[:l.first]
	for _, p := range l.control[l.first:] {
		if p.recovery {
			l.bytes -= len(p.bytes)
			continue
		}
		kept = append(kept, p)
	}
	clear(l.control[len(kept):])
	l.control = kept
}

// takeControl makes frames of the control lane the next thing to be sent: small ones together, a long one where it
// lies.
func (o *outbox) takeControl() {
	l := o.lanes
	for l.first < len(l.control) && len(o.rest) < gathered {
		p := l.pop()
		if o.rest = appendHead(o.rest, p.fin, len(p.bytes)); len(p.bytes) >= longView {
			o.body = p.bytes
			return
		}
		o.rest = append(o.rest, p.bytes...)
	}
}

// takeState makes the state frame the next thing to be sent.
func (o *outbox) takeState() {
	l := o.lanes
	o.rest, o.body = appendHead(o.rest, l.fin, len(l.state)), l.state
	if len(l.state) < longView {
		o.rest, o.body = append(o.rest, l.state...), nil
	}
	l.state, l.waiting = nil, 0
}

// Control sends a message after all that were given before; false: more waits than may, and it is not sent.
func (s *Socket) Control(frame []byte, binary bool) bool {
	now := s.sweep.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil {
		return true
	}
	l := s.outbox.lane()
	if l.bytes+len(frame) > max(maxControl, maxLongest*max(l.longest, len(frame))) {
		return false
	}
	l.add(piece{bytes: frame, fin: kindOf(binary)})
	s.kick(now)
	return true
}

// Queued is how many messages of [Socket.Queue] wait at most.
const Queued = 32

// Queue sends a binary message after all that were given before. Where more than [Queued] would wait, it drops the
// oldest of the lowest rank among them and returns that rank; -1: none.
func (s *Socket) Queue(frame []byte, rank int) (dropped int) {
	now := s.sweep.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil {
		return -1
	}
	l := s.outbox.lane()
	l.add(piece{bytes: frame, fin: finBinary, rank: rank})
	dropped = l.crowd()
	s.kick(now)
	return dropped
}

// crowd drops one message if there are too many.
func (l *lanes) crowd() (dropped int) {
	waiting := l.control[l.first:]
	if len(waiting) <= Queued {
		return -1
	}
	lowest := 0
	for i, p := range waiting {
		if p.rank < waiting[lowest].rank {
			lowest = i
		}
	}
	p := waiting[lowest]
	l.bytes -= len(p.bytes)
	l.control = slices.Delete(l.control, l.first+lowest, l.first+lowest+1)
	return p.rank
}

// Recover sends messages after all that were given before, in place of those of the last Recover that still wait.
func (s *Socket) Recover(binary bool, frames ...[]byte) {
	now := s.sweep.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil {
		return
	}
	l := s.outbox.lane()
	l.dropRecovery()
	for _, f := range frames {
		l.add(piece{bytes: f, fin: kindOf(binary), recovery: true})
	}
	s.kick(now)
}

// State sends a message in place of a former one that still waits, as soon as nothing else waits for the peer.
func (s *Socket) State(frame []byte, binary bool) {
	now := s.sweep.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil {
		return
	}
	l := s.outbox.lane()
	l.state, l.fin = frame, kindOf(binary)
	if l.waiting == 0 {
		l.waiting = max(now, 1)
	}
	s.kick(now)
}

// StateWaits returns for how long a state message could not be sent; 0: none waits.
func (s *Socket) StateWaits() time.Duration {
	now := s.sweep.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.outbox.lanes; l != nil && l.state != nil {
		return now - l.waiting
	}
	return 0
}

// lane returns the lanes, which only those have who use them.
func (o *outbox) lane() *lanes {
	if o.lanes == nil {
		o.lanes = new(lanes)
	}
	return o.lanes
}
