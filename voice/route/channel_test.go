package route

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/talk"
)

// tune adds a member with the given tastes, at x.
func (r *room) tune(n int, x float64, clips, channels bool) *person {
	pl := r.reg.Add(uuid.UUID{15: byte(n)}, fmt.Sprint("p", n))
	pl.SetFacts(world.Facts{Place: r.place})
	pl.SetPose(&world.Pose{X: x, Place: r.place})
	e := &ear{}
	m := &Member{Player: pl, Receiver: e, Clips: clips, Channels: channels}
	r.c.Add(m)
	return &person{Member: m, ear: e, src: NewSource(m)}
}

// Clips go the way of the microphone, but at the ordinary range and only to those who take them.
func TestClips(t *testing.T) {
	r := newRoom(t, Policy{Gain: gain.Rules{Tiers: [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2}}})
	a, near, old, far := r.tune(1, 0, true, true), r.tune(2, 30, true, true), r.tune(3, 30, false, true), r.tune(4, 60, true, true)
	r.meet(a, near, old, far)
	clip := NewClip(a.Member)
	for tier, voices := range map[talk.Tier]int{talk.Whisper: 0, talk.Normal: 2, talk.Shout: 3} {
		r.c.SetTier(a.Member, tier)
		r.turn()
		if n := r.says(a); n != voices {
			t.Errorf("%v: %d hear the voice, want %d", tier, n, voices)
		}
		for _, p := range []*person{near, old, far} {
			p.ear.take()
		}
		if n, out := clip.Send(r.table, 5, 0, []byte{7}); n != 1 || out != Routed {
			t.Fatalf("%v: %d hear the clip (%v)", tier, n, out)
		}
		got := near.ear.take()
		if len(got) != 1 || got[0].Kind != Clip || got[0].Talker != a.Player.ID || got[0].Channel != uuid.Nil ||
			got[0].Gain != gain.Level(1, 900, 48) || got[0].DX != -30 || got[0].Opus[0] != 7 {
			t.Errorf("%v: %+v", tier, got)
		}
	}
	for what, change := range map[string]func(){
		"deafened":  func() { r.c.SetDeafened(near.Member, true) },
		"hidden":    func() { r.c.SetDeafened(near.Member, false); near.Player.Hide(a.Player.ID) },
		"spectator": func() { r.meet(a, near); a.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator}) },
	} {
		r.c.SetDeafened(near.Member, false)
		a.Player.SetFacts(world.Facts{Place: r.place})
		r.meet(a, near)
		change()
		r.turn()
		if n, _ := clip.Send(r.table, 5, 1, []byte{7}); n != 0 {
			t.Errorf("%s: heard by %d", what, n)
		}
	}
}

