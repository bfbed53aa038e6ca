package relay

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clerk is an Owner that answers in another goroutine.
type clerk struct {
	version  *proto.Version
	events   chan *Event
	observe  look
	concerns string
	panicked chan any
}

func newClerk() *clerk {
	return &clerk{version: proto.Lookup(767), events: make(chan *Event), panicked: make(chan any, 1)}
}

func (c *clerk) Version() *proto.Version { return c.version }
func (c *clerk) Events() chan<- *Event   { return c.events }
func (c *clerk) Undecoded(proto.Packet)  {}
func (c *clerk) Panicked(v any)          { c.panicked <- v }

func (c *clerk) Observer() Observer {
	if c.observe == nil {
		return nil
	}
	return c.observe
}

func (c *clerk) Concerns(_ proto.Dir, channel []byte, _ int) bool {
	return string(channel) == c.concerns
}

// look is an Observer.
type look func(body []byte)

func (l look) Clientbound(_ proto.State, _ proto.Packet, body []byte) { l(body) }
func (l look) Serverbound(_ proto.State, _ proto.Packet, body []byte) { l(body) }

// want returns a Wants for one class.
func want(class Class, packets ...proto.Packet) Wants {
	return func(_ *proto.Version, _ proto.State, _ proto.Dir, add func(Class, ...proto.Packet)) {
		add(class, packets...)
	}
}

// between returns a clientbound pump in play, from a backend that compresses from 256 bytes on to a client that
// compresses from threshold on.
func between(tb testing.TB, c *clerk, w Wants, from io.Reader, to io.Writer, threshold int) *Pump {
	r := New(new([2]Traffic), w)
	tb.Cleanup(r.Close)
	in := frame.NewReader(from, frame.Limits{})
	in.SetCompression(256)
	out := &Outlet{frame.NewWriter(to), threshold}
	out.SetCompression(threshold)
	p := r.Pump(c, proto.Clientbound, in, 256)
	p.Enter(proto.Play)
	p.Direct(out)
	return p
}

// turn is one read and what follows from it.
func (p *Pump) turn(tb testing.TB) {
	if err := p.r.Fill(); err != nil {
		tb.Fatal(err)
	}
	if err := p.batch(); err != nil {
		tb.Fatal(err)
	}
	p.tally.addTo(&p.relay.traffic[p.dir])
}

// body returns n bytes that compress about as well as game data.
func body(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.ExpFloat64() * 12)
	}
	return b
}

// wire returns what a backend sends.
func wire(write func(w *frame.Writer)) []byte {
	var out bytes.Buffer
	w := frame.NewWriter(&out)
	w.SetCompression(256)
	write(w)
	w.Flush()
	return out.Bytes()
}

// replay is a backend's socket that gives the same bytes over and over.
type replay struct {
	b   []byte
	pos int
}

func (r *replay) Read(b []byte) (int, error) {
	if r.pos == len(r.b) {
		r.pos = 0
	}
	n := copy(b, r.b[r.pos:])
	r.pos += n
	return n, nil
}

// tick returns what a busy backend sends in a tick: movement, and a compressed chunk.
func tick(v *proto.Version) []byte {
	move, _ := v.ID(proto.Play, proto.Clientbound, proto.RelEntityMove)
	chunk, _ := v.ID(proto.Play, proto.Clientbound, proto.MapChunk)
	return wire(func(w *frame.Writer) {
		for range 50 {
			w.Append(move, make([]byte, 9))
		}
		w.Append(chunk, body(16<<10, 1))
		for range 50 {
			w.Append(move, make([]byte, 9))
		}
	})
}

// busy returns a pump between a busy backend and nowhere.
func busy(tb testing.TB, w Wants) *Pump {
	c := newClerk()
	c.observe = func([]byte) {}
	return between(tb, c, w, &replay{b: tick(c.version)}, io.Discard, 256)
}

// TestPassAllocatesNothing is the promise of the relay.
func TestPassAllocatesNothing(t *testing.T) {
	p := busy(t, want(0))
	for range 20 {
		p.turn(t)
	}
	if n := testing.AllocsPerRun(200, func() { p.turn(t) }); n != 0 {
		t.Errorf("%v allocations per batch, want 0", n)
	}
	down := &p.relay.traffic[proto.Clientbound]
	if down.Passed.Load() < 1000 || down.Tapped.Load()+down.Held.Load()+down.Recoded.Load() != 0 {
		t.Errorf("%d frames passed, %d tapped, %d held, %d recoded", down.Passed.Load(), down.Tapped.Load(), down.Held.Load(), down.Recoded.Load())
	}
}

// TestTapAllocatesNothing: looking costs no memory either.
func TestTapAllocatesNothing(t *testing.T) {
	p := busy(t, want(Observed, proto.RelEntityMove))
	for range 20 {
		p.turn(t)
	}
	if n := testing.AllocsPerRun(200, func() { p.turn(t) }); n != 0 {
		t.Errorf("%v allocations per batch, want 0", n)
	}
	if p.relay.traffic[proto.Clientbound].Tapped.Load() < 1000 {
		t.Error("nothing was tapped")
	}
}

