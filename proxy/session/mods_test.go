package session

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// forgeEras are versions whose Forge asks at login, with what the client adds to its host.
var forgeEras = map[int32]string{393: "\x00FML2\x00", 404: "\x00FML2\x00", 578: "\x00FML2\x00", 754: "\x00FML2\x00", 757: "\x00FML3\x00", 763: "\x00FML3\x00"}

// startAs does as start with a host field of its own.
func (e *env) startAs(protocol int32, name, host string) *peer {
	e.t.Helper()
	return e.startAt(e.ln.Addr(), protocol, name, host)
}

// startAt does as startAs at another door.
func (e *env) startAt(door net.Addr, protocol int32, name, host string) *peer {
	e.t.Helper()
	conn, err := net.Dial("tcp", door.String())
	if err != nil {
		e.t.Fatal(err)
	}
	p := newPeer(e.t, conn, proto.Lookup(protocol), proto.Serverbound)
	p.raw(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: host, Port: 25565, Intent: packet.IntentLogin}))
	p.state(proto.Login)
	p.send(proto.LoginStart, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: name}))
	return p
}

// wrapped returns a message of Forge's handshake as it travels in a login plugin request or its answer.
func wrapped(channel string, message ...byte) []byte {
	return field.AppendBytes(field.AppendString(nil, channel), message)
}

// A Forge server's questions: its mods, a registry, a config file, and one that the client does not answer.
var (
	serverMods = wrapped(forgeHandshake, append([]byte{1}, "server's mods"...)...)
	otherMods  = wrapped(forgeHandshake, append([]byte{1}, "another server's mods"...)...)
	blocks     = wrapped(forgeHandshake, append([]byte{3}, "minecraft:block 1=stone"...)...)
	configFile = wrapped(forgeHandshake, field.AppendString([]byte{4}, "a.toml")...)
	modData    = wrapped(forgeHandshake, 5)
	clientMods = wrapped(forgeHandshake, append([]byte{2}, "client's mods"...)...)
	gotIt      = wrapped(forgeHandshake, 99)
)

// answers returns what a Forge client says to a question; ok is false when it says nothing.
func answers(q packet.LoginPluginRequest) (a packet.LoginPluginResponse, ok bool) {
	a = packet.LoginPluginResponse{ID: q.ID, Understood: true}
	switch {
	case bytes.Equal(q.Data, modData):
		return a, false
	case bytes.Equal(q.Data, serverMods), bytes.Equal(q.Data, otherMods):
		a.Data = clientMods
	case q.Channel == forgeQuestions:
		a.Data = gotIt
	default:
		a.Understood = false
	}
	return a, true
}

// modded lets a client go on until its login is over, answering as Forge does.
func (p *peer) modded() (asked int) {
	p.t.Helper()
	for {
		q, _, body, err := p.try()
		if err != nil {
			p.t.Fatalf("protocol %d: login: %v", p.v.Protocol, err)
		}
		switch q {
		case proto.SetCompression:
			n, _ := packet.ParseSetCompression(body)
			p.compress(n)
		case proto.LoginSuccess:
			p.state(proto.Play)
			return asked
		case proto.LoginPluginRequest:
			r, err := packet.ParseLoginPluginRequest(body)
			if err != nil {
				p.t.Fatal(err)
			}
			asked++
			if a, ok := answers(r); ok {
				p.send(proto.LoginPluginResponse, packet.AppendLoginPluginResponse(nil, a))
			}
		default:
			p.t.Fatalf("protocol %d: %v in login", p.v.Protocol, q)
		}
	}
}

// questioner asks those who come these questions, one after the other as a server of Forge does, and turns away whoever
// does not answer as its client does.
func questioner(t testing.TB, name string, questions ...[]byte) *fakeBackend {
	return newBackend(t, name, func(b *fakeBackend) {
		b.refuse = func(p *peer) bool { return p.interrogate(questions) != nil }
	})
}

func (p *peer) interrogate(questions [][]byte) error {
	for i, data := range questions {
		r := packet.LoginPluginRequest{ID: int32(i), Channel: forgeQuestions, Data: data}
		id, _ := p.v.ID(proto.Login, proto.Clientbound, proto.LoginPluginRequest)
		if err := p.w.Packet(id, packet.AppendLoginPluginRequest(nil, r)); err != nil {
			return err
		}
		want, ok := answers(r)
		if !ok {
			continue
		}
		q, _, body, err := p.try()
		if err != nil || q != proto.LoginPluginResponse {
			return fmt.Errorf("%v instead of an answer: %w", q, err)
		}
		got, err := packet.ParseLoginPluginResponse(body)
		if err != nil || got.ID != want.ID || got.Understood != want.Understood || !bytes.Equal(got.Data, want.Data) {
			id, _ := p.v.ID(proto.Login, proto.Clientbound, proto.Disconnect)
			p.w.Packet(id, packet.AppendDisconnect(nil, p.v.Protocol, proto.Login, packet.Plain(fmt.Sprintf("answer %+v, %v", got, err))))
			return errors.New("wrong answer")
		}
	}
	return nil
}

