package sight

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// crowd is players on servers, and the turn. By which packets the rule is accepted, bridge/track tests.
type crowd struct {
	t   testing.TB
	net *Network
	all []*player
}

type player struct {
	*Session
	c       *crowd
	x, y, z float64
	e       int32
	s       uuid.UUID
}

func newCrowd(t testing.TB) *crowd { return &crowd{t: t, net: New()} }

// join puts a player into the overworld of a server that knows it by the proxy's UUID.
func (c *crowd) join(name string) *player {
	p := c.connect(name)
	p.enter("main", p.P)
	p.Login(p.e, "minecraft:overworld", 0)
	return p
}

func (c *crowd) connect(name string) *player {
	p := &player{c: c, e: int32(100 + len(c.all))}
	p.Session = c.net.Session(name, uuid.NewSHA1(uuid.Nil, []byte(name)))
	p.At = func() (x, y, z float64, known bool) { return p.x, p.y, p.z, true }
	c.all = append(c.all, p)
	return p
}

func (p *player) enter(server string, s uuid.UUID) {
	p.s = s
	p.Enter(server, s)
}

func (p *player) body(o *player) { p.Spawn(time.Now(), o.e, o.s, o.x, o.y, o.z) }
func (p *player) gone(o *player) { p.Destroy(o.e) }

// meet gives everybody everybody's entry and body.
func (c *crowd) meet(all ...*player) {
	for _, p := range all {
		for _, o := range all {
			if o != p {
				p.Show(o.s)
				p.body(o)
			}
		}
	}
	c.pass(0)
}

// pass lets time pass.
func (c *crowd) pass(d time.Duration) {
	for end := time.Now().Add(d); ; {
		c.net.Settle(time.Now(), nil)
		left := time.Until(end)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 100*time.Millisecond))
	}
}

// hears returns whether l hears t by distance.
func hears(l, t *player) bool {
	yes := false
	l.EachShown(func(o *Session, apart bool) { yes = yes || o == t.Session && !apart && o.World() == l.World() })
	return yes
}

func (c *crowd) want(l, t *player, want bool) {
	c.t.Helper()
	c.net.Settle(time.Now(), nil)
	if got := hears(l, t); got != want {
		c.t.Fatalf("%s hears %s: %v, want %v; %+v", l.Name, t.Name, got, want, l.Explain(t.Session))
	}
}

func bubble(t *testing.T, fn func(c *crowd)) {
	synctest.Test(t, func(t *testing.T) { fn(newCrowd(t)) })
}

func TestMeet(t *testing.T) {
	bubble(t, func(c *crowd) {
		a, b := c.join("Ann"), c.join("Bob")
		c.want(a, b, false)
		c.meet(a, b)
		c.want(a, b, true)
		c.want(b, a, true)
		b.Leave()
		c.want(a, b, false)

	})
}

