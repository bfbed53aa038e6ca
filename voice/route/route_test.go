package route

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/talk"
)

// ear records what is delivered to one member.
type ear struct{ got []Frame }

func (e *ear) Deliver(f *Frame) {
	g := *f
	g.Opus = slices.Clone(f.Opus)
	e.got = append(e.got, g)
}

// take returns what has come since the last call.
func (e *ear) take() []Frame {
	got := e.got
	e.got = nil
	return got
}

// room is a small world with a compiler on it.
type room struct {
	t     testing.TB
	reg   *world.Registry
	place *world.Place
	c     *Compiler
	table *Table
}

// person is a member with both ends of its voice.
type person struct {
	*Member
	ear *ear
	src *Source
	seq int64
}

func newRoom(t testing.TB, p Policy) *room {
	if p.Gain.Default == 0 {
		p.Gain = gain.Rules{Default: 48, Worlds: p.Gain.Worlds, Tiers: p.Gain.Tiers}
	}
	reg := world.New()
	return &room{t: t, reg: reg, place: reg.Place("survival", "overworld"), c: NewCompiler(reg, p)}
}

// join adds a member who stands at x, and sees nobody yet.
func (r *room) join(n int, x float64) *person {
	pl := r.reg.Add(uuid.UUID{0: byte(n >> 8), 15: byte(n)}, fmt.Sprint("p", n))
	pl.SetFacts(world.Facts{Place: r.place})
	pl.SetPose(&world.Pose{X: x, Place: r.place})
	e := &ear{}
	m := &Member{Player: pl, Receiver: e}
	r.c.Add(m)
	return &person{Member: m, ear: e, src: NewSource(m)}
}

// meet makes all see each other and tells them.
func (r *room) meet(all ...*person) {
	for _, p := range all {
		for _, o := range all {
			p.Player.Show(o.Player.ID)
		}
	}
	r.turn()
	for _, p := range all {
		r.tell(p)
	}
	r.turn()
}

// tell sends p a roster, as far as routes go.
func (r *room) tell(p *person) bool {
	r.c.Name(p.Member, p.Member.Sees())
	return r.c.Tell(p.Member)
}

// settle makes out of everything that has been seen what follows from it a second later.
func (r *room) settle() {
	r.reg.Settle(time.Now().Add(sight.Settled))
	r.c.Reveal()
}

// turn looks and publishes.
func (r *room) turn() {
	r.settle()
	for !r.c.Look(1 << 30) {
	}
	r.table = r.c.Compile()
}

// says sends one frame of stream 7.
func (r *room) says(p *person) int {
	n, _ := p.src.Send(r.table, 7, p.seq, []byte{1, 2, 3})
	p.seq++
	return n
}

// hears fails unless exactly these hear p.
func (r *room) hears(p *person, want ...*person) {
	r.t.Helper()
	for _, o := range want {
		o.ear.take()
	}
	if n := r.says(p); n != len(want) {
		r.t.Fatalf("%d hear %s, want %d", n, p.Player.Name, len(want))
	}
	for _, o := range want {
		if got := o.ear.take(); len(got) != 1 || got[0].Talker != p.Player.ID {
			r.t.Fatalf("%s got %+v", o.Player.Name, got)
		}
	}
}

func TestWhoHears(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b, c := r.join(1, 0), r.join(2, 5), r.join(3, 20)
	r.meet(a, b, c)
	r.hears(a, b, c) // not itself
	if f := r.says(a); f != 2 {
		t.Fatal(f)
	}
	got := b.ear.take()[0]
	if got.Gain != 228 || got.DX != -5 || got.DZ != 0 || got.Seq != 1 || got.Stream <= 0 || string(got.Opus) != "\x01\x02\x03" {
		t.Errorf("b got %+v", got)
	}
}

