package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/why"
)

// gateway is voice that keeps mutes, declarations and groups as told.
type gateway struct {
	list   []mute.Record
	broken error
	lost   int           // changes that cannot be stored
	book   relation.Book // what is declared
	speaking
	grouped
}

func (g *gateway) Mute(m mute.Record) error {
	if g.broken == nil {
		g.Unmute(m.Player)
		g.list = append(g.list, m)
	}
	return g.broken
}
func (g *gateway) Unmute(id uuid.UUID) (bool, error) {
	before := len(g.list)
	g.list = slices.DeleteFunc(g.list, func(m mute.Record) bool { return m.Player == id })
	return len(g.list) < before, g.broken
}
func (g *gateway) Mutes() ([]mute.Record, error) { return g.list, g.broken }
func (g *gateway) Why(talker, listener uuid.UUID) (why.Answer, error) {
	return why.Answer{
		Talker: fmt.Sprintf("<red>%.4s", talker), Listener: fmt.Sprintf("%.4s", listener), TalkerHere: true, ListenerHere: true,
		Why: route.Why{Verdict: route.Self},
	}, g.broken
}
func (g *gateway) Declare(change func(*relation.Book) error) error { return change(&g.book) }
func (g *gateway) Declared(read func(*relation.Book) error) error  { return read(&g.book) }
func (g *gateway) Domains() []string                               { return g.book.Names() }

func (g *gateway) Unstored() (int, string) { return g.lost, "the server cannot be reached" }

// A person who changes something is told when that may not last.
func TestWhatIsNotStored(t *testing.T) {
	_, g, c := voiced(t)
	g.lost = 2
	same(t, "with two", says(t, c, "voice mute jeb_"), "jeb_ is muted until unmuted by /voice unmute.",
		"Changes not stored yet: 2. They are in force, but a restart now would lose them: the server cannot be reached.")
	g.broken = errors.New("closed")
	if got := says(t, c, "voice unmute jeb_"); len(got) != 1 {
		t.Errorf("of what is not in force: %q", got)
	}
}

var (
	jeb    = (&player{name: "jeb_"}).ID()
	notch  = (&player{name: "Notch"}).ID()
	absent = uuid.MustParse("853c80ef-3c37-49fd-aa49-938b674adae6")
)

func voiced(t testing.TB) (*network, *gateway, *Commands) {
	n, cfg := setup()
	g := &gateway{}
	cfg.Voice = g
	return n, g, must(t, cfg)
}

// says carries commands out as the console and gives all answers.
func says(t testing.TB, c *Commands, texts ...string) []string {
	t.Helper()
	src := &source{}
	for _, text := range texts {
		if !c.Execute(t.Context(), src, text) {
			t.Errorf("%q is not a command", text)
		}
	}
	return src.answers()
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\nhave %q\nwant %q", what, got, want)
	}
}

func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) time.Time { return time.Now().Add(d) }
		for _, c := range []struct {
			text, want string
			mute       mute.Record
		}{
			{"JEB_", "jeb_ is muted until unmuted by /voice unmute.", mute.Record{Player: jeb, Name: "jeb_"}},
			{jeb.String(), "jeb_ is muted until unmuted by /voice unmute.", mute.Record{Player: jeb, Name: "jeb_"}},
			{absent.String(), absent.String() + " is muted until unmuted by /voice unmute.", mute.Record{Player: absent}},
			{"jeb_ 10m", "jeb_ is muted for 10m.", mute.Record{Player: jeb, Name: "jeb_", Until: in(10 * time.Minute)}},
			{"jeb_ 1H30m too  <red>loud 2", "jeb_ is muted for 1h30m. Reason: too  <red>loud 2",
				mute.Record{Player: jeb, Name: "jeb_", Until: in(90 * time.Minute), Reason: "too  <red>loud 2"}},
			{"jeb_ forever 3d ads", "jeb_ is muted until unmuted by /voice unmute. Reason: 3d ads", mute.Record{Player: jeb, Name: "jeb_", Reason: "3d ads"}},
			{"jeb_ 10m for hours of noise", "jeb_ is muted for 10m. Reason: for hours of noise",
				mute.Record{Player: jeb, Name: "jeb_", Until: in(10 * time.Minute), Reason: "for hours of noise"}},
		} {
			_, g, commands := voiced(t)
			same(t, c.text, says(t, commands, "voice mute "+c.text), c.want)
			c.mute.By = "console"
			if len(g.list) != 1 || g.list[0] != c.mute {
				t.Errorf("%s: %+v, want %+v", c.text, g.list, c.mute)
			}
		}
	})
	form := " Type /voice mute <player> [duration] [reason] with 30s, 10m, 1h30m or 7d, at most ten years, or with forever."
	unknown := " is or was here. For a player who has never been here, use the UUID."
	_, g, c := voiced(t)
	same(t, "refused", says(t, c, "voice mute", "voice mute Bob", "voice mute "+uuid.Nil.String(), "voice mute jeb_ 10", "voice mute jeb_ 11y"),
		"Type /voice mute <player> [duration] [reason].", "Nobody called Bob"+unknown, "Nobody called "+uuid.Nil.String()+unknown,
		"10 is no duration."+form, "11y is no duration."+form)
	if len(g.list) != 0 {
		t.Errorf("muted all the same: %+v", g.list)
	}
}

