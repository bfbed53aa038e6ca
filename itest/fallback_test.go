package itest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

// TestBroughtBack: a server dies under several players. They wait in the built-in world and are told so, newcomers with
// them; when the server is up again all are back, except the one who wants to be in the built-in world.
func TestBroughtBack(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.20.4", "1.21.4"} {
		alongside(t, version, func(t *testing.T) { broughtBack(t, version) })
	}
}

func broughtBack(t *testing.T, version string) {
	server := peer.Backend(t, version, peer.Legacy, "")
	line := newCable(t, server.Addr)
	p := start(t, fmt.Sprintf("online: false\ntry: [game, limbo]\nforwarding: {mode: legacy}\nservers: {game: {address: %q}}\npermissions: {players: {Hal: {nodes: [earshot.command.earshot]}}}\n", line.addr))
	bots := peer.NewBots(t, version)
	var all []*peer.Bot
	for _, name := range []string{"Ann", "Bob", "Cid", "Dan"} {
		all = append(all, bots.Join(p.addr, name))
		server.Joined(name)
	}
	hal := bots.Join(p.addr, "Hal")
	server.Joined("Hal")
	said := func(b *peer.Bot, what string) {
		t.Helper()
		b.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, what) })
	}
	hal.Skip("moved")
	hal.Chat("/server limbo")
	hal.Await("moved", nil)

	line.kill()
	for _, b := range all {
		said(b, "You lost server game")
		said(b, "As soon as a server is back")
	}
	testkit.Until(t, "the breaker to open", func() bool { return p.metric(`earshot_server_breaker{server="game"}`) == 2 })
	hal.Chat("/earshot status")
	said(hal, "server game: breaker open")
	eve := bots.Join(p.addr, "Eve") // and does not have to wait for the dead server
	said(eve, "As soon as a server is back")
	all = append(all, eve)
	p.counts("earshot_players_held", 5)
	if n := p.metric("earshot_backend_dial_failures_total"); n != 0 { // checks find out, not players
		t.Errorf("%v times a player was sent to the dead server", n)
	}
	for _, b := range all {
		server.Skip("join", b.Name)
		b.Skip("moved")
	}
	line.mend()
	for _, b := range all {
		said(b, "game is back")
		server.Joined(b.Name)
		b.Await("moved", nil)
	}
	testkit.Until(t, "nobody to be held", func() bool { return p.metric("earshot_players_held") == 0 })
	p.counts(`earshot_switches_total{how="returned"}`, 5)
	hal.Chat("/server")
	said(hal, "You are on limbo")
	if n := server.Count("join", "Hal"); n != 1 { // in the beginning
		t.Error("who went to limbo was taken away")
	}
	all[0].Chat("still alive")
	server.Await("chat", "Ann", func(e peer.Event) bool { return e.Text == "still alive" })
}

// TestLeastPlayers: newcomers spread over the servers of the list, and fill up what a leaving one left.
func TestLeastPlayers(t *testing.T) {
	const version = "1.20.4"
	servers, settings := map[string]*peer.Server{}, ""
	for _, name := range []string{"a", "b", "c"} {
		servers[name] = peer.Backend(t, version, peer.None, "")
		settings += fmt.Sprintf("  %s: {address: %q}\n", name, servers[name].Addr)
	}
	p := start(t, "online: false\ntry: [limbo, a, b, c]\nfallback: {strategy: least-players}\nservers:\n"+settings)
	bots := peer.NewBots(t, version)
	on := func() map[string]int {
		n := map[string]int{}
		for name, s := range servers {
			for i := range 7 {
				n[name] += s.Count("join", fmt.Sprint("P", i))
			}
		}
		return n
	}
	var all []*peer.Bot
	for i := range 6 { // at once
		all = append(all, bots.Dial(p.addr, fmt.Sprint("P", i)))
	}
	for _, b := range all {
		b.Spawned()
	}
	if n := on(); n["a"] != 2 || n["b"] != 2 || n["c"] != 2 {
		t.Fatalf("players are on %v", n)
	}
	left := ""
	for name, s := range servers {
		if s.Count("join", "P3") > 0 {
			left = name
		}
	}
	all[3].Quit()
	all[3].Await("end", nil)
	testkit.Until(t, "the player to be gone", func() bool { return p.metric("earshot_players") == 5 })
	bots.Join(p.addr, "P6")
	servers[left].Joined("P6")
}

