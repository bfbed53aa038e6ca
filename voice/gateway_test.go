package voice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The sets of capabilities that clients ask for here.
var (
	v1      = caps.Set{}
	v2      = caps.Set{Audio: 2}
	status  = caps.Set{Audio: 2, Status: 1}
	spatial = caps.Set{Audio: 2, Status: 1, Spatial: 1}
	browser = caps.Set{Audio: 2, Status: 1, Spatial: 1, Pose: 1}
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// site is a gateway behind a real HTTP server, on a world of the test's own.
type site struct {
	t     *testing.T
	reg   *world.Registry
	place *world.Place
	gw    *Gateway
	addr  string

	sweep   *socket.Sweeper
	servers []*httptest.Server
}

func open(t *testing.T, cfg Config) *site {
	t.Helper()
	if cfg.Policy.Gain.Default == 0 {
		cfg.Policy.Gain.Default = 48
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	reg := world.New()
	s := &site{t: t, reg: reg, place: reg.Place("survival", "minecraft:overworld"), gw: New(cfg, reg)}
	s.sweep = socket.NewSweeper()
	s.addr = s.serve(func() caps.Set { return s.gw.Offers() })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.gw.Close(ctx); err != nil {
			t.Error(err)
		}
		s.sweep.Close()
		for _, srv := range s.servers {
			srv.Close()
		}
	})
	return s
}

// serve opens one more server on the gateway, which offers what offered says, and returns its address.
func (s *site) serve(offered func() caps.Set) (addr string) {
	srv := httptest.NewServer(upgrade.New(upgrade.Config{
		Tokens:  everybody{},
		Online:  func(uuid.UUID) bool { return true }, // so that what comes next is the gateway's to find out
		Offered: offered,
		Sweeper: s.sweep,
		Accept:  func(_ context.Context, sock *socket.Socket, id uuid.UUID, c caps.Set) { s.gw.Accept(sock, id, c) },
		Count:   func(reason string, _ netip.Addr) { s.t.Errorf("upgrade refused: %s", reason) },
	}))
	s.servers = append(s.servers, srv)
	return srv.Listener.Addr().String()
}

// everybody may connect.
type everybody struct{}

func (everybody) Redeem(string, uuid.UUID) bool { return true }

// player puts a player on the proxy, at x on the x axis.
func (s *site) player(name string, x float64) *world.Player {
	p := s.reg.Add(uuid.NewSHA1(uuid.Nil, []byte(name)), name)
	p.SetFacts(world.Facts{Place: s.place})
	s.move(p, x, 0)
	return p
}

func (s *site) move(p *world.Player, x, z float64) {
	p.SetPose(&world.Pose{X: x, Y: 64, Z: z, Place: s.place})
}

// client is one end of a voice socket, wire bytes and all.
type client struct {
	s      *site
	player *world.Player
	conn   net.Conn
	caps   caps.Set
	stream int64
	seq    int64

	mu       sync.Mutex
	frames   []wire.S2C
	came     []time.Time // of the frames
	texts    []string
	people   []line.State // of roster 2, and where that led to by the text of the changes
	revision line.Revision
	rolled   map[string]*line.Roster
	order    []string // texts, and the talkers of frames, as they came
	err      error    // how it ended
	paused   chan struct{}
	// stubborn clients do not answer a close frame.
	stubborn bool
	change   chan struct{} // replaced and closed with each change of the above
	done     chan struct{}
}