func BenchmarkPass(b *testing.B) { benchmark(b, want(0)) }
func BenchmarkTap(b *testing.B)  { benchmark(b, want(Observed, proto.RelEntityMove)) }

// benchmark measures one frame of tick's mixture.
func benchmark(b *testing.B, w Wants) {
	p := busy(b, w)
	frames := func() uint64 {
		c := &p.relay.traffic[proto.Clientbound]
		return c.Passed.Load() + c.Tapped.Load()
	}
	b.ReportAllocs()
	for b.Loop() {
		p.turn(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames()), "ns/frame")
}

// TestClasses: what is held waits for its answer, in order; what concerns nobody goes on, and so does what is observed.
func TestClasses(t *testing.T) {
	c := newClerk()
	c.concerns = "ours"
	var seen [][]byte
	c.observe = func(b []byte) { seen = append(seen, slices.Clone(b)) }
	wants := func(_ *proto.Version, _ proto.State, _ proto.Dir, add func(Class, ...proto.Packet)) {
		add(Held, proto.KeepAlive)
		add(Observed, proto.RelEntityMove)
		add(Channeled, proto.CustomPayload)
	}
	id := func(p proto.Packet) int32 {
		n, _ := c.version.ID(proto.Play, proto.Clientbound, p)
		return n
	}
	const unknown = 0xf0
	from := wire(func(w *frame.Writer) {
		w.Append(unknown, []byte{1})
		w.Append(id(proto.KeepAlive), []byte{2})
		w.Append(id(proto.RelEntityMove), []byte{3})
		w.Append(id(proto.CustomPayload), []byte("\x04ours4"))
		w.Append(id(proto.KeepAlive), []byte{5})
		w.Append(id(proto.CustomPayload), []byte("\x06theirs6"))
		w.Append(unknown, []byte{7})
	})
	var got bytes.Buffer
	p := between(t, c, wants, bytes.NewReader(from), &got, 256)
	p.Start(func() {})
	for i, want := range []struct {
		packet  proto.Packet
		body    string
		channel string
		answer  Verdict
	}{
		{proto.KeepAlive, "\x02", "", Forward},
		{proto.CustomPayload, "\x04ours4", "ours", Handled},
		{proto.KeepAlive, "\x05", "", Handled},
	} {
		e := <-c.events
		if e.Pump != p || e.Packet != want.packet || string(e.Body) != want.body || e.Channel != want.channel || e.Err != nil {
			t.Fatalf("event %d: %v %q on %q, %v; want %v", i, e.Packet, e.Body, e.Channel, e.Err, want)
		}
		p.Answer(want.answer)
	}
	e := <-c.events
	if e.Err != io.EOF || e.Failed != nil {
		t.Fatalf("%v instead of the end", e.Err)
	}
	p.Answer(Handled)
	<-p.Ended()
	out := wire(func(w *frame.Writer) {
		w.Append(unknown, []byte{1})
		w.Append(id(proto.KeepAlive), []byte{2})
		w.Append(id(proto.RelEntityMove), []byte{3})
		w.Append(id(proto.CustomPayload), []byte("\x06theirs6"))
		w.Append(unknown, []byte{7})
	})
	if !bytes.Equal(got.Bytes(), out) {
		t.Errorf("sent on: %x, want %x", got.Bytes(), out)
	}
	if len(seen) != 1 || !bytes.Equal(seen[0], []byte{3}) {
		t.Errorf("seen: %x", seen)
	}
	down := &p.relay.traffic[proto.Clientbound]
	if a, b, c := down.Passed.Load(), down.Tapped.Load(), down.Held.Load(); a != 2 || b != 2 || c != 3 {
		t.Errorf("%d passed, %d tapped, %d held", a, b, c)
	}
}

// TestUnknownVersionsLeaveNothing: a client of a version that nobody knows costs nothing once it is gone. There can be
// any number of them.
func TestUnknownVersionsLeaveNothing(t *testing.T) {
	r := New(new([2]Traffic), want(Held, proto.KeepAlive))
	defer r.Close()
	for range 100 {
		c := newClerk()
		c.version = proto.Unknowing(proto.Newest().Protocol + 1)
		p := r.Pump(c, proto.Clientbound, frame.NewReader(strings.NewReader(""), frame.Limits{}), -1)
		for _, st := range []proto.State{proto.Login, proto.Config, proto.Play} {
			p.Enter(st)
			if *p.classes != (classes{}) {
				t.Fatal("it is looked at")
			}
		}
	}
	if n := len(r.tables.done); n != 0 {
		t.Errorf("%d tables are kept", n)
	}
}

