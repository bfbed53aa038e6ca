package track

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/talk"
)

// The sequences of packets by which it is accepted who is heard by whom, by their numbers. Number 20, which is of
// memory and time, is bridge/sight's.

func TestVisibility01OtherUUIDs(t *testing.T) {
	for _, v := range someVersions { // the success has the UUID as text up to 578
		t.Run(proto.Lookup(v).Names[0], func(t *testing.T) {
			empty(t, v, func(x *scene) {
				x.ann, x.bob = x.connect("Ann", v), x.connect("Bob", v)
				for _, a := range []*actor{x.ann, x.bob} {
					a.as = uuid.NewSHA1(uuid.Max, []byte(a.name))
					a.enter("main")
				}
				x.meet(x.ann, x.bob)
				x.lasts(2 * time.Second)
				x.both(true)
				x.everywhere(0, x.bob, true, x.ann)
				x.everywhere(0, x.ann, true, x.bob)
				x.gather(x.ann, x.bob) // and in a group, even in two worlds
				x.bob.reborn(nether)
				x.ann.unbody(x.bob)
				x.lasts(2 * time.Second)
				x.both(true)
				x.everywhere(0, x.bob, true, x.ann)
				x.everywhere(0, x.ann, true, x.bob)
				if n := x.logged("level=WARN", "main knows", "by another UUID", "`forwarding` for main", "server=main"); n != 1 || x.logged("by another UUID") != 1 {
					x.t.Errorf("%d warnings, want one:\n%s", n, &x.log.text)
				}
			})
		})
	}
}

func TestVisibility02OffTheList(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.ann.unlist(x.bob)
		x.always(5*time.Second, true)
		x.everywhere(0, x.bob, true, x.ann)
		x.everywhere(0, x.ann, true, x.bob)
	})
}

func TestVisibility03Disguise(t *testing.T) {
	for _, listed := range []bool{true, false} {
		scenes(t, someVersions, func(x *scene) {
			x.ann.unbody(x.bob)
			if !listed { // as some plugins do, too: then only the body speaks for Bob
				x.ann.unlist(x.bob)
			}
			x.ann.cow(x.bob.self, 0, 64, 0)
			x.always(5*time.Second, true)
			x.everywhere(0, x.bob, true, x.ann)
		})
	}
}

func TestVisibility04NPC(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.ann.unlist(x.bob)
		x.ann.unbody(x.bob)
		x.ann.appears(9999, x.bob.as, 100, 64, 0)
		x.ann.appears(9998, x.bob.as, 1, 64, 0) // nor beside Bob: the server has shown their UUID under their own id
		x.within(800*time.Millisecond, "Ann does not hear Bob", func() bool { return !x.hears(x.ann, x.bob) })
		x.throughout(5*time.Second, "Bob hears Ann, and she does not hear him", func() bool {
			return x.hears(x.bob, x.ann) && !x.hears(x.ann, x.bob)
		})
	})
}

func TestVisibility05SkinRefresh(t *testing.T) {
	const frame, tick = 20 * time.Millisecond, 50 * time.Millisecond
	for _, ticks := range []time.Duration{0, 1, 5, 20} {
		scenes(t, someVersions, func(x *scene) {
			x.ann.unlist(x.bob)
			x.ann.unbody(x.bob)
			heard, silent, longest := 0, 0, 0
			back := time.Now().Add(ticks * tick)
			for range 100 {
				if !back.IsZero() && !time.Now().Before(back) {
					x.ann.list(x.bob)
					x.ann.body(x.bob)
					back = time.Time{}
				}
				if silent++; x.hears(x.ann, x.bob) {
					heard++
					silent = 0
				}
				longest = max(longest, silent)
				x.lasts(frame)
			}
			if ticks <= 5 && heard < 98 {
				x.t.Errorf("%d: %d ticks apart, %d of 100 frames are heard", x.protocol, ticks, heard)
			}
			if gap := time.Duration(longest) * frame; gap >= time.Second || ticks == 20 && gap == 0 {
				x.t.Errorf("%d: %d ticks apart, silent for %v", x.protocol, ticks, gap)
			}
		})
	}
}

