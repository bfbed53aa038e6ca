package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/journal"
	"github.com/earshot-mc/earshot/bridge/network"
)

// console takes commands from in: as they are typed on a terminal, which then shows the log and the answers; line by
// line from a pipe, a socket or a file, with the answers on answers. Its channel gets the console's end when that is to
// end the program: nil when somebody pressed Ctrl-C. close ends it, and leaves the terminal as it was.
func (p *program) console(n *network.Network, in, terminal, answers *os.File) (ended <-chan error, close func()) {
	signal.Ignore(syscall.SIGPIPE) // a reader of the answers may go, and must not take everybody along
	end := make(chan error, 1)
	if _, err := in.Stat(); err != nil { // there is none
		return end, func() {}
	}
	typing, out := commands.IsTerminal(in) && commands.IsTerminal(terminal), terminal
	if !typing {
		out = answers
	}
	c := commands.NewConsole(in, out, n.Commands)
	c.Colours = commands.IsTerminal(out) && journal.Colours(os.Environ())
	var before io.Writer
	if typing {
		before = p.output.Redirect(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := c.Run(ctx)
		switch {
		case errors.Is(err, commands.ErrQuit):
			end <- nil
		case err != nil:
			p.log.Warn("no console", "error", err)
		}
	})
	return end, func() {
		cancel()
		running.Wait()
		if typing {
			p.output.Redirect(before)
		}
	}
}
