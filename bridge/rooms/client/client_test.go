package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/packed"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a game: a number that everybody may raise, and one that raises itself.
type counter struct {
	count, clock atomic.Int64
	got          atomic.Pointer[rooms.Command]
}

func (c *counter) Capacity() int                  { return 8 }
func (c *counter) ValidateJoin(*rooms.Join) error { return nil }
func (c *counter) Joined(string)                  {}
func (c *counter) Left(string)                    {}
func (c *counter) Welcome(string) state.Object    { return nil }
func (c *counter) Epoch() int64                   { return 1 }
func (c *counter) Step(_ uint64, n int)           { c.clock.Add(int64(n)) }
func (c *counter) Command(_ string, f *rooms.Command) error {
	c.got.Store(f)
	c.count.Add(1)
	return nil
}
func (c *counter) Snapshot(_ rooms.View, dst state.Object) state.Object {
	return append(dst[:0], state.Member{Key: "clock", Value: state.OfInt(c.clock.Load())}, state.Member{Key: "count", Value: state.OfInt(c.count.Load())})
}
func (c *counter) Leader([]rooms.Member) string { return "p1" }
func (c *counter) PingLocation(string, string) (rooms.Location, error) {
	return rooms.Location{X: 1.5, Y: 2, Z: -3, Epoch: 1}, nil
}

var schema = packed.NewSchema(packed.Table{Fields: []packed.Field{{Key: "clock", Of: packed.Int}, {Key: "count", Of: packed.Int}}})

// world is a room and the ways to it.
type world struct {
	game  *counter
	hub   atomic.Pointer[rooms.Hub]
	conf  rooms.MemoryConfig
	last  atomic.Pointer[rooms.MemoryTransport]
	dials atomic.Int64
	shut  atomic.Bool
}

func (w *world) dial(context.Context) (Transport, error) {
	w.dials.Add(1)
	if w.shut.Load() {
		return nil, errors.New("nobody there")
	}
	conn, t := rooms.MemoryPair(w.conf)
	w.hub.Load().Attach(conn)
	w.last.Store(t)
	return t, nil
}

func inWorld(t *testing.T, c rooms.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{game: &counter{}}
		w.hub.Store(rooms.New(w.game, c))
		f(t, w)
		w.hub.Load().Close()
	})
}

func (w *world) join(t *testing.T, c Config) *Client {
	t.Helper()
	c.Dial = w.dial
	if c.Name == "" {
		c.Name = "Ann"
	}
	client, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestRooms27Counter: item 27. The counter runs the same over a pipe, one that loses, in JSON and packed; and over a
// transport of somebody's own.
func TestRooms27Counter(t *testing.T) {
	for what, pipe := range map[string]rooms.MemoryConfig{
		"a pipe": {}, "30 % loss": {Loss: 0.3, Jitter: 80 * time.Millisecond, Delay: 10 * time.Millisecond, Seed: 7},
	} {
		for _, codec := range []Codec{nil, Packed(schema)} {
			t.Run(fmt.Sprint(what, codec != nil), func(t *testing.T) {
				inWorld(t, rooms.Config{Codec: schema}, func(t *testing.T, w *world) {
					w.conf = pipe
					said := ""
					c := w.join(t, Config{Codec: codec, OnChat: func(m frame.Message) { said = m.PlayerName + ": " + m.Text }})
					defer c.Close()
					type game struct{ clock, count int64 }
					typed := Of(c, func(o state.Object) (game, error) { return game{num(o, "clock"), num(o, "count")}, nil })
					for range 5 {
						if err := c.Command("increment", state.Object{{Key: "by", Value: state.OfInt(1)}}); err != nil {
							t.Fatal(err)
						}
						time.Sleep(100 * time.Millisecond)
					}
					c.Chat("hello")
					time.Sleep(2 * time.Second)
					synctest.Wait()
					g, ok, err := typed.State()
					if !ok || err != nil || g.count != 5 || g.clock < w.game.clock.Load()-60 || said != "Ann: hello" {
						t.Error(g, ok, err, w.game.clock.Load(), said)
					}
					f := w.game.got.Load()
					if num(f.Fields, "seq") != 5 || num(f.Fields, "epoch") != 1 || num(f.Fields, "by") != 1 || num(f.Fields, "tick") == 0 {
						t.Error(string(state.OfObj(f.Fields).AppendJSON(nil)))
					}
					time.Sleep(20 * time.Second)
					if err := c.Err(); err != nil || w.dials.Load() != 1 {
						t.Error(err, w.dials.Load())
					}
				})
			})
		}
	}
	t.Run("own", func(t *testing.T) {
		inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
			own := &ownConn{frames: make(chan []byte, 1000)}
			p := w.hub.Load().Attach(own)
			p.Text([]byte(`{"type":"join","protocol":1,"name":"Ann"}`))
			p.Text([]byte(`{"type":"increment"}`))
			time.Sleep(time.Second)
			p.Gone(nil)
			synctest.Wait()
			var d state.Decoder
			var shown *state.Snapshot
			for len(own.frames) > 0 {
				v, _ := state.Parse(<-own.frames)
				if s, r, err := d.Apply(v.Obj()); err == nil && r == state.Applied {
					shown = s
				}
			}
			if shown == nil || num(shown.State, "count") != 1 {
				t.Error(shown)
			}
		})
	})
}

