package configs

import (
	"maps"
	"regexp"
	"slices"
)

// Rooms are places on the network where companion apps meet.
type Rooms struct {
	Declared map[string]DeclaredRoom `yaml:"declared"` // by key, at /play/KEY
}

// DeclaredRoom shares what its peers publish.
type DeclaredRoom struct {
	Capacity  int    `yaml:"capacity,omitempty"` // peers; 0: 50
	Token     Secret `yaml:"token,omitempty"`    // that opens it; empty, as the file: it is open to all
	TokenFile string `yaml:"token-file,omitempty"`
}

// Bounds of declared rooms.
const (
	mostCapacity    = 500
	defaultCapacity = 50
	shortToken      = 16
)

var roomKey = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// Peers returns how many may be in the room.
func (r DeclaredRoom) Peers() int {
	if r.Capacity == 0 {
		return defaultCapacity
	}
	return r.Capacity
}

// checkRooms checks the declared rooms.
func (l *Loaded) checkRooms(p *problems) {
	for _, key := range slices.Sorted(maps.Keys(l.Rooms.Declared)) {
		r, at := l.Rooms.Declared[key], "rooms.declared."+key
		if !roomKey.MatchString(key) {
			p.bad(at, "is no name for a room: take 1 to 64 small letters, digits, - and _")
		}
		if r.Capacity < 0 || r.Capacity > mostCapacity {
			p.bad(at+".capacity", "is not between 1 and %d", mostCapacity)
		}
		switch {
		case r.Token == "" && r.TokenFile == "":
			p.warn(at + " is open to everybody who reaches the port: a token or a token-file keeps others out")
		case r.Token == "":
			p.bad(at+".token-file", "is empty, and the room would be open to everybody")
		case len(r.Token) > 256:
			p.bad(at+".token", "has %d bytes: at most 256", len(r.Token))
		case len(r.Token) < shortToken:
			p.warn(at + ".token is short, and can be guessed: take 16 letters and digits by chance")
		}
	}
}
