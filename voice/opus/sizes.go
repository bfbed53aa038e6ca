package opus

import "errors"

// Sizes of sound.
const (
	SampleRate = 48000 // Hz
	FrameSize  = 960   // samples of one frame, 20 ms
	MaxPacket  = 1275  // bytes, the longest that the protocol carries

	// MaxLong bounds the samples of one packet from elsewhere: 120 ms.
	MaxLong = 6 * FrameSize
)

// ErrMissing is the error of a program that was built without libopus.
var ErrMissing = errors.New("this program was built without libopus: install a C compiler, pkg-config and libopus-dev, and build it again with make, or with -tags nolibopusfile")
