//go:build !unix

package frame

import "io"

// rawSource needs readiness without a read, which only Unix offers here.
type rawSource struct{}

func (*rawSource) init(io.Reader)            {}
func (*rawSource) usable() bool              { return false }
func (*rawSource) read(*Reader) (int, error) { return 0, io.ErrNoProgress }
