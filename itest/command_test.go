package itest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

// utf returns strings as plugins of BungeeCord write them.
func utf(words ...string) (b []byte) {
	for _, w := range words {
		b = append(append(b, byte(len(w)>>8), byte(len(w))), w...)
	}
	return b
}

// TestCommandsAndPermissions: a command is the proxy's for those who may use it, and the server's for all others; the
// operator level on the server counts.
func TestCommandsAndPermissions(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.16.5", "1.19.4", "1.21.4", "26.2", "26.3"} {
		alongside(t, version, func(t *testing.T) { permitted(t, version) })
	}
}

func permitted(t *testing.T, version string) {
	a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf(`online: false
try: [a]
servers: {a: {address: %q}, b: {address: %q}}
commands: {hubs: [a], aliases: {hub: [lobby]}, rate: {per-second: 1000, burst: 1000}} # the test asks in a loop
permissions:
  groups: {staff: {nodes: [earshot.command.glist, earshot.command.send]}}
  players: {Cid: {nodes: ["earshot.*"]}}
  operators: {2: staff}
`, a.Addr, b.Addr))
	bots := peer.NewBots(t, version)
	ann, bob := bots.Join(p.addr, "Ann"), bots.Join(p.addr, "Bob")
	says := func(bot *peer.Bot, command string, from *peer.Bot, answer string) {
		t.Helper()
		bot.Chat(command)
		from.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
	}
	ann.Chat("/glist")
	a.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "/glist" })
	a.Op("Ann", 2)
	testkit.Until(t, "the operator level to count", func() bool {
		mine, theirs := ann.Count("chat"), a.Count("chat", "Ann")
		ann.Chat("/glist")
		testkit.Until(t, "an answer", func() bool { return ann.Count("chat") > mine || a.Count("chat", "Ann") > theirs })
		return ann.Count("chat") > mine
	})
	bob.Skip("moved")
	says(ann, "/send Bob b", bob, "Ann sends you to b")
	b.Joined("Bob")
	bob.Await("moved", nil)
	says(bob, "/server", bob, "You are on b")
	bob.Chat("/lobby")
	a.Skip("join", "Bob")
	a.Await("join", "Bob", nil)

	cid := bots.Join(p.addr, "Cid")
	cid.Chat("/shutdown see you tomorrow")
	for _, bot := range []*peer.Bot{ann, bob, cid} {
		if e := bot.Await("kicked", nil); e.Text != "see you tomorrow" {
			t.Errorf("%s is told %q", bot.Name, e.Text)
		}
	}
	p.ends()
}

// TestBungeeCord: a plugin on a server moves a player and asks about it; where a server may not, nothing happens; and
// no player can pretend to be a server.
func TestBungeeCord(t *testing.T) {
	for _, version := range []string{"1.12.2", "1.20.4"} {
		alongside(t, version, func(t *testing.T) {
			channel := "bungeecord:main"
			if peer.Protocol(version) < 393 {
				channel = "BungeeCord"
			}
			a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
			p := start(t, fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}, b: {address: %q, bungeecord: off}}\n", a.Addr, b.Addr))
			ann := peer.NewBots(t, version).Join(p.addr, "Ann")
			a.Await("payload", "Ann", func(e peer.Event) bool { // plugins may wait for that
				return strings.EqualFold(strings.TrimPrefix(e.Channel, "minecraft:"), "register") && string(e.Data) == channel
			})
			ann.Payload(channel, utf("Connect", "b")) // forged
			a.Payload("Ann", channel, utf("GetServer"))
			got := a.Await("payload", "Ann", func(e peer.Event) bool { return e.Channel == channel })
			if want := utf("GetServer", "a"); string(got.Data) != string(want) {
				t.Errorf("the server got %q, want %q", got.Data, want)
			}
			ann.Skip("moved")
			a.Payload("Ann", channel, utf("Connect", "b"))
			b.Joined("Ann")
			ann.Await("moved", nil)
			b.Payload("Ann", channel, utf("GetServer"))
			b.Payload("Ann", channel, utf("Connect", "a"))
			ann.Chat("/server")
			ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "You are on b") })
			for range b.Count("payload", "Ann") {
				if e := b.Await("payload", "Ann", nil); e.Channel == channel || strings.Contains(string(e.Data), channel) {
					t.Errorf("a server that may not ask was answered %q", e.Data)
				}
			}
			for range ann.Count("payload") {
				if e := ann.Await("payload", nil); e.Channel == channel {
					t.Errorf("the client got %q", e.Data)
				}
			}
			p.counts(`earshot_bungeecord_messages_total{what="done"}`, 2)
			p.counts(`earshot_bungeecord_messages_total{what="refused"}`, 2)
			p.counts(`earshot_commands_total{what="run"}`, 1)
		})
	}
}

