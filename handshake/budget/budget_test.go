package budget

import (
	"testing"
	"time"
)

func TestBudgets(t *testing.T) {
	b := Second(60)
	now := time.Unix(1000, 0)
	take := func(n int) (got int) {
		for range n {
			if b.Take(now, 1) {
				got++
			}
		}
		return got
	}
	if got := take(100); got != 60 {
		t.Errorf("%d at once from a full bucket of 60", got)
	}
	now = now.Add(500 * time.Millisecond)
	if got := take(100); got != 30 {
		t.Errorf("%d after half a second", got)
	}
	now = now.Add(time.Hour)
	if got := take(100); got != 60 {
		t.Errorf("%d after an hour", got)
	}
	passed := 0
	for range 100 { // 50 a second for two seconds, from an empty bucket
		now = now.Add(20 * time.Millisecond)
		passed += take(1)
	}
	if passed != 100 {
		t.Errorf("%d of 100 frames at the rate of speech", passed)
	}
}
