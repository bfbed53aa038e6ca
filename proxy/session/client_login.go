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
)

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func asViolation(err error, v *frame.Violation) bool { return errors.As(err, v) }

// login takes a client from the handshake to login success. It reports whether there is a player now.
func (s *Session) login() bool {
	switch {
	case s.version == nil && s.protocol < proto.Min:
		return s.refuse(EndOutdated, translated("multiplayer.disconnect.outdated_client", proto.Span()))
	case s.version == nil:
		return s.refuse(EndOutdated, translated("multiplayer.disconnect.outdated_server", proto.Span()))
	case s.transfer && !s.set().AcceptTransfers:
		return s.refuse(EndTransfer, translated("multiplayer.disconnect.transfers_disabled"))
	case s.geyser != "" && !s.fromGeyser():
		return false
	}
	if wait := s.core.cfg.LoginGate(s.address.Addr()); wait > 0 {
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
	start, err := packet.ParseLoginStart(s.protocol, body)
	if err != nil {
		return s.misfit(err.Error())
	}
	switch set := s.set(); {
	case s.bedrock: // known already; the name that Geyser logs in with is not the player's here
	case set.Online:
		s.name = start.Name
		ok = s.authenticate(set.Auth, start)
	default:
		s.name, s.id = start.Name, auth.OfflineID(start.Name)
		ok = packet.ValidName(s.name) || s.refuse(EndBadName, s.because("kick-name"))
	}
	s.core.cfg.Pending.Busy(&s.place)
	return ok && s.claim() && s.succeed()
}

// next reads one packet of the login state and insists that it is p.
func (s *Session) next(p proto.Packet) ([]byte, bool) {
	f, err := s.r.Next()
	if err != nil {
		return nil, s.broke(err)
	}
	if id, ok := s.version.ID(proto.Login, proto.Serverbound, p); !ok || id != f.ID {
		return nil, s.misfit("packet out of order in login")
	}
	body, err := s.r.Body(f)
	if err != nil {
		return nil, s.broke(err)
	}
	s.core.cfg.Pending.Spoke(&s.place)
	return body, true
}

// claim makes the client the only one of its name and UUID. Online, the newcomer has proved to be the owner of the
// account, so the one that is in goes; offline anybody can say any name, so the one that is in stays. Without a prefix a
// player of Bedrock Edition may have the name of somebody else's Java account, and is not its owner.
func (s *Session) claim() bool {
	limit := time.NewTimer(s.set().Timeouts.Replace)
	defer limit.Stop()
	for {
		holder := s.core.players.claim(s, s.id, s.name)
		if holder == nil {
			s.claimed = true
			return true
		}
		if !s.online || holder.bedrock != s.bedrock && holder.id != s.id {
			return s.refuse(EndDuplicate, s.because("kick-name-taken"))
		}
		holder.leave(EndReplaced, translated("multiplayer.disconnect.duplicate_login"))
		// Its backend must be gone too, or that would take the newcomer for the second one and throw it out.
		select {
		case <-holder.done:
		case <-limit.C:
			return s.refuse(EndDuplicate, s.because("kick-ending"))
		case <-s.mail.poke:
			return s.broke(nil)
		}
	}
}

// succeed ends the login and starts reading the client. From here on an order to leave is the owner's to see. A client
// whose mods a backend has to hear of keeps waiting for login success until one has, because it can be asked no later.
func (s *Session) succeed() bool {
	if o := s.mail.orders(); o != nil {
		return s.refuse(o.ending, o.reason)
	}
	set, threshold := s.set(), -1
	if id, ok := s.version.ID(proto.Login, proto.Clientbound, proto.SetCompression); ok && set.Threshold >= 0 {
		threshold = set.Threshold
		s.w.Append(id, packet.AppendSetCompression(nil, threshold))
		s.w.SetCompression(threshold)
		s.r.SetCompression(threshold)
	}
	s.in, s.out = proto.Login, proto.Login
	if !s.asksFirst() {
		s.success()
	}
	if err := s.w.Flush(); err != nil {
		return s.broke(err)
	}
	s.ending = endNone
	s.log = s.log.With("player", s.name)
	s.r.SetLimits(frame.Limits{Strict: true})
	s.conn.SetReadDeadline(time.Time{})
	s.self = &outlet{w: s.w, threshold: threshold}
	s.client = newPump(s, proto.Serverbound, s.r, threshold, nil)
	if s.out != proto.Login {
		s.admitted()
	}
	s.client.enter(s.in)
	s.client.start(func() { s.leave(EndIdle, translated("disconnect.timeout")) })
	return true
}

// success appends the login success and enters the state behind it.
func (s *Session) success() {
	id, _ := s.version.ID(proto.Login, proto.Clientbound, proto.LoginSuccess)
	s.w.Append(id, packet.AppendLoginSuccess(nil, s.protocol, packet.LoginSuccess{
		ID: s.id, Name: s.name, Properties: s.properties, Strict: !s.set().LenientErrors, Session: uuid.New(),
	}))
	s.in, s.out = proto.Play, proto.Play
	if s.version.HasConfiguration() {
		s.in, s.out = proto.Login, proto.Config
	}
}

// admitted makes a client that has got its login success a player.
func (s *Session) admitted() {
	s.core.cfg.Pending.Leave(&s.place)
	s.core.Counters.Logins.Add(1)
	s.log.Info("player logged in", "uuid", s.id, "protocol", s.protocol, "online", s.online)
	s.client.mark.allow(s.allowance())
	s.greet()
}

// greet tells whoever is interested that there is a new player, before any of its packets is relayed.
func (s *Session) greet() {
	s.greeted = true
	if s.relayed() {
		return // there is nothing to watch, and nothing to be said
	}
	if w := s.core.cfg.Watch; w != nil {
		s.observer = w.Watch(s)
	}
	if h := s.core.cfg.Hooks; h != nil {
		s.hook = h.Hook(s)
	}
}

// clientLogin is the login state once the client is known. Before login success it answers backends, after it one packet
// is left.
func (s *Session) clientLogin(e *event) verdict {
	if s.out == proto.Login {
		return s.modsAnswer(e)
	}
	if s.straggler(e) {
		return handled
	}
	if e.packet != proto.LoginAcknowledged || len(e.body) != 0 {
		return s.violation("packet %d instead of the login acknowledgement", e.id)
	}
	s.timers.settled()
	s.in = proto.Config
	s.client.enter(proto.Config)
	if s.relayed() {
		return s.relay()
	}
	s.begin()
	return handled
}
