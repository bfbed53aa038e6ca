package socket

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// sink is where frames go; its methods never wait for the peer. They are called
// with the socket's lock held.
type sink interface {
	// try takes as much of p as fits now. Less than all is no error.
	try(p []byte) (int, error)
	// busy tells whether some of what try took still waits on this side of the
	// kernel. It may send some of it.
	busy() bool
}

// maxCipher bounds what may wait below TLS: a record that went in part, and
// what TLS says of its own accord.
const maxCipher = 64 << 10

// errCipherFull ends a connection whose peer makes TLS talk without listening.
var errCipherFull = errors.New("peer does not take TLS records")

// buffered is a connection whose writes stop waiting when a socket takes it
// over.
type buffered struct {
	net.Conn
	src atomic.Pointer[io.Reader] // reads Conn once taken over

	mu     sync.Mutex
	direct *direct // set once taken over
	rest   []byte  // what the kernel did not take yet
}

// Buffered wraps a connection that is to carry TLS: tls.Server(Buffered(c), …).
// Until a [Socket] takes the TLS connection over it changes nothing. From then
// on writes to c never wait; what does not fit is kept, within a bound.
func Buffered(c net.Conn) net.Conn { return &buffered{Conn: c} }

// NetConn returns the wrapped connection.
func (b *buffered) NetConn() net.Conn { return b.Conn }

// takeOver tells whether writes no longer wait.
func (b *buffered) takeOver() bool {
	conn, ok := b.Conn.(syscall.Conn)
	if !ok {
		inner, wraps := b.Conn.(interface{ NetConn() net.Conn })
		if !wraps {
			return false
		}
		if conn, ok = inner.NetConn().(syscall.Conn); !ok {
			return false
		}
	}
	d, err := newDirect(conn)
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct = d
	src := readerFor(b.Conn, d)
	b.src.Store(&src)
	return true
}

func (b *buffered) Read(p []byte) (int, error) {
	if src := b.src.Load(); src != nil {
		return (*src).Read(p)
	}
	return b.Conn.Read(p)
}

func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	d := b.direct
	if d == nil {
		b.mu.Unlock()
		return b.Conn.Write(p)
	}
	defer b.mu.Unlock()
	n := 0
	if len(b.rest) == 0 {
		var err error
		if n, err = d.try(p); err != nil {
			return n, err
		}
	}
	if len(b.rest)+len(p)-n > maxCipher {
		return n, errCipherFull
	}
	b.rest = append(b.rest, p[n:]...)
	return len(p), nil
}

// drain tries to send what waits, and returns how much still does.
func (b *buffered) drain() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rest) == 0 {
		return 0, nil
	}
	n, err := b.direct.try(b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil
	}
	return len(b.rest), err
}

// maxRecord is what one TLS record carries.
const maxRecord = 16 << 10

// tlsSink encrypts a batch only when nothing encrypted waits: what is in a
// record can be dropped no more.
type tlsSink struct {
	conn  *tls.Conn
	below *buffered
}

func (t *tlsSink) try(p []byte) (int, error) {
	if n, err := t.below.drain(); n > 0 || err != nil {
		return 0, err
	}
	return t.conn.Write(p[:min(len(p), maxRecord)])
}

func (t *tlsSink) busy() bool {
	n, err := t.below.drain()
	return n > 0 || err != nil // an error shows with the next try
}

// pump writes with a goroutine, for connections that can only be waited for.
type pump struct {
	conn net.Conn
	wake chan struct{}

	mu     sync.Mutex
	p      []byte
	taken  bool // p is being written
	failed error
}

func newPump(conn net.Conn) *pump { return &pump{conn: conn, wake: make(chan struct{}, 1)} }

// start begins writing; stop closes the connection and waits for the end.
func (w *pump) start() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-w.wake:
			}
			_, err := w.conn.Write(w.p)
			w.mu.Lock()
			w.taken, w.failed = false, err
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() {
		w.conn.Close()
		close(quit)
		<-done
	}
}

func (w *pump) try(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken || w.failed != nil {
		return 0, w.failed
	}
	w.p = append(w.p[:0], p[:min(len(p), maxRecord)]...)
	w.taken = true
	w.wake <- struct{}{} // has room, as nothing is being written
	return len(w.p), nil
}

func (w *pump) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken
}
