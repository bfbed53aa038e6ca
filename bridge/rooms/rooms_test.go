package rooms

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a game: a number that everybody may raise.
type counter struct {
	capacity int
	count    int64
	epoch    int64
	steps    []int
	lastStep uint64
	got      []string
	joined   []string
	step     func(first uint64, n int)
	command  func(id string, c *Command) error
	validate func(*Join) error
	shows    func(v View) state.Object
	view     func(id string) View
	at       map[string]Location
}

func newCounter() *counter {
	return &counter{capacity: 300, epoch: 1, at: map[string]Location{}}
}

func (c *counter) Capacity() int { return c.capacity }
func (c *counter) ValidateJoin(j *Join) error {
	if c.validate != nil {
		return c.validate(j)
	}
	return nil
}
func (c *counter) Joined(id string) { c.joined = append(c.joined, "+"+id) }
func (c *counter) Left(id string)   { c.joined = append(c.joined, "-"+id) }
func (c *counter) Welcome(id string) state.Object {
	return state.Object{{Key: "game", Value: state.OfStr("counter")}}
}
func (c *counter) Epoch() int64 { return c.epoch }
func (c *counter) Step(first uint64, n int) {
	if first != c.lastStep+1 {
		panic(fmt.Sprintf("step %d after %d", first, c.lastStep))
	}
	c.lastStep += uint64(n)
	c.steps = append(c.steps, n)
	if c.step != nil {
		c.step(first, n)
	}
}
func (c *counter) Command(id string, f *Command) error {
	c.got = append(c.got, id+" "+f.Type)
	if c.command != nil {
		return c.command(id, f)
	}
	switch f.Type {
	case "increment":
		c.count++
		return nil
	case "nothing":
		return nil
	}
	return errors.New("no such command")
}
func (c *counter) View(id string) View {
	if c.view != nil {
		return c.view(id)
	}
	return nil
}
func (c *counter) Snapshot(v View, dst state.Object) state.Object {
	if c.shows != nil {
		return c.shows(v)
	}
	return append(dst[:0], state.Member{Key: "count", Value: state.OfInt(c.count)})
}

// social is a counter with places.
type social struct{ *counter }

func (s social) Leader(members []Member) string {
	for _, m := range members {
		if m.Connected {
			return m.ID
		}
	}
	return ""
}
func (s social) PingLocation(id, kind string) (Location, error) {
	at, ok := s.at[id]
	if !ok {
		return at, errors.New("nowhere")
	}
	return at, nil
}

// guest is a peer at the other end of a pipe, as a test sees it.
type guest struct {
	t     *testing.T
	pipe  *MemoryTransport
	conf  MemoryConfig
	hub   *Hub
	ended *frame.Ended
	mute  bool // never acknowledges

	id, token string
	got       []state.Object // since the last take
	states    state.Decoder
	shown     *state.Snapshot
	shows     int
	schema    interface {
		decode(b []byte, d *state.Decoder) (*state.Snapshot, state.Result)
	}
}

func visit(t *testing.T, h *Hub, c MemoryConfig) *guest {
	g := &guest{t: t, hub: h, conf: c}
	room, pipe := MemoryPair(c)
	g.pipe = pipe
	h.Attach(room)
	return g
}

func (g *guest) send(format string, a ...any) *guest {
	g.pipe.Send(fmt.Appendf(nil, format, a...))
	return g
}

// take reads what has come by now.
func (g *guest) take() *guest {
	g.t.Helper()
	synctest.Wait()
	g.read()
	return g
}

func (g *guest) read() {
	for g.ended == nil {
		p, wait, err := g.pipe.next()
		if err != nil {
			g.ended, _ = err.(*frame.Ended)
			return
		}
		if wait != 0 {
			return
		}
		if p.binary {
			s, r := g.schema.decode(p.frame, &g.states)
			g.saw(s, r)
			continue
		}
		v, err := state.Parse(p.frame)
		if err != nil {
			g.t.Fatalf("%s: %v", p.frame, err)
		}
		o := v.Obj()
		g.got = append(g.got, o)
		switch typ(o) {
		case frame.Welcome:
			g.id, g.token = str(o, "id"), str(o, "resume")
		case frame.Baseline, frame.Snapshot, frame.State:
			s, r, err := g.states.Apply(o)
			if err != nil {
				g.t.Fatalf("%s: %v", p.frame, err)
			}
			g.saw(s, r)
		}
	}
}

func (g *guest) saw(s *state.Snapshot, r state.Result) {
	if r != state.Applied {
		return
	}
	g.shown = s
	g.shows++
	if !g.mute {
		g.send(`{"type":"ack","ack":%d}`, s.Tick)
	}
}

// of returns the frames of a kind that have come since the last clear.
func (g *guest) of(kind string) (out []state.Object) {
	for _, o := range g.got {
		if typ(o) == kind {
			out = append(out, o)
		}
	}
	return out
}

func (g *guest) clear() *guest { g.take().got = nil; return g }

