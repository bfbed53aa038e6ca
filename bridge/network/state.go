package network

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/store"
)

// stateFolder is the state's folder below the data folder, unless it is in an external NATS.
const stateFolder = "state"

// stateWithin bounds the opening of the state.
var stateWithin = 30 * time.Second

// openState opens the lasting state, and reads it. The store is to be closed after the gateway. A NATS that cannot be
// used is an error: without the stored state, muted players would be heard, and groups would be gone. Once it has been
// read, losing a NATS costs nothing.
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

// storeConfig returns the section state as the store takes it.
func storeConfig(c *configs.State, dir string, log *slog.Logger) store.Config {
	return store.Config{
		Dir: filepath.Join(dir, stateFolder),
		URL: string(c.URL), Credentials: c.CredentialsFile, User: c.User, Password: string(c.Password), Token: string(c.Token),
		RootCA: c.RootCA, Certificate: c.Certificate, Key: c.Key, Replicas: c.Replicas,
		Log: log,
	}
}

// lookAtState reads the lasting state without changing it. If a running Earshot has the folder, it reads the copies,
// and note gets a sentence about that.
func lookAtState(c *configs.State, dir string, note func(string)) (all []store.Section, h store.Health, err error) {
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
			time.Sleep(3 * store.CopyDelay) // then they have everything acknowledged before
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
		on.Close(ended) // nothing was to be stored there
	}()
	if _, err := voice.OpenState(ctx, on, cfg.Log); err != nil {
		return nil, h, err
	}
	h = on.Health()
	return on.Export(), h, nil
}
