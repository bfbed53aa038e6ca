package frame

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pair returns two ends of a TCP connection.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// An idle reader of a socket holds no buffer; deadlines work and lose nothing.
func TestIdleSocketHoldsNoBuffer(t *testing.T) {
	a, b := pair(t)
	w, r := NewWriter(a), NewReader(b, Limits{})
	next := func(id int32) {
		t.Helper()
		if f, err := r.Next(); err != nil || f.ID != id {
			t.Fatal(f.ID, err)
		}
	}
	idle := func() {
		t.Helper()
		b.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		b.SetReadDeadline(time.Time{})
	}
	idle()
	w.Packet(1, chunkish(300_000, 1))
	next(1)
	idle()
	if r.buf != nil || r.inf != nil {
		t.Error("an idle reader holds a buffer")
	}
	half := wire([]byte{2, 3, 4, 5})
	a.Write(half[:2])
	idle()
	if r.Buffered() != 2 {
		t.Error(r.Buffered())
	}
	a.Write(half[2:])
	next(2)
	a.CloseWrite()
	if _, err := r.Next(); err == nil || err.Error() != "EOF" {
		t.Error(err)
	}
}

func TestSocketErrors(t *testing.T) {
	a, b := pair(t)
	r := NewReader(b, Limits{})
	a.Write([]byte{1, 1})
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	a.SetLinger(0)
	a.Close()
	for range 2 { // and they stay
		if _, err := r.Next(); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	}
	_, b = pair(t)
	r = NewReader(b, Limits{})
	b.Close()
	if _, err := r.Next(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A write that the socket takes in parts comes whole and in order; one that it stops taking ends with the write
// timeout, and one to a peer that is gone with the reason.
func TestSocketWrites(t *testing.T) {
	a, b := pair(t)
	a.SetWriteBuffer(64 << 10)
	b.SetReadDeadline(time.Now().Add(10 * time.Second))
	w := NewWriter(a)
	if !w.raw.usable() {
		t.Fatal("a TCP connection is written by Write")
	}
	body := chunkish(1<<20, 1)
	sent := make(chan error, 1)
	go func() { sent <- w.Packet(7, body) }()
	r := NewReader(b, Limits{})
	f, err := r.Next()
	if err != nil || f.ID != 7 {
		t.Fatal(f.ID, err)
	}
	if got, _ := r.Body(f); !bytes.Equal(got, body) {
		t.Error("it came otherwise than it was written")
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	w.SetWriteTimeout(20 * time.Millisecond)
	for i := 0; err == nil && i < 100; i++ { // nobody reads
		err = w.Packet(7, body)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	c, d := pair(t)
	d.SetLinger(0)
	d.Close()
	w, err = NewWriter(c), nil
	for end := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(end); {
		err = w.Packet(1, nil)
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}

// peekedConn has bytes of its own before the socket's, like a connection whose first bytes were looked at.
type peekedConn struct {
	*net.TCPConn
	peeked []byte
}

func (c *peekedConn) Buffered() int { return len(c.peeked) }

func (c *peekedConn) Read(p []byte) (int, error) {
	if len(c.peeked) > 0 {
		n := copy(p, c.peeked)
		c.peeked = c.peeked[n:]
		return n, nil
	}
	return c.TCPConn.Read(p)
}

func TestPeekedBytesComeFirst(t *testing.T) {
	a, b := pair(t)
	a.Write([]byte{2, 7, 7})
	conn := &peekedConn{b, []byte{1, 1, 1, 2, 1}}
	r := NewReader(conn, Limits{})
	for i, want := range []int32{1, 2, 2} { // the third lies in both
		if f, err := r.Next(); err != nil || f.ID != want {
			t.Fatal(i, f.ID, err)
		}
	}
}

// A connection that is neither a socket nor says what it holds is only read by Read.
func TestOtherConnsAreReadPlainly(t *testing.T) {
	_, b := pair(t)
	r := NewReader(struct{ net.Conn }{b}, Limits{})
	if r.raw.usable() {
		t.Error("reads past Read")
	}
	if w := NewWriter(struct{ net.Conn }{b}); w.raw.usable() {
		t.Error("writes past Write")
	}
}
