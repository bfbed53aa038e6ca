package ogg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
)

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const files = "../soundfile/testdata/"

// packets reads all there is.
func packets(file []byte) (all [][]byte, o *Opus, err error) {
	o = NewOpus(bytes.NewReader(file))
	for {
		p, err := o.Next()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return all, o, nil
		} else if err != nil {
			return all, o, err
		}
		all = append(all, bytes.Clone(p))
	}
}

func TestPackets(t *testing.T) {
	for name, want := range map[string]struct {
		packets, streams, channels int
		ticks                      byte // of the first packet: its configuration and whether it is stereo
	}{
		"testdata/mono_20ms.opus": {100, 1, 1, 0}, files + "stereo_20ms.opus": {26, 1, 2, 4}, files + "mono_60ms.opus": {9, 1, 1, 0},
		files + "chained.opus": {35, 2, 2, 0},
	} {
		all, o, err := packets(load(t, name))
		if err != nil || len(all) != want.packets || o.Stream != want.streams || o.Head.Channels != want.channels || all[0][0]&4 != want.ticks {
			t.Errorf("%s: %d packets, %d streams, %+v, %v", name, len(all), o.Stream, o.Head, err)
		}
		if !IsOpus(load(t, name)[:64]) || IsOpus(load(t, files+"mono_48k.ogg")[:64]) || IsOpus(nil) {
			t.Errorf("%s is not known for what it is, or something else is taken for it", name)
		}
	}
}

