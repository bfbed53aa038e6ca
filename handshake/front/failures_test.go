package front

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

const (
	burst = 20
	every = 4 * time.Second
)

func TestFailuresAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Failures{Burst: burst, Every: every}
		a, b := Address("192.0.2.1:5"), Address("192.0.2.2:5")
		for range burst {
			if f.Add(a) {
				t.Fatal("too soon")
			}
		}
		if !f.Add(a) || f.Add(b) {
			t.Fatal("not the one address")
		}
		time.Sleep(every + time.Millisecond)
		if f.Add(a) {
			t.Fatal("not forgiven")
		}
		if !f.Add(a) {
			t.Fatal("forgiven more than one")
		}
		if w := f.Wait(a); w.Round(time.Millisecond) != every-time.Millisecond {
			t.Errorf("waits %v", w)
		}
		if w := f.Wait(b); w != 0 {
			t.Errorf("another waits %v", w)
		}
		time.Sleep(every / 2)
		if w := f.Wait(a); w.Round(time.Millisecond) != every/2-time.Millisecond {
			t.Errorf("then waits %v", w)
		}
	})
}

func TestFailuresAreBounded(t *testing.T) {
	f := Failures{Burst: burst, Every: every}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	bad := addr(1 << 20)
	for i := range 3 * maxAddresses {
		f.Add(addr(i))
		if i%1000 == 0 {
			f.Add(bad) // one that goes on is not forgotten
		}
		if len(f.new)+len(f.old) > maxAddresses {
			t.Fatalf("%d addresses", len(f.new)+len(f.old))
		}
	}
	for range burst {
		f.Add(bad)
	}
	if !f.Add(bad) || f.Add(addr(0)) {
		t.Error("remembers the wrong ones")
	}
}

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80":                  "192.0.2.1",
		"[::ffff:192.0.2.1]:80":         "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:80":     "2001:db8:1:2::",
		"[fe80::1%eth0]:80":             "fe80::",
		"pipe":                          "invalid IP",
		"":                              "invalid IP",
		"[2001:db8:1:2:ffff:4:5:6]:999": "2001:db8:1:2::",
	} {
		if got := Address(remote).String(); got != want {
			t.Errorf("%q: %s, want %s", remote, got, want)
		}
	}
}
