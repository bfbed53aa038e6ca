package conn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
	"github.com/earshot-mc/earshot/voice/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speech is 20 ms of mono sound, going by its first byte.
var speech = append([]byte{0x78}, make([]byte, 79)...)

func frame(stream, seq int64, opus []byte) []byte {
	return wire.AppendC2S(nil, wire.C2SV2, &wire.C2S{Stream: stream, Seq: seq, Opus: opus})
}

// bench is a hub with clients whose peers only read.
type bench struct {
	t     testing.TB
	reg   *world.Registry
	cfg   talker.Config
	sweep *socket.Sweeper
	all   []*Conn
	who   []*hub.Member // of all
	peers []net.Conn
	ended []error
	wg    sync.WaitGroup
	close func()
}

func newBench(t testing.TB, permissions ...func(uuid.UUID) hub.Bits) *bench {
	reg := world.New()
	reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	h := hub.New(reg, route.Policy{Gain: gain.Rules{Default: 48}})
	for _, p := range permissions {
		h.Permissions = p
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{t: t, reg: reg, sweep: socket.NewSweeper(), cfg: talker.Config{Hub: h, Stats: new(talker.Stats), OpusOK: wire.OpusOK}}
	var hubs sync.WaitGroup
	hubs.Go(func() { h.Run(ctx) })
	b.close = func() {
		for _, p := range b.peers {
			p.Close()
		}
		b.wg.Wait()
		cancel()
		hubs.Wait()
		b.sweep.Close()
	}
	return b
}

// join runs a client over conn, whose peer only reads.
func (b *bench) join(conn, peer net.Conn, c caps.Set) *Conn {
	i := len(b.all)
	place := b.reg.Place("survival", "overworld")
	p := b.reg.Add(uuid.UUID{15: byte(i + 1)}, fmt.Sprint("p", i))
	p.SetFacts(world.Facts{Place: place})
	p.SetPose(&world.Pose{Place: place})
	k := New(socket.New(conn, nil, b.sweep), c, slog.New(slog.DiscardHandler))
	m := b.cfg.Hub.Join(p, k, k.Wants())
	b.all, b.who, b.peers, b.ended = append(b.all, k), append(b.who, m), append(b.peers, peer), append(b.ended, nil)
	k.seat(talker.New(b.cfg, m)) // before Serve does, so that a test may speak at once
	b.wg.Go(func() {
		defer b.cfg.Hub.Leave(m)
		b.ended[i] = ended(k.sock.Run(context.Background(), k))
	})
	b.wg.Go(func() {
		defer peer.Close()
		io.Copy(io.Discard, peer)
	})
	return k
}

func (b *bench) pipe(c caps.Set) *Conn {
	server, client := net.Pipe()
	return b.join(server, alive{client}, c)
}

// alive is a peer that gives a sign of life for whatever it reads.
type alive struct{ net.Conn }

func (a alive) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if err == nil {
		_, err = a.Conn.Write([]byte{0x8a, 0x80, 0, 0, 0, 0}) // an empty pong, masked
	}
	return n, err
}

// TestBeats: a page's beats are answered with how many of its frames were accepted; whoever is no page may not send
// any.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.close()
		server, client := net.Pipe()
		said := &lines{Conn: client}
		k := b.join(server, said, caps.Set{Audio: 2, Spatial: 1, Page: 1}) // and no status
		time.Sleep(time.Second)
		k.Text([]byte("SSVC_BEAT_V1:7"))
		time.Sleep(time.Second)
		for seq := range int64(10) {
			k.Binary(frame(1, seq, speech))
		}
		k.Binary(frame(1, 11, []byte{1, 2})) // no sound
		k.Text([]byte("SSVC_BEAT_V1:8"))
		time.Sleep(time.Second)
		for _, want := range []string{"SSVC_BEAT_V1 7 0", "SSVC_BEAT_V1 8 10", "SSVC_RIGHTS_V1 1 1 1", "SSVC_NEAR_V1\n"} {
			if !said.have(want) {
				t.Errorf("the page was not told %q", want)
			}
		}
		k.Text([]byte("SSVC_DEAFEN_V1:1")) // which takes status
		synctest.Wait()
		mod := b.pipe(caps.Set{Audio: 2, Status: 1, Spatial: 1})
		mod.Text([]byte("SSVC_BEAT_V1:1"))
		time.Sleep(5 * time.Second) // in which sockets that were closed end
		if b.sweep.Len() != 0 {
			t.Errorf("%d are still open", b.sweep.Len())
		}
	})
}

