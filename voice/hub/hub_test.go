package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a client that writes everything down.
type fake struct {
	writer
	mu     sync.Mutex
	events []string // "roster anna ben deafened:ben", "pose …", "frame anna"
	times  []time.Time
	busy   bool
	roster []byte // that waits
	left   bool
}

func (f *fake) add(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events, f.times = append(f.events, s), append(f.times, time.Now())
}

func (f *fake) Deliver(fr *route.Frame) { f.add("frame " + names[fr.Talker]) }

func (f *fake) shown(k kind, text []byte) {
	if k == answers {
		f.add(string(text))
		return
	}
	f.mu.Lock()
	if k == rosters && f.busy {
		f.roster = text
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	parsed, err := line.ParseS2C(text)
	if err != nil {
		panic(err)
	}
	switch x := parsed.(type) {
	case *line.Roster:
		s := "roster"
		for _, p := range x.People {
			s += " " + p.Name
		}
		for what, ids := range map[string][]uuid.UUID{" deaf:": x.Deafened, " whisper:": x.Tiers[talk.Whisper], " shout:": x.Tiers[talk.Shout]} {
			for _, id := range ids {
				s += what + names[id]
			}
		}
		if !x.Status {
			s += " legacy"
		}
		f.add(s)
	case *line.Near:
		s := "near"
		for _, p := range x.People {
			s += fmt.Sprintf(" %s %d/%d/%d", names[p.ID], p.DX, p.DY, p.DZ)
		}
		f.add(s)
	case *line.Rights:
		f.add(fmt.Sprintf("rights %v %v %v", x.Speak, x.Listen, x.Clips))
	case *line.MicToggle:
		f.add("mic")
	case *line.Pose:
		f.add(fmt.Sprintf("pose %v %v %v %v %s", x.Yaw, x.X, x.Y, x.Z, x.World))
	}
}

func (f *fake) Waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roster != nil
}

func (f *fake) End(why End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = why == PlayerLeft
}

// block makes rosters wait, or lets what waits go.
func (f *fake) block(on bool) {
	f.mu.Lock()
	text := f.roster
	f.busy, f.roster = on, nil
	f.mu.Unlock()
	if text != nil {
		f.shown(rosters, text)
	}
}

// take returns what has come since the last call.
func (f *fake) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.events
	f.events, f.times = nil, nil
	return e
}

var names = map[uuid.UUID]string{}

// test is a hub in a bubble of time, and its people.
type test struct {
	t     *testing.T
	reg   *world.Registry
	hub   *Hub
	start time.Time
}

// person is a player with a voice connection.
type person struct {
	*Member
	fake *fake
	src  *route.Source
}

func run(t *testing.T, p route.Policy, fn func(*test)) {
	synctest.Test(t, func(t *testing.T) {
		if p.Gain.Default == 0 {
			p.Gain.Default = 48
		}
		reg := world.New()
		h := New(reg, p)
		ctx, stop := context.WithCancel(t.Context())
		done, start := make(chan struct{}), time.Now()
		go func() { defer close(done); h.Run(ctx) }()
		fn(&test{t, reg, h, start})
		stop()
		<-done
	})
}

// settle lets the hub do what is due at once.
func (x *test) settle() { time.Sleep(3 * gap); synctest.Wait() }

// calm lets the hub do everything: what was held back is out, and what comes next is not. People who join together may
// have been seen by several turns.
func (x *test) calm() { time.Sleep(2 * Flush); synctest.Wait() }

// player adds a player who stands at the origin.
func (x *test) player(name string) *world.Player {
	p := x.reg.Add(uuid.NewSHA1(uuid.Nil, []byte(name)), name)
	names[p.ID] = name
	place := x.reg.Place("survival", "overworld")
	p.SetFacts(world.Facts{Place: place})
	p.SetPose(&world.Pose{Place: place})
	return p
}

func (x *test) voice(p *world.Player, status, pose bool) *person {
	f := &fake{}
	f.legacy, f.show = !status, f.shown
	m := x.hub.Join(p, f, Wants{Status: status, Pose: pose})
	return &person{m, f, route.NewSource(&m.Member)}
}

