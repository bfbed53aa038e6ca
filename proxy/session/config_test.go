package session

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

var configured = []int32{764, 765, 766, 767, 769, 775}

func information(v int32) []byte {
	return packet.AppendClientInformation(nil, v, packet.ClientInformation{Locale: "en_us", ViewDistance: 7, Listed: true})
}

// TestBeforeThereIsABackend: what a client says before a backend exists reaches the first one in order, and the
// standing facts reach every later one.
func TestBeforeThereIsABackend(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		defer open()
		first := newBackend(t, "first", func(b *fakeBackend) {
			b.refuse = func(*peer) bool { <-gate; return false }
		})
		second := newBackend(t, "second", nil)
		e := newEnv(t, nil, first, second)
		c := e.login(protocol, "Steve")
		register := packet.RegisterChannel(protocol)
		brand := packet.BrandChannel(protocol)
		c.send(proto.CustomPayload, message(brand, "\x07vanilla"))
		c.send(proto.ClientInformation, information(protocol))
		c.send(proto.CustomPayload, message(register, "mod:one\x00mod:two"))
		for i := range 10 {
			c.send(proto.CustomPayload, message("mod:one", fmt.Sprint(i)))
		}
		until(t, func() bool { return e.core.Counters.Traffic[proto.Serverbound].Held.Load() >= 13 }, "the client's packets have not been read", func() []any { return nil })
		open()

		s := first.next()
		if !s.v.HasConfiguration() {
			s.send(proto.JoinGame, joinBody) // before 1.20.2 a backend is only ready then
			c.expect(proto.JoinGame)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(brand, "\x07vanilla")) {
			t.Errorf("first came %q, want the brand", got)
		}
		if got := s.expect(proto.ClientInformation); !bytes.Equal(got, information(protocol)) {
			t.Errorf("then came %q, want the client information", got)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(register, "mod:one\x00mod:two")) {
			t.Errorf("then came %q, want the channels", got)
		}
		for i := range 10 {
			if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("mod:one", fmt.Sprint(i))) {
				t.Errorf("message %d came as %q", i, got)
			}
		}
		// What comes later goes straight on.
		c.send(proto.CustomPayload, message("mod:two", "later"))
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("mod:two", "later")) {
			t.Errorf("got %q, want the later message", got)
		}
		if !s.v.HasConfiguration() {
			return
		}
		c.send(proto.CustomPayload, message(packet.RegisterChannel(protocol), "mod:three"))
		s.expect(proto.CustomPayload)
		s.conn.Close()
		s = second.next()
		if got := s.expect(proto.ClientInformation); !bytes.Equal(got, information(protocol)) {
			t.Errorf("the second backend got %q, want the client information", got)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(brand, "\x07vanilla")) {
			t.Errorf("the second backend got %q, want the brand", got)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(register, "mod:one\x00mod:two\x00mod:three")) {
			t.Errorf("the second backend got %q, want all channels", got)
		}
	})
}

// TestQueueOverflow: a client that talks to nobody without end is disconnected, by number and by bytes.
func TestQueueOverflow(t *testing.T) {
	for name, body := range map[string][]byte{"number": message("a:b", ""), "bytes": message("a:b", strings.Repeat("x", maxClientMessage))} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			b := newBackend(t, "slow", func(b *fakeBackend) { b.refuse = func(*peer) bool { <-gate; return true } })
			defer close(gate)
			e := newEnv(t, func(c *Config) { c.Settings.Threshold = -1 }, b)
			c := e.login(767, "Steve")
			go func() {
				for range maxQueued + 1 {
					if c.w.Packet(2, body) != nil {
						return
					}
				}
			}()
			if got := c.kicked(); !strings.Contains(got, "Too many messages") {
				t.Errorf("told %q", got)
			}
			e.ended(EndOverflow, 1)
			if n := e.core.Counters.Overflows.Load(); n != 1 {
				t.Errorf("%d overflows counted, want 1", n)
			}
		})
	}
}

// TestConfigurationIsRelayed: packets of the configuration state pass in both directions, known packs unparsed, unknown
// ids too; keep-alives find their way.
func TestConfigurationIsRelayed(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c := e.login(protocol, "Steve")
		s := b.next()
		big := bytes.Repeat([]byte("registry"), 20000)
		s.send(proto.RegistryData, big)
		if got := c.expect(proto.RegistryData); !bytes.Equal(got, big) {
			t.Error("registry data changed on the way")
		}
		if protocol >= 766 {
			packs := bytes.Repeat([]byte{0xff}, 5000) // nonsense: it must not be looked at
			s.send(proto.SelectKnownPacks, packs)
			if got := c.expect(proto.SelectKnownPacks); !bytes.Equal(got, packs) {
				t.Error("known packs changed on the way to the client")
			}
			c.send(proto.SelectKnownPacks, packs)
			if got := s.expect(proto.SelectKnownPacks); !bytes.Equal(got, packs) {
				t.Error("known packs changed on the way to the backend")
			}
		}
		s.send(proto.Ping, []byte{1, 2, 3, 4})
		c.expect(proto.Ping)
		c.send(proto.Pong, []byte{1, 2, 3, 4})
		s.expect(proto.Pong)
		s.raw(0x7b, []byte("odd"))
		c.expectID(0x7b)
		c.raw(0x7c, []byte("odd too"))
		s.expectID(0x7c)
		s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 99))
		c.send(proto.KeepAlive, c.expect(proto.KeepAlive))
		if id, _ := packet.ParseKeepAlive(protocol, s.expect(proto.KeepAlive)); id != 99 {
			t.Errorf("keep-alive answered with %d", id)
		}
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
	})
}