func (g *guest) kinds() (out []string) {
	for _, o := range g.got {
		out = append(out, typ(o))
	}
	return out
}

func (g *guest) last(kind string) state.Object {
	g.t.Helper()
	all := g.of(kind)
	if len(all) == 0 {
		g.t.Fatalf("no %s among %v", kind, g.kinds())
	}
	return all[len(all)-1]
}

func (g *guest) join(name string) *guest {
	return g.send(`{"type":"join","protocol":1,"name":%q}`, name).take()
}

func (g *guest) resume(token string) *guest {
	return g.send(`{"type":"join","protocol":1,"resume":%q}`, token).take()
}

// cut ends the transport without a word.
func (g *guest) cut() *guest { g.pipe.Close(0, ""); synctest.Wait(); return g }

// refused fails unless the peer was told why, and sent away.
func (g *guest) refused(why string) {
	g.t.Helper()
	g.take()
	if g.ended == nil || *g.ended != (frame.Ended{Code: frame.Policy, Reason: frame.Invalid}) {
		g.t.Fatalf("not sent away: %v, %v", g.ended, g.kinds())
	}
	if got := str(g.last(frame.Error), "message"); got != why || typ(g.got[len(g.got)-1]) != frame.Error {
		g.t.Fatalf("told %q, want %q", got, why)
	}
}

// noticed fails unless the peer was told off, and stays.
func (g *guest) noticed(why string) {
	g.t.Helper()
	if g.take(); g.ended != nil || len(g.of(frame.Notice)) == 0 {
		g.t.Fatalf("not told off: %v %v", g.ended, g.kinds())
	}
	if got := str(g.last(frame.Notice), "message"); got != why {
		g.t.Fatalf("told %q, want %q", got, why)
	}
	g.clear()
}

func typ(o state.Object) string { return str(o, "type") }

func str(o state.Object, key string) string { v, _ := o.Get(key); return v.Str() }

func num(o state.Object, key string) int64 { v, _ := o.Get(key); return v.Int() }

func has(o state.Object, key string) bool { _, ok := o.Get(key); return ok }

// members writes a roster in short: names, - for those who are gone.
func members(o state.Object) string {
	v, _ := o.Get("members")
	var out []string
	for i := range v.Len() {
		m := v.At(i).Obj()
		s := str(m, "id")
		if c, _ := m.Get("connected"); !c.Bool() {
			s = "-" + s
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func text(o state.Object) string { return string(state.OfObj(o).AppendJSON(nil)) }

// inRoom runs a test in stopped time, with a room.
func inRoom(t *testing.T, a Authority, c Config, f func(t *testing.T, h *Hub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := New(a, c)
		defer h.Close()
		f(t, h)
	})
}

// sleep lets time pass in which guests acknowledge what they see.
func sleep(d time.Duration, guests ...*guest) {
	for d > 0 {
		part := min(d, 10*time.Millisecond)
		time.Sleep(part)
		d -= part
		synctest.Wait()
		for _, g := range guests {
			g.read()
		}
		synctest.Wait()
	}
}

// TestRooms01Join: item 1, how a peer does not get in.
func TestRooms01Join(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		for _, protocol := range []string{`"protocol":2,`, `"protocol":"1",`, `"protocol":1.0,`, ``, `"protocol":1e0,`} {
			visit(t, h, MemoryConfig{}).send(`{"type":"join",%s"name":"Ann"}`, protocol).refused(string(ErrProtocol))
		}
		for _, first := range []string{`{"type":"chat","text":"hi"}`, `{"type":"ack","ack":0}`, `hello`, `{"type":"increment"}`, `[]`} {
			visit(t, h, MemoryConfig{}).send("%s", first).refused("Invalid frame")
		}
		for _, name := range []string{``, `"name":"",`, `"name":"a\nb",`, `"name":"` + strings.Repeat("a", 33) + `",`} {
			visit(t, h, MemoryConfig{}).send(`{"type":"join",%s"protocol":1}`, name).refused("Invalid name")
		}
		slow := visit(t, h, MemoryConfig{})
		time.Sleep(4990 * time.Millisecond)
		if slow.take(); slow.ended != nil {
			t.Fatal("sent away too early")
		}
		time.Sleep(20 * time.Millisecond)
		if slow.take(); slow.ended == nil || *slow.ended != (frame.Ended{Code: 1008, Reason: "Join timeout"}) || str(slow.last(frame.Error), "message") != "Join timeout" {
			t.Fatal(slow.ended, slow.kinds())
		}
		g := visit(t, h, MemoryConfig{}).join("Ann")
		g.join("Ann").refused("Already joined")
	})
}

