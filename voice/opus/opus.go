//go:build cgo && nolibopusfile

// Package opus turns sound into the frames that the voice protocol carries and back: 20 ms of 48 kHz mono, 960 samples,
// in one packet of at most 1275 bytes. It is the one door to libopus, and so to cgo: only a build with the tag
// nolibopusfile has it; the Makefile sets that where it finds a C compiler and libopus. Without, everything here fails
// with [ErrMissing].
package opus

import (
	"fmt"

	"github.com/hraban/opus"
)

// Built reports whether this program can encode and decode.
const Built = true

// bitrate is the usual one of voice mods; speech is transparent at it.
const bitrate = 48_000

// An Encoder makes one stream of packets. Not for use by several goroutines at once.
type Encoder struct{ enc *opus.Encoder }

// NewEncoder returns an encoder for speech.
func NewEncoder() (*Encoder, error) {
	enc, err := opus.NewEncoder(SampleRate, 1, opus.AppVoIP)
	if err != nil {
		return nil, fmt.Errorf("opus encoder: %w", err)
	}
	if err := enc.SetBitrate(bitrate); err != nil {
		return nil, fmt.Errorf("opus encoder: bitrate: %w", err)
	}
	return &Encoder{enc}, nil
}

// Encode appends the packet of one frame to dst. pcm must hold FrameSize samples.
func (e *Encoder) Encode(pcm []int16, dst []byte) ([]byte, error) {
	if len(pcm) != FrameSize {
		return dst, fmt.Errorf("opus encoder: a frame has %d samples, not %d", FrameSize, len(pcm))
	}
	n := len(dst)
	dst = append(dst, empty[:]...)
	k, err := e.enc.Encode(pcm, dst[n:n+MaxPacket:n+MaxPacket]) // the binding goes by capacity
	if err != nil {
		return dst[:n], fmt.Errorf("opus encoder: %w", err)
	}
	return dst[:n+k], nil
}

var empty [MaxPacket]byte

// Reset makes the next frame the first of a stream.
func (e *Encoder) Reset() error {
	if err := e.enc.Reset(); err != nil {
		return fmt.Errorf("opus encoder: reset: %w", err)
	}
	return nil
}

// A Decoder reads one stream of packets. Not for use by several goroutines at once.
type Decoder struct {
	dec *opus.Decoder
	pcm [FrameSize]int16
}

// NewDecoder returns a decoder at the beginning of a stream.
func NewDecoder() (*Decoder, error) {
	d := new(Decoder)
	return d, d.Reset()
}

// Decode returns the FrameSize samples of one packet, valid until the next call. A packet that is not exactly one frame
// long is an error, after which the decoder goes on with the next packet.
func (d *Decoder) Decode(packet []byte) ([]int16, error) {
	if len(packet) == 0 || len(packet) > MaxPacket {
		return nil, fmt.Errorf("opus decoder: a packet has 1 to %d bytes, not %d", MaxPacket, len(packet))
	}
	n, err := d.dec.Decode(packet, d.pcm[:])
	if err != nil {
		return nil, fmt.Errorf("opus decoder: %w", err)
	}
	if n != FrameSize {
		return nil, fmt.Errorf("opus decoder: the packet holds %d samples, not %d", n, FrameSize)
	}
	return d.pcm[:], nil
}

// Conceal returns FrameSize samples in place of a lost packet: a continuation of the stream, fading when called
// repeatedly. Valid until the next call.
func (d *Decoder) Conceal() ([]int16, error) {
	if err := d.dec.DecodePLC(d.pcm[:]); err != nil {
		return nil, fmt.Errorf("opus decoder: conceal: %w", err)
	}
	return d.pcm[:], nil
}

// Reset forgets the stream, so that the next packet is taken as a first one.
func (d *Decoder) Reset() error {
	dec, err := opus.NewDecoder(SampleRate, 1) // the binding offers no reset
	if err != nil {
		return fmt.Errorf("opus decoder: %w", err)
	}
	d.dec = dec
	return nil
}
