// Package transcode makes Opus packets of sound files of every kind that soundfile reads, whatever their rate and
// number of channels. It promises that playing them waits for neither disk nor codec, since both work ahead in a
// goroutine of their own, and that a file costs a bounded amount of memory however long it is.
package transcode

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/soundfile"
)

// ahead is how many frames of 20 ms are made before they are wanted.
const ahead = 50

// Sound is a file that is being played.
type Sound struct {
	length time.Duration
	ready  chan []byte
	err    error // set before ready is closed; nil: the end

	once sync.Once
	quit chan struct{}
}

// source can be read again from its beginning, so its readers may not close it.
type source struct{ io.ReadSeekCloser }

// Close does nothing.
func (source) Close() error { return nil }

// Open begins to read a file, with loop over and over. The source is the sound's from now on, and closed with it, or at
// once when it cannot be played.
func Open(src io.ReadSeekCloser, loop bool) (*Sound, error) {
	s := &Sound{ready: make(chan []byte, ahead), quit: make(chan struct{})}
	f, enc, err := begin(src)
	if err != nil {
		src.Close()
		return nil, err
	}
	s.length = f.Length()
	first, err := s.frame(f, enc)
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("there is no sound in the file")
		fallthrough
	case err != nil:
		src.Close()
		return nil, err
	}
	s.ready <- first
	go s.run(src, f, enc, loop)
	return s, nil
}

func begin(src io.ReadSeekCloser) (*soundfile.File, *opus.Encoder, error) {
	enc, err := opus.NewMusicEncoder()
	if err != nil {
		return nil, nil, err
	}
	f, err := soundfile.New(source{src})
	return f, enc, err
}

// frame makes the next packet; io.EOF: there is none.
func (s *Sound) frame(f *soundfile.File, enc *opus.Encoder) ([]byte, error) {
	var pcm [opus.FrameSize]int16 // the last frame is filled up with silence
	n, err := f.Read(pcm[:])
	if err != nil && (!errors.Is(err, io.EOF) || n == 0) {
		return nil, err
	}
	return enc.Encode(pcm[:], nil)
}

func (s *Sound) run(src io.ReadSeekCloser, f *soundfile.File, enc *opus.Encoder, loop bool) {
	defer close(s.ready)
	defer src.Close()
	some := true // this time through has had sound
	for {
		packet, err := s.frame(f, enc)
		if errors.Is(err, io.EOF) {
			if !loop {
				return
			}
			if !some { // or it would be read for ever
				s.err = errors.New("the file has no sound any more: put it back whole, and play it again")
				return
			}
			if _, err := src.Seek(0, io.SeekStart); err != nil {
				s.err = err
				return
			}
			if f, err = soundfile.New(source{src}); err != nil {
				s.err = err
				return
			}
			some = false
			continue
		}
		if err != nil {
			s.err = fmt.Errorf("transcode: %w", err)
			return
		}
		some = true
		select {
		case s.ready <- packet:
		case <-s.quit:
			return
		}
	}
}

// Length returns the length of the file, once through, or 0 where that is not known.
func (s *Sound) Length() time.Duration { return s.length }

// Next appends the next packet to dst. It appends nothing where the disk or the codec is late, and [io.EOF] is the end.
func (s *Sound) Next(dst []byte) ([]byte, error) {
	select {
	case packet, ok := <-s.ready:
		if !ok && s.err != nil {
			return dst, s.err
		}
		if !ok {
			return dst, io.EOF
		}
		return append(dst, packet...), nil
	default:
		return dst, nil
	}
}

// Close ends the sound. A read that is under way then closes the source; nobody waits for it.
func (s *Sound) Close() error {
	s.once.Do(func() { close(s.quit) })
	return nil
}