func TestVisibility06Vanish(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		zoe := x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		x.gather(zoe)
		x.gather(x.bob, x.ann) // so that Bob could be heard anywhere
		x.everywhere(time.Second, x.bob, true, x.ann, zoe)
		vanishes := func(from ...*actor) {
			for _, a := range from {
				a.unlist(x.bob)
				a.unbody(x.bob)
			}
		}

		vanishes(x.ann)
		x.within(800*time.Millisecond, "Ann does not hear Bob", func() bool { return !x.hears(x.ann, x.bob) })
		x.public(0, x.bob, false)
		x.everywhere(100*time.Millisecond, x.bob, false, x.ann, zoe)
		x.throughout(5*time.Second, "Bob is silent for Ann and Zoe, and hears Ann", func() bool {
			return !x.hears(x.ann, x.bob) && !x.hears(zoe, x.bob) && x.hears(x.bob, x.ann)
		})
		x.everywhere(0, x.bob, false, x.ann, zoe)
		x.everywhere(0, x.ann, true, x.bob, zoe)

		x.ann.list(x.bob)
		x.within(time.Second, "Ann hears Bob", func() bool { return x.hears(x.ann, x.bob) })
		x.everywhere(time.Second, x.bob, true, x.ann, zoe)
		x.public(0, x.bob, true)
		x.ann.body(x.bob)

		cid := x.join("Cid")
		x.meet(x.ann, x.bob, cid)
		for _, a := range []*actor{x.ann, x.bob} { // by distance from here on
			x.ask(a, talk.GroupRequest{Verb: talk.Leave})
			a.group = uuid.Nil
		}
		x.lasts(2 * time.Second)
		x.want(cid, x.bob, true)
		vanishes(x.ann)
		x.within(800*time.Millisecond, "Ann does not hear Bob", func() bool { return !x.hears(x.ann, x.bob) })
		x.everywhere(100*time.Millisecond, x.bob, false, x.ann, zoe) // a colleague who sees them does not unveil them
		x.throughout(5*time.Second, "Cid alone hears Bob", func() bool {
			return x.hears(cid, x.bob) && !x.hears(x.ann, x.bob) && x.hears(x.bob, x.ann)
		})
		x.everywhere(0, x.bob, true, cid)
		x.everywhere(0, x.bob, false, x.ann, zoe)
		x.ann.body(x.bob) // this time it is the body that comes back
		x.within(time.Second, "Ann hears Bob", func() bool { return x.hears(x.ann, x.bob) })
		x.everywhere(time.Second, x.bob, true, x.ann, cid, zoe)
	})
}

// apart walks Bob 100 blocks off, where nobody has anybody's body.
func (x *scene) apart() {
	x.bob.goes(100)
	x.ann.unbody(x.bob)
	x.bob.unbody(x.ann)
	x.lasts(10 * time.Second)
}

// comes walks Bob up to Ann. Bob gets Ann's body, and Ann never gets Bob's.
func (x *scene) comes() {
	x.bob.goes(10)
	x.bob.body(x.ann)
}

func TestVisibility07OneSidedAbsence(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.apart()
		x.comes()
		x.throughout(2900*time.Millisecond, "Ann hears Bob", func() bool { return x.hears(x.ann, x.bob) })
		x.within(1100*time.Millisecond, "Ann does not hear Bob", func() bool { return !x.hears(x.ann, x.bob) })
		x.throughout(5*time.Second, "Bob alone hears", func() bool { return x.hears(x.bob, x.ann) && !x.hears(x.ann, x.bob) })
		x.everywhere(0, x.bob, false, x.ann)
		x.ann.body(x.bob)
		x.within(time.Second, "Ann hears Bob", func() bool { return x.hears(x.ann, x.bob) })
	})
}

