package session

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestShutdownInEveryPhase: whoever is there hears the reason in the state it is in; nobody comes in any more.
func TestShutdownInEveryPhase(t *testing.T) {
	eachPhase(t, func(t *testing.T, p phase, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := p.reach(e, protocol, b)
		e.shutdown("closing")
		if got := c.kicked(); got != "closing" {
			t.Errorf("told %q", got)
		}
		s.closed()
		e.ended(EndShutdown, 1)
		conn, err := net.Dial("tcp", e.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		newPeer(t, conn, proto.Lookup(protocol), proto.Serverbound).closed()
	})
	// In the login too.
	asked := make(chan struct{})
	e := newEnv(t, func(c *Config) { c.LoginGate = func(netip.Addr) time.Duration { close(asked); return 0 } })
	c := e.connect(767, packet.IntentLogin)
	<-asked
	e.shutdown("closing")
	if got := c.kicked(); got != "closing" {
		t.Errorf("told %q", got)
	}
	e.ended(EndShutdown, 1)
}

// TestShutdownUnderLoad: full sockets, a client that takes nothing and a client that never hangs up change nothing
// about the time a shutdown takes.
func TestShutdownUnderLoad(t *testing.T) {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait) // the last of the clean-up
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, func(c *Config) { c.Log = nil }, b)
	const n = 30
	var clients, servers [n]*peer
	for i := range n {
		clients[i], servers[i] = e.play(767, fmt.Sprint("Steve", i), b)
	}
	for i := range n {
		c, s := clients[i], servers[i]
		wg.Go(func() {
			for s.w.Packet(0xf0, make([]byte, 10000)) == nil {
			}
		})
		switch i % 3 {
		case 0: // takes everything
			c.sink()
		case 1: // takes nothing
		case 2: // takes everything and says something
			c.sink()
			s.sink()
			wg.Go(func() {
				for c.w.Packet(0xf0, make([]byte, 100)) == nil {
				}
			})
		}
	}
	full := &e.core.Counters.Traffic[proto.Clientbound].Passed
	until(t, func() bool { return full.Load() > 500 }, "there is no load", func() []any { return nil })
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if err := e.core.Shutdown(ctx, "closing"); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 8*time.Second {
		t.Errorf("the shutdown took %v", d)
	}
}

// TestShutdownKills: what is stuck for good is closed when the time is over.
func TestShutdownKills(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	asked := make(chan struct{})
	b := newBackend(t, "lobby", func(b *fakeBackend) {
		b.refuse = func(*peer) bool { close(asked); <-gate; return true }
	})
	e := newEnv(t, nil, b)
	c := e.login(767, "Steve")
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.core.Shutdown(ctx, "closing"); err != nil {
		t.Error(err)
	}
	for {
		if _, _, _, err := c.try(); err != nil {
			break
		}
	}
}

// TestPanic: a panic in one player's session, in whichever of its goroutines, ends that session, with its stack in the
// log, and no other.
func TestPanic(t *testing.T) {
	for where, trigger := range map[string]func(c, s *peer){
		"client's reader":  func(c, s *peer) { c.send(proto.PositionLook, []byte("boom")) },
		"backend's reader": func(c, s *peer) { s.send(proto.UpdateHealth, []byte("boom")) },
		"owner":            func(c, s *peer) { c.send(proto.CustomPayload, message("socketsvc:boom", "boom")) },
	} {
		t.Run(where, func(t *testing.T) {
			b := newBackend(t, "lobby", nil)
			w := &watch{
				wants: func(_ *proto.Version, s proto.State, _ proto.Dir) []proto.Packet {
					return []proto.Packet{proto.PositionLook, proto.UpdateHealth}
				},
				on: func(p Player, what string) {
					if p.Name() == "Steve" && strings.HasSuffix(what, " 4") {
						panic("boom")
					}
				},
			}
			r := &panicking{recorder: &recorder{}}
			e := newEnv(t, func(c *Config) { c.Watch, c.Channels = []Watch{w}, []Channels{r} }, b)
			other, otherS := e.play(767, "Alex", b)
			c, s := e.play(767, "Steve", b)
			trigger(c, s)
			for {
				if _, _, _, err := c.try(); err != nil {
					break
				}
			}
			s.closed()
			e.ended(EndPanic, 1)
			if !strings.Contains(e.log.String(), "panic") || !strings.Contains(e.log.String(), "session.(*") {
				t.Error("there is no stack in the log")
			}
			if !strings.Contains(w.all(), "closed") || !strings.HasSuffix(r.all(), "Steve leaves") {
				t.Errorf("nobody was told that the player has left: %q, %q", w.all(), r.all())
			}
			other.raw(0xf0, nil)
			otherS.expectID(0xf0)
			e.play(767, "Steve", b)
		})
	}
}

