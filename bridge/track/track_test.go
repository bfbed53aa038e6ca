package track

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vectors are the bodies that an independent implementation has made of join_game and respawn, by
// "packet/protocol/world".
var vectors = sync.OnceValue(func() map[string]spawnVector {
	b, err := os.ReadFile("../../proxy/packet/testdata/bridge.jsonl")
	if err != nil {
		panic(err)
	}
	all := map[string]spawnVector{}
	for line := range bytes.Lines(b) {
		var v struct {
			Packet, Hex string
			Protocols   []int32
			Fields      json.RawMessage
		}
		if err := json.Unmarshal(line, &v); err != nil {
			panic(err)
		}
		if v.Packet != "join_game" && v.Packet != "respawn" {
			continue
		}
		var s spawnVector
		if err := json.Unmarshal(v.Fields, &s); err != nil {
			panic(err)
		}
		s.body, _ = hex.DecodeString(v.Hex)
		for _, p := range v.Protocols {
			all[fmt.Sprint(v.Packet, "/", p, "/", s.World)] = s
		}
	}
	return all
})

type spawnVector struct {
	EntityID int32
	Mode     uint8
	World    string
	body     []byte
}

// session is a Track with a client and a backend around it that speak the protocol.
type session struct {
	t        testing.TB
	reg      *world.Registry
	player   *world.Player
	track    *Track
	protocol int32
	self     int32
	wanted   map[proto.Packet]bool // what the proxy shows of the backend's; nil: not looked at
}

func newSession(t testing.TB, protocol int32) *session {
	reg := world.New()
	s := &session{t: t, reg: reg, player: reg.Add(uuid.UUID{1}, "Ann"), protocol: protocol}
	s.track = New(s.player, reg, proto.Lookup(protocol))
	s.track.Failures = new(Failures)
	s.track.Backend("lobby", uuid.UUID{1})
	return s
}

// onFoot returns a session whose player has joined the overworld and stands at 10 70 -20 looking to 90.
func onFoot(t testing.TB, protocol int32) *session {
	s := newSession(t, protocol)
	s.join(overworld)
	s.teleport(packet.Teleport{ID: 1, X: 10, Y: 70, Z: -20, Yaw: 90})
	s.answer(1, 10, 70, -20)
	s.at(10, 70, -20, 90)
	return s
}

const (
	overworld = "minecraft:overworld"
	nether    = "minecraft:the_nether"
)

func (s *session) from(p proto.Packet, body []byte) { s.track.Serverbound(proto.Play, p, body) }
func (s *session) to(p proto.Packet, body []byte) {
	if s.wanted != nil && !s.wanted[p] {
		s.t.Fatalf("%d: %v would not be shown", s.protocol, p)
	}
	s.track.Clientbound(proto.Play, p, body)
}

func (s *session) join(world string) {
	s.t.Helper()
	v, ok := vectors()[fmt.Sprint("join_game/", s.protocol, "/", world)]
	if !ok {
		s.t.Fatalf("no vector of a login to %s for %d", world, s.protocol)
	}
	s.self = v.EntityID
	s.to(proto.JoinGame, v.body)
}

func (s *session) respawn(world string) uint8 {
	s.t.Helper()
	v, ok := vectors()[fmt.Sprint("respawn/", s.protocol, "/", world)]
	if !ok {
		s.t.Fatalf("no vector of a respawn to %s for %d", world, s.protocol)
	}
	s.to(proto.Respawn, v.body)
	return v.Mode
}

func (s *session) teleport(m packet.Teleport) {
	s.to(proto.Position, packet.AppendTeleport(nil, s.protocol, m))
}

// answer is what a client does when it is teleported.
func (s *session) answer(id int32, x, y, z float64) {
	if s.protocol >= proto.V1_9 {
		s.from(proto.TeleportConfirm, packet.AppendTeleportConfirm(nil, s.protocol, packet.TeleportConfirm{ID: id, X: x, Y: y, Z: z, Yaw: s.yaw()}))
	}
	if s.protocol < proto.V26_3 { // from there on the confirmation is all
		s.walkLook(x, y, z, s.yaw())
	}
}

