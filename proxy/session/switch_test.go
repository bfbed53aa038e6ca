package session

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// worlds are join games that another implementation wrote, with what has to become of them, by protocol.
var worlds = sync.OnceValue(func() map[int32][3][]byte {
	lines, err := testkit.Lines[struct {
		Protocols            []int32
		Join, First, Respawn string
	}]("../packet/testdata/respawn.jsonl")
	if err != nil {
		panic(err)
	}
	all := map[int32][3][]byte{}
	for _, v := range lines {
		var body [3][]byte
		for i, s := range []string{v.Join, v.First, v.Respawn} {
			body[i], _ = hex.DecodeString(s)
		}
		for _, p := range v.Protocols {
			all[p] = body
		}
	}
	return all
})

// enter takes a player from the end of its login on a backend into play, with a join game that can be read.
func (p *peer) enter() {
	p.t.Helper()
	if p.v.HasConfiguration() {
		p.send(proto.RegistryData, []byte("registries"))
		p.send(proto.FinishConfiguration, nil)
		p.out = proto.Play
		p.await(proto.FinishConfiguration)
		p.in = proto.Play
		p.send(proto.JoinGame, joinBody)
		return
	}
	p.send(proto.JoinGame, worlds()[p.v.Protocol][0])
}

// follow returns a client that obeys until it is in a world. It returns the packets that it was sent on the way, in
// order.
func (p *peer) follow() (seen []seenPacket) {
	p.t.Helper()
	if p.in == proto.Config && p.out == proto.Play {
		p.send(proto.ConfigurationAcknowledged, nil)
		p.out = proto.Config
	}
	for {
		q, _, body, err := p.try()
		if err != nil {
			p.t.Fatalf("protocol %d: on the way to another server, after %v: %v", p.v.Protocol, seen, err)
		}
		seen = append(seen, seenPacket{q, p.in, body})
		if q == proto.StartConfiguration || q == proto.FinishConfiguration || q == proto.JoinGame {
			time.Sleep(p.slow)
		}
		switch q {
		case proto.StartConfiguration:
			if p.out == proto.Config { // the last configuration is unanswered yet
				p.send(proto.FinishConfiguration, nil)
				p.out = proto.Play
			}
			p.in = proto.Config
			p.send(proto.ConfigurationAcknowledged, nil)
			p.out = proto.Config
		case proto.FinishConfiguration:
			p.in = proto.Play
			p.send(proto.FinishConfiguration, nil)
			p.out = proto.Play
		case proto.KeepAlive:
			if !p.mute {
				p.send(proto.KeepAlive, body)
			}
		case proto.JoinGame:
			if p.out != p.in {
				p.send(proto.FinishConfiguration, nil)
				p.out = proto.Play
			}
			return seen
		case proto.Disconnect:
			text, _ := packet.ParseDisconnect(p.v.Protocol, p.in, body)
			p.t.Fatalf("protocol %d: disconnected: %s", p.v.Protocol, text)
		}
	}
}

type seenPacket struct {
	q    proto.Packet
	st   proto.State
	body []byte
}

func (s seenPacket) String() string { return fmt.Sprintf("%v in %v", s.q, s.st) }

func names(seen []seenPacket) string {
	var list []string
	for _, s := range seen {
		list = append(list, s.q.String())
	}
	return strings.Join(list, " ")
}

// moved follows the client to a backend, on which it has to arrive as a player who is heard there, and returns what the
// client saw on the way and the backend's end.
func (p *peer) moved(to *fakeBackend) ([]seenPacket, *peer) {
	p.t.Helper()
	got := make(chan *peer, 1)
	go func() {
		select {
		case s := <-to.peers:
			s.enter()
			got <- s
		case <-time.After(patienceInTests):
		}
	}()
	seen := p.follow()
	var s *peer
	select {
	case s = <-got:
	case <-time.After(patienceInTests):
		p.t.Fatal("the backend has not let the player in")
	}
	p.raw(0xf0, []byte("up"))
	for { // what every backend is told comes first
		_, id, body, err := s.try()
		if err != nil {
			p.t.Fatalf("protocol %d: the new backend hears nothing: %v", p.v.Protocol, err)
		}
		if id == 0xf0 {
			if string(body) != "up" {
				p.t.Fatalf("the new backend got %q", body)
			}
			break
		}
	}
	s.raw(0xf2, []byte("down"))
	for {
		_, id, body, err := p.try()
		if err != nil {
			p.t.Fatalf("protocol %d: the client hears nothing of the new backend: %v", p.v.Protocol, err)
		}
		if id == 0xf2 {
			return append(seen, seenPacket{}), s
		}
		seen = append(seen, seenPacket{p.v.Table(p.in, proto.Clientbound)[id], p.in, body})
	}
}

