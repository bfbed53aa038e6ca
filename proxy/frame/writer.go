package frame

import (
	"errors"
	"io"
	"math/bits"
	"os"
	"sync"
	"time"
)

// A Writer is the outbound side of one socket. All methods take its lock, so the relay, the proxy's own packets and
// timers may use it at once, and each call's frames stay together. A Writer that failed once stays failed with the same
// error: part of a frame may be out, so nothing sensible can follow.
type Writer struct {
	mu        sync.Mutex
	dst       io.Writer
	raw       rawSink // writes to dst at less cost; may be unusable
	err       error
	threshold int
	level     int
	cipher    *cfb8

	out *buffer // frames not yet written; nil when there are none
	n   int     // their bytes

	deadline func(time.Time) error // nil: dst has none
	timeout  time.Duration
	until    time.Time // the deadline set last
}

// NewWriter returns a Writer without compression, cipher and write timeout. It goes past Write for a dst that is a TCP
// or Unix connection, or that [NewReader] would read past Read.
func NewWriter(dst io.Writer) *Writer {
	w := &Writer{dst: dst, threshold: -1, level: DefaultLevel}
	w.raw.init(dst)
	if c, ok := dst.(interface{ SetWriteDeadline(time.Time) error }); ok {
		w.deadline = c.SetWriteDeadline
	}
	return w
}

// SetWriteTimeout makes a write fail that gets no byte out for d (noticed after at most 2½ d). A long write to a slow
// peer that keeps taking bytes does not fail. 0: no timeout. dst must have SetWriteDeadline, and nobody else may set
// its deadline.
func (w *Writer) SetWriteTimeout(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeout = d
	if w.deadline == nil {
		return
	}
	w.until = time.Time{}
	if d <= 0 {
		w.deadline(time.Time{})
	}
}

// SetCompression sets the threshold for packets framed from now on; negative: none.
func (w *Writer) SetCompression(threshold int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.threshold = threshold
}

// SetLevel sets the compression level, 1 (fast) to 9; DefaultLevel at first.
func (w *Writer) SetLevel(level int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = min(max(level, 1), 9)
}

// SetCipher encrypts everything written from now on; packets appended before are written first. The secret must be 16
// bytes.
func (w *Writer) SetCipher(secret []byte) error {
	c, err := newCFB8(secret)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.flush()
	w.cipher = c
	return err
}

// Packet frames a packet and writes it now, after anything appended before.
func (w *Writer) Packet(id int32, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append(id, body)
	return w.flush()
}

// Append frames a packet and keeps it for the next write. It does not keep body.
func (w *Writer) Append(id int32, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append(id, body)
}

// Flush writes what was appended, in one write.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// Run writes frames as they are, in one write; they must be valid for this side. It spoils b when there is a cipher,
// since it encrypts in place.
func (w *Writer) Run(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n == 0 || w.err != nil {
		return w.write(b)
	}
	w.room(len(b))
	w.n += copy(w.out.b[w.n:], b)
	return w.flush()
}

// Err returns the error that ended the Writer, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// room makes space for n more bytes in out.
func (w *Writer) room(n int) {
	if w.out == nil || w.n+n > len(w.out.b) {
		w.out = w.out.larger(w.n, w.n+n)
	}
}

func (w *Writer) append(id int32, body []byte) {
	if w.err != nil {
		return
	}
	size := varintLen(uint32(id)) + len(body)
	if w.threshold >= 0 && size >= w.threshold && size <= MaxInflated {
		w.appendCompressed(id, body, size)
		return
	}
	length := size
	if w.threshold >= 0 {
		length++ // the marker
	}
	if length > MaxFrame {
		w.fail(FrameTooLarge)
		return
	}
	w.room(3 + length)
	b := w.out.b[w.n:]
	n := putVarint(b, uint32(length))
	if w.threshold >= 0 {
		b[n] = 0 // not compressed
		n++
	}
	n += putVarint(b[n:], uint32(id))
	n += copy(b[n:], body)
	w.n += n
}

// appendCompressed deflates behind the largest possible prefix and closes the gap, if any, afterwards: only small
// frames have one.
func (w *Writer) appendCompressed(id int32, body []byte, size int) {
	const prefix = 3
	w.room(prefix + 5)
	start := w.n
	data := start + prefix + putVarint(w.out.b[start+prefix:], uint32(size))
	w.out, w.n = deflate(w.level, w.out, data, id, body)
	length := w.n - start - prefix
	if length > MaxFrame {
		w.fail(FrameTooLarge)
		return
	}
	n := putVarint(w.out.b[start:], uint32(length))
	if n < prefix {
		copy(w.out.b[start+n:], w.out.b[start+prefix:w.n])
		w.n -= prefix - n
	}
}

// fail ends the Writer; nothing more is written.
func (w *Writer) fail(err error) {
	w.err = err
	w.drop()
}

func (w *Writer) drop() {
	give(w.out)
	w.out, w.n = nil, 0
}

func (w *Writer) flush() error {
	if w.n == 0 || w.err != nil {
		return w.err
	}
	err := w.write(w.out.b[:w.n])
	w.drop()
	return err
}

func (w *Writer) write(b []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.cipher != nil {
		w.cipher.encrypt(b)
	}
	for {
		w.arm()
		n, err := w.put(b)
		switch {
		case err == nil && n == len(b):
			return nil
		case err == nil:
			err = io.ErrShortWrite
		case n > 0 && n < len(b) && w.timeout > 0 && errors.Is(err, os.ErrDeadlineExceeded):
			b = b[n:]
			w.until = time.Time{}
			continue
		}
		w.fail(err)
		return err
	}
}

func (w *Writer) put(b []byte) (int, error) {
	if w.raw.usable() {
		return w.raw.write(b)
	}
	return w.dst.Write(b)
}

// arm makes sure that at least d remains until the deadline, and sets it a quarter later than needed so that busy
// sockets set it rarely.
func (w *Writer) arm() {
	if w.timeout <= 0 || w.deadline == nil {
		return
	}
	if now := time.Now(); w.until.Sub(now) < w.timeout {
		w.until = now.Add(w.timeout + w.timeout/4)
		w.deadline(w.until)
	}
}

// putVarint writes v and returns its length.
func putVarint(b []byte, v uint32) int {
	n := 0
	for ; v >= 0x80; n++ {
		b[n] = byte(v) | 0x80
		v >>= 7
	}
	b[n] = byte(v)
	return n + 1
}

func varintLen(v uint32) int { return (bits.Len32(v|1) + 6) / 7 }