func (s *session) yaw() float32 {
	if p := s.player.Pose(); p != nil {
		return p.Yaw
	}
	return 0
}

func f64s(vs ...float64) (b []byte) {
	for _, v := range vs {
		b = field.AppendF64(b, v)
	}
	return b
}

func f32s(b []byte, vs ...float32) []byte {
	for _, v := range vs {
		b = field.AppendF32(b, v)
	}
	return b
}

func (s *session) walk(x, y, z float64) { s.from(proto.Position, append(f64s(x, y, z), 1)) }
func (s *session) look(yaw float32)     { s.from(proto.Look, append(f32s(nil, yaw, 0), 1)) }
func (s *session) walkLook(x, y, z float64, yaw float32) {
	s.from(proto.PositionLook, append(f32s(f64s(x, y, z), yaw, 0), 1))
}

func (s *session) steer(x, y, z float64) {
	b := f32s(f64s(x, y, z), 0, 0)
	if s.protocol >= proto.V1_21_4 {
		b = append(b, 1)
	}
	s.from(proto.VehicleMove, b)
}

// mount is what a backend sends when somebody sits down; vehicle -1 takes rider off from.
func (s *session) mount(vehicle int32, riders ...int32) {
	if s.protocol >= proto.V1_9 {
		b := field.AppendVarInt(nil, vehicle)
		b = field.AppendVarInt(b, int32(len(riders)))
		for _, r := range riders {
			b = field.AppendVarInt(b, r)
		}
		s.to(proto.SetPassengers, b)
		return
	}
	for _, r := range riders {
		s.to(proto.AttachEntity, append(field.AppendI32(field.AppendI32(nil, r), vehicle), 0))
	}
}

func (s *session) dismount(vehicle, rider int32) {
	if s.protocol >= proto.V1_9 {
		s.mount(vehicle)
	} else {
		s.mount(-1, rider)
	}
}

// move moves an entity by eighths of a block.
func (s *session) move(id int32, dx, dy, dz int) {
	b := field.AppendVarInt(nil, id)
	if s.protocol >= proto.V26_3 { // two steps, which add up
		b = append(b, 2<<1|1)
		for _, part := range [][]int{{dx, 0, 2 * dz}, {0, dy, -dz}} {
			b = append(b, 3) // ticks
			for _, d := range part {
				b = field.AppendI16(b, int16(d*512))
			}
		}
		s.to(proto.RelEntityMove, b)
		return
	}
	for _, d := range []int{dx, dy, dz} {
		if s.protocol < proto.V1_9 {
			b = append(b, byte(int8(d*4)))
		} else {
			b = field.AppendI16(b, int16(d*512))
		}
	}
	s.to(proto.RelEntityMove, append(b, 1))
}

func (s *session) place(b []byte, x, y, z float64) []byte {
	if s.protocol < proto.V1_9 {
		for _, v := range []float64{x, y, z} {
			b = field.AppendI32(b, int32(v*32))
		}
		return b
	}
	return append(b, f64s(x, y, z)...)
}

// set moves an entity to a place, in the packet that the version uses for it.
func (s *session) set(id int32, x, y, z float64) {
	if s.protocol >= proto.V26_3 { // two steps, of which the last counts
		b := append(field.AppendVarInt(nil, id), 1, 2)
		b = append(append(b, f64s(x+9, y-9, z)...), 1)
		b = append(append(b, f64s(x, y, z)...), 2)
		s.to(proto.SyncEntityPosition, append(f32s(b, 0, 0), 1))
		return
	}
	b := s.place(field.AppendVarInt(nil, id), x, y, z)
	if s.protocol >= proto.V1_21_2 {
		s.to(proto.SyncEntityPosition, append(f32s(append(b, f64s(0, 0, 0)...), 0, 0), 1))
		return
	}
	s.to(proto.EntityTeleport, append(b, 0, 0, 1))
}

func (s *session) spawn(id int32, x, y, z float64) {
	b := field.AppendVarInt(nil, id)
	if s.protocol >= proto.V1_9 {
		b = append(b, make([]byte, 16)...)
	}
	b = s.place(append(b, 1), x, y, z)
	s.to(proto.SpawnEntity, append(b, make([]byte, 20)...))
}

