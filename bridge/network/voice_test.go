package network

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
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

// barred is a player who keeps what the action bar and the chat show.
type barred struct {
	session.Player
	locale     string
	bar, lines []string
}

func (b *barred) Locale() string               { return b.locale }
func (b *barred) Protocol() int32              { return 775 }
func (b *barred) ActionBar(text string) error  { b.bar = append(b.bar, text); return nil }
func (b *barred) SendChat(t packet.Text) error { b.lines = append(b.lines, t.String()); return nil }

func (b *barred) take() (bar, lines string) {
	bar, lines = strings.Join(b.bar, "; "), strings.Join(b.lines, "; ")
	b.bar, b.lines = nil, nil
	return bar, lines
}

func telling(t *testing.T, p *barred, id uuid.UUID, state *mute.State) teller {
	texts, err := commands.NewTexts(map[string]map[string]string{"de": {"notice-speak": "Du darfst hier nicht sprechen", "mute-ends": "Du bist wieder zu hören."}})
	if err != nil {
		t.Fatal(err)
	}
	return teller{
		func(who uuid.UUID) session.Player {
			if who == id {
				return p
			}
			return nil
		}, func() *commands.Texts { return texts }, func(uuid.UUID) mute.State { return *state },
	}
}

func TestNotice(t *testing.T) {
	id, p, state := uuid.New(), &barred{locale: "de_at"}, mute.State{}
	tell := telling(t, p, id, &state)
	tell.notice(uuid.New(), voice.ServerMuted) // has left
	tell.notice(id, voice.ServerMuted)
	tell.notice(id, voice.SpeakRefused)
	if got, _ := p.take(); got != "Your voice is muted by the server; Du darfst hier nicht sprechen" {
		t.Error(got)
	}
	for why, key := range notices {
		if got := tell.texts().Say("", key).String(); got != why.String() {
			t.Errorf("%v is told as %q", why, got)
		}
	}
}

// Whoever speaks and is muted is reminded of it with the time that is left and the reason.
func TestMutedPlayersAreReminded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, p, state := uuid.New(), &barred{}, mute.State{}
		tell := telling(t, p, id, &state)
		in := time.Now().Add(10 * time.Minute)
		for want, s := range map[string]mute.State{
			"Your voice is muted by the server":           {Kind: line.MutedPlayer},
			"Your voice is muted for 10m more: <red>spam": {Kind: line.MutedPlayer, Until: in, Reason: "<red>spam"},
			"Everybody is muted: event":                   {Kind: line.MutedServer, Reason: "event"},
			"Everybody is muted for 10m more":             {Kind: line.MutedServer, Until: in},
		} {
			state = s
			tell.notice(id, voice.ServerMuted)
			if got, _ := p.take(); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		}
	})
}

// The beginning and the end of a mute are told in the chat, in the player's language.
func TestMutesAreToldInTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none, in := mute.State{}, time.Now().Add(90*time.Minute)
		one, all := mute.State{Kind: line.MutedPlayer, Until: in, Reason: "spam"}, mute.State{Kind: line.MutedServer}
		for _, c := range []struct {
			was, is      mute.State
			locale, want string
		}{
			{none, one, "", "Your voice is muted for 1h30m. Nobody hears you. Reason: spam"},
			{none, mute.State{Kind: line.MutedPlayer}, "", "Your voice is muted until the staff lifts it. Nobody hears you."},
			{one, all, "", "Everybody is muted until the staff lifts it. Nobody hears you."},
			{none, mute.State{Kind: line.MutedServer, Until: in}, "", "Everybody is muted for 1h30m. Nobody hears you."},
			{all, none, "", "The mute of everybody is over."},
			{one, none, "", "Your voice is no longer muted."},
			{one, none, "de_de", "Du bist wieder zu hören."},
		} {
			id, p, state := uuid.New(), &barred{locale: c.locale}, c.is
			tell := telling(t, p, id, &state)
			tell.muted(uuid.New(), c.was, c.is) // has left
			tell.muted(id, c.was, c.is)
			if bar, got := p.take(); got != c.want || bar != "" {
				t.Errorf("told %q %q, want %q", bar, got, c.want)
			}
		}
	})
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