// join returns a player with voice and status 1 whom everybody sees who is in all, and the other way.
func (x *test) join(name string, all ...*person) *person {
	p := x.player(name)
	for _, o := range all { // before the hub can have seen the newcomer
		o.Player.Show(p.ID)
		p.Show(o.Player.ID)
	}
	return x.voice(p, true, false)
}

func (x *test) says(p *person) int {
	n, _ := p.src.Send(x.hub.Table(), 1, 0, []byte{1})
	return n
}

func (x *test) got(p *person, want ...string) {
	x.t.Helper()
	if got := p.fake.take(); !slices.Equal(got, want) {
		x.t.Errorf("%s got %q, want %q", p.Player.Name, got, want)
	}
}

func TestRosterBeforeSound(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		x.settle()
		x.got(a, "roster anna")
		time.Sleep(Flush)
		b := x.join("ben", a)
		x.settle()
		x.got(a, "roster anna ben")
		x.got(b, "roster anna ben")
		x.says(a)
		x.says(b)
		x.got(b, "frame anna")
		x.got(a, "frame ben")
	})
}

// A listener whose socket is full is not told, and hears nobody new until it is.
func TestBusySocketIsNotTold(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		x.settle()
		x.got(a, "roster anna")
		a.fake.block(true)
		time.Sleep(Flush)
		b := x.join("ben", a)
		x.settle()
		if x.says(b) != 0 {
			t.Error("ben is heard by somebody who was not told of him")
		}
		c := x.join("cleo", a, b)
		time.Sleep(3 * Flush)
		x.got(a)
		if x.says(b) != 1 || x.says(a) != 2 { // cleo; ben and cleo
			t.Error("a full socket stands in the way of others")
		}
		a.fake.block(false)
		x.got(a, "roster anna ben cleo") // the newest only
		time.Sleep(Flush)
		synctest.Wait()
		x.says(b)
		x.says(c)
		x.got(a, "frame ben", "frame cleo")

		// One that takes a moment is looked after sooner than with the flush.
		time.Sleep(Flush)
		a.fake.block(true)
		d := x.join("dora", a)
		x.settle()
		a.fake.block(false)
		time.Sleep(tellAgain + gap)
		synctest.Wait()
		x.says(d)
		x.got(a, "roster anna ben cleo dora", "frame dora")
	})
}

func TestHiddenPlayersAreNowhere(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		x.calm()
		a.fake.take()
		b.fake.take()
		v := x.voice(x.player("vanished"), true, false)
		v.Player.Show(a.Player.ID, b.Player.ID)
		x.settle()
		x.hub.SetDeafened(v.Member, true)
		x.hub.SetTier(v.Member, talk.Shout)
		time.Sleep(2 * Flush)
		x.hub.Leave(v.Member)
		time.Sleep(2 * Flush)
		x.got(a) // not even a roster like the last one
		x.got(b)
		if !strings.HasPrefix(v.fake.take()[0], "roster anna ben vanished") {
			t.Error("the vanished do not see the others")
		}
	})
}

func TestDeafen(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		old := x.voice(x.player("old"), false, false)
		old.Player.Show(a.Player.ID, b.Player.ID)
		x.calm()
		a.fake.take()
		b.fake.take()
		old.fake.take()
		x.hub.SetDeafened(b.Member, true)
		x.settle()
		if x.says(a) != 1 {
			t.Error("deafened ben hears")
		}
		x.got(a, "roster anna ben deaf:ben")
		x.got(old, "frame anna") // its rows have not changed
		x.hub.SetDeafened(b.Member, false)
		x.settle()
		if x.says(a) != 2 {
			t.Error("ben hears no more")
		}
		x.got(a) // rationed
		time.Sleep(Flush)
		synctest.Wait()
		x.got(a, "roster anna ben")
	})
}

