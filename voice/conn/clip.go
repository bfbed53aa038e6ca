package conn

import (
	"time"

	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Bounds of the soundboard. Version 1 has one stream at a time, whose starts are ClipEvery apart; version 2 has Clips
// streams, of FramesPerSecond each.
const (
	Clips     = 10
	ClipEvery = 300 * time.Millisecond

	// ClipStarts is how many clips may begin in a second, with one second of burst: a choice, so that nobody makes
	// listeners keep a decoder for each of hundreds.
	ClipStarts = 20
)

// NoticeEvery is the least time between two notices for one reason.
const NoticeEvery = 5 * time.Second

// Reason is why a player is told that nobody hears something.
type Reason uint8

// The reasons.
const (
	SoundboardOff     Reason = iota // the server has switched it off
	SoundboardRefused               // the player has no permission
	ServerMuted                     // the server has muted the player, or everybody
	SpeakRefused                    // the player may not speak
	numReasons
)

// String is the reason in a sentence for players.
func (r Reason) String() string {
	return [numReasons]string{
		"The soundboard is switched off on this server", "You may not use the soundboard here", "Your voice is muted by the server",
		"You may not speak here",
	}[r]
}

// clip takes a frame of a clip.
func (k *Conn) clip(now time.Time, f *wire.C2S) {
	slot, why := k.clips.admit(now, f.Stream)
	if slot == nil {
		k.drop(why)
		if why == ClipRate && !k.clips.frames.excess.Take(now, 1) {
			k.flood("frames of clips")
		}
		return
	}
	if slot.src == nil {
		slot.src = route.NewClip(&k.member.Member)
	}
	k.route(slot.src, f)
}

// refuse drops a frame and has the player told why.
func (k *Conn) refuse(now time.Time, why Drop, reason Reason) {
	k.drop(why)
	if k.cfg.Notice != nil && now.Sub(k.told[reason]) >= NoticeEvery {
		k.told[reason] = now
		k.cfg.Notice(k.member.Player.ID, reason)
	}
}

// clips are a client's clips and what they may cost. It belongs to the client's reader.
type clips struct {
	version uint8
	frames  ration // of all
	starts  socket.Budget
	slots   []slot // as many as go on at once

	// over has the streams that were replaced last: what still comes of them is no new clip.
	over [2 * Clips]int64
	next int
}

// slot is one clip that goes on.
type slot struct {
	stream      int64 // 0: none yet
	began, last time.Time
	frames      socket.Budget
	src         *route.Source
}

func (c *clips) init(version uint8) {
	c.version = version
	n := 1
	if version == 2 {
		n = Clips
	}
	c.slots = make([]slot, n)
	c.frames, c.starts = newRation(n*FramesPerSecond), second(ClipStarts)
}

// quiet is how long a clip has sent nothing when it is taken for ended.
const quiet = 200 * time.Millisecond

// admit finds the slot of a frame's stream, or says why the frame is dropped.
func (c *clips) admit(now time.Time, stream int64) (*slot, Drop) {
	if !c.frames.Take(now, 1) {
		return nil, ClipRate
	}
	var oldest, ended *slot // began first; quiet for longest
	for i := range c.slots {
		s := &c.slots[i]
		if s.stream == stream {
			if !s.frames.Take(now, 1) {
				return nil, ClipRate
			}
			s.last = now
			return s, 0
		}
		if oldest == nil || s.began.Before(oldest.began) {
			oldest = s
		}
		if now.Sub(s.last) >= quiet && (ended == nil || s.last.Before(ended.last)) {
			ended = s
		}
	}
	for _, o := range c.over {
		if o == stream {
			return nil, ClipOver
		}
	}
	// A clip that comes too soon begins late instead of never: the way here may have brought two nearer together than
	// they were sent.
	if c.version == 1 && now.Sub(oldest.began) < ClipEvery || !c.starts.Take(now, 1) {
		return nil, ClipStart
	}
	// A client ends its oldest clip before it begins one too many; one that has ended already stands nearer.
	s := ended
	if s == nil {
		s = oldest
		c.over[c.next] = s.stream
		c.next = (c.next + 1) % len(c.over)
	}
	s.stream, s.began, s.last = stream, now, now
	s.frames = second(FramesPerSecond)
	s.frames.Take(now, 1)
	return s, 0
}