// dial connects a player's voice.
func (s *site) dial(p *world.Player, ask caps.Set) *client {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	h := http.Header{}
	ask.ToHeaders(h)
	d := ws.Dialer{Header: ws.HandshakeHeaderHTTP(h), NetDial: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	echoed := http.Header{}
	d.OnHeader = func(k, v []byte) error { echoed.Add(string(k), string(v)); return nil }
	_, br, _, err := d.Dial(context.Background(), "ws://"+s.addr+"/voice?token=t&uuid="+p.ID.String())
	if err != nil {
		s.t.Fatal(err)
	}
	if got := caps.FromHeaders(echoed); got != ask {
		s.t.Fatalf("asked for %+v, got %+v", ask, got)
	}
	if br == nil {
		br = bufio.NewReader(conn)
	}
	c := &client{s: s, player: p, conn: conn, caps: ask, stream: 1, change: make(chan struct{}), done: make(chan struct{})}
	go c.read(br)
	s.t.Cleanup(func() { conn.Close(); <-c.done })
	return c
}

// join returns a player with voice whom everybody before sees, and the other way.
func (s *site) join(name string, x float64, ask caps.Set, before ...*client) *client {
	s.t.Helper()
	p := s.player(name, x)
	for _, o := range before {
		o.player.Show(p.ID)
		p.Show(o.player.ID)
	}
	c := s.dial(p, ask)
	// Wait until the rosters of all have gone round, and the routes with them.
	for _, o := range append(before, c) {
		o.waitFor("a roster with "+name, func() bool { return slices.Contains(o.roster(), name) })
	}
	return c
}

// ready waits until everybody hears everybody who is in range.
func (s *site) ready(all ...*client) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for _, from := range all {
		for {
			heard := 0
			for _, to := range all {
				to.take()
			}
			from.say()
			time.Sleep(30 * time.Millisecond)
			for _, to := range all {
				if to != from && slices.ContainsFunc(to.take(), func(f wire.S2C) bool { return f.Source == from.player.ID }) {
					heard++
				}
			}
			if heard == len(all)-1 {
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("%s is heard by %d of %d", from.player.Name, heard, len(all)-1)
			}
		}
	}
}

func (c *client) read(br *bufio.Reader) {
	defer close(c.done)
	format := wire.S2CV1
	if c.caps.Audio == 2 {
		if format = wire.S2CV2; c.caps.Spatial == 1 {
			format = wire.S2CSpatial
		}
	}
	for {
		c.mu.Lock()
		paused := c.paused
		c.mu.Unlock()
		if paused != nil {
			<-paused
		}
		h, err := ws.ReadHeader(br)
		var p []byte
		if err == nil {
			p = make([]byte, h.Length)
			_, err = io.ReadFull(br, p)
		}
		c.mu.Lock()
		switch {
		case err != nil:
			if c.err == nil {
				c.err = err
			}
		case h.OpCode == ws.OpBinary:
			f, bad := wire.ParseS2C(format, p)
			if bad != nil {
				c.s.t.Errorf("%s got a frame that is none: %v", c.player.Name, bad)
			}
			c.frames, c.came, c.order = append(c.frames, f), append(c.came, time.Now()), append(c.order, f.Source.String())
		case h.OpCode == ws.OpText:
			c.texts, c.order = append(c.texts, string(p)), append(c.order, string(p))
			c.follow(string(p))
		case h.OpCode == ws.OpClose:
			code, reason := ws.ParseCloseFrameData(p)
			c.err = fmt.Errorf("%d %s", code, reason)
			if !c.stubborn {
				c.conn.Close() // as an answer, so that the server need not wait for one
			}
		}
		close(c.change)
		c.change = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	testkit.Until(s.t, what, ok)
}

// waitFor waits for a condition on what has come.
func (c *client) waitFor(what string, ok func() bool) {
	c.s.t.Helper()
	timeout := time.After(patience)
	for {
		c.mu.Lock()
		change := c.change
		c.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-change:
		case <-timeout:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.s.t.Fatalf("%s waits for %s; has %d frames, texts %q, end %v", c.player.Name, what, len(c.frames), c.texts, c.err)
		}
	}
}

