//go:build unix

package frame

import (
	"io"
	"net"
	"os"
	"syscall"
)

// rawOf returns the descriptor below c; nil where reading and writing c may do more than reading and writing that.
// buffered tells how many bytes c has read already; it may be nil.
func rawOf(c any) (raw syscall.RawConn, buffered interface{ Buffered() int }) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil, nil
	}
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		if buffered, ok = c.(interface{ Buffered() int }); !ok {
			return nil, nil
		}
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, nil
	}
	return raw, buffered
}

// rawSource reads from a descriptor. It takes the buffer only once there are bytes, so that ten thousand idle players
// pin no buffers. It costs nothing extra: net.Conn.Read makes the same calls in the same order.
type rawSource struct {
	conn     syscall.RawConn
	buffered interface{ Buffered() int } // nil: src holds no bytes of its own
	attempt  func(fd uintptr) bool       // r.try, made once
	r        *Reader
	n        int
	err      error
}

func (s *rawSource) init(src io.Reader) {
	if s.conn, s.buffered = rawOf(src); s.conn != nil {
		s.attempt = s.try
	}
}

func (s *rawSource) usable() bool {
	return s.conn != nil && (s.buffered == nil || s.buffered.Buffered() == 0)
}

func (s *rawSource) read(r *Reader) (int, error) {
	s.r, s.n, s.err = r, 0, nil
	if err := s.conn.Read(s.attempt); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// try makes one attempt, and returns true when that is the last. It runs again each time after the descriptor became
// readable.
func (s *rawSource) try(fd uintptr) bool {
	r := s.r
	if r.buf == nil {
		r.buf = take(readSize)
	}
	n, err := readNow(fd, r.buf.b[r.end:])
	for err == syscall.EINTR {
		n, err = readNow(fd, r.buf.b[r.end:])
	}
	switch {
	case err == syscall.EAGAIN:
		if r.end == 0 {
			give(r.buf)
			r.buf = nil
		}
		return false
	case err != nil:
		s.err = os.NewSyscallError("read", err)
	case n == 0:
		s.err = io.EOF
	default:
		s.n = n
	}
	return true
}

// rawSink writes to a descriptor as net.Conn.Write does, with the cheaper call.
type rawSink struct {
	conn    syscall.RawConn
	attempt func(fd uintptr) bool
	p       []byte // of which n bytes are out
	n       int
	err     error
}

func (s *rawSink) init(dst io.Writer) {
	if s.conn, _ = rawOf(dst); s.conn != nil {
		s.attempt = s.try
	}
}

func (s *rawSink) usable() bool { return s.conn != nil }

func (s *rawSink) write(p []byte) (int, error) {
	s.p, s.n, s.err = p, 0, nil
	err := s.conn.Write(s.attempt)
	if s.p = nil; err == nil {
		err = s.err
	}
	return s.n, err
}

// try makes one attempt, and returns true when that is the last. It runs again each time after the descriptor took no
// more.
func (s *rawSink) try(fd uintptr) bool {
	for s.n < len(s.p) {
		n, err := writeNow(fd, s.p[s.n:])
		switch err {
		case nil:
			s.n += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			s.err = os.NewSyscallError("write", err)
			return true
		}
	}
	return true
}
