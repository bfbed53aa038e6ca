package talker

import (
	"time"

	"github.com/earshot-mc/earshot/handshake/budget"
	"github.com/earshot-mc/earshot/voice/route"
)

// Bounds of the soundboard: Clips streams at once, of FramesPerSecond each; or with [Talker.OneClip] one stream, whose
// starts are ClipEvery apart.
const (
	Clips     = 10
	ClipEvery = 300 * time.Millisecond

	// ClipStarts bounds the clips that begin in a second, with one second of burst: a choice, so that nobody makes
	// listeners keep a decoder for each of hundreds.
	ClipStarts = 20
)

// clips holds a client's clips and their budgets. It belongs to the client's reader.
type clips struct {
	alone  bool   // one at a time
	rate   int    // of one
	frames ration // of all
	starts budget.Budget
	slots  []slot // as many as go on at once; made with the first

	// over has the last replaced streams: later frames of these are no new clip.
	over [2 * Clips]int64
	next int
}

// slot is one clip that goes on.
type slot struct {
	stream      int64 // 0: none yet
	began, last time.Time
	frames      budget.Budget
	src         *route.Source
}

func (c *clips) init(rate int, alone bool) {
	c.alone, c.rate = alone, rate
	c.frames, c.starts = newRation(c.most()*rate), budget.Second(ClipStarts)
}

func (c *clips) most() int {
	if c.alone {
		return 1
	}
	return Clips
}

// quiet is the silence after which a clip counts as ended.
const quiet = 200 * time.Millisecond

// admit finds the slot of a frame's stream, or says why the frame is dropped.
func (c *clips) admit(now time.Time, stream int64) (*slot, Drop) {
	if !c.frames.Take(now, 1) {
		return nil, ClipRate
	}
	if c.slots == nil {
		c.slots = make([]slot, c.most())
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
	// A clip that comes too soon begins late instead of never: the network may have brought two nearer together than
	// they were sent.
	if c.alone && now.Sub(oldest.began) < ClipEvery || !c.starts.Take(now, 1) {
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
	s.frames = budget.Second(c.rate)
	s.frames.Take(now, 1)
	return s, 0
}