// ends waits for the close frame.
func (c *client) ends(want string) {
	c.s.t.Helper()
	c.waitFor("the end", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.err != nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err.Error() != want {
		c.s.t.Errorf("%s ended with %q, want %q", c.player.Name, c.err, want)
	}
}

// take returns the frames that have come since the last call.
func (c *client) take() []wire.S2C {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.frames
	c.frames, c.came = nil, nil
	return f
}

// next waits for n frames.
func (c *client) next(n int) []wire.S2C {
	c.s.t.Helper()
	c.waitFor(fmt.Sprintf("%d frames", n), func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.frames) >= n })
	return c.take()
}

// follow applies changes of the roster, in the plainest way.
func (c *client) follow(text string) {
	v, _ := line.ParseS2C([]byte(text))
	l, ok := v.(*line.Changes)
	if !ok {
		return
	}
	if l.Whole {
		c.people = nil
	} else if l.From != c.revision {
		c.s.t.Errorf("%s gets changes from %x, and has %x", c.player.Name, l.From, c.revision)
	}
	c.revision = l.To
	for _, p := range l.Put {
		l.Gone = append(l.Gone, p.ID)
	}
	c.people = slices.Clone(c.people)
	c.people = slices.DeleteFunc(c.people, func(p line.State) bool { return slices.Contains(l.Gone, p.ID) })
	c.people = append(c.people, l.Put...)
	r := &line.Roster{Status: true}
	for _, p := range c.people {
		r.People = append(r.People, p.Person)
		if p.Deafened {
			r.Deafened = append(r.Deafened, p.ID)
		}
		if p.Tier != talk.Normal {
			r.Tiers[p.Tier] = append(r.Tiers[p.Tier], p.ID)
		}
	}
	if c.rolled == nil {
		c.rolled = map[string]*line.Roster{}
	}
	c.rolled[text] = r
}

// parse reads one of the texts that have come. Of changes it gives the roster that they led to.
func (c *client) parse(text string) any {
	v, _ := line.ParseS2C([]byte(text))
	if _, ok := v.(*line.Changes); ok {
		return c.rolled[text]
	}
	return v
}

// roster returns the names in the newest roster.
func (c *client) roster() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range slices.Backward(c.texts) {
		if r, ok := c.parse(t).(*line.Roster); ok {
			for _, p := range r.People {
				names = append(names, p.Name)
			}
			return names
		}
	}
	return nil
}

func (c *client) send(op ws.OpCode, p []byte) {
	f := ws.MaskFrameInPlace(ws.NewFrame(op, true, slices.Clone(p)))
	if b, err := ws.CompileFrame(f); err == nil {
		c.conn.Write(b) // an end shows on the reading side
	}
}

func (c *client) text(s string) { c.send(ws.OpText, []byte(s)) }

// opus is one 20 ms mono packet, going by its first byte.
var opus = []byte{0x78, 1, 2, 3}

// say sends one frame in the client's format and returns its sequence.
func (c *client) say(payload ...byte) int64 {
	f := wire.C2S{Stream: c.stream, Seq: c.seq, Opus: append(slices.Clone(opus), payload...)}
	format := wire.C2SV1
	switch {
	case c.caps.Soundboard != 0:
		format = wire.C2SBoard
	case c.caps.Audio == 2:
		format = wire.C2SV2
	}
	c.send(ws.OpBinary, wire.AppendC2S(nil, format, &f))
	c.seq++
	return f.Seq
}

// silent lets c say something that is not to be heard, and waits until it has been seen to.
func (c *client) silent() {
	c.s.t.Helper()
	before := c.s.gw.Stats().Frames
	c.say()
	c.s.count("frames", before+1, func(s Stats) uint64 { return s.Frames })
}