// lines is a peer that remembers what it was sent, and gives a sign of life for it.
type lines struct {
	net.Conn
	mu  sync.Mutex
	all []byte
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := alive{l.Conn}.Read(p)
	l.mu.Lock()
	l.all = append(l.all, p[:n]...)
	l.mu.Unlock()
	return n, err
}

func (l *lines) have(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.all, []byte(what))
}

// 100 bad frames are the end only within 10 s.
func TestBadFramesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		k := b.pipe(caps.Set{Audio: 2})
		bad := func(n int, every time.Duration) {
			for range n {
				k.Binary(nil)
				time.Sleep(every)
			}
		}
		bad(99, time.Millisecond)
		time.Sleep(talker.BadTime)
		bad(300, talker.BadTime/98) // never a hundred in any ten seconds
		time.Sleep(talker.BadTime)
		if b.sweep.Len() != 1 {
			t.Fatal("closed for bad frames that came far apart")
		}
		bad(99, time.Millisecond)
		if b.sweep.Len() != 1 {
			t.Fatal("closed by the 99th bad frame")
		}
		bad(1, 0)
		synctest.Wait()
		b.close()
		var closed *socket.Closed
		if !errors.As(b.ended[0], &closed) || closed.Code != socket.InvalidData {
			t.Errorf("ended with %v", b.ended[0])
		}
	})
}

// The flood guard looks at every text, so that a client cannot hide in the ones that are fine.
func TestFloodInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		k := b.pipe(caps.Set{Status: 1})
		for range 600 { // ten seconds at the limit
			k.Text([]byte("SSVC_DEAFEN_V1:1"))
			time.Sleep(time.Second / TextsPerSecond)
		}
		if b.sweep.Len() != 1 {
			t.Fatal("closed at the limit")
		}
		time.Sleep(time.Second)
		for range 61 {
			k.Text([]byte("SSVC_DEAFEN_V1:0"))
		}
		synctest.Wait()
		b.close()
		var closed *socket.Closed
		if !errors.As(b.ended[0], &closed) || closed.Code != socket.Flood {
			t.Errorf("ended with %v", b.ended[0])
		}
	})
}

// TestFloodOfFrames: what is over a budget of frames is dropped, and the end of whoever goes on; nobody is sent away
// for what a bad line has held up, or for sending twice as much as there is room for.
func TestFloodOfFrames(t *testing.T) {
	for _, c := range []struct {
		what   string
		caps   caps.Set
		frame  func(i int) []byte
		budget int // a second
		drop   talker.Drop
	}{
		{"microphone", caps.Set{Audio: 2}, func(int) []byte { return frame(1, 1, speech) }, 60, talker.TooMany},
		{"microphone beside clips", board2, func(int) []byte { return framed(wire.Mic, 1, 0) }, 60, talker.TooMany},
		{"one clip", board1, func(int) []byte { return framed(wire.Board, 1, 0) }, 60, talker.ClipRate},
		{"clips", board2, func(i int) []byte { return framed(wire.Board, int64(i%talker.Clips+1), 0) }, 600, talker.ClipRate},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer b.close()
				k := b.pipe(c.caps)
				send := func(n int) {
					for i := range n {
						k.Binary(c.frame(i))
					}
					synctest.Wait()
				}
				for range 120 {
					time.Sleep(time.Second)
					send(2 * c.budget)
				}
				time.Sleep(time.Minute)
				send(31 * c.budget) // the line stood still for half a minute
				if b.sweep.Len() != 1 {
					t.Fatal("sent away for what a line has held up")
				}
				begun := time.Now()
				for b.sweep.Len() == 1 && time.Since(begun) < 5*time.Minute {
					time.Sleep(time.Second / 4)
					send(c.budget) // four times the budget
				}
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("sent away after %v", took)
				}
				if b.cfg.Stats.Drops[c.drop].Load() == 0 {
					t.Error("nothing is counted")
				}
				k.End(hub.PlayerLeft) // too late
				b.wg.Wait()
				var closed *socket.Closed
				if !errors.As(b.ended[0], &closed) || closed.Code != socket.Flood || closed.What == "" {
					t.Errorf("ended with %v", b.ended[0])
				}
			})
		})
	}
}

// crowd returns n clients on real sockets, each in earshot of all others.
func crowd(t testing.TB, n int, c caps.Set) *bench {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := newBench(t)
	b.cfg.Rate = 1 << 30
	for range n {
		peer, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		b.join(conn, peer, c)
	}
	b.reaches(n - 1)
	return b
}

