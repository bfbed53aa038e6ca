//go:build cgo && nolibopusfile

package transcode

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/wire"
)

const files = "../soundfile/testdata/" // a 440 Hz tone each

// memory is a file that counts how often it is closed.
type memory struct {
	*bytes.Reader
	closed atomic.Int32
}

func (m *memory) Close() error { m.closed.Add(1); return nil }

func load(t testing.TB, name string) *memory {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(files, name))
	if err != nil {
		t.Fatal(err)
	}
	return &memory{Reader: bytes.NewReader(b)}
}

// play takes packets until the end, or as many as most, and returns what a listener hears of them.
func play(t testing.TB, s *Sound, most int) (pcm []int16, err error) {
	t.Helper()
	dec, derr := opus.NewDecoder()
	if derr != nil {
		t.Fatal(derr)
	}
	room := make([]byte, 0, wire.MaxOpus)
	for patience := time.Now().Add(20 * time.Second); len(pcm) < most*opus.FrameSize; {
		p, err := s.Next(room)
		if err != nil {
			return pcm, err
		}
		if len(p) == 0 { // the codec is late, since we are faster than any listener
			if time.Now().After(patience) {
				t.Fatal("no packet in time")
			}
			time.Sleep(time.Millisecond)
			continue
		}
		if !wire.OpusOK(p) {
			t.Fatalf("%x is not to be sent", p[:1])
		}
		out, err := dec.Decode(p)
		if err != nil {
			t.Fatal(err)
		}
		pcm = append(pcm, out...)
	}
	return pcm, nil
}

// level returns the amplitude of 440 Hz in the middle of the sound.
func level(pcm []int16) float64 {
	pcm = pcm[len(pcm)/4 : len(pcm)*3/4]
	var re, im float64
	for k, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * 440 * float64(k) / opus.SampleRate)
		re, im = re+float64(v)*c, im+float64(v)*s
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm)) / 32768
}

// TestEveryKindOfFile: whatever its format, rate and channels, a file is heard at its loudness and length.
func TestEveryKindOfFile(t *testing.T) {
	for _, f := range []struct {
		name    string
		seconds float64
		known   bool
	}{
		{"mono8_8k.wav", 0.3, true}, {"stereo16_44k.wav", 0.1, true}, {"mono24_48k.wav", 0.1, true},
		{"stereo_44k.mp3", 0.5, false}, {"mono_32k.mp3", 0.5, false}, {"stereo_44k.flac", 0.5, true}, {"mono24_96k.flac", 0.25, true},
		{"stereo_44k.ogg", 0.5, false}, {"mono_48k.ogg", 0.5, false}, {"stereo_20ms.opus", 0.5, false}, {"mono_2ms.opus", 0.5, false}, {"chained.opus", 1, false},
	} {
		t.Run(f.name, func(t *testing.T) {
			src := load(t, f.name)
			s, err := Open(src, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Length().Seconds(); f.known && math.Abs(got-f.seconds) > 0.02 || !f.known && got != 0 && math.Abs(got-f.seconds) > 0.1 {
				t.Errorf("%.3f s long, want %v", got, f.seconds)
			}
			pcm, err := play(t, s, math.MaxInt/opus.FrameSize)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			// Mp3 is padded, and the last frame filled up.
			if got := float64(len(pcm)) / opus.SampleRate; got < f.seconds-0.001 || got > f.seconds+0.11 {
				t.Errorf("%.3f s heard, want %v", got, f.seconds)
			}
			if got := level(pcm); math.Abs(got-0.25) > 0.03 {
				t.Errorf("amplitude %.3f, want 0.25", got)
			}
			s.Close()
			testkit.Until(t, "the source to be closed", func() bool { return src.closed.Load() == 1 })
		})
	}
}

func TestLoop(t *testing.T) {
	src := load(t, "mono24_48k.wav")
	s, err := Open(src, true)
	if err != nil {
		t.Fatal(err)
	}
	pcm, err := play(t, s, 100) // twenty times through
	if err != nil || math.Abs(level(pcm)-0.25) > 0.05 {
		t.Error(err, level(pcm))
	}
	s.Close()
	s.Close()
	testkit.Until(t, "the source to be closed", func() bool { return src.closed.Load() == 1 })
}

// TestNotPlayed: what is no sound is an error before anybody hears it, and the source is closed.
func TestNotPlayed(t *testing.T) {
	empty := load(t, "mono24_48k.wav")
	b := make([]byte, 44)
	empty.Read(b)
	copy(b[40:44], "\x00\x00\x00\x00")
	for name, src := range map[string]*memory{
		"a text": {Reader: bytes.NewReader([]byte(strings.Repeat("hello ", 50)))}, "nothing": {Reader: bytes.NewReader(nil)}, "no samples": {Reader: bytes.NewReader(b)},
	} {
		if s, err := Open(src, true); err == nil {
			s.Close()
			t.Error(name, "is played")
		}
		if src.closed.Load() != 1 {
			t.Error(name, "stays open")
		}
	}
}

// failing is a file whose disk breaks.
type failing struct {
	*memory
	left int
}

func (f *failing) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errors.New("input/output error")
	}
	n, err := f.memory.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// TestBrokenDisk: what was read before is heard, then the error comes out.
func TestBrokenDisk(t *testing.T) {
	src := &failing{load(t, "mono8_8k.wav"), 0}
	src.left = int(src.Size()) * 2 // its chunks are looked at first, and one time through is read
	s, err := Open(src, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if pcm, err := play(t, s, 10_000); err == nil || errors.Is(err, io.EOF) || len(pcm) == 0 {
		t.Errorf("%d samples, then %v", len(pcm), err)
	}
	testkit.Until(t, "the source to be closed", func() bool { return src.closed.Load() == 1 })
}
