package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vectors returns verdicts and frames of clients.
func vectors(t testing.TB) (all [][2]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/client.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			verdict, text, _ := strings.Cut(line, " ")
			all = append(all, [2]string{verdict, text})
		}
	}
	if len(all) == 0 {
		t.Fatal("no vectors")
	}
	return all
}

func TestClientFrames(t *testing.T) {
	for _, v := range vectors(t) {
		c, err := Parse([]byte(v[1]))
		if got := map[bool]string{true: "ok", false: "error"}[err == nil]; got != v[0] {
			t.Errorf("%s: %s, want %s", v[1], got, v[0])
		}
		if err == nil && c.Type == "" != strings.Contains(v[1], `"type":""`) {
			t.Errorf("%s is of the type %q", v[1], c.Type)
		}
	}
}

func TestFieldsOfClientFrames(t *testing.T) {
	c, err := Parse([]byte(`{"type":"join","protocol":1,"name":"Ann","resume":"abc","binaryStates":true,"ack":3,"colour":"red"}`))
	if err != nil || c.Protocol != 1 || c.Name != "Ann" || c.Resume != "abc" || !c.HasResume || !c.Binary || c.Ack != 3 || !c.HasAck {
		t.Errorf("%+v, %v", c, err)
	}
	if v, _ := c.Fields.Get("colour"); v.Str() != "red" {
		t.Error("a game's field is lost")
	}
	if c, err := Parse([]byte(`{"type":"join","resume":""}`)); err != nil || !c.HasResume || c.Protocol != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Parse([]byte(`{"type":"moderate","action":"lock","locked":true}`)); err != nil || !c.Locked || c.Action != Lock {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Parse([]byte(`{"type":"increment","by":2}`)); err != nil || c.Type != "increment" || c.HasAck {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestRooms06Length: item 6, by characters and not by bytes.
func TestRooms06Length(t *testing.T) {
	of := func(n int, s string) []byte {
		head, tail := `{"type":"x","a":"`, `"}`
		return []byte(head + strings.Repeat(s, (n-len(head)-len(tail))/Units(s)) + tail)
	}
	for _, s := range []string{"a", "€"} {
		if b := of(MaxChars, s); Units(string(b)) != MaxChars {
			t.Fatal(Units(string(b)))
		} else if _, err := Parse(b); err != nil {
			t.Errorf("%d of %q: %v", MaxChars, s, err)
		}
		if _, err := Parse(of(MaxChars+1, s)); !errors.Is(err, ErrLong) {
			t.Errorf("one more of %q: %v", s, err)
		}
	}
	if _, err := Parse(of(MaxChars, "🎧")); err != nil && Units(string(of(MaxChars, "🎧"))) <= MaxChars {
		t.Error(err)
	}
	if _, err := Parse(bytes.Repeat([]byte(" "), MaxBytes+1)); !errors.Is(err, ErrLong) {
		t.Error(err)
	}
}

// TestRooms15ChatText: item 15, what a message may hold.
func TestRooms15ChatText(t *testing.T) {
	for s, want := range map[string]string{
		strings.Repeat("a", 280): strings.Repeat("a", 280), strings.Repeat("a", 281): "", "": "", "  \t ": "", " hi ": "hi", "a\nb": "", "a\u202eb": "", "a\u200bb": "", "a\u0007b": "",
		"👩\u200d🚀": "👩\u200d🚀", "a\u2028b": "", "می\u200cخواهم": "می\u200cخواهم", "a\xffb": "", "a\u00adb": "", strings.Repeat("🎧", 140): strings.Repeat("🎧", 140), strings.Repeat("🎧", 141): "",
		"<b>§c": "<b>§c", "\ufeffa": "",
	} {
		if got, ok := Text(s, MaxChat); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", s, got, ok)
		}
	}
}

// written returns each frame of a server, with all that it can have.
func written() map[string][]byte {
	o := state.Object{{Key: "n", Value: state.OfInt(1)}}
	said := []Message{{1, "p1", "Ann", "hi \"you\"", false}, {2, "p1", "Ann", "Ann left", true}}
	return map[string][]byte{
		Welcome:  AppendWelcome(nil, &Greeting{"p1", "secret", 8, 5, "packed-1"}, o),
		Baseline: AppendBaseline(nil, 1, 6, o), Snapshot: AppendSnapshot(nil, 1, 6, true, o), State: append(AppendStateHead(nil, 6, 12, 1), `{"set":{}}}`...),
		Social: AppendSocial(nil, "p1", true, []Member{{"p1", "Ann", true, false}, {"p2", "Bob", false, true}}, said),
		Chat:   AppendChat(nil, &said[0]), Ping: AppendPing(nil, &Pinged{1, "p1", "Ann", "here", Location{1.23456, -2, 0, 3}}),
		Left: AppendLeft(nil), Remove: AppendSaid(nil, Remove, "out"), Notice: AppendSaid(nil, Notice, "no"), Error: AppendSaid(nil, Error, "bad"),
	}
}

func TestServerFrames(t *testing.T) {
	for kind, want := range map[string]string{
		Welcome:  `{"type":"welcome","protocol":1,"id":"p1","resume":"secret","capacity":8,"sequence":5,"stateCodec":"packed-1","n":1}`,
		Snapshot: `{"type":"snapshot","epoch":1,"tick":6,"initial":true,"n":1}`,
		State:    `{"type":"state","base":6,"tick":12,"epoch":1,"delta":{"set":{}}}`,
		Social: `{"type":"social","leaderId":"p1","locked":true,"members":[{"id":"p1","name":"Ann","connected":true,"canBan":false},{"id":"p2","name":"Bob","connected":false,"canBan":true}],` +
			`"history":[{"id":1,"playerId":"p1","playerName":"Ann","text":"hi \"you\"","system":false},{"id":2,"playerId":"p1","playerName":"Ann","text":"Ann left","system":true}]}`,
		Ping: `{"type":"ping","ping":{"id":1,"playerId":"p1","playerName":"Ann","kind":"here","location":{"x":1.2346,"y":-2,"z":0,"epoch":3}}}`,
		Left: `{"type":"left"}`, Remove: `{"type":"removed","message":"out"}`,
	} {
		if got := string(written()[kind]); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if got := string(AppendSocial(nil, "", false, nil, nil)); got != `{"type":"social","leaderId":null,"locked":false,"members":[]}` {
		t.Error(got)
	}
}

// TestRooms20Spec: item 20: the file is what is generated, its fields are what is written and read, and the tables of
// the protocol's document are in it.
func TestRooms20Spec(t *testing.T) {
	if !bytes.Equal(SpecFile, Generated()) {
		t.Fatal("rooms-protocol.json is not what it should be: run go generate ./bridge/rooms/frame")
	}
	spec := TheSpec()
	if len(written()) != len(spec.Frames.ServerToClient) {
		t.Errorf("%d kinds of server frames are written, %d are in the spec", len(written()), len(spec.Frames.ServerToClient))
	}
	for _, f := range spec.Frames.ServerToClient {
		var keys []string
		v, err := state.Parse(written()[f.Type])
		if err != nil {
			t.Fatal(f.Type, err)
		}
		for _, m := range v.Obj() {
			if m.Key != "n" { // the state's own
				keys = append(keys, m.Key)
			}
		}
		var want []string
		for _, field := range f.Fields {
			want = append(want, field.Name)
		}
		slices.Sort(want)
		if !slices.Equal(keys, want) {
			t.Errorf("%s has %q, the spec says %q", f.Type, keys, want)
		}
	}
	// The tables of the protocol's document, typed off it: kinds of frames with the fields that have a name there.
	for kind, fields := range map[string]string{
		"join": "type protocol name resume binaryStates", "ack": "type ack", "chat": "type text", "ping": "type kind", "moderate": "type action locked playerId", "leave": "type",
	} {
		have(t, spec.Frames.ClientToServer, kind, fields)
	}
	for kind, fields := range map[string]string{
		"welcome": "type protocol id resume capacity", "baseline": "type epoch tick", "snapshot": "type epoch tick initial", "social": "type leaderId locked members history",
		"chat": "type message", "ping": "type ping", "left": "type", "removed": "type message", "socialNotice": "type message", "error": "type message", "state": "type base tick epoch delta",
	} {
		have(t, spec.Frames.ServerToClient, kind, fields)
	}
	if len(spec.Frames.ClientToServer) != 6 || len(spec.Frames.ServerToClient) != 11 || len(spec.CloseCodes) != 6 {
		t.Error("more kinds than the document has")
	}
	for key, want := range map[string]any{"frameChars": 4096, "framesPerSecond": 120, "history": 100, "bans": 256, "chatChars": 280, "burstFrames": 600, "chatPer": []int{4, 10000}, "pingPer": []int{3, 5000}} {
		if !reflect.DeepEqual(spec.Limits[key], want) {
			t.Errorf("%s is %v", key, spec.Limits[key])
		}
	}
}

func have(t *testing.T, frames []Frame, kind, fields string) {
	t.Helper()
	at := slices.IndexFunc(frames, func(f Frame) bool { return f.Type == kind })
	if at < 0 {
		t.Errorf("no %s", kind)
		return
	}
	for name := range strings.FieldsSeq(fields) {
		if !slices.ContainsFunc(frames[at].Fields, func(f Field) bool { return f.Name == name && !f.Choice }) {
			t.Errorf("%s has no %s", kind, name)
		}
	}
}

// FuzzParse: what is taken is JSON with a type, within the bounds; a text that goes out is one line.
func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v[1]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			return
		}
		var x struct{ Type *string }
		if !json.Valid(b) || Units(string(b)) > MaxChars {
			t.Fatalf("%q", b)
		}
		if json.Unmarshal(b, &x) == nil && x.Type != nil && *x.Type != c.Type && !strings.Contains(strings.ToLower(string(b)), "type\"") {
			t.Fatalf("%q is of the type %q", b, c.Type)
		}
		if s, ok := Text(c.Text, MaxChat); ok && (strings.ContainsAny(s, "\n\r\u2028") || s == "" || Units(s) > MaxChat) {
			t.Fatalf("%q", s)
		}
		if c.HasAck && (c.Ack > MaxInt || c.Ack < -MaxInt) {
			t.Fatal(c.Ack)
		}
	})
}
