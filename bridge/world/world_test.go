package world

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(n int) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n))
	return u
}

// poked tells whether a follower of the registry has been poked since the last call.
func poked(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestNothingIsKnownAtFirst(t *testing.T) {
	p := New().Add(id(1), "Ann")
	if p.Pose() != nil {
		t.Errorf("pose of a new player is %+v, want nil", p.Pose())
	}
	if *p.Facts() != (Facts{}) || p.Facts().Place != nil {
		t.Errorf("facts of a new player are %+v", p.Facts())
	}
	if p.Sees(p) || p.Knows(p) {
		t.Error("a new player sees somebody")
	}
}

func TestMembership(t *testing.T) {
	r := New()
	a, b := r.Add(id(2), "Ann"), r.Add(id(1), "Bob")
	if got := r.All(); !slices.Equal(got, []*Player{a, b}) {
		t.Fatalf("All = %v, want the order of joining", got)
	}
	again := r.Add(id(2), "Ann")
	if r.Get(id(2)) != again {
		t.Fatal("the newer connection does not replace the older one")
	}
	r.Remove(a)
	if r.Get(id(2)) != again {
		t.Fatal("removing the older connection removed the newer one")
	}
	if got := r.All(); !slices.Equal(got, []*Player{b, again}) {
		t.Fatalf("All = %v after a replacement", got)
	}
	r.Remove(again)
	if r.Get(id(2)) != nil || len(r.All()) != 1 {
		t.Fatal("a removed player is still there")
	}
	r.Remove(b)
	if len(r.All()) != 0 {
		t.Fatal("players are left")
	}
}

// TestFollowersArePokedForSlowThingsOnly: each of several, once however many changes there were, and with another
// version.
func TestFollowersArePokedForSlowThingsOnly(t *testing.T) {
	r := New()
	one, stop := r.Follow()
	other, stopOther := r.Follow()
	if !poked(one) || !poked(other) || poked(one) {
		t.Error("who begins to follow has not looked yet")
	}
	var p *Player
	place := r.Place("lobby", "minecraft:overworld")
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"join", func() { p = r.Add(id(1), "Ann") }, true},
		{"pose", func() { p.SetPose(&Pose{X: 1, Place: place}) }, false},
		{"pose unknown", func() { p.SetPose(nil) }, false},
		{"place", func() { p.SetFacts(Facts{Place: place}) }, true},
		{"same facts", func() { p.SetFacts(Facts{Place: place}) }, false},
		{"mode", func() { p.SetFacts(Facts{Place: place, Mode: Spectator}) }, true},
		{"show nobody who is here", func() { p.Show(id(4)) }, false},
		{"another player", func() { r.Add(id(2), "Bob").SetFacts(Facts{Place: place}) }, true},
		{"show", func() { p.Show(id(2), id(3)); r.Settle(time.Now()) }, true},
		{"show again", func() { p.Show(id(3), id(2)) }, false},
		{"show none", func() { p.Show() }, false},
		{"hide", func() { p.Hide(id(2)) }, true},
		{"hide again", func() { p.Hide(id(2)) }, false},
		{"hide all", func() { p.Show(id(2)); p.HideAll() }, true},
		{"show and hide before a turn", func() { p.Show(id(2)); p.Hide(id(2)) }, true},
		{"hide all again", func() { p.HideAll() }, false},
		{"leave", func() { r.Remove(p) }, true},
		{"leave again", func() { r.Remove(p) }, false},
	} {
		r.Settle(time.Now()) // a turn begins, and what comes after it is news again
		before := r.Version()
		step.do()
		if got := poked(one); got != step.want {
			t.Errorf("%s: poked %v, want %v", step.name, got, step.want)
		}
		if got := poked(other); got != step.want {
			t.Errorf("%s: the other one poked %v, want %v", step.name, got, step.want)
		}
		if got := r.Version() != before; got != step.want {
			t.Errorf("%s: another version %v, want %v", step.name, got, step.want)
		}
		if poked(one) || poked(other) {
			t.Errorf("%s: two pokes", step.name)
		}
	}
	stop()
	r.Add(id(3), "Eve")
	if poked(one) || !poked(other) {
		t.Error("who has stopped is poked, or who has not is not")
	}
	stopOther()
	r.Add(id(4), "Joe")
	if poked(other) {
		t.Error("poked after the last has stopped")
	}
}