func (e *env) player() *Session {
	e.t.Helper()
	all := e.core.players.all()
	if len(all) != 1 {
		e.t.Fatalf("%d players", len(all))
	}
	return all[0]
}

// on waits until the player is on a server.
func (e *env) on(server string) {
	e.t.Helper()
	until(e.t, func() bool { return e.player().Server() == server }, "the player is on %q, not %q", func() []any {
		return []any{e.player().Server(), server}
	})
}

// settle does as play, up to where the session has noticed too.
func (e *env) settle(protocol int32, b *fakeBackend) (client, server *peer) {
	e.t.Helper()
	client, server = e.play(protocol, "Steve", b)
	e.on(b.name)
	return client, server
}

// TestSwitch takes a client of every version to another server and back, several times. Every packet on the way is the
// one that is due, and the backend that was left is left properly.
func TestSwitch(t *testing.T) {
	each(t, all(), func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		w := &watch{wants: func(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
			return []proto.Packet{proto.JoinGame}
		}}
		e := newEnv(t, func(c *Config) { c.Watch = []Watch{w} }, a, b)
		c, s := e.settle(protocol, a)
		register, brand := packet.RegisterChannel(protocol), message(packet.BrandChannel(protocol), "\x07vanilla")
		c.send(proto.ClientInformation, information(protocol))
		c.send(proto.CustomPayload, brand)
		c.send(proto.CustomPayload, message(register, "mod:one\x00mod:two"))
		for range 3 {
			s.try()
		}
		for _, to := range []*fakeBackend{b, a, b, a} {
			if err := e.player().Connect(strings.ToUpper(to.name)); err != nil {
				t.Fatal(err)
			}
			seen, next := c.moved(to)
			s.closed() // the old one
			s = next
			e.on(to.name)
			got := names(seen)
			want := []proto.Packet{proto.StartConfiguration, proto.RegistryData, proto.FinishConfiguration, proto.JoinGame}
			if protocol < 764 {
				want = []proto.Packet{proto.JoinGame, proto.Respawn}
				j := slices.IndexFunc(seen, func(x seenPacket) bool { return x.q == proto.JoinGame })
				if f := worlds()[protocol]; !bytes.Equal(seen[j].body, f[1]) || seen[j+1].q != proto.Respawn || !bytes.Equal(seen[j+1].body, f[2]) {
					t.Errorf("the client was taken into the world by %x, %x", seen[j].body, seen[j+1].body)
				}
			}
			at := 0
			for _, x := range seen {
				if at < len(want) && x.q == want[at] {
					at++
				}
			}
			if at < len(want) {
				t.Fatalf("the client saw %s, want %v in this order", got, want)
			}
			if n := strings.Count(got, proto.JoinGame.String()); n != 1 {
				t.Errorf("%d join games", n)
			}
		}
		if n := e.core.Counters.Switches.Done.Load(); n != 4 {
			t.Errorf("%d switches counted, want 4", n)
		}
		want := "on a; play down join_game 24; on b; play down join_game N; on a; play down join_game N; on b; play down join_game N; on a; play down join_game N"
		size := len(joinBody)
		if protocol < 764 {
			size = len(worlds()[protocol][0])
		}
		want = strings.ReplaceAll(strings.ReplaceAll(want, "24", fmt.Sprint(len(joinBody))), "N", fmt.Sprint(size))
		if got := strings.ReplaceAll(w.all(), "login", "join_game"); got != want {
			t.Errorf("the observer saw\n%s, want\n%s", got, want)
		}
	})
}

