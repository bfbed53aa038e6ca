// Package soundfile reads sound files as speaker channels play them: 48 kHz, one channel, 16 bit. It knows wav, mp3,
// flac, Ogg Vorbis and Ogg Opus, by a file's first bytes and not by its name.
//
// It promises that a broken file is an error of that file and of nothing else. It needs libopus, and with it cgo;
// everything that plays no files does without it.
package soundfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/gopxl/beep/v2"
	"github.com/gopxl/beep/v2/flac"
	"github.com/gopxl/beep/v2/mp3"
	"github.com/gopxl/beep/v2/vorbis"
	"github.com/gopxl/beep/v2/wav"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/opus"
)

// Sample rates that a file may have, in Hz.
const (
	minRate = 4000
	maxRate = 384_000

	minMP3 = 32_000 // the decoder gets a lower one, another format, wrong: at half the level, and wavering
)

// quality is the resampler's: "good performance, good quality".
const quality = 4

// ErrUnknown is the error of a file of an unknown kind.
var ErrUnknown = errors.New("sound file: neither wav, mp3, flac, Ogg Vorbis nor Ogg Opus")

// File is a sound file that is being read. It is not for use by several goroutines at once.
type File struct {
	src    io.Closer
	format string
	length time.Duration
	from   beep.Streamer // of 48 kHz
	stereo [opus.FrameSize][2]float64
	err    error // its end
}

// Open opens a file to be read from its beginning.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("sound file: %w", err)
	}
	return New(f)
}

// New reads a file that is open already. The source is the file's from now on, and closed with it, or at once when it
// cannot be played.
func New(src io.ReadSeekCloser) (*File, error) {
	f := &File{src: src}
	if err := f.open(src); err != nil {
		src.Close()
		return nil, err
	}
	return f, nil
}

// Length returns the length of the file, or 0 where that is known only at its end.
func (f *File) Length() time.Duration { return f.length }

// Format returns the kind of file: wav, mp3, flac, vorbis or opus.
func (f *File) Format() string { return f.format }

func (f *File) open(src io.ReadSeeker) (err error) {
	defer f.guard(&err)
	var head [64]byte
	n, err := io.ReadFull(src, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("sound file: %w", err)
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("sound file: %w", err)
	}
	f.format = kind(head[:n])
	// Without Seek, since with it decoders begin by reading the whole file; without Close, which is ours; and whole, as
	// one decoder takes a short read for the end.
	r := io.NopCloser(whole{src})
	var s beep.Streamer
	var known interface{ Len() int } // in samples; 0 or less: it is not
	var format beep.Format
	switch f.format {
	case "wav":
		if err := checkWAV(src); err != nil {
			return fmt.Errorf("sound file: wav: %w", err)
		}
		var d beep.StreamSeekCloser
		d, format, err = wav.Decode(r)
		s, known = d, d
	case "mp3":
		var d beep.StreamSeekCloser
		d, format, err = mp3.Decode(r)
		s, known = d, d
	case "flac":
		var d beep.StreamSeekCloser
		d, format, err = flac.Decode(r)
		s, known = d, d
	case "vorbis":
		var d beep.StreamSeekCloser
		d, format, err = vorbis.Decode(r)
		s, known = d, d
	case "opus":
		s, err = newOggOpus(r)
		format.SampleRate = opus.SampleRate
	default:
		return ErrUnknown
	}
	switch {
	case err != nil:
		return fmt.Errorf("sound file: %w", err)
	case f.format == "mp3" && format.SampleRate < minMP3:
		return fmt.Errorf("sound file: an mp3 of %d Hz cannot be played; convert it to one of %d Hz or more", format.SampleRate, minMP3)
	case format.SampleRate < minRate || format.SampleRate > maxRate:
		return fmt.Errorf("sound file: %s: a sample rate of %d Hz; %d to %d can be played", f.format, format.SampleRate, minRate, maxRate)
	}
	if known != nil {
		f.length = format.SampleRate.D(max(known.Len(), 0))
	}
	f.from = steady{s}
	if format.SampleRate != opus.SampleRate {
		f.from = beep.Resample(quality, format.SampleRate, opus.SampleRate, f.from)
	}
	return nil
}

