package route

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/talk"
)

// moving are teams that say who has moved, and nobody else.
type moving struct {
	teams
	moved []int
}

func (g *moving) Moved(visit func(int)) {
	for _, slot := range g.moved {
		visit(slot)
	}
	g.moved = nil
}

// same compares two tables.
func same(t *testing.T, what string, a, b *Table) {
	t.Helper()
	if !slices.Equal(a.players, b.players) || !slices.Equal(a.listeners, b.listeners) || !slices.Equal(a.clips, b.clips) || len(a.channels) != len(b.channels) {
		t.Fatalf("%s: the lists differ", what)
	}
	for place, in := range a.channels {
		if !slices.Equal(in, b.channels[place]) {
			t.Fatalf("%s: another channel in %v", what, place)
		}
	}
	for slot := range max(len(a.rows), len(b.rows)) {
		x, y := a.rows[slot], b.rows[slot]
		if x == nil || y == nil {
			if x != y {
				t.Fatalf("%s: slot %d is there in one alone", what, slot)
			}
			continue
		}
		if x.member != y.member || x.deny != y.deny || x.base != y.base || x.factor != y.factor || !slices.Equal(x.zones, y.zones) {
			t.Fatalf("%s: slot %d: %+v, %+v", what, slot, x, y)
		}
		for i, s := range [3][2]set{{x.near, y.near}, {x.may, y.may}, {x.wide, y.wide}} {
			if !slices.Equal(s[0], s[1]) || (s[0] == nil) != (s[1] == nil) {
				t.Fatalf("%s: slot %d, set %d: %b, %b", what, slot, i, s[0], s[1])
			}
		}
	}
}

// TestIncrementalEqualsWhole changes everything at random: what is made of the last table and of what has changed is
// what is made of everything, and the last table stays as it was.
func TestIncrementalEqualsWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	kept := 0
	for _, policy := range []Policy{{}, {Spectators: HeardByNobody}, {Spectators: HeardByEveryone}} {
		r := newRoom(t, policy)
		g := &moving{}
		g.of(1 << 10)
		r.c.SetGroups(g)
		places := []*world.Place{nil, r.place, r.place, r.reg.Place("survival", "nether"), r.reg.Place("other", "overworld")}
		var all []*person
		for step := range 1000 {
			if len(all) < 2 || rnd.IntN(4) == 0 && len(all) < 150 {
				p := r.join(step, 0)
				p.Channels, p.Clips = rnd.IntN(2) == 0, rnd.IntN(2) == 0
				all = append(all, p)
			}
			p, o := all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]
			what := rnd.IntN(13)
			switch what {
			case 0:
				if rnd.IntN(4) == 0 {
					if slot := p.Slot(); g.teams[slot] != 0 {
						g.teams[slot], g.moved = 0, append(g.moved, slot)
					}
					r.c.Drop(p.Member)
					r.reg.Remove(p.Player)
					all = slices.DeleteFunc(all, func(x *person) bool { return x == p })
				}
			case 1:
				for _, o := range all {
					if rnd.IntN(3) > 0 {
						p.Player.Show(o.Player.ID)
					}
				}
			case 2:
				for _, o := range all {
					o.Player.Show(p.Player.ID)
				}
			case 3:
				p.Player.Hide(o.Player.ID)
			case 4:
				p.Player.SetFacts(world.Facts{Place: places[rnd.IntN(len(places))], Mode: world.GameMode(rnd.IntN(4))})
			case 5:
				f := *p.Player.Facts()
				f.OpLevel ^= 1
				p.Player.SetFacts(f)
			case 6:
				r.c.SetDeafened(p.Member, rnd.IntN(2) == 0)
			case 7:
				r.c.SetTier(p.Member, talk.Tier(rnd.IntN(3)))
			case 8:
				r.c.SetRights(p.Member, Rights{Muted: rnd.IntN(4) == 0, NoSpeak: rnd.IntN(4) == 0, NoListen: rnd.IntN(4) == 0})
			case 9:
				g.teams[p.Slot()], g.moved = rnd.IntN(3), append(g.moved, p.Slot())
			case 10, 11:
				for _, p := range all {
					if rnd.IntN(3) == 0 {
						r.tell(p)
					}
				}
			case 12:
				switch rnd.IntN(20) {
				case 0:
					r.c.SetSoundboard(rnd.IntN(2) == 0)
				case 1:
					policy.Gain = r.c.policy.Gain
					policy.Gain.Default = float64(10 + rnd.IntN(50))
					r.c.SetPolicy(policy)
				case 2:
					r.c.SetDeclared(nil)
				case 3, 4, 5:
					var edges [][2]*person
					for range 10 {
						a, b := all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]
						if a != b && set(b.Sees()).has(a.Slot()) {
							edges = append(edges, [2]*person{a, b})
						}
					}
					r.declare(all, edges...)
				}
			}
			if rnd.IntN(3) == 0 {
				continue
			}
			r.settle()
			for !r.c.Look(1 << 30) {
			}
			last := r.c.last
			var before *Table
			if last != nil {
				c := *last
				c.rows = slices.Clone(last.rows)
				for i, x := range c.rows {
					if x != nil {
						y := *x
						y.near, y.may, y.wide = slices.Clone(x.near), slices.Clone(x.may), slices.Clone(x.wide)
						c.rows[i] = &y
					}
				}
				before = &c
			}
			made := r.c.Compile()
			if last != nil {
				same(t, "the last table", last, before)
				for slot, x := range made.rows {
					if slot < len(last.rows) && x != nil && x == last.rows[slot] {
						kept++
					}
				}
			}
			if rnd.IntN(6) > 0 {
				continue // so that many changes follow each other
			}
			r.c.all = true
			whole := r.c.Compile()
			for slot, x := range whole.rows {
				if x != nil && slot < len(made.rows) && x == made.rows[slot] {
					t.Fatal("the whole is not made of everything")
				}
			}
			same(t, "the whole", made, whole)
			r.c.last = made // go on with what was made of the changes
		}
		if r.c.words < 2 {
			t.Error("the sets never grew past one word")
		}
	}
	if kept == 0 {
		t.Error("no row was ever kept")
	}
}
