package listen

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// refusal is one of the reasons of this package as an error.
type refusal string

func (r refusal) Error() string { return "listen: connection refused: " + string(r) }

// socket is the part of a connection that telling apart needs.
type socket interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// kind says what a connection is, by its first bytes.
type kind uint8

const (
	undecided   kind = iota // more bytes are needed
	maybeLegacy             // a whole legacy ping, or the beginning of something longer
	frame                   // Minecraft since 1.7: VarInt length, then packet 0
	legacy                  // Minecraft before 1.7
	httpRequest
	tlsRecord
	nothing // none of these
)

var methods = []string{"GET ", "POST", "HEAD", "PUT ", "OPTI", "DELE", "PATC"}

// classify tells what b begins. Once it has decided, further bytes never change the answer.
func classify(b []byte) kind {
	if len(b) == 0 {
		return undecided
	}
	// A frame's first packet is the handshake: id 0 behind a length of one or two bytes. None of its possible
	// beginnings is also a request line or a TLS record.
	switch first := b[0]; {
	case first == 0x02: // no handshake is two bytes long
		return legacy
	case first == 0x00:
		return nothing
	case len(b) == 1 && first == 0xfe:
		return maybeLegacy
	case len(b) == 1:
		return undecided
	case first < 0x80 && b[1] == 0x00:
		return frame
	case first == 0x16 && b[1] == 0x03:
		return tlsRecord
	case first == 0xfe && b[1] == 0x01 && len(b) == 2:
		return maybeLegacy
	case first == 0xfe && b[1] == 0x01 && b[2] == 0xfa:
		return legacy
	case first >= 0x80 && b[1] < 0x80 && len(b) == 2:
		return undecided
	case first >= 0x80 && b[1] < 0x80 && b[2] == 0x00:
		return frame
	}
	for _, m := range methods {
		n := min(len(b), len(m))
		if string(b[:n]) == m[:n] {
			if n == len(m) {
				return httpRequest
			}
			return undecided
		}
	}
	return nothing
}

// sniff reads from c until it is clear what c is, for at most limit. buf holds the bytes that came first. It returns
// every byte read.
func sniff(c socket, buf []byte, limit time.Duration) (kind, []byte, error) {
	end := time.Now().Add(limit)
	for {
		k, until := classify(buf), end
		switch k {
		case undecided:
		case maybeLegacy:
			if pause := time.Now().Add(legacyWait); pause.Before(end) {
				until = pause
			}
		case nothing:
			if hasHeader(buf) {
				return k, buf, refusal(ProxyUntrusted)
			}
			return k, buf, refusal(Unknown)
		default:
			return k, buf, nil
		}
		had := len(buf)
		var err error
		if buf, err = readMore(c, buf, until); err != nil {
			var why refusal
			switch {
			case errors.As(err, &why):
				return k, buf, err
			case k == maybeLegacy:
				return legacy, buf, nil
			case !errors.Is(err, os.ErrDeadlineExceeded):
				return k, buf, refusal(HungUp)
			case had == 0:
				return k, buf, refusal(Silent)
			}
			return k, buf, refusal(Slow)
		}
	}
}

// readMore appends what one read gives to buf. It returns an error only when there was nothing.
func readMore(c socket, buf []byte, until time.Time) ([]byte, error) {
	if err := c.SetReadDeadline(until); err != nil {
		return buf, err
	}
	if len(buf) == cap(buf) {
		buf = slices.Grow(buf, 512)
	}
	n, err := c.Read(buf[len(buf):cap(buf)])
	if n > 0 {
		err = nil
	}
	return buf[:len(buf)+n], err
}
