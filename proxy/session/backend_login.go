package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// link is a connection to a backend, from its login success on.
type link struct {
	name    string
	server  *backend.Server
	planned bool // along the list, not at somebody's request
	conn    *backend.Conn
	pump    *pump       // reads it; pump.state is how it is decoded
	out     proto.State // how it is encoded
	to      *outlet
	ready   bool // it has heard what the client said before; the client's packets may follow
	alive   keepAlives
	begun   bool      // with a configuration phase, or Forge's handshake: the player is being handed over to it
	started bool      // pump is running
	packs   int       // how often the client has told it its known packs
	since   time.Time // when its first join game came
	cookies questions // it asked the client for
	pings   questions // it sent the client in configuration
}

// plan is how a player without a backend is to be tried on those of the list, which is looked up at each step.
type plan struct {
	failed map[string]string // servers that failed, in lower case, with the address: each is tried once
	first  *failure          // why the player lost the server it was on; nil for a newcomer
	last   *failure
	notice *packet.Text // what the player is told once it is on another server
	tried  int          // of names, besides the built-in world
	until  time.Time    // when to stop trying; zero: nothing was tried yet
}

// fail notes a server not to be tried again.
func (p *plan) fail(b *backend.Server, f failure) {
	if p.failed == nil {
		p.failed = map[string]string{}
	}
	p.failed[strings.ToLower(b.Name)] = b.Address
	p.last = &f
}

// has reports whether a server has failed, where it is now.
func (p *plan) has(b *backend.Server) bool {
	at, ok := p.failed[strings.ToLower(b.Name)]
	return ok && at == b.Address
}

// failure is why a backend did not take the player.
type failure struct {
	ending Ending
	reason reason
}

// dialed is the outcome of dialling.
type dialed struct {
	server  *backend.Server
	planned bool
	conn    *backend.Conn
	err     error
}

// begin looks for the first backend of a newcomer.
func (s *Session) begin() {
	s.plan = plan{}
	s.advance()
}

