//go:build ignore

// Gen writes mono_20ms.opus: two seconds of 440 Hz at half of full scale, as ffmpeg -ac 1 -c:a libopus lays it out. Run
// it here: go run gen.go.
package main

import (
	"encoding/binary"
	"log"
	"math"
	"os"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/opus"
)

const frames, perPage = 100, 50

func main() {
	enc, err := opus.NewEncoder()
	if err != nil {
		log.Fatal(err)
	}
	var all [][]byte
	pcm := make([]int16, opus.FrameSize)
	for frame := range frames {
		for i := range pcm {
			pcm[i] = int16(16384 * math.Sin(2*math.Pi*440*float64(frame*len(pcm)+i)/opus.SampleRate))
		}
		p, err := enc.Encode(pcm, nil)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, p)
	}
	var out []byte
	number := uint32(0)
	page := func(flags byte, granule int, packets ...[]byte) {
		h := append([]byte("OggS\x00"), flags)
		h = binary.LittleEndian.AppendUint64(h, uint64(granule))
		h = binary.LittleEndian.AppendUint32(h, 0xea125407)
		h = binary.LittleEndian.AppendUint32(h, number)
		h = append(h, 0, 0, 0, 0)
		number++
		var sizes, body []byte
		for _, p := range packets {
			for n := len(p); ; n -= 255 {
				sizes = append(sizes, byte(min(n, 255)))
				if n < 255 {
					break
				}
			}
			body = append(body, p...)
		}
		h = append(append(append(h, byte(len(sizes))), sizes...), body...)
		ogg.Seal(h)
		out = append(out, h...)
	}
	page(2, 0, []byte("OpusHead\x01\x01\x38\x01\x80\xbb\x00\x00\x00\x00\x00")) // mono, 312 samples to skip, 48 kHz
	page(0, 0, []byte("OpusTags\x07\x00\x00\x00Earshot\x00\x00\x00\x00"))
	for i := 0; i < frames; i += perPage {
		flags := byte(0)
		if i+perPage == frames {
			flags = 4
		}
		page(flags, (i+perPage)*opus.FrameSize, all[i:i+perPage]...)
	}
	if err := os.WriteFile("mono_20ms.opus", out, 0o644); err != nil {
		log.Fatal(err)
	}
}
