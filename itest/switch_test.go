package itest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestSwitching takes real players from server to server by command, as often as EARSHOT_LONG says: they walk on the
// new one, which sees them there, and whoever is there hears them within a second, over the socket they had from the
// start. Then a server dies, and its players are on the other one.
func TestSwitching(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.12.2", "1.16.5", "1.19.4", "1.20.4", "1.21.4", "26.1", "26.2", "26.3"} {
		alongside(t, version, func(t *testing.T) { switching(t, version) })
	}
}

func switching(t *testing.T, version string, prepare ...func(*program)) {
	rounds := 3
	if long() {
		rounds = 50
	}
	a, b := peer.Backend(t, version, peer.Legacy, ""), peer.Backend(t, version, peer.Legacy, "")
	line := newCable(t, b.Addr)
	p := newProgram(t, fmt.Sprintf("online: false\ntry: [a, b]\nforwarding: {mode: legacy}\nservers: {a: {address: %q}, b: {address: %q}}\n", a.Addr, line.addr))
	for _, f := range prepare {
		f(p)
	}
	p.run()
	bots := peer.NewBots(t, version)
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), a), newTalker(t, p, bots.Join(p.addr, "Bob"), a)
	ann.connect(client.Config{Ask: caps.Set{Audio: 2}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})

	// to says the command and waits until the bot stands in the new world.
	to := func(s *talker, name string, server *peer.Server) {
		t.Helper()
		s.bot.Skip("moved")
		server.Skip("join", s.bot.Name)
		s.bot.Chat("/server " + name)
		server.Joined(s.bot.Name)
		s.bot.Await("moved", nil)
	}
	walks := func(s *talker, server *peer.Server, x, z float64) peer.Event {
		t.Helper()
		server.Skip("pos", s.bot.Name)
		at := s.bot.Goto(x, z)
		server.Await("pos", s.bot.Name, func(e peer.Event) bool { return math.Hypot(e.X-x, e.Z-z) < 1 })
		return at
	}
	// Boats are on a only. What a bot sees of them it has from the server it is on.
	boats := func(s *talker) (n int) {
		for kind, of := range s.bot.Where().Seen {
			if strings.Contains(strings.ToLower(kind), "boat") {
				n += of
			}
		}
		return n
	}
	for x := range 3 {
		a.Vehicle("boat", 12+float64(x), 70, 12)
	}
	testkit.Until(t, "Bob to see the boats", func() bool { return boats(bob) == 3 })
	to(bob, "b", b)
	if n := boats(bob); n != 0 {
		t.Errorf("Bob still sees %d boats of the server that he left", n)
	}
	if names := bob.bot.Where().Names; slices.Contains(names, "Ann") {
		t.Errorf("Bob's list still has those of the server that he left: %v", names)
	}
	stands := walks(bob, b, 4, 4)
	bob.hearsNothingFrom(ann, "on another server")

	done := make(chan struct{})
	speaking := make(chan struct{})
	go func() { // the whole time, wherever that is
		defer close(done)
		defer func() { recover() }() // the test's end
		ann.say(t.Context(), 1<<20)
	}()
	close(speaking)
	heard := func() bool {
		for _, h := range bob.take() {
			if h.from == ann.id && h.gain > 0 {
				return true
			}
		}
		return false
	}
	for range rounds {
		bob.take()
		to(ann, "B", b) // case does not matter
		begin := time.Now()
		testkit.Until(t, "Bob to hear Ann on the new server", heard)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("heard after %v", d)
		}
		at := walks(ann, b, 12, 6)
		testkit.Until(t, "Ann's voice to come from where she is", func() bool {
			for _, h := range bob.take() {
				if h.from == ann.id && math.Abs(h.dx-(at.X-stands.X)) < .1 && math.Abs(h.dz-(at.Z-stands.Z)) < .1 {
					return true
				}
			}
			return false
		})
		to(ann, "a", a)
		bob.take()
		walks(ann, a, 6, 10)
		bob.take()
		time.Sleep(100 * time.Millisecond) // what was under way has come
		if heard() {
			t.Fatal("Ann is heard on the server that she left")
		}
	}
	for _, e := range []*peer.Server{a, b} {
		for range e.Count("chat", "Ann") {
			if text := e.Await("chat", "Ann", nil).Text; strings.HasPrefix(text, "/server") {
				t.Errorf("a server got the command %s", text)
			}
		}
	}
	p.counts("earshot_switches_total", float64(2*rounds+1))

	// Answers.
	said := func(what string) {
		t.Helper()
		ann.bot.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, what) })
	}
	ann.bot.Chat("/server a")
	said("already")
	ann.bot.Chat("/server nowhere")
	said("nowhere")
	ann.bot.Chat("/earshot:ping")
	said("ping")
	b.Refuse("Ann", "login", "no room today")
	ann.bot.Chat("/server b")
	said("no room today")
	walks(ann, a, 8, 8)
	ann.bot.Chat("/alert not for everybody's use") // not Ann's: the server's to answer
	a.Await("chat", "Ann", func(e peer.Event) bool { return strings.HasPrefix(e.Text, "/alert") })

	// A server dies.
	bob.take()
	a.Skip("join", "Bob")
	bob.bot.Skip("moved")
	line.kill()
	a.Joined("Bob")
	bob.bot.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "You lost server b") })
	bob.bot.Await("moved", nil)
	walks(bob, a, 10, 10)
	testkit.Until(t, "Bob to hear Ann after the fallback", heard)
	p.counts("earshot_voice_sockets", 2)
	p.counts(`earshot_switches_total{how="rescued"}`, 1)
	if n := p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
}