// count waits until a counter has got to n.
func (s *site) count(what string, n uint64, read func(Stats) uint64) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := read(s.gw.Stats())
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d, want %d", what, got, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestFirstLight(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, spatial)
	b := s.join("ben", 0, spatial, a)
	s.ready(a, b)
	for _, c := range []struct {
		x, z float64 // of ben
		gain uint8
	}{{5, 0, 228}, {-20, 0, 149}, {0, 47, 5}, {0, -5, 228}} {
		s.move(b.player, c.x, c.z)
		seq := a.say()
		f := b.next(1)[0]
		if f.Kind != wire.KindPlayer || f.Source != a.player.ID || f.Gain != c.gain || f.DX != float32(-c.x) || f.DZ != float32(-c.z) || f.Seq != seq || string(f.Opus) != string(opus) {
			t.Errorf("ben at %v, %v got %+v", c.x, c.z, f)
		}
	}
	for _, x := range []float64{48, 49, 1000} {
		s.move(b.player, x, 0)
		a.silent()
	}
	s.move(b.player, 47.9, 0)
	last := a.say()
	if f := b.next(1); len(f) != 1 || f[0].Seq != last || f[0].Gain != 1 {
		t.Errorf("past the range ben got %+v", f)
	}
	b.player.SetPose(nil)
	a.silent()
	b.player.SetPose(&world.Pose{Y: 64, Place: s.reg.Place("survival", "minecraft:the_nether")})
	a.silent()
	s.move(b.player, 0, 0)
	last = a.say()
	if f := b.next(1); len(f) != 1 || f[0].Seq != last {
		t.Errorf("with no position, or in another world, ben got %+v", f)
	}
	if len(a.take()) != 0 {
		t.Error("anna hears herself")
	}
}

func TestRosterComesBeforeSound(t *testing.T) {
	s := open(t, Config{})
	b := s.join("ben", 0, status)
	other := s.join("other", 0, v2, b)
	s.ready(b, other)
	// Somebody talks to ben all the time, so that ben's socket is never idle.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(17 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				other.say()
			}
		}
	}()
	for i := range 5 {
		p := s.player(fmt.Sprint("new", i), 0)
		b.player.Show(p.ID)
		c := s.dial(p, v2)
		for range 40 { // talks from the first moment on
			c.say()
			time.Sleep(15 * time.Millisecond)
		}
		b.waitFor("the newcomer", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.ContainsFunc(b.frames, func(f wire.S2C) bool { return f.Source == p.ID })
		})
		b.mu.Lock()
		order := slices.Clone(b.order)
		b.mu.Unlock()
		named := slices.IndexFunc(order, func(s string) bool { return strings.Contains(s, p.ID.String()+" "+p.Name) })
		if heard := slices.Index(order, p.ID.String()); heard < named {
			t.Errorf("%s is heard before the roster names them", p.Name)
		}
	}
	close(stop)
	<-stopped
}

func TestMixedVersionsInOneRoom(t *testing.T) {
	s := open(t, Config{})
	var all []*client
	for i, ask := range []caps.Set{v1, v2, spatial, status, {Status: 1}} {
		all = append(all, s.join(fmt.Sprint("p", i), float64(i), ask, all...))
	}
	s.ready(all...)
	for _, from := range all {
		from.stream = 77
		seq := from.say()
		for _, to := range all {
			if to == from {
				continue
			}
			f := to.next(1)[0] // the client's reader has parsed its own format
			counted := from.caps.Audio == 2 && to.caps.Audio == 2
			if f.Source != from.player.ID || string(f.Opus) != string(opus) ||
				counted && (f.Stream <= 0 || f.Stream == 77 || f.Seq != seq) || !counted && (f.Stream != 0 || f.Seq != 0) {
				t.Errorf("%s to %s: %+v", from.player.Name, to.player.Name, f)
			}
		}
	}
	for _, c := range all {
		c.mu.Lock()
		last := c.texts[len(c.texts)-1]
		c.mu.Unlock()
		if has := strings.Contains(last, "SSVC_"); has != (c.caps.Status == 1) {
			t.Errorf("%s with status %d has the extra rows: %v", c.player.Name, c.caps.Status, has)
		}
	}
}

