package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// reader is a client that keeps the texts of every kind.
type reader struct {
	writer
	mu    sync.Mutex
	texts map[kind][]string
}

func newReader() *reader {
	r := &reader{texts: make(map[kind][]string)}
	r.show = func(k kind, text []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.texts[k] = append(r.texts[k], string(text))
	}
	return r
}

func (r *reader) take(k kind) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.texts[k]
	r.texts[k] = nil
	return got
}

func TestMuteIsToldOncePerState(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		r := newReader()
		m := x.hub.Join(x.player("anna"), r, Wants{Status: true})
		x.settle()
		if got := r.take(mutes); !slices.Equal(got, []string{"SSVC_MUTE_V1 0 - -"}) {
			t.Errorf("on connect: %q", got)
		}
		if err := x.hub.Mute(mute.Record{Player: m.Player.ID, Until: time.Now().Add(10 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9900 * time.Millisecond) // many flushes, each of which would count down
		if got := r.take(mutes); !slices.Equal(got, []string{"SSVC_MUTE_V1 1 10 -"}) {
			t.Errorf("while muted: %q", got)
		}
		muted := func() bool {
			_, why := route.NewSource(&m.Member).Send(x.hub.Table(), 1, 0, []byte{1})
			return why == route.Muted
		}
		if !muted() {
			t.Error("not muted")
		}
		time.Sleep(110 * time.Millisecond) // and nothing else happens
		x.settle()
		if got := r.take(mutes); !slices.Equal(got, []string{"SSVC_MUTE_V1 0 - -"}) || muted() {
			t.Errorf("lapsed: %q", got)
		}
	})
}

// TestPermissionsChangeUnasked: nobody tells the hub that permissions have changed.
func TestPermissionsChangeUnasked(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		var mu sync.Mutex
		bits := Open
		if err := x.hub.Do(func(time.Time) {
			x.hub.Permissions = func(uuid.UUID) Bits { mu.Lock(); defer mu.Unlock(); return bits }
		}); err != nil {
			t.Fatal(err)
		}
		a := x.join("anna")
		b := x.join("ben", a)
		x.settle()
		time.Sleep(time.Second)
		if n := x.says(a); n != 1 {
			t.Fatal(n)
		}
		mu.Lock()
		bits = Open &^ Speak
		mu.Unlock()
		time.Sleep(Flush + 10*gap)
		if n, why := a.src.Send(x.hub.Table(), 1, 0, []byte{1}); n != 0 || why != route.NoSpeak {
			t.Errorf("%d hear it: %v", n, why)
		}
		_ = b
	})
}

// TestWhoMayUseGroupsNoLongerIsOut: of its group, which ends if nobody else is in it, and back in only by a request.
func TestWhoMayUseGroupsNoLongerIsOut(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		var mu sync.Mutex
		refused := map[uuid.UUID]bool{}
		refuse := func(id uuid.UUID, on bool) {
			mu.Lock()
			refused[id] = on
			mu.Unlock()
			time.Sleep(time.Second)
		}
		x.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		if err := x.hub.Do(func(time.Time) {
			x.hub.Permissions = func(id uuid.UUID) Bits {
				mu.Lock()
				defer mu.Unlock()
				if refused[id] {
					return Open &^ UseGroups
				}
				return Open
			}
		}); err != nil {
			t.Fatal(err)
		}
		a := x.hub.Join(x.player("anna"), newReader(), Wants{Status: true, Groups: true})
		b := x.hub.Join(x.player("ben"), newReader(), Wants{Status: true, Groups: true})
		x.hub.Ask(a, talk.GroupRequest{Verb: talk.Create, Name: "team"})
		time.Sleep(time.Second)
		id := uuid.UUID{}
		in := func(m *Member) (is bool) {
			if err := x.hub.Do(func(time.Time) {
				row, ok := x.hub.groups.Of(m.Player.ID)
				if is = ok; ok {
					id = row.ID
				}
			}); err != nil {
				t.Fatal(err)
			}
			return is
		}
		in(a)
		x.hub.Ask(b, talk.GroupRequest{Verb: talk.Join, Group: id})
		time.Sleep(time.Second)
		if !in(a) || !in(b) {
			t.Fatal("they are not in the group")
		}
		refuse(a.Player.ID, true)
		if in(a) || !in(b) {
			t.Errorf("anna may not use groups: she is in one %v, ben %v", in(a), in(b))
		}
		refuse(a.Player.ID, false)
		if in(a) {
			t.Error("the permission alone brought her back")
		}
		refuse(b.Player.ID, true)
		if n := x.hub.Counts(); in(b) || n.Groups != 0 || n.Members != 0 {
			t.Errorf("left are %+v", n)
		}
	})
}

