package limit

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

// crowd is a Places whose places have names.
type crowd struct {
	*Places
	named   map[string]*Place
	evicted []string
}

func newCrowd(b Bounds) *crowd { return &crowd{Places: NewPlaces(b), named: map[string]*Place{}} }

func (c *crowd) enter(name, addr string) bool {
	a, _ := netip.ParseAddr(addr)
	c.named[name] = new(Place)
	return c.Places.Enter(c.named[name], a, func() { c.evicted = append(c.evicted, name) })
}

// TestOldestSilentGoes: at each level the newcomer gets the place of whoever has said nothing for the longest, there.
func TestOldestSilentGoes(t *testing.T) {
	c := newCrowd(Bounds{All: 4, Wide: 3, Network: 2})
	for _, s := range []struct{ do, addr, goes string }{
		{"a", "192.0.2.1", ""}, {"b", "192.0.2.200", ""},
		{"c", "::ffff:192.0.2.3", "a"}, // the network has its two
		{"d", "192.0.9.1", ""},         // the wide network has its three
		{"e", "192.0.8.1", "b"},
		{"f", "2001:db8::1", ""}, // all are full
		{"g", "198.51.100.1", "c"},
		{"spoke d", "", ""},
		{"h", "203.0.113.1", "e"},
		{"busy f", "", ""},
		{"i", "203.0.114.1", "g"},
		{"leave h", "", ""}, {"leave h", "", ""}, {"leave a", "", ""},
		{"j", "203.0.115.1", ""},
		{"busy d", "", ""}, {"busy i", "", ""}, {"busy j", "", ""},
		{"k", "100.0.0.1", "refused"},
		{"spoke i", "", ""},
		{"l", "100.0.0.1", "i"},
	} {
		c.evicted = nil
		verb, name, two := strings.Cut(s.do, " ")
		got := ""
		switch {
		case verb == "spoke":
			c.Spoke(c.named[name])
		case verb == "busy":
			c.Busy(c.named[name])
		case verb == "leave":
			c.Leave(c.named[name])
		case !two && !c.enter(s.do, s.addr):
			got = "refused"
		}
		if len(c.evicted) > 0 {
			got = strings.Join(c.evicted, " ")
		}
		if got != s.goes {
			t.Fatalf("%s: %q, want %q", s.do, got, s.goes)
		}
	}
}

// TestPlacesOfOneSubscriber: no IPv6 /48 and no IPv4 /16 gets more than its share, however many networks it has, and
// everybody else finds a place although those who have theirs stay silent.
func TestPlacesOfOneSubscriber(t *testing.T) {
	c := NewPlaces(Shares(2048))
	var mine [1 << 12]Place
	gone := 0
	for i := range mine {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, byte(i >> 4), byte(i), 15: 1})
		if i%2 == 0 {
			a = netip.AddrFrom4([4]byte{127, 2, byte(i >> 1), 1})
		}
		c.Enter(&mine[i], a, func() { gone++ })
	}
	if c.Now() != 2048 || gone != 2048 {
		t.Fatalf("%d places, %d were given up", c.Now(), gone)
	}
	var honest Place
	if !c.Enter(&honest, netip.MustParseAddr("192.0.2.1"), func() { t.Error("an honest one had to go") }) {
		t.Error("no place")
	}
	for range 2047 { // the others come again and again
		var p Place
		c.Enter(&p, netip.MustParseAddr("127.2.1.1"), func() {})
	}
	if s := Shares(1); s != (Bounds{1, 1, 1}) {
		t.Error(s)
	}
}

// TestNetworkIsCountedWhileItsLastOneGoes: the one who has to go for the sake of a wide network may be the last of the
// newcomer's own.
func TestNetworkIsCountedWhileItsLastOneGoes(t *testing.T) {
	c := newCrowd(Bounds{Wide: 2, Network: 2})
	c.enter("a", "192.0.2.1")
	c.enter("b", "192.0.3.1")
	c.enter("c", "192.0.2.1")
	c.Set(Bounds{Network: 2}, nil)
	c.enter("d", "192.0.2.1")
	c.Leave(c.named["c"])
	c.enter("e", "192.0.2.1")
	c.enter("f", "192.0.2.1")
	if want := []string{"a", "d"}; !slices.Equal(c.evicted, want) {
		t.Errorf("%v had to go, want %v", c.evicted, want)
	}
}

// TestExemptPlaces: who is exempt, or has no address yet, counts in all and nowhere else.
func TestExemptPlaces(t *testing.T) {
	c := newCrowd(Bounds{})
	c.Set(Bounds{All: 6, Wide: 1, Network: 1}, []netip.Prefix{netip.MustParsePrefix("::ffff:192.0.2.0/120")})
	for _, s := range []struct{ name, addr string }{{"a", "192.0.2.1"}, {"b", "192.0.2.1"}, {"c", ""}, {"d", ""}, {"e", "192.0.3.1"}, {"f", "198.51.100.1"}} {
		if !c.enter(s.name, s.addr) || c.evicted != nil {
			t.Fatal(s, c.evicted)
		}
	}
	if c.enter("g", "192.0.2.1"); !slices.Equal(c.evicted, []string{"a"}) {
		t.Error(c.evicted)
	}
	var told Place
	if c.Set(Bounds{All: 6}, nil); !c.Enter(&told, netip.Addr{}, nil) || c.Now() != 6 {
		t.Error("those who are never silent find no place")
	}
	c.Spoke(&told)
	for range 7 {
		c.enter("x", "")
	}
	if !told.in {
		t.Error("somebody else got the place of one who is never silent")
	}
}

// TestPlacesBalance: whatever happens, in whatever order and at once, counts and lists come out even.
func TestPlacesBalance(t *testing.T) {
	p := NewPlaces(Bounds{All: 40, Wide: 20, Network: 10})
	var wg sync.WaitGroup
	for seed := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			var mine [16]Place
			for range 5000 {
				x := &mine[r.IntN(len(mine))]
				switch r.IntN(4) {
				case 0:
					p.Leave(x)
					p.Enter(x, netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(3)), 1}), func() {})
				case 1:
					p.Leave(x)
				case 2:
					p.Spoke(x)
				default:
					p.Busy(x)
				}
			}
			for i := range mine {
				p.Leave(&mine[i])
			}
		})
	}
	wg.Wait()
	if p.Now() != 0 || len(p.rooms) != 0 || p.all.first != nil || p.all.last != nil {
		t.Errorf("%d places, %d networks, %v", p.Now(), len(p.rooms), p.all)
	}
}

func BenchmarkPlaces(b *testing.B) {
	p := NewPlaces(Shares(2048))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var x Place
		p.Enter(&x, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), 1}), func() {})
		p.Leave(&x)
	}
}
