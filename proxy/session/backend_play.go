package session

import (
	"bytes"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// backendPlay decides what a backend sends while it is in play.
func (s *Session) backendPlay(l *link, e *event) verdict {
	switch e.packet {
	case proto.KeepAlive:
		return s.asked(l, e)
	case proto.CustomPayload:
		if e.channel != "" {
			return s.backendMessage(l, e)
		}
	case proto.JoinGame:
		return s.joinGame(l, e)
	case proto.Disconnect:
		s.lost(l, EndKicked, kicked(s.client.version.Protocol, proto.Play, e.body))
		return handled
	case proto.StartConfiguration:
		return s.startConfiguration(l, e)
	case proto.SetCompression:
		return s.recompress(l, e)
	case proto.CookieRequest, proto.StoreCookie:
		return s.cookie(l, e)
	case proto.Transfer:
		return s.transferred(l)
	case proto.ResourcePackSend, proto.AddResourcePack:
		return s.packPushed(l, e)
	case proto.RemoveResourcePack:
		return s.packRemoved(e)
	case proto.ServerData:
		return s.serverData(e)
	}
	if s.hook != nil && e.pump.dest.Load() != nil {
		if body := s.hook.Clientbound(e.packet, e.body); body != nil {
			s.toClient(e.id, body)
			return handled
		}
	}
	return forward
}

// joinGame is the moment the player is on the backend: it becomes the current one, hears what it has missed, and
// whatever waited for a client in play goes out.
func (s *Session) joinGame(l *link, e *event) verdict {
	arriving := l == s.route.inflight
	if s.foreign(l) {
		s.enterWorld(l, e)
	} else if body := s.vouched(e.body); body != nil {
		s.toClient(e.id, body)
	} else {
		s.pass(e, s.client.to)
	}
	if s.ending != endNone {
		return handled
	}
	if arriving {
		s.route.inflight, s.route.current = nil, l
		s.arrive(l)
	}
	if s.client.fml == fmlUnderWay || s.client.fml == fmlNone && !s.screen.joined {
		s.client.fml = fmlOver // without a handshake before its first world, the client takes the server for one without mods
	}
	s.screen.playing, s.screen.joined = true, true
	s.restorePack()
	if s.hook != nil {
		s.hook.Reset()
	}
	if !s.screen.awaitEnd && s.route.inflight == nil {
		s.timers.settled()
	}
	if !l.ready {
		s.feed(l)
	}
	s.direct()
	if s.ending == endNone && s.core.channels != nil {
		s.core.channels.Joined(s)
	}
	if b := s.core.cfg.Backends; b != nil && arriving && s.route.current == l {
		b.Joined(backendRef{s, l})
	}
	s.deliver()
	s.depart()
	return handled
}

// vouched is a join game that says of an authenticated player that they are: behind a proxy a backend does not know, and
// the client hides skins where it says no. nil: it is right as it is.
func (s *Session) vouched(join []byte) []byte {
	if !s.client.online || !s.client.version.Has(proto.JoinOnlineMode) {
		return nil
	}
	body, err := packet.Authenticated(s.client.version.Protocol, bytes.Clone(join))
	if err != nil {
		s.undecoded(proto.JoinGame)
		return nil
	}
	return body
}

// arrive notes that the player is on a server, and tells why if that is not the one it was on.
func (s *Session) arrive(l *link) {
	l.since = time.Now()
	s.route.where.arrive(l.server)
	s.route.draining = ""
	s.log.Info("player is on a server", "backend", l.name)
	count, held := &s.core.Counters.Switches, s.route.hold.on
	s.holding(s.stranded(l))
	switch {
	case s.route.plan.notice != nil:
		count.Rescued.Add(1)
		s.tell(*s.route.plan.notice)
		s.route.plan.notice = nil
	case held && l.planned:
		count.Returned.Add(1)
	case s.screen.joined:
		count.Done.Add(1)
	}
	if s.route.hold.on {
		s.tell(s.say("held"))
	}
}

// startConfiguration is a backend that configures its player anew. From here on it sends configuration packets; the
// client still sends play packets, which the backend still understands, until it acknowledges.
func (s *Session) startConfiguration(l *link, e *event) verdict {
	if s.screen.awaitStart {
		return handled
	}
	if l.pump.bundle.Swap(false) { // a client takes no change of state inside a bundle
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.BundleDelimiter); ok {
			s.toClient(id, nil)
		}
	}
	if !s.pass(e, s.client.to) {
		return handled
	}
	s.client.out = proto.Config
	l.pump.registry.Store(false)
	l.pump.enter(proto.Config)
	l.pump.mark.allow(s.set().Timeouts.BackendConfig)
	s.configuring()
	s.direct()
	return handled
}

// serverData is what a backend wants its player's server list to show. The player joined this proxy and will see what
// this proxy shows at the next ping; whether the backend enforces secure chat is the backend's to say.
func (s *Session) serverData(e *event) verdict {
	list := s.shown()
	if list == nil {
		return forward
	}
	text, icon := list.Shown()
	body, err := packet.Relist(s.client.protocol, e.body, text, icon)
	if err != nil {
		s.undecoded(proto.ServerData)
		return handled // nobody misses it
	}
	s.toClient(e.id, body)
	return handled
}

// recompress is the play packet by which a 1.8 backend changes the compression of its connection. The client's is ours.
func (s *Session) recompress(l *link, e *event) verdict {
	r := field.NewReader(e.body)
	threshold := int(r.VarInt())
	if r.End() != nil {
		s.lost(l, EndBackendLost, s.because("backend-unreadable", "server", l.name))
		return handled
	}
	threshold = max(threshold, -1)
	e.pump.threshold = threshold
	l.recompress(threshold)
	s.direct()
	return handled
}
