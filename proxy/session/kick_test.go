package session

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// phase is a point at which a backend may end things. reach brings both peers there.
type phase struct {
	name  string
	from  int32 // first protocol that has it
	until int32 // last one; 0: all
	reach func(e *env, protocol int32, b *fakeBackend) (c, s *peer)
}

var phases = []phase{
	{"configuration", 764, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		return e.login(protocol, "Steve"), b.next()
	}},
	{"finished", 764, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		c, s = e.login(protocol, "Steve"), b.next()
		s.send(proto.FinishConfiguration, nil)
		s.out = proto.Play
		c.expect(proto.FinishConfiguration)
		c.in = proto.Play
		return c, s
	}},
	{"acknowledged", 764, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		c, s = e.login(protocol, "Steve"), b.next()
		s.send(proto.FinishConfiguration, nil)
		s.out = proto.Play
		c.expect(proto.FinishConfiguration)
		c.in = proto.Play
		c.send(proto.FinishConfiguration, nil)
		c.out = proto.Play
		s.expect(proto.FinishConfiguration)
		s.in = proto.Play
		return c, s
	}},
	{"before join", 47, 763, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		return e.login(protocol, "Steve"), b.next()
	}},
	{"play", 47, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) { return e.play(protocol, "Steve", b) }},
	{"reconfiguring", 764, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		c, s = e.play(protocol, "Steve", b)
		s.send(proto.StartConfiguration, nil)
		s.out = proto.Config
		c.expect(proto.StartConfiguration)
		c.in = proto.Config
		return c, s
	}},
	{"reconfigured", 764, 0, func(e *env, protocol int32, b *fakeBackend) (c, s *peer) {
		c, s = e.play(protocol, "Steve", b)
		s.send(proto.StartConfiguration, nil)
		s.out = proto.Config
		c.expect(proto.StartConfiguration)
		c.in = proto.Config
		c.send(proto.ConfigurationAcknowledged, nil)
		c.out = proto.Config
		s.expect(proto.ConfigurationAcknowledged)
		s.in = proto.Config
		return c, s
	}},
}

func eachPhase(t *testing.T, f func(t *testing.T, p phase, protocol int32)) {
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			each(t, eras, func(t *testing.T, protocol int32) {
				if protocol < p.from || p.until != 0 && protocol > p.until {
					return
				}
				f(t, p, protocol)
			})
		})
	}
}

// TestKickInEveryPhase: the backend's disconnect reaches the client unchanged, whatever it looks like, in the encoding
// of the state the client is in.
func TestKickInEveryPhase(t *testing.T) {
	eachPhase(t, func(t *testing.T, p phase, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := p.reach(e, protocol, b)
		reason := packet.JSONText([]byte(`{"text":"","extra":[{"text":"banned","odd":[1,null]}]}`))
		body := packet.AppendDisconnect(nil, protocol, s.out, reason)
		s.send(proto.Disconnect, body)
		if got := c.expect(proto.Disconnect); !bytes.Equal(got, body) {
			t.Errorf("the client got %q, want %q", got, body)
		}
		c.closed()
		s.closed()
		e.ended(EndKicked, 1)
	})
}

// TestUnreadableKick: a reason that we cannot read still reaches the client as it is.
func TestUnreadableKick(t *testing.T) {
	for _, protocol := range []int32{47, 767} {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		s.send(proto.Disconnect, []byte{0xff, 0xfe})
		if got := c.expect(proto.Disconnect); !bytes.Equal(got, []byte{0xff, 0xfe}) {
			t.Errorf("protocol %d: the client got %q", protocol, got)
		}
	}
}

// TestBackendGoneInEveryPhase: a backend that just hangs up, or breaks the protocol, is a reason too.
func TestBackendGoneInEveryPhase(t *testing.T) {
	eachPhase(t, func(t *testing.T, p phase, protocol int32) {
		for _, broken := range []bool{false, true} {
			b := newBackend(t, "lobby", nil)
			e := newEnv(t, nil, b)
			c, s := p.reach(e, protocol, b)
			if broken {
				s.conn.Write([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
			} else {
				s.conn.Close()
			}
			if got := c.kicked(); !strings.Contains(got, "lobby") {
				t.Errorf("told %q", got)
			}
			e.ended(EndBackendLost, 1)
		}
	})
}

// TestNextBackend: whoever does not keep the player is followed by the next on the list, in every phase.
func TestNextBackend(t *testing.T) {
	eachPhase(t, func(t *testing.T, p phase, protocol int32) {
		first, second := newBackend(t, "first", nil), newBackend(t, "second", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Try = []string{"missing", "FIRST", "second"} }, first, second)
		c, s := p.reach(e, protocol, first)
		s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, s.out, packet.Plain("full")))
		c.moved(second)
	})
}

// TestReasonIsTranslated: a server's words of the game reach the player in their own language, also as part of the
// proxy's words.
func TestReasonIsTranslated(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", func(b *fakeBackend) { b.quiet = true })
		e := newEnv(t, nil, a, b)
		chat, _ := packet.SystemMessage(protocol, packet.Plain(""))
		told := func(got []byte, key string) {
			t.Helper()
			if protocol == 47 && bytes.Contains(got, []byte("Server closed")) { // it has no such key
				return
			}
			if !bytes.Contains(got, []byte("translate")) || !bytes.Contains(got, []byte(key)) || bytes.Contains(got, []byte(packet.Slot)) {
				t.Errorf("told %q", got)
			}
		}
		c, s := e.settle(protocol, a)
		s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Play, packet.Translatable("multiplayer.disconnect.server_shutdown")))
		seen, _ := c.moved(b)
		i := slices.IndexFunc(seen, func(x seenPacket) bool { return x.q == chat })
		if i < 0 {
			t.Fatalf("told nothing: %v", seen)
		}
		told(seen[i].body, "multiplayer.disconnect.server_shutdown")

		a.refuse = func(p *peer) bool {
			p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Translatable("multiplayer.disconnect.not_whitelisted")))
			p.conn.Close()
			return true
		}
		if err := e.player().Connect("a"); err != nil {
			t.Fatal(err)
		}
		told(c.await(chat), "multiplayer.disconnect.not_whitelisted")
	})
}

