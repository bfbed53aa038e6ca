package session

import (
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// clientConfig decides about a packet of the client in configuration.
func (s *Session) clientConfig(e *relay.Event) relay.Verdict {
	switch e.Packet {
	case proto.ClientInformation:
		return s.information(e)
	case proto.CustomPayload:
		if e.Channel != "" {
			return s.clientMessage(e)
		}
	case proto.KeepAlive:
		return s.answered(e)
	case proto.FinishConfiguration:
		return s.configured(e)
	case proto.Pong:
		return s.replied(e, string(e.Body), func(l *link) *questions { return &l.pings })
	case proto.CookieResponse:
		return s.replied(e, cookieKey(e.Body), func(l *link) *questions { return &l.cookies })
	case proto.ResourcePackReceive:
		return s.packAnswered(e)
	case proto.SelectKnownPacks:
		if s.screen.stalePacks > 0 { // asked by a backend that is gone; the next one would not understand
			s.screen.stalePacks--
			s.core.Counters.Dropped[proto.Serverbound].Add(1)
			return relay.Handled
		}
		if l := s.route.partner(); l != nil {
			l.packs++
		}
	}
	if e.Pump.Dest() != nil {
		return relay.Forward
	}
	// Every other packet of this state answers a backend, and the asking one is gone.
	s.core.Counters.Dropped[proto.Serverbound].Add(1)
	return relay.Handled
}

// configured handles the client's answer to finish configuration: from here on it speaks play, and so do we to the
// backend. The backend's join game may have come before.
func (s *Session) configured(e *relay.Event) relay.Verdict {
	if !s.screen.awaitEnd || len(e.Body) != 0 {
		return s.violation("acknowledged a configuration that is not finished")
	}
	s.screen.awaitEnd = false
	s.client.in = proto.Play
	s.client.pump.Enter(proto.Play)
	s.answeredChange()
	if l := s.route.partner(); l != nil && l.pump.State() == proto.Play && l.out == proto.Config {
		s.toBackend(l, proto.FinishConfiguration, nil)
		l.out = proto.Play
		if l == s.route.partner() && !s.screen.playing && !s.screen.awaitStart {
			s.timers.within(s.set().Timeouts.BackendJoin, func() { s.lost(l, EndBackendTimeout, s.because("backend-slow", "server", l.name)) })
		}
	}
	s.direct()
	s.depart()
	return relay.Handled
}

// answeredChange ends the wait for the client once it has acknowledged every change of state.
func (s *Session) answeredChange() {
	if !s.screen.changing() {
		s.timers.settled()
	}
}

// information handles the client's settings. The backend hears them now, and later ones when they join it.
func (s *Session) information(e *relay.Event) relay.Verdict {
	if len(e.Body) <= maxInformation {
		s.client.facts.information = append([]byte(nil), e.Body...)
		s.list(e.Body)
	}
	return s.forwardOrWait(e, true)
}

// forwardOrWait passes a packet on, or keeps it for the next backend.
func (s *Session) forwardOrWait(e *relay.Event, stated bool) relay.Verdict {
	if e.Pump.Dest() != nil {
		return relay.Forward
	}
	if s.screen.joined && s.client.fml != fmlUnderWay {
		// It belongs to the world that the client is leaving. Standing facts are kept for the next backend.
		if l := s.route.partner(); stated && l != nil && l.ready {
			s.toBackend(l, e.Packet, e.Body)
			return relay.Handled
		}
		s.core.Counters.Dropped[proto.Serverbound].Add(1)
		return relay.Handled
	}
	if !s.client.facts.wait(e.Packet, e.Body, stated) {
		s.core.Counters.Overflows.Add(1)
		s.end(EndOverflow, s.because("kick-overflow"))
	}
	return relay.Handled
}

// answered handles the client's answer to a keep-alive. It goes to the asking backend, if that still waits for it in
// the same state; everything else is swallowed.
func (s *Session) answered(e *relay.Event) relay.Verdict {
	id, err := packet.ParseKeepAlive(s.client.version.Protocol, e.Body)
	if err != nil {
		s.undecoded(proto.KeepAlive)
		return relay.Handled
	}
	if _, ours := s.timers.alive.answer(id); ours {
		return relay.Handled
	}
	for l := range s.route.links() {
		q, ok := l.alive.answer(id)
		if !ok {
			continue
		}
		s.client.ping.Store(int64(time.Since(q.at)))
		if l.out != s.client.in || q.state != s.client.in {
			break // the backend would take it for an answer to something else
		}
		return s.give(l, e)
	}
	s.core.Counters.Dropped[proto.Serverbound].Add(1)
	return relay.Handled
}
