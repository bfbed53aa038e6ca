package packet

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// bridgeVector is a line of testdata/bridge.jsonl, which npm minecraft-protocol's serializers have made; bridge.js
// beside it is the generator.
type bridgeVector struct {
	Packet    string
	Dir       string
	Protocols []int32
	Hex       string
	Fields    json.RawMessage

	packet proto.Packet
	dir    proto.Dir
	body   []byte
}

func bridgeVectors(t testing.TB) []bridgeVector {
	t.Helper()
	all, err := testkit.Lines[bridgeVector]("testdata/bridge.jsonl")
	if err != nil || len(all) < 200 {
		t.Fatalf("only %d vectors (%v): run testdata/bridge.js", len(all), err)
	}
	for i := range all {
		v := &all[i]
		p, ok := proto.ByName(v.Packet)
		if !ok {
			t.Fatalf("there is no packet %q", v.Packet)
		}
		v.packet, v.dir = p, proto.Serverbound
		if v.Dir == "clientbound" {
			v.dir = proto.Clientbound
		}
		if v.body, err = hex.DecodeString(v.Hex); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// bridgeCodec is how a packet's body becomes a value and, where something here writes it, a value a body again. loose
// bodies are not read to their end.
type bridgeCodec struct {
	parse  func(protocol int32, p proto.Packet, d proto.Dir, body []byte) (any, error)
	append func(protocol int32, x any) []byte
	loose  bool
}

func parseMove(_ int32, p proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseMove(p, b) }
func parseEntityMove(v int32, p proto.Packet, _ proto.Dir, b []byte) (any, error) {
	return ParseEntityMove(v, p, b)
}
func parseSpawn(v int32, p proto.Packet, _ proto.Dir, b []byte) (any, error) {
	return ParseSpawn(v, p, b)
}
func parseDestroyed(_ int32, p proto.Packet, _ proto.Dir, b []byte) (any, error) {
	return ParseDestroyed(nil, p, b)
}
func parseVehicleMove(v int32, _ proto.Packet, d proto.Dir, b []byte) (any, error) {
	return ParseVehicleMove(v, d, b)
}

// Keys are "direction/packet".
var bridgeCodecs = map[string]bridgeCodec{
	"serverbound/position":         {parse: parseMove},
	"serverbound/position_look":    {parse: parseMove},
	"serverbound/look":             {parse: parseMove},
	"serverbound/flying":           {parse: parseMove},
	"serverbound/vehicle_move":     {parse: parseVehicleMove},
	"clientbound/vehicle_move":     {parse: parseVehicleMove},
	"clientbound/rel_entity_move":  {parse: parseEntityMove},
	"clientbound/entity_move_look": {parse: parseEntityMove},
	"clientbound/entity_teleport":  {parse: parseEntityMove},
	"clientbound/sync_entity_position": {
		parse: parseEntityMove},
	"clientbound/move_minecart":       {parse: parseEntityMove},
	"clientbound/spawn_entity":        {parse: parseSpawn, loose: true},
	"clientbound/spawn_entity_living": {parse: parseSpawn, loose: true},
	"clientbound/named_entity_spawn":  {parse: parseSpawn, loose: true},
	"clientbound/entity_destroy":      {parse: parseDestroyed},
	"clientbound/destroy_entity":      {parse: parseDestroyed},
	"serverbound/teleport_confirm": {
		parse:  func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseTeleportConfirm(v, b) },
		append: func(v int32, x any) []byte { return AppendTeleportConfirm(nil, v, x.(TeleportConfirm)) },
	},
	"clientbound/position": {
		parse:  func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseTeleport(v, b) },
		append: func(v int32, x any) []byte { return AppendTeleport(nil, v, x.(Teleport)) },
	},
	"clientbound/player_rotation": {
		parse: func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseRotation(v, b) },
	},
	"clientbound/join_game": {
		parse: func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseJoinGame(v, b) },
		loose: true,
	},
	"clientbound/respawn": {
		parse: func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseRespawn(v, b) },
		loose: true,
	},
	"clientbound/game_state_change": {
		parse:  func(_ int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseGameStateChange(b) },
		append: func(_ int32, x any) []byte { return AppendGameStateChange(nil, x.(GameStateChange)) },
	},
	"clientbound/entity_status": {
		parse: func(_ int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseEntityStatus(b) },
	},
	"clientbound/player_info": {
		parse:  func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParsePlayerInfo(v, b) },
		append: func(v int32, x any) []byte { return AppendPlayerInfo(nil, v, x.(PlayerInfo)) },
	},
	"clientbound/player_remove": {
		parse:  func(_ int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParsePlayerRemove(nil, b) },
		append: func(v int32, x any) []byte { return AppendPlayerRemove(nil, v, x.([]uuid.UUID)...) },
	},
	"clientbound/set_passengers": {
		parse: func(_ int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParsePassengers(b) },
	},
	"clientbound/camera": {
		parse: func(_ int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseCamera(b) },
	},
	"clientbound/attach_entity": {
		parse: func(v int32, _ proto.Packet, _ proto.Dir, b []byte) (any, error) { return ParseAttachment(v, b) },
	},
}

