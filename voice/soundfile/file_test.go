//go:build cgo && nolibopusfile

package soundfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/voice/ogg"
	"github.com/earshot-mc/earshot/voice/opus"
)

// The files are of a 440 Hz tone: mono of a quarter of full scale, or stereo of a half on the left and nothing on the
// right, which is the same when it is mixed.
var files = []struct {
	name, format string
	seconds      float64
}{
	{"mono8_8k.wav", "wav", 0.3}, {"stereo16_44k.wav", "wav", 0.1}, {"mono24_48k.wav", "wav", 0.1},
	{"stereo_44k.mp3", "mp3", 0.5}, {"mono_32k.mp3", "mp3", 0.5},
	{"stereo_44k.flac", "flac", 0.5}, {"mono24_96k.flac", "flac", 0.25},
	{"stereo_44k.ogg", "vorbis", 0.5}, {"mono_48k.ogg", "vorbis", 0.5},
	{"stereo_20ms.opus", "opus", 0.5}, {"mono_60ms.opus", "opus", 0.5}, {"mono_2ms.opus", "opus", 0.5}, {"chained.opus", "opus", 1},
}

// level returns the amplitude of 440 Hz.
func level(pcm []int16) float64 {
	var re, im float64
	for k, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * 440 * float64(k) / opus.SampleRate)
		re += float64(v) * c
		im += float64(v) * s
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm)) / 32768
}

