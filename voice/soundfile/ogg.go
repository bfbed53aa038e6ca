package soundfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/earshot-mc/earshot/voice/opus"
)

// An Ogg page: "OggS", version 0, flags, granule i64, serial u32, number u32, CRC u32, segments u8, the segments' sizes,
// the segments; little-endian. A packet ends with the first segment that is shorter than 255 (RFC 3533).
const (
	pageHead   = 27
	flagGoesOn = 1 // the page begins within a packet
	flagFirst  = 2 // of a logical stream
	flagLast   = 4
)

// maxPacket bounds what is kept of a packet across pages. Those of sound are much smaller, but the titles that precede it
// may have a picture.
const maxPacket = 16 << 20

var errDamaged = errors.New("ogg: the file is damaged")

// oggOpus streams the sound of an Ogg Opus file (RFC 7845), several in a row included. Sound of both channels is mixed
// by the decoder.
type oggOpus struct {
	r    *bufio.Reader
	dec  *opus.Decoder
	page [255 * 255]byte

	serial  uint32
	packets int // of the stream, so far: the first two are headers
	skip    int // samples of the beginning that are not to be heard
	gain    float64
	at      int64 // samples so far, those to skip included

	part    []byte   // of a packet that goes on on the next page
	whole   [][]byte // packets of this page that are still to be seen to
	last    bool     // this page is the stream's last
	granule int64    // how many samples the stream has up to the end of this page; -1 unknown

	pcm   [opus.MaxLong]int16
	ready []int16
	err   error
}

func newOggOpus(r io.Reader) (*oggOpus, error) {
	dec, err := opus.NewDecoder()
	if err != nil {
		return nil, err
	}
	o := &oggOpus{r: bufio.NewReader(r), dec: dec}
	if err := o.fill(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err // now rather than when it is played
	}
	return o, nil
}

// Stream gives what comes next, the same in both channels.
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

// Err tells what is wrong with the file.
func (o *oggOpus) Err() error {
	if errors.Is(o.err, io.EOF) {
		return nil
	}
	return o.err
}

// fill decodes until there is something to hear.
func (o *oggOpus) fill() error {
	for len(o.ready) == 0 {
		if len(o.whole) == 0 {
			if o.packets > 2 && !o.last && o.granule >= 0 {
				o.at = o.granule // also of streams that were cut out of others, and do not begin at 0
			}
			if err := o.next(); err != nil {
				return err
			}
			continue
		}
		p := o.whole[0]
		o.whole = o.whole[1:]
		if err := o.packet(p); err != nil {
			return err
		}
	}
	return nil
}

// packet sees to one packet of the stream.
func (o *oggOpus) packet(p []byte) error {
	o.packets++
	switch o.packets {
	case 1:
		return o.head(p)
	case 2:
		if !bytes.HasPrefix(p, []byte("OpusTags")) {
			return errDamaged
		}
		return nil
	}
	if len(p) == 0 {
		return nil
	}
	n, err := o.dec.DecodeLong(p, o.pcm[:])
	if err != nil {
		return err
	}
	if o.last && o.granule >= 0 { // the last packet is longer than the sound
		n = int(min(int64(n), max(0, o.granule-o.at)))
	}
	o.at += int64(n)
	drop := min(n, o.skip)
	o.skip -= drop
	o.ready = o.pcm[drop:n]
	return nil
}

// head reads the first packet: "OpusHead", version, channels, samples to skip u16, input rate u32, gain i16 in 1/256 dB,
// channel mapping.
func (o *oggOpus) head(p []byte) error {
	if len(p) < 19 || !bytes.HasPrefix(p, []byte("OpusHead")) || p[8]&0xf0 != 0 {
		return errDamaged
	}
	if channels := p[9]; p[18] != 0 || channels == 0 || channels > 2 {
		return fmt.Errorf("ogg opus: %d channels of mapping %d; mono and stereo can be played", channels, p[18])
	}
	o.skip = int(binary.LittleEndian.Uint16(p[10:]))
	o.gain = math.Pow(10, float64(int16(binary.LittleEndian.Uint16(p[16:])))/(20*256))
	return o.dec.Reset()
}

// next reads pages up to one that belongs to the stream, or begins one.
func (o *oggOpus) next() error {
	for {
		var h [pageHead + 255]byte
		if _, err := io.ReadFull(o.r, h[:pageHead]); err != nil {
			if errors.Is(err, io.EOF) && o.packets == 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if string(h[:5]) != "OggS\x00" {
			return errDamaged
		}
		sizes := h[pageHead : pageHead+int(h[26])]
		if _, err := io.ReadFull(o.r, sizes); err != nil {
			return io.ErrUnexpectedEOF
		}
		total := 0
		for _, n := range sizes {
			total += int(n)
		}
		body := o.page[:total]
		if _, err := io.ReadFull(o.r, body); err != nil {
			return io.ErrUnexpectedEOF
		}
		sum := binary.LittleEndian.Uint32(h[22:])
		clear(h[22:26])
		if crc(crc(0, h[:pageHead+len(sizes)]), body) != sum {
			return errDamaged
		}
		flags, serial := h[5], binary.LittleEndian.Uint32(h[14:])
		if flags&flagFirst != 0 && bytes.HasPrefix(body, []byte("OpusHead")) && (o.packets == 0 || o.last) {
			o.serial, o.packets, o.at, o.part = serial, 0, 0, nil
		} else if serial != o.serial || o.packets == 0 {
			continue // another stream beside this one
		}
		o.last = flags&flagLast != 0
		o.granule = int64(binary.LittleEndian.Uint64(h[6:]))
		return o.split(body, sizes, flags&flagGoesOn != 0)
	}
}

// split takes a page apart into packets. goesOn says that it begins within one.
func (o *oggOpus) split(body, sizes []byte, goesOn bool) error {
	o.whole = o.whole[:0]
	if !goesOn {
		o.part = nil // its end was lost
	}
	lost := goesOn && o.part == nil // its beginning was
	from, at := 0, 0
	for _, n := range sizes {
		if at += int(n); n == 255 {
			continue
		}
		p := body[from:at]
		if goesOn {
			p = append(o.part, p...)
		}
		if !lost {
			o.whole = append(o.whole, p)
		}
		o.part, from, goesOn, lost = nil, at, false, false
	}
	switch {
	case lost || from == at:
	case len(o.part)+at-from > maxPacket:
		return errDamaged
	default:
		o.part = append(o.part, body[from:at]...)
	}
	return nil
}

// crc goes on with Ogg's checksum: 0x04c11db7, most significant bit first, from 0.
func crc(sum uint32, b []byte) uint32 {
	for _, v := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>24)^v]
	}
	return sum
}

var crcTable = func() (t [256]uint32) {
	for i := range t {
		sum := uint32(i) << 24
		for range 8 {
			if sum>>31 != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
		t[i] = sum
	}
	return t
}()
