package rooms

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/packed"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// walkers is a game of bodies that move at random, where some see less than others.
type walkers struct {
	*counter
	random *rand.Rand
	bodies state.Object
	views  map[string]View
	mu     sync.Mutex
	truth  map[string]string // by view and tick
	tick   uint64
}

func newWalkers(seed uint64) *walkers {
	w := &walkers{counter: newCounter(), random: rand.New(rand.NewPCG(seed, 2)), views: map[string]View{}, truth: map[string]string{}}
	for i := range 8 {
		w.bodies = w.bodies.Set(fmt.Sprint("e", i), state.OfObj(nil))
	}
	w.step = func(first uint64, n int) {
		w.tick = first + uint64(n) - 1
		for i := range w.bodies {
			o := w.bodies[i].Value.Obj().Clone()
			for range w.random.IntN(4) {
				switch w.random.IntN(6) {
				case 0:
					o = o.Set("x", state.OfFloat(w.random.Float64()*2000-1000))
				case 1:
					o = o.Set("up", state.OfBool(w.random.IntN(2) == 0))
				case 2:
					o = o.Set("n", state.OfInt(w.random.Int64N(3)))
				case 3:
					o = o.Without("up")
				case 4:
					o = o.Set("n", state.Value{})
				case 5:
					o = o.Set("name", state.OfStr(fmt.Sprint(w.random.IntN(3))))
				}
			}
			w.bodies[i].Value = state.OfObj(o)
		}
	}
	w.view = func(id string) View { return w.views[id] }
	w.shows = func(v View) state.Object {
		all := w.bodies.Clone()
		if v == "some" {
			all = all.Without("e3")
		}
		if v == "none" {
			all = all[:1]
		}
		o := state.Object{{Key: "bodies", Value: state.OfObj(all)}}
		var e state.Encoder
		e.Rounding = state.Rounding{Default: 2}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.truth[fmt.Sprint(v, w.tick)] = text(e.Round(o))
		return o
	}
	return w
}

// was is what a view showed at a tick.
func (w *walkers) was(v View, tick int64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.truth[fmt.Sprint(v, tick)]
}

var schema = packed.NewSchema(packed.Table{Key: "bodies", Fields: []packed.Field{{Key: "x", Of: packed.Dec(2)}, {Key: "up", Of: packed.Bool}, {Key: "n", Of: packed.Int}, {Key: "name", Of: packed.Str}}})

// bits reads binary frames for a guest.
type bits struct{ t *testing.T }

func (b bits) decode(raw []byte, d *state.Decoder) (*state.Snapshot, state.Result) {
	if raw[0] == '{' {
		b.t.Fatal("a binary frame that begins with a brace")
	}
	f, err := schema.Decode(raw, func(base int64) (state.Object, bool) { o, _ := d.Baseline(); return o, d.IsBase(base) })
	if err != nil {
		b.t.Fatalf("%x: %v", raw, err)
	}
	switch f.Kind {
	case packed.Baseline:
		d.Base(f.Epoch, f.Tick, f.State)
		return nil, state.Based
	case packed.State:
		if r := d.Fits(f.Epoch, f.Tick, f.Base); r != state.Applied {
			return nil, r
		}
		return &state.Snapshot{Epoch: f.Epoch, Tick: f.Tick, State: f.State}, state.Applied
	}
	s, r, _ := d.Show(f.Epoch, f.Tick, f.Kind == packed.Initial, f.State)
	return s, r
}

// TestRooms11Loss: item 11. With 90 % of the differences lost and the rest out of order, what is shown is the truth of
// its tick.
func TestRooms11Loss(t *testing.T) {
	w := newWalkers(11)
	inRoom(t, w, Config{Rounding: state.Rounding{Default: 2}}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{Loss: 0.9, Jitter: 400 * time.Millisecond, Delay: 20 * time.Millisecond, Seed: 5})
		g.send(`{"type":"join","protocol":1,"name":"Ann"}`)
		shown := 0
		for range 4000 {
			time.Sleep(50 * time.Millisecond)
			was := g.shows
			g.take().got = nil
			if g.shows > was {
				shown++
				if want := w.was(nil, g.shown.Tick); text(g.shown.State) != want {
					t.Fatalf("tick %d shows %s\nwant %s", g.shown.Tick, text(g.shown.State), want)
				}
			}
		}
		if g.ended != nil || shown < 300 {
			t.Fatal(g.ended, shown)
		}
	})
}

