package route

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// teams are groups by slot: the same positive number is together, and who is in one neither hears nor is heard outside.
type teams []int

func (g *teams) of(slot int) int {
	for slot >= len(*g) {
		*g = append(*g, 0)
	}
	return (*g)[slot]
}

func (g *teams) Moved(visit func(slot int)) {
	for slot := range *g {
		visit(slot)
	}
}

func (g *teams) Split(slot, at int, ears, together []uint64) {
	clear(together)
	mine := g.of(slot)
	for to := range 64 * len(ears) {
		switch theirs := g.of(64*at + to); {
		case !set(ears).has(to) || mine == 0 && theirs == 0:
		case mine == theirs:
			set(together).add(to)
			fallthrough
		default:
			set(ears).del(to)
		}
	}
}

// declare compiles a relation of these edges for the members as they are.
func (r *room) declare(all []*person, edges ...[2]*person) {
	r.t.Helper()
	var turn relation.Turn
	views := make([][]uint64, len(r.c.members))
	for _, p := range all {
		turn.Participant(p.Slot(), 0)
		turn.Sight(p.Slot(), p.Sees())
		views[p.Slot()] = p.Sees()
	}
	for _, e := range edges {
		turn.Edge(e[0].Slot(), e[1].Slot())
	}
	table, err := relation.NewCompiler().Compile(&turn, views)
	if err != nil {
		r.t.Fatal(err)
	}
	r.c.SetDeclared(table)
}

func TestGroupIgnoresPlaceAndDistance(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b, c := r.join(1, 0), r.join(2, 5000), r.join(3, 1)
	g := &teams{}
	g.of(64)
	(*g)[a.Slot()], (*g)[b.Slot()] = 1, 1
	r.c.SetGroups(g)
	r.meet(a, b, c)
	nether := r.reg.Place("survival", "nether")
	b.Player.SetFacts(world.Facts{Place: nether})
	b.Player.SetPose(&world.Pose{X: 7, Place: nether})
	r.turn()
	r.says(a)
	if got := b.ear.take(); len(got) != 1 || got[0].Gain != 255 || got[0].DX != 0 || got[0].DZ != 0 || got[0].Stream <= 0 {
		t.Errorf("in another world the group gets %+v", got)
	}
	if got := c.ear.take(); got != nil {
		t.Errorf("one outside the group gets %+v", got)
	}
	a.Player.SetFacts(world.Facts{}) // not even that is known
	a.Player.SetPose(nil)
	r.turn()
	r.hears(a, b)
	r.c.SetDeafened(b.Member, true)
	r.turn()
	if _, why := a.src.Send(r.table, 7, a.seq, []byte{1}); why != NoPose {
		t.Errorf("nobody in the group listens and nobody knows where the talker is: %v", why)
	}
}

func TestDeclaredIsOneWay(t *testing.T) {
	r := newRoom(t, Policy{Spectators: HeardByNobody})
	a, b := r.join(1, 0), r.join(2, 5000)
	a.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator})
	r.meet(a, b)
	r.declare([]*person{a, b}, [2]*person{a, b})
	r.turn()
	r.says(a)
	if got := b.ear.take(); len(got) != 1 || got[0].Gain != 255 || got[0].DX != 0 {
		t.Errorf("got %+v", got)
	}
	r.hears(b)
}

func TestRights(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 1)
	b.Clips = true
	r.meet(a, b)
	clip := NewClip(a.Member)
	for _, c := range []struct {
		rights Rights
		voice  Outcome
		clip   Outcome
	}{
		{Rights{}, Routed, Routed}, {Rights{NoSpeak: true}, NoSpeak, Routed}, {Rights{NoSoundboard: true}, Routed, NoSoundboard},
		{Rights{Muted: true, NoSpeak: true, NoSoundboard: true}, Muted, Muted}, // a mute is checked before permissions
	} {
		r.c.SetRights(a.Member, c.rights)
		r.c.SetSoundboard(true)
		r.turn()
		for src, want := range map[*Source]Outcome{a.src: c.voice, clip: c.clip} {
			if n, got := src.Send(r.table, 3, 0, []byte{1}); got != want || n == 1 != (want == Routed) {
				t.Errorf("%+v: %d heard it, %v, want %v", c.rights, n, got, want)
			}
		}
	}
	for _, c := range []struct {
		rights Rights
		clip   Outcome
	}{{Rights{}, SoundboardOff}, {Rights{NoSoundboard: true}, SoundboardOff}, {Rights{Muted: true}, Muted}} {
		r.c.SetRights(a.Member, c.rights)
		r.c.SetSoundboard(false)
		r.turn()
		if n, got := clip.Send(r.table, 3, 0, []byte{1}); got != c.clip || n != 0 {
			t.Errorf("%+v, the soundboard off: %d heard it, %v, want %v", c.rights, n, got, c.clip)
		}
	}
	r.c.SetRights(a.Member, Rights{})
	r.turn()
	r.hears(a, b) // a voice is not the soundboard's business
	r.c.SetSoundboard(true)
	r.c.SetRights(a.Member, Rights{Muted: true})
	r.c.SetRights(b.Member, Rights{NoListen: true})
	r.turn()
	r.hears(b, a) // a mute changes nothing about what is heard
	r.c.SetRights(a.Member, Rights{})
	r.turn()
	r.hears(a)
}

