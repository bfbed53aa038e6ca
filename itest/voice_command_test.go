package itest

import (
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestVoiceCommand: who may mutes a player, who is then not heard and told so; why says it; and unmuting lets the voice
// be heard again.
func TestVoiceCommand(t *testing.T) {
	p := start(t, "permissions: {players: {Mod: {nodes: [\"earshot.command.voice.*\"]}}}\n", "--offline")
	bots := peer.NewBots(t, "1.21.4")
	ann, bob := newSpeaker(t, p, bots.Join(p.addr, "Ann"), nil), newSpeaker(t, p, bots.Join(p.addr, "Bob"), nil)
	mod := bots.Join(p.addr, "Mod")
	says := func(command, answer string) {
		t.Helper()
		mod.Chat(command)
		mod.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
	}
	says("/voice why Ann Bob", "Ann has no voice connection.")
	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}})
	bob.hears(ann, 1, 0, 0)

	says("/voice mute ann 10m too loud", "Ann is muted for 10m. Reason: too loud")
	bob.hearsNothingFrom(ann, "while she is muted")
	says("/voice why Ann Bob", "Bob does not hear Ann: Ann is muted")
	says("/voice mutes", " more Reason: too loud")

	says("/voice unmute ann", "The mute of Ann is lifted.")
	bob.hears(ann, 1, 0, 0)
	says("/voice why Ann Bob", "Bob hears Ann at 100 %")
}
