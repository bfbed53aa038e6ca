package session

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// body returns n bytes that compress about as well as game data.
func body(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.ExpFloat64() * 12)
	}
	return b
}

// TestThresholds: whatever the two sides have agreed on with us, packets of all sizes arrive as they were sent, in
// order, mixed with those that are looked at.
func TestThresholds(t *testing.T) {
	sizes := []int{0, 1, 62, 63, 64, 65, 254, 255, 256, 257, 1000, 5000, 70000, 300000}
	for _, ours := range []int{-1, 0, 64, 256} {
		for _, theirs := range []int{-1, 0, 64, 256} {
			t.Run(fmt.Sprint(ours, " ", theirs), func(t *testing.T) {
				t.Parallel()
				b := newBackend(t, "lobby", func(b *fakeBackend) { b.threshold = theirs })
				w := &watch{wants: func(*proto.Version, proto.State, proto.Dir) []proto.Packet {
					return []proto.Packet{proto.CustomPayload}
				}}
				e := newEnv(t, func(c *Config) { c.Settings.Threshold, c.Watch = ours, []Watch{w} }, b)
				c, s := e.play(767, "Steve", b)
				cross := func(from, to *peer, largest int) {
					var wg sync.WaitGroup
					wg.Go(func() {
						for i, n := range sizes {
							if n > largest {
								break
							}
							from.raw(0xf0, body(n, uint64(i)))
							from.send(proto.CustomPayload, message("a:b", fmt.Sprint(n)))
						}
					})
					for i, n := range sizes {
						if n > largest {
							break
						}
						if got := to.expectID(0xf0); !bytes.Equal(got, body(n, uint64(i))) {
							t.Errorf("%d bytes arrived changed", n)
						}
						if got := to.expect(proto.CustomPayload); !bytes.Equal(got, message("a:b", fmt.Sprint(n))) {
							t.Errorf("got %q", got)
						}
					}
					wg.Wait()
				}
				cross(s, c, 300000)
				cross(c, s, 300000)
				down := &e.core.Counters.Traffic[proto.Clientbound]
				if n := down.Recoded.Load(); ours == theirs != (n == 0) {
					t.Errorf("%d frames were framed anew with thresholds %d and %d", n, ours, theirs)
				}
				if n := down.Tapped.Load(); n != uint64(len(sizes)) {
					t.Errorf("%d frames were observed, want %d", n, len(sizes))
				}
			})
		}
	}
}

// watch is a Watch whose Observers write down what they see.
type watch struct {
	wants func(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet
	on    func(p Player, what string)

	mu   sync.Mutex
	seen []string
}

func (w *watch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return w.wants(v, s, d)
}

func (w *watch) Watch(p Player) Observer { return &watcher{w, p} }

func (w *watch) note(p Player, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.seen = append(w.seen, what)
	w.mu.Unlock()
	if w.on != nil {
		w.on(p, what)
	}
}

func (w *watch) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.seen, "; ")
}

type watcher struct {
	w *watch
	p Player
}

func (o *watcher) Backend(name string, _ uuid.UUID) { o.w.note(o.p, "on %s", name) }
func (o *watcher) Clientbound(s proto.State, q proto.Packet, body []byte) {
	o.w.note(o.p, "%v down %v %d", s, q, len(body))
}
func (o *watcher) Serverbound(s proto.State, q proto.Packet, body []byte) {
	o.w.note(o.p, "%v up %v %d", s, q, len(body))
}
func (o *watcher) Close() { o.w.note(o.p, "closed") }

// TestObserver: it sees what it wants, in order, and nothing else; also what the proxy decides on itself, and
// compressed packets.
func TestObserver(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	w := &watch{wants: func(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
		switch {
		case s == proto.Config && d == proto.Clientbound:
			return []proto.Packet{proto.RegistryData}
		case s == proto.Play && d == proto.Clientbound:
			return []proto.Packet{proto.JoinGame, proto.MapChunk, proto.KeepAlive}
		case s == proto.Play:
			return []proto.Packet{proto.PositionLook}
		}
		return nil
	}}
	e := newEnv(t, func(c *Config) { c.Watch = []Watch{w} }, b)
	c := e.login(767, "Steve")
	s := b.next()
	s.send(proto.RegistryData, body(3000, 1))
	c.expect(proto.RegistryData)
	done := make(chan struct{})
	go func() { defer close(done); s.admit() }()
	c.join()
	<-done
	s.send(proto.MapChunk, body(20000, 2))
	s.send(proto.UpdateHealth, body(10, 3))
	s.send(proto.KeepAlive, make([]byte, 8))
	c.await(proto.KeepAlive)
	c.send(proto.Position, body(25, 4))
	c.send(proto.PositionLook, body(33, 5))
	s.await(proto.PositionLook)
	s.conn.Close()
	c.kicked()
	e.ended(EndBackendLost, 1)
	want := "on lobby; configuration down registry_data 3000; play down join_game 25; play down map_chunk 20000; play down keep_alive 8; play up position_look 33; closed"
	if got := w.all(); got != want {
		t.Errorf("seen %q, want %q", got, want)
	}
}

