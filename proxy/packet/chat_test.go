package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// chatVector is a line of testdata/chat.jsonl, which another implementation wrote; chat.js beside it is the generator.
type chatVector struct {
	Dir, Packet string
	Protocols   []int32
	Hex         string
	Fields      json.RawMessage

	body []byte
}

func chatVectors(t testing.TB) []chatVector {
	t.Helper()
	all, err := testkit.Lines[chatVector]("testdata/chat.jsonl")
	if err != nil || len(all) < 100 {
		t.Fatalf("only %d vectors (%v): run testdata/chat.js", len(all), err)
	}
	for i := range all {
		v := &all[i]
		if v.body, err = hex.DecodeString(v.Hex); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// chatCodec takes a body apart and puts it together again.
type chatCodec struct {
	packet proto.Packet
	dir    proto.Dir
	parse  func(protocol int32, body []byte) (any, error)
	append func(protocol int32, v any) []byte
	fields func(t testing.TB, raw json.RawMessage) any
}

func chatCodecOf[T any](p proto.Packet, d proto.Dir, parse func(int32, []byte) (T, error), app func([]byte, int32, T) []byte) chatCodec {
	return chatCodec{p, d,
		func(v int32, b []byte) (any, error) { return parse(v, b) },
		func(v int32, x any) []byte { return app(nil, v, x.(T)) },
		func(t testing.TB, raw json.RawMessage) any {
			var x T
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			if err := d.Decode(&x); err != nil {
				t.Fatal(err)
			}
			return x
		},
	}
}

func commandCodec(p proto.Packet) chatCodec {
	return chatCodecOf(p, proto.Serverbound,
		func(v int32, b []byte) (ChatCommand, error) { return ParseChatCommand(v, p, b) },
		func(dst []byte, v int32, c ChatCommand) []byte { return AppendChatCommand(dst, v, p, c) })
}

var chatCodecs = map[string]chatCodec{
	"toServer/chat":                    chatCodecOf(proto.Chat, proto.Serverbound, ParseChat, AppendChat),
	"toServer/chat_message":            chatCodecOf(proto.ChatMessage, proto.Serverbound, ParseChat, AppendChat),
	"toServer/chat_command":            commandCodec(proto.ChatCommand),
	"toServer/chat_command_signed":     commandCodec(proto.ChatCommandSigned),
	"toServer/message_acknowledgement": chatCodecOf(proto.MessageAcknowledgement, proto.Serverbound, ParseAcknowledgement, AppendAcknowledgement),
	"toServer/tab_complete":            chatCodecOf(proto.TabComplete, proto.Serverbound, ParseSuggestionsRequest, AppendSuggestionsRequest),
	"toClient/tab_complete": func() chatCodec {
		c := chatCodecOf(proto.TabComplete, proto.Clientbound, ParseSuggestions, AppendSuggestions)
		c.fields = suggestionFields
		return c
	}(),
}

// suggestionFields reads tooltips as the JSON of their component.
func suggestionFields(t testing.TB, raw json.RawMessage) any {
	var v struct {
		ID, Start, Length int32
		Matches           []struct{ Text, Tip string }
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	s := Suggestions{ID: v.ID, Start: v.Start, Length: v.Length}
	for _, m := range v.Matches {
		match := Suggestion{Text: m.Text}
		if m.Tip != "" {
			tip := JSONText([]byte(m.Tip))
			match.Tooltip = &tip
		}
		s.Matches = append(s.Matches, match)
	}
	return s
}

// alike compares what was read with what was meant; tooltips by what they say.
func alike(got, want any) bool {
	g, ok := got.(Suggestions)
	if !ok {
		return reflect.DeepEqual(dropEmpty(got), dropEmpty(want))
	}
	w := want.(Suggestions)
	return g.ID == w.ID && g.Start == w.Start && g.Length == w.Length && slices.EqualFunc(g.Matches, w.Matches, func(a, b Suggestion) bool {
		return a.Text == b.Text && (a.Tooltip == nil) == (b.Tooltip == nil) && (a.Tooltip == nil || a.Tooltip.String() == b.Tooltip.String())
	})
}

// dropEmpty makes an empty signature the same as none: on the wire of 759 they are.
func dropEmpty(v any) any {
	if m, ok := v.(ChatMessage); ok && len(m.Signature) == 0 {
		m.Signature = nil
		return m
	}
	return v
}

func TestChatVectors(t *testing.T) {
	seen := map[string]map[int32]bool{}
	for _, v := range chatVectors(t) {
		key := v.Dir + "/" + v.Packet
		c, ok := chatCodecs[key]
		if !ok {
			t.Fatalf("no codec for %s", key)
		}
		if seen[key] == nil {
			seen[key] = map[int32]bool{}
		}
		for _, p := range v.Protocols {
			seen[key][p] = true
			want := c.fields(t, v.Fields)
			got, err := c.parse(p, v.body)
			if err != nil || !alike(got, want) {
				t.Errorf("%s in %d: read %+v, %v\nwant %+v", key, p, got, err, want)
			}
			if again := c.append(p, want); !bytes.Equal(again, v.body) {
				t.Errorf("%s in %d: wrote %x\nwant %x", key, p, again, v.body)
			}
			for n := range v.body {
				if short, err := c.parse(p, v.body[:n]); err == nil {
					t.Errorf("%s in %d: %d of %d bytes were enough for %+v", key, p, n, len(v.body), short)
					break
				}
			}
			if long, err := c.parse(p, append(bytes.Clone(v.body), 0)); err == nil {
				t.Errorf("%s in %d: a byte too much gives %+v", key, p, long)
			}
		}
	}
	if len(seen) != len(chatCodecs) {
		t.Errorf("vectors for %d of %d packets", len(seen), len(chatCodecs))
	}
	for key, c := range chatCodecs { // nothing fell out of the file
		for _, ver := range proto.Supported() {
			if _, has := ver.ID(proto.Play, c.dir, c.packet); has != seen[key][ver.Protocol] {
				t.Errorf("%s: version %d has it: %v, vectors: %v", key, ver.Protocol, has, seen[key][ver.Protocol])
			}
		}
	}
}

// What exceeds a cap of the game is refused, and refused before anything of that size is made.
func TestChatCaps(t *testing.T) {
	text := func(n int) []byte { return field.AppendString(nil, strings.Repeat("x", n)) }
	stamp := make([]byte, 16)
	cat := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	seen := make([]byte, 4)
	for _, c := range []struct {
		name     string
		protocol int32
		packet   proto.Packet
		body     []byte
		ok       bool
	}{
		{"chat of 256", 758, proto.Chat, text(256), true},
		{"chat of 257", 758, proto.Chat, text(257), false},
		{"message of 257", 765, proto.ChatMessage, cat(text(257), stamp, []byte{0}, seen), false},
		{"command of 256", 765, proto.ChatCommand, cat(text(256), stamp, []byte{0}, seen), true},
		{"command of 257", 765, proto.ChatCommand, cat(text(257), stamp, []byte{0}, seen), false},
		{"command of 32767", 766, proto.ChatCommand, text(32767), true},
		{"command of 32768", 766, proto.ChatCommand, text(32768), false},
		{"signed command of 32767", 766, proto.ChatCommandSigned, cat(text(32767), stamp, []byte{0}, seen), true},
		{"eight arguments", 765, proto.ChatCommand, cat(text(1), stamp, []byte{8}, bytes.Repeat(cat(text(16), make([]byte, 256)), 8), seen), true},
		{"nine arguments", 765, proto.ChatCommand, cat(text(1), stamp, []byte{9}, bytes.Repeat(cat(text(16), make([]byte, 256)), 9), seen), false},
		{"name of 17", 765, proto.ChatCommand, cat(text(1), stamp, []byte{1}, text(17), make([]byte, 256), seen), false},
		{"2^31-1 arguments", 765, proto.ChatCommand, cat(text(1), stamp, []byte{255, 255, 255, 255, 7}), false},
		{"-1 arguments", 765, proto.ChatCommand, cat(text(1), stamp, []byte{255, 255, 255, 255, 15}, seen), false},
		{"21 messages seen", 760, proto.MessageAcknowledgement, cat([]byte{21}, make([]byte, 21*17), []byte{0}), false},
		{"2^31-1 messages seen", 760, proto.MessageAcknowledgement, []byte{255, 255, 255, 255, 7}, false},
		{"not UTF-8", 758, proto.Chat, []byte{2, 0xc3, 0x28}, false},
	} {
		var err error
		switch c.packet {
		case proto.Chat, proto.ChatMessage:
			_, err = ParseChat(c.protocol, c.body)
		case proto.MessageAcknowledgement:
			_, err = ParseAcknowledgement(c.protocol, c.body)
		default:
			_, err = ParseChatCommand(c.protocol, c.packet, c.body)
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := ParseSuggestions(775, cat([]byte{0, 0, 0, 255, 255, 255, 255, 7})); err == nil {
		t.Error("2^31-1 suggestions")
	}
	if _, err := ParseSuggestions(340, cat(field.AppendVarInt(nil, maxSuggestions+1), make([]byte, maxSuggestions+1))); err == nil {
		t.Error("more suggestions than allowed")
	}
}

func TestCheckChat(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "hello, Größe \U0001f600": true, "a\x1fb": false, "§c": false, "\x7f": false, "a\nb": false, "\u0080": true} {
		if err := CheckChat(text); (err == nil) != ok || err != nil && !errors.Is(err, ErrIllegalCharacters) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := string(IllegalCharacters(proto.V1_18).JSON(757)); strings.Contains(got, "translate") {
		t.Errorf("1.18 is told %s, a key it does not have", got)
	}
	if got := string(IllegalCharacters(proto.V1_19).JSON(759)); !strings.Contains(got, `"multiplayer.disconnect.illegal_characters"`) {
		t.Errorf("1.19 is told %s", got)
	}
}

// fuzzChat checks that what a decoder accepts it can write, and reads the same from what it wrote.
func fuzzChat(f *testing.F, keys ...string) {
	used := 0
	for _, v := range chatVectors(f) {
		which := slices.Index(keys, v.Dir+"/"+v.Packet)
		if which < 0 {
			continue
		}
		for _, p := range v.Protocols {
			f.Add(v.body, uint8(slices.IndexFunc(proto.Supported(), func(x *proto.Version) bool { return x.Protocol == p })), uint8(which))
			used++
		}
	}
	if used == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, body []byte, version, which uint8) {
		c := chatCodecs[keys[int(which)%len(keys)]]
		p := proto.Supported()[int(version)%len(proto.Supported())].Protocol
		v, err := c.parse(p, body)
		if err != nil {
			return
		}
		again := c.append(p, v)
		v2, err := c.parse(p, again)
		if err != nil || !alike(v, v2) {
			t.Fatalf("in %d: %x is %+v, written as %x that is %+v, %v", p, body, v, again, v2, err)
		}
		if len(again) > len(body) {
			t.Fatalf("in %d: %d bytes became %d", p, len(body), len(again))
		}
	})
}

func FuzzChat(f *testing.F) { fuzzChat(f, "toServer/chat", "toServer/chat_message") }
func FuzzChatCommand(f *testing.F) {
	fuzzChat(f, "toServer/chat_command", "toServer/chat_command_signed", "toServer/message_acknowledgement")
}
func FuzzSuggestions(f *testing.F) { fuzzChat(f, "toServer/tab_complete", "toClient/tab_complete") }