func TestRegions(t *testing.T) {
	arena := gain.Region{World: "overworld", Min: [3]float64{0, 0, -50}, Max: [3]float64{100, 128, 50}, Range: 16}
	vault := gain.Region{World: "survival/overworld", Min: [3]float64{40, 0, -9}, Max: [3]float64{60, 128, 9}, Range: 0, Priority: 1}
	r := newRoom(t, Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Shout: 2}, Regions: []gain.Region{arena, vault}}})
	a, b := r.join(1, -10), r.join(2, -40)
	r.meet(a, b)
	r.hears(a, b) // 30 blocks, outside
	for _, c := range []struct {
		a, b  float64
		tier  talk.Tier
		heard bool
	}{
		{1, -10, talk.Normal, true}, {1, -16, talk.Normal, false}, // 17 blocks into the open: the shorter range counts
		{-16, 1, talk.Normal, false}, {1, 32, talk.Shout, true}, {1, 34, talk.Shout, false}, // a shout of 32, not of 96
		{35, 41, talk.Shout, false}, {41, 42, talk.Normal, false}, // not into silence, nor out of it, nor inside
		{39, 39.5, talk.Normal, true},
	} {
		for p, x := range map[*person]float64{a: c.a, b: c.b} {
			p.Player.SetPose(&world.Pose{X: x, Y: 1, Place: r.place})
		}
		r.c.SetTier(a.Member, c.tier)
		r.turn()
		if got := r.says(a) == 1; got != c.heard {
			t.Errorf("%+v: heard %v", c, got)
		}
		if why := r.c.Explain(a.Member, b.Member); why.Verdict.Heard() != c.heard {
			t.Errorf("%+v: explained as %+v", c, why)
		}
	}
}

