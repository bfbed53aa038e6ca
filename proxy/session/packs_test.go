package session

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/status"
)

// testPack is a resource pack as one backend wants it loaded.
type testPack struct {
	protocol int32
	packet.ResourcePack
}

func newPack(protocol int32, n byte) testPack {
	p := testPack{protocol, packet.ResourcePack{URL: "https://example.org/" + string('a'+n), Hash: strings.Repeat(string('0'+n), 40)}}
	if protocol >= 765 {
		p.ID = uuid.UUID{15: n + 1}
	}
	return p
}

func (p testPack) packet() proto.Packet {
	if p.protocol >= 765 {
		return proto.AddResourcePack
	}
	return proto.ResourcePackSend
}

// body returns the whole packet, forced and with no prompt.
func (p testPack) body() (b []byte) {
	if p.protocol >= 765 {
		b = field.AppendUUID(b, p.ID)
	}
	b = field.AppendString(field.AppendString(b, p.URL), p.Hash)
	if p.protocol >= 755 {
		b = append(b, 1, 0)
	}
	return b
}

func (p testPack) answer(status packet.PackStatus) []byte {
	return packet.AppendPackAnswer(nil, p.protocol, packet.PackAnswer{ID: p.ID, Hash: p.Hash, Status: status})
}

// pushed has a backend send a pack, which has to reach the client as it is.
func (p testPack) pushed(c, s *peer) {
	c.t.Helper()
	s.send(p.packet(), p.body())
	if got := c.await(p.packet()); !bytes.Equal(got, p.body()) {
		c.t.Fatalf("protocol %d: the pack became %x, was %x", p.protocol, got, p.body())
	}
}

// answered has the client answer, and the backend hear exactly that next.
func (p testPack) answered(c, s *peer, status packet.PackStatus) {
	c.t.Helper()
	c.send(proto.ResourcePackReceive, p.answer(status))
	if got := s.expect(proto.ResourcePackReceive); !bytes.Equal(got, p.answer(status)) {
		c.t.Fatalf("protocol %d: the answer became %x, was %x", p.protocol, got, p.answer(status))
	}
}

// silent is whatever the client has said reaching no backend, and whatever the backend has said no client.
func silent(c, s *peer) {
	c.t.Helper()
	c.raw(0xf0, nil)
	s.expectID(0xf0)
	s.raw(0xf2, nil)
	c.expectID(0xf2)
}

// TestPackOrigin: what a client says about a pack reaches the backend that sent it, once, and no other; what it has
// loaded is not sent again; and the packs of a backend that is left go where the version can unload them.
func TestPackOrigin(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		one, two, three, ignored := newPack(protocol, 1), newPack(protocol, 2), newPack(protocol, 3), newPack(protocol, 4)

		c.send(proto.ResourcePackReceive, one.answer(packet.PackLoaded)) // nobody asked
		silent(c, s)
		one.pushed(c, s)
		one.answered(c, s, packet.PackAccepted)
		ignored.pushed(c, s) // the player looks at the question and does not answer

		e.player().Connect("b")
		seen, s := c.moved(b)
		e.on("b")
		var gone []uuid.UUID
		for _, x := range seen {
			if x.q == proto.RemoveResourcePack {
				id, _, err := packet.ParsePackRemoval(x.body)
				if err != nil || x.st != proto.Config {
					t.Errorf("removal %x in %v: %v", x.body, x.st, err)
				}
				gone = append(gone, id)
			}
		}
		want := []uuid.UUID{one.ID, ignored.ID}
		if protocol < 765 {
			want = nil
		}
		if !slices.Equal(gone, want) {
			t.Errorf("packs unloaded: %v, want %v", gone, want)
		}
		two.pushed(c, s)
		// The download that had begun on the other server.
		c.send(proto.ResourcePackReceive, one.answer(packet.PackLoaded))
		silent(c, s)
		two.answered(c, s, packet.PackAccepted)
		if protocol >= 765 {
			two.answered(c, s, packet.PackDownloaded)
		}
		two.answered(c, s, packet.PackLoaded)
		c.send(proto.ResourcePackReceive, two.answer(packet.PackLoaded)) // said already
		silent(c, s)

		s.send(two.packet(), two.body())
		for _, st := range []packet.PackStatus{packet.PackAccepted, packet.PackDownloaded, packet.PackLoaded} {
			if st == packet.PackDownloaded && protocol < 765 {
				continue
			}
			if got := s.expect(proto.ResourcePackReceive); !bytes.Equal(got, two.answer(st)) {
				t.Errorf("a pack that is loaded: the answer is %x, want %x", got, two.answer(st))
			}
		}
		silent(c, s)
		three.pushed(c, s)
		three.answered(c, s, 1) // declined
		s.send(three.packet(), three.body())
		c.expect(three.packet()) // so it is asked again
		three.answered(c, s, packet.PackAccepted)
		if protocol >= 765 {
			s.send(proto.RemoveResourcePack, []byte{0})
			c.expect(proto.RemoveResourcePack)
			three.answered(c, s, packet.PackLoaded) // it was on its way
			two.pushed(c, s)
		}
	})
}

