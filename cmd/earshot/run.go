package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
)

// program is a network's surroundings on the command line: the log, the terminal and signals.
type program struct {
	log    *slog.Logger
	logs   *logs
	output *output // of the log
	stderr io.Writer

	started func(network.Facts) // by run
}

func newProgram(stderr io.Writer, c configs.Log) *program {
	p := &program{output: &output{w: stderr}, stderr: stderr}
	p.log, p.logs = newLogs(p.output, atTerminal(stderr), coloured(os.Environ()))
	p.logs.apply(c)
	return p
}

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
		banner(p.stderr, dir, is)
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
		typed, closeConsole = p.console(n, os.Stdin, os.Stderr, os.Stdout)
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