func TestSight(t *testing.T) {
	r := New()
	place, now := r.Place("a", "w"), time.Now()
	var all []*Player
	for i := range 4 {
		p := r.Add(id(i), "x")
		p.SetFacts(Facts{Place: place})
		all = append(all, p)
	}
	p, a, b, mod := all[0], all[1], all[2], all[3]
	for _, l := range all {
		l.Show(p.ID, a.ID, b.ID)
	}
	a.Show(mod.ID)
	settle := func() { now = now.Add(time.Second); r.Settle(now) }
	settle()
	news := func() (of []*Player) {
		for l := r.NextSight(); l != nil; l = r.NextSight() {
			if whole := l.EachNews(func(o *Player, shown, apart bool) {
				if l == p {
					of = append(of, o)
				}
				if apart {
					t.Errorf("%v is apart", o.ID)
				}
			}); whole && l == p {
				of = append(of, nil)
			}
		}
		return of
	}
	if got := news(); len(got) == 0 || got[len(got)-1] != nil {
		t.Errorf("the first news are not the whole: %v", got)
	}
	p.Show(a.ID)
	settle()
	if got := news(); got != nil || !p.Sees(a) || !p.Sees(b) || p.Sees(mod) {
		t.Error("wrong sight after three were shown")
	}
	if !p.Knows(a) || p.Knows(mod) || !mod.Knows(p) {
		t.Error("mod sees everybody and is shown to nobody: he has vanished")
	}
	if !r.Knows(p.ID, a.ID) || r.Knows(p.ID, mod.ID) || !r.Knows(mod.ID, mod.ID) || !r.Knows(a.ID, mod.ID) || !r.Knows(id(9), mod.ID) || !r.Knows(p.ID, id(9)) {
		t.Error("by their UUIDs somebody else knows of them")
	}
	p.Hide(a.ID)
	settle()
	if got := news(); !slices.Equal(got, []*Player{a}) || p.Sees(a) || !p.Knows(a) || !a.Sees(p) {
		t.Error("one of three hides her: she is not shown there, and known of all the same")
	}
	mod.SetFacts(Facts{Place: r.Place("b", "w")})
	settle()
	settle()
	if p.Knows(mod) != mod.Sight.Public() || mod.Sees(p) {
		t.Error("what was seen on one server counts on another")
	}
	seen := 0
	b.EachShown(func(o *Player, apart bool) {
		seen++
		if o != p && o != a || apart {
			t.Errorf("b is shown %v", o.ID)
		}
	})
	if seen != 2 {
		t.Errorf("b is shown %d", seen)
	}
}

func TestSightIsBounded(t *testing.T) {
	r := New()
	p := r.Add(id(1), "Ann")
	p.SetFacts(Facts{Place: r.Place("a", "w")})
	ids := make([]uuid.UUID, sight.Max+10)
	for i := range ids {
		ids[i] = id(i)
	}
	p.Show(ids...) // and there is p itself, who is one of them
	if !p.Sight.Listed(id(sight.Max-1)) || p.Sight.Listed(id(sight.Max)) {
		t.Fatal("the bound is not where it is said to be")
	}
	p.Hide(id(0))
	p.Show(id(sight.Max))
	if !p.Sight.Listed(id(sight.Max)) {
		t.Fatal("no room after hiding one")
	}
}

func TestPlacesAreInternedAndUnusedOnesDropped(t *testing.T) {
	r := New()
	held := r.Place("lobby", "minecraft:overworld")
	if held != r.Place("lobby", "minecraft:overworld") {
		t.Fatal("two pointers for one place")
	}
	if held == r.Place("lobby", "minecraft:the_end") || held == r.Place("games", "minecraft:overworld") {
		t.Fatal("one pointer for two places")
	}
	for i := range 1000 {
		r.Place("lobby", strconv.Itoa(i))
	}
	size := func() int {
		r.placesMu.Lock()
		defer r.placesMu.Unlock()
		return len(r.places)
	}
	deadline := time.Now().Add(10 * time.Second)
	for size() > 1 {
		if time.Now().After(deadline) {
			t.Fatalf("%d places are left", size())
		}
		runtime.GC()
		runtime.Gosched()
	}
	if held != r.Place("lobby", "minecraft:overworld") {
		t.Fatal("a place in use was dropped")
	}
	runtime.KeepAlive(held)
}

// A cleanup that runs late must not remove the entry of the place that has taken the same names since.
func TestLateCleanupKeepsSuccessor(t *testing.T) {
	r := New()
	p := r.Place("lobby", "w")
	r.dropPlace(*p)
	if p != r.Place("lobby", "w") {
		t.Fatal("a cleanup removed a place in use")
	}
	runtime.KeepAlive(p)
}

func TestGameModeNames(t *testing.T) {
	for m, want := range map[GameMode]string{Survival: "survival", Creative: "creative", Adventure: "adventure", Spectator: "spectator", 9: "unknown"} {
		if m.String() != want {
			t.Errorf("%d is %q, want %q", uint8(m), m, want)
		}
	}
}

// The race detector is the judge here, and readers must only ever see whole poses.
func TestReadersNeedNoLock(t *testing.T) {
	r := New()
	p := r.Add(id(1), "Ann")
	place := r.Place("lobby", "w")
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			v := float64(i)
			p.SetPose(&Pose{X: v, Y: v, Z: v, Place: place})
			p.SetFacts(Facts{Vehicle: int32(i), Place: place, Riding: true})
			p.Show(id(i))
		}
	})
	for range 2 {
		wg.Go(func() {
			for i := range 2000 {
				if q := p.Pose(); q != nil && (q.X != q.Y || q.Y != q.Z || q.Place != place) {
					t.Error("a torn pose")
				}
				if f := p.Facts(); f.Riding && f.Place != place {
					t.Error("torn facts")
				}
				p.Sight.Listed(id(i))
				r.All()
			}
		})
	}
	wg.Wait()
}

func TestReadingAllocatesNothing(t *testing.T) {
	r := New()
	p := r.Add(id(1), "Ann")
	place := r.Place("lobby", "w")
	p.SetPose(&Pose{Place: place})
	if n := testing.AllocsPerRun(100, func() {
		p.Pose()
		p.Facts()
		p.Knows(p)
		r.Get(id(1))
		r.All()
		p.SetFacts(Facts{})
		r.Place("lobby", "w")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A thousand players who join one by one, each shown to all others: what a join costs must not grow with the square of
// the crowd.
func BenchmarkThousandJoins(b *testing.B) {
	for b.Loop() {
		r := New()
		place := r.Place("a", "w")
		var all []*Player
		for i := range 1000 {
			p := r.Add(id(i), "x")
			p.SetFacts(Facts{Place: place})
			for _, o := range all {
				o.Show(p.ID)
				p.Show(o.ID)
			}
			all = append(all, p)
		}
	}
}
