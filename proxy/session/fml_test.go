package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

const fmlHost = "play.example.org\x00FML\x00"

// forgeClient stands for a client of Forge up to 1.12.2: it says what that says, and takes only what that takes.
type forgeClient struct {
	*peer
	stage  string // hello, data, registry, pending, complete, done
	worlds int    // join games
	resets int
	got    []string // plugin messages that are not the handshake's
}

func (c *forgeClient) hs(data ...byte) {
	c.send(proto.CustomPayload, message(fmlChannel, string(data)))
}

var fmlMods = append([]byte{2}, field.AppendString(field.AppendString([]byte{1}, "somemod"), "1.2.3")...)

// enter goes on until the client is in a world, or the connection ends; then it tells why.
func (c *forgeClient) enter() (kicked string) {
	c.t.Helper()
	for {
		q, _, body, err := c.try()
		if err != nil {
			c.t.Fatalf("protocol %d in stage %s: %v", c.v.Protocol, c.stage, err)
		}
		switch q {
		case proto.Disconnect:
			text, _ := packet.ParseDisconnect(c.v.Protocol, proto.Play, body)
			return text.String()
		case proto.JoinGame:
			if c.worlds++; c.worlds == 1 && c.stage == "hello" {
				c.stage = "done"
			}
			return ""
		case proto.CustomPayload:
			m, err := packet.ParsePluginMessage(body)
			if err != nil {
				c.t.Fatal(err)
			}
			if m.Channel != fmlChannel {
				c.got = append(c.got, m.Channel)
				continue
			}
			c.take(m.Data)
		}
	}
}

// take is the state machine of Forge's client.
func (c *forgeClient) take(data []byte) {
	c.t.Helper()
	expect := map[string]byte{"hello": 0, "data": 2, "registry": 3, "pending": 0xff, "complete": 0xff, "done": 0xfe}[c.stage]
	if len(data) < 2 || data[0] != expect {
		c.t.Fatalf("protocol %d: Forge got %x in stage %s and would break off", c.v.Protocol, data, c.stage)
	}
	switch c.stage {
	case "hello":
		c.send(proto.CustomPayload, message("REGISTER", "FML|HS\x00FML\x00FML|MP\x00FORGE"))
		c.hs(1, 2)
		c.hs(fmlMods...)
		c.stage = "data"
	case "data":
		c.hs(0xff, 2)
		c.stage = "registry"
	case "registry":
		if data[1] == 0 { // no more
			c.hs(0xff, 3)
			c.stage = "pending"
		}
	case "pending":
		c.hs(0xff, 4)
		c.stage = "complete"
	case "complete":
		c.hs(0xff, 5)
		c.stage = "done"
	case "done":
		c.resets++
		c.stage = "hello"
	}
}