func (s *session) destroy(ids ...int32) {
	if s.protocol == proto.V1_17 {
		for _, id := range ids {
			s.to(proto.DestroyEntity, field.AppendVarInt(nil, id))
		}
		return
	}
	b := field.AppendVarInt(nil, int32(len(ids)))
	for _, id := range ids {
		b = field.AppendVarInt(b, id)
	}
	s.to(proto.EntityDestroy, b)
}

func (s *session) status(id int32, status int8) {
	s.to(proto.EntityStatus, append(field.AppendI32(nil, id), byte(status)))
}

func (s *session) mode(m float32) {
	s.to(proto.GameStateChange, packet.AppendGameStateChange(nil, packet.GameStateChange{Reason: packet.GameModeChanged, Value: m}))
}

func (s *session) show(listed bool, ids ...uuid.UUID) {
	info := packet.PlayerInfo{Actions: packet.InfoAdd | packet.InfoMode | packet.InfoListed | packet.InfoLatency}
	for _, id := range ids {
		info.Players = append(info.Players, packet.ListedPlayer{ID: id, Name: "x", Listed: listed})
	}
	s.to(proto.PlayerInfo, packet.AppendPlayerInfo(nil, s.protocol, info))
}

func (s *session) hide(ids ...uuid.UUID) {
	p := proto.PlayerRemove
	if s.protocol < proto.V1_19_3 {
		p = proto.PlayerInfo
	}
	s.to(p, packet.AppendPlayerRemove(nil, s.protocol, ids...))
}

func (s *session) at(x, y, z float64, yaw float32) {
	s.t.Helper()
	place := s.player.Facts().Place
	want := world.Pose{X: x, Y: y, Z: z, Yaw: yaw, Place: place}
	if got := s.player.Pose(); got == nil || *got != want {
		s.t.Fatalf("%d: pose is %+v, want %+v", s.protocol, got, want)
	}
}

func (s *session) nowhere(when string) {
	s.t.Helper()
	if got := s.player.Pose(); got != nil {
		s.t.Fatalf("%d: %s, the pose is %+v, want unknown", s.protocol, when, got)
	}
}

func (s *session) facts(want world.Facts) {
	s.t.Helper()
	if got := *s.player.Facts(); got != want {
		s.t.Fatalf("%d: facts are %+v, want %+v", s.protocol, got, want)
	}
}

// Everything must have been understood.
func (s *session) understood() {
	s.t.Helper()
	s.track.Failures.Each(func(_ int32, p proto.Packet, n uint64) {
		if n > 0 {
			s.t.Errorf("%d: %d packets %v not understood", s.protocol, n, p)
		}
	})
}

func everyVersion(t *testing.T, test func(t *testing.T, protocol int32)) {
	versions := proto.Supported()
	if len(versions) < 48 {
		t.Fatalf("only %d versions", len(versions))
	}
	for _, v := range versions {
		t.Run(v.Names[0], func(t *testing.T) { test(t, v.Protocol) })
	}
}

func TestWalkAndTeleport(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := newSession(t, protocol)
		s.walkLook(8.5, 65, 8.5, 0) // where a client thinks it is before it knows
		s.nowhere("before the login")
		s.join(overworld)
		place := s.reg.Place("lobby", overworld)
		s.facts(world.Facts{Place: place, Mode: s.player.Facts().Mode})
		s.walkLook(8.5, 65, 8.5, 0)
		s.nowhere("before the first teleport")

		s.teleport(packet.Teleport{ID: 5, X: 10, Y: 70, Z: -20, Yaw: 90})
		s.at(10, 70, -20, 90)
		s.walkLook(8.5, 65, 8.5, 1)
		s.look(2)
		s.at(10, 70, -20, 90) // not yet carried out
		s.answer(5, 10, 70, -20)
		s.at(10, 70, -20, 90)

		s.walk(11, 70.5, -21)
		s.at(11, 70.5, -21, 90)
		s.look(-45)
		s.at(11, 70.5, -21, -45)
		s.walkLook(12, 71, -22, 370)
		s.at(12, 71, -22, 370)
		s.from(proto.Flying, []byte{1})
		s.at(12, 71, -22, 370)

		s.teleport(packet.Teleport{ID: 6, X: 3, Y: 64, Z: -1, Yaw: 10, Relative: packet.RelX | packet.RelZ | packet.RelYaw})
		s.at(15, 64, -23, 380)
		s.answer(6, 15.125, 64, -23) // the client's own sum is the truth
		s.at(15.125, 64, -23, 380)
		s.understood()
	})
}

