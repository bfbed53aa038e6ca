package commands

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/speaker"
)

// speaking is speakers that are kept as told.
type speaking struct{ speakers []speaker.State }

func (s *speaking) SpeakerBook() SpeakerBook { return s }
func (s *speaking) SpeakersStored()          {}
func (s *speaking) All() []speaker.State     { return slices.Clone(s.speakers) }
func (s *speaking) of(name string) *speaker.State {
	for i := range s.speakers {
		if s.speakers[i].Name == name {
			return &s.speakers[i]
		}
	}
	return nil
}
func (s *speaking) Put(r speaker.Record) error {
	if r.Name == "§" {
		return errors.New("no such name")
	}
	if at := s.of(r.Name); at != nil {
		at.Record = r
	} else {
		s.speakers = append(s.speakers, speaker.State{Record: r})
	}
	return nil
}
func (s *speaking) Remove(name string) bool {
	s.speakers = slices.DeleteFunc(s.speakers, func(s speaker.State) bool { return s.Name == name })
	return true
}
func (s *speaking) Play(name, file string, loop bool) (time.Duration, error) {
	if !slices.Contains(s.Sounds(), file) {
		return 0, errors.New("there is no file " + file)
	}
	at := s.of(name)
	at.File, at.Loop, at.From = file, "", uuid.Nil
	if loop {
		at.Loop = file
	}
	if strings.HasSuffix(file, ".mp3") {
		return 0, nil // not known
	}
	return 90 * time.Second, nil
}
func (s *speaking) Relay(name string, player uuid.UUID) error {
	at := s.of(name)
	at.File, at.From = "", player
	return nil
}
func (s *speaking) Stop(name string) bool {
	at := s.of(name)
	was := at.File != "" || at.From != uuid.Nil
	at.File, at.From = "", uuid.Nil
	return was
}
func (s *speaking) Sounds() []string { return []string{"gong.opus", "two words.opus", "song.mp3"} }
func (s *speaking) Where(id uuid.UUID) *world.Pose {
	if id != notch {
		return nil
	}
	return &world.Pose{X: 1.23456, Y: 64, Z: -3, Place: &world.Place{Backend: "lobby", World: "minecraft:overworld"}}
}

// fix declares what a configuration does.
func fix(t *testing.T, g *gateway, d relation.Declarations) {
	t.Helper()
	if err := g.book.Fix(d); err != nil {
		t.Fatal(err)
	}
}

func TestDomains(t *testing.T) {
	_, g, c := voiced(t)
	fix(t, g, relation.Declarations{Domains: []relation.Domain{{Name: "fixed", Members: []uuid.UUID{jeb}}}})
	long := strings.Repeat("x", relation.MaxName+1)
	same(t, "domain", says(t, c,
		"voice domain", "voice domain what", "voice domain create", "voice domain create red notch JEB_ "+absent.String(), "voice domain create red",
		"voice domain create blue", "voice domain create fixed", "voice domain create green Bob", "voice domain create "+long,
		"voice domain add red Notch", "voice domain add blue jeb_ notch", "voice domain add none Notch", "voice domain add blue", "voice domain add blue Bob",
		"voice domain add fixed jeb_", "voice domain add fixed notch",
		"voice domain list", "voice domain list blue", "voice domain list none", "voice domain list a b",
		"voice domain remove red "+absent.String(), "voice domain remove red "+absent.String(), "voice domain remove fixed jeb_", "voice domain remove fixed notch", "voice domain remove none jeb_",
		"voice domain delete red", "voice domain delete red", "voice domain delete fixed", "voice domain delete fixed", "voice domain delete", "voice domain list"),
		"Type /voice domain <create|delete|add|remove|list>.", "Type /voice domain <create|delete|add|remove|list>.", "Type /voice domain create <domain> [player …].",
		"The domain red is there. Members: 3.", "There is a domain red already.",
		"The domain blue is there. Members: 0.", "There is a domain fixed already.", "Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "That did not work: \""+long+"\" is no name for a domain: write 1 to 64 bytes without blanks",
		"Notch is in the domain red already.", "In the domain blue now: Notch, jeb_.", "There is no domain none. /voice domain list lists them.", "Type /voice domain add <domain> <player …>.",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.",
		"jeb_ is in the domain fixed already.", "In the domain fixed now: Notch.",
		"blue (2): Notch, jeb_", "fixed (2): Notch, jeb_", "red (3): "+absent.String()+", Notch, jeb_", "blue (2): Notch, jeb_", "There is no domain none. /voice domain list lists them.", "Type /voice domain list [domain].",
		"No longer in the domain red: "+absent.String()+".", absent.String()+" is not in the domain red.", "This comes from the configuration: take it out of voice.domains there.", "No longer in the domain fixed: Notch.",
		"There is no domain none. /voice domain list lists them.",
		"The domain red is gone.", "There is no domain red. /voice domain list lists them.", "What was added to the domain fixed is gone. What the configuration says about it stays.",
		"This comes from the configuration: take it out of voice.domains there.", "Type /voice domain delete <domain>.", "blue (2): Notch, jeb_", "fixed (1): jeb_")
}