func TestSpectators(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ghost", 0, v2, a)
	s.ready(a, b)
	b.player.SetFacts(world.Facts{Place: s.place, Mode: world.Spectator})
	// The turn that sees it is a matter of milliseconds.
	deadline := time.Now().Add(patience)
	for {
		a.take()
		b.take()
		b.say()
		a.say()
		b.next(1) // a spectator hears players
		if len(a.take()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a player hears a spectator")
		}
	}
}

func TestStreamsOverTheWire(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, status, a)
	s.ready(a, b)
	a.say()
	first := b.next(1)[0].Stream
	a.say()
	if f := b.next(1)[0]; f.Stream != first {
		t.Error("a stream changes by itself")
	}
	s.move(b.player, 100, 0)
	a.silent()
	s.move(b.player, 0, 0)
	a.say()
	second := b.next(1)[0].Stream
	if second == first {
		t.Error("the stream goes on after a frame was filtered")
	}
	b.text("SSVC_DEAFEN_V1:1")
	a.waitForDeaf(b)
	a.say()
	b.text("SSVC_DEAFEN_V1:0")
	deadline := time.Now().Add(patience)
	for len(b.take()) == 0 {
		a.say()
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(deadline) {
			t.Fatal("ben stays deaf")
		}
	}
	a.say()
	if f := b.next(1)[0]; f.Stream == second {
		t.Error("the stream goes on over being deafened")
	}
}

// waitForDeaf speaks until b hears nothing.
func (c *client) waitForDeaf(b *client) {
	c.s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		b.take()
		c.say()
		time.Sleep(30 * time.Millisecond)
		if len(b.take()) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.s.t.Fatal("a deafened listener hears")
		}
	}
}

// lateness measures how late the machine is with what is due, until it is asked: the most, and how many of the measures
// were late by more than a tenth of what a frame may wait. It is what a busy machine does to everybody.
func lateness(t *testing.T) func() (worst time.Duration, share float64) {
	stop, done := make(chan struct{}), make(chan struct{})
	var worst time.Duration
	late, all := 0, 0
	go func() {
		defer close(done)
		for begun := time.Now(); ; begun = time.Now() {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			by := time.Since(begun) - 5*time.Millisecond
			worst = max(worst, by)
			if all++; by > 20*time.Millisecond {
				late++
			}
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-done })
	t.Cleanup(end)
	return func() (time.Duration, float64) {
		end()
		return worst, float64(late) / float64(max(all, 1))
	}
}

