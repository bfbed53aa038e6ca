//go:build !unix

package socket

import (
	"errors"
	"syscall"
)

// direct is never made where a system call on a socket cannot be kept from
// waiting: a [pump] takes its place.
type direct struct{ sink }

func newDirect(syscall.Conn) (*direct, error) { return nil, errors.ErrUnsupported }