func TestTeleportsInFlight(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.teleport(packet.Teleport{ID: 2, X: 100, Y: 70, Z: 0})
		s.teleport(packet.Teleport{ID: 3, X: 200, Y: 70, Z: 0})
		s.at(200, 70, 0, 0)
		s.answer(2, 100, 70, 0) // the answer to the first while the second is on its way
		s.walk(100.5, 70, 0)
		s.at(200, 70, 0, 0)
		s.answer(3, 200, 70, 0)
		s.walk(200.5, 70, 0)
		s.at(200.5, 70, 0, 0)
	})
}

func TestRelativeToTheUnknown(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := newSession(t, protocol)
		s.join(overworld)
		s.teleport(packet.Teleport{ID: 1, X: 10, Y: 70, Z: -20, Yaw: 90, Relative: packet.RelY})
		s.nowhere("after a teleport relative to the unknown")
		if protocol < proto.V1_9 { // the client's answer cannot be told from what it sent before
			s.walkLook(8.5, 65, 8.5, 0)
			s.nowhere("before an absolute teleport")
			return
		}
		s.answer(1, 10, 64, -20)
		s.at(10, 64, -20, 0)
	})
}

func TestOnlyTheLookIsUnknown(t *testing.T) {
	s := newSession(t, proto.V1_20)
	s.join(overworld)
	s.teleport(packet.Teleport{ID: 1, X: 10, Y: 70, Z: -20, Yaw: 90, Relative: packet.RelYaw})
	s.nowhere("with the yaw unknown")
	s.from(proto.TeleportConfirm, packet.AppendTeleportConfirm(nil, proto.V1_20, packet.TeleportConfirm{ID: 1}))
	s.look(5)
	s.at(10, 70, -20, 5)
}

func TestDeathAndRespawn(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.status(s.self, 3) // dead: heard from where the body lies
		s.at(10, 70, -20, 90)
		place := s.player.Facts().Place
		s.respawn(overworld)
		s.nowhere("after a respawn")
		if s.player.Facts().Place != place {
			t.Error("a respawn in the same world changed the place")
		}
		s.walk(10, 70, -20) // sent before the client knew
		s.nowhere("before the place of respawn")
		s.teleport(packet.Teleport{ID: 9, X: 0.5, Y: 64, Z: 0.5})
		s.answer(9, 0.5, 64, 0.5)
		s.at(0.5, 64, 0.5, 0)
		s.understood()
	})
}

func TestOtherWorldAndModes(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.status(s.self, 26)
		s.mount(500, s.self)
		mode := s.respawn(nether)
		want := world.Facts{Mode: world.GameMode(mode), OpLevel: 2, Place: s.reg.Place("lobby", nether)}
		s.facts(want)
		s.nowhere("in another world")
		if s.reg.Place("lobby", overworld) == want.Place {
			t.Fatal("one place for two worlds")
		}
		for _, m := range []world.GameMode{world.Creative, world.Spectator, world.Survival, world.Adventure} {
			s.mode(float32(m))
			want.Mode = m
			s.facts(want)
		}
		for _, odd := range []float32{-1, 4, 300, float32(math.NaN()), float32(math.Inf(1))} {
			s.mode(odd)
			s.facts(want)
		}
		// Rain.
		s.to(proto.GameStateChange, packet.AppendGameStateChange(nil, packet.GameStateChange{Reason: 7, Value: 3}))
		s.facts(want)
		s.understood()
	})
}