// culled is bodies that go on both sides for five seconds, and come back.
func (x *scene) culled() {
	x.t.Helper()
	x.ann.unbody(x.bob)
	x.bob.unbody(x.ann)
	x.always(5*time.Second, true)
	x.ann.body(x.bob)
	x.bob.body(x.ann)
	x.always(time.Second, true)
}

// culls returns the lines of the log about main's missing bodies.
func (x *scene) culls() int {
	return x.logged("level=WARN", "main takes players' bodies away", "missing-bodies", "server=main")
}

func TestVisibility08Culling(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.culled()
		if n := x.culls(); n != 0 {
			x.t.Fatalf("%d: the log says after one time that the server culls", x.protocol)
		}
		x.culled()
		x.apart()
		x.comes()
		x.always(10*time.Second, true)
		x.culled()
		x.culled()
		if n := x.culls(); n != 1 {
			x.t.Errorf("%d: the log says %d times that the server culls:\n%s", x.protocol, n, &x.log.text)
		}
	})
}

func TestVisibility09Death(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.bob.health(0)
		x.ann.unbody(x.bob)
		x.always(10*time.Second, true)
		x.bob.health(20)
		x.bob.reborn(overworld)
		x.ann.body(x.bob)
		x.bob.body(x.ann)
		x.always(5*time.Second, true)
	})
}

func TestVisibility10Lag(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.ann.unbody(x.bob) // or bodies would speak for them
		x.bob.unbody(x.ann)
		x.ann.older = 10
		x.always(10*time.Second, true)
		x.ann.older, x.bob.older = x.ticks(), x.ticks()
		x.born, x.rate = time.Now(), 4
		x.always(10*time.Second, true)
		for _, a := range []*actor{x.ann, x.bob} {
			a.older += x.ticks()
		}
		x.rate = 0
		x.always(8*time.Second, true)
		x.born, x.rate = time.Now(), 20
		x.always(10*time.Second, true)
	})
}

func TestVisibility11Ages(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		logs := func(older int64) {
			x.bob.older = older
			x.ann.unbody(x.bob)
			x.bob.login(overworld)
			x.bob.age(x.ticks() + older)
		}
		quiet := func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) }
		logs(5000)
		x.within(700*time.Millisecond, "silence", quiet)
		x.always(5*time.Second, false)
		x.everywhere(0, x.bob, true, x.ann) // Bob is on Ann's list
		logs(0)
		x.within(700*time.Millisecond, "they hear each other", func() bool { return x.hears(x.ann, x.bob) && x.hears(x.bob, x.ann) })
		x.always(5*time.Second, true)
		logs(5000)
		x.within(700*time.Millisecond, "silence", quiet)
		x.ann.body(x.bob) // a body after all
		x.within(time.Second, "they hear each other", func() bool { return x.hears(x.ann, x.bob) && x.hears(x.bob, x.ann) })
		x.bob.body(x.ann)
		x.always(5*time.Second, true)
		if n := x.logged("level=WARN", "ages tell no worlds apart", "server=main"); n != 1 {
			x.t.Errorf("%d: the log says %d times that ages tell nothing:\n%s", x.protocol, n, &x.log.text)
		}
	})
}

func TestVisibility12Seeds(t *testing.T) {
	for _, v := range someVersions {
		if !proto.Has(v, proto.HashedSeed) {
			continue
		}
		for _, c := range []struct {
			what      string
			bobs      int64
			body, far bool
			want      bool
		}{
			{what: "bodies across equal seeds", bobs: 77, body: true},
			{what: "bodies across different ones", bobs: 78, body: true, want: true},
			{what: "no bodies", bobs: 77, want: true},
		} {
			t.Run(proto.Lookup(v).Names[0]+" "+c.what, func(t *testing.T) {
				empty(t, v, func(x *scene) {
					x.ann, x.bob = x.join("Ann"), x.connect("Bob", v)
					x.bob.seed = c.bobs
					x.bob.enter("main")
					x.ann.list(x.bob)
					x.bob.list(x.ann)
					if c.body {
						x.ann.body(x.bob)
						x.bob.body(x.ann)
					}
					x.lasts(3 * time.Second)
					x.both(true)
					x.ann.unbody(x.bob)
					x.bob.seed = 5
					x.bob.reborn(nether)
					x.ages() // equal ones
					x.lasts(time.Second)
					x.both(false)
					x.bob.seed = 6
					x.bob.reborn(overworld)
					x.ages()
					x.lasts(700 * time.Millisecond)
					x.both(c.want)
					x.always(5*time.Second, c.want)
				})
			})
		}
	}
}

