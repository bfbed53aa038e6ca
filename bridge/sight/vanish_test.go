package sight

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// cast is one who vanishes, colleagues who see that one, and others who do not. All are on one server; Zoe is
// elsewhere.
type cast struct {
	*crowd
	mod, zoe           *player
	staff, others, all []*player
	near               map[*player]bool // to the one
}

func newCast(c *crowd, staff, others int) *cast {
	x := &cast{crowd: c, near: map[*player]bool{}, zoe: c.connect("Zoe")}
	x.zoe.enter("lobby", x.zoe.P)
	x.zoe.Login(x.zoe.e, "minecraft:overworld", 0)
	for i := range staff {
		x.staff = append(x.staff, x.join(fmt.Sprint("staff", i)))
	}
	for i := range others {
		x.others = append(x.others, x.join(fmt.Sprint("other", i)))
	}
	x.all = append(append(x.all, x.staff...), x.others...)
	for _, p := range x.all {
		x.near[p] = true
	}
	x.meet(x.all...)
	x.pass(2 * time.Second)
	return x
}

// comes lets the one join, in the open or not.
func (x *cast) comes(open bool) {
	x.mod = x.join("Mod")
	for _, p := range x.all {
		x.mod.Show(p.s)
		x.mod.body(p)
	}
	to := x.staff
	if open {
		to = x.all
	}
	for _, p := range to {
		p.Show(x.mod.s)
		p.body(x.mod)
	}
}

func (x *cast) vanishes() {
	for _, p := range x.others {
		p.Hide(x.mod.s)
		p.gone(x.mod)
	}
}

func (x *cast) returns() {
	for _, p := range x.others {
		p.Show(x.mod.s)
		if x.near[p] {
			p.body(x.mod)
		}
	}
}

// parts takes the one's body and another's away from each other, as those of players who are far from each other.
func (x *cast) parts(p *player) {
	x.near[p] = false
	p.gone(x.mod)
	x.mod.gone(p)
}

func (x *cast) hidden(what string, from ...*player) {
	x.t.Helper()
	for _, p := range append(from, x.zoe) {
		if p.Knows(x.mod.Session) {
			x.t.Fatalf("%d staff, %d others, %s: %s knows of who has vanished; %+v", len(x.staff), len(x.others), what, p.Name, p.Explain(x.mod.Session))
		}
	}
	for _, p := range x.staff {
		if !p.Knows(x.mod.Session) {
			x.t.Fatalf("%d staff, %d others, %s: %s does not know", len(x.staff), len(x.others), what, p.Name)
		}
	}
}

func (x *cast) known(what string) {
	x.t.Helper()
	for _, p := range append([]*player{x.zoe}, x.all...) {
		if !p.Knows(x.mod.Session) {
			x.t.Fatalf("%d staff, %d others, %s: %s does not know", len(x.staff), len(x.others), what, p.Name)
		}
	}
}

// hiddenFor watches that nobody knows of the one who may not, turn by turn.
func (x *cast) hiddenFor(d time.Duration, what string, meanwhile func(step int)) {
	x.t.Helper()
	for step := range int(d / (50 * time.Millisecond)) {
		if meanwhile != nil {
			meanwhile(step)
		}
		x.net.Settle(time.Now(), nil)
		x.hidden(what, x.others...)
		time.Sleep(50 * time.Millisecond)
	}
}

// However many may see the vanished, and however few may not: these do not know of them, nor does anybody elsewhere;
// from the join on or from when they vanish, near or far, while people move about, and when nobody is left who may not.
func TestColleaguesUnveilNobody(t *testing.T) {
	for staff := range 9 {
		for others := 1; others <= 4; others++ {
			for _, mode := range []Mode{Seen, TabList} {
				bubble(t, func(c *crowd) {
					c.net.SetRules(nil, Rule{Mode: mode})
					x := newCast(c, staff, others)
					x.comes(false)
					x.hiddenFor(3*time.Second, "from the join", nil)
					x.returns()
					x.pass(0)
					x.known("in the open")
					x.pass(3 * time.Second)
					x.vanishes()
					x.pass(700 * time.Millisecond)
					x.hiddenFor(3*time.Second, "vanished", nil)
					for _, p := range x.others { // the one stands among colleagues alone
						x.parts(p)
					}
					x.hiddenFor(3*time.Second, "far from others", nil)
					x.hiddenFor(4*time.Second, "while others move about", func(step int) {
						if p := x.others[step%others]; step%14 < 2 {
							p.Respawn("minecraft:overworld", 0)
							for _, o := range x.all {
								if o != p {
									p.body(o)
									o.body(p)
								}
							}
						}
					})
					for _, p := range x.staff { // and of these none is near
						x.parts(p)
					}
					x.hiddenFor(3*time.Second, "alone", nil)
					x.mod.Respawn("minecraft:the_nether", 0)
					x.hiddenFor(3*time.Second, "in another world", nil)
					x.returns()
					x.pass(0)
					x.known("back there")
					x.mod.Respawn("minecraft:overworld", 0)
					x.pass(3 * time.Second)
					x.vanishes()
					x.pass(700 * time.Millisecond)
					gone := x.others
					for i, p := range gone {
						p.Leave()
						x.others = gone[i+1:]
						x.hiddenFor(2*time.Second, "while others leave", nil)
					}
					x.others, x.all = nil, x.staff
					p := c.join("new") // sees the one, who is back
					for _, o := range x.all {
						o.Show(p.s)
						p.Show(o.s)
					}
					x.mod.Show(p.s)
					p.Show(x.mod.s)
					x.all = append(x.all, p)
					x.pass(1200 * time.Millisecond)
					x.known("back for who has come since")
					c.consistent()
				})
			}
		}
	}
}