// However fast a client toggles, everything is applied and the others get their ration.
func TestRosterRation(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		time.Sleep(2 * Flush)
		synctest.Wait()
		a.fake.take()
		start := time.Now()
		for i := range 2 * 60 { // two seconds at 60 a second, ending with deafened
			x.hub.SetDeafened(b.Member, i%2 == 1)
			time.Sleep(time.Second / 60)
		}
		toggled := time.Since(start)
		time.Sleep(2 * Flush)
		synctest.Wait()
		a.fake.mu.Lock()
		n, times := len(a.fake.events), slices.Clone(a.fake.times)
		a.fake.mu.Unlock()
		if limit := int(toggled/Flush) + int(toggled/(250*time.Millisecond)) + 2; n < 4 || n > limit {
			t.Errorf("%d rosters in %v, limit %d", n, toggled, limit)
		}
		for i := 1; i < len(times); i++ {
			afterFlush := times[i].Sub(x.start) % Flush
			if times[i].Sub(times[i-1]) < 250*time.Millisecond && afterFlush > 2*gap {
				t.Errorf("a roster %v after the one before, and not by a flush", times[i].Sub(times[i-1]))
			}
		}
		if e := a.fake.take(); e[len(e)-1] != "roster anna ben deaf:ben" {
			t.Errorf("the last state was lost: %q", e)
		}
	})
}

func TestTier(t *testing.T) {
	run(t, route.Policy{Gain: gain.Rules{Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		x.calm()
		b.fake.take()
		pose := *b.Player.Pose()
		pose.X = 30
		b.Player.SetPose(&pose)
		x.hub.SetTier(a.Member, talk.Whisper)
		x.settle()
		x.got(b, "roster anna ben whisper:anna")
		if x.says(a) != 0 {
			t.Error("a whisper carries 30 blocks")
		}
		// A release within 100 ms is held, and not lost.
		x.hub.SetTier(a.Member, talk.Normal)
		x.settle()
		if x.says(a) != 0 {
			t.Error("a second change within the hold applies at once")
		}
		time.Sleep(TierHold)
		synctest.Wait()
		if x.says(a) != 1 {
			t.Error("a held change is lost")
		}
		// Of several changes in the hold the newest wins.
		x.hub.SetTier(a.Member, talk.Whisper)
		x.settle()
		x.hub.SetTier(a.Member, talk.Normal)
		time.Sleep(TierHold) // the hold is over: normal
		x.hub.SetTier(a.Member, talk.Whisper)
		x.hub.SetTier(a.Member, talk.Normal)
		time.Sleep(Flush)
		synctest.Wait()
		b.fake.take()
		if x.says(a) != 1 {
			t.Error("the newest tier did not win")
		}
		// One that the server does not offer is heard as ever and stands in no row.
		b.fake.take()
		x.hub.SetTier(a.Member, talk.Shout)
		time.Sleep(2 * Flush)
		synctest.Wait()
		x.got(b)
		if x.says(a) != 1 {
			t.Error("shouting where nobody can makes mute")
		}
	})
}

func TestLeaving(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		x.calm()
		a.fake.take()
		x.hub.Leave(b.Member)
		x.settle()
		x.got(a, "roster anna")
		if x.says(a) != 0 || x.says(b) != 0 {
			t.Error("who left still hears or speaks")
		}
		if b.fake.left {
			t.Error("leaving voice is not leaving the network")
		}

		x.calm()
		c := x.join("cleo", a)
		x.settle()
		x.reg.Remove(c.Player)
		x.settle()
		if !c.fake.left {
			t.Error("cleo left the network and nobody told her socket")
		}
		x.hub.Leave(c.Member) // as its socket ends
		time.Sleep(Flush)
		synctest.Wait()
		x.got(a, "roster anna cleo", "roster anna")

		// A player who comes back by another connection is another player.
		again := x.reg.Add(a.Player.ID, "anna")
		x.settle()
		if !a.fake.left {
			t.Error("the voice of the old connection lives on")
		}
		// And one who is gone before the turn has seen them.
		x.reg.Remove(again)
		x.settle()
		late := x.voice(again, true, false)
		x.settle()
		if !late.fake.left {
			t.Error("a player who has gone joins voice")
		}
	})
}

func TestOneMemberPerPlayer(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		x.settle()
		second := x.voice(b.Player, true, false)
		x.calm()
		a.fake.take()
		x.says(a)
		x.got(a)
		if e := second.fake.take(); !slices.Contains(e, "frame anna") {
			t.Errorf("the new connection got %q", e)
		}
		if slices.Contains(b.fake.take(), "frame anna") {
			t.Error("the replaced connection hears on")
		}
		x.hub.Leave(b.Member) // late
		x.settle()
		if x.says(a) != 1 {
			t.Error("the end of the old connection took the new one along")
		}
	})
}

