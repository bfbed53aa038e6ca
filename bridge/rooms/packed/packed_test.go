package packed

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// walkers is the schema of the tests.
var walkers = NewSchema(
	Table{Fields: []Field{{"clock", Int}, {"wind", Dec(1)}}},
	Table{Key: "players", Fields: []Field{{"x", Dec(2)}, {"y", Dec(2)}, {"z", Dec(2)}, {"yaw", Dec(0)}, {"name", Str}, {"speaking", Bool}, {"score", Int}}},
)

var rounding = state.Rounding{Default: 2, Fields: map[string]int{"yaw": 0, "wind": 1}}

// random makes a state, or changes one.
func random(r *rand.Rand, was state.Object) state.Object {
	old, _ := was.Get("players")
	people := old.Obj().Clone()
	for range r.IntN(4) {
		key := fmt.Sprintf("e%d", r.IntN(12))
		if r.IntN(3) == 0 {
			people = people.Without(key)
			continue
		}
		row, _ := people.Get(key)
		o := row.Obj()
		for range r.IntN(4) {
			field := walkers.tables[1].Fields[r.IntN(7)]
			var v state.Value
			switch r.IntN(8) {
			case 0:
				o = o.Without(field.Key)
				continue
			case 1: // null
			default:
				switch field.Of {
				case Int:
					v = state.OfInt(r.Int64N(10) - 5)
				case Bool:
					v = state.OfBool(r.IntN(2) == 0)
				case Str:
					v = state.OfStr(strings.Repeat("ä", r.IntN(5)))
				default:
					v = state.OfFloat((r.Float64() - 0.5) * 2000)
				}
			}
			o = o.Set(field.Key, v)
		}
		people = people.Set(key, state.OfObj(o))
	}
	out := state.Object{}.Set("players", state.OfObj(people))
	if r.IntN(2) == 0 {
		out = out.Set("clock", state.OfInt(r.Int64N(3)))
	}
	if r.IntN(2) == 0 {
		out = out.Set("wind", state.OfFloat(r.Float64()))
	}
	return out
}

func text(o state.Object) string { return string(state.OfObj(o).AppendJSON(nil)) }

// TestRooms19BothGiveTheSame: item 19. JSON and packed give equal states for random ones, with new rows, lost ones,
// nulls, resets and losses; and no frame begins with a brace.
func TestRooms19BothGiveTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	e := state.Encoder{Rounding: rounding}
	was := state.Object{}
	for i := range 5000 {
		if i%7 == 0 {
			was = random(r, was)
			base := e.Baseline(was)
			b, ok := walkers.AppendFull(nil, Baseline, 1, int64(i), base)
			if !ok || b[0] == '{' {
				t.Fatal(text(base))
			}
			f, err := walkers.Decode(b, nil)
			if err != nil || !state.Equal(state.OfObj(f.State), state.OfObj(base)) || f.Tick != int64(i) {
				t.Fatalf("%s\n%v %+v", text(base), err, f)
			}
		}
		base := e.Baseline(was).Clone()
		now := random(r, was)
		delta, some := e.AppendState(nil, now)
		rounded := e.Round(now)
		b, packed, ok := walkers.AppendState(nil, 1, int64(i+1), int64(i), base, rounded)
		if !ok || packed != some {
			t.Fatalf("%s\n%s\n%s: packed %v, JSON %v", text(base), text(rounded), delta, packed, some)
		}
		f, err := walkers.Decode(b, func(base64 int64) (state.Object, bool) { return base, base64 == int64(i) })
		if err != nil {
			t.Fatalf("%s\n%s\n%x: %v", text(base), text(rounded), b, err)
		}
		var d state.Decoder
		d.Base(1, int64(i), base)
		v, err := state.Parse(fmt.Appendf(nil, `{"type":"state","epoch":1,"tick":%d,"base":%d,"delta":%s}`, i+1, i, delta))
		if err != nil {
			t.Fatal(err)
		}
		s, res, err := d.Apply(v.Obj())
		if err != nil || res != state.Applied || !state.Equal(state.OfObj(s.State), state.OfObj(f.State)) {
			t.Fatalf("%s\n%s\n%s\n%x\nJSON   %s\npacked %s", text(base), text(rounded), delta, b, text(s.State), text(f.State))
		}
		if again, _, ok := walkers.AppendState(nil, 1, int64(i+1), int64(i), base, f.State); !ok || !bytes.Equal(again, b) {
			t.Fatalf("%x is encoded as %x", b, again)
		}
		for n := range b {
			if _, err := walkers.Decode(b[:n], func(int64) (state.Object, bool) { return base, true }); err == nil {
				t.Fatalf("%x is taken though it is cut off", b[:n])
			}
		}
	}
}

