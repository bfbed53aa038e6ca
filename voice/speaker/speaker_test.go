package speaker

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/render"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a set among listeners in one place.
type house struct {
	t     *testing.T
	reg   *world.Registry
	comp  *route.Compiler
	table atomic.Pointer[route.Table]
	set   *Set
}

// ear is a listener that remembers.
type ear struct {
	*route.Member
	mu   sync.Mutex
	got  []route.Frame
	came []time.Time
	gone []uuid.UUID
}

func (e *ear) Deliver(f *route.Frame) {
	g := *f
	g.Opus = slices.Clone(f.Opus)
	e.mu.Lock()
	e.got, e.came = append(e.got, g), append(e.came, time.Now())
	e.mu.Unlock()
}

func (e *ear) Retract(channel uuid.UUID) {
	e.mu.Lock()
	e.gone = append(e.gone, channel)
	e.mu.Unlock()
}

func (e *ear) take() []route.Frame {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got, e.came = nil, nil
	return got
}

func build(t *testing.T) *house {
	reg := world.New()
	h := &house{t: t, reg: reg, comp: route.NewCompiler(reg, route.Policy{Gain: gain.Rules{Default: 48}})}
	h.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	h.set = New(Config{Table: h.table.Load, Place: h.reg.Place})
	t.Cleanup(h.set.Close)
	return h
}

func (h *house) join(name string, x float64) *ear {
	p := h.reg.Add(uuid.NewSHA1(uuid.Nil, []byte(name)), name)
	place := h.reg.Place("survival", "overworld")
	p.SetFacts(world.Facts{Place: place})
	p.SetPose(&world.Pose{X: x, Place: place})
	e := &ear{}
	e.Member = &route.Member{Player: p, Receiver: e, Channels: true}
	h.comp.Add(e.Member)
	h.turn()
	return e
}

// turn publishes.
func (h *house) turn() {
	h.reg.Settle(time.Now())
	h.comp.Reveal()
	h.comp.Look(1 << 30)
	h.table.Store(h.comp.Compile())
}

// meet tells everybody of everybody, so that they may hear each other.
func (h *house) meet(all ...*ear) {
	for _, e := range all {
		h.comp.Name(e.Member, e.Member.Sees())
		h.comp.Tell(e.Member)
	}
	h.turn()
}

var spec = Spec{Name: "Radio", Backend: "survival", World: "overworld", Volume: 1, Range: 16}

