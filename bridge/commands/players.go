package commands

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

type arg = command.Arg[Source]

func (c *Commands) playerCommands() []command.Command[Source] {
	who := arg{Name: "player|all|current|+server", Kind: command.Token, Suggest: c.suggestTargets}
	all := []command.Command[Source]{
		{Name: "server", Args: []arg{{Name: "server", Kind: command.Server, Optional: true}}, Run: c.server},
		{Name: "glist", Args: []arg{{Name: "all|server", Kind: command.Server, Optional: true, Suggest: suggest("all")}}, Run: c.glist},
		{Name: "find", Args: []arg{{Name: "player", Kind: command.Player}}, Run: c.find},
		{Name: "send", Args: []arg{who, {Name: "server", Kind: command.Server}}, Run: c.send},
		{Name: "alert", Args: []arg{{Name: "message", Kind: command.Greedy}}, Run: c.alert},
		{Name: "ping", Parts: []string{Permission("ping.others")}, Args: []arg{{Name: "player", Kind: command.Player, Optional: true}}, Run: c.ping},
		{Name: "transfer", Args: []arg{who, {Name: "host:port", Kind: command.Token}}, Run: c.transfer},
	}
	if len(c.cfg.Hubs) > 0 {
		all = append(all, command.Command[Source]{Name: "hub", Run: c.hub})
	}
	return all
}

func suggest(words ...string) func(Source, []string) []packet.Suggestion {
	return func(Source, []string) []packet.Suggestion {
		out := make([]packet.Suggestion, len(words))
		for i, w := range words {
			out[i].Text = w
		}
		return out
	}
}

// servers returns the servers that src may join, in the order in which to show them.
func (c *Commands) servers(src Source) []Server {
	return slices.DeleteFunc(slices.Clone(c.cfg.Network.Servers()), func(s Server) bool { return !mayJoin(src, s) })
}

func mayJoin(src Source, s Server) bool { return !s.Restricted || src.Allowed(Enter(s.Name)) }

// findServer finds a server that src may join, by the name it is registered under.
func (c *Commands) findServer(src Source, name string) (Server, error) {
	s, err := c.anyServer(src, name)
	if err == nil && !mayJoin(src, s) {
		return Server{}, fail("server-restricted", "server", s.Name, "permission", Enter(s.Name))
	}
	return s, err
}

// anyServer finds a server, also one that the source may not join.
func (c *Commands) anyServer(src Source, name string) (Server, error) {
	for _, s := range c.cfg.Network.Servers() {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
	}
	var all []string
	for _, s := range c.servers(src) {
		all = append(all, s.Name)
	}
	return Server{}, fail("no-server", "server", name, "servers", strings.Join(all, ", "))
}

func (c *Commands) findPlayer(name string) (Player, error) {
	if p, ok := c.cfg.Network.Player(name); ok {
		return p, nil
	}
	return nil, fail("no-player", "player", name)
}

// shown returns the players that src may know about.
func (c *Commands) shown(src Source) []Player {
	if p := src.Player(); p != nil {
		return c.cfg.Network.Shown(p)
	}
	return c.cfg.Network.Players()
}

// on sorts players by their servers, whose names are in lower case, and by their own names.
func on(players []Player) map[string][]Player {
	out := map[string][]Player{}
	for _, p := range players {
		key := strings.ToLower(p.Server())
		out[key] = append(out[key], p)
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Player) int { return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())) })
	}
	return out
}

// counts returns the number of players on each server, by its name in lower case. It leaves out players that src may
// not know about.
func (c *Commands) counts(src Source) map[string]int {
	out := map[string]int{}
	for _, p := range c.shown(src) {
		out[strings.ToLower(p.Server())]++
	}
	return out
}

func here(src Source, server string) bool {
	return src.Player() != nil && strings.EqualFold(src.Player().Server(), server)
}

// hover returns the text to show about a server.
func (c *Commands) hover(src Source, s Server, count map[string]int) packet.Text {
	n := strconv.Itoa(count[strings.ToLower(s.Name)])
	switch {
	case here(src, s.Name):
		return c.text(src, "server-hover-on", "count", n)
	case s.Down:
		return c.text(src, "server-hover-off")
	case s.Draining:
		return c.text(src, "server-hover-draining", "count", n)
	}
	return c.text(src, "server-hover", "count", n)
}

func (c *Commands) server(_ context.Context, src Source, args []string) error {
	if len(args) == 0 {
		c.listServers(src)
		return nil
	}
	if src.Player() == nil {
		return fail("player-only")
	}
	s, err := c.findServer(src, args[0])
	if err != nil {
		return err
	}
	return c.move(src, s)
}

