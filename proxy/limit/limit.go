// Package limit bounds what strangers can make the proxy do before anybody has proved to be a player: how often a
// network may connect, ask for the status or log in ([Networks]), how often something may happen at all ([Bucket]), and
// how many strangers may be dealt with at once ([Places]).
//
// A check of a rate never allocates, never blocks except on a short mutex, and never keeps more memory than it was
// given at the start, whatever addresses arrive.
package limit

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Rate says how often something may happen: Burst times at once, then PerSecond times a second. A PerSecond of zero or
// less means no limit, less than once a day counts as once a day; a Burst below one counts as one.
type Rate struct {
	PerSecond float64
	Burst     int
}

// pace is a Rate in the terms of the generic cell rate algorithm: a bucket is one instant, the "theoretical arrival
// time" at which it would be full again.
type pace struct {
	step  int64 // ns one event costs
	slack int64 // ns the arrival time may lie ahead of now
}

func (r Rate) pace() pace {
	if r.PerSecond <= 0 {
		return pace{}
	}
	step := int64(min(float64(time.Second)/r.PerSecond, float64(24*time.Hour)))
	return pace{step: max(step, 1), slack: max(step, 1) * int64(max(r.Burst, 1)-1)}
}

// take returns the arrival time after one more event at now, and whether that event is within the pace. A refused event
// costs nothing: a client that keeps hammering still gets its share.
func (p pace) take(tat, now int64) (int64, bool) {
	tat = max(tat, now)
	if tat-now > p.slack {
		return tat, false
	}
	return tat + p.step, true
}

// Slots is the number of networks a [Networks] remembers. A botnet has to own more networks than this to push an honest
// one out, and a network that is pushed out only gets a full bucket.
const Slots = 1 << 16

const (
	ways   = 8 // slots one network can lie in
	sets   = Slots / ways
	stripe = 64 // sets are locked in this many groups
)

// Networks gives every network its own token bucket. A network is an IPv4 /24 (or a single address, see [NewNetworks])
// or an IPv6 /64; IPv4-mapped IPv6 addresses count as IPv4. It is safe for concurrent use.
type Networks struct {
	rules  atomic.Pointer[rules]
	single bool
	seed   maphash.Seed
	start  time.Time
	locks  [stripe]struct {
		sync.Mutex
		_ [56]byte // one cache line each
	}
	sets []set
}

// rules holds the values that [Networks.Set] sets.
type rules struct {
	pace   pace
	exempt []netip.Prefix
}

// set is a small associative cache with a clock hand of its own.
type set struct {
	slots [ways]slot
	hand  uint8
}

type slot struct {
	key  uint64
	tat  int64 // ns since start; in the past = the bucket is full, the slot is as good as empty
	used bool  // seen since the hand last passed
}

// NewNetworks returns limits of rate per network. single makes every IPv4 address a network of its own instead of its
// /24. Addresses within exempt are never limited.
func NewNetworks(rate Rate, single bool, exempt []netip.Prefix) *Networks {
	n := &Networks{single: single, seed: maphash.MakeSeed(), start: time.Now(), sets: make([]set, sets)}
	n.Set(rate, exempt)
	return n
}

// Set changes the rate and the exempt networks. Used-up tokens stay used up.
func (n *Networks) Set(rate Rate, exempt []netip.Prefix) {
	r := &rules{pace: rate.pace()}
	for _, p := range exempt {
		r.exempt = append(r.exempt, fold(p))
	}
	n.rules.Store(r)
}

// fold turns ::ffff:a.b.c.d/96+n into a.b.c.d/n, so that it contains unmapped addresses.
func fold(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// Allow charges addr's network with one event and reports whether it is within the rate. An invalid address is refused:
// nobody has one by accident.
func (n *Networks) Allow(addr netip.Addr) bool { return n.Take(addr) == 0 }

// noAddress is the wait for somebody without an address.
const noAddress = time.Minute

// Take does as Allow, and returns how long addr's network has to wait until the next event is within the rate; 0: this
// one is.
func (n *Networks) Take(addr netip.Addr) (wait time.Duration) { return n.take(addr, true) }

// Wait returns what Take would, and charges nobody.
func (n *Networks) Wait(addr netip.Addr) (wait time.Duration) { return n.take(addr, false) }

func (n *Networks) take(addr netip.Addr, charge bool) (wait time.Duration) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return noAddress
	}
	r := n.rules.Load()
	if r.pace.step == 0 {
		return 0
	}
	for _, p := range r.exempt {
		if p.Contains(addr) {
			return 0
		}
	}
	key := n.network(addr)
	h := maphash.Comparable(n.seed, key)
	i := h % sets
	now := int64(time.Since(n.start))

	lock := &n.locks[i%stripe]
	lock.Lock()
	s := n.sets[i].find(key, now)
	tat, ok := r.pace.take(s.tat, now)
	if charge {
		s.tat, s.used = tat, true
	}
	wait = time.Duration(s.tat - r.pace.slack - now)
	lock.Unlock()
	if ok {
		return 0
	}
	return wait
}

// network returns the number of addr's network. IPv4 networks get the numbers of IPv6 networks below 0:2::/32, which is
// reserved and never on the wire.
func (n *Networks) network(addr netip.Addr) uint64 {
	if addr.Is4() {
		b := addr.As4()
		v := binary.BigEndian.Uint32(b[:])
		if !n.single {
			v &^= 0xff
		}
		return 1<<32 | uint64(v)
	}
	b := addr.As16()
	return binary.BigEndian.Uint64(b[:8])
}

// find returns key's slot, or makes room for it: first where forgetting loses nothing (a full bucket), else where the
// clock hand finds a slot not seen for a round.
func (s *set) find(key uint64, now int64) *slot {
	var idle *slot
	for i := range s.slots {
		x := &s.slots[i]
		if x.key == key {
			return x
		}
		if idle == nil && x.tat <= now {
			idle = x
		}
	}
	for idle == nil {
		x := &s.slots[s.hand]
		s.hand = (s.hand + 1) % ways
		if x.used {
			x.used = false
			continue
		}
		idle = x
	}
	*idle = slot{key: key}
	return idle
}

// Bucket is one token bucket for everybody together. It is safe for concurrent use.
type Bucket struct {
	pace  pace
	start time.Time
	tat   atomic.Int64
}

// NewBucket returns a full bucket.
func NewBucket(rate Rate) *Bucket { return &Bucket{pace: rate.pace(), start: time.Now()} }

// Allow takes one token and reports whether there was one.
func (b *Bucket) Allow() bool {
	if b.pace.step == 0 {
		return true
	}
	now := int64(time.Since(b.start))
	for {
		old := b.tat.Load()
		tat, ok := b.pace.take(old, now)
		if !ok {
			return false
		}
		if b.tat.CompareAndSwap(old, tat) {
			return true
		}
	}
}
