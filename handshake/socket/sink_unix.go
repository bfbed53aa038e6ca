//go:build unix

package socket

import (
	"errors"
	"syscall"
)

// direct makes one system call per try on a connection's file descriptor, which
// Go keeps in non-blocking mode.
type direct struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) // made once: a closure a call would be garbage
	p       []byte
	n       int
	err     error
}

func newDirect(c syscall.Conn) (*direct, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	d := &direct{raw: raw}
	d.attempt = func(fd uintptr) {
		d.n, d.err = writeNow(fd, d.p)
		for d.err == syscall.EINTR {
			d.n, d.err = writeNow(fd, d.p)
		}
	}
	return d, raw.Control(limitUnsent)
}

func (d *direct) try(p []byte) (int, error) {
	d.p, d.n, d.err = p, 0, nil
	err := d.raw.Control(d.attempt) // not Write, which can wait
	d.p = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(d.err, syscall.EAGAIN):
		return 0, nil
	case d.err != nil:
		return 0, d.err
	}
	return d.n, nil
}

func (d *direct) busy() bool { return false }