// The microphone and each clip are streams of their own for a listener.
func TestClipStreams(t *testing.T) {
	r := newRoom(t, Policy{})
	a, b := r.tune(1, 0, true, true), r.tune(2, 0, true, true)
	r.meet(a, b)
	one, two := NewClip(a.Member), NewClip(a.Member)
	for seq := range int64(3) {
		a.src.Send(r.table, 9, seq, []byte{1})
		one.Send(r.table, 9, seq, []byte{1})
		two.Send(r.table, 9, seq, []byte{1})
	}
	got := b.ear.take()
	ids := map[int64]int{}
	for i, f := range got {
		ids[f.Stream]++
		if f.Stream != got[i%3].Stream || f.Seq != int64(i/3) {
			t.Errorf("frame %d: %+v", i, f)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d streams", len(ids))
	}
}

func at(r *room, x float64) *Loud { return &Loud{Place: r.place, X: x, Y: 3, Volume: 1, Range: 10} }

func TestChannelReaches(t *testing.T) {
	r := newRoom(t, Policy{})
	id := uuid.UUID{9}
	near, old, far := r.tune(1, 4, false, true), r.tune(2, 4, true, false), r.tune(3, 10, true, true)
	r.turn() // channels need nobody to be told of anybody
	c, l := NewChannel(id), at(r, 0)
	send := func(want int) {
		t.Helper()
		if n := c.Send(r.table, l, nil, 1, 6, []byte{7}); n != want {
			t.Fatalf("%d hear it, want %d", n, want)
		}
	}
	send(1)
	got := near.ear.take()[0]
	if got.Kind != Channel || got.Channel != id || got.Talker != uuid.Nil || got.Gain != gain.Level(1, 25, 10) ||
		got.DX != -4 || got.DZ != 0 || got.Seq != 6 || got.Stream <= 0 || got.Opus[0] != 7 {
		t.Errorf("%+v", got)
	}
	l.Volume = 0.5
	send(1)
	if got := near.ear.take()[0]; got.Gain != 64 {
		t.Errorf("half of the half is %d", got.Gain)
	}
	l.Volume = 0
	send(0)
	l.Volume, l.Range = 1, 100
	send(2)
	l.Allow = map[uuid.UUID]struct{}{far.Player.ID: {}, old.Player.ID: {}}
	send(1)
	l.Allow = map[uuid.UUID]struct{}{}
	send(0)
	l.Allow = nil
	r.c.SetDeafened(near.Member, true)
	r.turn()
	send(1)
	far.Player.SetPose(&world.Pose{X: 10, Place: r.reg.Place("survival", "nether")})
	send(0)
	far.Player.SetPose(nil)
	send(0)
	near.ear.take()
	if len(old.ear.take()) != 0 {
		t.Error("a channel reached who does not take any")
	}
	if c.Send(nil, l, nil, 1, 0, nil) != 0 {
		t.Error("heard without a table")
	}
	l.X = math.NaN()
	send(0)
	l = &Loud{Place: r.reg.Place("other", "overworld"), Volume: 1, Range: 10}
	send(0)
	n := 0
	r.table.Each(func(Receiver) { n++ })
	if (*Table)(nil).Each(nil); n != 3 {
		t.Errorf("%d receivers", n)
	}
}

// The stream of a listener goes on only from the very frame before.
func TestChannelStreams(t *testing.T) {
	r := newRoom(t, Policy{})
	a := r.tune(1, 0, true, true)
	r.turn()
	c, l := NewChannel(uuid.UUID{9}), at(r, 0)
	var seq, last int64
	next := func() int64 {
		t.Helper()
		seq++
		if c.Send(r.table, l, nil, 1, seq, []byte{1}) != 1 {
			t.Fatal("not heard")
		}
		return a.ear.take()[0].Stream
	}
	step := func(what string, renewed bool, change func()) {
		t.Helper()
		last = next()
		if again := next(); again != last {
			t.Fatalf("before %s: the stream changes by itself", what)
		}
		change()
		if now := next(); (now != last) != renewed {
			t.Errorf("%s: renewed is %v", what, now != last)
		}
	}
	away := func() {
		seq++
		if c.Send(r.table, l, nil, 1, seq, []byte{1}) != 0 {
			t.Error("heard")
		}
	}
	step("nothing", false, func() {})
	step("another source", true, c.Restart)
	step("out of range and back", true, func() { l.X = 50; away(); l.X = 0 })
	step("moved within range", false, func() { l.X = 5 })
	step("forbidden and allowed", true, func() { l.Allow = map[uuid.UUID]struct{}{}; away(); l.Allow = nil })
	step("forbidden and allowed between two frames", false, func() { l.Allow = map[uuid.UUID]struct{}{a.Player.ID: {}} })
	step("deafened and back", true, func() {
		r.c.SetDeafened(a.Member, true)
		r.turn()
		r.c.SetDeafened(a.Member, false)
		r.turn()
	})
	step("another world and back", true, func() {
		was := a.Player.Pose()
		a.Player.SetPose(&world.Pose{Place: r.reg.Place("survival", "nether")})
		away()
		a.Player.SetPose(was)
	})
	step("another stream of the sender", true, func() { c.Send(r.table, at(r, 99), nil, 2, 0, []byte{1}) })
}

// A channel that carries a microphone is kept from its player and from all who may not hear that one.
func TestChannelOfAMicrophone(t *testing.T) {
	r := newRoom(t, Policy{})
	from, told, stranger, ghost := r.tune(1, 0, true, true), r.tune(2, 1, true, true), r.tune(3, 2, true, true), r.tune(4, 3, true, true)
	ghost.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator})
	r.meet(from, told, ghost)
	c, l := NewChannel(uuid.UUID{9}), at(r, 0)
	all := []*person{from, told, stranger, ghost}
	hear := func(what string, want ...*person) {
		t.Helper()
		if n := c.Send(r.table, l, from.Member, 1, 0, []byte{1}); n != len(want) {
			t.Errorf("%s: %d hear it, want %d", what, n, len(want))
		}
		for _, p := range all {
			got := p.ear.take()
			if slices.Contains(want, p) != (len(got) == 1) {
				t.Errorf("%s: %s got %d", what, p.Player.Name, len(got))
			}
			for _, f := range got {
				if f.Talker != from.Player.ID {
					t.Errorf("%s: origin %v", what, f.Talker)
				}
			}
		}
	}
	hear("side by side", told, ghost)
	from.Player.SetFacts(world.Facts{Place: r.reg.Place("survival", "nether")})
	from.Player.SetPose(nil)
	r.turn()
	hear("from another world", told, ghost)
	from.Player.SetFacts(world.Facts{Place: r.place, Mode: world.Spectator})
	r.turn()
	hear("from a spectator", ghost)
	from.Player.SetFacts(world.Facts{Place: r.place})
	told.Player.Hide(from.Player.ID)
	r.turn()
	hear("hidden from one", ghost)
	from.Player.SetFacts(world.Facts{})
	r.turn()
	hear("from nowhere")
	r.c.Drop(from.Member)
	hear("from one who left")
}

