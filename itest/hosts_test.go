package itest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// shown returns what a client of some version, which came by a host name, sees in the server list.
func shown(t testing.TB, p *program, protocol int32, host string) (s pong) {
	t.Helper()
	w := newWire(t, dial(t, p.addr, ""), proto.V1_8)
	write(t, w.TCPConn, hello(protocol, host, packet.IntentStatus), framed(0, nil))
	_, body := w.next(proto.Status)
	b, err := packet.ParseStatusResponse(body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	w.Close()
	return s
}

// twoVersions are an old one and a new one.
var twoVersions = []string{"1.8.8", "26.3"}

// TestForcedHosts: real players come by different names and are on different servers, which they are told beforehand,
// and again after the server they came for is gone.
func TestForcedHosts(t *testing.T) {
	iconFile, iconBytes := icon(t, 64)
	for _, version := range twoVersions {
		t.Run(version, func(t *testing.T) {
			lobby, survival := peer.Backend(t, version, peer.Legacy, ""), peer.Backend(t, version, peer.Legacy, "")
			line := newCable(t, survival.Addr)
			p := start(t, fmt.Sprintf(`online: false
try: [lobby]
servers: {lobby: {address: %q}, survival: {address: %q}}
forwarding: {mode: legacy}
status: {motd: Everything, max-players: 7}
unknown-hosts: refuse
hosts:
  survival.example.net: {try: [Survival, lobby], motd: "<green>Survive</green>", icon: %q, max-players: 20}
  "*.example.net": {motd: Come in}
  localhost: {}
`, lobby.Addr, line.addr, iconFile))
			bots, raws := peer.NewBots(t, version), peer.NewRaw(t, version)
			protocol := bots.Protocol

			ann := bots.DialAs(p.addr, "Ann", "Survival.Example.NET")
			if e := survival.Joined("Ann"); e.Forwarded == nil || e.Forwarded.Host != "survival.example.net" {
				t.Errorf("Ann came as %+v", e.Forwarded)
			}
			ann.Spawned()
			bots.DialAs(p.addr, "Bob", "bedwars.example.net").Spawned()
			lobby.Joined("Bob")
			raws.Dial(p.addr, peer.Login{Name: "Cat", Host: "survival.example.net.\x00FML\x00"})
			survival.Joined("Cat")
			raws.Dial(p.addr, peer.Login{Name: "Dan", Host: "localhost"})
			lobby.Joined("Dan")
			eve := raws.Dial(p.addr, peer.Login{Name: "Eve", Host: "203.0.113.7"})
			eve.Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, "address") })
			if n := lobby.Count("join", "") + survival.Count("join", ""); n != 4 {
				t.Errorf("%d joined, want 4", n)
			}

			for host, want := range map[string]struct {
				text string
				max  int
				icon bool
			}{
				"survival.example.net": {"Survive", 20, true}, "SURVIVAL.example.net.\x00FML\x00": {"Survive", 20, true},
				"x.y.example.net": {"Come in", 7, false}, "localhost": {"Everything", 7, false},
			} {
				s := shown(t, p, protocol, host)
				if !strings.Contains(string(s.Description), want.text) || s.Players.Max != want.max || s.Players.Online != 4 ||
					(s.Favicon == "data:image/png;base64,"+base64.StdEncoding.EncodeToString(iconBytes)) != want.icon {
					t.Errorf("by %q: %s, %+v, icon of %d characters", host, s.Description, s.Players, len(s.Favicon))
				}
			}
			c := dial(t, p.addr, "")
			write(t, c, hello(protocol, "example.net", packet.IntentStatus), framed(0, nil))
			if b, _ := ended(t, c); len(b) != 0 {
				t.Errorf("a ping by a name that is not ours is answered with %q", b)
			}

			ann.Skip("moved")
			line.kill()
			lobby.Joined("Ann")
			ann.Await("moved", nil)
		})
	}
}

