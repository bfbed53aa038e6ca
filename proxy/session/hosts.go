package session

import (
	"strings"

	"github.com/earshot-mc/earshot/proxy/status"
)

// Host holds the settings for one host name, in place of everybody's.
type Host struct {
	// Name is a host name, such as survival.example.net; with *. in front it stands for all names below it; * alone for
	// all names, and for none. Case and a dot at the end do not matter. The most specific name decides: an exact one,
	// then the longest.
	Name string

	Refuse bool           // nobody gets in by this name, and nobody is told what is here
	Lite   []string       // names of servers: the connection goes on as it is, to one of them that can be reached
	Try    []string       // in place of Settings.Try, if it is not empty
	Status *status.Status // in place of Settings.Status, if it is not nil
}

// hosts finds a Host by the name a client typed.
type hosts struct {
	exact map[string]*Host
	below map[string]*Host // by what follows the star, so .example.net; everything: ""
}

func newHosts(list []Host) (h hosts) {
	h = hosts{map[string]*Host{}, map[string]*Host{}}
	for i := range list {
		name := strings.ToLower(strings.TrimRight(list[i].Name, "."))
		if rest, any := strings.CutPrefix(name, "*"); any {
			h.below[rest] = &list[i]
		} else {
			h.exact[name] = &list[i]
		}
	}
	return h
}

// find returns the most specific entry for a cleaned name, nil when there is none.
func (h hosts) find(name string) *Host {
	if e := h.exact[name]; e != nil {
		return e
	}
	if len(h.below) == 0 {
		return nil
	}
	for rest := name; ; rest = rest[1:] {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return h.below[""]
		}
		rest = rest[dot:]
		if e := h.below[rest]; e != nil && len(rest) < len(name) {
			return e
		}
	}
}

// noHost holds the settings of names that have none of their own.
var noHost Host

// byHost returns the settings of the client's host name.
func (s *Session) byHost() *Host {
	if h := s.set().byName.find(s.client.host); h != nil {
		return h
	}
	return &noHost
}

// tryList returns the names of the servers to offer the player.
func (s *Session) tryList() []string {
	if list := s.byHost().Try; len(list) > 0 {
		return list
	}
	return s.set().Try
}
