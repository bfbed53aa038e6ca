// Package packet parses and builds the few packets the proxy opens, for every supported protocol.
//
// A body is all bytes behind the packet id. ParseX(protocol, body) returns a value or an error that names the field at
// fault; AppendX(dst, protocol, x) is its inverse. Functions for packets that are alike in all versions take no
// protocol. Nothing here waits, logs or keeps state, and no length from the wire is used to allocate. Parsed values own
// their bytes unless their documentation says that they alias the body.
package packet

import (
	"fmt"

	"github.com/earshot-mc/earshot/proxy/field"
)

// done ends a parse whose whole layout is known: bytes left over are an error.
func done[T any](r *field.Reader, what string, v T) (T, error) {
	if err := r.End(); err != nil {
		var zero T
		return zero, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}
