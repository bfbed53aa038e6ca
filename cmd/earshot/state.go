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

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/store"
)

// stateFolder is where the state is below the data folder, unless it is in somebody else's NATS.
const stateFolder = "state"

// stateWithin bounds the opening of the state.
var stateWithin = 30 * time.Second

// openState opens what outlives the program, and reads it. The store is to be closed after the gateway. A NATS that
// cannot be used is an error: without what is stored, those who are muted would be heard, and groups would be gone. Once
// it has been read, a NATS that is lost costs nothing.
func openState(ctx context.Context, c *configs.State, dir string, log *slog.Logger) (*store.Store, *voice.State, error) {
	ctx, cancel := context.WithTimeout(ctx, stateWithin)
	defer cancel()
	hint := "; is it running, and is the section state of the configuration right?"
	if c.URL == "" {
		hint = "; --data names another folder"
	}
	on, err := store.Open(ctx, storeConfig(c, dir, log))
	if err != nil {
		return nil, nil, fmt.Errorf("%w%s", err, hint)
	}
	state, err := voice.OpenState(ctx, on, log)
	if err != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // there is nothing to wait for
		on.Close(ended)
		return nil, nil, fmt.Errorf("%w%s", err, hint)
	}
	return on, state, nil
}

// storeConfig is the section state as the store takes it.
func storeConfig(c *configs.State, dir string, log *slog.Logger) store.Config {
	return store.Config{
		Dir: filepath.Join(dir, stateFolder),
		URL: string(c.URL), Credentials: c.CredentialsFile, User: c.User, Password: string(c.Password), Token: string(c.Token),
		RootCA: c.RootCA, Certificate: c.Certificate, Key: c.Key, Replicas: c.Replicas,
		Log: log,
	}
}

// describe adds how the state fares to what /healthz says. A lost server is no reason to end the program: voice goes on.
func describe(h *admin.Health, s store.Health) {
	h.Details["state_server"], h.Details["state_waiting"], h.Details["state_set_aside"] = s.Where, s.Waiting, s.Aside
	if len(s.Damage) > 0 {
		h.Details["state_restored"], h.Details["state_missing"], h.Details["state_damage"] = s.Restored, s.Missing, s.Damage
	}
	if s.Missing > 0 {
		h.State = "degraded"
		h.Details["state_advice"] = "put back what is missing: earshot state import FILE, with a file of earshot state export"
	}
	if !s.OK {
		h.State = "degraded"
		h.Details["state_problem"], h.Details["state_problem_since"] = s.Problem, s.Since.UTC().Format(time.RFC3339)
	}
}

// exportState adds what is kept, and how that fares, to /metrics.
func exportState(a *admin.Admin, stats func() voice.Stats, health func() store.Health) {
	a.Gauge("earshot_voice_groups", "Groups of players.", func() float64 { return float64(stats().Groups) })
	a.Gauge("earshot_voice_group_members", "Players in groups.", func() float64 { return float64(stats().Members) })
	a.Gauge("earshot_voice_mutes", "Server mutes in force.", func() float64 { return float64(stats().Mutes) })
	a.Gauge("earshot_state_up", "1 when the state that lasts can be stored, else 0.", func() float64 {
		if health().OK {
			return 1
		}
		return 0
	})
	a.Gauge("earshot_state_waiting", "Changes that are in force but not stored yet.", func() float64 { return float64(health().Waiting) })
	a.Gauge("earshot_state_missing", "Stored records that were gone or damaged at the start, and of which there is no copy.", func() float64 { return float64(health().Missing) })
	a.Counter("earshot_state_restored_total", "Stored records that were gone or damaged, and came back from the copy.", func() float64 { return float64(health().Restored) })
	a.Counter("earshot_state_set_aside_total", "Stored records that could not be read and were set aside.", func() float64 { return float64(health().Aside) })
}

// stateUse is how the command state is used.
const stateUse = "write earshot state check [FILE], earshot state export FILE or earshot state import FILE; - is the standard output"

// keep carries out the command state: it checks what is kept, writes it to a file, or takes it from one. It returns the exit
// status.
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
	all, health, err := lookAtState(&l.State, dir, stderr)
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

// report lists sections and what is wrong with them. It returns the exit status.
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

// writeState writes a file whole or not at all, readable for its owner: it has the hashes of passwords.
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

// lookAtState reads what is kept without changing it. Of a folder that a running Earshot has, the copies are read.
func lookAtState(c *configs.State, dir string, stderr io.Writer) (all []store.Section, h store.Health, err error) {
	cfg := storeConfig(c, dir, slog.New(slog.DiscardHandler))
	cfg.Look = true
	if cfg.URL == "" {
		own := cfg.Dir
		if _, err := os.Stat(own); err != nil {
			return nil, h, fmt.Errorf("there is no state: %w; --data names the folder", err)
		}
		if store.InUse(own) {
			fmt.Fprintf(stderr, "earshot: a program runs on %s: its copies are read, which are a moment old; /healthz has what it found at its start\n", own)
			h.Where = own
			time.Sleep(3 * store.CopyDelay) // then they have all that was acknowledged before
			all, err = store.Copies(own)
			return all, h, err
		}
		// The server writes into its folder, if only that it has read it.
		temporary, err := os.MkdirTemp("", "earshot-state-")
		if err != nil {
			return nil, h, err
		}
		defer os.RemoveAll(temporary)
		cfg.Dir = filepath.Join(temporary, stateFolder)
		if err := os.CopyFS(cfg.Dir, os.DirFS(own)); err != nil {
			return nil, h, fmt.Errorf("%s cannot be read: %w", own, err)
		}
		defer func() { h.Where = own }()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateWithin)
	defer cancel()
	on, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, h, err
	}
	defer func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		on.Close(ended) // what is lost there was not to be stored
	}()
	if _, err := voice.OpenState(ctx, on, cfg.Log); err != nil {
		return nil, h, err
	}
	h = on.Health()
	return on.Export(), h, nil
}

// importState stores what a file has. Records of other keys stay.
func importState(all []store.Section, load func() (*configs.Loaded, error), dir string, stdout, stderr io.Writer) (status int) {
	l, err := load()
	if err != nil {
		fmt.Fprintln(stderr, "earshot:", err)
		return badUse
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
