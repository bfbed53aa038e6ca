package backend

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Properties with a meaning between proxy and server. Only the proxy may set them, so they are taken out of the profile
// first: with a property named as the token, the owner of a profile could try secrets.
const (
	tokenProperty = "bungeeguard-token"
	extraProperty = "extraData"
)

// hostField returns the host of the handshake: the player's host, and what the forwarding mode and mod loader add to
// it.
func (l *login) hostField(host string) (string, error) {
	if l.Server.Floodgate && l.id.Floodgate != "" {
		host += "\x00" + l.id.Floodgate // Floodgate takes it out before the server counts the parts
	}
	if l.Forwarding != Legacy && l.Forwarding != BungeeGuard {
		return host + l.id.Marker, nil
	}
	// In these modes the server splits at zero bytes and counts, so the marker travels as a property.
	type property struct {
		Name      string  `json:"name"`
		Value     string  `json:"value"`
		Signature *string `json:"signature,omitempty"` // a token has an empty one
	}
	list := []property{}
	for _, p := range ownless(l.id.Properties) {
		out := property{Name: p.Name, Value: p.Value}
		if p.Signature != "" {
			out.Signature = &p.Signature
		}
		list = append(list, out)
	}
	if l.id.Marker != "" {
		list = append(list, property{Name: extraProperty, Value: strings.ReplaceAll(l.id.Marker, "\x00", "\x01")})
	}
	if l.Forwarding == BungeeGuard {
		list = append(list, property{tokenProperty, string(l.Secret), new(string)})
	}
	var properties bytes.Buffer
	e := json.NewEncoder(&properties)
	e.SetEscapeHTML(false)
	if err := e.Encode(list); err != nil {
		return "", err
	}
	whole := strings.Join([]string{host, address(l.id.Addr), hex.EncodeToString(l.id.ID[:]), strings.TrimSpace(properties.String())}, "\x00")
	if len(whole) > packet.MaxForwardedHost {
		return "", fmt.Errorf("the player's profile is too large for %v forwarding: %d bytes, at most %d fit; use modern forwarding", l.Forwarding, len(whole), packet.MaxForwardedHost)
	}
	return whole, nil
}

// ownless returns a profile without the properties that only the proxy may set.
func ownless(ps []packet.Property) []packet.Property {
	out := make([]packet.Property, 0, len(ps))
	for _, p := range ps {
		if !strings.EqualFold(p.Name, tokenProperty) && !strings.EqualFold(p.Name, extraProperty) {
			out = append(out, p)
		}
	}
	return out
}

// address returns an address as servers parse it: IPv4 as such, no zone.
func address(a netip.Addr) string { return a.Unmap().WithZone("").String() }

// playerInfo is the channel on which a server asks for a signed identity.
const playerInfo = "velocity:player_info"

// Versions of a signed identity: without a chat key, with the key of 759, with that of 760, and for clients whose chat
// session comes later.
const (
	plainIdentity = 1 + iota
	keyedIdentity
	linkedIdentity
	lazyIdentity
)

// identityVersion chooses the version from the server's question, which is empty or one byte: the highest that it
// knows.
func identityVersion(question []byte, id Identity) int32 {
	known := byte(plainIdentity)
	if len(question) == 1 {
		known = question[0]
	}
	switch {
	case proto.Has(id.Protocol, proto.ChatSessions) && known >= lazyIdentity:
		return lazyIdentity
	case proto.Has(id.Protocol, proto.ProfileKeysLinked) && known >= linkedIdentity && id.Key != nil:
		return linkedIdentity
	case proto.Has(id.Protocol, proto.ProfileKeys) && !proto.Has(id.Protocol, proto.ProfileKeysLinked) && known >= keyedIdentity && id.Key != nil:
		return keyedIdentity
	}
	return plainIdentity
}

// signedIdentity returns the answer to the question: an HMAC-SHA256 of the identity, and the identity.
func signedIdentity(id Identity, secret, question []byte) []byte {
	version := identityVersion(question, id)
	b := make([]byte, sha256.Size, 1024)
	b = field.AppendVarInt(b, version)
	b = field.AppendString(b, address(id.Addr))
	b = field.AppendString(field.AppendUUID(b, id.ID), id.Name)
	b = packet.AppendProperties(b, ownless(id.Properties))
	if version == keyedIdentity || version == linkedIdentity {
		b = packet.AppendProfileKey(b, id.Key)
	}
	if version == linkedIdentity {
		b = field.AppendUUID(field.AppendBool(b, true), id.ID) // whose key it is
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(b[sha256.Size:])
	mac.Sum(b[:0])
	return b
}

// proxyHeader returns a PROXY protocol v2 header for a connection from the player to the server. When only one of the
// two has an IPv4 address, both are written as IPv6. It says "local" where the server has no IP address, and for
// connections that are the proxy's own.
func proxyHeader(from netip.AddrPort, server net.Addr) []byte {
	b := []byte("\r\n\r\n\x00\r\nQUIT\n")
	tcp, ok := server.(*net.TCPAddr)
	if !ok || !from.IsValid() {
		return append(b, 0x20, 0, 0, 0)
	}
	src, to := from.Addr().Unmap(), tcp.AddrPort()
	dst := to.Addr().Unmap()
	if src.Is4() && dst.Is4() {
		b = append(b, 0x21, 0x11, 0, 12)
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	} else {
		s, d := src.As16(), dst.As16()
		b = append(b, 0x21, 0x21, 0, 36)
		b = append(append(b, s[:]...), d[:]...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, from.Port()), to.Port())
}