func TestOpLevel(t *testing.T) {
	s := onFoot(t, proto.V1_20)
	for level := range 5 {
		s.status(s.self, int8(24+level))
		if got := s.player.Facts().OpLevel; int(got) != level {
			t.Errorf("level is %d, want %d", got, level)
		}
	}
	s.status(s.self+1, 24) // somebody else's
	s.status(s.self, 29)
	s.status(s.self, 22)
	if got := s.player.Facts().OpLevel; got != 4 {
		t.Errorf("level is %d, want 4", got)
	}
	s.join(nether)
	if got := s.player.Facts().OpLevel; got != 0 {
		t.Errorf("level after a login is %d", got)
	}
}

func TestPassenger(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		const cart = 300
		s := onFoot(t, protocol)
		s.move(cart, 80, 80, 80) // nobody's business
		s.mount(cart, 7, s.self)
		f := *s.player.Facts()
		if !f.Riding || f.Vehicle != cart {
			t.Fatalf("facts are %+v", f)
		}
		s.at(10, 70, -20, 90)
		s.move(cart, 8, -4, 12)
		s.at(11, 69.5, -18.5, 90)
		s.move(cart+1, 8, 8, 8) // another one's
		s.at(11, 69.5, -18.5, 90)
		s.walk(50, 50, 50) // sent before the client knew
		s.at(11, 69.5, -18.5, 90)
		s.look(33)
		s.at(11, 69.5, -18.5, 33)
		s.set(cart, 100.5, 64, 3)
		s.at(100.5, 64, 3, 33)
		look := field.AppendVarInt(nil, cart)
		switch {
		case protocol < proto.V1_9:
			look = append(look, 32, 0, 0, 9, 9, 1)
		case protocol < proto.V26_3:
			look = append(field.AppendI16(look, 4096), 0, 0, 0, 0, 9, 9, 1)
		default: // the ground stands in front, beside the number of steps
			look = append(field.AppendI16(append(look, 1), 4096), 0, 0, 0, 0, 9, 9)
		}
		s.to(proto.EntityMoveLook, look)
		s.at(101.5, 64, 3, 33)

		s.dismount(cart, s.self)
		if f := s.player.Facts(); f.Riding || f.Vehicle != 0 {
			t.Fatalf("facts after getting off are %+v", f)
		}
		s.at(101.5, 64, 3, 33)
		s.move(cart, 8, 8, 8)
		s.at(101.5, 64, 3, 33)
		s.walk(102, 64, 4)
		s.at(102, 64, 4, 33)
		s.understood()
	})
}

// From 1.21.2 on absolute moves come in three packets, one of which may be partly relative.
func TestNewVehicleMoves(t *testing.T) {
	for _, protocol := range []int32{proto.V1_21_2, proto.V26_1, proto.V26_2, proto.V26_3} {
		const cart = 300
		s := onFoot(t, protocol)
		s.mount(cart, s.self)
		b := field.AppendVarInt(nil, cart)
		b = append(b, f64s(5, 0.5, -5, 0, 0, 0)...)
		b = field.AppendI32(f32s(b, 0, 0), int32(packet.RelY))
		s.to(proto.EntityTeleport, append(b, 1))
		s.at(5, 70.5, -5, 90)

		steps := field.AppendVarInt(field.AppendVarInt(nil, cart), 2)
		for _, x := range []float64{6, 7} {
			steps = append(steps, f64s(x, 71, -5, 0, 0, 0)...)
			steps = field.AppendF32(append(steps, 0, 0), 1)
		}
		s.to(proto.MoveMinecart, steps)
		s.at(7, 71, -5, 90)
		s.understood()
	}
}

func TestDriver(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		if protocol < proto.V1_9 { // without vehicle_move: the server moves the vehicle for its driver, too
			return
		}
		const boat = 300
		s := onFoot(t, protocol)
		s.steer(500, 60, 500) // not on anything
		s.at(10, 70, -20, 90)
		s.mount(boat, s.self)
		for i := range 20 {
			s.steer(20+float64(i), 62, 5)
			s.at(20+float64(i), 62, 5, 90)
			s.move(boat, 8, 0, 0) // what the server makes of the move before
			s.set(boat, 20, 62, 5)
			s.at(20+float64(i), 62, 5, 90)
		}
		s.to(proto.VehicleMove, f32s(f64s(1, 2, 3), 0, 0)) // the server disagrees
		s.at(1, 2, 3, 90)
		s.steer(1, 2, 4)
		s.at(1, 2, 4, 90)
		for range driverSilence { // the client no longer steers, as with a pig and no carrot
			s.move(boat, 8, 0, 0)
		}
		s.at(1, 2, 4, 90)
		s.move(boat, 8, 0, 0)
		s.at(2, 2, 4, 90)
		s.mount(boat)
		s.steer(500, 60, 500) // on its way when the server took the player off
		s.at(2, 2, 4, 90)
		s.to(proto.VehicleMove, f32s(f64s(500, 60, 500), 0, 0))
		s.at(2, 2, 4, 90)
		s.understood()
	})
}

