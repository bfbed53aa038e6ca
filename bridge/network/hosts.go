package network

import (
	"fmt"
	"maps"
	"slices"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

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
