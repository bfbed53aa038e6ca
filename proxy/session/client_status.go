package session

import (
	"errors"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/status"
)

// status answers a server list ping.
func (s *Session) status() {
	s.answer(func() error {
		st := s.shown()
		if st == nil {
			return status.ErrUnwanted
		}
		return st.Serve(s.client.conn, s.client.r, s.client.w, status.Client{Protocol: s.client.protocol, Host: s.client.host})
	})
}

// legacyStatus answers the pings of clients before 1.7, and tells their logins that they are too old.
func (s *Session) legacyStatus() {
	s.answer(func() error {
		return status.ServeLegacy(s.client.conn, status.DefaultTimeout, func(host string) *status.Status {
			s.client.host, _ = packet.CleanHost(host, -1)
			return s.shown()
		})
	})
}

// shown returns the entry for players who come by the client's host name; nil: nothing.
func (s *Session) shown() *status.Status {
	h := s.byHost()
	switch {
	case h.Refuse:
		return nil
	case h.Status != nil:
		return h.Status
	}
	return s.set().Status
}

func (s *Session) answer(serve func() error) {
	if s.core.cfg.StatusGate(s.client.address.Addr()) > 0 {
		s.ending = EndStatusThrottled
		return
	}
	s.pinging.Store(true) // from now on its deadlines are not ours
	err := errQuit
	if s.client.mail.orders() == nil {
		err = serve()
	}
	var bad frame.Violation
	switch o := s.client.mail.orders(); {
	case err == nil:
		s.ending = EndStatus
	case o != nil && o.ending == EndCrowded:
		s.ending = EndCrowded
	case errors.Is(err, status.ErrUnwanted) && s.byHost().Refuse:
		s.ending = EndUnknownHost
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
		if !s.client.unlisted.Load() && (c.cfg.Listed == nil || c.cfg.Listed(s.client.id)) {
			dst = append(dst, status.Player{Name: s.client.name, ID: s.client.id})
			max--
		}
		return true
	})
	return dst
}

// list follows the client's wish not to be shown in the server list (1.18 on), and notes its language.
func (s *Session) list(information []byte) {
	if c, err := packet.ParseClientInformation(s.client.protocol, information); err == nil {
		s.client.unlisted.Store(!c.Listed)
		s.client.locale.Store(&c.Locale)
	}
}
