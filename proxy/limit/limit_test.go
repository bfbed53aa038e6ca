package limit

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func allow(n *Networks, addr string) bool { return n.Allow(netip.MustParseAddr(addr)) }

// count says how many of tries events addr gets through right now.
func count(n *Networks, addr string, tries int) (got int) {
	for range tries {
		if allow(n, addr) {
			got++
		}
	}
	return got
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetworks(Rate{PerSecond: 5, Burst: 20}, false, nil)
		if got := count(n, "203.0.113.1", 100); got != 20 {
			t.Errorf("burst let %d through, want 20", got)
		}
		time.Sleep(time.Second)
		if got := count(n, "203.0.113.1", 100); got != 5 {
			t.Errorf("after one second %d, want 5", got)
		}
		// Refusals must not push the next permission away.
		time.Sleep(200 * time.Millisecond)
		if got := count(n, "203.0.113.1", 100); got != 1 {
			t.Errorf("after 200 ms %d, want 1", got)
		}
		time.Sleep(time.Hour)
		if got := count(n, "203.0.113.1", 100); got != 20 {
			t.Errorf("after an hour %d, want the burst of 20 again", got)
		}
	})
}

func TestSlowRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetworks(Rate{PerSecond: 0.4, Burst: 3}, false, nil)
		if got := count(n, "2001:db8::1", 10); got != 3 {
			t.Fatalf("burst let %d through, want 3", got)
		}
		time.Sleep(2499 * time.Millisecond)
		if allow(n, "2001:db8::1") {
			t.Fatal("a fourth login after 2.499 s")
		}
		time.Sleep(time.Millisecond)
		if !allow(n, "2001:db8::1") {
			t.Fatal("no login after 2.5 s")
		}
	})
}

func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		single bool
		same   bool
	}{
		{"192.0.2.1", "192.0.2.254", false, true},
		{"192.0.2.1", "192.0.3.1", false, false},
		{"192.0.2.1", "192.0.2.2", true, false},
		{"192.0.2.1", "::ffff:192.0.2.1", true, true},
		{"192.0.2.1", "::ffff:192.0.2.77", false, true},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true, true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false, false},
		{"fe80::1%eth0", "fe80::2%eth1", false, true},
		{"::1", "0.0.0.0", false, false},
		{"::1", "0.0.0.1", true, false},
	} {
		n := NewNetworks(Rate{PerSecond: 0.001, Burst: 1}, c.single, nil)
		if !allow(n, c.a) || allow(n, c.a) {
			t.Fatalf("%s: a burst of one is not one", c.a)
		}
		if got := !allow(n, c.b); got != c.same {
			t.Errorf("%s and %s (single %v): one network = %v, want %v", c.a, c.b, c.single, got, c.same)
		}
	}
}

func TestExempt(t *testing.T) {
	n := NewNetworks(Rate{PerSecond: 0.001, Burst: 1}, false, []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:172.16.0.0/108"), netip.MustParsePrefix("fd00::/8"),
	})
	for _, a := range []string{"10.1.2.3", "::ffff:10.1.2.3", "172.31.0.9", "fd12::1"} {
		if got := count(n, a, 50); got != 50 {
			t.Errorf("%s: %d of 50, want all", a, got)
		}
	}
	for _, a := range []string{"11.0.0.1", "172.32.0.1", "fe00::1"} {
		if got := count(n, a, 50); got != 1 {
			t.Errorf("%s: %d of 50, want 1", a, got)
		}
	}
	if n.Allow(netip.Addr{}) {
		t.Error("an invalid address was let in")
	}
}

func TestNoLimit(t *testing.T) {
	if got := count(NewNetworks(Rate{}, false, nil), "192.0.2.1", 1000); got != 1000 {
		t.Errorf("no limit let %d of 1000 through", got)
	}
	b := NewBucket(Rate{})
	for range 1000 {
		if !b.Allow() {
			t.Fatal("no limit refused")
		}
	}
}

// TestManyNetworks: half as many networks as slots are all remembered well enough to stay limited, and four times as
// many neither grow the table nor lock out a newcomer.
func TestManyNetworks(t *testing.T) {
	n := NewNetworks(Rate{PerSecond: 0.0001, Burst: 1}, false, nil)
	addr := func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(i>>16) + 1, byte(i >> 8), byte(i), 1})
	}
	const some = Slots / 4
	for i := range some {
		if !n.Allow(addr(i)) {
			t.Fatalf("newcomer %d refused", i)
		}
	}
	again := 0
	for i := range some {
		if n.Allow(addr(i)) {
			again++
		}
	}
	if again > some/100 {
		t.Errorf("%d of %d networks were forgotten with the table a quarter full", again, some)
	}
	for i := range 4 * Slots {
		if !n.Allow(addr(some + i)) {
			t.Fatalf("newcomer %d refused in a full table", i)
		}
	}
	if len(n.sets)*ways != Slots {
		t.Errorf("the table has %d slots, want %d", len(n.sets)*ways, Slots)
	}
}

