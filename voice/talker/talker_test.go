package talker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// listener is a client that takes everything and keeps the answers.
type listener struct{ answers chan talk.Code }

func (listener) Deliver(*route.Frame)        {}
func (listener) ShowRoster(*roster.Snapshot) {}
func (listener) ShowPose(*world.Pose)        {}
func (listener) ShowMute(*mute.Notice)       {}
func (listener) ShowTiers(*talk.Offer)       {}
func (listener) ShowGroups(*group.Page)      {}
func (listener) ShowNear([]talk.Nearby)      {}
func (listener) ShowRights(talk.Rights)      {}
func (listener) ToggleMic()                  {}
func (l listener) Answer(r talk.GroupResult) { l.answers <- r.Code }
func (listener) Waits() bool                 { return false }
func (listener) End(hub.End)                 {}

// Requests about groups are apart; one that comes too soon is lost without an answer, and postpones nothing.
func TestGroupRequestsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := world.New()
		reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		h := hub.New(reg, route.Policy{Gain: gain.Rules{Default: 48}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.Run(ctx) }()
		defer func() { stop(); <-done }()
		if err := h.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		l := listener{make(chan talk.Code, 16)}
		m := h.Join(reg.Add(uuid.UUID{15: 1}, "anna"), l, hub.Wants{Groups: true})
		k := New(Config{Hub: h, Stats: new(Stats), OpusOK: func([]byte) bool { return true }}, m)
		time.Sleep(time.Second)

		asked := func(what string, wait time.Duration, r talk.GroupRequest, want ...talk.Code) {
			t.Helper()
			k.Ask(r)
			time.Sleep(wait)
			synctest.Wait()
			var got []talk.Code
			for len(l.answers) > 0 {
				got = append(got, <-l.answers)
			}
			if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		create, leave := talk.GroupRequest{Verb: talk.Create, Name: "team"}, talk.GroupRequest{Verb: talk.Leave}
		asked("the first", GroupEvery-1, create, talk.OK)
		asked("too soon", 1, leave)
		if n := h.Counts().Members; n != 1 {
			t.Fatalf("%d members: a request that came too soon was carried out", n)
		}
		asked("just in time, after one that was lost", time.Second, leave, talk.OK)
		asked("once more", time.Second, leave, talk.NotInGroup)
	})
}