func TestVehicleIsGone(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.mount(300, s.self)
		s.destroy(299, 301)
		if !s.player.Facts().Riding {
			t.Fatal("off when others are destroyed")
		}
		s.destroy(5, 300, 1)
		if s.player.Facts().Riding {
			t.Fatal("on a vehicle that is destroyed")
		}
		s.walk(1, 2, 3)
		s.at(1, 2, 3, 90)
	})
}

func TestOnTheShouldersOfARider(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		const friend, boat = 40, 41
		s := onFoot(t, protocol)
		s.mount(friend, s.self)
		s.move(friend, 8, 0, 0)
		s.at(11, 70, -20, 90)
		s.mount(boat, friend)
		s.move(friend, 8, 0, 0) // no longer the one that moves
		s.at(11, 70, -20, 90)
		s.move(boat, 8, 0, 0)
		s.at(12, 70, -20, 90)
		if f := s.player.Facts(); f.Vehicle != friend {
			t.Errorf("vehicle is %d, want %d", f.Vehicle, friend)
		}
		s.dismount(boat, friend)
		s.move(friend, 8, 0, 0)
		s.at(13, 70, -20, 90)
		s.mount(s.self, friend) // a ring, which the game forbids
		s.mount(friend, s.self)
		s.move(friend, 8, 0, 0)
		s.dismount(friend, s.self)
		s.dismount(s.self, friend)
		s.walk(1, 2, 3)
		s.at(1, 2, 3, 90)
	})
}

func TestLeashIsNoRide(t *testing.T) {
	s := onFoot(t, proto.V1_8)
	s.to(proto.AttachEntity, append(field.AppendI32(field.AppendI32(nil, s.self), 300), 1))
	if s.player.Facts().Riding {
		t.Error("riding a leash")
	}
}

func TestDismountWithATeleport(t *testing.T) {
	for _, protocol := range []int32{755, 756, 757, 758, 759, 760, 761} {
		s := onFoot(t, protocol)
		s.mount(300, s.self)
		s.teleport(packet.Teleport{ID: 4, X: 1, Y: 2, Z: 3, Dismount: true})
		if s.player.Facts().Riding {
			t.Errorf("%d: still riding", protocol)
		}
		s.at(1, 2, 3, 0)
	}
}

func TestVehicleThatHasJustAppeared(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		synctest.Test(t, func(t *testing.T) {
			s := onFoot(t, protocol)
			s.spawn(300, 500.5, 64, 500)
			s.mount(300, s.self)
			s.at(500.5, 64, 500, 90) // far away: only the spawn says where
			s.dismount(300, s.self)

			s.walk(0, 70, 0)
			s.spawn(301, 500.5, 64, 500)
			sleep(freshSpawn) // long enough to have moved, and to have come near
			s.mount(301, s.self)
			s.at(0, 70, 0, 90)
			s.understood()
		})
	})
}

func TestSpectatorCamera(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.to(proto.Camera, field.AppendVarInt(nil, 77))
		s.move(77, 8, 0, 0)
		s.at(11, 70, -20, 90)
		if s.player.Facts().Riding {
			t.Error("looking is no riding")
		}
		s.to(proto.Camera, field.AppendVarInt(nil, s.self))
		s.move(77, 8, 0, 0)
		s.at(11, 70, -20, 90)
		s.walk(1, 2, 3)
		s.at(1, 2, 3, 90)
		s.understood()
	})
}

