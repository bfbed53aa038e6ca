package talker

import (
	"sync/atomic"
	"time"
)

// Drop says why a frame of a client was not routed.
type Drop uint8

// The reasons, in the order of the checks, first those of the microphone. Those from BadLength to BadOpus, and BadKind,
// are for frames that no proper client sends.
const (
	BadLength Drop = iota
	BadStream
	BadSequence
	BadOpus   // not one 20 ms mono frame
	TooMany   // over the budget
	NotListed // the client joined or left in this very moment
	NoPose    // it is not known where the player is
	BadKind
	ClipRate     // over the soundboard's budget
	ClipStart    // of a clip too soon after another one, or of one of too many
	ClipOver     // of a clip that another one has replaced
	ClipsOff     // the soundboard is switched off
	ClipsRefused // the player may not use it
	Silenced     // the server has muted the player
	Forbidden    // the player may not speak
	numDrops
)

// Drops lists all reasons, for counters that start at zero.
func Drops() []Drop {
	all := make([]Drop, numDrops)
	for i := range all {
		all[i] = Drop(i)
	}
	return all
}

// String returns the reason in a word or two, fit for a metric label.
func (d Drop) String() string {
	return [numDrops]string{"bad_length", "bad_stream", "bad_sequence", "bad_opus", "rate", "not_listed", "no_position",
		"bad_kind", "clip_rate", "clip_start", "clip_over", "clips_off", "clips_refused", "muted", "no_permission"}[d]
}

// Stats count what all clients sent. The zero value is ready.
type Stats struct {
	Frames    atomic.Uint64 // that have been handled, in any way
	Delivered atomic.Uint64 // frames handed to listeners
	Drops     [numDrops]atomic.Uint64
}

// NoticeEvery is the least time between two notices for one reason.
const NoticeEvery = 5 * time.Second

// Reason says why a player is told that nobody hears something.
type Reason uint8

// The reasons.
const (
	SoundboardOff     Reason = iota // the server has switched it off
	SoundboardRefused               // the player has no permission
	ServerMuted                     // the server has muted the player, or everybody
	SpeakRefused                    // the player may not speak
	numReasons
)

// String returns the reason in a sentence for players.
func (r Reason) String() string {
	return [numReasons]string{
		"The soundboard is switched off on this server", "You may not use the soundboard here", "Your voice is muted by the server",
		"You may not speak here",
	}[r]
}
