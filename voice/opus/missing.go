//go:build !(cgo && nolibopusfile)

// Package opus stands in for libopus in a program that was built without it: every call fails with [ErrMissing].
package opus

// Built reports whether this program can encode and decode.
const Built = false

// Encoder cannot be had.
type Encoder struct{}

// NewEncoder returns [ErrMissing].
func NewEncoder() (*Encoder, error) { return nil, ErrMissing }

// NewMusicEncoder returns [ErrMissing].
func NewMusicEncoder() (*Encoder, error) { return nil, ErrMissing }

// Encode returns [ErrMissing].
func (*Encoder) Encode(pcm []int16, dst []byte) ([]byte, error) { return dst, ErrMissing }

// Reset returns [ErrMissing].
func (*Encoder) Reset() error { return ErrMissing }

// Decoder cannot be had.
type Decoder struct{}

// NewDecoder returns [ErrMissing].
func NewDecoder() (*Decoder, error) { return nil, ErrMissing }

// Decode returns [ErrMissing].
func (*Decoder) Decode(packet []byte) ([]int16, error) { return nil, ErrMissing }

// DecodeLong returns [ErrMissing].
func (*Decoder) DecodeLong(packet []byte, pcm []int16) (int, error) { return 0, ErrMissing }

// Conceal returns [ErrMissing].
func (*Decoder) Conceal() ([]int16, error) { return nil, ErrMissing }

// Reset returns [ErrMissing].
func (*Decoder) Reset() error { return ErrMissing }
