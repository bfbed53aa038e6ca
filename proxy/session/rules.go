package session

import (
	"sync"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// rules returns the settings of the player's server: the current ones, or its last ones when it is on the list no more.
func (s *Session) rules(l *link) *backend.Server {
	if b := s.set().server(l.name); b != nil {
		return b
	}
	return l.server
}

// cookie handles a server that wants to read a cookie of the client, or to store one. A server that may not is told
// that there is none.
func (s *Session) cookie(l *link, e *relay.Event) relay.Verdict {
	if !s.rules(l).NoCookies {
		if e.Packet == proto.CookieRequest {
			l.cookies.ask(cookieKey(e.Body))
		}
		return relay.Forward
	}
	s.core.Counters.NotAllowed.Cookies.Add(1)
	if s.core.complaints.due("cookies " + l.name) {
		s.log.Warn("a server wanted to use its players' cookies, which it may not. cookies: allow, for this server, allows it", "backend", l.name)
	}
	if e.Packet == proto.CookieRequest {
		s.toBackend(l, proto.CookieResponse, packet.AppendCookieResponse(nil, packet.CookieResponse{Key: cookieKey(e.Body)}))
	}
	return relay.Handled
}

// transferred handles a server that sends its player to another address.
func (s *Session) transferred(l *link) relay.Verdict {
	if !s.rules(l).NoTransfers {
		return relay.Forward
	}
	s.core.Counters.NotAllowed.Transfers.Add(1)
	if s.core.complaints.due("transfers " + l.name) {
		s.log.Warn("a server wanted to send a player to another address, which it may not. transfers: allow, for this server, allows it", "backend", l.name)
	}
	s.tell(s.say("transfer-refused", "server", l.name))
	return relay.Handled
}

// admits reports whether a player's permissions let them join a server.
func (s *Session) admits(b *backend.Server) bool {
	if !b.Restricted {
		return true
	}
	admit := s.core.cfg.Admit
	return s.claimed && (admit == nil || admit(s, b.Name))
}

// sampleEvery is how often the same complaint goes to the log.
const sampleEvery = time.Minute

// complaints are lines of the log that would come too often. The zero complaints are ready for use.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether it is time to say something again. There are few different things to say.
func (c *complaints) due(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.last[what]) < sampleEvery {
		return false
	}
	if c.last == nil {
		c.last = map[string]time.Time{}
	}
	c.last[what] = now
	return true
}
