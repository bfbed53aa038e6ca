//go:build !unix

package frame

import "io"

// rawSource needs readiness without a read, which only Unix offers here.
type rawSource struct{}

func (*rawSource) init(io.Reader)            {}
func (*rawSource) usable() bool              { return false }
func (*rawSource) read(*Reader) (int, error) { return 0, io.ErrNoProgress }

// rawSink needs a descriptor as well.
type rawSink struct{}

func (*rawSink) init(io.Writer)            {}
func (*rawSink) usable() bool              { return false }
func (*rawSink) write([]byte) (int, error) { return 0, io.ErrShortWrite }
