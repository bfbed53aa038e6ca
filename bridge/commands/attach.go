package commands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/earshot-mc/earshot/bridge/journal"
)

// Attachment says what a program's console is attached to.
type Attachment struct {
	In       *os.File // of lines; nothing happens where it is closed
	Terminal *os.File // that the program is started at, or what stands in its place
	Answers  *os.File // where answers go when nobody types at a terminal
	Colours  bool     // for terminals

	Commands func() *Commands // is asked for each line
	Output   *journal.Output  // of the log, which the console shows above the line that somebody types
	Log      *slog.Logger
}

// Attach takes commands: from a terminal, which then shows the log and the answers as well; or line by line from a
// pipe, a socket or a file. When the console's end is to end the program, the channel gets it: nil when somebody
// pressed Ctrl-C. close ends the console and leaves the terminal as it was.
func Attach(a Attachment) (ended <-chan error, close func()) {
	end := make(chan error, 1)
	if _, err := a.In.Stat(); err != nil { // there is none
		return end, func() {}
	}
	typing, out := IsTerminal(a.In) && IsTerminal(a.Terminal), a.Terminal
	if !typing {
		out = a.Answers
	}
	c := NewConsole(a.In, out, a.Commands)
	c.Colours = a.Colours && IsTerminal(out)
	var before io.Writer
	if typing {
		before = a.Output.Redirect(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := c.Run(ctx)
		switch {
		case errors.Is(err, ErrQuit):
			end <- nil
		case err != nil:
			a.Log.Warn("no console", "error", err)
		}
	})
	return end, func() {
		cancel()
		running.Wait()
		if typing {
			a.Output.Redirect(before)
		}
	}
}
