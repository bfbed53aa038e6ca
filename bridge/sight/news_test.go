package sight

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

// known is what a reader of the news knows of everybody's sight.
type known map[*Session]map[*Session]bool // apart

func (k known) read(n *Network) (took []*Session) {
	for s := n.Next(); s != nil; s = n.Next() {
		took = append(took, s)
		if k[s] == nil {
			k[s] = map[*Session]bool{}
		}
		if whole := s.News(func(o *Session, shown, apart bool) {
			if delete(k[s], o); shown {
				k[s][o] = apart
			}
		}); whole {
			clear(k[s])
			s.EachShown(func(o *Session, apart bool) { k[s][o] = apart })
		}
	}
	return took
}

// A reader of the news, and no more than these, knows whom everybody is shown.
func TestNewsAreEnough(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	bubble(t, func(c *crowd) {
		k := known{}
		for i := range 100 { // more than are kept apart
			c.join(fmt.Sprint("p", i))
		}
		public := map[*Session]bool{}
		for step := range 3000 {
			p, o := c.all[rnd.IntN(len(c.all))], c.all[rnd.IntN(len(c.all))]
			switch rnd.IntN(12) {
			case 0, 1, 2:
				p.Show(o.s)
			case 3:
				p.Hide(o.s)
			case 4, 5:
				p.body(o)
			case 6:
				p.gone(o)
			case 7:
				if rnd.IntN(10) == 0 {
					p.Leave()
				} else {
					p.Respawn(fmt.Sprint("w", rnd.IntN(2)), int64(rnd.IntN(2)))
				}
			case 8:
				if p.Server() == "" || rnd.IntN(10) == 0 {
					p.enter(fmt.Sprint("s", rnd.IntN(2)), p.P)
					p.Login(p.e, "w0", 0)
				}
			case 9:
				if rnd.IntN(10) == 0 {
					for _, o := range c.all {
						p.Show(o.P)
					}
				}
			case 10:
				if rnd.IntN(20) == 0 {
					p.HideAll()
				}
			case 11:
				if rnd.IntN(20) == 0 {
					p.Outside()
				} else if rnd.IntN(20) == 0 {
					p.Login(int32(1000+step), "w0", 0)
				}
			}
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
			c.net.Settle(time.Now(), nil)
			if step%3 > 0 {
				continue
			}
			k.read(c.net)
			for _, l := range c.all {
				is := map[*Session]bool{}
				l.EachShown(func(o *Session, apart bool) { is[o] = apart })
				if len(is) != len(k[l.Session]) {
					t.Fatalf("step %d: %s is shown %d, the news say %d", step, l.Name, len(is), len(k[l.Session]))
				}
				for o, apart := range is {
					if was, ok := k[l.Session][o]; !ok || was != apart {
						t.Fatalf("step %d: %s is shown %s, apart %v; the news say %v, %v", step, l.Name, o.Name, apart, ok, was)
					}
				}
				to := 0
				l.EachShownTo(func(o *Session, apart bool) {
					if to++; k[o][l.Session] != apart {
						t.Fatalf("step %d: %s is shown to %s", step, l.Name, o.Name)
					}
				})
				for _, o := range c.all {
					if _, ok := k[o.Session][l.Session]; ok {
						to--
					}
				}
				if to != 0 {
					t.Fatalf("step %d: %s is shown to %d more than know him", step, l.Name, to)
				}
			}
			c.net.Revealed(func(s *Session) { public[s] = s.Public() })
			for _, p := range c.all {
				if public[p.Session] != p.Public() {
					t.Fatalf("step %d: %s is public: %v", step, p.Name, p.Public())
				}
			}
			c.consistent()
		}
	})
}

// consistent compares what is kept with what it is made of.
func (c *crowd) consistent() {
	for _, v := range c.net.servers {
		pairs := 0
		for _, q := range v.seats {
			if q == nil {
				continue
			}
			count := q.shown.count()
			pairs += count
			if int(q.count) != count || q.in != v.in.has(q.slot) {
				c.t.Fatalf("%s is shown %d and counts %d", q.Name, count, q.count)
			}
			for _, o := range v.seats {
				if o == nil {
					continue
				}
				if q.hasBody(o.slot) != o.seenBy.has(q.slot) || q.shown.has(o.slot) != o.shownTo.has(q.slot) {
					c.t.Fatalf("%s and %s: one side says something else", q.Name, o.Name)
				}
			}
			listed := 0
			for _, o := range v.seats {
				if o != nil && o.entryOf.has(q.slot) {
					listed++
				}
			}
			if int(q.listedBy) != listed {
				c.t.Fatalf("%d have an entry of %s, and it counts %d", listed, q.Name, q.listedBy)
			}
			for _, b := range q.odd {
				if v.seats[b.slot] == nil {
					c.t.Fatalf("%s has a body of nobody", q.Name)
				}
			}
		}
		if pairs != v.pairs {
			c.t.Fatalf("%d pairs, %d counted", pairs, v.pairs)
		}
	}
}

// One who comes and goes among a thousand is news of one to each, and whoever is gone for good is none.
func TestNewsAreOfWhatHasChanged(t *testing.T) {
	bubble(t, func(c *crowd) {
		all := make([]*player, 200)
		for i := range all {
			all[i] = c.join(fmt.Sprint("p", i))
		}
		c.meet(all...)
		k := known{}
		k.read(c.net)
		if got := k.read(c.net); got != nil {
			t.Fatalf("%d are news without anything new", len(got))
		}
		newcomer := c.join("Eve")
		for _, p := range all {
			p.Show(newcomer.s)
		}
		c.pass(0)
		said := 0
		for s := c.net.Next(); s != nil; s = c.net.Next() {
			if whole := s.News(func(*Session, bool, bool) { said++ }); whole && s != newcomer.Session {
				t.Fatalf("all of %s is read again", s.Name)
			}
		}
		if said != len(all) {
			t.Errorf("%d news of one who is shown to %d", said, len(all))
		}
		newcomer.Close()
		said = 0
		for s := c.net.Next(); s != nil; s = c.net.Next() {
			if whole := s.News(func(*Session, bool, bool) { said++ }); whole || s == newcomer.Session {
				t.Fatalf("%s is news: %v", s.Name, whole)
			}
		}
		if said != len(all) {
			t.Errorf("%d news of one who has left %d", said, len(all))
		}
		newcomer.Again()
		if c.net.news.first != nil || c.net.news.revealed[newcomer.Session] == struct{}{} && len(c.net.news.revealed) > len(all) {
			t.Error("who is gone for good is news")
		}
	})
}

// What the taps leave is what a player's list and bodies are, whatever ids come up twice.
func TestOddBodies(t *testing.T) {
	bubble(t, func(c *crowd) {
		a, b := c.join("Ann"), c.join("Bob")
		a.Spawn(time.Now(), 500, b.s, 0, 0, 0) // by the UUID alone
		c.want(a, b, true)
		a.Spawn(time.Now(), b.e, uuid.Nil, 0, 0, 0)
		a.Destroy(500)
		c.pass(time.Second)
		c.want(a, b, true)
		b.Login(777, "minecraft:overworld", 0) // another entity: what is left of the old one is still there
		c.pass(time.Second)
		c.want(a, b, true)
		cid := c.connect("Cid")
		cid.enter("main", cid.P)
		cid.Login(b.e, "minecraft:overworld", 0) // under Bob's old id
		c.pass(time.Second)
		c.want(a, b, true)
		c.want(a, cid, false)
		a.Destroy(b.e)
		c.pass(time.Second)
		c.want(a, b, false)
		c.consistent()
	})
}
