//go:build !unix

package socket

import (
	"errors"
	"io"
	"syscall"
)

// direct is never made here, since a system call on a socket cannot be kept from waiting: a [pump] takes its place.
type direct struct {
	sink
	io.Reader
}

func (*direct) init(syscall.Conn) error { return errors.ErrUnsupported }
