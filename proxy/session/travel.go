package session

import (
	"strings"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// stayed is how long a player must have been on a server for its failure to be a new one. Until then it is part of the
// chain that led there, and no server is tried twice in a chain.
const stayed = 10 * time.Second

// travel begins to take a player in play to another server.
func (s *Session) travel(b *backend.Server) {
	if s.route.attempt != nil || s.route.inflight != nil {
		return // overtaken by a fallback
	}
	if l := s.route.current; l != nil && strings.EqualFold(l.name, b.Name) && l.server.Address == b.Address {
		s.route.where.set(l.name, "")
		return // that brought the player there
	}
	s.connect(b, false)
}

// refused handles a backend that did not take the player while the client was not told to leave its own. The player
// hears nothing of the proxy's own attempts, unless they wait for them.
func (s *Session) refused(b *backend.Server, f failure, planned bool) {
	name := b.Name
	if s.route.current == nil {
		s.failed(b, f)
		return
	}
	s.route.draining = ""
	s.route.where.set(s.route.current.name, "")
	s.core.Counters.Switches.Refused.Add(1)
	why := f.reason.text.String()
	switch h := &s.route.hold; {
	case !planned:
		h.miss(name)
	case !h.on:
		return
	case s.final(f):
		s.end(f.ending, f.reason)
		return
	default:
		h.delay(name)
		if why == h.told {
			return
		}
		h.told = why
	}
	s.tell(s.sayWhy("switch-failed", name, f.reason))
}

// notice keeps a text until the player is on another server.
func (s *Session) notice(key, server string, r reason) {
	t := s.sayWhy(key, server, r)
	s.route.plan.notice = &t
}

// sayWhy returns a text with the <reason> that a server gave, or another reason. The reason is quoted, and not turned
// into a string: much of it is for the client to translate.
func (s *Session) sayWhy(key, server string, r reason) packet.Text {
	return s.say(key, "server", server, "reason", packet.Slot).Put(r.text.Quote())
}

// depart hands the player to a backend with a configuration phase, once the backend has logged the player in and the
// client is in a state to follow: not while its current backend is just configuring it.
func (s *Session) depart() {
	l := s.route.inflight
	if l == nil || l.begun || !s.client.version.HasConfiguration() {
		return
	}
	if s.route.current != nil && (!s.screen.playing || s.screen.changing()) {
		return
	}
	l.begun = true
	s.part()
	if o := s.observer; o != nil {
		o.Backend(l.name, l.conn.Player)
	}
	if s.client.out == proto.Play {
		s.leaveWorld()
	}
	if s.route.inflight != l {
		return
	}
	// The backend may say already what it has to; it is not read before the client can take it, which is at most
	// Timeouts.ConfigAnswer from now. Until then its bytes wait in the socket: the kernel bounds them, they cost us
	// nothing, and a server does not block on them. Reading them into a queue would gain nothing either: only the
	// client could answer a keep-alive among them, and it cannot just now. A backend that hangs up is noticed when it
	// is read, after its earlier words, its reason among them.
	l.out = proto.Login
	s.toBackend(l, proto.LoginAcknowledged, nil)
	l.out = proto.Config
	l.pump.Enter(proto.Config)
	l.pump.Allow(s.set().Timeouts.BackendConfig)
	s.feed(l)
	if s.route.inflight != l {
		return // a write failed already; it is given up
	}
	s.direct()
	if s.client.in == proto.Config && !s.screen.awaitStart && !s.relayed() {
		s.listen(l)
	}
}

// part ends the current backend because another one takes over.
func (s *Session) part() {
	c := s.route.current
	if c == nil {
		return
	}
	s.chain(c)
	s.route.current = nil
	s.direct() // the client's words wait for the next one from here on: they may be about the next world
	s.release(c)
	_, to := s.route.where.get()
	s.route.where.set("", to)
}

// leaveWorld takes a client in play into configuration, where the next backend begins.
func (s *Session) leaveWorld() {
	s.closeBundle()
	if s.screen.playing {
		s.clean()
		s.keepAlive() // so that a slow client is not taken for dead
	}
	if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.StartConfiguration); ok {
		s.toClient(id, nil)
	}
	s.client.out = proto.Config
	s.configuring()
}

// enterWorld takes a client without a configuration phase from one backend's world into that of another. e is the
// other's join game.
func (s *Session) enterWorld(l *link, e *relay.Event) {
	s.part()
	s.closeBundle()
	s.clean()
	s.keepAlive()
	if o := s.observer; o != nil {
		o.Backend(l.name, l.conn.Player)
		if s.core.relay.Observed(s.client.version, proto.Play, proto.Clientbound, e.ID) {
			o.Clientbound(proto.Play, proto.JoinGame, e.Body) // nothing of this backend went by an observer before
		}
	}
	first, respawns, err := s.rejoin(l, e.Body)
	if err != nil {
		s.undecoded(proto.JoinGame)
		s.log.Warn("join game cannot be read; the client may keep parts of the world it was in", "backend", l.name, "error", err)
		s.toClient(e.ID, e.Body)
		return
	}
	s.toClient(e.ID, first)
	for _, body := range respawns {
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.Respawn); ok && s.ending == endNone {
			s.toClient(id, body)
		}
	}
}

// rejoin makes the join game of another backend's world and the respawns behind it.
func (s *Session) rejoin(l *link, join []byte) (first []byte, respawns [][]byte, err error) {
	if s.fmlClient() {
		if !l.begun { // it has no mods
			s.fmlReset()
		}
		away, back, err := packet.RejoinForge(s.client.protocol, join)
		return join, [][]byte{away, back}, err
	}
	first, respawn, err := packet.Rejoin(s.client.protocol, join)
	return first, [][]byte{respawn}, err
}

// chain begins a new chain of attempts when the player has been on l for a while.
func (s *Session) chain(l *link) {
	if time.Since(l.since) >= stayed {
		s.route.plan = plan{}
		if !l.server.Limbo {
			s.route.hold.wait = 0
		}
	}
}

// movable reports whether the client, which has lost its backend, can be taken over by another. A client in play can
// always be configured again. One in configuration must not have got registries: since 1.20.5 it does not accept their
// entries twice. One of Forge up to 1.12.2 must not be in the middle of its handshake: it takes a new one only after
// that.
func (s *Session) movable() bool {
	if s.relayed() {
		return s.client.out == proto.Login
	}
	if !s.client.version.HasConfiguration() {
		return s.client.fml != fmlUnderWay
	}
	return s.client.out == proto.Play || !s.screen.registered || !proto.Has(s.client.protocol, proto.RegistriesOnce)
}

// final reports whether a kick with this reason is meant for the whole network.
func (s *Session) final(f failure) bool {
	if f.ending != EndKicked {
		return false
	}
	why := strings.ToLower(f.reason.text.String())
	for _, word := range s.set().FinalReasons {
		if word != "" && strings.Contains(why, strings.ToLower(word)) {
			return true
		}
	}
	return false
}
