package packet

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// pngURI begins an icon as the server list has it.
const pngURI = "data:image/png;base64,"

// Relist writes a server_data packet (759 on) with another description and icon: a data URI, or empty for none. With
// that packet a server tells a joined client what to show in its server list. Of the server's own body only the flags
// at the end are kept, since they are about the server itself: previews of chat (759, 760) and secure chat (760 to
// 765).
//
// Layout: play/toClient/server_data.
func Relist(protocol int32, body []byte, description Text, icon string) ([]byte, error) {
	if _, has := proto.Closest(protocol).ID(proto.Play, proto.Clientbound, proto.ServerData); !has {
		return nil, fmt.Errorf("protocol %d has no server data", protocol)
	}
	flags := 0
	for _, t := range []proto.Trait{proto.ServerDataPreviews, proto.ServerDataSecure} {
		if proto.Has(protocol, t) {
			flags++
		}
	}
	if len(body) < flags+2 {
		return nil, fmt.Errorf("server data of %d bytes", len(body))
	}
	tail := body[len(body)-flags:]
	for _, b := range tail {
		if b > 1 {
			return nil, fmt.Errorf("server data ends in %x, which are no flags", tail)
		}
	}
	var out []byte
	if !proto.Has(protocol, proto.ServerDataRequired) { // both are optional
		out = description.Append(field.AppendBool(nil, true), protocol, proto.Play)
		if out = field.AppendBool(out, icon != ""); icon != "" {
			out = field.AppendString(out, icon)
		}
		return append(out, tail...), nil
	}
	out = description.Append(nil, protocol, proto.Play)
	png, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(icon, pngURI))
	if out = field.AppendBool(out, err == nil && len(png) > 0); err == nil && len(png) > 0 {
		out = field.AppendBytes(out, png)
	}
	return append(out, tail...), nil
}
