// Package world holds the bridge's knowledge about the players on the proxy: where they stand, in which mode they play
// and whom the backend shows to them.
//
// It promises its readers three things. Reading a pose or the facts is one atomic load and never waits for a writer. A
// value that was read never changes afterwards: facts and poses are replaced whole. And unknown values are nil, never a
// default, so that nobody is heard at the origin of a world because a packet has not come yet.
//
// Writers are the players' trackers (bridge/track); every method may be called from any goroutine.
package world

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
)

// Place is a world of a backend. Places come only from [Registry.Place], which hands out one pointer for each pair of
// names as long as anybody holds it: compare pointers, not strings.
type Place struct {
	Backend string // the backend's name in the configuration; of several with one address, the first
	World   string // as the backend names it, like "minecraft:the_nether"
	Part    int    // which of the backend's worlds of this name; see bridge/sight

	whole *Place // the part 0, which is kept with the others; nil in that one
}

// Whole returns the place that stands for all worlds of this name on the backend.
func (p *Place) Whole() *Place {
	if p == nil || p.whole == nil {
		return p
	}
	return p.whole
}

// Pose says where a player's ears and mouth are. It is immutable once it is stored.
type Pose struct {
	X, Y, Z float64 // the feet, in blocks; for a rider the place of the vehicle
	Yaw     float32 // degrees as Minecraft counts them: 0 looks to +z, 90 to -x; finite, maybe beyond one turn
	Place   *Place  // never nil
}

// GameMode is a player's own game mode, numbered as on the wire.
type GameMode uint8

// The game modes that exist.
const (
	Survival GameMode = iota
	Creative
	Adventure
	Spectator
)

// String names the mode as the game's commands do.
func (m GameMode) String() string {
	switch m {
	case Survival:
		return "survival"
	case Creative:
		return "creative"
	case Adventure:
		return "adventure"
	case Spectator:
		return "spectator"
	}
	return "unknown"
}

// Facts hold what changes seldom about a player. They are comparable, and the zero value is a player about whom nothing
// is known yet.
type Facts struct {
	Mode    GameMode // Survival until the backend has said otherwise
	OpLevel uint8    // 0-4, the operator level that the backend has told the client
	Place   *Place   // nil until the backend has said in which world the player is
	Riding  bool     // the player sits in or on another entity
	Vehicle int32    // that entity's id on the backend; 0 unless Riding
}

// Player is one connection of a player to the proxy. Two connections of one person, an old and a new one, are two
// Players.
type Player struct {
	ID   uuid.UUID
	Name string

	reg   *Registry
	seq   uint64
	pose  atomic.Pointer[Pose]
	spot  *Spot
	facts atomic.Pointer[Facts]

	// Sight holds what the player's server shows to the player, and the conclusions.
	Sight *sight.Session

	// Seat is for the one turn that compiles voice: where it keeps the player.
	Seat int

	onPart atomic.Pointer[func()]
}

// Pose returns where the player is, or nil while that is not known: then the player neither speaks nor hears.
func (p *Player) Pose() *Pose { return p.pose.Load() }

// SetPose replaces the pose; nil makes it unknown. The pose must not be changed afterwards. Readers look at poses for
// each frame, so nobody is woken.
func (p *Player) SetPose(pose *Pose) {
	p.pose.Store(pose)
	for { // until no other call has come between the two
		p.spot.at.Store(pack(pose))
		newest := p.pose.Load()
		if newest == pose {
			return
		}
		pose = newest
	}
}

// Spot returns roughly where the player is, of the pose that was set last. It is the same one always.
func (p *Player) Spot() *Spot { return p.spot }

// Facts returns the player's facts, never nil and never to be written to.
func (p *Player) Facts() *Facts { return p.facts.Load() }

// SetFacts replaces the facts and wakes the registry's followers if they differ from the former ones. Calls for one
// player must not overlap.
func (p *Player) SetFacts(f Facts) {
	if *p.facts.Load() == f {
		return
	}
	// A place on a server is a place in sight, too. Trackers have said so already.
	if f.Place != nil && p.Sight.Server() != f.Place.Backend {
		p.Sight.Enter(f.Place.Backend, p.ID)
		p.Sight.Login(int32(p.seq), f.Place.World, 0)
	}
	stored := f // so that only facts that differ are moved to the heap
	p.facts.Store(&stored)
	p.reg.poke()
}

