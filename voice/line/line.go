// Package line holds the text messages of the voice socket: bytes in, values out, and back. It promises that everything
// a client sends is either one of the requests below or [ErrUnsupported], and that the server's lines parse to the
// values that they were made from.
//
// C2S is from the client to the server, S2C the other way. A request is one line without a line end. In messages of
// several rows each row ends with a line feed. Where the protocol names a line but not its spelling, the spelling is
// this product's choice, and a comment says so.
package line

import (
	"errors"
	"unicode/utf8"
)

// MaxC2S bounds a client's text message, in characters (UTF-16 code units).
const MaxC2S = 1024

// ErrUnsupported is a text that the server does not take. Its message is the reason in the close frame, with code 1003.
var ErrUnsupported = errors.New("unsupported control message")

// plain tells whether s may stand in a row: valid UTF-8 without control bytes or blanks.
func plain(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f {
			return false
		}
	}
	return true
}