// shakeHands returns a server's side of it, up to a step: 4 is all of it. It tells what was not as it should be.
func (p *peer) shakeHands(steps int) error {
	say := func(data ...byte) {
		id, _ := p.v.ID(proto.Play, proto.Clientbound, proto.CustomPayload)
		p.w.Packet(id, message(fmlChannel, string(data)))
	}
	heard := func(channel string, data ...byte) error {
		for {
			q, _, body, err := p.try()
			if err != nil {
				return fmt.Errorf("waiting for %s %x: %w", channel, data, err)
			}
			if q != proto.CustomPayload {
				continue
			}
			if m, _ := packet.ParsePluginMessage(body); m.Channel != channel || data != nil && !bytes.Equal(m.Data, data) {
				return fmt.Errorf("heard %s %x, want %s %x", m.Channel, m.Data, channel, data)
			}
			return nil
		}
	}
	id, _ := p.v.ID(proto.Play, proto.Clientbound, proto.CustomPayload)
	p.w.Packet(id, message("REGISTER", "FML|HS\x00FML\x00FML|MP\x00FORGE"))
	for i, step := range []func() error{
		func() error {
			say(0, 2, 0, 0, 0, 0)
			for _, err := range []error{heard("REGISTER"), heard(fmlChannel, 1, 2), heard(fmlChannel, fmlMods...)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
		func() error { say(fmlMods...); return heard(fmlChannel, 0xff, 2) },
		func() error {
			say(append([]byte{3, 1}, make([]byte, 30000)...)...)
			say(3, 0)
			return heard(fmlChannel, 0xff, 3)
		},
		func() error { say(0xff, 2); return heard(fmlChannel, 0xff, 4) },
		func() error { say(0xff, 3); return heard(fmlChannel, 0xff, 5) },
	} {
		if i >= steps {
			return nil
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

const allSteps = 5

// join is a server's join game in a dimension.
func joinDimension(protocol int32, dimension int32) []byte {
	b := []byte{0, 0, 0, 7, 1}
	if protocol < proto.V1_9_1 {
		b = append(b, byte(dimension))
	} else {
		b = field.AppendI32(b, dimension)
	}
	return append(field.AppendString(append(b, 1, 20), "default"), 0)
}

// TestFML: a client of Forge up to 1.12.2 shakes hands with the first server, and after a reset with every other one
// that does; it is sent the join game as it is, and a respawn into another dimension and back. Servers without mods
// need nothing of it. What it says meanwhile reaches the server it has come to.
func TestFML(t *testing.T) {
	each(t, []int32{47, 110, 340}, func(t *testing.T, protocol int32) {
		forge1, forge2, plain1, plain2 := newBackend(t, "forge1", nil), newBackend(t, "forge2", nil), newBackend(t, "plain1", nil), newBackend(t, "plain2", nil)
		for _, way := range [][]*fakeBackend{
			{forge1, forge2, forge1}, {plain1, forge1, plain2, plain1, forge2}, {forge1, plain1, forge2}, {plain1, plain2, forge1, forge2},
		} {
			e := newEnv(t, func(c *Config) {
				c.Settings.Try = []string{way[0].name}
				for i := range c.Settings.Servers {
					c.Settings.Servers[i].Forwarding = backend.Legacy
				}
			}, forge1, forge2, plain1, plain2)
			c := &forgeClient{peer: e.startAs(protocol, "Steve", fmlHost), stage: "hello"}
			c.loggedIn()
			forges := 0
			for i, b := range way {
				if i > 0 {
					if err := e.core.Players()[0].Connect(b.name); err != nil {
						t.Fatal(err)
					}
				}
				s := b.next()
				if !strings.Contains(s.handshake.Host, `{"name":"extraData","value":"\u0001FML\u0001"}`) {
					t.Errorf("%s heard %q", b.name, s.handshake.Host)
				}
				join := joinDimension(protocol, int32(i%2))
				failed := make(chan error, 1)
				go func() {
					if b == forge1 || b == forge2 {
						if err := s.shakeHands(allSteps); err != nil {
							failed <- err
							s.conn.Close()
							return
						}
					}
					s.raw(s.id(proto.JoinGame), join)
					failed <- nil
				}()
				if got := c.enter(); got != "" {
					t.Fatalf("on the way to %s: %s", b.name, got)
				}
				if err := <-failed; err != nil {
					t.Fatalf("%s: %v", b.name, err)
				}
				if b == forge1 || b == forge2 {
					if forges++; c.stage != "done" {
						t.Errorf("on %s the client is in stage %s", b.name, c.stage)
					}
				}
				if i > 0 {
					one, _ := packet.ParseRespawn(protocol, c.expect(proto.Respawn))
					two, _ := packet.ParseRespawn(protocol, c.expect(proto.Respawn))
					want, _ := packet.ParseJoinGame(protocol, join)
					if one.World == two.World || two.World != want.World {
						t.Errorf("respawns into %s and %s, of %s", one.World, two.World, want.World)
					}
				}
				c.send(proto.CustomPayload, message("mymod", "hello"))
				for {
					if m, _ := packet.ParsePluginMessage(s.await(proto.CustomPayload)); m.Channel == "mymod" {
						break
					}
				}
				until(t, func() bool { return e.core.Players()[0].Server() == b.name }, "not on %s", func() []any { return []any{b.name} })
			}
			if s := e.core.Players()[0].(*Session); len(s.Mods()) != 1 || s.Mods()[0] != (packet.ForgeMod{ID: "somemod", Version: "1.2.3"}) {
				t.Errorf("mods %+v", s.Mods())
			}
			c.conn.Close()
			until(t, func() bool { return e.core.Online() == 0 }, "still there", func() []any { return nil })
		}
	})
}

// TestFMLBroken: a client whose handshake breaks off can be taken nowhere, and is told why; before the server's hello
// it stays where it is.
func TestFMLBroken(t *testing.T) {
	each(t, []int32{47, 340}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		kick := func(s *peer) {
			s.w.Packet(s.id(proto.Disconnect), packet.AppendDisconnect(nil, protocol, proto.Play, packet.Plain("Mod rejections")))
			s.conn.Close()
		}
		// at the first server
		e := newEnv(t, nil, a, b)
		c := &forgeClient{peer: e.startAs(protocol, "Steve", fmlHost), stage: "hello"}
		c.loggedIn()
		s := a.next()
		done := make(chan error, 1)
		go func() { done <- s.shakeHands(2); kick(s) }()
		if got := c.enter(); got != "Mod rejections" {
			t.Errorf("told %q", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		e.ended(EndKicked, 1)

		// on the way to another
		e = newEnv(t, nil, a, b)
		c = &forgeClient{peer: e.startAs(protocol, "Steve", fmlHost), stage: "hello"}
		c.loggedIn()
		s = a.next()
		go func() { done <- s.shakeHands(allSteps); s.raw(s.id(proto.JoinGame), joinDimension(protocol, 0)) }()
		c.enter()
		<-done
		p := e.core.Players()[0]
		until(t, func() bool { return p.Server() == "a" }, "not on a", func() []any { return nil })
		if err := p.Connect("b"); err != nil {
			t.Fatal(err)
		}
		kick(b.next())
		c.chat("Mod rejections")
		if p.Server() != "a" || c.resets != 0 {
			t.Errorf("on %q after %d resets", p.Server(), c.resets)
		}
		if err := p.Connect("b"); err != nil {
			t.Fatal(err)
		}
		s = b.next()
		go func() { done <- s.shakeHands(3); kick(s) }()
		if got := c.enter(); got != "Mod rejections" {
			t.Errorf("told %q", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		e.ended(EndKicked, 1)
	})
}

// TestFMLNot: whoever has no such Forge may use the channel as any other.
func TestFMLNot(t *testing.T) {
	b := newBackend(t, "b", nil)
	e := newEnv(t, nil, b)
	c, s := e.play(340, "Steve", b)
	s.send(proto.CustomPayload, message(fmlChannel, "\x00\x02"))
	if got := c.await(proto.CustomPayload); !bytes.Equal(got, message(fmlChannel, "\x00\x02")) {
		t.Errorf("got %q", got)
	}
	c.send(proto.CustomPayload, message(fmlChannel, "\x02\xff\xff"))
	if got := s.await(proto.CustomPayload); !bytes.Equal(got, message(fmlChannel, "\x02\xff\xff")) {
		t.Errorf("got %q", got)
	}
}
