package network

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/floodgate"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

// proxySettings returns the proxy's settings.
func proxySettings(l *configs.Loaded) (s proxy.Settings, err error) {
	var wrong []error
	note := func(key string, err error) { wrong = append(wrong, at(key, err)) }
	t := l.Timeouts
	s.Settings = session.Settings{
		Online: l.Online, AcceptTransfers: l.Transfers, BehindProxy: len(l.Proxy.Trusted) > 0, Unknown: unknownVersions(l.NewerVersions), HideAddresses: !l.Log.Addresses,
		Threshold: l.Compression.Threshold, Level: l.Compression.Level,
		MaxMessage: l.Limits.PluginMessage, Channels: rate(l.Limits.Channels), Brand: "Earshot", Try: l.Try, FinalReasons: l.Final, KeepPacks: l.KeepPacks,
		Timeouts: session.Timeouts{
			// The handshake gets as long again as its first byte had.
			Handshake: 2 * time.Duration(t.FirstByte), Login: time.Duration(t.Login), Read: time.Duration(t.Read), Write: time.Duration(t.Write),
			BackendDial: time.Duration(t.BackendDial), BackendLogin: time.Duration(t.BackendLogin), BackendConfig: time.Duration(t.BackendConfig),
			BackendJoin: time.Duration(t.BackendJoin), ConfigAnswer: time.Duration(t.ConfigAnswer),
		},
	}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		c := l.Servers[name]
		mode, err := backend.ParseMode(c.Forwarding)
		if err != nil {
			note("servers."+name+".forwarding", err)
			continue
		}
		b := backend.Server{
			Name: name, Address: c.Address, Forwarding: mode, Secret: []byte(c.Secret), SendProxy: c.SendProxy, Floodgate: c.Floodgate,
			Restricted: c.Restricted, NoTransfers: cmp.Or(c.Transfers, l.ServerTransfers) == "refuse", NoCookies: cmp.Or(c.Cookies, l.ServerCookies) == "refuse",
		}
		if err := b.Validate(); err != nil {
			note("servers."+name, err)
		}
		s.Servers = append(s.Servers, b)
	}
	wrong = append(wrong, fallback(&s.Settings, l))
	s.Auth.SessionURLs = []string{l.SessionServer}
	s.Auth.Timeout = time.Duration(t.SessionServer)
	s.Status, err = statusSettings(func(setting string) string { return "status." + setting }, l.Status)
	wrong = append(wrong, err)
	s.PingCache = time.Duration(l.Status.Cache)
	s.ByHost, err = hostSettings(&l.Config)
	wrong = append(wrong, err)
	s.Logins, s.Pings, s.Pending = rate(l.Limits.Logins), rate(l.Limits.Status), l.Limits.Pending
	s.Exempt, _ = configs.Prefixes(l.Limits.Exempt)
	if l.Bedrock.KeyFile != "" {
		s.Bedrock = &session.Bedrock{Prefix: l.Bedrock.Prefix}
		s.Bedrock.Trusted, _ = configs.Prefixes(l.Bedrock.Trusted)
		if s.Bedrock.Key, err = floodgate.LoadKey(l.Bedrock.KeyFile); err != nil {
			note("bedrock.key-file", err)
		}
		// Many players may come from there, and Geyser asks for the server list on its own.
		s.Exempt = append(s.Exempt, s.Bedrock.Trusted...)
	}
	return s, errors.Join(wrong...)
}

// unknownVersions returns the policy for clients of unknown versions.
func unknownVersions(s string) session.Unknown {
	return map[string]session.Unknown{"pass": session.UnknownPass, "snapshots": session.UnknownSnapshots, "refuse": session.UnknownRefuse}[s]
}

// fallback adds how players find servers, and how these are judged, to settings.
func fallback(s *session.Settings, l *configs.Loaded) error {
	strategy, err := session.ParseStrategy(l.Fallback.Strategy)
	if err != nil {
		return at("fallback.strategy", err)
	}
	f := l.Fallback
	s.Fallback = session.Fallback{
		Strategy: strategy, Attempts: f.Attempts, Within: time.Duration(f.Within), EndOnLoss: !f.AfterLoss, Stranded: !f.Return,
		Moves: limit.Rate{PerSecond: f.Moves, Burst: 1},
	}
	s.Health = health.Policy{Failures: l.Health.Failures, Interval: time.Duration(l.Health.Interval), Timeout: time.Duration(l.Health.Timeout)}
	s.TCPChecks = l.Health.Check == "tcp"
	return nil
}

// statusSettings returns the server list entry. key returns the path of a setting.
func statusSettings(key func(setting string) string, c configs.Status) (s proxy.Status, err error) {
	var wrong []error
	s.MaxPlayers = c.MaxPlayers
	s.MOTD, err = parse(key("motd"), c.MOTD)
	wrong = append(wrong, err)
	s.Icon, err = status.LoadIcon(c.Icon)
	wrong = append(wrong, at(key("icon"), err))
	s.HideSample = c.Sample == "off"
	if c.Sample == "lines" {
		for _, line := range c.Lines {
			x, err := parse(key("sample-lines"), line)
			wrong = append(wrong, err)
			s.Lines = append(s.Lines, x)
		}
	}
	if !slices.Equal(c.Passthrough, []string{"none"}) {
		s.Pass, err = status.ParseFields(c.Passthrough)
		wrong = append(wrong, at(key("passthrough"), err))
	}
	return s, errors.Join(wrong...)
}

// hostSettings returns the differences by host name.
func hostSettings(c *configs.Config) (all []proxy.Host, err error) {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		own := c.Hosts[name]
		h := proxy.Host{Host: session.Host{Name: name, Try: own.Try, Lite: own.Lite}}
		if shown, ok := c.HostStatus(own); ok {
			has := map[string]bool{"motd": own.MOTD != "", "icon": own.Icon != "", "sample-lines": len(own.Lines) > 0, "passthrough": len(own.Passthrough) > 0}
			s, err := statusSettings(func(setting string) string {
				if has[setting] {
					return `hosts."` + name + `".` + setting
				}
				return "status." + setting
			}, shown)
			wrong = append(wrong, err)
			h.Status = &s
		}
		all = append(all, h)
	}
	if c.UnknownHosts == "refuse" {
		all = append(all, proxy.Host{Host: session.Host{Name: "*", Refuse: true}})
	}
	return all, errors.Join(wrong...)
}
