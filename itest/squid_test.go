package itest

import (
	"fmt"
	"math"
	"testing"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestSquid puts a complete game server of somebody else behind the program: its own login, world, physics and chat,
// none of them written for a proxy or for us. It runs with the setting for servers whose tab list does not say who sees
// whom.
func TestSquid(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.12.2", "1.16.5", "1.20.4", peer.SquidNewest} {
		alongside(t, version, func(t *testing.T) { squid(t, version) })
	}
}

func squid(t *testing.T, version string) {
	server := peer.Squid(t, version)
	p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q}}\nvoice: {visibility: everyone}\n", server.Addr))
	bots := peer.NewBots(t, version)
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), server), newTalker(t, p, bots.Join(p.addr, "Bob"), server)

	place := func(s *talker) peer.Event {
		t.Helper()
		bot := s.bot.Where()
		testkit.Until(t, "the server to see "+s.bot.Name+" where it is", func() bool {
			on := server.Where(s.bot.Name)
			return math.Abs(on.X-bot.X) < .1 && math.Abs(on.Y-bot.Y) < .1 && math.Abs(on.Z-bot.Z) < .1
		})
		return bot
	}
	from := place(ann)
	ann.bot.Goto(from.X+6, from.Z+1)
	a := place(ann)
	if d := math.Hypot(a.X-from.X, a.Z-from.Z); d < 5 {
		t.Errorf("Ann walked only %.1f blocks", d)
	}
	bob.bot.Goto(from.X-4, from.Z-3)
	b := place(bob)

	ann.bot.Chat("is anybody here?")
	bob.bot.Await("chat", func(e peer.Event) bool {
		return e.Text == "<Ann> is anybody here?" || e.Text == "Ann: is anybody here?"
	})

	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2}})
	dx, dy, dz := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	gain := math.Round(255*(1-math.Sqrt(dx*dx+dy*dy+dz*dz)/48)) / 255
	bob.hears(ann, gain, dx, dz)
	ann.hears(bob, gain, -dx, -dz)

	server.Kick("Bob", "enough of you") // in the server's own words
	if e := bob.bot.Await("kicked", nil); e.Text != "enough of you" {
		t.Errorf("Bob is told %q", e.Text)
	}
	if n := p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
}
