package conn

import (
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/render"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/talk"
)

// The views of the socket. Of each only the newest text waits.
const (
	viewRoster = iota
	viewPose
	viewSpeakers
	viewMute
	viewTiers
	viewGroups
	viewNear
	viewRights
	viewBeat
)

// ShowRoster implements [hub.Client], as the other methods of this file do: they queue a view.
func (k *Conn) ShowRoster(s *roster.Snapshot) {
	if k.caps.Roster == 2 {
		has := k.roster
		if k.Waits() { // and is replaced: the client may have got it, or not
			has = nil
		}
		k.roster = s
		k.sock.View(viewRoster, render.Changes(s, has))
		return
	}
	k.sock.View(viewRoster, render.Roster(s, k.caps.Status == 1))
}

// ShowPose and the methods below queue a view or a reply.
func (k *Conn) ShowPose(p *world.Pose)        { k.sock.View(viewPose, render.Pose(p)) }
func (k *Conn) ShowSpeakers(s *talk.Speakers) { k.sock.View(viewSpeakers, render.Speakers(s)) }
func (k *Conn) ShowMute(n *mute.Notice)       { k.sock.View(viewMute, render.Mute(n)) }
func (k *Conn) ShowTiers(o *talk.Offer)       { k.sock.View(viewTiers, render.Ranges(o)) }
func (k *Conn) ShowGroups(p *group.Page)      { k.sock.View(viewGroups, render.Groups(p)) }
func (k *Conn) ShowNear(p []talk.Nearby)      { k.sock.View(viewNear, render.Near(p)) }
func (k *Conn) ShowRights(r talk.Rights)      { k.sock.View(viewRights, render.Rights(r)) }
func (k *Conn) ToggleMic()                    { k.sock.Reply(render.MicToggle()) }
func (k *Conn) Answer(r talk.GroupResult)     { k.sock.Reply(render.Result(r)) }
func (k *Conn) Waits() bool                   { return k.sock.Waits(viewRoster) }