func TestListensAndEdges(t *testing.T) {
	_, g, c := voiced(t)
	says(t, c, "voice domain create red")
	fix(t, g, relation.Declarations{Listens: []relation.Listen{{Listener: notch, Domain: "red"}}, Edges: []relation.Edge{{Talker: notch, Listener: jeb}}})
	same(t, "listen", says(t, c, "voice listen", "voice listen add jeb_ red", "voice listen add jeb_ red", "voice listen add notch red", "voice listen add jeb_ typo", "voice listen add Bob red", "voice listen add jeb_",
		"voice listen list", "voice listen remove jeb_ typo", "voice listen remove jeb_ typo", "voice listen remove notch red"),
		"Type /voice listen <add|remove|list>.", "jeb_ hears the domain red, and is not heard by it.", "jeb_ listens to the domain red already.", "Notch listens to the domain red already.",
		"jeb_ hears the domain typo, and is not heard by it.", "There is no domain typo: jeb_ hears nothing until /voice domain create makes it.",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "Type /voice listen add <player> <domain>.",
		"Notch listens to red", "jeb_ listens to red", "jeb_ listens to typo", "jeb_ no longer listens to the domain typo.", "jeb_ does not listen to the domain typo.",
		"This comes from the configuration: take it out of voice.listens there.")
	same(t, "edge", says(t, c, "voice edge add jeb_ notch", "voice edge add jeb_ notch", "voice edge add notch jeb_", "voice edge add notch NOTCH", "voice edge add notch Bob", "voice edge list", "voice edge remove jeb_ notch",
		"voice edge remove jeb_ notch", "voice edge remove notch jeb_", "voice edge remove notch"),
		"Notch hears jeb_, wherever both are.", "There is an edge from jeb_ to Notch already.", "There is an edge from Notch to jeb_ already.", "Nobody hears their own voice: name two players.",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "jeb_ hears Notch", "Notch hears jeb_", "The edge from jeb_ to Notch is gone.", "There is no edge from jeb_ to Notch.",
		"This comes from the configuration: take it out of voice.edges there.", "Type /voice edge remove <talker> <listener>.")
	_, _, c = voiced(t)
	same(t, "none", says(t, c, "voice domain list", "voice listen list", "voice edge list", "voice speaker list"), "There are no domains.", "Nobody listens to a domain.", "There are no edges.", "There are no speakers.")
}

