package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func obj(t testing.TB, s string) Object {
	t.Helper()
	v, err := Parse([]byte(s))
	if err != nil || v.Kind() != Obj {
		t.Fatalf("%s: %v", s, err)
	}
	return v.Obj()
}

// TestRooms09Quantising: item 9 of the acceptance list, the rounding.
func TestRooms09Quantising(t *testing.T) {
	for in, want := range map[float64]float64{0.00004: 0, 0.00005: 0.0001, -0.00005: -0.0001, math.Copysign(0, -1): 0, 1.23456: 1.2346, -1.23455: -1.2346,
		1 << 53: 1 << 53, 1e15 + 0.5: 1e15 + 0.5, 29999999.99999: 30000000} {
		got, ok := Quantise(in, 4)
		if !ok || got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%v: %v, want %v", in, got, want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, ok := Quantise(bad, 4); ok {
			t.Error(bad, "is a number")
		}
	}
	if got, _ := Quantise(359.6, 0); got != 360 {
		t.Error(got)
	}
}

// TestRooms09DeadBand: item 9, what a receiver is told of.
func TestRooms09DeadBand(t *testing.T) {
	for _, c := range []struct {
		a, b any
		told bool
	}{
		{1000.0001, 1000.0002, true}, {1024.0001, 1024.0002, false}, {100000.004, 100000.01, false}, {1700000000000, 1700000000001, true},
		{true, false, true}, {"a", "b", true}, {0.0, 0.0001, true}, {0, 0.0, false}, {1, 1.0001, true}, {nil, 0, true}, {nil, false, true}, {"", nil, true},
	} {
		e := Encoder{Rounding: Rounded()}
		e.Baseline(Object{{"x", Of(c.a)}})
		if out, some := e.AppendState(nil, Object{{"x", Of(c.b)}}); some != c.told {
			t.Errorf("%v, then %v: %s", c.a, c.b, out)
		}
	}
	for size, band := range map[float64]float64{100: 7.6e-6, 1023.9: 6.1e-5, 1024: 1.2e-4, 10000: 9.8e-4, 100000: 0.0078, 1e6: 0.0625, 3e7: 2} {
		if !Same(size, size+band*0.9) || Same(size, size+band*1.1) {
			t.Errorf("the band at %v is not %v", size, band)
		}
	}
}

// TestDeadBandIsAgainstTheBaseline: small steps add up to one that is told.
func TestDeadBandIsAgainstTheBaseline(t *testing.T) {
	e := Encoder{Rounding: Rounded()}
	e.Baseline(Object{{"x", OfFloat(2000)}})
	for i := range 5 {
		_, some := e.AppendState(nil, Object{{"x", OfFloat(2000 + 0.0001*float64(i))}})
		if some != (i > 1) {
			t.Errorf("step %d: told %v", i, some)
		}
	}
}

// TestRooms10Delta: item 10, to the letter.
func TestRooms10Delta(t *testing.T) {
	e := Encoder{Rounding: Rounded()}
	e.Baseline(obj(t, `{"a":5,"b":true,"c":"x","d":{"k":1},"gone":1}`))
	out, some := e.AppendState(nil, obj(t, `{"a":0,"b":false,"c":null,"d":{}}`))
	if want := `{"remove":[["d","k"],["gone"]],"set":{"a":0,"b":false,"c":null}}`; string(out) != want || !some {
		t.Errorf("%s, want %s", out, want)
	}
}