// TestStop: a pump that is told to stop ends, also while it waits for an answer, or for somebody to take its event.
func TestStop(t *testing.T) {
	for _, taken := range []bool{true, false} {
		c := newClerk()
		from, backend := io.Pipe()
		p := between(t, c, want(Held, proto.KeepAlive), from, io.Discard, 256)
		p.Start(func() {})
		id, _ := c.version.ID(proto.Play, proto.Clientbound, proto.KeepAlive)
		go backend.Write(wire(func(w *frame.Writer) { w.Append(id, []byte{1}) }))
		if taken {
			<-c.events
		}
		p.Stop()
		p.Stop()
		backend.Close()
		<-p.Ended()
	}
}

// TestPanic: the owner hears of a panic, and the pump ends.
func TestPanic(t *testing.T) {
	c := newClerk()
	c.observe = func([]byte) { panic("looked too closely") }
	p := between(t, c, want(Observed, proto.RelEntityMove), &replay{b: tick(c.version)}, io.Discard, 256)
	p.Start(func() {})
	if v := <-c.panicked; v != "looked too closely" {
		t.Errorf("panicked with %v", v)
	}
	<-p.Ended()
}

// TestUnwritable: a side that takes nothing more is the owner's to decide about, once for each batch, and the other one
// goes on being read.
func TestUnwritable(t *testing.T) {
	c := newClerk()
	p := between(t, c, want(Held, proto.KeepAlive), &replay{b: tick(c.version)}, shut{}, 256)
	out := p.Dest()
	p.Start(func() {})
	e := <-c.events
	if e.Failed != out || e.Err == nil {
		t.Fatalf("%v, %v", e.Failed, e.Err)
	}
	p.Direct(nil)
	p.Answer(Handled)
	for range 3 {
		if e := <-c.events; e.Failed != nil || e.Err != nil {
			t.Fatalf("%v, %v", e.Failed, e.Err)
		}
		p.Answer(Handled)
	}
	p.Stop()
	<-p.Ended()
}

type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestSilence: only waiting for bytes counts as silence, and its end is told once.
func TestSilence(t *testing.T) {
	w := &watchdog{marks: map[*mark]func(){}}
	var m mark
	late := 0
	w.watch(&m, func() { late++ })
	m.allow(10 * time.Second)
	for _, x := range []struct {
		at   time.Duration
		do   func()
		late int
	}{
		{0, func() {}, 0},
		{time.Minute, func() { m.begin(int64(time.Minute)) }, 0},
		{70 * time.Second, func() {}, 0},
		{71 * time.Second, func() { m.end() }, 0},
		{99 * time.Second, func() { m.begin(int64(99 * time.Second)) }, 0},
		{110 * time.Second, func() {}, 1},
		{120 * time.Second, func() {}, 1},
	} {
		x.do()
		w.check(int64(x.at))
		if late != x.late {
			t.Fatalf("at %v: late %d times, want %d", x.at, late, x.late)
		}
	}
	if !m.late.Load() || m.waited(int64(120*time.Second)) != 21*time.Second {
		t.Errorf("waited %v", m.waited(int64(120*time.Second)))
	}
}

// TestReframedIsBounded: re-framed packets wait for no more than a bound, however many there are in one read, and
// arrive whole and in order.
func TestReframedIsBounded(t *testing.T) {
	const unknown = 0xf0
	for what, x := range map[string]struct{ frames, size int }{
		"few large ones":  {12, 1 << 20},
		"many small ones": {3000, 4 << 10},
	} {
		from := wire(func(w *frame.Writer) {
			for i := range x.frames {
				b := make([]byte, x.size) // compresses a thousandfold
				b[0] = byte(i)
				w.Append(unknown, b)
			}
		})
		var got strides
		p := between(t, newClerk(), want(0), bytes.NewReader(from), &got, -1)
		reads := 0
		for {
			if err := p.r.Fill(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if err := p.batch(); err != nil {
				t.Fatal(err)
			}
			reads++
		}
		if total := x.frames * x.size; got.Len() < total || total/reads < maxAppended*3/2 {
			t.Fatalf("%s: %d of %d bytes in %d reads", what, got.Len(), total, reads)
		}
		if most := maxAppended + x.size + 100; got.most > most {
			t.Errorf("%s: %d bytes waited for one write, want at most %d", what, got.most, most)
		}
		r := frame.NewReader(&got.Buffer, frame.Limits{})
		for i := range x.frames {
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if b, err := r.Body(f); err != nil || f.ID != unknown || len(b) != x.size || b[0] != byte(i) {
				t.Fatalf("%s: frame %d: %v, %d bytes", what, i, err, len(b))
			}
		}
		if n := p.tally.recoded; n != uint64(x.frames) {
			t.Errorf("%s: %d counted", what, n)
		}
	}
}

// strides keeps the sizes of writes.
type strides struct {
	bytes.Buffer
	most, writes int
}

func (s *strides) Write(b []byte) (int, error) {
	s.most = max(s.most, len(b))
	s.writes++
	return s.Buffer.Write(b)
}