// TestUndecodable: a packet that we wanted to look at and cannot is forwarded all the same, and counted.
func TestUndecodable(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	w := &watch{wants: func(_ *proto.Version, s proto.State, _ proto.Dir) []proto.Packet {
		return []proto.Packet{proto.MapChunk}
	}}
	e := newEnv(t, func(c *Config) { c.Watch = []Watch{w} }, b)
	c, s := e.play(767, "Steve", b)
	id := s.id(proto.MapChunk)

	// A frame whose deflate stream is cut short, right after the id.
	var out bytes.Buffer
	fw := frame.NewWriter(&out)
	fw.SetCompression(0)
	fw.Packet(id, body(3000, 1))
	whole := out.Bytes()
	r := frame.NewReader(bytes.NewReader(whole), frame.Limits{})
	r.SetCompression(0)
	f, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	payload := r.Raw(f.Start, f.End)[2:][:200]
	broken := append([]byte{byte(200&0x7f | 0x80), 200 >> 7}, payload...)
	s.conn.Write(broken)
	s.raw(0xf0, nil)
	// The client gets exactly these bytes; whether it can use them is its own affair.
	got := make([]byte, len(broken))
	if _, err := io.ReadFull(c.conn, got); err != nil || !bytes.Equal(got, broken) {
		t.Errorf("the client got %x, %v, want %x", got, err, broken)
	}
	c.expectID(0xf0)
	if n := e.core.Counters.Undecoded.Count(proto.MapChunk); n != 1 {
		t.Errorf("%d undecodable packets counted, want 1", n)
	}
	if got := w.all(); strings.Contains(got, "map_chunk") {
		t.Errorf("the observer was shown %q", got)
	}
}

// TestKeepAliveStorm: only answers to open questions reach the backend, each once, and the newest 32 are remembered.
func TestKeepAliveStorm(t *testing.T) {
	each(t, []int32{47, 340, 767}, func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		ask := func(id int64) []byte { return packet.AppendKeepAlive(nil, protocol, id) }
		for id := range int64(40) {
			s.send(proto.KeepAlive, ask(id))
		}
		for range 40 {
			c.expect(proto.KeepAlive)
		}
		for id := int64(60); id >= 0; id-- {
			c.send(proto.KeepAlive, ask(id))
			c.send(proto.KeepAlive, ask(id))
		}
		c.send(proto.KeepAlive, nil) // cannot be read
		c.raw(0xf0, nil)
		for id := int64(39); id >= 8; id-- {
			if got := s.expect(proto.KeepAlive); !bytes.Equal(got, ask(id)) {
				t.Fatalf("the backend got %x, want %x", got, ask(id))
			}
		}
		s.expectID(0xf0)
		if e.core.Players()[0].(*Session).Ping() <= 0 {
			t.Error("no ping was measured")
		}
		// What we cannot read is the client's affair.
		s.send(proto.KeepAlive, []byte{0xff})
		c.expect(proto.KeepAlive)
	})
}

// TestPlaySetCompression: a 1.8 backend may change its compression at any time. The client's is ours and stays.
func TestPlaySetCompression(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c, s := e.play(47, "Steve", b)
	for _, threshold := range []int{64, 1024, -1, 256} {
		s.send(proto.SetCompression, packet.AppendSetCompression(nil, threshold))
		s.compress(threshold)
		for _, n := range []int{10, 100, 500, 5000} {
			s.raw(0xf0, body(n, 1))
			if got := c.expectID(0xf0); !bytes.Equal(got, body(n, 1)) {
				t.Errorf("threshold %d: %d bytes arrived changed", threshold, n)
			}
			c.raw(0xf0, body(n, 2))
			if got := s.expectID(0xf0); !bytes.Equal(got, body(n, 2)) {
				t.Errorf("threshold %d: %d bytes arrived changed at the backend", threshold, n)
			}
		}
	}
}

// TestBombs: a client may neither announce more than it sends nor send what inflates without measure.
func TestBombs(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c, _ := e.play(767, "Steve", b)
	c.raw(0xf0, make([]byte, 1<<21)) // more than two MiB inflated
	c.kicked()
	e.ended(EndProtocol, 1)
}