func (h *house) open(change func(*Spec)) *Channel {
	h.t.Helper()
	s := spec
	if change != nil {
		change(&s)
	}
	c, err := h.set.Open(s)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// packet returns one 20 ms mono frame going by its first byte.
func packet(n int) []byte { return []byte{0x78, byte(n)} }

// row plays n packets, then ends.
type row struct {
	n, at  int
	err    error
	closed atomic.Int32
}

func (r *row) Next(dst []byte) ([]byte, error) {
	if r.at == r.n {
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	}
	r.at++
	return append(dst, packet(r.at-1)...), nil
}

func (r *row) Close() error { r.closed.Add(1); return nil }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestSpecs(t *testing.T) {
	h := build(t)
	for what, change := range map[string]func(*Spec){
		"no name":            func(s *Spec) { s.Name = "" },
		"blank name":         func(s *Spec) { s.Name = " \u2003" },
		"long name":          func(s *Spec) { s.Name = strings.Repeat("x", 65) },
		"control":            func(s *Spec) { s.Name = "a\nb" },
		"format":             func(s *Spec) { s.Name = "a\u202eb" },
		"section sign":       func(s *Spec) { s.Name = "§4Radio" },
		"surrogate":          func(s *Spec) { s.Name = "\xed\xa0\x80" },
		"no backend":         func(s *Spec) { s.Backend = "" },
		"no world":           func(s *Spec) { s.World = "" },
		"nowhere":            func(s *Spec) { s.Y = math.NaN() },
		"far away":           func(s *Spec) { s.Z = -2e9 },
		"negative volume":    func(s *Spec) { s.Volume = -0.1 },
		"too loud":           func(s *Spec) { s.Volume = 1.1 },
		"no volume":          func(s *Spec) { s.Volume = math.NaN() },
		"no range":           func(s *Spec) { s.Range = 0 },
		"endless":            func(s *Spec) { s.Range = math.Inf(1) },
		"a range of nothing": func(s *Spec) { s.Range = math.NaN() },
	} {
		s := spec
		change(&s)
		if _, err := h.set.Open(s); err == nil {
			t.Errorf("%s: opened", what)
		}
		if err := h.open(nil).Change(s); err == nil {
			t.Errorf("%s: changed", what)
		}
	}
	for _, c := range h.set.All() {
		c.Close()
	}
	c := h.open(func(s *Spec) { s.Name, s.Volume, s.Range = strings.Repeat("x", 64), 0, MaxRange })
	if c.ID() == uuid.Nil || c.Spec().ID != c.ID() || h.set.Get(c.ID()) != c {
		t.Errorf("id %v, spec %+v", c.ID(), c.Spec())
	}
	same := spec
	same.ID = c.ID()
	if _, err := h.set.Open(same); err == nil {
		t.Error("opened twice")
	}
	if err := c.Change(same); err != nil || c.Spec().Range != 16 {
		t.Error(err, c.Spec())
	}
	same.ID = uuid.New()
	if err := c.Change(same); err == nil {
		t.Error("changed its id")
	}
	same.ID = c.ID()
	c.Close()
	c.Close()
	if h.set.Get(same.ID) != nil || !errors.Is(c.Change(same), ErrClosed) {
		t.Error("still there")
	}
	if again, err := h.set.Open(same); err != nil || again.ID() != same.ID {
		t.Error("the id cannot be used again:", err)
	}
	h.set.Close()
	if _, err := h.set.Open(spec); !errors.Is(err, ErrClosed) || len(h.set.All()) != 0 {
		t.Error("open after the end:", err)
	}
}

// names takes a snapshot apart.
func names(t *testing.T, shown *talk.Speakers) (all []string) {
	t.Helper()
	text := render.Speakers(shown)
	v, err := line.ParseS2C(text)
	l, ok := v.(*line.Speakers)
	if err != nil || !ok {
		t.Fatalf("%q is no snapshot: %v", text, err)
	}
	for _, s := range l.List {
		all = append(all, s.Name)
	}
	return all
}

func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		ann, bob := uuid.New(), uuid.New()
		shown := map[uuid.UUID][]string{}
		for _, id := range []uuid.UUID{ann, bob} {
			leave := h.set.Join(id, func(s *talk.Speakers) { shown[id] = append(shown[id], strings.Join(names(t, s), ",")) })
			if id == bob {
				defer leave()
			} else {
				synctest.Wait() // or Bob is shown with Ann, and what comes next is not in one snapshot
				defer func() {
					leave()
					h.open(nil)
					time.Sleep(Flush)
					synctest.Wait()
					if len(shown[ann]) != 0 {
						t.Error("shown after it had left:", shown[ann])
					}
				}()
			}
		}
		expect := func(what string, a, b []string) {
			t.Helper()
			time.Sleep(Flush)
			synctest.Wait()
			if !slices.Equal(shown[ann], a) || !slices.Equal(shown[bob], b) {
				t.Errorf("%s: %q, want %q and %q", what, shown, a, b)
			}
			clear(shown)
		}
		expect("nothing yet", []string{""}, []string{""})
		all := h.open(func(s *Spec) { s.Name = "All" })
		only := h.open(func(s *Spec) { s.Name, s.Allow = "Ann's", []uuid.UUID{ann} })
		h.open(func(s *Spec) { s.Name, s.Allow = "Nobody's", []uuid.UUID{} })
		expect("opened", []string{"All,Ann's"}, []string{"All"})
		expect("unchanged", nil, nil)

		s := only.Spec()
		s.X, s.Volume, s.World = 99, 0, "nether" // range, world and loudness hide nothing and show nothing new
		if err := only.Change(s); err != nil {
			t.Fatal(err)
		}
		expect("moved", nil, nil)
		s.Name = "Hers"
		if err := only.Change(s); err != nil {
			t.Fatal(err)
		}
		expect("renamed", []string{"All,Hers"}, nil)
		for i := range 100 { // many changes are one snapshot
			s.Name = fmt.Sprint("Hers ", i)
			if err := only.Change(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(Flush / 100)
		}
		time.Sleep(Flush)
		synctest.Wait()
		if n := len(shown[ann]); n < 1 || n > 2 || shown[ann][n-1] != "All,Hers 99" {
			t.Errorf("many changes: %q", shown[ann])
		}
		clear(shown)
		s.Allow = nil
		if err := only.Change(s); err != nil {
			t.Fatal(err)
		}
		expect("allowed to all", nil, []string{"All,Hers 99"})
		all.Close()
		expect("closed", []string{"Hers 99"}, []string{"Hers 99"})
	})
}

