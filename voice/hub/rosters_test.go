package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
)

// slow is a client whose rosters leave when it says so.
type slow struct {
	writer
	waits bool
	shown []*roster.Snapshot
}

func (s *slow) ShowRoster(v *roster.Snapshot) { s.shown, s.waits = append(s.shown, v), true }
func (s *slow) Waits() bool                   { return s.waits }

// A reader of changes gets each roster after the one before has left, since changes cannot stand for those before them.
// Any other reader gets the newest at once, in place of what still waits.
func TestChangesAreNotOvertaken(t *testing.T) {
	for _, changes := range []bool{false, true} {
		run(t, route.Policy{}, func(x *test) {
			x.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
			c := &slow{}
			x.hub.Join(x.player("anna"), c, Wants{Status: true, Changes: changes})
			x.calm()
			for _, name := range []string{"ben", "cleo", "dora"} {
				x.hub.Join(x.player(name), &writer{}, Wants{})
				time.Sleep(2 * Flush)
				synctest.Wait()
			}
			if want := map[bool]int{false: 4, true: 1}[changes]; len(c.shown) != want {
				t.Errorf("changes %v: %d rosters while the first one waits, want %d", changes, len(c.shown), want)
			}
			x.hub.Do(func(time.Time) { c.waits = false })
			time.Sleep(2 * Flush)
			synctest.Wait()
			if want := map[bool]int{false: 4, true: 2}[changes]; len(c.shown) != want || c.shown[want-1].Len() != 4 {
				t.Errorf("changes %v: %d rosters in the end, the last of %d people", changes, len(c.shown), c.shown[len(c.shown)-1].Len())
			}
		})
	}
}

// A roster is never longer than what readers take. Where not all have room, those in the group and those who are near
// have it, also once they have come nearer.
func TestARosterHasABound(t *testing.T) {
	former := roster.Lines.Most
	defer func() { roster.Lines.Most = former }()
	roster.Lines.Most = 26_000 // of the 270,000 bytes that 5,000 players would take
	reg := world.New()
	reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	x := &throng{reg: reg, hub: New(reg, route.Policy{}), now: time.Now()}
	c := &slow{}
	place := x.reg.Place("survival", "overworld")
	join := func(id uuid.UUID, at float64, c Client, changes bool) *Member {
		p := x.reg.Add(id, "of_sixteen_chars")
		p.SetFacts(world.Facts{Place: place})
		p.SetPose(&world.Pose{X: at, Place: place})
		return x.hub.Join(p, c, Wants{Status: true, Changes: changes})
	}
	for i := range 500 {
		x.ids = append(x.ids, uuid.UUID{0: byte(i), 1: byte(i >> 8), 15: 1})
		x.all = append(x.all, join(x.ids[i], float64(10_000*(i%100)), &writer{}, true))
	}
	anna := join(uuid.UUID{14: 1}, 0, c, false)
	x.settle()
	if n := c.shown[0].Size(roster.Lines); n > roster.First || len(c.shown) < 2 || c.shown[0].Len() < 400 {
		t.Errorf("at first %d people in %d bytes; %d rosters in all", c.shown[0].Len(), n, len(c.shown))
	}
	last := c.shown[len(c.shown)-1]
	if n := last.Size(roster.Lines); n > roster.Lines.Most || last.Len() < 470 || !anna.cut {
		t.Fatalf("%d people in %d bytes, cut: %v", last.Len(), n, anna.cut)
	}
	has := func(id uuid.UUID) bool {
		for e := range c.shown[len(c.shown)-1].All() {
			if e.ID == id {
				return true
			}
		}
		return false
	}
	var far int
	for i, m := range x.all {
		switch {
		case i%100 == 0 && !has(x.ids[i]):
			t.Fatal("somebody near is not in it")
		case !has(x.ids[i]):
			far = i
			m.Player.SetPose(&world.Pose{X: 3, Place: place})
		}
	}
	x.now = x.now.Add(10 * time.Second)
	x.settle()
	if far == 0 || !has(x.ids[far]) {
		t.Error("somebody who came near is not in it")
	}
}
