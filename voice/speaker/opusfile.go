package speaker

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/wire"
)

// Convert is a command that turns nearly any sound file into one that [OpenOpus] takes.
const Convert = "ffmpeg -i in.mp3 -ac 1 -c:a libopus out.opus"

// ErrFile is the error of a file that cannot be sent as it is, without decoding it.
var ErrFile = errors.New("no mono Ogg Opus file with frames of 20 ms; convert it: " + Convert)

// OpusFile is an Ogg Opus file whose packets are sent as they are: mono, of frames of 20 ms, one or several in a
// packet. It ignores the loudness in the header, and plays the few milliseconds that the header wants skipped.
type OpusFile struct {
	src    io.ReadSeekCloser
	length time.Duration
	loop   bool
	some   bool // this time through has had sound
	in     *ogg.Opus
	next   []ogg.Frame // of the last packet
	room   []ogg.Frame
}

// OpenOpus reads the whole file once, so that faults are known before anybody hears it. With loop it plays over and
// over. The source is the file's from now on, and closed with it, or at once when it cannot be played.
func OpenOpus(src io.ReadSeekCloser, loop bool) (*OpusFile, error) {
	f := &OpusFile{src: src}
	err := f.check()
	if err == nil {
		err = f.rewind()
	}
	f.loop = loop // check wants the end
	if err != nil {
		src.Close()
		return nil, fmt.Errorf("speaker: %w", err)
	}
	return f, nil
}

func (f *OpusFile) rewind() error {
	_, err := f.src.Seek(0, io.SeekStart)
	f.in, f.next, f.some = ogg.NewOpus(f.src), nil, false
	return err
}

// check looks at every packet.
func (f *OpusFile) check() error {
	var head [64]byte
	n, err := io.ReadFull(f.src, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	if !ogg.IsOpus(head[:n]) {
		return ErrFile
	}
	if err := f.rewind(); err != nil {
		return err
	}
	var room [wire.MaxOpus]byte
	for {
		_, err := f.Next(room[:0])
		switch {
		case errors.Is(err, io.EOF) && f.length == 0:
			return errors.New("there is no sound in the file")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		f.length += FrameTime
	}
}

// Next implements [Frames].
func (f *OpusFile) Next(dst []byte) ([]byte, error) {
	for len(f.next) == 0 {
		p, err := f.in.Next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return dst, errors.New("the file is cut off")
		case errors.Is(err, io.EOF) && f.loop && !f.some: // or it would be read for ever
			return dst, errors.New("the file has no sound any more: put it back whole, and play it again")
		case errors.Is(err, io.EOF) && f.loop:
			if err := f.rewind(); err != nil {
				return dst, err
			}
			continue
		case err != nil:
			return dst, err
		}
		if f.room, err = ogg.Frames(f.room, p); err != nil {
			return dst, err
		}
		f.next, f.some = f.room, f.some || len(f.room) > 0
	}
	from := len(dst)
	dst = f.next[0].Append(dst)
	f.next = f.next[1:]
	if !wire.OpusOK(dst[from:]) {
		return dst[:from], ErrFile
	}
	return dst, nil
}

// Length returns the length of the file, once through.
func (f *OpusFile) Length() time.Duration { return f.length }

// Close closes the source.
func (f *OpusFile) Close() error { return f.src.Close() }
