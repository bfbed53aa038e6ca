package network

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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

// OpenState opens what outlives the program, and reads it. The store is to be closed after the gateway. A NATS that
// cannot be used is an error: without what is stored, those who are muted would be heard, and groups would be gone. Once
// it has been read, a NATS that is lost costs nothing.
func OpenState(ctx context.Context, c *configs.State, dir string, log *slog.Logger) (*store.Store, *voice.State, error) {
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

// LookAtState reads what is kept without changing it. Of a folder that a running Earshot has, the copies are read, and
// note gets a sentence about that.
func LookAtState(c *configs.State, dir string, note func(string)) (all []store.Section, h store.Health, err error) {
	cfg := storeConfig(c, dir, slog.New(slog.DiscardHandler))
	cfg.Look = true
	if cfg.URL == "" {
		own := cfg.Dir
		if _, err := os.Stat(own); err != nil {
			return nil, h, fmt.Errorf("there is no state: %w; --data names the folder", err)
		}
		if store.InUse(own) {
			note(fmt.Sprintf("a program runs on %s: its copies are read, which are a moment old; /healthz has what it found at its start", own))
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