// TestStandingFacts: the new backend hears the client's settings, brand and channels, once each.
func TestStandingFacts(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		brand := message(packet.BrandChannel(protocol), "\x07vanilla")
		c.send(proto.ClientInformation, information(protocol))
		c.send(proto.CustomPayload, brand)
		c.send(proto.CustomPayload, message(packet.RegisterChannel(protocol), "mod:one\x00mod:two"))
		for range 3 {
			s.try()
		}
		e.player().Connect("b")
		done := make(chan struct{})
		go func() { defer close(done); c.follow() }()
		s = b.next()
		if !s.v.HasConfiguration() {
			s.enter()
		}
		if got := s.expect(proto.ClientInformation); !bytes.Equal(got, information(protocol)) {
			t.Errorf("client information %q", got)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, brand) {
			t.Errorf("%q, want the brand", got)
		}
		if got := s.expect(proto.CustomPayload); !bytes.Equal(got, message(packet.RegisterChannel(protocol), "mod:one\x00mod:two")) {
			t.Errorf("%q, want the channels", got)
		}
		if s.v.HasConfiguration() {
			s.enter()
		}
		<-done
	})
}

// TestCleanUp: what a backend put on the screen of a client that has no configuration phase is taken away, whether the
// player leaves or the backend does; where there is one, the configuration does it.
func TestCleanUp(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		for _, crash := range []bool{false, true} {
			a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
			e := newEnv(t, nil, a, b)
			c, s := e.settle(protocol, a)
			hidden := uuid.New()
			list := func(p packet.PlayerInfo) {
				s.send(proto.PlayerInfo, packet.AppendPlayerInfo(nil, protocol, p))
			}
			list(packet.PlayerInfo{Actions: packet.InfoAdd, Players: []packet.ListedPlayer{{ID: hidden, Name: "hidden"}}})
			crowd := map[uuid.UUID]bool{} // as servers that draw with the player list send
			for range 25 {
				all := packet.PlayerInfo{Actions: packet.InfoAdd}
				for range 400 {
					id := uuid.New()
					crowd[id] = true
					all.Players = append(all.Players, packet.ListedPlayer{ID: id, Name: "entry"})
				}
				list(all)
			}
			remove := proto.PlayerInfo
			if protocol >= 761 {
				remove = proto.PlayerRemove
			}
			s.send(remove, packet.AppendPlayerRemove(nil, protocol, hidden))
			bar, over := uuid.New(), uuid.New()
			if protocol >= 107 {
				for _, id := range []uuid.UUID{bar, over} {
					s.send(proto.BossBar, append(field.AppendVarInt(field.AppendUUID(nil, id), 0), "title and so on"...))
				}
				s.send(proto.BossBar, field.AppendVarInt(field.AppendUUID(nil, over), relay.BossRemove))
			}
			bundled := protocol >= 762
			if bundled {
				s.send(proto.BundleDelimiter, nil)
			}
			s.raw(0xf3, nil)
			for {
				if _, id, _, err := c.try(); err != nil || id == 0xf3 {
					break
				}
			}
			if crash {
				s.conn.Close()
			} else if err := e.player().Connect("b"); err != nil {
				t.Fatal(err)
			}
			seen, _ := c.moved(b)
			until := slices.IndexFunc(seen, func(x seenPacket) bool {
				return x.q == proto.StartConfiguration || x.q == proto.JoinGame
			})
			before := seen[:until]
			find := func(q proto.Packet) (bodies [][]byte) {
				for _, x := range before {
					if x.q == q {
						bodies = append(bodies, x.body)
					}
				}
				return bodies
			}
			if bundled && before[0].q != proto.BundleDelimiter {
				t.Errorf("the bundle was not closed first: %v", before)
			}
			if n := len(find(proto.Title)) + len(find(proto.ClearTitles)); n != 1 {
				t.Errorf("%d resets of titles", n)
			}
			if protocol >= 764 {
				continue
			}
			got := find(remove)
			if len(got) != 1 {
				t.Fatalf("the player list is cleaned by %d packets", len(got))
			}
			ids, err := packet.ParsePlayerRemove(nil, got[0])
			if protocol < 761 {
				ids, _, err = packet.PlayersChanged(nil, protocol, got[0])
			}
			for _, id := range ids {
				delete(crowd, id)
			}
			if err != nil || len(ids) != 10_000 || len(crowd) != 0 {
				t.Errorf("%d entries are taken off, %d stay: %v", len(ids), len(crowd), err)
			}
			if got := find(proto.PlayerlistHeader); len(got) != 1 {
				t.Errorf("%d headers", len(got))
			}
			want := field.AppendVarInt(field.AppendUUID(nil, bar), relay.BossRemove)
			if got := find(proto.BossBar); protocol >= 107 && (len(got) != 1 || !bytes.Equal(got[0], want)) {
				t.Errorf("boss bars: %x, want %x", got, want)
			}
		}
	})
}

