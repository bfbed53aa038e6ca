// Package walk is the ground on which people without Minecraft walk: areas of worlds with the avatars of guests, the
// players who are there and obstacles. It promises that an avatar is always within its area and never farther than its
// buttons have taken it, that the number of an entity is never that of another one, and that no receiver of snapshots
// holds the others up.
package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/step"
	"github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/bridge/world"
)

// The rules of walking.
const (
	Speed  = 4.317                  // blocks a second, the game's walking
	Radius = 0.3                    // of people, in blocks: half of a player's width
	Still  = 500 * time.Millisecond // without input until an avatar stands

	catchUp = 100 * time.Millisecond // of steps that are made up for
	steep   = math.Sqrt2
)

// Bounds of a [Config].
const (
	MaxSide      = 10_000 // blocks
	MaxObstacles = 256
	MinTickRate  = 5
	MaxTickRate  = 60
)

// ErrFull refuses a guest where there are as many as may be.
var ErrFull = errors.New("the area has as many guests as it may")

// Point is a place on the map: x to the east and z to the south, in blocks.
type Point struct{ X, Z float64 }

// Obstacle is a round thing that nobody walks through.
type Obstacle struct {
	At     Point
	Radius float64
	Colour uint32 // 0x00RRGGBB
}

// Config describes an area. All coordinates are the world's.
type Config struct {
	Server, World string // World in its full form, like "minecraft:overworld"
	From, To      Point  // two corners; From is the lower in both
	Spawn         Point
	TickRate      int // per second
	MaxGuests     int
	Obstacles     []Obstacle
}

// Check returns what is wrong with an area, nil: nothing.
func (c Config) Check() error {
	switch w, h := c.To.X-c.From.X, c.To.Z-c.From.Z; {
	case !(w >= 1 && h >= 1):
		return errors.New("from has to be lower than to by at least a block, in both numbers")
	case w > MaxSide || h > MaxSide:
		return fmt.Errorf("an area has at most %d blocks a side", MaxSide)
	case !(c.Spawn.X >= c.From.X && c.Spawn.X <= c.To.X && c.Spawn.Z >= c.From.Z && c.Spawn.Z <= c.To.Z):
		return errors.New("spawn is outside of the area")
	case c.TickRate < MinTickRate || c.TickRate > MaxTickRate:
		return fmt.Errorf("the tick rate has to be from %d to %d", MinTickRate, MaxTickRate)
	case c.MaxGuests < 1:
		return errors.New("max-guests has to be at least 1")
	case len(c.Obstacles) > MaxObstacles:
		return fmt.Errorf("an area has at most %d obstacles", MaxObstacles)
	}
	for _, o := range c.Obstacles {
		if !(o.Radius > 0 && o.Radius <= MaxSide) {
			return errors.New("the radius of an obstacle has to be above 0")
		}
		if o.Colour > 0xffffff {
			return errors.New("the colour of an obstacle has to be six hex digits")
		}
	}
	return nil
}

// Receiver is given each snapshot of an area. It must not block, nor change the frame, which others are given too.
type Receiver interface {
	Snapshot(frame []byte)
}

// Area is one piece of a world. Its methods may be called from any goroutine.
type Area struct {
	cfg   Config
	reg   *world.Registry
	began time.Time   // where the times of input count from
	clock *step.Clock // Run's
	tick  atomic.Uint32
	wake  chan struct{}

	mu      sync.Mutex
	avatars []*Avatar
	last    uint32                   // the entity number that was given last
	seen    map[*world.Player]uint32 // of the players in the last snapshot, their numbers
	all     []wire.Entity            // of the last snapshot
}

// Avatar is a guest in an area. Its methods may be called from any goroutine.
type Avatar struct {
	ID     uint32
	colour uint32
	area   *Area
	held   atomic.Uint64 // 1<<40, once there was input, and its sequence<<8 and buttons
	at     atomic.Int64  // when the last input was taken, in nanoseconds of the area's clock

	// With the area's mu held.
	x, y float64 // from the area's corner
	to   Receiver
}