func TestVisibility13NoAges(t *testing.T) {
	for _, v := range someVersions {
		t.Run(proto.Lookup(v).Names[0], func(t *testing.T) {
			empty(t, v, func(x *scene) {
				x.rate = 0
				x.ann, x.bob = x.join("Ann"), x.join("Bob")
				x.meet(x.ann, x.bob)
				x.lasts(2 * time.Second)
				x.both(true)
				x.ann.unbody(x.bob)
				x.bob.reborn(nether)
				x.lasts(time.Second)
				x.both(false)
				x.bob.reborn(overworld)
				x.lasts(2 * time.Second)
				x.always(5*time.Second, false)
				cid := x.join("Cid") // who is never sent a body
				for _, a := range []*actor{x.ann, x.bob} {
					a.list(cid)
					cid.list(a)
				}
				x.within(time.Second, "Ann and Cid hear each other", func() bool { return x.hears(x.ann, cid) && x.hears(cid, x.ann) })
				x.throughout(5*time.Second, "Ann and Cid hear each other", func() bool { return x.hears(x.ann, cid) && x.hears(cid, x.ann) })
				x.ann.body(x.bob)
				x.within(time.Second, "Ann and Bob hear each other", func() bool { return x.hears(x.ann, x.bob) && x.hears(x.bob, x.ann) })
			})
		})
	}
}

func TestVisibility14PerWorldLists(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.gather(x.ann, x.bob)
		known := func() {
			x.t.Helper()
			x.both(true)
			x.everywhere(0, x.bob, true, x.ann)
			x.everywhere(0, x.ann, true, x.bob)
		}
		x.bob.reborn(nether)
		x.ann.unbody(x.bob)
		x.ann.unlist(x.bob)
		x.bob.unlist(x.ann)
		x.always(5*time.Second, true)
		known()
		x.bob.switches("lobby")
		x.always(3*time.Second, true)
		known()
		x.bob.login(overworld)
		x.always(5*time.Second, true)
		known()
	})
}

func TestVisibility15HiddenFromTheJoin(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		zoe := x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		x.gather(zoe)
		x.lasts(2 * time.Second)
		mod := x.connect("Mod", x.protocol)
		hidden := func() bool {
			for _, l := range []*actor{x.ann, x.bob, zoe} {
				if x.hears(l, mod) {
					return false
				}
				if so, _ := x.knows(l, mod, false); !so {
					return false
				}
			}
			return !mod.player.Sight.Public()
		}
		x.throughout(time.Second, "Mod, who is on no server yet, is nowhere", hidden)
		mod.enter("main")
		mod.list(x.ann, x.bob)
		mod.body(x.ann, x.bob)
		x.throughout(10*time.Second, "Mod is nowhere", hidden)
		x.want(mod, x.ann, true)
		x.want(mod, x.bob, true)
		x.everywhere(0, x.ann, true, mod)
		x.everywhere(0, zoe, true, mod)
		for _, l := range []*actor{x.ann, x.bob, zoe} {
			if l.ever["Mod"] {
				x.t.Errorf("%d: Mod was on a roster of %s", x.protocol, l.name)
			}
		}
	})
}

