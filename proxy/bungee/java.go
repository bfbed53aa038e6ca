package bungee

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

var errShort = errors.New("message ends inside a field")

// readUTF takes a string as Java's DataInput reads it (UTF) off the front of b: a length in two bytes, and that much
// modified UTF-8.
func readUTF(b []byte) (s string, rest []byte, err error) {
	if len(b) < 2 {
		return "", nil, errShort
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; n > len(b) {
		return "", nil, errShort
	}
	s, err = decodeUTF(b[:n])
	return s, b[n:], err
}

var errUTF = errors.New("text is not modified UTF-8")

// decodeUTF reads modified UTF-8: a zero may take two bytes, and a character outside the basic plane is two surrogates
// of three bytes each. A surrogate alone becomes the replacement character.
//
// Layout: https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/io/DataInput.html#modified-utf-8.
func decodeUTF(b []byte) (string, error) {
	plain := true
	for _, c := range b {
		plain = plain && c < 0x80
	}
	if plain {
		return string(b), nil
	}
	units := make([]uint16, 0, len(b))
	for len(b) > 0 {
		n := 1
		switch c := b[0]; {
		case c < 0x80:
			units = append(units, uint16(c))
		case c>>5 == 0b110 && len(b) > 1 && b[1]>>6 == 0b10:
			n = 2
			units = append(units, uint16(c&0x1f)<<6|uint16(b[1]&0x3f))
		case c>>4 == 0b1110 && len(b) > 2 && b[1]>>6 == 0b10 && b[2]>>6 == 0b10:
			n = 3
			units = append(units, uint16(c&0x0f)<<12|uint16(b[1]&0x3f)<<6|uint16(b[2]&0x3f))
		default:
			return "", errUTF
		}
		b = b[n:]
	}
	return string(utf16.Decode(units)), nil
}

const maxUTF = 65535 // bytes that a UTF can have

// appendUTF appends s as DataInput reads it, cut to the longest UTF.
func appendUTF(dst []byte, s string) []byte {
	at := len(dst)
	dst = append(dst, 0, 0)
	for _, c := range s {
		var u []byte
		switch {
		case c == 0:
			u = []byte{0xc0, 0x80}
		case c > 0xffff:
			hi, lo := utf16.EncodeRune(c)
			u = append(surrogate(hi), surrogate(lo)...)
		default:
			u = utf8.AppendRune(nil, c)
		}
		if len(dst)-at-2+len(u) > maxUTF {
			break
		}
		dst = append(dst, u...)
	}
	binary.BigEndian.PutUint16(dst[at:], uint16(len(dst)-at-2))
	return dst
}

// surrogate encodes one surrogate, which utf8.AppendRune refuses to write.
func surrogate(c rune) []byte {
	return []byte{0xe0 | byte(c>>12), 0x80 | byte(c>>6&0x3f), 0x80 | byte(c&0x3f)}
}

// join joins names as BungeeCord does, as many as one UTF holds.
func join(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if b.Len()+2+len(n) > maxUTF {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n)
	}
	return b.String()
}
