package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/Tnze/go-mc/nbt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

var texts = []struct{ in, json, plain, legacy string }{
	{"", `{"text":""}`, "", ""},
	{"hello", `{"text":"hello"}`, "hello", "hello"},
	// legacy codes
	{"&cred", `{"color":"red","text":"red"}`, "red", "§cred"},
	{"§Cred §lbold §rplain", `{"extra":[{"color":"red","text":"red "},{"bold":true,"color":"red","text":"bold "},{"text":"plain"}],"text":""}`,
		"red bold plain", "§cred §c§lbold §rplain"},
	{"&l&nx&0y", `{"extra":[{"bold":true,"text":"x","underlined":true},{"color":"black","text":"y"}],"text":""}`, "xy", "§l§nx§0y"},
	{"&#FF8800x&x&0&0&a&a&0&0y", `{"extra":[{"color":"#ff8800","text":"x"},{"color":"#00aa00","text":"y"}],"text":""}`, "xy", "§6x§2y"},
	{"Tom & Jerry, 1 < 2 > 0, R&Q&", `{"text":"Tom & Jerry, 1 < 2 > 0, R&Q&"}`, "Tom & Jerry, 1 < 2 > 0, R&Q&", "Tom & Jerry, 1 < 2 > 0, R&Q&"},
	{"&#ff88zz &x&1&2 §", `{"extra":[{"text":"&#ff88zz &x"},{"color":"dark_green","text":" §"}],"text":""}`, "&#ff88zz &x ", "&#ff88zz &x§2 §"},
	// MiniMessage
	{"<red>a</red>b", `{"extra":[{"color":"red","text":"a"},{"text":"b"}],"text":""}`, "ab", "§ca§rb"},
	{"<RED><b>a<i>b</b>c", `{"extra":[{"bold":true,"color":"red","text":"a"},{"bold":true,"color":"red","italic":true,"text":"b"},{"color":"red","text":"c"}],"text":""}`,
		"abc", "§c§la§c§l§ob§cc"},
	{"<#00ff00>x<color:#0000FF>y</color>z", `{"extra":[{"color":"#00ff00","text":"x"},{"color":"#0000ff","text":"y"},{"color":"#00ff00","text":"z"}],"text":""}`, "xyz", "§2x§1y§2z"},
	{"<st>a<!st>b</!st>c<u:false>d", `{"extra":[{"strikethrough":true,"text":"a"},{"text":"b"},{"strikethrough":true,"text":"cd"}],"text":""}`, "abcd", "§ma§rb§mcd"},
	{"<obf>a<reset>b<newline>c<br>", `{"extra":[{"obfuscated":true,"text":"a"},{"text":"b\nc\n"}],"text":""}`, "ab\nc\n", "§ka§rb\nc\n"},
	{"<red>R&D <player> \\<red> \\\\", `{"color":"red","text":"R&D <player> <red> \\"}`, "R&D <player> <red> \\", "§cR&D <player> <red> \\"},
	{"<dark_grey>x</dark_gray></blue>", `{"extra":[{"color":"dark_gray","text":"x"},{"text":"</blue>"}],"text":""}`, "x</blue>", "§8x§r</blue>"},
	{"<gradient:#000000:#0000ff>abc</gradient>d", `{"extra":[{"color":"#000000","text":"a"},{"color":"#000080","text":"b"},{"color":"#0000ff","text":"c"},{"text":"d"}],"text":""}`,
		"abcd", "§0a§1b§1c§rd"},
	{"<gradient:red:green:blue>a<white>-</white>bc", `{"extra":[{"color":"#ff5555","text":"a"},{"color":"white","text":"-"},{"color":"#55ff55","text":"b"},{"color":"#5555ff","text":"c"}],"text":""}`,
		"a-bc", "§ca§f-§ab§9c"},
	{"<gradient>x", `{"color":"#ffffff","text":"x"}`, "x", "§fx"},
	// JSON
	{`{"text":"a","extra":["b",{"text":"c","color":"#ff8800","bold":true}]}`, `{"extra":["b",{"bold":true,"color":"#ff8800","text":"c"}],"text":"a"}`, "abc", "ab§6§lc"},
	{` ["x",{"text":"y","italic":"true"}]`, `["x",{"italic":"true","text":"y"}]`, "xy", "x§oy"},
	{`[{"text":"x","color":"red"},"y"]`, `[{"color":"red","text":"x"},"y"]`, "xy", "§cxy"},
	{`"quoted"`, `{"text":"quoted"}`, "quoted", "quoted"},
	{`{"translate":"chat.type","with":["a",{"text":"b"}]}`, `{"translate":"chat.type","with":["a",{"text":"b"}]}`, "chat.type (a, b)", "chat.type (a, b)"},
	{`{"translate":"k","fallback":"f"}`, `{"fallback":"f","translate":"k"}`, "f", "f"},
	{`"a" and "b"`, `{"text":"\"a\" and \"b\""}`, `"a" and "b"`, `"a" and "b"`},
	{"[Lobby] <3 {x}", `{"text":"[Lobby] <3 {x}"}`, "[Lobby] <3 {x}", "[Lobby] <3 {x}"},
}

