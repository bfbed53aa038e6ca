package session

import (
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Hooks decide about packets of the play state before they go on: commands, for instance.
type Hooks interface {
	// Wants lists the packets to decide about. It is called once for each version and direction.
	Wants(v *proto.Version, d proto.Dir) []proto.Packet
	// Hook is called once for each player that has logged in. A nil Hook decides nothing.
	Hook(p Player) Hook
}

// Hook decides for one player. All its methods are called from one goroutine, which must not be blocked: the player's
// traffic waits. Bodies begin behind the packet id and are valid during the call. A panic ends the player's session.
type Hook interface {
	Serverbound(p proto.Packet, body []byte) Answer
	// Clientbound returns a new body for a backend's packet; nil: its own.
	Clientbound(p proto.Packet, body []byte) []byte
	// Announce returns the body of a DeclareCommands for the client when its commands have changed; nil: they have not.
	Announce() []byte
	Reset() // the backend's commands are over: at each join game and each start of a configuration
	Close() // the player is gone; the last call
}

// Answer says what to do with a client's packet. The zero Answer forwards it.
type Answer struct {
	Drop  bool         // it does not go on; implied by the others
	Ack   []byte       // the body of a MessageAcknowledgement for the backend in its place
	Reply []byte       // the body of a TabComplete for the client
	Kick  *packet.Text // the session ends with this reason
	Flood bool         // with Kick: since the client sends too much
}

// hooked asks the hook about a packet of the client's that could go on.
func (s *Session) hooked(e *relay.Event) relay.Verdict {
	if s.hook == nil {
		return relay.Forward
	}
	a := s.hook.Serverbound(e.Packet, e.Body)
	switch {
	case a.Kick != nil:
		e := EndDisconnected
		if a.Flood {
			e = EndFlood
		}
		s.end(e, reason{text: *a.Kick})
		return relay.Handled
	case a.Ack != nil:
		if l := s.route.current; l != nil {
			s.toBackend(l, proto.MessageAcknowledgement, a.Ack)
		}
	case a.Reply != nil:
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.TabComplete); ok && s.client.out == proto.Play {
			s.toClient(id, a.Reply)
		}
	case !a.Drop:
		return relay.Forward
	}
	return relay.Handled
}

// Announce asks the hook of each player in play whether the player's commands have changed, and tells the client.
func (c *Core) Announce() {
	for _, s := range c.players.all() {
		s.post(letter{do: func() { // a client with a full mailbox hears of it on the next server
			if s.hook == nil {
				return
			}
			body := s.hook.Announce()
			if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.DeclareCommands); ok && body != nil {
				s.toClient(id, body)
			}
		}})
	}
}

// Backchannel gets messages of backends on plugin channels between backends and proxies: BungeeCord's. Nothing on these
// reaches a client, and messages of clients there are dropped. All calls for one player come from one goroutine, which
// must not be blocked.
type Backchannel interface {
	Message(from Backend, channel string, data []byte) // data is valid during the call
	Joined(on Backend)                                 // once for each time the player has come to be on a server
}

// Backend is the connection to a server that a player has or had. Its methods may be called from any goroutine.
type Backend interface {
	Server() string
	Player() Player
	// SendPlugin sends a plugin message to this very connection, with the conditions of Player.SendPlugin. If the
	// connection is gone by then, the message is lost.
	SendPlugin(channel string, data []byte) error
}

// backendRef is a [Backend].
type backendRef struct {
	s *Session
	l *link
}

func (b backendRef) Server() string { return b.l.name }
func (b backendRef) Player() Player { return b.s }

func (b backendRef) SendPlugin(channel string, data []byte) error {
	body := packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: channel, Data: data})
	return b.s.post(letter{bytes: len(body), any: true, do: func() {
		if b.l == b.s.route.current || b.l == b.s.route.inflight {
			b.s.toBackend(b.l, proto.CustomPayload, body)
		}
	}})
}