func TestOrdersAfterTheEnd(t *testing.T) {
	h := New(world.New(), route.Policy{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	h.Run(ctx)
	if err := h.Mute(mute.Record{Player: uuid.Max}); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// TestUnseenRefusesTheTurn takes the limits away under which no declaration can break the rule. Nothing of a turn that
// is refused comes into force, and nobody is told of it; the next one brings everything.
func TestUnseenRefusesTheTurn(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		x.hub.Log = slog.New(slog.DiscardHandler)
		a := x.join("anna")
		b := x.join("ben", a)
		c := x.join("cleo", a) // from whom ben has vanished
		b.Player.Show(c.Player.ID)
		x.settle()
		time.Sleep(2 * Flush)
		synctest.Wait()
		for _, p := range []*person{a, b, c} {
			p.fake.take()
		}
		hears := func(what string, want int) {
			t.Helper()
			if n := x.says(a); n != want {
				t.Errorf("%s: anna is heard by %d, want %d", what, n, want)
			}
		}
		hears("before", 2)
		edge := relation.Edge{Talker: b.Player.ID, Listener: c.Player.ID}
		var former *route.Table
		if err := x.hub.Do(func(time.Time) {
			former = x.hub.Table()
			x.hub.unlimited = true
			if err := x.hub.standing.Edges.Put(edge); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if x.hub.Table() != former {
			t.Error("a turn that shows more to the ears than to the eyes is in force")
		}
		// What is good of such a turn is refused with it.
		if err := x.hub.Mute(mute.Record{Player: a.Player.ID}); err != nil {
			t.Fatal(err)
		}
		x.hub.SetDeafened(b.Member, true)
		time.Sleep(3 * Flush)
		synctest.Wait()
		hears("refused", 2)
		x.says(b)
		for _, p := range []*person{a, b, c} {
			if got := slices.DeleteFunc(p.fake.take(), func(e string) bool { return strings.HasPrefix(e, "frame") }); len(got) != 0 {
				t.Errorf("%s is told %q", p.Player.Name, got)
			}
		}
		if err := x.hub.Declare(func(book *relation.Book) error { book.Edges.Delete(edge.Key()); return nil }); err != nil {
			t.Fatal(err)
		}
		hears("the next turn", 0)
		time.Sleep(Flush)
		synctest.Wait()
		if got := a.fake.take(); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "deaf:ben") }) {
			t.Errorf("the next turn tells anna %q", got)
		}
		// With the limits the rule is compiled in, and the turn is good.
		if err := x.hub.Do(func(time.Time) { x.hub.unlimited = false }); err != nil {
			t.Fatal(err)
		}
		if err := x.hub.Declare(func(book *relation.Book) error { return book.Edges.Put(edge) }); err != nil {
			t.Fatal(err)
		}
		hears("a good turn", 0)
		if err := x.hub.Do(func(time.Time) {
			if x.hub.refused {
				t.Error("refused although nobody is given a voice that it does not see")
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGroupsExpireByThemselves(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		ra, rb := newReader(), newReader()
		a := x.hub.Join(x.player("anna"), ra, Wants{Status: true, Groups: true})
		b := x.hub.Join(x.player("ben"), rb, Wants{Status: true, Groups: true})
		a.Player.Show(b.Player.ID)
		b.Player.Show(a.Player.ID)
		x.settle()
		x.hub.Ask(a, talk.GroupRequest{Verb: talk.Create, Name: "team"})
		time.Sleep(time.Second)
		texts := rb.take(groups)
		v, err := line.ParseS2C([]byte(texts[len(texts)-1]))
		if err != nil {
			t.Fatal(err)
		}
		x.hub.Ask(a, talk.GroupRequest{Verb: talk.Invite, Group: v.(*line.Groups).Groups[0].ID, Player: b.Player.ID})
		time.Sleep(group.InviteTime - time.Second)
		if got := rb.take(groups); len(got) != 1 || !strings.Contains(got[0], "\nI ") || strings.Contains(ra.take(groups)[0], "\nI ") {
			t.Errorf("invited: %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := rb.take(groups); len(got) != 1 || strings.Contains(got[0], "\nI ") {
			t.Errorf("after a minute: %q", got)
		}
	})
}

// TestGroupOfWhoIsGone: an ended connection keeps its place and is not shown; who has left the network is out.
func TestGroupOfWhoIsGone(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		x.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		r := newReader()
		a := x.hub.Join(x.player("anna"), newReader(), Wants{Status: true, Groups: true})
		x.hub.Join(x.player("ben"), r, Wants{Status: true, Groups: true})
		x.hub.Ask(a, talk.GroupRequest{Verb: talk.Create, Name: "team"})
		time.Sleep(time.Second)
		state := func() (in, shown bool) {
			if err := x.hub.Do(func(time.Time) { _, in = x.hub.groups.Of(a.Player.ID) }); err != nil {
				t.Fatal(err)
			}
			texts := r.take(groups)
			return in, strings.Contains(texts[len(texts)-1], "\nM ")
		}
		if in, shown := state(); !in || !shown {
			t.Fatalf("in %v, shown %v", in, shown)
		}
		x.hub.Leave(a)
		time.Sleep(time.Second)
		if in, shown := state(); !in || shown {
			t.Errorf("the connection has ended: in %v, shown %v", in, shown)
		}
		a = x.hub.Join(a.Player, newReader(), Wants{Status: true, Groups: true})
		time.Sleep(time.Second)
		if in, shown := state(); !in || !shown {
			t.Errorf("connected again: in %v, shown %v", in, shown)
		}
		x.hub.Leave(a)
		time.Sleep(group.Away + time.Second)
		if in, shown := state(); in || shown {
			t.Errorf("away for too long: in %v, shown %v", in, shown)
		}
		a = x.hub.Join(a.Player, newReader(), Wants{Status: true, Groups: true})
		x.settle()
		x.hub.Ask(a, talk.GroupRequest{Verb: talk.Create, Name: "again"})
		time.Sleep(time.Second)
		if in, shown := state(); !in || !shown {
			t.Fatalf("in %v, shown %v", in, shown)
		}
		x.reg.Remove(a.Player)
		time.Sleep(time.Second)
		if in, shown := state(); in || shown {
			t.Errorf("left the network: in %v, shown %v", in, shown)
		}
	})
}

// TestMuteIsInTheRelation: the compiled relation itself gives a muted player's voice to nobody, and a deafened one
// none.
func TestMuteIsInTheRelation(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		x.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
		a, b := x.join("anna"), x.join("ben")
		x.hub.Declare(func(book *relation.Book) error { return book.AddMembers("red", a.Player.ID, b.Player.ID) })
		hearers := func(p *person) (n int) {
			x.settle()
			if err := x.hub.Do(func(time.Time) {
				for _, word := range x.hub.declared.Hearers(p.Slot()) {
					n += bits.OnesCount64(word)
				}
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if hearers(a) != 1 || hearers(b) != 1 {
			t.Fatal("the domain is not there")
		}
		if err := x.hub.Mute(mute.Record{Player: a.Player.ID}); err != nil {
			t.Fatal(err)
		}
		if n := hearers(a); n != 0 {
			t.Errorf("%d are given the voice of a muted player", n)
		}
		x.hub.SetDeafened(a.Member, true)
		if n := hearers(b); n != 0 {
			t.Errorf("%d who are deafened are given a voice", n)
		}
	})
}

// BenchmarkTurnWithEverything measures a turn of a thousand members in 50 groups and 100 domains, half of them muted by
// name; one of them changes its group.
func BenchmarkTurnWithEverything(b *testing.B) {
	reg := world.New()
	h := New(reg, route.Policy{Gain: gain.Rules{Default: 48}})
	h.Permissions = func(uuid.UUID) Bits { return Open }
	place := reg.Place("survival", "overworld")
	now := time.Now()
	var ids []uuid.UUID
	for i := range 1000 {
		ids = append(ids, uuid.UUID{0: byte(i), 1: byte(i >> 8), 15: 1})
	}
	h.groups.SetLimits(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}})
	var all []*Member
	for i, id := range ids {
		p := reg.Add(id, fmt.Sprint("p", i))
		p.SetFacts(world.Facts{Place: place})
		p.Show(ids...)
		p.SetPose(&world.Pose{Place: place})
		all = append(all, h.Join(p, &writer{}, Wants{Status: true, Groups: true}))
		if err := h.standing.AddMembers(fmt.Sprint("d", i%100), id); err != nil {
			b.Fatal(err)
		}
		if i%2 == 1 {
			if err := h.mutes.Mute(mute.Record{Player: id, Until: now.Add(1000 * time.Hour)}, now); err != nil {
				b.Fatal(err)
			}
		}
	}
	settle := func() {
		for range 100 {
			now = now.Add(time.Second)
			h.turn(now)
			h.tellAll(now, true)
		}
	}
	settle()
	for i, m := range all {
		r := talk.GroupRequest{Verb: talk.Create, Type: talk.GroupType(i % 3), Name: fmt.Sprint("g", i)}
		if i >= 50 {
			g, _ := h.groups.Of(ids[i%50])
			r = talk.GroupRequest{Verb: talk.Join, Group: g.ID}
		}
		if code := h.groups.Do(group.Actor{ID: m.Player.ID, May: Open.groupCaps()}, &r, now); code != talk.OK {
			b.Fatal(code)
		}
	}
	settle()
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := h.relate(); err != nil {
				b.Fatal(err)
			}
			h.table.Store(h.compiler.Compile())
		}
	})
	b.Run("turn", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			m := all[50+i/2%950]
			if i%2 == 0 {
				h.Ask(m, talk.GroupRequest{Verb: talk.Leave})
			} else {
				g, _ := h.groups.Of(ids[0])
				h.Ask(m, talk.GroupRequest{Verb: talk.Join, Group: g.ID})
			}
			now = now.Add(Flush) // everybody is due
			h.turn(now)
		}
	})
}