// TestShapesTrade: where an object and something else trade places, and where lists change.
func TestShapesTrade(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"a":{"b":1}}`, `{"a":7}`, `{"remove":[["a"]],"set":{"a":7}}`},
		{`{"a":7}`, `{"a":{"b":1}}`, `{"remove":[["a"]],"set":{"a":{"b":1}}}`},
		{`{"a":{"b":1}}`, `{"a":null}`, `{"remove":[["a"]],"set":{"a":null}}`},
		{`{"a":[1,2.5]}`, `{"a":[1,2.5]}`, `{"set":{}}`},
		{`{"a":[1,2]}`, `{"a":[2]}`, `{"set":{"a":[2]}}`},
		{`{}`, `{"a":{}}`, `{"set":{"a":{}}}`},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3}}}`, `{"set":{"a":{"b":{"d":3}}}}`},
		{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{}}}`, `{"remove":[["a","b","c"]],"set":{}}`},
	} {
		e := Encoder{Rounding: Rounded()}
		base := e.Baseline(obj(t, c.was))
		out, _ := e.AppendState(nil, obj(t, c.is))
		if string(out) != c.want {
			t.Errorf("%s to %s: %s, want %s", c.was, c.is, out, c.want)
		}
		got, err := patch(base, obj(t, string(out)))
		if err != nil || !Equal(OfObj(got), OfObj(obj(t, c.is))) {
			t.Errorf("%s to %s: %s, %v", c.was, c.is, OfObj(got).AppendJSON(nil), err)
		}
	}
}

func TestNotFinite(t *testing.T) {
	var told []string
	e := Encoder{Rounding: Rounded(), NotFinite: func(k string) { told = append(told, k) }}
	base := e.Baseline(Object{{"a", OfFloat(math.NaN())}, {"b", OfObj(Object{{"c", OfFloat(math.Inf(1))}})}})
	if got := string(OfObj(base).AppendJSON(nil)); got != `{"a":null,"b":{"c":null}}` || !slices.Equal(told, []string{"a", "c"}) {
		t.Error(got, told)
	}
}

// tree makes a random object.
func tree(r *rand.Rand, depth int) Object {
	o := Object{}
	for range r.IntN(6) {
		key := string(rune('a' + r.IntN(8)))
		var v Value
		switch k := r.IntN(9); {
		case k == 0:
		case k == 1:
			v = OfBool(r.IntN(2) == 0)
		case k == 2:
			v = OfInt(int64(r.IntN(5)))
		case k == 3:
			v = OfStr([]string{"", "x", "\"\\\n\x01", "ä🎧\u2028"}[r.IntN(4)])
		case k == 4:
			v = OfList(OfInt(int64(r.IntN(3))), OfFloat(r.Float64()))
		case k < 7 && depth < 4:
			v = OfObj(tree(r, depth+1))
		default:
			v = OfFloat((r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(9))))
		}
		o = o.Set(key, v)
	}
	return o
}

// near changes a few things of an object.
func near(r *rand.Rand, o Object) Object {
	out := o.Clone()
	other := tree(r, 0)
	for _, m := range other {
		if r.IntN(2) == 0 {
			out = out.Set(m.Key, m.Value)
		} else {
			out = out.Without(m.Key)
		}
	}
	for i := range out {
		if out[i].Value.Kind() == Obj {
			out[i].Value = OfObj(near(r, out[i].Value.Obj()))
		}
	}
	return out
}

// TestRooms11LossAndReorder: item 11. Whatever is lost or late, what is shown is the truth of its tick.
func TestRooms11LossAndReorder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := Encoder{Rounding: Rounded()}
	var d Decoder
	truth := map[int64]Object{}
	type flying struct{ frame string }
	var air []flying
	now, epoch, base, shown := tree(r, 0), int64(1), int64(0), 0
	var last int64
	for tick := int64(6); tick < 4000*6; tick += 6 {
		if r.IntN(500) == 0 {
			epoch++
		}
		now = near(r, now)
		if err := now.Check(); err != nil {
			t.Fatal(err)
		}
		truth[tick] = slices.Clone(e.Round(now)).Clone()
		if base == 0 || tick-base >= 120 || r.IntN(500) == 0 { // on the reliable lane
			base = tick
			o := e.Baseline(now)
			for _, kind := range []string{"baseline", "snapshot"} {
				f := AppendFull(fmt.Appendf(nil, `{"type":%q,"epoch":%d,"tick":%d`, kind, epoch, tick), o)
				if s, res, err := d.Apply(obj(t, string(append(f, '}')))); err != nil || kind == "snapshot" && res == Applied && !Equal(OfObj(s.State), OfObj(o)) {
					t.Fatal(res, err)
				}
			}
			last = max(last, tick)
			continue
		}
		f, _ := e.AppendState(fmt.Appendf(nil, `{"type":"state","base":%d,"tick":%d,"epoch":%d,"delta":`, base, tick, epoch), now)
		if r.IntN(10) == 0 { // 90 % are lost
			air = append(air, flying{string(append(f, '}'))})
		}
		for len(air) > 8 || len(air) > 0 && r.IntN(3) == 0 {
			at := r.IntN(len(air))
			s, res, err := d.Apply(obj(t, air[at].frame))
			air = slices.Delete(air, at, at+1)
			if err != nil {
				t.Fatal(err)
			}
			if res == Applied {
				shown++
				if s.Tick <= last && s.Tick < tick-6*200 || !Equal(OfObj(s.State), OfObj(truth[s.Tick])) {
					t.Fatalf("tick %d shows\n%s, the truth is\n%s", s.Tick, OfObj(s.State).AppendJSON(nil), OfObj(truth[s.Tick]).AppendJSON(nil))
				}
			}
		}
	}
	if shown < 50 {
		t.Errorf("%d differences were shown", shown)
	}
}

// TestRooms12Decoder: item 12, what a client does not show.
func TestRooms12Decoder(t *testing.T) {
	var d Decoder
	apply := func(s string, want Result, state string) {
		t.Helper()
		got, res, err := d.Apply(obj(t, s))
		if err != nil || res != want || state != "" && string(OfObj(got.State).AppendJSON(nil)) != state {
			t.Errorf("%s: %+v, %v, %v", s, got, res, err)
		}
	}
	apply(`{"type":"state","base":6,"tick":12,"epoch":1,"delta":{"set":{"a":2}}}`, OtherBase, "")
	apply(`{"type":"baseline","epoch":1,"tick":6,"a":1}`, Based, "")
	apply(`{"type":"snapshot","epoch":1,"tick":6,"initial":true,"a":1}`, Applied, `{"a":1}`)
	apply(`{"type":"state","base":6,"tick":18,"epoch":1,"delta":{"set":{"a":2}}}`, Applied, `{"a":2}`)
	apply(`{"type":"state","base":6,"tick":12,"epoch":1,"delta":{"set":{"a":3}}}`, Stale, "")
	apply(`{"type":"state","base":6,"tick":18,"epoch":1,"delta":{"set":{"a":3}}}`, Stale, "")
	apply(`{"type":"state","base":12,"tick":24,"epoch":1,"delta":{"set":{"a":3}}}`, OtherBase, "")
	apply(`{"type":"state","base":6,"tick":24,"epoch":2,"delta":{"set":{"a":3}}}`, OtherEpoch, "")
	apply(`{"type":"state","base":6,"tick":30,"epoch":1,"delta":{"set":{}}}`, Applied, `{"a":1}`)
	for _, bad := range []string{`{}`, `{"type":"baseline"}`, `{"type":"state","base":6,"tick":36,"epoch":1,"delta":1}`, `{"type":"state","base":6,"tick":42,"epoch":1,"delta":{}}`,
		`{"type":"state","base":6,"tick":48,"epoch":1,"delta":{"set":{},"remove":[[]]}}`, `{"type":"state","base":6,"tick":54,"epoch":1,"delta":{"set":{},"remove":[[1]]}}`} {
		if _, _, err := d.Apply(obj(t, bad)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestParseVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/json.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		verdict, text, _ := strings.Cut(line, " ")
		n++
		v, err := Parse([]byte(text))
		got := "ok"
		switch {
		case errors.Is(err, ErrTwice):
			got = "twice"
		case errors.Is(err, ErrDepth):
			got = "depth"
		case errors.Is(err, ErrSurrogate):
			got = "half"
		case err != nil:
			got = "syntax"
		}
		if got != verdict {
			t.Errorf("%s: %s, want %s", text, got, verdict)
		}
		if err == nil {
			if again, err := Parse(v.AppendJSON(nil)); err != nil || !Equal(again, v) {
				t.Errorf("%s is written as %s", text, v.AppendJSON(nil))
			}
		}
	}
	if n < 30 {
		t.Errorf("%d vectors", n)
	}
}

// TestNumbersAreShort: as strconv writes them, but never with an exponent.
func TestNumbersAreShort(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20_000 {
		v := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(24)-6))
		if r.IntN(2) == 0 {
			v, _ = Quantise(v, r.IntN(6))
		}
		if v == 0 {
			continue
		}
		if got, want := string(appendFloat(nil, v)), strconv.FormatFloat(v, 'f', -1, 64); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	deep := Object{}
	for range MaxDepth {
		deep = Object{{"a", OfObj(deep)}}
	}
	for name, o := range map[string]Object{
		"reserved": {{"tick", OfInt(1)}}, "order": {{"b", Value{}}, {"a", Value{}}}, "twice": {{"a", Value{}}, {"a", Value{}}}, "depth": deep,
		"inside": {{"a", OfList(OfObj(Object{{"b", Value{}}, {"a", Value{}}}))}},
	} {
		if o.Check() == nil {
			t.Error(name)
		}
	}
	if err := obj(t, `{"a":{"tick":1},"b":[]}`).Check(); err != nil {
		t.Error(err)
	}
}

// players returns a state of a hundred people who walk.
func players(n int, moved float64) Object {
	people := Object{}
	for i := range n {
		people = append(people, Member{fmt.Sprintf("e%03d", i), OfObj(Object{
			{"name", OfStr(fmt.Sprintf("Player%d", i))}, {"x", OfFloat(float64(i)*3.17 + moved)}, {"y", OfFloat(64)}, {"yaw", OfFloat(90 + moved)}, {"z", OfFloat(-float64(i)*2.11 - moved)},
		})})
	}
	return Object{{"players", OfObj(people)}}
}

// TestMoved: whatever is another one is noticed, and what is not is not.
func TestMoved(t *testing.T) {
	var e Encoder
	e.Rounding = Rounded()
	at := func(v ...any) Object {
		o := Object{}
		for i := 0; i < len(v); i += 2 {
			o = append(o, Member{v[i].(string), Of(v[i+1])})
		}
		return o
	}
	for i, c := range []struct {
		o     Object
		moved bool
	}{
		{at("a", 1), true}, {at("a", 1), false}, {at("a", 2), true}, {at("a", 1.5), true}, {at("a", 1.50001), false}, {at("a", math.NaN()), true}, {at("a", math.Inf(1)), false}, {at("a", nil), false},
		{at("a", "x"), true}, {at("a", "x"), false}, {at("a", "y"), true}, {at("a", false), true}, {at("a", false), false}, {at("b", false), true}, {at("b", false, "c", 0), true}, {at("b", false), true},
		{at("b", at("x", 1)), true}, {at("b", at("x", 1)), false}, {at("b", at("x", 2)), true}, {at("b", at("x", 2, "y", 1)), true}, {at("b", at()), true}, {at("b", at()), false},
		{at("b", []Value{OfInt(1)}), true}, {at("b", []Value{OfInt(1)}), false}, {at("b", []Value{OfInt(1), OfInt(2)}), true}, {at("b", []Value{}), true}, {at(), true}, {at(), false},
	} {
		if e.Round(c.o); e.Moved() != c.moved {
			t.Errorf("%d: %s: %v", i, OfObj(c.o).AppendJSON(nil), e.Moved())
		}
	}
}

// TestNoAllocations: a state that is like the one before costs no memory.
func TestNoAllocations(t *testing.T) {
	e := Encoder{Rounding: Rounded()}
	a, b := players(100, 0), players(100, 1.5)
	buf := make([]byte, 0, 1<<16)
	e.Baseline(a)
	e.AppendState(buf, b)
	if n := testing.AllocsPerRun(100, func() { e.AppendState(buf, b) }); n != 0 {
		t.Errorf("%v allocations a difference", n)
	}
	if n := testing.AllocsPerRun(100, func() { AppendFull(buf, e.Baseline(a)) }); n != 0 {
		t.Errorf("%v allocations a baseline", n)
	}
}

func BenchmarkAppendState(b *testing.B) {
	e := Encoder{Rounding: Rounded()}
	e.Baseline(players(100, 0))
	now, buf := players(100, 1.5), make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		e.AppendState(buf, now)
	}
}

func BenchmarkMarshalOfMaps(b *testing.B) {
	var v any
	if err := json.Unmarshal(OfObj(players(100, 1.5)).AppendJSON(nil), &v); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		json.Marshal(v)
	}
}

// FuzzParse: what this takes the standard library takes as well, with the same value; what it refuses beyond that is a
// key twice, depth, half a character or a number that is none.
func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/json.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b)
		valid := json.Valid(b) && utf8.Valid(b)
		if err == nil && !valid {
			t.Fatalf("%q is no JSON", b)
		}
		if errors.Is(err, ErrSyntax) && valid {
			var x any
			if json.Unmarshal(b, &x) == nil {
				t.Fatalf("%q is refused: %v", b, err)
			}
		}
		if err != nil {
			return
		}
		again, err := Parse(v.AppendJSON(nil))
		if err != nil || !Equal(again, v) {
			t.Fatalf("%q is written as %q, %v", b, v.AppendJSON(nil), err)
		}
		if v.Kind() == Obj {
			var d Decoder
			d.Base(1, 1, Object{{"a", OfObj(Object{{"b", OfInt(1)}})}})
			d.Apply(v.Obj())
		}
	})
}

// FuzzDifference: a baseline and the difference of any two trees give the second.
func FuzzDifference(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		e := Encoder{Rounding: Rounded()}
		for range 20 {
			a := tree(r, 0)
			b := tree(r, 0)
			if r.IntN(2) == 0 {
				b = near(r, a)
			}
			base := e.Baseline(a).Clone()
			out, some := e.AppendState(nil, b)
			delta, err := Parse(out)
			if err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			got, err := patch(base, delta.Obj())
			want := e.Round(b)
			if err != nil || !Equal(OfObj(got), OfObj(want)) || !some && !Equal(OfObj(base), OfObj(want)) {
				t.Fatalf("%s\nand %s\ngive %s\nnot %s", OfObj(base).AppendJSON(nil), out, OfObj(got).AppendJSON(nil), OfObj(want).AppendJSON(nil))
			}
		}
	})
}
