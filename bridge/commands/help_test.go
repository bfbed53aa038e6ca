package commands

import (
	"slices"
	"strings"
	"testing"
)

// Every command, and every part of one, has a line of help.
func TestEverythingHasALineOfHelp(t *testing.T) {
	_, cfg := setup()
	cfg.Voice = &gateway{}
	cfg.Program.Drain = func(string, bool, bool, func(Emptied)) error { return nil }
	c := must(t, cfg)
	for _, topic := range []string{"", " voice", " earshot"} {
		src := &source{player: &player{name: "Mod"}}
		c.Execute(t.Context(), src, "earshot help"+topic)
		got := src.answers()
		if len(got) < 6 {
			t.Errorf("help%s: %q", topic, got)
		}
		for _, line := range got {
			if usage, what, ok := strings.Cut(line, ": "); !ok || what == "" || !strings.HasPrefix(usage, "/") && topic != "" {
				t.Errorf("help%s: %q says nothing", topic, line)
			}
		}
	}
	for k := range english {
		if rest, ok := strings.CutPrefix(string(k), "help-voice-"); ok && !slices.ContainsFunc(voiceParts, func(p voicePart) bool { return strings.ReplaceAll(p.name, " ", "-") == rest }) {
			t.Errorf("%s is help for what there is not", k)
		}
	}
}

// Help has only what somebody may use, and whoever may use nothing of Earshot's has no help of it either.
func TestHelpHasOnlyWhatOneMayUse(t *testing.T) {
	_, cfg := setup()
	cfg.Voice = &gateway{}
	c := must(t, cfg)
	help := func(only []string, text string) []string {
		src := &source{player: &player{name: "Mod"}, only: only}
		if !c.Execute(t.Context(), src, text) {
			return []string{"not ours"}
		}
		return src.answers()
	}
	same(t, "whoever reloads", help([]string{"earshot.command.earshot.reload"}, "earshot help"),
		"/earshot: looks after this program: its version, state and settings", "For the parts of a command, type: /earshot help voice.")
	same(t, "of what there is", help([]string{"earshot.command.earshot.reload"}, "earshot help earshot"),
		"/earshot reload: reads the settings again", "/earshot help [command]: says what commands do")
	same(t, "by its own permission", help([]string{"earshot.command.earshot.help", "earshot.command.find"}, "earshot help"),
		"/find <player>: says which server a player is on", "/earshot: looks after this program: its version, state and settings",
		"For the parts of a command, type: /earshot help voice.")
	same(t, "of voice", help([]string{"earshot.command.earshot.help", "earshot.command.voice.why"}, "earshot help /voice"),
		"/voice why <talker> <listener>: says why one player hears another, or does not")
	same(t, "of what one may not use", help([]string{"earshot.command.earshot.help"}, "earshot help find"), "There is no command find. Type help for a list.")
	same(t, "without any", help([]string{"earshot.command.find"}, "earshot help"), "not ours")
}

// What people know from elsewhere is hinted at, where they may use it.
func TestHintsForWordsOfElsewhere(t *testing.T) {
	_, cfg := setup()
	cfg.Voice = &gateway{}
	cfg.Program.Drain = func(string, bool, bool, func(Emptied)) error { return nil }
	c := must(t, cfg)
	for word, instead := range elsewhere {
		src := &source{}
		c.unknown(src, word+" x")
		same(t, word, src.answers(), "There is no command "+word+" here. Type "+instead+".")
		if name, part, ok := strings.Cut(instead, " "); ok {
			if s, _ := c.Table().Complete(src, "/"+instead); len(s.Matches) == 0 {
				t.Errorf("%s is no part of /%s", part, name)
			}
		}
	}
	src := &source{only: []string{}}
	c.unknown(src, "stop")
	same(t, "not allowed", src.answers(), "There is no command stop. Type help for a list.")
}
