package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Relative lists the values of a movement that are added to the current ones instead of replacing them. The bits are
// those of the wire.
type Relative uint32

// The bits that the bridge looks at; from 768 on there are more, about velocity.
const (
	RelX Relative = 1 << iota
	RelY
	RelZ
	RelYaw
	RelPitch

	RelPlace = RelX | RelY | RelZ
)

// Move is a client's word about its own body: position, position_look, look and flying in one.
type Move struct {
	HasPlace   bool
	X, Y, Z    float64 // the feet, in blocks
	HasLook    bool
	Yaw, Pitch float32 // degrees
	OnGround   bool
}

// ParseMove reads one of the four serverbound packets, named by p; they are alike in all versions.
//
// Layout: play/toServer/position, play/toServer/position_look, play/toServer/look and play/toServer/flying.
func ParseMove(p proto.Packet, body []byte) (m Move, err error) {
	r := field.NewReader(body)
	m.HasPlace = p == proto.Position || p == proto.PositionLook
	m.HasLook = p == proto.Look || p == proto.PositionLook
	if m.HasPlace {
		m.X, m.Y, m.Z = r.F64(), r.F64(), r.F64()
	}
	if m.HasLook {
		m.Yaw, m.Pitch = r.F32(), r.F32()
	}
	m.OnGround = r.U8()&1 != 0 // a bool up to 767, then bits of which this is the lowest
	return m, r.End()
}

// Teleport is the clientbound position packet: the server moves the player.
type Teleport struct {
	ID         int32 // 107 and later: the client confirms with it
	X, Y, Z    float64
	DX, DY, DZ float64 // 768 and later: the velocity
	Yaw, Pitch float32
	Relative   Relative
	Dismount   bool // 755-761: the player leaves the vehicle first
}

// ParseTeleport reads a clientbound position.
//
// Layout: play/toClient/position.
func ParseTeleport(protocol int32, body []byte) (t Teleport, err error) {
	r := field.NewReader(body)
	if proto.Has(protocol, proto.TeleportVelocity) {
		t.ID = r.VarInt()
		t.X, t.Y, t.Z = r.F64(), r.F64(), r.F64()
		t.DX, t.DY, t.DZ = r.F64(), r.F64(), r.F64()
		t.Yaw, t.Pitch = r.F32(), r.F32()
		t.Relative = Relative(r.I32())
		return t, r.End()
	}
	t.X, t.Y, t.Z = r.F64(), r.F64(), r.F64()
	t.Yaw, t.Pitch = r.F32(), r.F32()
	t.Relative = Relative(r.U8())
	if proto.Has(protocol, proto.TeleportID) {
		t.ID = r.VarInt()
	}
	if dismountInTeleport(protocol) {
		t.Dismount = r.Bool()
	}
	return t, r.End()
}

// AppendTeleport writes a clientbound position.
func AppendTeleport(dst []byte, protocol int32, t Teleport) []byte {
	if proto.Has(protocol, proto.TeleportVelocity) {
		dst = field.AppendVarInt(dst, t.ID)
	}
	dst = appendF64s(dst, t.X, t.Y, t.Z)
	if proto.Has(protocol, proto.TeleportVelocity) {
		dst = appendF64s(dst, t.DX, t.DY, t.DZ)
	}
	dst = field.AppendF32(field.AppendF32(dst, t.Yaw), t.Pitch)
	if proto.Has(protocol, proto.TeleportVelocity) {
		return field.AppendI32(dst, int32(t.Relative))
	}
	dst = append(dst, byte(t.Relative))
	if proto.Has(protocol, proto.TeleportID) {
		dst = field.AppendVarInt(dst, t.ID)
	}
	if dismountInTeleport(protocol) {
		dst = field.AppendBool(dst, t.Dismount)
	}
	return dst
}

func dismountInTeleport(protocol int32) bool {
	return proto.Has(protocol, proto.TeleportDismount)
}

func appendF64s(dst []byte, vs ...float64) []byte {
	for _, v := range vs {
		dst = field.AppendF64(dst, v)
	}
	return dst
}

// TeleportConfirm confirms a teleport that the client has carried out (107 and later).
type TeleportConfirm struct {
	ID         int32
	X, Y, Z    float64 // 777 on: where it is now; no movement says so later
	Yaw, Pitch float32 // 777 on
}

// ParseTeleportConfirm reads the client's answer.
//
// Layout: play/toServer/teleport_confirm.
func ParseTeleportConfirm(protocol int32, body []byte) (c TeleportConfirm, err error) {
	r := field.NewReader(body)
	c.ID = r.VarInt()
	if proto.Has(protocol, proto.TeleportConfirmHasPosition) {
		c.X, c.Y, c.Z = r.F64(), r.F64(), r.F64()
		c.Yaw, c.Pitch = r.F32(), r.F32()
	}
	return c, r.End()
}

