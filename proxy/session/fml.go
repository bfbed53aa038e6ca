package session

import (
	"bytes"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Forge up to 1.12.2 shakes hands in play, before the join game: the server's hello, the client's, both lists of mods,
// the server's registries, and acknowledgements of the phases. A client that has gone through it, or has met a server
// without mods, begins again only after a reset, which puts its registries back; and only when nothing is under way.

const fmlChannel = "FML|HS"

// Discriminators of messages on the channel.
const (
	fmlServerHello = 0
	fmlClientMods  = 2
)

var fmlResetMessage = []byte{0xfe, 0}

// fmlStage says what a client of Forge up to 1.12.2 waits for.
type fmlStage uint8

const (
	fmlNone     fmlStage = iota // a server's hello, or a join game
	fmlUnderWay                 // the rest of the handshake, and then the join game
	fmlOver                     // nothing: it plays
)

// fmlClient reports whether the client has such a Forge.
func (s *Session) fmlClient() bool {
	return s.client.marker != "" && !proto.Has(s.client.protocol, proto.NamespacedChannels)
}

// fmlQuestion notes a message to the client.
func (s *Session) fmlQuestion(data []byte) {
	if s.fmlClient() && len(data) > 0 && data[0] == fmlServerHello {
		s.client.fml = fmlUnderWay
	}
}

// fmlAnswer notes a message of the client's.
func (s *Session) fmlAnswer(data []byte) {
	if s.client.fml != fmlUnderWay || len(data) == 0 || data[0] != fmlClientMods {
		return
	}
	mods, err := packet.ParseForgeMods(data[1:])
	if err != nil {
		s.undecoded(proto.CustomPayload)
		return
	}
	s.log.Info("the player has mods", "count", len(mods))
	s.client.forgeMods.Store(&mods)
}

// fmlReset makes the client ready for a hello.
func (s *Session) fmlReset() {
	if s.client.fml != fmlOver {
		return
	}
	s.client.fml = fmlNone
	if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.CustomPayload); ok {
		s.toClient(id, packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: fmlChannel, Data: fmlResetMessage}))
	}
}

// greetsFML reports whether e belongs to the handshake of a backend that the player is on the way to: it comes before
// the join game, and the client has to see it.
func (s *Session) greetsFML(l *link, e *relay.Event) bool {
	if !s.fmlClient() || !s.foreign(l) || e.Packet != proto.CustomPayload || e.Channel == "" {
		return false
	}
	switch topicOf([]byte(e.Channel)) {
	case fmlTopic:
		return true
	case registerTopic: // a server with mods sends it before its hello
		return l.begun || bytes.Contains(e.Data, []byte(fmlChannel))
	}
	return l.begun
}

// shake passes on a message of the handshake. With the first one the player leaves the current backend, since the
// client is about to lose its registries.
func (s *Session) shake(l *link, e *relay.Event) relay.Verdict {
	if !l.begun {
		l.begun = true
		s.part()
		s.fmlReset()
	}
	if s.ending == endNone && s.backendMessage(l, e) == relay.Forward {
		s.pass(e, s.client.to)
	}
	return relay.Handled
}
