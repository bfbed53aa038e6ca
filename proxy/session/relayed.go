package session

import (
	"time"

	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// A client may be of a release that came out after this program. Its handshake, status and login are taken to be those
// of the newest known version, since they rarely change. The rest is unknown, so it is relayed as frames that nobody
// opens, to the first server that takes the player. Nothing can be said to such a client once its login is over, and it
// cannot be taken to another server, because nobody knows the packets for that. So it waits for its login success until
// a server has it, and is told of every failure in the login state.

// relayed reports whether the client's version is unknown.
func (s *Session) relayed() bool { return s.client.version != nil && s.client.version.Blind() }

// errRelayed refuses what would need packets of an unknown version.
var errRelayed = refusal("the player's version of the game is not known here, so that nothing can be sent to them", "relayed")

// misfit handles a login that is not as its version has it. With an unknown version the client is not at fault.
func (s *Session) misfit(what string) bool {
	if !s.relayed() {
		return s.garbage(what)
	}
	s.from()
	if n := s.core.Counters.Relayed.Misfits.Add(1); n&(n-1) == 0 { // strangers can do it as often as they like
		s.log.Warn("the login of a version that is not known is unlike the newest one's; add it to the folder versions", "protocol", s.client.protocol, "what", what, "count", n)
	}
	return s.refuse(EndOutdated, s.because("kick-version", "versions", proto.Span()))
}

// relay joins a client that has acknowledged its login with the server that has taken it. From here on the owner only
// waits for one of them to end.
func (s *Session) relay() relay.Verdict {
	l := s.route.inflight
	if l == nil {
		s.end(EndBackendLost, plain("")) // the server was lost between the login success and this
		return relay.Handled
	}
	c := &s.core.Counters.Relayed
	s.route.inflight, s.route.current = nil, l
	s.screen.joined = true
	l.since = time.Now()
	l.pump.Allow(s.set().Timeouts.Read)
	s.route.where.set(l.name, "")
	if c.add(s.client.protocol) {
		s.log.Warn("players of a version that is not known here get in without commands, voice and switching; add it to the folder versions, or get a newer Earshot",
			"protocol", s.client.protocol, "newest", proto.Newest().Protocol)
	}
	s.log.Info("player is on a server", "backend", l.name, "relayed", true)
	s.direct()
	s.listen(l)
	return relay.Handled
}