// AppendTeleportConfirm writes the client's answer to a teleport.
func AppendTeleportConfirm(dst []byte, protocol int32, c TeleportConfirm) []byte {
	dst = field.AppendVarInt(dst, c.ID)
	if proto.Has(protocol, proto.TeleportConfirmHasPosition) {
		dst = field.AppendF32(field.AppendF32(appendF64s(dst, c.X, c.Y, c.Z), c.Yaw), c.Pitch)
	}
	return dst
}

// Rotation is the clientbound player_rotation packet (768 and later): the server turns the player's head.
type Rotation struct {
	Yaw, Pitch float32
	Relative   Relative
}

// ParseRotation reads a clientbound player_rotation.
//
// Layout: play/toClient/player_rotation.
func ParseRotation(protocol int32, body []byte) (t Rotation, err error) {
	r := field.NewReader(body)
	if !proto.Has(protocol, proto.RotationRelative) {
		t.Yaw, t.Pitch = r.F32(), r.F32()
		return t, r.End()
	}
	t.Yaw = r.F32()
	if r.Bool() {
		t.Relative |= RelYaw
	}
	t.Pitch = r.F32()
	if r.Bool() {
		t.Relative |= RelPitch
	}
	return t, r.End()
}

// VehicleMove is a vehicle's place as its driver's client sends it, or as the server corrects it (107 and later).
type VehicleMove struct {
	X, Y, Z    float64
	Yaw, Pitch float32 // the vehicle's, not the rider's
}

// ParseVehicleMove reads a vehicle_move of either direction.
//
// Layout: play/toClient/vehicle_move and play/toServer/vehicle_move.
func ParseVehicleMove(protocol int32, d proto.Dir, body []byte) (m VehicleMove, err error) {
	r := field.NewReader(body)
	m.X, m.Y, m.Z = r.F64(), r.F64(), r.F64()
	m.Yaw, m.Pitch = r.F32(), r.F32()
	if d == proto.Serverbound && proto.Has(protocol, proto.VehicleOnGround) {
		r.Bool() // on ground
	}
	return m, r.End()
}

// GameStateChange is the clientbound game_state_change (game event) packet.
type GameStateChange struct {
	Reason byte
	Value  float32
}

// GameModeChanged is the reason for a new game mode, which is its value.
const GameModeChanged = 3

// ParseGameStateChange reads a game_state_change.
//
// Layout: play/toClient/game_state_change.
func ParseGameStateChange(body []byte) (g GameStateChange, err error) {
	r := field.NewReader(body)
	g.Reason, g.Value = r.U8(), r.F32()
	return g, r.End()
}

// AppendGameStateChange writes a game_state_change.
func AppendGameStateChange(dst []byte, g GameStateChange) []byte {
	return field.AppendF32(append(dst, g.Reason), g.Value)
}

// EntityStatus is the clientbound entity_status (entity event) packet.
type EntityStatus struct {
	ID     int32
	Status int8
}

// OpLevel returns the operator level, 0 to 4, that a status of the player's own entity announces.
func (s EntityStatus) OpLevel() (level uint8, ok bool) {
	if s.Status < 24 || s.Status > 28 {
		return 0, false
	}
	return uint8(s.Status - 24), true
}

// ParseEntityStatus reads an entity_status; its entity id is no VarInt in any version.
//
// Layout: play/toClient/entity_status.
func ParseEntityStatus(body []byte) (s EntityStatus, err error) {
	r := field.NewReader(body)
	s.ID, s.Status = r.I32(), r.I8()
	return s, r.End()
}

// EntityMove is any packet that moves an entity: rel_entity_move, entity_move_look, entity_teleport,
// sync_entity_position and move_minecart. Looks are left out: nobody needs the look of a vehicle.
type EntityMove struct {
	ID       int32
	X, Y, Z  float64 // blocks
	Relative Relative
}

// MovedEntity peeks at the entity that such a packet moves, at the cost of one VarInt: nearly all of them are about
// entities that nobody asks about.
//
// Layout: play/toClient/rel_entity_move, play/toClient/entity_move_look, play/toClient/entity_teleport,
// play/toClient/sync_entity_position and play/toClient/move_minecart.
func MovedEntity(body []byte) (int32, error) {
	r := field.NewReader(body)
	return r.VarInt(), r.Err()
}

