package roster

import (
	"maps"
	"math/rand/v2"
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

// names returns those of the people in a snapshot.
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

// A kept snapshot keeps showing the same, whatever becomes of the book and its slots.
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
	if !c.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now) {
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
	if c.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now) {
		t.Error("an unchanged snapshot is sent, and tells that a hidden player came")
	}
	if !c.Fresh(b.Version(), 1) || !c.Due(now.Add(1), false) {
		t.Error("not sending must count as comparing, and not as sending")
	}
	b.Put(2, Person{ID: ben, Name: "ben"})
	if !c.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now) || c.Due(now.Add(Ration-1), false) {
		t.Error("a real change is not sent, or not rationed")
	}
}

// TestChangesLeadFromOneToTheNext: whatever happens between two snapshots of one reader, the changes make the later one
// of the former one, and hold nothing that both have.
func TestChangesLeadFromOneToTheNext(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := New()
	seen := make([]uint64, 3)
	has := map[uuid.UUID]Person{}
	was, come := b.Snapshot(seen), 0
	for step := range 2000 {
		for range 1 + r.IntN(4) {
			slot := r.IntN(len(seen) * 64)
			word, bit := slot/64, uint64(1)<<(slot%64)
			switch at := (len(b.entries) > slot) && b.entries[slot] != nil; r.IntN(4) {
			case 0: // leaves
				b.Drop(slot)
				seen[word] &^= bit
			case 1: // is hidden, or shown again
				if at {
					seen[word] ^= bit
				}
			default: // comes, in place of another one perhaps, or is otherwise
				come++
				id := uuid.UUID{15: byte(come), 14: byte(come >> 8)}
				if at && r.IntN(2) == 0 {
					id = b.entries[slot].ID
				}
				b.Put(slot, Person{ID: id, Name: "somebody", Deafened: r.IntN(2) == 0, Tier: talk.Tier(r.IntN(talk.Tiers))})
				seen[word] |= bit
			}
		}
		if r.IntN(50) == 0 { // two change places
			a, c := r.IntN(64), 64+r.IntN(64)
			if b.entries[a] != nil && b.entries[c] != nil {
				pa, pc := b.entries[a].Person, b.entries[c].Person
				b.Put(a, pc)
				b.Put(c, pa)
			}
		}
		now := b.Snapshot(seen)
		c := now.Since(was)
		if now.Since(was) != c {
			t.Fatal("two readers who had the same get changes of their own")
		}
		for _, id := range c.Gone {
			if _, had := has[id]; !had {
				t.Fatalf("step %d: %v is gone, and was never there", step, id)
			}
			delete(has, id)
		}
		for _, e := range c.Put {
			if has[e.ID] == e.Person && now.Len() > 0 && !slices.ContainsFunc(slices.Collect(was.All()), func(o *Entry) bool { return o != e && o.ID == e.ID }) {
				t.Fatalf("step %d: %+v has not changed", step, e.Person)
			}
			has[e.ID] = e.Person
		}
		want := map[uuid.UUID]Person{}
		for e := range now.All() {
			want[e.ID] = e.Person
		}
		if !maps.Equal(has, want) {
			t.Fatalf("step %d: the changes lead to %d people, not to the %d that there are", step, len(has), len(want))
		}
		was = now
	}
}

// A reader who is told of nobody new must not find out that somebody came whom they may not see.
func TestARevisionTellsNothingOfTheHidden(t *testing.T) {
	b := book()
	before := b.Snapshot(everybody)
	b.Put(3, Person{ID: uuid.UUID{15: 9}, Name: "hidden"})
	if after := b.Snapshot(everybody); after.Revision() != before.Revision() {
		t.Error("the revision changes with a hidden player")
	}
	b.Put(2, Person{ID: ben, Name: "ben"})
	if after := b.Snapshot(everybody); after.Revision() == before.Revision() {
		t.Error("the revision is the same after a change")
	}
}

// A long roster is not sent as often as a short one, in a flush pass neither; what has changed is.
func TestRate(t *testing.T) {
	b, now := New(), time.Unix(1000, 0)
	seen := make([]uint64, 80)
	for i := range 64 * len(seen) {
		b.Put(i, Person{ID: uuid.UUID{0: byte(i), 1: byte(i >> 8)}, Name: "somebody"})
		seen[i/64] |= 1 << (i % 64)
	}
	for _, c := range []struct {
		form        Form
		first, next time.Duration
	}{{Lines, 46 * 5120 * time.Second / Rate, 46 * 5120 * time.Second / Rate}, {Revisions, 58 * 5120 * time.Second / Rate, 0}} {
		var k Copy
		for i, wait := range []time.Duration{c.first, c.next} {
			b.Put(7, Person{ID: uuid.UUID{0: 7}, Name: "somebody", Deafened: i > 0}) // a mark more makes a list longer
			k.Take(b.Snapshot(seen), true, c.form, b.Version(), 1, now)
			if k.Due(now.Add(max(wait, Ration)-1), false) || wait > 0 && k.Due(now.Add(wait-1), true) || !k.Due(now.Add(max(wait, Ration)+time.Millisecond), false) || !k.Due(now.Add(wait+time.Millisecond), true) {
				t.Errorf("roster %d of %+v is not followed by another one after %v", i, c.form, wait)
			}
		}
		b.Put(7, Person{ID: uuid.UUID{0: 7}, Name: "somebody"})
	}
}

// A reader who is not told how people are is told nothing when that changes, and the others are.
func TestHowPeopleAreConcernsThoseWhoAreTold(t *testing.T) {
	b, now := book(), time.Unix(1000, 0)
	var who, how Copy
	who.Take(b.Snapshot(everybody), false, Lines, b.Version(), 1, now)
	how.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now)
	for _, p := range []Person{{ID: anna, Name: "anna", Deafened: true}, {ID: anna, Name: "anna", Tier: talk.Shout}, {ID: anna, Name: "anna"}} {
		b.Put(0, p)
		if who.Take(b.Snapshot(everybody), false, Lines, b.Version(), 1, now) {
			t.Errorf("%+v concerns somebody who is not told", p)
		}
		if !how.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now) {
			t.Errorf("%+v is not told", p)
		}
	}
	b.Put(0, Person{ID: anna, Name: "anne"})
	if !who.Take(b.Snapshot(everybody), false, Lines, b.Version(), 1, now) || !how.Take(b.Snapshot(everybody), true, Lines, b.Version(), 1, now) {
		t.Error("another name is not told")
	}
}

// BenchmarkSnapshot measures one reader's roster of a thousand, when nobody else sees the same people.
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
