package walk

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/bridge/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plaza is an area of 400 by 250 blocks.
func plaza(change func(*Config)) Config {
	c := Config{
		Server: "survival", World: "minecraft:overworld", From: Point{-200, -100}, To: Point{200, 150}, Spawn: Point{0, 25},
		TickRate: 20, MaxGuests: 5,
	}
	if change != nil {
		change(&c)
	}
	return c
}

// watcher keeps snapshots.
type watcher struct {
	mu  sync.Mutex
	all []wire.Snapshot
}

func (w *watcher) Snapshot(frame []byte) {
	m, err := wire.ParseServer(frame)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, m.(wire.Snapshot))
}

func (w *watcher) list() []wire.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *watcher) last() wire.Snapshot {
	all := w.list()
	return all[len(all)-1]
}

func (s find) of(id uint32) (wire.Entity, bool) {
	for _, e := range s.Entities {
		if e.ID == id {
			return e, true
		}
	}
	return wire.Entity{}, false
}

type find struct{ wire.Snapshot }

// ground is an area that steps when the test says so, with one guest.
type ground struct {
	*Area
	t    *testing.T
	reg  *world.Registry
	v    *Avatar
	w    *watcher
	seq  uint32
	tick uint32
}

func newGround(t *testing.T, cfg Config) *ground {
	t.Helper()
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, reg: world.New(), w: &watcher{}}
	g.reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	g.Area = New(cfg, g.reg)
	var err error
	if g.v, err = g.Enter(); err != nil {
		t.Fatal(err)
	}
	g.v.Watch(g.w)
	return g
}

// hold walks for so many steps with the buttons held.
func (g *ground) hold(b wire.Buttons, steps int) (x, y float64) {
	for range steps {
		g.seq++
		g.v.Input(wire.Input{Sequence: g.seq, Buttons: b})
		g.tick++
		g.step(g.tick)
	}
	return g.v.x, g.v.y
}

// player adds a player whom everybody is shown.
func (g *ground) player(name string, x, z float64) *world.Player {
	p := g.reg.Add(uuid.NewSHA1(uuid.Nil, []byte(name)), name)
	p.Sight.Enter("survival", p.ID)
	p.Sight.Login(int32(len(g.reg.All())), "minecraft:overworld", 1)
	g.put(p, x, z)
	g.reg.Settle(time.Now())
	return p
}

