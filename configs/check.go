package configs

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

func under(dir, file string) string {
	if file == "" || filepath.IsAbs(file) || strings.HasPrefix(file, "data:") {
		return file
	}
	return filepath.Join(dir, file)
}

// Absolute returns a path that means the same from everywhere.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// paths makes file names independent of the working directory.
func (l *Loaded) paths(dir string) {
	path := func(file string) string {
		file = under(dir, file)
		if file != "" && !strings.HasPrefix(file, "data:") {
			l.Files = append(l.Files, file)
		}
		return file
	}
	for _, p := range []*string{
		&l.Status.Icon, &l.TLS.Certificate, &l.TLS.Key, &l.TLS.ACME.RootCA, &l.Bedrock.KeyFile,
		&l.State.CredentialsFile, &l.State.RootCA, &l.State.Certificate, &l.State.Key,
	} {
		*p = path(*p)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Hosts)) {
		h := l.Hosts[name]
		h.Icon = path(h.Icon)
		l.Hosts[name] = h
	}
	l.Voice.Sounds = under(dir, l.Voice.Sounds) // its files are no part of the configuration
}

// secrets reads the secret files and completes servers from the global forwarding.
func (l *Loaded) secrets(p *problems, dir string) {
	read := func(key string, secret *Secret, file string) {
		if file == "" || *secret != "" {
			return
		}
		file = under(dir, file)
		l.Files = append(l.Files, file)
		b, err := os.ReadFile(file)
		if err != nil {
			p.bad(key, "cannot read the secret: %w", err)
			*secret = hidden // there is one
			return
		}
		p.warn(readable(file, "the secret"))
		*secret = Secret(strings.TrimRight(string(b), "\r\n"))
	}
	read("forwarding.secret-file", &l.Forwarding.Secret, l.Forwarding.SecretFile)
	read("state.password-file", &l.State.Password, l.State.PasswordFile)
	read("state.token-file", &l.State.Token, l.State.TokenFile)
	read("rcon.password-file", &l.RCON.Password, l.RCON.PasswordFile)
	for _, key := range slices.Sorted(maps.Keys(l.Rooms.Declared)) {
		r := l.Rooms.Declared[key]
		read("rooms.declared."+key+".token-file", &r.Token, r.TokenFile)
		l.Rooms.Declared[key] = r
	}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		read("servers."+name+".secret-file", &s.Secret, s.SecretFile)
		if s.Forwarding == "" {
			s.Forwarding = l.Forwarding.Mode
		}
		if s.Secret == "" {
			s.Secret = l.Forwarding.Secret
		}
		l.Servers[name] = s
	}
}

// CheckAddress returns what keeps a text from being the host:port of a listener or a server.
func CheckAddress(value string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%q is no address: write host:port", value)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q has no usable port", value)
	}
	if strings.ContainsAny(host, " /") {
		return fmt.Errorf("%q has no usable host", value)
	}
	return nil
}

// check finds the mistakes, section by section.
func (l *Loaded) check(p *problems) {
	p.address("listen", l.Listen)
	p.link("session-server", l.SessionServer)
	l.checkServers(p)
	l.checkTry(p)
	l.checkFallback(p)
	l.checkCommands(p)
	l.checkPlugins(p)
	l.checkState(p)
	l.checkBedrock(p)
	l.checkHosts(p)
	l.checkStatus(p)
	l.checkVoice(p)
	l.checkNetworks(p)
	l.checkRCON(p)
	l.checkRooms(p)
	l.checkWalk(p)
	l.checkLimits(p)
	l.checkTimeouts(p)
	p.oneOf("log.level", l.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", l.Log.Format, "text", "json")
}

// checkServers checks where servers are and how they learn who a player is.
func (l *Loaded) checkServers(p *problems) {
	p.oneOf("forwarding.mode", l.Forwarding.Mode, forwardings...)
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s, key := l.Servers[name], "servers."+name
		if strings.EqualFold(name, LimboName) {
			p.bad(key, "the name %q belongs to the built-in world: choose another", LimboName)
		}
		if s.Address == "" {
			p.bad(key, "has no address: add address: host:port")
		} else {
			p.reachable(key+".address", s.Address)
		}
		if s.Forwarding != l.Forwarding.Mode {
			p.oneOf(key+".forwarding", s.Forwarding, forwardings...)
		}
		if s.Visibility != "" {
			p.oneOf(key+".visibility", s.Visibility, "seen", "tab-list", "everyone")
		}
		if s.Bodies != "" {
			p.oneOf(key+".missing-bodies", s.Bodies, "learn", "hide", "ignore")
		}
		if (s.Forwarding == "modern" || s.Forwarding == "bungeeguard") && s.Secret == "" {
			p.bad(key, "%s forwarding needs the secret that the backend has: set secret-file here or under forwarding", s.Forwarding)
		}
		if s.Forwarding == "legacy" && public(s.Address) {
			p.warn(fmt.Sprintf("server %s uses legacy forwarding on a public address: anybody who reaches %s directly can pretend to be anybody; firewall it or use modern", name, s.Address))
		}
	}
}

