package hub

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/route"
)

// throng is a hub with n members on backends of so many each, whose lists have everybody there.
type throng struct {
	reg *world.Registry
	hub *Hub
	ids []uuid.UUID
	all []*Member
	per int
	now time.Time
}

func newThrong(n, per int) *throng {
	reg := world.New()
	x := &throng{reg: reg, hub: New(reg, route.Policy{Gain: gain.Rules{Default: 48}}), per: per, now: time.Now()}
	for i := range n {
		x.ids = append(x.ids, uuid.UUID{0: byte(i), 1: byte(i >> 8), 15: 1})
	}
	for i := range n {
		x.all = append(x.all, x.join(i))
	}
	return x
}

// join returns a player who comes with an entry of everybody on the backend.
func (x *throng) join(i int) *Member {
	p := x.reg.Add(x.ids[i], "somebody")
	b := i / x.per
	place := x.reg.Place(fmt.Sprint("b", b), "overworld")
	p.SetFacts(world.Facts{Place: place})
	p.Show(x.ids[b*x.per : min((b+1)*x.per, len(x.ids))]...)
	p.SetPose(&world.Pose{Place: place})
	return x.hub.Join(p, &writer{}, Wants{Status: true})
}

// settle makes turns until nothing changes any more.
func (x *throng) settle() (turns int) {
	for turns < 1000 {
		turns++
		x.now = x.now.Add(time.Second)
		next := x.hub.turn(x.now)
		x.hub.tellAll(x.now, true)
		if next == 0 && turns > 3 {
			break
		}
	}
	return turns
}

// BenchmarkOneChange measures a turn in which one thing has changed, by the members and by what has.
func BenchmarkOneChange(b *testing.B) {
	for _, size := range []struct{ n, per int }{{1000, 1000}, {5000, 5000}, {5000, 100}} {
		x := newThrong(size.n, size.per)
		x.settle()
		for _, c := range []struct {
			name string
			do   func(i int)
		}{
			{"nothing", func(int) {}},
			{"facts", func(i int) {
				p := x.all[i%size.n].Player
				f := *p.Facts()
				f.OpLevel = (f.OpLevel + 1) % 4
				p.SetFacts(f)
			}},
			{"spectator", func(i int) { // seen by everybody's row
				p := x.all[i/2%size.n].Player
				f := *p.Facts()
				f.Mode = world.Spectator * world.GameMode(1-i%2)
				p.SetFacts(f)
			}},
			{"deafened", func(i int) { x.hub.SetDeafened(x.all[i/2%size.n], i%2 == 0) }},
			{"hidden", func(i int) {
				p, o := x.all[i/2%size.n].Player, x.ids[i/2%size.n/size.per*size.per]
				if i%2 == 0 {
					p.Hide(o)
				} else {
					p.Show(o)
				}
			}},
		} {
			b.Run(fmt.Sprintf("members=%d/backends=%d/%s", size.n, size.n/size.per, c.name), func(b *testing.B) {
				b.ReportAllocs()
				var before, after syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
				for i := 0; b.Loop(); i++ {
					c.do(i)
					x.now = x.now.Add(20 * time.Millisecond)
					x.hub.turn(x.now)
				}
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
				// Beside other work.
				b.ReportMetric(float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/float64(b.N)/1e6, "cpu-ms/op")
			})
		}
	}
}

// A turn that took long, as after a restart when everybody comes at once, keeps nobody waiting for many times as long.
func TestALongTurnIsFollowedByAnotherOneSoon(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		do := func(d time.Duration) {
			if err := x.hub.Do(func(time.Time) { time.Sleep(d) }); err != nil {
				t.Fatal(err)
			}
		}
		do(2 * time.Second)
		begun := time.Now()
		do(0)
		if d := time.Since(begun); d > 2*Flush {
			t.Errorf("after a turn of two seconds the next one came %v later", d)
		}
	})
}

// One change costs what it changes and not what the hub weighs: beside a turn that compiles everything, and in memory
// that it takes.
func TestATurnCostsWhatHasChanged(t *testing.T) {
	const n = 2000
	x := newThrong(n, n/20)
	x.settle()
	best := func(do func(i int)) (least time.Duration) {
		for i := range 20 {
			do(i)
			x.now = x.now.Add(20 * time.Millisecond)
			begun := time.Now()
			x.hub.turn(x.now)
			if d := time.Since(begun); i == 0 || d < least {
				least = d
			}
		}
		return least
	}
	facts := func(i int) {
		p := x.all[i*7%n].Player
		f := *p.Facts()
		f.OpLevel = (f.OpLevel + 1) % 4
		p.SetFacts(f)
	}
	hidden := func(i int) {
		p, o := x.all[i/2*7%n].Player, x.ids[i/2*7%n/x.per*x.per+1]
		if i%2 == 0 {
			p.Hide(o)
		} else {
			p.Show(o)
		}
	}
	whole := best(func(int) { x.hub.compiler.SetPolicy(x.hub.policy) })
	for what, do := range map[string]func(int){"facts": facts, "hidden": hidden} {
		if one := best(do); one > whole/4 {
			t.Errorf("a turn of one change, %s, takes %v, and %v if everything changes", what, one, whole)
		} else {
			t.Logf("%s: %v of %v", what, one, whole)
		}
		i := 0
		if allocs := testing.AllocsPerRun(20, func() {
			do(i)
			i++
			x.now = x.now.Add(20 * time.Millisecond)
			x.hub.turn(x.now)
		}); allocs > 60 {
			t.Errorf("%s: %v allocations", what, allocs)
		}
	}
}
