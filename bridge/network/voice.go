package network

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
)

// voiceConfig is the voice section as the gateway takes it.
func voiceConfig(v *configs.Voice) (c voice.Config, err error) {
	if c.Policy.Spectators, err = route.ParseSpectators(v.Spectators); err != nil {
		return c, err
	}
	c.Policy.Gain = gain.Rules{Default: v.Range, Worlds: make(map[string]float64), Whisper: v.Whisper, Shout: v.Shout}
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
	for t, word := range configs.GroupTypes { // in the order of line's
		c.Groups.Types[line.GroupType(t)] = slices.Contains(g.Types, word)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Domains)) {
		d := relation.Domain{Name: name}
		for _, m := range v.Domains[name] {
			d.Members = append(d.Members, uuid.MustParse(m)) // checked by Load
		}
		c.Declared.Domains = append(c.Declared.Domains, d)
	}
	for _, l := range v.Listens {
		c.Declared.Listens = append(c.Declared.Listens, relation.Listen{Listener: uuid.MustParse(l.Listener), Domain: l.Domain})
	}
	for _, e := range v.Edges {
		c.Declared.Edges = append(c.Declared.Edges, relation.Edge{Speaker: uuid.MustParse(e.Speaker), Listener: uuid.MustParse(e.Listener)})
	}
	for _, d := range c.Declared.Domains {
		if err := d.Check(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// sights are the rules by which servers show their players to each other.
func sights(l *configs.Loaded) (rules map[string]sight.Rule, other sight.Rule, err error) {
	if other, err = sight.ParseRule(l.Voice.Visibility, ""); err != nil {
		return nil, other, fmt.Errorf("voice.visibility: %w", err)
	}
	rules = make(map[string]sight.Rule)
	first := make(map[string]string) // by address
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		r, err := sight.ParseRule(cmp.Or(s.Visibility, l.Voice.Visibility), s.Bodies)
		if err != nil {
			return nil, other, fmt.Errorf("servers.%s: %w", name, err)
		}
		if same, ok := first[s.Address]; ok {
			r.As = same
		} else {
			first[s.Address] = name
		}
		rules[name] = r
	}
	return rules, other, nil
}

// permissions is the section of that name.
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

// nodes are the permissions of voice.
var nodes = []struct {
	node string
	bit  voice.Bits
}{
	{perm.Speak, voice.Speak}, {perm.Listen, voice.Listen}, {perm.Soundboard, voice.Soundboard}, {perm.Groups, voice.UseGroups},
	{perm.GroupsCreate, voice.CreateGroups}, {perm.GroupsInvite, voice.Invite}, {perm.GroupsAdmin, voice.AdminGroups},
	{perm.GroupsKeep, voice.KeepGroups}, {perm.MuteExempt, voice.MuteExempt},
}

// notices are the texts of why somebody is not heard.
var notices = map[voice.Reason]string{
	voice.SoundboardOff: "notice-soundboard-off", voice.SoundboardRefused: "notice-soundboard", voice.ServerMuted: "notice-muted",
	voice.SpeakRefused: "notice-speak",
}

// teller tells players what holds for their voices.
type teller struct {
	player func(uuid.UUID) session.Player // nil: has left
	texts  func() *commands.Texts
	muteOf func(uuid.UUID) mute.State
}

// teller is one of this network.
func (d *desk) teller() teller {
	return teller{
		d.server.Player, func() *commands.Texts { return d.office.Load().commands.Texts() },
		func(id uuid.UUID) mute.State { return d.voice.MuteOf(id) },
	}
}

// notice tells players on their action bars why nobody hears them, and where that is a mute, for how long and why.
func (t teller) notice(id uuid.UUID, why voice.Reason) {
	p := t.player(id)
	if p == nil {
		return
	}
	text := ""
	if s := t.muteOf(id); why == voice.ServerMuted && s.Kind != line.NotMuted {
		text = t.texts().StillMuted(p.Locale(), silence(s))
	} else {
		text = t.texts().Say(p.Locale(), notices[why]).String()
	}
	p.ActionBar(text) // who has too much waiting, or has left, goes without
}

// muted tells players in the chat of the mutes on them.
func (t teller) muted(id uuid.UUID, was, is mute.State) {
	p := t.player(id)
	switch {
	case p == nil:
	case is.Kind == line.NotMuted:
		p.SendChat(t.texts().Unmuted(p.Locale(), was.Kind == line.MutedServer))
	default:
		p.SendChat(t.texts().Muted(p.Locale(), p.Protocol(), silence(is)))
	}
}

func silence(s mute.State) commands.Silence {
	of := commands.Silence{All: s.Kind == line.MutedServer, Reason: s.Reason}
	if !s.Until.IsZero() {
		of.Left = max(time.Until(s.Until), 1)
	}
	return of
}

// rights tells voice what a player may do. Until the backend has said where a player is, his operator level is not known
// either, and he may what everybody may. What it returns serves one goroutine.
func rights(reg *world.Registry, perms *perm.Perm) func(player uuid.UUID) voice.Bits {
	type answer struct {
		player  *world.Player
		level   uint8
		version uint64
		bits    voice.Bits
	}
	known := make(map[uuid.UUID]answer) // it is asked again and again
	return func(id uuid.UUID) voice.Bits {
		p := reg.Get(id)
		if p == nil || p.Facts().Place == nil {
			return voice.Open
		}
		a := answer{player: p, level: p.Facts().OpLevel, version: perms.Version()}
		if k := known[id]; k.player == p && k.level == a.level && k.version == a.version {
			return k.bits
		}
		set := perms.Of(id, p.Name, a.level)
		for _, n := range nodes {
			if set.Allows(n.node) {
				a.bits |= n.bit
			}
		}
		if len(known) > 4096 { // most of them have left
			clear(known)
		}
		known[id] = a
		return a.bits
	}
}
