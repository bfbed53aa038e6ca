package line

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// strict takes only base64 that it would write itself: padded, and without stray bits.
var strict = base64.StdEncoding.Strict()

// decode reads a base64 word that has to hold UTF-8.
func decode(word string) (text string, ok bool) {
	b, err := strict.DecodeString(word)
	if err != nil || !utf8.Valid(b) || strings.ContainsAny(word, "\r\n") { // the decoder skips these
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

// absent marks an optional field that is left out, so that every row keeps its number of columns.
const absent = "-"

// flag reads a 0 or a 1.
func flag(word string) (on, ok bool) { return word == "1", word == "0" || word == "1" }

func appendFlag(dst []byte, on bool) []byte {
	if on {
		return append(dst, '1')
	}
	return append(dst, '0')
}

// number reads the text of appendNumber: digits without leading zeros.
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
