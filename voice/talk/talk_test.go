package talk

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Every word that travels is one of its kind, is read back as what it was, and in no other spelling; what is none has
// none.
func TestWords(t *testing.T) {
	words(t, "tier", Tiers, ParseTier)
	words(t, "group type", GroupTypes, ParseGroupType)
	words(t, "verb", int(Delete)+1, ParseVerb)
	words(t, "code", int(InboxFull)+1, ParseCode)
}

func words[V interface {
	~uint8
	fmt.Stringer
}](t *testing.T, kind string, n int, parse func(string) (V, bool)) {
	t.Helper()
	for i := range n {
		v := V(i)
		if v.String() == "" || v.String() == "unknown" {
			t.Errorf("%s %d has no word", kind, i)
		}
		if got, ok := parse(v.String()); !ok || got != v {
			t.Errorf("%s %q reads as %d %v", kind, v, got, ok)
		}
		swapped := strings.ToUpper(v.String())
		if swapped == v.String() {
			swapped = strings.ToLower(swapped)
		}
		for _, other := range []string{swapped, " " + v.String(), v.String() + "\n"} {
			if _, ok := parse(other); ok {
				t.Errorf("%s: %q reads as one", kind, other)
			}
		}
	}
	if beyond := V(n).String(); beyond != "unknown" {
		t.Errorf("%s %d is called %q", kind, n, beyond)
	}
	for _, other := range []string{"", "unknown"} {
		if _, ok := parse(other); ok {
			t.Errorf("%s: %q reads as one", kind, other)
		}
	}
}

// Ordinary speech needs no mention; every other tier has a word of its own for it.
func TestDoing(t *testing.T) {
	seen := map[string]bool{"": true}
	for i := range Tiers {
		doing := Tier(i).Doing()
		if (doing == "") != (Tier(i) == Normal) || Tier(i) != Normal && seen[doing] {
			t.Errorf("%s: %q", Tier(i), doing)
		}
		seen[doing] = true
	}
	if Tier(Tiers).Doing() != "" {
		t.Error("a tier that is none does something")
	}
}

func TestWhatMayBeCalledHow(t *testing.T) {
	for _, c := range []struct {
		text                    string
		name, password, speaker bool
	}{
		{"a", true, true, true},
		{"", false, false, false},
		{" ", false, true, false},
		{"\u3000\t", false, false, false},
		{"a b", true, true, true},
		{"§a", false, false, false},
		{"a\u0000", false, false, false},
		{"a\u202e", false, false, false},
		{"\ufeff", false, false, false},
		{"a\u00ad", false, false, false},
		{Garbled, false, false, false},
		{"\xed\xa0\x80", false, false, false},
		{strings.Repeat("a", 24), true, true, true},
		{strings.Repeat("a", 25), false, true, true},
		{strings.Repeat("a", 64), false, true, true},
		{strings.Repeat("a", 65), false, false, false},
		{strings.Repeat("語", 24), true, true, true},
		{strings.Repeat("😀", 12), true, true, true},
		{strings.Repeat("😀", 12) + "a", false, true, true},
		{strings.Repeat("😀", 32), false, true, true},
		{strings.Repeat("😀", 32) + "a", false, false, false},
	} {
		if got := ValidGroupName(c.text); got != c.name {
			t.Errorf("group name %q: %v", c.text, got)
		}
		if got := ValidPassword(c.text); got != c.password {
			t.Errorf("password %q: %v", c.text, got)
		}
		if got := ValidSpeakerName(c.text); got != c.speaker {
			t.Errorf("speaker name %q: %v", c.text, got)
		}
	}
}

func TestVerbsOfTheEditExtension(t *testing.T) {
	for v := Create; v <= Delete; v++ {
		_, want := map[Verb]bool{Rename: true, Password: true, Type: true, Kick: true, Delete: true}[v]
		if v.Edits() != want {
			t.Errorf("%v: %v", v, v.Edits())
		}
	}
}

// What is written of a value is written once in each form, whoever asks at the same time.
func TestTextsAreWrittenOnce(t *testing.T) {
	var a, b Form
	var texts Texts
	var wg sync.WaitGroup
	var got [2][8][]byte
	for i := range got[0] {
		for f, form := range []*Form{&a, &b} {
			wg.Go(func() {
				got[f][i] = texts.In(form, func() []byte { return []byte{byte(f)} })
			})
		}
	}
	wg.Wait()
	for f := range got {
		for _, text := range got[f] {
			if text[0] != byte(f) || &text[0] != &got[f][0][0] {
				t.Errorf("form %d: %v is not the one text", f, text)
			}
		}
	}
	if texts.In(&a, func() []byte { return []byte{9} })[0] != 0 {
		t.Error("written again")
	}
}

func TestTierSet(t *testing.T) {
	s := TiersOf(Shout)
	if s.Has(Whisper) || !s.Has(Shout) || !s.With(Whisper).Has(Whisper) || TiersOf() != 0 {
		t.Errorf("%b", s)
	}
}
