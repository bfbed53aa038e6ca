package limbo

import (
	"math"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Players see each other, as far as that is cheap: every movement of a body goes to every player, so only so many
// players have one, and it moves only so often. Players who come later get one when one of these leaves.
const (
	maxBodies = 32
	moveEvery = 100 * time.Millisecond
)

// pose says where a body is shown.
type pose struct {
	x, y, z    float64
	yaw, pitch float32
	ground     bool
}

var spawnPose = pose{x: spawnX, y: spawnY, z: spawnZ, ground: true}

// update takes over a movement; it returns false for one that cannot be shown.
func (at *pose) update(m packet.Move) bool {
	at.ground = m.OnGround
	if m.HasPlace {
		at.x, at.y, at.z = m.X, m.Y, m.Z
	}
	if m.HasLook {
		at.yaw, at.pitch = m.Yaw, m.Pitch
	}
	for _, v := range [...]float64{at.x, at.y, at.z, float64(at.yaw), float64(at.pitch)} {
		if math.IsNaN(v) || math.Abs(v) > 1<<20 {
			return false
		}
	}
	return true
}

// moved notes where a player stands. p's writer tells the others in time.
func (w *World) moved(p *player, at pose) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.shown = at
	if p.body && !p.moved {
		p.moved = true
		p.steps <- struct{}{} // whoever takes it out clears moved later, so there is room
	}
}

// tell shows the others where a player stands.
func (w *World) tell(p *player) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.moved = false
	if !p.body {
		return
	}
	w.broadcast(func(dst []byte, to *player) []byte {
		if to == p {
			return dst
		}
		return appendMove(dst, to.version, p.entity, p.shown)
	})
}

// embody gives p a body if there is one left, and shows it to the others.
func (w *World) embody(p *player) {
	if w.bodies >= maxBodies {
		return
	}
	w.bodies++
	p.body = true
	w.broadcast(func(dst []byte, to *player) []byte {
		if to == p {
			return dst
		}
		return appendBody(dst, to.version, p)
	})
}

// disembody takes p's body away and gives it to somebody who has none.
func (w *World) disembody(p *player) {
	if !p.body {
		return
	}
	w.bodies--
	p.body = false
	w.broadcast(func(dst []byte, to *player) []byte { return appendVanish(dst, to.version, p.entity) })
	for _, q := range w.players {
		if !q.body {
			w.embody(q)
			return
		}
	}
}

// appendBody lets a body appear. The player must be on the list already.
func appendBody(dst []byte, v *proto.Version, p *player) []byte {
	at, yaw, pitch := p.shown, angle(p.shown.yaw), angle(p.shown.pitch)
	body := field.AppendUUID(field.AppendVarInt(nil, p.entity), p.id)
	if v.Has(proto.PlayerSpawnsAsEntity) {
		body = appendPlace(field.AppendVarInt(body, v.PlayerType), v, at)
		if v.Has(proto.PackedVelocity) {
			body = append(body, 0) // no velocity
		}
		body = append(body, pitch, yaw, yaw, 0) // the head's yaw is separate; no data
		if !v.Has(proto.PackedVelocity) {
			body = append(body, 0, 0, 0, 0, 0, 0) // velocity
		}
		return appendFrame(dst, v, proto.Play, proto.SpawnEntity, body)
	}
	body = append(appendPlace(body, v, at), yaw, pitch)
	switch {
	case !v.Has(proto.EntityPlaceF64):
		body = append(body, 0, 0, 0x7f) // nothing in the hand, no metadata
	case v.Has(proto.SpawnMetadata):
		body = append(body, 0xff) // no metadata
	}
	dst = appendFrame(dst, v, proto.Play, proto.NamedEntitySpawn, body)
	return appendHead(dst, v, p.entity, yaw)
}

// appendMove puts a body somewhere else.
func appendMove(dst []byte, v *proto.Version, entity int32, at pose) []byte {
	name, body := proto.EntityTeleport, field.AppendVarInt(nil, entity)
	if v.Has(proto.SteppedSync) {
		body = append(body, 0) // one place, no steps
	}
	body = appendPlace(body, v, at)
	if v.Has(proto.EntitySync) {
		name = proto.SyncEntityPosition
		if !v.Has(proto.SteppedSync) {
			body = append(body, make([]byte, 3*8)...) // velocity
		}
		body = field.AppendF32(field.AppendF32(body, at.yaw), at.pitch)
	} else {
		body = append(body, angle(at.yaw), angle(at.pitch))
	}
	dst = appendFrame(dst, v, proto.Play, name, field.AppendBool(body, at.ground))
	return appendHead(dst, v, entity, angle(at.yaw))
}

// appendHead turns the head, which bodies do not turn with them.
func appendHead(dst []byte, v *proto.Version, entity int32, yaw byte) []byte {
	return appendFrame(dst, v, proto.Play, proto.EntityHeadRotation, append(field.AppendVarInt(nil, entity), yaw))
}

// appendVanish takes a body away.
func appendVanish(dst []byte, v *proto.Version, entity int32) []byte {
	if _, one := v.ID(proto.Play, proto.Clientbound, proto.DestroyEntity); one { // it takes them away one by one
		return appendFrame(dst, v, proto.Play, proto.DestroyEntity, field.AppendVarInt(nil, entity))
	}
	return appendFrame(dst, v, proto.Play, proto.EntityDestroy, field.AppendVarInt([]byte{1}, entity))
}

func appendPlace(dst []byte, v *proto.Version, at pose) []byte {
	for _, c := range [...]float64{at.x, at.y, at.z} {
		if !v.Has(proto.EntityPlaceF64) {
			dst = field.AppendI32(dst, int32(math.Floor(c*32)))
		} else {
			dst = field.AppendF64(dst, c)
		}
	}
	return dst
}

// angle turns degrees into 1/256 of a full turn.
func angle(degrees float32) byte { return byte(int64(math.Floor(float64(degrees) * 256 / 360))) }
