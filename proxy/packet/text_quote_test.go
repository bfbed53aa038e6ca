package packet

import (
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestQuote: what a server says goes into a text of ours as it is meant, translated by the client, in its colours, and
// without what a client could choke on or be led by.
func TestQuote(t *testing.T) {
	ours, err := ParseText("<red>You lost <yellow>a</yellow>: <white>" + Slot + "</white>!")
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"text":"","extra":[`, 5000) + `{"text":"bottom"}` + strings.Repeat(`]}`, 5000)
	for raw, want := range map[string]string{
		`{"translate":"multiplayer.disconnect.server_shutdown"}`:                                      `{"translate":"multiplayer.disconnect.server_shutdown"}`,
		`{"translate":"k","fallback":"f","with":["a",{"text":"b","clickEvent":{}},3,null]}`:           `{"fallback":"f","translate":"k","with":["a",{"text":"b"},"3",""]}`,
		`{"text":"Banned","color":"Red","bold":true,"italic":"false","hoverEvent":{"action":"?"}}`:    `{"bold":true,"color":"red","italic":false,"text":"Banned"}`,
		`{"text":"x","color":"#12ab34","extra":["y",{"selector":"@a"},{"text":"z","color":"mauve"}]}`: `{"color":"#12ab34","extra":["y",{"text":""},{"text":"z"}],"text":"x"}`,
		`["a",{"text":"b","bold":true}]`:                                                              `{"extra":[{"bold":true,"text":"b"}],"text":"a"}`,
		`{"text":5,"extra":[]}`:                                                                       `{"text":"5"}`,
		`[]`:                                                                                          `""`,
		`"just a string"`:                                                                             `"just a string"`,
		`not json`:                                                                                    `"not json"`,
	} {
		got := string(ours.Put(JSONText([]byte(raw)).Quote()).JSON(proto.Max))
		if !strings.Contains(got, want) || strings.Contains(got, Slot) {
			t.Errorf("%s became %s, want %s in it", raw, got, want)
		}
		for _, d := range []string{"You lost ", `"yellow"`, `"!"`} {
			if !strings.Contains(got, d) {
				t.Errorf("%s: no %s is left of %s", raw, d, got)
			}
		}
	}
	for _, raw := range []string{deep, `{"text":"` + strings.Repeat("ü", maxQuoted) + `"}`} {
		said := ours.Put(JSONText([]byte(raw)).Quote())
		if s := said.String(); !strings.HasPrefix(s, "You lost a: ") || !strings.HasSuffix(s, "!") || len(s) < 18 || len(s) > 2*maxQuoted {
			t.Errorf("%.40s became %.40q", raw, s)
		}
		r := field.NewReader(said.Append(nil, proto.Max, proto.Play))
		if ReadText(r, proto.Max, proto.Play); r.End() != nil {
			t.Errorf("%.40s cannot be read: %v", raw, r.End())
		}
	}
	for _, same := range []string{"plain", "", "{}"} {
		if got := Plain(same).Put(Plain("x")).String(); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
	if got := Plain("a" + Slot + "b" + Slot).Put(Plain("-")).String(); got != "a-b-" {
		t.Errorf("two slots: %q", got)
	}
	// The same from NBT, as servers of 1.20.3 and later send it.
	nbt := Text{nbt: Translatable("k", "a").NBT()}
	if got := string(Plain(Slot).Put(nbt.Quote()).JSON(proto.Max)); !strings.Contains(got, `{"translate":"k","with":["a"]}`) {
		t.Errorf("from NBT: %s", got)
	}
}
