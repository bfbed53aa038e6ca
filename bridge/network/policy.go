package network

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// policy holds the rules for commands, and for messages of servers.
type policy struct {
	hubs    []string
	aliases map[string][]string
	texts   map[string]map[string]string
	record  bool         // log the commands and who gave them
	talk    bool         // there is /voice
	page    bool         // and a voice page
	welcome *packet.Text // to the built-in world; nil: a text of the table
	alone   bool         // there are no servers
	options command.Options
	servers []commands.Server
	modes   map[string]bungee.Mode // by server, in lower case
	mode    bungee.Mode            // of all others
	budget  limit.Rate             // of each server's messages on BungeeCord's channel
	addrs   map[string]netip.AddrPort

	restricted map[string]bool // servers that take a permission to join, in lower case

	commands *commands.Commands // by [Network.compile]
}

func newPolicy(l *configs.Loaded, servers []backend.Server) (p policy, err error) {
	var wrong []error
	c := &l.Commands
	p = policy{
		hubs: c.Hubs, aliases: c.Aliases, texts: l.Texts, record: c.Record, talk: l.Voice.Enabled, page: l.Voice.Page,
		modes: map[string]bungee.Mode{}, addrs: map[string]netip.AddrPort{}, restricted: map[string]bool{},
		options: command.Options{Commands: rate(c.Rate), Suggestions: rate(c.Completions), KickAfter: c.KickAfter, SuggestionsKickAfter: c.CompletionsKickAfter, Strict: c.Strict, Quiet: !c.Announce},
	}
	p.budget = rate(l.Limits.BungeeCord)
	p.alone = len(l.Servers) == 0
	if m := l.Limbo.Message; m == "off" {
		p.welcome = &packet.Text{}
	} else if m != "" {
		text, err := parse("limbo.message", m)
		wrong = append(wrong, err)
		p.welcome = &text
	}
	p.mode, err = bungee.ParseMode(l.BungeeCord)
	wrong = append(wrong, at("bungeecord", err))
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		if s.BungeeCord == "" {
			continue
		}
		p.modes[strings.ToLower(name)], err = bungee.ParseMode(s.BungeeCord)
		wrong = append(wrong, at("servers."+name+".bungeecord", err))
	}
	p.list(l.Try, servers)
	return p, errors.Join(wrong...)
}

// list orders the servers as they are shown: first those of the try list, then by name. The built-in world is one of
// them only where players are sent to it.
func (p *policy) list(try []string, servers []backend.Server) {
	place := func(name string) int {
		at := slices.IndexFunc(try, func(s string) bool { return strings.EqualFold(s, name) })
		if at < 0 {
			return len(try)
		}
		return at
	}
	sorted := slices.Clone(servers)
	if place(configs.LimboName) < len(try) {
		sorted = append(sorted, backend.Server{Name: configs.LimboName})
	}
	slices.SortFunc(sorted, func(a, b backend.Server) int {
		return cmp.Or(cmp.Compare(place(a.Name), place(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range sorted {
		p.servers = append(p.servers, commands.Server{Name: s.Name, Restricted: s.Restricted})
		if s.Restricted {
			p.restricted[strings.ToLower(s.Name)] = true
		}
		if at, err := netip.ParseAddrPort(s.Address); err == nil {
			p.addrs[s.Name] = at
		}
	}
}

// modeOf returns what a server may do on BungeeCord's channel.
func (p *policy) modeOf(server string) bungee.Mode {
	if m, ok := p.modes[strings.ToLower(server)]; ok {
		return m
	}
	return p.mode
}
