package packet

import (
	"bytes"
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Rejoin makes two packets that take a client of 47 to 763 from one backend's world into another's: the join game to
// send, and the respawn to send behind it. Up to 578 the join game has another dimension than the backend's, and the
// respawn the right one: a client keeps its chunks and entities when the dimension does not change. From 735 on the
// join game is the backend's own. The slices may alias join.
//
// Layout: play/toClient/login and play/toClient/respawn.
func Rejoin(protocol int32, join []byte) (first, respawn []byte, err error) {
	switch {
	case !proto.Has(protocol, proto.NamedWorlds):
		return rejoinByNumber(protocol, join)
	case !proto.Has(protocol, proto.Configuration):
		respawn, err = respawnFrom(protocol, join)
		return join, respawn, err
	}
	return nil, nil, fmt.Errorf("protocol %d changes servers by its configuration", protocol)
}

// RejoinForge makes two respawns that take a client with Forge of up to 340 into another backend's world, behind the
// backend's own join game: into another dimension and back. The client's mods have to see the join game unchanged.
//
// Layout: play/toClient/login and play/toClient/respawn.
func RejoinForge(protocol int32, join []byte) (away, back []byte, err error) {
	if proto.Has(protocol, proto.NamespacedChannels) {
		return nil, nil, fmt.Errorf("a client of protocol %d changes servers in the same way with Forge as without", protocol)
	}
	_, back, err = rejoinByNumber(protocol, join)
	if err != nil {
		return nil, nil, err
	}
	other := int32(0)
	if bytes.Equal(back[:4], field.AppendI32(nil, 0)) {
		other = -1
	}
	return append(field.AppendI32(nil, other), back[4:]...), back, nil
}

// hardcoreBit is part of the game mode up to 736, in join game only.
const hardcoreBit = 8

func rejoinByNumber(protocol int32, join []byte) (first, respawn []byte, err error) {
	r := field.NewReader(join)
	head := r.Raw(4) // entity
	mode := r.U8()
	var dimension int32
	if !proto.Has(protocol, proto.DimensionI32) {
		dimension = int32(r.I8())
	} else {
		dimension = r.I32()
	}
	tail := *r
	var difficulty, seed []byte
	if proto.Has(protocol, proto.RespawnDifficulty) {
		difficulty = r.Raw(1)
	}
	if proto.Has(protocol, proto.HashedSeed) {
		seed = r.Raw(8)
	}
	r.U8() // players
	level := r.StringBytes(maxName)
	if err := r.Err(); err != nil {
		return nil, nil, err
	}
	other := int32(0)
	if dimension == 0 {
		other = -1
	}
	first = append(append(first, head...), mode)
	if !proto.Has(protocol, proto.DimensionI32) {
		first = append(first, byte(other))
	} else {
		first = field.AppendI32(first, other)
	}
	first = append(first, tail.Rest()...)

	respawn = field.AppendI32(respawn, dimension)
	respawn = append(append(respawn, difficulty...), seed...)
	respawn = append(respawn, mode&^hardcoreBit)
	return first, field.AppendBytes(respawn, level), nil
}

func respawnFrom(protocol int32, join []byte) (respawn []byte, err error) {
	r := field.NewReader(join)
	r.I32() // entity
	if proto.Has(protocol, proto.HardcoreFlag) {
		r.Bool() // hardcore
	}
	mode := r.U8()
	if !proto.Has(protocol, proto.HardcoreFlag) {
		mode &^= hardcoreBit
	}
	previous := r.U8()
	skipStrings(r)
	r.SkipNBT(true) // registries
	from := *r
	skipDimension(r, protocol)
	r.StringBytes(maxName) // world
	r.I64()                // hashed seed
	place := between(from, r)
	if !proto.Has(protocol, proto.HardcoreFlag) {
		r.U8() // players
	} else {
		r.VarInt()
	}
	r.VarInt() // view distance
	if proto.Has(protocol, proto.SimulationView) {
		r.VarInt() // simulation distance
	}
	r.Raw(2) // reduced debug info, respawn screen
	flags := r.Raw(2)
	from = *r
	if proto.Has(protocol, proto.DeathLocation) {
		if r.Bool() { // last death
			r.StringBytes(maxName)
			r.I64()
		}
	}
	if proto.Has(protocol, proto.PortalCooldown) {
		r.VarInt() // portal cooldown
	}
	end := between(from, r)
	if err := r.Err(); err != nil {
		return nil, err
	}
	respawn = append(respawn, place...)
	respawn = append(respawn, mode, previous)
	respawn = append(respawn, flags...)
	respawn = append(respawn, 0) // keep nothing: a bool up to 760, bits from 761 on
	return append(respawn, end...), nil
}