func TestTurnedByTheServer(t *testing.T) {
	for _, protocol := range []int32{proto.V1_21_2, proto.V1_21_9} {
		s := onFoot(t, protocol)
		b := f32s(nil, 12, 0)
		if protocol >= proto.V1_21_9 {
			b = append(f32s(append(f32s(nil, -78), 1), 0), 1)
		}
		s.to(proto.PlayerRotation, b)
		s.at(10, 70, -20, 12)
		s.understood()
	}
}

func TestSight(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		bob, cid, dan := uuid.UUID{2}, uuid.UUID{3}, uuid.UUID{4}
		s := onFoot(t, protocol)
		sees := func(want ...uuid.UUID) {
			t.Helper()
			for _, id := range []uuid.UUID{bob, cid, dan} {
				if got := s.player.Sight.Listed(id); got != slices.Contains(want, id) {
					t.Fatalf("%d: sees %v: %v", protocol, id, got)
				}
			}
		}
		sees()
		s.show(true, bob, cid)
		sees(bob, cid)
		s.show(false, dan) // not in the overlay, and yet there
		sees(bob, cid, dan)
		s.hide(cid)
		sees(bob, dan)
		s.join(overworld) // the client keeps its list
		sees(bob, dan)
		s.respawn(nether)
		sees(bob, dan)
		s.track.Backend("games", uuid.UUID{1})
		sees()
		s.show(true, cid)
		sees(cid)
		if protocol >= proto.V1_20_2 {
			s.join(overworld)
			s.teleport(packet.Teleport{X: 1})
			s.to(proto.StartConfiguration, nil)
			sees()
			s.nowhere("in configuration")
			s.facts(world.Facts{})
			s.show(true, bob)
		}
		s.track.Close()
		sees()
		s.show(true, bob)
		sees()
		s.understood()
	})
}

func TestOtherBackend(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		s.status(s.self, 28)
		s.mount(300, s.self)
		s.track.Backend("games", uuid.UUID{1})
		s.nowhere("between two backends")
		s.facts(world.Facts{})
		s.walk(10, 70, -20)
		s.move(300, 8, 0, 0)
		s.nowhere("between two backends")
		s.join(overworld)
		if got := s.player.Facts().Place; got != s.reg.Place("games", overworld) {
			t.Errorf("place is %+v", got)
		}
		s.teleport(packet.Teleport{ID: 1, X: 1, Y: 2, Z: 3})
		s.at(1, 2, 3, 0)
		s.track.Close()
		s.nowhere("after the end")
		s.facts(world.Facts{})
		s.join(overworld)
		s.teleport(packet.Teleport{ID: 1, X: 1, Y: 2, Z: 3})
		s.nowhere("after the end")
		s.facts(world.Facts{})
	})
}

func TestOtherStatesAreNotRead(t *testing.T) {
	s := onFoot(t, proto.V26_1)
	body := packet.AppendTeleport(nil, s.protocol, packet.Teleport{X: 1})
	for _, state := range []proto.State{proto.Login, proto.Config} {
		s.track.Clientbound(state, proto.Position, body)
		s.track.Serverbound(state, proto.Position, f64s(1, 2, 3))
	}
	s.at(10, 70, -20, 90)
	s.understood()
}

func TestWhatCannotBeDecoded(t *testing.T) {
	everyVersion(t, func(t *testing.T, protocol int32) {
		s := onFoot(t, protocol)
		v := proto.Lookup(protocol)
		var log testkit.Log
		s.track.Failures.Log = log.Logger(slog.LevelDebug)
		before := *s.player.Facts()
		s.mount(300, s.self)
		riding := *s.player.Facts()
		for _, d := range []proto.Dir{proto.Clientbound, proto.Serverbound} {
			wants := Wants(v, proto.Play, d)
			if len(wants) == 0 {
				t.Fatalf("%v: nothing wanted", d)
			}
			for _, p := range wants {
				if p == proto.StartConfiguration { // empty
					continue
				}
				n := s.track.Failures.Count(p)
				for range 3 {
					if d == proto.Clientbound {
						s.to(p, nil)
					} else {
						s.from(p, nil)
					}
				}
				if got := s.track.Failures.Count(p) - n; got != 3 {
					t.Errorf("%v %v: %d failures counted, want 3", d, p, got)
				}
			}
		}
		s.facts(riding)
		s.dismount(300, s.self)
		s.facts(before)
		s.at(10, 70, -20, 90)
		if n := strings.Count(log.String(), "packet=look "); n != 2 {
			t.Errorf("3 failures logged %d times, want the 1st and 2nd:\n%s", n, log.String())
		}
	})
}

