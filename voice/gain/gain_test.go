package gain

import (
	"math"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

func TestLevel(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		volume, d, reach float64
		want             byte
	}{
		{1, 0, 48, 255},
		{1, 24, 48, 128},   // 127.5 rounds up
		{1, 5, 48, 228},    // 228.4
		{1, 20, 48, 149},   // 148.75
		{1, 47, 48, 5},     // 5.3
		{1, 47.9, 48, 1},   // 0.53 is still a sound
		{1, 47.906, 48, 0}, // 0.4994 is none
		{1, 48, 48, 0},
		{1, 49, 48, 0},
		{0.5, 0, 48, 128},
		{0, 0, 48, 0},
		{2, 0, 48, 255}, // never wraps
		{-1, 0, 48, 0},
		{1, 0, 0, 0}, // a silenced place, even at no distance
		{1, 0, -1, 0},
		{1, nan, 48, 0},
		{1, inf, 48, 0},
		{1, inf, inf, 0},
		{1, 1, nan, 0},
		{nan, 1, 48, 0},
	} {
		if got := Level(c.volume, c.d*c.d, c.reach); got != c.want {
			t.Errorf("Level(%v, %v², %v) = %d, want %d", c.volume, c.d, c.reach, got, c.want)
		}
	}
}

// The rounding is that of the wire format.
func TestLevelRoundsAsTheWire(t *testing.T) {
	for d := 0.0; d < 48; d += 0.01 {
		if got, want := Level(1, d*d, 48), wire.Gain(1-math.Sqrt(d*d)/48); got != want {
			t.Fatalf("at %v blocks: %d, wire.Gain says %d", d, got, want)
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct{ talker, listener, factor, want float64 }{
		{48, 48, 1, 48},
		{48, 16, 1, 16},
		{16, 48, 1, 16},
		{48, 16, 2, 32}, // an arena of 16 blocks has shouts of 32, not 96
		{48, 0, 2, 0},   // silence scaled by anything is silence
		{48, 48, 0.5, 24},
	} {
		if got := Reach(c.talker, c.listener, c.factor); got != c.want {
			t.Errorf("Reach(%v, %v, %v) = %v, want %v", c.talker, c.listener, c.factor, got, c.want)
		}
	}
}

func TestRange(t *testing.T) {
	r := Rules{Default: 48, Worlds: map[string]float64{"nether": 16, "arena/nether": 8, "lobby": 0}}
	for _, c := range []struct {
		backend, world string
		want           float64
	}{
		{"survival", "overworld", 48},
		{"survival", "nether", 16},
		{"arena", "nether", 8},
		{"arena", "lobby", 0}, // an override of 0 is one
	} {
		if got := r.Range(&world.Place{Backend: c.backend, World: c.world}); got != c.want {
			t.Errorf("range at %s/%s = %v, want %v", c.backend, c.world, got, c.want)
		}
	}
}

func TestTiers(t *testing.T) {
	on := Rules{Tiers: [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2}}
	var off Rules
	for _, c := range []struct {
		rules  *Rules
		tier   talk.Tier
		offers bool
		factor float64
	}{
		{&on, talk.Normal, true, 1}, {&on, talk.Whisper, true, 0.5}, {&on, talk.Shout, true, 2},
		{&off, talk.Normal, true, 1}, {&off, talk.Whisper, false, 1}, {&off, talk.Shout, false, 1},
		{&on, talk.Tier(9), false, 1},
	} {
		if got := c.rules.Offers(c.tier); got != c.offers {
			t.Errorf("%+v offers tier %d: %v", *c.rules, c.tier, got)
		}
		if got := c.rules.Factor(c.tier); got != c.factor {
			t.Errorf("%+v tier %d: factor %v, want %v", *c.rules, c.tier, got, c.factor)
		}
	}
}

func TestZones(t *testing.T) {
	box := func(name string, size float64, priority int) Region {
		return Region{Name: name, World: "overworld", Max: [3]float64{size, size, size}, Priority: priority, Range: size}
	}
	r := Rules{Regions: []Region{
		box("large", 30, 0), box("small", 10, 0), box("important", 20, 1), {Name: "elsewhere", World: "other/overworld", Max: [3]float64{1, 1, 1}},
	}}
	p := &world.Place{Backend: "survival", World: "overworld"}
	var names []string
	for _, z := range r.Zones(p) {
		names = append(names, z.Name)
	}
	if got := strings.Join(names, " "); got != "important small large" {
		t.Errorf("the highest priority, then the smallest: %s", got)
	}
	zones := r.Zones(p)
	for x, want := range map[float64]float64{5: 20, 20: 20, 20.5: 30, 30: 30, 31: 48, -0.5: 48} { // 10 plays no part
		if got := At(zones, 48, x, 5, 5); got != want {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	zones = (&Rules{Regions: r.Regions[:2]}).Zones(p)
	if got := At(zones, 48, 5, 5, 5); got != 10 {
		t.Errorf("the smallest of two: %v", got)
	}
	if got := At(zones, 48, math.NaN(), 5, 5); got != 48 {
		t.Errorf("nowhere: %v", got)
	}
}