// TestRooms02Order: item 2, ids and what comes in which order.
func TestRooms02Order(t *testing.T) {
	c := newCounter()
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		var all []*guest
		for i := range 3 {
			g := visit(t, h, MemoryConfig{}).join(fmt.Sprint("Guest", i))
			if want := []string{"welcome", "baseline", "snapshot", "social"}; !slices.Equal(g.kinds()[:4], want) {
				t.Fatal(g.kinds())
			}
			if g.id != fmt.Sprintf("p%d", i+1) || len(g.token) != 43 || num(g.got[0], "capacity") != 300 || str(g.got[0], "game") != "counter" || num(g.got[0], "protocol") != 1 {
				t.Fatal(text(g.got[0]))
			}
			if initial, _ := g.got[2].Get("initial"); !initial.Bool() || !has(g.got[3], "history") || num(g.got[1], "tick") != num(g.got[2], "tick") {
				t.Fatal(text(g.got[2]))
			}
			all = append(all, g)
		}
		if str(all[0].take().last(frame.Social), "leaderId") != "p1" {
			t.Fatal(text(all[0].last(frame.Social)))
		}
		all[0].send(`{"type":"moderate","action":"kick","playerId":"p2"}`).take()
		if g := visit(t, h, MemoryConfig{}).join("Dan"); g.id != "p4" {
			t.Fatal(g.id)
		}
		if want := []string{"+p1", "+p2", "+p3", "-p2", "+p4"}; !slices.Equal(c.joined, want) {
			t.Fatal(c.joined)
		}
	})
}

// TestRooms03Resume: item 3.
func TestRooms03Resume(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		a.send(`{"type":"chat","text":"hi"}`)
		a.send(`{"type":"increment","seq":7}`).take()
		sleep(time.Second, a, b)
		a.cut()
		sleep(300*time.Millisecond, b)
		if got := members(b.last(frame.Social)); got != "-p1 p2" || str(b.last(frame.Social), "leaderId") != "p2" {
			t.Fatal(text(b.last(frame.Social)))
		}
		sleep(14200*time.Millisecond, b)
		again := visit(t, h, MemoryConfig{}).resume(a.token)
		if again.id != "p1" || again.token == a.token || num(again.got[0], "sequence") != 7 {
			t.Fatal(again.id, again.kinds())
		}
		if want := []string{"welcome", "baseline", "snapshot", "social"}; !slices.Equal(again.kinds()[:4], want) || !strings.Contains(text(again.got[3]), `"text":"hi"`) {
			t.Fatal(again.kinds(), text(again.got[3]))
		}
		if !strings.Contains(text(b.take().last(frame.Chat)), "Ann reconnected") {
			t.Fatal(text(b.last(frame.Chat)))
		}
		visit(t, h, MemoryConfig{}).resume(a.token).refused(string(ErrToken))
		if again.take(); again.ended != nil {
			t.Fatal("the second use of a token has sent its first user away")
		}
		visit(t, h, MemoryConfig{}).resume("").refused(string(ErrToken))
		again.cut()
		sleep(15500*time.Millisecond, b)
		visit(t, h, MemoryConfig{}).resume(again.token).refused(string(ErrToken))
		if !strings.Contains(text(b.take().last(frame.Chat)), "Ann left") || members(b.last(frame.Social)) != "p2" {
			t.Fatal(text(b.last(frame.Chat)))
		}
	})
}

// TestRooms04WrongToken: item 4, what is checked before it changes anything.
func TestRooms04WrongToken(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		b := visit(t, h, MemoryConfig{}).join("Bob")
		for who, others := range map[string][]string{"player:a": {"", "player:b"}, "": {"player:a"}} {
			a := visit(t, h, MemoryConfig{Identity: who}).join("Ann").cut()
			for _, token := range []string{"x", strings.Repeat("A", 43)} {
				visit(t, h, MemoryConfig{Identity: who}).resume(token).refused(string(ErrToken))
			}
			for _, other := range others {
				visit(t, h, MemoryConfig{Identity: other}).resume(a.token).refused(string(ErrToken))
			}
			if again := visit(t, h, MemoryConfig{Identity: who}).resume(a.token); again.id != a.id {
				t.Errorf("%q cannot come back: %v", who, again.kinds())
			}
		}
		// The time to come back has not become longer.
		a := visit(t, h, MemoryConfig{Identity: "player:c"}).join("Cid").cut()
		sleep(14*time.Second, b)
		visit(t, h, MemoryConfig{}).resume(a.token).refused(string(ErrToken))
		sleep(1500*time.Millisecond, b)
		if strings.Contains(members(b.last(frame.Social)), a.id) {
			t.Error("a wrong identity has kept the place")
		}
	})
}

// TestRooms05Elsewhere: item 5, and what the old transport had queued is not done.
func TestRooms05Elsewhere(t *testing.T) {
	c := newCounter()
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		a := visit(t, h, MemoryConfig{}).join("Ann")
		again := visit(t, h, MemoryConfig{}).resume(a.token)
		if a.take(); a.ended == nil || *a.ended != (frame.Ended{Code: 1000, Reason: "Reconnected elsewhere"}) || again.id != "p1" || again.ended != nil {
			t.Fatal(a.ended, again.kinds())
		}
		a.send(`{"type":"increment"}`).take()
		if again.send(`{"type":"nothing"}`).take(); !slices.Equal(c.got, []string{"p1 nothing"}) {
			t.Fatal(c.got)
		}
	})
}

