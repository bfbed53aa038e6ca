package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit"
)

type vector struct {
	name, format, outcome, want string
	bytes                       []byte
}

func vectors(t testing.TB, name string) (out []vector) {
	t.Helper()
	for _, r := range testkit.Rows(t, name, 5) {
		c := r.Columns
		out = append(out, vector{name: c[0], format: c[1], outcome: c[2], want: c[3], bytes: r.Bytes(t, 4)})
	}
	return out
}

var (
	c2sFormats = map[string]C2SFormat{"v1": C2SV1, "v2": C2SV2, "board": C2SBoard}
	s2cFormats = map[string]S2CFormat{"v1": S2CV1, "v2": S2CV2, "spatial": S2CSpatial}
	kinds      = map[Kind]string{KindPlayer: "player", KindChannel: "channel", KindBoard: "board"}
	sources    = map[Source]string{Mic: "mic", Board: "board"}
)

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var d Discard
	if !errors.As(err, &d) {
		return "not a discard: " + err.Error()
	}
	return "discard " + d.String()
}

func TestC2SVectors(t *testing.T) {
	for _, v := range vectors(t, "c2s.txt") {
		t.Run(v.name, func(t *testing.T) {
			format, ok := c2sFormats[v.format]
			if !ok {
				t.Fatalf("unknown format %q", v.format)
			}
			f, err := ParseC2S(format, v.bytes)
			if got := outcome(err); got != v.outcome {
				t.Fatalf("outcome %q, want %q", got, v.outcome)
			}
			if err != nil {
				if f.Opus != nil || f.Stream != 0 {
					t.Fatalf("a discarded frame still has values: %+v", f)
				}
				return
			}
			got := fmt.Sprintf("%s %d %d %d", sources[f.Source], f.Stream, f.Seq, len(f.Opus))
			if got != v.want {
				t.Errorf("decoded %q, want %q", got, v.want)
			}
			if again := AppendC2S(nil, format, &f); !bytes.Equal(again, v.bytes) {
				t.Errorf("encodes to %x, was %x", again, v.bytes)
			}
		})
	}
}

func TestS2CVectors(t *testing.T) {
	for _, v := range vectors(t, "s2c.txt") {
		t.Run(v.name, func(t *testing.T) {
			format, ok := s2cFormats[v.format]
			if !ok {
				t.Fatalf("unknown format %q", v.format)
			}
			f, err := ParseS2C(format, v.bytes)
			if got := outcome(err); got != v.outcome {
				t.Fatalf("outcome %q, want %q", got, v.outcome)
			}
			if err != nil {
				if f.Opus != nil || f.Source != uuid.Nil {
					t.Fatalf("a discarded frame still has values: %+v", f)
				}
				return
			}
			got := fmt.Sprintf("%s %d %d %d %v %v %d %d %d", kinds[f.Kind], f.Source[15], f.Origin[15],
				f.Gain, f.DX, f.DZ, f.Stream, f.Seq, len(f.Opus))
			if got != v.want {
				t.Errorf("decoded %q, want %q", got, v.want)
			}
			if again := AppendS2C(nil, format, &f); !bytes.Equal(again, v.bytes) {
				t.Errorf("encodes to %x, was %x", again, v.bytes)
			}
		})
	}
}

// The sizes that the protocol states as numbers.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"C2S v2", MaxC2SV2, 1291}, {"C2S board", MaxC2SBoard, 1292}, {"C2S", MaxC2S, 1292},
		{"S2C v1", MaxS2CV1, 1300}, {"S2C v2", MaxS2CV2, 1316}, {"S2C kind 0", MaxS2CPlayer, 1317},
		{"S2C kind 1 header", HeadS2CChannel, 58}, {"S2C kind 1", MaxS2CChannel, 1333}, {"S2C", MaxS2C, 1333},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestOnlySpatialSocketsCarryOtherKinds(t *testing.T) {
	for _, kind := range []Kind{KindChannel, KindBoard} {
		for _, format := range []S2CFormat{S2CV1, S2CV2} {
			f := &S2C{Kind: kind, Gain: 255, Stream: 1, Opus: []byte{0xf8}}
			if b := AppendS2C([]byte("x"), format, f); string(b) != "x" {
				t.Errorf("kind %d in format %d wrote %x", kind, format, b)
			}
		}
	}
}

