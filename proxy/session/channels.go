package session

import (
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// topic is what a plugin channel is about, as far as the proxy cares.
type topic uint8

const (
	otherTopic topic = iota
	registerTopic
	unregisterTopic
	brandTopic
	fmlTopic    // the handshake of Forge up to 1.12.2
	bungeeTopic // between backends and proxies only: whoever can send there moves and kicks players
)

// topicOf knows the names of all versions. A name without namespace means minecraft: from 1.13 on, and some servers
// do leave it out.
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

// concerns reports whether the owner has to see a plugin message. Both readers call it, for every plugin message.
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

func (c *Core) owns(channel []byte) bool {
	return c.channels != nil && c.channels.Owns(string(channel))
}

// said is what a client may still say on the channels that the proxy cares about. It is the owner's.
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

// clientMessage decides a plugin message from the client.
func (s *Session) clientMessage(e *event) verdict {
	ours, t := s.core.owns([]byte(e.channel)), topicOf([]byte(e.channel))
	if (ours || t != otherTopic) && !s.client.said.allow(s.set().Channels) {
		s.log.Debug("client floods plugin channels", "channel", printable(e.channel), "state", s.client.in)
		s.end(EndFlood, s.because("kick-flood"))
		return handled
	}
	if ours {
		s.core.channels.Message(s, e.channel, e.data)
		return handled
	}
	if most := s.set().MaxMessage; len(e.data) > most {
		if s.core.complaints.due("plugin message") {
			s.log.Warn("a client's plugin message is longer than allowed; the player is disconnected. limits.plugin-message allows more",
				"channel", printable(e.channel), "bytes", len(e.data), "most", most)
		}
		return s.violation("plugin message of %d bytes on %s", len(e.data), printable(e.channel))
	}
	stated, prompt := true, false
	switch t {
	case fmlTopic:
		stated, prompt = false, s.fmlClient()
		s.fmlAnswer(e.data)
	case bungeeTopic:
		s.core.Counters.Forged[proto.Serverbound].Add(1)
		return handled
	case registerTopic:
		prompt = s.client.fml == fmlUnderWay
		names := s.channelNames(e.data)
		s.client.memory.register(names)
		if s.core.channels != nil && len(names) > 0 {
			s.core.channels.Registered(s, names)
		}
	case unregisterTopic:
		s.client.memory.unregister(s.channelNames(e.data))
	case brandTopic:
		if len(e.body) <= maxBrand {
			s.client.memory.brand = append([]byte(nil), e.body...)
		}
	default:
		stated = false
	}
	if l := s.route.partner(); prompt && l != nil && e.pump.dest.Load() == nil {
		s.toBackend(l, proto.CustomPayload, e.body) // it waits for that before it lets the player in
		return handled
	}
	return s.forwardOrWait(e, stated)
}

// backendMessage decides a plugin message from a backend.
func (s *Session) backendMessage(l *link, e *event) verdict {
	if s.core.owns([]byte(e.channel)) {
		s.core.Counters.Forged[proto.Clientbound].Add(1)
		s.log.Debug("backend sent a plugin message on a channel of the proxy; dropped", "backend", l.name, "channel", e.channel)
		return handled
	}
	switch topicOf([]byte(e.channel)) {
	case fmlTopic:
		s.fmlQuestion(e.data)
	case bungeeTopic:
		if b := s.core.cfg.Backends; b != nil {
			b.Message(backendRef{s, l}, e.channel, e.data)
		} else {
			s.core.Counters.Forged[proto.Clientbound].Add(1)
		}
		return handled
	case brandTopic:
		if s.set().Brand == "" {
			return forward
		}
		brand, err := packet.ParseBrand(e.data)
		if err != nil {
			return forward
		}
		data := packet.AppendBrand(nil, brand+" ("+s.set().Brand+")")
		s.toClient(e.id, packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: e.channel, Data: data}))
		return handled
	}
	return forward
}

// channelNames are the channels in the data of a register message. Too many to be true are none at all; the message
// goes on in any case.
func (s *Session) channelNames(data []byte) []string {
	names, err := packet.ParseChannels(s.client.version.Protocol, data)
	if err != nil {
		s.undecoded(proto.CustomPayload)
	}
	return names
}
