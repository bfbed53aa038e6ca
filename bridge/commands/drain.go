package commands

import (
	"strconv"
	"strings"

	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// drainArgs returns the words behind /earshot drain.
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

// drain keeps new players off a server, sends its players elsewhere, or ends that.
func (c *Commands) drain(src Source, args []string) error {
	usage := &command.UsageError{Usage: "/earshot drain <server> [on|move|off]"}
	if len(args) == 0 {
		return usage
	}
	s, err := c.anyServer(src, args[0])
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
	told := make(chan struct{})
	defer close(told) // the outcome is told after the beginning
	err = c.cfg.Program.Drain(s.Name, how != "off", how == "move", func(e Emptied) {
		<-told
		c.emptied(src, s.Name, e)
	})
	if err != nil {
		return err
	}
	c.answer(src, k, "server", s.Name)
	return nil
}

// emptied tells src what became of the players of a server.
func (c *Commands) emptied(src Source, server string, e Emptied) {
	if e.Players == 0 {
		c.answer(src, "drain-nobody", "server", server)
		return
	}
	line := []packet.Text{c.text(src, "drain-moved", "server", server, "moved", strconv.Itoa(e.Moved), "count", strconv.Itoa(e.Players))}
	part := func(k key, n int, names []string) {
		if n > 0 {
			listed := strings.Join(names[:min(len(names), maxListed)], ", ")
			if more := len(names) - maxListed; more > 0 {
				listed = c.text(src, "glist-more", "names", listed, "count", strconv.Itoa(more)).String()
			}
			line = append(line, c.text(src, k, "count", strconv.Itoa(n), "names", listed))
		}
	}
	part("drain-nowhere", len(e.Nowhere), e.Nowhere)
	part("drain-refused", len(e.Refused), e.Refused)
	part("drain-left", e.Left, nil)
	src.Send(join(protocolOf(src), line...))
}
