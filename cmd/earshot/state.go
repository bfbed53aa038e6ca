package main

import (
	"context"
	"fmt"
	"log/slog"
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
	on, err := store.Open(ctx, store.Config{
		Dir: filepath.Join(dir, stateFolder),
		URL: string(c.URL), Credentials: c.CredentialsFile, User: c.User, Password: string(c.Password), Token: string(c.Token),
		RootCA: c.RootCA, Certificate: c.Certificate, Key: c.Key, Replicas: c.Replicas,
		Log: log,
	})
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

// describe adds how the state fares to what /healthz says. A lost server is no reason to end the program: voice goes on.
func describe(h *admin.Health, s store.Health) {
	h.Details["state_server"], h.Details["state_waiting"], h.Details["state_set_aside"] = s.Where, s.Waiting, s.Aside
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
	a.Counter("earshot_state_set_aside_total", "Stored records that could not be read and were set aside.", func() float64 { return float64(health().Aside) })
}
