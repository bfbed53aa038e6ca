package session

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// recorder is a Channels that writes down what it hears.
type recorder struct {
	mu     sync.Mutex
	heard  []string
	joined func(p Player)
	prefix string // of what it owns; empty is socketsvc:
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, fmt.Sprintf(format, args...))
}

func (r *recorder) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.heard, "; ")
}

func (r *recorder) Owns(channel string) bool {
	return strings.HasPrefix(channel, cmp.Or(r.prefix, "socketsvc:"))
}
func (r *recorder) Message(p Player, channel string, data []byte) {
	r.note("%s says %s on %s", p.Name(), data, channel)
}
func (r *recorder) Registered(p Player, channels []string) {
	r.note("%s registers %s", p.Name(), strings.Join(channels, ","))
}
func (r *recorder) Joined(p Player) {
	r.note("%s joins", p.Name())
	if r.joined != nil {
		r.joined(p)
	}
}
func (r *recorder) Left(p Player) { r.note("%s leaves", p.Name()) }

// heardUntil waits until the recorder has heard something last.
func (r *recorder) heardUntil(t *testing.T, last string) {
	t.Helper()
	until(t, func() bool { return strings.HasSuffix(r.all(), last) }, "heard %q, want %q at the end", func() []any { return []any{r.all(), last} })
}

// TestOwnedChannels: messages on the proxy's channels cross it in no direction and no state, compressed or not; the
// client's are heard, a backend's are not.
func TestOwnedChannels(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		r := &recorder{}
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, func(c *Config) { c.Channels = []Channels{r} }, b)
		c := e.login(protocol, "Steve")
		s := b.next()
		want := ""
		cross := func() {
			c.send(proto.CustomPayload, message("socketsvc:hello", "up"))
			c.send(proto.CustomPayload, message("other:up", "x"))
			if got := s.await(proto.CustomPayload); !bytes.Equal(got, message("other:up", "x")) {
				t.Errorf("the backend got %q", got)
			}
			s.send(proto.CustomPayload, message("socketsvc:handshake", "down"))
			s.send(proto.CustomPayload, message("socketsvc:handshake", strings.Repeat("down", 100)))
			s.send(proto.CustomPayload, message("other:down", "x"))
			if got := c.await(proto.CustomPayload); !bytes.Equal(got, message("other:down", "x")) {
				t.Errorf("the client got %q", got)
			}
			want += "Steve says up on socketsvc:hello; "
		}
		if s.v.HasConfiguration() {
			cross()
		}
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
		want += "Steve joins; "
		cross()
		c.send(proto.CustomPayload, message(packet.RegisterChannel(protocol), "socketsvc:handshake\x00\x00BAD NAME that is far too long\x00b:c"))
		s.await(proto.CustomPayload)
		c.conn.Close()
		r.heardUntil(t, "leaves")
		if want += "Steve registers socketsvc:handshake,b:c; Steve leaves"; r.all() != want {
			t.Errorf("heard %q, want %q", r.all(), want)
		}
		if n := e.core.Counters.Forged[proto.Clientbound].Load(); n == 0 || n%2 != 0 {
			t.Errorf("%d forged messages counted", n)
		}
	})
}

// TestFloodOfMessages: who says more about channels than the settings allow is disconnected and told why, whatever it
// is and in each era, before a join as well. What is only passed on has no such budget, and everybody has one of their
// own.
func TestFloodOfMessages(t *testing.T) {
	const told = "Your game sends more than this server takes. If you have added mods, tell the administrator which."
	each(t, eras, func(t *testing.T, protocol int32) {
		register := packet.RegisterChannel(protocol)
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, func(c *Config) {
			c.Channels = []Channels{&recorder{}}
			c.Settings.Channels = limit.Rate{PerSecond: 0.001, Burst: 20}
		}, b)
		other, at := e.play(protocol, "Alex", b)
		for i, m := range [][]byte{
			message("socketsvc:hello", "x"), message(register, "a:b"), message(strings.Replace(strings.Replace(register, "reg", "unreg", 1), "REG", "UNREG", 1), "a:b"),
			message("socketsvc:nothing", ""), message("bungeecord:main", "x"), message(register, "\x00"),
		} {
			c, s := e.play(protocol, "Steve", b)
			left := 20
			for range left {
				c.send(proto.CustomPayload, m)
			}
			for range 100 {
				c.send(proto.CustomPayload, message("other:x", "x"))
			}
			for n := 0; n < 100; {
				if bytes.Equal(s.await(proto.CustomPayload), message("other:x", "x")) {
					n++
				}
			}
			e.ended(EndFlood, uint64(i))
			c.send(proto.CustomPayload, m)
			if got := c.kicked(); got != told {
				t.Errorf("%q: told %q", m, got)
			}
			e.ended(EndFlood, uint64(i+1))
		}
		if early := e.login(protocol, "Early"); early.v.HasConfiguration() {
			for range 21 {
				early.send(proto.CustomPayload, message("socketsvc:hello", "x"))
			}
			if got := early.kicked(); got != told {
				t.Errorf("told %q", got)
			}
		}
		other.send(proto.CustomPayload, message(register, "c:d"))
		if got := at.await(proto.CustomPayload); !bytes.Equal(got, message(register, "c:d")) {
			t.Errorf("%q came from another player", got)
		}
	})
}