func TestSpeakers(t *testing.T) {
	n, g, c := voiced(t)
	there := "Say where: write server, world, x, y and z behind the name, or stand there yourself."
	noSpeaker := "There is no speaker none. /voice speaker list lists them."
	same(t, "speaker", says(t, c, "voice speaker", "voice speaker create Stage", "voice speaker create Stage LOBBY the_end 1 -2.5 3e1", "voice speaker create stage lobby w 1 2 3", "voice speaker create x nowhere w 1 2 3",
		"voice speaker create x lobby w 1 2 NaN", "voice speaker create x lobby w 1 2 1e9", "voice speaker create x 1 2 3", "voice speaker create § lobby w 1 2 3",
		"voice speaker move STAGE 4 5 6", "voice speaker move stage", "voice speaker move stage 1 2", "voice speaker move none 1 2 3",
		"voice speaker volume stage 80", "voice speaker volume stage 101", "voice speaker volume stage -1", "voice speaker range stage 40.5", "voice speaker range stage 0", "voice speaker range none 3", "voice speaker range stage",
		"voice speaker allow stage jeb_ notch", "voice speaker allow stage nobody", "voice speaker allow stage Bob", "voice speaker allow stage Everybody",
		"voice speaker play stage song.mp3", "voice speaker play stage song.mp3 loop", "voice speaker play stage gong.opus", "voice speaker list", "voice speaker play stage two words.opus LOOP", "voice speaker list", "voice speaker play stage none.opus", "voice speaker play stage",
		"voice speaker relay stage notch", "voice speaker list", "voice speaker relay stage Bob", "voice speaker stop stage", "voice speaker stop stage", "voice speaker stop none", "voice speaker remove stage", "voice speaker remove none"),
		"Type /voice speaker <create|remove|move|volume|range|allow|list|play|relay|stop>.", there, "Stage: lobby minecraft:the_end 1 -2.5 30, volume 100 %, range 16", "There is a speaker Stage already.",
		"There is no server nowhere. Servers: lobby, Survival, broken, empty.", "NaN is no number from -30000000 to 30000000.", "1e9 is no number from -30000000 to 30000000.",
		"Type /voice speaker create <speaker> [server world x y z].", "That did not work: no such name",
		"Stage: lobby minecraft:the_end 4 5 6, volume 100 %, range 16", there, "Type /voice speaker move <speaker> [[server world] x y z].", noSpeaker,
		"Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 16", "101 is no number from 0 to 100.", "-1 is no number from 0 to 100.", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5",
		"0 is no number from 1 to 1024.", noSpeaker, "Type /voice speaker range <speaker> <blocks>.",
		"Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5, for Notch, jeb_", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5, for nobody",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5",
		"Stage plays song.mp3.", "Stage plays song.mp3 over and over.",
		"Stage plays gong.opus, which lasts 1m30s.", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5, plays gong.opus",
		"Stage plays two words.opus, which lasts 1m30s, over and over.", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5, plays two words.opus over and over",
		"That did not work: there is no file none.opus", "Type /voice speaker play <speaker> <file> [loop].",
		"Stage carries the voice of Notch to everybody who may hear them: on their server, or by a group or a declared voice.", "Stage: lobby minecraft:the_end 4 5 6, volume 80 %, range 40.5, carries the voice of Notch",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "Stage is silent.", "Stage plays nothing.", noSpeaker, "The speaker Stage is gone.", noSpeaker)
	src := &source{player: n.players[slices.IndexFunc(n.players, func(p *player) bool { return p.name == "Notch" })]}
	c.Execute(t.Context(), src, "voice speaker create Here")
	same(t, "where he stands", src.answers(), "Here: lobby minecraft:overworld 1.23 64 -3, volume 100 %, range 16")
	if s := g.of("Here"); s == nil || s.Server != "lobby" || s.World != "minecraft:overworld" || s.X != 1.23 || s.Y != 64 || s.Z != -3 || s.Volume != 1 || s.Allow != nil {
		t.Errorf("%+v", g.speakers)
	}
}

