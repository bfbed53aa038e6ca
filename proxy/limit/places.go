package limit

import (
	"net/netip"
	"sync"
)

// Bounds say how many may hold a place at once. Zero or less means no bound.
type Bounds struct {
	All     int // together
	Wide    int // of an IPv4 /16 or IPv6 /48
	Network int // of an IPv4 /24 or IPv6 /64
}

// Shares returns Bounds of so many in all. A wide network may have half of them and a network a quarter: the owner of
// one or two networks cannot take all places, and a crowd at one address still finds some.
func Shares(all int) Bounds {
	return Bounds{All: all, Wide: (all + 1) / 2, Network: (all + 3) / 4}
}

// Places bounds how many strangers are dealt with at once: in all, and for each network and wide network. Where a bound
// is reached, the one that has been silent for the longest goes for the newcomer; so those who only sit there never
// keep others out. It is safe for concurrent use, and takes memory only for those that are in.
type Places struct {
	mu     sync.Mutex
	bounds Bounds
	exempt []netip.Prefix
	all    room
	rooms  map[netip.Prefix]*room
}

// Place is one of them. The zero Place belongs to nobody. It must not be copied while it is taken.
type Place struct {
	evict  func()
	rooms  [levels]*room
	ring   [levels]links // of those that are silent
	keys   [levels]netip.Prefix
	in     bool
	silent bool
}

// The levels at which places are counted.
const (
	inAll = iota
	inWide
	inNetwork
	levels
)

// room holds the places of one network. The silent ones are in a list, the longest silent first.
type room struct {
	n           int
	first, last *Place
}

type links struct{ prev, next *Place }

// NewPlaces returns places within these bounds.
func NewPlaces(b Bounds) *Places { return &Places{bounds: b, rooms: map[netip.Prefix]*room{}} }

// Set changes the bounds, and the networks that are only counted in all. Nobody who is in goes.
func (p *Places) Set(b Bounds, exempt []netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bounds, p.exempt = b, nil
	for _, e := range exempt {
		p.exempt = append(p.exempt, fold(e))
	}
}

// Now returns how many are in.
func (p *Places) Now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.n
}

// Enter takes a place for somebody at addr, who is silent from now on, and reports whether there was one. evict is
// called once, from another goroutine, if the place is given to somebody else; it must not wait for anything. A nil
// evict is for connections that are never silent. An invalid addr belongs to no network.
func (p *Places) Enter(x *Place, addr netip.Addr, evict func()) bool {
	*x = Place{evict: evict}
	if addr = addr.Unmap().WithZone(""); addr.IsValid() {
		wide, network := 16, 24
		if addr.Is6() {
			wide, network = 48, 64
		}
		x.keys[inWide], _ = addr.Prefix(wide) // cannot fail
		x.keys[inNetwork], _ = addr.Prefix(network)
	}
	p.mu.Lock()
	for _, e := range p.exempt {
		if e.Contains(addr) {
			x.keys = [levels]netip.Prefix{}
		}
	}
	out, ok := p.enter(x)
	p.mu.Unlock()
	for _, o := range out {
		if o != nil {
			o.evict()
		}
	}
	return ok
}

// enter gives x a place and returns those that lose theirs. p.mu is held.
func (p *Places) enter(x *Place) (out [levels]*Place, ok bool) {
	bounds := [levels]int{p.bounds.All, p.bounds.Wide, p.bounds.Network}
	for i := range x.rooms {
		r := &p.all
		if i != inAll {
			if !x.keys[i].IsValid() {
				continue
			}
			r = p.rooms[x.keys[i]]
		}
		if r != nil && bounds[i] > 0 && r.n >= bounds[i] && r.first == nil {
			return out, false
		}
	}
	for i := range x.rooms {
		r := &p.all
		if i != inAll {
			if !x.keys[i].IsValid() {
				continue
			}
			if r = p.rooms[x.keys[i]]; r == nil {
				r = &room{}
				p.rooms[x.keys[i]] = r
			}
		}
		x.rooms[i] = r
		r.n++ // before one goes, so that it is not forgotten as empty
	}
	x.in = true
	for i := levels - 1; i >= 0; i-- { // the narrowest first: one that goes there makes room everywhere
		if r := x.rooms[i]; r != nil && bounds[i] > 0 && r.n > bounds[i] && r.first != nil {
			out[i] = r.first
			p.remove(r.first)
		}
	}
	if x.evict != nil {
		x.listen()
	}
	return out, true
}

// Leave gives the place back. It does nothing when that has been done, or the place is somebody else's.
func (p *Places) Leave(x *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(x)
}

// Spoke notes that the holder of the place has just said something, and is silent from now on.
func (p *Places) Spoke(x *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.in && x.evict != nil {
		x.unlist()
		x.listen()
	}
}

// Busy notes that the holder of the place has nothing to say now; nobody else gets the place meanwhile.
func (p *Places) Busy(x *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.unlist()
}

func (p *Places) remove(x *Place) {
	if !x.in {
		return
	}
	x.unlist()
	x.in = false
	for i, r := range x.rooms {
		if r == nil {
			continue
		}
		if r.n--; r.n == 0 && i != inAll {
			delete(p.rooms, x.keys[i])
		}
	}
}

// listen puts x at the end of the lists of silent places.
func (x *Place) listen() {
	x.silent = true
	for i, r := range x.rooms {
		if r == nil {
			continue
		}
		x.ring[i] = links{prev: r.last}
		if r.last != nil {
			r.last.ring[i].next = x
		} else {
			r.first = x
		}
		r.last = x
	}
}

// unlist takes x off these lists.
func (x *Place) unlist() {
	if !x.silent {
		return
	}
	x.silent = false
	for i, r := range x.rooms {
		if r == nil {
			continue
		}
		l := x.ring[i]
		if l.prev != nil {
			l.prev.ring[i].next = l.next
		} else {
			r.first = l.next
		}
		if l.next != nil {
			l.next.ring[i].prev = l.prev
		} else {
			r.last = l.prev
		}
		x.ring[i] = links{}
	}
}