// kind tells a file's kind by its first bytes.
func kind(head []byte) string {
	begins := func(s string, at int) bool { return len(head) >= at && bytes.HasPrefix(head[at:], []byte(s)) }
	const firstPacket = 28 // of an Ogg stream: behind the header of a page with one segment
	switch {
	case begins("RIFF", 0) && begins("WAVE", 8):
		return "wav"
	case begins("fLaC", 0):
		return "flac"
	case ogg.IsOpus(head):
		return "opus"
	case begins("OggS", 0) && begins("\x01vorbis", firstPacket):
		return "vorbis"
	case begins("ID3", 0), len(head) > 1 && head[0] == 0xff && head[1]&0xe0 == 0xe0:
		return "mp3"
	}
	return ""
}

// guard turns a decoder's panic into an error. Four of the five decoders are not ours, and some of them panic on files
// that are broken in the right way. Only this one file is lost, and it is never read again.
func (f *File) guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("sound file: the %s decoder failed, so the file is probably damaged: %v", f.format, p)
	}
}

// Read fills pcm with the next samples; less than all of it, with [io.EOF], is the end.
func (f *File) Read(pcm []int16) (n int, err error) {
	if f.err != nil {
		return 0, f.err
	}
	defer func() { f.err = err }()
	defer f.guard(&err)
	for n < len(pcm) {
		k, ok := f.from.Stream(f.stereo[:min(len(f.stereo), len(pcm)-n)])
		for _, s := range f.stereo[:k] {
			pcm[n] = sample((s[0] + s[1]) / 2)
			n++
		}
		if !ok || k == 0 {
			if err := f.from.Err(); err != nil {
				return n, fmt.Errorf("sound file: %w", err)
			}
			return n, io.EOF
		}
	}
	return n, nil
}

// Close closes the source.
func (f *File) Close() error {
	if f.err == nil {
		f.err = os.ErrClosed
	}
	return f.src.Close()
}

// sample rounds and clips.
func sample(v float64) int16 {
	v = math.Round(v * 32768)
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v != v:
		return 0
	}
	return int16(v)
}

// whole reads as much as it is asked for, unless the file ends.
type whole struct{ r io.Reader }

func (w whole) Read(p []byte) (int, error) {
	n, err := io.ReadFull(w.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// steady streams as much as it is asked for, unless the sound ends: a resampler takes less for the end.
type steady struct{ beep.Streamer }

func (s steady) Stream(out [][2]float64) (n int, ok bool) {
	for n < len(out) {
		k, ok := s.Streamer.Stream(out[n:])
		if n += k; !ok || k == 0 {
			break
		}
	}
	return n, n > 0
}

// checkWAV looks at the chunks before the sound, since the decoder trusts them when it allocates and divides. It leaves
// the source at its beginning.
func checkWAV(src io.ReadSeeker) error {
	end, err := src.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for at := int64(12); ; {
		if _, err := src.Seek(at, io.SeekStart); err != nil {
			return err
		}
		var h [24]byte
		if _, err := io.ReadFull(src, h[:8]); err != nil {
			return errors.New("there is no sound in it")
		}
		size := int64(binary.LittleEndian.Uint32(h[4:]))
		at += 8 + size + size%2
		name := string(h[:4])
		if name == "data" {
			_, err := src.Seek(0, io.SeekStart)
			return err
		}
		if at > end {
			return fmt.Errorf("the chunk %q is longer than the file", name)
		}
		if name == "fmt " {
			if _, err := io.ReadFull(src, h[8:]); err != nil || size < 16 {
				return errors.New("its format is cut off")
			}
			channels, align, bits := binary.LittleEndian.Uint16(h[10:]), binary.LittleEndian.Uint16(h[20:]), binary.LittleEndian.Uint16(h[22:])
			if channels == 0 || channels > 64 || bits%8 != 0 || align != channels*(bits/8) {
				return fmt.Errorf("%d channels of %d bits in %d bytes are not plain samples", channels, bits, align)
			}
		}
	}
}
