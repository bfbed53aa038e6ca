package itest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestServerWithItsOwnUUIDs: on a server that is told nothing of who its players are, and knows them by other UUIDs
// than the proxy, those who stand together hear each other, and who is taken off another's list is not heard there. The
// log says once what to set. The versions are one of each way in which a server shows its players.
func TestServerWithItsOwnUUIDs(t *testing.T) {
	for _, version := range []string{"1.8.8", "1.12.2", "1.15.2", "1.20.4", "1.21.4", "26.1", "26.3"} {
		alongside(t, version, func(t *testing.T) {
			server := peer.Backend(t, version, peer.None, "", peer.OwnIDs())
			p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q}}\n", server.Addr))
			bots := peer.NewBots(t, version)
			join := func(name string) *talker {
				s := newTalker(t, p, bots.Join(p.addr, name), nil)
				if id := server.Joined(name).UUID; id == s.id.String() {
					t.Fatalf("the server knows %s by the UUID that the proxy has", name)
				}
				s.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
				return s
			}
			ann, bob := join("Ann"), join("Bob")
			at := func(name string, x, z float64) { server.Teleport(name, x, 70, z, 0, 0); server.At(name, x, 70, z) }
			at("Ann", 0, 0)
			at("Bob", 3, 4)
			gain := math.Round(255*(1-5.0/48)) / 255
			bob.hears(ann, gain, -3, -4)
			ann.hears(bob, gain, 3, 4)
			server.Hide("Bob", "Ann") // who still sees Bob
			bob.hearsNothingFrom(ann, "vanished")
			ann.hears(bob, gain, 3, 4)
			server.Show("Bob", "Ann")
			bob.hears(ann, gain, -3, -4)
			if n := strings.Count(p.log.String(), "by another UUID than the proxy"); n != 1 {
				t.Errorf("%d lines in the log about it, want one", n)
			}
		})
	}
}
