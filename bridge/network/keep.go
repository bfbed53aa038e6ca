package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice/store"
)

// BadUse is the exit status for mistakes that the caller can mend.
const BadUse = 2

// stateUse shows the use of the command state.
const stateUse = "write earshot state check [FILE], earshot state export FILE or earshot state import FILE; - is the standard output"

// KeepState carries out the command state: it checks the state, writes it to a file, or takes it from one. It returns
// the exit status.
func KeepState(args []string, load func() (*configs.Loaded, error), dir string, stdout, stderr io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintln(stderr, "earshot:", err)
		return status
	}
	if len(args) == 0 || len(args) > 2 || len(args) == 1 && args[0] != "check" || !slices.Contains([]string{"check", "export", "import"}, args[0]) {
		return fail(BadUse, errors.New(stateUse))
	}
	if len(args) == 2 && args[0] != "export" {
		all, err := store.ReadFile(args[1])
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
		return fail(BadUse, err)
	}
	all, health, err := lookAtState(&l.State, dir, func(text string) { fmt.Fprintln(stderr, "earshot:", text) })
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
			fmt.Fprintln(stdout, "restore missing records with earshot state import FILE, from a file of earshot state export")
		}
		if health.Aside+len(health.Damage) > 0 {
			status = 1
		}
		return status
	}
	if args[1] == "-" {
		if err := store.WriteSections(stdout, all); err != nil {
			return fail(1, err)
		}
		return 0
	}
	if err := store.WriteFile(args[1], all...); err != nil {
		return fail(1, err)
	}
	return report(all, stdout)
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

// importState stores a file's records. Records of other keys stay.
func importState(all []store.Section, load func() (*configs.Loaded, error), dir string, stdout, stderr io.Writer) (status int) {
	l, err := load()
	if err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		return BadUse
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	on, _, err := openState(ctx, &l.State, dir, slog.New(slog.DiscardHandler))
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
