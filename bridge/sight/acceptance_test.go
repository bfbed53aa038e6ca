package sight

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// The sequences by which the rule is accepted, by their numbers; the packets are read in bridge/track. Ann and Bob have
// equal coordinates, entries and bodies both ways, and ages once a second, unless said.
type scene struct {
	*crowd
	ann, bob *player
	born     time.Time
	rate     float64 // ticks a second
}

// tick is the age of the world of everybody who does not have their own.
func (s *scene) age(p *player) int64 { return p.older + int64(time.Since(s.born).Seconds()*s.rate) }

// lasts lets time pass with reports of ages.
func (s *scene) lasts(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if time.Since(s.born)%time.Second == 0 && s.rate > 0 {
			for _, p := range s.all {
				if p.Server() != "" {
					p.Age(s.age(p))
				}
			}
		}
		s.net.Settle(time.Now(), nil)
		time.Sleep(100 * time.Millisecond)
	}
	s.net.Settle(time.Now(), nil)
}

func scenes(t *testing.T, fn func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{crowd: newCrowd(t), born: time.Now(), rate: 20}
		s.ann, s.bob = s.join("Ann"), s.join("Bob")
		s.meet(s.ann, s.bob)
		s.lasts(2 * time.Second)
		fn(s)
	})
}

func (s *scene) both(want bool) {
	s.t.Helper()
	s.want(s.ann, s.bob, want)
	s.want(s.bob, s.ann, want)
}

func (s *scene) public(p *player, want bool) {
	s.t.Helper()
	s.net.Settle(time.Now(), nil)
	if p.Public() != want {
		s.t.Fatalf("%s is public: %v", p.Name, p.Public())
	}
}

func (p *player) gone(o *player) { p.Destroy(o.e) }

func TestVisibility01OtherUUIDs(t *testing.T) {
	scenes(t, func(s *scene) {
		for _, p := range []*player{s.ann, s.bob} {
			p.enter("other", uuid.NewSHA1(uuid.Max, []byte(p.Name)))
			p.Login(p.e, "minecraft:overworld", 0)
		}
		s.ann.Show(s.bob.s)
		s.bob.Show(s.ann.s)
		s.both(true)
		s.lasts(2 * time.Second)
		s.public(s.ann, true)
	})
}

func TestVisibility02OffTheList(t *testing.T) {
	scenes(t, func(s *scene) {
		s.ann.Hide(s.bob.s)
		s.lasts(5 * time.Second)
		s.both(true)
		s.public(s.bob, true)
	})
}

func TestVisibility03Disguise(t *testing.T) {
	scenes(t, func(s *scene) {
		s.ann.gone(s.bob)
		s.ann.Hide(s.bob.s)
		s.ann.Spawn(s.bob.e, uuid.UUID{7}, 0, 0, 0)
		s.lasts(5 * time.Second)
		s.both(true)
	})
}

func TestVisibility04NPC(t *testing.T) {
	scenes(t, func(s *scene) {
		s.ann.Hide(s.bob.s)
		s.ann.gone(s.bob)
		s.ann.Spawn(9999, s.bob.s, 100, 0, 0)
		s.ann.Spawn(9998, s.bob.s, 1, 0, 0) // nor beside him: the server has shown his UUID under his own id
		s.lasts(time.Second)
		s.want(s.ann, s.bob, false)
		s.want(s.bob, s.ann, true)
	})
}

func TestVisibility05SkinRefresh(t *testing.T) {
	for _, gap := range []time.Duration{0, 50, 250, 1000} {
		scenes(t, func(s *scene) {
			gap *= time.Millisecond
			s.ann.Hide(s.bob.s)
			s.ann.gone(s.bob)
			silent := time.Duration(0)
			for range gap / (50 * time.Millisecond) {
				time.Sleep(50 * time.Millisecond)
				s.net.Settle(time.Now(), nil)
				if !hears(s.ann, s.bob) {
					silent += 50 * time.Millisecond
				}
			}
			s.ann.Show(s.bob.s)
			s.ann.body(s.bob)
			s.both(true)
			if gap < Grace && silent > 0 || silent >= time.Second {
				t.Errorf("%v apart: silent for %v", gap, silent)
			}
		})
	}
}

func TestVisibility06Vanish(t *testing.T) {
	scenes(t, func(s *scene) {
		s.ann.Hide(s.bob.s)
		s.ann.gone(s.bob)
		s.lasts(800 * time.Millisecond)
		s.want(s.ann, s.bob, false)
		s.want(s.bob, s.ann, true)
		s.public(s.bob, false)
		s.public(s.ann, true)
		s.ann.Show(s.bob.s)
		s.both(true)
		s.public(s.bob, true)
		s.ann.body(s.bob)

		cid := s.join("Cid")
		s.meet(s.ann, s.bob, cid)
		s.lasts(2 * time.Second)
		s.ann.Hide(s.bob.s)
		s.ann.gone(s.bob)
		s.lasts(800 * time.Millisecond)
		s.want(cid, s.bob, true)
		s.want(s.ann, s.bob, false)
		s.public(s.bob, false) // a colleague who sees him does not unveil him
	})
}

