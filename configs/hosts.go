package configs

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Host holds the settings for one host name. Left-out settings are as for everybody.
type Host struct {
	Try         []string `yaml:"try,omitempty"`
	Lite        []string `yaml:"lite,omitempty"` // servers that get the connection as it is
	MOTD        string   `yaml:"motd,omitempty"`
	Icon        string   `yaml:"icon,omitempty"`
	MaxPlayers  int      `yaml:"max-players,omitempty"`
	Sample      string   `yaml:"sample,omitempty"`
	Lines       []string `yaml:"sample-lines,omitempty"`
	Passthrough []string `yaml:"passthrough,omitempty"`
}

// StatusFields are the parts of a status that servers can be asked for; none alone switches that off.
var StatusFields = []string{"players", "sample", "description", "favicon", "version", "mods", "all", "none"}

// HostStatus returns the server list entry of a host name. ok is false when that is the same as for everybody.
func (c *Config) HostStatus(h Host) (s Status, ok bool) {
	s = c.Status
	for _, x := range []struct{ own, all *string }{{&h.MOTD, &s.MOTD}, {&h.Icon, &s.Icon}, {&h.Sample, &s.Sample}} {
		if *x.own != "" {
			*x.all, ok = *x.own, true
		}
	}
	if h.MaxPlayers != 0 {
		s.MaxPlayers, ok = h.MaxPlayers, true
	}
	for _, x := range []struct{ own, all *[]string }{{&h.Lines, &s.Lines}, {&h.Passthrough, &s.Passthrough}} {
		if len(*x.own) > 0 {
			*x.all, ok = *x.own, true
		}
	}
	if len(h.Lines) > 0 && h.Sample == "" {
		s.Sample = "lines"
	}
	if len(h.Lite) > 0 && len(h.Passthrough) == 0 {
		s.Passthrough = []string{"all"}
	}
	// The host also decides which servers are asked.
	return s, ok || len(s.Passthrough) > 0 && (len(h.Try) > 0 || len(h.Lite) > 0)
}

// checkHosts checks the settings of host names, and the questions to servers.
func (l *Loaded) checkHosts(p *problems) {
	fields := func(key string, list []string) {
		for _, f := range list {
			p.oneOf(key, f, StatusFields...)
			if f == "none" && len(list) > 1 {
				p.bad(key, "none stands alone")
			}
		}
	}
	fields("status.passthrough", l.Status.Passthrough)
	if d := time.Duration(l.Status.Cache); d < 100*time.Millisecond || d > time.Hour {
		p.bad("status.passthrough-cache", "%v: 100ms to 1h", d)
	}
	p.oneOf("unknown-hosts", l.UnknownHosts, "accept", "refuse")
	p.oneOf("unknown-versions", l.NewerVersions, "pass", "snapshots", "refuse")
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(l.Hosts)) {
		h, key := l.Hosts[name], `hosts."`+name+`"`
		plain := strings.ToLower(strings.TrimRight(name, "."))
		if why := noHostName(plain); why != "" {
			p.bad(key, "%s", why)
		}
		if other, twice := seen[plain]; twice {
			p.bad(key, "is the same as %q", other)
		}
		seen[plain] = name
		if plain == "*" && l.UnknownHosts == "refuse" {
			p.bad(key, "leaves no unknown hosts to refuse: remove it, or unknown-hosts: refuse")
		}
		l.known(p, key+".try", h.Try)
		l.known(p, key+".lite", h.Lite)
		if len(h.Try) > 0 && len(h.Lite) > 0 {
			p.bad(key, "has both try and lite: players either log in here, or their connection goes on as it is")
		}
		for _, server := range h.Lite {
			switch s, _ := l.server(server); {
			case strings.EqualFold(server, LimboName):
				p.bad(key+".lite", "the built-in world cannot be reached without a login")
			case s.Forwarding == "legacy":
				p.warn(fmt.Sprintf("host %s: server %s uses legacy forwarding, but lite passes on whatever a client claims to be: "+
					"let it authenticate players itself, and set forwarding: none on it", name, server))
			case s.Forwarding != "none":
				p.warn(fmt.Sprintf("host %s: server %s gets nothing forwarded under lite: let it authenticate players itself, "+
					"and set forwarding: none on it", name, server))
			}
		}
		s, _ := l.HostStatus(h)
		p.oneOf(key+".sample", s.Sample, "off", "players", "lines")
		if h.MaxPlayers < 0 {
			p.bad(key+".max-players", "must not be negative")
		}
		fields(key+".passthrough", h.Passthrough)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		if itself(l.Listen, l.Servers[name].Address) {
			p.bad("servers."+name+".address", "is where Earshot listens itself")
		}
	}
}

// noHostName returns why nobody can come by a name.
func noHostName(name string) string {
	if _, err := netip.ParseAddr(name); err == nil || name == "*" {
		return ""
	}
	switch rest := strings.TrimPrefix(name, "*."); {
	case rest == "" || len(name) > 255:
		return "is no host name"
	case strings.Contains(rest, "*"):
		return "may have a * only for everything in front of the first dot"
	case strings.ContainsFunc(rest, func(r rune) bool { return r > '~' }):
		return "has letters that clients send in another form: write it as it is in the DNS, with xn--"
	case strings.ContainsFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}), strings.Contains("."+rest+".", ".."):
		return "is no host name: write it as players type it, without a port"
	}
	return ""
}

// itself reports whether a server's address is that of the proxy, as far as the texts tell: it would connect to itself
// until it runs out of sockets.
func itself(listen, server string) bool {
	host, port, err := net.SplitHostPort(server)
	own, ownPort, ownErr := net.SplitHostPort(listen)
	if err != nil || ownErr != nil || port != ownPort {
		return false
	}
	here := func(h string) bool {
		ip := net.ParseIP(h)
		return h == "" || h == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	}
	ip := net.ParseIP(own)
	return strings.EqualFold(host, own) || here(host) && (own == "" || own == "localhost" || ip != nil && ip.IsUnspecified())
}