func TestDirection(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	a.Player.SetPose(&world.Pose{X: 10, Y: 64, Z: -20, Place: r.place})
	b.Player.SetPose(&world.Pose{X: 4, Y: 70, Z: -12, Place: r.place})
	r.hears(a, b)
	r.says(a)
	if f := b.ear.take()[0]; f.DX != 6 || f.DZ != -8 {
		t.Errorf("source minus listener: dx %v dz %v, want 6 -8", f.DX, f.DZ)
	}
	r.says(b)
	if f := a.ear.take()[0]; f.DX != -6 || f.DZ != 8 {
		t.Errorf("the other way: dx %v dz %v, want -6 8", f.DX, f.DZ)
	}
	// The distance counts the height too: 6, 6 and 8 blocks.
	want := byte(math.Round((1 - math.Sqrt(36+36+64)/48) * 255))
	if r.says(a); b.ear.take()[0].Gain != want {
		t.Errorf("gain is not that of the 3D distance")
	}
}

func TestRangeEdges(t *testing.T) {
	r := newRoom(t, Policy{Gain: gain.Rules{Worlds: map[string]float64{"quiet": 0, "cave": 16}}})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	at := func(x float64) { b.Player.SetPose(&world.Pose{X: x, Place: r.place}) }
	at(47.9)
	r.hears(a, b)
	at(47.95) // inside, but the gain rounds to 0
	r.hears(a)
	at(48)
	r.hears(a)
	at(49)
	r.hears(a)
	for name, reach := range map[string]float64{"cave": 16, "quiet": 0} {
		p := r.reg.Place("survival", name)
		for _, x := range []*person{a, b} {
			x.Player.SetFacts(world.Facts{Place: p})
		}
		a.Player.SetPose(&world.Pose{Place: p})
		r.turn()
		if b.Player.SetPose(&world.Pose{X: reach, Place: p}); r.says(a) != 0 {
			t.Errorf("%s: heard at %v", name, reach)
		}
		if b.Player.SetPose(&world.Pose{X: reach - 1, Place: p}); r.says(a) != int(min(reach, 1)) {
			t.Errorf("%s: wrong at %v", name, reach-1)
		}
	}
}

func TestPlaces(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	for _, other := range []*world.Place{r.reg.Place("survival", "nether"), r.reg.Place("lobby", "overworld")} {
		// The pose alone is enough to silence: no turn has run since.
		b.Player.SetPose(&world.Pose{Place: other})
		r.hears(a)
		b.Player.SetFacts(world.Facts{Place: other})
		r.turn()
		r.hears(a)
		a.Player.SetFacts(world.Facts{Place: other})
		a.Player.SetPose(&world.Pose{Place: other})
		r.meet(a, b) // another server has to show them to each other
		r.hears(a, b)
		for _, x := range []*person{a, b} {
			x.Player.SetFacts(world.Facts{Place: r.place})
			x.Player.SetPose(&world.Pose{Place: r.place})
		}
		r.meet(a, b)
		r.turn()
	}
}

func TestUnknownPoseIsSilence(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	b.Player.SetPose(nil)
	r.hears(a)
	a.Player.SetPose(nil)
	b.Player.SetPose(&world.Pose{Place: r.place})
	if n, out := a.src.Send(r.table, 1, 0, []byte{1}); n != 0 || out != NoPose {
		t.Errorf("a talker nowhere: %d %v", n, out)
	}
	a.Player.SetPose(&world.Pose{X: math.NaN(), Place: r.place})
	r.hears(a)
	a.Player.SetPose(&world.Pose{X: math.Inf(1), Place: r.place})
	r.hears(a)
}

func TestVisibility(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	r.hears(a, b)
	b.Player.Hide(a.Player.ID)
	r.turn()
	r.hears(a)
	r.hears(b, a) // one way only
	b.Player.Show(a.Player.ID)
	r.turn()
	r.hears(a) // shown, but not told of again yet
	r.tell(b)
	r.turn()
	r.hears(a, b)

	e := newRoom(t, Policy{})
	e.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	a, b = e.join(1, 0), e.join(2, 0)
	e.turn()
	e.hears(a)
	e.tell(b)
	e.turn()
	e.hears(a, b)
}

