package hub

import (
	"testing"
	"time"

	"github.com/earshot-mc/earshot/bridge/sight"
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
	near
	rights
	mic
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
func (w *writer) ShowNear(p []talk.Nearby)      { w.shows(near, render.Near(p)) }
func (w *writer) ShowRights(r talk.Rights)      { w.shows(rights, render.Rights(r)) }
func (w *writer) ToggleMic()                    { w.shows(mic, render.MicToggle()) }
func (w *writer) Answer(r talk.GroupResult)     { w.shows(answers, render.Result(r)) }
func (w *writer) Deliver(*route.Frame)          {}
func (w *writer) Waits() bool                   { return false }
func (w *writer) End(End)                       {}

// shelf is a client that keeps the values that it is shown.
type shelf struct {
	writer
	roster *roster.Snapshot
	mute   *mute.Notice
	tiers  *talk.Offer
	groups *group.Page
}

func (s *shelf) ShowRoster(v *roster.Snapshot) { s.roster = v }
func (s *shelf) ShowMute(v *mute.Notice)       { s.mute = v }
func (s *shelf) ShowTiers(v *talk.Offer)       { s.tiers = v }
func (s *shelf) ShowGroups(v *group.Page)      { s.groups = v }

// TestManyAreShownOneValue: who is to see the same is shown the same value, so that its text is written once for all;
// who is to see something else is not.
func TestManyAreShownOneValue(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		x.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		var all [4]*shelf
		var who [4]*Member
		for i, name := range []string{"anna", "ben", "cleo", "dora"} {
			all[i] = &shelf{}
			who[i] = x.hub.Join(x.player(name), all[i], Wants{Status: true, Groups: true})
		}
		x.calm()
		x.hub.Ask(who[0], talk.GroupRequest{Verb: talk.Create, Name: "team"})
		if err := x.hub.Mute(mute.Record{Player: mute.Everybody, Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := x.hub.Mute(mute.Record{Player: mute.Everybody, Until: time.Now().Add(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		x.calm()
		team, err := x.hub.Groups()
		if err != nil || len(team) != 1 {
			t.Fatalf("%v, %v", team, err)
		}
		x.hub.Ask(who[0], talk.GroupRequest{Verb: talk.Invite, Group: team[0].ID, Player: who[3].Player.ID})
		x.calm()
		if err := x.hub.Do(func(time.Time) {
			first := all[0]
			if first.roster == nil || first.mute.Kind != talk.MutedServer || first.tiers == nil || len(first.groups.Rows.Members) != 1 {
				t.Errorf("shown %+v", first)
				return
			}
			for i, s := range all[1:] {
				if s.roster != first.roster || s.mute != first.mute || s.tiers != first.tiers {
					t.Errorf("%d is shown a roster, mute or tiers of its own", i+1)
				}
				if invited := i+1 == 3; (s.groups != first.groups) != invited {
					t.Errorf("%d is shown the page of the first: %v, invited: %v", i+1, s.groups == first.groups, invited)
				}
				if s.groups.Rows != first.groups.Rows {
					t.Errorf("%d is shown rows of its own", i+1)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}
