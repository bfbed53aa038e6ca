package render

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/talk"
)

var anna, ben, cleo = uuid.UUID{15: 1}, uuid.UUID{15: 2}, uuid.UUID{15: 3}

// book has anna in slot 0, ben, who is deafened and whispers, in 2 and cleo, who shouts, in 65.
func book() *roster.Book {
	b := roster.New()
	b.Put(0, roster.Person{ID: anna, Name: "anna"})
	b.Put(2, roster.Person{ID: ben, Name: "ben", Deafened: true, Tier: talk.Whisper})
	b.Put(65, roster.Person{ID: cleo, Name: "cleo", Tier: talk.Shout})
	return b
}

var everybody = []uint64{1 | 1<<2, 1 << 1}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	v, err := line.ParseS2C(text)
	if err != nil || v == nil {
		t.Fatalf("%q parses to %T, %v", text, v, err)
	}
	return v
}

func TestRoster(t *testing.T) {
	b := book()
	people := []line.Person{{ID: anna, Name: "anna"}, {ID: ben, Name: "ben"}, {ID: cleo, Name: "cleo"}}
	low, high := [talk.Tiers][]uuid.UUID{talk.Whisper: {ben}, talk.Shout: {cleo}}, [talk.Tiers][]uuid.UUID{talk.Shout: {cleo}}
	for _, c := range []struct {
		name   string
		seen   []uint64
		status bool
		want   *line.Roster
	}{
		{"status", everybody, true, &line.Roster{People: people, Status: true, Deafened: []uuid.UUID{ben}, Tiers: low}},
		{"legacy", everybody, false, &line.Roster{People: people}},
		{"who is hidden is in no row", []uint64{1, 1 << 1}, true, &line.Roster{People: []line.Person{people[0], people[2]}, Status: true, Tiers: high}},
		{"alone", []uint64{1, 0}, true, &line.Roster{People: people[:1], Status: true}},
	} {
		if got := parse(t, Roster(b.Snapshot(c.seen), c.status)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	b.Drop(2)
	if got := parse(t, Roster(b.Snapshot([]uint64{1, 1 << 1}), false)).(*line.Roster); len(got.People) != 2 {
		t.Errorf("after ben left: %+v", got)
	}
	with, without := Roster(b.Snapshot([]uint64{1, 1 << 1}), true), Roster(b.Snapshot([]uint64{1, 1 << 1}), false)
	if !bytes.HasPrefix(with, without) || strings.Contains(string(without), "SSVC_") {
		t.Errorf("with status %q, without %q", with, without)
	}
}

// A reader of roster 2 gets the whole roster first, then what has changed, and the whole one again where much has.
func TestChanges(t *testing.T) {
	b := book()
	first := b.Snapshot(everybody)
	if got, want := parse(t, Changes(first, nil)), (&line.Changes{Whole: true, To: line.Revision(first.Revision()), Put: []line.State{
		{Person: line.Person{ID: anna, Name: "anna"}},
		{Person: line.Person{ID: ben, Name: "ben"}, Deafened: true, Tier: talk.Whisper},
		{Person: line.Person{ID: cleo, Name: "cleo"}, Tier: talk.Shout},
	}}); !reflect.DeepEqual(got, want) {
		t.Errorf("at first %+v, want %+v", got, want)
	}
	b.Drop(2)
	b.Put(0, roster.Person{ID: anna, Name: "anna", Deafened: true})
	b.Put(66, roster.Person{ID: uuid.UUID{15: 9}, Name: "dora"})
	second := b.Snapshot([]uint64{1, 1 << 1})
	if got, want := parse(t, Changes(second, first)), (&line.Changes{Whole: true, To: line.Revision(second.Revision()), Put: []line.State{
		{Person: line.Person{ID: anna, Name: "anna"}, Deafened: true},
		{Person: line.Person{ID: cleo, Name: "cleo"}, Tier: talk.Shout},
	}}); !reflect.DeepEqual(got, want) {
		t.Errorf("where all but one have changed %+v, want %+v", got, want)
	}
	third := b.Snapshot([]uint64{1, 1<<1 | 1<<2})
	if got, want := parse(t, Changes(third, second)), (&line.Changes{
		From: line.Revision(second.Revision()), To: line.Revision(third.Revision()), Put: []line.State{{Person: line.Person{ID: uuid.UUID{15: 9}, Name: "dora"}}},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("then %+v, want %+v", got, want)
	}
	for i := range 8 {
		b.Put(70+i, roster.Person{ID: uuid.UUID{15: byte(20 + i)}, Name: "more"})
	}
	full := b.Snapshot([]uint64{1, 1<<1 | 1<<2 | 255<<6})
	if got, want := parse(t, Changes(b.Snapshot([]uint64{1, 1<<2 | 255<<6}), full)).(*line.Changes), []uuid.UUID{cleo}; got.Whole || len(got.Put) > 0 || !reflect.DeepEqual(got.Gone, want) {
		t.Errorf("without cleo %+v", got)
	}
}

// Whatever many are shown is one text.
func TestTextsAreShared(t *testing.T) {
	one := func(what string, text func() []byte) {
		t.Helper()
		if a, b := text(), text(); len(a) == 0 || &a[0] != &b[0] {
			t.Errorf("%s is written twice", what)
		}
	}
	b := book()
	s := b.Snapshot(everybody)
	one("a roster", func() []byte { return Roster(s, true) })
	one("a whole roster 2", func() []byte { return Changes(s, nil) })
	alone := b.Snapshot([]uint64{1 | 1<<2, 0})
	one("what has changed", func() []byte { return Changes(s, alone) })
	one("a roster without status", func() []byte { return Roster(s, false) })
	n := &mute.Notice{State: mute.State{Kind: talk.MutedServer, Reason: "an event"}}
	one("a mute", func() []byte { return Mute(n) })
	o := &talk.Offer{Tiers: talk.TiersOf(talk.Shout)}
	one("the tiers", func() []byte { return Ranges(o) })
	g := group.New(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}})
	for i, id := range []uuid.UUID{anna, ben} {
		g.Enter(id, i)
	}
	may := talk.GroupCaps{Use: true, Create: true, Invite: true}
	g.Do(group.Actor{ID: anna, May: may}, &talk.GroupRequest{Verb: talk.Create, Name: "team"}, time.Now())
	one("a page", func() []byte { return Groups(g.Page(anna, may, nil, time.Now())) })
	a, z := Groups(g.Page(anna, may, nil, time.Now())), Groups(g.Page(ben, may, nil, time.Now()))
	if &a[0] != &z[0] {
		t.Error("two who see the same have pages of their own")
	}
	l := &talk.Speakers{List: []talk.Speaker{{ID: cleo, Name: "Radio"}}}
	one("speakers", func() []byte { return Speakers(l) })
}

// The seconds of a mute and of an invitation are those that were left when it was shown.
func TestSeconds(t *testing.T) {
	now := time.Unix(1000, 0)
	n := &mute.Notice{State: mute.State{Kind: talk.MutedPlayer, Until: now.Add(9500 * time.Millisecond), Reason: "spam"}, At: now}
	if got := *parse(t, Mute(n)).(*line.Mute); got != (line.Mute{Kind: talk.MutedPlayer, Timed: true, Seconds: 10, Reason: "spam"}) {
		t.Errorf("muted: %+v", got)
	}
	if got := *parse(t, Mute(&mute.Notice{At: now})).(*line.Mute); got != (line.Mute{}) {
		t.Errorf("not muted: %+v", got)
	}
	p := &group.Page{May: talk.GroupCaps{Use: true}, Rows: &group.Rows{}, At: now, Invites: []group.Invitation{
		{Group: cleo, From: anna, Until: now.Add(30 * time.Second)}, {Group: ben, Until: now.Add(time.Millisecond)}, {Group: anna, Until: now},
	}}
	got := parse(t, Groups(p)).(*line.Groups)
	want := []line.Invitation{{Group: cleo, From: anna, Seconds: 30}, {Group: ben, Seconds: 1}} // the past is not told
	if got.May != p.May || !reflect.DeepEqual(got.Invites, want) {
		t.Errorf("invited: %+v", got)
	}
}

func TestSmallViews(t *testing.T) {
	if got := *parse(t, Ranges(&talk.Offer{Tiers: talk.TiersOf(talk.Whisper)})).(*line.Ranges); got.Tiers != talk.TiersOf(talk.Whisper) {
		t.Errorf("tiers: %+v", got)
	}
	pose := &world.Pose{X: 1.5, Y: 64, Z: -3, Yaw: 90, Place: &world.Place{Backend: "survival", World: "minecraft:overworld"}}
	if got := *parse(t, Pose(pose)).(*line.Pose); got != (line.Pose{Yaw: 90, X: 1.5, Y: 64, Z: -3, World: "minecraft:overworld"}) {
		t.Errorf("pose: %+v", got)
	}
	r := talk.GroupResult{Verb: talk.Join, Code: talk.WrongPassword}
	if got := *parse(t, Result(r)).(*talk.GroupResult); got != r {
		t.Errorf("result: %+v", got)
	}
}

// BenchmarkRoster measures one reader's roster of a thousand, when nobody else sees the same people.
func BenchmarkRoster(b *testing.B) {
	k, seen := roster.New(), make([]uint64, 16)
	for i := range 1000 {
		k.Put(i, roster.Person{ID: uuid.UUID{0: byte(i), 1: byte(i >> 8)}, Name: "somebody"})
		seen[i/64] |= 1 << (i % 64)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k.Put(0, roster.Person{Name: "somebody", Deafened: i%2 == 0}) // or it is the one before
		Roster(k.Snapshot(seen), true)
	}
}
