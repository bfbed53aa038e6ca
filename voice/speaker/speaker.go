// Package speaker is sound that comes from places instead of players: channels with a name, a position, a range and a
// list of who may hear them, each playing one thing at a time.
//
// It promises that a channel reaches only players in its world and range who are allowed, not deafened and whose client
// negotiated such sound; that a channel which carries a player's microphone is kept from that player and from everybody
// who may not hear them; and that nothing of a channel is sent any more once Close has returned. It encodes with the
// encoder that it is given and decodes nothing, so a program without libopus can use all of it but PCM.
package speaker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Flush is the least time between two snapshots to one client: ten ticks of the game.
const Flush = 500 * time.Millisecond

// Bounds of a [Spec]; both are choices of this product.
const (
	MaxRange      = 1e6 // blocks
	MaxCoordinate = 1e9 // blocks; the game's world ends at thirty million
)

// Spec describes a channel.
type Spec struct {
	ID    uuid.UUID // zero, when a channel is opened, is a new random one; keep it to open the same channel again later
	Name  string    // as clients show it: see [talk.ValidSpeakerName]
	Owner string    // its maker, for [Set.CloseOwned]; not sent anywhere

	Backend, World string  // the backend by its name in the configuration, the world by its name there
	X, Y, Z        float64 // in blocks
	Volume         float64 // 0 to 1
	Range          float64 // blocks at which it has faded to nothing, above 0; no world's or region's range applies

	// Allow has the players who may hear it and see its name. nil: everybody; empty: nobody.
	Allow []uuid.UUID
}

// check returns what is wrong with the spec.
func (s *Spec) check() error {
	switch {
	case !talk.ValidSpeakerName(s.Name):
		return fmt.Errorf("speaker name %q: write 1 to %d characters that are not all blank, none of them a control or format character or §", s.Name, talk.MaxSpeakerName)
	case s.Backend == "" || s.World == "":
		return errors.New("speaker: name the backend and the world in which it stands")
	case !(math.Abs(s.X) <= MaxCoordinate && math.Abs(s.Y) <= MaxCoordinate && math.Abs(s.Z) <= MaxCoordinate):
		return fmt.Errorf("speaker: %v %v %v is no place in a world", s.X, s.Y, s.Z)
	case !(s.Volume >= 0 && s.Volume <= 1):
		return fmt.Errorf("speaker volume %v: write 0 to 1", s.Volume)
	case !(s.Range > 0 && s.Range <= MaxRange):
		return fmt.Errorf("speaker range %v: write more than 0 and at most %g blocks", s.Range, MaxRange)
	}
	return nil
}

// ErrClosed is the error of a closed channel, and of a closed set.
var ErrClosed = errors.New("speaker: closed")

// Config holds what a set works with.
type Config struct {
	Table func() *route.Table                      // the routing table in force
	Place func(backend, world string) *world.Place // see [world.Registry.Place]
}

// Set holds all channels of a gateway. Make one with [New]. Its methods, and those of channels, may be called from any
// goroutine.
type Set struct {
	cfg       Config
	delivered atomic.Uint64
	relays    atomic.Pointer[map[uuid.UUID][]*Input] // by origin; replaced whole

	wake    chan struct{}
	quit    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex // taken before a channel's
	closed   bool
	channels map[uuid.UUID]*Channel
	order    []*Channel // as they were opened
	version  uint64     // counts the changes that matter for snapshots
	readers  map[*reader]struct{}
}

// reader is a client that gets snapshots.
type reader struct {
	player  uuid.UUID
	show    func(s *talk.Speakers)
	version uint64
	shown   *talk.Speakers // nil before the first
}

// New starts a set without channels.
func New(cfg Config) *Set {
	s := &Set{
		cfg: cfg, wake: make(chan struct{}, 1), quit: make(chan struct{}),
		channels: make(map[uuid.UUID]*Channel), readers: make(map[*reader]struct{}), version: 1,
	}
	s.running.Go(s.run)
	return s
}