// A duration in a wrong form must not mute for good unnoticed, and a word that is no duration stays a reason.
func TestADurationInWordsIsAnError(t *testing.T) {
	for text, said := range map[string]string{
		"ten minutes": "ten minutes", "10 minutes": "10 minutes", "for ten minutes spam": "for ten minutes", "an hour": "an hour",
		"for 10m": "for 10m", "half an hour please": "half an hour", "a few days": "a few days", "two weeks.": "two weeks.", "-5m": "-5m",
		"+10m spam": "+10m", "m10": "m10", "10min": "10min", "spam 10m": "10m", "too loud 2h": "2h", "minutes 10": "minutes", "1.5h": "1.5h",
		"until tomorrow": "until tomorrow", "for 2 hours": "for 2 hours", "10m5": "10m5", "1y": "1y", "ONE Hour": "ONE Hour", "minutes": "minutes",
	} {
		_, g, c := voiced(t)
		want := said + " is no duration. Type /voice mute <player> [duration] [reason] with 30s, 10m, 1h30m or 7d, at most ten years, or with forever."
		same(t, text, says(t, c, "voice mute jeb_ "+text), want)
		if len(g.list) != 0 {
			t.Errorf("%q mutes: %+v", text, g.list)
		}
	}
	for _, reason := range []string{"spam", "a troll", "one of the worst", "for shouting", "last minute trouble", "the second time", "level 3", "too loud 2"} {
		_, g, c := voiced(t)
		says(t, c, "voice mute jeb_ "+reason)
		if len(g.list) != 1 || g.list[0].Reason != reason || !g.list[0].Until.IsZero() {
			t.Errorf("%q: %+v", reason, g.list)
		}
	}
}

// Staff who may mute see who has muted whom, how long and why, and who has lifted it: but not the one who did it, nor
// others.
func TestStaffSeesWhoMutedWhom(t *testing.T) {
	n, cfg := setup()
	cfg.Voice = &gateway{}
	cfg.Allowed = func(p Player, node string) bool {
		return node == "earshot.command.voice.mute" && (p.Name() == "Notch" || p.Name() == "alice")
	}
	c := must(t, cfg)
	src := &source{player: n.players[0]} // Notch
	for _, text := range []string{"mute jeb_ 10m too loud", "mute jeb_", "unmute jeb_", "muteall on", "muteall off", "unmute jeb_", "mute nobody"} {
		c.Execute(t.Context(), src, "voice "+text)
	}
	want := []string{
		"Notch mutes jeb_ for 10m. Reason: too loud", "Notch mutes jeb_ until unmuted.", "Notch lifts the mute of jeb_.",
		"Notch mutes everybody who is not exempt.", "Notch lifts the mute of everybody.",
	}
	for i, p := range n.players {
		if p.name == "alice" {
			same(t, p.name, p.did, want...)
		} else if len(p.did) > 0 {
			t.Errorf("player %d, %s: %q", i, p.name, p.did)
		}
	}
	c.Execute(t.Context(), &source{}, "voice mute jeb_")
	same(t, "of the console", n.players[0].did, "console mutes jeb_ until unmuted.")
}

func TestUnmute(t *testing.T) {
	_, g, c := voiced(t)
	g.list = []mute.Record{{}, {Player: jeb, Name: "jeb_"}, {Player: absent, Name: "Gone"}, {Player: notch, Name: "formerly"}}
	same(t, "unmute", says(t, c, "voice unmute Jeb_", "voice unmute jeb_", "voice unmute gone", "voice unmute "+absent.String(), "voice unmute notch",
		"voice unmute Bob", "voice unmute", "voice unmute jeb_ now", "voice unmute "+uuid.Nil.String()),
		"The mute of jeb_ is lifted.", "jeb_ is not muted.", "The mute of Gone is lifted.", absent.String()+" is not muted.", "The mute of formerly is lifted.",
		"Nobody called Bob is or was here. For a player who has never been here, use the UUID.", "Type /voice unmute <player>.", "Type /voice unmute <player>.",
		"Nobody called "+uuid.Nil.String()+" is or was here. For a player who has never been here, use the UUID.")
	if len(g.list) != 1 || g.list[0].Player != uuid.Nil {
		t.Errorf("left: %+v", g.list)
	}
}

