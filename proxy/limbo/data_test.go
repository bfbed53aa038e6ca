package limbo

import (
	"slices"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestEveryVersionHasData(t *testing.T) {
	have := Protocols()
	supported := proto.Supported()
	if len(have) != len(supported) {
		t.Errorf("%d protocols have data, %d are supported", len(have), len(supported))
	}
	for i, v := range supported {
		if i < len(have) && have[i] != v.Protocol {
			t.Fatalf("no data for protocol %d", v.Protocol)
		}
	}
	if len(worldFile) > 3<<20 {
		t.Errorf("world.bin takes %d bytes", len(worldFile))
	}
}

// The packets that every join has, by state; the generator's ids must be those of our own table.
func TestEveryBlobIsWhole(t *testing.T) {
	const chunks = 7 * 7
	for _, p := range Protocols() {
		v, e := proto.Lookup(p), worlds()[p]
		raw, err := e.inflate()
		if err != nil {
			t.Fatalf("%d: %v", p, err)
		}
		got := map[proto.Packet]int{}
		if err := eachPacket(raw, func(s proto.State, id int32, body, whole []byte) {
			got[v.Table(s, proto.Clientbound)[id]]++
		}); err != nil {
			t.Fatalf("%d: %v", p, err)
		}
		want := map[proto.Packet]int{proto.JoinGame: 1, proto.CustomPayload: 1, proto.Abilities: 1, proto.Difficulty: 1,
			proto.SpawnPosition: 1, proto.MapChunk: chunks, proto.UpdateHealth: 1}
		if p >= proto.V1_14 {
			want[proto.UpdateViewPosition] = 1
		}
		if p >= proto.V1_20_2 {
			want[proto.FeatureFlags], want[proto.ChunkBatchStart], want[proto.ChunkBatchFinished] = 1, 1, 1
		}
		if p >= proto.V1_20_3 {
			want[proto.GameStateChange] = 1
		}
		if p >= proto.V1_20_5 {
			want[proto.Tags] = 1
		}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%d: %d × %s, want %d", p, got[name], name, n)
			}
		}
		if p >= proto.V1_20_2 && got[proto.RegistryData] == 0 {
			t.Errorf("%d: no registries", p)
		}
		if _, err := newJoin(raw); err != nil {
			t.Errorf("%d: %v", p, err)
		}
		for _, cut := range []int{0, 1, len(raw) / 2, len(raw) - 1} {
			if _, err := newJoin(raw[:cut]); err == nil {
				t.Errorf("%d: cut at %d and still accepted", p, cut)
			}
		}
	}
}

// TestWhatItemsName: clients refuse to join when an element is missing that one of their own items or blocks names.
// Those of 26.2 and 26.3 have names that no version before them knows.
func TestWhatItemsName(t *testing.T) {
	elements := func(p int32) (registries map[string][]string, tags []string) {
		raw, err := worlds()[p].inflate()
		if err != nil {
			t.Fatal(err)
		}
		registries = map[string][]string{}
		if err := eachPacket(raw, func(s proto.State, id int32, body, _ []byte) {
			r := field.NewReader(body)
			switch proto.Lookup(p).Table(s, proto.Clientbound)[id] {
			case proto.RegistryData:
				name := r.String(100)
				for range r.Count(2) {
					registries[name] = append(registries[name], r.String(100))
					if r.Bool() {
						r.SkipNBT(false)
					}
				}
			case proto.Tags:
				for range r.Count(2) {
					registry := r.String(100)
					for range r.Count(2) {
						tags = append(tags, registry+" "+r.String(100))
						for range r.Count(1) {
							r.VarInt()
						}
					}
				}
			default:
				return
			}
			if err := r.End(); err != nil {
				t.Errorf("%d: %v", p, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return registries, tags
	}
	for p := proto.V26_1; p <= proto.V26_3; p++ {
		registries, tags := elements(p)
		for name, since := range map[string]int32{"bounce": proto.V26_2, "tears": proto.V26_1} {
			if got := slices.Contains(registries["minecraft:jukebox_song"], "minecraft:"+name); got != (p >= since) {
				t.Errorf("%d: the song %s: %v", p, name, got)
			}
		}
		if got := slices.Contains(registries["minecraft:worldgen/biome"], "minecraft:sulfur_caves"); got != (p >= proto.V26_2) || len(registries["minecraft:worldgen/biome"]) < 65 {
			t.Errorf("%d: the biome sulfur_caves: %v, of %d", p, got, len(registries["minecraft:worldgen/biome"]))
		}
		want := map[string]int{"minecraft:decorated_pot_pattern": 23, "minecraft:block_transformer": 3}
		for name, n := range want {
			if p < proto.V26_3 {
				n = 0
			}
			if len(registries[name]) != n {
				t.Errorf("%d: %d elements of %s", p, len(registries[name]), name)
			}
		}
		for _, name := range []string{"infiniburn_overworld", "infiniburn_nether", "infiniburn_end"} {
			if !slices.Contains(tags, "minecraft:block minecraft:"+name) {
				t.Errorf("%d: no tag %s", p, name)
			}
		}
	}
}

// There are no bots for these two, so they must be exactly like a neighbour that has one.
func TestVersionsWithoutBots(t *testing.T) {
	for p, like := range map[int32]int32{108: 109, 485: 480} {
		if worlds()[p] == nil || worlds()[p] != worlds()[like] {
			t.Errorf("%d has other data than %d", p, like)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100, len(worldFile) - 1} {
		if _, err := readDirectory(worldFile[:n]); err == nil {
			t.Errorf("the first %d bytes pass for a whole file", n)
		}
	}
	e := worlds()[proto.V1_8]
	for _, damaged := range []entry{{packed: e.packed, size: e.size - 1}, {packed: e.packed, size: e.size + 1}, {packed: e.packed[:100], size: e.size}, {packed: []byte("no"), size: 2}} {
		if _, err := damaged.inflate(); err == nil {
			t.Errorf("%d bytes for %d pass for a whole blob", len(damaged.packed), damaged.size)
		}
	}
}
