package network

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/session"
)

// compileCommands makes the commands of a policy, and notes faults.
func (n *Network) compileCommands(p *policy, wrong *faults) {
	cfg := commands.Config{
		Network: operations{n}, Past: past{n}, Hubs: p.hubs, Aliases: p.aliases,
		Program: commands.Program{Version: n.opt.Version, Status: n.status, Reload: n.Reload, Dump: n.dump, Drain: n.drain, Shutdown: n.shutdown},
		Allowed: func(who commands.Player, permission string) bool { return n.players.allowed(who, permission) },
		Alert:   func(t packet.Text) { n.controller.log.Info("alert", "text", t.String()) },
	}
	var err error
	if cfg.Texts, err = commands.NewTexts(p.texts); err != nil {
		wrong.texts(err)
		cfg.Texts = nil
	}
	if p.talk {
		cfg.Voice = n.voices
		if p.page {
			cfg.Page = opener{n}
		}
	}
	if p.record {
		cfg.Log = n.controller.log
	}
	p.commands, err = commands.New(cfg)
	if stray := (*commands.StrayError)(nil); errors.As(err, &stray) {
		err = fmt.Errorf("%w%s", err, nearly(stray.Name, stray.Commands))
	}
	if err != nil {
		wrong.add(at("commands.aliases", err))
	}
}

// operations is the network as commands see it.
type operations struct{ n *Network }

func (o operations) Players() []commands.Player { return seen(o.n.parts.server.Players()) }

func (o operations) Shown(to commands.Player) []commands.Player { return seen(o.n.players.shown(to)) }

func seen(all []session.Player) (out []commands.Player) {
	for _, p := range all {
		out = append(out, p)
	}
	return out
}

func (o operations) Player(name string) (commands.Player, bool) { return o.n.players.named(name) }

func (o operations) Servers() []commands.Server {
	return judged(o.n.policy().servers, o.n.parts.server.Health())
}

// judged adds the state of servers to a list of them.
func judged(list []commands.Server, known []health.Facts) []commands.Server {
	of := map[string]health.Facts{}
	for _, f := range known {
		of[strings.ToLower(f.Server)] = f
	}
	out := make([]commands.Server, len(list))
	for i, s := range list {
		f := of[strings.ToLower(s.Name)]
		s.Down, s.Draining = f.State == health.Open, f.Draining
		out[i] = s
	}
	return out
}

// past knows who was here once.
type past struct{ n *Network }

func (p past) Name(player uuid.UUID) string { return p.n.parts.names.Name(player) }

func (p past) Find(name string) (all []commands.Once) {
	for _, n := range p.n.parts.names.Find(name) {
		all = append(all, commands.Once{ID: n.Player, Name: n.Name, Seen: n.Seen})
	}
	return all
}

// quit holds why the program is to stop, and whether the person who wants that has been told where the log is.
type quit struct {
	reason string
	told   bool
}

func (n *Network) shutdown(ctx context.Context, reason string) {
	select {
	case n.quit <- quit{reason, commands.AtTerminal(ctx)}:
	default: // it stops already
	}
}

// drain implements commands.Program's Drain.
func (n *Network) drain(server string, on, move bool, done func(commands.Emptied)) error {
	return n.parts.server.Drain(server, on, move, func(e session.Emptied) { done(commands.Emptied(e)) })
}

// draining reports whether a server is to get no new players.
func (n *Network) draining(server string) bool {
	return slices.ContainsFunc(n.parts.server.Health(), func(f health.Facts) bool { return f.Draining && strings.EqualFold(f.Server, server) })
}

// status returns the lines of /earshot status.
func (n *Network) status() []commands.Fact {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return append([]commands.Fact{
		{Key: "status-players", Named: []string{"count", fmt.Sprint(n.parts.server.Online())}},
		{Key: "status-uptime", Named: []string{"duration", time.Since(n.since).Round(time.Second).String()}},
		{Key: "status-memory", Named: []string{"count", fmt.Sprint(m.HeapAlloc >> 20)}},
		{Key: "status-goroutines", Named: []string{"count", fmt.Sprint(runtime.NumGoroutine())}},
	}, troubles(n.parts.server.Health())...)
}

// troubles returns the facts for a status about servers that do not take players as usual.
func troubles(known []health.Facts) (all []commands.Fact) {
	for _, f := range known {
		say := func(key string, named ...string) {
			all = append(all, commands.Fact{Key: key, Named: append(named, "server", f.Server)})
		}
		if f.Draining {
			say("status-draining")
		}
		count, in := strconv.Itoa(f.Failures), time.Until(f.Next)
		switch {
		case f.State == health.HalfOpen:
			say("status-half-open")
		case f.State == health.Open && in > 0:
			say("status-open-until", "count", count, "duration", in.Round(time.Second/10).String())
		case f.State == health.Open:
			say("status-open", "count", count)
		}
	}
	return all
}

// texts returns the table of texts for players, and say a text of it.
func (n *Network) texts() *commands.Texts { return n.Commands().Texts() }

func (n *Network) say(locale, key string, named ...string) packet.Text {
	return n.texts().Say(locale, key, named...)
}

// welcome tells players in the built-in world where they are. It tells those who may change the settings how to send
// players elsewhere; as long as there are no servers at all, it tells everybody.
func (n *Network) welcome(p session.Player) {
	by := n.policy()
	off := by.welcome != nil && by.welcome.String() == ""
	switch {
	case by.welcome != nil && !off:
		p.SendChat(*by.welcome)
	case by.welcome == nil && !by.alone:
		p.SendChat(n.say(p.Locale(), "limbo"))
	}
	if !off && (n.players.allowed(p, commands.Permission("earshot.reload")) || by.alone && by.welcome == nil) {
		p.SendChat(n.say(p.Locale(), "limbo-servers"))
	}
}
