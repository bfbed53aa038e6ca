// Package world holds what the bridge knows about the players on the proxy: where they stand, in which mode they play
// and whom the backend shows to them.
//
// It promises its readers three things. Reading a pose or the facts is one atomic load and never waits for a writer.
// A value that was read never changes afterwards: facts and poses are replaced whole. And what is not known is nil,
// never a default, so that nobody is heard at the origin of a world because a packet has not come yet.
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
	"weak"

	"github.com/google/uuid"
)

// Place is a world of a backend. Places come from [Registry.Place] only, which hands out one pointer for each pair of
// names as long as anybody holds it: compare pointers, not strings.
type Place struct {
	Backend string // the backend's name in the configuration
	World   string // as the backend names it, like "minecraft:the_nether"
}

// Pose is where a player's ears and mouth are. It is immutable once it is stored.
type Pose struct {
	X, Y, Z float64 // the feet, in blocks; for a rider the place of the vehicle
	Yaw     float32 // degrees as Minecraft counts them: 0 looks to +z, 90 to -x; always finite, not always within one turn
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

// Facts is what changes seldom about a player. It is comparable, and its zero value is a player of whom nothing is
// known yet.
type Facts struct {
	Mode    GameMode // Survival until the backend has said otherwise
	OpLevel uint8    // 0-4, the operator level that the backend has told the client
	Place   *Place   // nil until the backend has said in which world the player is
	Riding  bool     // the player sits in or on another entity
	Vehicle int32    // that entity's id on the backend; 0 unless Riding
}

// MaxSight bounds how many entries one player's sight holds. A backend that shows more players than that has the rest
// treated as hidden, which costs voice and not memory.
const MaxSight = 1 << 16

// Player is one connection of a player to the proxy. Two connections of one person, an old and a new one, are two
// Players.
type Player struct {
	ID   uuid.UUID
	Name string

	reg   *Registry
	seq   uint64
	pose  atomic.Pointer[Pose]
	facts atomic.Pointer[Facts]

	mu      sync.Mutex
	sight   map[uuid.UUID]struct{}
	version atomic.Uint64
}

// Pose returns where the player is, or nil while that is not known: then the player neither speaks nor hears.
func (p *Player) Pose() *Pose { return p.pose.Load() }

// SetPose replaces the pose; nil makes it unknown. The pose must not be changed afterwards. Readers look at poses for
// each frame, so nobody is woken.
func (p *Player) SetPose(pose *Pose) { p.pose.Store(pose) }

// Facts returns the player's facts, never nil and never to be written to.
func (p *Player) Facts() *Facts { return p.facts.Load() }

// SetFacts replaces the facts and wakes the reader of [Registry.Changed] if they differ from the former ones. Calls
// for one player must not overlap.
func (p *Player) SetFacts(f Facts) {
	if *p.facts.Load() == f {
		return
	}
	stored := f // so that only facts that differ are moved to the heap
	p.facts.Store(&stored)
	p.reg.poke()
}

// Sees tells whether the backend shows other to this player. Who has not been shown is hidden.
func (p *Player) Sees(other uuid.UUID) bool {
	p.mu.Lock()
	_, ok := p.sight[other]
	p.mu.Unlock()
	return ok
}

// AppendSeen appends those of others that the backend shows to this player, in their order, for a turn that asks about
// everybody at once.
func (p *Player) AppendSeen(dst, others []*Player) []*Player {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range others {
		if _, ok := p.sight[o.ID]; ok {
			dst = append(dst, o)
		}
	}
	return dst
}

// Show adds players to this player's sight.
func (p *Player) Show(ids ...uuid.UUID) {
	p.changeSight(func() {
		for _, id := range ids {
			if len(p.sight) >= MaxSight {
				return
			}
			if p.sight == nil {
				p.sight = make(map[uuid.UUID]struct{}, len(ids))
			}
			p.sight[id] = struct{}{}
		}
	})
}

// Hide takes players out of this player's sight.
func (p *Player) Hide(ids ...uuid.UUID) {
	p.changeSight(func() {
		for _, id := range ids {
			delete(p.sight, id)
		}
	})
}

// HideAll empties this player's sight.
func (p *Player) HideAll() { p.changeSight(func() { p.sight = nil }) }

// changeSight runs change, which only adds or only removes, so that the size tells whether anything happened.
func (p *Player) changeSight(change func()) {
	p.mu.Lock()
	before := len(p.sight)
	change()
	changed := len(p.sight) != before
	if changed {
		p.version.Add(1)
	}
	p.mu.Unlock()
	if changed {
		p.reg.poke()
	}
}

// SightVersion counts the changes of this player's sight: equal numbers mean an equal sight.
func (p *Player) SightVersion() uint64 { return p.version.Load() }

// Registry knows the players who are on the proxy now.
type Registry struct {
	changed chan struct{}

	mu      sync.Mutex
	players map[uuid.UUID]*Player
	all     []*Player // in order of joining; nil when players has changed since it was built
	seq     uint64

	placesMu sync.Mutex
	places   map[Place]weak.Pointer[Place]
}

// New returns a registry without players.
func New() *Registry {
	return &Registry{
		changed: make(chan struct{}, 1),
		players: make(map[uuid.UUID]*Player),
		places:  make(map[Place]weak.Pointer[Place]),
	}
}

// Add makes a player known, with nothing known about them. A player of the same id is replaced: the newer connection
// is the one that [Registry.Get] finds.
func (r *Registry) Add(id uuid.UUID, name string) *Player {
	p := &Player{ID: id, Name: name, reg: r}
	p.facts.Store(new(Facts))
	r.mu.Lock()
	r.seq++
	p.seq = r.seq
	r.players[id] = p
	r.all = nil
	r.mu.Unlock()
	r.poke()
	return p
}

// Remove forgets exactly this player. It does nothing when a newer connection has taken the id over, so that the end
// of the old one cannot remove the new one.
func (r *Registry) Remove(p *Player) {
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

// witnesses bounds how many of a backend's players [Registry.Hidden] asks.
const witnesses = 32

// Hidden are those of whose being here a player must not learn: on his own backend whom it hides from him, on others whom
// theirs hides from anybody there, as far as a few of those tell: what they would show to him nobody knows. nil is somebody
// who is on no backend.
func (r *Registry) Hidden(from *Player) map[uuid.UUID]struct{} {
	backends := make(map[string][]*Player)
	for _, p := range r.All() {
		if place := p.Facts().Place; place != nil {
			backends[place.Backend] = append(backends[place.Backend], p)
		}
	}
	var own *Place
	if from != nil {
		own = from.Facts().Place
	}
	hidden := make(map[uuid.UUID]struct{})
	for backend, there := range backends {
		asked := there[:min(len(there), witnesses)]
		if own != nil && own.Backend == backend {
			asked = []*Player{from}
		}
		for _, w := range asked {
			for _, p := range there {
				if p.ID != w.ID && !w.Sees(p.ID) {
					hidden[p.ID] = struct{}{}
				}
			}
		}
	}
	return hidden
}

// WorldName is a world as the game calls it, of what people call it, who may have written its backend in front and a
// slash: one without a namespace is the game's own, as in the game's commands.
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
func (r *Registry) Place(backend, world string) *Place {
	key := Place{Backend: backend, World: world}
	r.placesMu.Lock()
	defer r.placesMu.Unlock()
	if p := r.places[key].Value(); p != nil {
		return p
	}
	p := &Place{Backend: backend, World: world}
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

// Changed is poked when a player joins or leaves and when facts or sight change, never for poses. It has one slot:
// many changes before a read are one poke, and a reader that looks at everything after each poke misses nothing. It
// serves one reader.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

func (r *Registry) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
