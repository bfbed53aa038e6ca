package network

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/speaker"
)

// Domains implements commands.Declarations, as the methods from here to the next comment of this kind do.
func (v voices) Domains() (all []commands.Domain, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error {
		fixed := b.Fixed().Domains
		for _, name := range b.Names() {
			d := commands.Domain{Name: name}
			if own, ok := b.Domains.Get(name); ok {
				d.Standing, d.Members = true, slices.Clone(own.Members)
			}
			if i := slices.IndexFunc(fixed, func(f relation.Domain) bool { return f.Name == name }); i >= 0 {
				d.Fixed, d.FixedMembers = true, fixed[i].Members
			}
			all = append(all, d)
		}
		return nil
	})
	return all, err
}

func (v voices) DomainNames() []string { return v.n.parts.gateway.Domains() }

func (v voices) AddToDomain(domain string, players ...uuid.UUID) error {
	return v.n.parts.gateway.Declare(func(b *relation.Book) error { return b.AddMembers(domain, players...) })
}

func (v voices) RemoveFromDomain(domain string, player uuid.UUID) (was bool, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error { was = b.RemoveMember(domain, player); return nil })
	return was, err
}

func (v voices) DeleteDomain(domain string) (was bool, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error { was = b.Domains.Delete(domain); return nil })
	return was, err
}

func (v voices) Listens() (all []commands.Listen, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error {
		for _, l := range b.Fixed().Listens {
			all = append(all, commands.Listen{Listener: l.Listener, Domain: l.Domain, Fixed: true})
		}
		for _, l := range b.Listens.All() {
			all = append(all, commands.Listen{Listener: l.Listener, Domain: l.Domain})
		}
		return nil
	})
	return all, err
}

func (v voices) AddListen(l commands.Listen) error {
	return v.n.parts.gateway.Declare(func(b *relation.Book) error {
		return b.Listens.Put(relation.Listen{Listener: l.Listener, Domain: l.Domain})
	})
}

func (v voices) RemoveListen(l commands.Listen) (was bool, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error {
		was = b.Listens.Delete(relation.Listen{Listener: l.Listener, Domain: l.Domain}.Key())
		return nil
	})
	return was, err
}

func (v voices) Edges() (all []commands.Edge, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error {
		for _, e := range b.Fixed().Edges {
			all = append(all, commands.Edge{Speaker: e.Speaker, Listener: e.Listener, Fixed: true})
		}
		for _, e := range b.Edges.All() {
			all = append(all, commands.Edge{Speaker: e.Speaker, Listener: e.Listener})
		}
		return nil
	})
	return all, err
}

func (v voices) AddEdge(e commands.Edge) error {
	return v.n.parts.gateway.Declare(func(b *relation.Book) error {
		return b.Edges.Put(relation.Edge{Speaker: e.Speaker, Listener: e.Listener})
	})
}

func (v voices) RemoveEdge(e commands.Edge) (was bool, err error) {
	err = v.n.parts.gateway.Declare(func(b *relation.Book) error {
		was = b.Edges.Delete(relation.Edge{Speaker: e.Speaker, Listener: e.Listener}.Key())
		return nil
	})
	return was, err
}

// Speakers implements commands.Speakers, as do the rest.
func (v voices) Speakers() (all []commands.Speaker) {
	for _, s := range v.n.parts.gateway.SpeakerBook().All() {
		all = append(all, commands.Speaker{
			Name: s.Name, Spot: commands.Spot{Server: s.Server, World: s.World, X: s.X, Y: s.Y, Z: s.Z},
			Volume: s.Volume, Range: s.Range, Allow: s.Allow, File: s.File, Loop: s.Loop != "", From: s.From, Failed: s.Failed,
		})
	}
	return all
}

func (v voices) PutSpeaker(s commands.Speaker) error {
	defer v.n.parts.gateway.SpeakersStored()
	return v.n.parts.gateway.SpeakerBook().Put(speaker.Record{
		Name: s.Name, Server: s.Server, World: s.World, X: s.X, Y: s.Y, Z: s.Z, Volume: s.Volume, Range: s.Range, Allow: s.Allow,
	})
}

func (v voices) RemoveSpeaker(name string) bool {
	defer v.n.parts.gateway.SpeakersStored()
	return v.n.parts.gateway.SpeakerBook().Remove(name)
}

func (v voices) Play(name, file string, loop bool) (time.Duration, error) {
	defer v.n.parts.gateway.SpeakersStored()
	return v.n.parts.gateway.SpeakerBook().Play(name, file, loop)
}

func (v voices) Relay(name string, player uuid.UUID) error {
	defer v.n.parts.gateway.SpeakersStored()
	return v.n.parts.gateway.SpeakerBook().Relay(name, player)
}

func (v voices) Stop(name string) bool {
	defer v.n.parts.gateway.SpeakersStored()
	return v.n.parts.gateway.SpeakerBook().Stop(name)
}

func (v voices) Sounds() []string { return v.n.parts.gateway.SpeakerBook().Sounds() }

func (v voices) Where(player uuid.UUID) (s commands.Spot, ok bool) {
	p := v.n.world.Get(player)
	if p == nil {
		return s, false
	}
	at := p.Pose()
	if at == nil {
		return s, false
	}
	return commands.Spot{Server: at.Place.Backend, World: at.Place.World, X: at.X, Y: at.Y, Z: at.Z}, true
}