// TestBungeeCordIsForOnesOwn: with the settings that nobody has changed, a plugin may ask who is where, and not act on
// the players of another server; the log says what allows it, and then it does.
func TestBungeeCordIsForOnesOwn(t *testing.T) {
	const version, channel = "1.20.4", "bungeecord:main"
	a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
	settings := fmt.Sprintf("online: false\ntry: [a]\nhosts: {b.example.net: {try: [b]}}\nservers: {a: {address: %q}, b: {address: %q}}\n", a.Addr, b.Addr)
	p := start(t, settings)
	bots := peer.NewBots(t, version)
	bots.Join(p.addr, "Ann")
	a.Joined("Ann")
	bob := bots.DialAs(p.addr, "Bob", "b.example.net")
	bob.Spawned()
	b.Joined("Bob")
	ask := func(want []byte, fields ...string) {
		t.Helper()
		a.Payload("Ann", channel, utf(fields...))
		a.Await("payload", "Ann", func(e peer.Event) bool { return e.Channel == channel && string(e.Data) == string(want) })
	}
	ask(utf("GetServers", "a, b"), "GetServers")
	ask(append(utf("PlayerCount", "ALL"), 0, 0, 0, 2), "PlayerCount", "ALL")
	ask(utf("PlayerList", "b", "Bob"), "PlayerList", "b")
	a.Payload("Ann", channel, utf("ConnectOther", "Bob", "a"))
	a.Payload("Ann", channel, utf("KickPlayer", "Bob", "out"))
	p.counts(`earshot_bungeecord_messages_total{what="refused"}`, 2)
	p.says(1, "bungeecord: full")
	if strings.Contains(p.log.String(), "UNSAFE  bungeecord") {
		t.Error("what is the default is called unsafe")
	}
	p.write(settings + "bungeecord: full\n")
	p.says(1, `bungeecord: \"self\" → \"full\"`)
	p.says(1, "bungeecord: full: plugins on a, b may move")
	a.Payload("Ann", channel, utf("ConnectOther", "Bob", "a"))
	a.Joined("Bob")
}

// TestServersMayNotTransfer: where it is refused, a server does not send its players to another address.
func TestServersMayNotTransfer(t *testing.T) {
	const version = "1.21.4"
	a := peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf("online: false\ntry: [a]\nserver-transfers: refuse\nservers: {a: {address: %q}}\n", a.Addr))
	ann := peer.NewBots(t, version).Join(p.addr, "Ann")
	a.Joined("Ann")
	a.Write("Ann", "transfer", map[string]any{"host": "127.0.0.1", "port": 1})
	ann.Await("chat", func(e peer.Event) bool {
		return strings.Contains(e.Text, "Server a wanted to send you to another address")
	})
	ann.Chat("still here")
	a.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "still here" })
	p.counts(`earshot_server_requests_refused_total{what="transfer"}`, 1)
}

// TestRestrictedServers: a server that takes a permission is for those who have it, and others do not see it.
func TestRestrictedServers(t *testing.T) {
	for _, version := range []string{"1.12.2", "1.21.4"} {
		alongside(t, version, func(t *testing.T) {
			vip, lobby := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
			p := start(t, fmt.Sprintf("online: false\ntry: [vip, lobby]\nservers: {vip: {address: %q, restricted: true}, lobby: {address: %q}}\n"+
				"permissions: {players: {Ann: {nodes: [earshot.server.vip, earshot.command.send]}}}\n", vip.Addr, lobby.Addr))
			bots := peer.NewBots(t, version)
			ann, bob := bots.Join(p.addr, "Ann"), bots.Join(p.addr, "Bob")
			vip.Joined("Ann")
			lobby.Joined("Bob")
			says := func(bot *peer.Bot, command, answer string) {
				t.Helper()
				bot.Chat(command)
				bot.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
			}
			if got := bob.Complete("/server "); len(got) != 1 || got[0] != "lobby" {
				t.Errorf("Bob's is completed to %v", got)
			}
			if got := ann.Complete("/server "); len(got) != 2 {
				t.Errorf("Ann's is completed to %v", got)
			}
			channel := "bungeecord:main"
			if peer.Protocol(version) < 393 {
				channel = "BungeeCord"
			}
			lobby.Payload("Bob", channel, utf("Connect", "vip")) // nor by a plugin
			bob.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "Server vip is not for everybody") })
			says(bob, "/server vip", "you need the permission earshot.server.vip")
			ann.Chat("/send Bob vip") // who may take others there does
			vip.Joined("Bob")
		})
	}
}