// TestExplainIsWhatIsHeard compares every pair of random worlds: what Explain says with what a frame does.
func TestExplainIsWhatIsHeard(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	seen := map[Verdict]int{}
	for round := range 60 {
		rules := gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Shout: 2}, Worlds: map[string]float64{"nether": 20}}
		for range rnd.IntN(3) {
			x := rnd.Float64() * 100
			rules.Regions = append(rules.Regions, gain.Region{
				World: "overworld", Min: [3]float64{x, 0, 0}, Max: [3]float64{x + 50*rnd.Float64(), 300, 100},
				Priority: rnd.IntN(2), Range: float64(rnd.IntN(3)) * 30,
			})
		}
		r := newRoom(t, Policy{Gain: rules, Spectators: Spectators(round % 3)})
		if round/3%2 == 1 {
			r.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		}
		places := []*world.Place{nil, r.place, r.place, r.place, r.place, r.reg.Place("survival", "nether")}
		var all []*person
		g := &teams{}
		g.of(127)
		for i := range 2 + rnd.IntN(70) {
			p := r.join(i, 0)
			place := places[rnd.IntN(len(places))]
			p.Player.SetFacts(world.Facts{Place: place, Mode: world.GameMode(rnd.IntN(4))})
			if place != nil {
				p.Player.SetPose(&world.Pose{X: rnd.Float64() * 150, Y: 64, Place: place})
			}
			if rnd.IntN(8) == 0 {
				p.Player.SetPose(nil)
			}
			r.c.SetTier(p.Member, talk.Tier(rnd.IntN(3)))
			r.c.SetDeafened(p.Member, rnd.IntN(8) == 0)
			r.c.SetRights(p.Member, Rights{Muted: rnd.IntN(9) == 0, NoSpeak: rnd.IntN(9) == 0, NoListen: rnd.IntN(9) == 0})
			(*g)[p.Slot()] = max(0, rnd.IntN(12)-8)
			all = append(all, p)
		}
		for _, p := range all {
			for _, o := range all {
				if rnd.IntN(8) > 0 {
					p.Player.Show(o.Player.ID)
				}
			}
		}
		r.c.SetGroups(g)
		if round%4 == 0 && len(all) > 3 { // everybody is sent bodies, but some together are not
			for i, p := range all {
				o := all[(i+1)%len(all)].Player
				if at := o.Pose(); at != nil {
					p.Player.Sight.Spawn(time.Now(), int32(90_000+i), o.ID, at.X, at.Y, at.Z)
				}
			}
			r.reg.Settle(time.Now().Add(5 * time.Second))
			r.reg.Settle(time.Now().Add(10 * time.Second))
		}
		r.turn()
		for _, p := range all {
			if rnd.IntN(8) > 0 {
				r.tell(p)
			}
		}
		var edges [][2]*person
		for range rnd.IntN(20) {
			edges = append(edges, [2]*person{all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]})
		}
		r.declare(all, edges...)
		r.turn()
		heard := map[uuid.UUID]Frame{}
		for _, s := range all {
			for _, l := range all {
				l.ear.take()
			}
			r.says(s)
			clear(heard)
			for _, l := range all {
				why := r.c.Explain(s.Member, l.Member)
				seen[why.Verdict]++
				got := l.ear.take()
				if len(got) == 1 != why.Verdict.Heard() {
					t.Fatalf("%s to %s: %d frames, but %v", s.Player.Name, l.Player.Name, len(got), why.Verdict)
				}
				if len(got) == 1 && got[0].Gain != why.Level {
					t.Fatalf("%s to %s: gain %d, but %d explained", s.Player.Name, l.Player.Name, got[0].Gain, why.Level)
				}
			}
		}
	}
	for v := range verdicts {
		if seen[Verdict(v)] == 0 {
			t.Errorf("%v never came up", Verdict(v))
		}
	}
}

func TestNoAllocationWithEverything(t *testing.T) {
	r, all := crowd(t, 100, 1)
	r.c.SetPolicy(Policy{Gain: gain.Rules{Default: 48, Regions: []gain.Region{{World: "overworld", Max: [3]float64{1, 1, 1}, Range: 20}}}})
	g := &teams{}
	g.of(127)
	for i := range 50 {
		(*g)[i] = 1
	}
	r.c.SetGroups(g)
	r.turn()
	for from, want := range map[int]int{0: 49, 99: 49} {
		src := NewSource(all[from])
		var seq int64
		opus := []byte{1}
		allocs := testing.AllocsPerRun(100, func() {
			if n, _ := src.Send(r.table, 1, seq, opus); n != want {
				t.Fatal(n)
			}
			seq++
		})
		if allocs != 0 {
			t.Errorf("%v allocations for a frame to %d", allocs, want)
		}
	}
}

// TestSetPolicy: what an administrator changes counts from the next table on, in both directions, and nobody hears a
// talker that no roster has told about.
func TestSetPolicy(t *testing.T) {
	r := newRoom(t, Policy{Gain: gain.Rules{Default: 48}})
	a, b := r.join(1, 0), r.join(2, 30)
	r.meet(a, b)
	a.Player.Hide(b.Player.ID)
	r.turn()
	r.hears(a, b)
	r.hears(b)
	r.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	r.turn()
	r.hears(b) // a has not been told
	r.tell(a)
	r.turn()
	r.hears(b, a)
	c := r.join(3, 10) // seen by everybody without being shown to anybody
	r.turn()
	for _, p := range []*person{a, b, c} {
		r.tell(p)
	}
	r.turn()
	r.hears(c, a, b)
	r.reg.Sights().SetRules(nil, sight.Rule{})
	r.turn()
	r.reg.Settle(time.Now().Add(time.Minute)) // after the grace
	r.turn()
	r.hears(a, b)
	r.hears(b)
	r.hears(c)
	r.c.SetPolicy(Policy{Gain: gain.Rules{Default: 20}})
	r.turn()
	r.hears(a)
}