// TestRooms06Rate: item 6, how many frames may come.
func TestRooms06Rate(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(2*time.Second, g)
		g.mute = true
		sleep(10*time.Millisecond, g) // makes up for the last acknowledgement
		for range 120 {
			g.send(`{"type":"nothing"}`)
		}
		if g.take(); g.ended != nil {
			t.Fatal("120 frames are too many")
		}
		g.send(`{"type":"nothing"}`).refused("Too many frames")

		steady := visit(t, h, MemoryConfig{}).join("Bob")
		steady.mute = true
		tick := time.NewTicker(time.Second / 120)
		defer tick.Stop()
		for range 120 * 60 {
			<-tick.C
			steady.read()
			steady.send(`{"type":"nothing","ack":%d}`, steady.shown.Tick)
			steady.got = nil
		}
		if steady.take(); steady.ended != nil {
			t.Fatal("120 frames a second are too many", text(steady.got[len(steady.got)-1]))
		}
		visit(t, h, MemoryConfig{}).send("%s", strings.Repeat(" ", 12289)).refused("Frame too long")
		bin := visit(t, h, MemoryConfig{}).join("Cid")
		bin.pipe.SendBinary([]byte{1})
		bin.refused("Invalid frame")
	})
}

// TestRooms07Stall: item 7. While the room stalls, frames wait, and time is lost rather than made up for.
func TestRooms07Stall(t *testing.T) {
	c := newCounter()
	stall := 0 * time.Second
	var free chan struct{}
	c.step = func(uint64, int) {
		if stall > 0 {
			stall = 0
			<-free
		}
	}
	for _, frames := range []int{600, 601} {
		synctest.Test(t, func(t *testing.T) {
			free = make(chan struct{})
			c.lastStep = 0
			h := New(c, Config{})
			defer h.Close()
			g := visit(t, h, MemoryConfig{}).join("Ann")
			sleep(time.Second, g)
			h.Do(func() { c.got, c.steps, stall = nil, nil, time.Second })
			begin := time.Now()
			sleep(900*time.Millisecond, g)
			g.send(`{"type":"nothing","old":true}`)
			sleep(200*time.Millisecond, g)
			for i := range frames {
				if i%6 == 0 {
					time.Sleep(9 * time.Millisecond)
				}
				g.send(`{"type":"nothing"}`)
			}
			time.Sleep(2*time.Second - time.Since(begin))
			close(free)
			synctest.Wait()
			if frames == 601 {
				g.refused("Too many frames")
				return
			}
			if g.take(); g.ended != nil || len(c.got) != 600 {
				t.Fatal(g.ended, len(c.got))
			}
			sleep(45*time.Millisecond, g)
			if len(c.steps) < 2 || slices.Max(c.steps[1:]) > 12 {
				t.Fatal(c.steps)
			}
			if lost := h.conf.Stats.Clamped.Load(); lost < int64(1800*time.Millisecond) {
				t.Fatal(time.Duration(lost))
			}
		})
	}
	// Of a stall of the commands themselves, too.
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.command = func(id string, f *Command) error {
			if f.Type == "sleep" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		h := New(c, Config{})
		defer h.Close()
		g := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(time.Second, g)
		h.Do(func() { c.got = nil })
		g.send(`{"type":"sleep"}`)
		time.Sleep(850 * time.Millisecond)
		g.send(`{"type":"old"}`)
		time.Sleep(250 * time.Millisecond)
		g.send(`{"type":"new"}`)
		time.Sleep(time.Second)
		if synctest.Wait(); !slices.Equal(c.got, []string{"p1 sleep", "p1 new"}) {
			t.Fatal(c.got)
		}
	})
}

// TestRooms08Clock: item 8.
func TestRooms08Clock(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).join("Ann")
		g.clear()
		sleep(10*time.Second, g)
		if c.lastStep < 1188 || c.lastStep > 1212 {
			t.Errorf("%d ticks", c.lastStep)
		}
		baselines, snapshots := g.of(frame.Baseline), len(g.of(frame.State))+len(g.of(frame.Snapshot))
		if len(baselines) < 9 || len(baselines) > 11 || snapshots < 198 || snapshots > 202 {
			t.Errorf("%d baselines, %d snapshots", len(baselines), snapshots)
		}
		for i, o := range g.got {
			if kind := typ(o); kind == frame.State || kind == frame.Snapshot || kind == frame.Baseline {
				if num(o, "tick")%6 != 0 {
					t.Fatal(text(o))
				}
				if kind == frame.Baseline && (typ(g.got[i+1]) != frame.Snapshot || num(g.got[i+1], "tick") != num(o, "tick") || has(g.got[i+1], "initial")) {
					t.Fatal(text(g.got[i+1]))
				}
			}
		}
		// Without peers, nothing moves.
		g.send(`{"type":"leave"}`).take()
		was := c.lastStep
		time.Sleep(time.Minute)
		if synctest.Wait(); c.lastStep != was {
			t.Error("an empty room is simulated")
		}
		if g = visit(t, h, MemoryConfig{}).join("Ann"); num(g.got[1], "tick") != int64(was) {
			t.Error(text(g.got[1]))
		}
	})
}

