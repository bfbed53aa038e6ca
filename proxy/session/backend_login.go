package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// begin looks for the first backend of a newcomer.
func (s *Session) begin() {
	s.route.plan = plan{}
	s.advance()
}

// advance tries the next backend of the list. Names that stand for no server do not end the search. When it has taken
// too long already, only the built-in world is left.
func (s *Session) advance() {
	p, set, list := &s.route.plan, s.set(), s.tryList()
	for _, name := range list {
		if gone := (backend.Server{Name: name}); set.server(name) == nil && !p.has(&gone) {
			p.fail(&gone, failure{EndNoServer, s.because("kick-no-server")})
			s.log.Warn("a server to try is not configured; skipped", "backend", name)
		}
	}
	if p.until.IsZero() {
		p.until = time.Now().Add(set.Fallback.Within)
	}
	spent := p.tried > 0 && (p.tried == set.Fallback.Attempts || time.Now().After(p.until))
	b := s.choose(list, func(b *backend.Server) bool { return !p.has(b) && (b.Limbo || !spent) })
	if b != nil {
		if !b.Limbo {
			p.tried++
		}
		s.connect(b, true)
		return
	}
	f := p.first
	if f == nil {
		f = p.last
	}
	if f == nil {
		f = &failure{EndNoServer, s.closed(list)}
	}
	s.end(f.ending, s.emptied(f.reason))
}

// closed returns why a player got no server of a list although none has failed.
func (s *Session) closed(list []string) reason {
	for _, name := range list {
		switch b := s.set().server(name); {
		case b == nil:
		case !s.admits(b):
			return s.because("kick-restricted", "server", b.Name)
		case s.core.board.Draining(b.Name):
			return s.because("kick-draining", "server", b.Name)
		}
	}
	return s.because("kick-no-server")
}

// emptied returns a reason to leave, with the cause if that is a server that is being emptied.
func (s *Session) emptied(r reason) reason {
	if s.route.draining == "" {
		return r
	}
	return reason{text: s.sayWhy("kick-drained", s.route.draining, r)}
}

// connect dials a backend and logs in there, in parallel to everything else. Its outcome comes back as an event.
// planned tells whether the proxy chose the backend, along the list.
func (s *Session) connect(b *backend.Server, planned bool) {
	cl := &s.client
	s.core.Counters.Dials.Add(1)
	id := backend.Identity{
		Protocol: cl.protocol, Name: cl.name, ID: cl.id, Properties: cl.properties, Key: cl.key,
		Host: cl.host, RawHost: cl.rawHost, Marker: cl.marker, Floodgate: cl.geyser, Port: cl.port, Addr: cl.address.Addr(), SourcePort: cl.address.Port(),
	}
	d := &dialed{server: b, planned: planned}
	s.route.attempt = d
	if s.asksFirst() {
		id.Ask = s.ask
		if cl.out == proto.Login {
			cl.mods.begin()
		}
	}
	at, _ := s.route.where.get()
	s.route.where.set(at, b.Name)
	s.dialing.Go(func() {
		defer s.caught()
		t := s.set().Timeouts
		d.conn, d.err = backend.Dial(s.ctx, *b, id, backend.Timeouts{
			Dial: t.BackendDial, Login: t.BackendLogin,
			Answer: t.Login + time.Second, // slowLogin comes first, and knows better who was slow
		})
		select {
		case s.outcomes <- d:
		case <-s.ctx.Done():
			if d.conn != nil {
				d.conn.Close()
				d.conn.Reader.Release()
			}
		}
	})
}

// arrived handles the outcome of connect.
func (s *Session) arrived(d *dialed) {
	s.route.attempt = nil
	s.core.judge(d.server.Name, d.err, s.asksFirst())
	if d.err != nil {
		s.core.Counters.DialFails.Add(1)
		s.log.Warn("backend refused the player or cannot be reached", "backend", d.server.Name, "error", printable(d.err.Error()))
		s.refused(d.server, s.dialFailure(d), d.planned)
		return
	}
	l := s.newLink(d.server, d.conn)
	l.planned = d.planned
	s.route.inflight = l
	if s.client.out == proto.Login && !s.welcome() {
		return
	}
	if s.client.version.HasConfiguration() {
		s.depart()
		return
	}
	if o := s.observer; o != nil && !s.screen.joined {
		o.Backend(l.name, l.conn.Player)
	}
	l.out = proto.Play
	l.pump.Enter(proto.Play)
	l.pump.Allow(s.set().Timeouts.Read)
	s.timers.within(s.set().Timeouts.BackendJoin, func() {
		s.lost(l, EndBackendTimeout, s.because("backend-slow", "server", l.name))
	})
	s.direct()
	s.listen(l)
}

