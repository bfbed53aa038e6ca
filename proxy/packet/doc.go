// Package packet parses and builds the few packets the proxy opens, for every supported protocol.
//
// A body is all bytes behind the packet id. ParseX(protocol, body) returns a value or an error that names the field at
// fault; AppendX(dst, protocol, x) is its inverse. Functions for packets that are alike in all versions take no
// protocol. Nothing here waits, logs or keeps state, and no length from the wire is used to allocate. Parsed values own
// their bytes unless their documentation says that they alias the body.
//
// A line that begins with "Layout:" names where the layout of the packet comes from; an AppendX without one writes what
// its ParseX reads. A name such as play/toClient/position is a packet in the protocol definitions of
// https://github.com/PrismarineJS/minecraft-data, version 3.119.0: data/pc/RELEASE/protocol.json has the layouts of a
// release, and data/pc/common/protocolVersions.json the number of each. Those end with 775 (26.1). What has changed in
// 776 (26.2) and 777 (26.3) is by https://github.com/ViaVersion/ViaVersion, whose protocols from 26.1 to 26.2 and from
// there to 26.3 rewrite it, and https://github.com/PrismarineJS/minecraft-data/pull/1300.
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