func (g *ground) put(p *world.Player, x, z float64) {
	p.SetPose(&world.Pose{X: x, Y: 64, Z: z, Place: g.reg.Place("survival", "minecraft:overworld")})
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

// TestWalking: acceptance 7. A second of walking is 4.317 blocks, the same diagonally; opposite buttons cancel; bits
// that mean nothing do nothing; the edge holds.
func TestWalking(t *testing.T) {
	for name, c := range map[string]struct {
		mask         wire.Buttons
		steps        int
		x, y         float64
		wantX, wantY float64
	}{
		"up and right":        {9, 20, 200, 125, 203.0526, 121.9474},
		"right":               {8, 20, 200, 125, 204.317, 125},
		"up and down":         {3, 20, 200, 125, 200, 125},
		"left and right":      {12, 20, 200, 125, 200, 125},
		"all":                 {15, 20, 200, 125, 200, 125},
		"up, left and right":  {13, 20, 200, 125, 200, 120.683},
		"bits without a name": {0xf0, 20, 200, 125, 200, 125},
		"into the corner":     {5, 40, 1, 1, 0.3, 0.3},
		"along the far edge":  {10, 60, 399, 249, 399.7, 249.7},
	} {
		g := newGround(t, plaza(func(c2 *Config) { c2.Spawn = Point{c.x - 200, c.y - 100} }))
		if x, y := g.hold(c.mask, c.steps); !near(x, c.wantX, 0.01) || !near(y, c.wantY, 0.01) {
			t.Errorf("%s: at %v, %v, want %v, %v", name, x, y, c.wantX, c.wantY)
		}
	}
}

// TestObstacle: acceptance 8. An avatar that walks straight at an obstacle stands before it; one that walks at its side
// slides past.
func TestObstacle(t *testing.T) {
	for _, c := range []struct{ y, minX, maxX float64 }{{20, 7.2 - 0.001, 7.2 + 0.001}, {20.5, 40, 48}} {
		g := newGround(t, plaza(func(cfg *Config) {
			cfg.Spawn = Point{5 - 200, c.y - 100}
			cfg.Obstacles = []Obstacle{{At: Point{10.5 - 200, 20 - 100}, Radius: 3, Colour: 0x888888}}
		}))
		if x, y := g.hold(wire.Right, 200); x < c.minX || x > c.maxX {
			t.Errorf("from 5, %v to %v, %v", c.y, x, y)
		}
		if e, ok := (find{g.w.last()}).of(1); !ok || e.Kind != wire.KindObstacle || e.X != 10.5 || e.Y != 20 || e.Radius != 3 || e.Colour != 0x888888 {
			t.Errorf("the obstacle is %+v", e)
		}
	}
	g := newGround(t, plaza(func(cfg *Config) {
		cfg.Obstacles = []Obstacle{{At: cfg.Spawn, Radius: 3}, {At: cfg.To, Radius: 400}}
	}))
	if g.v.x > 400-Radius || g.v.y > 250-Radius || math.IsNaN(g.v.x) {
		t.Errorf("in the middle of obstacles an avatar is at %v, %v", g.v.x, g.v.y)
	}
}

// TestSequence: acceptance 9. Input whose number is below the last one taken is ignored.
func TestSequence(t *testing.T) {
	g := newGround(t, plaza(nil))
	for i, in := range []struct {
		seq  uint32
		b    wire.Buttons
		took bool
		dx   int
	}{{10, 8, true, 1}, {9, 4, false, 1}, {10, 4, true, 1}, {11, 0, true, 0}, {0, 4, false, 0}, {math.MaxUint32, 8, true, 1}, {0, 4, false, 1}} {
		if took := g.v.Input(wire.Input{Sequence: in.seq, Buttons: in.b}); took != in.took {
			t.Errorf("input %d: %v", i, took)
		}
		was := g.v.x
		g.step(uint32(i + 1))
		if d := g.v.x - was; !near(d, float64(in.dx)*Speed/20, 1e-9) {
			t.Errorf("input %d walks by %v", i, d)
		}
	}
	g = newGround(t, plaza(nil))
	if !g.v.Input(wire.Input{Sequence: 0, Buttons: wire.Right}) || g.v.Input(wire.Input{}) != true {
		t.Error("the first input is not taken")
	}
}

// TestStandsWithoutInput: acceptance 9. Half a second after the last input the avatar stands, within one tick; the same
// input again keeps it walking.
func TestStandsWithoutInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, plaza(nil))
		g.v.Input(wire.Input{Sequence: 1, Buttons: wire.Right})
		for i := range uint32(40) {
			time.Sleep(50 * time.Millisecond)
			if i == 4 {
				g.v.Input(wire.Input{Sequence: 1})
			}
			g.step(i + 1)
		}
		// It held the button for 250 ms and 500 ms.
		if d := g.v.x - 200; d < Speed*0.70-0.001 || d > Speed*0.80+0.001 {
			t.Errorf("walked %v blocks", d)
		}
	})
}

// TestSnapshots: acceptance 6. Twenty a second, each with the next tick, and everybody in them, oneself too.
func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, plaza(nil))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { g.Run(ctx); close(done) }()
		other, err := g.Enter()
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{}
		other.Watch(w)
		begin := 0
		for range 10 {
			time.Sleep(time.Second)
			synctest.Wait()
			if n := len(g.w.list()) - begin; n < 19 || n > 21 {
				t.Errorf("%d snapshots in a second", n)
			}
			begin = len(g.w.list())
		}
		for i, s := range g.w.list() {
			if s.Tick != uint32(i+1) {
				t.Fatalf("tick %d after %d snapshots", s.Tick, i)
			}
			for _, id := range []uint32{g.v.ID, other.ID} {
				if _, ok := (find{s}).of(id); !ok || len(s.Entities) != 2 {
					t.Fatalf("snapshot %d has %+v", i, s.Entities)
				}
			}
		}
		if len(w.list()) != len(g.w.list()) || g.Tick() != g.w.last().Tick {
			t.Errorf("%d and %d snapshots, tick %d", len(w.list()), len(g.w.list()), g.Tick())
		}
		other.Leave()
		n := len(w.list())
		time.Sleep(time.Second)
		synctest.Wait()
		if _, ok := (find{g.w.last()}).of(other.ID); ok || len(w.list()) != n {
			t.Error("somebody who has left is still there")
		}
		g.v.Leave()
		n, tick := len(g.w.list()), g.Tick()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(g.w.list()) != n || g.Tick() > tick+1 {
			t.Errorf("without guests there were ticks %d to %d", tick, g.Tick())
		}
		back, err := g.Enter()
		if err != nil {
			t.Fatal(err)
		}
		back.Watch(w)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := w.last(); s.Tick > tick+22 || s.Tick < tick+19 || back.ID == other.ID || back.ID == g.v.ID {
			t.Errorf("tick %d after %d, number %d", s.Tick, tick, back.ID)
		}
		stop()
		<-done
	})
}