// Nor while those who may not see the one have only just come, and are no witnesses yet.
func TestColleaguesUnveilNobodyToWhoHasJustCome(t *testing.T) {
	for staff := 1; staff < 5; staff++ {
		for others := 1; others <= 3; others++ {
			bubble(t, func(c *crowd) {
				x := newCast(c, staff, others)
				comes := func(int) {
					for _, p := range x.others {
						p.Teleported()
					}
				}
				comes(0)
				x.comes(false)
				x.hiddenFor(5*time.Second, "just come", comes)
				x.hiddenFor(5*time.Second, "some time there", nil)
			})
		}
	}
}

// The same with several who vanish one after the other, down to a last one who sees nobody.
func TestSeveralVanish(t *testing.T) {
	for mods := 2; mods <= 4; mods++ {
		for others := 1; others <= 3; others++ {
			bubble(t, func(c *crowd) {
				x := newCast(c, 0, others)
				var all []*player
				for range mods {
					p := c.join(fmt.Sprint("mod", len(all)))
					for _, o := range append(all, x.others...) {
						o.Show(p.s)
						o.body(p)
						p.Show(o.s)
						p.body(o)
					}
					all = append(all, p)
				}
				x.pass(3 * time.Second)
				for i, p := range all {
					x.mod = p
					x.known("in the open")
					x.vanishes()
					x.pass(700 * time.Millisecond)
					for range 60 {
						for _, x.mod = range all[:i+1] {
							x.hidden("one after the other", x.others...)
						}
						x.pass(50 * time.Millisecond)
					}
				}
				for _, x.mod = range all {
					x.returns()
				}
				x.pass(100 * time.Millisecond)
				for _, x.mod = range all {
					x.known("all back")
				}
			})
		}
	}
}

// Everybody vanishes and comes back at random, so that at times most are not seen. A player who is back is known to all
// at once, even if others have vanished since, or the witnesses have gone.
func TestWhoIsBackIsKnown(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for n := 3; n < 12; n++ {
		bubble(t, func(c *crowd) {
			x := newCast(c, 0, n)
			vanished := map[*player]bool{}
			for range 200 {
				p := x.all[rnd.IntN(n)]
				if vanished[p] = !vanished[p]; !vanished[p] {
					delete(vanished, p)
				}
				for _, o := range x.all {
					switch {
					case o == p:
					case vanished[p]:
						o.Hide(p.s)
						o.gone(p)
					default:
						o.Show(p.s)
						o.body(p)
					}
				}
				if vanished[p] {
					x.pass(time.Duration(rnd.Int64N(int64(2 * time.Second))))
					continue
				}
				x.pass(time.Second)
				for _, l := range append([]*player{x.zoe}, x.all...) {
					if l != p && !l.Knows(p.Session) {
						t.Fatalf("of %d, %d have vanished, and %s does not know that %s is back; %+v", n, len(vanished), l.Name, p.Name, l.Explain(p.Session))
					}
				}
			}
		})
	}
}