// TestRooms19Binary: item 19, over the room: states go as they were asked for, and show the same.
func TestRooms19Binary(t *testing.T) {
	w := newWalkers(19)
	inRoom(t, w, Config{Codec: schema, Rounding: state.Rounding{Default: 2}}, func(t *testing.T, h *Hub) {
		join := func(c MemoryConfig, binary bool) *guest {
			g := visit(t, h, c)
			g.schema = bits{t}
			return g.send(`{"type":"join","protocol":1,"name":"Ann","binaryStates":%v}`, binary).take()
		}
		bin, json, cannot := join(MemoryConfig{}, true), join(MemoryConfig{}, false), join(MemoryConfig{TextOnly: true}, true)
		if str(bin.got[0], "stateCodec") != "packed-1" || has(json.got[0], "stateCodec") || has(cannot.got[0], "stateCodec") {
			t.Fatal(text(bin.got[0]), text(json.got[0]))
		}
		for range 1000 {
			sleep(50*time.Millisecond, bin, json, cannot)
			if bin.shown.Tick != json.shown.Tick || text(bin.shown.State) != text(json.shown.State) || text(cannot.shown.State) != text(json.shown.State) {
				t.Fatalf("tick %d\nbinary %s\nJSON   %s", bin.shown.Tick, text(bin.shown.State), text(json.shown.State))
			}
		}
		if len(bin.of(frame.Baseline))+len(bin.of(frame.Snapshot))+len(bin.of(frame.State)) > 0 || len(json.of(frame.State)) == 0 || len(cannot.of(frame.State)) == 0 {
			t.Fatal("states are not of the kind that was asked for")
		}
	})
}

// brace is a codec of which some frames begin with a brace, and some do not exist.
type brace struct{ n int }

func (*brace) Name() string { return "brace" }
func (b *brace) AppendFull(dst []byte, f state.Form, epoch, tick int64, o state.Object) ([]byte, bool) {
	if b.n++; b.n%2 == 0 {
		return dst, false
	}
	return append(dst, '{', 1), true
}
func (b *brace) AppendState(dst []byte, epoch, tick, base int64, was, now state.Object) ([]byte, bool, bool) {
	return append(dst, '{', 1), true, true
}

// TestBraces: a binary frame that begins like JSON is not sent.
func TestBraces(t *testing.T) {
	w := newWalkers(3)
	inRoom(t, w, Config{Codec: new(brace)}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).send(`{"type":"join","protocol":1,"name":"Ann","binaryStates":true}`)
		if sleep(3*time.Second, g); g.shows < 60 || h.conf.Stats.Dropped.Of("codec") == 0 {
			t.Fatal(g.shows)
		}
	})
}

// TestRooms21Views: item 21, of the engine. Peers change at random between views, on lanes that lose and reorder; each
// state shown is that of the peer's view at that tick.
func TestRooms21Views(t *testing.T) {
	for _, binary := range []bool{false, true} {
		w := newWalkers(21)
		inRoom(t, w, Config{Codec: schema, Rounding: state.Rounding{Default: 2}}, func(t *testing.T, h *Hub) {
			var all []*guest
			views := []View{"all", "some", "none", Own("p1")}
			for i := range 6 {
				h.Do(func() { w.views[fmt.Sprint("p", i+1)] = "some" })
				g := visit(t, h, MemoryConfig{Loss: 0.2, Jitter: 350 * time.Millisecond, Seed: uint64(i)})
				g.schema = bits{t}
				g.send(`{"type":"join","protocol":1,"name":"Ann","binaryStates":%v}`, binary)
				all = append(all, g.take())
			}
			seen := map[string]map[uint64]View{} // each peer's view by tick
			h.Do(func() {
				step := w.step
				w.step = func(first uint64, n int) {
					step(first, n)
					w.mu.Lock()
					defer w.mu.Unlock()
					for i := range all {
						id := fmt.Sprint("p", i+1)
						if w.random.IntN(30) == 0 {
							w.views[id] = views[w.random.IntN(3)]
							if i == 0 && w.random.IntN(2) == 0 {
								w.views[id] = views[3]
							}
						}
						if seen[id] == nil {
							seen[id] = map[uint64]View{}
						}
						seen[id][w.tick] = w.views[id]
					}
				}
			})
			shown := 0
			for range 6000 {
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				for _, g := range all {
					was := g.shows
					g.read()
					g.got = nil
					if g.shows == was {
						continue
					}
					w.mu.Lock()
					v, known := seen[g.id][uint64(g.shown.Tick)]
					w.mu.Unlock()
					if !known {
						continue // before the test looked
					}
					shown++
					if want := w.was(v, g.shown.Tick); text(g.shown.State) != want {
						t.Fatalf("%s at tick %d, view %v, shows\n%s\nwant %s", g.id, g.shown.Tick, v, text(g.shown.State), want)
					}
				}
			}
			for _, g := range all {
				if g.ended != nil {
					t.Error(g.id, g.ended)
				}
			}
			if shown < 10000 {
				t.Errorf("only %d states shown", shown)
			}
			h.Do(func() {
				if len(h.views) > 3 {
					t.Errorf("%d views are shared", len(h.views))
				}
			})
		})
	}
}

