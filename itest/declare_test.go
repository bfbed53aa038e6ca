package itest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestDeclaredByCommand: an administrator puts up a radio between servers, somebody who hears it and is not heard, and
// a speaker that plays a file where it stands; taking any of them down is silence at once. A vanished player is not
// among the names to choose from, nor in the server list.
func TestDeclaredByCommand(t *testing.T) {
	const version = "1.21.4"
	a, b := peer.Backend(t, version, peer.None, ""), peer.Backend(t, version, peer.None, "")
	p := start(t, fmt.Sprintf(`online: false
try: [a, limbo]
servers: {a: {address: %q}, b: {address: %q}}
permissions: {players: {Mod: {nodes: ["earshot.command.voice.*"]}}}
commands: {completions: {per-second: 1000, burst: 1000}} # the test asks in a loop
`, a.Addr, b.Addr))
	file, err := os.ReadFile("../voice/ogg/testdata/mono_20ms.opus") // 440 Hz at half of full scale
	if err == nil {
		err = os.Mkdir(filepath.Join(p.dir, "sounds"), 0o755)
	}
	for _, name := range []string{"sounds/tone.opus", "secret.opus"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(p.dir, name), file, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	bots := peer.NewBots(t, version)
	mod := bots.Dial(p.addr, "Mod")
	all := map[string]*talker{}
	for _, name := range []string{"Ann", "Bob", "Spy"} {
		all[name] = newTalker(t, p, bots.Dial(p.addr, name), nil)
	}
	ann, bob, spy := all["Ann"], all["Bob"], all["Spy"]
	mod.Spawned()
	for _, s := range all {
		s.bot.Spawned()
	}
	for s, server := range map[*talker]string{bob: "b", spy: "limbo"} {
		s.bot.Skip("moved")
		s.bot.Chat("/server " + server)
		s.bot.Await("moved", nil)
	}
	for _, s := range all {
		s.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Speakers: 1}})
	}
	says := func(command, answer string) {
		t.Helper()
		mod.Chat(command)
		mod.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
	}
	// silent lets Ann speak, of which nothing may be delivered from the very first frame on.
	silent := func(why string) {
		t.Helper()
		in, out := p.metric("earshot_voice_frames_in_total"), p.metric("earshot_voice_frames_delivered_total")
		ann.say(t.Context(), 10)
		testkit.Until(t, "the frames to arrive", func() bool { return p.metric("earshot_voice_frames_in_total") >= in+10 })
		if n := p.metric("earshot_voice_frames_delivered_total") - out; n != 0 {
			t.Errorf("%v frames delivered %s", n, why)
		}
	}
	silent("to players on other servers, who have nothing in common")

	strangers := peer.NewRaw(t, version)
	completes := func(why string, ann bool) {
		t.Helper()
		testkit.Until(t, "the names to choose from "+why, func() bool {
			names := mod.Complete("/voice mute ")
			list := string(strangers.Ping(p.addr))
			return slices.Contains(names, "Ann") == ann && slices.Contains(names, "Bob") &&
				strings.Contains(list, `"Ann"`) == ann && strings.Contains(list, `"Bob"`)
		})
	}
	completes("before anybody vanishes", true)
	a.Hide("Mod", "Ann")
	completes("while Ann has vanished", false)
	a.Show("Mod", "Ann")
	completes("when she is back", true)

	// A listen comes first, to a name that nobody has declared: silence, and a warning.
	says("/voice listen add Spy red", "There is no domain red: Spy hears nothing")
	testkit.Until(t, "the warning", func() bool { return strings.Contains(p.log.String(), "domain that does not exist") })
	silent("to a listener of a domain that is not there")
	says("/voice domain create red Ann "+bob.id.String(), "The domain red is there. Members: 2.")
	bob.hears(ann, 1, 0, 0)
	ann.hears(bob, 1, 0, 0)
	spy.hears(ann, 1, 0, 0)
	ann.hearsNothingFrom(spy, "a listener only")
	says("/voice why Spy Ann", "Ann does not hear Spy: they are on different servers")
	says("/voice domain list", "red (2): Ann, Bob")
	says("/voice domain delete red", "The domain red is gone.")
	silent("of a domain that has been deleted")
	says("/voice edge add Ann Spy", "Spy hears Ann, wherever both are.")
	spy.hears(ann, 1, 0, 0)
	says("/voice edge remove Ann Spy", "The edge from Ann to Spy is gone.")
	silent("over an edge that has been removed")

	says("/voice speaker create Jukebox", "Jukebox: a ") // where Ann stands
	at := ann.bot.Where()
	says(fmt.Sprintf("/voice speaker move Jukebox %.2f %.2f %.2f", at.X+8, at.Y, at.Z-6), "Jukebox: a ")
	says("/voice speaker range jukebox 40", "volume 100 %, range 40")
	says("/voice speaker volume jukebox 80", "volume 80 %, range 40")
	says("/voice speaker play Jukebox ../secret.opus", "no name of a file")
	says("/voice speaker play Jukebox tone.opus loop", "Jukebox plays tone.opus, which lasts 2s, over and over.")
	var id uuid.UUID
	testkit.Until(t, "the speaker's name", func() bool {
		l := ann.c.Speakers()
		if l == nil || len(l.List) != 1 || l.List[0].Name != "Jukebox" {
			return false
		}
		id = l.List[0].ID
		return true
	})
	good := 0
	testkit.Until(t, "Ann to hear the speaker where it stands", func() bool {
		for _, h := range ann.take() {
			if h.from == id && math.Abs(h.gain-0.8*(1-10./40)) < .005 && math.Abs(h.dx-8) < .02 && math.Abs(h.dz+6) < .02 && math.Abs(h.hz-440) < 5 && h.level > .3 && h.level < .4 {
				good++
			}
		}
		return good >= 25
	})
	for _, h := range bob.take() {
		if h.from == id {
			t.Fatal("heard on another server")
		}
	}
	says("/voice speaker stop Jukebox", "Jukebox is silent.")
	silent("after the speaker was stopped")
	says("/voice speaker allow Jukebox Bob", ", for Bob")
	testkit.Until(t, "the name to be Bob's alone", func() bool { return len(ann.c.Speakers().List) == 0 && len(bob.c.Speakers().List) == 1 })
	says("/voice speaker remove Jukebox", "The speaker Jukebox is gone.")
	testkit.Until(t, "the name to be gone", func() bool { return len(bob.c.Speakers().List) == 0 })
}
