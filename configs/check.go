package configs

import (
	"fmt"
	"maps"
	"net"
	"net/url"
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
		&l.Status.Icon, &l.TLS.Certificate, &l.TLS.Key, &l.Bedrock.KeyFile,
		&l.State.CredentialsFile, &l.State.RootCA, &l.State.Certificate, &l.State.Key,
	} {
		*p = path(*p)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Hosts)) {
		h := l.Hosts[name]
		h.Icon = path(h.Icon)
		l.Hosts[name] = h
	}
	l.Voice.Sounds = under(dir, l.Voice.Sounds) // whose files are no part of the configuration
}

// secrets reads the secret files and fills in what servers take from the
// global forwarding.
func (l *Loaded) secrets(src *source, dir string) error {
	read := func(key string, secret *Secret, file string) error {
		if file == "" || *secret != "" {
			return nil
		}
		file = under(dir, file)
		l.Files = append(l.Files, file)
		b, err := os.ReadFile(file)
		if err != nil {
			return src.bad(key, "cannot read the secret: %w", err)
		}
		if w := readable(file, "the secret"); w != "" {
			l.Warnings = append(l.Warnings, w)
		}
		*secret = Secret(strings.TrimRight(string(b), "\r\n"))
		return nil
	}
	if err := read("forwarding.secret-file", &l.Forwarding.Secret, l.Forwarding.SecretFile); err != nil {
		return err
	}
	if err := read("state.password-file", &l.State.Password, l.State.PasswordFile); err != nil {
		return err
	}
	if err := read("state.token-file", &l.State.Token, l.State.TokenFile); err != nil {
		return err
	}
	for name, s := range l.Servers {
		if err := read("servers."+name+".secret-file", &s.Secret, s.SecretFile); err != nil {
			return err
		}
		if s.Forwarding == "" {
			s.Forwarding = l.Forwarding.Mode
		}
		if s.Secret == "" {
			s.Secret = l.Forwarding.Secret
		}
		l.Servers[name] = s
	}
	return nil
}

// CheckAddress says what keeps a text from being the host:port of a listener or a server.
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