// chat waits for a message of ours to the client.
func (p *peer) chat(want string) {
	p.t.Helper()
	for {
		q, _, body, err := p.try()
		if err != nil {
			p.t.Fatalf("protocol %d: waiting for %q: %v", p.v.Protocol, want, err)
		}
		if (q == proto.SystemChat || q == proto.Chat) && bytes.Contains(body, []byte(want)) {
			return
		}
	}
}

// TestRefusedSwitch: whatever goes wrong before the other backend has taken over leaves the player where it is, with a
// message, and free to try again.
func TestRefusedSwitch(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a := newBackend(t, "a", nil)
		full := newBackend(t, "full", func(b *fakeBackend) {
			b.refuse = func(p *peer) bool {
				p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Plain("no room")))
				p.conn.Close()
				return true
			}
		})
		dead := newBackend(t, "dead", nil)
		dead.ln.Close()
		late := newBackend(t, "late", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Try = []string{"a"} }, a, full, dead, late)
		c, s := e.settle(protocol, a)
		p := e.player()
		stays := func() {
			t.Helper()
			c.raw(0xf0, []byte("still"))
			s.expectID(0xf0)
			s.raw(0xf2, nil)
			c.expectID(0xf2)
			if p.Server() != "a" {
				t.Errorf("the player is on %q", p.Server())
			}
		}
		if err := p.Connect("nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("a server that is not there: %v", err)
		}
		if err := p.Connect("A"); err == nil || !strings.Contains(err.Error(), "already connected") {
			t.Errorf("to the server the player is on: %v", err)
		}
		for server, why := range map[string]string{"full": "no room", "dead": "dead"} {
			if err := p.Connect(server); err != nil {
				t.Fatal(err)
			}
			c.chat(why)
			stays()
		}
		if protocol >= 764 {
			return // there login success is the moment
		}
		for _, end := range []func(*peer){
			func(s *peer) { s.conn.Close() },
			func(s *peer) {
				s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Play, packet.Plain("on second thought")))
			},
		} {
			if err := p.Connect("late"); err != nil {
				t.Fatal(err)
			}
			l := late.next()
			if err := p.Connect("full"); err == nil || !strings.Contains(err.Error(), "already connecting") {
				t.Errorf("two at a time: %v", err)
			}
			l.raw(0xf4, []byte("too early")) // nothing of it may reach the client before the join game
			stays()
			end(l)
			c.chat("late")
			stays()
		}
	})
}

