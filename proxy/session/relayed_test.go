package session

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// unheard is a protocol that nobody knows.
const unheard = 900

// These want everything and must hear of nobody: they have no methods to be told by.
type (
	anyWatch     = Watch // whose method has its name
	deafWatch    struct{ anyWatch }
	deafHooks    struct{ Hooks }
	deafChannels struct{ Channels }
	deafBackends struct{ Backchannel }
)

func every(v *proto.Version, s proto.State, d proto.Dir) (all []proto.Packet) {
	for _, p := range v.Table(s, d) {
		all = append(all, p)
	}
	return all
}

func (deafWatch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return every(v, s, d)
}
func (deafHooks) Wants(v *proto.Version, d proto.Dir) []proto.Packet { return every(v, proto.Play, d) }
func (deafChannels) Owns(string) bool                                { return true }

// A player of a version that nobody knows is logged in as the newest one is, and from there on what the player and the
// server say goes through as it is, whatever its ids mean in other versions, compressed or not on either side.
func TestUnknownVersionIsRelayed(t *testing.T) {
	for _, thresholds := range [][2]int{{-1, -1}, {256, 256}, {256, -1}, {-1, 64}} {
		t.Run(fmt.Sprint(thresholds), func(t *testing.T) {
			b := newBackend(t, "main", func(b *fakeBackend) { b.threshold = thresholds[1] })
			e := newEnv(t, func(c *Config) {
				c.Watch, c.Hooks, c.Channels, c.Backends = []Watch{deafWatch{}}, deafHooks{}, []Channels{deafChannels{}}, deafBackends{}
				c.Settings.Threshold = thresholds[0]
			}, b)
			client := e.login(unheard, "Ann")
			server := b.next()
			if server.handshake.Protocol != unheard || server.login.Name != "Ann" {
				t.Errorf("the server was told %+v, %+v", server.handshake, server.login)
			}
			long := bytes.Repeat([]byte("long"), 200)
			var ids sync.WaitGroup
			for _, way := range [][2]*peer{{client, server}, {server, client}} {
				ids.Go(func() {
					for id := range int32(300) {
						way[0].w.Packet(id, field.AppendVarInt(nil, id))
						way[0].w.Packet(id, long)
					}
				})
				for id := range int32(300) {
					if got := way[1].expectID(id); !bytes.Equal(got, field.AppendVarInt(nil, id)) {
						t.Fatalf("packet %d arrived as %q", id, got)
					}
					if got := way[1].expectID(id); !bytes.Equal(got, long) {
						t.Fatalf("packet %d arrived as %q", id, got)
					}
				}
				ids.Wait()
			}
			p := e.core.Players()[0]
			if !p.Relayed() || p.Server() != "main" || p.Protocol() != unheard {
				t.Errorf("the player is on %q, of %d, relayed %v", p.Server(), p.Protocol(), p.Relayed())
			}
			for what, err := range map[string]error{
				"plugin message": p.SendPlugin("a:b", nil), "action bar": p.ActionBar("x"), "chat": p.SendChat(packet.Plain("x")),
				"switch": p.Connect("main"), "transfer": p.Transfer("h", 1), "to the server": p.ToServer("a:b", nil),
			} {
				if err == nil {
					t.Errorf("%s: no error", what)
				}
			}
			c := &e.core.Counters
			if c.Relayed.Players.Load() != 1 || c.Relayed.Logins.Load() != 1 {
				t.Error("not counted")
			}
			// What the server says last arrives, and the session ends with the server.
			server.raw(29, []byte("bye"))
			server.conn.Close()
			if got := client.expectID(29); string(got) != "bye" {
				t.Errorf("the goodbye arrived as %q", got)
			}
			client.closed()
			e.ended(EndBackendLost, 1)
			if c.Relayed.Players.Load() != 0 {
				t.Error("still counted")
			}
			if n := strings.Count(e.log.String(), "players of a version that is not known here"); n != 1 {
				t.Errorf("%d lines in the log, want one", n)
			}
		})
	}
}

// Each version has its line in the log once, and strangers cannot make the counters grow.
func TestUnknownVersionsAreToldApart(t *testing.T) {
	var r Relayed
	for p := range int32(100) {
		if first := r.add(1000 + p); first != (p < maxRelayed) {
			t.Errorf("%d: first %v", p, first)
		}
		if r.add(1000 + p) {
			t.Errorf("%d is new twice", p)
		}
	}
	n := 0
	r.Each(func(_ int32, logins uint64) {
		if n++; logins != 2 {
			t.Errorf("%d logins", logins)
		}
	})
	if n != maxRelayed || r.Logins.Load() != 200 {
		t.Errorf("%d versions, %d logins", n, r.Logins.Load())
	}
}

