// Package caps knows the capabilities of a voice socket: which headers and subprotocol tokens ask for them, which build
// on others, and what a server echoes. It promises that a capability is negotiated only when it was requested and
// offered, with all that it builds on.
package caps

import "strings"

// Set is a version per capability, 0 for none. As a request it may hold any version; what [Set.Negotiate] returns holds
// only those in the table below.
type Set struct {
	Audio, Status, Spatial, Speakers, Soundboard, Groups, GroupEdit, Pose, Page, Roster uint8
}

// Base is the subprotocol token that asks for nothing: format v1.
const Base = "socketsvc"

// table holds the capabilities in the order of a token's words, each after all that it builds on. Pose, page and roster
// have their places at the end; they are this product's own.
var table = [...]struct {
	header string // exact case on the wire
	word   string
	field  func(*Set) *uint8
	builds func(*Set) bool // the capabilities it builds on are there
}{
	{"X-SocketSVC-Audio", "audio", func(s *Set) *uint8 { return &s.Audio }, always},
	{"X-SocketSVC-Status", "status", func(s *Set) *uint8 { return &s.Status }, always},
	{"X-SocketSVC-Spatial", "spatial", func(s *Set) *uint8 { return &s.Spatial }, func(s *Set) bool { return s.Audio == 2 }},
	{"X-SocketSVC-Speakers", "speakers", func(s *Set) *uint8 { return &s.Speakers }, spatial},
	{"X-SocketSVC-Soundboard", "soundboard", func(s *Set) *uint8 { return &s.Soundboard }, spatial},
	{"X-SocketSVC-Groups", "groups", func(s *Set) *uint8 { return &s.Groups }, func(s *Set) bool { return s.Status == 1 }},
	{"X-SocketSVC-Group-Edit", "group-edit", func(s *Set) *uint8 { return &s.GroupEdit }, func(s *Set) bool { return s.Groups == 2 }},
	{"X-SocketSVC-Pose", "pose", func(s *Set) *uint8 { return &s.Pose }, spatial},
	{"X-SocketSVC-Page", "page", func(s *Set) *uint8 { return &s.Page }, spatial},
	{"X-SocketSVC-Roster", "roster", func(s *Set) *uint8 { return &s.Roster }, func(s *Set) bool { return s.Status == 1 }},
}

func always(*Set) bool { return true }

func spatial(s *Set) bool { return s.Audio == 2 && s.Spatial == 1 }

// Newest returns every capability in the newest version of the protocol, except page, which is for clients that send a
// heartbeat of their own.
func Newest() Set {
	return Set{Audio: 2, Status: 1, Spatial: 1, Speakers: 1, Soundboard: 2, Groups: 2, GroupEdit: 1, Pose: 1, Roster: 2}
}

// FromHeaders reads the requests of an HTTP request, or the echo of a response. Header names match in any case. A
// capability is one header with one digit; anything else in its place asks for nothing.
func FromHeaders(h map[string][]string) Set {
	var s Set
	for name, values := range h {
		for _, c := range table {
			if strings.EqualFold(name, c.header) && len(values) == 1 {
				*c.field(&s) = version(strings.TrimSpace(values[0]))
			}
		}
	}
	return s
}

// version reads one digit from 1 to 9; every other text is 0.
func version(s string) uint8 {
	if len(s) == 1 && '1' <= s[0] && s[0] <= '9' {
		return s[0] - '0'
	}
	return 0
}

// ToHeaders writes the capabilities into h with the exact header names of the protocol. It sets the map directly:
// http.Header.Set would write X-Socketsvc-Audio, which a client of the protocol may not look for.
func (s Set) ToHeaders(h map[string][]string) {
	for _, c := range table {
		if v := *c.field(&s); v != 0 {
			h[c.header] = []string{string('0' + v)}
		}
	}
}

// Negotiate returns what a server that supports offered grants to the request s: a capability in the requested version
// if that is the offered one, and if all that it builds on is granted too. Soundboard 2 includes version 1, for the
// protocol has servers echo either.
func (s Set) Negotiate(offered Set) Set {
	var granted Set
	for _, c := range table {
		want, have := *c.field(&s), *c.field(&offered)
		known := want == have || c.word == "soundboard" && want == 1 && have == 2
		if known && c.builds(&granted) {
			*c.field(&granted) = want
		}
	}
	return granted
}

// Token writes the set as one WebSocket subprotocol: socketsvc.audio-2.status-1 and so on. Browsers ask that way, as
// they cannot set headers.
func (s Set) Token() string {
	token := Base
	for _, c := range table {
		if v := *c.field(&s); v != 0 {
			token += "." + c.word + "-" + string('0'+v)
		}
	}
	return token
}

// FromToken reads a subprotocol token: [Base], then any of the capabilities in the order of the table. ok is false for
// any other token.
func FromToken(token string) (Set, bool) {
	rest, ok := strings.CutPrefix(token, Base)
	if !ok {
		return Set{}, false
	}
	var s Set
	for _, c := range table {
		if after, ok := strings.CutPrefix(rest, "."+c.word+"-"); ok && after != "" {
			if *c.field(&s) = version(after[:1]); *c.field(&s) == 0 {
				return Set{}, false
			}
			rest = after[1:]
		}
	}
	return s, rest == ""
}

// Choose picks the first of the offered tokens that a server with the given capabilities supports whole. A client that
// ends its list with [Base] always finds one.
func Choose(tokens []string, offered Set) (token string, s Set, ok bool) {
	for _, t := range tokens {
		if s, ok := FromToken(t); ok && s.Negotiate(offered) == s {
			return t, s, true
		}
	}
	return "", Set{}, false
}