// Another stream beside the one that is played, and a picture in the titles.
func TestOggBesideAndLong(t *testing.T) {
	page := func(flags byte, serial uint32, segments []byte, body []byte) []byte {
		h := append([]byte("OggS\x00"), flags)
		h = binary.LittleEndian.AppendUint64(h, 0)
		h = binary.LittleEndian.AppendUint32(h, serial)
		h = append(h, make([]byte, 8)...)
		h = append(append(h, byte(len(segments))), segments...)
		h = append(h, body...)
		if Seal(h) != len(h) {
			t.Fatal("not one page")
		}
		return h
	}
	all := load(t, files+"mono_60ms.opus")
	first := pageHead + 1 + int(all[pageHead])
	second := first + pageHead + int(all[first+26])
	for _, n := range all[first+pageHead : second] {
		second += int(n)
	}
	serial := binary.LittleEndian.Uint32(all[14:])
	tags := append([]byte("OpusTags"), make([]byte, 255*255+100)...)
	full := bytes.Repeat([]byte{255}, 255)
	var b []byte
	b = append(b, all[:first]...)
	b = append(b, page(flagFirst, serial+1, []byte{5}, []byte("video"))...)
	b = append(b, page(0, serial, full, tags[:255*255])...)
	b = append(b, page(0, serial+1, []byte{5}, []byte("video"))...)
	b = append(b, page(flagGoesOn, serial, []byte{byte(len(tags) - 255*255)}, tags[255*255:])...)
	b = append(b, all[second:]...)
	if got, _, err := packets(b); err != nil || len(got) != 9 {
		t.Errorf("%d packets, %v", len(got), err)
	}
	// A packet without an end is not kept for ever.
	b = append([]byte(nil), all[:first]...)
	b = append(b, page(0, serial, full, make([]byte, 255*255))...)
	for range maxPacket/(255*255) + 1 {
		b = append(b, page(flagGoesOn, serial, full, make([]byte, 255*255))...)
	}
	if _, _, err := packets(b); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func TestFrames(t *testing.T) {
	a, b := bytes.Repeat([]byte{1}, 10), bytes.Repeat([]byte{2}, 10)
	long := bytes.Repeat([]byte{3}, 300)
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	one := func(b []byte) []byte { return join([]byte{0x78}, b) }
	for name, c := range map[string]struct {
		packet []byte
		want   [][]byte // nil: malformed
	}{
		"one":                    {join([]byte{0x78}, a), [][]byte{one(a)}},
		"one, empty":             {[]byte{0x78}, [][]byte{one(nil)}},
		"two alike":              {join([]byte{0x79}, a, b), [][]byte{one(a), one(b)}},
		"two alike, odd":         {join([]byte{0x79}, a, b, a[:1]), nil},
		"two":                    {join([]byte{0x7a, 10}, a, long), [][]byte{one(a), one(long)}},
		"two, the first long":    {join([]byte{0x7a, 252, 12}, long, b), [][]byte{one(long), one(b)}},
		"two, cut off":           {join([]byte{0x7a, 10}, a[:9]), nil},
		"two, size cut off":      {[]byte{0x7a, 252}, nil},
		"two, no size":           {[]byte{0x7a}, nil},
		"three alike":            {join([]byte{0x7b, 3}, a, b, a), [][]byte{one(a), one(b), one(a)}},
		"three alike, uneven":    {join([]byte{0x7b, 3}, a, b), nil},
		"three":                  {join([]byte{0x7b, 0x83, 10, 1}, a, b[:1], long), [][]byte{one(a), one(b[:1]), one(long)}},
		"three, cut off":         {join([]byte{0x7b, 0x83, 10, 10}, a), nil},
		"one, padded":            {join([]byte{0x7b, 0x41, 4}, a, make([]byte, 4)), [][]byte{one(a)}},
		"one, padded far":        {join([]byte{0x7b, 0x41, 255, 1}, a, make([]byte, 255)), [][]byte{one(a)}},
		"one, padded too far":    {join([]byte{0x7b, 0x41, 255, 1}, a), nil},
		"padding without end":    {[]byte{0x7b, 0x41, 255}, nil},
		"no frames":              {[]byte{0x7b, 0}, nil},
		"too many":               {[]byte{0x7b, 49}, nil},
		"no count":               {[]byte{0x7b}, nil},
		"nothing":                {nil, nil},
		"longer than a frame is": {join([]byte{0x78}, make([]byte, 1276)), nil},
	} {
		frames, err := Frames(nil, c.packet)
		if (err != nil) != (c.want == nil) || err != nil && !errors.Is(err, ErrPacket) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got [][]byte
		for _, f := range frames {
			got = append(got, f.Append(nil))
		}
		if err == nil && !slices.EqualFunc(got, c.want, bytes.Equal) {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}

// FuzzFrames: a packet is malformed, or its frames are all of it but sizes and padding.
func FuzzFrames(f *testing.F) {
	for _, name := range []string{"testdata/mono_20ms.opus", files + "mono_60ms.opus"} {
		all, _, err := packets(load(f, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(all[0])
	}
	f.Add([]byte{0x7b, 0x83, 1, 1, 1, 2, 3})
	f.Add([]byte{0x7b, 0x41, 255, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := Frames(nil, b)
		if err != nil {
			return
		}
		total := 0
		for _, f := range frames {
			p := f.Append(nil)
			if again, err := Frames(nil, p); err != nil || len(again) != 1 || !bytes.Equal(again[0].Append(nil), p) {
				t.Fatalf("%x of %x is no packet of one frame: %v", p, b, err)
			}
			total += len(p) - 1
		}
		if len(frames) == 0 || total >= len(b) {
			t.Fatalf("%d frames of %d bytes from %d", len(frames), total, len(b))
		}
	})
}

// FuzzOpus: any bytes are packets or an error.
func FuzzOpus(f *testing.F) {
	for _, name := range []string{"testdata/mono_20ms.opus", files + "stereo_20ms.opus", files + "mono_60ms.opus", files + "chained.opus"} {
		f.Add(load(f, name)[:2000])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := 0; ; { // so that the fuzzer gets past the checksums
			i := bytes.Index(b[at:], []byte("OggS"))
			if i < 0 {
				break
			}
			n := Seal(b[at+i:])
			if n == 0 {
				break
			}
			at += i + n
		}
		all, _, _ := packets(b)
		total := 0
		for _, p := range all {
			total += len(p)
		}
		if total > len(b) {
			t.Fatal("more in the packets than in the file")
		}
	})
}
