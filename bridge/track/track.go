// Package track turns the packets of one player's session into that player's facts and poses in bridge/world.
//
// It promises never to disturb the session: it blocks only on its own short lock, and does not fail. A packet that
// cannot be decoded is counted and otherwise ignored. And it promises never to invent a place: from a login or respawn
// until the server says where the player stands, the pose is nil.
//
// The player's place comes from three sources, by what the player does. On foot it is the client's own movement. What a
// client sends before it has carried out the server's last teleport is from another place and is left out, as the game
// server itself does. Steering a vehicle, it is the client's vehicle_move. As a passenger, whose client sends no place
// at all, it is the server's movement of the vehicle, and likewise for a spectator who looks through another entity's
// eyes.
package track

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// Wants lists the packets that a Track must be shown of a version, state and direction. Everything else may pass as
// bytes.
func Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	if s != proto.Play {
		return nil
	}
	all := clientbound
	if d == proto.Serverbound {
		all = serverbound
	}
	wanted := make([]proto.Packet, 0, len(all))
	for _, p := range all {
		// From 1.9 on attach_entity only leashes.
		if _, ok := v.ID(s, d, p); ok && !(p == proto.AttachEntity && !v.Has(proto.AttachRides)) {
			wanted = append(wanted, p)
		}
	}
	return wanted
}

var serverbound = []proto.Packet{proto.Position, proto.PositionLook, proto.Look, proto.VehicleMove, proto.TeleportConfirm}

var clientbound = []proto.Packet{
	proto.JoinGame, proto.Respawn, proto.StartConfiguration,
	proto.Position, proto.PlayerRotation, proto.VehicleMove,
	proto.GameStateChange, proto.EntityStatus,
	proto.PlayerInfo, proto.PlayerRemove,
	proto.SetPassengers, proto.AttachEntity, proto.Camera, proto.EntityDestroy, proto.DestroyEntity,
	proto.SpawnEntity, proto.SpawnEntityLiving, proto.NamedEntitySpawn,
	proto.RelEntityMove, proto.EntityMoveLook, proto.EntityTeleport, proto.SyncEntityPosition, proto.MoveMinecart,
	proto.UpdateTime, proto.UpdateHealth,
}

const (
	// nobody is no entity's id, which are 32 bits wide.
	nobody = math.MinInt64

	// freshSpawn is how long an entity counts as being where it appeared.
	freshSpawn = time.Second

	// driverSilence is the number of moves of the vehicle that come from the server without one from the client before
	// the player counts as a passenger. The game's client sends one each tick while it steers.
	driverSilence = 5

	// maxSeats bounds how many entities may sit on others. One player's surroundings have a few hundred at most.
	maxSeats = 4096

	// maxCoordinate is beyond every world: the game keeps players within 3e7.
	maxCoordinate = 4e7
)

var errBeyond = errors.New("position or look is not a number or beyond every world")

// Track follows one session. Its methods may be called from several goroutines.
type Track struct {
	// Failures counts undecodable packets. It may be nil, and is set before the first packet.
	Failures *Failures

	player   *world.Player
	reg      *world.Registry
	protocol int32

	// carrier is the entity that moves the player, or nobody. Most traffic is movement of entities, and nearly all of
	// it is dismissed by one load of this.
	carrier atomic.Int64
	seated  atomic.Bool // seats is not empty

	mu      sync.Mutex
	closed  bool
	backend string
	world   string // by the backend's name; empty: none yet
	self    int32  // the player's entity id
	facts   world.Facts
	camera  int32 // the entity whose eyes the player sees through: self, or the one a spectator watches

	x, y, z   float64 // where the player stands, or the carrier
	yaw       float32
	hasPlace  bool
	hasYaw    bool
	gate      gate
	reborn    bool            // into this world, not joined
	walking   time.Time       // since when the client says where it is although the server has not; zero: it does not
	confirm   int32           // gateConfirm: the id
	echo      [3]float64      // gateEcho: the place
	seats     map[int32]int32 // rider to vehicle, as far as the backend has told
	unsteered int             // moves of the vehicle since the client's last, driverSilence at most
	spawn     packet.Spawn    // the entity that appeared last
	spawnedAt time.Duration   // and when, since born; 0: none has
	born      time.Time
	ids       []uuid.UUID // scratch
	gone      []int32     // scratch
}

// gate says which of the client's movements are believed.
type gate uint8

