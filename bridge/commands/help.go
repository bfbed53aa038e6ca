package commands

import (
	"context"
	"slices"
	"strings"
)

// help tells src what its commands do, a line each, or with a topic what the parts of one do.
func (c *Commands) help(src Source, topic string) {
	topic = strings.TrimPrefix(topic, "/")
	line := func(usage string, k key) {
		if english[k] == "" { // another package's command
			c.answer(src, "help-bare", "usage", usage)
			return
		}
		c.answer(src, "help-line", "usage", usage, "what", c.text(src, k).String())
	}
	if topic == "" {
		more := false
		for _, cmd := range c.table.Allowed(src) {
			usage := cmd.Usage()
			if c.hasParts(cmd.Name) {
				usage, more = "/"+cmd.Name, true
			}
			line(usage, key("help-"+cmd.Name))
		}
		if more {
			form := "/earshot help voice"
			if src.Player() == nil {
				form = "help voice"
			}
			c.answer(src, "help-more", "form", form)
		}
		return
	}
	cmd, _ := c.table.Find(src, topic)
	if cmd == nil {
		c.unknown(src, topic)
		return
	}
	switch cmd.Name {
	case "voice":
		all := c.parted()
		for i := range all {
			if p := &all[i]; partsFor(src)(p) && src.Allowed(Permission(p.node)) {
				line("/voice "+p.name+p.args, key("help-voice-"+strings.ReplaceAll(p.name, " ", "-")))
			}
		}
	case "earshot":
		for _, p := range c.parts() {
			if p.allowed(src) {
				line("/earshot "+p.name+p.args, key("help-earshot-"+p.name))
			}
		}
	default:
		line(cmd.Usage(), key("help-"+cmd.Name))
	}
}

// hasParts tells whether help has more about a command.
func (c *Commands) hasParts(name string) bool {
	return name == "voice" && c.cfg.Voice != nil || name == "earshot"
}

func (c *Commands) helpPart(_ context.Context, src Source, args []string) error {
	c.help(src, strings.Join(args, " "))
	return nil
}

// elsewhere has words that people know from other servers and proxies, and ours for them.
var elsewhere = map[string]string{
	"stop": "shutdown", "end": "shutdown", "quit": "shutdown", "exit": "shutdown", "bye": "shutdown", "restart": "shutdown",
	"list": "glist", "players": "glist", "who": "glist", "online": "glist", "servers": "glist", "playerlist": "glist",
	"status": "earshot status", "version": "earshot version", "ver": "earshot version", "info": "earshot status", "reload": "earshot reload", "rl": "earshot reload",
	"drain": "earshot drain", "dump": "earshot dump", "greload": "earshot reload", "bungee": "earshot version", "velocity": "earshot version",
	"mute": "voice mute", "unmute": "voice unmute", "muteall": "voice muteall", "mutes": "voice mutes", "why": "voice why",
	"say": "alert", "broadcast": "alert", "bc": "alert", "lobby": "hub", "move": "send", "tphere": "send", "where": "find",
}

// unknown answers a line that calls no command, with our word for its first one, where that is known.
func (c *Commands) unknown(src Source, line string) {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if instead := elsewhere[strings.ToLower(name)]; instead != "" {
		if cmd, _ := c.table.Find(src, instead); cmd != nil {
			c.answer(src, "unknown-instead", "command", name, "instead", instead)
			return
		}
	}
	c.answer(src, "unknown", "command", name)
}

// atTerminal marks the context of a command that was typed where the log is shown too.
type atTerminal struct{}

// AtTerminal tells whether the answer to the command of ctx is shown where the log is: then the log need not repeat it.
func AtTerminal(ctx context.Context) bool { return ctx.Value(atTerminal{}) != nil }

// isHelp tells whether the first word of a line asks for help at the console.
func isHelp(word string) bool { return slices.Contains([]string{"help", "?"}, strings.ToLower(word)) }
