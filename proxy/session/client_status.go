package session

import (
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/status"
)

// status answers a server list ping.
func (s *Session) status() {
	s.answer(func(st *status.Status) error { return st.Serve(s.conn, s.r, s.w, s.protocol) })
}

// legacyStatus answers the pings of clients before 1.7, and tells their logins that they are too old.
func (s *Session) legacyStatus() {
	s.answer(func(st *status.Status) error { return st.ServeLegacy(s.conn) })
}

func (s *Session) answer(serve func(*status.Status) error) {
	st := s.set().Status
	if st == nil {
		s.ending = EndClosed
		return
	}
	if !s.core.cfg.StatusGate(s.address.Addr()) {
		s.ending = EndStatusThrottled
		return
	}
	err := serve(st)
	var bad frame.Violation
	switch {
	case err == nil:
		s.ending = EndStatus
	case isTimeout(err):
		s.ending = EndHandshakeTimeout
	case asViolation(err, &bad):
		s.garbage(string(bad))
	default:
		s.ending = EndClosed
		s.from()
		s.log.Debug("server list ping not completed", "error", err)
	}
}

// Sample appends at most max players who may be shown in the server list.
func (c *Core) Sample(dst []status.Player, max int) []status.Player {
	c.players.each(func(s *Session) bool {
		if max <= 0 {
			return false
		}
		if !s.unlisted.Load() {
			dst = append(dst, status.Player{Name: s.name, ID: s.id})
			max--
		}
		return true
	})
	return dst
}

// list follows the client's wish not to be shown in the server list (1.18 on), and notes its language.
func (s *Session) list(information []byte) {
	if c, err := packet.ParseClientInformation(s.protocol, information); err == nil {
		s.unlisted.Store(!c.Listed)
		s.locale.Store(&c.Locale)
	}
}