// TestPackInConfiguration: a pack that the next backend sends as well, before the client is in its world, stays and is
// answered for; it is unloaded when neither does; and with KeepPacks it stays in any case.
func TestPackInConfiguration(t *testing.T) {
	each(t, []int32{765, 766, 767, 769, 775}, func(t *testing.T, protocol int32) {
		for _, keep := range []bool{false, true} {
			a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
			e := newEnv(t, func(c *Config) { c.Settings.KeepPacks = keep }, a, b)
			c, s := e.settle(protocol, a)
			same, other := newPack(protocol, 1), newPack(protocol, 2)
			for _, p := range []testPack{same, other} {
				p.pushed(c, s)
				p.answered(c, s, packet.PackAccepted)
				p.answered(c, s, packet.PackLoaded)
			}
			e.player().Connect("b")
			x := b.next()
			c.await(proto.StartConfiguration)
			c.in = proto.Config
			c.send(proto.ConfigurationAcknowledged, nil)
			c.out = proto.Config
			x.send(same.packet(), same.body())
			for range 3 {
				x.expect(proto.ResourcePackReceive)
			}
			x.send(proto.FinishConfiguration, nil)
			x.out = proto.Play
			if !keep {
				if got := c.expect(proto.RemoveResourcePack); !bytes.Equal(got, packet.AppendPackRemoval(nil, other.ID)) {
					t.Errorf("removed %x", got)
				}
			}
			c.expect(proto.FinishConfiguration)
		}
	})
}

// TestPackForgotten: a 1.20.2 client unloads its pack at the start of a configuration, and gets it back from the proxy,
// whose question no backend hears the answer to.
func TestPackForgotten(t *testing.T) {
	const protocol = 764
	for _, keep := range []bool{false, true} {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Settings.KeepPacks = keep }, a, b)
		c, s := e.settle(protocol, a)
		p := newPack(protocol, 1)
		p.pushed(c, s)
		p.answered(c, s, packet.PackAccepted)
		p.answered(c, s, packet.PackLoaded)

		s.send(proto.StartConfiguration, nil)
		s.out = proto.Config
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.await(proto.ConfigurationAcknowledged)
			s.in = proto.Config
			s.enter()
		}()
		c.follow()
		<-done
		restored := func(s *peer) {
			t.Helper()
			if got := c.expect(p.packet()); !bytes.Equal(got, p.body()) {
				t.Fatalf("the pack came back as %x, was %x", got, p.body())
			}
			c.send(proto.ResourcePackReceive, p.answer(packet.PackAccepted))
			c.send(proto.ResourcePackReceive, p.answer(packet.PackLoaded))
			silent(c, s)
		}
		restored(s)

		e.player().Connect("b")
		seen, s := c.moved(b)
		n := 0
		for _, x := range seen {
			if x.q == p.packet() {
				n++
			}
		}
		if want := map[bool]int{true: 1}[keep]; n != want {
			t.Errorf("keep %v: the pack was sent %d times on the other server, want %d", keep, n, want)
		}
		silent(c, s)
	}
}

// TestManyPacks: what is remembered of a server's packs is bounded.
func TestManyPacks(t *testing.T) {
	var k packs
	for i := range 10 * maxPacks {
		k.push(pack{ResourcePack: packet.ResourcePack{ID: uuid.UUID{1, byte(i >> 8), byte(i)}}})
		k.push(pack{ResourcePack: packet.ResourcePack{Hash: "x"}})
	}
	var q questions
	for range 10 * maxOpen {
		q.ask("x")
	}
	if len(k.list) > maxPacks || len(q) > maxOpen {
		t.Errorf("%d packs, %d questions", len(k.list), len(q))
	}
}