// TestManyViews: more views than may share an encoder.
func TestManyViews(t *testing.T) {
	w := newWalkers(5)
	inRoom(t, w, Config{}, func(t *testing.T, h *Hub) {
		var all []*guest
		for i := range maxViews + 10 {
			h.Do(func() { w.views[fmt.Sprint("p", i+1)] = i })
			all = append(all, visit(t, h, MemoryConfig{}).join("Ann"))
		}
		sleep(3*time.Second, all...)
		for _, g := range all {
			if g.ended != nil || g.shows < 55 {
				t.Fatal(g.id, g.ended, g.shows)
			}
		}
		h.Do(func() {
			if len(h.views) != maxViews {
				t.Errorf("%d views are shared", len(h.views))
			}
		})
	})
}

// hiding is a game in which one can hide from some.
type hiding struct {
	*counter
	hidden map[string]bool
	staff  map[string]bool
}

func (h hiding) Knows(recipient, subject string) bool {
	return !h.hidden[subject] || h.staff[recipient]
}
func (h hiding) AudienceOf(recipient string) View { return h.staff[recipient] }

// TestRooms21Hidden: item 21, of the engine: who may not be known is in no roster, chat, ping, history or number.
func TestRooms21Hidden(t *testing.T) {
	a := hiding{newCounter(), map[string]bool{"p2": true}, map[string]bool{"p1": true, "p2": true}}
	inRoom(t, a, Config{}, func(t *testing.T, h *Hub) {
		staff := visit(t, h, MemoryConfig{}).join("Staff")
		ghost := visit(t, h, MemoryConfig{}).join("Ghost")
		plain := visit(t, h, MemoryConfig{}).join("Plain")
		ghost.send(`{"type":"chat","text":"boo"}`)
		plain.send(`{"type":"chat","text":"hello"}`)
		sleep(time.Second, staff, ghost, plain)
		check := func(g *guest) {
			t.Helper()
			last := int64(0)
			for _, o := range g.got {
				if s := text(o); typ(o) != frame.Welcome && (strings.Contains(s, "Ghost") || strings.Contains(s, "boo") || strings.Contains(s, `"p2"`)) {
					t.Error(s)
				}
				if m, ok := o.Get("message"); ok {
					if id := num(m.Obj(), "id"); last != 0 && id != last+1 {
						t.Error("a gap in the numbers of messages:", text(o))
					} else {
						last = id
					}
				}
			}
		}
		check(plain)
		if got := members(staff.last(frame.Social)); got != "p1 p2 p3" {
			t.Error(got)
		}
		if len(staff.of(frame.Chat)) != 5 { // three have joined, two spoke
			t.Error(staff.kinds())
		}
		ghost.send(`{"type":"leave"}`)
		ghost.take()
		late := visit(t, h, MemoryConfig{}).join("Late")
		sleep(time.Second, staff, plain, late)
		check(plain)
		check(late)
		if str(late.last(frame.Social), "leaderId") != "p1" {
			t.Error(text(late.last(frame.Social)))
		}
		// A peer that hides later goes from the roster, and nothing of it is told from then on.
		h.Do(func() { a.hidden["p3"] = true })
		late.clear()
		h.Changed()
		sleep(time.Second, staff, plain, late)
		if got := members(late.last(frame.Social)); got != "p1 p4" {
			t.Error(got)
		}
		plain.send(`{"type":"moderate","action":"lock","locked":true}`).noticed(noticeLeader)
		again := visit(t, h, MemoryConfig{}).join("Again")
		if s := text(again.last(frame.Social)); strings.Contains(s, "Plain") {
			t.Error(s)
		}
	})
}

