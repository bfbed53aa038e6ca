package ogg

import "errors"

// maxFrame and maxFrames bound one packet: 1275 bytes each, and 120 ms of the shortest frames.
const (
	maxFrame  = 1275
	maxFrames = 48
)

// ErrPacket is the error of a packet that is not well-formed (RFC 6716, 3.4).
var ErrPacket = errors.New("opus: a packet is malformed")

// Frames takes a packet apart into its frames; Append makes a packet of each. dst is reused.
func Frames(dst []Frame, packet []byte) ([]Frame, error) {
	dst = dst[:0]
	if len(packet) == 0 {
		return dst, ErrPacket
	}
	toc, rest := packet[0], packet[1:]
	add := func(b []byte) {
		dst = append(dst, Frame{toc &^ 3, b})
	}
	switch toc & 3 {
	case 0:
		add(rest)
	case 1: // two of equal size
		if len(rest)%2 != 0 {
			return dst, ErrPacket
		}
		add(rest[:len(rest)/2])
		add(rest[len(rest)/2:])
	case 2: // two, the first with its size
		n, rest, ok := size(rest)
		if !ok || n > len(rest) {
			return dst, ErrPacket
		}
		add(rest[:n])
		add(rest[n:])
	default: // any number: count with flags, padding, sizes
		if len(rest) == 0 {
			return dst, ErrPacket
		}
		flags := rest[0]
		count, padding, more := int(flags&0x3f), 0, flags&0x40 != 0
		rest = rest[1:]
		for more {
			if len(rest) == 0 {
				return dst, ErrPacket
			}
			n := int(rest[0])
			rest = rest[1:]
			if more = n == 255; more {
				n = 254
			}
			padding += n
		}
		if count == 0 || count > maxFrames || padding > len(rest) {
			return dst, ErrPacket
		}
		rest = rest[:len(rest)-padding]
		var sizes [maxFrames]int
		if flags&0x80 == 0 {
			if len(rest)%count != 0 {
				return dst, ErrPacket
			}
			for i := range count {
				sizes[i] = len(rest) / count
			}
		} else {
			left := 0
			for i := range count - 1 {
				var ok bool
				if sizes[i], rest, ok = size(rest); !ok {
					return dst, ErrPacket
				}
				left += sizes[i]
			}
			if left > len(rest) {
				return dst, ErrPacket
			}
			sizes[count-1] = len(rest) - left
		}
		for _, n := range sizes[:count] {
			add(rest[:n])
			rest = rest[n:]
		}
	}
	for _, f := range dst {
		if len(f.data) > maxFrame {
			return dst, ErrPacket
		}
	}
	return dst, nil
}

// size reads the length of a frame: one byte up to 251, or two.
func size(b []byte) (n int, rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return 0, nil, false
	case b[0] < 252:
		return int(b[0]), b[1:], true
	case len(b) == 1:
		return 0, nil, false
	}
	return int(b[0]) + 4*int(b[1]), b[2:], true
}

// Frame is one frame of a packet and shares the packet's bytes.
type Frame struct {
	toc  byte
	data []byte
}

// Append appends a packet that holds the frame alone.
func (f Frame) Append(dst []byte) []byte { return append(append(dst, f.toc), f.data...) }