// closeWithin bounds how long Close waits for sources that are slow to give a frame, such as files of a disk that
// hangs.
const closeWithin = 2 * time.Second

// Close closes all channels and waits for everything that runs, a moment at most where a source does not come back.
func (s *Set) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	all := slices.Clone(s.order)
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeWithin):
	}
}

// Open makes a channel. It is silent until it is given something to play.
func (s *Set) Open(spec Spec) (*Channel, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	if spec.ID == uuid.Nil {
		spec.ID = uuid.New()
	}
	c := &Channel{set: s, id: spec.ID, out: route.NewChannel(spec.ID)}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.channels[spec.ID] != nil:
		return nil, fmt.Errorf("speaker: there is one with the id %v already, called %s", spec.ID, s.channels[spec.ID].spec.Name)
	}
	s.channels[spec.ID] = c
	s.order = append(s.order, c)
	c.become(spec)
	return c, nil
}

// Get returns the channel with the id, or nil.
func (s *Set) Get(id uuid.UUID) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[id]
}

// All returns the channels in the order in which they were opened.
func (s *Set) All() []*Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// CloseOwned closes all channels of an owner, as when a plugin is switched off.
func (s *Set) CloseOwned(owner string) {
	for _, c := range s.All() {
		if c.Spec().Owner == owner {
			c.Close()
		}
	}
}

// Delivered returns how many frames have been handed to listeners' sockets.
func (s *Set) Delivered() uint64 { return s.delivered.Load() }

// Mic takes a checked frame of a player's microphone, for the channels that carry it. stream and seq are the client's,
// both 0 when it does not count its frames. The bytes are not kept. Calls for one member must not overlap.
func (s *Set) Mic(from *route.Member, stream, seq int64, opus []byte) {
	if relays := s.relays.Load(); relays != nil {
		for _, in := range (*relays)[from.Player.ID] {
			in.relay(from, stream, seq, opus)
		}
	}
}

// Join has show called with the snapshot of the named channels that a player may hear, soon and whenever it has changed
// since, at most once per [Flush]. Players who may hear the same share one. show must not block, nor call the set; it
// keeps only the newest. leave ends that.
func (s *Set) Join(player uuid.UUID, show func(s *talk.Speakers)) (leave func()) {
	r := &reader{player: player, show: show}
	s.mu.Lock()
	s.readers[r] = struct{}{}
	s.mu.Unlock()
	s.poke()
	return func() {
		s.mu.Lock()
		delete(s.readers, r)
		s.mu.Unlock()
	}
}

// changed notes that snapshots may differ. s.mu is held.
func (s *Set) changed() {
	s.version++
	s.poke()
}

func (s *Set) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run brings the readers up to date when something has changed, and then rests so that changes add up.
func (s *Set) run() {
	for {
		select {
		case <-s.quit:
			return
		case <-s.wake:
		}
		s.flush()
		select {
		case <-s.quit:
			return
		case <-time.After(Flush):
		}
	}
}

// flush shows every reader what has changed for it.
func (s *Set) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *talk.Speakers // the reader before this one; most may hear the same
	for r := range s.readers {
		if r.version == s.version {
			continue
		}
		r.version = s.version
		list := s.snapshot(r.player)
		if r.shown != nil && slices.Equal(r.shown.List, list) {
			last = r.shown
			continue
		}
		if last == nil || !slices.Equal(last.List, list) {
			last = &talk.Speakers{List: list}
		}
		r.shown = last
		r.show(last)
	}
}

// snapshot returns the oldest channels that a player may hear, as many as a snapshot holds.
func (s *Set) snapshot(player uuid.UUID) (list []talk.Speaker) {
	for _, c := range s.order {
		if len(list) == talk.MaxSpeakers {
			break
		}
		if c.spec.Allow == nil || slices.Contains(c.spec.Allow, player) {
			list = append(list, talk.Speaker{ID: c.id, Name: c.spec.Name})
		}
	}
	return list
}