// TestWhatDoesNotFit: goes as JSON, and nothing is left of the attempt.
func TestWhatDoesNotFit(t *testing.T) {
	fine := state.Object{{Key: "players", Value: state.OfObj(nil)}}
	for name, o := range map[string]state.Object{
		"a table too many": {{Key: "monsters", Value: state.OfObj(nil)}}, "a scalar too many": {{Key: "clock2", Value: state.OfInt(1)}},
		"another kind": {{Key: "clock", Value: state.OfFloat(1.5)}}, "not rounded": {{Key: "wind", Value: state.OfFloat(0.123)}},
		"too large":   {{Key: "wind", Value: state.OfFloat(1e18)}},
		"a field":     {{Key: "players", Value: state.OfObj(state.Object{{Key: "e1", Value: state.OfObj(state.Object{{Key: "hat", Value: state.OfInt(1)}})}})}},
		"no row":      {{Key: "players", Value: state.OfObj(state.Object{{Key: "e1", Value: state.OfInt(1)}})}},
		"a long key":  {{Key: "players", Value: state.OfObj(state.Object{{Key: strings.Repeat("e", 65), Value: state.OfObj(nil)}})}},
		"no table":    {{Key: "players", Value: state.OfInt(1)}},
		"a long text": {{Key: "players", Value: state.OfObj(state.Object{{Key: "e1", Value: state.OfObj(state.Object{{Key: "name", Value: state.OfStr(strings.Repeat("a", maxText+1))}})}})}},
	} {
		if b, ok := walkers.AppendFull([]byte("x"), Baseline, 1, 1, o); ok || string(b) != "x" {
			t.Error(name, "fits")
		}
		if b, _, ok := walkers.AppendState([]byte("x"), 1, 1, 1, fine, o); ok || string(b) != "x" {
			t.Error(name, "fits as a difference")
		}
	}
}

// TestRowThatWasNone: what had no form before has no difference either.
func TestRowThatWasNone(t *testing.T) {
	rows := func(v state.Value) state.Object {
		return state.Object{{Key: "players", Value: state.OfObj(state.Object{{Key: "e1", Value: v}})}}
	}
	if b, _, ok := walkers.AppendState(nil, 1, 2, 1, rows(state.Value{}), rows(state.OfObj(nil))); ok {
		t.Errorf("%x", b)
	}
}

// TestResetsArrive: zero, false, null, and what is no longer there.
func TestResetsArrive(t *testing.T) {
	row := func(o state.Object) state.Object {
		return state.Object{{Key: "players", Value: state.OfObj(state.Object{{Key: "e1", Value: state.OfObj(o)}})}}
	}
	was := row(state.Object{{Key: "name", Value: state.OfStr("Ann")}, {Key: "score", Value: state.OfInt(5)}, {Key: "speaking", Value: state.OfBool(true)}, {Key: "x", Value: state.OfFloat(1.25)}, {Key: "y", Value: state.OfFloat(2)}})
	now := row(state.Object{{Key: "name", Value: state.Value{}}, {Key: "score", Value: state.OfInt(0)}, {Key: "speaking", Value: state.OfBool(false)}, {Key: "x", Value: state.OfFloat(0)}})
	b, some, ok := walkers.AppendState(nil, 1, 2, 1, was, now)
	f, err := walkers.Decode(b, func(int64) (state.Object, bool) { return was, true })
	if !some || !ok || err != nil || text(f.State) != `{"players":{"e1":{"name":null,"score":0,"speaking":false,"x":0}}}` {
		t.Errorf("%x: %v", b, err)
	}
}

// TestVectors: bytes that do not change, for those who decode them elsewhere.
func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		var d state.Object
		if v.base != "-" {
			d = parse(t, v.base)
		}
		f, err := walkers.Decode(v.b, func(int64) (state.Object, bool) { return d, v.base != "-" })
		switch {
		case v.want == "error":
			if err == nil {
				t.Errorf("%x is taken: %s", v.b, text(f.State))
			}
		case err != nil || text(f.State) != v.want:
			t.Errorf("%x: %v, want %s", v.b, err, v.want)
		}
	}
}

func parse(t testing.TB, s string) state.Object {
	t.Helper()
	v, err := state.Parse([]byte(s))
	if err != nil {
		t.Fatal(s, err)
	}
	// Numbers come as what JSON says; those of the schema are floats.
	var fix func(o state.Object) state.Object
	fix = func(o state.Object) state.Object {
		for i, m := range o {
			switch {
			case m.Value.Kind() == state.Obj:
				o[i].Value = state.OfObj(fix(m.Value.Obj()))
			case m.Value.Kind() == state.Int && m.Key != "clock" && m.Key != "score":
				o[i].Value = state.OfFloat(m.Value.Float())
			}
		}
		return o
	}
	return fix(v.Obj())
}