// TestChannelsAreReread: another budget counts for those who are on; and with none set a client with two hundred mods,
// each of which says its channel by itself, gets in.
func TestChannelsAreReread(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c, s := e.play(754, "Steve", b)
	for i := range 200 {
		c.send(proto.CustomPayload, message("minecraft:register", fmt.Sprintf("mod%d:x", i)))
	}
	for range 200 {
		s.await(proto.CustomPayload)
	}
	less := *e.core.settings.Load()
	less.Channels = limit.Rate{PerSecond: 0.001, Burst: 1}
	e.core.Apply(less)
	c.send(proto.CustomPayload, message("minecraft:register", "a:b"))
	s.await(proto.CustomPayload)
	c.send(proto.CustomPayload, message("minecraft:register", "a:b"))
	c.kicked()
	e.ended(EndFlood, 1)
}

// TestBungeeChannel: nobody crosses on the channel by which backends move and kick players.
func TestBungeeChannel(t *testing.T) {
	for protocol, channel := range map[int32]string{340: "BungeeCord", 767: "bungeecord:main"} {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, nil, b)
		c, s := e.play(protocol, "Steve", b)
		c.send(proto.CustomPayload, message(channel, "\x00\x04Kick"))
		c.raw(0xf0, nil)
		s.expectID(0xf0)
		s.send(proto.CustomPayload, message(channel, "\x00\x02IP"))
		s.raw(0xf0, nil)
		c.expectID(0xf0)
	}
}

// TestSend: plugin messages and action bars wait for play, then keep their order; each version gets the packet it
// knows.
func TestSend(t *testing.T) {
	bar := map[int32]proto.Packet{47: proto.Chat, 340: proto.Title, 754: proto.Title, 758: proto.ActionBar, 767: proto.ActionBar}
	each(t, eras, func(t *testing.T, protocol int32) {
		r := &recorder{joined: func(p Player) {
			if err := p.SendPlugin("socketsvc:b", []byte("joined")); err != nil {
				t.Error(err)
			}
		}}
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, func(c *Config) { c.Channels = []Channels{r} }, b)
		c := e.login(protocol, "Steve")
		p := e.core.Players()[0]
		data := []byte("early")
		if err := p.SendPlugin("socketsvc:a", data); err != nil {
			t.Fatal(err)
		}
		copy(data, "XXXXX") // it is the caller's again
		if err := p.ActionBar("a §c\"line\""); err != nil {
			t.Fatal(err)
		}
		s := b.next()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
		if got := c.expect(proto.CustomPayload); !bytes.Equal(got, message("socketsvc:a", "early")) {
			t.Errorf("got %q", got)
		}
		q, _, body, err := c.try()
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := bar[protocol]; ok && q != want {
			t.Errorf("the action bar came as %v, want %v", q, want)
		}
		if q != proto.Chat && q != proto.Title && q != proto.ActionBar || !bytes.Contains(body, []byte("line")) {
			t.Errorf("the action bar came as %v %q", q, body)
		}
		if got := c.expect(proto.CustomPayload); !bytes.Equal(got, message("socketsvc:b", "joined")) {
			t.Errorf("got %q", got)
		}
		c.conn.Close()
		e.ended(EndLeft, 1)
		if p.SendPlugin("a:b", nil) == nil {
			t.Error("a message to a player who has left was taken")
		}
	})
}

