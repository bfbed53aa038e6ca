package itest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestBedrock has two players of Bedrock Edition come as through Geyser, without any account of Java Edition and with
// authentication on: they are who their Xbox accounts say, on a server with each kind of forwarding and Floodgate on
// it, and hear each other as that. Anybody else with such data is refused in words and counted. The clients are real,
// their Geyser is a mock: the data in their handshake.
func TestBedrock(t *testing.T) {
	key := []byte("0123456789abcde\n") // a key is no text
	modes := map[string]string{"1.21.4": peer.Modern}
	if long() {
		modes["1.12.2"] = peer.BungeeGuard
	}
	for version, mode := range modes {
		t.Run(version+" "+mode, func(t *testing.T) {
			server := peer.Backend(t, version, mode, secret, peer.Floodgate(key))
			file := filepath.Join(t.TempDir(), "key.pem")
			if err := os.WriteFile(file, key, 0o600); err != nil {
				t.Fatal(err)
			}
			settings := fmt.Sprintf("try: [game]\nservers: {game: {address: %q, forwarding: %s, secret: %q, floodgate: true}}\nlog: {level: debug}\n", server.Addr, mode, secret)
			p := start(t, settings+fmt.Sprintf("bedrock: {key-file: %q}\n", file))
			bots := peer.NewBots(t, version)
			join := func(tag string, xuid uint64) *talker {
				t.Helper()
				says := map[string]string{"name": tag, "xuid": fmt.Sprint(xuid), "ip": "203.0.113.9"}
				bot := bots.DialAs(p.addr, tag, peer.Geyser(t, "127.0.0.1", key, says))
				bot.Spawned()
				name := "." + strings.ReplaceAll(tag, " ", "_")
				id := uuid.UUID{}
				for i := range 8 {
					id[8+i] = byte(xuid >> (56 - 8*i))
				}
				e := server.Joined(name)
				if e.UUID != id.String() || e.Bedrock == nil || *e.Bedrock != (peer.Bedrock{Name: tag, XUID: says["xuid"], IP: says["ip"]}) {
					t.Errorf("the server has %s as %s, Floodgate there %+v", name, e.UUID, e.Bedrock)
				}
				if f := e.Forwarded; f == nil || f.UUID != id.String() || f.Address != says["ip"] || !strings.HasPrefix(e.Host, "127.0.0.1") {
					t.Errorf("forwarded %+v, host %q", f, e.Host)
				}
				return &talker{t: t, p: p, bot: bot, id: id}
			}
			ann, bob := join("Ann B", 2535428712345678), join("Bob", math.MaxUint64)
			ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
			bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
			server.Teleport(".Ann_B", 0, 70, 0, 0, 0)
			server.Teleport(".Bob", 3, 70, 4, 0, 0)
			bob.hears(ann, math.Round(255*(1-5.0/48))/255, -3, -4)

			raw := peer.NewRaw(t, version)
			refused := func(p *program, what, host, told string, counter string) {
				t.Helper()
				raw.Dial(p.addr, peer.Login{Name: what, Host: host}).Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, told) })
				testkit.Until(t, what+" to be counted", func() bool { return p.metric(`earshot_connections_ended_total{why="`+counter+`"}`) >= 1 })
			}
			refused(p, "otherkey", peer.Geyser(t, "h", []byte("another key, 16b"), nil), "cannot tell who you are", "bedrock_data")
			good := peer.Geyser(t, "h", key, nil)
			refused(p, "changed", good[:len(good)-6]+"AAAA==", "cannot tell who you are", "bedrock_data")
			if log := p.log.String(); strings.Contains(log, "^Floodgate^") || strings.Contains(log, "2535428712345678") || strings.Contains(log, string(key)) {
				t.Error("what only Geyser and Earshot know is in the log")
			}
			p.stop()

			elsewhere := start(t, settings+fmt.Sprintf("bedrock: {key-file: %q, trusted: [198.51.100.7]}\n", file))
			refused(elsewhere, "elsewhere", peer.Geyser(t, "h", key, nil), "Bedrock", "bedrock_source")
			elsewhere.stop()
			if n := server.Count("join", ""); n != 2 {
				t.Errorf("%d players came to the server, not 2", n)
			}
		})
	}
	p := start(t, "online: false\n")
	raw := peer.NewRaw(t, "1.21.4")
	raw.Dial(p.addr, peer.Login{Name: "Steve", Host: peer.Geyser(t, "h", key, nil)}).Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, "Bedrock") })
}
