//go:build !unix

package socket

import (
	"errors"
	"io"
	"syscall"
)

// direct is never made where a system call on a socket cannot be kept from
// waiting: a [pump] takes its place.
type direct struct {
	sink
	io.Reader
}

func newDirect(syscall.Conn) (*direct, error) { return nil, errors.ErrUnsupported }
