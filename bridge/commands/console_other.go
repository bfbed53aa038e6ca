//go:build !unix

package commands

import (
	"io"
	"os"
	"sync"
)

// input reads a file and stops when told to. A read in the system goes on waiting: only the end of the program can end
// it.
type input struct {
	file    *os.File
	chunks  chan []byte
	stopped chan struct{}
	start   sync.Once
	stop    sync.Once
	rest    []byte
}

func newInput(f *os.File) (*input, error) {
	return &input{file: f, chunks: make(chan []byte), stopped: make(chan struct{})}, nil
}

func (i *input) pump() {
	defer close(i.chunks)
	for {
		p := make([]byte, 4096)
		n, err := i.file.Read(p)
		select {
		case i.chunks <- p[:n]:
		case <-i.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read waits until there is something to read, or Stop.
func (i *input) Read(p []byte) (int, error) {
	i.start.Do(func() { go i.pump() })
	if len(i.rest) == 0 {
		select {
		case chunk, ok := <-i.chunks:
			if !ok {
				return 0, io.EOF
			}
			i.rest = chunk
		case <-i.stopped:
			return 0, io.EOF
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// Stop ends a Read that waits, and all that follow.
func (i *input) Stop() { i.stop.Do(func() { close(i.stopped) }) }

// Close does as Stop.
func (i *input) Close() { i.Stop() }

// inForeground returns true: no background programs share a terminal here.
func inForeground(*os.File) bool { return true }
