package front

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxAddresses bounds the memory for addresses that failed lately.
const maxAddresses = 4096

// Failures remembers addresses that failed. An address may fail Burst times at once, and once more each time Every is
// over. Addresses are in two generations: when the new one is full the old one is forgotten, at the same cost however
// many addresses an attacker has. Its methods may be called from any goroutine.
type Failures struct {
	Burst int
	Every time.Duration

	mu       sync.Mutex
	new, old map[netip.Addr]*rate.Limiter
}

// of returns the entry of an address, or nil. f.mu is held.
func (f *Failures) of(a netip.Addr) *rate.Limiter {
	if l := f.new[a]; l != nil {
		return l
	}
	return f.old[a]
}

// Add notes a failure and reports whether the address had used up its failures before.
func (f *Failures) Add(a netip.Addr) (tooMany bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of(a)
	if l == nil {
		l = rate.NewLimiter(rate.Every(f.Every), f.Burst)
	}
	tooMany = !l.Allow()
	if f.new == nil || len(f.new) >= maxAddresses/2 {
		f.new, f.old = make(map[netip.Addr]*rate.Limiter), f.new
	}
	f.new[a] = l
	return tooMany
}

// Wait returns how long it takes until the address may fail again; 0: it may now.
func (f *Failures) Wait(a netip.Addr) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of(a)
	if l == nil {
		return 0
	}
	if missing := 1 - l.Tokens(); missing > 0 {
		return time.Duration(missing * float64(f.Every))
	}
	return 0
}

// Address returns the address to hold to account for a remote address of net/http: an IPv4 address, or the network that
// an IPv6 subscriber has to themselves. It is the zero Addr where there is none to read.
func Address(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	a := ap.Addr().Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // cannot fail
		a = p.Addr()
	}
	return a
}