// TestTheTableComesBeforeTheViews: whoever is told that a voice is cut off can be sure that it is, and a voice that is
// new is not heard before its listener is told of the talker.
func TestTheTableComesBeforeTheViews(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		var a *person
		anna, ben := x.player("anna"), x.player("ben")
		anna.Show(ben.ID)
		ben.Show(anna.ID)
		seen := map[string]string{}
		send := func() string {
			n, why := a.src.Send(x.hub.Table(), 1, 0, []byte{1})
			return fmt.Sprint(n, " ", why)
		}
		at := func(what string) {
			if _, ok := seen[what]; !ok {
				seen[what] = send()
			}
		}
		join := func(p *world.Player, look func(kind, string)) *person {
			m := x.hub.Join(p, &writer{show: func(k kind, text []byte) { look(k, string(text)) }}, Wants{Status: true})
			return &person{m, nil, route.NewSource(&m.Member)}
		}
		// Only the turn's goroutine uses anna's source.
		a = join(anna, func(k kind, text string) {
			switch {
			case k == mutes && strings.HasPrefix(text, "SSVC_MUTE_V1 1"):
				at("anna is muted")
			case k == mutes && seen["anna is muted"] != "":
				at("anna is not muted")
			case k == rosters && strings.Contains(text, "SSVC_DEAFENED_V1 "+ben.ID.String()):
				at("ben is deafened")
			}
		})
		x.settle()
		b := join(ben, func(k kind, text string) {
			switch {
			case k != rosters:
			case strings.Contains(text, anna.ID.String()):
				at("ben is told of anna")
			case seen["ben is told of anna"] != "":
				at("anna is hidden")
			}
		})
		time.Sleep(2 * Flush)
		if err := x.hub.Do(func(time.Time) { at("a while after") }); err != nil {
			t.Fatal(err)
		}
		if err := x.hub.Mute(mute.Record{Player: anna.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := x.hub.Unmute(anna.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(Flush)
		x.hub.SetDeafened(b.Member, true)
		time.Sleep(Flush)
		x.hub.SetDeafened(b.Member, false)
		time.Sleep(Flush)
		ben.Hide(anna.ID)
		time.Sleep(2 * Flush)
		if err := x.hub.Do(func(time.Time) {}); err != nil { // the turns are seen to be over
			t.Fatal(err)
		}
		for what, want := range map[string]string{
			"ben is told of anna": fmt.Sprint(0, " ", route.Routed),
			"a while after":       fmt.Sprint(1, " ", route.Routed),
			"anna is muted":       fmt.Sprint(0, " ", route.Muted),
			"anna is not muted":   fmt.Sprint(1, " ", route.Routed),
			"ben is deafened":     fmt.Sprint(0, " ", route.Routed),
			"anna is hidden":      fmt.Sprint(0, " ", route.Routed),
		} {
			if seen[what] != want {
				t.Errorf("%s: a frame reaches %q, want %q", what, seen[what], want)
			}
		}
	})
}