// TestForgeLogin: a server of Forge asks its questions while the client is in login, whatever the forwarding, and the
// client's traffic is the server's from its first packet on; another server with the same mods asks in vain and is told
// the same; one with other registries is refused in words, and the player stays.
func TestForgeLogin(t *testing.T) {
	each(t, slices.Sorted(maps.Keys(forgeEras)), func(t *testing.T, protocol int32) {
		a := questioner(t, "a", serverMods, blocks, configFile, modData)
		b := questioner(t, "b", otherMods, blocks, configFile, modData)
		other := questioner(t, "other", serverMods, wrapped(forgeHandshake, append([]byte{3}, "minecraft:block 1=dirt"...)...))
		plainServer := newBackend(t, "plain", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Try = []string{"a"} }, a, b, other, plainServer)
		c := e.startAs(protocol, "Steve", "play.example.org"+forgeEras[protocol])
		if n := c.modded(); n != 4 {
			t.Errorf("the client was asked %d times", n)
		}
		s := a.next()
		if want := "play.example.org" + forgeEras[protocol]; s.handshake.Host != want {
			t.Errorf("the server heard of %q, want %q", s.handshake.Host, want)
		}
		s.admit()
		c.join()
		// The client's first packet is one of play, and goes to the server as such.
		c.send(proto.CustomPayload, message("mod:play", "hello"))
		if got := s.await(proto.CustomPayload); !bytes.Equal(got, message("mod:play", "hello")) {
			t.Errorf("the server got %q", got)
		}

		p := e.core.Players()[0]
		for _, to := range []*fakeBackend{b, plainServer, a} {
			if err := p.Connect(to.name); err != nil {
				t.Fatal(err)
			}
			s = to.next()
			s.admit()
			c.await(proto.JoinGame)
			until(t, func() bool { return p.Server() == to.name }, "not on %s", func() []any { return []any{to.name} })
		}
		if err := p.Connect("other"); err != nil {
			t.Fatal(err)
		}
		c.chat("other mods")
		s.raw(0xf0, []byte("still here"))
		for {
			if _, id, _, err := c.try(); err != nil {
				t.Fatal(err)
			} else if id == 0xf0 {
				break
			}
		}
	})
}

// TestForgeFallback: a server that turns the client away in the middle of its questions is followed by the next, which
// asks its own; answers that come too late go nowhere.
func TestForgeFallback(t *testing.T) {
	each(t, slices.Sorted(maps.Keys(forgeEras)), func(t *testing.T, protocol int32) {
		rude := newBackend(t, "rude", func(b *fakeBackend) {
			b.refuse = func(p *peer) bool {
				id, _ := p.v.ID(proto.Login, proto.Clientbound, proto.LoginPluginRequest)
				for i := range int32(3) {
					p.w.Append(id, packet.AppendLoginPluginRequest(nil, packet.LoginPluginRequest{ID: i, Channel: forgeQuestions, Data: blocks}))
				}
				p.w.Append(p.id(proto.Disconnect), packet.AppendDisconnect(nil, p.v.Protocol, proto.Login, packet.Plain("no room")))
				p.w.Flush()
				return true
			}
		})
		kind := newBackend(t, "kind", nil)
		e := newEnv(t, nil, rude, kind)
		c := e.startAs(protocol, "Steve", "h"+forgeEras[protocol])
		// The client is slow: it answers only after its login is over.
		var late []packet.LoginPluginRequest
		for done := false; !done; {
			q, _, body, err := c.try()
			switch {
			case err != nil:
				t.Fatal(err)
			case q == proto.SetCompression:
				n, _ := packet.ParseSetCompression(body)
				c.compress(n)
			case q == proto.LoginPluginRequest:
				r, _ := packet.ParseLoginPluginRequest(body)
				late = append(late, r)
			case q == proto.LoginSuccess:
				done = true
			}
		}
		if len(late) != 3 {
			t.Fatalf("asked %d times", len(late))
		}
		for _, r := range late {
			a, _ := answers(r)
			c.send(proto.LoginPluginResponse, packet.AppendLoginPluginResponse(nil, a))
		}
		c.state(proto.Play)
		s := kind.next()
		s.admit()
		c.join()
		c.send(proto.CustomPayload, message("mod:play", "hello"))
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message("mod:play", "hello")) {
			t.Errorf("the server got %q", got)
		}
	})
}