func TestDeclareCompletion(t *testing.T) {
	n, g, c := voiced(t)
	says(t, c, "voice domain create red", "voice domain create rust")
	g.speakers, g.groups = []speaker.State{{Record: speaker.Record{Name: "Stage"}}}, someGroups()
	for text, want := range map[string]string{
		"/voice d":                       "domain",
		"/voice domain ":                 "add create delete list remove",
		"/voice domain add r":            "red rust",
		"/voice domain add red j":        "jeb_",
		"/voice domain add red jeb_ n":   "new Notch",
		"/voice domain create r":         "",
		"/voice DOMAIN Create red j":     "jeb_",
		"/voice domain list r":           "red rust",
		"/voice domain list red r":       "",
		"/voice listen add j":            "jeb_",
		"/voice listen add jeb_ ru":      "rust",
		"/voice edge add jeb_ n":         "new Notch",
		"/voice edge list ":              "",
		"/voice speaker ":                "allow create list move play range relay remove stop volume",
		"/voice speaker create Hall ":    "broken empty lobby Survival",
		"/voice speaker play st":         "Stage",
		"/voice speaker play Stage ":     "gong.opus song.mp3",
		"/voice speaker play Stage g l":  "loop",
		"/voice speaker allow Stage e":   "everybody",
		"/voice speaker allow Stage a j": "jeb_",
		"/voice speaker relay Stage j":   "jeb_",
		"/voice speaker what ":           "",
		"/voice group ":                  "delete info kick list rename",
		"/voice group info ":             "Red",
		"/voice group info red ":         "Team",
		"/voice group delete r":          "Red",
		"/voice group kick j":            "jeb_",
		"/voice group info blue ":        "",
	} {
		s, ours := c.Table().Complete(&source{player: n.players[0]}, text)
		var got []string
		for _, m := range s.Matches {
			got = append(got, m.Text)
		}
		if !ours || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// Each kind of thing has its own permission, for its completion too.
	for _, name := range []string{"domain", "listen", "edge", "speaker", "group"} {
		src := &source{player: n.players[0], denied: []string{"earshot.command.voice." + name}}
		for _, sub := range new(Commands).voiceWords([]string{name}, anyPart) {
			src.heard = nil
			c.Execute(t.Context(), src, "voice "+name+" "+sub+" a b c")
			same(t, name+" "+sub, src.answers(), "You may not do that.")
		}
		for _, text := range []string{"/voice " + name, "/voice " + name + " ", "/voice " + name + " add "} {
			if s, _ := c.Table().Complete(src, text); len(s.Matches) != 0 {
				t.Errorf("%q is completed with %v", text, s.Matches)
			}
		}
	}
}

// past is who was here once.
type past []Once

func (p past) Name(id uuid.UUID) string {
	for _, o := range p {
		if o.ID == id {
			return o.Name
		}
	}
	return ""
}

func (p past) Find(name string) (all []Once) {
	for _, o := range p {
		if strings.EqualFold(o.Name, name) {
			all = append(all, o)
		}
	}
	return all
}

// Players who were here once can be named, and are named in lists. Where several had one name, the command asks which.
func TestNamesOfThePast(t *testing.T) {
	_, cfg := setup()
	g, day := &gateway{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	other := uuid.MustParse("4566e69f-c907-48ee-8d71-d7ba5aa00d20")
	cfg.Voice, cfg.Past = g, past{{absent, "Gone", day}, {other, "Twin", day}, {uuid.Max, "Twin", day}, {jeb, "Notch", day}}
	c := must(t, cfg)
	which := "Several players were called twin. Use the UUID of the one you mean: " +
		other.String() + " (2026-03-01), " + uuid.Max.String() + " (2026-03-01)."
	same(t, "answers", says(t, c, "voice mute gone 1h", "voice mutes", "voice unmute GONE", "voice unmute gone", "voice mute twin", "voice unmute twin",
		"voice mute "+other.String(), "voice unmute twin", "voice mute notch", "voice domain create red gone", "voice domain list",
		"voice edge add gone jeb_", "voice edge add twin jeb_", "voice why gone jeb_"),
		"Gone is muted for 1h.", "Gone, by console, for 1h more", "The mute of Gone is lifted.", "Gone is not muted.", which, which,
		"Twin is muted until unmuted by /voice unmute.", "The mute of Twin is lifted.", "Notch is muted until unmuted by /voice unmute.",
		"The domain red is there. Members: 1.", "red (1): Gone", "jeb_ hears Gone, wherever both are.", which, "There is no player gone here.")
	if len(g.list) != 1 || g.list[0].Player != notch {
		t.Errorf("of two, the one who is here is meant: %+v", g.list)
	}
}