const (
	gateSpawn   gate = iota // none: the server has not said where the player stands in this world
	gateConfirm             // none until the client confirms the teleport, 1.9 and later
	gateEcho                // none until the client stands where it was told to, 1.8
	gateOpen                // all
)

// New tracks player, whom reg knows, over a session of version v.
func New(player *world.Player, reg *world.Registry, v *proto.Version) *Track {
	t := &Track{player: player, reg: reg, protocol: v.Protocol, born: time.Now()}
	player.Sight.ByNumber = !v.Has(proto.NamedWorlds)
	t.carrier.Store(nobody)
	player.OnPart(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.locate()
	})
	return t
}

// Backend says which backend packets come from now on, and the backend's UUID of the player. The former one's news hold
// no longer.
func (t *Track) Backend(name string, id uuid.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.backend = name
	t.leave()
	if !t.closed {
		t.player.Sight.Enter(name, id)
	}
}

// Close ends the tracking: the player is nowhere and sees nobody, and later calls do nothing. The caller that added the
// player to the registry removes them from it.
func (t *Track) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave()
	t.player.Sight.Leave()
	t.closed = true
}

// Serverbound takes a packet of the client.
func (t *Track) Serverbound(s proto.State, p proto.Packet, body []byte) {
	if s != proto.Play {
		return
	}
	var err error
	switch p {
	case proto.Position, proto.PositionLook, proto.Look:
		err = t.clientMoved(p, body)
	case proto.VehicleMove:
		err = t.clientSteered(body)
	case proto.TeleportConfirm:
		err = t.clientConfirmed(body)
	}
	t.failed(p, err)
}

// Clientbound takes a packet of the backend, before the client gets it.
func (t *Track) Clientbound(s proto.State, p proto.Packet, body []byte) {
	if s != proto.Play {
		return
	}
	var err error
	switch p {
	case proto.RelEntityMove, proto.EntityMoveLook, proto.EntityTeleport, proto.SyncEntityPosition, proto.MoveMinecart:
		carrier := t.carrier.Load()
		if carrier == nobody {
			return
		}
		var id int32
		if id, err = packet.MovedEntity(body); err == nil && int64(id) == carrier {
			err = t.carrierMoved(p, body)
		}
	case proto.EntityDestroy, proto.DestroyEntity:
		err = t.destroyed(p, body)
	case proto.UpdateTime:
		err = t.aged(body)
	case proto.UpdateHealth:
		err = t.healthChanged(body)
	case proto.SpawnEntity, proto.SpawnEntityLiving, proto.NamedEntitySpawn:
		err = t.spawned(p, body)
	case proto.EntityStatus:
		err = t.entityStatus(body)
	case proto.PlayerInfo:
		err = t.playerInfo(body)
	case proto.PlayerRemove:
		err = t.playerRemove(body)
	case proto.Position:
		err = t.teleported(body)
	case proto.PlayerRotation:
		err = t.turned(body)
	case proto.VehicleMove:
		err = t.vehicleCorrected(body)
	case proto.SetPassengers:
		err = t.passengers(body)
	case proto.AttachEntity:
		err = t.attached(body)
	case proto.Camera:
		err = t.watching(body)
	case proto.GameStateChange:
		err = t.gameState(body)
	case proto.JoinGame:
		err = t.joined(body)
	case proto.Respawn:
		err = t.respawned(body)
	case proto.StartConfiguration: // the client forgets its world and its player list
		t.mu.Lock()
		t.leave()
		t.mu.Unlock()
	}
	t.failed(p, err)
}

func (t *Track) failed(p proto.Packet, err error) {
	if err != nil && t.Failures != nil {
		t.Failures.add(p, t.protocol, t.player.Name, err)
	}
}

// leave forgets everything from the backend. Like all methods from here to the next comment of this kind, it is called
// with the lock held.
func (t *Track) leave() {
	t.player.HideAll()
	t.player.Sight.Outside()
	t.world = ""
	t.enter(world.Facts{})
}

// enter puts the player into the world of facts, at a place yet unknown.
func (t *Track) enter(f world.Facts) {
	if t.closed {
		return
	}
	t.player.SetPose(nil)
	t.hasPlace, t.hasYaw, t.gate = false, false, gateSpawn
	t.reborn, t.walking = false, time.Time{}
	t.seats, t.spawnedAt, t.camera = nil, 0, t.self
	t.facts = f
	t.settle()
}

