package upgrade

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// An address may fail this often: at once, and then one more each time the
// interval is over. A household of players with stale links stays below it.
const (
	failBurst = 20
	failEvery = 3 * time.Second
	// maxAddresses bounds the memory for addresses that failed lately.
	maxAddresses = 4096
)

// failures remembers who failed. The zero value is ready. Addresses are in two
// generations: when the new one is full the old one is forgotten, which costs
// the same however many addresses an attacker has at hand.
type failures struct {
	mu       sync.Mutex
	new, old map[netip.Addr]*rate.Limiter
}

// of returns what is known of an address, or nil. f.mu is held.
func (f *failures) of(a netip.Addr) *rate.Limiter {
	if l := f.new[a]; l != nil {
		return l
	}
	return f.old[a]
}

// add notes a failure and tells whether the address had used up its failures before.
func (f *failures) add(a netip.Addr) (tooMany bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.of(a)
	if l == nil {
		l = rate.NewLimiter(rate.Every(failEvery), failBurst)
	}
	tooMany = !l.Allow()
	if f.new == nil || len(f.new) >= maxAddresses/2 {
		f.new, f.old = make(map[netip.Addr]*rate.Limiter), f.new
	}
	f.new[a] = l
	return tooMany
}

// address is who is held to account for a failure: an IPv4 address, or the
// network that an IPv6 subscriber has to himself.
func address(remote string) netip.Addr {
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
