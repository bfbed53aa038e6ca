//go:build !race

package frame

import (
	"bytes"
	"testing"
	"time"
)

// These are left out under the race detector because it makes sync.Pool forget on purpose.

// traffic returns a stream of at least n bytes of frames around size, as a server with the threshold makes it.
func traffic(n, size, threshold int, encrypted bool) []byte {
	var block, b bytes.Buffer
	w := NewWriter(&block)
	w.SetCompression(threshold)
	for i := range 16 {
		w.Append(int32(0x20+i*7), chunkish(size+i, uint64(i)))
	}
	w.Flush()
	w = NewWriter(&b)
	if encrypted {
		w.SetCipher(secret)
	}
	for b.Len() < n {
		w.Run(bytes.Clone(block.Bytes()))
	}
	return b.Bytes()
}

// Passing a run of frames allocates nothing, whatever is in them and whichever sides are encrypted, and is one write
// per read.
func TestPassingAllocatesNothing(t *testing.T) {
	for _, threshold := range []int{-1, 256} {
		for _, encrypted := range []bool{false, true} {
			for _, size := range []int{20, 100, 16 << 10, 100 << 10} {
				src, dst := bytes.NewReader(traffic(30*max(readSize, 2*size), size, threshold, encrypted)), new(counter)
				r, w := NewReader(src, Limits{}), NewWriter(dst)
				r.SetCompression(threshold)
				if encrypted {
					r.SetCipher(secret)
					w.SetCipher(secret)
				}
				pass := func() {
					if err := passOnce(r, w, threshold); err != nil {
						t.Fatal(err)
					}
				}
				for range 8 {
					pass()
				}
				*dst = counter{}
				if n := testing.AllocsPerRun(20, pass); n != 0 {
					t.Errorf("threshold %d, encrypted %t, %d bytes: %g allocations per read", threshold, encrypted, size, n)
				}
				if dst.writes > 21 || dst.bytes == 0 {
					t.Errorf("threshold %d, encrypted %t, %d bytes: %d writes for 21 reads", threshold, encrypted, size, dst.writes)
				}
				r.Release()
			}
		}
	}
}

// Neither does checking a client's frames, nor looking into packets, nor making packets.
func TestLookingAllocatesNothing(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for _, encrypted := range []bool{false, true} {
			r := NewReader(bytes.NewReader(traffic(2<<20, 3000, 256, encrypted)), Limits{Strict: strict, InflateRate: -1})
			r.SetCompression(256)
			w := NewWriter(new(counter))
			w.SetCompression(256)
			if encrypted {
				r.SetCipher(secret)
				w.SetCipher(secret)
			}
			look := func() {
				f, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				body, err := r.Body(f)
				if err != nil || len(body) < 2999 {
					t.Fatal(len(body), err)
				}
				if err := w.Packet(f.ID, body); err != nil {
					t.Fatal(err)
				}
			}
			for range 50 {
				look()
			}
			if n := testing.AllocsPerRun(200, look); n != 0 {
				t.Errorf("strict %t, encrypted %t: %g allocations per packet", strict, encrypted, n)
			}
			r.Release()
		}
	}
}

// Nor does the way of a socket, which takes and gives its buffer every time.
func TestSocketAllocatesNothing(t *testing.T) {
	a, b := pair(t)
	r, w := NewReader(b, Limits{}), NewWriter(a)
	w.SetWriteTimeout(time.Minute)
	frames, spoilt := wire(append([]byte{1}, make([]byte, 3000)...)), make([]byte, 3010)
	turn := func() {
		if err := w.Run(spoilt[:copy(spoilt, frames)]); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n != 0 {
		t.Errorf("%g allocations per frame", n)
	}
}
