package network

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// voiceConfig returns the voice section as the gateway takes it.
func voiceConfig(v *configs.Voice) (c voice.Config, err error) {
	var wrong []error
	c.Policy.Spectators, err = route.ParseSpectators(v.Spectators)
	wrong = append(wrong, at("voice.spectators", err))
	player := func(key, id string) uuid.UUID {
		is, err := uuid.Parse(id) // Load has checked it
		wrong = append(wrong, at(key, err))
		return is
	}
	c.Policy.Gain = gain.Rules{Default: v.Range, Worlds: make(map[string]float64), Tiers: [talk.Tiers]float64{talk.Whisper: v.Whisper, talk.Shout: v.Shout}}
	for _, name := range slices.Sorted(maps.Keys(v.Worlds)) {
		c.Policy.Gain.Worlds[world.WorldName(name)] = v.Worlds[name]
	}
	for _, name := range slices.Sorted(maps.Keys(v.Regions)) {
		r := v.Regions[name]
		box := gain.Region{Name: name, World: world.WorldName(r.World), Priority: r.Priority, Range: r.Range}
		for i := range box.Min {
			box.Min[i], box.Max[i] = min(r.From[i], r.To[i]), max(r.From[i], r.To[i])
		}
		c.Policy.Gain.Regions = append(c.Policy.Gain.Regions, box)
	}
	c.SoundboardOff, c.Sounds = !v.Soundboard, v.Sounds
	g := v.Groups
	c.Groups = group.Limits{
		Enabled: g.Enabled, Groups: g.Max, Members: g.Members, Passwords: g.Passwords, Persistent: g.Persistent,
		Owned: g.Owned, Unused: time.Duration(g.UnusedDays) * 24 * time.Hour,
	}
	for t, word := range configs.GroupTypes { // in the order of talk's
		c.Groups.Types[talk.GroupType(t)] = slices.Contains(g.Types, word)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Domains)) {
		d, key := relation.Domain{Name: name}, `voice.domains."`+name+`"`
		for _, m := range v.Domains[name] {
			d.Members = append(d.Members, player(key, m))
		}
		wrong = append(wrong, at(key, d.Check()))
		c.Declared.Domains = append(c.Declared.Domains, d)
	}
	for _, l := range v.Listens {
		c.Declared.Listens = append(c.Declared.Listens, relation.Listen{Listener: player("voice.listens", l.Listener), Domain: l.Domain})
	}
	for _, e := range v.Edges {
		c.Declared.Edges = append(c.Declared.Edges, relation.Edge{Talker: player("voice.edges", e.Talker), Listener: player("voice.edges", e.Listener)})
	}
	return c, errors.Join(wrong...)
}

// sights returns the rules by which servers show their players to each other.
func sights(l *configs.Loaded) (rules map[string]sight.Rule, other sight.Rule, err error) {
	if other, err = sight.ParseRule(l.Voice.Visibility, ""); err != nil {
		return nil, other, at("voice.visibility", err)
	}
	var wrong []error
	rules = make(map[string]sight.Rule)
	first := make(map[string]string) // by address
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		r, err := sight.ParseRule(cmp.Or(s.Visibility, l.Voice.Visibility), s.Bodies)
		wrong = append(wrong, at("servers."+name, err))
		if same, ok := first[s.Address]; ok {
			r.As = same
		} else {
			first[s.Address] = name
		}
		rules[name] = r
	}
	return rules, other, errors.Join(wrong...)
}

// permissions returns the section of that name.
func permissions(p *configs.Permissions) perm.Config {
	c := perm.Config{Groups: make(map[string]perm.Group), Players: make(map[string]perm.Player), Operators: p.Operators}
	for name, g := range p.Groups {
		c.Groups[name] = perm.Group(g)
	}
	for name, pl := range p.Players {
		c.Players[name] = perm.Player(pl)
	}
	return c
}