// Thirty-two rows of the longest names are within the bound of the message, and more are not sent.
func TestSnapshotBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		for range 40 {
			h.open(func(s *Spec) { s.Name = strings.Repeat("字", 64) })
		}
		var shown, other *talk.Speakers
		defer h.set.Join(uuid.New(), func(s *talk.Speakers) { shown = s })()
		defer h.set.Join(uuid.New(), func(s *talk.Speakers) { other = s })()
		time.Sleep(Flush)
		synctest.Wait()
		if n, text := len(names(t, shown)), render.Speakers(shown); n != 32 || len(text) > 10_000 {
			t.Errorf("%d rows, %d bytes", n, len(text))
		}
		if other != shown {
			t.Error("two who may hear the same are shown it apart")
		}
	})
}

func TestCloseOwned(t *testing.T) {
	h := build(t)
	mine, yours := h.open(func(s *Spec) { s.Owner = "me" }), h.open(func(s *Spec) { s.Owner = "you" })
	h.set.CloseOwned("me")
	if h.set.Get(mine.ID()) != nil || h.set.Get(yours.ID()) == nil {
		t.Error("closed the wrong ones")
	}
}

func TestPlayKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a := h.join("a", 4)
		c := h.open(nil)
		begun := time.Now()
		f := &row{n: 50}
		in := must(c.Play(f))(t)
		if c.Input() != in {
			t.Error("it is not what plays")
		}
		if err := in.Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 50*FrameTime {
			t.Errorf("a second took %v", took)
		}
		for i, f := range a.got {
			if f.Kind != route.Channel || f.Channel != c.ID() || f.Talker != uuid.Nil || f.Seq != int64(i) || f.Stream != a.got[0].Stream ||
				f.Stream <= 0 || f.Opus[1] != byte(i) || f.DX != -4 || f.Gain != gain.Level(1, 16, 16) {
				t.Fatalf("frame %d: %+v", i, f)
			}
			if at := a.came[i].Sub(begun); at != time.Duration(i)*FrameTime {
				t.Errorf("frame %d came after %v", i, at)
			}
		}
		if len(a.got) != 50 || h.set.Delivered() != 50 || f.closed.Load() != 1 || c.Input() != nil {
			t.Errorf("%d frames, %d delivered, closed %d times, plays %v", len(a.got), h.set.Delivered(), f.closed.Load(), c.Input())
		}
	})
}

// slow takes its time for one packet.
type slow struct {
	row
	pause time.Duration
}

func (s *slow) Next(dst []byte) ([]byte, error) {
	if s.at == 10 {
		time.Sleep(s.pause)
	}
	return s.row.Next(dst)
}