// TestLateWakes: however late the room is, snapshots are of the ticks that they should be of, and what time is lost is
// known.
func TestLateWakes(t *testing.T) {
	c := newCounter()
	c.step = func(first uint64, n int) {
		c.count++
		time.Sleep(time.Duration(first*7%75) * time.Millisecond)
	}
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(10*time.Second, g)
		for _, o := range g.got {
			if has(o, "tick") && num(o, "tick")%6 != 0 {
				t.Fatal(text(o))
			}
		}
		lost := time.Duration(h.conf.Stats.Clamped.Load())
		if got, want := g.shown.Tick, int64((10*time.Second-lost).Seconds()*120); got < want-20 || got > want || lost > time.Second {
			t.Errorf("tick %d after 10 s, of which %v are lost", got, lost)
		}
	})
}

// TestJoinAmidAChange: somebody who joins between a change of epoch and the next snapshot takes nothing away from the
// others.
func TestJoinAmidAChange(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		a := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(1500*time.Millisecond, a)
		h.Do(func() { c.epoch = 2 })
		b := visit(t, h, MemoryConfig{}).join("Bob")
		if b.shown.Epoch != 2 {
			t.Error(b.shown.Epoch)
		}
		if sleep(60*time.Millisecond, a, b); a.shown.Epoch != 2 || b.shown.Tick != a.shown.Tick {
			t.Error(a.shown, b.shown)
		}
	})
}

// TestRooms12Epoch: item 12.
func TestRooms12Epoch(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		sleep(1500*time.Millisecond, a, b)
		a.clear()
		b.clear()
		h.Do(func() { c.epoch, c.got = 2, nil })
		a.send(`{"type":"increment","epoch":1}`)
		a.send(`{"type":"nothing","epoch":2}`)
		a.send(`{"type":"nothing","epoch":"x"}`)
		sleep(100*time.Millisecond, a, b)
		for _, g := range []*guest{a, b} {
			at := slices.IndexFunc(g.got, func(o state.Object) bool { return has(o, "epoch") })
			if typ(g.got[at]) != frame.Baseline || num(g.got[at], "epoch") != 2 || typ(g.got[at+1]) != frame.Snapshot {
				t.Error(text(g.got[at]))
			}
			if g.shown.Epoch != 2 {
				t.Error(g.shown.Epoch)
			}
		}
		if !slices.Equal(c.got, []string{"p1 nothing", "p1 nothing"}) || a.ended != nil || h.conf.Stats.Dropped.Of("stale_epoch") != 1 {
			t.Error(c.got, a.ended)
		}
	})
}

// TestRooms13Acks: item 13.
func TestRooms13Acks(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(time.Second, g)
		tick := g.shown.Tick
		for _, n := range []int64{tick + 1, tick - 6, -1} {
			g.send(`{"type":"ack","ack":%d}`, n)
		}
		if g.take(); g.ended != nil || h.conf.Stats.Dropped.Of("bad_ack") != 3 {
			t.Fatal(g.ended, h.conf.Stats.Dropped.Of("bad_ack"))
		}
		// An ack on another frame keeps a peer as well.
		g.mute = true
		for range 20 {
			sleep(time.Second, g)
			g.send(`{"type":"nothing","ack":%d}`, g.shown.Tick)
		}
		if g.take(); g.ended != nil {
			t.Fatal(g.ended)
		}
	})
}

// TestRooms14Silence: item 14, who never acknowledges, and who does not for a while.
func TestRooms14Silence(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		other, g := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		g.mute = true
		begin := time.Now()
		var pairs []time.Duration
		for g.ended == nil && time.Since(begin) < 10*time.Second {
			g.got = nil
			sleep(10*time.Millisecond, g, other)
			for _, o := range g.of(frame.Snapshot) {
				if has(o, "initial") {
					pairs = append(pairs, time.Since(begin).Round(50*time.Millisecond))
				}
			}
			if len(pairs) > 0 && len(g.of(frame.State)) > 0 {
				t.Fatal("differences while blocked")
			}
		}
		gone := time.Since(begin)
		if g.ended == nil || *g.ended != (frame.Ended{Code: 1001, Reason: "State receiver stalled"}) || gone < 7900*time.Millisecond || gone > 8500*time.Millisecond {
			t.Fatal(g.ended, gone)
		}
		if len(pairs) != 5 || pairs[0] < 3100*time.Millisecond || pairs[0] > 3300*time.Millisecond || pairs[4]-pairs[0] < 3900*time.Millisecond {
			t.Fatal(pairs)
		}
		if again := visit(t, h, MemoryConfig{}).resume(g.token); again.id != g.id {
			t.Fatal("who was evicted cannot come back")
		}
		frozen := visit(t, h, MemoryConfig{}).join("Cid")
		sleep(time.Second, frozen, other)
		sleep(4*time.Second, other)
		sleep(6*time.Second, frozen, other)
		if frozen.ended != nil || num(frozen.shown.State, "count") < c.count-20 {
			t.Fatal(frozen.ended, text(frozen.shown.State), c.count)
		}
	})
}

