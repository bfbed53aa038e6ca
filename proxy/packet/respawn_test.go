package packet

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// rejoinVector is a line of testdata/respawn.jsonl, which npm minecraft-protocol's serializers have made; respawn.js
// beside it is the generator.
type rejoinVector struct {
	Protocols            []int32
	Join, First, Respawn string
}

func rejoinVectors(t testing.TB) []rejoinVector {
	t.Helper()
	all, err := testkit.Lines[rejoinVector]("testdata/respawn.jsonl")
	if err != nil || len(all) < 30 {
		t.Fatalf("only %d vectors (%v): run testdata/respawn.js", len(all), err)
	}
	return all
}

// TestRejoin: the packets are the bytes that another implementation writes, for every version without configuration,
// and nothing shorter is taken for a join game.
func TestRejoin(t *testing.T) {
	seen := map[int32]int{}
	for _, v := range rejoinVectors(t) {
		join, _ := hex.DecodeString(v.Join)
		for _, p := range v.Protocols {
			seen[p]++
			first, respawn, err := Rejoin(p, join)
			if err != nil {
				t.Fatalf("%d: %v", p, err)
			}
			if got := hex.EncodeToString(first); got != v.First {
				t.Errorf("%d: join game\n%s, want\n%s", p, got, v.First)
			}
			if got := hex.EncodeToString(respawn); got != v.Respawn {
				t.Errorf("%d: respawn\n%s, want\n%s", p, got, v.Respawn)
			}
			if p < proto.V1_13 {
				away, back, err := RejoinForge(p, join)
				at, aerr := ParseRespawn(p, away)
				to, terr := ParseRespawn(p, back)
				if err != nil || aerr != nil || terr != nil || !bytes.Equal(back, respawn) || at.World == to.World || at.Mode != to.Mode || len(away) != len(back) {
					t.Errorf("%d: Forge goes by %x, %x: %v, %v, %v", p, away, back, err, aerr, terr)
				}
			}
			if s, err := ParseRespawn(p, respawn); err != nil {
				t.Errorf("%d: respawn: %v", p, err)
			} else if j, _ := ParseJoinGame(p, join); s.World != j.World || s.Mode != j.Mode {
				t.Errorf("%d: respawn is %+v, join game was %+v", p, s, j)
			}
			needed := 10
			if p >= proto.V1_16 {
				needed = len(join)
			}
			for n := range needed {
				if _, _, err := RejoinForge(p, join[:n]); err == nil {
					t.Fatalf("%d: Forge: %d bytes of %d are enough", p, n, len(join))
				}
				if _, _, err := Rejoin(p, join[:n]); err == nil {
					t.Fatalf("%d: %d of %d bytes were enough", p, n, len(join))
				}
			}
		}
	}
	for _, v := range proto.Supported() {
		if want := 4; v.Protocol < proto.V1_20_2 && seen[v.Protocol] != want {
			t.Errorf("%d: %d vectors, want %d", v.Protocol, seen[v.Protocol], want)
		}
	}
	if _, _, err := Rejoin(proto.V1_20_2, nil); err == nil {
		t.Error("a client with configuration needs no respawn")
	}
}

// FuzzRejoin: what comes out is never longer than what went in allows, and reads as a respawn into the same world.
func FuzzRejoin(f *testing.F) {
	for _, v := range rejoinVectors(f) {
		join, _ := hex.DecodeString(v.Join)
		for i, ver := range proto.Supported() {
			if ver.Protocol == v.Protocols[0] {
				f.Add(join, uint8(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, join []byte, version uint8) {
		p := proto.Supported()[int(version)%len(proto.Supported())].Protocol
		before := bytes.Clone(join)
		first, respawn, err := Rejoin(p, join)
		if !bytes.Equal(join, before) {
			t.Fatal("the join game was changed")
		}
		if err != nil {
			return
		}
		if len(first) != len(join) || len(respawn) > len(join)+8 {
			t.Fatalf("%d bytes became %d and %d", len(join), len(first), len(respawn))
		}
		j, err := ParseJoinGame(p, join)
		s, err2 := ParseRespawn(p, respawn)
		if err != nil || err2 != nil || j.World != s.World {
			t.Fatalf("%+v, %v became %+v, %v", j, err, s, err2)
		}
		away, back, err := RejoinForge(p, join)
		if (err == nil) != (p < proto.V1_13) || err == nil && (!bytes.Equal(back, respawn) || len(away) != len(back) || bytes.Equal(away, back)) {
			t.Fatalf("for Forge %x became %x and %x, %v", join, away, back, err)
		}
	})
}
