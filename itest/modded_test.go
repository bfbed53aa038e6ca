package itest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
)

// TestForge has a client of Forge (a mock on a real protocol library, as the servers are: see forge.js) go from server
// to server, each of which goes through Forge's handshake of its version with it and takes nobody without. Registries
// are as large as a mod pack's. On the way to a server with other registries the client, which cannot be asked again
// from 1.13 on, is told so and stays; up to 1.12.2 it simply goes there.
func TestForge(t *testing.T) {
	type way struct{ version, marker, mode, bare string }
	ways := []way{{"1.12.2", "\x00FML\x00", peer.Legacy, ""}, {"1.18.2", "\x00FML3\x00", peer.Modern, "require Forge"}}
	if long() {
		ways = append(ways, way{"1.8.8", "\x00FML\x00", peer.BungeeGuard, ""}, way{"1.16.5", "\x00FML2\x00", peer.BungeeGuard, "require Forge"})
	}
	for _, c := range ways {
		t.Run(c.version, func(t *testing.T) {
			server := func(registries string) *peer.Server {
				return peer.Backend(t, c.version, c.mode, secret, peer.Forge(registries))
			}
			one, two, other := server("1=stone"), server("1=stone"), server("1=dirt")
			p := start(t, fmt.Sprintf("online: false\ntry: [one]\nforwarding: {mode: %s, secret: %q}\nservers: {one: {address: %q}, two: {address: %q}, other: {address: %q}}\n",
				c.mode, secret, one.Addr, two.Addr, other.Addr))
			raw := peer.NewRaw(t, c.version)
			steve := raw.Dial(p.addr, peer.Login{Name: "Steve", Host: "127.0.0.1" + c.marker, Forge: true})
			one.Joined("Steve")
			old := c.bare == ""
			shaken := func(fresh, resets string) {
				t.Helper()
				want := fresh // the questions since the last join game
				if old {
					want = "5 " + resets // all stages, and the resets so far
				}
				if got := steve.Await("forge", nil).Text; got != want {
					t.Errorf("the client of Forge came through %q, want %q", got, want)
				}
			}
			shaken("3", "0")
			to := func(name string) { steve.Write("chat", map[string]any{"message": "/server " + name}) }
			to("two")
			two.Joined("Steve")
			shaken("0", "1")
			steve.Payload("somemod:play", []byte("hello"))
			two.Await("payload", "Steve", func(e peer.Event) bool { return e.Channel == "somemod:play" && string(e.Data) == "hello" })
			steve.Watch("chat", "system_chat")
			to("other")
			if old {
				other.Joined("Steve")
				shaken("", "2")
				return
			}
			steve.Await("packet", func(e peer.Event) bool { return strings.Contains(string(e.Params), "other mods") })
			steve.Payload("somemod:play", []byte("still here"))
			two.Await("payload", "Steve", func(e peer.Event) bool { return string(e.Data) == "still here" })
			if n := other.Count("join", ""); n != 0 {
				t.Errorf("%d came to a server with other registries", n)
			}
			bare := raw.Dial(p.addr, peer.Login{Name: "Bare"})
			bare.Await("kicked", func(e peer.Event) bool { return strings.Contains(e.Text, c.bare) })
		})
	}
}

// TestModdedConfiguration: from 1.20.2 on mod loaders shake hands in the configuration phase, over plugin channels and
// the list of known packs. All of that passes as it is, whatever its size up to the game's bounds, both ways, also
// while a server configures its player again. The messages are what NeoForge and Fabric name so, with contents of our
// own.
func TestModdedConfiguration(t *testing.T) {
	const version = "1.21.4"
	server := peer.Backend(t, version, peer.Modern, secret)
	p := start(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q, forwarding: modern, secret: %q}}\n", server.Addr, secret))
	raw := peer.NewRaw(t, version)
	server.Hold(true)
	alex := raw.Dial(p.addr, peer.Login{Name: "Alex", Host: "127.0.0.1\x00FORGE2", Watch: []string{"select_known_packs"}})
	talk := func() {
		t.Helper()
		for _, channel := range []string{"c:version", "c:register", "fabric:registry/sync/direct", "fabric:registry/sync/complete", "neoforge:register", "neoforge:frozen_registry", "forge:handshake", "minecraft:register"} {
			for _, n := range []int{3, 32767 - 300} {
				data := bytes.Repeat([]byte("a:b"), n/3)
				server.Payload("Alex", channel, data)
				alex.Await("payload", func(e peer.Event) bool {
					return e.Channel == channel && e.State == "configuration" && bytes.Equal(e.Data, data)
				})
				alex.Payload(channel, data)
				server.Await("payload", "Alex", func(e peer.Event) bool {
					return e.Channel == channel && e.State == "configuration" && bytes.Equal(e.Data, data)
				})
			}
		}
		large := bytes.Repeat([]byte("registry"), 1<<20/8)
		server.Payload("Alex", "fabric:registry/sync/direct", large)
		alex.Await("payload", func(e peer.Event) bool { return bytes.Equal(e.Data, large) })
		var packs []map[string]string
		for i := range 900 {
			packs = append(packs, map[string]string{"namespace": "somemod", "id": fmt.Sprintf("pack%d", i), "version": "1.0"})
		}
		server.Write("Alex", "select_known_packs", map[string]any{"packs": packs})
		alex.Await("packet", func(e peer.Event) bool {
			var got struct{ Packs []map[string]string }
			return json.Unmarshal(e.Params, &got) == nil && len(got.Packs) == len(packs)
		})
		alex.Write("select_known_packs", map[string]any{"packs": packs})
		server.Await("packs", "Alex", func(e peer.Event) bool { return e.Text == "900" })
		server.Finish("Alex")
		if e := server.Joined("Alex"); !strings.HasPrefix(e.Host, "127.0.0.1\x00FORGE2") {
			t.Errorf("the server heard of %q", e.Host)
		}
		alex.Await("moved", nil)
	}
	server.Await("configuring", "Alex", nil)
	talk()
	server.Reconfigure("Alex", true)
	server.Await("configuring", "Alex", nil)
	talk()
	if n := p.metric("earshot_undecoded_total"); n != 0 {
		t.Errorf("%v packets were not understood", n)
	}
}