// TestSwitchFailsAfterRelease: a backend that fails once it has the player is a lost backend. The next of the list
// takes the player, who is told why; when there is none the player is disconnected with the reason.
func TestSwitchFailsAfterRelease(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		for name, fail := range map[string]func(c, s *peer){
			"before the client answers": func(c, s *peer) { s.conn.Close() },
			"kick in configuration": func(c, s *peer) {
				s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Config, packet.Plain("not you")))
				s.conn.Close()
			},
		} {
			for _, alone := range []bool{false, true} {
				a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
				e := newEnv(t, func(c *Config) {
					c.Settings.Try = []string{"a"}
					if alone {
						c.Settings.Try = []string{"b"}
						c.Settings.Servers[0], c.Settings.Servers[1] = c.Settings.Servers[1], c.Settings.Servers[0]
					}
				}, a, b)
				start, bad := a, b
				if alone {
					start, bad = b, a
				}
				// With registries from the start, which the failing backend has not sent yet.
				c := e.login(protocol, "Steve")
				_, s := c.moved(start)
				e.on(start.name)
				if alone { // nowhere to go back to: the one server of the list is down by then
					start.ln.Close()
				}
				if err := e.player().Connect(bad.name); err != nil {
					t.Fatal(err)
				}
				x := bad.next()
				c.await(proto.StartConfiguration)
				c.in = proto.Config
				s.closed()
				fail(c, x)
				c.send(proto.ConfigurationAcknowledged, nil)
				c.out = proto.Config
				if alone {
					if got := c.kicked(); !strings.Contains(got, "server") && !strings.Contains(got, "not you") {
						t.Errorf("%s: told %q", name, got)
					}
					continue
				}
				seen, _ := c.moved(a)
				told := slices.ContainsFunc(seen, func(x seenPacket) bool {
					return x.q == proto.SystemChat && bytes.Contains(x.body, []byte("Cannot take you to "))
				})
				if !told {
					t.Errorf("%s: the player was not told: %v", name, seen)
				}
			}
		}
	})
}

// TestLatePackets: what a client still sends to the world it is being taken from reaches no backend, nor does its
// answer to the old one's keep-alive; its settings reach the new one.
func TestLatePackets(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 4711))
		c.expect(proto.KeepAlive)
		e.player().Connect("b")
		x := b.next()
		c.await(proto.StartConfiguration)
		c.in = proto.Config
		s.closed()
		c.raw(0xf1, []byte("late"))
		c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 4711))
		c.send(proto.CustomPayload, message("mod:one", "late"))
		c.send(proto.ClientInformation, information(protocol))
		x.send(proto.RegistryData, []byte("early"))
		c.send(proto.ConfigurationAcknowledged, nil)
		c.out = proto.Config
		if got := c.expect(proto.RegistryData); string(got) != "early" {
			t.Errorf("got %q", got)
		}
		c.send(proto.Pong, []byte{1, 2, 3, 4}) // to a ping of the old one's
		x.send(proto.Ping, []byte{5, 6, 7, 8})
		c.expect(proto.Ping)
		c.send(proto.Pong, []byte{5, 6, 7, 8})
		c.send(proto.Pong, []byte{5, 6, 7, 8}) // once is enough
		x.expect(proto.ClientInformation)
		if got := x.expect(proto.Pong); string(got) != "\x05\x06\x07\x08" {
			t.Errorf("got pong %x", got)
		}
		x.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 9))
		c.send(proto.KeepAlive, c.expect(proto.KeepAlive))
		x.expect(proto.KeepAlive)
	})
}

// TestLateAnswers: the answer to a keep-alive of the server that a player has left does not reach the next one, of
// versions whose clients do not say when they have left either.
func TestLateAnswers(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		s.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 4711))
		c.expect(proto.KeepAlive)
		e.player().Connect("b")
		_, x := c.moved(b)
		for id := range 2 {
			x.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, int64(id)))
			c.send(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 4711))
			c.send(proto.KeepAlive, c.await(proto.KeepAlive))
			got := x.await(proto.KeepAlive)
			if want := packet.AppendKeepAlive(nil, protocol, int64(id)); !bytes.Equal(got, want) {
				t.Errorf("the new server got %x, want %x", got, want)
			}
		}
	})
}

