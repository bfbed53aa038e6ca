package line

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Request is the kind of a client's line.
type Request uint8

const (
	Deafen Request = iota // Deafened: from now on
	Range                 // Tier: from now on
	Group                 // Group; only where groups were negotiated
	Beat                  // Beat; only where page was negotiated
)

// C2S is one request of a client.
type C2S struct {
	Request  Request
	Deafened bool
	Tier     talk.Tier
	Group    talk.GroupRequest
	Beat     int32 // 0 or more
}

const (
	deafenPrefix = "SSVC_DEAFEN_V1:"
	rangePrefix  = "SSVC_RANGE_V1:"
	groupPrefix  = "SSVC_GROUP_V1:"
	beatPrefix   = "SSVC_BEAT_V1:"
)

// ParseC2S reads a client's text message, exactly: anything that is not one of the requests is [ErrUnsupported]. The
// caller checks whether the socket negotiated the request.
func ParseC2S(b []byte) (C2S, error) {
	// Comparing string(b) copies nothing.
	switch string(b) {
	case deafenPrefix + "0":
		return C2S{Request: Deafen}, nil
	case deafenPrefix + "1":
		return C2S{Request: Deafen, Deafened: true}, nil
	}
	if word, ok := bytes.CutPrefix(b, []byte(rangePrefix)); ok {
		for t := range talk.Tier(talk.Tiers) {
			if string(word) == t.String() {
				return C2S{Request: Range, Tier: t}, nil
			}
		}
		return C2S{}, ErrUnsupported
	}
	if digits, ok := bytes.CutPrefix(b, []byte(beatPrefix)); ok {
		n, ok := parseCount(string(digits))
		if !ok || n > math.MaxInt32 {
			return C2S{}, ErrUnsupported
		}
		return C2S{Request: Beat, Beat: int32(n)}, nil
	}
	if len(b) > 3*MaxC2S {
		return C2S{}, ErrUnsupported
	}
	rest, ok := strings.CutPrefix(string(b), groupPrefix)
	if !ok || talk.Units(string(b)) > MaxC2S {
		return C2S{}, ErrUnsupported
	}
	g, err := parseGroup(rest)
	if err != nil {
		return C2S{}, err
	}
	return C2S{Request: Group, Group: g}, nil
}

// AppendC2S writes a request, as a client does. It does not check r.
func AppendC2S(dst []byte, r *C2S) []byte {
	switch r.Request {
	case Deafen:
		dst = append(dst, deafenPrefix...)
		if r.Deafened {
			return append(dst, '1')
		}
		return append(dst, '0')
	case Range:
		return append(append(dst, rangePrefix...), r.Tier.String()...)
	case Beat:
		return strconv.AppendInt(append(dst, beatPrefix...), int64(r.Beat), 10)
	}
	return appendGroup(append(dst, groupPrefix...), &r.Group)
}