func TestVisibility07OneSidedAbsence(t *testing.T) {
	scenes(t, func(s *scene) {
		s.apartFar()
		s.bob.x = 10
		s.bob.body(s.ann) // and she never gets his
		s.lasts(2900 * time.Millisecond)
		s.want(s.ann, s.bob, true)
		s.lasts(1100 * time.Millisecond)
		s.want(s.ann, s.bob, false)
		s.want(s.bob, s.ann, true)
		s.ann.body(s.bob)
		s.both(true)
	})
}

// apartFar puts Bob 100 blocks off, where nobody has anybody's body.
func (s *scene) apartFar() {
	s.bob.x = 100
	s.ann.gone(s.bob)
	s.bob.gone(s.ann)
	s.lasts(10 * time.Second)
}

func TestVisibility08Culling(t *testing.T) {
	scenes(t, func(s *scene) {
		s.net.Log = nil
		for range 2 {
			s.ann.gone(s.bob)
			s.bob.gone(s.ann)
			for range 50 {
				s.lasts(100 * time.Millisecond)
				s.both(true)
			}
			s.ann.body(s.bob)
			s.bob.body(s.ann)
			s.lasts(time.Second)
		}
		if v := s.ann.seated.Load().v; !v.culls {
			t.Fatalf("%d points, and it does not cull", v.points)
		}
		s.apartFar()
		s.bob.x = 10
		s.bob.body(s.ann)
		s.lasts(10 * time.Second)
		s.both(true)
	})
}

func TestVisibility09Death(t *testing.T) {
	scenes(t, func(s *scene) {
		s.bob.Dead(true)
		s.ann.gone(s.bob)
		for range 100 {
			s.lasts(100 * time.Millisecond)
			s.both(true)
		}
		s.bob.Respawn("minecraft:overworld", 0)
		s.ann.body(s.bob)
		s.bob.body(s.ann)
		s.lasts(5 * time.Second)
		s.both(true)
	})
}

func TestVisibility10Lag(t *testing.T) {
	scenes(t, func(s *scene) {
		s.ann.older = 10
		s.lasts(10 * time.Second)
		s.both(true)
		s.ann.older = int64(time.Since(s.born).Seconds() * 20)
		s.bob.older = s.ann.older
		s.born, s.rate = time.Now(), 4
		s.lasts(10 * time.Second)
		s.both(true)
		s.rate = 0
		s.lasts(8 * time.Second)
		s.both(true)
	})
}

func TestVisibility11Ages(t *testing.T) {
	scenes(t, func(s *scene) {
		s.bob.older = 5000
		s.bob.Login(s.bob.e, "minecraft:overworld", 0)
		s.bob.Age(s.age(s.bob))
		s.ann.gone(s.bob)
		s.lasts(700 * time.Millisecond)
		s.both(false)
		s.bob.Login(s.bob.e, "minecraft:overworld", 0)
		s.bob.older = 0
		s.bob.Age(s.age(s.bob))
		s.lasts(700 * time.Millisecond)
		s.both(true)
		s.bob.older = 5000
		s.bob.Login(s.bob.e, "minecraft:overworld", 0)
		s.bob.Age(s.age(s.bob))
		s.both(false)
		s.ann.body(s.bob) // a body after all
		s.lasts(time.Second)
		s.both(true)
	})
}

func TestVisibility12Seeds(t *testing.T) {
	for _, c := range []struct {
		what       string
		ann, bob   int64
		body, want bool
	}{{"bodies across equal seeds", 1, 1, true, false}, {"bodies across different ones", 1, 2, true, true}, {"no bodies", 1, 1, false, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := &scene{crowd: newCrowd(t), born: time.Now(), rate: 20}
			s.ann, s.bob = s.connect("Ann"), s.connect("Bob")
			for p, seed := range map[*player]int64{s.ann: c.ann, s.bob: c.bob} {
				p.enter("main", p.P)
				p.Login(p.e, "minecraft:overworld", seed)
			}
			s.ann.Show(s.bob.s)
			s.bob.Show(s.ann.s)
			if c.body {
				s.ann.body(s.bob)
				s.bob.body(s.ann)
			}
			s.lasts(3 * time.Second)
			s.both(true)
			s.ann.gone(s.bob)
			s.bob.Respawn("minecraft:the_nether", 5)
			s.lasts(time.Second)
			s.both(hears(s.ann, s.bob)) // the world's name is another, which voice sees by the place
			s.bob.Respawn("minecraft:overworld", 6)
			s.lasts(2 * time.Second)
			if hears(s.ann, s.bob) != c.want {
				t.Errorf("%s: heard %v", c.what, !c.want)
			}
		})
	}
}

