//go:build unix

package commands

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// input reads a file of which nothing is known but its descriptor, and stops when told to. The file stays as it is: a
// terminal is shared with the shell, which must not find it in another mode.
type input struct {
	file       *os.File
	stop, wake *os.File // a pipe, closed to stop
	once       sync.Once
}

func newInput(f *os.File) (*input, error) {
	stop, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{file: f, stop: stop, wake: wake}, nil
}

// Read waits until there is something to read, or Stop.
func (i *input) Read(p []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(i.file.Fd()), Events: unix.POLLIN}, {Fd: int32(i.stop.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return 0, err
		}
		if fds[1].Revents != 0 {
			return 0, io.EOF
		}
		return i.file.Read(p)
	}
}

// Stop ends a Read that waits, and all that follow.
func (i *input) Stop() { i.once.Do(func() { i.wake.Close() }) }

// Close gives back what reading took. Nobody may be reading.
func (i *input) Close() {
	i.Stop()
	i.stop.Close()
}

// inForeground tells whether the terminal is ours to read, as far as that can be known.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
