package frame

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("sixteen byte key")

// chunkish makes n bytes of what dominates play traffic: bit-packed block indices under a rolling surface, with ores
// and light in them.
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

// noise returns incompressible.
func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// deflated returns a stream by another implementation than the one under test.
func deflated(b []byte, level int) []byte {
	var z bytes.Buffer
	w, ok := deflaterPools[level+2].Get().(*zlib.Writer)
	if ok {
		w.Reset(&z)
	} else {
		w, _ = zlib.NewWriterLevel(&z, level)
	}
	w.Write(b)
	w.Close()
	deflaterPools[level+2].Put(w)
	return z.Bytes()
}

var deflaterPools [12]sync.Pool // by level from -2, because the fuzz targets make many

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
		{0x5a, chunkish(100_000, 2)},
		{0x26, bytes.Repeat([]byte("a"), 300_000)},
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
		{"client's 2 MiB", client, 10, wireZ(2<<20, deflated(noisy(2<<20), 1)), nil},
		{"client's 2 MiB and one", client, 10, wireZ(2<<20+1, []byte("not looked at")), InflatedTooLarge},
		{"backend's 8 MiB", backend, 10, wireZ(8<<20, deflated(text(8<<20), 1)), nil},
		{"backend's 8 MiB and one", backend, 10, wireZ(8<<20+1, []byte("not looked at")), InflatedTooLarge},
		{"option above", Limits{MaxInflated: 9 << 20}, 10, wireZ(8<<20+1, deflated(text(8<<20+1), 1)), nil},
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