// TestPlayers: acceptance 12. Players of the area are shown, in its coordinates. A player who goes elsewhere or may not
// be seen is missing from the next snapshot, and has a new number when they are back; numbers show no gap for the
// others.
func TestPlayers(t *testing.T) {
	g := newGround(t, plaza(nil))
	ann := g.player("Ann", 10.5, -20)
	g.player("Faraway", 200.1, 0)
	g.hold(0, 1)
	if s := g.w.last(); len(s.Entities) != 2 || s.Entities[1] != (wire.Entity{ID: g.v.ID + 1, Kind: wire.KindPlayer, X: 210.5, Y: 80, Radius: 0.3, Colour: colour(ann.ID)}) {
		t.Fatalf("%+v", s.Entities)
	}
	id := g.v.ID + 1
	for name, c := range map[string]struct{ away, back func() }{
		"outside":       {func() { g.put(ann, -200.5, 0) }, func() { g.put(ann, -199.5, 0) }},
		"nowhere":       {func() { ann.SetPose(nil) }, func() { g.put(ann, 1, 1) }},
		"another world": {func() { ann.SetPose(&world.Pose{Place: g.reg.Place("survival", "minecraft:the_nether")}) }, func() { g.put(ann, 1, 1) }},
		"a spectator":   {func() { ann.SetFacts(world.Facts{Mode: world.Spectator}) }, func() { ann.SetFacts(world.Facts{}) }},
	} {
		c.away()
		g.hold(0, 1)
		if _, ok := (find{g.w.last()}).of(id); ok {
			t.Errorf("%s: still there", name)
		}
		c.back()
		g.hold(0, 1)
		id++
		if s := g.w.last(); len(s.Entities) != 2 || s.Entities[1].ID != id {
			t.Errorf("%s: back as %+v, want number %d", name, s.Entities, id)
		}
	}
	g.reg.Remove(ann)
	g.hold(0, 1)
	if s := g.w.last(); len(s.Entities) != 1 {
		t.Errorf("one who has gone is there: %+v", s.Entities)
	}
}

// TestParts: a player in one of several worlds of one name is in the area's world.
func TestParts(t *testing.T) {
	g := newGround(t, plaza(nil))
	p := g.player("Ann", 0, 0)
	p.SetPose(&world.Pose{Place: g.reg.Part("survival", "minecraft:overworld", 3)})
	g.hold(0, 1)
	if len(g.w.last().Entities) != 2 {
		t.Errorf("%+v", g.w.last().Entities)
	}
}

// TestVanished: acceptance 13. Somebody who has vanished is in no snapshot, and no number is missing for them.
func TestVanished(t *testing.T) {
	g := newGround(t, plaza(nil))
	g.reg.Sights().SetRules(nil, sight.Rule{})
	now := time.Now()
	var all []*world.Player
	for _, name := range []string{"Ann", "Staff", "Cid"} {
		all = append(all, g.player(name, 1, 1))
	}
	for _, p := range all {
		for _, o := range all {
			if o != all[1] || p == all[1] {
				p.Show(o.ID)
			}
		}
	}
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		g.reg.Settle(now)
	}
	if all[1].Sight.Public() || !all[0].Sight.Public() {
		t.Fatal("the wrong one has vanished")
	}
	g.hold(0, 1)
	if s := g.w.last(); len(s.Entities) != 3 || s.Entities[1].ID != g.v.ID+1 || s.Entities[2].ID != g.v.ID+2 {
		t.Fatalf("%+v", s.Entities)
	}
	next, _ := g.Enter()
	if next.ID != g.v.ID+3 {
		t.Errorf("the next number is %d", next.ID)
	}
}