// TestFreeze is the test that says it all: a listener that stops reading costs nobody else a frame, and once it reads
// again its delay is that of everybody at once. What is late because the machine is costs as much as the machine is
// late.
func TestFreeze(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, v2, a)
	p := s.player("cleo", 0)
	for _, o := range []*client{a, b} {
		o.player.Show(p.ID)
		p.Show(o.player.ID)
	}
	c := s.dial(p, v2)
	c.waitFor("a roster", func() bool { return len(c.roster()) == 3 })
	s.ready(a, b, c)

	behind := lateness(t)
	start := time.Now()
	pad := make([]byte, 1200) // so that the kernel's buffers are full soon
	first := a.seq
	var sent []time.Duration // when, by sequence from first on
	say := func() {
		sent = append(sent, time.Since(start))
		a.say(pad...)
		time.Sleep(20 * time.Millisecond)
	}
	for _, x := range []*client{b, c} {
		x.take()
	}
	gate := make(chan struct{})
	c.mu.Lock()
	c.paused = gate
	c.mu.Unlock()
	lost := func(s Stats) uint64 { return s.Lost["full"] + s.Lost["stale"] }
	for deadline := time.Now().Add(4 * patience); lost(s.gw.Stats()) < 10; say() {
		if time.Now().After(deadline) {
			t.Fatal("the frozen listener loses nothing: it is not frozen")
		}
	}
	resumed := len(sent)
	c.mu.Lock()
	c.paused = nil
	c.mu.Unlock()
	close(gate)
	for range 50 {
		say()
	}
	last := a.seq - 1
	got := func(x *client) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.frames) > 0 && x.frames[len(x.frames)-1].Seq == last
	}
	for _, x := range []*client{b, c} { // the last one may be what a busy machine costs
		for deadline := time.Now().Add(patience); !got(x) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			last = a.seq
			say()
		}
		x.waitFor("the last frame", func() bool { return got(x) })
	}
	late, share := behind()
	missed, next := 0, first
	for i, f := range b.take() {
		if f.Seq < next {
			t.Fatalf("ben's frame %d has sequence %d, after %d", i, f.Seq-first, next-1-first)
		}
		missed += int(f.Seq - next)
		next = f.Seq + 1
	}
	// A frame of ben's is dropped when it has waited for 200 ms, which a machine does that is late.
	if allowed := int(4*share*float64(len(sent))) + 1; missed > 0 && (late < 50*time.Millisecond || missed > allowed) {
		t.Errorf("a frozen listener cost ben %d of %d frames; the machine was late by %v, in %.0f %% of the time", missed, len(sent), late, 100*share)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	after, worst := 0, time.Duration(0)
	for i, f := range c.frames {
		n := f.Seq - first
		if n < int64(resumed) {
			continue
		}
		after++
		worst = max(worst, c.came[i].Sub(start)-sent[n])
	}
	if least := 49 - int(4*share*50); after < least {
		t.Errorf("of 50 frames after the thaw cleo got %d, want %d; the machine was late in %.0f %% of the time", after, least, 100*share)
	}
	if most := 200*time.Millisecond + 4*late; worst > most {
		t.Errorf("after the thaw cleo is %v behind, at most %v; the machine was late by %v", worst, most, late)
	}
	t.Logf("frozen for %v: %d frames lost, delay after the thaw at most %v", sent[resumed]-sent[0], lost(s.gw.Stats()), worst)
}

func TestMicrophoneBudget(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, v2, a)
	s.ready(a, b)
	time.Sleep(time.Second) // the budget is full again
	begun := time.Now()
	before := s.gw.Stats()
	for range 200 {
		a.say()
	}
	s.count("frames", before.Frames+200, func(s Stats) uint64 { return s.Frames })
	took := time.Since(begun)
	after := s.gw.Stats()
	dropped := after.Dropped["rate"] - before.Dropped["rate"]
	passed := int(after.Delivered - before.Delivered)
	if limit := 60 + int(60*took.Seconds()) + 1; passed < 60 || passed > limit || int(dropped) != 200-passed {
		t.Errorf("of 200 frames in %v %d passed (limit %d) and %d were dropped", took, passed, limit, dropped)
	}
	if got := b.next(passed); len(got) != passed {
		t.Errorf("ben got %d of %d", len(got), passed)
	}
	// Nobody is sent away for it, and no stream is renewed by it.
	time.Sleep(100 * time.Millisecond)
	a.say()
	b.next(1)
}