func TestNoAllocationPerChannelFrame(t *testing.T) {
	r, all := crowd(t, 100, 1)
	for _, m := range all {
		r.c.Drop(m)
		m.Channels, m.Clips = true, true
		r.c.Add(m)
	}
	r.turn()
	for _, m := range all {
		r.c.Name(m, m.Sees())
		r.c.Tell(m)
	}
	r.turn()
	c, l, clip := NewChannel(uuid.UUID{9}), at(r, 0), NewClip(all[0])
	l.Allow = map[uuid.UUID]struct{}{}
	for _, m := range all {
		l.Allow[m.Player.ID] = struct{}{}
	}
	var seq int64
	opus := make([]byte, 80)
	send := func() {
		if seq++; seq%50 == 0 {
			c.Restart()
		}
		if n := c.Send(r.table, l, nil, 1, seq, opus); n != 100 {
			t.Fatal(n)
		}
		if n := c.Send(r.table, l, all[0], 1, seq, opus); n != 99 {
			t.Fatal(n)
		}
		if n, _ := clip.Send(r.table, 1, seq, opus); n != 99 {
			t.Fatal(n)
		}
	}
	send()
	if allocs := testing.AllocsPerRun(200, send); allocs != 0 {
		t.Errorf("%v allocations per three frames", allocs)
	}
}

func BenchmarkChannelDelivered(b *testing.B) {
	r, all := crowd(b, 200, 1)
	for _, m := range all {
		r.c.Drop(m)
		m.Channels = true
		r.c.Add(m)
	}
	r.turn()
	c, l := NewChannel(uuid.UUID{9}), at(r, 0)
	opus := make([]byte, 80)
	b.ReportAllocs()
	delivered := 0
	var seq int64
	for b.Loop() {
		delivered += c.Send(r.table, l, nil, 1, seq, opus)
		seq++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(delivered, 1)), "ns/delivered")
}

// Groups, mutes and permissions hold for clips and for channels that carry a microphone as they do for voices.
func TestClipsAndChannelsKeepTheRules(t *testing.T) {
	r := newRoom(t, Policy{})
	a, mate, old, other := r.tune(1, 0, true, true), r.tune(2, 5000, true, true), r.tune(3, 5000, false, true), r.tune(4, 1, true, true)
	g := &teams{}
	g.of(64)
	(*g)[a.Slot()], (*g)[mate.Slot()], (*g)[old.Slot()] = 1, 1, 1
	r.c.SetGroups(g)
	all := []*person{a, mate, old, other}
	r.meet(all...)
	clip, c := NewClip(a.Member), NewChannel(uuid.UUID{9})
	by := func(what string, send func() int, want ...*person) {
		t.Helper()
		for _, p := range all {
			p.ear.take()
		}
		if n := send(); n != len(want) {
			t.Errorf("%s: reaches %d, want %d", what, n, len(want))
		}
		for _, p := range all {
			if (len(p.ear.take()) == 1) != slices.Contains(want, p) {
				t.Errorf("%s: %s is wrong", what, p.Player.Name)
			}
		}
	}
	play := func() int { n, _ := clip.Send(r.table, 1, 0, []byte{1}); return n }
	by("a clip in a group", play, mate)
	relay := func() int {
		return c.Send(r.table, &Loud{Place: r.place, Volume: 1, Range: 6000}, a.Member, 1, 0, []byte{1})
	}
	server := func() int {
		return c.Send(r.table, &Loud{Place: r.place, Volume: 1, Range: 6000}, nil, 1, 0, []byte{1})
	}
	by("a group's microphone", relay, mate, old)
	by("a channel of the server", server, all...)
	r.c.SetRights(mate.Member, Rights{NoListen: true})
	r.turn()
	by("a clip to one who may not listen", play)
	by("a microphone to one who may not listen", relay, old)
	by("a channel to one who may not listen", server, a, old, other)
	r.c.SetRights(mate.Member, Rights{})
	for what, x := range map[string]struct {
		rights       Rights
		clip, speech []*person
	}{
		"muted":         {Rights{Muted: true}, nil, nil},
		"no speech":     {Rights{NoSpeak: true}, []*person{mate}, nil},
		"no soundboard": {Rights{NoSoundboard: true}, nil, []*person{mate, old}},
	} {
		r.c.SetRights(a.Member, x.rights)
		r.turn()
		by(what+": a clip", play, x.clip...)
		by(what+": the microphone", relay, x.speech...)
	}
}
