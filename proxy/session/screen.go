package session

import (
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// screen holds what the client has from its backends: what a change of backend must clean, and what it needs to know
// for that. It is the owner's.
type screen struct {
	joined     bool // the client has been in a world
	playing    bool // a join game reached the client and no start configuration since
	awaitStart bool // start configuration is unanswered
	awaitEnd   bool // finish configuration is unanswered

	packs packs // the resource packs that the client was told to load

	// Left by backends that are gone.
	bundle     bool            // one that is open
	effects    bool            // post effects
	registered bool            // registries, in this configuration
	stalePacks int             // answers about known packs that the client still owes them
	leftovers  relay.Leftovers // entries of lists
}

// changing reports whether the client owes the acknowledgement of a change of state.
func (c *screen) changing() bool { return c.awaitStart || c.awaitEnd }

// inherit takes over what a backend leaves on the client. Its reader must have ended.
func (c *screen) inherit(l *link) {
	c.bundle = c.bundle || l.pump.Traces.Bundle.Load()
	c.registered = c.registered || l.pump.Traces.Registry.Load()
	c.effects = c.effects || l.pump.Traces.Effects.Load()
	c.stalePacks += max(l.pump.Traces.Packs-l.packs, 0)
	c.leftovers.Add(&l.pump.Traces.Leftovers)
	c.packs.orphan(l)
}

// release ends the connection to a backend that has left something on the client.
func (s *Session) release(l *link) {
	s.closeLink(l)
	s.screen.inherit(l)
}

// configuring notes a start of configuration, whoever sent it to the client: nothing but its acknowledgement is now
// expected of the client.
func (s *Session) configuring() {
	s.screen.playing, s.screen.registered = false, false
	s.screen.awaitStart = true
	s.timers.within(s.set().Timeouts.ConfigAnswer, s.stuck)
	s.forgetPacks()
	if s.hook != nil {
		s.hook.Reset()
	}
}

// clearEffects takes the post effects of a lost server off a client in configuration: whether the client drops them by
// itself is not known, and the next server may send none.
func (s *Session) clearEffects() {
	if !s.screen.effects {
		return
	}
	s.screen.effects = false
	if id, ok := s.client.version.ID(proto.Config, proto.Clientbound, proto.PostEffects); ok && s.client.out == proto.Config {
		s.toClient(id, field.AppendVarInt(nil, 0))
	}
}

// closeBundle ends a bundle that a lost backend left open: a client takes no change of state inside one, and holds back
// everything in it.
func (s *Session) closeBundle() {
	if !s.screen.bundle {
		return
	}
	s.screen.bundle = false
	if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, proto.BundleDelimiter); ok && s.client.out == proto.Play {
		s.toClient(id, nil)
	}
}

// clean takes away what the last backend left on a client in play and a change of world leaves there. It is the one
// routine for that, whatever made the player leave.
func (s *Session) clean() {
	send := func(p proto.Packet, body []byte) {
		if id, ok := s.client.version.ID(proto.Play, proto.Clientbound, p); ok && s.ending == endNone {
			s.toClient(id, body)
		}
	}
	d := &s.screen.leftovers
	if !s.client.version.HasConfiguration() { // later versions clean up in the configuration
		if ids := d.Players.All(); len(ids) > 0 {
			p := proto.PlayerInfo
			if proto.Has(s.client.protocol, proto.PlayerInfoBits) {
				p = proto.PlayerRemove
			}
			send(p, packet.AppendPlayerRemove(nil, s.client.protocol, ids...))
		}
		for _, id := range d.Bars.All() {
			send(proto.BossBar, field.AppendVarInt(field.AppendUUID(nil, id), relay.BossRemove))
		}
		empty := packet.Plain("").Append(nil, s.client.protocol, proto.Play)
		send(proto.PlayerlistHeader, append(empty, empty...))
	}
	*d = relay.Leftovers{}
	switch {
	case proto.Has(s.client.protocol, proto.TitlePackets):
		send(proto.ClearTitles, []byte{1})
	case proto.Has(s.client.protocol, proto.TitleWithActionBar):
		send(proto.Title, field.AppendVarInt(nil, 5))
	default:
		send(proto.Title, field.AppendVarInt(nil, 4))
	}
}