// FuzzRoom walks at random through what peers can do to a room.
func FuzzRoom(f *testing.F) {
	for i := range uint64(12) {
		f.Add(i)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { walk(t, rand.New(rand.NewPCG(seed, 7))) })
	})
}

func walk(t *testing.T, r *rand.Rand) {
	a := newCounter()
	a.capacity = 5
	h := New(a, Config{})
	defer h.Close()
	var guests []*guest
	var tokens []string
	someone := func() *guest { return guests[r.IntN(len(guests))] }
	for range 300 {
		switch n := r.IntN(20); {
		case n < 4 || len(guests) == 0:
			g := visit(t, h, MemoryConfig{Loss: float64(r.IntN(2)) * 0.4, Identity: []string{"", "player:a", "player:b"}[r.IntN(3)], Seed: r.Uint64()})
			g.mute = r.IntN(5) == 0
			if r.IntN(6) > 0 {
				g.join("Ann")
			}
			guests = append(guests, g)
		case n < 6 && len(tokens) > 0:
			g := visit(t, h, MemoryConfig{Identity: []string{"", "player:a", "player:b"}[r.IntN(3)]})
			guests = append(guests, g.resume(tokens[r.IntN(len(tokens))]))
		case n < 8:
			someone().cut()
		case n < 14:
			frames := []string{
				`{"type":"chat","text":"hi"}`, `{"type":"ping","kind":"here"}`, `{"type":"moderate","action":"kick","playerId":"p%d"}`, `{"type":"moderate","action":"ban","playerId":"p%d"}`,
				`{"type":"moderate","action":"lock","locked":true}`, `{"type":"moderate","action":"lock","locked":false}`, `{"type":"leave"}`, `{"type":"increment","epoch":1,"seq":%d}`, `{"type":"ack","ack":%d}`, `nonsense`, `{"type":"join","protocol":1,"name":"Bob"}`,
			}
			s := frames[r.IntN(len(frames))]
			if strings.Contains(s, "%d") {
				s = fmt.Sprintf(s, r.IntN(20))
			}
			someone().send("%s", s)
		case n < 15:
			h.Do(func() { a.epoch++ })
		case n < 16:
			time.Sleep(time.Duration(r.IntN(16000)) * time.Millisecond)
		default:
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		}
		synctest.Wait()
		for _, g := range guests {
			if r.IntN(4) > 0 {
				g.read()
			}
			if g.token != "" {
				tokens = append(tokens, g.token)
			}
		}
		synctest.Wait()
		h.Do(func() {
			ids, connected := map[string]bool{}, 0
			for _, s := range h.slots {
				if ids[s.id] {
					t.Fatal(s.id, "twice")
				}
				ids[s.id] = true
				if s.peer != nil {
					connected++
					if s.peer.slot != s || s.peer.ended || s.peer.acked.Load() > s.peer.sent.Load() {
						t.Fatal(s.id, "has a peer that is not its own")
					}
				}
				if waits := slices.Contains(h.reserved, s); waits != (s.peer == nil) {
					t.Fatal(s.id, "is kept for nobody, or has no time to come back")
				}
			}
			if len(h.slots) > a.capacity || len(h.slots)-connected != len(h.reserved) || len(h.all) != connected+len(h.pending) {
				t.Fatal(len(h.slots), connected, len(h.reserved), len(h.all), len(h.pending))
			}
			var first string
			for _, s := range h.slots {
				if s.peer != nil {
					first = s.id
					break
				}
			}
			if h.leader != first {
				t.Fatalf("%q leads, not %q", h.leader, first)
			}
			in := 0
			for _, l := range h.views {
				in += l.members
			}
			if in > connected {
				t.Fatalf("%d share encoders, %d are there", in, connected)
			}
		})
	}
}
