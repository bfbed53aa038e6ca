// Package talker is what one member of voice sends, from any kind of client: it checks, rations and counts each frame
// of the microphone and of clips and hands it to the listeners, and passes the player's wishes on to the hub.
//
// It promises that nothing a client sends costs more than its budget, that everything thrown away is counted with its
// reason, and that it knows of no socket and no format.
package talker

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/budget"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Budgets of one client.
const (
	FramesPerSecond = 60 // of the microphone, with one second of burst; the excess is dropped

	// FloodTime bounds the excess of frames: the budget of this time at once, and as much again with the time; more is
	// a [Flood]. It is longer than any line may be silent, so that no delayed burst is that large.
	FloodTime = 30 * time.Second

	// BadFrames bounds the frames within BadTime that no proper client sends.
	BadFrames = 100
	BadTime   = 10 * time.Second

	// GroupEvery is the least time between two requests about groups; one that comes sooner is lost.
	GroupEvery = 200 * time.Millisecond
)

// Flood is the error of one dropped frame too many; the client is to be ended.
type Flood struct{ What string }

// Error implements error.
func (f *Flood) Error() string { return "too many " + f.What }

// TooManyBad is the error of one frame too many that no proper client sends; the client is to be ended.
type TooManyBad struct{ Last Drop }

// Error implements error.
func (b *TooManyBad) Error() string {
	return fmt.Sprintf("too many bad frames, the last for its %s", b.Last)
}

// Config holds what all talkers share.
type Config struct {
	Hub    *hub.Hub
	Stats  *Stats
	OpusOK func(opus []byte) bool // tells whether a packet passes as one frame of speech

	Speakers Speakers // nil: there are none

	// Notice tells a player, on the action bar, why nobody hears them: at most once per NoticeEvery and reason. It must
	// not block. nil tells nobody.
	Notice func(player uuid.UUID, why Reason)

	// Rate bounds the frames a second of each microphone, for measurements; 0: FramesPerSecond.
	Rate int
}

// Speakers is the part of the speaker channels that talkers need.
type Speakers interface {
	// Mic takes a checked frame of a microphone, for the channels that carry it.
	Mic(from *route.Member, stream, seq int64, opus []byte)
}

// Talker is one member as it sends. Its methods belong to the one goroutine that reads from the client.
type Talker struct {
	cfg    Config
	member *hub.Member
	mic    *route.Source

	clips     clips
	told      [numReasons]time.Time
	asked     time.Time   // about groups
	frames    ration      // of the microphone
	bad       []time.Time // of the last BadFrames discarded frames, in a ring
	discarded int
	accepted  int64
}

// New returns the talker of a member. It may have [Clips] clips at once.
func New(cfg Config, m *hub.Member) *Talker {
	t := &Talker{cfg: cfg, member: m, mic: route.NewSource(&m.Member)}
	if t.cfg.Rate == 0 {
		t.cfg.Rate = FramesPerSecond
	}
	t.frames = newRation(t.cfg.Rate)
	t.clips.init(t.cfg.Rate, false)
	return t
}

// OneClip restricts the talker to one clip at a time, whose starts are [ClipEvery] apart.
func (t *Talker) OneClip() { t.clips.init(t.cfg.Rate, true) }

// Player returns the talker's player.
func (t *Talker) Player() *world.Player { return t.member.Player }

// SetDeafened records whether the player wants to hear.
func (t *Talker) SetDeafened(on bool) { t.cfg.Hub.SetDeafened(t.member, on) }

// SetTier records how loudly the player speaks; see [hub.Hub.SetTier].
func (t *Talker) SetTier(tier talk.Tier) { t.cfg.Hub.SetTier(t.member, tier) }

// Beat records that the client's page is awake, and returns how many frames of this client were accepted so far: a page
// whose frames are not among them knows that nobody hears it.
func (t *Talker) Beat() (accepted int64) {
	t.cfg.Hub.Beat(t.member)
	return t.accepted
}

// GroupsEnabled tells whether there are groups at all.
func (t *Talker) GroupsEnabled() bool { return t.cfg.Hub.GroupsEnabled() }