// New makes an area of a configuration that [Config.Check] has found right. Nobody moves before [Area.Run].
func New(cfg Config, reg *world.Registry) *Area {
	a := &Area{
		cfg: cfg, reg: reg, began: time.Now(), clock: step.New(cfg.TickRate, catchUp), wake: make(chan struct{}, 1), seen: map[*world.Player]uint32{},
	}
	a.last = uint32(len(cfg.Obstacles)) // these have the first numbers
	return a
}

// Config returns what the area was made of.
func (a *Area) Config() Config { return a.cfg }

// Size returns the width and height in blocks.
func (a *Area) Size() (width, height float64) {
	return a.cfg.To.X - a.cfg.From.X, a.cfg.To.Z - a.cfg.From.Z
}

// Tick returns the number of the last tick.
func (a *Area) Tick() uint32 { return a.tick.Load() }

// Guests returns how many guests are there.
func (a *Area) Guests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.avatars)
}

// Enter puts a new avatar at the area's spawn.
func (a *Area) Enter() (*Avatar, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.avatars) >= a.cfg.MaxGuests {
		return nil, ErrFull
	}
	a.last++
	v := &Avatar{ID: a.last, area: a, x: a.cfg.Spawn.X - a.cfg.From.X, y: a.cfg.Spawn.Z - a.cfg.From.Z, colour: colour(uuid.New())}
	a.settle(v)
	a.avatars = append(a.avatars, v)
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return v, nil
}

// Watch gives a receiver all snapshots from now on.
func (v *Avatar) Watch(r Receiver) {
	v.area.mu.Lock()
	v.to = r
	v.area.mu.Unlock()
}

// Leave takes the avatar away. Its receiver is given nothing once Leave has returned.
func (v *Avatar) Leave() {
	a := v.area
	a.mu.Lock()
	defer a.mu.Unlock()
	a.avatars = slices.DeleteFunc(a.avatars, func(o *Avatar) bool { return o == v })
}

// Input takes what the guest holds. false: its sequence number is below one that was taken. An input with the same
// number as the last one says only that the guest still holds what it said.
func (v *Avatar) Input(in wire.Input) bool {
	now := 1<<40 | uint64(in.Sequence)<<8 | uint64(in.Buttons)
	for {
		was := v.held.Load()
		if last := uint32(was >> 8); was != 0 && in.Sequence <= last {
			if in.Sequence == last {
				v.at.Store(int64(time.Since(v.area.began)))
			}
			return in.Sequence == last
		}
		if v.held.CompareAndSwap(was, now) {
			v.at.Store(int64(time.Since(v.area.began)))
			return true
		}
	}
}

// buttons returns what the guest holds, nothing if that is too long ago.
func (v *Avatar) buttons(now time.Duration) wire.Buttons {
	if now-time.Duration(v.at.Load()) >= Still {
		return 0
	}
	return wire.Buttons(v.held.Load())
}

// Run lets the area's time pass, while anybody is there, until ctx ends.
func (a *Area) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		a.clock.Start(time.Now())
		tick := time.NewTicker(time.Second / time.Duration(a.cfg.TickRate))
		for a.Guests() > 0 && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				first, n := a.clock.Advance(time.Now())
				for i := range n {
					a.step(uint32(first) + uint32(i))
				}
			}
		}
		tick.Stop()
	}
}

// step makes one step and tells everybody.
func (a *Area) step(tick uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Since(a.began)
	for _, v := range a.avatars {
		a.move(v, v.buttons(now))
	}
	a.tick.Store(tick)
	a.look()
	var frame []byte
	for _, v := range a.avatars {
		if v.to == nil {
			continue
		}
		if len(a.all) > wire.MaxEntities {
			v.to.Snapshot(a.nearest(v, tick))
			continue
		}
		if frame == nil { // they all see the same
			frame = wire.Snapshot{Tick: tick, Entities: a.all}.Append(make([]byte, 0, wire.SnapshotSize(len(a.all))))
		}
		v.to.Snapshot(frame)
	}
}