// move takes src itself to a server.
func (c *Commands) move(src Source, s Server) error {
	on := here(src, s.Name)
	if s.Draining && !on && !src.Allowed(Permission("earshot.drain")) { // a player who drains may look
		return fail("draining", "server", s.Name)
	}
	if err := src.Player().Connect(s.Name); err != nil { // to the same server when it has a new address
		if on {
			return fail("connected", "server", s.Name)
		}
		return err
	}
	c.answer(src, "connecting", "server", s.Name)
	return nil
}

// listServers shows where src is and where it can go: the names show more, and move a player who clicks on them.
func (c *Commands) listServers(src Source) {
	if p := src.Player(); p != nil && p.Server() != "" {
		c.answer(src, "server-on", "server", p.Server())
	} else if p != nil {
		c.answer(src, "server-none")
	}
	protocol, count := protocolOf(src), c.counts(src)
	line := []packet.Text{c.text(src, "server-list")}
	for i, s := range c.servers(src) {
		if i > 0 {
			line = append(line, c.text(src, "server-separator"))
		}
		k, click := key("server-entry"), "/server "+s.Name
		if here(src, s.Name) {
			k, click = "server-here", ""
		} else if s.Down {
			k = "server-down"
		} else if s.Draining {
			k = "server-draining"
		}
		line = append(line, clickable(protocol, c.text(src, k, "server", s.Name), c.hover(src, s, count), click))
	}
	src.Send(join(protocol, line...))
}

// maxListed bounds the names of one server in an answer.
const maxListed = 100

func (c *Commands) glist(_ context.Context, src Source, args []string) error {
	shown := c.shown(src)
	on := on(shown)
	if len(args) == 1 && !strings.EqualFold(args[0], "all") {
		s, err := c.findServer(src, args[0])
		if err != nil {
			return err
		}
		c.listPlayers(src, s, on[strings.ToLower(s.Name)], true)
		return nil
	}
	total := len(shown)
	for _, s := range c.cfg.Network.Servers() {
		if !mayJoin(src, s) {
			total -= len(on[strings.ToLower(s.Name)])
			continue
		}
		c.listPlayers(src, s, on[strings.ToLower(s.Name)], len(args) == 1)
	}
	c.answer(src, "glist-total", "count", strconv.Itoa(total))
	return nil
}

// listPlayers shows how many players a server has, by name if named, and its condition.
func (c *Commands) listPlayers(src Source, s Server, list []Player, named bool) {
	n := strconv.Itoa(len(list))
	line := []packet.Text{c.text(src, "glist-server", "server", s.Name, "count", n)}
	if named && len(list) > 0 {
		line[0] = c.text(src, "glist-names", "server", s.Name, "count", n, "names", c.nameList(src, list))
	}
	if s.Down {
		line = append(line, c.text(src, "glist-down"))
	}
	if s.Draining {
		line = append(line, c.text(src, "glist-draining"))
	}
	src.Send(join(protocolOf(src), line...))
}

// nameList returns the names of list, as many as fit.
func (c *Commands) nameList(src Source, list []Player) string {
	var names []string
	for _, p := range list[:min(len(list), maxListed)] {
		name := p.Name()
		if p.Relayed() {
			name = c.text(src, "glist-relayed", "player", name, "version", strconv.Itoa(int(p.Protocol()))).String()
		}
		names = append(names, name)
	}
	joined := strings.Join(names, ", ")
	if more := len(list) - maxListed; more > 0 {
		joined = c.text(src, "glist-more", "names", joined, "count", strconv.Itoa(more)).String()
	}
	return joined
}

func (c *Commands) find(_ context.Context, src Source, args []string) error {
	p, err := c.findPlayer(args[0])
	if err != nil {
		return err
	}
	if p.Server() == "" {
		return fail("find-none", "player", p.Name())
	}
	for _, s := range c.cfg.Network.Servers() {
		if strings.EqualFold(s.Name, p.Server()) && !mayJoin(src, s) {
			return fail("find-restricted", "player", p.Name())
		}
	}
	c.answer(src, "find", "player", p.Name(), "server", p.Server())
	return nil
}

// suggestTargets completes the words that stand for several players.
func (c *Commands) suggestTargets(src Source, _ []string) []packet.Suggestion {
	words := []string{"all"}
	if src.Player() != nil {
		words = append(words, "current")
	}
	for _, s := range c.servers(src) {
		words = append(words, "+"+s.Name)
	}
	return append(names{c}.Players(src), suggest(words...)(src, nil)...)
}

// targets returns the players that word means: one by name, all, current (those on src's server), +server or
// server:server. A player's name goes before any of these.
func (c *Commands) targets(src Source, word string) ([]Player, error) {
	if p, ok := c.cfg.Network.Player(word); ok {
		return []Player{p}, nil
	}
	server, named := strings.CutPrefix(word, "+")
	if !named {
		server, named = strings.CutPrefix(word, "server:")
	}
	switch {
	case named:
		s, err := c.findServer(src, server)
		if err != nil {
			return nil, err
		}
		server = s.Name
	case strings.EqualFold(word, "all"):
		return c.cfg.Network.Players(), nil
	case strings.EqualFold(word, "current"):
		if src.Player() == nil {
			return nil, fail("player-only")
		}
		server = src.Player().Server()
	default:
		return nil, fail("no-player", "player", word)
	}
	return on(c.cfg.Network.Players())[strings.ToLower(server)], nil
}

