package itest

import (
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/voice/client"
)

// TestVoiceCommand: who may mutes a player, who is then not heard and told so at once, when speaking, and at the end;
// others who may mute see it; why says it; and unmuting lets the voice be heard again.
func TestVoiceCommand(t *testing.T) {
	p := start(t, "permissions: {players: {Mod: {nodes: [\"earshot.command.voice.*\"]}, Mia: {nodes: [earshot.command.voice.mute]}}}\n", "--offline")
	bots := peer.NewBots(t, "1.21.4")
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), nil), newTalker(t, p, bots.Join(p.addr, "Bob"), nil)
	mod, mia := bots.Join(p.addr, "Mod"), bots.Join(p.addr, "Mia")
	hears := func(who *peer.Bot, where, text string) {
		t.Helper()
		who.Await(where, func(e peer.Event) bool { return strings.Contains(e.Text, text) })
	}
	says := func(command, answer string) {
		t.Helper()
		mod.Chat(command)
		hears(mod, "chat", answer)
	}
	says("/voice why Ann Bob", "Ann has no voice connection.")
	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}})
	bob.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1}})
	bob.hears(ann, 1, 0, 0)

	says("/voice mute ann ten minutes", "ten minutes is no duration. Type /voice mute <player> [duration] [reason] with 30s, 10m")
	says("/voice mute ann 10m too loud", "Ann is muted for 10m. Reason: too loud")
	hears(ann.bot, "chat", "Your voice is muted for 10m. Nobody hears you. Reason: too loud")
	hears(mia, "chat", "Mod mutes Ann for 10m. Reason: too loud")
	bob.hearsNothingFrom(ann, "while she is muted")
	hears(ann.bot, "actionbar", "Your voice is muted for 10m more: too loud")
	says("/voice why Ann Bob", "Bob does not hear Ann: Ann is muted")
	says("/voice mutes", " more Reason: too loud")

	says("/voice unmute ann", "The mute of Ann is lifted.")
	hears(ann.bot, "chat", "Your voice is no longer muted.")
	hears(mia, "chat", "Mod lifts the mute of Ann.")
	bob.hears(ann, 1, 0, 0)
	says("/voice why Ann Bob", "Bob hears Ann at 100 %")

	// Without a voice connection, and by the clock.
	says("/voice mute Mia 1s", "Mia is muted for 1s.")
	hears(mia, "chat", "Your voice is muted for 1s.")
	hears(mia, "chat", "Your voice is no longer muted.")
	says("/voice mute Mia", "Mia is muted until unmuted by /voice unmute.")
}
