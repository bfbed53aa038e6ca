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
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(n int) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n))
	return u
}

// poked tells whether the registry has been poked since the last call.
func poked(r *Registry) bool {
	select {
	case <-r.Changed():
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
	if p.Sees(id(1)) || p.Sees(id(2)) {
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

func TestChangedIsPokedForSlowThingsOnly(t *testing.T) {
	r := New()
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
		{"show", func() { p.Show(id(2), id(3)) }, true},
		{"show again", func() { p.Show(id(3), id(2)) }, false},
		{"show none", func() { p.Show() }, false},
		{"hide", func() { p.Hide(id(2)) }, true},
		{"hide again", func() { p.Hide(id(2)) }, false},
		{"hide all", func() { p.HideAll() }, true},
		{"hide all again", func() { p.HideAll() }, false},
		{"two at once are one poke", func() { p.Show(id(4)); p.Show(id(5)) }, true},
		{"leave", func() { r.Remove(p) }, true},
		{"leave again", func() { r.Remove(p) }, false},
	} {
		step.do()
		if got := poked(r); got != step.want {
			t.Errorf("%s: poked %v, want %v", step.name, got, step.want)
		}
		if poked(r) {
			t.Errorf("%s: two pokes", step.name)
		}
	}
}

func TestSight(t *testing.T) {
	r := New()
	p, a, b := r.Add(id(1), "Ann"), r.Add(id(2), "Bob"), r.Add(id(3), "Cid")
	p.Show(a.ID, b.ID)
	v := p.SightVersion()
	p.Show(a.ID)
	if p.SightVersion() != v {
		t.Error("showing somebody twice is a change")
	}
	p.Hide(a.ID)
	if p.SightVersion() == v {
		t.Error("hiding is no change")
	}
	if p.Sees(a.ID) || !p.Sees(b.ID) || a.Sees(p.ID) {
		t.Error("wrong sight after hiding one of two")
	}
	if got := p.AppendSeen(nil, []*Player{a, b, p}); !slices.Equal(got, []*Player{b}) {
		t.Errorf("AppendSeen = %v", got)
	}
	p.HideAll()
	if p.Sees(b.ID) {
		t.Error("HideAll hides nobody")
	}
}

func TestSightIsBounded(t *testing.T) {
	p := New().Add(id(1), "Ann")
	ids := make([]uuid.UUID, MaxSight+10)
	for i := range ids {
		ids[i] = id(i)
	}
	p.Show(ids...)
	if !p.Sees(id(MaxSight-1)) || p.Sees(id(MaxSight)) {
		t.Fatal("the bound is not where it is said to be")
	}
	p.Hide(id(0))
	p.Show(id(MaxSight))
	if !p.Sees(id(MaxSight)) {
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
				p.Sees(id(i))
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
		p.Sees(id(1))
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
		var all []*Player
		for i := range 1000 {
			p := r.Add(id(i), "x")
			for _, o := range all {
				o.Show(p.ID)
				p.Show(o.ID)
			}
			all = append(all, p)
		}
	}
}

// On his own server a player learns of those whom it shows to him; on others of those whom it shows to all.
func TestHidden(t *testing.T) {
	r := New()
	var all []*Player
	for i, backend := range []string{"a", "a", "a", "b", "b", "b", ""} {
		p := r.Add(id(i), "x")
		if backend != "" {
			p.SetFacts(Facts{Place: r.Place(backend, "w")})
		}
		all = append(all, p)
	}
	for i, p := range all[:6] {
		p.Show(all[i/3*3].ID, all[i/3*3+1].ID, all[i/3*3+2].ID)
	}
	check := func(what string, from *Player, want ...*Player) {
		t.Helper()
		got := r.Hidden(from)
		for _, p := range want {
			if _, ok := got[p.ID]; !ok {
				t.Errorf("%s: %v is not hidden", what, p.ID)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d are hidden, want %d", what, len(got), len(want))
		}
	}
	for _, p := range all {
		check("all are shown", p)
	}
	all[0].Hide(all[1].ID)
	check("from him", all[0], all[1])
	check("not from another one there", all[2])
	check("nor from himself", all[1])
	check("elsewhere it is enough that one does not see him", all[3], all[1])
	check("and where it is not known on which server somebody is", all[6], all[1])
	check("and from strangers", nil, all[1])
	all[0].Show(all[1].ID)
	check("and back", all[3])
}

func BenchmarkAppendSeen(b *testing.B) {
	r := New()
	p := r.Add(id(0), "x")
	for i := range 1000 {
		p.Show(r.Add(id(i), "x").ID)
	}
	all := r.All()
	dst := make([]*Player, 0, len(all))
	for b.Loop() {
		dst = p.AppendSeen(dst[:0], all)
	}
	if len(dst) != 1000 {
		b.Fatal(len(dst))
	}
}