func TestMuteAll(t *testing.T) {
	_, g, c := voiced(t)
	same(t, "on", says(t, c, "voice muteall ON"), "Everybody who is not exempt is muted until you type /voice muteall off.")
	if len(g.list) != 1 || g.list[0] != (mute.Record{By: "console"}) {
		t.Errorf("%+v", g.list)
	}
	same(t, "off", says(t, c, "voice muteall off", "voice muteall off", "voice muteall", "voice muteall maybe"),
		"The mute of everybody is lifted. Mutes of single players stay: /voice mutes lists them.", "There is no mute of everybody.",
		"Type /voice muteall <on|off>.", "Type /voice muteall <on|off>.")
	if len(g.list) != 0 {
		t.Errorf("%+v", g.list)
	}
}

func TestMutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, g, c := voiced(t)
		same(t, "none", says(t, c, "voice mutes", "voice mutes x"), "Nobody is muted.", "Type /voice mutes.")
		g.list = []mute.Record{
			{By: "Notch"}, {Player: absent, Until: time.Now().Add(25*time.Hour - time.Second)},
			{Player: jeb, Name: "jeb_", By: "console", Until: time.Now().Add(time.Millisecond), Reason: "a <b>"},
		}
		same(t, "some", says(t, c, "voice mutes"),
			"everybody who is not exempt, by Notch", absent.String()+", for 1d1h more", "jeb_, by console, for 1s more Reason: a <b>")
		for range 200 {
			g.list = append(g.list, mute.Record{Player: uuid.New()})
		}
		if got := says(t, c, "voice mutes"); len(got) != 101 || got[100] != "And 103 more." {
			t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
		}
	})
}

func TestWhy(t *testing.T) {
	_, _, c := voiced(t)
	want := fmt.Sprintf("%.4s does not hear <red>%.4s: nobody hears their own voice.", jeb, notch)
	same(t, "why", says(t, c, "voice why NOTCH jeb_", "voice why "+notch.String()+" "+jeb.String(), "voice why Notch", "voice why Notch Bob", "voice why "+absent.String()+" jeb_", "voice why Notch jeb_ x"),
		want, want, "Type /voice why <talker> <listener>.", "There is no player Bob here.", "There is no player "+absent.String()+" here.", "Type /voice why <talker> <listener>.")
}

func TestVoiceErrors(t *testing.T) {
	_, g, c := voiced(t)
	g.broken = errors.New("no <red>luck")
	for _, text := range []string{"mute jeb_", "unmute jeb_", "muteall on", "muteall off", "mutes", "why Notch jeb_"} {
		same(t, text, says(t, c, "voice "+text), "That did not work: no <red>luck")
	}
	g.broken = nil
	same(t, "unknown", says(t, c, "voice x", "voice"), "Type /voice <mute|unmute|muteall|mutes|why|domain|listen|edge|speaker|group>.",
		"Type /voice <mute|unmute|muteall|mutes|why|domain|listen|edge|speaker|group>.")
}

