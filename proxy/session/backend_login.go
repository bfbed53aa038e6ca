package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// link is a connection to a backend, from its login success on.
type link struct {
	name    string
	server  *backend.Server
	conn    *backend.Conn
	pump    *pump       // reads it; pump.state is how it is decoded
	out     proto.State // how it is encoded
	to      *outlet
	ready   bool // it has heard what the client said before; the client's packets may follow
	alive   keepAlives
	started bool // pump is running
	packs   int  // how often the client has told it its known packs
}

// plan is where a player without a backend is to be tried.
type plan struct {
	names []string
	next  int
	last  *failure
}

// failure is why a backend did not take the player.
type failure struct {
	ending Ending
	reason reason
}

// dialed is the outcome of dialling.
type dialed struct {
	server *backend.Server
	conn   *backend.Conn
	err    error
}

// begin looks for the first backend of a newcomer.
func (s *Session) begin() {
	s.plan = plan{names: s.set.Try}
	s.advance()
}

// advance tries the next backend of the plan. Names that stand for no server do not end the search.
func (s *Session) advance() {
	for s.plan.next < len(s.plan.names) {
		name := s.plan.names[s.plan.next]
		s.plan.next++
		if b := s.set.server(name); b != nil {
			s.connect(b)
			return
		}
		s.log.Warn("a server to try is not configured; skipped", "backend", name)
	}
	if f := s.plan.last; f != nil {
		s.end(f.ending, f.reason)
		return
	}
	s.end(EndNoServer, plain("No server is available."))
}

// connect dials a backend and logs in there, beside everything else that goes on. Its outcome comes back as an event.
func (s *Session) connect(b *backend.Server) {
	s.core.Counters.Dials.Add(1)
	id := backend.Identity{
		Protocol: s.protocol, Name: s.name, ID: s.id, Properties: s.properties, Key: s.key,
		Host: s.host, RawHost: s.rawHost, Marker: s.marker, Port: s.port, Addr: s.address.Addr(), SourcePort: s.address.Port(),
	}
	s.dialing.Go(func() {
		defer s.caught()
		conn, err := backend.Dial(s.ctx, *b, id, backend.Timeouts{Dial: s.set.Timeouts.BackendDial, Login: s.set.Timeouts.BackendLogin})
		select {
		case s.events <- &event{outcome: &dialed{b, conn, err}}:
		case <-s.ctx.Done():
			if conn != nil {
				conn.Close()
				conn.Reader.Release()
			}
		}
	})
}

// arrived is the outcome of connect.
func (s *Session) arrived(d *dialed) {
	if d.err != nil {
		s.core.Counters.DialFails.Add(1)
		s.log.Warn("backend refused the player or cannot be reached", "backend", d.server.Name, "error", printable(d.err.Error()))
		s.failed(dialFailure(d))
		return
	}
	l := s.newLink(d.server, d.conn)
	s.inflight = l
	if o := s.observer; o != nil {
		o.Backend(l.name)
	}
	if s.version.HasConfiguration() {
		l.out = proto.Login
		s.toBackend(l, proto.LoginAcknowledged, nil)
		l.out = proto.Config
		l.pump.enter(proto.Config)
		l.pump.mark.allow(s.set.Timeouts.BackendConfig)
		s.feed(l)
	} else {
		l.out = proto.Play
		l.pump.enter(proto.Play)
		l.pump.mark.allow(s.set.Timeouts.Read)
		s.within(s.set.Timeouts.BackendJoin, func() {
			s.lost(l, EndBackendTimeout, plain("Server "+l.name+" does not let you in."))
		})
	}
	if s.inflight != l {
		return // a write failed already; it is given up
	}
	s.route()
	l.pump.start(func() { l.conn.Close() })
	l.started = true
}

func (s *Session) newLink(b *backend.Server, c *backend.Conn) *link {
	l := &link{name: b.Name, server: b, conn: c}
	l.to = &outlet{w: c.Writer, threshold: c.Threshold, link: l}
	l.pump = newPump(s, proto.Clientbound, c.Reader, c.Threshold, l)
	c.Writer.SetWriteTimeout(s.set.Timeouts.Write)
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
func dialFailure(d *dialed) failure {
	var kick *backend.KickError
	switch {
	case errors.As(d.err, &kick):
		return failure{EndKicked, reason{text: kick.Reason}}
	case isTimeout(d.err) || errors.Is(d.err, context.DeadlineExceeded):
		return failure{EndBackendTimeout, plain("Server " + d.server.Name + " does not answer.")}
	}
	return failure{EndBackendLost, plain("Cannot connect to server " + d.server.Name + ".")}
}

// failed goes on after a backend did not take the player.
func (s *Session) failed(f failure) {
	s.plan.last = &f
	s.advance()
}

// lost is the one thing that happens when a backend is gone, whatever the phase: a player on the way to it moves on to
// the next one, if the client has not been told too much, else the reason reaches the client in the state it is in.
func (s *Session) lost(l *link, e Ending, r reason) {
	if l != s.inflight && l != s.current {
		return
	}
	level := slog.LevelWarn
	if e == EndKicked {
		level = slog.LevelInfo
	}
	s.log.Log(s.ctx, level, "player lost its server", "backend", l.name, "ending", e, "reason", r.String())
	again := l == s.inflight && s.fresh(l)
	if l == s.current {
		s.current = nil
	} else {
		s.inflight = nil
	}
	s.bundle = s.bundle || l.pump.bundle.Load()
	s.closeLink(l)
	s.stalePacks += max(l.pump.packs-l.packs, 0)
	s.settled()
	s.route()
	if again {
		s.failed(failure{e, r})
	} else {
		s.end(e, r)
	}
}

// fresh reports whether another backend can take over from one that has not sent its join game. In configuration the
// client must not have got registries already, since 1.20.5 it does not accept their entries twice; and once it was
// told that the configuration is finished only a join game can follow.
func (s *Session) fresh(l *link) bool {
	if !s.version.HasConfiguration() {
		return true
	}
	return s.in == proto.Config && s.out == proto.Config && !(l.pump.registry.Load() && s.protocol >= proto.V1_20_5)
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