// A little delay is made up for; a long one is not, for a burst would only fill the listeners' queues.
func TestPlayAfterADelay(t *testing.T) {
	for pause, most := range map[time.Duration]int{50 * time.Millisecond: 3, 500 * time.Millisecond: 26, 5 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			h := build(t)
			a := h.join("a", 0)
			must(h.open(nil).Play(&slow{row{n: 60}, pause}))(t).Err()
			at := map[time.Time]int{}
			for _, when := range a.came {
				at[when]++
			}
			for when, n := range at {
				if n > most {
					t.Errorf("after %v: %d frames at %v", pause, n, when)
				}
			}
			if len(a.got) != 60 || a.got[59].Seq != 59 || a.got[59].Stream != a.got[0].Stream {
				t.Errorf("after %v: %d frames, %+v", pause, len(a.got), a.got[len(a.got)-1])
			}
		})
	}
}

// Allowed players hear it; an empty list is nobody, and no list is everybody.
func TestAllowed(t *testing.T) {
	h := build(t)
	a, b := h.join("a", 0), h.join("b", 0)
	c := h.open(nil)
	live := must(c.Live())(t)
	for what, x := range map[string]struct {
		allow []uuid.UUID
		want  int
	}{"nil": {nil, 2}, "empty": {[]uuid.UUID{}, 0}, "one": {[]uuid.UUID{b.Player.ID}, 1}, "a stranger": {[]uuid.UUID{uuid.New()}, 0}} {
		s := c.Spec()
		s.Allow = x.allow
		if err := c.Change(s); err != nil {
			t.Fatal(err)
		}
		if n, err := live.Send(packet(1)); n != x.want || err != nil {
			t.Errorf("%s: heard by %d (%v), want %d", what, n, err, x.want)
		}
		if len(a.take()) != x.want/2 || len(b.take()) != (x.want+1)/2 {
			t.Errorf("%s: the wrong ones hear it", what)
		}
		if len(x.allow) > 0 { // the caller's slice stays the caller's
			x.allow[0] = a.Player.ID
			if got := c.Spec().Allow[0]; got == a.Player.ID {
				t.Error("the list is shared with the caller")
			}
		}
	}
}

// late wakes up late again and again, as on a machine that has too much to do.
type lateRow struct{ row }

func (l *lateRow) Next(dst []byte) ([]byte, error) {
	if l.at%10 == 9 {
		time.Sleep(150 * time.Millisecond)
	}
	return l.row.Next(dst)
}

// Fifty frames a second, whatever the machine has to do beside it.
func TestPlayKeepsItsPaceOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a := h.join("a", 0)
		in := must(h.open(nil).Play(&lateRow{row{n: 1 << 30}}))(t)
		time.Sleep(20 * time.Second)
		if n := len(a.take()); n < 990 || n > 1001 {
			t.Errorf("%d frames in 20 s", n)
		}
		in.Stop()
	})
}

// stuck is a file on a disk that hangs.
type stuck struct{ free chan struct{} }

func (s stuck) Next(dst []byte) ([]byte, error) { <-s.free; return dst, io.EOF }

// Neither who stops a sound nor who closes a speaker, or all of them, waits for the sound.
func TestNothingWaitsForASound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		s := stuck{make(chan struct{})}
		began := time.Now()
		in := must(h.open(nil).Play(s))(t)
		time.Sleep(time.Second)
		in.Stop()
		c := h.open(nil)
		must(c.Play(s))(t)
		must(c.Play(s))(t)
		time.Sleep(time.Second)
		c.Close()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took-2*time.Second)
		}
		h.set.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("closing took %v", took)
		}
		close(s.free)
	})
}

func TestPlayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		h.join("a", 0)
		broken := errors.New("disk on fire")
		if err := must(h.open(nil).Play(&row{n: 2, err: broken}))(t).Err(); !errors.Is(err, broken) {
			t.Error(err)
		}
		if err := must(h.open(nil).Play(fixed{0x7c, 1}))(t).Err(); err != errNoFrame { // stereo
			t.Error(err)
		}
		c := h.open(nil)
		f := &row{n: 1 << 30}
		in := must(c.Play(f))(t)
		time.Sleep(time.Second)
		in.Stop()
		in.Stop()
		if in.Err() != ErrStopped || f.closed.Load() != 1 || f.at < 50 || f.at > 52 || c.Input() != nil {
			t.Errorf("%v, closed %d times, at %d, plays %v", in.Err(), f.closed.Load(), f.at, c.Input())
		}
	})
}