// TestForgeRefused: whoever refuses such a client before its login success does it in the state that the client is in,
// and a client that says something else than answers, or nothing, is not waited for.
func TestForgeRefused(t *testing.T) {
	const protocol = 754
	host := "h" + forgeEras[protocol]
	strict := newBackend(t, "strict", func(b *fakeBackend) {
		b.refuse = func(p *peer) bool {
			p.w.Packet(p.id(proto.Disconnect), packet.AppendDisconnect(nil, p.v.Protocol, proto.Login, packet.Plain("wrong mods")))
			return true
		}
	})
	e := newEnv(t, nil, strict)
	start := func(e *env, name string) *peer {
		c := e.startAs(protocol, name, host)
		n, err := packet.ParseSetCompression(c.expect(proto.SetCompression))
		if err != nil {
			t.Fatal(err)
		}
		c.compress(n)
		return c
	}
	if got := start(e, "Steve").kicked(); got != "wrong mods" {
		t.Errorf("told %q", got)
	}
	e.ended(EndKicked, 1)

	asking := newBackend(t, "asking", func(b *fakeBackend) {
		b.quiet = true
		b.refuse = func(p *peer) bool { p.interrogate([][]byte{blocks}); return true }
	})
	e = newEnv(t, func(c *Config) { c.Settings.Timeouts.Login = time.Second }, asking)
	silent := start(e, "Silent")
	silent.expect(proto.LoginPluginRequest)
	if got := silent.kicked(); !strings.Contains(got, "slow_login") {
		t.Errorf("the silent one was told %q", got)
	}
	e.ended(EndHandshakeTimeout, 1)
	for what, say := range map[string]func(c *peer){
		"another id": func(c *peer) {
			c.send(proto.LoginPluginResponse, packet.AppendLoginPluginResponse(nil, packet.LoginPluginResponse{ID: 99}))
		},
		"nonsense": func(c *peer) { c.raw(2, []byte{0xff}) },
		"a second one": func(c *peer) {
			c.send(proto.LoginStart, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: "x"}))
		},
	} {
		c := start(e, "Odd")
		c.expect(proto.LoginPluginRequest)
		say(c)
		if got := c.kicked(); !strings.Contains(got, "Protocol error") {
			t.Errorf("%s: told %q", what, got)
		}
		until(t, func() bool { return e.core.Online() == 0 }, "%s: still there", func() []any { return []any{what} })
	}
	e.ended(EndProtocol, 3)

	// A player without a mod loader is none of this: the server is told so, and says itself what it thinks of it.
	c := newEnv(t, nil, questioner(t, "forge", serverMods)).login(protocol, "Vanilla")
	if got := c.kicked(); !strings.Contains(got, "Understood:false") {
		t.Errorf("a client without mods was told %q", got)
	}
}

// TestForgeForwarding: modern forwarding is the proxy's to answer in the midst of it.
func TestForgeForwarding(t *testing.T) {
	const protocol = 754
	asked := make(chan packet.LoginPluginResponse, 1)
	b := newBackend(t, "modern", func(b *fakeBackend) {
		b.refuse = func(p *peer) bool {
			id, _ := p.v.ID(proto.Login, proto.Clientbound, proto.LoginPluginRequest)
			p.w.Packet(id, packet.AppendLoginPluginRequest(nil, packet.LoginPluginRequest{ID: 7, Channel: "velocity:player_info", Data: []byte{4}}))
			_, _, body, err := p.try()
			if err != nil {
				return true
			}
			a, _ := packet.ParseLoginPluginResponse(body)
			asked <- a
			return p.interrogate([][]byte{serverMods, blocks}) != nil
		}
	})
	e := newEnv(t, func(c *Config) {
		c.Settings.Servers[0].Forwarding, c.Settings.Servers[0].Secret = backend.Modern, []byte("secret")
	}, b)
	c := e.startAs(protocol, "Steve", "h"+forgeEras[protocol])
	if n := c.modded(); n != 2 {
		t.Errorf("the client was asked %d times", n)
	}
	if a := <-asked; a.ID != 7 || !a.Understood || len(a.Data) < 32 {
		t.Errorf("forwarding was answered with %+v", a)
	}
	b.next().admit()
	c.join()
}
