package session

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// grace bounds each of three steps of a leaving client: to accept what is being written to it, to accept the disconnect
// packet, and to hang up itself. Three of them fit into a shutdown.
const grace = 2 * time.Second

// reason is the text for a leaving player.
type reason struct {
	text packet.Text
	raw  []byte // the body of a backend's disconnect packet of the configuration or play state, passed on as it is
}

func plain(s string) reason { return reason{text: packet.Plain(s)} }

// because returns a reason from the table of texts.
func (s *Session) because(key string, named ...string) reason {
	return reason{text: s.say(key, named...)}
}

func translated(key string, with ...string) reason {
	return reason{text: packet.Translatable(key, with...)}
}

// kicked returns the reason in a backend's disconnect packet of that state. One that we cannot read still reaches the
// client.
func kicked(protocol int32, st proto.State, body []byte) reason {
	return reason{text: packet.ReadText(field.NewReader(body), protocol, st), raw: append([]byte(nil), body...)}
}

// body returns the disconnect packet's body in a state.
func (r reason) body(protocol int32, st proto.State) []byte {
	if r.raw != nil && st != proto.Login {
		return r.raw // configuration and play write components alike
	}
	return r.text.Append(nil, protocol, st)
}

// String returns the reason for logs.
func (r reason) String() string { return printable(r.text.String()) }

// printable makes a stranger's text fit for one line of a log: no control characters, no § and not too long.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == '§' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 {
			return -1
		}
		return c
	}, s)
	if len(s) > 256 {
		s = strings.ToValidUTF8(s[:256], "") + "…"
	}
	return s
}

// end closes the session from the owner's side: backends first, so that nothing more goes to the client, then the
// reason in the client's state. It is the only place that sends a disconnect packet after the login.
func (s *Session) end(e Ending, r reason) {
	if s.ending != endNone {
		return
	}
	s.ending = e
	for l := range s.route.links() {
		s.closeLink(l)
		s.screen.bundle = s.screen.bundle || l.pump.Traces.Bundle.Load()
	}
	s.route.current, s.route.inflight = nil, nil
	// The client's reader may be waiting for bytes; it has to go before anybody reads the rest.
	s.client.pump.Stop()
	s.client.conn.SetReadDeadline(time.Now())
	<-s.client.pump.Ended()
	if e == EndLeft || e == EndStalled {
		return // nobody listens any more
	}
	s.client.w.SetWriteTimeout(grace)
	if s.screen.bundle {
		// A client holds back everything inside a bundle, and would never show the reason.
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.BundleDelimiter); ok && s.client.out == proto.Play {
			s.client.w.Append(id, nil)
		}
	}
	s.goodbye(s.client.out, r)
}

// goodbye sends the disconnect packet of a state and hangs up so that it arrives: closing a socket that has unread
// bytes would throw away what is on its way.
func (s *Session) goodbye(st proto.State, r reason) {
	id, ok := s.client.version.ID(st, proto.Clientbound, proto.Disconnect)
	if s.relayed() && !ok {
		s.hangUp() // the server's last words are to arrive
		return
	}
	if !ok || s.client.w.Packet(id, r.body(s.client.version.Protocol, st)) != nil {
		return
	}
	s.hangUp()
}

// hangUp ends our direction and waits for the client to end its own.
func (s *Session) hangUp() {
	half, ok := s.client.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	s.client.conn.SetReadDeadline(time.Now().Add(grace))
	io.Copy(io.Discard, io.LimitReader(struct{ io.Reader }{s.client.conn}, 8<<20))
}

// violation ends a session whose client broke the protocol.
func (s *Session) violation(format string, args ...any) relay.Verdict {
	what := fmt.Sprintf(format, args...)
	s.log.Debug("client broke the protocol", "what", what, "state", s.client.in)
	s.end(EndProtocol, s.because("kick-protocol", "what", what))
	return relay.Handled
}

// unreachable returns the ending for a failed write to the client.
func unreachable(err error) Ending {
	if n, ok := err.(net.Error); ok && n.Timeout() {
		return EndStalled
	}
	return EndLeft
}
