package roster

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
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

func parse(t *testing.T, s *Snapshot) *line.Roster {
	t.Helper()
	v, err := line.ParseS2C(s.Text)
	r, ok := v.(*line.Roster)
	if err != nil || !ok {
		t.Fatalf("%q parses to %T, %v", s.Text, v, err)
	}
	return r
}

func TestSnapshot(t *testing.T) {
	b := book()
	people := []line.Person{{ID: anna, Name: "anna"}, {ID: ben, Name: "ben"}, {ID: cleo, Name: "cleo"}}
	for _, c := range []struct {
		name   string
		seen   []uint64
		status bool
		want   *line.Roster
	}{
		{"status", everybody, true, &line.Roster{People: people, Status: true, Deafened: []uuid.UUID{ben}, Whispering: []uuid.UUID{ben}, Shouting: []uuid.UUID{cleo}}},
		{"legacy", everybody, false, &line.Roster{People: people}},
		{"who is hidden is in no row", []uint64{1, 1 << 1}, true, &line.Roster{People: []line.Person{people[0], people[2]}, Status: true, Shouting: []uuid.UUID{cleo}}},
		{"alone", []uint64{1, 0}, true, &line.Roster{People: people[:1], Status: true}},
	} {
		if got := parse(t, b.Snapshot(c.seen, c.status)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	b.Drop(2)
	if got := parse(t, b.Snapshot([]uint64{1, 1 << 1}, false)); len(got.People) != 2 {
		t.Errorf("after ben left: %+v", got)
	}
}

func TestReadersShareSnapshots(t *testing.T) {
	b := book()
	s := b.Snapshot(everybody, true)
	if b.Snapshot([]uint64{5, 2}, true) != s {
		t.Error("equal sets have two snapshots")
	}
	if b.Snapshot(everybody, false) == s || b.Snapshot([]uint64{1, 2}, true) == s {
		t.Error("other sets or rows share one")
	}
	v := b.Version()
	b.Put(0, Person{ID: anna, Name: "anna"})
	if b.Version() != v || b.Snapshot(everybody, true) != s {
		t.Error("writing the same again is a change")
	}
	b.Put(0, Person{ID: anna, Name: "anna", Deafened: true})
	if b.Version() == v || b.Snapshot(everybody, true) == s {
		t.Error("anna's deafness is no change")
	}
}

func TestStaleness(t *testing.T) {
	b, now := book(), time.Unix(1000, 0)
	var c Copy
	if c.Fresh(b.Version(), 1) || !c.Due(now, false) {
		t.Error("who has nothing must be sent something at once")
	}
	if !c.Take(b.Snapshot(everybody, true), b.Version(), 1, now) {
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
	if c.Take(b.Snapshot(everybody, true), b.Version(), 1, now) {
		t.Error("an unchanged snapshot is sent, and tells that a hidden player came")
	}
	if !c.Fresh(b.Version(), 1) || !c.Due(now.Add(1), false) {
		t.Error("not sending must count as comparing, and not as sending")
	}
	b.Put(2, Person{ID: ben, Name: "ben"})
	if !c.Take(b.Snapshot(everybody, true), b.Version(), 1, now) || c.Due(now.Add(Ration-1), false) {
		t.Error("a real change is not sent, or not rationed")
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
		clear(k.texts)
		k.Snapshot(seen, true)
	}
}
