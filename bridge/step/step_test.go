package step

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSteadyTime: steps follow time, however unevenly the clock is asked.
func TestSteadyTime(t *testing.T) {
	c, now := New(120, 100*time.Millisecond), time.Unix(0, 0)
	c.Start(now)
	begin, total := now, 0
	for i := range 1000 {
		now = now.Add(time.Duration(i%90) * time.Millisecond)
		first, n := c.Advance(now)
		if first != uint64(total)+1 {
			t.Fatalf("step %d after %d", first, total)
		}
		total += n
	}
	if want := int(now.Sub(begin) / (time.Second / 120)); total != want || c.Tick() != uint64(want) || c.Lost() != 0 {
		t.Errorf("%d steps, tick %d, want %d; lost %v", total, c.Tick(), want, c.Lost())
	}
}

// TestStall: after any stall at most twelve steps follow, and what is lost is known.
func TestStall(t *testing.T) {
	c, now := New(120, 100*time.Millisecond), time.Unix(0, 0)
	c.Start(now)
	if _, n := c.Advance(now.Add(2 * time.Second)); n != 12 || c.Lost() != 1900*time.Millisecond {
		t.Errorf("%d steps, lost %v", n, c.Lost())
	}
	if _, n := c.Advance(now.Add(time.Second)); n != 0 {
		t.Errorf("%d steps while time went back", n)
	}
	c.Start(now.Add(time.Hour))
	if _, n := c.Advance(now.Add(time.Hour)); n != 0 || c.Tick() != 12 {
		t.Errorf("%d steps after a pause, tick %d", n, c.Tick())
	}
}
