package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// Passengers is the set_passengers packet (107 and later): everybody who sits on one entity.
type Passengers struct {
	Vehicle int32
	Riders  []int32 // the full list; empty when all are off
}

// ParsePassengers reads a set_passengers.
//
// Layout: play/toClient/set_passengers.
func ParsePassengers(body []byte) (p Passengers, err error) {
	r := field.NewReader(body)
	p.Vehicle = r.VarInt()
	p.Riders = readVarInts(r, nil)
	return p, r.End()
}

// Attachment is the attach_entity packet: up to 47 a rider mounts a vehicle with it, later it only leashes.
type Attachment struct {
	ID      int32
	Vehicle int32 // -1: off
	Leash   bool  // not riding, always so from 107 on
}

// ParseAttachment reads an attach_entity.
//
// Layout: play/toClient/attach_entity.
func ParseAttachment(protocol int32, body []byte) (a Attachment, err error) {
	r := field.NewReader(body)
	a.ID, a.Vehicle, a.Leash = r.I32(), r.I32(), true
	if proto.Has(protocol, proto.AttachRides) {
		a.Leash = r.Bool()
	}
	return a, r.End()
}

// ParseCamera reads a camera packet: the entity that the client sees through, its own to see normally.
//
// Layout: play/toClient/camera.
func ParseCamera(body []byte) (id int32, err error) {
	r := field.NewReader(body)
	id = r.VarInt()
	return id, r.End()
}

// ParseDestroyed reads an entity_destroy, or 755's destroy_entity, and appends the ids of the entities that are gone.
//
// Layout: play/toClient/entity_destroy and play/toClient/destroy_entity.
func ParseDestroyed(dst []int32, p proto.Packet, body []byte) ([]int32, error) {
	r := field.NewReader(body)
	if p == proto.DestroyEntity {
		dst = append(dst, r.VarInt())
	} else {
		dst = readVarInts(r, dst)
	}
	return dst, r.End()
}

func readVarInts(r *field.Reader, dst []int32) []int32 {
	for n := r.Count(1); n > 0; n-- {
		dst = append(dst, r.VarInt())
	}
	return dst
}

// Spawn says which entity appears where. The bridge reads no more of the spawn packets.
type Spawn struct {
	ID      int32
	UUID    uuid.UUID // zero where a version's packet has none: up to 47 all but named_entity_spawn
	X, Y, Z float64
}

// ParseSpawn reads the beginning of a spawn_entity, spawn_entity_living or named_entity_spawn.
//
// Layout: play/toClient/spawn_entity, play/toClient/spawn_entity_living and play/toClient/named_entity_spawn.
func ParseSpawn(protocol int32, p proto.Packet, body []byte) (s Spawn, err error) {
	r := field.NewReader(body)
	s.ID = r.VarInt()
	if p == proto.NamedEntitySpawn || proto.Has(protocol, proto.SpawnUUID) {
		s.UUID = r.UUID()
	}
	switch {
	case p == proto.NamedEntitySpawn: // a player, no type
	case p == proto.SpawnEntity && proto.Has(protocol, proto.SpawnTypeVarInt), p == proto.SpawnEntityLiving && proto.Has(protocol, proto.LivingTypeVarInt):
		r.VarInt()
	case p == proto.SpawnEntity, p == proto.SpawnEntityLiving:
		r.U8()
	default:
		r.Fail(fmt.Errorf("%v spawns no entity", p))
	}
	s.X, s.Y, s.Z = readPlace(r, protocol)
	return s, r.Err()
}