type panicking struct{ *recorder }

func (p *panicking) Message(q Player, channel string, data []byte) { panic("boom") }

// TestSlowClient: whoever reads slowly gets everything, in order, and its backend waits instead of filling our memory.
func TestSlowClient(t *testing.T) {
	b := newBackend(t, "lobby", func(b *fakeBackend) { b.threshold = -1 })
	e := newEnv(t, func(c *Config) { c.Settings.Threshold = -1 }, b)
	c, s := e.play(767, "Steve", b)
	const n, size = 2000, 10000
	sent := make(chan int, n)
	go func() {
		buf := make([]byte, size)
		for i := range n {
			binary.BigEndian.PutUint32(buf, uint32(i))
			if s.w.Packet(0xf0, buf) != nil {
				return
			}
			sent <- i
		}
	}()
	// The sockets' buffers fill, then the backend is held up.
	until(t, func() bool {
		before := len(sent)
		time.Sleep(50 * time.Millisecond)
		return before > 0 && len(sent) == before
	}, "the backend is never held up", func() []any { return nil })
	if len(sent) == n {
		t.Fatal("20 MB went somewhere")
	}
	for i := range n {
		if got := c.expectID(0xf0); binary.BigEndian.Uint32(got) != uint32(i) {
			t.Fatalf("packet %d arrived as number %d", binary.BigEndian.Uint32(got), i)
		}
	}
}

// TestManyComeAndGo: after joins, kicks and lost connections in any order nothing is left over.
func TestManyComeAndGo(t *testing.T) {
	b := newBackend(t, "lobby", func(b *fakeBackend) { b.quiet = true })
	r := &recorder{}
	e := newEnv(t, func(c *Config) { c.Channels, c.Log = []Channels{r}, nil }, b)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	b.serve(func(s *peer) {
		switch s.login.Name[len(s.login.Name)-1] % 4 {
		case 1:
			s.conn.Close()
		case 2:
			s.w.Packet(s.id(proto.Disconnect), packet.AppendDisconnect(nil, s.v.Protocol, s.out, packet.Plain("no")))
		case 3:
			if s.v.HasConfiguration() {
				s.w.Packet(s.id(proto.FinishConfiguration), nil)
			} else {
				s.w.Packet(s.id(proto.JoinGame), joinBody)
			}
			s.conn.Close()
		}
	})
	for i := range 300 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			name := fmt.Sprint("P", i)
			c := e.login(eras[i%len(eras)], name)
			if name[len(name)-1]%4 != 0 {
				<-c.sink()
			}
			c.conn.Close()
		})
	}
	wg.Wait()
	until(t, func() bool { return e.core.Open() == 0 && e.core.Online() == 0 }, "%d connections are left", func() []any { return []any{e.core.Open()} })
	joined, left := strings.Count(r.all(), "joins"), strings.Count(r.all(), "leaves")
	if left != 300 || joined > left {
		t.Errorf("%d joined, %d left", joined, left)
	}
}