// move takes one step as the buttons say. The same speed goes for the diagonal.
func (a *Area) move(v *Avatar, b wire.Buttons) {
	d := Speed / float64(a.cfg.TickRate)
	var dx, dy float64
	for _, way := range []struct {
		b      wire.Buttons
		dx, dy float64
	}{{wire.Up, 0, -1}, {wire.Down, 0, 1}, {wire.Left, -1, 0}, {wire.Right, 1, 0}} {
		if b&way.b != 0 {
			dx, dy = dx+way.dx, dy+way.dy
		}
	}
	if dx == 0 && dy == 0 {
		return
	}
	if dx != 0 && dy != 0 {
		d /= steep
	}
	v.x, v.y = v.x+d*dx, v.y+d*dy
	a.settle(v)
}

// settle pushes an avatar out of obstacles, along the line from the centre, so that it slides past. The area's edge is
// stronger.
func (a *Area) settle(v *Avatar) {
	for _, o := range a.cfg.Obstacles {
		ox, oy, r := o.At.X-a.cfg.From.X, o.At.Z-a.cfg.From.Z, o.Radius+Radius
		dx, dy := v.x-ox, v.y-oy
		d := math.Hypot(dx, dy)
		switch {
		case d >= r:
		case d == 0:
			v.x = ox + r
		default:
			v.x, v.y = ox+dx/d*r, oy+dy/d*r
		}
	}
	w, h := a.Size()
	v.x, v.y = min(max(v.x, Radius), w-Radius), min(max(v.y, Radius), h-Radius)
}

// look gathers what is visible: obstacles, guests, and the players there whom everybody may know about. A player who
// was not in the last snapshot gets a new number, and nobody else does. So numbers tell nothing about hidden players.
func (a *Area) look() {
	a.all = a.all[:0]
	for i, o := range a.cfg.Obstacles {
		a.all = append(a.all, wire.Entity{
			ID: uint32(i + 1), Kind: wire.KindObstacle, X: float32(o.At.X - a.cfg.From.X), Y: float32(o.At.Z - a.cfg.From.Z),
			Radius: float32(o.Radius), Colour: o.Colour,
		})
	}
	for _, v := range a.avatars {
		a.all = append(a.all, wire.Entity{ID: v.ID, Kind: wire.KindPlayer, X: float32(v.x), Y: float32(v.y), Radius: Radius, Colour: v.colour})
	}
	here := a.reg.Place(a.cfg.Server, a.cfg.World)
	now := make(map[*world.Player]uint32, len(a.seen))
	for _, p := range a.reg.All() {
		at := p.Pose()
		if at == nil || at.Place.Whole() != here || p.Facts().Mode == world.Spectator || !p.Sight.Public() ||
			!(at.X >= a.cfg.From.X && at.X <= a.cfg.To.X && at.Z >= a.cfg.From.Z && at.Z <= a.cfg.To.Z) {
			continue
		}
		id, was := a.seen[p]
		if !was {
			a.last++
			id = a.last
		}
		now[p] = id
		a.all = append(a.all, wire.Entity{
			ID: id, Kind: wire.KindPlayer, X: float32(at.X - a.cfg.From.X), Y: float32(at.Z - a.cfg.From.Z), Radius: Radius, Colour: colour(p.ID),
		})
	}
	a.seen = now
}

// nearest writes the snapshot for somebody who could see more than fits: they and what is nearest to them.
func (a *Area) nearest(v *Avatar, tick uint32) []byte {
	all := slices.Clone(a.all)
	far := func(e wire.Entity) float64 {
		if e.ID == v.ID {
			return -1
		}
		return math.Hypot(float64(e.X)-v.x, float64(e.Y)-v.y)
	}
	slices.SortFunc(all, func(a, b wire.Entity) int { return cmp.Compare(far(a), far(b)) })
	return wire.Snapshot{Tick: tick, Entities: all}.Append(nil)
}

// colours are for people, easy to tell apart on light and on dark ground.
var colours = [12]uint32{
	0x3366ff, 0xe6194b, 0x3cb44b, 0xf58231, 0x911eb4, 0x008080, 0xf032e6, 0x9a6324, 0x808000, 0x42a5f5, 0xd4a017, 0x6a5acd,
}

func colour(id uuid.UUID) uint32 {
	h := fnv.New32a()
	h.Write(id[:])
	return colours[h.Sum32()%uint32(len(colours))]
}