func TestUntoldHearNothing(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	b.Player.Show(a.Player.ID)
	a.Player.Show(b.Player.ID)
	r.turn()
	r.hears(a)
	r.hears(b)
	if !r.tell(b) {
		t.Error("telling b opens the route from a")
	}
	r.hears(a) // the table of before
	r.turn()
	r.hears(a, b)
	r.hears(b)
	if r.tell(b) {
		t.Error("telling b twice opens nothing")
	}
	// Somebody else in the slot of one who left is nobody that b was told of.
	r.c.Drop(a.Member)
	d := r.join(3, 0)
	b.Player.Show(d.Player.ID)
	if d.Slot() != 0 {
		t.Fatalf("slot %d was not used again", d.Slot())
	}
	r.turn()
	r.hears(d)

	// What a roster on its way names is who there was when it was made.
	r.c.Name(b.Member, b.Member.Sees())
	e := r.join(4, 0)
	b.Player.Show(e.Player.ID)
	r.turn()
	r.c.Tell(b.Member)
	r.turn()
	r.hears(d, b)
	r.hears(e)
	r.c.Name(b.Member, b.Member.Sees())
	r.c.Drop(e.Member)
	f := r.join(5, 0) // in e's slot
	b.Player.Show(f.Player.ID)
	r.turn()
	r.c.Tell(b.Member)
	r.turn()
	r.hears(f)

	// Nor does it count for somebody who was hidden while it was on its way.
	f.Player.Show(b.Player.ID) // who sees and is not seen has vanished
	r.c.Name(b.Member, b.Member.Sees())
	b.Player.Hide(f.Player.ID)
	r.turn()
	b.Player.Show(f.Player.ID)
	r.turn()
	r.c.Tell(b.Member)
	r.turn()
	r.hears(f)
}

func TestDeafened(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	r.meet(a, b)
	r.c.SetDeafened(b.Member, true)
	r.turn()
	r.hears(a)
	r.hears(b, a) // who is deaf still speaks
	r.c.SetDeafened(b.Member, false)
	r.turn()
	r.hears(a, b)
}

func TestSpectators(t *testing.T) {
	for rule, hears := range map[Spectators][2]bool{ // player, spectator
		HeardByNobody: {false, false}, HeardBySpectators: {false, true}, HeardByEveryone: {true, true},
	} {
		r := newRoom(t, Policy{Spectators: rule})
		p, s, s2 := r.join(1, 0), r.join(2, 0), r.join(3, 0)
		r.meet(p, s, s2)
		for _, x := range []*person{s, s2} {
			x.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator})
		}
		r.turn()
		r.hears(p, s, s2) // spectators hear everybody
		var want []*person
		if hears[0] {
			want = append(want, p)
		}
		if hears[1] {
			want = append(want, s2)
		}
		r.hears(s, want...)
	}
}

func TestTiers(t *testing.T) {
	r := newRoom(t, Policy{Gain: gain.Rules{Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}})
	a, b := r.join(1, 0), r.join(2, 30)
	r.meet(a, b)
	r.hears(a, b)
	r.c.SetTier(a.Member, talk.Whisper)
	r.turn()
	r.hears(a)
	r.hears(b, a)
	r.c.SetTier(a.Member, talk.Shout) // not offered here: as ordinary speech
	r.turn()
	r.hears(a, b)
	if r.says(a); b.ear.take()[0].Gain != 96 {
		t.Error("a tier that is off changes the gain")
	}
	b.Player.SetPose(&world.Pose{X: 60, Place: r.place})
	r.hears(a)
}