// OnPart sets the function to call when the player is found to be in another one of the worlds of one name.
func (p *Player) OnPart(do func()) { p.onPart.Store(&do) }

// Sees tells whether the player is shown the other, on the server where both are.
func (p *Player) Sees(other *Player) bool {
	shown, _ := p.Shown(other)
	return shown
}

// Knows tells whether the player may know about the other, wherever they are.
func (p *Player) Knows(other *Player) bool { return p.Sight.Knows(other.Sight) }

// Show adds players to the list that the player's client has, by the UUIDs that the server uses.
func (p *Player) Show(ids ...uuid.UUID) { p.Sight.Show(ids...) }

// Hide takes players off the list.
func (p *Player) Hide(ids ...uuid.UUID) { p.Sight.Hide(ids...) }

// HideAll empties the list.
func (p *Player) HideAll() { p.Sight.HideAll() }

// Registry knows the players who are on the proxy now.
type Registry struct {
	version   atomic.Uint64
	followers atomic.Pointer[[]chan struct{}] // replaced whole, with mu held

	mu      sync.Mutex
	players map[uuid.UUID]*Player
	all     []*Player // in order of joining; nil when players has changed since it was built
	seq     uint64
	spots   []Spot // of those who come next: a handful of neighbours in memory, never given to another player

	sights *sight.Network

	placesMu sync.Mutex
	places   map[Place]weak.Pointer[Place]
}

// New returns a registry without players.
func New() *Registry {
	r := &Registry{
		players: make(map[uuid.UUID]*Player),
		sights:  sight.New(),
		places:  make(map[Place]weak.Pointer[Place]),
	}
	r.followers.Store(new([]chan struct{}))
	return r
}

// Add makes a player known, with nothing known about them. A player with the same id is replaced: [Registry.Get] finds
// the newer connection.
func (r *Registry) Add(id uuid.UUID, name string) *Player {
	p := &Player{ID: id, Name: name, reg: r}
	p.facts.Store(new(Facts))
	p.Sight = r.sights.Session(name, id)
	p.Sight.Self, p.Sight.Poke = p, r.poke
	p.Sight.At = func() (x, y, z float64, known bool) {
		if at := p.Pose(); at != nil {
			return at.X, at.Y, at.Z, true
		}
		return 0, 0, 0, false
	}
	r.mu.Lock()
	if len(r.spots) == 0 {
		r.spots = make([]Spot, 64)
	}
	p.spot, r.spots = &r.spots[0], r.spots[1:]
	p.spot.at.Store(pack(nil))
	r.seq++
	p.seq = r.seq
	r.players[id] = p
	r.all = nil
	r.mu.Unlock()
	r.poke()
	return p
}

// Remove forgets exactly this player. It does nothing when a newer connection has taken the id over, so that the end of
// the old one cannot remove the new one.
func (r *Registry) Remove(p *Player) {
	p.Sight.Close()
	r.mu.Lock()
	known := r.players[p.ID] == p
	if known {
		delete(r.players, p.ID)
		r.all = nil
	}
	r.mu.Unlock()
	if known {
		r.poke()
	}
}

// Get returns the player with this id, or nil.
func (r *Registry) Get(id uuid.UUID) *Player {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.players[id]
}

// All returns the players in the order in which they joined. The slice is shared: do not write to it.
func (r *Registry) All() []*Player {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = slices.SortedFunc(maps.Values(r.players), func(a, b *Player) int { return cmp.Compare(a.seq, b.seq) })
	}
	return r.all
}

// Knows tells whether one player may know about another, wherever they are, by their UUIDs. All know themselves, and
// about a player who is not on the proxy there is nothing to hide.
func (r *Registry) Knows(viewer, other uuid.UUID) bool {
	v, o := r.Get(viewer), r.Get(other)
	return v == o || v == nil || o == nil || v.Knows(o)
}

