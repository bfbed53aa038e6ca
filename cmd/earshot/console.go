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
	"github.com/earshot-mc/earshot/bridge/network"
)

// output is where the log goes: above the line at the console, for as long as somebody types there.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// set redirects the log, and returns where it went.
func (o *output) set(w io.Writer) (before io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.w = o.w, w
	return before
}

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
	c.Colours = commands.IsTerminal(out) && coloured(os.Environ())
	var before io.Writer
	if typing {
		before = p.output.set(c)
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
			p.output.set(before)
		}
	}
}
