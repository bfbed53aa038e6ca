// Package lite passes connections on to a server as they are.
//
// It does not look at what goes by: nobody logs in here, so there is no player and no unknown version. A side may be
// silent for as long as it likes, but must take what is sent to it.
package lite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Owner decides for one connection.
type Owner interface {
	// Next chooses a server to dial among those that untried allows; nil: there is none.
	Next(untried func(*backend.Server) bool) *backend.Server
	// Dialed is called with the outcome. When ctx has ended, an error says nothing about the server.
	Dialed(ctx context.Context, b *backend.Server, err error)
	// Timeouts returns those in force. It is called at each wait.
	Timeouts() Timeouts
	// Poked returns a channel that tells when to call Ended.
	Poked() <-chan struct{}
	// Ended reports whether the connection has to end.
	Ended() bool
	// Panicked ends the connection after a panic, whose value this is. It is called with the stack of the panic.
	Panicked(v any)
}

// Timeouts bound the waits of a connection.
type Timeouts struct {
	Dial  time.Duration
	Read  time.Duration // for the second side to finish, once the first has
	Write time.Duration // no byte taken by a side that has something to take
}

// Counters count connections that are passed on. Read them at any time.
type Counters struct {
	Connections, Failed atomic.Uint64    // passed on; refused since no server could be reached
	Open                atomic.Int64     // of the first, those that are open
	Bytes               [2]atomic.Uint64 // by proto.Dir; of a connection that is open it may lag behind
}

// grace bounds what is under way once one side is broken.
const grace = 2 * time.Second

// Conn is a client's connection that is to be passed on.
type Conn struct {
	Owner    Owner
	Client   net.Conn
	From     netip.AddrPort // where the client is
	Counters *Counters
	Log      *slog.Logger
}

// Reach connects to the first server that can be reached, trying each once; nil: none can, before ctx ends.
func (c *Conn) Reach(ctx context.Context) (*backend.Server, net.Conn) {
	tried := map[string]bool{}
	for {
		b := c.Owner.Next(func(b *backend.Server) bool { return !tried[strings.ToLower(b.Name)] })
		if b == nil {
			return nil, nil
		}
		tried[strings.ToLower(b.Name)] = true
		to, err := b.Open(ctx, c.From, c.Owner.Timeouts().Dial)
		c.Owner.Dialed(ctx, b, err)
		switch {
		case err == nil:
			return b, to
		case ctx.Err() != nil:
			return nil, nil
		}
	}
}

// Pass gives a server what the client has said so far, and then joins the two until both have said all they had to.
// When one side has closed, the other may still finish. When one is broken, what was under way gets a moment. An error
// says that the server took nothing at all.
func (c *Conn) Pass(to net.Conn, head []byte) error {
	c.Counters.Connections.Add(1)
	c.Counters.Open.Add(1)
	defer c.Counters.Open.Add(-1)
	to.SetWriteDeadline(time.Now().Add(c.Owner.Timeouts().Write))
	n, err := to.Write(head)
	c.Counters.Bytes[proto.Serverbound].Add(uint64(n))
	if err != nil {
		return err
	}
	c.pipe(to)
	return nil
}

func (c *Conn) pipe(to net.Conn) {
	ended := make(chan error, 2)
	pour := func(dst, src net.Conn, n *atomic.Uint64) {
		var err error
		defer func() { ended <- err }()
		defer func() {
			if v := recover(); v != nil {
				c.Owner.Panicked(v)
			}
		}()
		err = c.pour(dst, src, n)
	}
	go pour(to, c.Client, &c.Counters.Bytes[proto.Serverbound])
	go pour(c.Client, to, &c.Counters.Bytes[proto.Clientbound])
	hangUp := func() {
		c.Client.Close()
		to.Close()
	}
	var late <-chan time.Time
	for open := 2; open > 0; {
		select {
		case err := <-ended:
			open--
			if wait := c.Owner.Timeouts().Read; late == nil {
				if err != nil {
					c.Log.Debug("a connection that is passed on broke", "error", err)
					wait = grace
				}
				late = time.After(wait)
			}
		case <-late:
			hangUp()
		case <-c.Owner.Poked():
			if c.Owner.Ended() { // there is no way to tell the client why
				hangUp()
			}
		}
	}
}

// pour copies bytes, within the kernel where both ends are sockets, until src ends, and passes the end on. It cannot
// see how long a side leaves bytes lying, so reading is interrupted once in a write timeout, and a write that is under
// way then has one more.
func (c *Conn) pour(dst, src net.Conn, n *atomic.Uint64) error {
	for {
		begun, patience := time.Now(), c.Owner.Timeouts().Write
		src.SetReadDeadline(begun.Add(patience))
		dst.SetWriteDeadline(begun.Add(2 * patience))
		m, err := io.Copy(dst, src)
		n.Add(uint64(m))
		var timeout net.Error
		switch {
		case err == nil:
			if c, ok := dst.(interface{ CloseWrite() error }); ok {
				return c.CloseWrite()
			}
			return nil
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return err
		case time.Since(begun) >= 2*patience:
			return errors.New("what was sent was not taken in time")
		}
	}
}
