package line

import "strings"

// What a client's line asks for.
type Request uint8

const (
	Deafen Request = iota // Deafened says whether from now on
	Range                 // Tier says how loud from now on
	Group                 // Verb and Args; only where groups were negotiated
)

// Tier is how loudly somebody speaks. The zero value is the ordinary one.
type Tier uint8

const (
	Normal Tier = iota
	Whisper
	Shout
)

var tiers = [...]string{Normal: "normal", Whisper: "whisper", Shout: "shout"}

// String is the word that travels.
func (t Tier) String() string {
	if int(t) < len(tiers) {
		return tiers[t]
	}
	return "unknown"
}

// C2S is one request of a client.
type C2S struct {
	Request  Request
	Deafened bool
	Tier     Tier
	Verb     string   // of Group: one of the protocol's verbs
	Args     []string // of Group: as many as the verb takes, none empty, not looked into
}

const (
	deafenPrefix = "SSVC_DEAFEN_V1:"
	rangePrefix  = "SSVC_RANGE_V1:"
	groupPrefix  = "SSVC_GROUP_V1:"
)

// verbs are the group requests and how many arguments each takes.
var verbs = map[string]int{
	"CREATE": 4, "JOIN": 2, "LEAVE": 0, "INVITE": 2, "ACCEPT": 1, "DECLINE": 1, "MOVE": 2,
	"RENAME": 2, "PASSWORD": 2, "TYPE": 2, "KICK": 2, "DELETE": 1,
}

// ParseC2S reads a client's text message, exactly: anything that is not one of
// the requests is [ErrUnsupported]. Whether the socket negotiated the request
// is for the caller to check.
func ParseC2S(b []byte) (C2S, error) {
	// Switching on string(b) copies nothing.
	switch string(b) {
	case deafenPrefix + "0":
		return C2S{Request: Deafen}, nil
	case deafenPrefix + "1":
		return C2S{Request: Deafen, Deafened: true}, nil
	case rangePrefix + "whisper":
		return C2S{Request: Range, Tier: Whisper}, nil
	case rangePrefix + "normal":
		return C2S{Request: Range, Tier: Normal}, nil
	case rangePrefix + "shout":
		return C2S{Request: Range, Tier: Shout}, nil
	}
	if len(b) > 3*MaxC2S {
		return C2S{}, ErrUnsupported
	}
	rest, ok := strings.CutPrefix(string(b), groupPrefix)
	if !ok || Units(string(b)) > MaxC2S {
		return C2S{}, ErrUnsupported
	}
	words := strings.Split(rest, " ")
	n, known := verbs[words[0]]
	if !known || n != len(words)-1 {
		return C2S{}, ErrUnsupported
	}
	for _, w := range words {
		if !plain(w) {
			return C2S{}, ErrUnsupported
		}
	}
	return C2S{Request: Group, Verb: words[0], Args: words[1:]}, nil
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
	}
	dst = append(append(dst, groupPrefix...), r.Verb...)
	for _, a := range r.Args {
		dst = append(append(dst, ' '), a...)
	}
	return dst
}
