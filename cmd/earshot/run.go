package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/journal"
	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
)

// program is a network's surroundings on the command line: the log, the terminal and signals.
type program struct {
	log    *slog.Logger
	form   *journal.Form
	output *journal.Output // of the log
	stderr io.Writer

	started func(network.Facts) // by run
}

func newProgram(stderr io.Writer, c configs.Log) *program {
	p := &program{output: journal.NewOutput(stderr), stderr: stderr}
	f, ok := stderr.(*os.File)
	p.log, p.form = journal.New(p.output, ok && commands.IsTerminal(f), journal.Colours(os.Environ()))
	p.logging(c)
	return p
}

// logging puts the section log in force.
func (p *program) logging(c configs.Log) { p.form.Set(c.Level, c.Format) }

// run serves until a signal, or somebody at the console, ends it. A second signal ends the program at once.
func (p *program) run(n *network.Network, dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	over := make(chan struct{})
	defer close(over)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	all.Go(func() {
		defer stop()
		for patient := true; ; patient = false {
			select {
			case s := <-signals:
				if !patient {
					os.Exit(1)
				}
				p.log.Info("stopping", "signal", s.String())
				stop()
			case <-over:
				return
			}
		}
	})
	closeConsole := func() {}
	defer func() { closeConsole() }()
	p.started = func(is network.Facts) {
		is.Banner(p.stderr, release(), dir)
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		all.Go(func() {
			defer signal.Stop(hup)
			for {
				select {
				case <-hup:
					n.Reload(ctx) // the log says how it went
				case <-ctx.Done():
					return
				}
			}
		})
		var typed <-chan error
		signal.Ignore(syscall.SIGPIPE) // a reader of the answers may go, and must not take everybody along
		typed, closeConsole = commands.Attach(commands.Attachment{
			In: os.Stdin, Terminal: os.Stderr, Answers: os.Stdout, Colours: journal.Colours(os.Environ()),
			Commands: n.Commands, Output: p.output, Log: p.log,
		})
		all.Go(func() {
			select {
			case err := <-typed:
				p.log.Info("stopping", "console", err == nil)
				stop()
			case <-over:
			}
		})
	}
	return n.Run(ctx)
}
