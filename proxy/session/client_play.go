package session

import (
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// clientPlay decides about a packet of the client in play.
func (s *Session) clientPlay(e *relay.Event) relay.Verdict {
	switch e.Packet {
	case proto.ClientInformation:
		return s.information(e)
	case proto.CustomPayload:
		if e.Channel != "" {
			return s.clientMessage(e)
		}
	case proto.KeepAlive:
		return s.answered(e)
	case proto.ConfigurationAcknowledged:
		return s.reconfiguring(e)
	case proto.CookieResponse:
		return s.replied(e, cookieKey(e.Body), func(l *link) *questions { return &l.cookies })
	case proto.ResourcePackReceive:
		return s.packAnswered(e)
	case proto.ChatSessionUpdate:
		// A client begins a new session at each join game, and tells; it must not be told for it on a switch, since its
		// old session counts the messages that the server it left has seen.
		if l := s.route.partner(); l != nil && s.unsignable(l) {
			// The session is signed for the account's UUID; a backend that knows the player by another would kick.
			return relay.Handled
		}
	}
	if e.Pump.Dest() != nil {
		return s.hooked(e)
	}
	s.core.Counters.Dropped[proto.Serverbound].Add(1)
	return relay.Handled
}

// reconfiguring handles the client's answer to start configuration: its next packet is one of the configuration state.
func (s *Session) reconfiguring(e *relay.Event) relay.Verdict {
	if !s.screen.awaitStart || len(e.Body) != 0 {
		return s.violation("acknowledged a configuration that nobody started")
	}
	s.screen.awaitStart = false
	s.answeredChange()
	s.client.in = proto.Config
	s.client.pump.Enter(proto.Config)
	s.clearEffects()
	l := s.route.partner()
	switch {
	case l == nil:
	case l.out == proto.Play: // it began the configuration
		s.toBackend(l, proto.ConfigurationAcknowledged, nil)
		l.out = proto.Config
	case !l.started: // it waits for the client
		s.direct()
		s.listen(l)
		return relay.Handled
	}
	s.direct()
	return relay.Handled
}