// TestJoinGameBeforeAcknowledgement: the client's acknowledgement and the backend's join game may cross.
func TestJoinGameBeforeAcknowledgement(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c := e.login(protocol, "Steve")
		s := b.next()
		s.send(proto.FinishConfiguration, nil)
		s.out = proto.Play
		s.send(proto.JoinGame, joinBody)
		c.expect(proto.FinishConfiguration)
		c.in = proto.Play
		c.expect(proto.JoinGame)
		// Of the configuration still, and asked by nobody.
		c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 5))
		c.send(proto.FinishConfiguration, nil)
		c.out = proto.Play
		s.expect(proto.FinishConfiguration)
		s.in = proto.Play
		c.raw(0xf0, nil)
		s.expectID(0xf0)
	})
}

// TestReconfiguration: a backend configures its player again, twice. Both are switched at the exact point; what the
// client sent too late still arrives as what it is; what the proxy wants to say waits.
func TestReconfiguration(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		p := e.core.Players()[0]
		for range 2 {
			s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 6))
			s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 7))
			s.send(proto.StartConfiguration, nil)
			s.out = proto.Config
			c.expect(proto.KeepAlive)
			c.expect(proto.KeepAlive)
			c.expect(proto.StartConfiguration)
			c.in = proto.Config
			if err := p.SendPlugin("socketsvc:late", []byte("now?")); err != nil {
				t.Fatal(err)
			}
			if err := p.ActionBar("hello"); err != nil {
				t.Fatal(err)
			}
			c.raw(0xf1, []byte("late")) // play: the backend still understands it
			c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 7))
			c.send(proto.ConfigurationAcknowledged, nil)
			c.out = proto.Config
			c.send(proto.ClientInformation, information(protocol))
			if got := s.expectID(0xf1); string(got) != "late" {
				t.Errorf("late packet came as %q", got)
			}
			s.expect(proto.KeepAlive)
			s.expect(proto.ConfigurationAcknowledged)
			s.in = proto.Config
			s.expect(proto.ClientInformation)
			s.send(proto.RegistryData, []byte("again"))
			c.expect(proto.RegistryData)
			// An answer to the question of another state would get the player kicked.
			c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 6))
			s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 8))
			c.send(proto.KeepAlive, c.expect(proto.KeepAlive))
			if id, _ := packet.ParseKeepAlive(protocol, s.expect(proto.KeepAlive)); id != 8 {
				t.Errorf("keep-alive %d reached the backend, want 8", id)
			}
			s.send(proto.FinishConfiguration, nil)
			s.out = proto.Play
			c.expect(proto.FinishConfiguration)
			c.in = proto.Play
			c.send(proto.FinishConfiguration, nil)
			c.out = proto.Play
			s.expect(proto.FinishConfiguration)
			s.in = proto.Play
			s.send(proto.JoinGame, joinBody)
			c.expect(proto.JoinGame)
			if got := c.expect(proto.CustomPayload); !bytes.Equal(got, message("socketsvc:late", "now?")) {
				t.Errorf("got %q, want the message that waited", got)
			}
			c.expect(proto.ActionBar)
		}
	})
}

// TestReconfigurationInsideABundle: a client takes no change of state inside a bundle, so one that a backend has left
// open is closed first.
func TestReconfigurationInsideABundle(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		a := newBackend(t, "a", nil)
		e := newEnv(t, nil, a)
		c, s := e.settle(protocol, a)
		s.send(proto.BundleDelimiter, nil)
		s.raw(0xf2, nil)
		s.send(proto.StartConfiguration, nil)
		c.expect(proto.BundleDelimiter)
		c.expectID(0xf2)
		c.expect(proto.BundleDelimiter)
		c.expect(proto.StartConfiguration)
	})
}

// TestStaleKnownPacks: what the client answers to a backend that is gone does not reach the next one, which has not
// asked.
func TestStaleKnownPacks(t *testing.T) {
	first, second := newBackend(t, "first", nil), newBackend(t, "second", nil)
	e := newEnv(t, nil, first, second)
	c, s := e.login(767, "Steve"), first.next()
	for range 2 {
		s.send(proto.SelectKnownPacks, []byte("first"))
		c.expect(proto.SelectKnownPacks)
	}
	c.send(proto.SelectKnownPacks, []byte("first"))
	s.expect(proto.SelectKnownPacks)
	s.conn.Close()
	s = second.next()
	s.send(proto.SelectKnownPacks, []byte("second"))
	c.expect(proto.SelectKnownPacks)
	c.send(proto.SelectKnownPacks, []byte("first"))
	c.send(proto.SelectKnownPacks, []byte("second"))
	if got := s.expect(proto.SelectKnownPacks); string(got) != "second" {
		t.Errorf("the second backend got %q", got)
	}
}