func TestStreams(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b, c := r.join(1, 0), r.join(2, 0), r.join(3, 0)
	r.meet(a, b, c)
	used := map[int64]string{}
	// next sends a frame and tells the id that b knows the stream by.
	next := func(what string) int64 {
		t.Helper()
		b.ear.take()
		r.says(a)
		f := b.ear.take()
		if len(f) != 1 || f[0].Stream <= 0 || f[0].Seq != a.seq-1 {
			t.Fatalf("%s: %+v", what, f)
		}
		return f[0].Stream
	}
	id := next("start")
	used[id] = "start"
	renewed := func(what string) {
		t.Helper()
		now := next(what)
		if was, ok := used[now]; ok {
			t.Errorf("after %s the stream is still that of %q", what, was)
		}
		used[now] = what
		if again := next(what); again != now {
			t.Errorf("after %s the stream does not go on", what)
		}
		id = now
	}
	if next("going on") != id {
		t.Error("a stream changes by itself")
	}
	if f := c.ear.take(); f[len(f)-1].Stream == id {
		t.Error("two listeners know one id")
	}
	r.turn()
	if next("another turn") != id {
		t.Error("a turn renews streams")
	}

	away := func(what string, do func()) {
		t.Helper()
		do()
		r.hears(a, c)
		b.Player.SetPose(&world.Pose{Place: r.place})
		b.Player.SetFacts(world.Facts{Place: r.place})
		r.turn()
		renewed(what)
	}
	away("out of range", func() { b.Player.SetPose(&world.Pose{X: 100, Place: r.place}) })
	away("elsewhere", func() { b.Player.SetPose(&world.Pose{Place: r.reg.Place("lobby", "overworld")}) })
	away("nowhere", func() { b.Player.SetPose(nil) })
	away("hidden", func() {
		b.Player.Hide(a.Player.ID)
		r.turn()
		b.Player.Show(a.Player.ID)
		r.turn()
		r.tell(b)
	})
	a.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator})
	r.turn()
	r.hears(a)
	a.Player.SetFacts(world.Facts{Place: r.place})
	r.turn()
	renewed("spectating")

	// Deaf and not deaf again between two frames: no frame was filtered, and yet.
	r.c.SetDeafened(b.Member, true)
	r.turn()
	r.c.SetDeafened(b.Member, false)
	r.turn()
	renewed("deafened")

	a.Player.SetPose(nil)
	r.hears(a)
	a.Player.SetPose(&world.Pose{Place: r.place})
	renewed("the talker nowhere")

	// The sender's own new stream is a new one for all.
	a.src.Send(r.table, 8, 0, []byte{1})
	b.ear.take()
	renewed("the sender's stream")

	// A listener that comes back by another connection.
	r.c.Drop(b.Member)
	e := &ear{}
	b.Member = &Member{Player: b.Player, Receiver: e}
	b.ear = e
	r.c.Add(b.Member)
	r.turn()
	r.tell(b)
	r.turn()
	renewed("reconnect")

	// So does a talker's.
	r.c.Drop(a.Member)
	a.Member = &Member{Player: a.Player, Receiver: a.ear}
	a.src = NewSource(a.Member)
	r.c.Add(a.Member)
	r.turn()
	r.tell(b)
	r.turn()
	renewed("the talker's reconnect")

	// A legacy talker has neither.
	a.src.Send(r.table, 0, 0, []byte{1})
	if f := b.ear.take()[0]; f.Stream != 0 || f.Seq != 0 {
		t.Errorf("legacy: %+v", f)
	}
}

func TestNotListed(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.join(1, 0), r.join(2, 0)
	if n, out := a.src.Send(nil, 1, 0, []byte{1}); n != 0 || out != NotListed {
		t.Errorf("before any table: %d %v", n, out)
	}
	r.meet(a, b)
	old := r.table
	r.c.Drop(a.Member)
	if n, out := a.src.Send(old, 1, 0, []byte{1}); n != 0 || out != NotListed {
		t.Errorf("after leaving: %d %v", n, out)
	}
	d := r.join(3, 0) // in a's slot
	if n, out := d.src.Send(old, 1, 0, []byte{1}); n != 0 || out != NotListed {
		t.Errorf("a newcomer speaks through the row of one who left: %d %v", n, out)
	}
}

func TestSettings(t *testing.T) {
	for s, want := range map[string]Spectators{"spectators": HeardBySpectators, "nobody": HeardByNobody, "everyone": HeardByEveryone} {
		if got, err := ParseSpectators(s); err != nil || got != want {
			t.Errorf("%s: %v %v", s, got, err)
		}
	}
	if _, err := ParseSpectators("all"); err == nil {
		t.Error("all is no spectator rule")
	}
}