func TestVisibility16WhoHidesAllTestifiesNothing(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		zoe := x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		cid, dan := x.join("Cid"), x.join("Dan")
		x.meet(x.ann, x.bob, cid, dan)
		x.lasts(2 * time.Second)
		for _, a := range []*actor{x.bob, cid, dan} {
			x.ann.unlist(a)
			x.ann.unbody(a)
		}
		x.throughout(5*time.Second, "Cid and Dan hear Bob", func() bool { return x.hears(cid, x.bob) && x.hears(dan, x.bob) })
		x.everywhere(0, x.bob, true, cid, dan, zoe, x.ann)
		x.want(x.ann, x.bob, false)
		x.want(x.bob, x.ann, true)
		for _, a := range []*actor{x.ann, x.bob, cid} { // two of three witnesses are not shown Bob, nor anybody else
			dan.unlist(a)
			dan.unbody(a)
		}
		x.throughout(5*time.Second, "Cid hears Bob", func() bool { return x.hears(cid, x.bob) })
		x.everywhere(0, x.bob, true, cid, dan, zoe, x.ann)
	})
}

func TestVisibility17OneUUIDForTwo(t *testing.T) {
	for _, v := range someVersions {
		t.Run(proto.Lookup(v).Names[0], func(t *testing.T) {
			empty(t, v, func(x *scene) {
				x.ann, x.bob = x.connect("Ann", v), x.connect("Bob", v)
				x.ann.as, x.bob.as = uuid.UUID{5}, uuid.UUID{5}
				x.ann.enter("main")
				x.bob.enter("main")
				cid := x.join("Cid")
				cid.list(x.ann) // an entry that may be either's speaks for neither
				x.throughout(2*time.Second, "Cid hears neither", func() bool { return !x.hears(cid, x.ann) && !x.hears(cid, x.bob) })
				x.meet(x.ann, x.bob, cid)
				x.lasts(2 * time.Second)
				x.want(cid, x.ann, true)
				x.want(cid, x.bob, true)
				x.both(true)
				for _, a := range []*actor{x.ann, cid} {
					a.unlist(x.bob)
					a.unbody(x.bob)
				}
				x.within(800*time.Millisecond, "Bob is silent", func() bool { return !x.hears(cid, x.bob) && !x.hears(x.ann, x.bob) })
				x.throughout(5*time.Second, "Bob is silent, and Ann is heard", func() bool {
					return !x.hears(cid, x.bob) && !x.hears(x.ann, x.bob) && x.hears(cid, x.ann) && x.hears(x.bob, x.ann)
				})
				x.everywhere(0, x.bob, false, x.ann, cid)
				x.everywhere(0, x.ann, true, x.bob, cid)
				for _, gone := range []*actor{x.ann, x.bob} { // nor for the one whose body goes
					x.ann.list(x.bob)
					cid.list(x.bob)
					x.meet(x.ann, x.bob, cid)
					x.within(time.Second, "Cid hears both", func() bool { return x.hears(cid, x.bob) && x.hears(cid, x.ann) })
					cid.unbody(gone)
					x.within(800*time.Millisecond, gone.name+" is silent", func() bool { return !x.hears(cid, gone) })
				}
			})
		})
	}
}

func TestVisibility18OneAddressTwoNames(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.reg.Sights().SetRules(map[string]sight.Rule{"alias": {As: "main"}}, sight.Rule{})
		cid := x.connect("Cid", x.protocol)
		cid.enter("alias")
		x.meet(x.ann, x.bob, cid)
		for _, o := range []*actor{x.ann, x.bob} {
			x.within(time.Second, "Cid and the others hear each other", func() bool { return x.hears(o, cid) && x.hears(cid, o) })
			x.everywhere(time.Second, cid, true, o)
			x.everywhere(time.Second, o, true, cid)
		}
	})
}