// TestReloadDuringSwitches: settings may be replaced at every moment of a switch, and of a way back from a lost server.
func TestReloadDuringSwitches(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		base := *e.core.settings.Load()
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				set := base
				set.Fallback.Strategy = Strategy(i % int(strategies))
				set.Servers, set.Try = slices.Clone(base.Servers), slices.Clone(base.Try)
				if i%2 == 1 {
					slices.Reverse(set.Servers)
					slices.Reverse(set.Try)
					set.Servers = append(set.Servers, backend.Server{Name: "spare", Address: "127.0.0.1:1"})
					set.Hosts = []Host{{Name: "*", Try: set.Try}}
				}
				e.core.Apply(set)
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		defer func() { close(stop); <-stopped }()
		c := e.login(protocol, "Steve")
		var s *peer
		at := a
		select { // wherever the order of the moment says
		case s = <-a.peers:
		case s = <-b.peers:
			at = b
		case <-time.After(patienceInTests):
			t.Fatal("nobody has come")
		}
		admitted := make(chan struct{})
		go func() { defer close(admitted); s.admit() }()
		c.join()
		<-admitted
		e.on(at.name)
		for i := range 20 {
			to := map[*fakeBackend]*fakeBackend{a: b, b: a}[at]
			if i%4 == 3 {
				s.conn.Close()
			} else if err := e.player().Connect(to.name); err != nil {
				t.Fatal(err)
			}
			_, s = c.moved(to)
			e.on(to.name)
			at = to
		}
	})
}

// TestBothOrders: the client's acknowledgement of the end of its configuration and the new backend's join game may
// cross.
func TestBothOrders(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		for _, joinFirst := range []bool{false, true} {
			a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
			e := newEnv(t, nil, a, b)
			c, _ := e.settle(protocol, a)
			e.player().Connect("b")
			x := b.next()
			c.await(proto.StartConfiguration)
			c.in = proto.Config
			c.send(proto.ConfigurationAcknowledged, nil)
			c.out = proto.Config
			x.send(proto.FinishConfiguration, nil)
			x.out = proto.Play
			c.expect(proto.FinishConfiguration)
			c.in = proto.Play
			ack := func() { c.send(proto.FinishConfiguration, nil); c.out = proto.Play }
			if !joinFirst {
				ack()
				x.expect(proto.FinishConfiguration)
			}
			x.send(proto.JoinGame, joinBody)
			c.expect(proto.JoinGame)
			if joinFirst {
				ack()
				x.expect(proto.FinishConfiguration)
			}
			x.in = proto.Play
			e.on("b")
			c.raw(0xf0, nil)
			x.expectID(0xf0)
		}
	})
}

// TestUnansweredSwitch: a client that does not acknowledge is disconnected with a reason, and both backends are left;
// however often it comes back.
func TestUnansweredSwitch(t *testing.T) {
	times := uint64(5)
	if long() {
		times = 100
	}
	each(t, configured, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		patient := *e.core.settings.Load()
		hasty := patient
		hasty.Timeouts.ConfigAnswer = 50 * time.Millisecond
		for n := range times {
			e.core.Apply(patient)
			c, s := e.settle(protocol, a)
			e.core.Apply(hasty)
			e.player().Connect("b")
			x := b.next()
			c.await(proto.StartConfiguration)
			c.in = proto.Config
			if got := c.kicked(); !strings.Contains(got, "did not answer") {
				t.Errorf("told %q", got)
			}
			s.closed()
			x.closed()
			e.ended(EndUnanswered, n+1)
			until(t, func() bool { return e.core.Online() == 0 }, "the player is still there", func() []any { return nil })
		}
	})
}

// TestSwitchWaitsForConfiguration: a player whose backend is just configuring it goes when that is over.
func TestSwitchWaitsForConfiguration(t *testing.T) {
	each(t, configured, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		gate := make(chan struct{})
		b.refuse = func(*peer) bool { <-gate; return false }
		e.player().Connect("b")
		s.send(proto.StartConfiguration, nil)
		s.out = proto.Config
		c.expect(proto.StartConfiguration)
		c.in = proto.Config
		close(gate)
		c.send(proto.ConfigurationAcknowledged, nil)
		c.out = proto.Config
		s.expect(proto.ConfigurationAcknowledged)
		s.in = proto.Config
		s.send(proto.RegistryData, []byte("a's"))
		if got := c.expect(proto.RegistryData); string(got) != "a's" {
			t.Fatalf("got %q", got)
		}
		s.send(proto.FinishConfiguration, nil)
		s.out = proto.Play
		s.send(proto.JoinGame, joinBody)
		c.follow()
		c.moved(b)
		s.closed()
		e.on("b")
	})
}

