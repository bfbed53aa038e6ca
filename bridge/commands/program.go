package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// part is one thing that /earshot can do.
type part struct {
	name, args string
	nodes      []string // any of which is enough
	run        func(context.Context, Source) error
	with       func(context.Context, Source, []string) error // in place of run: it takes more words
}

func (p *part) allowed(src Source) bool { return slices.ContainsFunc(p.nodes, src.Allowed) }

// parts returns what /earshot can do here. Some need a permission of their own, in place of that for /earshot.
func (c *Commands) parts() []part {
	p, whole := c.cfg.Program, []string{Permission("earshot")}
	own := func(name string) []string { return []string{Permission("earshot." + name)} }
	parts := []part{{name: "version", nodes: whole, run: c.version}}
	if p.Status != nil {
		parts = append(parts, part{name: "status", nodes: whole, run: c.status})
	}
	if p.Reload != nil {
		parts = append(parts, part{name: "reload", nodes: own("reload"), run: c.reload})
	}
	if p.Dump != nil {
		parts = append(parts, part{name: "dump", nodes: own("dump"), run: c.dump})
	}
	if p.Drain != nil {
		parts = append(parts, part{name: "drain", args: " <server> [on|move|off]", nodes: own("drain"), with: func(_ context.Context, src Source, args []string) error {
			return c.drain(src, args)
		}})
	}
	help := part{name: "help", args: " [command]", nodes: own("help"), with: c.helpPart}
	for _, o := range parts { // whoever may do anything here may ask for help
		help.nodes = append(help.nodes, o.nodes...)
	}
	return append(parts, help)
}

func (c *Commands) programCommands() []command.Command[Source] {
	p, parts := c.cfg.Program, c.parts()
	more := []arg{{Name: "command", Optional: true, Suggest: func(Source, []string) []packet.Suggestion { return nil }}}
	if p.Drain != nil {
		more = c.drainArgs()
	}
	others := more[0].Suggest
	more[0].Suggest = func(src Source, before []string) []packet.Suggestion {
		if !strings.EqualFold(before[0], "help") {
			return others(src, before)
		}
		var out []packet.Suggestion
		for _, cmd := range c.table.Allowed(src) {
			out = append(out, packet.Suggestion{Text: cmd.Name})
		}
		return out
	}
	var words, nodes []string
	for _, p := range parts {
		words = append(words, p.name)
		nodes = append(nodes, p.nodes...)
	}
	usage := strings.Join(words, "|")
	all := []command.Command[Source]{{
		Name: "earshot", Parts: nodes,
		Args: append([]arg{{Name: usage, Suggest: func(src Source, _ []string) []packet.Suggestion {
			var out []packet.Suggestion
			for _, p := range parts {
				if p.allowed(src) {
					out = append(out, packet.Suggestion{Text: p.name})
				}
			}
			return out
		}}}, more...),
		Run: func(ctx context.Context, src Source, args []string) error {
			i := slices.IndexFunc(parts, func(p part) bool { return strings.EqualFold(p.name, args[0]) })
			switch {
			case i < 0:
				return &command.UsageError{Usage: "/earshot <" + usage + ">"}
			case !parts[i].allowed(src):
				return fail("not-allowed")
			}
			if p := parts[i]; p.with != nil {
				return p.with(ctx, src, args[1:])
			}
			if len(args) > 1 {
				return &command.UsageError{Usage: "/earshot " + parts[i].name}
			}
			return parts[i].run(ctx, src)
		},
	}}
	if p.Shutdown != nil {
		all = append(all, command.Command[Source]{Name: "shutdown", Args: []arg{{Name: "reason", Kind: command.Greedy, Optional: true}}, Run: c.shutdown})
	}
	return all
}

func (c *Commands) version(_ context.Context, src Source) error {
	c.answer(src, "version", "version", c.cfg.Program.Version)
	return nil
}

func (c *Commands) status(_ context.Context, src Source) error {
	for _, f := range c.cfg.Program.Status() {
		src.Send(c.cfg.Texts.Say(src.Locale(), f.Key, f.Named...))
	}
	return nil
}

// maxChanges bounds the changes with a line in an answer.
const maxChanges = 20

func (c *Commands) reload(ctx context.Context, src Source) error {
	changes, restart, err := c.cfg.Program.Reload(ctx)
	if err != nil {
		return fail("reload-failed", "error", err.Error())
	}
	if len(changes) == 0 {
		c.answer(src, "reload-none")
	}
	for _, change := range changes[:min(len(changes), maxChanges)] {
		c.answer(src, "reloaded", "change", change)
	}
	if more := len(changes) - maxChanges; more > 0 {
		c.answer(src, "reloaded-more", "count", strconv.Itoa(more))
	}
	for _, change := range restart {
		c.answer(src, "reload-restart", "change", change)
	}
	return nil
}

func (c *Commands) dump(ctx context.Context, src Source) error {
	file, err := c.cfg.Program.Dump(ctx)
	if err != nil {
		return err
	}
	c.answer(src, "dumped", "file", file)
	return nil
}

func (c *Commands) shutdown(ctx context.Context, src Source, args []string) error {
	reason := ""
	if len(args) > 0 {
		reason = args[0]
	}
	if reason != "" {
		c.answer(src, "shutdown-named", "reason", reason)
	} else {
		c.answer(src, "shutdown")
	}
	c.cfg.Program.Shutdown(ctx, reason)
	return nil
}
