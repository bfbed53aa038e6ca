// Package talk has voice's own words: how loudly somebody speaks, what groups are and what can be asked of them, who is
// muted, and what names and reasons may look like.
//
// It promises to know of no client, no socket and no format. A word is the same in every format that has words; the
// format decides how it travels.
package talk

import "github.com/google/uuid"

// Tier says how loudly somebody speaks. The zero value is the ordinary one.
type Tier uint8

// The tiers.
const (
	Normal Tier = iota
	Whisper
	Shout
)

// tiers has everything about a tier. One more tier is one more row and its constant: parsers, rosters, settings of
// loudness and the news for clients go by this table.
var tiers = [...]struct {
	word  string
	doing string
}{
	Normal:  {"normal", ""},
	Whisper: {"whisper", "whispering"},
	Shout:   {"shout", "shouting"},
}

// Tiers is the number of tiers.
const Tiers = len(tiers)

// String returns the word of the wire.
func (t Tier) String() string {
	if int(t) < len(tiers) {
		return tiers[t].word
	}
	return "unknown"
}

// Doing returns what somebody in the tier does: "whispering". It is empty for the ordinary tier, since ordinary speech
// needs no mention.
func (t Tier) Doing() string {
	if int(t) < len(tiers) {
		return tiers[t].doing
	}
	return ""
}

// ParseTier reads the word of the wire. It is false for any other word.
func ParseTier(word string) (Tier, bool) {
	for t := range tiers {
		if tiers[t].word == word {
			return Tier(t), true
		}
	}
	return 0, false
}

// MuteKind says who is muted.
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

// Offer is what clients are shown of the tiers. It must not be changed.
type Offer struct {
	Tiers TierSet // that the server offers, the ordinary one apart
	Texts
}

// Speaker is a named source of sound in the world.
type Speaker struct {
	ID   uuid.UUID // of the channel
	Name string    // see [ValidSpeakerName]; it never tells channels apart
}

// MaxSpeakers bounds the speakers that one client is told of.
const MaxSpeakers = 32

// Speakers is one or many clients' view of the speakers. It must not be changed.
type Speakers struct {
	List []Speaker // at most MaxSpeakers
	Texts
}