// FuzzRuns: whatever a server says, what a terminal is given has no control characters but line breaks, and colours are
// names.
func FuzzRuns(f *testing.F) {
	for _, seed := range []string{"plain", `{"text":"a\u001b[2J","color":"#ff5555","extra":["§cb",{"translate":"k","with":[1]}]}`, `["a",{"text":"b","bold":true}]`, "\"\xff", `{"":1e999}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := JSONText(raw)
		var all strings.Builder
		for _, r := range text.Runs() {
			if strings.ContainsFunc(r.Text, func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c <= 0x9f) }) {
				t.Errorf("%q has control characters", r.Text)
			}
			if r.Color != "" && !slices.Contains(colorNames[:], r.Color) {
				t.Errorf("the colour %q", r.Color)
			}
			all.WriteString(r.Text)
		}
		if a, b := stripCodes(all.String()), text.String(); a != b && !strings.Contains(all.String(), "§") {
			t.Errorf("%q in pieces is %q", b, a)
		}
	})
}

func TestParseText(t *testing.T) {
	for _, c := range texts {
		text, err := ParseText(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := string(text.JSON(proto.V1_16)); got != c.json {
			t.Errorf("%s: JSON\n%s, want\n%s", c.in, got, c.json)
		}
		if got := text.String(); got != c.plain {
			t.Errorf("%s: plain %q, want %q", c.in, got, c.plain)
		}
		if got := text.Legacy(); got != c.legacy {
			t.Errorf("%s: legacy %q, want %q", c.in, got, c.legacy)
		}
	}
	for _, bad := range []string{`{"text":"a"`, `[{"text":"a"},]`, `{ "text": }`} {
		if _, err := ParseText(bad); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestColorsBefore116(t *testing.T) {
	text, err := ParseText(`<#ff5754>a<#010101>b<#fefefe>c<#aa9900>d<gold>e`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"extra":[{"color":"red","text":"a"},{"color":"black","text":"b"},{"color":"white","text":"c"},{"color":"gold","text":"d"},{"color":"gold","text":"e"}],"text":""}`
	for _, p := range []int32{proto.V1_8, 578} {
		if got := string(text.JSON(p)); got != want {
			t.Errorf("%d: %s\nwant %s", p, got, want)
		}
	}
	if got := string(text.JSON(proto.V1_16)); !strings.Contains(got, "#ff5754") {
		t.Errorf("1.16: %s", got)
	}
}

// TestNBTReadsElsewhere has another NBT library read ours.
func TestNBTReadsElsewhere(t *testing.T) {
	for in, want := range map[string]any{
		"<red>Größe": map[string]any{"color": "red", "text": "Größe"},
		"plain":      "plain",
		`{"text":"","extra":["a",{"text":"b","bold":true},1,["c"]]}`: map[string]any{"text": "", "extra": []any{
			map[string]any{"text": "a"}, map[string]any{"text": "b", "bold": int8(1)}, map[string]any{"text": "1"},
			map[string]any{"text": "", "extra": []any{"c"}}}},
		`{"text":"x","hoverEvent":{"action":"show_item","contents":{"count":3,"big":5000000000,"part":0.5}},"n":null,"with":[],"i":[1,2]}`: map[string]any{
			"text": "x", "hoverEvent": map[string]any{"action": "show_item", "contents": map[string]any{"count": int32(3), "big": int64(5000000000), "part": 0.5}},
			"with": []any{}, "i": []any{int32(1), int32(2)}},
	} {
		text, err := ParseText(in)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		d := nbt.NewDecoder(bytes.NewReader(text.NBT()))
		d.NetworkFormat(true)
		if _, err := d.Decode(&got); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s\nwant %s", in, a, b)
		}
	}
}

func TestNBTStringsAreModifiedUTF8(t *testing.T) {
	for s, want := range map[string]string{
		"a€é":  "08 0006 61 e282ac c3a9",
		"😀":    "08 0006 eda0bd edb880",
		"\x00": "08 0002 c080",
	} {
		text := Plain(s)
		if got := hex.EncodeToString(text.NBT()); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
		r := field.NewReader(text.NBT())
		again := ReadText(r, proto.V1_20_3, proto.Play)
		if v := again.value(); v != s || r.End() != nil {
			t.Errorf("%q came back as %q", s, v)
		}
	}
	long := Plain(strings.Repeat("€", 30000)).NBT() // 90000 bytes
	if r := field.NewReader(long); r.SkipNBT(false) == nil || r.End() != nil || len(long) != 3+65535/3*3 {
		t.Errorf("a long string became %d bytes: %v", len(long), r.Err())
	}
	for wire, want := range map[string]string{ // what other software writes all the same
		"08 0004 f09f9880": "\ufffd\ufffd\ufffd\ufffd", "08 0003 eda0bd": "\ufffd", "08 0002 e282": "\ufffd\ufffd", "08 0001 c3": "\ufffd",
	} {
		if b, _ := hex.DecodeString(strings.ReplaceAll(wire, " ", "")); parseNBT(b) != want {
			t.Errorf("%s: %q", wire, parseNBT(b))
		}
	}
}

// TestOldClientsKnowFewKeys: clients before 1.12 show a key that they have no words for, so they are told in English.
func TestOldClientsKnowFewKeys(t *testing.T) {
	for _, protocol := range []int32{proto.V1_8, 316, proto.V1_12} {
		for _, x := range []struct {
			t          Text
			old, newer string
		}{
			{Translatable("multiplayer.disconnect.unverified_username"), `{"text":"Failed to verify username!"}`, `{"translate":"multiplayer.disconnect.unverified_username"}`},
			{Translatable("multiplayer.disconnect.outdated_client", "1.8"), `{"text":"Outdated client! Please use 1.8"}`, `{"translate":"multiplayer.disconnect.outdated_client","with":["1.8"]}`},
			{Translatable("disconnect.spam"), `{"translate":"disconnect.spam"}`, `{"translate":"disconnect.spam"}`},
			{Plain("a " + Slot).Put(Translatable("multiplayer.disconnect.server_shutdown")), `{"extra":[{"text":"Server closed"}],"text":"a "}`,
				`{"extra":[{"translate":"multiplayer.disconnect.server_shutdown"}],"text":"a "}`},
		} {
			want := x.old
			if protocol >= proto.V1_12 {
				want = x.newer
			}
			if got := string(x.t.JSON(protocol)); got != want {
				t.Errorf("%d: %s, want %s", protocol, got, want)
			}
		}
	}
}

// TestPassesAsItCame: what a backend said reaches the client byte for byte in the same form, and readable in the other.
func TestPassesAsItCame(t *testing.T) {
	for raw, plain := range map[string]string{
		`{"text": "a" , "unknown":{"deep":[1,2,{}]},"color":"#123456"}`: "a",
		`"just a string"`:               "just a string",
		`not json at all`:               "not json at all",
		`{text:"lenient"}`:              `{text:"lenient"}`,
		``:                              "",
		`null`:                          "",
		`{"text":"§cred\u0007"}`:        "red",
		`{"text":5,"extra":[true,"x"]}`: "5truex",
	} {
		wire := field.AppendString(nil, raw)
		for _, p := range []int32{proto.V1_8, proto.V1_20_2, proto.Max} {
			got, err := ParseDisconnect(p, proto.Login, wire)
			if err != nil || got.String() != plain {
				t.Errorf("%s: %q, %v", raw, got.String(), err)
			}
			if again := AppendDisconnect(nil, p, proto.Login, got); !bytes.Equal(again, wire) {
				t.Errorf("%s went on as %q", raw, again)
			}
		}
		// as NBT for a client that is past login
		got, _ := ParseDisconnect(proto.V1_20_3, proto.Login, wire)
		n := AppendDisconnect(nil, proto.V1_20_3, proto.Config, got)
		back, err := ParseDisconnect(proto.V1_20_3, proto.Config, n)
		if err != nil || back.String() != plain {
			t.Errorf("%s as NBT %x: %q, %v", raw, n, back.String(), err)
		}
	}
	nbtWire, _ := hex.DecodeString("0a" + "080004746578740003616263" + "010004626f6c6401" + "09000565787472610a00000001" + "080000000164" + "00" + "00")
	got, err := ParseDisconnect(proto.V1_20_3, proto.Play, nbtWire)
	if err != nil {
		t.Fatal(err)
	}
	if again := AppendDisconnect(nil, proto.Max, proto.Config, got); !bytes.Equal(again, nbtWire) {
		t.Errorf("NBT went on as %x", again)
	}
	if j := string(got.JSON(proto.Max)); j != `{"bold":true,"extra":["d"],"text":"abc"}` || got.String() != "abcd" {
		t.Errorf("NBT as JSON: %s, plain %q", j, got.String())
	}
	if (Text{}).String() != "" || string((Text{}).JSON(47)) != `{"text":""}` || !bytes.Equal((Text{}).NBT(), []byte{8, 0, 0}) {
		t.Error("the zero Text is not an empty one")
	}
	if got := string(Translatable("k", "a").JSON(47)) + string(Translatable("k").JSON(47)); got != `{"translate":"k","with":["a"]}{"translate":"k"}` {
		t.Error(got)
	}
}

func TestDeepText(t *testing.T) {
	deep := strings.Repeat(`{"text":"a","extra":[`, 3000) + strings.Repeat(`]}`, 3000)
	text := JSONText([]byte(deep))
	r := field.NewReader(text.NBT())
	if r.SkipNBT(false) == nil || r.End() != nil {
		t.Errorf("3000 components deep: %v", r.Err())
	}
	if text.String() != strings.Repeat("a", 3000) {
		t.Error("the text is lost")
	}
	list := append([]byte{9}, bytes.Repeat([]byte{9, 0, 0, 0, 1}, 600)...)
	if _, err := ParseDisconnect(proto.Max, proto.Play, append(list, 0, 0, 0, 0, 0)); err == nil {
		t.Error("600 lists deep accepted")
	}
	big := append([]byte{7}, field.AppendI32(nil, maxTextNBT)...)
	if _, err := ParseDisconnect(proto.Max, proto.Play, append(big, make([]byte, maxTextNBT)...)); err == nil {
		t.Error("a component of 2 MiB accepted")
	}
}

func TestActionBarBelow111(t *testing.T) {
	text, _ := ParseText("<red>a<b>b")
	for p, want := range map[int32]string{47: `{"text":"§ca§c§lb"}`, 210: `{"text":"§ca§c§lb"}`} {
		name, body := ActionBarMessage(p, text)
		if name != proto.Chat || !bytes.Equal(body, append(field.AppendString(nil, want), 2)) {
			t.Errorf("%d: %v %q", p, name, body)
		}
	}
}

func FuzzParseText(f *testing.F) {
	for _, c := range texts {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		text, err := ParseText(in)
		if err != nil {
			return
		}
		checkForms(t, text)
		if text.json != nil || text.nbt != nil {
			t.Fatal("a parsed text pretends to come from the wire")
		}
	})
}

