// Package ogg takes Opus packets out of Ogg files (RFC 3533, RFC 7845) and single frames out of packets (RFC 6716).
//
// It promises that a broken file is an error, that a file's mere claims allocate nothing, and that it neither decodes
// nor encodes: it needs no libopus.
package ogg

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// A page: "OggS", version 0, flags, granule i64, serial u32, number u32, CRC u32, segments u8, the segments' sizes, the
// segments; little-endian. A packet ends with the first segment that is shorter than 255.
const (
	pageHead   = 27
	flagGoesOn = 1 // the page begins within a packet
	flagFirst  = 2 // of a logical stream
	flagLast   = 4
)

// maxPacket bounds the bytes of one packet across pages. Those of sound are much smaller, but the titles before it may
// have a picture.
const maxPacket = 16 << 20

// ErrDamaged is the error of a file that breaks the form it begins with.
var ErrDamaged = errors.New("ogg: the file is damaged")

// IsOpus tells by its first bytes whether a file is Ogg Opus. 64 of them are enough.
func IsOpus(head []byte) bool {
	const firstPacket = pageHead + 1 // behind the header of a page with one segment
	return bytes.HasPrefix(head, []byte("OggS")) && len(head) > firstPacket && bytes.HasPrefix(head[firstPacket:], []byte("OpusHead"))
}

// Head says how a stream is to be played.
type Head struct {
	Channels int
	Mapping  byte // of channels; 0 is mono or stereo
	Skip     int  // samples of 48 kHz at the beginning that must not be heard
	Gain     int  // in 1/256 dB
}

// Opus reads the packets of an Ogg Opus file, of several streams in a row too. Make one with [NewOpus].
type Opus struct {
	// These belong to the last packet of Next.
	Head    Head  // of its stream
	Stream  int   // counts the streams, from 1
	Page    int   // counts the pages
	Last    bool  // its page is the stream's last
	Granule int64 // the stream's samples up to the end of that page; -1: not known

	r       *bufio.Reader
	page    [255 * 255]byte
	serial  uint32
	packets int      // of the stream, so far: the first two are headers
	part    []byte   // of a packet that goes on on the next page
	whole   [][]byte // packets of this page that are still to be handled
}

// NewOpus reads a file from its beginning.
func NewOpus(r io.Reader) *Opus { return &Opus{r: bufio.NewReader(r)} }

// Next returns the next packet of sound, which is valid until the next call. [io.EOF] is the end.
func (o *Opus) Next() ([]byte, error) {
	for {
		for len(o.whole) == 0 {
			if err := o.next(); err != nil {
				return nil, err
			}
		}
		p := o.whole[0]
		o.whole = o.whole[1:]
		o.packets++
		switch {
		case o.packets == 1:
			if err := o.head(p); err != nil {
				return nil, err
			}
		case o.packets == 2:
			if !bytes.HasPrefix(p, []byte("OpusTags")) {
				return nil, ErrDamaged
			}
		case len(p) > 0:
			return p, nil
		}
	}
}

// head reads the first packet: "OpusHead", version, channels, samples to skip u16, input rate u32, gain i16, mapping.
func (o *Opus) head(p []byte) error {
	if len(p) < 19 || !bytes.HasPrefix(p, []byte("OpusHead")) || p[8]&0xf0 != 0 {
		return ErrDamaged
	}
	o.Head = Head{
		Channels: int(p[9]), Mapping: p[18],
		Skip: int(binary.LittleEndian.Uint16(p[10:])), Gain: int(int16(binary.LittleEndian.Uint16(p[16:]))),
	}
	o.Stream++
	return nil
}

// next reads pages up to one that belongs to the stream, or begins one.
func (o *Opus) next() error {
	for {
		var h [pageHead + 255]byte
		if _, err := io.ReadFull(o.r, h[:pageHead]); err != nil {
			if errors.Is(err, io.EOF) && o.packets == 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if string(h[:5]) != "OggS\x00" {
			return ErrDamaged
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
			return ErrDamaged
		}
		flags, serial := h[5], binary.LittleEndian.Uint32(h[14:])
		if flags&flagFirst != 0 && bytes.HasPrefix(body, []byte("OpusHead")) && (o.packets == 0 || o.Last) {
			o.serial, o.packets, o.part = serial, 0, nil
		} else if serial != o.serial || o.packets == 0 {
			continue // a second stream in parallel
		}
		o.Page++
		o.Last = flags&flagLast != 0
		o.Granule = int64(binary.LittleEndian.Uint64(h[6:]))
		return o.split(body, sizes, flags&flagGoesOn != 0)
	}
}

// split takes a page apart into packets. goesOn says that it begins within one.
func (o *Opus) split(body, sizes []byte, goesOn bool) error {
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
		return ErrDamaged
	default:
		o.part = append(o.part, body[from:at]...)
	}
	return nil
}

// Seal corrects the checksum of the page at the beginning of file, for code that makes or mends files, and returns the
// page's length: 0 when file does not begin with a whole one.
func Seal(file []byte) int {
	if len(file) < pageHead || !bytes.HasPrefix(file, []byte("OggS")) {
		return 0
	}
	end := pageHead + int(file[26])
	if end > len(file) {
		return 0
	}
	for _, n := range file[pageHead:end] {
		end += int(n)
	}
	if end > len(file) {
		return 0
	}
	clear(file[22:26])
	binary.LittleEndian.PutUint32(file[22:], crc(0, file[:end]))
	return end
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
