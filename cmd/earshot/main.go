// Earshot is a Minecraft proxy that carries voice: players join through it unchanged, and the same TCP port is the
// voice gateway.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice/store"
)

// version is set by the linker.
var version = "unknown"

const usage = `Earshot: a Minecraft proxy that carries voice.

	earshot run [--config FILE] [--listen ADDR] [--data DIR] [--offline]
	earshot check [--config FILE] [--listen ADDR] [--data DIR] [--offline]
	earshot state check [FILE] | export FILE | import FILE
	earshot texts
	earshot versions [NUMBER | traits] [--data DIR]
	earshot version

run    joins players to the servers of the configuration; without one, to a
       small built-in world on :25565. Lines on the terminal, or on the
       standard input, are commands: help lists them
check  names every mistake of a configuration, each with its line and key. It
       says when all is right, warns of probable mistakes and unsafe settings,
       and prints the settings in force (secrets hidden)
state  looks after lasting state (mutes, groups, speakers, declarations), in
       the data folder or in a NATS. check names damaged and missing records,
       or those of FILE; export writes everything to FILE, also while Earshot
       runs; import stores FILE's records, while no Earshot runs on the folder
texts  prints the texts for players, as a file for the folder of languages
versions
       lists the known releases of the game, with those that files in the
       folder "versions" add; with a NUMBER it prints such a file

`

func main() { os.Exit(start(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

// start does what main does, with its surroundings as parameters, and returns the exit status.
func start(args, environ []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		var many configs.Mistakes
		if !errors.As(err, &many) {
			many = configs.Mistakes{err}
		}
		for _, err := range many {
			fmt.Fprintln(stderr, "earshot:", err)
		}
		if len(many) > 1 {
			fmt.Fprintf(stderr, "earshot: %d mistakes\n", len(many))
		}
		return network.BadUse
	}
	flags := pflag.NewFlagSet("earshot", pflag.ContinueOnError)
	flags.SetOutput(io.Discard) // we print errors ourselves, on one line
	file := flags.String("config", "", "configuration `FILE` (default: earshot.yml in the data folder, where it exists)")
	dir := flags.String("data", ".", "`DIR` where Earshot looks for its files and keeps its state; run makes it")
	listen := flags.String("listen", "", "listen on `ADDR`, as host:port, whatever the configuration says")
	offline := flags.Bool("offline", false, "do not authenticate players: anybody can join as anybody")
	help := func(w io.Writer) { fmt.Fprint(w, usage, "Flags:\n", flags.FlagUsages()) }

	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		help(stdout)
		return 0
	} else if err != nil {
		return fail(fmt.Errorf("%w; see earshot --help", err))
	}
	if flags.NArg() == 0 {
		help(stderr)
		return network.BadUse
	}
	most := 1
	if flags.Arg(0) == "versions" {
		most = 2
	}
	if flags.NArg() > most && flags.Arg(0) != "state" {
		return fail(fmt.Errorf("%q is one word too many; see earshot --help", flags.Arg(most)))
	}

	switch command := flags.Arg(0); command {
	case "help":
		help(stdout)
		return 0
	case "version":
		fmt.Fprintf(stdout, "earshot %s (%s, %s/%s, %s)\n", release(), runtime.Version(), runtime.GOOS, runtime.GOARCH, network.Sounds())
		return 0
	case "texts":
		commands.PrintTexts(stdout)
		return 0
	case "state":
		return network.KeepState(flags.Args()[1:], func() (*configs.Loaded, error) { return configs.Load(*file, *dir, environ) }, *dir, stdout, stderr)
	case "versions":
		if err := network.ListVersions(stdout, flags.Arg(1), *dir); err != nil {
			return fail(err)
		}
		return 0
	case "run", "check":
		switch info, err := os.Stat(*dir); {
		case errors.Is(err, fs.ErrNotExist): // run makes it
		case err != nil || !info.IsDir():
			return fail(fmt.Errorf("--data %s is no folder: name another", *dir))
		}
		if flags.Changed("listen") {
			if err := configs.CheckAddress(*listen); err != nil {
				return fail(fmt.Errorf("--listen: %w", err))
			}
			environ = append(environ, "EARSHOT_LISTEN="+*listen)
		}
		load := func() (*configs.Loaded, error) {
			l, err := configs.Load(*file, *dir, environ)
			if *offline {
				l.Online = false
			}
			return l, err
		}
		l, err := load()
		if err != nil {
			return fail(network.Check(l, err))
		}
		p := newProgram(stderr, l.Log)
		n, err := network.New(l, network.Options{
			Load: load, Dir: *dir, Version: release(), Log: p.log, Logging: p.logging,
			Started: func(is network.Facts) { p.started(is) },
		})
		if err != nil {
			return fail(err)
		}
		if command == "check" {
			l.Print(*dir, stdout, stderr)
			return 0
		}
		if _, err := os.Stat(*dir); err != nil {
			if err := os.MkdirAll(*dir, 0o700); err != nil { // the state in it has hashes of passwords
				return fail(fmt.Errorf("--data: cannot make the data folder: %w", err))
			}
			fmt.Fprintf(stderr, "earshot: made the data folder %s\n", configs.Absolute(*dir))
		}
		err = p.run(n, *dir)
		var lost *store.LostError
		var stuck *network.StuckError
		if errors.As(err, &lost) || errors.As(err, &stuck) {
			fail(err)
			return 1
		}
		if err != nil {
			return fail(err)
		}
		return 0
	default:
		return fail(fmt.Errorf("there is no command %q: run, check, state, texts, versions or version; see earshot --help", command))
	}
}

// release returns the linker's version, or the module's where go install built us.
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "unknown" && info.Main.Version != "" {
		return info.Main.Version
	}
	return version
}
