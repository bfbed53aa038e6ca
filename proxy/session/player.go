package session

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Player is a client that has logged in. All methods may be called from any goroutine and none blocks.
type Player interface {
	ID() uuid.UUID
	Name() string
	Protocol() int32
	RemoteAddr() netip.AddrPort // as a trusted PROXY header says, never IPv4-mapped
	Host() string               // as typed, but without markers, port and trailing dots, in lower case
	Port() uint16               // the port the client typed
	Online() bool               // the session server, or Geyser, vouched for the account
	// Relayed tells whether the player's version of the game is unknown. Then the proxy only passes on the words of the
	// player and their server, and nothing can be sent to the player.
	Relayed() bool
	// SendPlugin sends a plugin message to the client, or keeps it until the client is in play. It fails when too much
	// is waiting or the player has left. data is not kept.
	SendPlugin(channel string, data []byte) error
	// ActionBar shows a line of plain text above the hot bar, with the same conditions as SendPlugin.
	ActionBar(text string) error
	// SendChat shows a text in the chat window, with the same conditions as SendPlugin.
	SendChat(t packet.Text) error
	Server() string      // the server the player is on; empty: none, or between two
	Ping() time.Duration // how long the client took to answer the last keep-alive; 0: not known yet
	Locale() string      // as the client says, de_at; empty: not known
	// Connect begins to take the player to another server. It fails when it cannot even begin: there is no such server,
	// or the player is there or on the way already. The player is told of later failures.
	Connect(server string) error
	// Transfer tells a client of 1.20.5 or later to leave for another address, with the same conditions as SendPlugin.
	Transfer(host string, port uint16) error
	// ToServer sends a plugin message to the player's server, as if the client had. It fails when there is none or too
	// much is waiting.
	ToServer(channel string, data []byte) error
	// Disconnect ends the session, telling the client why. Only the first reason counts.
	Disconnect(reason string)
	// Kick is Disconnect with a text that is not plain.
	Kick(t packet.Text)
}

var _ Player = (*Session)(nil)

// ID implements [Player].
func (s *Session) ID() uuid.UUID { return s.client.id }

// Name implements [Player].
func (s *Session) Name() string { return s.client.name }

// Protocol implements [Player].
func (s *Session) Protocol() int32 { return s.client.protocol }

// RemoteAddr implements [Player].
func (s *Session) RemoteAddr() netip.AddrPort { return s.client.address }

// Host implements [Player].
func (s *Session) Host() string { return s.client.host }

// Port implements [Player].
func (s *Session) Port() uint16 { return s.client.port }

// Online implements [Player].
func (s *Session) Online() bool { return s.client.online }

// Transferred reports whether another server sent the player here.
func (s *Session) Transferred() bool { return s.client.transfer }

// Properties returns the player's profile properties, such as the skin. The caller must not change them.
func (s *Session) Properties() []packet.Property { return s.client.properties }

// Relayed implements [Player].
func (s *Session) Relayed() bool { return s.relayed() }

// Ping implements [Player].
func (s *Session) Ping() time.Duration { return time.Duration(s.client.ping.Load()) }

// Locale implements [Player].
func (s *Session) Locale() string {
	if l := s.client.locale.Load(); l != nil {
		return *l
	}
	return ""
}

// Mods returns the mods of a client of Forge up to 1.12.2, as it has told the server; nil for any other.
func (s *Session) Mods() []packet.ForgeMod {
	if m := s.client.forgeMods.Load(); m != nil {
		return *m
	}
	return nil
}

// SendPlugin implements [Player].
func (s *Session) SendPlugin(channel string, data []byte) error {
	return s.postPacket(proto.CustomPayload, packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: channel, Data: data}))
}

// ActionBar implements [Player].
func (s *Session) ActionBar(text string) error {
	p, body := packet.ActionBarMessage(s.client.protocol, packet.Plain(text))
	return s.postPacket(p, body)
}

// SendChat implements [Player].
func (s *Session) SendChat(t packet.Text) error {
	p, body := packet.SystemMessage(s.client.protocol, t)
	return s.postPacket(p, body)
}

// tell does as SendChat, for the session's own words. When too much is waiting, they matter least.
func (s *Session) tell(t packet.Text) { s.SendChat(t) }

// Transfer implements [Player].
func (s *Session) Transfer(host string, port uint16) error {
	if _, can := s.client.version.ID(proto.Play, proto.Clientbound, proto.Transfer); !can && !s.relayed() {
		return refusal("the client is too old to be transferred; that takes 1.20.5 or later", "transfer-old", "names", s.client.name)
	}
	return s.postPacket(proto.Transfer, field.AppendVarInt(field.AppendString(nil, host), int32(port)))
}

// postPacket sends a packet of the play state, or keeps it until the client is in play.
func (s *Session) postPacket(p proto.Packet, body []byte) error {
	if s.relayed() {
		return errRelayed
	}
	return s.post(letter{bytes: len(body), do: func() {
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, p); ok {
			s.toClient(id, body)
		}
	}})
}

// ToServer implements [Player].
func (s *Session) ToServer(channel string, data []byte) error {
	switch {
	case s.Server() == "":
		return fmt.Errorf("%s is on no server", s.client.name)
	case s.relayed():
		return errRelayed
	}
	body := packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: channel, Data: data})
	return s.post(letter{bytes: len(body), any: true, do: func() {
		if l := s.route.current; l != nil {
			s.toBackend(l, proto.CustomPayload, body)
		}
	}})
}

func (s *Session) post(l letter) error {
	err := s.client.mail.post(l)
	if err == errMailFull {
		s.core.Counters.Overflows.Add(1)
	}
	return err
}

// Server implements [Player].
func (s *Session) Server() string {
	at, _ := s.route.where.get()
	return at
}

// Connect implements [Player].
func (s *Session) Connect(server string) error {
	b := s.set().server(server)
	switch {
	case b == nil:
		return noServer(server)
	case s.relayed():
		return errRelayed
	}
	if err := s.route.where.head(b); err != nil {
		return err
	}
	err := s.post(letter{do: func() { s.travel(b) }})
	if err != nil {
		at, _ := s.route.where.get()
		s.route.where.set(at, "")
	}
	return err
}

func noServer(name string) error {
	return refusal(fmt.Sprintf("there is no server %q", name), "server-gone", "server", name)
}

// Disconnect implements [Player].
func (s *Session) Disconnect(reason string) { s.leave(EndDisconnected, plain(reason)) }

// Kick implements [Player].
func (s *Session) Kick(t packet.Text) { s.leave(EndDisconnected, reason{text: t}) }
