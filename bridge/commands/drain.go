package commands

import (
	"strings"

	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// drainArgs are the words behind /earshot drain.
func (c *Commands) drainArgs() []arg {
	behind := func(words func(Source) []packet.Suggestion) func(Source, []string) []packet.Suggestion {
		return func(src Source, before []string) []packet.Suggestion {
			if !strings.EqualFold(before[0], "drain") || !src.Allowed(Permission("earshot.drain")) {
				return nil
			}
			return words(src)
		}
	}
	return []arg{
		{Name: "server", Optional: true, Suggest: behind(names{c}.Servers)},
		{Name: "on|move|off", Optional: true, Suggest: behind(func(src Source) []packet.Suggestion { return suggest("on", "move", "off")(src, nil) })},
	}
}

// drain keeps new players off a server, takes those who are there away, or ends that.
func (c *Commands) drain(src Source, args []string) error {
	usage := &command.UsageError{Usage: "/earshot drain <server> [on|move|off]"}
	if len(args) == 0 {
		return usage
	}
	s, err := c.findServer(args[0])
	if err != nil {
		return err
	}
	how := "on"
	if len(args) > 1 {
		how = strings.ToLower(args[1])
	}
	k, ok := map[string]key{"on": "drain-on", "move": "drain-move", "off": "drain-off"}[how]
	if !ok {
		return usage
	}
	if err := c.cfg.Program.Drain(s.Name, how != "off", how == "move"); err != nil {
		return err
	}
	c.answer(src, k, "server", s.Name)
	return nil
}
