package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// forward passes a connection on as it is, from its handshake on, to one of some servers, in the order in which players
// are offered servers. What goes by then is not looked at: nobody logs in here, so there is no player and no version that
// is unknown.
func (s *Session) forward(names []string, handshake frame.Frame) {
	head := bytes.Clone(s.client.r.Raw(handshake.Start, handshake.End))
	if wait := s.core.cfg.LoginGate(s.client.address.Addr()); wait > 0 {
		s.tooOften(wait)
		return
	}
	s.core.cfg.Pending.Busy(&s.place)
	if !s.patience(s.set().Timeouts.Login) {
		s.broke(nil)
		return
	}
	ctx, cancel := context.WithDeadline(s.ctx, s.timers.born.Add(s.set().Timeouts.Login))
	defer cancel()
	var to net.Conn
	var server *backend.Server
	gone := s.whileConnected(ctx, func(ctx context.Context) { server, to = s.reach(ctx, names) })
	if to != nil {
		defer to.Close()
	}
	counters := &s.core.Counters.Lite
	switch {
	case gone != nil:
		s.broke(gone)
		return
	case to == nil:
		counters.Failed.Add(1)
		s.refuse(EndNoServer, s.because("kick-no-server"))
		return
	}
	s.sockets.add(to)
	s.core.cfg.Pending.Leave(&s.place)
	s.ending = EndForwarded
	counters.Connections.Add(1)
	counters.Open.Add(1)
	defer counters.Open.Add(-1)
	s.log.Info("connection passed on", "host", printable(s.client.host), "backend", server.Name, "protocol", s.client.protocol)

	to.SetWriteDeadline(time.Now().Add(s.set().Timeouts.Write))
	head = append(head, s.client.r.Rest()...)
	n, err := to.Write(head)
	counters.Bytes[proto.Serverbound].Add(uint64(n))
	if err != nil {
		s.log.Warn("server took a connection but no bytes", "backend", server.Name, "error", err)
		s.core.board.Doubt(server.Name)
		return
	}
	s.pipe(to)
}

// reach connects to the first server that can be reached, each being tried once; nil: none can. Where a connection went is
// noted, so that it counts among those who are there.
func (s *Session) reach(ctx context.Context, names []string) (*backend.Server, net.Conn) {
	for _, name := range names {
		if s.set().server(name) == nil {
			s.log.Warn("a server to pass connections on to is not configured; skipped", "backend", name)
		}
	}
	tried := map[string]bool{}
	for {
		b := s.choose(names, func(b *backend.Server) bool { return !b.Limbo && !tried[strings.ToLower(b.Name)] })
		if b == nil {
			return nil, nil
		}
		tried[strings.ToLower(b.Name)] = true
		s.core.Counters.Dials.Add(1)
		to, err := b.Open(ctx, s.client.address, s.set().Timeouts.BackendDial)
		if err == nil {
			s.core.judge(b.Name, nil, false)
			s.route.where.set(b.Name, "")
			return b, to
		}
		s.core.Counters.DialFails.Add(1)
		if ctx.Err() != nil { // says nothing about the server
			return nil, nil
		}
		s.core.judge(b.Name, err, false)
		s.log.Warn("server to pass connections on to cannot be reached", "backend", b.Name, "error", printable(err.Error()))
	}
}

// pipe joins the client and a server until both have said all they had to. When one side has closed, the other may still
// finish; when one is broken, what was under way gets a moment.
func (s *Session) pipe(to net.Conn) {
	bytes := &s.core.Counters.Lite.Bytes
	ended := make(chan error, 2)
	pour := func(dst, src net.Conn, n *atomic.Uint64) {
		var err error
		defer func() { ended <- err }()
		defer s.caught()
		err = s.pour(dst, src, n)
	}
	go pour(to, s.client.conn, &bytes[proto.Serverbound])
	go pour(s.client.conn, to, &bytes[proto.Clientbound])
	hangUp := func() {
		s.client.conn.Close()
		to.Close()
	}
	var late <-chan time.Time
	for open := 2; open > 0; {
		select {
		case err := <-ended:
			open--
			if wait := s.set().Timeouts.Read; late == nil {
				if err != nil {
					s.log.Debug("a connection that is passed on broke", "error", err)
					wait = grace
				}
				late = time.After(wait)
			}
		case <-late:
			hangUp()
		case <-s.client.mail.poke:
			if o := s.client.mail.orders(); o != nil { // there is no way to tell the client why
				s.ending = o.ending
				hangUp()
			}
		}
	}
}

// pour copies bytes, within the kernel where both ends are sockets, until src is at its end, which it passes on. A side
// may be silent for as long as it likes, but not leave what is sent to it lying: since time spent on that cannot be seen
// from here, reading is interrupted once in a write timeout, and a write that is under way then has one more.
func (s *Session) pour(dst, src net.Conn, n *atomic.Uint64) error {
	for {
		begun, patience := time.Now(), s.set().Timeouts.Write
		src.SetReadDeadline(begun.Add(patience))
		dst.SetWriteDeadline(begun.Add(2 * patience))
		m, err := io.Copy(dst, src)
		n.Add(uint64(m))
		switch {
		case err == nil:
			if c, ok := dst.(interface{ CloseWrite() error }); ok {
				return c.CloseWrite()
			}
			return nil
		case !isTimeout(err):
			return err
		case time.Since(begun) >= 2*patience:
			return errors.New("what was sent was not taken in time")
		}
	}
}
