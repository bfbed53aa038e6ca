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

// sink takes frames; its methods never wait for the peer. They are called with the socket's lock held.
type sink interface {
	// try takes as much of p as fits now. Less than all is no error.
	try(p []byte) (int, error)
	// busy tells whether some of the taken bytes still wait on this side of the kernel. It may send some of them.
	busy() bool
}

// maxCipher bounds the bytes that wait below TLS: a record that went in part, and TLS's own messages.
const maxCipher = 64 << 10

// errCipherFull ends a connection whose peer makes TLS talk without listening.
var errCipherFull = errors.New("peer does not take TLS records")

// buffered is a connection whose writes stop waiting when a socket takes it over. It is then also the sink of the TLS
// above it. Everything that a write touches lies together, as most of the cost of a record is memory that has to be
// fetched.
type buffered struct {
	net.Conn
	tls    *tls.Conn
	over   atomic.Bool // taken over: tls, direct and src are set
	keeps  atomic.Bool // rest is not empty
	direct direct

	mu   sync.Mutex
	rest []byte // what the kernel did not take yet

	src io.Reader // reads Conn once taken over
}

// Buffered wraps a connection that is to carry TLS: tls.Server(Buffered(c), …). Until a [Socket] takes the TLS
// connection over it changes nothing. From then on writes to c never wait; the rest is kept, within a bound.
func Buffered(c net.Conn) net.Conn { return &buffered{Conn: c} }

// NetConn returns the wrapped connection.
func (b *buffered) NetConn() net.Conn { return b.Conn }

// takeOver reports whether writes no longer wait.
func (b *buffered) takeOver(above *tls.Conn) bool {
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
	if err := b.direct.init(conn); err != nil {
		return false
	}
	b.tls, b.src = above, readerFor(b.Conn, &b.direct)
	b.over.Store(true)
	return true
}

func (b *buffered) Read(p []byte) (int, error) {
	if b.over.Load() {
		return b.src.Read(p)
	}
	return b.Conn.Read(p)
}

// Write takes one TLS record or more, one call at a time. Only Write begins to keep a rest, and only drain takes of it.
// So without a rest Write has the connection to itself.
func (b *buffered) Write(p []byte) (int, error) {
	if !b.over.Load() {
		return b.Conn.Write(p)
	}
	n := 0
	if !b.keeps.Load() {
		var err error
		if n, err = b.direct.try(p); n == len(p) || err != nil {
			return n, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rest)+len(p)-n > maxCipher {
		return n, errCipherFull
	}
	b.rest = append(b.rest, p[n:]...)
	b.keeps.Store(true)
	return len(p), nil
}

// drain tries to send the rest, and tells whether some is left.
func (b *buffered) drain() (bool, error) {
	if !b.keeps.Load() {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.direct.try(b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil
		b.keeps.Store(false)
	}
	return len(b.rest) > 0, err
}

// maxRecord is the capacity of one TLS record.
const maxRecord = 16 << 10

// try encrypts a batch only when nothing encrypted waits: sound in a record cannot be dropped any more.
func (b *buffered) try(p []byte) (int, error) {
	if kept, err := b.drain(); kept || err != nil {
		return 0, err
	}
	return b.tls.Write(p[:min(len(p), maxRecord)])
}

func (b *buffered) busy() bool {
	kept, err := b.drain()
	return kept || err != nil // an error shows with the next try
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