// TestOldClientsInNamedWorlds: a client before 1.16 is told a number of whatever world it is in. A player with the body
// of somebody there, or who is that body, is there, where no age says otherwise; and so is a player with the body of
// one who is. Two old clients of one number in two worlds are never taken for neighbours by that.
func TestOldClientsInNamedWorlds(t *testing.T) {
	const number, named, other = "minecraft:overworld", "minecraft:resource", "minecraft:the_nether"
	in := func(p *player, world string, older int64) {
		p.enter("main", p.P)
		p.Login(p.e, world, 0)
		p.Age(older + int64(time.Now().Unix())*20)
	}
	old := func(c *crowd, name string, older int64) *player {
		p := c.connect(name)
		p.ByNumber = true
		in(p, number, older)
		return p
	}
	list := func(all ...*player) {
		for _, p := range all {
			for _, o := range all {
				if p != o {
					p.Show(o.s)
				}
			}
		}
	}
	for _, c := range []struct {
		what       string
		world      string
		older      int64
		young      bool // both have later clients
		both, want bool
	}{
		{what: "one world", world: named, want: true},
		{what: "one world, both bodies", world: named, both: true, want: true},
		{what: "one body against the age", world: named, older: 5000},
		{what: "both bodies against the age", world: named, older: 5000, both: true, want: true},
		{what: "a world that both are told by number", world: other, both: true},
		{what: "two later clients", world: named, young: true, both: true},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(s *crowd) {
				ann, bob := s.connect("Ann"), s.connect("Bob")
				ann.ByNumber = !c.young
				in(ann, number, 0)
				in(bob, c.world, c.older)
				list(ann, bob)
				s.pass(2 * time.Second)
				s.want(ann, bob, false) // nothing says so
				ann.body(bob)
				if c.both {
					bob.body(ann)
					s.pass(0)
					if c.older == 0 {
						s.want(ann, bob, c.want) // at once
					}
				}
				s.pass(1200 * time.Millisecond)
				s.want(ann, bob, c.want)
				s.want(bob, ann, c.want)
				if w := ann.World().Name; c.want != (w == c.world) {
					t.Errorf("her world goes by %q", w)
				}
			})
		})
	}

	bubble(t, func(s *crowd) {
		ann, dan := old(s, "Ann", 0), old(s, "Dan", 0) // in two worlds, of one age
		bob, eve := s.connect("Bob"), s.connect("Eve")
		in(bob, named, 0)
		in(eve, number, 0)
		list(ann, bob, dan, eve)
		bob.body(ann)
		ann.body(bob)
		eve.body(dan)
		dan.body(eve)
		s.pass(time.Second)
		apart := func(all ...*player) {
			t.Helper()
			for _, o := range all {
				for _, d := range []*player{dan, eve} {
					s.want(o, d, false)
					s.want(d, o, false)
				}
			}
		}
		apart(ann, bob)
		s.want(ann, bob, true)
		s.want(dan, eve, true)

		cid := old(s, "Cid", 0) // beside Ann, whose body alone Cid has
		list(ann, bob, cid, dan, eve)
		cid.body(ann)
		s.pass(1200 * time.Millisecond)
		s.want(cid, bob, true)
		s.want(bob, cid, true)
		apart(ann, bob, cid)

		bob.Leave() // nobody is there any longer who is told its name
		s.pass(time.Second)
		s.want(ann, cid, true)
		apart(ann, cid)
		ann.Respawn(number, 0) // in the world of Dan
		cid.gone(ann)
		ann.Age(int64(time.Now().Unix()) * 20)
		s.pass(time.Second)
		s.want(ann, cid, false)
		s.want(ann, dan, true)
		ann.body(eve)
		eve.body(ann)
		cid.body(ann) // one thing with Ann's number does not take Ann away from those around
		s.pass(2 * time.Second)
		s.want(ann, cid, false)
		s.want(ann, eve, true)
		cid.gone(ann)

		in(bob, named, 0) // and who was taken for somebody there by mistake is not kept there
		list(ann, bob, cid, dan, eve)
		for _, o := range []*player{ann, eve} {
			o.gone(dan)
			dan.gone(o)
		}
		ann.Respawn(number, 0)
		bob.body(dan)
		s.pass(time.Second)
		s.want(bob, dan, true)
		bob.gone(dan)
		dan.body(eve)
		s.pass(time.Second)
		s.want(dan, eve, true)
		s.want(dan, bob, false)
		s.consistent()
	})
}

// TestBodyAheadOfARespawn: a body comes by another connection than the respawn of its player, and may be ahead of it.
// It is one in the new world all the same, and one that went by then, or came long before, is none.
func TestBodyAheadOfARespawn(t *testing.T) {
	const number, named = "minecraft:overworld", "minecraft:resource"
	for _, c := range []struct {
		what  string
		ahead time.Duration
		gone  bool
		want  bool
	}{
		{"behind", -50 * time.Millisecond, false, true},
		{"just ahead", 50 * time.Millisecond, false, true},
		{"of the world before", 50 * time.Millisecond, true, false},
		{"long before", 2 * ahead, false, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble(t, func(s *crowd) {
				ann, bob := s.connect("Ann"), s.connect("Bob")
				ann.ByNumber = true
				for p, world := range map[*player]string{ann: number, bob: named} {
					p.enter("main", p.P)
					p.Login(p.e, world, 0)
				}
				bob.Show(ann.s) // whom Ann does not see
				s.pass(2 * time.Second)
				s.want(bob, ann, false)
				if c.ahead > 0 {
					bob.body(ann)
					s.pass(c.ahead)
				}
				ann.Respawn(number, 0)
				if c.ahead <= 0 {
					s.pass(-c.ahead)
					bob.body(ann)
				}
				if c.gone {
					bob.gone(ann)
				}
				s.pass(time.Second)
				s.want(bob, ann, c.want)
				s.consistent()
			})
		})
	}
}