// Nobody is taken for vanished who stands in the open, whatever hides others from some.
func TestWhoStandsInTheOpenHasNotVanished(t *testing.T) {
	open := func(c *crowd, what string, zoe *player, all ...*player) {
		c.t.Helper()
		for range 100 {
			c.pass(50 * time.Millisecond)
			for _, p := range all {
				if !zoe.Knows(p.Session) {
					c.t.Fatalf("%s: %s has vanished; %+v", what, p.Name, all[0].Explain(p.Session))
				}
			}
		}
	}
	t.Run("who hides others but for friends", func(t *testing.T) {
		for n := 5; n < 12; n++ {
			bubble(t, func(c *crowd) {
				x := newCast(c, 0, n)
				for _, p := range x.all[2:] {
					x.all[0].Hide(p.s)
					x.all[0].gone(p)
				}
				open(c, fmt.Sprint(n), x.zoe, x.all...)
				for _, p := range x.all[1:] { // whose groups go on
					if !x.all[0].Knows(p.Session) {
						t.Errorf("who hides others does not know of %s", p.Name)
					}
				}
			})
		}
	})
	t.Run("a mishap of one", func(t *testing.T) {
		bubble(t, func(c *crowd) {
			x := newCast(c, 0, 20)
			a, b := x.all[0], x.all[1]
			a.Hide(b.s)
			a.gone(b)
			open(c, "a mishap", x.zoe, x.all...)
			if a.Knows(b.Session) || !x.all[2].Knows(b.Session) {
				t.Error("who does not see somebody who sees them knows of them, or others do not")
			}
			a.Show(b.s)
			c.pass(0)
			if !a.Knows(b.Session) {
				t.Error("not after it is over")
			}
		})
	})
	t.Run("a tidy list", func(t *testing.T) {
		bubble(t, func(c *crowd) {
			x := newCast(c, 0, 8)
			bob := x.all[0]
			for _, p := range x.all[1:] { // a plugin takes Bob off all lists, and players near Bob still see Bob
				p.Hide(bob.s)
			}
			c.pass(time.Second)
			for _, p := range x.all[3:] {
				p.gone(bob)
				bob.gone(p)
			}
			open(c, "near some", x.zoe, bob)
			for _, p := range x.all[1:3] {
				p.gone(bob)
				bob.gone(p)
			}
			open(c, "alone", x.zoe, bob)
			for _, p := range x.all[1:] {
				p.Show(bob.s)
			}
			open(c, "on the list again", x.zoe, bob)
		})
		bubble(t, func(c *crowd) { // one client's list is emptied, and all are far from each other but for some
			x := newCast(c, 0, 8)
			for _, p := range x.all[1:] {
				x.all[0].Hide(p.s)
				for _, o := range x.all {
					if o != p && (o != x.all[0] || p != x.all[1]) {
						p.gone(o)
						o.gone(p)
					}
				}
			}
			open(c, "one empty list", x.zoe, x.all...)
			for _, p := range x.all[1:5] { // and half of them come
				x.all[0].body(p)
				p.body(x.all[0])
			}
			open(c, "one empty list among many", x.zoe, x.all...)
		})
	})
	t.Run("a wall", func(t *testing.T) {
		bubble(t, func(c *crowd) {
			x := newCast(c, 0, 6)
			x.all[0].gone(x.all[1]) // the entry stays
			open(c, "a wall", x.zoe, x.all...)
			if !x.all[0].Knows(x.all[1].Session) {
				t.Error("who is behind a wall is not known of")
			}
		})
	})
	t.Run("lists of worlds", func(t *testing.T) {
		bubble(t, func(c *crowd) {
			x := newCast(c, 0, 8)
			bob := x.all[0] // who may see all lists
			for _, p := range x.all[4:] {
				p.Respawn("minecraft:the_nether", 0)
				for _, o := range x.all[:4] {
					p.Hide(o.s)
					o.gone(p)
					if o != bob {
						o.Hide(p.s)
					}
				}
			}
			for i, p := range x.all[4:] {
				for _, o := range x.all[4+i+1:] {
					p.body(o)
					o.body(p)
				}
			}
			open(c, "lists of worlds", x.zoe, x.all...)
		})
	})
}

// At random: who comes, goes, moves and changes worlds, beside one who vanishes and comes back. Nobody who is not shown
// the one knows of them, and nobody elsewhere, once anybody is there who might tell; and back they are known at once.
func TestWitnessesAtRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		bubble(t, func(c *crowd) {
			x := newCast(c, 1+rnd.IntN(6), 2+rnd.IntN(6))
			x.comes(true)
			x.pass(3 * time.Second)
			for range 6 {
				x.known("in the open")
				x.vanishes()
				x.pass(700 * time.Millisecond)
				x.hiddenFor(3*time.Second, "vanished", func(int) {
					if rnd.IntN(3) > 0 {
						return
					}
					switch p := x.all[rnd.IntN(len(x.all))]; rnd.IntN(4) {
					case 0:
						x.parts(p)
					case 1:
						p.Teleported()
					case 2:
						x.mod.Teleported()
					case 3:
						x.near[p] = true
						x.mod.body(p)
						for _, o := range x.staff {
							if o == p {
								p.body(x.mod)
							}
						}
					}
				})
				x.returns()
				x.pass(0)
				x.known("back")
				x.pass(2 * time.Second)
			}
			c.consistent()
		})
	}
}