type fixed []byte

func (f fixed) Next(dst []byte) ([]byte, error) { return append(dst, f...), nil }

// A channel plays one thing at a time, and each is a stream of its own that begins at 0.
func TestOneInputAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a, b := h.join("a", 0), h.join("b", 0)
		h.meet(a, b)
		c := h.open(nil)
		var streams []int64
		var former *Input
		for i := range 6 {
			var in *Input
			var live Live
			switch i % 3 {
			case 0:
				in = must(c.Play(&row{n: 1 << 30}))(t)
				time.Sleep(5*FrameTime - 1)
			case 1:
				live = must(c.Live())(t)
				in = live.Input
				for range 5 {
					if n, err := live.Send(packet(1)); n != 2 || err != nil {
						t.Fatal(n, err)
					}
				}
			case 2:
				in = must(c.Relay(b.Player.ID))(t)
				for seq := range int64(5) {
					h.set.Mic(b.Member, 1, seq, packet(2))
				}
			}
			if former != nil {
				if err := former.Err(); err != ErrStopped {
					t.Errorf("input %d ended with %v", i-1, err)
				}
			}
			former = in
			got := a.take()
			if len(got) < 5 || got[0].Seq != 0 || slices.Contains(streams, got[0].Stream) {
				t.Fatalf("input %d: %d frames, the first %+v, streams before %v", i, len(got), got[0], streams)
			}
			for _, f := range got {
				if f.Stream != got[0].Stream || (f.Talker == b.Player.ID) != (i%3 == 2) {
					t.Errorf("input %d: %+v", i, f)
				}
			}
			streams = append(streams, got[0].Stream)
			if live.Input != nil {
				must(c.Live())(t)
				if _, err := live.Send(packet(1)); err != ErrStopped {
					t.Error("a replaced input still sends:", err)
				}
				if _, err := must(c.Live())(t).Send([]byte{0xff}); err != errNoFrame {
					t.Error("sends what is no frame:", err)
				}
			}
		}
		c.Close()
		h.set.Mic(b.Member, 1, 9, packet(2))
		if got := a.take(); len(got) != 0 {
			t.Error("a closed channel carries a microphone:", got)
		}
	})
}