// settle works out who carries the player and publishes the facts.
func (t *Track) settle() {
	t.seated.Store(len(t.seats) > 0)
	t.facts.Vehicle, t.facts.Riding = t.seats[t.self]
	id := t.camera
	for range 16 { // towers of riders are not higher, and a backend may have built a ring
		below, ok := t.seats[id]
		if !ok {
			break
		}
		id = below
	}
	root := int64(id)
	if id == t.self {
		root = nobody
	}
	if root != t.carrier.Load() {
		t.carrier.Store(root)
		t.unsteered = driverSilence
		// A vehicle is mounted from beside it, so the player's own place will do until its first absolute move. On
		// mounting, the server sends the player's place again, too. A vehicle that has just appeared may be anywhere.
		if root == int64(t.spawn.ID) && t.spawnedAt > 0 && t.now()-t.spawnedAt < freshSpawn {
			t.place(t.spawn.X, t.spawn.Y, t.spawn.Z)
		}
	}
	if !t.closed {
		t.player.Sight.Spectates(t.facts.Mode == world.Spectator)
		t.player.SetFacts(t.facts)
	}
	t.publish()
}

// where returns the player's world; the client may not have been told its name.
func (t *Track) where() sight.World {
	w := t.player.Sight.World()
	if w.Name == "" {
		w.Name = t.world
	}
	return w
}

// locate takes over in which world the player is by now.
func (t *Track) locate() {
	w := t.where()
	if p := t.facts.Place; t.closed || p == nil || p.World == w.Name && p.Part == w.Part {
		return
	}
	t.facts.Place = t.reg.Part(t.backend, w.Name, w.Part)
	t.player.SetFacts(t.facts)
	t.publish()
}

// now returns the age of the track, never 0, by the monotonic clock alone, which is read in half the time.
func (t *Track) now() time.Duration { return time.Since(t.born) + 1 }

// place sets where the player stands.
func (t *Track) place(x, y, z float64) error {
	// Written so that NaN fails.
	if !(math.Abs(x) <= maxCoordinate && math.Abs(y) <= maxCoordinate && math.Abs(z) <= maxCoordinate) {
		return errBeyond
	}
	t.x, t.y, t.z, t.hasPlace = x, y, z, true
	return nil
}

// shift does as place, with some coordinates relative to where the player stands; with that unknown it stays unknown.
func (t *Track) shift(x, y, z float64, rel packet.Relative) error {
	if rel&packet.RelPlace != 0 && !t.hasPlace {
		return nil
	}
	if rel&packet.RelX != 0 {
		x += t.x
	}
	if rel&packet.RelY != 0 {
		y += t.y
	}
	if rel&packet.RelZ != 0 {
		z += t.z
	}
	return t.place(x, y, z)
}

// look sets the yaw; it adds to the current one if relative.
func (t *Track) look(yaw float32, relative bool) error {
	if relative {
		if !t.hasYaw {
			return nil
		}
		yaw += t.yaw
	}
	if !(math.Abs(float64(yaw)) <= math.MaxFloat32) {
		return errBeyond
	}
	t.yaw, t.hasYaw = yaw, true
	return nil
}

// publish makes a pose of the present knowledge.
func (t *Track) publish() {
	if t.closed || !t.hasPlace || !t.hasYaw || t.facts.Place == nil {
		return
	}
	now := world.Pose{X: t.x, Y: t.y, Z: t.z, Yaw: t.yaw, Place: t.facts.Place}
	if was := t.player.Pose(); was == nil || *was != now {
		pose := now // so that only a pose that differs is moved to the heap
		t.player.SetPose(&pose)
	}
}

// setMode takes over a game mode; numbers that do not exist change nothing.
func setMode(f *world.Facts, mode byte) {
	if mode <= byte(world.Spectator) {
		f.Mode = world.GameMode(mode)
	}
}

// The methods from here on are called without the lock. They decode before they take it.