// TestDraining: a server that is drained by command gets no newcomers, shows as such and keeps its players until they
// are to be moved, too; then they are on the other one, and newcomers come when it is over.
func TestDraining(t *testing.T) {
	for _, version := range []string{"1.12.2", "1.21.4"} {
		alongside(t, version, func(t *testing.T) { draining(t, version) })
	}
}

func draining(t *testing.T, version string) {
	a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf(`online: false
try: [a, b]
servers: {a: {address: %q}, b: {address: %q}}
permissions:
  players:
    Ann: {nodes: ["earshot.*"]}
    Bob: {nodes: [earshot.command.glist]}
`, a.Addr, b.Addr))
	bots := peer.NewBots(t, version)
	ann, bob := bots.Join(p.addr, "Ann"), bots.Join(p.addr, "Bob")
	a.Joined("Ann")
	a.Joined("Bob")
	says := func(bot *peer.Bot, command, answer string) {
		t.Helper()
		bot.Chat(command)
		bot.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
	}
	says(ann, "/earshot drain A", "Server a takes no new players")
	cid := bots.Join(p.addr, "Cid")
	b.Joined("Cid")
	says(cid, "/server a", "is being drained")
	says(bob, "/glist", "a (2) draining")
	says(ann, "/earshot status", "server a: draining")
	p.counts(`earshot_server_draining{server="a"}`, 1)
	if n := a.Count("join", "Cid"); n != 0 {
		t.Error("a newcomer got on the server that is drained")
	}

	ann.Skip("moved")
	bob.Skip("moved")
	told := map[*peer.Bot][]string{ann: {"sent to other servers", "Taking you to b", "Server a: 2 of 2 moved"}, bob: {"Taking you to b"}}
	ann.Chat("/earshot drain a move")
	for bot, left := range told {
		bot.Await("chat", func(e peer.Event) bool { // Ann may be told of the journey before the answer
			left = slices.DeleteFunc(left, func(s string) bool { return strings.Contains(e.Text, s) })
			return len(left) == 0
		})
		b.Joined(bot.Name)
		bot.Await("moved", nil)
	}
	says(bob, "/glist", "b (3)")
	says(ann, "/earshot drain a off", "gets players again")
	bots.Join(p.addr, "Dan")
	a.Joined("Dan")
}

// TestDrainingSaysWhatItDid: whoever empties a server with nowhere to go for its players is told so, by name; and when
// it is stopped then, they are told that it was being emptied.
func TestDrainingSaysWhatItDid(t *testing.T) {
	const version = "1.20.4"
	a := peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf("online: false\ntry: [a]\nservers: {a: {address: %q}}\npermissions: {players: {Ann: {nodes: [\"earshot.*\"]}}}\n", a.Addr))
	bots := peer.NewBots(t, version)
	ann, bob := bots.Join(p.addr, "Ann"), bots.Join(p.addr, "Bob")
	a.Joined("Bob")
	ann.Chat("/earshot drain a move")
	ann.Await("chat", func(e peer.Event) bool {
		return strings.Contains(e.Text, "Server a: 0 of 2 moved; 2 have no other server: Ann, Bob")
	})
	a.Drop("Bob")
	bob.Await("kicked", func(e peer.Event) bool {
		return strings.Contains(e.Text, "Server a is being emptied, and no other server takes you")
	})
}

// TestSilentInConfiguration: a server takes a player and says nothing more. The player, who has nothing to say either,
// is back on the former server, and is told why; a newcomer is on the next server.
func TestSilentInConfiguration(t *testing.T) {
	for _, version := range []string{"1.20.4", "26.1"} {
		alongside(t, version, func(t *testing.T) {
			a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
			b.Hold(true)
			p := start(t, fmt.Sprintf("online: false\ntry: [a]\nhosts: {b.example.net: {try: [b, a]}}\nservers: {a: {address: %q}, b: {address: %q}}\n"+
				"timeouts: {read: 6s, backend-configuration: 9s}\n", a.Addr, b.Addr))
			bots := peer.NewBots(t, version)
			ann := bots.Join(p.addr, "Ann")
			a.Joined("Ann")
			a.Skip("join", "Ann")
			ann.Chat("/server b")
			bob := bots.DialAs(p.addr, "Bob", "b.example.net")
			a.Joined("Ann")
			ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "Cannot take you to b") })
			bob.Spawned()
			a.Joined("Bob")
			if n := p.metric(`earshot_connections_ended_total{why="idle"}`); n != 0 {
				t.Errorf("%v players were taken for dead", n)
			}
		})
	}
}