func (c *Commands) send(_ context.Context, src Source, args []string) error {
	list, err := c.targets(src, args[0])
	if err != nil {
		return err
	}
	s, err := c.findServer(src, args[1])
	if err != nil {
		return err
	}
	moved, failed := 0, error(nil)
	for _, p := range list {
		if err := p.Connect(s.Name); err != nil {
			if !strings.EqualFold(p.Server(), s.Name) {
				failed = err
			}
			continue
		}
		moved++
		if own := src.Player(); own == nil || own.ID() != p.ID() {
			p.SendChat(c.cfg.Texts.text(p.Locale(), "sent", "sender", src.Name(), "server", s.Name))
		}
	}
	switch {
	case moved > 0:
		c.answer(src, "send", "server", s.Name, "count", strconv.Itoa(moved))
		return nil
	case failed != nil:
		return failed
	case len(list) == 1:
		return fail("connected-other", "player", list[0].Name(), "server", s.Name)
	}
	return fail("send-none", "server", s.Name)
}

// hub takes a player to the first of the hubs that is up. A player in one of them stays there.
func (c *Commands) hub(_ context.Context, src Source, _ []string) error {
	if src.Player() == nil {
		return fail("player-only")
	}
	if i := slices.IndexFunc(c.cfg.Hubs, func(h string) bool { return here(src, h) }); i >= 0 {
		if s, err := c.findServer(src, c.cfg.Hubs[i]); err == nil && c.move(src, s) == nil {
			return nil // it has another address now
		}
		return fail("hub-here")
	}
	for _, h := range c.cfg.Hubs {
		if s, err := c.findServer(src, h); err == nil && !s.Down && !s.Draining {
			return c.move(src, s)
		}
	}
	return fail("hub-none")
}

func (c *Commands) alert(_ context.Context, _ Source, args []string) error {
	message, err := packet.ParseText(args[0])
	if err != nil {
		return err
	}
	for _, p := range c.cfg.Network.Players() {
		p.SendChat(join(p.Protocol(), c.cfg.Texts.text(p.Locale(), "alert"), message))
	}
	if c.cfg.Alert != nil {
		c.cfg.Alert(join(proto.Max, c.cfg.Texts.text("", "alert"), message))
	}
	return nil
}

func (c *Commands) ping(_ context.Context, src Source, args []string) error {
	p := src.Player()
	k, node := key("ping"), "ping"
	if len(args) > 0 {
		other, err := c.findPlayer(args[0])
		if err != nil {
			return err
		}
		if p == nil || other.ID() != p.ID() {
			k, node = "ping-other", "ping.others"
		}
		p = other
	}
	if !src.Allowed(Permission(node)) {
		return fail("not-allowed")
	}
	if p == nil {
		return fail("player-only")
	}
	if p.Ping() == 0 {
		return fail("ping-unknown", "player", p.Name())
	}
	c.answer(src, k, "player", p.Name(), "ping", strconv.FormatInt(max(p.Ping().Milliseconds(), 1), 10))
	return nil
}

// defaultPort is where the game looks when an address has no port.
const defaultPort = 25565

func parseAddress(s string) (host string, port uint16, err error) {
	bad := fail("transfer-address", "address", s)
	if at, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return at.String(), defaultPort, nil
	}
	if at, err := netip.ParseAddrPort(s); err == nil && at.Port() != 0 {
		return at.Addr().String(), at.Port(), nil
	}
	host, digits, with := strings.Cut(s, ":")
	port = defaultPort
	if with {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			return "", 0, bad
		}
		port = uint16(n)
	}
	if host == "" || len(host) > 253 || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" {
		return "", 0, bad
	}
	return host, port, nil
}

func (c *Commands) transfer(_ context.Context, src Source, args []string) error {
	list, err := c.targets(src, args[0])
	if err != nil {
		return err
	}
	host, port, err := parseAddress(args[1])
	if err != nil {
		return err
	}
	var old []Player
	moved, failed := 0, error(nil)
	for _, p := range list {
		if _, can := proto.Closest(p.Protocol()).ID(proto.Play, proto.Clientbound, proto.Transfer); !can {
			old = append(old, p)
		} else if err := p.Transfer(host, port); err != nil {
			failed = err
		} else {
			moved++
		}
	}
	if len(old) > 0 {
		c.answer(src, "transfer-old", "names", c.nameList(src, old))
	}
	switch {
	case moved > 0:
		c.answer(src, "transfer", "address", args[1], "count", strconv.Itoa(moved))
	case failed != nil:
		return failed
	case len(old) == 0:
		return fail("transfer-none")
	}
	return nil
}