// TestRooms15Rates: item 15, how often one may speak and point.
func TestRooms15Rates(t *testing.T) {
	c := newCounter()
	c.at["p1"] = Location{X: 1, Y: 2, Z: 3, Epoch: 1}
	inRoom(t, social{c}, Config{}, func(t *testing.T, h *Hub) {
		g, other := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		g.clear()
		other.clear()
		for _, bad := range []string{strings.Repeat("a", 281), "", "  ", `a\nb`, `a\u202eb`, `a\u200bb`, `a\u0007b`} {
			g.send(`{"type":"chat","text":"%s"}`, bad).noticed(noticeText)
		}
		for _, good := range []string{strings.Repeat("a", 280), `👩\u200d🚀`, " hi ", "x"} {
			g.send(`{"type":"chat","text":"%s"}`, good)
		}
		if other.take(); len(other.of(frame.Chat)) != 4 || !strings.Contains(text(other.of(frame.Chat)[2]), `"text":"hi"`) {
			t.Fatal(other.kinds())
		}
		g.send(`{"type":"chat","text":"five"}`).noticed(noticeChat)
		sleep(9900*time.Millisecond, g, other)
		g.send(`{"type":"chat","text":"five"}`).noticed(noticeChat)
		sleep(200*time.Millisecond, g, other)
		if g.send(`{"type":"chat","text":"five"}`).take(); len(g.of(frame.Notice)) != 0 {
			t.Fatal(text(g.last(frame.Notice)))
		}
		for range 3 {
			g.send(`{"type":"ping","kind":"here","location":{"x":9}}`)
		}
		if other.take(); len(other.of(frame.Ping)) != 3 || text(other.of(frame.Ping)[2]) != `{"ping":{"id":3,"kind":"here","location":{"epoch":1,"x":1,"y":2,"z":3},"playerId":"p1","playerName":"Ann"},"type":"ping"}` {
			t.Fatal(text(other.last(frame.Ping)))
		}
		g.clear()
		g.send(`{"type":"ping","kind":"help"}`).noticed(noticePing)
		sleep(5*time.Second, g, other)
		if g.send(`{"type":"ping","kind":"ball"}`).take(); len(g.of(frame.Notice)) != 0 {
			t.Fatal("no ping after five seconds")
		}
		g.send(`{"type":"ping","kind":"there"}`).noticed(noticeKind)
		other.send(`{"type":"ping","kind":"here"}`).noticed(noticeNowhere)
	})
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		visit(t, h, MemoryConfig{}).join("Ann").send(`{"type":"ping","kind":"here"}`).noticed(noticeNowhere)
	})
}

// TestRooms16HistoryAndBans: item 16.
func TestRooms16HistoryAndBans(t *testing.T) {
	inRoom(t, newCounter(), Config{Each: 1000}, func(t *testing.T, h *Hub) {
		a := visit(t, h, MemoryConfig{}).join("Ann")
		for i := range 101 {
			h.Say(Message{PlayerName: "game", Text: fmt.Sprint("line ", i)})
		}
		history, _ := visit(t, h, MemoryConfig{Identity: "player:b"}).join("Bob").last(frame.Social).Get("history")
		if history.Len() != 100 || str(history.At(0).Obj(), "text") != "line 1" || str(history.At(99).Obj(), "text") != "line 100" {
			t.Fatal(history.Len(), text(history.At(0).Obj()))
		}
		a.clear()
		b := visit(t, h, MemoryConfig{}).join("Nobody")
		a.send(`{"type":"moderate","action":"ban","playerId":"p3"}`).noticed(noticeIdentity)
		b.send(`{"type":"moderate","action":"kick","playerId":"p1"}`).noticed(noticeLeader)
		a.send(`{"type":"moderate","action":"kick","playerId":"p99"}`).noticed(noticeNobody)
		a.send(`{"type":"moderate","action":"kick","playerId":"p1"}`).noticed(noticeYourself)
		a.send(`{"type":"moderate","action":"dance"}`).noticed(noticeAction)
		gone := visit(t, h, MemoryConfig{Identity: "player:c"}).join("Cid").cut()
		two := visit(t, h, MemoryConfig{Identity: "player:c"}).join("Cid")
		a.send(`{"type":"moderate","action":"ban","playerId":%q}`, gone.id).take()
		if two.take(); two.ended == nil || two.ended.Reason != frame.Removed {
			t.Fatal("another place of who is banned stays")
		}
		visit(t, h, MemoryConfig{Identity: "player:c"}).join("Cid").refused(string(ErrBanned))
		visit(t, h, MemoryConfig{Identity: "player:c"}).resume(gone.token).refused(string(ErrToken))
		sleep(time.Second, a)
		for i := range 255 {
			g := visit(t, h, MemoryConfig{Identity: fmt.Sprint("player:", i)}).join("Guest")
			if err := h.Ban(g.id); err != nil {
				t.Fatal(i, err)
			}
		}
		a.clear()
		if a.ended != nil {
			t.Fatal(a.ended)
		}
		last := visit(t, h, MemoryConfig{Identity: "player:last"}).join("Last")
		a.send(`{"type":"moderate","action":"ban","playerId":%q}`, last.id).noticed(noticeBans)
		if last.take(); last.ended != nil {
			t.Fatal(last.ended)
		}
	})
}