type vector struct {
	b          []byte
	base, want string
}

func vectors(t testing.TB) (all []vector) {
	t.Helper()
	b, err := os.ReadFile("testdata/packed.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		raw, err := hex.DecodeString(f[0])
		if err != nil {
			t.Fatal(line)
		}
		all = append(all, vector{raw, f[1], f[2]})
	}
	if len(all) < 10 {
		t.Fatalf("%d vectors", len(all))
	}
	return all
}

// crowd returns a hundred who walk.
func crowd(moved float64, moving int) state.Object {
	people := state.Object{}
	for i := range 100 {
		m := moved
		if i >= moving {
			m = 0
		}
		people = append(people, state.Member{Key: fmt.Sprintf("e%03d", i), Value: state.OfObj(state.Object{
			{Key: "name", Value: state.OfStr(fmt.Sprintf("Player%d", i))}, {Key: "x", Value: state.OfFloat(float64(i)*3.17 + m)}, {Key: "y", Value: state.OfFloat(64)},
			{Key: "yaw", Value: state.OfFloat(90 + m*7)}, {Key: "z", Value: state.OfFloat(-float64(i)*2.11 - m)},
		})})
	}
	return state.Object{{Key: "players", Value: state.OfObj(people)}}
}

// TestRooms28Bytes: the goals of size: packed at most 0.15 of full JSON with all walking, 0.08 with 30 of 100,
// baselines and snapshots included; differences in JSON at most 0.75 and 0.35.
func TestRooms28Bytes(t *testing.T) {
	for moving, most := range map[int][2]float64{100: {0.15, 0.75}, 30: {0.08, 0.35}} {
		e := state.Encoder{Rounding: rounding}
		var full, json, bin int
		for tick := range 200 {
			now := crowd(float64(tick)*0.22, moving)
			full += len(state.AppendFull(nil, e.Round(now)))
			if tick%20 == 0 {
				base := e.Baseline(now)
				b, _ := walkers.AppendFull(nil, Baseline, 1, int64(tick), base)
				bin += 2 * len(b)
				json += 2 * len(state.AppendFull(nil, base))
				continue
			}
			base := e.Baseline(crowd(float64(tick/20*20)*0.22, moving)).Clone()
			b, _, ok := walkers.AppendState(nil, 1, int64(tick), 1, base, e.Round(now))
			if !ok {
				t.Fatal("does not fit")
			}
			bin += len(b)
			d, _ := e.AppendState(nil, now)
			json += len(d)
		}
		if p, j := float64(bin)/float64(full), float64(json)/float64(full); p > most[0] || j > most[1] {
			t.Errorf("%d of 100 walking: packed %.3f of full JSON, goal %.2f; differences in JSON %.2f, goal %.2f", moving, p, most[0], j, most[1])
		} else {
			t.Logf("%d of 100 walking: packed %.3f, JSON %.3f of full JSON", moving, p, j)
		}
	}
}

// TestNoAllocations: of an encoder whose buffer is large enough.
func TestNoAllocations(t *testing.T) {
	e := state.Encoder{Rounding: rounding}
	was, now := e.Baseline(crowd(0, 100)), (&state.Encoder{Rounding: rounding}).Baseline(crowd(1, 100))
	buf := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() { walkers.AppendState(buf, 1, 2, 1, was, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendState(b *testing.B) {
	e := state.Encoder{Rounding: rounding}
	was, now := e.Baseline(crowd(0, 100)), (&state.Encoder{Rounding: rounding}).Baseline(crowd(1, 100))
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		walkers.AppendState(buf, 1, 2, 1, was, now)
	}
}

// FuzzDecode: what decodes encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.b)
	}
	e := state.Encoder{Rounding: rounding}
	r := rand.New(rand.NewPCG(9, 9))
	base := e.Baseline(random(r, random(r, random(r, state.Object{})))).Clone()
	for i := range 50 {
		b, _, _ := walkers.AppendState(nil, 1, int64(i), 0, base, e.Round(random(r, base)))
		f.Add(b)
		b, _ = walkers.AppendFull(nil, Snapshot, 1, int64(i), e.Round(random(r, base)))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := walkers.Decode(b, func(int64) (state.Object, bool) { return base, true })
		if err != nil {
			return
		}
		var again []byte
		var ok bool
		if frame.Kind == State {
			again, _, ok = walkers.AppendState(nil, frame.Epoch, frame.Tick, frame.Base, base, frame.State)
		} else {
			again, ok = walkers.AppendFull(nil, frame.Kind, frame.Epoch, frame.Tick, frame.State)
		}
		if !ok || !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %s, which encodes to %x", b, text(frame.State), again)
		}
	})
}