// reaches waits until the first client is heard by so many.
func (b *bench) reaches(n int) {
	b.t.Helper()
	mic := route.NewSource(&b.who[0].Member)
	testkit.Until(b.t, fmt.Sprintf("%d to hear", n), func() bool {
		heard, _ := mic.Send(b.cfg.Hub.Table(), 1, 0, speech)
		return heard == n
	})
	time.Sleep(50 * time.Millisecond) // the last turns are over
}

// scatter puts everybody out of everybody's earshot.
func (b *bench) scatter() {
	for i, m := range b.who {
		m.Player.SetPose(&world.Pose{X: float64(1000 * i), Place: m.Player.Facts().Place})
	}
}

// ways are all ways on which a frame reaches listeners, each with what negotiates it. They send one frame from the
// bytes that a client sent, or of a channel, into the sockets of all others, and return to how many.
var ways = map[string]func(t testing.TB, n int) (b *bench, send func() int){
	"v1": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{})
		return b, b.sends(speech)
	},
	"v2": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{Audio: 2})
		return b, b.sends(frame(1, 1, speech))
	},
	"spatial": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{Audio: 2, Spatial: 1})
		return b, b.sends(frame(1, 1, speech))
	},
	"soundboard": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, board2)
		k := b.all[0]
		k.Binary(framed(wire.Board, 1, 0))
		return b, b.sends(framed(wire.Board, 1, 1))
	},
	"group": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{Audio: 2, Spatial: 1, Status: 1, Groups: 2})
		b.scatter()
		team := group.Record{ID: uuid.UUID{1}, Name: "team", Type: talk.NormalGroup.String()}
		limits := group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}, Persistent: true}
		if err := errors.Join(b.cfg.Hub.SetGroups(limits), b.cfg.Hub.Apply(hub.Changes{Groups: []group.Record{team}})); err != nil {
			t.Fatal(err)
		}
		for _, m := range b.who {
			b.cfg.Hub.Ask(m, talk.GroupRequest{Verb: talk.Join, Group: team.ID})
		}
		b.reaches(n - 1)
		return b, b.sends(frame(1, 1, speech))
	},
	"declared": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{Audio: 2, Spatial: 1})
		b.scatter()
		if err := b.cfg.Hub.Declare(func(book *relation.Book) error {
			for _, m := range b.who {
				if err := book.AddMembers("radio", m.Player.ID); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b.reaches(n - 1)
		return b, b.sends(frame(1, 1, speech))
	},
	"speaker": func(t testing.TB, n int) (*bench, func() int) {
		b := crowd(t, n, caps.Set{Audio: 2, Spatial: 1})
		c, at := route.NewChannel(uuid.UUID{9}), &route.Loud{Place: b.who[0].Player.Facts().Place, Volume: 1, Range: 10}
		var seq int64
		return b, func() int { // with a microphone, which is kept from its player
			seq++
			return c.Send(b.cfg.Hub.Table(), at, &b.who[0].Member, 1, seq, speech)
		}
	},
}

// sends has the first client send a frame, without a budget.
func (b *bench) sends(p []byte) func() int {
	k := b.all[0]
	return func() int {
		before := b.cfg.Stats.Delivered.Load()
		k.Binary(p)
		return int(b.cfg.Stats.Delivered.Load() - before)
	}
}

// TestNoAllocationPerDeliveredFrame goes from the frame's bytes to the listeners' sockets, on every way there is.
func TestNoAllocationPerDeliveredFrame(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			b, send := way(t, 20)
			defer b.close()
			run := func() {
				if n := send(); n != 19 {
					t.Fatalf("delivered to %d of 19", n)
				}
				time.Sleep(time.Millisecond) // as much as the peers take: an outbox that grows does allocate
			}
			for range 100 {
				run() // the outboxes grow
			}
			if allocs := testing.AllocsPerRun(300, run); allocs >= 1 {
				t.Errorf("%v allocations per frame to 19 listeners", allocs)
			}
		})
	}
}

// BenchmarkDelivered measures a frame from its bytes into twenty sockets, with the kernel's part in it, on every way
// there is.
func BenchmarkDelivered(b *testing.B) {
	for name, way := range ways {
		b.Run(name, func(b *testing.B) {
			t, send := way(b, 21)
			defer t.close()
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20, "ns/delivered")
		})
	}
}

// BenchmarkAllocations measures what [TestNoAllocationPerDeliveredFrame] holds, as a figure: of a frame to twenty
// listeners who have the time to read.
func BenchmarkAllocations(b *testing.B) {
	for name, way := range ways {
		b.Run(name, func(b *testing.B) {
			t, send := way(b, 21)
			defer t.close()
			for range 100 {
				send()
				time.Sleep(time.Millisecond)
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
				time.Sleep(time.Millisecond)
			}
		})
	}
}
