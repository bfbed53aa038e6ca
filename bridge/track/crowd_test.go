package track

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// crowdSecond returns what a player in a crowd is sent and sends within a second, where all fly fast: 1,000 moves of
// others, 60 who appear, 60 who are gone, and 20 moves of its own. It runs that second. others is how many are on the
// server.
func crowdSecond(t testing.TB, others int, known bool) (s *session, second func()) {
	s = onFoot(t, proto.V26_1)
	place := s.reg.Place("lobby", overworld)
	var spawns, moves, own [][]byte
	var destroys [][]byte
	var listed []packet.ListedPlayer
	for i := range others {
		var id uuid.UUID
		binary.BigEndian.PutUint64(id[8:], uint64(i+1))
		p := s.reg.Add(id, fmt.Sprint("p", i))
		p.SetFacts(world.Facts{Place: place})
		p.SetPose(&world.Pose{X: 10, Y: 70, Z: -20, Place: place})
		listed = append(listed, packet.ListedPlayer{ID: id, Name: p.Name})
		if len(spawns) == 60 {
			continue
		}
		e := int32(i + 2) // as the registry counts those whom no server has given an entity
		if !known {
			e, id = int32(100_000+i), uuid.UUID{1: 9, 2: byte(i)}
		}
		b := field.AppendVarInt(nil, e)
		b = append(b, id[:]...)
		b = append(field.AppendVarInt(b, 147), f64s(10, 70, -20)...)
		spawns = append(spawns, append(b, make([]byte, 16)...))
		destroys = append(destroys, field.AppendVarInt(field.AppendVarInt(nil, 1), e))
	}
	s.to(proto.PlayerInfo, packet.AppendPlayerInfo(nil, s.protocol, packet.PlayerInfo{Actions: packet.InfoAdd, Players: listed}))
	for i := range 1000 {
		body := append(field.AppendVarInt(nil, int32(i%60+2)), 0, 1, 0, 2, 0, 3)
		moves = append(moves, append(body, 1))
	}
	for i := range 20 {
		own = append(own, append(f32s(f64s(10+float64(i)/100, 70, -20), float32(i), 0), 1))
	}
	s.reg.Settle(time.Now())
	return s, func() {
		for _, b := range spawns {
			s.to(proto.SpawnEntity, b)
		}
		for i, b := range moves {
			s.to(proto.RelEntityMove, b)
			if i%50 == 0 {
				s.from(proto.PositionLook, own[i/50])
			}
		}
		for _, b := range destroys {
			s.to(proto.EntityDestroy, b)
		}
	}
}

func BenchmarkCrowdSecond(b *testing.B) {
	for _, others := range []int{60, 1000} {
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("others=%d/players=%v", others, known), func(b *testing.B) {
				s, second := crowdSecond(b, others, known)
				b.ReportAllocs()
				for b.Loop() {
					second()
				}
				s.understood()
			})
		}
	}
}

// A crowd's second costs a player its own moves in memory and nothing for others, and no more of time on a server of a
// thousand than on one of sixty.
func TestACrowdsSecond(t *testing.T) {
	least := map[int]time.Duration{}
	for _, others := range []int{60, 1000} {
		s, second := crowdSecond(t, others, true)
		second()
		if allocs := testing.AllocsPerRun(50, second); allocs > 22 {
			t.Errorf("beside %d: %v allocations in a second with 20 own moves", others, allocs)
		}
		for i := range 200 {
			begun := time.Now()
			second()
			if d := time.Since(begun); i == 0 || d < least[others] {
				least[others] = d
			}
		}
		spawn := field.AppendVarInt(nil, 2)
		id := uuid.UUID{15: 1}
		spawn = append(append(append(spawn, id[:]...), field.AppendVarInt(nil, 147)...), append(f64s(10, 70, -20), make([]byte, 16)...)...)
		s.to(proto.SpawnEntity, spawn)
		seen := false
		s.player.EachShown(func(*world.Player, bool) { seen = true })
		s.reg.Settle(time.Now())
		s.player.EachShown(func(*world.Player, bool) { seen = true })
		if !seen {
			t.Error("the spawn is not the one of a player: nothing was measured")
		}
		s.understood()
	}
	if least[1000] > 3*least[60] {
		t.Errorf("a second takes %v beside 60 players and %v beside 1,000", least[60], least[1000])
	}
	t.Logf("%v beside 60, %v beside 1,000", least[60], least[1000])
}
