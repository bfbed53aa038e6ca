package track

import (
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// sleep is here so that it is plain that only tests in a synctest bubble, where it takes no time, call it.
func sleep(d time.Duration) { time.Sleep(d) }

// A movement may cost the pose and nothing else; everything frequent that tells nothing new must cost nothing.
func TestAllocations(t *testing.T) {
	s := onFoot(t, proto.V26_1)
	rel := append(field.AppendI16(field.AppendI16(field.AppendI16(field.AppendVarInt(nil, 300), 1), 2), 3), 1)
	latency := packet.AppendPlayerInfo(nil, s.protocol, packet.PlayerInfo{Actions: packet.InfoLatency, Players: []packet.ListedPlayer{{ID: uuid.UUID{1}}}})
	add := packet.AppendPlayerInfo(nil, s.protocol, packet.PlayerInfo{Actions: packet.InfoAdd, Players: []packet.ListedPlayer{{ID: uuid.UUID{1}, Name: "Bob"}}})
	status := append(field.AppendI32(nil, 5), 2)
	destroyed := []byte{1, 5}
	spawn := append(field.AppendVarInt(nil, 9), make([]byte, 60)...)
	stand := append(f64s(10, 70, -20), 1)
	step := [2][]byte{append(f64s(11, 70, -20), 1), append(f64s(12, 70, -20), 1)}
	for _, c := range []struct {
		name string
		max  float64
		do   func()
	}{
		{"another entity's move on foot", 0, func() { s.to(proto.RelEntityMove, rel) }},
		{"latency", 0, func() { s.to(proto.PlayerInfo, latency) }},
		{"somebody shown again", 0, func() { s.to(proto.PlayerInfo, add) }},
		{"another entity's status", 0, func() { s.to(proto.EntityStatus, status) }},
		{"an entity destroyed", 0, func() { s.to(proto.EntityDestroy, destroyed) }},
		{"an entity appears", 0, func() { s.to(proto.SpawnEntity, spawn) }},
		{"standing still", 0, func() { s.from(proto.Position, stand) }},
		{"two steps", 2, func() { s.from(proto.Position, step[0]); s.from(proto.Position, step[1]) }},
	} {
		c.do()
		if n := testing.AllocsPerRun(100, c.do); n > c.max {
			t.Errorf("%s: %v allocations, at most %v allowed", c.name, n, c.max)
		}
	}
	s.mount(7, s.self)
	if n := testing.AllocsPerRun(100, func() { s.to(proto.RelEntityMove, rel); s.to(proto.EntityDestroy, destroyed) }); n != 0 {
		t.Errorf("another entity's move while riding: %v allocations", n)
	}
	s.mount(300, s.self)
	if n := testing.AllocsPerRun(100, func() { s.to(proto.RelEntityMove, rel) }); n != 1 {
		t.Errorf("the vehicle's move: %v allocations, want the pose", n)
	}
	s.understood()
}

// The traffic of one busy second, as frames of (packet, body): 20 own movements, 1,000 entity moves, 40 chunks. A chunk
// is not wanted, so it costs the table look-up only, which the untapped loop pays, too.
type tapped struct {
	p    proto.Packet
	body []byte
}

func busySecond() (to, from []tapped) {
	for i := range 1000 {
		p, body := proto.RelEntityMove, field.AppendVarInt(nil, int32(i%50+200))
		body = append(body, 0, 1, 0, 2, 0, 3)
		switch i % 4 {
		case 1:
			p, body = proto.EntityMoveLook, append(body, 1, 2)
		case 2:
			p, body = proto.EntityHeadRotation, field.AppendVarInt(nil, int32(i))
		}
		to = append(to, tapped{p, append(body, 1)})
		if i%25 == 0 {
			to = append(to, tapped{proto.MapChunk, make([]byte, 16<<10)})
		}
	}
	for i := range 20 {
		from = append(from, tapped{proto.PositionLook, append(f32s(f64s(float64(i), 70, 0), float32(i), 0), 1)})
	}
	return to, from
}

func BenchmarkSecond(b *testing.B) {
	to, from := busySecond()
	for _, c := range []struct {
		name string
		tap  bool
		ride int32
	}{{"untapped", false, 0}, {"on-foot", true, 0}, {"riding", true, 210}} {
		b.Run(c.name, func(b *testing.B) {
			s := onFoot(b, proto.V26_1)
			if c.ride != 0 {
				s.mount(c.ride, s.self)
			}
			var wanted [256]bool
			for _, p := range Wants(proto.Lookup(s.protocol), proto.Play, proto.Clientbound) {
				wanted[p] = c.tap
			}
			packets, bytes := 0, 0
			for b.Loop() {
				for i := range to {
					if f := &to[i]; wanted[f.p] {
						s.track.Clientbound(proto.Play, f.p, f.body)
					}
					packets++
					bytes += len(to[i].body)
				}
				for i := range from {
					if c.tap {
						s.track.Serverbound(proto.Play, from[i].p, from[i].body)
					}
					packets++
				}
			}
			if bytes == 0 {
				b.Fatal("no traffic")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
			b.ReportAllocs()
		})
	}
}
