package session

import (
	"bytes"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// backendPlay decides about a packet of a backend in play.
func (s *Session) backendPlay(l *link, e *relay.Event) relay.Verdict {
	switch e.Packet {
	case proto.KeepAlive:
		return s.asked(l, e)
	case proto.CustomPayload:
		if e.Channel != "" {
			return s.backendMessage(l, e)
		}
	case proto.JoinGame:
		return s.joinGame(l, e)
	case proto.Disconnect:
		s.lost(l, EndKicked, kicked(s.client.version.Protocol, proto.Play, e.Body))
		return relay.Handled
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
	if s.hook != nil && e.Pump.Dest() != nil {
		if body := s.hook.Clientbound(e.Packet, e.Body); body != nil {
			s.toClient(e.ID, body)
			return relay.Handled
		}
	}
	return relay.Forward
}

// joinGame handles the moment when the player is on the backend: it becomes the current one, hears what it has missed,
// and packets that waited for a client in play go out.
func (s *Session) joinGame(l *link, e *relay.Event) relay.Verdict {
	arriving := l == s.route.inflight
	if s.foreign(l) {
		s.enterWorld(l, e)
	} else if body := s.vouched(e.Body); body != nil {
		s.toClient(e.ID, body)
	} else {
		s.pass(e, s.client.to)
	}
	if s.ending != endNone {
		return relay.Handled
	}
	if arriving {
		s.route.inflight, s.route.current = nil, l
		s.arrive(l)
	}
	if s.client.fml == fmlUnderWay || s.client.fml == fmlNone && !s.screen.joined {
		// Without a handshake before its first world, the client takes the server for one without mods.
		s.client.fml = fmlOver
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
	if s.ending == endNone {
		s.core.channels.joined(s)
	}
	if b := s.core.cfg.Backends; b != nil && arriving && s.route.current == l {
		b.Joined(backendRef{s, l})
	}
	s.deliver()
	s.depart()
	return relay.Handled
}

// vouched corrects a join game that calls an authenticated player unauthenticated: behind a proxy a backend does not
// know, and the client would hide skins. nil: it is right as it is.
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

// arrive notes that the player is on a server. It tells the player why if they were on another one.
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

// startConfiguration handles a backend that configures its player again. From here on it sends configuration packets.
// The client still sends play packets, which the backend understands, until it acknowledges.
func (s *Session) startConfiguration(l *link, e *relay.Event) relay.Verdict {
	if s.screen.awaitStart {
		return relay.Handled
	}
	if l.pump.Traces.Bundle.Swap(false) { // a client takes no change of state inside a bundle
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.BundleDelimiter); ok {
			s.toClient(id, nil)
		}
	}
	if !s.pass(e, s.client.to) {
		return relay.Handled
	}
	s.client.out = proto.Config
	l.pump.Traces.Registry.Store(false)
	l.pump.Enter(proto.Config)
	l.pump.Allow(s.set().Timeouts.BackendConfig)
	s.configuring()
	s.direct()
	return relay.Handled
}

// serverData handles a backend's own entry for its player's server list. The player joined this proxy and will see the
// proxy's entry at the next ping. Whether secure chat is enforced is the backend's to say.
func (s *Session) serverData(e *relay.Event) relay.Verdict {
	list := s.shown()
	if list == nil {
		return relay.Forward
	}
	text, icon := list.Shown()
	body, err := packet.Relist(s.client.protocol, e.Body, text, icon)
	if err != nil {
		s.undecoded(proto.ServerData)
		return relay.Handled // nobody misses it
	}
	s.toClient(e.ID, body)
	return relay.Handled
}

// recompress handles the play packet by which a 1.8 backend changes the compression of its connection. The client's is
// ours.
func (s *Session) recompress(l *link, e *relay.Event) relay.Verdict {
	r := field.NewReader(e.Body)
	threshold := int(r.VarInt())
	if r.End() != nil {
		s.lost(l, EndBackendLost, s.because("backend-unreadable", "server", l.name))
		return relay.Handled
	}
	threshold = max(threshold, -1)
	e.Pump.Recompress(threshold)
	l.recompress(threshold)
	s.direct()
	return relay.Handled
}
