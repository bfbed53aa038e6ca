package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice/store"
)

// stateUse shows the use of the command state.
const stateUse = "write earshot state check [FILE], earshot state export FILE or earshot state import FILE; - is the standard output"

// keep carries out the command state: it checks the state, writes it to a file, or takes it from one. It returns the
// exit status.
func keep(args []string, load func() (*configs.Loaded, error), dir string, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintln(stderr, "earshot:", err)
		return status
	}
	if len(args) == 0 || len(args) > 2 || len(args) == 1 && args[0] != "check" || !slices.Contains([]string{"check", "export", "import"}, args[0]) {
		return fail(badUse, errors.New(stateUse))
	}
	if len(args) == 2 && args[0] != "export" {
		all, err := readState(args[1])
		if err != nil {
			return fail(1, err)
		}
		if args[0] == "check" {
			return report(all, stdout)
		}
		return importState(all, load, dir, stdout, stderr)
	}
	l, err := load()
	if err != nil {
		return fail(badUse, err)
	}
	all, health, err := network.LookAtState(&l.State, dir, func(text string) { fmt.Fprintln(stderr, "earshot:", text) })
	if err != nil {
		return fail(1, err)
	}
	if args[0] == "check" {
		fmt.Fprintf(stdout, "%s\n", health.Where)
		status := report(all, stdout)
		for _, d := range health.Damage {
			fmt.Fprintln(stdout, d)
		}
		if health.Aside > 0 {
			fmt.Fprintf(stdout, "%d records cannot be read\n", health.Aside)
		}
		if health.Restored > 0 {
			fmt.Fprintf(stdout, "%d records come back from the copies with the next start\n", health.Restored)
		}
		if health.Missing > 0 {
			fmt.Fprintln(stdout, "put back what is missing: earshot state import FILE, with a file of earshot state export")
		}
		if health.Aside+len(health.Damage) > 0 {
			status = 1
		}
		return status
	}
	if err := writeState(args[1], all, stdout); err != nil {
		return fail(1, err)
	}
	if args[1] != "-" {
		return report(all, stdout)
	}
	return 0
}

// report lists sections and their problems. It returns the exit status.
func report(all []store.Section, to io.Writer) (status int) {
	for _, s := range all {
		if s.Bucket != "" {
			fmt.Fprintf(to, "%s: %d records\n", s.Bucket, len(s.Rows))
		}
		for _, p := range s.Problems() {
			fmt.Fprintln(to, p)
			status = 1
		}
	}
	return status
}

func readState(path string) ([]store.Section, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := store.ReadSections(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// writeState writes a file whole or not at all, readable for its owner only: it has the hashes of passwords.
func writeState(path string, all []store.Section, stdout io.Writer) (err error) {
	if path == "-" {
		return store.WriteSections(stdout, all)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // which makes it 0600
	if err != nil {
		return err
	}
	if err = store.WriteSections(f, all); err == nil {
		err = f.Sync()
	}
	if bad := f.Close(); err == nil {
		err = bad
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// importState stores a file's records. Records of other keys stay.
func importState(all []store.Section, load func() (*configs.Loaded, error), dir string, stdout, stderr io.Writer) (status int) {
	l, err := load()
	if err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		return badUse
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	on, _, err := network.OpenState(ctx, &l.State, dir, slog.New(slog.DiscardHandler))
	if errors.Is(err, store.ErrInUse) {
		err = fmt.Errorf("%w; stop Earshot first, and start it again afterwards", err)
	}
	if err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		return 1
	}
	status = report(all, stdout)
	n, err := on.Import(ctx, all)
	if err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		status = 1
	}
	if err := on.Close(ctx); err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		status = 1
	}
	fmt.Fprintf(stdout, "%d records are stored\n", n)
	return status
}
