package soundfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/opus"
)

// oggOpus streams the sound of an Ogg Opus file, several in a row included. Sound of both channels is mixed by the
// decoder.
type oggOpus struct {
	in  *ogg.Opus
	dec *opus.Decoder

	stream int // of in
	skip   int // samples of the beginning that must not be heard
	gain   float64
	at     int64 // samples so far, those to skip included

	pcm   [opus.MaxLong]int16
	ready []int16
	err   error
}

func newOggOpus(r io.Reader) (*oggOpus, error) {
	dec, err := opus.NewDecoder()
	if err != nil {
		return nil, err
	}
	o := &oggOpus{in: ogg.NewOpus(r), dec: dec}
	if err := o.fill(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err // now rather than when it is played
	}
	return o, nil
}

// Stream returns the next samples, the same in both channels.
func (o *oggOpus) Stream(out [][2]float64) (n int, ok bool) {
	for n < len(out) {
		if len(o.ready) == 0 {
			if o.err == nil {
				o.err = o.fill()
			}
			if o.err != nil {
				break
			}
		}
		k := min(len(o.ready), len(out)-n)
		for _, v := range o.ready[:k] {
			s := float64(v) / 32768 * o.gain
			out[n] = [2]float64{s, s}
			n++
		}
		o.ready = o.ready[k:]
	}
	return n, n > 0
}

// Err returns what is wrong with the file.
func (o *oggOpus) Err() error {
	if errors.Is(o.err, io.EOF) {
		return nil
	}
	return o.err
}

// fill decodes until there is something to hear.
func (o *oggOpus) fill() error {
	for len(o.ready) == 0 {
		page, last, granule := o.in.Page, o.in.Last, o.in.Granule
		p, err := o.in.Next()
		if err != nil {
			return err
		}
		switch {
		case o.in.Stream != o.stream:
			if err := o.begin(); err != nil {
				return err
			}
		case o.in.Page != page && !last && granule >= 0:
			o.at = granule // also of streams that were cut out of others, and do not begin at 0
		}
		if err := o.packet(p); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a stream.
func (o *oggOpus) begin() error {
	h := o.in.Head
	if h.Mapping != 0 || h.Channels == 0 || h.Channels > 2 {
		return fmt.Errorf("ogg opus: %d channels of mapping %d; mono and stereo can be played", h.Channels, h.Mapping)
	}
	o.stream, o.at, o.skip = o.in.Stream, 0, h.Skip
	o.gain = math.Pow(10, float64(h.Gain)/(20*256))
	return o.dec.Reset()
}

// packet handles one packet of the stream.
func (o *oggOpus) packet(p []byte) error {
	n, err := o.dec.DecodeLong(p, o.pcm[:])
	if err != nil {
		return err
	}
	if o.in.Last && o.in.Granule >= 0 { // the last packet is longer than the sound
		n = int(min(int64(n), max(0, o.in.Granule-o.at)))
	}
	o.at += int64(n)
	drop := min(n, o.skip)
	o.skip -= drop
	o.ready = o.pcm[drop:n]
	return nil
}