// listen begins to read a backend.
func (s *Session) listen(l *link) {
	l.started = true
	l.pump.Start(func() { l.conn.Close() })
}

func (s *Session) newLink(b *backend.Server, c *backend.Conn) *link {
	l := &link{name: b.Name, server: b, conn: c}
	l.to = &relay.Outlet{Writer: c.Writer, Threshold: c.Threshold}
	l.pump = s.core.relay.Pump((*owner)(s), proto.Clientbound, c.Reader, c.Threshold)
	c.Writer.SetWriteTimeout(s.set().Timeouts.Write)
	s.sockets.add(c)
	return l
}

// feed sends a backend what the client said before it was there.
func (s *Session) feed(l *link) {
	s.client.facts.feed(s.client.protocol, func(p proto.Packet, body []byte) {
		if id, ok := s.client.version.ID(l.out, proto.Serverbound, p); ok {
			l.to.Append(id, body)
		}
	})
	l.ready = true
	if err := l.to.Flush(); err != nil {
		s.unwritable(l.to, err)
	}
}

// dialFailure puts a failed login on a backend in words for the player. They have no addresses.
func (s *Session) dialFailure(d *dialed) failure {
	var kick *backend.KickError
	switch {
	case errors.As(d.err, &kick):
		return failure{EndKicked, reason{text: kick.Reason}}
	case errors.Is(d.err, errOtherMods):
		return failure{EndBackendLost, s.because("backend-other-mods", "server", d.server.Name)}
	case isTimeout(d.err) || errors.Is(d.err, context.DeadlineExceeded):
		return failure{EndBackendTimeout, s.because("backend-no-answer", "server", d.server.Name)}
	}
	return failure{EndBackendLost, s.because("backend-unreachable", "server", d.server.Name)}
}

// failed goes on after a backend did not take a player who is on none.
func (s *Session) failed(b *backend.Server, f failure) {
	s.route.plan.fail(b, f)
	s.route.hold.miss(b.Name)
	if s.final(f) {
		s.end(f.ending, s.emptied(f.reason))
		return
	}
	s.advance()
}

// lost handles the loss of a backend, whatever the phase. A player who still is on another one stays there. One who is
// not moves on to the next that may take them, as long as the client can follow. Else the reason reaches the client in
// the state it is in.
func (s *Session) lost(l *link, e Ending, r reason) {
	if !s.route.has(l) {
		return
	}
	level := slog.LevelWarn
	if e == EndKicked {
		level = slog.LevelInfo
	}
	s.log.Log(s.ctx, level, "player lost their server", "backend", l.name, "ending", e, "reason", r.String())
	f := failure{e, r}
	if e != EndKicked {
		s.core.board.Doubt(l.name)
	}
	if l == s.route.inflight && s.route.current != nil {
		s.route.inflight = nil
		s.closeLink(l)
		if !s.client.version.HasConfiguration() {
			s.timers.settled()
		}
		s.refused(l.server, f, l.planned)
		return
	}
	crashed := l == s.route.current && e != EndKicked
	if s.core.board.Draining(l.name) {
		s.route.draining = l.name
	}
	if l == s.route.current {
		s.route.current = nil
		_, to := s.route.where.get()
		s.route.where.set("", to)
		s.chain(l)
		if s.route.plan.first == nil {
			s.route.plan.first = &f
		}
		s.notice("lost-server", l.name, r)
	} else {
		s.route.inflight = nil
		s.route.where.set("", "")
		if s.screen.joined { // it had the player already, and the one before is gone
			s.notice("switch-failed", l.name, r)
		}
	}
	s.route.plan.fail(l.server, f)
	s.route.hold.delay(l.name)
	s.release(l)
	if !s.screen.changing() && s.route.inflight == nil {
		s.timers.settled()
	}
	s.direct()
	switch {
	case s.ending != endNone:
	case s.final(f) || crashed && s.set().Fallback.EndOnLoss || !s.movable():
		s.end(e, s.emptied(r))
	case s.route.inflight != nil: // on the way already
		s.depart()
	case s.route.attempt == nil:
		s.advance()
	}
}

// closeLink ends the connection to a backend and its reader, which may be writing to the client just now. A client that
// does not take it within the grace loses its socket.
func (s *Session) closeLink(l *link) {
	l.pump.Stop()
	l.conn.Close()
	s.sockets.remove(l.conn)
	if l.started {
		late := time.AfterFunc(grace, s.kill)
		<-l.pump.Ended()
		late.Stop()
	}
	l.conn.Reader.Release()
}

// unsignable reports whether a backend knows the player by another UUID than the one the chat session is signed for.
func (s *Session) unsignable(l *link) bool {
	return s.client.online && l.server.Forwarding == backend.None
}
