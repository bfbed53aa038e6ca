// Package socket is one WebSocket, server side, over a connection that has been upgraded. It promises that nobody who
// sends to a socket ever waits for it: what a slow peer cannot take is kept within a bound and then dropped, oldest
// sound first, and each drop is counted with its reason. It also promises that a peer can neither send more than the
// limits below in one message, nor flood it with frames that carry no message, nor stay without a sign of life, and
// that a peer which is sent away is told why, once, with a code.
//
// A socket has no goroutine of its own except the one that reads. A sender writes a frame itself, if the peer's last
// write is long enough ago, and otherwise leaves it to a shared [Sweeper], which writes all that has gathered at once:
// the kernel's work is per write, not per frame.
package socket

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gobwas/ws"
)

// Limits of one message of a voice peer, fragments added up.
const (
	MaxBinary = 1292 // bytes
	MaxText   = 1024 // characters (UTF-16 code units)
)

// Limits bound one message of a peer, fragments added up.
type Limits struct {
	Binary int // bytes
	Text   int // characters (UTF-16 code units)
}

// Voice are the limits of voice peers.
var Voice = Limits{MaxBinary, MaxText}

// Timing. A peer is pinged every PingEvery. It is given up when nothing at all came from it for DeadAfter.
const (
	PingEvery = 10 * time.Second
	DeadAfter = 20 * time.Second

	// lingerClean is how long a peer has to answer a close frame, lingerError how long it may read one after it broke
	// the framing. Closing at once would reset the connection and take the close frame with it.
	lingerClean = 2 * time.Second
	lingerError = 500 * time.Millisecond
	// lingerLong is how long a LongHandler has to close.
	lingerLong = 5 * time.Second
)

// Code is the status in a close frame.
type Code uint16

// The codes that this server closes with.
const (
	Normal       Code = 1000 // all is done; there is no reason unless one is given
	ShuttingDown Code = 1001 // the server stops; come back later
	Protocol     Code = 1002 // not a WebSocket peer
	Unsupported  Code = 1003 // a text that is no request
	InvalidData  Code = 1007 // text that is not UTF-8, or too many bad frames
	Policy       Code = 1008 // a room's rules, which it names
	TooBig       Code = 1009 // longer than the limits
	Failed       Code = 1011 // a fault of ours
	Replaced     Code = 4001 // a second connection of the same player
	Left         Code = 4003 // the player left the network
	Flood        Code = 4008 // more than any person sends
)

// Reason returns the text that goes with a code unless another is given.
func (c Code) Reason() string {
	switch c {
	case ShuttingDown:
		return "shutting down"
	case Protocol:
		return "protocol error"
	case Unsupported:
		return "unsupported control message"
	case InvalidData:
		return "invalid data"
	case TooBig:
		return "too big"
	case Failed:
		return "internal error"
	case Replaced:
		return "replaced"
	case Left:
		return "left the network"
	case Flood:
		return "flood"
	}
	return ""
}

// A Closed is the ending of a socket that was closed with a code.
type Closed struct {
	Code   Code // 1005 when the peer gave none
	Reason string
	Peer   bool   // the peer closed, not we
	What   string // with Flood: what the peer sent too much of; the peer is not told
}

// Error implements error.
func (c *Closed) Error() string {
	who := "closed"
	if c.Peer {
		who = "closed by peer"
	}
	why := c.Reason
	if c.What != "" {
		why += " of " + c.What
	}
	return fmt.Sprintf("socket %s: %d %s", who, c.Code, why)
}

// ErrDead is the ending of a socket that heard nothing for [DeadAfter].
var ErrDead = errors.New("socket: no sign of life from the peer")

// Handler takes the peer's messages. Its methods are called from [Socket.Run], one at a time; the bytes are theirs
// until they return.
type Handler interface {
	Binary(p []byte) // bytes within the limits
	Text(p []byte)   // valid UTF-8 within the limits
}

// LongHandler is a [Handler] that is told of a message beyond the limits, and then has a few seconds to close the
// socket. A handler that is none has it closed with [TooBig].
type LongHandler interface {
	Handler
	TooLong()
}