// TestBannedResume: a place that is kept is no way back in.
func TestBannedResume(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{Identity: "player:a"}).join("Ann").cut()
		h.Do(func() { h.bans = append(h.bans, "player:a") })
		visit(t, h, MemoryConfig{Identity: "player:a"}).resume(g.token).refused(string(ErrBanned))
	})
}

// TestRooms17Kick: item 17.
func TestRooms17Kick(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		sleep(time.Second, a, b)
		a.clear()
		a.send(`{"type":"moderate","action":"kick","playerId":"p2"}`)
		if b.take(); str(b.last(frame.Remove), "message") != "Removed by the host" || b.ended == nil || *b.ended != (frame.Ended{Code: 1008, Reason: "Removed by host"}) {
			t.Fatal(b.ended, b.kinds())
		}
		sleep(300*time.Millisecond, a)
		if members(a.last(frame.Social)) != "p1" || !strings.Contains(text(a.last(frame.Chat)), "Bob was removed") {
			t.Fatal(text(a.last(frame.Social)))
		}
		visit(t, h, MemoryConfig{}).resume(b.token).refused(string(ErrToken))
	})
}

// TestRooms18Lock: item 18.
func TestRooms18Lock(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		a.send(`{"type":"moderate","action":"lock","locked":true}`)
		visit(t, h, MemoryConfig{}).join("Cid").refused(string(ErrLocked))
		b.cut()
		again := visit(t, h, MemoryConfig{}).resume(b.token)
		if again.id != "p2" {
			t.Fatal(again.kinds())
		}
		if locked, _ := again.last(frame.Social).Get("locked"); !locked.Bool() {
			t.Fatal(text(again.last(frame.Social)))
		}
		a.send(`{"type":"moderate","action":"lock","locked":false}`)
		if g := visit(t, h, MemoryConfig{}).join("Cid"); g.id != "p4" {
			t.Fatal("not unlocked, or the number of who was refused is used again", g.kinds())
		}
	})
}

// TestCapacity: those who may come back count.
func TestCapacity(t *testing.T) {
	c := newCounter()
	c.capacity = 2
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		a := visit(t, h, MemoryConfig{}).join("Ann")
		visit(t, h, MemoryConfig{}).join("Bob").cut()
		visit(t, h, MemoryConfig{}).join("Cid").refused(string(ErrRoomFull))
		sleep(16*time.Second, a)
		if g := visit(t, h, MemoryConfig{}).join("Cid"); g.id == "" {
			t.Fatal(g.kinds())
		}
		c.validate = func(j *Join) error {
			if v, _ := j.Fields.Get("colour"); v.Str() != "red" {
				return Refusal("Red only")
			}
			j.Name = "Red " + j.Name
			return nil
		}
		c.capacity = 5
		visit(t, h, MemoryConfig{}).join("Dan").refused("Red only")
		g := visit(t, h, MemoryConfig{}).send(`{"type":"join","protocol":1,"name":" Dan ","colour":"red"}`).take()
		if !strings.Contains(text(g.last(frame.Chat)), `"text":"Red Dan joined"`) {
			t.Fatal(text(g.last(frame.Chat)))
		}
		c.validate = func(*Join) error { return errors.New("secret of the house") }
		visit(t, h, MemoryConfig{}).join("Eve").refused("Invalid request")
	})
}

// TestLeave: the place is free at once.
func TestLeave(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob")
		b.send(`{"type":"leave"}`).take()
		if typ(b.got[len(b.got)-1]) != frame.Left || *b.ended != (frame.Ended{Code: 1000}) {
			t.Fatal(b.ended, b.kinds())
		}
		visit(t, h, MemoryConfig{}).resume(b.token).refused(string(ErrToken))
		if !strings.Contains(text(a.take().last(frame.Chat)), "Bob left") {
			t.Fatal(text(a.last(frame.Chat)))
		}
		// A command that fails ends the transport, and the place is kept.
		a.send(`{"type":"explode"}`).refused("Invalid request")
		if again := visit(t, h, MemoryConfig{}).resume(a.token); again.id != "p1" {
			t.Fatal(again.kinds())
		}
	})
}