// Sights returns all servers' sights: their rules, and who has vanished.
func (r *Registry) Sights() *sight.Network { return r.sights }

// NextSight returns a player whose sight has changed since they were last returned, nil when there is none;
// [Player.EachNews] has the changes. It serves one reader.
func (r *Registry) NextSight() *Player {
	if s := r.sights.Next(); s != nil {
		return s.Self.(*Player)
	}
	return nil
}

// Revealed calls visit for every player who has become known to everybody since the last call, or no longer is, or is
// hidden from others than before: see [Player.EachHiddenFrom]. It serves one reader, and must not call the registry.
func (r *Registry) Revealed(visit func(*Player)) {
	r.sights.Revealed(func(s *sight.Session) { visit(s.Self.(*Player)) })
}

// Settle works out whom everybody is shown now, who has vanished and who stands in one place. changed tells whether
// anything is new; next is when to call it again even if nothing happens, zero for never.
func (r *Registry) Settle(now time.Time) (changed bool, next time.Time) {
	return r.sights.Settle(now, func(s *sight.Session) {
		if do := s.Self.(*Player).onPart.Load(); do != nil {
			(*do)()
		}
	})
}

// WorldName turns a world name from the configuration ("the_nether", "survival/the_end") into its full form
// ("minecraft:the_nether", "survival/minecraft:the_end"): a name without a namespace is the game's own, as in the
// game's commands.
func WorldName(name string) string {
	backend, world, ok := strings.Cut(name, "/")
	switch {
	case strings.Contains(name, ":"):
		return name
	case ok:
		return backend + "/minecraft:" + world
	}
	return "minecraft:" + name
}

// Place returns the one pointer for these names. Backends choose world names freely, so the registry holds places
// weakly: one that no player, pose or table refers to any longer is dropped by the garbage collector, and a later call
// makes a new pointer that nothing old can be compared with.
func (r *Registry) Place(backend, world string) *Place { return r.Part(backend, world, 0) }

// Part does as [Registry.Place], for one of several worlds that a backend names alike. Of backends with one address,
// the place is that of the first.
func (r *Registry) Part(backend, world string, part int) *Place {
	backend = r.sights.Name(backend)
	r.placesMu.Lock()
	defer r.placesMu.Unlock()
	return r.place(Place{Backend: backend, World: world, Part: part})
}

func (r *Registry) place(key Place) *Place {
	if p := r.places[key].Value(); p != nil {
		return p
	}
	p := &Place{Backend: key.Backend, World: key.World, Part: key.Part}
	if key.Part != 0 {
		p.whole = r.place(Place{Backend: key.Backend, World: key.World})
	}
	w := weak.Make(p)
	r.places[key] = w
	runtime.AddCleanup(p, r.dropPlace, key)
	return p
}

// dropPlace removes the entry of a collected place unless a successor has taken it.
func (r *Registry) dropPlace(key Place) {
	r.placesMu.Lock()
	defer r.placesMu.Unlock()
	if w, ok := r.places[key]; ok && w.Value() == nil {
		delete(r.places, key)
	}
}

// Version counts the changes of players, of facts and of sight, never those of poses. While it stays the same there is
// nothing new to see.
func (r *Registry) Version() uint64 { return r.version.Load() }

// Follow returns a channel that is poked at once and after each change that [Registry.Version] counts, for one reader
// of its own. It has one slot: many changes before a read are one poke, and a reader that looks at everything after
// each poke misses nothing. stop ends that; it does not close the channel.
func (r *Registry) Follow() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	r.setFollowers(func(all []chan struct{}) []chan struct{} { return append(all, c) })
	return c, func() {
		r.setFollowers(func(all []chan struct{}) []chan struct{} {
			return slices.DeleteFunc(all, func(o chan struct{}) bool { return o == c })
		})
	}
}

func (r *Registry) setFollowers(change func(copied []chan struct{}) []chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := change(slices.Clone(*r.followers.Load()))
	r.followers.Store(&all)
}

// poke counts a change and tells the followers. It counts first: a poked follower finds the new version.
func (r *Registry) poke() {
	r.version.Add(1)
	for _, c := range *r.followers.Load() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