// TestPassthrough: the server list shows what the servers behind it say, field by field, goes on to do so when they are
// gone, and shows what is its own when that has become too old.
func TestPassthrough(t *testing.T) {
	const version = "1.20.4"
	server := peer.Backend(t, version, peer.None, "")
	line := newCable(t, server.Addr)
	clients := peer.NewRaw(t, version)
	clients.Join(server.Addr, "Eve") // past the proxy, which knows nothing of Ann
	settings := func(cache string) string {
		return fmt.Sprintf(`online: false
try: [game, limbo]
servers: {game: {address: %q}}
status: {motd: Ours, max-players: 7, passthrough: [players], passthrough-cache: %s}
hosts:
  all.example.net: {passthrough: [all]}
  text.example.net: {passthrough: [description], motd: Nobody sees this}
  own.example.net: {passthrough: [none]}
  limbo.example.net: {try: [limbo]}
`, line.addr, cache)
	}
	long, short := start(t, settings("1h")), start(t, settings("100ms"))
	const theirs, ours = "stub", "Ours"
	check := func(p *program, host, text string, online, max int) {
		t.Helper()
		testkit.Until(t, fmt.Sprintf("%q and %d/%d players by %s", text, online, max, host), func() bool {
			s := shown(t, p, clients.Protocol, host)
			return strings.Contains(string(s.Description), text) && s.Players.Online == online && s.Players.Max == max && s.Version.Protocol == clients.Protocol
		})
	}
	all := func(p *program) {
		t.Helper()
		check(p, "localhost", ours, 1, 1000)
		check(p, "all.example.net", theirs, 1, 1000)
		check(p, "text.example.net", theirs, 0, 7)
		check(p, "own.example.net", ours, 0, 7)
		check(p, "limbo.example.net", ours, 0, 7)
	}
	all(long)
	all(short)
	if b := clients.Ping(long.addr); !strings.Contains(string(b), ours) || !strings.Contains(string(b), "1000") {
		t.Errorf("a real client sees %s", b)
	}
	line.kill()
	for _, host := range []string{"localhost", "all.example.net"} {
		if s := shown(t, long, clients.Protocol, host); s.Players.Online != 1 || s.Players.Max != 1000 {
			t.Errorf("by %s: %+v", host, s.Players)
		}
		check(short, host, ours, 0, 7)
	}
	line.mend()
	check(short, "all.example.net", theirs, 1, 1000)
}

// TestOddSample: what a plugin puts into the sample of a server does not keep clients from reading the list; what they
// can read they see.
func TestOddSample(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const ann = `{"name":"Ann","id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"}`
	answer := `{"version":{"name":"x","protocol":765},"description":"from behind","players":{"max":20,"online":3,"sample":[` +
		ann + `,{"name":"x","id":""},{"name":"x"},{"name":"x","id":null},{"name":"x","id":[1,2,3,4]},{"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5"},` +
		`{"name":"x","id":"069a79f444e94726a5befca90e38aaf5"},"x",null]}}`
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r, w := frame.NewReader(c, frame.Limits{}), frame.NewWriter(c)
				for n := range 3 { // handshake, request, and perhaps a ping
					f, err := r.Next()
					if err != nil {
						return
					}
					body, _ := r.Body(f)
					switch {
					case n == 1:
						w.Packet(0, field.AppendString(nil, answer))
					case n == 2:
						w.Packet(1, body)
					}
				}
			}()
		}
	}()
	p := start(t, fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}}\nstatus: {passthrough: [all]}\n", ln.Addr()))
	s := shown(t, p, 765, "localhost")
	testkit.Until(t, "the server's answer", func() bool {
		s = shown(t, p, 765, "localhost")
		return strings.Contains(string(s.Description), "from behind")
	})
	if n := s.Players.Sample; len(n) != 1 || n[0].Name != "Ann" || n[0].ID != "069a79f4-44e9-4726-a5be-fca90e38aaf5" {
		t.Errorf("the sample is %+v", n)
	}
}