// Socket is one peer. All methods except Run may be called from any goroutine at any time, also after the end, and none
// of them waits for the peer.
type Socket struct {
	conn    net.Conn
	src     io.Reader // reads conn
	sink    sink
	sweep   *Sweeper
	limits  Limits
	gap     time.Duration // gap or gapTLS
	in      inbox
	budgets budgets
	heard   atomic.Int64 // when something came last, on the sweeper's clock

	closing atomic.Bool // Close was called; set with mu held

	mu     sync.Mutex
	outbox outbox
	wrote  time.Duration // the last write that the kernel took something of
	retry  time.Duration // when a full kernel is tried again
	tries  int           // how often in a row it was full
	queued bool          // the sweeper has the socket on its list
	pinged time.Duration
	ended  *Closed // why, once closing
	failed error   // the connection broke, or the peer is dead
}

// New makes a socket of an upgraded connection. br may hold bytes that came after the request, and is not used again. A
// *net.TCPConn, anything with SyscallConn, and a *tls.Conn over [Buffered] are written to directly; any other
// connection gets a goroutine for writing while Run runs.
//
// Run has to be called, as only it closes the connection.
func New(conn net.Conn, br *bufio.Reader, sweep *Sweeper) *Socket {
	s := &Socket{conn: conn, sweep: sweep, sink: sinkFor(conn), limits: Voice, gap: gap, budgets: newBudgets()}
	if _, ok := s.sink.(*buffered); ok {
		s.gap = gapTLS
	}
	s.src = readerFor(conn, s.sink)
	s.in.read = s.fill
	if br != nil {
		s.in.take(br)
	}
	now := sweep.now()
	s.heard.Store(int64(now))
	s.pinged, s.wrote = now, now-s.gap
	return s
}

// SetLimits changes the limits from those of voice, before Run.
func (s *Socket) SetLimits(l Limits) { s.limits = l }

// sinkFor finds the way to write to conn without waiting.
func sinkFor(conn net.Conn) sink {
	switch c := conn.(type) {
	case *tls.Conn:
		if b, ok := c.NetConn().(*buffered); ok && b.takeOver(c) {
			return b
		}
	case syscall.Conn:
		if d := new(direct); d.init(c) == nil {
			return d
		}
	case interface{ NetConn() net.Conn }:
		if c, ok := c.NetConn().(syscall.Conn); ok {
			if d := new(direct); d.init(c) == nil {
				return d
			}
		}
	}
	return newPump(conn)
}

// readerFor finds the way to read conn: past its Read, where that has no bytes of its own to give first.
func readerFor(conn net.Conn, to sink) io.Reader {
	d, ok := to.(*direct)
	if !ok {
		return conn
	}
	switch c := conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return d
	case interface{ Buffered() int }:
		if c.Buffered() == 0 {
			return d
		}
	}
	return conn
}

// RemoteAddr returns the peer's address as the connection knows it.
func (s *Socket) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Run reads until the socket ends, closes the connection and returns why it ended: a *[Closed], [ErrDead], or the fault
// of the connection. The end of ctx closes with [ShuttingDown]. Run may be called once.
func (s *Socket) Run(ctx context.Context, h Handler) error {
	defer s.conn.Close()
	if p, ok := s.sink.(*pump); ok {
		stop := p.start()
		defer stop() // runs before the connection is closed: stop closes it too
	}
	s.sweep.add(s)
	defer s.sweep.remove(s)
	defer context.AfterFunc(ctx, func() { s.Close(ShuttingDown, "") })()

	err := s.serve(h)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
	if s.ended != nil {
		return s.ended
	}
	return s.failed
}

// Close sends a close frame with the code and the reason (at most 123 bytes; "" is the code's own), after the waiting
// replies, and drops everything else that waits. Only the first call counts. Run then ends within two seconds.
func (s *Socket) Close(code Code, reason string) {
	if reason == "" {
		reason = code.Reason()
	}
	s.close(&Closed{Code: code, Reason: reason}, lingerClean)
}

// CloseFlood does as Close with [Flood], for too much of what.
func (s *Socket) CloseFlood(what string) { s.close(flood(what), lingerClean) }

func (s *Socket) close(why *Closed, linger time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil || s.failed != nil {
		return
	}
	s.ended = why
	s.closing.Store(true)
	s.outbox.close(why)
	s.conn.SetReadDeadline(time.Now().Add(linger))
	s.flush(s.sweep.now())
}

// fail ends the socket without a word. s.mu is held.
func (s *Socket) fail(err error) {
	if s.failed == nil {
		s.failed = err
		s.outbox.discard()
		s.conn.Close() // ends the reader
	}
}

