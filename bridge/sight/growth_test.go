package sight

import (
	"math/bits"
	"runtime"
	"testing"
	"time"
)

// The memory of a crowd with all entries and 60 bodies each: four bits a pair and each session's own; and the cost of a
// turn beside the mere reading of so many sets: all rows once more, some rows, nothing. BenchmarkSettle has 5,000, and
// it holds there as well: 18.6 MB, 0.74 bytes a pair.
func TestGrowth(t *testing.T) {
	const n = 2000
	before := heap()
	net, all := thousand(t, n)
	used := heap() - before
	t.Logf("%d bytes, %.2f a pair", used, float64(used)/n/n)
	if most := int64(n*n/2 + n*1500); used > most {
		t.Errorf("%d sessions hold %d bytes of sight, at most %d", n, used, most)
	}
	v := all[0].seated.Load().v
	now := time.Now().Add(2 * time.Second)
	best := func(do func()) (least time.Duration) {
		for i := range 60 { // one of which nothing else comes between
			begun := time.Now()
			if do(); i == 0 || time.Since(begun) < least {
				least = time.Since(begun)
			}
		}
		return least
	}
	turn := func(rows int) time.Duration {
		return best(func() {
			for _, s := range all[:rows] {
				v.mark(s.seated.Load())
			}
			net.Settle(now, nil)
		})
	}
	some := 0
	reading := best(func() {
		for _, s := range all {
			q := s.seated.Load()
			for i, word := range q.shown {
				some += bits.OnesCount64(word & q.entryOf[i])
			}
		}
	})
	if some == 0 {
		t.Fatal("nobody is shown to anybody")
	}
	everything, few, nothing := turn(n), turn(n/20), turn(0)
	t.Logf("reading %v; all rows %v, a twentieth %v, none %v", reading, everything, few, nothing)
	if everything > 8*reading {
		t.Errorf("all rows take %v, to read their sets %v", everything, reading)
	}
	if few > everything/4 || nothing > everything/50 {
		t.Errorf("all rows take %v, a twentieth %v, none %v", everything, few, nothing)
	}
	runtime.KeepAlive(net)
}
