package session

import (
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// backendConfig decides about a packet of a backend in configuration.
func (s *Session) backendConfig(l *link, e *relay.Event) relay.Verdict {
	switch e.Packet {
	case proto.KeepAlive:
		return s.asked(l, e)
	case proto.CustomPayload:
		if e.Channel != "" {
			return s.backendMessage(l, e)
		}
	case proto.Disconnect:
		s.lost(l, EndKicked, kicked(s.client.version.Protocol, proto.Config, e.Body))
		return relay.Handled
	case proto.FinishConfiguration:
		return s.finishing(l, e)
	case proto.Ping:
		l.pings.ask(string(e.Body))
	case proto.CookieRequest, proto.StoreCookie:
		return s.cookie(l, e)
	case proto.Transfer:
		return s.transferred(l)
	case proto.ResourcePackSend, proto.AddResourcePack:
		return s.packPushed(l, e)
	case proto.RemoveResourcePack:
		return s.packRemoved(e)
	}
	return relay.Forward
}

// finishing handles finish configuration: everything after it, from the backend and to the client, is play.
func (s *Session) finishing(l *link, e *relay.Event) relay.Verdict {
	if s.screen.awaitEnd {
		return relay.Handled
	}
	if s.unloadPacks(); !s.pass(e, s.client.to) {
		return relay.Handled
	}
	s.client.out = proto.Play
	s.screen.awaitEnd = true
	l.pump.Enter(proto.Play)
	l.pump.Allow(s.set().Timeouts.Read)
	s.timers.within(s.set().Timeouts.ConfigAnswer, s.stuck)
	s.direct()
	return relay.Handled
}

// stuck ends a session whose client does not acknowledge a change of state.
func (s *Session) stuck() {
	s.end(EndUnanswered, s.because("kick-unanswered"))
}

// asked handles a backend's keep-alive. It notes the question before the client can answer it.
func (s *Session) asked(l *link, e *relay.Event) relay.Verdict {
	id, err := packet.ParseKeepAlive(s.client.version.Protocol, e.Body)
	if err != nil {
		s.undecoded(proto.KeepAlive)
		return relay.Forward
	}
	l.alive.ask(id, l.pump.State(), time.Now())
	return relay.Forward
}
