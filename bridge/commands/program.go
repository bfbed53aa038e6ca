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
	name  string
	extra bool // needs a permission of its own, in place of that for /earshot
	run   func(context.Context, Source) error
	with  func(Source, []string) error // in place of run: it takes more words
}

func (c *Commands) programCommands() []command.Command[Source] {
	p := c.cfg.Program
	parts := []part{{name: "version", run: c.version}}
	if p.Status != nil {
		parts = append(parts, part{name: "status", run: c.status})
	}
	if p.Reload != nil {
		parts = append(parts, part{name: "reload", extra: true, run: c.reload})
	}
	if p.Dump != nil {
		parts = append(parts, part{name: "dump", extra: true, run: c.dump})
	}
	var more []arg
	if p.Drain != nil {
		parts, more = append(parts, part{name: "drain", extra: true, with: c.drain}), c.drainArgs()
	}
	node := func(p part) string {
		if p.extra {
			return Permission("earshot." + p.name)
		}
		return Permission("earshot")
	}
	allowed := func(src Source, p part) bool { return src.Allowed(node(p)) }
	var words, nodes []string
	for _, p := range parts {
		words = append(words, p.name)
		nodes = append(nodes, node(p))
	}
	usage := strings.Join(words, "|")
	all := []command.Command[Source]{{
		Name: "earshot", Parts: nodes,
		Args: append([]arg{{Name: usage, Suggest: func(src Source, _ []string) []packet.Suggestion {
			var out []packet.Suggestion
			for _, p := range parts {
				if allowed(src, p) {
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
			case !allowed(src, parts[i]):
				return fail("not-allowed")
			}
			if p := parts[i]; p.with != nil {
				return p.with(src, args[1:])
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

// maxChanges is how many changes an answer has a line for.
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

func (c *Commands) shutdown(_ context.Context, src Source, args []string) error {
	reason := ""
	if len(args) > 0 {
		reason = args[0]
		c.answer(src, "shutdown-named", "reason", reason)
	} else {
		c.answer(src, "shutdown")
	}
	c.cfg.Program.Shutdown(reason)
	return nil
}