func TestBadFrames(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, v1, a)
	s.ready(a, b)
	frame := func(stream, seq int64, opus ...byte) []byte {
		return wire.AppendC2S(nil, wire.C2SV2, &wire.C2S{Stream: stream, Seq: seq, Opus: opus})
	}
	bad := map[string][][]byte{
		"bad_length":   {{}, frame(1, 0), make([]byte, wire.MaxC2SV2+1)},
		"bad_stream":   {frame(0, 0, opus...), frame(-5, 0, opus...)},
		"bad_sequence": {frame(1, -1, opus...), frame(1, math.MaxInt64, opus...)},
		// Stereo, two frames, 10 ms, 10 ms.
		"bad_opus": {frame(1, 0, 0x7c), frame(1, 0, 0x79), frame(1, 0, 0x70), frame(1, 0, 0)},
	}
	for why, all := range bad {
		before := s.gw.Stats().Dropped[why]
		for _, p := range all {
			a.send(ws.OpBinary, p)
		}
		s.count(why, before+uint64(len(all)), func(s Stats) uint64 { return s.Dropped[why] })
	}
	a.stream = 9
	seq := a.say()
	if f := b.next(1); len(f) != 1 || f[0].Source != a.player.ID || seq < 0 {
		t.Errorf("after bad frames ben got %+v", f)
	}
	b.send(ws.OpBinary, make([]byte, wire.MaxC2SV1+1)) // legal on no v1 socket, though on others
	s.count("bad_length", 4, func(s Stats) uint64 { return s.Dropped["bad_length"] })

	for range 88 { // 99 with the eleven above
		a.send(ws.OpBinary, nil)
	}
	a.say()
	b.next(1)
	a.send(ws.OpBinary, nil)
	a.ends("1007 invalid data")
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, text, end string
		caps            caps.Set
	}{
		{"deafen without status", "SSVC_DEAFEN_V1:1", "1003 unsupported control message", v2},
		{"anything from v1", "hello", "1003 unsupported control message", v1},
		{"unknown", "SSVC_DEAFEN_V1:2", "1003 unsupported control message", status},
		{"no tier", "SSVC_RANGE_V1:scream", "1003 unsupported control message", status},
		{"groups are not negotiated", "SSVC_GROUP_V1:LEAVE", "1003 unsupported control message", status},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, Config{})
			a := s.join("anna", 0, c.caps)
			a.text(c.text)
			a.ends(c.end)
			s.count("endings", 1, func(s Stats) uint64 { return s.Ended["1003"] })
		})
	}
}

func TestFlood(t *testing.T) {
	said := make(chan string, 8)
	s := open(t, Config{Flooded: func(what string) { said <- what }})
	a := s.join("anna", 0, status)
	// Two seconds of toggling at full speed of a hand are nobody's end.
	for i := range 30 {
		a.text(fmt.Sprintf("SSVC_DEAFEN_V1:%d", i%2))
	}
	time.Sleep(time.Second)
	for range 60 {
		a.text("SSVC_RANGE_V1:shout")
	}
	b := s.join("ben", 0, v2, a) // proves that anna is still there
	for range 120 {
		a.text("SSVC_DEAFEN_V1:1")
	}
	a.ends("4008 flood")
	for range 3000 {
		b.send(ws.OpBinary, wire.AppendC2S(nil, wire.C2SV2, &wire.C2S{Stream: 1, Seq: 1, Opus: opus}))
	}
	b.ends("4008 flood")
	s.count("endings", 2, func(s Stats) uint64 { return s.Ended["4008"] })
	for _, want := range []string{"text messages", "frames of the microphone"} {
		if got := <-said; got != want {
			t.Errorf("it was %s, want %s", got, want)
		}
	}
}

func TestDeafenedStateIsTheLast(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, status)
	b := s.join("ben", 0, status, a)
	s.ready(a, b)
	for i := range 41 {
		b.text(fmt.Sprintf("SSVC_DEAFEN_V1:%d", 1-i%2))
	}
	a.waitFor("ben's deafness", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return strings.Contains(a.texts[len(a.texts)-1], "SSVC_DEAFENED_V1 "+b.player.ID.String())
	})
	a.say()
	b.say()
	a.next(1)
	if f := b.take(); len(f) != 0 {
		t.Errorf("deafened ben hears %+v", f)
	}
}

