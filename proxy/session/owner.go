package session

import (
	"errors"
	"io"
	"time"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// own runs the owner: from login success to the end everything that happens to the session happens here, one thing at a
// time.
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
		case d := <-s.outcomes:
			s.arrived(d)
		case q := <-s.queries:
			q.verdict <- s.asks(q) // there is room
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
func (s *Session) take(e *relay.Event) {
	v := relay.Handled
	switch {
	case e.Failed != nil:
		s.unwritable(e.Failed, e.Err)
	case e.Err != nil:
		s.finished(e.Pump, e.Err)
	case e.Pump == s.client.pump:
		v = s.fromClient(e)
	default:
		v = s.fromBackend(e)
	}
	e.Pump.Answer(v)
}

// fromClient hands a frame to the handler of the client's state.
func (s *Session) fromClient(e *relay.Event) relay.Verdict {
	if e.Pump.State() != s.client.in {
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

// fromBackend does the same for a backend's frame. It drops frames of a backend that was given up.
func (s *Session) fromBackend(e *relay.Event) relay.Verdict {
	l := s.route.readBy(e.Pump)
	if l == nil {
		return relay.Handled
	}
	if e.Pump.Dest() == nil {
		// The client is in another state than the backend thinks, or still in another one's world. Nobody knows what it
		// would make of this.
		entering := l == s.route.inflight && !s.client.version.HasConfiguration() && (e.Packet == proto.JoinGame || e.Packet == proto.SetCompression)
		if s.greetsFML(l, e) {
			return s.shake(l, e)
		}
		if !entering {
			s.core.Counters.Dropped[proto.Clientbound].Add(1)
			if e.Packet != proto.Disconnect {
				return relay.Handled
			}
		}
	}
	if e.Pump.State() == proto.Config {
		return s.backendConfig(l, e)
	}
	return s.backendPlay(l, e)
}

// finished handles the end of one side's stream.
func (s *Session) finished(p *relay.Pump, err error) {
	var bad frame.Violation
	if p != s.client.pump {
		l := s.route.readBy(p)
		if l == nil {
			return
		}
		ending, why := EndBackendLost, "backend-closed"
		switch {
		case p.Late():
			ending, why = EndBackendTimeout, "backend-silent"
		case errors.Is(err, frame.Unframeable):
			why = "backend-oversized"
			s.log.Error("backend sent a packet that cannot be passed on: set compression.threshold to 256", "backend", l.name)
		case errors.As(err, &bad):
			why = "backend-unreadable"
			s.log.Error("backend broke the protocol", "backend", l.name, "error", err)
		}
		s.lost(l, ending, s.because(why, "server", l.name))
		return
	}
	switch {
	case s.client.mail.orders() != nil: // the watchdog's, or another's: it says why better than the error does
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

// unwritable handles a failed write to one side.
func (s *Session) unwritable(to *relay.Outlet, err error) {
	if to.Writer == s.client.w {
		s.end(unreachable(err), s.because("kick-timeout"))
		return
	}
	switch l := s.route.writtenBy(to); {
	case l == nil:
	case l.pump.Late(): // the watchdog has closed it, and the client's reader noticed first
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
	if err := l.to.Packet(id, body); err != nil {
		s.unwritable(l.to, err)
	}
}

// pass sends a held frame on as the same wire bytes, where they are valid, and reports whether the session goes on. It
// is for frames that must be out before the owner does the next thing.
func (s *Session) pass(e *relay.Event, to *relay.Outlet) bool {
	switch err := e.Pump.Send(e, to); {
	case err == frame.Unframeable:
		s.finished(e.Pump, err)
	case err != nil:
		s.unwritable(to, err)
	}
	return s.ending == endNone
}

// direct decides where frames go by themselves: to the other side whenever both are in the same state. It is called
// after every change of a state.
func (s *Session) direct() {
	if s.greeted {
		s.client.pump.Allow(s.allowance())
	}
	l := s.route.partner()
	s.client.pump.Direct(nil)
	if l == nil {
		return
	}
	if l.ready && l.out == s.client.in && s.client.pump.State() == s.client.in {
		s.client.pump.Direct(l.to)
	}
	if l.pump.State() == s.client.out && !s.foreign(l) {
		l.pump.Direct(s.client.to)
	} else {
		l.pump.Direct(nil)
	}
}

// foreign reports whether l's join game has to be waited for: the client is in another world than l's packets are
// about.
func (s *Session) foreign(l *link) bool {
	return l == s.route.inflight && s.screen.joined && !s.client.version.HasConfiguration()
}

// deliver does the requests of other goroutines that the client's state allows.
func (s *Session) deliver() {
	if o := s.client.mail.orders(); o != nil {
		s.end(o.ending, o.reason)
		return
	}
	for s.ending == endNone {
		l, ok := s.client.mail.next(s.screen.playing) // configuration has no place for most; joining calls again
		if !ok {
			return
		}
		l.do()
	}
}

// owner is a Session in the role that its pumps see.
type owner Session

var _ relay.Owner = (*owner)(nil)

func (o *owner) Version() *proto.Version     { return o.client.version }
func (o *owner) Events() chan<- *relay.Event { return o.events }
func (o *owner) Undecoded(p proto.Packet)    { (*Session)(o).undecoded(p) }
func (o *owner) Panicked(v any)              { (*Session)(o).panicked(v) }

func (o *owner) Concerns(d proto.Dir, channel []byte, size int) bool {
	return (*Session)(o).concerns(d, channel, size)
}

func (o *owner) Observer() relay.Observer {
	if o.observer == nil {
		return nil
	}
	return o.observer
}