// Audio sends one binary message with the bytes of head and body. It copies both. When the peer cannot take it, older
// sound is dropped for it.
func (s *Socket) Audio(head, body []byte) {
	now := s.sweep.now()
	s.mu.Lock()
	if s.ended != nil || s.failed != nil {
		s.outbox.stats.Drops[DropClosed]++
	} else {
		s.outbox.audio(now, head, body)
		s.kick(now)
	}
	s.mu.Unlock()
}

// View sends a text message that shows the present state of something, as soon as nothing else waits for the peer. It
// replaces a former one of that kind (0 to [Views]-1) that still waits. The text must not change afterwards; many
// sockets may be given the same one. A nil text takes back a waiting one.
func (s *Socket) View(kind int, text []byte) {
	now := s.sweep.now()
	s.mu.Lock()
	if s.ended == nil && s.failed == nil {
		s.outbox.view(kind, text)
		s.kick(now)
	}
	s.mu.Unlock()
}

// Waits tells whether the last view of a kind is still to be sent. When it is not, everything given to the socket from
// then on reaches the peer after it.
func (s *Socket) Waits(kind int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outbox.views[kind] != nil
}

// Reply sends a text message that answers a request; replies keep their order. A peer that asks more than it reads is
// closed with [Flood].
func (s *Socket) Reply(text []byte) {
	now := s.sweep.now()
	s.mu.Lock()
	fits := true
	if s.ended == nil && s.failed == nil {
		if fits = s.outbox.reply(text); fits {
			s.kick(now)
		}
	}
	s.mu.Unlock()
	if !fits {
		s.CloseFlood("requests, whose answers it does not read")
	}
}

// Stats returns the counts so far.
func (s *Socket) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outbox.stats
}

// kick writes now, or has the sweeper do it. s.mu is held.
func (s *Socket) kick(now time.Duration) {
	if now-s.wrote >= s.gap && now >= s.retry {
		s.flush(now)
	} else if !s.queued {
		s.queued = true
		s.sweep.schedule(s)
	}
}

// flush hands on as much as the kernel takes, and leaves the rest to the sweeper. s.mu is held.
func (s *Socket) flush(now time.Duration) {
	if s.failed != nil {
		return
	}
	n, err := s.outbox.flush(now, s.sink)
	if n > 0 {
		s.wrote, s.retry, s.tries = now, 0, 0
	}
	if err != nil {
		s.fail(fmt.Errorf("write to socket: %w", err))
		return
	}
	if !s.outbox.empty() || s.sink.busy() {
		if n == 0 {
			// Nothing moves: try less and less often, 20 times a second at last.
			s.tries = min(s.tries+1, 10)
			s.retry = now + time.Duration(s.tries)*sweepEvery
		}
		if !s.queued {
			s.queued = true
			s.sweep.schedule(s)
		}
	}
}

// swept handles the sweeper's turn with a socket on its list.
func (s *Socket) swept(now time.Duration) {
	s.mu.Lock()
	s.queued = false
	if s.failed == nil && (!s.outbox.empty() || s.sink.busy()) {
		s.kick(now)
	}
	s.mu.Unlock()
}

// checked handles the sweeper's turn with every socket: it pings and buries.
func (s *Socket) checked(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed != nil:
	case now-time.Duration(s.heard.Load()) >= DeadAfter:
		s.fail(ErrDead)
	case s.ended == nil && now-s.pinged >= PingEvery:
		s.pinged = now
		s.outbox.ping = true
		s.kick(now)
	}
}

// pong answers the peer's ping; of several that came before there was a chance it answers the newest.
func (s *Socket) pong(payload []byte) {
	now := s.sweep.now()
	s.mu.Lock()
	if s.ended == nil && s.failed == nil {
		s.outbox.pong = append(s.outbox.pong[:0], payload...)
		s.outbox.ponged = true
		s.kick(now)
	}
	s.mu.Unlock()
}

// opcodes of what is sent, with the final bit.
const (
	finText   = 0x80 | byte(ws.OpText)
	finBinary = 0x80 | byte(ws.OpBinary)
	finClose  = 0x80 | byte(ws.OpClose)
	finPing   = 0x80 | byte(ws.OpPing)
	finPong   = 0x80 | byte(ws.OpPong)
)
