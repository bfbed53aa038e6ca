package frame

import (
	"bytes"
	"compress/flate"
	stdzlib "compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"hash/adler32"
	"io"
	"testing"

	kflate "github.com/klauspost/compress/flate"
	kzlib "github.com/klauspost/compress/zlib"
)

// plains returns beginnings of packets with ids of one to four bytes.
func plains() [][]byte {
	var all [][]byte
	for _, id := range []int{0, 1, 0x27, 0x7f, 0x80, 0x89, 0x3fff, 0x4000, 1<<21 - 1, 1 << 21} {
		for _, rest := range [][]byte{nil, {0}, bytes.Repeat(vi(id), 40), make([]byte, 3000), noise(700, 1), chunkish(4000, 2)} {
			all = append(all, join(vi(id), rest))
		}
	}
	return all
}

// streams returns b as several compressors and settings make it.
func streams(t testing.TB, b []byte) map[string][]byte {
	all := map[string][]byte{}
	for name, level := range map[string]int{"std stored": 0, "std fast": 1, "std default": 6, "std best": 9, "std huffman": flate.HuffmanOnly} {
		all[name] = deflated(b, level)
	}
	for name, level := range map[string]int{"k fast": 1, "k 3": 3, "k 6": 6, "k best": 9, "k huffman": kzlib.HuffmanOnly} {
		var z bytes.Buffer
		w, err := kzlib.NewWriterLevel(&z, level)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b)
		w.Close()
		all[name] = z.Bytes()
	}
	wrap := func(deflate []byte) []byte {
		return binary.BigEndian.AppendUint32(join([]byte{0x78, 0x9c}, deflate), adler32.Checksum(b))
	}
	var z bytes.Buffer
	if err := kflate.StatelessDeflate(&z, b, true, nil); err != nil {
		t.Fatal(err)
	}
	all["k stateless"] = wrap(bytes.Clone(z.Bytes()))
	for _, flushes := range []int{1, 3} {
		for _, cut := range []int{0, 1} {
			z.Reset()
			w, _ := flate.NewWriter(&z, 6)
			cut := min(cut, len(b))
			w.Write(b[:cut])
			for range flushes {
				w.Flush()
			}
			w.Write(b[cut:])
			w.Close()
			all["flushed "+string(rune('0'+flushes))+" after "+string(rune('0'+cut))] = wrap(bytes.Clone(z.Bytes()))
		}
	}
	return all
}

func TestPeek(t *testing.T) {
	for _, b := range plains() {
		want, n := varint(b, 5)
		for name, z := range streams(t, b) {
			got, ok := peekID(z)
			// An id of four bytes, or four blocks before the end of the id, is too much.
			possible := n <= 3 && name != "flushed 3 after 1"
			if ok && got != want || possible && !ok {
				t.Errorf("%s, id %#x and %d bytes: %#x, %t", name, want, len(b)-n, got, ok)
			}
		}
	}
}

func TestPeekVectors(t *testing.T) {
	for _, c := range peekVectors {
		z, err := hex.DecodeString(c.z)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := peekID(z); !ok || id != c.id {
			t.Errorf("%s: %#x, %t", c.z, id, ok)
		}
		// Every cut before the id is complete is noticed, and none panics.
		for n := range z {
			if id, ok := peekID(z[:n]); ok && id != c.id {
				t.Errorf("%s cut at %d: %#x", c.z, n, id)
			}
		}
	}
}

func stdInflate(z []byte, limit int) ([]byte, error) {
	r, err := stdzlib.NewReader(bytes.NewReader(z))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, int64(limit)))
}

