package socket

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/gobwas/ws"
)

// Views is the number of kinds of view that a socket keeps apart.
const Views = 9

// Bounds of the bytes that wait for one peer.
const (
	// maxSound holds 200 ms of thirty ordinary talkers.
	maxSound = 32 << 10 // bytes of frames
	// keepSound is the room that an empty outbox keeps: it holds what gathers between two sweeps. A peer that was slow
	// for a while gives the rest back.
	keepSound = 8 << 10
	// maxAge is how old sound may get while it waits. A peer that stops reading and comes back is never more than this
	// behind.
	maxAge = 200 * time.Millisecond
	// longView is the size from which a view is not copied behind its frame's header: a roster of thousands, for each
	// of thousands of slow peers, would be a lot of memory.
	longView = 4 << 10
	// maxReplies bounds the answers to a peer's requests.
	maxReplies = 16 << 10 // bytes of frames
)

// Drop says why sound was not sent.
type Drop uint8

// The reasons.
const (
	DropFull    Drop = iota // more waited than fits; the oldest went
	DropStale               // it waited longer than 200 ms
	DropClosed              // the socket was closing or gone
	DropRetract             // taken back by its sender
	numDrops
)

// Drops lists all reasons, for counters that start at zero.
func Drops() []Drop { return []Drop{DropFull, DropStale, DropClosed, DropRetract} }

// String returns the reason in one word, fit for a metric label.
func (d Drop) String() string {
	return [numDrops]string{"full", "stale", "closed", "retracted"}[d]
}

// Stats count the fate of the sound given to a socket, in frames, and the writes.
type Stats struct {
	Sent   uint64
	Drops  [numDrops]uint64
	Writes uint64 // system calls that sent something
}

func (a *Stats) add(b Stats) {
	a.Sent += b.Sent
	a.Writes += b.Writes
	for i := range b.Drops {
		a.Drops[i] += b.Drops[i]
	}
}

// outbox holds what waits for one peer, in the order in which it goes: the rest of a frame that went in part; pings,
// pongs and replies; sound; a room's control lane; the close frame; views and a room's state, when there is nothing
// else. It is not safe for concurrent use.
type outbox struct {
	rest  []byte // to be sent before anything else, as the peer has the part before
	body  []byte // of a long view, right after rest; other sockets have the same bytes
	texts []byte // replies as frames
	lanes *lanes // of a room; nil: none

	sound []byte // whole frames, from off on
	off   int
	marks []mark // of the frames in sound, from first on
	first int

	views  [Views][]byte
	shows  uint16 // a bit for each view that is there
	pong   []byte
	ponged bool // pong is to be sent
	ping   bool

	bye   []byte // the close frame
	stats Stats
}

// mark is a frame's size in bytes and its time.
type mark struct {
	size int
	at   time.Duration
}

// appendHead writes the header of an unmasked frame of n bytes.
func appendHead(dst []byte, fin byte, n int) []byte {
	switch {
	case n < 126:
		return append(dst, fin, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, fin, 126), uint16(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, fin, 127), uint64(n))
	}
}

func headSize(n int) int {
	switch {
	case n < 126:
		return 2
	case n <= 0xffff:
		return 4
	default:
		return 10
	}
}

func appendFrame(dst []byte, fin byte, p []byte) []byte {
	return append(appendHead(dst, fin, len(p)), p...)
}

// audio queues one frame, and drops the oldest ones to make room.
func (o *outbox) audio(now time.Duration, head, body []byte) {
	n := len(head) + len(body)
	size := headSize(n) + n
	for o.first < len(o.marks) && len(o.sound)-o.off+size > maxSound {
		o.drop(DropFull)
	}
	if o.off > 0 && len(o.sound)+size > cap(o.sound) {
		o.sound = o.sound[:copy(o.sound, o.sound[o.off:])]
		o.off = 0
	}
	if o.first > 0 && len(o.marks) == cap(o.marks) {
		o.marks = o.marks[:copy(o.marks, o.marks[o.first:])]
		o.first = 0
	}
	o.sound = append(append(appendHead(o.sound, finBinary, n), head...), body...)
	o.marks = append(o.marks, mark{size, now})
}

func (o *outbox) drop(why Drop) {
	o.stats.Drops[why]++
	o.pop()
}