var forwardings = []string{"none", "legacy", "bungeeguard", "modern"}

// checkTry checks the list of servers for newcomers.
func (l *Loaded) checkTry(p *problems) {
	if len(l.Try) == 0 {
		p.bad("try", "is empty: name at least one server, for instance %s", LimboName)
	}
	l.known(p, "try", l.Try)
}

// known checks that names are names of servers.
func (l *Loaded) known(p *problems, key string, names []string) {
	for _, name := range names {
		if _, ok := l.server(name); !ok {
			p.bad(key, "there is no server %q%s", name, didYouMean(name, append(slices.Sorted(maps.Keys(l.Servers)), LimboName)))
		}
	}
}

// checkStatus checks the server list entry.
func (l *Loaded) checkStatus(p *problems) {
	p.oneOf("status.sample", l.Status.Sample, "off", "players", "lines")
	if l.Status.MaxPlayers < 0 {
		p.bad("status.max-players", "must not be negative")
	}
}

// checkNetworks checks who may connect how, and to what.
func (l *Loaded) checkNetworks(p *problems) {
	l.TLS.check(p)
	p.networks("proxy-protocol.trusted", l.Proxy.Trusted)
	if l.Proxy.Required && len(l.Proxy.Trusted) == 0 {
		p.bad("proxy-protocol.required", "nobody could connect: name the load balancers under trusted")
	}
	p.networks("http-proxies", l.HTTPProxies)
	p.networks("admin.networks", l.Admin.Networks)
	for _, h := range l.Admin.Hosts {
		if h == "" || strings.ContainsAny(h, "/: ") {
			p.bad("admin.hosts", "%q is no host name: write it without http:// and port, as prometheus.example.net", h)
		}
	}
}

// checkLimits checks what strangers can cost, and compression.
func (l *Loaded) checkLimits(p *problems) {
	p.networks("limits.exempt", l.Limits.Exempt)
	if t := l.Compression.Threshold; t < -1 || t >= 1<<21 {
		p.bad("compression.threshold", "%d: -1 to 2097151 bytes", t)
	}
	if v := l.Compression.Level; v < 1 || v > 9 {
		p.bad("compression.level", "%d: 1 to 9", v)
	}
	p.rate("limits.connections", l.Limits.Connections)
	p.rate("limits.logins", l.Limits.Logins)
	p.rate("limits.status", l.Limits.Status)
	p.rate("limits.bungeecord", l.Limits.BungeeCord)
	if l.Limits.Pending < 1 {
		p.bad("limits.pending", "must be at least 1")
	}
	if l.Limits.HTTP < 16 {
		p.bad("limits.http", "must be at least 16")
	}
	if n := l.Limits.PluginMessage; n < 1024 || n > 2_000_000 {
		p.bad("limits.plugin-message", "%d: 1024 to 2000000 bytes", n)
	}
}

// checkTimeouts checks that every wait ends, and none at once.
func (l *Loaded) checkTimeouts(p *problems) {
	for f, v := range reflect.ValueOf(l.Timeouts).Fields() {
		if d := time.Duration(v.Int()); d < 100*time.Millisecond || d > time.Hour {
			p.bad("timeouts."+f.Tag.Get("yaml"), "%v: 100ms to 1h", d)
		}
	}
}

// server finds a name without regard to case; limbo is always there.
func (c *Config) server(name string) (Server, bool) {
	for n, s := range c.Servers {
		if strings.EqualFold(n, name) {
			return s, true
		}
	}
	return Server{}, strings.EqualFold(name, LimboName)
}

// public tells whether an address can be reached from elsewhere, as far as its text tells.
func public(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
}
