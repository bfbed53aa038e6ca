// Package gain is the arithmetic of loudness: how far a voice carries at a place and how loud it is at a distance.
//
// It promises to be pure: no clock, no state, no allocation. A NaN among the inputs, as from an unknown or hostile
// position, is silence.
package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Rules are a server's settings. They must not be changed once they are in use.
type Rules struct {
	Default float64            // blocks at which an ordinary voice has faded to nothing; 0 silences
	Worlds  map[string]float64 // overrides Default, by "backend/world" or, where that is missing, by "world"

	Regions []Region // override both

	// Tiers scale the range of a voice; the ordinary tier always has 1. 0 means that the server does not offer the
	// tier: a client that uses it all the same is heard as in ordinary speech, since it may be one reload behind.
	Tiers [talk.Tiers]float64
}

// Region is a box in a world in which a voice carries differently.
type Region struct {
	Name     string     // for people
	World    string     // "backend/world" or "world"
	Min, Max [3]float64 // its corners, x, y and z; both are inside
	Priority int        // of all regions around a spot the highest decides, and then the smallest
	Range    float64    // as [Rules.Default]
}

func (r *Region) holds(x, y, z float64) bool {
	return x >= r.Min[0] && x <= r.Max[0] && y >= r.Min[1] && y <= r.Max[1] && z >= r.Min[2] && z <= r.Max[2]
}

func (r *Region) volume() float64 {
	return (r.Max[0] - r.Min[0]) * (r.Max[1] - r.Min[1]) * (r.Max[2] - r.Min[2])
}

// Zones returns the regions of a place, for [At]. Of two that hold a spot, the one that decides comes first.
func (r *Rules) Zones(p *world.Place) []Region {
	var zones []Region
	for _, z := range r.Regions {
		if z.World == p.World || z.World == p.Backend+"/"+p.World {
			zones = append(zones, z)
		}
	}
	slices.SortStableFunc(zones, func(a, b Region) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.volume(), b.volume()))
	})
	return zones
}

// At returns the voice range in blocks at x, y, z: that of the first zone containing it, else base.
func At(zones []Region, base, x, y, z float64) float64 {
	for i := range zones {
		if zones[i].holds(x, y, z) {
			return zones[i].Range
		}
	}
	return base
}

// Range returns how far an ordinary voice carries at a place outside its regions, in blocks.
func (r *Rules) Range(p *world.Place) float64 {
	if len(r.Worlds) > 0 {
		if v, ok := r.Worlds[p.Backend+"/"+p.World]; ok {
			return v
		}
		if v, ok := r.Worlds[p.World]; ok {
			return v
		}
	}
	return r.Default
}

// Offers tells whether the server offers the tier.
func (r *Rules) Offers(t talk.Tier) bool {
	return t == talk.Normal || int(t) < len(r.Tiers) && r.Tiers[t] > 0
}

// Offered returns the tiers that the server offers, without the ordinary one.
func (r *Rules) Offered() (all talk.TierSet) {
	for t := range talk.Tier(talk.Tiers) {
		if t != talk.Normal && r.Offers(t) {
			all = all.With(t)
		}
	}
	return all
}

// Factor returns what the tier multiplies the range by.
func (r *Rules) Factor(t talk.Tier) float64 {
	if t == talk.Normal || !r.Offers(t) {
		return 1
	}
	return r.Tiers[t]
}

// Reach returns the distance in blocks at which a talker is no longer heard: the shorter of the ranges at both ends,
// times the talker's tier. The tier comes last, so that a shout cannot reach into a place whose range is 0.
func Reach(talker, listener, factor float64) float64 { return min(talker, listener) * factor }

// Level returns the gain byte of a frame heard over a distance; d2 is its square: volume × (1 − d/reach), where 255 is
// 1.0, rounded to nearest. 0 means that the frame is not sent, which is so for every d ≥ reach.
func Level(volume, d2, reach float64) byte {
	if !(reach > 0 && d2 < reach*reach) { // written so that NaN is silence
		return 0
	}
	g := volume * (1 - math.Sqrt(d2)/reach) * 255
	if !(g > 0) {
		return 0
	}
	return byte(min(g, 255) + 0.5) // math.Round takes longer than all the rest
}