// rest reads a file to its end, in pieces of the given size.
func rest(f *File, size int) (all []int16, err error) {
	pcm := make([]int16, size)
	for {
		n, err := f.Read(pcm)
		all = append(all, pcm[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil || n < size {
			return all, errors.Join(err, fmt.Errorf("%d of %d samples without an end", n, size))
		}
	}
}

func TestFiles(t *testing.T) {
	for _, c := range files {
		t.Run(c.name, func(t *testing.T) {
			f, err := Open(filepath.Join("testdata", c.name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			all, err := rest(f, opus.FrameSize)
			if err != nil {
				t.Fatal(err)
			}
			got := float64(len(all)) / opus.SampleRate
			slack := 0.003
			if c.format == "mp3" {
				slack = 0.12 // encoder and decoder pad, and mp3 says nowhere how much
			}
			if f.Format() != c.format || math.Abs(got-c.seconds) > slack {
				t.Errorf("%s of %.4f s, want %s of %v", f.Format(), got, c.format, c.seconds)
			}
			// From every part of the file, beside its edges.
			at := opus.FrameSize
			if c.format == "mp3" {
				at = 6 * opus.FrameSize
			}
			for ; at+2400 < len(all)-4800; at += 2400 {
				if l := level(all[at : at+2400]); math.Abs(l-0.25) > 0.02 && !(c.name == "chained.opus" && at > 19200 && at < 28800) {
					t.Errorf("level %.3f at %d", l, at)
				}
			}
			if n, err := f.Read(make([]int16, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %d, %v", n, err)
			}
		})
	}
}

// It does not matter in which pieces a file is read.
func TestPieces(t *testing.T) {
	for _, c := range files {
		var want []int16
		for _, size := range []int{960, 1, 777, 100_000} {
			f, err := Open(filepath.Join("testdata", c.name))
			if err != nil {
				t.Fatal(err)
			}
			all, err := rest(f, size)
			f.Close()
			if err != nil {
				t.Fatal(c.name, err)
			}
			if want == nil {
				want = all
			}
			if len(all) != len(want) {
				t.Fatalf("%s in pieces of %d: %d samples, want %d", c.name, size, len(all), len(want))
			}
			for i := range all {
				if all[i] != want[i] {
					t.Fatalf("%s in pieces of %d: sample %d is %d, want %d", c.name, size, i, all[i], want[i])
				}
			}
		}
	}
}

// memory is a file in memory that knows whether it was closed.
type memory struct {
	bytes.Reader
	closed int
}

func (m *memory) Close() error { m.closed++; return nil }

func inMemory(b []byte) *memory { m := &memory{}; m.Reset(b); return m }

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestClosing(t *testing.T) {
	m := inMemory(load(t, "mono24_48k.wav"))
	f, err := New(m)
	if err != nil || m.closed != 0 {
		t.Fatal(err, m.closed)
	}
	f.Close()
	if _, err := f.Read(make([]int16, 1)); !errors.Is(err, os.ErrClosed) || m.closed != 1 {
		t.Error(err, m.closed)
	}
	m = inMemory([]byte("GIF89a"))
	if _, err := New(m); !errors.Is(err, ErrUnknown) || m.closed != 1 {
		t.Error(err, m.closed)
	}
	if _, err := Open("testdata/nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := New(inMemory(nil)); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// edited returns a file with bytes changed; Ogg pages get their checksums right again.
func edited(t *testing.T, name string, at int, b ...byte) []byte {
	all := load(t, name)
	copy(all[at:], b)
	for rest := all; len(rest) > 0; {
		n := ogg.Seal(rest)
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	return all
}

func TestBroken(t *testing.T) {
	wav, ogg := load(t, "stereo16_44k.wav"), load(t, "stereo_20ms.opus")
	flip := bytes.Clone(ogg)
	flip[len(flip)-1] ^= 1
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"wav of huge chunks":       {edited(t, "stereo16_44k.wav", 16, 0xff, 0xff, 0xff, 0x7f), "longer than the file"},
		"wav of negative chunks":   {edited(t, "stereo16_44k.wav", 12, 'x', 'x', 'x', 'x', 0xff, 0xff, 0xff, 0xff), "longer than the file"},
		"wav of no bytes a sample": {edited(t, "stereo16_44k.wav", 32, 0, 0), "not plain samples"},
		"wav of no channels":       {edited(t, "stereo16_44k.wav", 22, 0, 0), "not plain samples"},
		"wav of floats":            {edited(t, "stereo16_44k.wav", 20, 3, 0), "unsupported"},
		"wav of 0 Hz":              {edited(t, "stereo16_44k.wav", 24, 0, 0, 0, 0), "sample rate of 0 Hz"},
		"wav without sound":        {wav[:36], "no sound"},
		"ogg with a bit flipped":   {flip, "damaged"},
		"ogg that is cut off":      {ogg[:len(ogg)-10], "unexpected EOF"},
		"ogg of a header":          {ogg[:40], "unexpected EOF"},
		"opus of three channels":   {edited(t, "stereo_20ms.opus", 28+9, 3), "3 channels"},
		"opus of mapping 1":        {edited(t, "stereo_20ms.opus", 28+18, 1), "mapping 1"},
		"opus of version 16":       {edited(t, "stereo_20ms.opus", 28+8, 16), "damaged"},
		"flac of a header":         {load(t, "stereo_44k.flac")[:100], "flac"},
		"mp3 of 22050 Hz":          {load(t, "mono_22k.mp3"), "32000"},
		"mp3 of a header":          {load(t, "stereo_44k.mp3")[:20], "mp3"},
		"vorbis of a header":       {load(t, "stereo_44k.ogg")[:100], "vorbis"},
	} {
		m := inMemory(c.file)
		f, err := New(m)
		if err == nil {
			_, err = rest(f, 960)
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || m.closed != 1 {
			t.Errorf("%s: %v, want one with %q; closed %d times", what, err, c.want, m.closed)
		}
	}
}

// A stream's gain, the samples to skip and its end are the header's and the last page's to say.
func TestOggOpusHeader(t *testing.T) {
	length := func(b []byte) (n int, l float64) {
		f, err := New(inMemory(b))
		if err != nil {
			t.Fatal(err)
		}
		all, err := rest(f, 960)
		if err != nil {
			t.Fatal(err)
		}
		return len(all), level(all[4800:9600])
	}
	if n, _ := length(load(t, "stereo_20ms.opus")); n != 24000 {
		t.Errorf("%d samples, want 24000", n)
	}
	if n, _ := length(edited(t, "stereo_20ms.opus", 28+10, 0, 0)); n != 24312 {
		t.Errorf("%d samples with nothing skipped, want 24312", n)
	}
	if _, l := length(edited(t, "stereo_20ms.opus", 28+16, 0xfa, 0xf9)); math.Abs(l-0.125) > 0.01 { // -6.02 dB
		t.Errorf("level %.3f, want half", l)
	}
	if n, _ := length(edited(t, "mono_60ms.opus", 28+10, 0, 0)); n != 24312 {
		t.Errorf("%d samples of 60 ms packets, want 24312", n)
	}
}

func TestFilesEncodeAsFrames(t *testing.T) {
	f, err := Open("testdata/stereo_44k.mp3")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	enc, err := opus.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, opus.FrameSize)
	for {
		if _, err := f.Read(pcm); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if p, err := enc.Encode(pcm, nil); err != nil || len(p) == 0 {
			t.Fatal(err)
		}
	}
}

// FuzzOggOpus: any bytes are sound or an error, without the guard against panics.
func FuzzOggOpus(f *testing.F) {
	for _, name := range []string{"stereo_20ms.opus", "mono_60ms.opus", "mono_2ms.opus", "chained.opus"} {
		f.Add(load(f, name)[:2000])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := 0; ; { // so that the fuzzer gets past the checksums
			i := bytes.Index(b[at:], []byte("OggS"))
			if i < 0 {
				break
			}
			n := ogg.Seal(b[at+i:])
			if n == 0 {
				break
			}
			at += i + n
		}
		o, err := newOggOpus(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out [960][2]float64
		for total := 0; ; {
			n, ok := o.Stream(out[:])
			if total += n; !ok {
				break
			}
			if total > len(b)*opus.MaxLong {
				t.Fatal("more sound than bytes")
			}
		}
	})
}

// FuzzFile: any bytes are sound or an error, and the sound ends.
func FuzzFile(f *testing.F) {
	for _, c := range files {
		b := load(f, c.name)
		f.Add(b[:min(len(b), 3000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := inMemory(b)
		file, err := New(m)
		if err != nil {
			if m.closed != 1 {
				t.Fatal("not closed")
			}
			return
		}
		pcm := make([]int16, opus.FrameSize)
		for range 50 {
			if n, err := file.Read(pcm); err != nil {
				break
			} else if n != len(pcm) {
				t.Fatal("neither more nor an end")
			}
		}
		file.Close()
	})
}