func TestTiersAreTaken(t *testing.T) {
	s := open(t, Config{Policy: route.Policy{Gain: gain.Rules{Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}}})
	a := s.join("anna", 0, status)
	b := s.join("ben", 0, status, a)
	s.ready(a, b)
	a.text("SSVC_RANGE_V1:whisper")
	b.waitFor("anna's whisper", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return strings.Contains(b.texts[len(b.texts)-1], "SSVC_WHISPERING_V1 "+a.player.ID.String())
	})
	s.move(b.player, 30, 0)
	a.say()
	b.say()
	a.next(1)
	if f := b.take(); len(f) != 0 {
		t.Errorf("a whisper carries 30 blocks: %+v", f)
	}
}

func TestPoseLine(t *testing.T) {
	s := open(t, Config{})
	a := s.join("web", 3, browser)
	want := func(x float64) {
		t.Helper()
		a.waitFor("a pose line", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return slices.ContainsFunc(a.texts, func(s string) bool {
				v, err := line.ParseS2C([]byte(s))
				p, ok := v.(*line.Pose)
				return err == nil && ok && *p == line.Pose{X: x, Y: 64, World: "minecraft:overworld"}
			})
		})
	}
	want(3)
	s.move(a.player, 4.5, 0)
	want(4.5)
	b := s.join("mod", 0, spatial, a)
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.texts, func(s string) bool { return strings.HasPrefix(s, "SSVC_POSE") }) {
		t.Error("a client that did not ask gets pose lines")
	}
}

func TestReplaced(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, v2, a)
	s.ready(a, b)
	again := s.dial(b.player, v2)
	b.ends("4001 replaced")
	again.waitFor("a roster", func() bool { return len(again.roster()) == 2 })
	s.ready(a, again)
	s.count("sockets", 2, func(s Stats) uint64 { return uint64(s.Sockets) })
	if st := s.gw.Stats(); st.Accepted != 3 || st.Ended["4001"] != 1 {
		t.Errorf("%+v", st)
	}
	s.dial(b.player, v2)
	again.ends("4001 replaced") // the end of the first was not the second's
}

func TestLeftTheNetwork(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, status)
	b := s.join("ben", 0, v2, a)
	s.reg.Remove(b.player)
	b.ends("4003 left the network")
	a.waitFor("a roster without ben", func() bool { return slices.Equal(a.roster(), []string{"anna"}) })
	late := s.dial(b.player, v2) // whose token was good a moment ago
	late.ends("4003 left the network")
}

func TestShuttingDown(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	b := s.join("ben", 0, v1, a)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.gw.Close(ctx)
	}()
	a.ends("1001 shutting down")
	b.ends("1001 shutting down")
	s.count("sockets", 0, func(s Stats) uint64 { return uint64(s.Sockets) })
	late := s.dial(a.player, v2)
	late.ends("1001 shutting down")
}

// Close returns when its context says so, though there are sockets still.
func TestCloseIsBounded(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	a.mu.Lock()
	a.stubborn = true
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.gw.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close returned %v", err)
	}
}

func TestCountersAreThereFromTheStart(t *testing.T) {
	st := open(t, Config{}).gw.Stats()
	var lost []string
	for _, d := range socket.Drops() {
		lost = append(lost, d.String())
	}
	for what, m := range map[string]map[string]uint64{
		"bad_length bad_stream bad_sequence bad_opus rate not_listed no_position bad_kind clip_rate clip_start clip_over clips_off clips_refused muted no_permission": st.Dropped,
		strings.Join(lost, " "): st.Lost,
		"1001 1002 1003 1007 1009 1011 4001 4003 4008 peer dead broken": st.Ended,
	} {
		labels := strings.Fields(what)
		if len(m) != len(labels) || len(m) == 0 {
			t.Errorf("%v, want %s", m, what)
		}
		for _, l := range labels {
			if n, ok := m[l]; !ok || n != 0 {
				t.Errorf("%s: %d, %v", l, n, ok)
			}
		}
	}
}

func TestNoPositionIsCounted(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, v2)
	a.player.SetPose(nil)
	a.say()
	s.count("no_position", 1, func(s Stats) uint64 { return s.Dropped["no_position"] })
}
