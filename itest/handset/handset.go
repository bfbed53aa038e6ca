// Package handset is a client of the voice gateway without a socket: a telephone in memory. It stands for any other
// kind of client, such as a page in a browser or another protocol, and shows what such a kind needs: the values it is
// shown, and a talker for its player's voice.
package handset

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
)

// Wants is what a handset takes: everything.
var Wants = hub.Wants{Status: true, Pose: true, Groups: true, Speakers: true, Clips: true, Channels: true, Page: true}

// Sound is a frame as it was heard.
type Sound struct {
	Kind route.Kind
	From uuid.UUID
	Gain uint8
	Opus string
}

// Seen holds the last views of a handset, and everything that it has heard and been answered.
type Seen struct {
	Roster   []roster.Person
	Pose     *world.Pose
	Mute     mute.State
	Tiers    talk.TierSet
	Groups   *group.Page
	Speakers []talk.Speaker
	Answers  []talk.GroupResult
	Sounds   []Sound
	Near     []talk.Nearby
	Rights   talk.Rights
	Toggles  int // of the microphone
	Ended    []hub.End
}

// Handset is one. Make it with [New].
type Handset struct {
	mu    sync.Mutex
	seen  Seen
	ended chan struct{} // closed with the first End
	do    chan func(*talker.Talker) error
}

// New returns a handset that nobody serves yet.
func New() *Handset {
	return &Handset{ended: make(chan struct{}), do: make(chan func(*talker.Talker) error)}
}

// Seen returns what the handset has been shown so far.
func (h *Handset) Seen() Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// Do has something done with the talker. It does nothing once the handset has ended.
func (h *Handset) Do(what func(*talker.Talker) error) {
	select {
	case h.do <- what:
	case <-h.ended:
	}
}

// Say sends a frame.
func (h *Handset) Say(seq int64, opus string) {
	h.Do(func(t *talker.Talker) error { return t.Mic(1, seq, []byte(opus)) })
}

// ErrEnded is the error of a handset that was ended.
var ErrEnded error = ended{}

type ended struct{}

func (ended) Error() string { return "the handset was hung up" }
func (ended) Label() string { return "hung up" }

// Serve implements the gateway's client, as the methods below do.
func (h *Handset) Serve(ctx context.Context, t *talker.Talker) error {
	for {
		select {
		case <-ctx.Done():
			h.End(hub.ShuttingDown)
			return ErrEnded
		case <-h.ended:
			return ErrEnded
		case do := <-h.do:
			if err := do(t); err != nil {
				return errors.Join(err, ErrEnded)
			}
		}
	}
}

// End hangs up.
func (h *Handset) End(why hub.End) {
	h.note(func(s *Seen) {
		if s.Ended = append(s.Ended, why); len(s.Ended) == 1 {
			close(h.ended)
		}
	})
}

// Count adds what was heard.
func (h *Handset) Count(to *hub.Sent) { to.Frames += uint64(len(h.Seen().Sounds)) }

// Deliver takes a frame of any talker.
func (h *Handset) Deliver(f *route.Frame) {
	h.note(func(s *Seen) { s.Sounds = append(s.Sounds, Sound{f.Kind, f.Talker, f.Gain, string(f.Opus)}) })
}

// Waits returns false: a handset has whatever it is shown.
func (h *Handset) Waits() bool { return false }

// ShowRoster and the methods below are called by the turn.
func (h *Handset) ShowRoster(r *roster.Snapshot) {
	var all []roster.Person
	for e := range r.All() {
		all = append(all, e.Person)
	}
	h.note(func(s *Seen) { s.Roster = all })
}

// ShowPose and the methods below keep what they are shown.
func (h *Handset) ShowPose(p *world.Pose)        { h.note(func(s *Seen) { s.Pose = p }) }
func (h *Handset) ShowMute(n *mute.Notice)       { h.note(func(s *Seen) { s.Mute = n.State }) }
func (h *Handset) ShowTiers(o *talk.Offer)       { h.note(func(s *Seen) { s.Tiers = o.Tiers }) }
func (h *Handset) ShowGroups(p *group.Page)      { h.note(func(s *Seen) { s.Groups = p }) }
func (h *Handset) ShowSpeakers(l *talk.Speakers) { h.note(func(s *Seen) { s.Speakers = l.List }) }
func (h *Handset) Answer(r talk.GroupResult) {
	h.note(func(s *Seen) { s.Answers = append(s.Answers, r) })
}

func (h *Handset) note(change func(*Seen)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.seen)
}

// ShowNear takes who is around, ShowRights what the player may do, and ToggleMic an order to switch the microphone.
func (h *Handset) ShowNear(p []talk.Nearby) { h.note(func(s *Seen) { s.Near = p }) }
func (h *Handset) ShowRights(r talk.Rights) { h.note(func(s *Seen) { s.Rights = r }) }
func (h *Handset) ToggleMic()               { h.note(func(s *Seen) { s.Toggles++ }) }