func TestGain(t *testing.T) {
	for _, c := range []struct {
		linear float64
		want   uint8
	}{
		{0, 0}, {1, 255}, {0.5, 128}, {0.499, 127}, {0.4999 / 255, 0}, {0.5001 / 255, 1}, {1.0 / 255, 1},
		{254.4 / 255, 254}, {254.6 / 255, 255}, {-1, 0}, {7, 255}, {math.Inf(1), 255}, {math.Inf(-1), 0}, {math.NaN(), 0},
	} {
		if got := Gain(c.linear); got != c.want {
			t.Errorf("Gain(%v) = %d, want %d", c.linear, got, c.want)
		}
	}
}

func TestOpusOK(t *testing.T) {
	good := map[byte]bool{0x08: true, 0x28: true, 0x48: true, 0x68: true, 0x78: true, 0x98: true, 0xb8: true, 0xd8: true, 0xf8: true}
	for toc := range 256 {
		if got := OpusOK([]byte{byte(toc), 1, 2}); got != good[byte(toc)] {
			t.Errorf("first byte %02x: %v", toc, got)
		}
	}
	if OpusOK(nil) || OpusOK(bytes.Repeat([]byte{0xf8}, MaxOpus+1)) || !OpusOK(bytes.Repeat([]byte{0xf8}, MaxOpus)) {
		t.Error("the length bounds of 1 to 1275 bytes do not hold")
	}
}

func TestDiscardsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Discards() {
		if s := d.String(); s == "" || s == "unknown" || seen[s] {
			t.Errorf("reason %d is called %q", d, s)
		} else {
			seen[s] = true
		}
	}
	if len(seen) != int(numDiscards)-1 {
		t.Errorf("%d reasons listed of %d", len(seen), numDiscards-1)
	}
}