func TestVisibility19OldAndNewClients(t *testing.T) {
	for _, pair := range [][2]int32{{proto.V1_12_2, proto.V1_20_3}, {proto.V1_8, proto.V26_3}} { // old: no seed
		empty(t, pair[0], func(x *scene) {
			x.ann, x.bob = x.connect("Ann", pair[0]), x.connect("Bob", pair[1])
			x.ann.enter("main")
			x.bob.enter("main")
			cid := x.connect("Cid", pair[1]) // between whom and Bob seeds are found to be right
			cid.enter("main")
			x.meet(x.ann, x.bob, cid)
			x.lasts(time.Second)
			x.always(5*time.Second, true)
			x.bob.seed = 78
			x.bob.reborn(overworld)
			x.ann.unbody(x.bob)
			cid.unbody(x.bob)
			x.ages()
			x.lasts(100 * time.Millisecond)
			x.want(cid, x.bob, false)
			x.want(cid, x.ann, true)
			x.bob.seed = 77
			x.bob.reborn(overworld)
			x.ages()
			x.always(5*time.Second, true)
			x.everywhere(0, x.bob, true, x.ann)
			x.everywhere(0, x.ann, true, x.bob)
		})
	}
}

// Old clients in worlds with names of their own hear those around them, whatever their clients are told, and nobody in
// another world: neither one who is told the same number, nor one who is told the name that stands for it.
func TestOldClientsInNamedWorlds(t *testing.T) {
	for _, pair := range [][2]int32{{proto.V1_8, proto.V26_3}, {proto.V1_12_2, proto.V1_20_3}, {578, proto.V1_17}} {
		for _, rate := range []float64{20, 0} {
			empty(t, pair[0], func(x *scene) {
				x.rate = rate
				at := func(name string, protocol int32, world string) *actor {
					a := x.connect(name, protocol)
					a.switches("main")
					a.login(world)
					return a
				}
				ann, cid, dan := at("Ann", pair[0], resource), at("Cid", pair[0], resource), at("Dan", pair[0], overworld)
				bob, eve := at("Bob", pair[1], resource), at("Eve", pair[1], overworld)
				for _, a := range x.all {
					for _, o := range x.all {
						if a != o {
							a.list(o)
						}
					}
				}
				here, there := []*actor{ann, bob, cid}, []*actor{dan, eve}
				hear := func(all []*actor, want bool, others ...*actor) func() bool {
					return func() bool {
						for _, l := range all {
							for _, t := range others {
								if l != t && (x.hears(l, t) != want || x.hears(t, l) != want) {
									return false
								}
							}
						}
						return true
					}
				}
				x.meet(ann, bob)
				x.meet(ann, cid)
				if rate == 0 { // or else Bob and Cid, who stand together without bodies, are apart
					x.meet(bob, cid)
				}
				x.meet(dan, eve)
				x.within(time.Second, "those in the one world hear each other", hear(here, true, here...))
				x.within(time.Second, "those in the other do", hear(there, true, there...))
				x.throughout(5*time.Second, "and nobody else", func() bool {
					return hear(here, true, here...)() && hear(there, true, there...)() && hear(here, false, there...)()
				})
				for _, a := range x.all { // what is known is known on every surface, and where it is
					if p := a.player.Facts().Place; (p.World == resource) != slices.Contains(here, a) || a.player.Pose().Place != p {
						t.Errorf("%d: %s is in %v", a.protocol, a.name, p)
					}
				}
				ann.health(0) // dies, and is back
				for _, o := range []*actor{bob, cid} {
					o.unbody(ann)
				}
				x.lasts(time.Second)
				ann.health(20)
				ann.reborn(resource)
				x.meet(ann, bob, cid)
				x.within(time.Second, "they hear Ann again", hear(here, true, here...))
				for _, o := range []*actor{bob, cid} { // Ann goes where Dan is
					o.unbody(ann)
				}
				ann.reborn(overworld)
				x.meet(ann, dan, eve)
				x.within(time.Second, "Ann is in the other world", func() bool {
					return hear(there, true, ann)() && hear([]*actor{bob, cid}, false, ann)()
				})
				x.throughout(5*time.Second, "Ann is in the other world", func() bool {
					return hear(there, true, ann)() && hear([]*actor{bob, cid}, false, ann)()
				})
			})
		}
	}
}