func TestRelay(t *testing.T) {
	h := build(t)
	from, to := h.join("from", 0), h.join("to", 1)
	h.meet(from, to)
	c := h.open(nil)
	if _, err := c.Relay(uuid.Nil); err == nil {
		t.Error("relays nobody")
	}
	must(c.Relay(from.Player.ID))(t)
	say := func(m *route.Member, stream, seq int64) route.Frame {
		t.Helper()
		h.set.Mic(m, stream, seq, packet(3))
		if got := from.take(); len(got) != 0 {
			t.Fatal("the origin hears itself")
		}
		got := to.take()
		if len(got) != 1 || got[0].Talker != from.Player.ID || got[0].Channel != c.ID() || got[0].Stream <= 0 || got[0].Opus[1] != 3 {
			t.Fatalf("%+v", got)
		}
		return got[0]
	}
	a, b := say(from.Member, 5, 7), say(from.Member, 5, 12)
	if a.Seq != 7 || b.Seq != 12 || a.Stream != b.Stream {
		t.Errorf("gaps are not kept: %+v, %+v", a, b)
	}
	if c := say(from.Member, 6, 0); c.Stream == b.Stream || c.Seq != 0 {
		t.Errorf("a new segment goes on as the old one: %+v", c)
	}
	// The same player by another connection, which happens to use the same number for a stream.
	c5 := say(from.Member, 5, 0)
	h.comp.Drop(from.Member)
	third := &route.Member{Player: from.Player, Receiver: from, Channels: true}
	h.comp.Add(third)
	from.Member = third
	h.meet(from, to)
	if d := say(third, 5, 1); d.Stream == c5.Stream {
		t.Error("another connection goes on with the stream of the former one")
	}
	// And by one of a legacy client.
	h.comp.Drop(from.Member)
	again := &route.Member{Player: from.Player, Receiver: from, Channels: true}
	h.comp.Add(again)
	from.Member = again
	h.meet(from, to)
	l := say(again, 0, 0)
	for i := range int64(3) {
		if f := say(again, 0, 0); f.Stream != l.Stream || f.Seq != l.Seq+i+1 {
			t.Errorf("legacy frame %d: %+v after %+v", i, f, l)
		}
	}
	if l.Seq != 0 {
		t.Errorf("begins at %d", l.Seq)
	}
	// Two channels may carry one microphone; other microphones are not carried.
	d := h.open(nil)
	must(d.Relay(from.Player.ID))(t)
	h.set.Mic(again, 0, 0, packet(3))
	if got := to.take(); len(got) != 2 {
		t.Errorf("%d of two channels", len(got))
	}
	h.set.Mic(to.Member, 1, 0, packet(3))
	if len(from.take())+len(to.take()) != 0 {
		t.Error("carries somebody else")
	}
}

// Close is the end of everything that a channel has anywhere.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a := h.join("a", 0)
		c := h.open(nil)
		f := &row{n: 1 << 30}
		in := must(c.Play(f))(t)
		time.Sleep(time.Second)
		c.Close()
		n := len(a.take())
		if n < 50 || in.Err() != ErrStopped || f.closed.Load() != 1 || !slices.Equal(a.gone, []uuid.UUID{c.ID()}) {
			t.Errorf("%d frames, closed %d times, %v, taken back %v", n, f.closed.Load(), in.Err(), a.gone)
		}
		time.Sleep(time.Second)
		if len(a.take()) != 0 {
			t.Error("it is heard after Close")
		}
		for what, start := range map[string]func() error{
			"play":  func() error { _, err := c.Play(f); return err },
			"relay": func() error { _, err := c.Relay(a.Player.ID); return err },
			"live":  func() error { _, err := c.Live(); return err },
		} {
			if err := start(); err != ErrClosed {
				t.Errorf("%s on a closed channel: %v", what, err)
			}
		}
	})
}

