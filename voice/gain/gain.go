// Package gain is the arithmetic of loudness: how far a voice carries at a place and how loud it is at a distance.
//
// It promises to be pure: no clock, no state, no allocation. An input that is no number, as from an unknown or hostile
// position, is silence.
package gain

import (
	"math"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/line"
)

// Rules are a server's settings. They must not be changed once they are in use.
type Rules struct {
	Default float64            // blocks at which an ordinary voice has faded to nothing; 0 silences
	Worlds  map[string]float64 // overrides Default, by "backend/world" or, where that is missing, by "world"

	// Whisper and Shout scale the range of those who whisper and shout. 0 means that the server does not offer the
	// tier: who uses it all the same is heard as in ordinary speech, since the client may be one reload behind.
	Whisper, Shout float64
}

// Range is how far an ordinary voice carries at a place, in blocks.
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
func (r *Rules) Offers(t line.Tier) bool {
	return t == line.Normal || t == line.Whisper && r.Whisper > 0 || t == line.Shout && r.Shout > 0
}

// Factor is what the tier multiplies the range by.
func (r *Rules) Factor(t line.Tier) float64 {
	switch {
	case !r.Offers(t) || t == line.Normal:
		return 1
	case t == line.Whisper:
		return r.Whisper
	default:
		return r.Shout
	}
}

// Reach is the distance at which a speaker is no longer heard: the shorter of the ranges at both ends, times the
// speaker's tier. The tier comes last, so that a shout cannot reach into a place whose range is 0.
func Reach(speaker, listener, factor float64) float64 { return min(speaker, listener) * factor }

// Level is the gain byte of a frame heard over the distance whose square is d2: volume × (1 − d/reach), where 255 is
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
