package frame

import "sync"

// buffer is pooled memory of one size class; b always has the full size.
type buffer struct {
	b     []byte
	class int8 // index into classes, -1: not pooled
}

// classes are the sizes of pooled buffers: a movement packet's, a tick's, a read's, and then steps up to the largest
// frame and the largest vanilla body.
var classes = [...]int{4 << 10, 16 << 10, 64 << 10, readSize, 1 << 20, 2<<20 + 4<<10, 8 << 20}

// readSize bounds one read, unless a larger frame is pending. A quarter of it costs a third more CPU in bulk
// (itest/bench); the buffer is only held while there are bytes.
const readSize = 256 << 10

var pools [len(classes)]sync.Pool

// take returns a buffer of at least n bytes with arbitrary content.
func take(n int) *buffer {
	for i, size := range classes {
		if n <= size {
			if b, ok := pools[i].Get().(*buffer); ok {
				return b
			}
			return &buffer{make([]byte, size), int8(i)}
		}
	}
	return &buffer{make([]byte, n), -1}
}

// give puts a buffer back; nil is allowed.
func give(b *buffer) {
	if b != nil && b.class >= 0 {
		pools[b.class].Put(b)
	}
}

// larger moves the first n bytes of b into a buffer of at least size bytes.
func (b *buffer) larger(n, size int) *buffer {
	if b == nil {
		return take(size)
	}
	c := take(size)
	copy(c.b, b.b[:n])
	give(b)
	return c
}
