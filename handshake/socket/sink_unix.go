//go:build unix

package socket

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// direct makes one system call per try on a connection's file descriptor, which Go keeps in non-blocking mode. It reads
// from there too.
type direct struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) // made once: a closure a call would be garbage
	p       []byte
	n       int
	err     error

	in source
}

// source is the other direction, which has its own goroutine.
type source struct {
	attempt func(fd uintptr) bool
	p       []byte
	n       int
	err     error
}

func (d *direct) init(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	d.raw = raw
	d.attempt = func(fd uintptr) {
		d.n, d.err = writeNow(fd, d.p)
		for d.err == syscall.EINTR {
			d.n, d.err = writeNow(fd, d.p)
		}
	}
	in := &d.in
	in.attempt = func(fd uintptr) bool {
		in.n, in.err = readNow(fd, in.p)
		for in.err == syscall.EINTR {
			in.n, in.err = readNow(fd, in.p)
		}
		return in.err != syscall.EAGAIN
	}
	return raw.Control(limitUnsent)
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

// Read waits for bytes, as net.Conn's does.
func (d *direct) Read(p []byte) (int, error) {
	in := &d.in
	in.p, in.n, in.err = p, 0, nil
	err := d.raw.Read(in.attempt)
	in.p = nil
	switch {
	case err != nil:
		return 0, err
	case in.err != nil:
		return 0, os.NewSyscallError("read", in.err)
	case in.n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return in.n, nil
}

func (d *direct) busy() bool { return false }
