// Package offer holds the bodies of plugin messages: a player's client asks for voice and gets a URL and a token. They
// travel on the game connection, in the play state; the proxy consumes all of them and forwards none. Channels and
// layouts are this product's choice.
//
// A String is Minecraft's: the length in bytes as a VarInt, then UTF-8.
package offer

import (
	"encoding/binary"
	"errors"
	"time"
	"unicode/utf8"
)

// Channels of the plugin messages.
const (
	Prefix      = "socketsvc:"
	Hello       = Prefix + "hello"       // client to proxy: VarInt version
	Handshake   = Prefix + "handshake"   // proxy to client: VarInt version, String base URL, String token, VarInt life
	Unavailable = Prefix + "unavailable" // proxy to client: String reason
	Unavail     = Prefix + "unavail"     // the same, for clients that [LegacyChannel] binds
)

// LegacyChannel is the longest channel name, in characters, that a client before Minecraft 1.13 reads; it drops the
// connection on a longer one, such as [Unavailable].
const LegacyChannel = 20

// firstNamespaced is protocol 393, Minecraft 1.13: from then on names may be long.
const firstNamespaced = 393

// UnavailableFor returns the channel that tells a client of this protocol version why it gets no voice.
func UnavailableFor(protocol int32) string {
	if protocol < firstNamespaced {
		return Unavail
	}
	return Unavailable
}

// Version is the only version of the messages so far.
const Version = 1

// Reason says why there is no voice.
type Reason string

// The reasons.
const (
	Disabled     Reason = "disabled"
	NoPermission Reason = "no_permission"
	RateLimited  Reason = "rate_limited"
)

// Bounds of what a client accepts, in bytes.
const (
	maxURL    = 2048
	maxToken  = 256
	maxReason = 64
)

// Errors of the parsers.
var (
	ErrMalformed = errors.New("malformed voice offer message")
	ErrVersion   = errors.New("unknown version of a voice offer message")
)

// Offer is the body of a handshake message.
type Offer struct {
	URL   string // base: the voice socket is at URL + "/voice"
	Token string
	TTL   time.Duration // whole seconds
}

// AppendHello writes the body of a hello, as a client does.
func AppendHello(dst []byte) []byte { return binary.AppendUvarint(dst, Version) }

// ParseHello checks the body of a hello.
func ParseHello(b []byte) error {
	version, b := number(b)
	if b == nil || len(b) != 0 {
		return ErrMalformed
	}
	if version != Version {
		return ErrVersion
	}
	return nil
}

// AppendHandshake writes the body of a handshake; ttl is cut to whole seconds.
func AppendHandshake(dst []byte, url, token string, ttl time.Duration) []byte {
	dst = binary.AppendUvarint(dst, Version)
	dst = appendString(dst, url)
	dst = appendString(dst, token)
	return binary.AppendUvarint(dst, uint64(ttl/time.Second))
}

// ParseHandshake reads the body of a handshake, as a client does.
func ParseHandshake(b []byte) (o Offer, err error) {
	version, b := number(b)
	if b != nil && version != Version {
		return Offer{}, ErrVersion
	}
	o.URL, b = text(b, maxURL)
	o.Token, b = text(b, maxToken)
	seconds, b := number(b)
	if b == nil || len(b) != 0 {
		return Offer{}, ErrMalformed
	}
	o.TTL = time.Duration(seconds) * time.Second
	return o, nil
}

// AppendUnavailable writes the body of an unavailable message.
func AppendUnavailable(dst []byte, r Reason) []byte { return appendString(dst, string(r)) }

// ParseUnavailable reads the body of an unavailable message. It returns unknown reasons as they are.
func ParseUnavailable(b []byte) (Reason, error) {
	s, b := text(b, maxReason)
	if b == nil || len(b) != 0 {
		return "", ErrMalformed
	}
	return Reason(s), nil
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// number takes a non-negative 32-bit VarInt in its shortest form off b. The rest is nil when there is none, and stays
// nil through further calls.
func number(b []byte) (v uint64, rest []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<31-1 || n != len(binary.AppendUvarint(nil, v)) {
		return 0, nil
	}
	return v, b[n:]
}

// text takes a string of at most max bytes off b.
func text(b []byte, max uint64) (s string, rest []byte) {
	n, b := number(b)
	if b == nil || n > max || n > uint64(len(b)) || !utf8.Valid(b[:n]) {
		return "", nil
	}
	return string(b[:n]), b[n:]
}
