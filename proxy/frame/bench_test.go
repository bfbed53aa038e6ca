package frame

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	stdzlib "compress/zlib"

	kzlib "github.com/klauspost/compress/zlib"
)

// BenchmarkCFB8 compares with the way through crypto/aes in the same run.
func BenchmarkCFB8(b *testing.B) {
	buf := noise(64<<10, 1)
	for _, name := range []string{"generic", "usual"} {
		c := ciphers(secret)[name]
		for _, way := range []struct {
			name string
			do   func([]byte)
		}{{"encrypt", c.encrypt}, {"decrypt", c.decrypt}} {
			b.Run(way.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(buf)))
				for b.Loop() {
					way.do(buf)
				}
			})
		}
	}
}

// BenchmarkID compares ways to learn a compressed frame's id; the ratio is against the peek in the same run. "first
// bytes" asks a general inflate reader for no more than the id.
func BenchmarkID(b *testing.B) {
	type resetter interface {
		io.Reader
		Reset(io.Reader, []byte) error
	}
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10} {
		z := deflated(chunkish(size, 1), 6)
		var in bytes.Reader
		in.Reset(z)
		s, _ := stdzlib.NewReader(&in)
		in.Reset(z)
		k, _ := kzlib.NewReader(&in)
		plain := make([]byte, size)
		read := func(r io.Reader, n int) func() {
			return func() {
				in.Reset(z)
				r.(resetter).Reset(&in, nil)
				io.ReadFull(r, plain[:n])
			}
		}
		var peek float64
		for _, way := range []struct {
			name string
			do   func()
		}{
			{"peek", func() {
				if id, ok := peekID(z); !ok || id != 0x27 {
					b.Fatal(id, ok)
				}
			}},
			{"klauspost first bytes", read(k, 2)},
			{"klauspost all", read(k, size)},
			{"std first bytes", read(s, 2)},
			{"std all", read(s, size)},
		} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, way.name), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					way.do()
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				if way.name == "peek" {
					peek = ns
				}
				b.ReportMetric(ns/peek, "x-peek")
			})
		}
	}
}

// BenchmarkPass measures the whole pass path without the kernel: fill, cut with the id of each frame, run. Against
// "copy" it tells what finding frames costs.
func BenchmarkPass(b *testing.B) {
	for _, size := range []int{100, 16 << 10, 64 << 10} {
		for _, way := range []struct {
			name      string
			threshold int
			copies    bool
			encrypted bool
		}{
			{"copy", 256, true, false},
			{"plain", -1, false, false},
			{"compressed", 256, false, false},
			{"compressed to cipher", 256, false, true},
		} {
			b.Run(fmt.Sprintf("%dB/%s", size, way.name), func(b *testing.B) {
				var frames bytes.Buffer
				w := NewWriter(&frames)
				w.SetCompression(way.threshold)
				const n = 64
				for i := range n {
					w.Append(int32(0x20+i), chunkish(size, uint64(i)))
				}
				w.Flush()
				per := float64(frames.Len()) / n
				src, dst := &loop{b: frames.Bytes()}, new(counter)
				r, out := NewReader(src, Limits{}), NewWriter(dst)
				r.SetCompression(way.threshold)
				if way.encrypted {
					out.SetCipher(secret)
				}
				buf := make([]byte, readSize)
				b.ReportAllocs()
				for b.Loop() {
					if way.copies {
						k, _ := src.Read(buf)
						dst.Write(buf[:k])
					} else if err := passOnce(r, out, way.threshold); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(int64(dst.bytes / b.N))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(dst.bytes)/per), "ns/frame")
			})
		}
	}
}

// BenchmarkRecompress measures what passing avoids: inflate and deflate.
func BenchmarkRecompress(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10} {
		for _, level := range []int{1, DefaultLevel, 6} {
			b.Run(fmt.Sprintf("%dKiB/level %d", size>>10, level), func(b *testing.B) {
				plain := chunkish(size, 1)
				z := deflated(plain, 6)
				out := make([]byte, size)
				dst := new(counter)
				w := NewWriter(dst)
				w.SetCompression(256)
				w.SetLevel(level)
				b.SetBytes(int64(size))
				for b.Loop() {
					inflate(out, z)
					w.Packet(0x27, out[1:])
				}
				b.ReportMetric(float64(dst.bytes)/float64(b.N)/float64(len(z)), "size/level6")
			})
		}
	}
}
