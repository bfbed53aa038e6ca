//go:build cgo && nolibopusfile

package opus

import (
	"fmt"

	"github.com/hraban/opus"
)

// musicBitrate is transparent for most music in mono.
const musicBitrate = 64_000

// NewMusicEncoder returns an encoder for sound of any kind.
func NewMusicEncoder() (*Encoder, error) {
	enc, err := opus.NewEncoder(SampleRate, 1, opus.AppAudio)
	if err != nil {
		return nil, fmt.Errorf("opus encoder: %w", err)
	}
	if err := enc.SetBitrate(musicBitrate); err != nil {
		return nil, fmt.Errorf("opus encoder: bitrate: %w", err)
	}
	return &Encoder{enc}, nil
}
