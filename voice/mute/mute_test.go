package mute

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

var (
	start     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	anna, ben = uuid.UUID{15: 1}, uuid.UUID{15: 2}
)

func book(t *testing.T, records ...Record) *Book {
	t.Helper()
	b := New()
	for _, r := range records {
		if err := b.Mute(r, start); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestWhatHoldsForWhom(t *testing.T) {
	soon, late := start.Add(time.Minute), start.Add(time.Hour)
	own := Record{Player: anna, Until: late, Reason: "spam"}
	all := Record{Player: Everybody, Until: soon, Reason: "event"}
	forever := Record{Player: Everybody}
	none := State{}
	server, player := State{talk.MutedServer, soon, "event"}, State{talk.MutedPlayer, late, "spam"}
	for _, c := range []struct {
		name    string
		records []Record
		who     uuid.UUID
		exempt  bool
		after   time.Duration
		want    State
	}{
		{"nobody", nil, anna, false, 0, none},
		{"another", []Record{own}, ben, false, 0, none},
		{"own", []Record{own}, anna, false, 0, player},
		{"own, exempt from the server-wide one only", []Record{own}, anna, true, 0, player},
		{"server", []Record{all}, ben, false, 0, server},
		{"server, exempt", []Record{all}, ben, true, 0, none},
		{"server before own", []Record{own, all}, anna, false, 0, server},
		{"server and own, exempt", []Record{own, all}, anna, true, 0, player},
		{"server, last moment", []Record{all}, ben, false, time.Minute - 1, server},
		{"server, over", []Record{all}, ben, false, time.Minute, none},
		{"server over, own not", []Record{own, all}, anna, false, time.Minute, player},
		{"both over", []Record{own, all}, anna, false, time.Hour, none},
		{"until lifted", []Record{forever}, anna, false, 1000 * time.Hour, State{Kind: talk.MutedServer}},
		{"the server-wide one is nobody's own", []Record{forever}, Everybody, true, 0, none},
	} {
		// Whether anybody has swept makes no difference.
		for _, swept := range []bool{false, true} {
			b := book(t, c.records...)
			now := start.Add(c.after)
			if swept {
				b.Expire(now)
			}
			if got := b.State(c.who, c.exempt, now); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		}
	}
}

// A client is told once of a mute and once of its end, though somebody looks twice a second.
func TestAClientIsToldOnChangesOnly(t *testing.T) {
	b := New()
	type words struct {
		Kind    talk.MuteKind
		Timed   bool
		Seconds int
		Reason  string
	}
	var told []words
	var last State
	look := func(now time.Time) {
		if s := b.State(anna, false, now); s != last {
			last = s
			seconds, timed := s.Left(now)
			told = append(told, words{s.Kind, timed, seconds, s.Reason})
		}
	}
	for i := range 300 {
		now := start.Add(time.Duration(i) * 500 * time.Millisecond)
		switch i {
		case 10, 20: // the same again, as a store that comes back says
			b.Apply(Record{Player: anna, Until: start.Add(time.Minute).In(time.FixedZone("x", 3600)), Reason: "spam"})
		case 30: // another reason is another state
			b.Mute(Record{Player: anna, Until: start.Add(time.Minute), Reason: "shouting"}, now)
		}
		look(now)
	}
	want := []words{
		{Kind: talk.MutedPlayer, Timed: true, Seconds: 55, Reason: "spam"},
		{Kind: talk.MutedPlayer, Timed: true, Seconds: 45, Reason: "shouting"},
		{},
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("told %+v", told)
	}
}

func TestMonotonicReadingsDoNotMakeStatesDiffer(t *testing.T) {
	now := time.Now()
	b := book(t)
	if err := b.Mute(Record{Player: anna, Until: now.Add(time.Hour)}, now); err != nil {
		t.Fatal(err)
	}
	s := b.State(anna, false, now)
	text, err := json.Marshal(b.List(now)[0])
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(r); err != nil {
		t.Fatal(err)
	}
	if again := b.State(anna, false, now); again != s {
		t.Errorf("%+v, after being stored %+v", s, again)
	}
}

func TestSecondsAreRoundedUp(t *testing.T) {
	for left, want := range map[time.Duration]int{time.Nanosecond: 1, time.Second: 1, time.Second + 1: 2, 30 * time.Second: 30} {
		seconds, timed := State{Kind: talk.MutedPlayer, Until: start.Add(left)}.Left(start)
		if !timed || seconds != want {
			t.Errorf("%v left: %d %v", left, seconds, timed)
		}
	}
	if seconds, timed := (State{Kind: talk.MutedPlayer}).Left(start); timed || seconds != 0 {
		t.Errorf("no end: %d %v", seconds, timed)
	}
}

func TestMuteAndLift(t *testing.T) {
	b := book(t, Record{Player: anna, Name: "anna", By: "console", Reason: "x"}, Record{Player: Everybody}, Record{Player: ben, Until: start.Add(time.Second)})
	if got := b.List(start); len(got) != 3 || got[0].Player != Everybody || got[1].Player != anna || got[1].By != "console" {
		t.Errorf("listed %+v", got)
	}
	later := start.Add(time.Second)
	if got := b.List(later); len(got) != 2 {
		t.Errorf("a second later %+v", got)
	}
	if b.Lift(ben, later) {
		t.Error("lifted what was over")
	}
	if !b.Lift(anna, later) || b.Lift(anna, later) {
		t.Error("lifting is once")
	}
	if s := b.State(anna, true, later); s != (State{}) {
		t.Errorf("still %+v", s)
	}
	for name, r := range map[string]Record{
		"in the past":       {Player: ben, Until: later},
		"long reason":       {Player: ben, Reason: strings.Repeat("a", talk.MaxReason+1)},
		"formatted reason":  {Player: ben, Reason: "§cx"},
		"several lines":     {Player: ben, Reason: "a\nb"},
		"not utf-8, reason": {Player: ben, Reason: "\xff"},
	} {
		revision := b.Revision()
		if b.Mute(r, later) == nil || b.Revision() != revision {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestExpire(t *testing.T) {
	b := book(t, Record{Player: anna, Until: start.Add(time.Minute)}, Record{Player: ben, Until: start.Add(time.Hour)}, Record{Player: Everybody})
	b.Changes()
	for _, c := range []struct {
		after, next time.Duration
		news        bool // somebody has to be told
		inForce     int
		gone        []uuid.UUID
	}{
		{0, time.Minute, false, 3, nil},
		{time.Minute - 1, time.Minute, false, 3, nil},
		{time.Minute, 2 * time.Minute, true, 2, nil},
		{90 * time.Second, 2 * time.Minute, false, 2, nil},
		{59*time.Minute + 30*time.Second, time.Hour, false, 2, nil},
		{time.Hour, 61 * time.Minute, true, 1, nil},
		{61 * time.Minute, 62 * time.Minute, false, 1, []uuid.UUID{anna}},
		{2 * time.Hour, 0, false, 1, []uuid.UUID{ben}},
		{3 * time.Hour, 0, false, 1, nil},
	} {
		revision := b.Revision()
		next := b.Expire(start.Add(c.after))
		if want := start.Add(c.next); c.next == 0 && !next.IsZero() || c.next > 0 && !next.Equal(want) {
			t.Errorf("after %v: next %v", c.after, next)
		}
		put, gone := b.Changes()
		if len(put) > 0 || !slices.Equal(gone, c.gone) || (b.Revision() != revision) != c.news || b.Len() != c.inForce {
			t.Errorf("after %v: put %v, gone %v, revision %d to %d, %d in force", c.after, put, gone, revision, b.Revision(), b.Len())
		}
	}
}

// A mute that ends before one that was there already ends at its own time, made here or by another instance.
func TestAShortMuteAfterALongOneEndsFirst(t *testing.T) {
	long, short := Record{Player: anna, Until: start.Add(time.Hour)}, Record{Player: ben, Until: start.Add(time.Minute)}
	for how, add := range map[string]func(b *Book, r Record) error{
		"made":   func(b *Book, r Record) error { return b.Mute(r, start) },
		"stored": func(b *Book, r Record) error { return b.Apply(r) },
	} {
		b := New()
		for _, r := range []Record{long, short} {
			if err := add(b, r); err != nil {
				t.Fatal(err)
			}
		}
		if next := b.Expire(start); !next.Equal(short.Until) {
			t.Errorf("%s: looked at again at %v, though one ends at %v", how, next, short.Until)
		}
		revision := b.Revision()
		b.Expire(short.Until)
		if b.Revision() == revision || b.Len() != 1 {
			t.Errorf("%s: the short one is not found to be over: %d in force", how, b.Len())
		}
	}
}

// A clock that jumps ahead and is put right within the hour costs no mute, whether it jumped while the program ran or
// before it started. What has really passed is told by the monotonic clock alone.
func TestAJumpOfTheClockDeletesNoMute(t *testing.T) {
	now := time.Now()
	// at is a reading of the clock at which so much time has passed since now, and which says something else.
	at := func(passed, jump time.Duration) time.Time { return jumped(t, now.Add(passed), jump) }
	for what, begin := range map[string]time.Duration{"while it runs": 0, "before the start": 365 * 24 * time.Hour} {
		b := New()
		if err := b.Apply(Record{Player: anna, Until: now.Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		b.Expire(at(0, begin))
		for m := range 55 { // minutes of another year
			b.Expire(at(time.Duration(m)*time.Minute, 365*24*time.Hour))
		}
		if _, gone := b.Changes(); len(gone) > 0 {
			t.Fatalf("%s: deleted", what)
		}
		revision := b.Revision()
		right := at(56*time.Minute, 0)
		b.Expire(right)
		if s := b.State(anna, false, right); s.Kind != talk.MutedPlayer || b.Len() != 1 || b.Revision() == revision {
			t.Errorf("%s: put right, and %+v", what, s)
		}
		b.Expire(at(3*time.Hour, 0)) // and the hour starts over
		if _, gone := b.Changes(); len(gone) > 0 || b.Len() != 1 {
			t.Errorf("%s: deleted later", what)
		}
		b.Expire(at(25*time.Hour, 0))
		if b.Len() != 0 {
			t.Errorf("%s: in force for ever", what)
		}
		b.Expire(at(26*time.Hour, 0))
		if _, gone := b.Changes(); len(gone) != 1 {
			t.Errorf("%s: kept for ever", what)
		}
	}
}

// jumped returns t as a clock would have it that has jumped: the wall's reading differs, the monotonic one does not.
// There is no other way to make one than to know how the two are kept; the test says so when that changes.
func jumped(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	wall := at.Round(0).Add(by)
	out := at
	p := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&out))
	seconds := (p.wall << 1 >> 31) + uint64(by/time.Second)
	p.wall = 1<<63 | seconds<<30 | p.wall&(1<<30-1)
	if !out.Round(0).Equal(wall) || out.Sub(at) != 0 {
		t.Fatalf("%v is not %v after a jump of %v", out, at, by)
	}
	return out
}

// What one book tells the store, another one can live by.
func TestTheStoreIsKeptUpToDate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b, mirror := New(), New()
	now := start
	for step := range 5000 {
		who := uuid.UUID{15: byte(r.IntN(5))} // 0 is everybody
		switch r.IntN(4) {
		case 0:
			m := Record{Player: who, Reason: []string{"", "x", "y"}[r.IntN(3)]}
			if r.IntN(2) == 0 {
				m.Until = now.Add(time.Duration(1+r.IntN(10)) * time.Second)
			}
			if err := b.Mute(m, now); err != nil {
				t.Fatal(err)
			}
		case 1:
			b.Lift(who, now)
		case 2:
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			b.Expire(now)
		}
		put, gone := b.Changes()
		for _, p := range put {
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var read Record
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			if err := mirror.Apply(read); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range gone {
			mirror.Remove(id)
		}
		if p, g := mirror.Changes(); len(p)+len(g) > 0 {
			t.Fatalf("step %d: what came from the store goes back", step)
		}
		for i := range 5 {
			for _, exempt := range []bool{false, true} {
				who := uuid.UUID{15: byte(i)}
				if got, want := mirror.State(who, exempt, now), b.State(who, exempt, now); got != want {
					t.Fatalf("step %d, %v: %+v, want %+v", step, who, got, want)
				}
			}
		}
		if len(mirror.records) != len(b.records) { // those that have lapsed included
			t.Fatalf("step %d: %d records stored, %d in force", step, len(mirror.records), len(b.records))
		}
	}
}