func FuzzTextFromWire(f *testing.F) {
	for _, c := range texts {
		text, _ := ParseText(c.in)
		f.Add(text.JSON(47), false)
		f.Add(text.NBT(), true)
	}
	f.Add([]byte(`{"a":[null,{"":1},1e999,[[]]]}`), false)
	f.Fuzz(func(t *testing.T, b []byte, isNBT bool) {
		text := JSONText(b)
		if isNBT {
			r := field.NewReader(b)
			if text = ReadText(r, proto.Max, proto.Play); r.Err() != nil {
				return
			}
		}
		checkForms(t, text)
		quoted := Plain("a " + Slot + " b").Put(text.Quote())
		checkForms(t, quoted)
		checkQuoted(t, quoted.value())
	})
}

// checkQuoted: nothing is left in a quote but what every client can show.
func checkQuoted(t *testing.T, v any) {
	switch v := v.(type) {
	case string:
	case map[string]any:
		if _, text := v["text"].(string); !text && v["translate"] == nil {
			t.Fatalf("no text: %v", v)
		}
		for key, e := range v {
			switch e := e.(type) {
			case []any:
				if key != "extra" && key != "with" || len(e) == 0 {
					t.Fatalf("%q is %v", key, e)
				}
				for _, part := range e {
					checkQuoted(t, part)
				}
			case bool:
				if !isDecoration(key) {
					t.Fatalf("%q is %v", key, e)
				}
			case string:
				if !slices.Contains([]string{"text", "translate", "fallback", "color"}, key) {
					t.Fatalf("%q is %q", key, e)
				}
			default:
				t.Fatalf("%q is %v", key, e)
			}
		}
	default:
		t.Fatalf("a %T", v)
	}
}

// checkForms: whatever the text, each form of it is well formed.
func checkForms(t *testing.T, text Text) {
	t.Helper()
	if j := text.JSON(47); text.json == nil && !json.Valid(j) {
		t.Fatalf("invalid JSON: %q", j)
	}
	n := text.NBT()
	if r := field.NewReader(n); r.SkipNBT(false) == nil || r.End() != nil {
		t.Fatalf("invalid NBT: %x: %v", n, r.Err())
	}
	if s := text.String(); strings.ContainsAny(s, "\x00\x1b\r§") || !utf8.ValidString(s) {
		t.Fatalf("plain text with codes: %q", s)
	}
	text.Legacy()
}