// Each part needs its own permission, which is enough, and is not completed without.
func TestVoicePermissions(t *testing.T) {
	n, g, c := voiced(t)
	for denied, parts := range map[string]string{"mute": "mute unmute muteall mutes", "why": "why"} {
		src := &source{player: n.players[0], denied: []string{"earshot.command.voice." + denied}}
		for _, p := range strings.Fields(parts) {
			src.heard = nil
			c.Execute(t.Context(), src, "voice "+p+" jeb_ alice")
			same(t, p, src.answers(), "You may not do that.")
			if s, _ := c.Table().Complete(src, "/voice "+p+" "); len(s.Matches) != 0 {
				t.Errorf("%s is completed with %v", p, s.Matches)
			}
		}
		s, _ := c.Table().Complete(src, "/voice ")
		if want := 10 - len(strings.Fields(parts)); len(s.Matches) != want {
			t.Errorf("without %s completed with %v", denied, s.Matches)
		}
	}
	if len(g.list) != 0 {
		t.Error("muted without permission")
	}
	src := &source{only: []string{}}
	if c.Execute(t.Context(), src, "voice mutes") {
		t.Error("/voice ran without permission")
	}
	src.only = []string{"earshot.command.voice.mute"} // that for /voice itself is not needed
	c.Execute(t.Context(), src, "voice mutes")
	c.Execute(t.Context(), src, "voice why Notch jeb_")
	same(t, "with the part's alone", src.answers(), "Nobody is muted.", "You may not do that.")
	if _, ours := c.Table().Complete(src, "/voice "); !ours {
		t.Error("/voice is not completed with the permission of a part")
	}
	for _, node := range perm.Defaults() {
		if strings.HasPrefix(node, "earshot.command.voice") && node != "earshot.command.voice.link" {
			t.Errorf("everybody has %s", node)
		}
	}
	_, cfg := setup()
	if must(t, cfg).Execute(t.Context(), &source{}, "voice mutes") {
		t.Error("there is a /voice without voice")
	}
}

func TestVoiceCompletion(t *testing.T) {
	n, _, c := voiced(t)
	for text, want := range map[string]string{
		"/voice ":             "domain edge group listen mute muteall mutes speaker unmute why",
		"/voice mute n":       "new Notch",
		"/voice mute jeb_ ":   "10m 1d 1h 7d",
		"/voice mute jeb_ x ": "",
		"/voice UNMUTE j":     "jeb_",
		"/voice unmute x ":    "",
		"/voice muteall ":     "off on",
		"/voice muteall on ":  "",
		"/voice mutes ":       "",
		"/voice why a":        "alice",
		"/voice why alice n":  "new Notch",
		"/voice what ":        "",
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
}

// A vanished player is in no list of names for players who are not shown them, whatever these may do otherwise.
func TestNobodyHiddenIsNamed(t *testing.T) {
	n, _, c := voiced(t)
	n.vanished = "jeb_"
	jeb := n.players[slices.IndexFunc(n.players, func(p *player) bool { return p.name == "jeb_" })]
	for _, text := range []string{
		"/find ", "/send ", "/voice mute ", "/voice unmute ", "/voice why ", "/voice why alice ", "/voice domain create red ", "/voice domain add red ",
		"/voice listen add ", "/voice edge add ", "/voice edge add alice ", "/voice speaker allow x ", "/voice speaker relay x ",
	} {
		for src, want := range map[*source]bool{{player: n.players[0]}: false, {player: jeb}: true, {}: true} {
			s, _ := c.Table().Complete(src, text)
			has := func(name string) bool {
				return slices.ContainsFunc(s.Matches, func(m packet.Suggestion) bool { return m.Text == name })
			}
			if has("jeb_") != want || !has("alice") {
				t.Errorf("%q for %s: %v", text, src.Name(), s.Matches)
			}
		}
	}
	src := &source{player: n.players[0]}
	c.Execute(t.Context(), src, "glist all")
	same(t, "glist", src.answers(), "lobby (2): alice, Notch", "Survival (0)", "broken (0) does not answer", "empty (0)", "Players online: 3.")
	for by, want := range map[*source]string{src: "0", {player: jeb}: "1", {}: "1"} { // nor do numbers on servers tell
		s, _ := c.Table().Complete(by, "/server ")
		for _, m := range s.Matches {
			if m.Text == "Survival" && !strings.Contains(m.Tooltip.String(), want) {
				t.Errorf("%s is told %q of the server of who has vanished, want %s", by.Name(), m.Tooltip.String(), want)
			}
		}
	}
}

func TestSpan(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "2W1d": 15 * day, "3650d": maxSpan, "0h5s": 5 * time.Second,
		"": 0, "0s": 0, "5": 0, "m": 0, "5x": 0, "1h30": 0, "-1s": 0, "3651d": 0, "3650d1s": 0, "99999999999999999999s": 0, "9223372036854775807w": 0, "1.5h": 0,
	} {
		if got, ok := parseSpan(text); ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, ok, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-1: "1s", 0: "1s", 1: "1s", 59 * time.Second: "59s", 59*time.Second + 1: "1m", time.Minute + 1: "1m1s", time.Hour - 1: "1h", 24*time.Hour - 1: "1d",
		time.Hour: "1h", time.Hour + time.Second: "1h1m", 8 * day: "1w1d", maxSpan: "521w3d",
	} {
		if got := span(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
		if back, ok := parseSpan(span(d)); ok && back < d {
			t.Errorf("%d is written as less", d)
		}
	}
}