// ownConn is a transport that somebody else has written.
type ownConn struct{ frames chan []byte }

func (o *ownConn) Control(b []byte) error   { o.frames <- b; return nil }
func (o *ownConn) State(b []byte)           { o.frames <- b }
func (o *ownConn) Recover(b ...[]byte)      {}
func (o *ownConn) Waiting() time.Time       { return time.Time{} }
func (o *ownConn) Reliable() bool           { return true }
func (o *ownConn) Identity() string         { return "" }
func (o *ownConn) Close(frame.Code, string) {}

// TestComingBack: a client whose transport breaks comes back to its place, and one that cannot for too long comes as
// somebody new.
func TestComingBack(t *testing.T) {
	inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
		lost, welcomes := 0, 0
		c := w.join(t, Config{OnLost: func(error) { lost++ }, OnWelcome: func(*Welcome) { welcomes++ }})
		defer c.Close()
		c.Command("increment", nil)
		time.Sleep(time.Second)
		w.last.Load().Close(0, "")
		time.Sleep(time.Second)
		if got := c.Welcome(); got.ID != "p1" || !got.Resumed || welcomes != 2 || lost != 1 {
			t.Fatal(got, welcomes, lost)
		}
		if c.Command("increment", nil); w.dials.Load() != 2 {
			t.Fatal(w.dials.Load())
		}
		time.Sleep(time.Second)
		if n := num(w.game.got.Load().Fields, "seq"); n != 2 {
			t.Error("numbers begin anew:", n)
		}
		// 0.25, 0.5, 1, 2, 4, 4 s apart, each a fifth more or less.
		w.shut.Store(true)
		before := w.dials.Load()
		w.last.Load().Close(0, "")
		time.Sleep(100 * time.Millisecond)
		if err := c.Chat("x"); !errors.Is(err, ErrAway) {
			t.Error(err)
		}
		time.Sleep(16 * time.Second)
		if n := w.dials.Load() - before; n < 5 || n > 9 {
			t.Error(n, "tries in 16 s")
		}
		w.shut.Store(false)
		time.Sleep(6 * time.Second)
		if got := c.Welcome(); got.ID != "p2" || got.Resumed || c.Err() != nil {
			t.Error(got, c.Err())
		}
	})
}

