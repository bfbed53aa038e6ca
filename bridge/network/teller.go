package network

import (
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/talk"
)

// notices has the texts of why somebody is not heard.
var notices = map[voice.Reason]string{
	voice.SoundboardOff: "notice-soundboard-off", voice.SoundboardRefused: "notice-soundboard", voice.ServerMuted: "notice-muted",
	voice.SpeakRefused: "notice-speak",
}

// teller tells players about their voices.
type teller struct {
	player func(uuid.UUID) session.Player // nil: has left
	texts  func() *commands.Texts
	muteOf func(uuid.UUID) mute.State
}

// teller returns the network's.
func (n *Network) teller() teller {
	return teller{
		n.parts.server.Player, n.texts,
		n.parts.gateway.MuteOf,
	}
}

// notice tells players on their action bars why nobody hears them, and about a mute, for how long and why.
func (t teller) notice(id uuid.UUID, why voice.Reason) {
	p := t.player(id)
	if p == nil {
		return
	}
	text := ""
	if s := t.muteOf(id); why == voice.ServerMuted && s.Kind != talk.NotMuted {
		text = t.texts().StillMuted(p.Locale(), silence(s))
	} else {
		text = t.texts().Say(p.Locale(), notices[why]).String()
	}
	p.ActionBar(text) // players with a full queue, or who have left, go without
}

// muted tells players in the chat of the mutes on them.
func (t teller) muted(id uuid.UUID, was, is mute.State) {
	p := t.player(id)
	switch {
	case p == nil:
	case is.Kind == talk.NotMuted:
		p.SendChat(t.texts().Unmuted(p.Locale(), was.Kind == talk.MutedServer))
	default:
		p.SendChat(t.texts().Muted(p.Locale(), p.Protocol(), silence(is)))
	}
}

func silence(s mute.State) commands.Silence {
	of := commands.Silence{All: s.Kind == talk.MutedServer, Reason: s.Reason}
	if !s.Until.IsZero() {
		of.Left = max(time.Until(s.Until), 1)
	}
	return of
}
