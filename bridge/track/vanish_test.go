package track

import (
	"fmt"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/voice/hub"
)

// Colleagues who may see the vanished unveil them to nobody, however many they are and however few the others: not by
// voice near by, on the soundboard or in a group, not on rosters, in rows of groups, by invitations, in commands or
// completion, here or on another server; from the join on, and wherever the one stands.
func TestColleaguesUnveilNobody(t *testing.T) {
	for _, v := range twoVersions {
		for _, n := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {4, 1}, {8, 2}} {
			empty(t, v, func(x *scene) {
				zoe := x.connect("Zoe", v)
				zoe.enter("lobby")
				var staff, others []*actor
				for i := range n[0] {
					staff = append(staff, x.join(fmt.Sprint("Staff", i)))
				}
				for i := range n[1] {
					others = append(others, x.join(fmt.Sprint("Other", i)))
				}
				here := append(append([]*actor{}, staff...), others...)
				x.meet(here...)
				x.lasts(2 * time.Second)
				x.gather(zoe)
				mod := x.join("Mod")
				mod.list(here...)
				mod.body(here...)
				for _, a := range staff {
					a.list(mod)
					a.body(mod)
				}
				silent := func() bool {
					for _, l := range append(others, zoe) {
						if x.hears(l, mod) || x.plays(l, mod) {
							return false
						}
					}
					return true
				}
				heard := func(by ...*actor) func() bool {
					return func() bool {
						for _, l := range by {
							if !x.hears(l, mod) {
								return false
							}
						}
						return true
					}
				}
				hidden := func(where string) {
					x.t.Helper()
					x.throughout(3*time.Second, where+": Mod is silent for all but staff", func() bool { return silent() && !mod.player.Sight.Public() })
					x.everywhere(0, mod, false, append(others, zoe)...)
					x.everywhere(time.Second, mod, true, staff...)
				}
				hidden("from the join")
				for _, l := range append(others, zoe) {
					if l.ever["Mod"] {
						x.t.Errorf("%d: Mod was on a roster of %s", v, l.name)
					}
				}
				for _, a := range others {
					a.list(mod)
					a.body(mod)
				}
				x.everywhere(time.Second, mod, true, append(here, zoe)...)
				x.lasts(time.Second)
				x.gather(append([]*actor{mod, zoe}, here...)...)
				x.within(time.Second, "all hear Mod", heard(append(here, zoe)...))
				for _, a := range others {
					a.unlist(mod)
					a.unbody(mod)
				}
				x.within(800*time.Millisecond, "Mod is silent for others", silent)
				x.within(time.Second, "staff hears Mod", heard(staff...))
				hidden("near")
				mod.goes(100) // with staff
				for _, a := range staff {
					a.goes(100)
				}
				for _, a := range others {
					mod.unbody(a)
					for _, s := range staff {
						a.unbody(s)
						s.unbody(a)
					}
				}
				hidden("far off")
				for range 3 { // what one says who has just come there counts
					for _, a := range others {
						a.reborn(overworld)
						for _, o := range others {
							if o != a {
								a.body(o)
								o.body(a)
							}
						}
					}
					x.ages()
					x.throughout(700*time.Millisecond, "Mod is silent while others come", silent)
				}
				hidden("after others came")
				for _, a := range others {
					a.list(mod)
				}
				x.within(time.Second, "all hear Mod again", heard(append(here, zoe)...))
				x.everywhere(time.Second, mod, true, append(here, zoe)...)
			})
		}
	}
}

// A player who does not see somebody who sees them does not know about them, even where all others do, and that hides
// nobody from these.
func TestAMishapOfOne(t *testing.T) {
	for _, v := range twoVersions {
		empty(t, v, func(x *scene) {
			zoe := x.connect("Zoe", v)
			zoe.enter("lobby")
			for i := range 20 {
				x.join(fmt.Sprint("p", i))
			}
			all := x.all[1:]
			x.meet(all...)
			x.lasts(2 * time.Second)
			bob, ann := all[0], all[1]
			x.gather(bob, ann, zoe, all[2])
			x.lasts(time.Second)
			ann.unlist(bob)
			ann.unbody(bob)
			x.within(800*time.Millisecond, "Ann does not hear Bob", func() bool { return !x.hears(ann, bob) })
			x.throughout(3*time.Second, "all but Ann hear Bob", func() bool {
				return !x.hears(ann, bob) && x.hears(zoe, bob) && x.hears(all[2], bob) && x.hears(bob, ann)
			})
			x.everywhere(0, bob, false, ann)
			x.everywhere(0, bob, true, zoe, all[2])
			x.hub.Leave(ann.member) // nor does Ann by a new connection
			x.lasts(time.Second)
			ann.ever = map[string]bool{}
			ann.member = x.hub.Join(ann.player, ann.ears, hub.Wants{Status: true, Groups: true, Clips: true})
			x.lasts(2 * time.Second)
			if ann.ever["Bob"] || !ann.ever["p2"] || !ann.ever["Zoe"] {
				t.Errorf("%d: on her new roster were %v", v, ann.ever)
			}
			x.everywhere(0, bob, false, ann)
			ann.list(bob)
			x.within(time.Second, "Ann hears Bob", func() bool { return x.hears(ann, bob) })
			x.everywhere(time.Second, bob, true, ann)
		})
	}
}