// TestFallback: a player whose server kicks it, dies or falls silent is on the next one of the list and told why; the
// one that failed is not asked again.
func TestFallback(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		for _, kick := range []bool{true, false} {
			a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
			e := newEnv(t, nil, a, b)
			c, s := e.settle(protocol, a)
			why := "closed the connection"
			if kick {
				why = "restarting"
				s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Play, packet.Plain(why)))
			} else {
				s.conn.Close()
			}
			seen, s := c.moved(b)
			if !slices.ContainsFunc(seen, func(x seenPacket) bool {
				return (x.q == proto.SystemChat || x.q == proto.Chat) && bytes.Contains(x.body, []byte(why))
			}) {
				t.Errorf("the player was not told %q: %v", why, seen)
			}
			e.on("b")
			// The chain goes on: both have failed now.
			s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Play, packet.Plain("and here")))
			if got := c.kicked(); !strings.Contains(got, why) {
				t.Errorf("told %q at the end, want what began it", got)
			}
			if n := e.core.Counters.Dials.Load(); n != 2 {
				t.Errorf("%d dials, want 2", n)
			}
			if n := e.core.Counters.Switches.Rescued.Load(); n != 1 {
				t.Errorf("%d rescues counted, want 1", n)
			}
		}
	})
}

// TestFinalReasons: a ban is a ban, in play and at the login.
func TestFinalReasons(t *testing.T) {
	for _, protocol := range []int32{47, 758, 763, 769} {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Settings.FinalReasons = []string{"", "BANNED"} }, a, b)
		c, s := e.settle(protocol, a)
		s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Play, packet.Plain("You are banned.")))
		if got := c.kicked(); got != "You are banned." {
			t.Errorf("protocol %d: told %q", protocol, got)
		}
		a.refuse = func(p *peer) bool {
			p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Plain("Banned here too")))
			p.conn.Close()
			return true
		}
		if got := e.login(protocol, "Alex").kicked(); got != "Banned here too" {
			t.Errorf("protocol %d: told %q", protocol, got)
		}
		if n := e.core.Counters.Dials.Load(); n != 2 {
			t.Errorf("protocol %d: %d dials, want 2", protocol, n)
		}
	}
}

// TestOldServerDiesDuringSwitch: the one on the way to is then the rescue.
func TestOldServerDiesDuringSwitch(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		gate := make(chan struct{})
		asked := make(chan struct{})
		a := newBackend(t, "a", nil)
		b := newBackend(t, "b", func(b *fakeBackend) { b.refuse = func(*peer) bool { close(asked); <-gate; return false } })
		e := newEnv(t, func(c *Config) { c.Settings.Try = []string{"a"} }, a, b)
		c, s := e.settle(protocol, a)
		e.player().Connect("b")
		<-asked
		s.conn.Close()
		e.on("")
		close(gate)
		c.moved(b)
		e.on("b")
	})
}

// TestFirstWord: what a client says at the very sight of its new world reaches the server it has come to, however fast
// it is: it is not the old one's any more from when that was left.
func TestFirstWord(t *testing.T) {
	each(t, []int32{47, 340, 754, 763}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		var c *peer
		w := &watch{
			wants: func(*proto.Version, proto.State, proto.Dir) []proto.Packet { return nil },
			on: func(_ Player, what string) {
				if what == "on b" { // a has been left, and b's join game is next
					c.send(proto.CustomPayload, message("mod:first", "word"))
					time.Sleep(20 * time.Millisecond) // long enough for a reader that does the wrong thing
				}
			},
		}
		e := newEnv(t, func(cfg *Config) { cfg.Watch, cfg.Settings.Try = []Watch{w}, []string{"a"} }, a, b)
		c, _ = e.play(protocol, "Steve", a)
		p := e.core.Players()[0]
		until(t, func() bool { return p.Server() == "a" }, "not on a", func() []any { return nil })
		if err := p.Connect("b"); err != nil {
			t.Fatal(err)
		}
		s := b.next()
		s.send(proto.JoinGame, joinBody)
		if got := s.await(proto.CustomPayload); !bytes.Equal(got, message("mod:first", "word")) {
			t.Errorf("b got %q", got)
		}
	})
}
