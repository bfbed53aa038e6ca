package session

import (
	"errors"
	"io"
	"time"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// own is the owner: from login success to the end all that happens to the session happens here, one thing at a time.
func (s *Session) own() {
	s.timers.clock = time.NewTimer(time.Hour)
	defer s.timers.clock.Stop()
	s.timers.nextAlive = time.Now().Add(s.aliveEvery())
	if s.client.in == proto.Login {
		s.timers.deadline = deadline{s.timers.born.Add(s.set().Timeouts.Login), s.slowLogin}
	}
	if s.client.in == proto.Play || s.client.out == proto.Login {
		s.begin()
	}
	s.deliver() // an order to leave may have come during the login
	for s.ending == endNone {
		s.arm()
		select {
		case e := <-s.events:
			s.take(e)
		case <-s.client.mail.poke:
			s.deliver()
		case <-s.timers.clock.C:
			s.tick()
		}
	}
}

func (s *Session) slowLogin() {
	s.end(EndHandshakeTimeout, translated("multiplayer.disconnect.slow_login"))
}

// take handles one event and lets the pump go on.
func (s *Session) take(e *event) {
	switch {
	case e.outcome != nil:
		s.arrived(e.outcome)
		return
	case e.query != nil:
		e.query.verdict <- s.asks(e.query) // there is room
		return
	}
	v := handled
	switch {
	case e.failed != nil:
		s.unwritable(e.failed, e.err)
	case e.err != nil:
		s.finished(e.pump, e.err)
	case e.pump.dir == proto.Serverbound:
		v = s.fromClient(e)
	default:
		v = s.fromBackend(e)
	}
	e.pump.reply <- v // there is room: a pump asks one thing at a time
}

// fromClient hands a frame to the handler of the state in which the client sent it.
func (s *Session) fromClient(e *event) verdict {
	if e.pump.state != s.client.in {
		return s.catchUp(e)
	}
	switch s.client.in {
	case proto.Login:
		return s.clientLogin(e)
	case proto.Config:
		return s.clientConfig(e)
	default:
		return s.clientPlay(e)
	}
}

// fromBackend likewise. What a backend that was given up still had to say is dropped.
func (s *Session) fromBackend(e *event) verdict {
	l := e.pump.link
	if !s.route.has(l) {
		return handled
	}
	if e.pump.dest.Load() == nil {
		// The client is in another state than the backend thinks, or still in another one's world. There is no telling
		// what it would make of this.
		entering := l == s.route.inflight && !s.client.version.HasConfiguration() && (e.packet == proto.JoinGame || e.packet == proto.SetCompression)
		if s.greetsFML(l, e) {
			return s.shake(l, e)
		}
		if !entering {
			s.core.Counters.Dropped[proto.Clientbound].Add(1)
			if e.packet != proto.Disconnect {
				return handled
			}
		}
	}
	if e.pump.state == proto.Config {
		return s.backendConfig(l, e)
	}
	return s.backendPlay(l, e)
}

// finished is the end of one side's stream.
func (s *Session) finished(p *pump, err error) {
	var bad frame.Violation
	if p.link != nil {
		if !s.route.has(p.link) {
			return
		}
		ending, why := EndBackendLost, "backend-closed"
		switch {
		case p.mark.late.Load():
			ending, why = EndBackendTimeout, "backend-silent"
		case errors.Is(err, frame.Unframeable):
			why = "backend-oversized"
			s.log.Error("backend sent a packet that cannot be passed on: set compression.threshold to 256", "backend", p.link.name)
		case errors.As(err, &bad):
			why = "backend-unreadable"
			s.log.Error("backend broke the protocol", "backend", p.link.name, "error", err)
		}
		s.lost(p.link, ending, s.because(why, "server", p.link.name))
		return
	}
	switch {
	case s.client.mail.orders() != nil: // the watchdog's, or whoever's: it says why better than the error does
		s.deliver()
	case errors.As(err, &bad):
		s.violation("%s", string(bad))
	case errors.Is(err, io.EOF):
		s.end(EndLeft, plain(""))
	default:
		s.log.Debug("client connection broke", "error", err)
		s.end(EndLeft, plain(""))
	}
}

// unwritable is a failed write to one side.
func (s *Session) unwritable(to *outlet, err error) {
	if to.link == nil {
		s.end(unreachable(err), s.because("kick-timeout"))
		return
	}
	l := to.link
	switch {
	case !s.route.has(l):
	case l.pump.mark.late.Load(): // the watchdog has closed it, and the client's reader noticed first
		s.lost(l, EndBackendTimeout, s.because("backend-silent", "server", l.name))
	default:
		s.lost(l, EndBackendLost, s.because("backend-broken", "server", l.name))
	}
}

// toClient sends a packet of the state s.out.
func (s *Session) toClient(id int32, body []byte) {
	if err := s.client.w.Packet(id, body); err != nil {
		s.unwritable(s.client.to, err)
	}
}

// toBackend sends a packet of the state l.out.
func (s *Session) toBackend(l *link, p proto.Packet, body []byte) {
	id, ok := s.client.version.ID(l.out, proto.Serverbound, p)
	if !ok {
		return
	}
	if err := l.to.w.Packet(id, body); err != nil {
		s.unwritable(l.to, err)
	}
}

// pass sends a held frame on as the wire bytes that it is, where they are valid, and reports whether the session goes
// on. It is for frames that must be out before the owner does the next thing.
func (s *Session) pass(e *event, to *outlet) bool {
	if !frame.Passes(e.frame, e.pump.threshold, to.threshold) && !frame.Fits(e.frame.Size(), to.threshold) {
		s.finished(e.pump, frame.Unframeable)
	} else if err := e.pump.send(e, to); err != nil {
		s.unwritable(to, err)
	}
	return s.ending == endNone
}

// direct decides where frames go without being asked about: to the other side whenever both are in the same state. It is
// called after every change of a state.
func (s *Session) direct() {
	if s.greeted {
		s.client.pump.mark.allow(s.allowance())
	}
	l := s.route.partner()
	s.client.pump.dest.Store(nil)
	if l == nil {
		return
	}
	if l.ready && l.out == s.client.in && s.client.pump.state == s.client.in {
		s.client.pump.dest.Store(l.to)
	}
	if l.pump.state == s.client.out && !s.foreign(l) {
		l.pump.dest.Store(s.client.to)
	} else {
		l.pump.dest.Store(nil)
	}
}

// foreign reports whether l's join game has to be waited for: the client is in another world than l's packets are about.
func (s *Session) foreign(l *link) bool {
	return l == s.route.inflight && s.screen.joined && !s.client.version.HasConfiguration()
}

// deliver does what other goroutines have asked for, as far as the client is in a state for it.
func (s *Session) deliver() {
	if o := s.client.mail.orders(); o != nil {
		s.end(o.ending, o.reason)
		return
	}
	for s.ending == endNone {
		l, ok := s.client.mail.next(s.screen.playing) // the configuration has no place for most; joining calls again
		if !ok {
			return
		}
		l.do()
	}
}
