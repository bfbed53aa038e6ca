package session

import (
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// topic is the subject of a plugin channel, as far as the proxy cares.
type topic uint8

const (
	otherTopic topic = iota
	registerTopic
	unregisterTopic
	brandTopic
	fmlTopic    // the handshake of Forge up to 1.12.2
	bungeeTopic // between backends and proxies only: messages there move and kick players
)

// topicOf knows the names of all versions. A name without namespace means minecraft: from 1.13 on, and some servers do
// leave it out.
func topicOf(channel []byte) topic {
	switch string(channel) {
	case "minecraft:register", "register", "REGISTER":
		return registerTopic
	case "minecraft:unregister", "unregister", "UNREGISTER":
		return unregisterTopic
	case "minecraft:brand", "brand", "MC|Brand":
		return brandTopic
	case fmlChannel:
		return fmlTopic
	case "bungeecord:main", "BungeeCord":
		return bungeeTopic
	}
	return otherTopic
}

// concerns reports whether the owner has to see a plugin message. Both readers call it for every plugin message.
func (s *Session) concerns(d proto.Dir, channel []byte, size int) bool {
	if s.core.owns(channel) {
		return true
	}
	t := topicOf(channel)
	if d == proto.Clientbound {
		return t == bungeeTopic || t == fmlTopic && s.fmlClient() || t == brandTopic && s.set().Brand != ""
	}
	return t != otherTopic || size > s.set().MaxMessage
}

func (c *Core) owns(channel []byte) bool { return c.channels.of(channel) != nil }

// said bounds what a client may still say on the channels that the proxy cares about. It is the owner's.
type said struct {
	rate limit.Rate
	left *limit.Bucket
}

func (x *said) allow(r limit.Rate) bool {
	if x.left == nil || x.rate != r {
		x.rate, x.left = r, limit.NewBucket(r)
	}
	return x.left.Allow()
}

// clientMessage decides about a plugin message from the client.
func (s *Session) clientMessage(e *relay.Event) relay.Verdict {
	owner, t := s.core.channels.of([]byte(e.Channel)), topicOf([]byte(e.Channel))
	if (owner != nil || t != otherTopic) && !s.client.said.allow(s.set().Channels) {
		s.log.Debug("client floods plugin channels", "channel", printable(e.Channel), "state", s.client.in)
		s.end(EndFlood, s.because("kick-flood"))
		return relay.Handled
	}
	if owner != nil {
		owner.Message(s, e.Channel, e.Data)
		return relay.Handled
	}
	if most := s.set().MaxMessage; len(e.Data) > most {
		if s.core.complaints.due("plugin message") {
			s.log.Warn("a client's plugin message is longer than allowed; the player is disconnected. limits.plugin-message allows more",
				"channel", printable(e.Channel), "bytes", len(e.Data), "most", most)
		}
		return s.violation("plugin message of %d bytes on %s", len(e.Data), printable(e.Channel))
	}
	stated, prompt := true, false
	switch t {
	case fmlTopic:
		stated, prompt = false, s.fmlClient()
		s.fmlAnswer(e.Data)
	case bungeeTopic:
		s.core.Counters.Forged[proto.Serverbound].Add(1)
		return relay.Handled
	case registerTopic:
		prompt = s.client.fml == fmlUnderWay
		names := s.channelNames(e.Data)
		s.client.facts.register(names)
		if len(names) > 0 {
			s.core.channels.registered(s, names)
		}
	case unregisterTopic:
		s.client.facts.unregister(s.channelNames(e.Data))
	case brandTopic:
		if len(e.Body) <= maxBrand {
			s.client.facts.brand = append([]byte(nil), e.Body...)
		}
	default:
		stated = false
	}
	if l := s.route.partner(); prompt && l != nil && e.Pump.Dest() == nil {
		s.toBackend(l, proto.CustomPayload, e.Body) // it waits for that before it lets the player in
		return relay.Handled
	}
	return s.forwardOrWait(e, stated)
}

// backendMessage decides about a plugin message from a backend.
func (s *Session) backendMessage(l *link, e *relay.Event) relay.Verdict {
	if s.core.owns([]byte(e.Channel)) {
		s.core.Counters.Forged[proto.Clientbound].Add(1)
		s.log.Debug("backend sent a plugin message on a channel of the proxy; dropped", "backend", l.name, "channel", e.Channel)
		return relay.Handled
	}
	switch topicOf([]byte(e.Channel)) {
	case fmlTopic:
		s.fmlQuestion(e.Data)
	case bungeeTopic:
		if b := s.core.cfg.Backends; b != nil {
			b.Message(backendRef{s, l}, e.Channel, e.Data)
		} else {
			s.core.Counters.Forged[proto.Clientbound].Add(1)
		}
		return relay.Handled
	case brandTopic:
		if s.set().Brand == "" {
			return relay.Forward
		}
		brand, err := packet.ParseBrand(e.Data)
		if err != nil {
			return relay.Forward
		}
		data := packet.AppendBrand(nil, brand+" ("+s.set().Brand+")")
		s.toClient(e.ID, packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: e.Channel, Data: data}))
		return relay.Handled
	}
	return relay.Forward
}

// channelNames returns the channels in the data of a register message; none when they are too many to be true. The
// message goes on in any case.
func (s *Session) channelNames(data []byte) []string {
	names, err := packet.ParseChannels(s.client.version.Protocol, data)
	if err != nil {
		s.undecoded(proto.CustomPayload)
	}
	return names
}