func TestVisibility13NoAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{crowd: newCrowd(t), born: time.Now()}
		s.ann, s.bob = s.join("Ann"), s.join("Bob")
		s.meet(s.ann, s.bob)
		s.lasts(2 * time.Second)
		s.ann.gone(s.bob)
		s.bob.Respawn("minecraft:the_nether", 0)
		s.lasts(time.Second)
		s.bob.Respawn("minecraft:overworld", 0)
		s.lasts(2 * time.Second)
		s.both(false)
		cid := s.join("Cid") // who was never sent a body
		for _, p := range []*player{s.ann, s.bob} {
			p.Show(cid.s)
			cid.Show(p.s)
		}
		s.lasts(5 * time.Second)
		s.want(s.ann, cid, true)
		s.want(cid, s.ann, true)
	})
}

func TestVisibility14PerWorldLists(t *testing.T) {
	scenes(t, func(s *scene) {
		s.bob.Respawn("other:world", 0)
		s.ann.Hide(s.bob.s)
		s.ann.gone(s.bob)
		s.bob.Hide(s.ann.s)
		s.lasts(5 * time.Second)
		s.public(s.ann, true)
		s.public(s.bob, true)
		s.bob.enter("lobby", s.bob.P)
		for range 30 {
			s.lasts(100 * time.Millisecond)
			s.public(s.bob, true)
		}
		s.bob.Login(1, "minecraft:overworld", 0)
		s.lasts(5 * time.Second)
		s.public(s.bob, true)
	})
}

func TestVisibility15HiddenFromTheJoin(t *testing.T) {
	scenes(t, func(s *scene) {
		mod := s.connect("Mod")
		s.public(mod, false)
		mod.enter("main", mod.P)
		mod.Login(mod.e, "minecraft:overworld", 0)
		mod.Show(s.ann.s, s.bob.s)
		mod.body(s.ann)
		mod.body(s.bob)
		for range 100 {
			s.public(mod, false)
			s.lasts(100 * time.Millisecond)
		}
		s.want(mod, s.ann, true)
		s.want(s.ann, mod, false)
	})
}

func TestVisibility16WhoHidesAllTestifiesNothing(t *testing.T) {
	scenes(t, func(s *scene) {
		cid, dan := s.join("Cid"), s.join("Dan")
		s.meet(s.ann, s.bob, cid, dan)
		s.lasts(2 * time.Second)
		s.ann.HideAll()
		for _, p := range []*player{s.bob, cid, dan} {
			s.ann.gone(p)
		}
		s.lasts(5 * time.Second)
		s.public(s.bob, true)
		s.want(cid, s.bob, true)
		s.want(s.ann, s.bob, false)
	})
}

func TestVisibility17OneUUIDForTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{crowd: newCrowd(t), born: time.Now(), rate: 20}
		s.ann, s.bob = s.connect("Ann"), s.connect("Bob")
		cid := s.connect("Cid")
		one := uuid.UUID{5}
		s.ann.enter("main", one)
		s.bob.enter("main", one)
		cid.enter("main", cid.P)
		for _, p := range s.all {
			p.Login(p.e, "minecraft:overworld", 0)
		}
		for _, p := range s.all {
			for _, o := range s.all {
				if p != o {
					p.Show(o.s)
					p.body(o)
				}
			}
		}
		s.lasts(2 * time.Second)
		s.want(cid, s.ann, true)
		s.want(cid, s.bob, true)
		for _, p := range []*player{s.ann, cid} {
			p.Hide(one)
			p.gone(s.bob)
		}
		s.lasts(2 * time.Second)
		s.want(cid, s.ann, true)
		s.want(cid, s.bob, false)
		s.public(s.ann, true)
		s.public(s.bob, false)
	})
}

func TestVisibility18OneAddressTwoNames(t *testing.T) {
	scenes(t, func(s *scene) {
		s.net.SetRules(map[string]Rule{"alias": {As: "main"}}, Rule{})
		cid := s.connect("Cid")
		cid.enter("alias", cid.P)
		cid.Login(cid.e, "minecraft:overworld", 0)
		s.meet(s.ann, s.bob, cid)
		s.lasts(time.Second)
		s.want(s.ann, cid, true)
		s.want(cid, s.bob, true)
	})
}

func TestVisibility19OldAndNewClients(t *testing.T) {
	scenes(t, func(s *scene) { // a client before 573 knows of no seed
		s.bob.Login(s.bob.e, "minecraft:overworld", 77)
		s.bob.body(s.ann)
		s.ann.body(s.bob)
		s.lasts(5 * time.Second)
		s.both(true)
	})
}
