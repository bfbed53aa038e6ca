package roster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

var anna, ben, cleo = uuid.UUID{15: 1}, uuid.UUID{15: 2}, uuid.UUID{15: 3}

// book has anna in slot 0, ben, who is deafened and whispers, in 2 and cleo, who shouts, in 65.
func book() *Book {
	b := New()
	b.Put(0, Person{ID: anna, Name: "anna"})
	b.Put(2, Person{ID: ben, Name: "ben", Deafened: true, Tier: talk.Whisper})
	b.Put(65, Person{ID: cleo, Name: "cleo", Tier: talk.Shout})
	return b
}

var everybody = []uint64{1 | 1<<2, 1 << 1}

// names are those of the people in a snapshot.
func names(s *Snapshot) (all []string) {
	for e := range s.All() {
		all = append(all, e.Name)
	}
	return all
}

func TestSnapshot(t *testing.T) {
	b := book()
	for _, c := range []struct {
		name string
		seen []uint64
		want []string
	}{
		{"everybody", everybody, []string{"anna", "ben", "cleo"}},
		{"who is hidden is not in it", []uint64{1, 1 << 1}, []string{"anna", "cleo"}},
		{"alone", []uint64{1, 0}, []string{"anna"}},
	} {
		s := b.Snapshot(c.seen)
		if got := names(s); !slices.Equal(got, c.want) || s.Len() != len(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for e := range b.Snapshot(everybody).All() {
		if want := (Person{ID: ben, Name: "ben", Deafened: true, Tier: talk.Whisper}); e.ID == ben && e.Person != want {
			t.Errorf("ben is %+v", e.Person)
		}
	}
}

// Whoever keeps a snapshot keeps what it showed, whatever becomes of the book and its slots.
func TestSnapshotsStayAsTheyAre(t *testing.T) {
	b := book()
	before := b.Snapshot(everybody)
	b.Drop(2)
	b.Put(0, Person{ID: cleo, Name: "somebody else"})
	b.Put(2, Person{ID: ben, Name: "ben, who is back"})
	for i := range 100 {
		b.Put(66+i, Person{ID: uuid.UUID{15: byte(i)}, Name: "more"})
	}
	if got := names(before); !slices.Equal(got, []string{"anna", "ben", "cleo"}) {
		t.Errorf("a snapshot has changed to %q", got)
	}
	b.Drop(2)
	if got := names(b.Snapshot([]uint64{1, 1 << 1})); !slices.Equal(got, []string{"somebody else", "cleo"}) {
		t.Errorf("after ben left: %q", got)
	}
}

func TestReadersShareSnapshots(t *testing.T) {
	b := book()
	s := b.Snapshot(everybody)
	if b.Snapshot([]uint64{5, 2}) != s {
		t.Error("equal sets have two snapshots")
	}
	if b.Snapshot([]uint64{1, 2}) == s {
		t.Error("other sets share one")
	}
	v := b.Version()
	b.Put(0, Person{ID: anna, Name: "anna"})
	if b.Version() != v || b.Snapshot(everybody) != s {
		t.Error("writing the same again is a change")
	}
	b.Put(0, Person{ID: anna, Name: "anna", Deafened: true})
	if b.Version() == v || b.Snapshot(everybody) == s {
		t.Error("anna's deafness is no change")
	}
}

func TestStaleness(t *testing.T) {
	b, now := book(), time.Unix(1000, 0)
	var c Copy
	if c.Fresh(b.Version(), 1) || !c.Due(now, false) {
		t.Error("who has nothing must be sent something at once")
	}
	if !c.Take(b.Snapshot(everybody), true, b.Version(), 1, now) {
		t.Error("the first snapshot is not sent")
	}
	if !c.Fresh(b.Version(), 1) {
		t.Error("stale right after")
	}
	if c.Fresh(b.Version(), 2) || c.Fresh(b.Version()+1, 1) {
		t.Error("fresh in spite of a change")
	}
	if now = now.Add(Ration - 1); c.Due(now, false) || !c.Due(now, true) {
		t.Error("inside the ration only a flush may send")
	}
	if !c.Due(now.Add(1), false) {
		t.Error("the ration does not end")
	}

	// A change that this reader must not notice: somebody joined whom it may not see.
	b.Put(3, Person{ID: uuid.UUID{15: 9}, Name: "hidden"})
	if c.Fresh(b.Version(), 1) {
		t.Error("fresh at another version")
	}
	if c.Take(b.Snapshot(everybody), true, b.Version(), 1, now) {
		t.Error("an unchanged snapshot is sent, and tells that a hidden player came")
	}
	if !c.Fresh(b.Version(), 1) || !c.Due(now.Add(1), false) {
		t.Error("not sending must count as comparing, and not as sending")
	}
	b.Put(2, Person{ID: ben, Name: "ben"})
	if !c.Take(b.Snapshot(everybody), true, b.Version(), 1, now) || c.Due(now.Add(Ration-1), false) {
		t.Error("a real change is not sent, or not rationed")
	}
}

// A reader who is not told how people are is told nothing when that changes, and the others are.
func TestHowPeopleAreConcernsThoseWhoAreTold(t *testing.T) {
	b, now := book(), time.Unix(1000, 0)
	var who, how Copy
	who.Take(b.Snapshot(everybody), false, b.Version(), 1, now)
	how.Take(b.Snapshot(everybody), true, b.Version(), 1, now)
	for _, p := range []Person{{ID: anna, Name: "anna", Deafened: true}, {ID: anna, Name: "anna", Tier: talk.Shout}, {ID: anna, Name: "anna"}} {
		b.Put(0, p)
		if who.Take(b.Snapshot(everybody), false, b.Version(), 1, now) {
			t.Errorf("%+v concerns somebody who is not told", p)
		}
		if !how.Take(b.Snapshot(everybody), true, b.Version(), 1, now) {
			t.Errorf("%+v is not told", p)
		}
	}
	b.Put(0, Person{ID: anna, Name: "anne"})
	if !who.Take(b.Snapshot(everybody), false, b.Version(), 1, now) || !how.Take(b.Snapshot(everybody), true, b.Version(), 1, now) {
		t.Error("another name is not told")
	}
}

// BenchmarkSnapshot is one reader's roster of a thousand, when nobody else sees the same people.
func BenchmarkSnapshot(b *testing.B) {
	k, seen := New(), make([]uint64, 16)
	for i := range 1000 {
		k.Put(i, Person{ID: uuid.UUID{0: byte(i), 1: byte(i >> 8)}, Name: "somebody"})
		seen[i/64] |= 1 << (i % 64)
	}
	b.ReportAllocs()
	for b.Loop() {
		clear(k.snapshots)
		k.Snapshot(seen)
	}
}