func (l *Loaded) check(src *source) (warnings []string, err error) {
	bad := func(key, format string, args ...any) {
		if err == nil {
			err = src.bad(key, format, args...)
		}
	}
	oneOf := func(key, value string, words ...string) {
		if !slices.Contains(words, value) {
			bad(key, "%q is not one of %s", value, strings.Join(words, ", "))
		}
	}
	networks := func(key string, list []string) {
		all, perr := Prefixes(list)
		if perr != nil {
			bad(key, "%w", perr)
		}
		if w := trust(key, all); w != "" {
			warnings = append(warnings, w)
		}
	}
	address := func(key, value string) {
		if aerr := CheckAddress(value); aerr != nil {
			bad(key, "%w", aerr)
		}
	}
	link := func(key, value string) {
		u, uerr := url.Parse(value)
		if uerr != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			bad(key, "%q is no base URL: write http://host:port or https://host", value)
		}
	}

	address("listen", l.Listen)
	link("session-server", l.SessionServer)
	oneOf("forwarding.mode", l.Forwarding.Mode, "none", "legacy", "bungeeguard", "modern")
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s, key := l.Servers[name], "servers."+name
		if strings.EqualFold(name, LimboName) {
			bad(key, "the name %q belongs to the built-in world: choose another", LimboName)
		}
		if s.Address == "" {
			bad(key, "has no address: add address: host:port")
		} else {
			address(key+".address", s.Address)
			if _, port, perr := net.SplitHostPort(s.Address); perr == nil {
				if n, perr := net.LookupPort("tcp", port); perr == nil && n == 0 {
					bad(key+".address", "%q has port 0, where nobody can be reached: write the port that the server listens on", s.Address)
				}
			}
		}
		oneOf(key+".forwarding", s.Forwarding, "none", "legacy", "bungeeguard", "modern")
		if s.Visibility != "" {
			oneOf(key+".visibility", s.Visibility, "seen", "tab-list", "everyone")
		}
		if s.Bodies != "" {
			oneOf(key+".missing-bodies", s.Bodies, "learn", "hide", "ignore")
		}
		if (s.Forwarding == "modern" || s.Forwarding == "bungeeguard") && s.Secret == "" {
			bad(key, "%s forwarding needs the secret that the backend has: set secret-file here or under forwarding", s.Forwarding)
		}
		if s.Forwarding == "legacy" && public(s.Address) {
			warnings = append(warnings, fmt.Sprintf("server %s uses legacy forwarding on a public address: anybody who reaches %s directly can pretend to be anybody; firewall it or use modern", name, s.Address))
		}
	}
	if len(l.Try) == 0 {
		bad("try", "is empty: name at least one server, for instance %s", LimboName)
	}
	for _, name := range l.Try {
		if _, ok := l.server(name); !ok {
			bad("try", "there is no server %q%s", name, didYouMean(name, append(slices.Sorted(maps.Keys(l.Servers)), LimboName)))
		}
	}
	l.checkFallback(bad, oneOf)
	l.checkCommands(bad, oneOf)
	warnings = append(warnings, l.checkServers(bad, oneOf)...)
	l.checkState(bad)
	warnings = append(warnings, l.checkBedrock(bad)...)
	warnings = append(warnings, l.checkHosts(bad, oneOf)...)
	oneOf("status.sample", l.Status.Sample, "off", "players", "lines")
	if l.Status.MaxPlayers < 0 {
		bad("status.max-players", "must not be negative")
	}
	if l.Voice.PublicURL != "" {
		if _, uerr := BaseURL(l.Voice.PublicURL); uerr != nil {
			bad("voice.public-url", "%w", uerr)
		}
	}
	for _, o := range l.Voice.Origins {
		link("voice.allowed-origins", o)
		if u, uerr := url.Parse(o); uerr == nil && (strings.Trim(u.Path, "/") != "" || u.User != nil) {
			bad("voice.allowed-origins", "%q has a path, which browsers do not name: write %s://%s", o, u.Scheme, u.Host)
		}
	}
	rangeOK := func(key string, v float64) {
		if !(v >= 0 && v <= 1024) {
			bad(key, "%v is no range: 0 to 1024 blocks", v)
		}
	}
	rangeOK("voice.range", l.Voice.Range)
	for w, v := range l.Voice.Worlds {
		rangeOK("voice.worlds."+w, v)
	}
	oneOf("voice.spectators", l.Voice.Spectators, "nobody", "spectators", "everyone")
	l.Voice.check(bad)
	oneOf("voice.visibility", l.Voice.Visibility, "seen", "tab-list", "everyone")
	if (l.TLS.Certificate == "") != (l.TLS.Key == "") {
		bad("tls", "needs both certificate and key")
	}
	networks("proxy-protocol.trusted", l.Proxy.Trusted)
	if l.Proxy.Required && len(l.Proxy.Trusted) == 0 {
		bad("proxy-protocol.required", "nobody could connect: name the load balancers under trusted")
	}
	networks("http-proxies", l.HTTPProxies)
	networks("admin.networks", l.Admin.Networks)
	for _, h := range l.Admin.Hosts {
		if h == "" || strings.ContainsAny(h, "/: ") {
			bad("admin.hosts", "%q is no host name: write it without http:// and port, as prometheus.example.net", h)
		}
	}
	networks("limits.exempt", l.Limits.Exempt)
	if t := l.Compression.Threshold; t < -1 || t >= 1<<21 {
		bad("compression.threshold", "%d: -1 to 2097151 bytes", t)
	}
	if v := l.Compression.Level; v < 1 || v > 9 {
		bad("compression.level", "%d: 1 to 9", v)
	}
	for key, r := range map[string]Rate{"connections": l.Limits.Connections, "logins": l.Limits.Logins, "status": l.Limits.Status, "bungeecord": l.Limits.BungeeCord, "channels": l.Limits.Channels} {
		if !(r.PerSecond > 0) || r.Burst < 1 {
			bad("limits."+key, "per-second must be above 0 and burst at least 1")
		}
	}
	if l.Limits.Pending < 1 {
		bad("limits.pending", "must be at least 1")
	}
	if l.Limits.HTTP < 16 {
		bad("limits.http", "must be at least 16")
	}
	if n := l.Limits.PluginMessage; n < 1024 || n > 2_000_000 {
		bad("limits.plugin-message", "%d: 1024 to 2000000 bytes", n)
	}
	for f, v := range reflect.ValueOf(l.Timeouts).Fields() {
		if d := time.Duration(v.Int()); d < 100*time.Millisecond || d > time.Hour {
			bad("timeouts."+f.Tag.Get("yaml"), "%v: 100ms to 1h", d)
		}
	}
	oneOf("log.level", l.Log.Level, "debug", "info", "warn", "error")
	oneOf("log.format", l.Log.Format, "text", "json")
	return warnings, err
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

// public says whether an address can be reached from elsewhere, as far as its
// text tells.
func public(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
}