func TestNoAllocations(t *testing.T) {
	in := AppendC2S(nil, C2SBoard, &C2S{Stream: 1, Seq: 2, Opus: make([]byte, 100)})
	out := make([]byte, 0, MaxS2C)
	f := S2C{Kind: KindChannel, Gain: 1, Stream: 1}
	n := testing.AllocsPerRun(100, func() {
		c, err := ParseC2S(C2SBoard, in)
		if err != nil {
			t.Fatal(err)
		}
		f.Opus = c.Opus
		out = AppendS2C(out[:0], S2CSpatial, &f)
		if _, err := ParseS2C(S2CSpatial, out); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseC2S(C2SV2, in[:3]); err == nil {
			t.Fatal("a short frame passed")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func FuzzParseC2S(f *testing.F) {
	for _, v := range vectors(f, "c2s.txt") {
		f.Add(uint8(c2sFormats[v.format]), v.bytes)
	}
	f.Fuzz(func(t *testing.T, format uint8, b []byte) {
		format %= 3
		c, err := ParseC2S(C2SFormat(format), b)
		if err != nil {
			return
		}
		if len(b) > MaxC2S || len(c.Opus) == 0 {
			t.Fatalf("accepted %d bytes with %d of opus", len(b), len(c.Opus))
		}
		if again := AppendC2S(nil, C2SFormat(format), &c); !bytes.Equal(again, b) {
			t.Fatalf("encodes to %x, was %x", again, b)
		}
	})
}

func FuzzParseS2C(f *testing.F) {
	for _, v := range vectors(f, "s2c.txt") {
		f.Add(uint8(s2cFormats[v.format]), v.bytes)
	}
	f.Fuzz(func(t *testing.T, format uint8, b []byte) {
		format %= 3
		s, err := ParseS2C(S2CFormat(format), b)
		if err != nil {
			return
		}
		if len(b) > MaxS2C || len(s.Opus) == 0 {
			t.Fatalf("accepted %d bytes with %d of opus", len(b), len(s.Opus))
		}
		if again := AppendS2C(nil, S2CFormat(format), &s); !bytes.Equal(again, b) {
			t.Fatalf("encodes to %x, was %x", again, b)
		}
	})
}

// Each layout has vectors at each of its bounds and right behind it.
func TestVectorsStandAtTheBounds(t *testing.T) {
	for _, l := range []struct {
		file, format string
		kinds        []byte // first bytes; nil: there is no kind
		head         int
		counts       int // where stream and sequence are; -1: nowhere
		position     int // where dx and dz are; -1: nowhere
	}{
		{"c2s.txt", "v1", nil, 0, -1, -1},
		{"c2s.txt", "v2", nil, HeadC2SV2, HeadC2SV2 - 16, -1},
		{"c2s.txt", "board", []byte{0, 1}, HeadC2SBoard, HeadC2SBoard - 16, -1},
		{"s2c.txt", "v1", nil, HeadS2CV1, -1, HeadS2CV1 - 8},
		{"s2c.txt", "v2", nil, HeadS2CV2, HeadS2CV2 - 16, HeadS2CV2 - 24},
		{"s2c.txt", "spatial", []byte{0}, HeadS2CPlayer, HeadS2CPlayer - 16, HeadS2CPlayer - 24},
		{"s2c.txt", "spatial", []byte{1}, HeadS2CChannel, HeadS2CChannel - 16, HeadS2CChannel - 24},
		{"s2c.txt", "spatial", []byte{2}, HeadS2CPlayer, HeadS2CPlayer - 16, HeadS2CPlayer - 24},
	} {
		seen := map[string]bool{}
		for _, v := range vectors(t, l.file) {
			if v.format != l.format || l.kinds != nil && (len(v.bytes) == 0 || bytes.IndexByte(l.kinds, v.bytes[0]) < 0) {
				continue
			}
			n := len(v.bytes)
			seen[fmt.Sprintf("%s, opus %d", v.outcome, n-l.head)] = true
			if n <= l.head || n > l.head+MaxOpus {
				continue
			}
			if l.counts >= 0 {
				seen[fmt.Sprintf("%s, stream %d", v.outcome, int64(binary.BigEndian.Uint64(v.bytes[l.counts:])))] = true
				seen[fmt.Sprintf("%s, sequence %d", v.outcome, int64(binary.BigEndian.Uint64(v.bytes[l.counts+8:])))] = true
			}
			for i := 0; l.position >= 0 && i < 2; i++ {
				seen[fmt.Sprintf("%s, %s %08x", v.outcome, []string{"dx", "dz"}[i], binary.BigEndian.Uint32(v.bytes[l.position+4*i:]))] = true
			}
		}
		want := []string{"discard length, opus 0", "ok, opus 1", "ok, opus 1275", "discard length, opus 1276"}
		if l.head > 0 {
			want = append(want, "discard length, opus -1")
		}
		if l.counts >= 0 {
			want = append(want, "discard stream, stream 0", "discard stream, stream -1", "discard stream, stream -9223372036854775808",
				"ok, stream 1", "ok, stream 9223372036854775807", "ok, sequence 0", "discard sequence, sequence -1",
				"discard sequence, sequence -9223372036854775808", "ok, sequence 9223372036854775806", "discard sequence, sequence 9223372036854775807")
		}
		if l.position >= 0 {
			for _, axis := range []string{"dx", "dz"} {
				for _, bits := range []string{"7f800000", "ff800000", "7fc00000", "7f800001"} {
					want = append(want, "discard position, "+axis+" "+bits)
				}
			}
			want = append(want, "ok, dx 7f7fffff", "ok, dz ff7fffff")
		}
		for _, w := range want {
			if !seen[w] {
				t.Errorf("%s has no vector of %s, kinds %v: %s", l.file, l.format, l.kinds, w)
			}
		}
	}
}
