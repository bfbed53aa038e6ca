package serve

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/walk"
	"github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/handshake/budget"
	"github.com/earshot-mc/earshot/handshake/socket"
)

// Conn is a connection to a client. Its methods must not block, and may be called from any goroutine.
type Conn interface {
	// Queue sends a binary message behind those that wait. When too many wait, it drops the oldest one of the lowest
	// rank and returns that rank; -1: none.
	Queue(frame []byte, rank int) (dropped int)
	Close(code socket.Code, reason string)
}

// session is one client. It takes the client's messages one at a time.
type session struct {
	counts Counts
	area   *walk.Area
	room   *room // nil: it never began
	conn   Conn
	late   *time.Timer // closes the connection if there was no Hello
	closed atomic.Bool

	// The reader's.
	budget budget.Budget
	avatar *walk.Avatar // nil before Hello
}

// close closes the connection, the first time.
func (k *session) close(code socket.Code, reason string) {
	if !k.closed.Swap(true) {
		k.conn.Close(code, reason)
	}
}

// Text implements [socket.Handler]: the protocol has no texts.
func (k *session) Text(p []byte) {
	if len(p) > wire.MaxMessage {
		k.close(socket.TooBig, "")
		return
	}
	k.counts.Message("malformed")
	k.close(socket.InvalidData, "messages are binary")
}

// Binary implements [socket.Handler].
func (k *session) Binary(p []byte) {
	if k.closed.Load() {
		return
	}
	if !k.budget.Take(time.Now(), 1) {
		k.close(socket.Policy, "flood")
		return
	}
	m, err := wire.ParseClient(p)
	var fault *wire.Fault
	if errors.As(err, &fault) {
		k.counts.Message("malformed")
		k.close(socket.Code(fault.Ending), fault.What)
		return
	}
	switch m := m.(type) {
	case wire.Hello:
		k.counts.Message("hello")
		k.hello()
	case wire.Input:
		k.counts.Message("input")
		if k.avatar == nil {
			k.close(socket.Protocol, "hello expected")
		} else if !k.avatar.Input(m) {
			k.counts.Ignored("old_sequence")
		}
	case wire.Ping:
		k.counts.Message("ping")
		if k.avatar == nil {
			k.close(socket.Protocol, "hello expected")
			return
		}
		k.queue(wire.Pong{Clock: m.Clock, Tick: k.area.Tick()}.Append(nil), rankPong)
	case wire.Unknown:
		k.counts.Message("unknown")
		if m.Misrouted() {
			k.counts.Ignored("misrouted")
		} else {
			k.counts.Ignored("unknown")
		}
	}
}

// hello lets the guest in. The Welcome is queued before anything else can be.
func (k *session) hello() {
	if k.avatar != nil {
		k.close(socket.Protocol, "hello was said before")
		return
	}
	k.late.Stop()
	v, err := k.area.Enter()
	if err != nil {
		k.close(socket.Policy, err.Error())
		return
	}
	k.avatar = v
	w, h := k.area.Size()
	k.queue(wire.Welcome{
		Version: wire.Version, Own: v.ID, TickRate: byte(k.area.Config().TickRate), Width: float32(w), Height: float32(h),
	}.Append(nil), rankWelcome)
	v.Watch(k)
}

// Snapshot implements [walk.Receiver].
func (k *session) Snapshot(frame []byte) { k.queue(frame, rankSnapshot) }

func (k *session) queue(frame []byte, rank int) {
	switch k.conn.Queue(frame, rank) {
	case rankSnapshot:
		k.counts.Dropped("snapshot")
	case rankPong:
		k.counts.Dropped("pong")
	}
}
