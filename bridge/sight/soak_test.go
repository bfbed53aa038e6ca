package sight

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// somebody is a player with the truth about them.
type somebody struct {
	*player
	server, world int
	vanished      bool
	back          time.Time // when a skin refresh ends
}

// TestSoak has 60 players vanish, come back, refresh skins, switch worlds and servers at random, beside a model that
// knows the truth: nobody hidden is heard for longer than 0.8 s, nobody shown is silent for longer than 1 s. A third
// has clients that are told no names of worlds. The time is the bubble's: a minute, or with EARSHOT_LONG ten. itest has
// the same for the whole program.
func TestSoak(t *testing.T) {
	lasts := time.Minute
	if os.Getenv("EARSHOT_LONG") != "" {
		lasts = 10 * time.Minute
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := newCrowd(t)
		born := time.Now()
		var all []*somebody
		sees := func(l, o *somebody) bool { return l != o && l.server == o.server && !o.vanished && o.back.IsZero() }
		show := func(l, o *somebody) {
			l.Show(o.P)
			if l.world == o.world {
				l.body(o.player)
			}
		}
		hide := func(l, o *somebody) {
			l.Hide(o.P)
			l.gone(o.player)
		}
		// On one server worlds have names of their own, of which old clients are not told.
		name := func(p *somebody) string {
			if p.server == 1 && p.world == 1 && !p.ByNumber {
				return "minecraft:resource"
			}
			return "minecraft:overworld"
		}
		age := func(p *somebody) { p.Age(int64(time.Since(born).Seconds()*20) + int64(p.world)*5000) }
		arrive := func(p *somebody) {
			p.enter(fmt.Sprint("s", p.server), p.P)
			p.Login(p.e, name(p), 0)
			age(p)
			for _, o := range all {
				if sees(p, o) {
					show(p, o)
				}
				if sees(o, p) {
					show(o, p)
				}
			}
		}
		for i := range 60 {
			p := &somebody{player: c.connect(fmt.Sprint("p", i)), server: rnd.IntN(3), world: rnd.IntN(2)}
			p.ByNumber = i%3 == 0
			all = append(all, p)
			arrive(p)
		}
		leave := func(p *somebody) {
			for _, o := range all {
				if o != p && o.server == p.server {
					hide(o, p)
				}
			}
		}
		type mistake struct {
			since time.Time
			truth bool
		}
		wrong := map[[2]int]mistake{}
		for step := 0; time.Since(born) < lasts; step++ {
			p := all[rnd.IntN(len(all))]
			switch rnd.IntN(6) {
			case 0, 1:
				p.vanished = !p.vanished
				for _, o := range all {
					if o != p && o.server == p.server && p.back.IsZero() {
						if p.vanished {
							hide(o, p)
						} else {
							show(o, p)
						}
					}
				}
			case 2:
				if !p.vanished && p.back.IsZero() {
					leave(p)
					p.back = time.Now().Add(100 * time.Millisecond)
				}
			case 3:
				for _, o := range all {
					if o != p && o.server == p.server {
						o.gone(p.player)
					}
				}
				p.world = 1 - p.world
				p.Respawn(name(p), 0)
				age(p)
				for _, o := range all {
					if o.world == p.world {
						if sees(p, o) {
							p.body(o.player)
						}
						if sees(o, p) {
							o.body(p.player)
						}
					}
				}
			case 4:
				leave(p)
				p.server = rnd.IntN(3)
				arrive(p)
			}
			for _, p := range all {
				if !p.back.IsZero() && !time.Now().Before(p.back) {
					p.back = time.Time{}
					for _, o := range all {
						if sees(o, p) {
							show(o, p)
						}
					}
				}
				if step%10 == 0 {
					age(p)
				}
			}
			c.net.Settle(time.Now(), nil)
			for i, l := range all {
				heard := map[*Session]bool{}
				l.EachShown(func(o *Session, apart bool) { heard[o] = !apart && o.World() == l.World() })
				for k, o := range all {
					if l == o {
						continue
					}
					key := [2]int{i, k}
					truth := l.server == o.server && l.world == o.world && !o.vanished
					if truth == heard[o.Session] {
						delete(wrong, key)
						continue
					}
					if was, ok := wrong[key]; !ok || was.truth != truth {
						wrong[key] = mistake{time.Now(), truth}
					}
					d := time.Since(wrong[key].since)
					if truth && !heard[o.Session] && d > time.Second || !truth && heard[o.Session] && d > 800*time.Millisecond {
						t.Fatalf("after %v: %s hears %s: %v, the opposite is true for %v; %+v", time.Since(born), l.Name, o.Name, heard[o.Session], d, l.Explain(o.Session))
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}