// ParseEntityMove reads the packet named by p.
//
// Layout: play/toClient/rel_entity_move, play/toClient/entity_move_look, play/toClient/entity_teleport,
// play/toClient/sync_entity_position and play/toClient/move_minecart.
func ParseEntityMove(protocol int32, p proto.Packet, body []byte) (m EntityMove, err error) {
	r := field.NewReader(body)
	m.ID = r.VarInt()
	switch p {
	case proto.RelEntityMove, proto.EntityMoveLook:
		m.Relative = RelPlace
		if proto.Has(protocol, proto.SteppedMoves) {
			m.X, m.Y, m.Z = readSteps(r)
			if p == proto.EntityMoveLook {
				r.Skip(2)
			}
			break
		}
		if !proto.Has(protocol, proto.EntityPlaceF64) {
			m.X, m.Y, m.Z = float64(r.I8())/32, float64(r.I8())/32, float64(r.I8())/32
		} else {
			m.X, m.Y, m.Z = float64(r.I16())/4096, float64(r.I16())/4096, float64(r.I16())/4096
		}
		if p == proto.EntityMoveLook {
			r.Skip(2)
		}
		r.Bool() // on ground
	case proto.EntityTeleport:
		m.X, m.Y, m.Z = readPlace(r, protocol)
		if !proto.Has(protocol, proto.TeleportVelocity) {
			r.Skip(2)
		} else {
			r.Skip(3*8 + 2*4)
			m.Relative = Relative(r.I32())
		}
		r.Bool() // on ground
	case proto.SyncEntityPosition:
		if proto.Has(protocol, proto.SteppedSync) {
			m.X, m.Y, m.Z = readPath(r)
			r.Skip(2 * 4)
		} else {
			m.X, m.Y, m.Z = readPlace(r, protocol)
			r.Skip(3*8 + 2*4)
		}
		r.Bool() // on ground
	case proto.MoveMinecart:
		m.X, m.Y, m.Z = readLastStep(r)
	default:
		r.Fail(fmt.Errorf("%v moves no entity", p))
	}
	return m, r.End()
}

// readSteps reads a move of 777 and later, which is the sum of its steps. Their number shares a VarInt with whether the
// entity is on the ground; 0 stands for one step without a time.
func readSteps(r *field.Reader) (x, y, z float64) {
	const step = 1 + 3*2
	n := int(uint32(r.VarInt()) >> 1)
	timed := n > 0
	if n*step > r.Len() {
		r.Fail(fmt.Errorf("%d steps in %d bytes", n, r.Len()))
		return
	}
	for range max(n, 1) {
		if timed {
			r.VarInt() // ticks
		}
		x, y, z = x+float64(r.I16())/4096, y+float64(r.I16())/4096, z+float64(r.I16())/4096
	}
	return x, y, z
}

// The kinds of places that a sync_entity_position of 777 and later has.
const (
	syncPlace = iota // one
	syncSteps        // several, with times; the last one is where the entity is
)

func readPath(r *field.Reader) (x, y, z float64) {
	switch kind := r.VarInt(); kind {
	case syncPlace:
		return r.F64(), r.F64(), r.F64()
	case syncSteps:
		n := r.Count(3*8 + 1)
		if n == 0 {
			r.Fail(fmt.Errorf("a way without steps"))
		}
		for range n {
			x, y, z = r.F64(), r.F64(), r.F64()
			r.VarInt() // ticks
		}
	default:
		r.Fail(fmt.Errorf("a place of kind %d", kind))
	}
	return x, y, z
}

// readPlace reads an absolute place of an entity; 1.8 has it in 1/32 block.
func readPlace(r *field.Reader, protocol int32) (x, y, z float64) {
	if !proto.Has(protocol, proto.EntityPlaceF64) {
		return float64(r.I32()) / 32, float64(r.I32()) / 32, float64(r.I32()) / 32
	}
	return r.F64(), r.F64(), r.F64()
}

// readLastStep reads where a minecart's steps end. In the game a step is two double vectors, two angle bytes and a
// float, 54 bytes. Published protocol data has it as nine floats, 36 bytes, and servers built from that data send
// those. The length of the packet tells which it is.
func readLastStep(r *field.Reader) (x, y, z float64) {
	const double, single = 2*3*8 + 2 + 4, 9 * 4
	n := r.Count(single)
	if n == 0 {
		r.Fail(fmt.Errorf("minecart without steps"))
		return
	}
	if r.Len() == n*single {
		r.Skip((n - 1) * single)
		x, y, z = float64(r.F32()), float64(r.F32()), float64(r.F32())
		r.Skip(single - 3*4)
		return
	}
	r.Skip((n - 1) * double)
	x, y, z = r.F64(), r.F64(), r.F64()
	r.Skip(double - 3*8)
	return
}
