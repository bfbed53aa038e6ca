package network

import (
	"cmp"
	"fmt"
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

// proxySettings are what the proxy goes by.
func proxySettings(l *configs.Loaded) (s proxy.Settings, err error) {
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
			return s, fmt.Errorf("servers.%s.forwarding: %w", name, err)
		}
		b := backend.Server{
			Name: name, Address: c.Address, Forwarding: mode, Secret: []byte(c.Secret), SendProxy: c.SendProxy, Floodgate: c.Floodgate,
			Restricted: c.Restricted, NoTransfers: cmp.Or(c.Transfers, l.ServerTransfers) == "refuse", NoCookies: cmp.Or(c.Cookies, l.ServerCookies) == "refuse",
		}
		if err := b.Validate(); err != nil {
			return s, fmt.Errorf("servers.%s: %w", name, err)
		}
		s.Servers = append(s.Servers, b)
	}
	if err := fallback(&s.Settings, l); err != nil {
		return s, err
	}
	s.Auth.SessionURLs = []string{l.SessionServer}
	s.Auth.Timeout = time.Duration(t.SessionServer)
	if s.Status, err = statusSettings("status", l.Status); err != nil {
		return s, err
	}
	s.PingCache = time.Duration(l.Status.Cache)
	if s.ByHost, err = hostSettings(&l.Config); err != nil {
		return s, err
	}
	s.Logins, s.Pings, s.Pending = rate(l.Limits.Logins), rate(l.Limits.Status), l.Limits.Pending
	s.Exempt, _ = configs.Prefixes(l.Limits.Exempt)
	if l.Bedrock.KeyFile != "" {
		s.Bedrock = &session.Bedrock{Prefix: l.Bedrock.Prefix}
		s.Bedrock.Trusted, _ = configs.Prefixes(l.Bedrock.Trusted)
		if s.Bedrock.Key, err = floodgate.LoadKey(l.Bedrock.KeyFile); err != nil {
			return s, fmt.Errorf("bedrock.key-file: %w", err)
		}
		// Many players may come from there, and Geyser asks for the server list on its own.
		s.Exempt = append(s.Exempt, s.Bedrock.Trusted...)
	}
	return s, nil
}

// unknownVersions is what becomes of clients of versions that nobody knows.
func unknownVersions(s string) session.Unknown {
	return map[string]session.Unknown{"pass": session.UnknownPass, "snapshots": session.UnknownSnapshots, "refuse": session.UnknownRefuse}[s]
}

// fallback puts how players find servers, and how these are judged, into settings.
func fallback(s *session.Settings, l *configs.Loaded) error {
	strategy, err := session.ParseStrategy(l.Fallback.Strategy)
	if err != nil {
		return fmt.Errorf("fallback.strategy: %w", err)
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

// statusSettings are what the server list shows, by the section under key.
func statusSettings(key string, c configs.Status) (s proxy.Status, err error) {
	s.MaxPlayers = c.MaxPlayers
	if s.MOTD, err = parse(key+".motd", c.MOTD); err != nil {
		return s, err
	}
	if s.Icon, err = status.LoadIcon(c.Icon); err != nil {
		return s, fmt.Errorf("%s.icon: %w", key, err)
	}
	s.HideSample = c.Sample == "off"
	if c.Sample == "lines" {
		for _, line := range c.Lines {
			x, err := parse(key+".sample-lines", line)
			if err != nil {
				return s, err
			}
			s.Lines = append(s.Lines, x)
		}
	}
	if !slices.Equal(c.Passthrough, []string{"none"}) {
		s.Pass, err = status.ParseFields(c.Passthrough) // checked by Load
	}
	return s, err
}

// hostSettings are what differs by host name.
func hostSettings(c *configs.Config) (all []proxy.Host, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		h := proxy.Host{Host: session.Host{Name: name, Try: c.Hosts[name].Try, Lite: c.Hosts[name].Lite}}
		if shown, ok := c.HostStatus(c.Hosts[name]); ok {
			s, err := statusSettings("hosts."+name, shown)
			if err != nil {
				return nil, err
			}
			h.Status = &s
		}
		all = append(all, h)
	}
	if c.UnknownHosts == "refuse" {
		all = append(all, proxy.Host{Host: session.Host{Name: "*", Refuse: true}})
	}
	return all, nil
}
