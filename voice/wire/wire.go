// Package wire holds the binary frames of the voice socket: bytes in, values out, and back. It promises never to
// allocate on the sound path, never to look past the slice it was given, and to accept only what it would itself write:
// every frame that parses encodes again to the same bytes.
//
// All numbers are big-endian; UUIDs are 16 bytes, most significant half first. C2S is from the client to the server,
// S2C the other way. Opus payloads are carried, not decoded; [OpusOK] looks at their first byte only.
package wire

import "math"

// Sizes in bytes. A frame holds at least one and at most MaxOpus bytes of Opus.
const (
	MaxOpus = 1275

	// HeadC2SV2 is stream i64, sequence i64. C2S v1 has no header.
	HeadC2SV2 = 8 + 8
	// HeadC2SBoard is a kind byte, then C2S v2.
	HeadC2SBoard = 1 + HeadC2SV2
	// HeadS2CV1 is talker UUID, gain u8, dx f32, dz f32. Its 25 bytes follow from the known size of v2; the order is
	// this product's choice.
	HeadS2CV1 = 16 + 1 + 4 + 4
	// HeadS2CV2 is S2C v1's header, then stream i64, sequence i64.
	HeadS2CV2 = HeadS2CV1 + 8 + 8
	// HeadS2CPlayer is kind 0 or 2, then S2C v2.
	HeadS2CPlayer = 1 + HeadS2CV2
	// HeadS2CChannel is kind 1, channel UUID, origin UUID, gain u8, dx f32, dz f32, stream i64, sequence i64; its
	// order, too, is chosen.
	HeadS2CChannel = 1 + 16 + HeadS2CV2

	MaxC2SV1      = MaxOpus
	MaxC2SV2      = HeadC2SV2 + MaxOpus
	MaxC2SBoard   = HeadC2SBoard + MaxOpus
	MaxS2CV1      = HeadS2CV1 + MaxOpus
	MaxS2CV2      = HeadS2CV2 + MaxOpus
	MaxS2CPlayer  = HeadS2CPlayer + MaxOpus
	MaxS2CChannel = HeadS2CChannel + MaxOpus

	// MaxC2S and MaxS2C are the longest of all frames in their direction.
	MaxC2S = MaxC2SBoard
	MaxS2C = MaxS2CChannel
)

// Discard says why a frame was thrown away. A discarded frame is counted and costs its sender nothing else, until there
// are too many of them.
type Discard uint8

// The reasons, in the order in which a frame is checked.
const (
	BadLength   Discard = iota + 1 // too short or too long for the socket's format
	BadKind                        // a kind byte that the format does not know
	BadStream                      // a stream that is not positive, where it must be
	BadSequence                    // a sequence outside [0, 2^63-1)
	BadPosition                    // dx or dz is not finite
	numDiscards
)

var discards = [numDiscards]string{"", "length", "kind", "stream", "sequence", "position"}

// Discards lists all reasons, for counters that start at zero.
func Discards() []Discard {
	return []Discard{BadLength, BadKind, BadStream, BadSequence, BadPosition}
}

// String returns the reason in one word, fit for a metric label.
func (d Discard) String() string {
	if d < numDiscards {
		return discards[d]
	}
	return "unknown"
}

// Error makes a Discard an error, without an allocation.
func (d Discard) Error() string { return "voice frame has a bad " + d.String() }

// Gain rounds a linear gain of 0 to 1 to the byte of the wire. Values out of range are clamped; NaN is silence. A frame
// with a gain of 0 is not to be sent.
func Gain(linear float64) uint8 {
	if !(linear > 0) {
		return 0
	}
	return uint8(math.Round(math.Min(linear, 1) * 255))
}

// checkStream tells whether stream and sequence are valid in a frame whose sender counts its frames.
func checkStream(stream, seq int64) error {
	if stream <= 0 {
		return BadStream
	}
	if seq < 0 || seq == math.MaxInt64 {
		return BadSequence
	}
	return nil
}