// advance tries the next backend of the list. Names that stand for no server do not end the search. When it has taken
// too much already only the built-in world is left.
func (s *Session) advance() {
	p, set, list := &s.plan, s.set(), s.tryList()
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

// closed is why a player got no server of a list although none has failed.
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

// emptied is a reason to leave, with the cause where that is a server that is being emptied.
func (s *Session) emptied(r reason) reason {
	if s.draining == "" {
		return r
	}
	return reason{text: s.sayWhy("kick-drained", s.draining, r)}
}

// connect dials a backend and logs in there, beside everything else that goes on. Its outcome comes back as an event.
// planned is whether the proxy chose it, along the list.
func (s *Session) connect(b *backend.Server, planned bool) {
	s.core.Counters.Dials.Add(1)
	id := backend.Identity{
		Protocol: s.protocol, Name: s.name, ID: s.id, Properties: s.properties, Key: s.key,
		Host: s.host, RawHost: s.rawHost, Marker: s.marker, Floodgate: s.geyser, Port: s.port, Addr: s.address.Addr(), SourcePort: s.address.Port(),
	}
	d := &dialed{server: b, planned: planned}
	s.attempt = d
	if s.asksFirst() {
		id.Ask = s.ask
		if s.out == proto.Login {
			s.mods.begin()
		}
	}
	at, _ := s.where.get()
	s.where.set(at, b.Name)
	s.dialing.Go(func() {
		defer s.caught()
		t := s.set().Timeouts
		d.conn, d.err = backend.Dial(s.ctx, *b, id, backend.Timeouts{
			Dial: t.BackendDial, Login: t.BackendLogin,
			Answer: t.Login + time.Second, // slowLogin comes first, and knows better who it was
		})
		select {
		case s.events <- &event{outcome: d}:
		case <-s.ctx.Done():
			if d.conn != nil {
				d.conn.Close()
				d.conn.Reader.Release()
			}
		}
	})
}

// arrived is the outcome of connect.
func (s *Session) arrived(d *dialed) {
	s.attempt = nil
	s.core.judge(d.server.Name, d.err, s.asksFirst())
	if d.err != nil {
		s.core.Counters.DialFails.Add(1)
		s.log.Warn("backend refused the player or cannot be reached", "backend", d.server.Name, "error", printable(d.err.Error()))
		s.refused(d.server, s.dialFailure(d), d.planned)
		return
	}
	l := s.newLink(d.server, d.conn)
	l.planned = d.planned
	s.inflight = l
	if s.out == proto.Login && !s.welcome() {
		return
	}
	if s.version.HasConfiguration() {
		s.depart()
		return
	}
	if o := s.observer; o != nil && !s.screen.joined {
		o.Backend(l.name, l.conn.Player)
	}
	l.out = proto.Play
	l.pump.enter(proto.Play)
	l.pump.mark.allow(s.set().Timeouts.Read)
	s.timers.within(s.set().Timeouts.BackendJoin, func() {
		s.lost(l, EndBackendTimeout, s.because("backend-slow", "server", l.name))
	})
	s.route()
	s.listen(l)
}

// listen begins to read a backend.
func (s *Session) listen(l *link) {
	l.started = true
	l.pump.start(func() { l.conn.Close() })
}

func (s *Session) newLink(b *backend.Server, c *backend.Conn) *link {
	l := &link{name: b.Name, server: b, conn: c}
	l.to = &outlet{w: c.Writer, threshold: c.Threshold, link: l}
	l.pump = newPump(s, proto.Clientbound, c.Reader, c.Threshold, l)
	c.Writer.SetWriteTimeout(s.set().Timeouts.Write)
	s.socketsMu.Lock()
	s.sockets[c] = struct{}{}
	s.socketsMu.Unlock()
	return l
}

// feed tells a backend what the client said before it was there.
func (s *Session) feed(l *link) {
	s.memory.feed(s.protocol, func(p proto.Packet, body []byte) {
		if id, ok := s.version.ID(l.out, proto.Serverbound, p); ok {
			l.to.w.Append(id, body)
		}
	})
	l.ready = true
	if err := l.to.w.Flush(); err != nil {
		s.unwritable(l.to, err)
	}
}

// recompress changes the compression of the connection in both directions.
func (l *link) recompress(threshold int) {
	l.conn.Reader.SetCompression(threshold)
	l.conn.Writer.SetCompression(threshold)
	l.to = &outlet{w: l.to.w, threshold: threshold, link: l}
}

// dialFailure puts a failure to log in on a backend in words for the player. Addresses are not among them.
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

// failed goes on after a backend did not take a player that is on none.
func (s *Session) failed(b *backend.Server, f failure) {
	s.plan.fail(b, f)
	s.hold.miss(b.Name)
	if s.final(f) {
		s.end(f.ending, s.emptied(f.reason))
		return
	}
	s.advance()
}

// lost is the one thing that happens when a backend is gone, whatever the phase: a player who still is on another one
// stays there, and one who is not moves on to the next that may take him, as long as the client can follow; else the
// reason reaches the client in the state it is in.
func (s *Session) lost(l *link, e Ending, r reason) {
	if l != s.inflight && l != s.current {
		return
	}
	level := slog.LevelWarn
	if e == EndKicked {
		level = slog.LevelInfo
	}
	s.log.Log(s.ctx, level, "player lost its server", "backend", l.name, "ending", e, "reason", r.String())
	f := failure{e, r}
	if e != EndKicked {
		s.core.board.Doubt(l.name)
	}
	if l == s.inflight && s.current != nil {
		s.inflight = nil
		s.closeLink(l)
		if !s.version.HasConfiguration() {
			s.timers.settled()
		}
		s.refused(l.server, f, l.planned)
		return
	}
	crashed := l == s.current && e != EndKicked
	if s.core.board.Draining(l.name) {
		s.draining = l.name
	}
	if l == s.current {
		s.current = nil
		_, to := s.where.get()
		s.where.set("", to)
		s.chain(l)
		if s.plan.first == nil {
			s.plan.first = &f
		}
		s.notice("lost-server", l.name, r)
	} else {
		s.inflight = nil
		s.where.set("", "")
		if s.screen.joined { // it had the player already, and the one before is gone
			s.notice("switch-failed", l.name, r)
		}
	}
	s.plan.fail(l.server, f)
	s.hold.delay(l.name)
	s.release(l)
	if !s.screen.changing() && s.inflight == nil {
		s.timers.settled()
	}
	s.route()
	switch {
	case s.ending != endNone:
	case s.final(f) || crashed && s.set().Fallback.EndOnLoss || !s.movable():
		s.end(e, s.emptied(r))
	case s.inflight != nil: // on the way already
		s.depart()
	case s.attempt == nil:
		s.advance()
	}
}

// closeLink ends the connection to a backend and its reader, which may be writing to the client just now. A client
// that does not take it within the grace has lost its socket.
func (s *Session) closeLink(l *link) {
	l.pump.stop()
	l.conn.Close()
	s.socketsMu.Lock()
	delete(s.sockets, l.conn)
	s.socketsMu.Unlock()
	if l.started {
		late := time.AfterFunc(grace, s.kill)
		<-l.pump.ended
		late.Stop()
	}
	l.conn.Reader.Release()
}

// unsignable reports whether a backend knows the player by another UUID than the one the chat session is signed for.
func (s *Session) unsignable(l *link) bool { return s.online && l.server.Forwarding == backend.None }