// noNil makes a missing list and an empty one equal, which the wire does not tell apart.
func noNil(x any) any {
	switch x := x.(type) {
	case Passengers:
		if len(x.Riders) == 0 {
			x.Riders = nil
		}
		return x
	case []int32:
		return slices.Clip(append([]int32{}, x...))
	case []uuid.UUID:
		return append([]uuid.UUID{}, x...)
	}
	return x
}

func TestBridgeVectors(t *testing.T) {
	covered := map[string]map[int32]bool{}
	for _, v := range bridgeVectors(t) {
		key := v.Dir + "/" + v.Packet
		c, ok := bridgeCodecs[key]
		if !ok {
			t.Fatalf("no codec for %s", key)
		}
		if covered[key] == nil {
			covered[key] = map[int32]bool{}
		}
		for _, protocol := range v.Protocols {
			covered[key][protocol] = true
			got, err := c.parse(protocol, v.packet, v.dir, v.body)
			if err != nil {
				t.Errorf("%s %d %s: %v", key, protocol, v.Hex, err)
				continue
			}
			want := reflect.New(reflect.TypeOf(got))
			if err := json.Unmarshal(v.Fields, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if w := want.Elem().Interface(); !reflect.DeepEqual(noNil(got), noNil(w)) {
				t.Errorf("%s %d %s:\n got %+v\nwant %+v", key, protocol, v.Hex, got, w)
			}
			if c.append != nil {
				if b := c.append(protocol, got); !bytes.Equal(b, v.body) {
					t.Errorf("%s %d %+v:\n wrote %x\nwant  %s", key, protocol, got, b, v.Hex)
				}
			}
			if !c.loose {
				if _, err := c.parse(protocol, v.packet, v.dir, append(slices.Clip(v.body), 0)); err == nil {
					t.Errorf("%s %d: a byte too many is no error", key, protocol)
				}
			}
			// Nothing shorter than what is needed may pass, however short.
			if _, err := c.parse(protocol, v.packet, v.dir, nil); err == nil {
				t.Errorf("%s %d: an empty body is no error", key, protocol)
			}
		}
	}
	// Every version's every packet of this kind has a vector, and the vectors name no packet a version lacks.
	for _, version := range proto.Supported() {
		for key := range bridgeCodecs {
			dir, name := proto.Serverbound, key[len("serverbound/"):]
			if key[0] == 'c' {
				dir = proto.Clientbound
			}
			p, _ := proto.ByName(name)
			if _, has := version.ID(proto.Play, dir, p); has != covered[key][version.Protocol] {
				t.Errorf("%s in %d: in the table %v, among the vectors %v", key, version.Protocol, has, !has)
			}
		}
	}
}

// A body that ends early must be an error wherever it ends, for the packets that are read to their end.
func TestBridgeTruncated(t *testing.T) {
	for _, v := range bridgeVectors(t) {
		c := bridgeCodecs[v.Dir+"/"+v.Packet]
		if c.loose {
			continue
		}
		for i := range v.body {
			if x, err := c.parse(v.Protocols[0], v.packet, v.dir, v.body[:i]); err == nil {
				t.Errorf("%s/%s %d: %d of %d bytes gave %+v", v.Dir, v.Packet, v.Protocols[0], i, len(v.body), x)
			}
		}
	}
}

// The game's own minecart steps; see readLastStep.
func TestMinecartStepsOfTheGame(t *testing.T) {
	body := []byte{9, 2}
	for _, x := range []float64{1, -300.25} {
		body = appendF64s(body, x, 64.5, 3, 0, 0, 0)
		body = field.AppendF32(append(body, 64, 0), 0.5)
	}
	got, err := ParseEntityMove(proto.V1_21_9, proto.MoveMinecart, body)
	if want := (EntityMove{ID: 9, X: -300.25, Y: 64.5, Z: 3}); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range [][]byte{{9, 0}, body[:len(body)-1], append(slices.Clip(body), 0), {9, 0xff, 0xff, 0xff, 0xff, 0x07}} {
		if got, err := ParseEntityMove(proto.V1_21_9, proto.MoveMinecart, bad); err == nil {
			t.Errorf("%x gave %+v", bad, got)
		}
	}
}

func TestPlayersChanged(t *testing.T) {
	n := 0
	for _, v := range bridgeVectors(t) {
		if v.packet != proto.PlayerInfo {
			continue
		}
		for _, protocol := range v.Protocols {
			info, err := ParsePlayerInfo(protocol, v.body)
			if err != nil {
				t.Fatal(err)
			}
			var want []uuid.UUID
			wantChange := InfoNoChange
			if info.Remove || info.Actions&InfoAdd != 0 {
				wantChange = InfoShown
				if info.Remove {
					wantChange = InfoHidden
				}
				for _, p := range info.Players {
					want = append(want, p.ID)
				}
			}
			ids, change, err := PlayersChanged(nil, protocol, v.body)
			if err != nil || change != wantChange || !slices.Equal(ids, want) {
				t.Errorf("%d %s: %v %v %v, want %v %v", protocol, v.Hex, ids, change, err, want, wantChange)
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("no player_info vectors")
	}
}

// An error in the second entry must not lose the first, and must be told.
func TestPlayersChangedBeforeAnError(t *testing.T) {
	id := uuid.UUID{1}
	for _, protocol := range []int32{proto.V1_8, proto.V26_1} {
		body := AppendPlayerInfo(nil, protocol, PlayerInfo{Actions: InfoAdd, Players: []ListedPlayer{{ID: id, Name: "a"}, {ID: uuid.UUID{2}, Name: "b"}}})
		ids, change, err := PlayersChanged(nil, protocol, body[:len(body)-1])
		if err == nil || change != InfoShown || !slices.Equal(ids, []uuid.UUID{id}) {
			t.Errorf("%d: %v %v %v", protocol, ids, change, err)
		}
	}
}

// One value for all versions: what the limbo sends to announce somebody.
func TestAnnounceInAllVersions(t *testing.T) {
	add := PlayerInfo{Actions: InfoAdd | InfoMode | InfoListed | InfoLatency, Players: []ListedPlayer{{ID: uuid.UUID{7}, Name: "Ann", Mode: 3, Listed: true, Latency: 9}}}
	for _, v := range proto.Supported() {
		got, err := ParsePlayerInfo(v.Protocol, AppendPlayerInfo(nil, v.Protocol, add))
		if err != nil {
			t.Fatal(err)
		}
		if p := got.Players[0]; got.Actions&InfoAdd == 0 || p.ID != add.Players[0].ID || p.Name != "Ann" || p.Mode != 3 || p.Latency != 9 {
			t.Errorf("%d: %+v", v.Protocol, got)
		}
		remove := AppendPlayerRemove(nil, v.Protocol, uuid.UUID{7})
		if v.Protocol >= proto.V1_19_3 {
			ids, err := ParsePlayerRemove(nil, remove)
			if err != nil || !slices.Equal(ids, []uuid.UUID{{7}}) {
				t.Errorf("%d: %v %v", v.Protocol, ids, err)
			}
		} else if ids, change, err := PlayersChanged(nil, v.Protocol, remove); err != nil || change != InfoHidden || !slices.Equal(ids, []uuid.UUID{{7}}) {
			t.Errorf("%d: %v %v %v", v.Protocol, ids, change, err)
		}
	}
}

func TestOpLevels(t *testing.T) {
	for status := math.MinInt8; status <= math.MaxInt8; status++ {
		level, ok := EntityStatus{Status: int8(status)}.OpLevel()
		if want := status >= 24 && status <= 28; ok != want || ok && int(level) != status-24 {
			t.Errorf("status %d: %d %v", status, level, ok)
		}
	}
}

func TestDimensionNames(t *testing.T) {
	for _, version := range []int32{proto.V1_8, proto.V1_9, proto.V1_9_1, proto.V1_15} {
		body := field.AppendI32(nil, 7)
		if version >= proto.V1_15 {
			body = append(body, make([]byte, 8)...)
		} else {
			body = append(body, 0)
		}
		if s, err := ParseRespawn(version, append(body, 1)); err != nil || s != (Respawn{Mode: 1, World: "dimension:7"}) {
			t.Errorf("%d: %+v %v", version, s, err)
		}
	}
}

func TestWhatIsReadOftenAllocatesNothing(t *testing.T) {
	rel := []byte{0xac, 2, 0, 1, 0, 2, 0, 3, 1}
	pos := append(appendF64s(nil, 1, 2, 3), 1)
	latency := []byte{0x10, 1}
	latency = append(latency, make([]byte, 17)...)
	var add []byte
	for _, v := range bridgeVectors(t) {
		if v.packet == proto.PlayerInfo && slices.Contains(v.Protocols, 767) && v.body[0] == 0x3f {
			add = v.body
		}
	}
	ids := make([]uuid.UUID, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		MovedEntity(rel)
		ParseEntityMove(767, proto.RelEntityMove, rel)
		ParseMove(proto.Position, pos)
		PlayersChanged(ids, 767, latency)
		if got, _, err := PlayersChanged(ids, 767, add); len(got) != 2 || err != nil {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// fuzzBridge fuzzes the decoder of one packet over all versions, from the vectors: whatever it accepts and something
// here can write must come back as the same value.
func fuzzBridge(f *testing.F, dir proto.Dir, packets ...proto.Packet) {
	seeds := 0
	for _, v := range bridgeVectors(f) {
		if i := slices.Index(packets, v.packet); i >= 0 && v.dir == dir {
			for _, protocol := range v.Protocols {
				f.Add(protocol, uint8(i), v.body)
				seeds++
			}
		}
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, protocol int32, which uint8, body []byte) {
		p := packets[int(which)%len(packets)]
		c := bridgeCodecs[dir.String()+"/"+p.String()]
		x, err := c.parse(protocol, p, dir, body)
		if p == proto.PlayerInfo {
			ids, _, err2 := PlayersChanged(nil, protocol, body)
			if len(ids) > len(body)/16 {
				t.Fatalf("%d ids out of %d bytes", len(ids), len(body))
			}
			if err == nil && err2 != nil {
				t.Fatalf("the brief form fails: %v", err2)
			}
		}
		if m, ok := x.(EntityMove); ok && err == nil {
			if id, err := MovedEntity(body); err != nil || id != m.ID {
				t.Fatalf("the brief form has entity %d of %d, %v", id, m.ID, err)
			}
		}
		if err != nil || c.append == nil || p == proto.PlayerRemove && protocol < proto.V1_19_3 {
			return // the last writes another packet in versions that lack player_remove
		}
		again, err := c.parse(protocol, p, dir, c.append(protocol, x))
		if err != nil || !samePrint(x, again) {
			t.Fatalf("%d %v %x:\n%+v became\n%+v, %v", protocol, p, body, x, again, err)
		}
	})
}

// samePrint compares by what is printed, since a NaN is not equal to itself.
func samePrint(a, b any) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

func FuzzMove(f *testing.F) {
	fuzzBridge(f, proto.Serverbound, proto.Position, proto.PositionLook, proto.Look, proto.Flying)
}
func FuzzTeleportConfirm(f *testing.F) { fuzzBridge(f, proto.Serverbound, proto.TeleportConfirm) }
func FuzzVehicleMoveFrom(f *testing.F) { fuzzBridge(f, proto.Serverbound, proto.VehicleMove) }
func FuzzVehicleMoveTo(f *testing.F)   { fuzzBridge(f, proto.Clientbound, proto.VehicleMove) }
func FuzzTeleport(f *testing.F)        { fuzzBridge(f, proto.Clientbound, proto.Position) }
func FuzzRotation(f *testing.F)        { fuzzBridge(f, proto.Clientbound, proto.PlayerRotation) }
func FuzzJoinGame(f *testing.F)        { fuzzBridge(f, proto.Clientbound, proto.JoinGame) }
func FuzzRespawn(f *testing.F)         { fuzzBridge(f, proto.Clientbound, proto.Respawn) }
func FuzzGameStateChange(f *testing.F) { fuzzBridge(f, proto.Clientbound, proto.GameStateChange) }
func FuzzEntityStatus(f *testing.F)    { fuzzBridge(f, proto.Clientbound, proto.EntityStatus) }
func FuzzPlayerInfo(f *testing.F)      { fuzzBridge(f, proto.Clientbound, proto.PlayerInfo) }
func FuzzPlayerRemove(f *testing.F)    { fuzzBridge(f, proto.Clientbound, proto.PlayerRemove) }
func FuzzPassengers(f *testing.F)      { fuzzBridge(f, proto.Clientbound, proto.SetPassengers) }
func FuzzCamera(f *testing.F)          { fuzzBridge(f, proto.Clientbound, proto.Camera) }
func FuzzAttachment(f *testing.F)      { fuzzBridge(f, proto.Clientbound, proto.AttachEntity) }
func FuzzDestroyed(f *testing.F) {
	fuzzBridge(f, proto.Clientbound, proto.EntityDestroy, proto.DestroyEntity)
}
func FuzzSpawn(f *testing.F) {
	fuzzBridge(f, proto.Clientbound, proto.SpawnEntity, proto.SpawnEntityLiving, proto.NamedEntitySpawn)
}
func FuzzEntityMove(f *testing.F) {
	fuzzBridge(f, proto.Clientbound, proto.RelEntityMove, proto.EntityMoveLook, proto.EntityTeleport, proto.SyncEntityPosition, proto.MoveMinecart)
}

// TestMovesOfAServer: what a server of 26.3 sent, captured by the tests of node-minecraft-protocol, is read as it was
// meant. The ids stand in front.
func TestMovesOfAServer(t *testing.T) {
	for frame, want := range map[string]EntityMove{
		"36ea0d0103560555ffe2": {ID: 1770, X: 854. / 4096, Y: 1365. / 4096, Z: -30. / 4096, Relative: RelPlace},
		"23b61b01014018154e3d1bf799c04dca3d70c000004013cd2514ae9c300243a30be80000000000": {ID: 3510,
			X: 6.020806269485456, Y: -59.58000001311302, Z: 4.950336764485698},
	} {
		b, err := hex.DecodeString(frame)
		if err != nil {
			t.Fatal(err)
		}
		p := proto.Lookup(proto.V26_3).Table(proto.Play, proto.Clientbound)[b[0]]
		got, err := ParseEntityMove(proto.V26_3, p, b[1:])
		if err != nil || got != want {
			t.Errorf("%v %s: %+v, %v", p, frame, got, err)
		}
		if p == proto.RelEntityMove { // without steps it is as long as before
			continue
		}
		if m, err := ParseEntityMove(proto.V26_2, p, b[1:]); err == nil {
			t.Errorf("%v %s is %+v in the version before", p, frame, m)
		}
	}
}

// TestNewLayouts: where a packet of 26.2 or 26.3 has become longer or shorter, neither version takes the other's for
// its own.
func TestNewLayouts(t *testing.T) {
	changed := map[string]int32{
		"serverbound/teleport_confirm": proto.V26_3, "clientbound/sync_entity_position": proto.V26_3, "clientbound/rel_entity_move": proto.V26_3,
		"clientbound/entity_move_look": proto.V26_3,
	}
	tried := map[string]int{}
	for _, v := range bridgeVectors(t) {
		key := v.Dir + "/" + v.Packet
		since, ok := changed[key]
		if !ok {
			continue
		}
		// Both sides of the boundary.
		for _, p := range []int32{since - 1, since} {
			other := 2*since - 1 - p
			if !slices.Contains(v.Protocols, p) || slices.Contains(v.Protocols, other) {
				continue
			}
			got, err := bridgeCodecs[key].parse(other, v.packet, v.dir, v.body)
			// A move without steps is as long as one of before; what says so is all that can tell.
			if same, m := v.Fields, (EntityMove{}); err == nil && json.Unmarshal(same, &m) == nil && (v.packet == proto.RelEntityMove || v.packet == proto.EntityMoveLook) {
				if g := got.(EntityMove); g == m {
					t.Errorf("%s of %d is the same in %d: %s", key, p, other, v.Hex)
				}
				continue
			}
			if err == nil {
				t.Errorf("%s of %d is %+v in %d: %s", key, p, got, other, v.Hex)
			}
			tried[fmt.Sprint(key, p)]++
		}
	}
	for _, p := range []int32{proto.V26_2, proto.V26_3} {
		for _, key := range []string{"serverbound/teleport_confirm", "clientbound/sync_entity_position"} {
			if tried[fmt.Sprint(key, p)] == 0 {
				t.Errorf("no vector of %s of %d was tried in the other", key, p)
			}
		}
	}
}

// TestAuthenticated: what a join game says of the login is made true and nothing else is touched; a version that does
// not say it, and a body that does not end in flags, are left alone.
func TestAuthenticated(t *testing.T) {
	flags := map[byte]int{}
	for _, v := range bridgeVectors(t) {
		if v.packet != proto.JoinGame {
			continue
		}
		for _, p := range v.Protocols {
			before := bytes.Clone(v.body)
			got, err := Authenticated(p, bytes.Clone(v.body))
			if p < proto.V26_2 {
				if err == nil {
					t.Errorf("%d has such a flag", p)
				}
				continue
			}
			at := len(before) - 2
			flags[before[at]]++
			before[at] = 1
			if err != nil || !bytes.Equal(got, before) {
				t.Errorf("%d: %x became %x, %v", p, v.body, got, err)
			}
			odd := bytes.Clone(v.body)
			odd[at] = 2
			if _, err := Authenticated(p, odd); err == nil {
				t.Errorf("%d: 2 is a flag", p)
			}
		}
	}
	if flags[0] == 0 || flags[1] == 0 {
		t.Errorf("vectors with the flags %v", flags)
	}
}