// Ask has a request about groups carried out and answered, unless it comes too soon after the one before.
func (t *Talker) Ask(r talk.GroupRequest) {
	now := time.Now()
	if now.Sub(t.asked) < GroupEvery {
		return
	}
	t.asked = now
	t.cfg.Hub.Ask(t.member, r)
}

// Mic takes a frame of the microphone. stream and seq are the client's, both 0 where it does not count its frames. The
// error is [*Flood], [*TooManyBad] or nil, whatever else becomes of the frame. The bytes are not kept.
func (t *Talker) Mic(stream, seq int64, opus []byte) error {
	defer t.seen()
	now := time.Now()
	if !t.cfg.OpusOK(opus) {
		return t.discard(now, BadOpus)
	}
	if !t.frames.Take(now, 1) {
		t.drop(TooMany)
		if !t.frames.excess.Take(now, 1) {
			return &Flood{"frames of the microphone"}
		}
		return nil
	}
	t.route(t.mic, stream, seq, opus)
	if t.cfg.Speakers != nil {
		t.cfg.Speakers.Mic(&t.member.Member, stream, seq, opus)
	}
	return nil
}

// Clip takes a frame of a clip of the soundboard, as Mic does.
func (t *Talker) Clip(stream, seq int64, opus []byte) error {
	defer t.seen()
	now := time.Now()
	if !t.cfg.OpusOK(opus) {
		return t.discard(now, BadOpus)
	}
	slot, why := t.clips.admit(now, stream)
	if slot == nil {
		t.drop(why)
		if why == ClipRate && !t.clips.frames.excess.Take(now, 1) {
			return &Flood{"frames of clips"}
		}
		return nil
	}
	if slot.src == nil {
		slot.src = route.NewClip(&t.member.Member)
	}
	t.route(slot.src, stream, seq, opus)
	return nil
}

// Bad counts a frame that is none in the client's format. It fails as Mic does.
func (t *Talker) Bad(why Drop) error {
	defer t.seen()
	return t.discard(time.Now(), why)
}

func (t *Talker) seen() { t.cfg.Stats.Frames.Add(1) }

// route sends a checked frame to its listeners.
func (t *Talker) route(src *route.Source, stream, seq int64, opus []byte) {
	n, outcome := src.Send(t.cfg.Hub.Table(), stream, seq, opus)
	switch outcome {
	case route.Routed:
		t.accepted++
	case route.NotListed:
		t.drop(NotListed)
	case route.NoPose:
		t.drop(NoPose)
	case route.Muted:
		t.refuse(time.Now(), Silenced, ServerMuted)
	case route.NoSpeak:
		t.refuse(time.Now(), Forbidden, SpeakRefused)
	case route.SoundboardOff:
		t.refuse(time.Now(), ClipsOff, SoundboardOff)
	case route.NoSoundboard:
		t.refuse(time.Now(), ClipsRefused, SoundboardRefused)
	}
	if n > 0 {
		t.cfg.Stats.Delivered.Add(uint64(n))
	}
}

func (t *Talker) drop(why Drop) { t.cfg.Stats.Drops[why].Add(1) }

// refuse drops a frame and tells the player why.
func (t *Talker) refuse(now time.Time, why Drop, reason Reason) {
	t.drop(why)
	if t.cfg.Notice != nil && now.Sub(t.told[reason]) >= NoticeEvery {
		t.told[reason] = now
		t.cfg.Notice(t.member.Player.ID, reason)
	}
}

// discard drops a frame that no proper client sends.
func (t *Talker) discard(now time.Time, why Drop) error {
	t.drop(why)
	if t.bad == nil {
		t.bad = make([]time.Time, BadFrames)
	}
	t.bad[t.discarded%BadFrames] = now
	t.discarded++
	if oldest := t.bad[t.discarded%BadFrames]; t.discarded >= BadFrames && now.Sub(oldest) <= BadTime {
		return &TooManyBad{why}
	}
	return nil
}

// ration is a budget of frames with a bound for the excess.
type ration struct {
	budget.Budget
	excess budget.Budget
}

func newRation(rate int) ration {
	return ration{budget.Second(rate), budget.Budget{PerSecond: rate, AtOnce: rate * int(FloodTime/time.Second)}}
}
