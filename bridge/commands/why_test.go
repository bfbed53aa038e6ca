package commands

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/why"
)

// Each answer of /voice why is a sentence of texts that can be translated: all of them are in the table, and what they
// have in them is given.
func TestWhyInWords(t *testing.T) {
	texts, err := NewTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	here, there := &world.Place{Backend: "survival", World: "overworld"}, &world.Place{Backend: "survival", World: "nether"}
	arena := &world.Place{Backend: "arena", World: "overworld"}
	value := regexp.MustCompile(`<([a-z]+)>`)
	said := map[string]bool{}
	const no = "Bob does not hear Ann: "
	for _, c := range []struct {
		set  func(w *why.Answer)
		want string
	}{
		{func(w *why.Answer) { w.TalkerHere = false }, "Ann has no voice connection"},
		{func(w *why.Answer) { w.ListenerHere = false }, "Bob has no voice connection"},
		{func(w *why.Answer) { w.Verdict = route.ByDistance }, "Bob hears Ann at 50 %: 7.2 blocks away, and the range is 48.0"},
		{func(w *why.Answer) { w.Tier = talk.Shout }, "Bob hears Ann at 50 %: 7.2 blocks away, and the range is 48.0, with a shout"},
		{func(w *why.Answer) { w.Verdict, w.Tier = route.OutOfRange, talk.Whisper }, no + "7.2 blocks away, and the range is 48.0, with a whisper"},
		{func(w *why.Answer) { w.Verdict, w.TalkerGroup = route.ByGroup, `"a" (OPEN)` }, `Bob hears Ann at 100 %, from anywhere: both are in the group "a" (OPEN)`},
		{func(w *why.Answer) { w.Verdict = route.ByDeclaration }, "Bob hears Ann at 100 %, from anywhere: a domain, a listen or an edge says so"},
		{func(w *why.Answer) { w.Verdict = route.ServerMuted }, no + "Ann is muted"},
		{func(w *why.Answer) {
			w.Verdict, w.Mute = route.ServerMuted, mute.State{Kind: talk.MutedServer, Until: time.Time{}.Add(90 * time.Second), Reason: "<red>noise"}
		}, no + "everybody is muted, for 90 s more, for: <red>noise"},
		{func(w *why.Answer) { w.Verdict = route.MayNotSpeak }, no + "Ann lacks socketsvc.speak"},
		{func(w *why.Answer) { w.Verdict = route.Self }, no + "nobody hears their own voice"},
		{func(w *why.Answer) { w.Verdict = route.Deaf }, no + "Bob is deafened"},
		{func(w *why.Answer) { w.Verdict = route.MayNotListen }, no + "Bob lacks socketsvc.listen"},
		{func(w *why.Answer) { w.Verdict = route.Hidden }, no + "the server hides Ann from Bob"},
		{func(w *why.Answer) { w.Verdict, w.Why.Listener = route.Hidden, arena }, no + "they are on different servers, survival and arena"},
		{func(w *why.Answer) {
			w.Verdict = route.Hidden
			w.Sight = world.Why{Cause: world.Unlisted, Server: "main", Witnesses: 3, Blind: 3, Vanished: true}
		}, no + "on main, Ann (00000000-0000-0000-0000-000000000000 there) is neither on the player list of Bob nor in their world; Ann sees 3 players and is hidden from 3 of them: vanished"},
		{func(w *why.Answer) {
			w.Verdict, w.Sight = route.Hidden, world.Why{Cause: world.Removed, Server: "main"}
		}, no + "main has taken the body of Ann away from Bob, who is seen all the same (missing-bodies)"},
		{func(w *why.Answer) {
			w.Verdict, w.Sight = route.Apart, world.Why{Cause: world.Bodiless, Server: "main"}
		}, no + "both stand together on main, and neither is sent the other's body: two worlds of one name (missing-bodies)"},
		{func(w *why.Answer) {
			w.Verdict, w.Sight = route.ElsewhereWorld, world.Why{Cause: world.Ages, Ages: [2]int64{100012, 105000}}
		}, no + "there are two worlds named overworld: they are 105000 and 100012 ticks old"},
		{func(w *why.Answer) {
			w.Verdict, w.Sight = route.ElsewhereWorld, world.Why{Cause: world.Seeds}
		}, no + "there are two worlds named overworld: their seeds differ"},
		{func(w *why.Answer) { w.Verdict = route.Untold }, no + "Bob has not received the roster with Ann on it yet"},
		{func(w *why.Answer) { w.Verdict = route.SpectatorRule }, no + "Ann is a spectator"},
		{func(w *why.Answer) { w.Verdict, w.TalkerGroup = route.GroupRule, `"a" (OPEN)` }, no + `Ann is in the group "a" (OPEN), Bob in no group`},
		{func(w *why.Answer) { w.Verdict, w.ListenerGroup = route.GroupRule, `"b" (NORMAL)` }, no + `Ann is in no group, Bob in the group "b" (NORMAL)`},
		{func(w *why.Answer) { w.Verdict, w.Why.Listener = route.ElsewhereWorld, there }, no + "Ann is in survival/overworld, Bob in survival/nether"},
		{func(w *why.Answer) { w.Verdict, w.Why.Talker = route.ElsewhereWorld, nil }, no + "it is not known where Ann is"},
		{func(w *why.Answer) { w.Verdict, w.Why.Listener = route.ElsewhereWorld, nil }, no + "it is not known where Bob is"},
		{func(w *why.Answer) { w.Verdict = route.NoPosition }, no + "it is not known where one of them stands"},
	} {
		w := why.Answer{Talker: "Ann", Listener: "Bob", TalkerHere: true, ListenerHere: true,
			Why: route.Why{Level: 127, Distance: 7.24, Range: 48, Talker: here, Listener: here}}
		c.set(&w)
		var got strings.Builder
		for _, part := range w.Clauses() {
			name := "voice-why-" + part.Text
			said[name] = true
			for _, v := range value.FindAllStringSubmatch(English()[name], -1) {
				if i := slices.Index(part.Values, v[1]); i < 0 || i%2 != 0 {
					t.Errorf("%s gets no <%s>: %q", name, v[1], part.Values)
				}
			}
			got.WriteString(texts.Say("", name, part.Values...).String())
		}
		if got.String() != c.want {
			t.Errorf("%v:\n%s, want\n%s", w.Verdict, got.String(), c.want)
		}
	}
	for _, k := range Keys() {
		if strings.HasPrefix(k, "voice-why-") && !said[k] {
			t.Errorf("%s is never said", k)
		}
	}
}