// TestLite: players of every version, and of none that there is, play on a server that sees their own connection: every
// byte of the handshake, and where they are. The proxy counts them, and does not know them.
func TestLite(t *testing.T) {
	for _, version := range twoVersions {
		t.Run(version, func(t *testing.T) {
			server := peer.Backend(t, version, peer.None, "")
			line := newCable(t, server.Addr)
			p := start(t, fmt.Sprintf(`online: true
session-server: http://127.0.0.1:9
servers: {gone: {address: %q}, pack: {address: %q}}
status: {motd: Ours, passthrough-cache: 100ms}
hosts: {"*.pack.example": {lite: [gone, pack], motd: The pack is down}, gone.example: {lite: [gone]}}
`, freeAddr(t), line.addr))
			bots, raws := peer.NewBots(t, version), peer.NewRaw(t, version)

			const host = "Best.Pack.Example.\x00FML3\x00and more"
			ann := bots.DialAs(p.addr, "Ann", host)
			if e := server.Joined("Ann"); e.Host != host || e.Protocol != bots.Protocol {
				t.Errorf("the server sees %q, protocol %d", e.Host, e.Protocol)
			}
			ann.Spawned()
			at := ann.Goto(12, 6)
			server.Await("pos", "Ann", func(e peer.Event) bool { return math.Hypot(e.X-at.X, e.Z-at.Z) < 1 })
			server.Say("Ann", "hello Ann")
			ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "hello Ann") })
			ann.Chat("hello server")
			server.Await("chat", "Ann", func(e peer.Event) bool { return strings.Contains(e.Text, "hello server") })
			ann.Chat("/server limbo") // which is the server's own affair
			server.Await("chat", "Ann", func(e peer.Event) bool { return strings.Contains(e.Text, "server limbo") })
			bob := raws.Dial(p.addr, peer.Login{Name: "Bob", Host: "x.pack.example"})
			server.Joined("Bob")
			p.counts("earshot_players", 0)
			p.counts("earshot_lite_connections", 2)
			testkit.Until(t, "the server's own answer", func() bool {
				s := shown(t, p, bots.Protocol, "best.pack.example")
				return strings.Contains(string(s.Description), "stub") && s.Players.Online == 2 && s.Players.Max == 1000
			})
			if s := shown(t, p, bots.Protocol, "localhost"); !strings.Contains(string(s.Description), "Ours") || s.Players.Online != 0 {
				t.Errorf("by another name: %s, %+v", s.Description, s.Players)
			}

			bob.Quit()
			server.Await("leave", "Bob", nil)
			testkit.Until(t, "Bob's connection to be gone", func() bool { return p.metric("earshot_lite_connections") == 1 })
			server.Kick("Ann", "enough for today")
			ann.Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, "enough for today") })
			ann.Await("end", nil)

			cat := raws.Dial(p.addr, peer.Login{Name: "Cat", Host: "gone.example"})
			cat.Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, "No server is available") })
			line.kill()
			testkit.Until(t, "our answer for a server that is gone", func() bool {
				s := shown(t, p, bots.Protocol, "best.pack.example")
				return strings.Contains(string(s.Description), "The pack is down") && s.Players.Online == 0
			})
			line.mend()

			// A connection that is passed on goes with the proxy.
			raws.Dial(p.addr, peer.Login{Name: "Dan", Host: "x.pack.example"}).Await("moved", nil)
			p.stop()
			server.Await("leave", "Dan", nil)
		})
	}
}

// TestHostileHosts: whatever strangers claim to come by, and however they go on, it costs the proxy and its servers
// little, and leaves nothing behind.
func TestHostileHosts(t *testing.T) {
	silent := serving(t, hold)
	p := start(t, fmt.Sprintf(`online: false
servers: {pack: {address: %q}}
timeouts: {first-byte: 1s, login: 2s, read: 2s, write: 2s}
status: {passthrough: [all]}
hosts: {"*.pack.example": {lite: [pack]}, a.example: {motd: A}}
`, silent))
	clients := peer.NewRaw(t, "1.16.5")
	clients.Join(p.addr, "First").Quit() // what is made once has been made
	testkit.Until(t, "the first player to be gone", func() bool { return p.metric("earshot_players") == 0 })
	before := p.cost()

	var open []net.Conn
	long := strings.Repeat("x.", 140) + "pack.example"
	for i := range 100 {
		for _, host := range []string{
			"a.pack.example", long, strings.Repeat(".", 300), "\x00\x00\x00", "*.pack.example", "\xff\xfe.pack.example", "*", "",
			fmt.Sprintf("%d.pack.example", i), "a.pack.example\x00" + strings.Repeat("\x00", 50), strings.Repeat("a", 400),
		} {
			for _, intent := range []packet.Intent{packet.IntentStatus, packet.IntentLogin} {
				c, err := net.Dial("tcp", p.addr)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
				c.Write(hello(int32(i*37), host, intent))
				switch i % 4 {
				case 0:
					c.Write(framed(0, nil))
				case 1:
					c.(*net.TCPConn).CloseWrite()
				case 2:
					c.Write([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
				}
			}
		}
	}
	testkit.Until(t, "some to be passed on", func() bool { return p.metric("earshot_lite_connections_total") > 100 })
	for _, c := range open {
		c.Close()
	}
	testkit.Until(t, "all of them to be gone", func() bool { return p.metric("earshot_lite_connections") == 0 })
	p.returnsTo(before)
	if n := p.metric(`earshot_connections_ended_total{why="panic"}`); n != 0 {
		t.Errorf("%v sessions ended in a panic", n)
	}
	if s := shown(t, p, 754, "a.example"); !strings.Contains(string(s.Description), `A`) {
		t.Errorf("afterwards %s is shown", s.Description)
	}
	clients.Join(p.addr, "Last")
}
