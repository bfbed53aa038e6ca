package session

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/earshot-mc/earshot/proxy/floodgate"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

func newSession(c *Core, conn net.Conn) *Session {
	set := c.settings.Load()
	s := &Session{core: c, log: c.cfg.Log, events: make(chan *relay.Event), outcomes: make(chan *dialed), queries: make(chan *query), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.timers.born = time.Now()
	cl := &s.client
	cl.conn, cl.r, cl.w, cl.mail = conn, frame.NewReader(conn, frame.PreLogin(set.BehindProxy)), frame.NewWriter(conn), newMailbox()
	cl.w.SetWriteTimeout(set.Timeouts.Write)
	if set.Level > 0 {
		cl.w.SetLevel(set.Level)
	}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		p := a.AddrPort()
		cl.address = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return s
}

// from adds the client's address to every line of the log, where that may be logged. It is called only by code that
// logs: most connections are server list pings, of which nothing is logged, and it costs a twentieth of one.
func (s *Session) from() {
	if !s.named && !s.set().HideAddresses {
		s.named = true
		s.log = s.log.With("from", s.client.address)
	}
}

// patience bounds the reads of the next stage to d from the first byte on, and reports whether the session may go on.
// An order to leave that comes later ends a read at once.
func (s *Session) patience(d time.Duration) bool {
	s.client.conn.SetReadDeadline(s.timers.born.Add(d))
	return s.client.mail.orders() == nil
}

// handshake reads the first packet. It reports whether a login follows; everything else is over when it returns.
func (s *Session) handshake() bool {
	cl := &s.client
	if !s.core.cfg.Pending.Enter(&s.place, cl.address.Addr(), s.evict) {
		s.ending = EndCrowded
		return false
	}
	s.ending = EndHandshakeTimeout
	if listen.Legacy(cl.conn) {
		s.legacyStatus()
		return false
	}
	if !s.patience(s.set().Timeouts.Handshake) {
		return s.broke(nil)
	}
	f, err := cl.r.Next()
	if err != nil {
		return s.broke(err)
	}
	body, err := cl.r.Body(f)
	if err != nil || f.ID != 0 {
		return s.garbage("first packet")
	}
	maxHost := packet.MaxHost + floodgate.MaxData
	if s.set().BehindProxy {
		maxHost = packet.MaxForwardedHost
	}
	h, err := packet.ParseHandshake(body, maxHost)
	if err != nil {
		return s.garbage(err.Error())
	}
	cl.protocol, cl.rawHost, cl.port = h.Protocol, h.Host, h.Port
	cl.host, cl.marker = packet.CleanHost(h.Host, h.Protocol)
	cl.geyser = floodgate.Data(h.Host)
	if cl.geyser == "" && len(h.Host) > packet.MaxHost && !s.set().BehindProxy {
		return s.garbage("host name too long")
	}
	cl.version = proto.Lookup(h.Protocol)
	if cl.version == nil && s.set().Unknown.Takes(h.Protocol) {
		cl.version = proto.Unknowing(h.Protocol)
	}
	if h.Intent == packet.IntentStatus {
		if listen.Wait(cl.conn) > 0 {
			s.ending = EndStatusThrottled
			return false
		}
		s.status()
		return false
	}
	s.from()
	s.core.cfg.Pending.Spoke(&s.place)
	if wait := listen.Wait(cl.conn); wait > 0 {
		return s.tooOften(wait)
	}
	switch by := s.byHost(); {
	case by.Refuse:
		return s.refuse(EndUnknownHost, s.because("kick-host"))
	case len(by.Lite) > 0:
		s.forward(by.Lite, f)
		return false
	}
	cl.transfer = h.Intent == packet.IntentTransfer
	return true
}

// garbage ends a connection that does not speak the protocol, without an answer, since it would not understand one.
func (s *Session) garbage(what string) bool {
	s.ending = EndGarbage
	s.from()
	s.log.Debug("not the protocol", "what", what)
	return false
}

// broke ends a connection whose login broke off with err. It obeys orders that came meanwhile.
func (s *Session) broke(err error) bool {
	var bad frame.Violation
	switch o := s.client.mail.orders(); {
	case o != nil:
		return s.refuse(o.ending, o.reason)
	case isTimeout(err):
		return s.refuse(EndHandshakeTimeout, translated("multiplayer.disconnect.slow_login"))
	case asViolation(err, &bad):
		return s.garbage(string(bad))
	}
	s.ending = EndClosed
	return false
}

// refuse ends a login with a reason, in the packet of the login state that all versions share.
func (s *Session) refuse(e Ending, r reason) bool {
	s.ending = e
	s.from()
	s.log.Debug("login refused", "ending", e, "reason", r.String(), "name", printable(s.client.name), "protocol", s.client.protocol)
	if s.client.rawHost == "" && s.client.version == nil {
		return false // it has said nothing we could answer to
	}
	s.client.w.SetWriteTimeout(grace)
	// Somebody else has the place.
	if s.client.w.Packet(disconnectLogin, packet.AppendDisconnect(nil, s.client.protocol, proto.Login, r.text)) == nil && e != EndCrowded {
		s.hangUp()
	}
	return false
}

// tooOften refuses a login, or a connection to be passed on, whose network has to wait.
func (s *Session) tooOften(wait time.Duration) bool {
	seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
	return s.refuse(EndThrottled, s.because("kick-too-often", "seconds", seconds))
}

// disconnectLogin is the id of the login state's disconnect in every version so far, and so the one thing that can be
// said to an unknown version.
const disconnectLogin = 0
