package hub

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/route"
)

// page returns a player with a page, in sight of all.
func (x *test) page(name string, all ...*person) *person {
	p := x.player(name)
	for _, o := range all {
		o.Player.Show(p.ID)
		p.Show(o.Player.ID)
	}
	f := &fake{}
	f.show = f.shown
	m := x.hub.Join(p, f, Wants{Status: true, Page: true})
	return &person{m, f, route.NewSource(&m.Member)}
}

// at moves somebody.
func (x *test) at(p *person, px, y, z float64) {
	p.Player.SetPose(&world.Pose{X: px, Y: y, Z: z, Place: p.Player.Facts().Place})
}

// last returns the newest of somebody's events that begin so, or nothing.
func last(p *person, begins string) string {
	all := p.fake.take()
	for _, e := range slices.Backward(all) {
		if strings.HasPrefix(e, begins) {
			return e
		}
	}
	return ""
}

// TestWhoIsAround: a page is shown who is where, nearest first, on change and at most twice a second, and a mod is not.
func TestWhoIsAround(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.page("anna")
		b := x.join("ben", a)
		c := x.join("cleo", a, b)
		x.at(b, 3.4, 1.6, -4.5)
		x.at(c, -1, 0, 0)
		x.calm()
		if got := last(a, "near"); got != "near cleo -1/0/0 ben 3/2/-5" {
			t.Errorf("%q", got)
		}
		if got := last(b, "near"); got != "" {
			t.Error("ben has no page:", got)
		}
		x.calm()
		if got := last(a, "near"); got != "" {
			t.Error("nothing has changed:", got)
		}
		x.at(c, -1.2, 0, 0) // within the block
		x.calm()
		if got := last(a, "near"); got != "" {
			t.Error("not by a block:", got)
		}
		for i := range 20 {
			x.at(c, float64(i), 0, 0)
			time.Sleep(100 * time.Millisecond)
		}
		x.calm()
		n := 0
		for _, e := range a.fake.take() {
			if strings.HasPrefix(e, "near") {
				n++
			}
		}
		if n < 4 || n > 6 {
			t.Errorf("told %d times in two seconds", n)
		}
	})
}

// TestNobodyHiddenIsAround: no vanished player, none in another place, no spectator, and none that no roster has told
// about yet.
func TestNobodyHiddenIsAround(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.page("anna")
		b := x.join("ben", a)
		x.calm()
		if got := last(a, "near"); got != "near ben 0/0/0" {
			t.Fatalf("%q", got)
		}
		gone := func(why string) {
			t.Helper()
			x.calm()
			if got := last(a, "near"); got != "near" {
				t.Errorf("%s: %q", why, got)
			}
		}
		back := func() {
			t.Helper()
			x.calm()
			if got := last(a, "near"); got != "near ben 0/0/0" {
				t.Errorf("back: %q", got)
			}
		}
		a.Player.Hide(b.Player.ID)
		gone("hidden")
		a.Player.Show(b.Player.ID)
		back()
		here, there := b.Player.Facts(), x.reg.Place("survival", "the_end")
		b.Player.SetFacts(world.Facts{Place: there})
		b.Player.SetPose(&world.Pose{Place: there})
		gone("in another world")
		b.Player.SetFacts(world.Facts{Place: here.Place})
		b.Player.SetPose(&world.Pose{Place: here.Place})
		back()
		b.Player.SetFacts(world.Facts{Place: here.Place, Mode: world.Spectator})
		gone("a spectator")
		b.Player.SetFacts(world.Facts{Place: here.Place})
		back()
		x.hub.Leave(b.Member)
		gone("without voice")
		a.fake.block(true)
		c := x.join("cleo", a)
		x.calm()
		if got := last(a, "near"); got != "" {
			t.Error("untold:", got)
		}
		a.fake.block(false)
		x.calm()
		if got := last(a, "near"); got != "near cleo 0/0/0" {
			t.Error(got)
		}
		_ = c
	})
}

