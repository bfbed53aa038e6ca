package frame

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("sixteen byte key")

// chunkish makes n bytes of what dominates play traffic: bit-packed block
// indices under a rolling surface, with ores and light in them.
func chunkish(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := []byte{0x27, 0, 0, 0, byte(seed), 0, 0, 0, 9}
	for row := 0; len(b) < n; row++ {
		height := 128 + int(12*math.Sin(float64(row%256)/19)+5*math.Cos(float64(seed)+float64(row)/41))
		y := row * 384 / (n/8 + 1)
		var w uint64
		for x := range 16 {
			v := uint64(3)
			switch {
			case y > height+x%3:
				v = 0
			case y > height-4:
				v = 2
			case r.IntN(12) == 0:
				v = uint64(4 + r.IntN(8))
			}
			w |= v << (4 * x)
		}
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b[:n]
}

// noise is incompressible.
func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// deflated is a stream by another implementation than the one under test.
func deflated(b []byte, level int) []byte {
	var z bytes.Buffer
	w, _ := zlib.NewWriterLevel(&z, level)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

func vi(v int) []byte { b := make([]byte, 5); return b[:putVarint(b, uint32(v))] }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// wire frames a payload, which begins with the id: plain, or with a data length.
func wire(payload []byte) []byte { return join(vi(len(payload)), payload) }

func wireZ(declared int, z []byte) []byte { return wire(join(vi(declared), z)) }

type packet struct {
	id   int32
	body []byte
}

// readAll reads to the end and checks that the frames are contiguous.
func readAll(t testing.TB, r *Reader) (got []packet) {
	t.Helper()
	for {
		for {
			f, ok, err := r.Cut()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			body, err := r.Body(f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, packet{f.ID, bytes.Clone(body)})
		}
		if err := r.Fill(); err == io.EOF {
			return got
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func samples() []packet {
	return []packet{
		{0x00, nil},
		{0x27, chunkish(29000, 1)},
		{0x84, []byte("two-byte id")},
		{0x7f, noise(255, 1)},
		{0x80, noise(254, 2)},
		{0x1f, make([]byte, 8)},
		{0x27, noise(100_000, 4)},
		{0x5a, chunkish(300_000, 2)},
		{0x26, bytes.Repeat([]byte("a"), 1_000_000)},
		{0x01, []byte{0}},
	}
}

func equal(t *testing.T, got, want []packet) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].id != want[i].id || !bytes.Equal(got[i].body, want[i].body) {
			t.Fatalf("packet %d: id %#x, %d bytes; want id %#x, %d bytes", i, got[i].id, len(got[i].body), want[i].id, len(want[i].body))
		}
	}
}

func TestWriterToReader(t *testing.T) {
	for _, threshold := range []int{-1, 0, 1, 64, 256} {
		for _, encrypted := range []bool{false, true} {
			for _, strict := range []bool{false, true} {
				var buf bytes.Buffer
				w := NewWriter(&buf)
				w.SetCompression(threshold)
				if encrypted {
					w.SetCipher(secret)
				}
				want := samples()
				for i, p := range want {
					if i%3 == 1 {
						w.Append(p.id, p.body)
					} else if err := w.Packet(p.id, p.body); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				for name, src := range map[string]io.Reader{
					"whole": bytes.NewReader(buf.Bytes()), "halves": iotest.HalfReader(bytes.NewReader(buf.Bytes())),
					"with error": iotest.DataErrReader(bytes.NewReader(buf.Bytes())),
				} {
					r := NewReader(src, Limits{Strict: strict})
					r.SetCompression(threshold)
					if encrypted {
						r.SetCipher(secret)
					}
					t.Log(threshold, encrypted, strict, name)
					equal(t, readAll(t, r), want)
					r.Release()
				}
			}
		}
	}
}

// The bytes that another implementation makes of known packets.
func TestGolden(t *testing.T) {
	handshake := []byte("\x0f\x00\x2f\x09localhost\x63\xdd\x02")
	for _, c := range []struct {
		name      string
		threshold int
		id        int32
		body      []byte
		want      []byte
	}{
		{"plain", -1, 0, handshake[2:], handshake},
		{"marker", 64, 0, handshake[2:], join([]byte{0x10, 0}, handshake[1:])},
		{"two-byte length", -1, 0x17, make([]byte, 200), join([]byte{0xc9, 0x01, 0x17}, make([]byte, 200))},
		{"two-byte id", -1, 0x89, nil, []byte{2, 0x89, 1}},
	} {
		var buf bytes.Buffer
		w := NewWriter(&buf)
		w.SetCompression(c.threshold)
		w.Packet(c.id, c.body)
		if !bytes.Equal(buf.Bytes(), c.want) {
			t.Errorf("%s: % x", c.name, buf.Bytes())
		}
	}
}

func first(b []byte, lim Limits, threshold int) (Frame, []byte, error) {
	r := NewReader(bytes.NewReader(b), lim)
	r.SetCompression(threshold)
	f, err := r.Next()
	if err != nil {
		return f, nil, err
	}
	body, err := r.Body(f)
	return f, body, err
}

func TestHostile(t *testing.T) {
	client, backend := Limits{Strict: true}, Limits{}
	text := func(n int) []byte { return join([]byte{5}, bytes.Repeat([]byte("abc"), n/3+1))[:n] }
	for _, c := range []struct {
		name      string
		lim       Limits
		threshold int
		wire      []byte
		want      error
	}{
		{"length of 4 bytes", backend, -1, []byte{0x80, 0x80, 0x80, 1, 0}, BadLength},
		{"overlong length of 3 bytes", backend, -1, []byte{0x82, 0x80, 0, 1, 2}, nil},
		{"frame at the cap", Limits{MaxFrame: 10}, -1, wire(text(10)), nil},
		{"frame over the cap", Limits{MaxFrame: 10}, -1, wire(text(11)), FrameTooLarge},
		{"pre-login at the cap", PreLogin(false), -1, wire(text(8 << 10)), nil},
		{"pre-login over the cap", PreLogin(false), -1, wire(text(8<<10 + 1)), FrameTooLarge},
		{"pre-login behind a proxy", PreLogin(true), -1, wire(text(32 << 10)), nil},
		{"largest frame", backend, -1, wire(text(MaxFrame)), nil},
		{"64 empty frames", client, -1, join(make([]byte, 64), wire(text(5))), nil},
		{"65 empty frames", client, -1, join(make([]byte, 65), wire(text(5))), EmptyFrames},
		{"empty frames of a backend", backend, -1, join(make([]byte, 1000), wire(text(5))), nil},
		{"id cut short", backend, -1, wire([]byte{0x80}), BadID},
		{"id of 6 bytes", backend, -1, wire([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 1}), BadID},
		{"id of 5 bytes", backend, -1, wire([]byte{0x85, 0x80, 0x80, 0x80, 0}), nil},
		{"no data length", backend, 10, wire([]byte{0x80}), BadDataLength},
		{"negative data length", backend, 10, wire([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}), BadDataLength},
		{"nothing after the marker", backend, 10, wire([]byte{0}), BadID},
		{"nothing after the data length", backend, 10, wire([]byte{20}), BadDeflate},
		{"below threshold, marker", client, 10, wire(join([]byte{0}, text(9))), nil},
		{"at threshold, marker", client, 10, wire(join([]byte{0}, text(10))), NotCompressed},
		{"at threshold, marker, backend", backend, 10, wire(join([]byte{0}, text(10))), nil},
		{"at threshold", client, 10, wireZ(10, deflated(text(10), 6)), nil},
		{"below threshold", client, 10, wireZ(9, deflated(text(9), 6)), BelowThreshold},
		{"below threshold, backend", backend, 10, wireZ(9, deflated(text(9), 6)), nil},
		{"declared less", client, 10, wireZ(99, deflated(text(100), 6)), SizeMismatch},
		{"declared more", client, 10, wireZ(101, deflated(text(100), 6)), SizeMismatch},
		{"declared less, backend", backend, 10, wireZ(99, deflated(text(100), 6)), SizeMismatch},
		{"declared more, backend", backend, 10, wireZ(101, deflated(text(100), 6)), SizeMismatch},
		{"cut short", client, 10, wireZ(100, deflated(text(100), 6)[:12]), BadDeflate},
		{"bad checksum", client, 10, wireZ(100, append(deflated(text(100), 6)[:len(deflated(text(100), 6))-1], 0x55)), BadDeflate},
		{"not zlib", client, 10, wireZ(100, text(100)), BadDeflate},
		{"preset dictionary", client, 10, wireZ(100, []byte{0x78, 0xbb, 0, 0, 0, 1, 3, 0}), BadDeflate},
		{"client's 2 MiB", client, 10, wireZ(2<<20, deflated(noisy(2<<20), 6)), nil},
		{"client's 2 MiB and one", client, 10, wireZ(2<<20+1, deflated(noisy(2<<20+1), 6)), InflatedTooLarge},
		{"backend's 8 MiB", backend, 10, wireZ(8<<20, deflated(text(8<<20), 6)), nil},
		{"backend's 8 MiB and one", backend, 10, wireZ(8<<20+1, deflated(text(8<<20+1), 6)), InflatedTooLarge},
		{"option above", Limits{MaxInflated: 9 << 20}, 10, wireZ(8<<20+1, deflated(text(8<<20+1), 6)), nil},
		{"ratio at the bound", client, 10, wireZ(64*1024, make([]byte, 1)), BadDeflate},
		{"ratio 1024", client, 10, wireZ(100*1024, join(deflated(make([]byte, 100*1024), 9), make([]byte, 100))[:100]), BadDeflate},
		{"ratio above 1024", client, 10, wireZ(100*1024+1, join(deflated(make([]byte, 100*1024), 9), make([]byte, 100))[:100]), Bomb},
		{"empty packet", client, 0, wireZ(0, nil), NotCompressed},
	} {
		_, _, err := first(c.wire, c.lim, c.threshold)
		if !errors.Is(err, c.want) || (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// noisy compresses, but not as well as a bomb.
func noisy(n int) []byte {
	b := noise(n, 9)
	for i := range b {
		b[i] &= 3
	}
	return b
}

func TestCutShort(t *testing.T) {
	for _, b := range [][]byte{{5, 1, 2}, {0x80}, {0x80, 0x80}} {
		if _, _, err := first(b, Limits{}, -1); err != io.ErrUnexpectedEOF {
			t.Errorf("% x: %v", b, err)
		}
	}
	if _, _, err := first(nil, Limits{}, -1); err != io.EOF {
		t.Error(err)
	}
	if _, _, err := first([]byte{0, 0}, Limits{}, -1); err != io.EOF {
		t.Error(err)
	}
}

var _ = []any{net.Pipe, os.ErrDeadlineExceeded, strings.Repeat, synctest.Test, time.Now}