// FuzzPeek compares with a real inflate: of the data itself taken as a stream, and of streams made from it.
func FuzzPeek(f *testing.F) {
	for _, b := range plains() {
		f.Add(b[:min(len(b), 300)])
		for _, z := range streams(f, b[:min(len(b), 2000)]) {
			f.Add(z)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, ok := peekID(data); ok {
			if b, err := stdInflate(data, 1<<20); err == nil {
				if want, n := varint(b, 3); n == 0 || got != want {
					t.Fatalf("%#x, but it inflates to % x", got, b[:min(len(b), 5)])
				}
			}
		}
		want, n := varint(data, 3)
		if n == 0 || len(data) > 1<<12 {
			return
		}
		for name, z := range map[string][]byte{"std 1": deflated(data, 1), "std 9": deflated(data, 9), "std 0": deflated(data, 0), "huffman": deflated(data, flate.HuffmanOnly)} {
			if got, ok := peekID(z); !ok || got != want {
				t.Fatalf("%s: %#x, %t, want %#x", name, got, ok, want)
			}
		}
	})
}

// FuzzInflate: exactly the streams that another inflate takes to the declared size are accepted, and give the same
// bytes.
func FuzzInflate(f *testing.F) {
	for _, b := range plains() {
		b = b[:min(len(b), 1000)]
		for _, z := range streams(f, b) {
			f.Add(z, len(b))
		}
		f.Add(deflated(b, 6), len(b)+1)
		f.Add(deflated(b, 6), len(b)-1)
	}
	f.Fuzz(func(t *testing.T, z []byte, declared int) {
		if declared < 0 || declared > 1<<20 {
			return
		}
		got := make([]byte, declared)
		err := inflate(got, z)
		want, wantErr := stdInflate(z, declared+1)
		if good := wantErr == nil && len(want) == declared; good != (err == nil) {
			t.Fatalf("%v; another inflate: %d bytes, %v", err, len(want), wantErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatal("bytes differ")
		}
	})
}

// FuzzCut: any chunking of the input gives the same frames and the same end.
func FuzzCut(f *testing.F) {
	for _, threshold := range []int{-1, 0, 64, 256} {
		var b bytes.Buffer
		w := NewWriter(&b)
		w.SetCompression(threshold)
		for i, p := range samples() {
			w.Packet(p.id, p.body[:min(len(p.body), 80*i)])
		}
		f.Add(b.Bytes(), uint16(7), threshold, true)
		f.Add(b.Bytes(), uint16(1000), threshold, false)
		f.Add(b.Bytes()[:b.Len()/2], uint16(1), threshold, true)
	}
	f.Add([]byte{0, 0, 0, 1, 5, 0, 0x80, 0x80, 0x80, 1}, uint16(1), -1, true)
	f.Add(make([]byte, 70), uint16(3), -1, true)
	f.Fuzz(func(t *testing.T, data []byte, most uint16, threshold int, strict bool) {
		if len(data) > 1<<14 {
			return
		}
		type frame struct {
			id       int32
			size     int
			wire     string
			body     string
			bodyFail error
		}
		run := func(most int, encrypted bool) (frames []frame, end error) {
			data := data
			if encrypted {
				data = bytes.Clone(data)
				c, _ := newCFB8(secret)
				c.encrypt(data)
			}
			r := NewReader(&chunks{data, most}, Limits{Strict: strict, InflateRate: -1, MaxInflated: 1 << 16})
			defer r.Release()
			r.SetCompression(threshold)
			if encrypted {
				r.SetCipher(secret)
			}
			for {
				g, err := r.Next()
				if err != nil {
					return frames, err
				}
				if g.End > r.pos || g.Start < 0 || g.End-g.Start > MaxFrame+3 {
					t.Fatalf("%+v", g)
				}
				body, err := r.Body(g)
				frames = append(frames, frame{g.ID, g.Size(), string(r.Raw(g.Start, g.End)), string(body), err})
			}
		}
		want, wantEnd := run(1<<30, false)
		for _, most := range []int{1, 1 + int(most)} {
			got, end := run(most, most%2 == 0)
			if end != wantEnd || len(got) != len(want) {
				t.Fatalf("in chunks of %d: %d frames, then %v; whole: %d, then %v", most, len(got), end, len(want), wantEnd)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("frame %d differs in chunks of %d", i, most)
				}
			}
		}
	})
}

// chunks gives b in reads of at most most bytes.
type chunks struct {
	b    []byte
	most int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.most)], c.b)
	c.b = c.b[n:]
	return n, nil
}
