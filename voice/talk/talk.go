// Package talk has voice's own words: how loudly somebody speaks, what groups are and what can be asked of them, who is
// muted, and what names and reasons may look like.
//
// It promises to know of no client, no socket and no format. A word that travels is the same in every format that has
// words; how it travels is the format's.
package talk

import "github.com/google/uuid"

// Tier is how loudly somebody speaks. The zero value is the ordinary one.
type Tier uint8

// The tiers.
const (
	Normal Tier = iota
	Whisper
	Shout
)

// tiers says all that is said of a tier. One more tier is a row more, beside its constant: parsers, rosters, settings of
// loudness and what clients are told go by this table.
var tiers = [...]struct {
	word  string
	doing string
}{
	Normal:  {"normal", ""},
	Whisper: {"whisper", "whispering"},
	Shout:   {"shout", "shouting"},
}

// Tiers is how many there are.
const Tiers = len(tiers)

// String returns the word that travels.
func (t Tier) String() string {
	if int(t) < len(tiers) {
		return tiers[t].word
	}
	return "unknown"
}

// Doing returns what somebody does who uses the tier: "whispering". It is empty for the ordinary tier, since whoever
// speaks as always does nothing that has to be told.
func (t Tier) Doing() string {
	if int(t) < len(tiers) {
		return tiers[t].doing
	}
	return ""
}

// ParseTier reads the word that travels. It is false for any other word.
func ParseTier(word string) (Tier, bool) {
	for t := range tiers {
		if tiers[t].word == word {
			return Tier(t), true
		}
	}
	return 0, false
}

// MuteKind is who is muted.
type MuteKind uint8

// The kinds, as numbered on the wire.
const (
	NotMuted    MuteKind = iota
	MutedPlayer          // this player
	MutedServer          // everybody
)

// TierSet is a set of tiers.
type TierSet uint8

// TiersOf returns the set of these tiers.
func TiersOf(tiers ...Tier) (s TierSet) {
	for _, t := range tiers {
		s = s.With(t)
	}
	return s
}

// With returns the set with a tier in it.
func (s TierSet) With(t Tier) TierSet { return s | 1<<t }

// Has tells whether a tier is in the set.
func (s TierSet) Has(t Tier) bool { return s>>t&1 != 0 }

// Offer is what clients are shown of the tiers. It is not to be changed.
type Offer struct {
	Tiers TierSet // that the server offers besides the ordinary one
	Texts
}

// Speaker is a named source of sound in the world.
type Speaker struct {
	ID   uuid.UUID // of the channel
	Name string    // see [ValidSpeakerName]; it never tells channels apart
}

// MaxSpeakers is how many one client is told of.
const MaxSpeakers = 32

// Speakers is what one or many clients are shown of the speakers. It is not to be changed.
type Speakers struct {
	List []Speaker // at most MaxSpeakers
	Texts
}
