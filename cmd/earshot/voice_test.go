package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
)

func TestVoiceSettings(t *testing.T) {
	v := configs.Default().Voice
	v.Regions["arena"] = configs.Region{World: "overworld", From: [3]float64{9, 0, -1}, To: [3]float64{0, 5, 1}, Range: 16, Priority: 2}
	v.Worlds = map[string]float64{"the_nether": 1, "survival/the_end": 2, "minecraft:caves": 3, "survival/twilight:forest": 4}
	v.Groups.Types = []string{"isolated", "normal"}
	if c, err := voiceConfig(&v); err != nil || c.SoundboardOff {
		t.Errorf("the soundboard is off by default: %v, %v", c.SoundboardOff, err)
	}
	v.Soundboard = false
	id := "853c80ef-3c37-49fd-aa49-938b674adae6"
	v.Domains["red"] = []string{id}
	v.Listens = []configs.Listen{{Listener: id, Domain: "red"}}
	c, err := voiceConfig(&v)
	if err != nil {
		t.Fatal(err)
	}
	want := gain.Region{Name: "arena", World: "minecraft:overworld", Min: [3]float64{0, 0, -1}, Max: [3]float64{9, 5, 1}, Range: 16, Priority: 2}
	g := c.Policy.Gain
	if len(g.Regions) != 1 || g.Regions[0] != want || g.Whisper != 0.5 || g.Shout != 2 || g.Default != 48 {
		t.Errorf("%+v", g)
	}
	if got, want := g.Worlds, map[string]float64{
		"minecraft:the_nether": 1, "survival/minecraft:the_end": 2, "minecraft:caves": 3, "survival/twilight:forest": 4,
	}; !maps.Equal(got, want) {
		t.Errorf("the ranges of worlds are %v", got)
	}
	if !c.SoundboardOff {
		t.Error("the soundboard cannot be switched off")
	}
	if l := c.Groups; !l.Enabled || l.Types != [line.GroupTypes]bool{line.NormalGroup: true, line.IsolatedGroup: true} || l.Groups != 200 {
		t.Errorf("%+v", l)
	}
	for typ, word := range configs.GroupTypes {
		if line.GroupType(typ).String() != strings.ToUpper(word) {
			t.Errorf("type %d is %q", typ, word)
		}
	}
	if s := c.Declared; len(s.Domains) != 1 || len(s.Domains[0].Members) != 1 || s.Domains[0].Members[0].String() != id || len(s.Listens) != 1 {
		t.Errorf("%+v", s)
	}
	v.Domains["a blank"] = nil
	if _, err := voiceConfig(&v); err == nil {
		t.Error("a domain of two words is accepted")
	}
}

func TestRights(t *testing.T) {
	perms, err := perm.New(permissions(&configs.Permissions{
		Groups:    map[string]configs.PermissionGroup{"staff": {Nodes: []string{"socketsvc.*"}}},
		Players:   map[string]configs.PermissionPlayer{"Quiet": {Nodes: []string{"-socketsvc.speak", "-socketsvc.groups.create"}}},
		Operators: map[int]string{3: "staff"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	reg := world.New()
	of := rights(reg, perms)
	quiet := reg.Add(uuid.New(), "quiet")
	if got := of(quiet.ID); got != voice.Open {
		t.Errorf("not evaluated yet: %b", got)
	}
	place := reg.Place("a", "b")
	quiet.SetFacts(world.Facts{Place: place})
	if got := of(quiet.ID); got != voice.Open&^voice.Speak&^voice.CreateGroups {
		t.Errorf("a player: %b", got)
	}
	quiet.SetFacts(world.Facts{Place: place, OpLevel: 4})
	if got := of(quiet.ID); got != (voice.Open|voice.AdminGroups|voice.MuteExempt)&^voice.Speak&^voice.CreateGroups {
		t.Errorf("an operator, with what is his own first: %b", got)
	}
}

// barred is a player who keeps what the action bar shows.
type barred struct {
	session.Player
	locale string
	lines  []string
}

func (b *barred) Locale() string { return b.locale }

func (b *barred) ActionBar(text string) error { b.lines = append(b.lines, text); return nil }

func TestNotice(t *testing.T) {
	texts, err := commands.NewTexts(map[string]map[string]string{"de": {"notice-speak": "Du darfst hier nicht sprechen"}})
	if err != nil {
		t.Fatal(err)
	}
	id, p := uuid.New(), &barred{locale: "de_at"}
	tell := notice(func(who uuid.UUID) session.Player {
		if who == id {
			return p
		}
		return nil
	}, texts.Say)
	tell(uuid.New(), voice.ServerMuted) // has left
	tell(id, voice.ServerMuted)
	tell(id, voice.SpeakRefused)
	if got := strings.Join(p.lines, "; "); got != "Your voice is muted by the server; Du darfst hier nicht sprechen" {
		t.Error(got)
	}
	for why, key := range notices {
		if got := texts.Say("", key).String(); got != why.String() {
			t.Errorf("%v is told as %q", why, got)
		}
	}
}

// BenchmarkRights is what a turn asks for each of a thousand players.
func BenchmarkRights(b *testing.B) {
	perms, err := perm.New(permissions(&configs.Permissions{Groups: map[string]configs.PermissionGroup{"default": {Nodes: []string{"-socketsvc.groups.*"}}}}))
	if err != nil {
		b.Fatal(err)
	}
	reg := world.New()
	place := reg.Place("a", "b")
	var all []uuid.UUID
	for range 1000 {
		p := reg.Add(uuid.New(), "somebody")
		p.SetFacts(world.Facts{Place: place})
		all = append(all, p.ID)
	}
	of := rights(reg, perms)
	b.ReportAllocs()
	for b.Loop() {
		for _, id := range all {
			of(id)
		}
	}
}