// TestClock: in a full set, a network that keeps coming outlives ones that came once.
func TestClock(t *testing.T) {
	var s set
	const now, ahead = 100, 1000
	for k := uint64(1); k <= ways; k++ {
		*s.find(k, now) = slot{key: k, tat: ahead, used: true}
	}
	for k := uint64(100); k < 100+5*ways; k++ {
		*s.find(k, now) = slot{key: k, tat: ahead, used: true}
		s.find(3, now).used = true
		if s.find(3, now).tat != ahead {
			t.Fatalf("the busy network was pushed out by %d", k)
		}
	}
	// A bucket that is full again is given up before any that still owes.
	s.find(3, now).tat = now
	s.find(7777, now)
	for _, x := range s.slots {
		if x.key == 3 {
			t.Error("a full bucket was kept and an owing one forgotten")
		}
	}
}

func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBucket(Rate{PerSecond: 100, Burst: 10})
		for round, want := range []int{10, 5} {
			var got atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 50 {
						if b.Allow() {
							got.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if int(got.Load()) != want {
				t.Errorf("round %d let %d through, want %d", round, got.Load(), want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestWait: a refusal tells how long to wait, neither a moment too short nor, alone on the network, too long.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []Rate{{PerSecond: 0.4, Burst: 3}, {PerSecond: 5, Burst: 20}, {PerSecond: 100, Burst: 1}} {
			n, a := NewNetworks(rate, false, nil), netip.MustParseAddr("192.0.2.1")
			for range rate.Burst {
				if wait := n.Take(a); wait != 0 {
					t.Fatal(rate, wait)
				}
			}
			for range 3 {
				time.Sleep(time.Millisecond)
				wait := n.Take(a)
				if wait <= 0 || wait > time.Duration(float64(time.Second)/rate.PerSecond) {
					t.Fatal(rate, wait)
				}
				time.Sleep(wait - 1)
				if n.Take(a) == 0 {
					t.Fatal("too long", rate, wait)
				}
				time.Sleep(time.Nanosecond)
				if again := n.Take(a); again != 0 {
					t.Fatal("too short", rate, wait, again)
				}
			}
		}
		if wait := NewNetworks(Rate{}, false, nil).Take(netip.Addr{}); wait <= 0 {
			t.Error("no address is let in")
		}
	})
}

// TestWaitChargesNobody: who asks how long somebody has to wait takes nothing from them.
func TestWaitChargesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetworks(Rate{PerSecond: 1, Burst: 2}, true, nil)
		a := netip.MustParseAddr("192.0.2.1")
		for range 10 {
			if d := n.Wait(a); d != 0 {
				t.Fatalf("to wait: %v", d)
			}
		}
		n.Take(a)
		n.Take(a)
		for range 10 {
			if d := n.Wait(a); d != time.Second {
				t.Fatalf("to wait: %v", d)
			}
		}
		time.Sleep(time.Second)
		if n.Wait(a) != 0 || n.Take(a) != 0 || n.Wait(a) == 0 {
			t.Error("waiting does not help, or too much")
		}
	})
}

func TestConcurrent(t *testing.T) {
	n := NewNetworks(Rate{PerSecond: 0.001, Burst: 50}, false, nil)
	var got [16]atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 16 * 100 {
				if n.Allow(netip.AddrFrom4([4]byte{198, 51, byte(i % 16), 1})) {
					got[i%16].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i := range got {
		if got[i].Load() != 50 {
			t.Errorf("network %d got %d, want 50", i, got[i].Load())
		}
	}
}

func TestNoAllocation(t *testing.T) {
	n := NewNetworks(Rate{PerSecond: 5, Burst: 20}, false, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	b, i := NewBucket(Rate{PerSecond: 5, Burst: 20}), uint32(0)
	if got := testing.AllocsPerRun(1000, func() {
		i += 7919
		n.Allow(netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1}))
		n.Allow(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 6: byte(i >> 8), 7: byte(i)}))
		b.Allow()
	}); got != 0 {
		t.Errorf("%v allocations per check, want none", got)
	}
}

func BenchmarkAllow(b *testing.B) {
	for _, networks := range []int{1, 1 << 10, 1 << 18} {
		b.Run(fmt.Sprint(networks), func(b *testing.B) {
			n := NewNetworks(Rate{PerSecond: 5, Burst: 20}, false, nil)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % networks
				n.Allow(netip.AddrFrom4([4]byte{byte(i>>16) + 1, byte(i >> 8), byte(i), 1}))
			}
		})
	}
}

// TestSet: a change of the rate counts for networks that are known already.
func TestSet(t *testing.T) {
	n := NewNetworks(Rate{}, false, nil)
	count := func(addr string, tries int) (allowed int) {
		for range tries {
			if n.Allow(netip.MustParseAddr(addr)) {
				allowed++
			}
		}
		return allowed
	}
	if got := count("192.0.2.1", 10); got != 10 {
		t.Errorf("without a rate %d of 10 pass", got)
	}
	slow := Rate{PerSecond: 0.001, Burst: 2}
	n.Set(slow, nil)
	if got := count("192.0.2.1", 10); got != 2 {
		t.Errorf("with a burst of 2 %d pass", got)
	}
	n.Set(slow, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	if got := count("192.0.2.1", 10); got != 10 {
		t.Errorf("exempt now, %d of 10 pass", got)
	}
	n.Set(slow, nil)
	if got := count("192.0.2.1", 10); got != 0 {
		t.Errorf("what was used up is forgotten: %d pass", got)
	}
}
