package session

import (
	"errors"
	"net"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func asViolation(err error, v *frame.Violation) bool { return errors.As(err, v) }

// login takes a client from the handshake to login success. It reports whether there is a player now.
func (s *Session) login() bool {
	cl := &s.client
	switch {
	case cl.version == nil && cl.protocol < proto.Min:
		return s.refuse(EndOutdated, translated("multiplayer.disconnect.outdated_client", proto.Span()))
	case cl.version == nil:
		return s.refuse(EndOutdated, translated("multiplayer.disconnect.outdated_server", proto.Span()))
	case cl.transfer && !s.set().AcceptTransfers:
		return s.refuse(EndTransfer, translated("multiplayer.disconnect.transfers_disabled"))
	case cl.geyser != "" && !s.fromGeyser():
		return false
	}
	if wait := s.core.cfg.LoginGate(cl.address.Addr()); wait > 0 {
		return s.tooOften(wait)
	}
	switch {
	case !s.patience(s.set().Timeouts.Login):
		return s.broke(nil)
	}
	body, ok := s.next(proto.LoginStart)
	if !ok {
		return false
	}
	start, err := packet.ParseLoginStart(cl.protocol, body)
	if err != nil {
		return s.misfit(err.Error())
	}
	switch set := s.set(); {
	case cl.bedrock: // known already; Geyser logs in with another name than the player's here
	case set.Online:
		cl.name = start.Name
		ok = s.authenticate(set.Auth, start)
	default:
		cl.name, cl.id = start.Name, auth.OfflineID(start.Name)
		ok = packet.ValidName(cl.name) || s.refuse(EndBadName, s.because("kick-name"))
	}
	s.core.cfg.Pending.Busy(&s.place)
	return ok && s.claim() && s.succeed()
}

// next reads one packet of the login state and insists that it is p.
func (s *Session) next(p proto.Packet) ([]byte, bool) {
	f, err := s.client.r.Next()
	if err != nil {
		return nil, s.broke(err)
	}
	if id, ok := s.client.version.ID(proto.Login, proto.Serverbound, p); !ok || id != f.ID {
		return nil, s.misfit("packet out of order in login")
	}
	body, err := s.client.r.Body(f)
	if err != nil {
		return nil, s.broke(err)
	}
	s.core.cfg.Pending.Spoke(&s.place)
	return body, true
}

// claim makes the client the only one of its name and UUID. Online, the newcomer has proved to be the owner of the
// account, so the old session goes. Offline anybody can say any name, so the old session stays. Without a prefix a
// player of Bedrock Edition may have the name of somebody else's Java account, and is not the owner.
func (s *Session) claim() bool {
	limit := time.NewTimer(s.set().Timeouts.Replace)
	defer limit.Stop()
	for {
		holder := s.core.players.claim(s, s.client.id, s.client.name)
		if holder == nil {
			s.claimed = true
			return true
		}
		if !s.client.online || holder.client.bedrock != s.client.bedrock && holder.client.id != s.client.id {
			return s.refuse(EndDuplicate, s.because("kick-name-taken"))
		}
		holder.leave(EndReplaced, translated("multiplayer.disconnect.duplicate_login"))
		// Its backend must be gone too. It would take the newcomer for a second one and throw it out.
		select {
		case <-holder.done:
		case <-limit.C:
			return s.refuse(EndDuplicate, s.because("kick-ending"))
		case <-s.client.mail.poke:
			return s.broke(nil)
		}
	}
}

// succeed ends the login and starts reading the client. From here on the owner sees orders to leave. A client whose
// mods matter to a backend keeps waiting for login success until a backend has taken it, because it cannot be asked
// later.
func (s *Session) succeed() bool {
	cl := &s.client
	if o := cl.mail.orders(); o != nil {
		return s.refuse(o.ending, o.reason)
	}
	set, threshold := s.set(), -1
	if id, ok := cl.version.ID(proto.Login, proto.Clientbound, proto.SetCompression); ok && set.Threshold >= 0 {
		threshold = set.Threshold
		cl.w.Append(id, packet.AppendSetCompression(nil, threshold))
		cl.w.SetCompression(threshold)
		cl.r.SetCompression(threshold)
	}
	cl.in, cl.out = proto.Login, proto.Login
	if !s.asksFirst() {
		s.success()
	}
	if err := cl.w.Flush(); err != nil {
		return s.broke(err)
	}
	s.ending = endNone
	s.log = s.log.With("player", cl.name)
	cl.r.SetLimits(frame.Limits{Strict: true})
	cl.conn.SetReadDeadline(time.Time{})
	cl.to = &relay.Outlet{Writer: cl.w, Threshold: threshold}
	cl.pump = s.core.relay.Pump((*owner)(s), proto.Serverbound, cl.r, threshold)
	if cl.out != proto.Login {
		s.admitted()
	}
	cl.pump.Enter(cl.in)
	cl.pump.Start(func() { s.leave(EndIdle, translated("disconnect.timeout")) })
	return true
}

// success appends the login success and enters the state behind it.
func (s *Session) success() {
	id, _ := s.client.version.ID(proto.Login, proto.Clientbound, proto.LoginSuccess)
	s.client.w.Append(id, packet.AppendLoginSuccess(nil, s.client.protocol, packet.LoginSuccess{
		ID: s.client.id, Name: s.client.name, Properties: s.client.properties, Strict: !s.set().LenientErrors, Session: uuid.New(),
	}))
	s.client.in, s.client.out = proto.Play, proto.Play
	if s.client.version.HasConfiguration() {
		s.client.in, s.client.out = proto.Login, proto.Config
	}
}

// admitted makes a client with login success a player.
func (s *Session) admitted() {
	s.core.cfg.Pending.Leave(&s.place)
	s.core.Counters.Logins.Add(1)
	s.log.Info("player logged in", "uuid", s.client.id, "protocol", s.client.protocol, "online", s.client.online)
	s.client.pump.Allow(s.allowance())
	s.greet()
}

// greet announces a new player, before any of their packets is relayed.
func (s *Session) greet() {
	s.greeted = true
	if s.relayed() {
		return // there is nothing to watch, and nothing to be said
	}
	s.observer = s.core.watchers.watch(s, s.client.version)
	if h := s.core.cfg.Hooks; h != nil {
		s.hook = h.Hook(s)
	}
}

// clientLogin handles the login state once the client is known. Before login success it answers backends; after it one
// packet is left.
func (s *Session) clientLogin(e *relay.Event) relay.Verdict {
	if s.client.out == proto.Login {
		return s.modsAnswer(e)
	}
	if s.straggler(e) {
		return relay.Handled
	}
	if e.Packet != proto.LoginAcknowledged || len(e.Body) != 0 {
		return s.violation("packet %d instead of the login acknowledgement", e.ID)
	}
	s.timers.settled()
	s.client.in = proto.Config
	s.client.pump.Enter(proto.Config)
	if s.relayed() {
		return s.relay()
	}
	s.begin()
	return relay.Handled
}
