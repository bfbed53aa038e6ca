package session

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/floodgate"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// identity is who a client is and how it came here.
type identity struct {
	address  netip.AddrPort
	protocol int32
	host     string // cleaned
	rawHost  string // as sent
	marker   string // of a mod loader
	port     uint16
	transfer bool   // another server sent the player here
	bedrock  bool   // Geyser translates for the player
	geyser   string // what it sent of the player, for backends with Floodgate

	id         uuid.UUID
	name       string
	online     bool
	properties []packet.Property
	key        *packet.ProfileKey // 1.19 to 1.19.2
}

// Properties are the player's profile properties, such as the skin. The caller must not change them.
func (i *identity) Properties() []packet.Property { return i.properties }

func newSession(c *Core, conn net.Conn) *Session {
	set := c.settings.Load()
	s := &Session{
		core: c, conn: conn, log: c.cfg.Log,
		r: frame.NewReader(conn, frame.PreLogin(set.BehindProxy)), w: frame.NewWriter(conn),
		events: make(chan *event), mail: newMailbox(), done: make(chan struct{}), sockets: map[net.Conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.timers.born = time.Now()
	s.w.SetWriteTimeout(set.Timeouts.Write)
	if set.Level > 0 {
		s.w.SetLevel(set.Level)
	}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		p := a.AddrPort()
		s.address = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return s
}

// from makes every line of the log name the client's address, where that may be logged. It is asked for by whoever has
// something to log, since most connections are server list pings, of which nothing is said, and it costs a twentieth
// of one.
func (s *Session) from() {
	if !s.named && !s.set().HideAddresses {
		s.named = true
		s.log = s.log.With("from", s.address)
	}
}

// patience bounds the reads of the next stage to d from the first byte on, and reports whether the session may go on.
// An order to leave that comes later ends a read at once.
func (s *Session) patience(d time.Duration) bool {
	s.conn.SetReadDeadline(s.timers.born.Add(d))
	return s.mail.orders() == nil
}

// handshake reads the first packet. It reports whether a login follows; what is not one is over when it returns.
func (s *Session) handshake() bool {
	if !s.core.cfg.Pending.Enter(&s.place, s.address.Addr(), s.evict) {
		s.ending = EndCrowded
		return false
	}
	s.ending = EndHandshakeTimeout
	if listen.Legacy(s.conn) {
		s.legacyStatus()
		return false
	}
	if !s.patience(s.set().Timeouts.Handshake) {
		return s.broke(nil)
	}
	f, err := s.r.Next()
	if err != nil {
		return s.broke(err)
	}
	body, err := s.r.Body(f)
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
	s.protocol, s.rawHost, s.port = h.Protocol, h.Host, h.Port
	s.host, s.marker = packet.CleanHost(h.Host, h.Protocol)
	s.geyser = floodgate.Data(h.Host)
	if s.geyser == "" && len(h.Host) > packet.MaxHost && !s.set().BehindProxy {
		return s.garbage("host name too long")
	}
	s.version = proto.Lookup(h.Protocol)
	if s.version == nil && s.set().Unknown.Takes(h.Protocol) {
		s.version = proto.Unknowing(h.Protocol)
	}
	if h.Intent == packet.IntentStatus {
		if listen.Wait(s.conn) > 0 {
			s.ending = EndStatusThrottled
			return false
		}
		s.status()
		return false
	}
	s.from()
	s.core.cfg.Pending.Spoke(&s.place)
	if wait := listen.Wait(s.conn); wait > 0 {
		return s.tooOften(wait)
	}
	switch by := s.byHost(); {
	case by.Refuse:
		return s.refuse(EndUnknownHost, s.because("kick-host"))
	case len(by.Lite) > 0:
		s.forward(by.Lite, f)
		return false
	}
	s.transfer = h.Intent == packet.IntentTransfer
	return true
}

// garbage ends a connection that does not speak the protocol: without an answer, since it would not understand one.
func (s *Session) garbage(what string) bool {
	s.ending = EndGarbage
	s.from()
	s.log.Debug("not the protocol", "what", what)
	return false
}

// broke ends a connection whose login broke off with err. Orders that came meanwhile are obeyed.
func (s *Session) broke(err error) bool {
	var bad frame.Violation
	switch o := s.mail.orders(); {
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

// refuse ends a login with a reason. It is the answer in the login state, which all versions share.
func (s *Session) refuse(e Ending, r reason) bool {
	s.ending = e
	s.from()
	s.log.Debug("login refused", "ending", e, "reason", r.String(), "name", printable(s.name), "protocol", s.protocol)
	if s.rawHost == "" && s.version == nil {
		return false // it has said nothing we could answer to
	}
	s.w.SetWriteTimeout(grace)
	if s.w.Packet(disconnectLogin, packet.AppendDisconnect(nil, s.protocol, proto.Login, r.text)) == nil && e != EndCrowded { // somebody else has the place
		s.hangUp()
	}
	return false
}

// tooOften refuses a login, or a connection that was to be passed on, whose network has to wait.
func (s *Session) tooOften(wait time.Duration) bool {
	seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
	return s.refuse(EndThrottled, s.because("kick-too-often", "seconds", seconds))
}

// disconnectLogin is the id of the login state's disconnect in every version there has been, and so the one thing that
// can be said to a version we know nothing of.
const disconnectLogin = 0
