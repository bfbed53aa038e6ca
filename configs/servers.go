package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkPlugins checks what servers may do to players, and who may join them.
func (l *Loaded) checkPlugins(p *problems) {
	may := func(key, value string) { p.oneOf(key, value, "allow", "refuse") }
	p.oneOf("bungeecord", l.BungeeCord, "full", "self", "off")
	may("server-transfers", l.ServerTransfers)
	may("server-cookies", l.ServerCookies)
	var full []string
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s, key := l.Servers[name], "servers."+name
		mode := l.BungeeCord
		if s.BungeeCord != "" {
			mode = s.BungeeCord
			p.oneOf(key+".bungeecord", mode, "full", "self", "off")
		}
		if mode == "full" {
			full = append(full, name)
		}
		if s.Transfers != "" {
			may(key+".transfers", s.Transfers)
		}
		if s.Cookies != "" {
			may(key+".cookies", s.Cookies)
		}
	}
	if len(full) > 0 {
		p.warn(fmt.Sprintf("bungeecord: full: plugins on %s may move, message and kick the players of every server", strings.Join(full, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(l.Hosts)) {
		for _, server := range l.Hosts[name].Lite {
			if s, _ := l.server(server); s.Restricted {
				p.bad(`hosts."`+name+`".lite`, "server %s is restricted, and players on lite routes have no names to have permissions by: remove one of the two", server)
			}
		}
	}
}
