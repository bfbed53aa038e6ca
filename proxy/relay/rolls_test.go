package relay

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/uuid"
)

func numbered(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n+1))
	return id
}

// Lists that go by rolls hold what they would hold by themselves, over the end of a roll, too.
func TestListedAgainstMaps(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lists, want := make([]List, 4), make([]map[uuid.UUID]bool, 4)
	for i := range want {
		want[i] = map[uuid.UUID]bool{}
	}
	for step := range 200_000 {
		i, id := rnd.IntN(len(lists)), numbered(rnd.IntN(step/4+1))
		if rnd.IntN(3) > 0 {
			lists[i].put(id)
			want[i][id] = true
		} else {
			lists[i].del(id)
			delete(want[i], id)
		}
	}
	compare := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	for i := range lists {
		got := lists[i].All()
		if len(got) != len(want[i]) || lists[i].n != len(want[i]) {
			t.Fatalf("%d ids, counted %d, want %d", len(got), lists[i].n, len(want[i]))
		}
		slices.SortFunc(got, compare)
		if len(slices.Compact(got)) != len(want[i]) {
			t.Fatal("an id comes twice")
		}
		for _, id := range got {
			if !want[i][id] {
				t.Fatalf("%v is on no list", id)
			}
		}
		if len(lists[i].parts) < 2 {
			t.Error("the list never passed the end of a roll")
		}
	}
}

// A server that fills the list without end costs so much and no more.
func TestListedIsBounded(t *testing.T) {
	var l List
	for i := range maxLeftovers + 5000 {
		l.put(numbered(i))
	}
	if n := len(l.All()); n != maxLeftovers || l.n != maxLeftovers {
		t.Errorf("%d are remembered, counted %d, at most %d", n, l.n, maxLeftovers)
	}
	l.del(numbered(0))
	l.put(numbered(maxLeftovers + 1))
	if l.n != maxLeftovers {
		t.Errorf("%d after one gave way", l.n)
	}
}

// Ids that come and go, as a plugin's made-up players do, leave nothing behind in the lists of those who stay.
func TestListedForgetsWhoCameAndWent(t *testing.T) {
	var l List
	for i := range 50 {
		l.put(numbered(i))
	}
	for i := range 20 * rollSize {
		l.put(numbered(1000 + i))
		l.del(numbered(1000 + i))
		if len(l.parts) > 3 {
			t.Fatalf("%d rolls are kept for 50 ids", len(l.parts))
		}
	}
	if ids := l.All(); len(ids) != 50 || l.n != 50 {
		t.Errorf("%d are left of 50", len(ids))
	}
}

// A thousand players on one list of two thousand hold a bit for each pair, where each with a set of its own held 35
// bytes.
func TestListsOfACrowd(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const players, entries = 1000, 2000
	lists := make([]List, players)
	before := heap()
	for i := range lists {
		for k := range entries {
			lists[i].put(numbered(k))
		}
	}
	used := heap() - before
	if per := float64(used) / players / entries; per > 0.4 {
		t.Errorf("%.2f bytes a pair", per)
	} else {
		t.Logf("%d bytes, %.2f a pair", used, per)
	}
	runtime.KeepAlive(lists)
}