// Before its login success everything can be said to such a client: no server, one that refuses, and the next is tried.
func TestUnknownVersionIsToldWhy(t *testing.T) {
	no := newBackend(t, "no", func(b *fakeBackend) {
		b.quiet = true
		b.refuse = func(p *peer) bool {
			p.w.Packet(0, packet.AppendDisconnect(nil, p.v.Protocol, proto.Login, packet.Plain("not "+p.login.Name)))
			p.conn.Close()
			return true
		}
	})
	yes := newBackend(t, "yes", nil)
	e := newEnv(t, func(c *Config) { c.Settings.Threshold = -1 }, no)
	if got := e.start(unheard, "Ann").kicked(); got != "not Ann" {
		t.Errorf("told %q", got)
	}
	e.ended(EndKicked, 1)
	both := newEnv(t, nil, no, yes)
	client := both.login(unheard, "Bob")
	server := yes.next()
	client.raw(7, []byte("hello"))
	if got := server.expectID(7); string(got) != "hello" {
		t.Errorf("arrived as %q", got)
	}
	both.core.Players()[0].Disconnect("out")
	client.closed()
	both.ended(EndDisconnected, 1)
}

// A server may ask such a client in its login, as modern forwarding and mods do.
func TestUnknownVersionAnswersTheServer(t *testing.T) {
	answered := make(chan packet.LoginPluginResponse, 1)
	b := newBackend(t, "main", func(b *fakeBackend) {
		b.refuse = func(p *peer) bool {
			p.send(proto.LoginPluginRequest, packet.AppendLoginPluginRequest(nil, packet.LoginPluginRequest{ID: 9, Channel: "mod:hello", Data: []byte("q")}))
			_, _, body, err := p.try()
			if err != nil {
				return true
			}
			a, _ := packet.ParseLoginPluginResponse(body)
			answered <- a
			return false
		}
	})
	e := newEnv(t, func(c *Config) { c.Settings.Threshold = -1 }, b)
	client := e.start(unheard, "Ann")
	q := packet.LoginPluginRequest{}
	for {
		p, _, body, err := client.try()
		if err != nil {
			t.Fatal(err)
		}
		if p == proto.LoginPluginRequest {
			q, _ = packet.ParseLoginPluginRequest(body)
			break
		}
	}
	client.send(proto.LoginPluginResponse, packet.AppendLoginPluginResponse(nil, packet.LoginPluginResponse{ID: q.ID, Understood: true, Data: []byte("a")}))
	if a := <-answered; a.ID != 9 || string(a.Data) != "a" || q.Channel != "mod:hello" {
		t.Errorf("asked %+v, answered %+v", q, a)
	}
	client.loggedIn()
	b.next().raw(3, nil)
	client.expectID(3)
}

// A login that the newest version does not have ends in words, and the log says what to do.
func TestUnknownVersionWithAnotherLogin(t *testing.T) {
	for what, say := range map[string]func(p *peer){
		"login start": func(p *peer) { p.raw(0, field.AppendString(nil, "Ann")) },
		"first id":    func(p *peer) { p.raw(4, nil) },
	} {
		e := newEnv(t, nil)
		p := e.connect(unheard, packet.IntentLogin)
		say(p)
		if got := p.kicked(); !strings.Contains(got, "1.8-26.3") {
			t.Errorf("%s: told %q", what, got)
		}
		e.ended(EndOutdated, 1)
		if !strings.Contains(e.log.String(), "level=WARN") {
			t.Errorf("%s: nothing in the log", what)
		}
	}
	// Of a version that is known it is the client's fault.
	e := newEnv(t, nil)
	p := e.connect(proto.Max, packet.IntentLogin)
	p.raw(4, nil)
	p.closed()
	e.ended(EndGarbage, 1)
}

// Which versions are taken.
func TestUnknownVersionPolicy(t *testing.T) {
	for _, c := range []struct {
		protocol int32
		takes    map[Unknown]bool
	}{
		{-1, nil}, {0, nil}, {46, nil}, {48, nil}, {500, nil}, {proto.Max, nil}, // the last is known: another matter
		{proto.Max + 1, map[Unknown]bool{UnknownPass: true, UnknownSnapshots: true}},
		{99999, map[Unknown]bool{UnknownPass: true, UnknownSnapshots: true}},
		{1 << 30, map[Unknown]bool{UnknownSnapshots: true}}, {1<<30 + 400, map[Unknown]bool{UnknownSnapshots: true}},
	} {
		for _, u := range []Unknown{UnknownPass, UnknownSnapshots, UnknownRefuse} {
			if got := u.Takes(c.protocol); got != c.takes[u] {
				t.Errorf("%d with %d: %v", c.protocol, u, got)
			}
		}
	}
}

// A server or a client that falls silent ends such a session too.
func TestUnknownVersionFallsSilent(t *testing.T) {
	b := newBackend(t, "main", nil)
	e := newEnv(t, func(c *Config) { c.Settings.Timeouts.Read = 300 * time.Millisecond }, b)
	client := e.login(unheard, "Ann")
	server := b.next()
	go io.Copy(io.Discard, server.conn)
	client.closed()
	until(t, func() bool {
		return e.core.Counters.Ended(EndBackendTimeout)+e.core.Counters.Ended(EndIdle) == 1
	}, "the session has not ended", func() []any { return nil })
}