// TestLookIsBounded holds a turn to its budget however many sights have changed, and still gets round to everybody.
func TestLookIsBounded(t *testing.T) {
	r := newRoom(t, Policy{})
	var all []*person
	for n := range 10 {
		all = append(all, r.join(n, 0))
	}
	for r.c.Look(1) == false {
	}
	for _, p := range all {
		p.Player.Show(all[0].Player.ID)
	}
	r.reg.Settle(time.Now().Add(sight.Settled))
	read := func() (n int) {
		for _, p := range all[1:] {
			if set(p.Sees()).has(0) {
				n++
			}
		}
		return n
	}
	calls := 0
	for done := false; !done; calls++ {
		before := read()
		if done = r.c.Look(3); read()-before > 3 {
			t.Fatalf("%d sights read by a look at 3", read()-before)
		}
		if all[0].Player.Hide(all[1].Player.ID); calls%2 == 0 {
			all[0].Player.Show(all[1].Player.ID)
		}
		r.reg.Settle(time.Now().Add(sight.Settled)) // one that never rests must not starve the others
		if calls > 10 {
			break
		}
	}
	if read() != 9 {
		t.Errorf("%d of 9 have been read in %d calls", read(), calls)
	}
}

// TestModel does everything at random and compares each table with the rules written down plainly.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, policy := range []Policy{
		{}, {Spectators: HeardByNobody}, {Spectators: HeardByEveryone},
	} {
		r := newRoom(t, policy)
		places := []*world.Place{nil, r.place, r.reg.Place("survival", "nether")}
		type pair struct{ listener, talker uuid.UUID }
		told := map[pair]bool{}
		var all []*person
		for step := range 200 {
			if len(all) < 2 || rnd.IntN(2) == 0 && len(all) < 80 {
				all = append(all, r.join(step, 0))
				continue
			}
			p, o := all[rnd.IntN(len(all))], all[rnd.IntN(len(all))]
			switch rnd.IntN(8) {
			case 0:
				if rnd.IntN(4) == 0 {
					r.c.Drop(p.Member)
					all = slices.DeleteFunc(all, func(x *person) bool { return x == p })
				}
			case 1, 2:
				for _, o := range all {
					if rnd.IntN(3) > 0 {
						p.Player.Show(o.Player.ID)
					}
				}
			case 3:
				p.Player.Hide(o.Player.ID)
			case 4:
				p.Player.SetFacts(world.Facts{Place: places[rnd.IntN(3)], Mode: world.GameMode(rnd.IntN(4))})
			case 5:
				r.c.SetDeafened(p.Member, rnd.IntN(2) == 0)
			case 6, 7:
				r.settle()
				for !r.c.Look(1 << 30) {
				}
				r.tell(p)
				for _, o := range all {
					told[pair{p.Player.ID, o.Player.ID}] = true
				}
			}
			r.turn()
			for _, l := range all {
				for _, s := range all {
					sees := l.Player.Knows(s.Player)
					k := pair{l.Player.ID, s.Player.ID}
					told[k] = told[k] && sees
					lf, sf := l.Player.Facts(), s.Player.Facts()
					quiet := sf.Mode == world.Spectator && (policy.Spectators == HeardByNobody ||
						policy.Spectators == HeardBySpectators && lf.Mode != world.Spectator)
					want := l != s && told[k] && l.Player.Sees(s.Player) && !l.deafened && !quiet && lf.Place != nil && lf.Place == sf.Place
					near := r.table.rows[s.Slot()].near
					if got := near != nil && near.has(l.Slot()); got != want {
						t.Fatalf("step %d: %s hears %s: %v, want %v", step, l.Player.Name, s.Player.Name, got, want)
					}
				}
			}
		}
		if len(r.c.members) <= 64 {
			t.Error("the sets never grew past one word")
		}
	}
}

// count receives without a trace.
type count struct{ n int }

func (c *count) Deliver(*Frame) { c.n++ }

// crowd returns n members in one place, g groups of them out of each other's range.
func crowd(t testing.TB, n, g int) (*room, []*Member) {
	r := newRoom(t, Policy{})
	ids := make([]uuid.UUID, n)
	for i := range ids {
		binary.BigEndian.PutUint64(ids[i][8:], uint64(i+1))
	}
	var all []*Member
	for i, id := range ids {
		p := r.reg.Add(id, fmt.Sprint("p", i))
		p.SetFacts(world.Facts{Place: r.place})
		p.Show(ids...)
		p.SetPose(&world.Pose{X: float64(i%g) * 1000, Place: r.place})
		m := &Member{Player: p, Receiver: &count{}}
		r.c.Add(m)
		all = append(all, m)
	}
	r.turn()
	for _, m := range all {
		r.c.Name(m, m.Sees())
		r.c.Tell(m)
	}
	r.turn()
	return r, all
}

