package talk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the texts that people choose, in characters (UTF-16 code units).
const (
	MaxGroupName   = 24
	MaxPassword    = 64
	MaxSpeakerName = 64
	MaxReason      = 256 // of a mute; this product's choice
)

// ValidGroupName tells whether a group may be called s.
func ValidGroupName(s string) bool { return ordinary(s, MaxGroupName) && !blank(s) }

// ValidPassword tells whether s can be a group's password. Unlike a name it may be blank.
func ValidPassword(s string) bool { return ordinary(s, MaxPassword) }

// ValidSpeakerName tells whether a speaker may be called s.
func ValidSpeakerName(s string) bool { return ordinary(s, MaxSpeakerName) && !blank(s) }

// ValidReason tells whether s can be the reason of a mute.
func ValidReason(s string) bool { return ordinary(s, MaxReason) && !blank(s) }

// ordinary checks the rule that all of these share: 1 to max characters, none of them a control or format character or
// the section sign. Where Java speaks of unpaired surrogates, here the text is not valid UTF-8.
func ordinary(s string, max int) bool {
	if s == "" || len(s) > 3*max || !utf8.ValidString(s) || Units(s) > max {
		return false
	}
	for _, r := range s {
		if r == '§' || unicode.In(r, unicode.Cc, unicode.Cf) {
			return false
		}
	}
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Units counts the UTF-16 code units of s, which the protocol calls characters.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