// TestFull: there are no more guests than may be, and a place that is left is free.
func TestFull(t *testing.T) {
	g := newGround(t, plaza(func(c *Config) { c.MaxGuests = 2 }))
	second, err := g.Enter()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enter(); err != ErrFull {
		t.Fatalf("a third guest: %v", err)
	}
	second.Leave()
	second.Leave()
	if v, err := g.Enter(); err != nil || v.ID == second.ID {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestNearest: of more than fits a snapshot has oneself and what is nearest.
func TestNearest(t *testing.T) {
	g := newGround(t, plaza(func(c *Config) { c.Spawn = c.From }))
	for i := range wire.MaxEntities + 50 {
		p := g.reg.Add(uuid.New(), "")
		p.Sight.Enter("survival", p.ID)
		p.Sight.Login(int32(i+1), "minecraft:overworld", 1)
		g.put(p, -200+float64(i)/10, -100)
	}
	g.reg.Settle(time.Now())
	g.hold(0, 1)
	s := g.w.last()
	if len(s.Entities) != wire.MaxEntities || s.Entities[0].ID != g.v.ID {
		t.Fatalf("%d entities, the first is %+v", len(s.Entities), s.Entities[0])
	}
	if far := slices.MaxFunc(s.Entities, func(a, b wire.Entity) int { return int(a.X*10) - int(b.X*10) }); !near(float64(far.X), float64(wire.MaxEntities-2)/10, 0.2) {
		t.Errorf("the farthest is at %v", far.X)
	}
}

// TestCheck: what is wrong with an area is said.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"from has to be lower":   func(c *Config) { c.To = c.From },
		"at most 10000 blocks":   func(c *Config) { c.To.X = c.From.X + 10001 },
		"spawn is outside":       func(c *Config) { c.Spawn.X = 201 },
		"tick rate":              func(c *Config) { c.TickRate = 61 },
		"max-guests":             func(c *Config) { c.MaxGuests = 0 },
		"at most 256 obstacles":  func(c *Config) { c.Obstacles = make([]Obstacle, 257) },
		"radius of an obstacle":  func(c *Config) { c.Obstacles = []Obstacle{{}} },
		"six hex digits":         func(c *Config) { c.Obstacles = []Obstacle{{Radius: 1, Colour: 1 << 24}} },
		"by at least a block":    func(c *Config) { c.From.X = math.NaN() },
		"spawn is outside of th": func(c *Config) { c.Spawn.Z = math.NaN() },
	} {
		c := plaza(change)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzWalk: whatever guests do, they are within the area, and no number is given twice.
func FuzzWalk(f *testing.F) {
	f.Add([]byte{8, 8, 1, 200, 201, 9, 4, 202, 255})
	f.Add([]byte("\xc8\xc9\x01\x02\x03\xca\x05\x06\xcb\xc8\x07"))
	f.Fuzz(func(t *testing.T, moves []byte) {
		a := New(plaza(func(c *Config) {
			c.To = Point{-195, -95}
			c.Spawn = Point{-198, -98}
			c.Obstacles = []Obstacle{{At: Point{-198, -98}, Radius: 1}, {At: Point{-195, -97}, Radius: 2}, {At: Point{-300, 0}, Radius: 9000}}
		}), world.New())
		given, there := map[uint32]bool{1: true, 2: true, 3: true}, []*Avatar{}
		for i, m := range moves {
			switch {
			case m == 200:
				if v, err := a.Enter(); err == nil {
					if given[v.ID] {
						t.Fatalf("%d is given twice", v.ID)
					}
					given[v.ID] = true
					there = append(there, v)
				}
			case m == 201 && len(there) > 0:
				there[0].Leave()
				there = there[1:]
			case len(there) > 0:
				v := there[int(m>>4)%len(there)]
				v.Input(wire.Input{Sequence: uint32(i), Buttons: wire.Buttons(m)})
			}
			a.step(uint32(i))
			if len(a.all) != len(there)+3 {
				t.Fatalf("%d entities of %d guests", len(a.all), len(there))
			}
			for _, v := range there {
				if !(v.x >= Radius && v.x <= 5-Radius && v.y >= Radius && v.y <= 5-Radius) {
					t.Fatalf("%v, %v", v.x, v.y)
				}
			}
		}
	})
}