// Whatever is done at once, one input plays and everything ends.
func TestAtOnce(t *testing.T) {
	h := build(t)
	a, b := h.join("a", 0), h.join("b", 0)
	h.meet(a, b)
	c := h.open(nil)
	defer h.set.Join(a.Player.ID, func(*talk.Speakers) {})()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				switch i {
				case 0:
					in, err := c.Play(&row{n: 3})
					if err == nil {
						in.Stop()
					}
				case 1:
					if l, err := c.Live(); err == nil {
						l.Send(packet(0))
					}
				case 2:
					c.Relay(b.Player.ID)
					h.set.Mic(b.Member, 1, 0, packet(0))
				case 3:
					s := spec
					s.Name = "Other"
					c.Change(s)
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	if c.Input() != nil || h.set.relays.Load() != nil {
		t.Error("something is left")
	}
}

// alphabet is samples that end after n.
type alphabet struct {
	n, at, step int
	closed      bool
}

func (a *alphabet) Read(pcm []int16) (int, error) {
	n := min(len(pcm), a.step, a.n-a.at)
	for i := range n {
		pcm[i] = int16(a.at + i + 1)
	}
	if a.at += n; a.at == a.n {
		return n, io.EOF
	}
	return n, nil
}

func (a *alphabet) Close() error { a.closed = true; return nil }

// plain encodes so that a test sees what.
type plain struct{ frames [][]int16 }

func (p *plain) Encode(pcm []int16, dst []byte) ([]byte, error) {
	p.frames = append(p.frames, slices.Clone(pcm))
	return append(dst, packet(len(p.frames))...), nil
}

func TestPCM(t *testing.T) {
	for _, step := range []int{7, 960, 5000} {
		synctest.Test(t, func(t *testing.T) {
			h := build(t)
			a := h.join("a", 0)
			enc, sound := &plain{}, &alphabet{n: 2*FrameSize + 100, step: step}
			begun := time.Now()
			if err := must(h.open(nil).PlayPCM(sound, enc))(t).Err(); err != nil {
				t.Fatal(err)
			}
			if len(enc.frames) != 3 || len(a.got) != 3 || !sound.closed {
				t.Fatalf("step %d: %d frames encoded, %d sent, closed %v", step, len(enc.frames), len(a.got), sound.closed)
			}
			for i, v := range slices.Concat(enc.frames...) {
				if want := int16(i + 1); i < sound.n && v != want || i >= sound.n && v != 0 {
					t.Fatalf("step %d: sample %d is %d", step, i, v)
				}
			}
			if step >= FrameSize && time.Since(begun) > 4*FrameTime {
				t.Errorf("took %v", time.Since(begun))
			}
			for i, f := range a.got { // a wait for samples is no loss
				if f.Seq != int64(i) || f.Stream != a.got[0].Stream {
					t.Errorf("step %d: frame %d is %+v", step, i, f)
				}
			}
		})
	}
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		a := h.join("a", 0)
		q, enc := NewQueue(3*FrameSize), &plain{}
		in := must(h.open(nil).PlayPCM(q, enc))(t)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(a.take()) != 0 {
			t.Error("nothing is heard")
		}
		pcm := make([]int16, 2*FrameSize)
		for i := range pcm {
			pcm[i] = int16(i)
		}
		if n := q.Write(pcm); n != len(pcm) {
			t.Errorf("took %d", n)
		}
		if n := q.Write(pcm); n != FrameSize {
			t.Errorf("took %d where there was room for %d", n, FrameSize)
		}
		time.Sleep(10 * FrameTime)
		q.Write(pcm[:10])
		q.End()
		if q.Write(pcm) != 0 {
			t.Error("takes more after its end")
		}
		if err := in.Err(); err != nil {
			t.Error(err)
		}
		if len(enc.frames) != 4 || enc.frames[1][0] != FrameSize || enc.frames[2][0] != 0 || enc.frames[3][9] != 9 || enc.frames[3][10] != 0 {
			t.Errorf("%d frames", len(enc.frames))
		}
	})
}

func TestNoAllocationPerFrame(t *testing.T) {
	h := build(t)
	from := h.join("from", 0)
	all := []*ear{from}
	for i := range 80 {
		e := h.join(fmt.Sprint(i), 1)
		e.Member.Receiver = nil
		h.comp.Drop(e.Member)
		e.Member.Receiver = silent{}
		h.comp.Add(e.Member)
		all = append(all, e)
	}
	h.meet(all...)
	relay, live := h.open(nil), h.open(func(s *Spec) {
		s.Allow = []uuid.UUID{}
		for _, e := range all[1:] {
			s.Allow = append(s.Allow, e.Player.ID)
		}
	})
	must(relay.Relay(from.Player.ID))(t)
	l := must(live.Live())(t)
	var seq int64
	opus := packet(1)
	send := func() {
		h.set.Mic(from.Member, 1, seq, opus)
		if n, err := l.Send(opus); n != 80 || err != nil {
			t.Fatal(n, err)
		}
		seq++
	}
	send()
	before := h.set.Delivered()
	if allocs := testing.AllocsPerRun(100, send); allocs != 0 {
		t.Errorf("%v allocations per two frames", allocs)
	}
	if n := h.set.Delivered() - before; n != 101*160 {
		t.Errorf("%d delivered", n)
	}
}

type silent struct{}

func (silent) Deliver(*route.Frame) {}