// TestNoSecondSetOfRegistries: once a 1.20.5 client has registries it takes no others, so no other backend is tried;
// before, it replaces them.
func TestNoSecondSetOfRegistries(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		first, second := newBackend(t, "first", nil), newBackend(t, "second", nil)
		e := newEnv(t, nil, first, second)
		c, s := e.login(protocol, "Steve"), first.next()
		s.send(proto.RegistryData, []byte("entries"))
		c.expect(proto.RegistryData)
		s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Config, packet.Plain("no")))
		if protocol >= 766 {
			if got := c.kicked(); got != "no" {
				t.Errorf("told %q", got)
			}
			return
		}
		second.next()
	})
}

// TestListExhausted: the last backend's reason is the one the player is told, in every era's encoding.
func TestListExhausted(t *testing.T) {
	each(t, all(), func(t *testing.T, protocol int32) {
		refuse := func(why string) func(*fakeBackend) {
			return func(b *fakeBackend) {
				b.refuse = func(p *peer) bool {
					p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Plain(why)))
					p.conn.Close()
					return true
				}
			}
		}
		e := newEnv(t, nil, newBackend(t, "first", refuse("first says no")), newBackend(t, "second", refuse("second says §cno")))
		c := e.login(protocol, "Steve")
		if got := c.kicked(); got != "second says no" && got != "second says §cno" {
			t.Errorf("told %q", got)
		}
		e.ended(EndKicked, 1)
		if d, f := e.core.Counters.Dials.Load(), e.core.Counters.DialFails.Load(); d != 2 || f != 2 {
			t.Errorf("%d dials, %d failures, want 2 and 2", d, f)
		}
	})
}

// TestNoBackend: an empty list, a list of unknown names and a dead backend all end in words.
func TestNoBackend(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := ln.Addr().String()
	ln.Close()
	for name, change := range map[string]func(*Config){
		"none":    nil,
		"unknown": func(c *Config) { c.Settings.Try = []string{"a", "b"} },
		"dead": func(c *Config) {
			c.Settings.Servers = []backend.Server{{Name: "dead", Address: dead}}
			c.Settings.Try = []string{"dead"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, protocol := range []int32{47, 767} {
				e := newEnv(t, change)
				c := e.login(protocol, "Steve")
				if got := c.kicked(); name == "dead" != strings.Contains(got, "dead") || strings.Contains(got, dead) {
					t.Errorf("protocol %d: told %q", protocol, got)
				}
			}
		})
	}
}

// TestKickInsideABundle: a client shows nothing that comes inside a bundle, so the bundle is closed first.
func TestKickInsideABundle(t *testing.T) {
	for _, protocol := range []int32{762, 763, 764, 767, 775} {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		s.send(proto.BundleDelimiter, nil)
		s.send(proto.BundleDelimiter, nil)
		s.send(proto.BundleDelimiter, nil)
		for range 3 {
			c.expect(proto.BundleDelimiter)
		}
		e.core.Players()[0].Disconnect("out")
		c.expect(proto.BundleDelimiter)
		if got := c.kicked(); got != "out" {
			t.Errorf("protocol %d: told %q", protocol, got)
		}
		if protocol < 764 {
			continue
		}
		c, s = e.play(protocol, "Alex", b)
		s.send(proto.BundleDelimiter, nil)
		s.send(proto.StartConfiguration, nil)
		c.expect(proto.BundleDelimiter)
		c.expect(proto.BundleDelimiter)
		c.expect(proto.StartConfiguration)
	}
}

// TestDisconnectInEveryPhase: our own reason, in the encoding of the state the client is in.
func TestDisconnectInEveryPhase(t *testing.T) {
	eachPhase(t, func(t *testing.T, p phase, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := p.reach(e, protocol, b)
		e.core.Players()[0].Disconnect("go away")
		e.core.Players()[0].Disconnect("this comes too late")
		if got := c.kicked(); got != "go away" {
			t.Errorf("told %q", got)
		}
		s.closed()
		e.ended(EndDisconnected, 1)
	})
}

// TestDisconnectWhileDialling: an order to leave does not wait for a backend.
func TestDisconnectWhileDialling(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		asked, gate := make(chan struct{}), make(chan struct{})
		b := newBackend(t, "slow", func(b *fakeBackend) {
			b.refuse = func(*peer) bool { close(asked); <-gate; return true }
		})
		defer close(gate)
		e := newEnv(t, nil, b)
		c := e.login(protocol, "Steve")
		<-asked
		start := time.Now()
		e.core.Players()[0].Disconnect("go away")
		if got := c.kicked(); got != "go away" {
			t.Errorf("told %q", got)
		}
		e.ended(EndDisconnected, 1)
		if d := time.Since(start); d > grace+2*time.Second {
			t.Errorf("took %v", d)
		}
	})
}
