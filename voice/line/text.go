package line

import (
	"encoding/base64"
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

// ValidPassword tells whether s can be a group's password. Unlike a name it may
// be blank.
func ValidPassword(s string) bool { return ordinary(s, MaxPassword) }

// ValidSpeakerName tells whether a speaker may be called s.
func ValidSpeakerName(s string) bool { return ordinary(s, MaxSpeakerName) && !blank(s) }

// ValidReason tells whether s can be the reason of a mute.
func ValidReason(s string) bool { return ordinary(s, MaxReason) && !blank(s) }

// ordinary is the rule that all of these share: 1 to max characters, none of
// them a control or format character or the section sign. Where Java speaks of
// unpaired surrogates, here the text is not valid UTF-8.
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

// strict takes only what it would write itself: padded, and no stray bits.
var strict = base64.StdEncoding.Strict()

// decode reads a base64 word that has to hold UTF-8.
func decode(word string) (text string, ok bool) {
	b, err := strict.DecodeString(word)
	if err != nil || !utf8.Valid(b) || strings.ContainsAny(word, "\r\n") { // which the decoder skips
		return "", false
	}
	return string(b), true
}

// appendText writes s in base64, or the dash that stands for nothing.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, absent...)
	}
	return strict.AppendEncode(dst, []byte(s))
}

// absent marks an optional field that is left out, so that every row keeps its
// number of columns.
const absent = "-"

// flag reads a 0 or a 1.
func flag(word string) (on, ok bool) { return word == "1", word == "0" || word == "1" }

func appendFlag(dst []byte, on bool) []byte {
	if on {
		return append(dst, '1')
	}
	return append(dst, '0')
}

// number reads what appendNumber writes: digits without leading zeros.
func number(word string) (n int, ok bool) {
	if word == "" || len(word) > 10 || word[0] == '0' && word != "0" {
		return 0, false
	}
	for _, d := range []byte(word) {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, n <= maxNumber
}

const maxNumber = 1<<31 - 1