// A backend's or client's numbers that are none must not reach the arithmetic of voice.
func TestImpossiblePlaces(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, bad := range []float64{nan, inf, -inf, 1e9} {
		s := onFoot(t, proto.V1_20)
		s.walk(bad, 1, 1)
		s.walk(1, bad, 1)
		s.walk(1, 1, bad)
		s.teleport(packet.Teleport{X: bad})
		s.teleport(packet.Teleport{X: 3.9e7, Y: 60, Relative: packet.RelX})
		s.teleport(packet.Teleport{X: 3.9e7, Y: 50, Relative: packet.RelX})
		s.mount(5, s.self)
		s.set(5, 1, bad, 1)
		s.steer(bad, 1, 1)
		s.at(3.9e7+10, 60, 0, 0)
		if n := s.track.Failures.Count(proto.Position); n != 5 {
			t.Errorf("%v: %d positions counted as failures, want 5", bad, n)
		}
	}
	for _, bad := range []float32{float32(nan), float32(inf)} {
		s := onFoot(t, proto.V1_20)
		s.look(bad)
		s.teleport(packet.Teleport{X: 1, Yaw: bad})
		s.look(math.MaxFloat32)
		s.teleport(packet.Teleport{Yaw: math.MaxFloat32, Relative: packet.RelYaw | packet.RelPlace})
		if p := s.player.Pose(); p.X != 10 || math.IsNaN(float64(p.Yaw)) || math.IsInf(float64(p.Yaw), 0) {
			t.Errorf("%v: pose is %+v", bad, p)
		}
	}
}

func TestSeatsAreBounded(t *testing.T) {
	s := onFoot(t, proto.V1_20)
	for i := range int32(maxSeats + 10) {
		s.mount(100_000+i, i+2_000)
	}
	if n := len(s.track.seats); n != maxSeats {
		t.Fatalf("%d seats", n)
	}
	s.mount(50, s.self) // the own one always has room
	if f := s.player.Facts(); f.Vehicle != 50 {
		t.Fatalf("vehicle %d", f.Vehicle)
	}
}

func TestWants(t *testing.T) {
	for _, v := range proto.Supported() {
		for s := proto.Handshake; s <= proto.Play; s++ {
			for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
				wants := Wants(v, s, d)
				if (s == proto.Play) != (len(wants) > 0) {
					t.Errorf("%d %v %v: %v", v.Protocol, s, d, wants)
				}
				for _, p := range wants {
					if _, ok := v.ID(s, d, p); !ok {
						t.Errorf("%d %v %v: %v does not exist", v.Protocol, s, d, p)
					}
				}
			}
		}
		wants := Wants(v, proto.Play, proto.Clientbound)
		if slices.Contains(wants, proto.AttachEntity) == slices.Contains(wants, proto.SetPassengers) {
			t.Errorf("%d: riding is told by one packet: %v", v.Protocol, wants)
		}
	}
}

// Both directions at once, and readers: the race detector is the judge.
func TestBothDirectionsAtOnce(t *testing.T) {
	s := onFoot(t, proto.V26_1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 500 {
			s.walk(float64(i), 70, 0)
			s.look(float32(i))
			s.steer(float64(i), 70, 0)
		}
	})
	wg.Go(func() {
		for i := range 500 {
			s.show(true, uuid.UUID{byte(i)})
			s.mount(300, s.self)
			s.move(300, 1, 1, 1)
			s.spawn(int32(i), 1, 2, 3)
			s.mount(300)
			s.mode(float32(i % 4))
			s.destroy(300)
		}
	})
	wg.Go(func() {
		for range 500 {
			if p := s.player.Pose(); p == nil || p.Place == nil {
				t.Error("the pose was lost")
			}
			s.player.Facts()
			s.player.Sight.Listed(uuid.UUID{1})
		}
	})
	wg.Wait()
	s.track.Close()
	s.nowhere("after the end")
}
