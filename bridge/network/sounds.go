package network

import (
	"io"

	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/transcode"
)

// Sounds says what speakers can play, which depends on the build.
func Sounds() string {
	if opus.Built {
		return "with libopus: speakers play wav, mp3, flac, Ogg Vorbis and Ogg Opus"
	}
	return "without libopus: speakers play mono Ogg Opus alone"
}

// converter returns what plays files that cannot be sent as they are; nil: nothing does.
func converter() speaker.Converter {
	if !opus.Built {
		return nil
	}
	return func(src io.ReadSeekCloser, loop bool) (speaker.Sound, error) { return transcode.Open(src, loop) }
}