func TestNoAllocationPerFrame(t *testing.T) {
	r, all := crowd(t, 100, 1)
	src := NewSource(all[0])
	opus := make([]byte, 80)
	var seq int64
	stream := int64(1)
	src.Send(r.table, stream, 0, opus)
	allocs := testing.AllocsPerRun(200, func() {
		if seq++; seq%50 == 0 {
			stream++ // renewing is free, too
		}
		if n, _ := src.Send(r.table, stream, seq, opus); n != 99 {
			t.Fatal(n)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per frame to 99 listeners", allocs)
	}
}

func BenchmarkDelivered(b *testing.B) {
	for _, c := range []struct{ n, groups int }{{10, 1}, {200, 1}, {1000, 20}, {1000, 1000}, {5000, 172}} {
		b.Run(fmt.Sprintf("members=%d/near=%d", c.n, c.n/c.groups), func(b *testing.B) {
			r, all := crowd(b, c.n, c.groups)
			src := NewSource(all[0])
			opus := make([]byte, 80)
			b.ReportAllocs()
			var seq int64
			delivered := 0
			for b.Loop() {
				n, _ := src.Send(r.table, 1, seq, opus)
				delivered += n
				seq++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(delivered, 1)), "ns/delivered")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1000, 3000} {
		r, _ := crowd(b, n, 1)
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.c.Compile()
			}
		})
	}
}

// BenchmarkLook measures a backend that shows one more player to all of a thousand: the dearest turn, without its
// budget.
func BenchmarkLook(b *testing.B) {
	r, all := crowd(b, 1000, 1)
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		for _, m := range all {
			if m.Player.Hide(all[0].Player.ID); n%2 == 0 {
				m.Player.Show(all[0].Player.ID)
			}
		}
		r.settle()
		b.StartTimer()
		r.c.Look(1 << 30)
	}
}

// A table that has been published stays as it is, whatever the turns after it decide: who still holds it reads one
// turn.
func TestTablesAreReplacedWhole(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b, c := r.join(1, 0), r.join(2, 1), r.join(3, 5000)
	g := &teams{}
	g.of(64)
	r.c.SetGroups(g)
	r.meet(a, b, c)
	r.declare([]*person{a, b, c}, [2]*person{a, c})
	r.turn()
	former := r.table
	old := func(what string) {
		t.Helper()
		b.ear.take()
		c.ear.take()
		n, out := a.src.Send(former, 7, a.seq, []byte{1})
		a.seq++
		near, far := b.ear.take(), c.ear.take()
		if n != 2 || out != Routed || len(near) != 1 || len(far) != 1 || near[0].Gain != gain.Level(1, 1, 48) || far[0].Gain != 255 {
			t.Errorf("after %s the former table says %d, %v: %+v, %+v", what, n, out, near, far)
		}
	}
	old("nothing")
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"a tier", func() {
			r.c.SetTier(a.Member, talk.Whisper)
			r.c.SetPolicy(Policy{Gain: gain.Rules{Default: 1, Tiers: [talk.Tiers]float64{talk.Whisper: 0.1}}})
		}},
		{"a group", func() { (*g)[a.Slot()] = 1 }},
		{"nothing declared", func() { r.c.SetDeclared(nil) }},
		{"deafened ones", func() { r.c.SetDeafened(b.Member, true); r.c.SetDeafened(c.Member, true) }},
		{"a mute", func() { r.c.SetRights(a.Member, Rights{Muted: true}) }},
		{"hidden ones", func() { b.Player.Hide(a.Player.ID); c.Player.Hide(a.Player.ID) }},
		{"many who join", func() {
			for i := range 100 {
				r.join(10+i, 0)
			}
		}},
		{"who left", func() { r.c.Drop(b.Member); r.c.Drop(c.Member) }},
	} {
		change.do()
		r.turn()
		old(change.what)
	}
	if n := r.says(a); n != 0 {
		t.Errorf("the new table lets %d hear", n)
	}
}