// TestRooms24Close: item 24, and who comes afterwards.
func TestRooms24Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(newCounter(), Config{})
		a, waits := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{})
		h.Close()
		h.Close()
		late := visit(t, h, MemoryConfig{})
		for _, g := range []*guest{a, waits, late} {
			if g.take(); g.ended == nil || *g.ended != (frame.Ended{Code: 1001, Reason: "Host closed the room"}) {
				t.Error(g.ended)
			}
		}
		if h.Do(func() {}) {
			t.Error("a closed room does something")
		}
		if n := h.conf.Stats.Peers.Load(); n != 0 {
			t.Errorf("%d peers are left", n)
		}
	})
}

// TestRooms25Freeze: item 25. One who stops reading holds nobody up.
func TestRooms25Freeze(t *testing.T) {
	c := newCounter()
	c.step = func(uint64, int) { c.count++ }
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		a, b, frozen := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, h, MemoryConfig{}).join("Bob"), visit(t, h, MemoryConfig{}).join("Cid")
		sleep(time.Second, a, b, frozen)
		for second := range 12 {
			a.shows, b.shows = 0, 0
			sleep(time.Second, a, b)
			if a.shows != 20 || b.shows != 20 {
				t.Fatalf("second %d: %d and %d of 20 snapshots", second, a.shows, b.shows)
			}
		}
		if frozen.take(); frozen.ended == nil || frozen.ended.Reason != frame.Stalled {
			t.Fatal(frozen.ended)
		}
	})
}

// TestRooms26Panic: item 26.
func TestRooms26Panic(t *testing.T) {
	bad := newCounter()
	bad.command = func(string, *Command) error { panic("a bug of the game") }
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		broken := New(bad, Config{})
		fine, a, b := visit(t, h, MemoryConfig{}).join("Ann"), visit(t, broken, MemoryConfig{}).join("Ann"), visit(t, broken, MemoryConfig{}).join("Bob")
		a.send(`{"type":"boom"}`)
		for _, g := range []*guest{a, b} {
			if g.take(); g.ended == nil || *g.ended != (frame.Ended{Code: 1001, Reason: "Host closed the room"}) {
				t.Error(g.ended)
			}
		}
		if sleep(time.Second, fine); fine.ended != nil || fine.shows < 2 {
			t.Error(fine.ended, fine.shows)
		}
		<-broken.Done()
		broken.Close()
	})
}

// TestWrongState: what cannot be sent ends the room, and says so.
func TestWrongState(t *testing.T) {
	for what, o := range map[string]state.Object{
		"a reserved key": {{Key: "tick", Value: state.OfInt(1)}}, "the wrong order": {{Key: "b"}, {Key: "a"}},
		"too long": {{Key: "a", Value: state.OfStr(strings.Repeat("a", 1<<20))}},
	} {
		c := newCounter()
		c.shows = func(View) state.Object { return o }
		inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
			if g := visit(t, h, MemoryConfig{}).join("Ann"); g.ended == nil || g.ended.Code != frame.GoingAway {
				t.Errorf("%s: %v", what, g.ended)
			}
		})
	}
}

// TestRoster: at most one each 250 ms, the last one.
func TestRoster(t *testing.T) {
	inRoom(t, newCounter(), Config{}, func(t *testing.T, h *Hub) {
		a := visit(t, h, MemoryConfig{}).join("Ann")
		sleep(time.Second, a)
		a.clear()
		for range 50 {
			visit(t, h, MemoryConfig{}).join("Bob").send(`{"type":"leave"}`)
			sleep(10*time.Millisecond, a)
		}
		sleep(300*time.Millisecond, a)
		if n := len(a.of(frame.Social)); n > 5 || n < 2 || members(a.last(frame.Social)) != "p1" {
			t.Errorf("%d rosters, the last %s", n, text(a.last(frame.Social)))
		}
	})
}

// TestIdle: nothing new is not sent, but four times a second.
func TestIdle(t *testing.T) {
	c := newCounter()
	inRoom(t, c, Config{}, func(t *testing.T, h *Hub) {
		g := visit(t, h, MemoryConfig{}).join("Ann")
		g.clear()
		sleep(10*time.Second, g)
		if n := len(g.of(frame.State)); n < 25 || n > 41 {
			t.Errorf("%d differences in 10 s", n)
		}
		g.clear()
		for _, count := range []int64{5, 0, 7, 5, 0} { // and back to what the baseline has
			h.Do(func() { c.count = count })
			if sleep(60*time.Millisecond, g); num(g.shown.State, "count") != count {
				t.Errorf("a change to %d waits", count)
			}
		}
		lossy := visit(t, h, MemoryConfig{Jitter: time.Microsecond}).join("Bob")
		sleep(time.Second, g, lossy)
		if n := len(lossy.of(frame.State)); n < 17 {
			t.Errorf("%d differences in 1 s where they may be lost", n)
		}
	})
}