// TestRoomThatReturns: a room that was closed and opened again has new places.
func TestRoomThatReturns(t *testing.T) {
	inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
		c := w.join(t, Config{})
		defer c.Close()
		old := w.hub.Swap(rooms.New(w.game, rooms.Config{}))
		old.Close()
		time.Sleep(time.Second)
		if got := c.Welcome(); got.Resumed || c.Err() != nil || w.dials.Load() != 2 {
			t.Error(got, c.Err(), w.dials.Load())
		}
		// One that has forgotten us without a word says that our token is unknown.
		old = w.hub.Swap(rooms.New(w.game, rooms.Config{}))
		w.last.Load().Close(0, "")
		time.Sleep(2 * time.Second)
		old.Close()
		if got := c.Welcome(); got.Resumed || c.Err() != nil || w.dials.Load() != 4 {
			t.Error(got, c.Err(), w.dials.Load())
		}
	})
}

// TestForGood: after an error, a removal or a leave there is no coming back.
func TestForGood(t *testing.T) {
	inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
		var refused *RefusedError
		a, b := w.join(t, Config{}), w.join(t, Config{})
		if _, err := Join(t.Context(), Config{Dial: w.dial, Name: "a\nb"}); !errors.As(err, &refused) || refused.Message != "Invalid name" {
			t.Error(err)
		}
		before := w.dials.Load()
		if err := a.Kick(b.Welcome().ID); err != nil {
			t.Error(err)
		}
		if <-b.Done(); !errors.As(b.Err(), &refused) || refused.Message != "Removed by the host" {
			t.Error(b.Err())
		}
		if err := a.Leave(t.Context()); err != nil || a.Err() != nil {
			t.Error(err, a.Err())
		}
		if w.dials.Load() != before {
			t.Error("came back")
		}
		ctx, cancel := context.WithCancel(t.Context())
		c, err := Join(ctx, Config{Dial: w.dial, Name: "Cid"})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if <-c.Done(); !errors.Is(c.Err(), context.Canceled) {
			t.Error(c.Err())
		}
		w.shut.Store(true)
		if _, err := Join(t.Context(), Config{Dial: w.dial}); err == nil || err.Error() != "nobody there" {
			t.Error(err)
		}
	})
}

// TestAcks: they gather for a while, and that is enough for the room.
func TestAcks(t *testing.T) {
	inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
		stats := rooms.NewStats()
		w.hub.Swap(rooms.New(w.game, rooms.Config{Stats: stats})).Close()
		for delay, most := range map[time.Duration]uint64{0: 210, 200 * time.Millisecond: 60, time.Hour: 50} {
			before := stats.In.Of(frame.Ack)
			c := w.join(t, Config{AckDelay: delay})
			time.Sleep(10 * time.Second)
			if n := stats.In.Of(frame.Ack) - before; n < most/2 || n > most || c.Err() != nil {
				t.Errorf("a delay of %v: %d acknowledgements in 10 s, %v", delay, n, c.Err())
			}
			c.Close()
		}
	})
}

// TestBounds: what the room would send us away for is not sent.
func TestBounds(t *testing.T) {
	inWorld(t, rooms.Config{}, func(t *testing.T, w *world) {
		c := w.join(t, Config{AckDelay: time.Second})
		defer c.Close()
		if err := c.Chat(strings.Repeat("a", 5000)); !errors.Is(err, ErrLong) {
			t.Error(err)
		}
		var err error
		for i := 0; err == nil && i < 200; i++ {
			err = c.Command("x", nil)
		}
		if !errors.Is(err, ErrRate) {
			t.Error(err)
		}
		if time.Sleep(2 * time.Second); c.Err() != nil || w.dials.Load() != 1 {
			t.Error(c.Err())
		}
		notice := make(chan string, 1)
		other := w.join(t, Config{OnNotice: func(s string) { notice <- s }})
		defer other.Close()
		other.Lock(true)
		if got := <-notice; got != "Only the leader may do that" {
			t.Error(got)
		}
		c.Ping("here")
		other.Chat("hi")
		synctest.Wait()
		if p := other.Pings(); len(p) != 1 || p[0].At != (frame.Location{X: 1.5, Y: 2, Z: -3, Epoch: 1}) || p[0].PlayerID != "p1" {
			t.Error(p)
		}
		if b := c.Bubbles(); len(b) != 1 || b[0].Text != "hi" {
			t.Error(b)
		}
		time.Sleep(7900 * time.Millisecond)
		if len(other.Pings()) != 1 {
			t.Error("a ping is gone before eight seconds")
		}
		time.Sleep(200 * time.Millisecond)
		if len(other.Pings()) != 0 || len(c.Bubbles()) != 1 {
			t.Error("a ping is there after eight seconds, or a bubble is not")
		}
		time.Sleep(2 * time.Second)
		if len(c.Bubbles()) != 0 {
			t.Error("a bubble is there after ten seconds")
		}
		if r := other.Roster(); r.Leader != "p1" || len(r.Members) != 2 || len(other.History()) == 0 {
			t.Error(r, other.History())
		}
	})
}

