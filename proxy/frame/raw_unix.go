//go:build unix

package frame

import (
	"io"
	"net"
	"os"
	"syscall"
)

// rawSource reads from a descriptor and takes the buffer only once there are
// bytes, so that ten thousand idle players pin no buffers. It costs nothing
// extra: net.Conn.Read makes the same calls in the same order.
type rawSource struct {
	conn     syscall.RawConn
	buffered interface{ Buffered() int } // nil: src holds no bytes of its own
	attempt  func(fd uintptr) bool       // r.try, made once
	r        *Reader
	n        int
	err      error
}

func (s *rawSource) init(src io.Reader) {
	c, ok := src.(syscall.Conn)
	if !ok {
		return
	}
	switch src.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		if s.buffered, ok = src.(interface{ Buffered() int }); !ok {
			return // its Read may do more than read the descriptor
		}
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	s.conn = raw
	s.attempt = s.try
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

// try is called until it returns true, each time after the descriptor became readable.
func (s *rawSource) try(fd uintptr) bool {
	r := s.r
	if r.buf == nil {
		r.buf = take(readSize)
	}
	n, err := syscall.Read(int(fd), r.buf.b[r.end:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), r.buf.b[r.end:])
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