// The newest versions' traits in a session: a session id in login success, the player vouched for in the join game, and
// no post effects of the last server on the next.
func TestTraitsOfTheNewest(t *testing.T) {
	for _, protocol := range []int32{proto.V26_1, proto.V26_2, proto.V26_3} {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Threshold = -1 }, a, b)
		client := e.start(protocol, "Ann")
		if s := client.loggedIn(); (s.Session != [16]byte{}) != (protocol >= proto.V26_2) {
			t.Errorf("%d: session %v", protocol, s.Session)
		}
		server := a.next()
		if id, ok := server.v.ID(proto.Config, proto.Clientbound, proto.PostEffects); ok != (protocol >= proto.V26_3) {
			t.Errorf("%d: post effects %v", protocol, ok)
		} else if ok {
			server.raw(id, field.AppendString([]byte{1}, "minecraft:blur"))
			client.expect(proto.PostEffects)
		}
		go server.admit()
		client.join()
		e.on("a") // it is noted after the client has seen the join game
		if err := e.player().Connect("b"); err != nil {
			t.Fatal(err)
		}
		client.await(proto.StartConfiguration)
		client.state(proto.Config)
		client.out = proto.Play
		client.send(proto.ConfigurationAcknowledged, nil)
		client.out = proto.Config
		next := b.next()
		next.send(proto.FinishConfiguration, nil)
		cleared := 0
		for {
			p, _, body, err := client.try()
			if err != nil {
				t.Fatal(err)
			}
			if p == proto.PostEffects && bytes.Equal(body, []byte{0}) {
				cleared++
			}
			if p == proto.FinishConfiguration {
				break
			}
		}
		if want := protocol >= proto.V26_3; (cleared == 1) != want || cleared > 1 {
			t.Errorf("%d: the effects of the last server were cleared %d times", protocol, cleared)
		}
	}
}

// A backend behind a proxy says that nobody is authenticated. The proxy knows better, from the version on that says so.
func TestVouchedFor(t *testing.T) {
	for protocol, want := range map[int32]bool{proto.V26_1: false, proto.V26_2: true, proto.V26_3: true} {
		for _, isOnline := range []bool{true, false} {
			s := &Session{core: new(Core), client: client{version: proto.Lookup(protocol)}}
			s.log, s.client.online = newEnv(t, nil).core.cfg.Log, isOnline
			join := newestJoin(protocol)
			was := bytes.Clone(join)
			got := s.vouched(join)
			if (got != nil) != (want && isOnline) || !bytes.Equal(join, was) {
				t.Fatalf("%d, online %v: %x", protocol, isOnline, got)
			}
			if got != nil && (got[len(got)-2] != 1 || !bytes.Equal(got[:len(got)-2], was[:len(was)-2]) || got[len(got)-1] != was[len(was)-1]) {
				t.Errorf("%d: %x became %x", protocol, was, got)
			}
			if got := s.vouched([]byte{0, 0, 0, 1}); got != nil {
				t.Errorf("%d: half a join game became %x", protocol, got)
			}
			if n := s.core.Counters.Undecoded.Count(proto.JoinGame); (n == 1) != (want && isOnline) {
				t.Errorf("%d, online %v: %d counted", protocol, isOnline, n)
			}
		}
	}
}

// newestJoin returns a join game of 775 and later.
func newestJoin(protocol int32) []byte {
	b := []byte{0, 0, 0, 5, 0, 1}
	b = field.AppendString(b, "minecraft:overworld")
	b = append(b, 20, 8, 8, 0, 1, 0, 0)
	b = field.AppendString(b, "minecraft:overworld")
	b = field.AppendI64(b, 1)
	b = append(b, 0)
	if protocol >= proto.V26_3 {
		b = append(b, 0)
	} else {
		b = append(b, 0xff)
	}
	b = append(b, 0, 1, 0, 0, 63)
	if protocol >= proto.V26_2 {
		b = append(b, 0)
	}
	return append(b, 0)
}

// A backend may be of any version as well: its log-in is the newest one's.
func TestDialAsAnUnknownVersion(t *testing.T) {
	b := newBackend(t, "main", func(b *fakeBackend) { b.quiet = true })
	c, err := backend.Dial(t.Context(), backend.Server{Name: "main", Address: b.ln.Addr().String()}, backend.Identity{Protocol: unheard, Name: "Ann"}, backend.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Reader.Release()
	if _, err := backend.Dial(t.Context(), backend.Server{Name: "main", Address: b.ln.Addr().String()}, backend.Identity{Protocol: 500, Name: "Ann"}, backend.Timeouts{}); err == nil {
		t.Error("a version between two is dialled")
	}
}