// other is a codec that this client does not know.
type other struct{ *packed.Schema }

func (other) Name() string { return "other-1" }

// TestUnknownCodec: a client comes again, for JSON.
func TestUnknownCodec(t *testing.T) {
	inWorld(t, rooms.Config{Codec: other{schema}}, func(t *testing.T, w *world) {
		c := w.join(t, Config{Codec: Packed(schema)})
		defer c.Close()
		if time.Sleep(time.Second); c.Shown() == nil || c.Welcome().ID != "p2" {
			t.Error(c.Shown(), c.Welcome())
		}
	})
}

// play runs a clock over snapshots that come late by some amounts, and calls show every 10 ms.
func play(c *PlaybackClock, seconds int, late func(n int) time.Duration, skip func(n int) bool, show func(at time.Duration, a, b *state.Snapshot, t float64)) {
	begin := time.Unix(1000, 0)
	type arrival struct {
		s  *state.Snapshot
		at time.Duration
	}
	var due []arrival
	for n := range seconds * 20 {
		if skip == nil || !skip(n) {
			due = append(due, arrival{&state.Snapshot{Epoch: 1, Tick: int64(n * 6)}, time.Duration(n)*50*time.Millisecond + late(n)})
		}
	}
	for at := time.Duration(0); at < time.Duration(seconds)*time.Second; at += 10 * time.Millisecond {
		for len(due) > 0 && due[0].at <= at {
			c.Arrived(due[0].s, begin.Add(due[0].at))
			due = due[1:]
		}
		a, b, t := c.Sample(begin.Add(at))
		show(at, a, b, t)
	}
}

func tickOf(a, b *state.Snapshot, t float64) float64 {
	return Between(float64(a.Tick), float64(b.Tick), t)
}

// TestPlayback: what is shown moves evenly, a little behind.
func TestPlayback(t *testing.T) {
	for what, late := range map[string]func(int) time.Duration{
		"in time": func(int) time.Duration { return 0 },
		"jitter":  func(n int) time.Duration { return time.Duration(n*37%30) * time.Millisecond },
	} {
		c := &PlaybackClock{}
		last := -1.0
		play(c, 20, late, nil, func(at time.Duration, a, b *state.Snapshot, u float64) {
			if a == nil || at < time.Second {
				return
			}
			tick := tickOf(a, b, u)
			if d := tick - last; last >= 0 && (d < 1.1 || d > 1.3) { // 1.2 ticks in 10 ms
				t.Fatalf("%s: %v ticks at %v", what, d, at)
			}
			if behind := at.Seconds()*120 - tick; behind < 11 || behind > 40 {
				t.Fatalf("%s: %v ticks behind", what, behind)
			}
			last = tick
		})
		if d := c.Delay(); d < 100*time.Millisecond || d > 200*time.Millisecond {
			t.Error(what, d)
		}
	}
}

