package track

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/google/uuid"
)

// A script is packets one after the other: direction, packet, length in two bytes, body.
func script(protocol int32) (all []byte) {
	b, err := os.ReadFile("../../proxy/packet/testdata/bridge.jsonl")
	if err != nil {
		panic(err)
	}
	for line := range bytes.Lines(b) {
		var v struct {
			Packet, Dir, Hex string
			Protocols        []int32
		}
		if err := json.Unmarshal(line, &v); err != nil {
			panic(err)
		}
		if !slices.Contains(v.Protocols, protocol) {
			continue
		}
		p, _ := proto.ByName(v.Packet)
		d := proto.Serverbound
		if v.Dir == "clientbound" {
			d = proto.Clientbound
		}
		body, _ := hex.DecodeString(v.Hex)
		all = append(all, byte(d), byte(p), byte(len(body)>>8), byte(len(body)))
		all = append(all, body...)
	}
	return all
}

// Whatever comes in whatever order, a pose that is published is a place that exists, in the world of the facts.
func FuzzSession(f *testing.F) {
	for _, v := range proto.Supported() {
		s := script(v.Protocol)
		if len(s) == 0 {
			f.Fatalf("no vectors for %d", v.Protocol)
		}
		f.Add(v.Protocol, s)
	}
	f.Fuzz(func(t *testing.T, protocol int32, script []byte) {
		v := proto.Lookup(protocol)
		if v == nil {
			return
		}
		reg := world.New()
		player := reg.Add(uuid.UUID{1}, "Ann")
		track := New(player, reg, v)
		track.Failures = new(Failures)
		track.Backend("lobby", uuid.UUID{1})
		for len(script) >= 4 {
			d, p, n := proto.Dir(script[0]), proto.Packet(script[1]), int(script[2])<<8|int(script[3])
			script = script[4:]
			n = min(n, len(script))
			if d == proto.Serverbound {
				track.Serverbound(proto.Play, p, script[:n:n])
			} else {
				track.Clientbound(proto.Play, p, script[:n:n])
			}
			script = script[n:]
			pose, facts := player.Pose(), player.Facts()
			if pose == nil {
				continue
			}
			for _, c := range []float64{pose.X, pose.Y, pose.Z} {
				if !(math.Abs(c) <= maxCoordinate) {
					t.Fatalf("pose %+v", pose)
				}
			}
			if yaw := float64(pose.Yaw); math.IsNaN(yaw) || math.IsInf(yaw, 0) {
				t.Fatalf("pose %+v", pose)
			}
			if pose.Place == nil || pose.Place != facts.Place {
				t.Fatalf("pose in %v, facts say %v", pose.Place, facts.Place)
			}
			if facts.Mode > world.Spectator || facts.OpLevel > 4 || !facts.Riding && facts.Vehicle != 0 {
				t.Fatalf("facts %+v", facts)
			}
		}
	})
}
