package session

import (
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// backendConfig decides what a backend sends while it is in configuration.
func (s *Session) backendConfig(l *link, e *event) verdict {
	switch e.packet {
	case proto.KeepAlive:
		return s.asked(l, e)
	case proto.CustomPayload:
		if e.channel != "" {
			return s.backendMessage(l, e)
		}
	case proto.Disconnect:
		s.lost(l, EndKicked, kicked(s.client.version.Protocol, proto.Config, e.body))
		return handled
	case proto.FinishConfiguration:
		return s.finishing(l, e)
	case proto.Ping:
		l.pings.ask(string(e.body))
	case proto.CookieRequest, proto.StoreCookie:
		return s.cookie(l, e)
	case proto.Transfer:
		return s.transferred(l)
	case proto.ResourcePackSend, proto.AddResourcePack:
		return s.packPushed(l, e)
	case proto.RemoveResourcePack:
		return s.packRemoved(e)
	}
	return forward
}

// finishing is finish configuration: what comes after it, from the backend and to the client, is play.
func (s *Session) finishing(l *link, e *event) verdict {
	if s.screen.awaitEnd {
		return handled
	}
	if s.unloadPacks(); !s.pass(e, s.client.to) {
		return handled
	}
	s.client.out = proto.Play
	s.screen.awaitEnd = true
	l.pump.enter(proto.Play)
	l.pump.mark.allow(s.set().Timeouts.Read)
	s.timers.within(s.set().Timeouts.ConfigAnswer, s.stuck)
	s.direct()
	return handled
}

// stuck is a client that does not acknowledge a change of state.
func (s *Session) stuck() {
	s.end(EndUnanswered, s.because("kick-unanswered"))
}

// asked is a backend's keep-alive. Its question is noted before the client can answer it.
func (s *Session) asked(l *link, e *event) verdict {
	id, err := packet.ParseKeepAlive(s.client.version.Protocol, e.body)
	if err != nil {
		s.undecoded(proto.KeepAlive)
		return forward
	}
	l.alive.ask(id, l.pump.state, time.Now())
	return forward
}