func TestPoseLines(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		p := x.player("web")
		w := x.voice(p, true, true)
		place := x.reg.Place("survival", "overworld")
		x.settle()
		x.got(w, "pose 0 0 0 0 overworld", "roster web")
		time.Sleep(time.Second)
		x.got(w) // nothing has changed
		x.settle()
		p.SetPose(&world.Pose{Place: place}) // another one with the same values
		time.Sleep(time.Second)
		x.got(w)
		for i := range 100 { // a second of moves
			p.SetPose(&world.Pose{X: float64(i), Y: 64, Z: -3, Yaw: 90, Place: place})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * PoseGap)
		synctest.Wait()
		if e := w.fake.take(); len(e) < 10 || len(e) > 21 || e[len(e)-1] != "pose 90 99 64 -3 overworld" {
			t.Errorf("%d lines in a second, the last %q", len(e), e[len(e)-1])
		}
		p.SetPose(nil)
		time.Sleep(time.Second)
		x.got(w)

		// The line on connecting counts, too.
		time.Sleep(PoseGap / 2)
		second := x.voice(x.player("second"), false, true)
		x.settle()
		second.Player.SetPose(&world.Pose{X: 1, Place: place})
		time.Sleep(3 * PoseGap)
		synctest.Wait()
		second.fake.mu.Lock()
		var at []time.Time
		for i, e := range second.fake.events {
			if strings.HasPrefix(e, "pose") {
				at = append(at, second.fake.times[i])
			}
		}
		second.fake.mu.Unlock()
		if len(at) != 2 || at[1].Sub(at[0]) < PoseGap {
			t.Errorf("lines at %v", at)
		}
		x.hub.Leave(w.Member)
		x.settle()
		p.SetPose(&world.Pose{Place: place})
		time.Sleep(time.Second)
		x.got(w)
	})
}

// BenchmarkTurn measures a whole turn of a thousand members in one place; one of them has changed something, rosters
// included.
func BenchmarkTurn(b *testing.B) {
	reg := world.New()
	h := New(reg, route.Policy{Gain: gain.Rules{Default: 48}})
	place := reg.Place("survival", "overworld")
	var ids []uuid.UUID
	for i := range 1000 {
		ids = append(ids, uuid.UUID{0: byte(i), 1: byte(i >> 8), 15: 1})
	}
	var all []*Member
	for _, id := range ids {
		p := reg.Add(id, "somebody")
		p.SetFacts(world.Facts{Place: place})
		p.Show(ids...)
		p.SetPose(&world.Pose{Place: place})
		all = append(all, h.Join(p, &writer{}, Wants{Status: true}))
	}
	now := time.Now()
	for range 100 {
		now = now.Add(time.Second)
		h.turn(now)
		h.tellAll(now, true)
	}
	b.Run("deafen", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			now = now.Add(Flush) // everybody is due
			h.SetDeafened(all[i%1000], i/1000%2 == 0)
			h.turn(now)
		}
	})
	b.Run("rationed", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			h.SetDeafened(all[i%1000], i/1000%2 == 0)
			h.turn(now)
		}
	})
}

// A frame is routed by the table that there is, however long a turn takes.
func TestSoundNeverWaitsForATurn(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a := x.join("anna")
		b := x.join("ben", a)
		x.calm()
		b.fake.take()
		stuck, entered, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			done <- x.hub.Do(func(time.Time) { close(entered); <-stuck })
		}()
		<-entered
		for range 50 {
			if x.says(a) != 1 {
				t.Fatal("not heard while a turn goes on")
			}
		}
		if got := b.fake.take(); len(got) != 50 {
			t.Errorf("%d frames", len(got))
		}
		// Nor do those who join, ask or leave in the meantime.
		x.hub.SetDeafened(b.Member, true)
		x.hub.Leave(x.voice(x.player("cleo"), true, false).Member)
		close(stuck)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		x.settle()
		if x.says(a) != 0 {
			t.Error("what came during the turn is lost")
		}
	})
}