// TestPlaybackJumps: after a silence it is where it should be at once, and learns nothing of the silence.
func TestPlaybackJumps(t *testing.T) {
	c := &PlaybackClock{}
	play(c, 10, func(n int) time.Duration {
		if n >= 60 && n < 100 {
			return time.Duration(100-n) * 50 * time.Millisecond // all at once, after two seconds
		}
		return 0
	}, nil, func(at time.Duration, a, b *state.Snapshot, u float64) {
		if at > 5100*time.Millisecond {
			if behind := at.Seconds()*120 - tickOf(a, b, u); behind < 5 || behind > 40 {
				t.Fatalf("%v ticks behind at %v", behind, at)
			}
		}
	})
	// A new epoch is shown at once, and nothing between the two.
	at := time.Unix(2000, 0)
	c.Arrived(&state.Snapshot{Epoch: 2, Tick: 5000}, at)
	if a, b, _ := c.Sample(at); a.Epoch != 2 || b.Epoch != 2 {
		t.Error(a, b)
	}
}

// TestPlaybackHolds: where nothing was sent because nothing moved, nothing moves.
func TestPlaybackHolds(t *testing.T) {
	c := &PlaybackClock{}
	play(c, 5, func(int) time.Duration { return 0 }, func(n int) bool { return n > 40 && n < 45 }, func(at time.Duration, a, b *state.Snapshot, u float64) {
		if a != nil && b.Tick-a.Tick > 12 && u > 0 && tickAt(c) < float64(b.Tick)-6.01 {
			t.Fatalf("moves at %v: %v of %d to %d", at, u, a.Tick, b.Tick)
		}
	})
	if d := Turn(350, 10, 0.5); math.Abs(d) > 1e-9 && math.Abs(d-360) > 1e-9 {
		t.Error(d)
	}
	if d := Turn(10, 350, 0.25); math.Abs(d-5) > 1e-9 {
		t.Error(d)
	}
}

func tickAt(c *PlaybackClock) float64 { return c.head * 120 }

// TestForBrowsers: all but the socket compiles for browsers.
func TestForBrowsers(t *testing.T) {
	cmd := exec.Command("go", "build", "./...")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// FuzzFrames: nothing that a server sends does harm.
func FuzzFrames(f *testing.F) {
	o := state.Object{{Key: "n", Value: state.OfInt(1)}}
	f.Add(frame.AppendWelcome(nil, &frame.Greeting{ID: "p1", Resume: "x", Capacity: 3}, o), false)
	f.Add(frame.AppendBaseline(nil, 1, 6, o), false)
	f.Add(frame.AppendSnapshot(nil, 1, 6, true, o), false)
	f.Add([]byte(`{"type":"state","base":6,"tick":12,"epoch":1,"delta":{"set":{"n":2}}}`), false)
	f.Add(frame.AppendSocial(nil, "p1", true, []frame.Member{{ID: "p1"}}, []frame.Message{{ID: 1}}), false)
	f.Add(frame.AppendChat(nil, &frame.Message{ID: 1, Text: "hi"}), false)
	f.Add(frame.AppendPing(nil, &frame.Pinged{ID: 1}), false)
	f.Add([]byte(`{"type":"left"}`), false)
	b, _ := schema.AppendFull(nil, packed.Baseline, 1, 6, state.Object{{Key: "clock", Value: state.OfInt(1)}})
	f.Add(b, true)
	f.Fuzz(func(t *testing.T, b []byte, binary bool) {
		c := &Client{conf: Config{Codec: Packed(schema)}, in: make(chan struct{})}
		for range 2 {
			if binary {
				c.applyBinary(b)
			} else {
				c.apply(nowhere{}, b, "", "")
			}
		}
	})
}

// nowhere is a transport to nobody.
type nowhere struct{}

func (nowhere) Send([]byte) error              { return nil }
func (nowhere) Receive() ([]byte, bool, error) { return nil, false, errors.New("nothing") }
func (nowhere) Close(frame.Code, string)       {}