// TestCookieOrigin: a cookie goes to the backend that asked for it, and to no other.
func TestCookieOrigin(t *testing.T) {
	each(t, []int32{766, 767, 769, 775}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		ask := func(s *peer, key string) {
			t.Helper()
			s.send(proto.CookieRequest, packet.AppendCookieRequest(nil, key))
			if got, _ := packet.ParseCookieRequest(c.await(proto.CookieRequest)); got != key {
				t.Fatalf("asked for %q, want %q", got, key)
			}
		}
		answer := func(key string) []byte {
			body := packet.AppendCookieResponse(nil, packet.CookieResponse{Key: key, Found: true, Value: []byte("of " + key)})
			c.send(proto.CookieResponse, body)
			return body
		}
		hears := func(s *peer, want []byte) {
			t.Helper()
			if got := s.expect(proto.CookieResponse); !bytes.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		ask(s, "a:one")
		ask(s, "a:two")
		hears(s, answer("a:two"))
		answer("a:two") // once is enough
		answer("a:none")
		silent(c, s)
		s.send(proto.StoreCookie, []byte("as it is"))
		if got := c.expect(proto.StoreCookie); string(got) != "as it is" {
			t.Errorf("stored %q", got)
		}

		e.player().Connect("b")
		x := b.next()
		c.await(proto.StartConfiguration)
		c.in = proto.Config
		answer("a:one") // too late
		c.send(proto.ConfigurationAcknowledged, nil)
		c.out = proto.Config
		ask(x, "b:one")
		answer("a:one")
		hears(x, answer("b:one"))
		ask(x, "b:late")
		x.send(proto.FinishConfiguration, nil)
		x.out = proto.Play
		c.expect(proto.FinishConfiguration)
		c.in = proto.Play
		late := answer("b:late") // in the state the backend is in still
		hears(x, late)
		c.send(proto.FinishConfiguration, nil)
		c.out = proto.Play
		x.expect(proto.FinishConfiguration)
		x.in = proto.Play
		x.send(proto.JoinGame, joinBody)
		c.expect(proto.JoinGame)
		ask(x, "a:one")
		hears(x, answer("a:one"))
	})
}

// TestServerData: the list of a client that has joined shows what this proxy shows, not what the backend does.
func TestServerData(t *testing.T) {
	each(t, []int32{759, 760, 761, 762, 764, 765, 766, 769, 775}, func(t *testing.T, protocol int32) {
		shown, err := status.New(status.Config{MOTD: packet.Plain("ours"), Icon: "data:image/png;base64,iVBORw0KGgo="})
		if err != nil {
			t.Fatal(err)
		}
		a := newBackend(t, "a", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Status = shown }, a)
		c, s := e.settle(protocol, a)
		theirs, err := packet.Relist(protocol, []byte{1, 1, 1, 1}, packet.Plain("A Minecraft Server"), "")
		if err != nil {
			t.Fatal(err)
		}
		want, _ := packet.Relist(protocol, []byte{1, 1, 1, 1}, packet.Plain("ours"), "data:image/png;base64,iVBORw0KGgo=")
		s.send(proto.ServerData, theirs)
		if got := c.expect(proto.ServerData); !bytes.Equal(got, want) {
			t.Errorf("the client is told %x, want %x", got, want)
		}
		s.send(proto.ServerData, nil) // makes no sense, and is not missed
		silent(c, s)
	})
}

// TestChatSessionOnSwitch: the client itself begins a new chat session in the new world, so the new backend hears that
// one and never the old one, which counts messages that it has not seen.
func TestChatSessionOnSwitch(t *testing.T) {
	each(t, []int32{761, 763, 764, 765, 766, 769, 775}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		c.send(proto.ChatSessionUpdate, []byte("the old one"))
		s.expect(proto.ChatSessionUpdate)
		e.player().Connect("b")
		done := make(chan struct{})
		go func() { defer close(done); c.follow() }()
		s = b.next()
		s.enter()
		<-done
		c.send(proto.ChatSessionUpdate, []byte("the new one"))
		if got := s.await(proto.ChatSessionUpdate); string(got) != "the new one" {
			t.Errorf("the new server heard of %q", got)
		}
	})
}
