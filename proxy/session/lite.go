package session

import (
	"bytes"
	"context"
	"net"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/lite"
)

// forward passes a connection on as it is, from its handshake on, to one of some servers, in the order in which players
// are offered servers.
func (s *Session) forward(names []string, handshake frame.Frame) {
	cl := &s.client
	head := bytes.Clone(cl.r.Raw(handshake.Start, handshake.End))
	if wait := s.core.cfg.LoginGate(cl.address.Addr()); wait > 0 {
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
	for _, name := range names {
		if s.set().server(name) == nil {
			s.log.Warn("a server to pass connections on to is not configured; skipped", "backend", name)
		}
	}
	counters := &s.core.Counters.Lite
	c := lite.Conn{Owner: passed{s, names}, Client: cl.conn, From: cl.address, Counters: counters, Log: s.log}
	var to net.Conn
	var server *backend.Server
	gone := s.whileConnected(ctx, func(ctx context.Context) { server, to = c.Reach(ctx) })
	if to != nil {
		defer to.Close()
	}
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
	s.log.Info("connection passed on", "host", printable(cl.host), "backend", server.Name, "protocol", cl.protocol)
	if err := c.Pass(to, append(head, cl.r.Rest()...)); err != nil {
		s.log.Warn("server took a connection but no bytes", "backend", server.Name, "error", err)
		s.core.board.Doubt(server.Name)
	}
}

// passed is a Session in the role of a connection that is passed on to one of some servers.
type passed struct {
	s     *Session
	names []string
}

func (p passed) Next(untried func(*backend.Server) bool) *backend.Server {
	b := p.s.choose(p.names, func(b *backend.Server) bool { return !b.Limbo && untried(b) })
	if b != nil {
		p.s.core.Counters.Dials.Add(1)
	}
	return b
}

// Dialed notes the connection's server, so that it counts there.
func (p passed) Dialed(ctx context.Context, b *backend.Server, err error) {
	c := p.s.core
	if err == nil {
		c.judge(b.Name, nil, false)
		p.s.route.where.set(b.Name, "")
		return
	}
	c.Counters.DialFails.Add(1)
	if ctx.Err() != nil {
		return
	}
	c.judge(b.Name, err, false)
	p.s.log.Warn("server to pass connections on to cannot be reached", "backend", b.Name, "error", printable(err.Error()))
}

func (p passed) Timeouts() lite.Timeouts {
	t := p.s.set().Timeouts
	return lite.Timeouts{Dial: t.BackendDial, Read: t.Read, Write: t.Write}
}

func (p passed) Poked() <-chan struct{} { return p.s.client.mail.poke }
func (p passed) Panicked(v any)         { p.s.panicked(v) }

func (p passed) Ended() bool {
	o := p.s.client.mail.orders()
	if o != nil {
		p.s.ending = o.ending
	}
	return o != nil
}
