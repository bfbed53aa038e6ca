package hub

import (
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/render"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// kind is what a client is shown something of.
type kind uint8

const (
	rosters kind = iota
	poses
	mutes
	tiers
	groups
	answers
)

// writer is a client that has all it is shown as text lines, as those of the voice socket have it. The zero value has a
// socket with status, and no memory.
type writer struct {
	legacy bool // without status
	show   func(k kind, text []byte)
}

func (w *writer) shows(k kind, text []byte) {
	if w.show != nil {
		w.show(k, text)
	}
}

func (w *writer) ShowRoster(s *roster.Snapshot) { w.shows(rosters, render.Roster(s, !w.legacy)) }
func (w *writer) ShowPose(p *world.Pose)        { w.shows(poses, render.Pose(p)) }
func (w *writer) ShowMute(n *mute.Notice)       { w.shows(mutes, render.Mute(n)) }
func (w *writer) ShowTiers(o *talk.Offer)       { w.shows(tiers, render.Ranges(o)) }
func (w *writer) ShowGroups(p *group.Page)      { w.shows(groups, render.Groups(p)) }
func (w *writer) Answer(r talk.GroupResult)     { w.shows(answers, render.Result(r)) }
func (w *writer) Deliver(*route.Frame)          {}
func (w *writer) Waits() bool                   { return false }
func (w *writer) End(End)                       {}