func (t *Track) clientMoved(p proto.Packet, body []byte) error {
	m, err := packet.ParseMove(p, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.gate {
	case gateSpawn:
		if !t.walks(m) {
			return nil
		}
		t.gate, t.hasYaw = gateOpen, true // the yaw of before, if the client has sent no other
	case gateConfirm:
		return nil
	case gateEcho:
		dx, dy, dz := m.X-t.echo[0], m.Y-t.echo[1], m.Z-t.echo[2]
		if !m.HasPlace || !(dx*dx+dy*dy+dz*dz < 0.25) {
			return nil
		}
		t.gate = gateOpen
	}
	if m.HasLook {
		if err := t.look(m.Yaw, false); err != nil {
			return err
		}
	}
	if m.HasPlace && t.carrier.Load() == nobody { // a rider's place is the server's business
		if err := t.place(m.X, m.Y, m.Z); err != nil {
			return err
		}
	}
	t.publish()
	return nil
}

// believed is how long a client has to move after a respawn without a teleport until it is believed: its words from the
// world before are long over then. Some servers leave the teleport out where the player keeps its place.
const believed = time.Second

// walks tells whether the client has moved long enough to be believed. It is called with the lock held.
func (t *Track) walks(m packet.Move) bool {
	if !t.reborn || !m.HasPlace {
		return false
	}
	now := time.Now()
	if t.walking.IsZero() {
		t.walking = now
	}
	return now.Sub(t.walking) >= believed
}

func (t *Track) clientSteered(body []byte) error {
	m, err := packet.ParseVehicleMove(t.protocol, proto.Serverbound, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.facts.Riding {
		return nil // sent before the client knew that it had been taken off
	}
	t.unsteered = 0
	return t.carry(packet.EntityMove{X: m.X, Y: m.Y, Z: m.Z})
}

func (t *Track) clientConfirmed(body []byte) error {
	c, err := packet.ParseTeleportConfirm(t.protocol, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate != gateConfirm || t.confirm != c.ID {
		return nil
	}
	t.gate = gateOpen
	if !proto.Has(t.protocol, proto.TeleportConfirmHasPosition) {
		return nil // the place follows
	}
	if err := t.look(c.Yaw, false); err != nil {
		return err
	}
	if t.carrier.Load() == nobody { // a rider's place is the server's business
		if err := t.place(c.X, c.Y, c.Z); err != nil {
			return err
		}
	}
	t.publish()
	return nil
}

// carry moves the player with the vehicle. It is called with the lock held.
func (t *Track) carry(m packet.EntityMove) error {
	err := t.shift(m.X, m.Y, m.Z, m.Relative)
	t.publish()
	return err
}

func (t *Track) carrierMoved(p proto.Packet, body []byte) error {
	m, err := packet.ParseEntityMove(t.protocol, p, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if int64(m.ID) != t.carrier.Load() {
		return nil
	}
	if t.unsteered < driverSilence { // an echo of the client's own packet
		t.unsteered++
		return nil
	}
	return t.carry(m)
}

func (t *Track) vehicleCorrected(body []byte) error {
	m, err := packet.ParseVehicleMove(t.protocol, proto.Clientbound, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.facts.Riding {
		return nil
	}
	return t.carry(packet.EntityMove{X: m.X, Y: m.Y, Z: m.Z})
}

func (t *Track) teleported(body []byte) error {
	m, err := packet.ParseTeleport(t.protocol, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.look(m.Yaw, m.Relative&packet.RelYaw != 0); err != nil {
		return err
	}
	if err := t.shift(m.X, m.Y, m.Z, m.Relative); err != nil {
		return err
	}
	t.player.Sight.Teleported()
	switch {
	case proto.Has(t.protocol, proto.TeleportID):
		t.gate, t.confirm = gateConfirm, m.ID
	case m.Relative&packet.RelPlace == 0:
		t.gate, t.echo = gateEcho, [...]float64{m.X, m.Y, m.Z}
	case t.hasPlace: // the client adds to its present place, which may differ a little from ours
		t.gate = gateOpen
	}
	if m.Dismount {
		delete(t.seats, t.self)
		t.settle()
	}
	t.publish()
	return nil
}

func (t *Track) turned(body []byte) error {
	m, err := packet.ParseRotation(t.protocol, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.look(m.Yaw, m.Relative&packet.RelYaw != 0); err != nil {
		return err
	}
	t.publish()
	return nil
}

func (t *Track) joined(body []byte) error {
	j, err := packet.ParseJoinGame(t.protocol, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self = j.EntityID
	// The player list stays: up to 763 the client keeps it, and later a configuration phase has emptied it.
	if t.closed {
		return nil
	}
	t.world = j.World
	t.player.SetPose(nil) // it is of another world
	t.player.Sight.Login(j.EntityID, j.World, j.Seed)
	w := t.where()
	f := world.Facts{Place: t.reg.Part(t.backend, w.Name, w.Part)}
	setMode(&f, j.Mode)
	t.enter(f)
	return nil
}

func (t *Track) respawned(body []byte) error {
	s, err := packet.ParseRespawn(t.protocol, body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	f := t.facts
	t.world = s.World
	t.player.SetPose(nil)
	t.player.Sight.Respawn(s.World, s.Seed)
	w := t.where()
	f.Place = t.reg.Part(t.backend, w.Name, w.Part)
	setMode(&f, s.Mode)
	t.enter(f)
	t.reborn = true
	return nil
}

func (t *Track) gameState(body []byte) error {
	g, err := packet.ParseGameStateChange(body)
	if err != nil || g.Reason != packet.GameModeChanged {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.Value > -0.5 && g.Value < 255 {
		setMode(&t.facts, byte(g.Value+0.5))
	}
	t.settle()
	return nil
}

func (t *Track) entityStatus(body []byte) error {
	s, err := packet.ParseEntityStatus(body)
	level, ok := s.OpLevel()
	if err != nil || !ok {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.ID == t.self && t.facts.Place != nil {
		t.facts.OpLevel = level
		t.settle()
	}
	return nil
}

// aged takes in the age of the world, which tells worlds of one name apart.
func (t *Track) aged(body []byte) error {
	ticks, err := packet.ParseWorldAge(body)
	if err != nil {
		return err
	}
	t.player.Sight.Age(ticks)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locate()
	return nil
}

// healthChanged takes in whether the player lives: others lose the bodies of the dead.
func (t *Track) healthChanged(body []byte) error {
	health, err := packet.ParseHealth(body)
	if err == nil {
		t.player.Sight.Dead(health <= 0)
	}
	return err
}

// playerInfo keeps the sight. A player in the list with listed = false counts as shown: only the tab overlay leaves
// them out, the client knows them and sees their body. A player is hidden by being taken off the list, and vanish
// plugins do that.
func (t *Track) playerInfo(body []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids, change, err := packet.PlayersChanged(t.ids[:0], t.protocol, body)
	t.ids = keep(ids)
	switch {
	case t.closed:
	case change == packet.InfoShown:
		t.player.Show(ids...)
	case change == packet.InfoHidden:
		t.player.Hide(ids...)
	}
	return err
}

func (t *Track) playerRemove(body []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids, err := packet.ParsePlayerRemove(t.ids[:0], body)
	t.ids = keep(ids)
	if err == nil && !t.closed {
		t.player.Hide(ids...)
	}
	return err
}

// keep holds on to a scratch slice for the next packet unless a single large one has blown it up.
func keep[T any](s []T) []T {
	if cap(s) > 256 {
		return nil
	}
	return s[:0]
}

func (t *Track) spawned(p proto.Packet, body []byte) error {
	s, err := packet.ParseSpawn(t.protocol, p, body)
	if err != nil {
		return err
	}
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spawn, t.spawnedAt = s, now
	t.player.Sight.Spawn(t.born.Add(now), s.ID, s.UUID, s.X, s.Y, s.Z)
	return nil
}

func (t *Track) passengers(body []byte) error {
	p, err := packet.ParsePassengers(body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.seats, func(_, vehicle int32) bool { return vehicle == p.Vehicle })
	for _, rider := range p.Riders {
		t.seat(rider, p.Vehicle)
	}
	t.settle()
	return nil
}

func (t *Track) attached(body []byte) error {
	a, err := packet.ParseAttachment(t.protocol, body)
	if err != nil || a.Leash {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.Vehicle == -1 {
		delete(t.seats, a.ID)
	} else {
		t.seat(a.ID, a.Vehicle)
	}
	t.settle()
	return nil
}

// watching follows a spectator into the entity they look through: the client then says nothing of its place, and the
// server has teleported it there first.
func (t *Track) watching(body []byte) error {
	id, err := packet.ParseCamera(body)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.camera = id
	t.settle()
	return nil
}

// seat notes who sits on what. It is called with the lock held.
func (t *Track) seat(rider, vehicle int32) {
	if t.seats == nil {
		t.seats = make(map[int32]int32)
	}
	if rider == t.self || len(t.seats) < maxSeats {
		t.seats[rider] = vehicle
	}
}

func (t *Track) destroyed(p proto.Packet, body []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone, err := packet.ParseDestroyed(t.gone[:0], p, body)
	t.gone = keep(gone)
	if err != nil {
		return err
	}
	t.player.Sight.Destroy(gone...)
	if len(t.seats) == 0 {
		return nil
	}
	slices.Sort(gone)
	was := len(t.seats)
	maps.DeleteFunc(t.seats, func(rider, vehicle int32) bool {
		_, r := slices.BinarySearch(gone, rider)
		_, v := slices.BinarySearch(gone, vehicle)
		return r || v
	})
	if len(t.seats) != was {
		t.settle()
	}
	return nil
}