// It is empty frames in a row that are counted.
func TestEmptyFramesBetweenOthers(t *testing.T) {
	r := NewReader(bytes.NewReader(bytes.Repeat(join(make([]byte, 40), wire([]byte{5, 1})), 10)), Limits{Strict: true})
	if n := len(readAll(t, r)); n != 10 {
		t.Errorf("%d packets", n)
	}
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

// A client may have 35 MiB inflated at once, and then 5 MiB per second; here with a sixteenth of that.
func TestInflateBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 16
		frame := wireZ(size, deflated(bytes.Repeat([]byte("budget of the inflated"), size)[:size], 9))
		src := &loop{b: frame}
		if rate := NewReader(src, Limits{Strict: true}).lim.InflateRate; rate != 16*5*size {
			t.Errorf("%d bytes per second", rate)
		}
		r := NewReader(src, Limits{Strict: true, InflateRate: 5 * size})
		r.SetCompression(256)
		defer r.Release()
		take := func() (n int) {
			for {
				switch _, err := r.Next(); err {
				case nil:
					n++
				case OverBudget:
					return n
				default:
					t.Fatal(err)
				}
			}
		}
		if n := take(); n != 35 {
			t.Errorf("%d parts at once", n)
		}
		time.Sleep(time.Second)
		if n := take(); n != 5 {
			t.Errorf("%d parts after a second", n)
		}
		time.Sleep(time.Hour)
		if n := take(); n != 35 {
			t.Errorf("%d parts after an hour", n)
		}
		r.SetLimits(Limits{Strict: true, InflateRate: -1})
		for range 100 {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		// The budget is for those who are not trusted.
		r = NewReader(&loop{b: frame}, Limits{})
		r.SetCompression(256)
		for range 100 {
			f, err := r.Next()
			if err == nil {
				_, err = r.Body(f)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// loop repeats b for ever, at most `most` bytes a read when set.
type loop struct {
	b    []byte
	at   int
	most int
}

func (l *loop) Read(p []byte) (n int, _ error) {
	if l.most > 0 && len(p) > l.most {
		p = p[:l.most]
	}
	for n < len(p) {
		k := copy(p[n:], l.b[l.at:])
		n += k
		l.at = (l.at + k) % len(l.b)
	}
	return n, nil
}

// Compression and the cipher begin in the middle of what is already buffered.
func TestTurnedOnBehindBufferedBytes(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	w.Append(1, []byte("encryption response"))
	if err := w.SetCipher(secret); err != nil {
		t.Fatal(err)
	}
	w.Append(3, []byte("set compression"))
	w.SetCompression(256)
	w.Append(2, chunkish(2000, 1))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&buf, Limits{})
	defer r.Release()
	expect := func(id int32) {
		t.Helper()
		if f, err := r.Next(); err != nil || f.ID != id {
			t.Fatalf("id %d, %v; want %d", f.ID, err, id)
		}
	}
	expect(1)
	if r.Buffered() == 0 {
		t.Fatal("the rest is not buffered, so the test tests nothing")
	}
	if err := r.SetCipher(secret); err != nil {
		t.Fatal(err)
	}
	expect(3)
	r.SetCompression(256)
	expect(2)
}

func TestSecretLength(t *testing.T) {
	for _, n := range []int{0, 15, 17, 32} {
		if NewReader(nil, Limits{}).SetCipher(make([]byte, n)) == nil || NewWriter(nil).SetCipher(make([]byte, n)) == nil {
			t.Errorf("%d bytes accepted", n)
		}
	}
}

// A frame's length prefix alone must not make the proxy take memory.
func TestAnnouncedFrameTakesNoMemory(t *testing.T) {
	r := NewReader(bytes.NewReader(join(vi(MaxFrame), make([]byte, 100))), Limits{Strict: true})
	for {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	if n := len(r.buf.b); n > classes[0] {
		t.Errorf("holds %d bytes", n)
	}
	r.Release()
	if r.buf != nil || r.inf != nil {
		t.Error("released and still holds memory")
	}
	if err := r.Fill(); err == nil || err == io.EOF {
		t.Errorf("read after release: %v", err)
	}
}

// The buffer follows the traffic up and down again.
func TestBufferFollowsTraffic(t *testing.T) {
	big, small := wire(append([]byte{1}, noise(1_500_000, 1)...)), wire([]byte{1, 2, 3})
	pr, pw := io.Pipe()
	go func() {
		pw.Write(big)
		pw.Write(small)
		pw.Write(small)
		pw.Close()
	}()
	r := NewReader(pr, Limits{})
	defer r.Release()
	for i, want := range []int{1_500_001, 3, 3} {
		f, err := r.Next()
		if err != nil || f.Size() != want {
			t.Fatal(i, f.Size(), err)
		}
	}
	if n := len(r.buf.b); n > classes[0] {
		t.Errorf("still holds %d bytes", n)
	}
}

func TestPasses(t *testing.T) {
	for _, c := range []struct {
		inflated, size, src, dst int
		want                     bool
	}{
		{0, 100, -1, -1, true}, {0, 100, -1, 256, false}, {0, 100, 256, -1, false}, {900, 50, 256, -1, false},
		{0, 255, 256, 256, true}, {0, 256, 256, 256, false}, {256, 50, 256, 256, true}, {255, 50, 256, 256, false},
		{0, 100, 256, 100, false}, {0, 99, 256, 100, true}, {500, 50, 256, 512, false}, {512, 50, 256, 512, true},
		{MaxInflated, 50, 256, 256, true}, {MaxInflated + 1, 50, 256, 256, false}, {0, 1, 0, 0, false}, {1, 9, 0, 0, true},
	} {
		f := Frame{Inflated: c.inflated, End: c.size}
		if got := Passes(f, c.src, c.dst); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// What passes from one side is accepted by the strict rules of the other, and what a server with the same threshold
// makes always passes.
func TestPassesProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	thresholds := []int{-1, 0, 1, 50, 64, 256, 1000}
	for range 1000 {
		src, dst := thresholds[r.IntN(len(thresholds))], thresholds[r.IntN(len(thresholds))]
		payload := chunkish(1+r.IntN(1100), r.Uint64())
		var made bytes.Buffer
		switch {
		case src < 0:
			made.Write(wire(payload))
		case r.IntN(4) == 0: // a backend that does as it likes
			made.Write(wireZ(len(payload), deflated(payload, 1)))
		case r.IntN(4) == 0:
			made.Write(wireZ(0, payload))
		default:
			w := NewWriter(&made)
			w.SetCompression(src)
			w.Packet(0x27, payload[1:])
		}
		honest := src < 0 || (made.Bytes()[len(vi(made.Len()-2))] != 0) == (len(payload) >= src)
		rd := NewReader(bytes.NewReader(made.Bytes()), Limits{})
		rd.SetCompression(src)
		f, err := rd.Next()
		if err != nil {
			t.Fatal(err)
		}
		passes := Passes(f, src, dst)
		if src == dst && honest && !passes {
			t.Fatalf("threshold %d: frame of %d does not pass", src, len(payload))
		}
		if !passes {
			continue
		}
		other, body, err := first(rd.Raw(f.Start, f.End), Limits{Strict: true}, dst)
		if err != nil || other.ID != 0x27 || !bytes.Equal(body, payload[1:]) {
			t.Fatalf("%d → %d, %d bytes: %v", src, dst, len(payload), err)
		}
	}
}

// passOnce returns the relay's inner loop: one Fill, Cuts, one Run.
func passOnce(r *Reader, w *Writer, threshold int) error {
	if err := r.Fill(); err != nil {
		return err
	}
	start, end := -1, 0
	for {
		f, ok, err := r.Cut()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if !Passes(f, threshold, threshold) {
			return errors.New("does not pass")
		}
		if start < 0 {
			start = f.Start
		}
		end = f.End
	}
	if start < 0 {
		return nil
	}
	return w.Run(r.Raw(start, end))
}

type counter struct{ writes, bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	c.bytes += len(p)
	return len(p), nil
}

func TestRunAfterAppendIsOneWrite(t *testing.T) {
	var dst counter
	w := NewWriter(&dst)
	w.Append(1, []byte("abc"))
	w.Append(2, make([]byte, 10_000))
	if dst.writes != 0 {
		t.Error("append wrote")
	}
	w.Run(wire([]byte{3, 4, 5}))
	if dst.writes != 1 || dst.bytes != 5+10_003+4 {
		t.Error(dst)
	}
	if w.out != nil {
		t.Error("holds a buffer while idle")
	}
	w.Flush()
	if dst.writes != 1 {
		t.Error("an empty flush wrote")
	}
}

type broken struct{ writes int }

func (b *broken) Write(p []byte) (int, error) { b.writes++; return 0, io.ErrClosedPipe }

func TestFailedWriterStaysFailed(t *testing.T) {
	dst := new(broken)
	w := NewWriter(dst)
	if err := w.Packet(1, nil); err != io.ErrClosedPipe {
		t.Error(err)
	}
	w.Append(1, nil)
	for _, f := range []func() error{w.Flush, w.Err, func() error { return w.Run([]byte{1, 1}) }, func() error { return w.Packet(1, nil) }, func() error { return w.SetCipher(secret) }} {
		if err := f(); err != io.ErrClosedPipe {
			t.Error(err)
		}
	}
	if dst.writes != 1 || w.out != nil {
		t.Errorf("%d writes", dst.writes)
	}
}

func TestPacketTooLarge(t *testing.T) {
	for _, c := range []struct {
		threshold int
		body      []byte
		want      error
	}{
		{-1, make([]byte, MaxFrame-1), nil},
		{-1, make([]byte, MaxFrame), FrameTooLarge},
		{256, make([]byte, MaxInflated-1), nil},
		{256, make([]byte, MaxInflated), FrameTooLarge},
		{256, noise(MaxFrame+1000, 1), FrameTooLarge},
	} {
		var dst counter
		w := NewWriter(&dst)
		w.SetCompression(c.threshold)
		if err := w.Packet(1, c.body); err != c.want {
			t.Errorf("threshold %d, %d bytes: %v, want %v", c.threshold, len(c.body), err, c.want)
		}
		if c.want != nil && dst.writes > 0 {
			t.Error("wrote part of it")
		}
	}
}

// stalling is a socket that takes some bytes and then waits for its deadline.
type stalling struct {
	takes    []int // bytes per write until the deadline
	deadline time.Time
	set      int
	got      []byte
}

func (s *stalling) SetWriteDeadline(t time.Time) error { s.deadline = t; s.set++; return nil }

func (s *stalling) Write(p []byte) (int, error) {
	if len(s.takes) == 0 {
		s.got = append(s.got, p...)
		return len(p), nil
	}
	n := s.takes[0]
	s.takes = s.takes[1:]
	s.got = append(s.got, p[:n]...)
	time.Sleep(time.Until(s.deadline))
	return n, os.ErrDeadlineExceeded
}

func TestWriteTimeout(t *testing.T) {
	const d = 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		slow := &stalling{takes: []int{3, 1, 2}}
		w := NewWriter(slow)
		w.SetWriteTimeout(d)
		if err := w.Packet(1, []byte("slow but moving")); err != nil || string(slow.got) != "\x10\x01slow but moving" {
			t.Errorf("%v %q", err, slow.got)
		}
		dead := &stalling{takes: []int{3, 0}}
		w = NewWriter(dead)
		w.SetWriteTimeout(d)
		from := time.Now()
		if err := w.Packet(1, []byte("stuck")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(from); took < d || took > d*5/2 {
			t.Errorf("took %v", took)
		}
		// A busy socket sets its deadline about once per quarter of the timeout.
		busy := new(stalling)
		w = NewWriter(busy)
		w.SetWriteTimeout(d)
		for range 1200 { // a minute
			if err := w.Packet(1, nil); err != nil {
				t.Fatal(err)
			}
			if left := time.Until(busy.deadline); left < d {
				t.Fatalf("%v left", left)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if busy.set < 7 || busy.set > 10 {
			t.Errorf("set %d times", busy.set)
		}
		w.SetWriteTimeout(0)
		if !busy.deadline.IsZero() {
			t.Error("the deadline stays")
		}
	})
}

// Several goroutines' packets never mix on the wire.
func TestConcurrentWriters(t *testing.T) {
	var buf bytes.Buffer // guarded by the writer
	w := NewWriter(&buf)
	w.SetCompression(64)
	w.SetCipher(secret)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				switch body := bytes.Repeat([]byte{byte(g)}, i); i % 3 {
				case 0:
					w.Packet(int32(g), body)
				case 1:
					w.Append(int32(g), body)
				case 2:
					w.Run(wireZ(0, []byte{byte(g), byte(g)}))
				}
			}
		})
	}
	wg.Wait()
	w.Flush()
	r := NewReader(&buf, Limits{Strict: true})
	r.SetCompression(64)
	r.SetCipher(secret)
	got := readAll(t, r)
	for _, p := range got {
		for _, c := range p.body {
			if int32(c) != p.id {
				t.Fatal("mixed")
			}
		}
	}
	if len(got) != 800 {
		t.Errorf("%d packets", len(got))
	}
}

// What fits is framed, and what does not is refused, around every bound.
func TestFits(t *testing.T) {
	for _, threshold := range []int{-1, 0, 256, MaxFrame - 1, MaxFrame, MaxFrame + 1, MaxInflated} {
		for _, edge := range []int{1, 256, MaxFrame, MaxInflatedStrict, MaxInflated} {
			for size := max(1, edge-2); size <= edge+2; size++ {
				w := NewWriter(io.Discard)
				w.SetCompression(threshold)
				w.SetLevel(1)
				err := w.Packet(1, make([]byte, size-1))
				if Fits(size, threshold) != (err == nil) {
					t.Errorf("%d bytes at %d: fits %t, %v", size, threshold, Fits(size, threshold), err)
				}
			}
		}
	}
}
