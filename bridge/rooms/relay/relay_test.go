package relay

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func command(t *testing.T, r *Relay, id, frame string) error {
	t.Helper()
	v, err := state.Parse([]byte(frame))
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := v.Obj().Get("type")
	return r.Command(id, &rooms.Command{Type: kind.Str(), Fields: v.Obj()})
}

func shown(r *Relay) string { return string(state.OfObj(r.Snapshot(nil, nil)).AppendJSON(nil)) }

// TestPublish: what peers publish replaces what they have, and goes with them.
func TestPublish(t *testing.T) {
	r := New(3)
	r.Leader([]rooms.Member{{ID: "p1"}, {ID: "p2", Connected: true}})
	for _, f := range []struct{ id, frame string }{
		{"p2", `{"type":"publish","state":{"x":1,"y":1.5}}`}, {"p10", `{"type":"publish","state":{}}`}, {"p2", `{"type":"publish","state":{"y":2}}`}, {"p2", `{"type":"publishRoom","state":{"round":1}}`},
	} {
		if err := command(t, r, f.id, f.frame); err != nil {
			t.Error(f, err)
		}
	}
	if got := shown(r); got != `{"peers":{"p10":{},"p2":{"y":2}},"room":{"round":1}}` {
		t.Error(got)
	}
	r.Left("p2")
	if got := shown(r); got != `{"peers":{"p10":{}},"room":{"round":1}}` {
		t.Error(got)
	}
	deep := strings.Repeat(`{"a":`, 8) + "{}" + strings.Repeat("}", 8)
	for frame, want := range map[string]error{
		`{"type":"publish"}`: ErrState, `{"type":"publish","state":[]}`: ErrState, `{"type":"dance"}`: ErrCommand, `{"type":"publishRoom","state":{}}`: ErrLeader,
		`{"type":"publish","state":` + deep + `}`: ErrDeep, `{"type":"publish","state":{"a":"` + strings.Repeat("a", MaxPeer) + `"}}`: ErrLong,
	} {
		if err := command(t, r, "p1", frame); err != want {
			t.Errorf("%.60s: %v, want %v", frame, err, want)
		}
	}
	if err := command(t, r, "p1", `{"type":"publish","state":`+deep[5:len(deep)-1]+`}`); err != nil {
		t.Error(err)
	}
}

// TestDeclaredRooms: which rooms there are, who may enter, and what a reload does.
func TestDeclaredRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRooms(rooms.Config{})
		defer r.Close()
		r.Set(map[string]Room{"open": {2, ""}, "team": {2, "secret"}})
		enter := func(token, key string) string {
			_, open, ok := r.Enter(token, key)
			if !ok {
				return "no"
			}
			if hub, err := open(); err != nil || hub == nil {
				return err.Error()
			}
			return "in"
		}
		may := rooms.ErrEnter.Error()
		for _, c := range [][3]string{
			{"", "open", "in"}, {"secret", "team", "in"}, {"", "team", may}, {"", "nowhere", may}, {"secret", "nowhere", "no"}, {"wrong", "team", "no"}, {"secret", "open", "no"},
		} {
			if got := enter(c[0], c[1]); got != c[2] {
				t.Errorf("%q into %q: %s, want %s", c[0], c[1], got, c[2])
			}
		}
		_, open, _ := r.Enter("", "open")
		hub, _ := open()
		conn, peer := rooms.MemoryPair(rooms.MemoryConfig{})
		hub.Attach(conn)
		peer.Send([]byte(`{"type":"join","protocol":1,"name":"Ann"}`))
		peer.Send([]byte(`{"type":"publish","state":{"n":1}}`))
		time.Sleep(200 * time.Millisecond)
		r.Set(map[string]Room{"open": {5, "new"}})
		if got := enter("new", "open"); got != "in" {
			t.Error(got)
		}
		if members, _, _ := hub.Members(); len(members) != 1 {
			t.Error("a reload has sent somebody away")
		}
		if got := enter("secret", "team"); got != "no" {
			t.Error(got)
		}
		r.Set(nil)
		for {
			b, _, err := peer.Receive()
			if err != nil {
				if err.Error() != "the room closed with 1001 Host closed the room" {
					t.Error(err)
				}
				return
			}
			if !json.Valid(b) {
				t.Fatalf("%s", b)
			}
		}
	})
}

// FuzzPublish: whatever is published, the room can show it.
func FuzzPublish(f *testing.F) {
	f.Add([]byte(`{"type":"publish","state":{"x":1,"y":[1.5,null,{"z":true}]}}`))
	f.Add([]byte(`{"type":"publishRoom","state":{"tick":1,"delta":{}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := state.Parse(b)
		if err != nil || v.Kind() != state.Obj {
			return
		}
		kind, _ := v.Obj().Get("type")
		r := New(1)
		r.leader = "p1"
		r.Command("p1", &rooms.Command{Type: kind.Str(), Fields: v.Obj()})
		o := r.Snapshot(nil, nil)
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		var e state.Encoder
		e.Rounding = state.Rounded()
		if out := state.OfObj(e.Baseline(o)).AppendJSON(nil); !json.Valid(out) || len(out) > 64<<10 {
			t.Fatalf("%s", out)
		}
	})
}