// pop takes the oldest frame out.
func (o *outbox) pop() {
	o.off += o.marks[o.first].size
	if o.first++; o.first == len(o.marks) {
		if cap(o.sound) > keepSound {
			o.sound = nil
		}
		o.sound, o.off = o.sound[:0], 0
		o.marks, o.first = o.marks[:0], 0
	}
}

// reply queues one text message, or returns false when it does not fit.
func (o *outbox) reply(text []byte) bool {
	if len(o.texts)+headSize(len(text))+len(text) > maxReplies {
		return false
	}
	o.texts = appendFrame(o.texts, finText, text)
	return true
}

// close queues the close frame and drops everything that it makes pointless.
func (o *outbox) close(why *Closed) {
	for o.first < len(o.marks) {
		o.drop(DropClosed)
	}
	o.views, o.shows = [Views][]byte{}, 0
	o.ponged, o.ping = false, false
	if o.lanes != nil {
		o.lanes.state = nil
	}
	var body []byte
	if why.Code != Code(ws.StatusNoStatusRcvd) {
		body = ws.NewCloseFrameBody(ws.StatusCode(why.Code), why.Reason[:min(len(why.Reason), 123)])
	}
	o.bye = appendFrame(nil, finClose, body)
}

// discard drops everything.
func (o *outbox) discard() {
	for o.first < len(o.marks) {
		o.drop(DropClosed)
	}
	*o = outbox{stats: o.stats}
}

func (o *outbox) empty() bool {
	return len(o.rest) == 0 && len(o.body) == 0 && len(o.texts) == 0 && o.first == len(o.marks) && len(o.bye) == 0 &&
		!o.ponged && !o.ping && o.shows == 0 && (o.lanes == nil || o.lanes.empty())
}

// flush gives the sink as much as it takes, and returns how much that was.
func (o *outbox) flush(now time.Duration, to sink) (total int, err error) {
	for {
		switch {
		case len(o.rest) > 0:
		case len(o.body) > 0:
			o.rest, o.body = o.body, nil
		case len(o.texts) > 0:
			o.rest, o.texts = o.texts, nil
		case o.ponged:
			o.rest, o.ponged = appendFrame(nil, finPong, o.pong), false
		case o.ping:
			o.rest, o.ping = appendFrame(nil, finPing, nil), false
		case o.first < len(o.marks):
			for o.first < len(o.marks) && now-o.marks[o.first].at > maxAge {
				o.drop(DropStale)
			}
			if o.first == len(o.marks) {
				continue
			}
			n, err := to.try(o.sound[o.off:])
			o.sent(n)
			total += n
			if err != nil || o.first < len(o.marks) || len(o.rest) > 0 {
				return total, err
			}
			continue
		case o.lanes != nil && o.lanes.first < len(o.lanes.control):
			o.takeControl()
		case len(o.bye) > 0:
			o.rest, o.bye = o.bye, nil
		default:
			// A view goes only where nothing is buffered, not even below.
			if shows := o.shows != 0; !shows && (o.lanes == nil || o.lanes.state == nil) || to.busy() {
				return total, nil
			} else if shows {
				o.takeView()
			} else {
				o.takeState()
			}
		}
		n, err := to.try(o.rest)
		if n > 0 {
			o.stats.Writes++
		}
		o.rest = o.rest[n:]
		total += n
		if err != nil || len(o.rest) > 0 {
			return total, err
		}
		o.rest = nil
	}
}

// sent takes n bytes of sound as gone; the rest of a frame that went in part has to follow.
func (o *outbox) sent(n int) {
	if n == 0 {
		return
	}
	o.stats.Writes++
	for n > 0 {
		o.stats.Sent++
		size := o.marks[o.first].size
		if n < size {
			o.rest = append([]byte(nil), o.sound[o.off+n:o.off+size]...)
			n = size
		}
		n -= size
		o.pop()
	}
}

// view puts a view in place of the one before it; nil takes that one back.
func (o *outbox) view(kind int, text []byte) {
	o.views[kind] = text
	o.shows &^= 1 << kind
	if text != nil {
		o.shows |= 1 << kind
	}
}

// takeView makes the first waiting view the next thing to be sent.
func (o *outbox) takeView() {
	kind := bits.TrailingZeros16(o.shows)
	if text := o.views[kind]; len(text) < longView {
		o.rest = appendFrame(nil, finText, text)
	} else {
		o.rest, o.body = appendHead(nil, finText, len(text)), text
	}
	o.view(kind, nil)
}