// TestTheNearestAreAround: of a crowd exactly the nearest, as a look at all of them finds.
func TestTheNearestAreAround(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		r := rand.New(rand.NewPCG(1, 8))
		all := []*person{x.page("anna")}
		type far struct {
			name   string
			square float64
		}
		var want []far
		for i := range 200 {
			p := x.join(fmt.Sprintf("p%03d", i), all[0])
			px, y, z := (r.Float64()-0.5)*300, (r.Float64()-0.5)*40, (r.Float64()-0.5)*300
			x.at(p, px, y, z)
			want = append(want, far{p.Player.Name, px*px + y*y + z*z})
		}
		slices.SortFunc(want, func(a, b far) int { return int(math.Copysign(1, a.square-b.square)) })
		x.calm()
		x.calm()
		words := strings.Fields(last(all[0], "near"))
		if len(words) != 1+2*MostNear {
			t.Fatalf("%d words", len(words))
		}
		for i := range MostNear {
			if words[1+2*i] != want[i].name {
				t.Errorf("place %d: %s, want %s", i, words[1+2*i], want[i].name)
			}
		}
	})
}

// TestRights: a page is told what its player may do, at once and when that changes.
func TestRights(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		may := Open
		x.hub.Permissions = func(uuid.UUID) Bits { return may }
		a, b := x.page("anna"), x.join("ben")
		x.settle()
		if got := last(a, "rights"); got != "rights true true true" {
			t.Errorf("%q", got)
		}
		x.calm()
		if got := last(a, "rights"); got != "" {
			t.Errorf("told again: %q", got)
		}
		x.hub.Do(func(time.Time) { may = Listen })
		x.calm()
		if got := last(a, "rights"); got != "rights false true false" {
			t.Errorf("%q", got)
		}
		if got := last(b, "rights"); got != "" {
			t.Errorf("ben has no page: %q", got)
		}
	})
}

// TestMicToggle: reaches the page of the player, and nobody else.
func TestMicToggle(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a, b := x.page("anna"), x.join("ben")
		x.settle()
		for p, want := range map[uuid.UUID]bool{a.Player.ID: true, b.Player.ID: false, uuid.New(): false} {
			if got := x.hub.ToggleMic(p); got != want {
				t.Errorf("%s: %v", names[p], got)
			}
		}
		if last(a, "mic") == "" || last(b, "mic") != "" {
			t.Error("not where it should be")
		}
	})
}

// TestSleepingPage: a page that says nothing for ten seconds is away: it is sent no sound and others see it as
// deafened, until it says something; its own wish to be deaf outlives that.
func TestSleepingPage(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.page("anna")
		b := x.join("ben", a)
		x.calm()
		for range 5 { // awake
			time.Sleep(AwayAfter / 3)
			x.hub.Beat(a.Member)
		}
		x.settle()
		if n := x.says(b); n != 1 {
			t.Fatalf("%d hear ben", n)
		}
		b.fake.take()
		time.Sleep(AwayAfter + Flush + 10*gap)
		synctest.Wait()
		if n := x.says(b); n != 0 {
			t.Error("a page that sleeps is sent sound")
		}
		if got := last(b, "roster"); got != "roster anna ben deaf:anna" {
			t.Errorf("%q", got)
		}
		x.hub.Beat(a.Member)
		x.settle()
		if n := x.says(b); n != 1 {
			t.Error("a page that has woken is sent no sound")
		}
		x.hub.SetDeafened(a.Member, true)
		x.calm()
		time.Sleep(2 * AwayAfter)
		x.hub.Beat(a.Member)
		x.calm()
		if got := last(b, "roster"); got != "roster anna ben deaf:anna" && got != "" {
			t.Errorf("%q", got)
		}
		if n := x.says(b); n != 0 {
			t.Error("deafened, and sent sound")
		}
		time.Sleep(2 * AwayAfter)
		if n := x.says(a); n != 1 {
			t.Error("ben, who has no page, fell asleep")
		}
	})
}

// BenchmarkNear measures a flush of a thousand pages in one world, and of a thousand in one spot.
func BenchmarkNear(b *testing.B) {
	for name, width := range map[string]float64{"world": 4000, "spot": 20} {
		b.Run(name, func(b *testing.B) {
			reg := world.New()
			h := New(reg, route.Policy{})
			place := reg.Place("survival", "overworld")
			r := rand.New(rand.NewPCG(1, 1))
			var people []*world.Player
			for i := range 1000 {
				p := reg.Add(uuid.New(), fmt.Sprint("p", i))
				p.SetFacts(world.Facts{Place: place})
				p.SetPose(&world.Pose{X: r.Float64() * width, Z: r.Float64() * width, Place: place})
				people = append(people, p)
			}
			for _, p := range people {
				for _, o := range people {
					p.Show(o.ID)
				}
				h.Join(p, &writer{}, Wants{Page: true})
			}
			for range 50 {
				h.turn(time.Now())
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, m := range h.members {
					m.nearTold = false
				}
				h.near.next = 0
				h.showNear()
			}
		})
	}
}