// TestSendBound: a client that never gets into play does not make us keep everything.
func TestSendBound(t *testing.T) {
	gate := make(chan struct{})
	b := newBackend(t, "slow", func(b *fakeBackend) { b.refuse = func(*peer) bool { <-gate; return true } })
	defer close(gate)
	e := newEnv(t, nil, b)
	e.login(767, "Steve")
	p := e.core.Players()[0]
	n := 0
	for ; p.SendPlugin("a:b", nil) == nil; n++ {
	}
	if n != maxMail {
		t.Errorf("%d messages were kept, want %d", n, maxMail)
	}
	if e.core.Counters.Overflows.Load() != 1 {
		t.Error("the overflow was not counted")
	}
}

// TestBrand: the backend's brand gets our name behind it, in both states, when that is wanted.
func TestBrand(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		for _, brand := range []string{"", "Earshot"} {
			b := newBackend(t, "lobby", nil)
			e := newEnv(t, func(c *Config) { c.Settings.Brand = brand }, b)
			c, s := e.play(protocol, "Steve", b)
			s.send(proto.CustomPayload, message(packet.BrandChannel(protocol), "\x05Paper"))
			want := message(packet.BrandChannel(protocol), "\x05Paper")
			if brand != "" {
				want = message(packet.BrandChannel(protocol), "\x0fPaper (Earshot)")
			}
			if got := c.expect(proto.CustomPayload); !bytes.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestLongMessage: the game's bound on what a client may say at once is kept.
func TestLongMessage(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c, s := e.play(767, "Steve", b)
	c.send(proto.CustomPayload, message("a:b", strings.Repeat("x", maxClientMessage)))
	s.await(proto.CustomPayload)
	c.send(proto.CustomPayload, message("a:b", strings.Repeat("x", maxClientMessage+1)))
	c.kicked()
	e.ended(EndProtocol, 1)
	if log := e.log.String(); !strings.Contains(log, "limits.plugin-message") || !strings.Contains(log, "channel=a:b") {
		t.Errorf("the log does not say what to set: %s", log)
	}
	// As the settings have it, for those who are on too.
	c, s = e.play(767, "Steve", b)
	more := *e.core.settings.Load()
	more.MaxMessage = 40_000
	e.core.Apply(more)
	c.send(proto.CustomPayload, message("a:b", strings.Repeat("x", 40_000)))
	s.await(proto.CustomPayload)
	c.send(proto.CustomPayload, message("a:b", strings.Repeat("x", 40_001)))
	c.kicked()
	e.ended(EndProtocol, 2)
	// A backend may say more.
	c, s = e.play(767, "Steve", b)
	s.send(proto.CustomPayload, message("a:b", strings.Repeat("x", 1<<20)))
	if got := c.expect(proto.CustomPayload); len(got) != 1<<20+4 {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestMemoryBounds: what is remembered of a client's channels is bounded, and unregistering makes room.
func TestMemoryBounds(t *testing.T) {
	var m facts
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprintf("mod:%d", i)
	}
	m.register(names)
	m.register(names)
	if len(m.channels) != packet.MaxChannels {
		t.Errorf("%d channels remembered", len(m.channels))
	}
	m.unregister(names[:1000])
	if len(m.channels) != packet.MaxChannels-1000 {
		t.Errorf("%d channels remembered", len(m.channels))
	}
	m.unregister(names)
	if len(m.channels) != 0 || m.nameBytes != 0 || len(m.known) != 0 {
		t.Errorf("%d channels, %d bytes left", len(m.channels), m.nameBytes)
	}
	m.register([]string{strings.Repeat("x", maxChannelBytes)})
	if len(m.channels) != 0 {
		t.Error("a name was remembered that fits no message")
	}
}

// TestForgetsUnregistered: a later backend hears of the channels that are left.
func TestForgetsUnregistered(t *testing.T) {
	first, second := newBackend(t, "first", nil), newBackend(t, "second", nil)
	e := newEnv(t, nil, first, second)
	c := e.login(767, "Steve")
	s := first.next()
	c.send(proto.CustomPayload, message("minecraft:register", "a:a\x00b:b\x00c:c"))
	c.send(proto.CustomPayload, message("minecraft:unregister", "b:b"))
	s.expect(proto.CustomPayload)
	s.expect(proto.CustomPayload)
	s.conn.Close()
	if got := second.next().expect(proto.CustomPayload); !bytes.Equal(got, message("minecraft:register", "a:a\x00c:c")) {
		t.Errorf("the second backend got %q", got)
	}
}