// Each player who has such a body knows of it. Here several have it. Nobody sees them, and their clients are told no
// names of worlds: they learn from the body where they are themselves.
func TestBodyAheadOfARespawnForSeveral(t *testing.T) {
	bubble(t, func(s *crowd) {
		ann := s.connect("Ann")
		ann.enter("main", ann.P)
		ann.Login(ann.e, "minecraft:overworld", 0)
		var all []*player
		for i := range 12 {
			p := s.connect(fmt.Sprint("p", i))
			p.ByNumber = true
			p.enter("main", p.P)
			p.Login(p.e, "minecraft:overworld", 0)
			p.Show(ann.s)
			all = append(all, p)
		}
		s.pass(2 * time.Second)
		for _, p := range all {
			p.body(ann)
		}
		ann.Respawn("minecraft:resource", 0)
		s.pass(700 * time.Millisecond)
		for _, p := range all {
			s.want(p, ann, true)
		}
		s.consistent()
	})
}

// Acceptance 20: a thousand sessions with all entries and 60 bodies each are below 2 MB, a body event below 1 µs.
func TestVisibility20Memory(t *testing.T) {
	before := heap()
	c, all := thousand(t, 1000)
	if used := heap() - before; used > 2_000_000 {
		t.Errorf("1,000 sessions hold %d bytes of sight, at most 2 MB", used)
	} else {
		t.Logf("%d bytes, %.2f a pair", used, float64(used)/1e6)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(all)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func thousand(t testing.TB, n int) (*Network, []*Session) {
	net := New()
	all := make([]*Session, n)
	ids := make([]uuid.UUID, n)
	for i := range all {
		ids[i] = uuid.UUID{1, byte(i), byte(i >> 8)}
		all[i] = net.Session("x", ids[i])
		all[i].Enter("main", ids[i])
		all[i].Login(int32(i), "w", 0)
	}
	for i, s := range all {
		s.Show(ids...)
		for k := 1; k <= 30; k++ { // of those behind and ahead: who has a body of somebody is seen, too
			for _, o := range []int{(i + k*7) % n, (i + n - k*7) % n} {
				s.Spawn(time.Now(), int32(o), ids[o], 0, 0, 0)
			}
		}
	}
	net.Settle(time.Now().Add(2*time.Second), nil)
	return net, all
}

func BenchmarkBody(b *testing.B) {
	_, all := thousand(b, 1000)
	for i := 0; b.Loop(); i++ {
		s := all[i%1000]
		s.Destroy(int32((i + 7) % 1000))
		s.Spawn(time.Now(), int32((i+7)%1000), all[(i+7)%1000].P, 0, 0, 0)
	}
}

func BenchmarkOtherEntity(b *testing.B) {
	_, all := thousand(b, 1000)
	for i := 0; b.Loop(); i++ {
		s := all[i%1000]
		s.Spawn(time.Now(), int32(i%1000+5000), uuid.UUID{9, 9, byte(i)}, 0, 0, 0)
		s.Destroy(int32(i%1000 + 5000))
	}
}

func BenchmarkSettle(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			net, all := thousand(b, n)
			now := time.Now().Add(2 * time.Second)
			for b.Loop() {
				for _, s := range all {
					s.seated.Load().v.mark(s.seated.Load())
				}
				net.Settle(now, nil)
			}
		})
	}
}
