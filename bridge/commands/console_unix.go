//go:build unix

package commands

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// input reads a file through its descriptor, and stops when told to. The file stays as it is: a terminal is shared with
// the shell, which must not find it in another mode.
type input struct {
	file       *os.File
	stop, wake *os.File // a pipe, closed to stop
	writer     *os.File // see held; nil: none
	once       sync.Once
}

func newInput(f *os.File) (*input, error) {
	stop, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{file: f, stop: stop, wake: wake, writer: held(f)}, nil
}

// held keeps a named pipe open for writing, so that it does not end with its first writer: the next one may come at any
// time. It returns nil where f is none, or where that cannot be done.
func held(f *os.File) *os.File {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	link := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if name, err := os.Readlink(link); err != nil || !strings.HasPrefix(name, "/") {
		return nil // a pipe without a name, which nobody else can open
	}
	w, err := os.OpenFile(link, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	return w
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
	if i.writer != nil {
		i.writer.Close()
	}
}

// inForeground tells whether the terminal is ours to read, as far as that can be known.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
