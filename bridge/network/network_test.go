package network

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/configs"
)

// load reads a configuration as the program does, for a port that is free.
func load(t *testing.T, dir, text string) func() (*configs.Loaded, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, configs.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() (*configs.Loaded, error) {
		return configs.Load("", dir, []string{"EARSHOT_LISTEN=127.0.0.1:0", "EARSHOT_ONLINE=false"})
	}
}

// TestRun: a network serves until its context ends; what it goes by can be read again in between, and only then.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	read := load(t, dir, "log: {level: warn}\n")
	conf, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var levels []string
	started := make(chan Facts, 1)
	n, err := New(conf, Options{
		Dir: dir, Load: read, Version: "v1", Started: func(is Facts) { started <- is }, Logging: func(l configs.Log) { levels = append(levels, l.Level) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.Reload(t.Context()); err == nil {
		t.Error("there is something to reload before it runs")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx) }()
	var is Facts
	select {
	case is = <-started:
	case err := <-ran:
		t.Fatal(err)
	}
	answer, err := http.Get(fmt.Sprintf("http://%s/healthz", is.Addr))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if answer.StatusCode != http.StatusOK || is.TLS || is.Config != conf {
		t.Errorf("%v, %+v", answer.Status, is)
	}
	load(t, dir, "log: {level: error}\nvoice: {range: 7}\n")
	for end := time.Now().Add(20 * time.Second); ; { // the file is followed, too, and one of the two finds the change
		changes, restart, err := n.Reload(t.Context())
		if err != nil || len(restart) > 0 {
			t.Fatal(restart, err)
		}
		n.reloading.Lock()
		now := n.now.conf.Voice.Range
		n.reloading.Unlock()
		if now == 7 {
			if len(changes) > 0 && !strings.Contains(strings.Join(changes, "\n"), "voice.range") {
				t.Errorf("%q", changes)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the reload does not come through")
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if len(levels) < 2 || levels[0] != "warn" || levels[len(levels)-1] != "error" {
		t.Errorf("told to log at %q", levels)
	}
	if _, _, err := n.Reload(t.Context()); err == nil {
		t.Error("there is something to reload after it has run")
	}
}

// TestRunThatCannotBegin: a port that is taken is an error that says what to do, and one who has lost patience gets
// none.
func TestRunThatCannotBegin(t *testing.T) {
	dir := t.TempDir()
	started := make(chan Facts, 1)
	run := func(ctx context.Context, environ ...string) error {
		conf, err := configs.Load("", dir, append([]string{"EARSHOT_ONLINE=false"}, environ...))
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(conf, Options{Dir: dir, Started: func(is Facts) { started <- is }})
		if err != nil {
			t.Fatal(err)
		}
		return n.Run(ctx)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(over, "EARSHOT_LISTEN=127.0.0.1:0"); err != nil {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx, "EARSHOT_LISTEN=127.0.0.1:0") }()
	is := <-started
	if err := run(t.Context(), "EARSHOT_LISTEN="+is.Addr.String()); err == nil || !strings.Contains(err.Error(), "another program has that port") {
		t.Error(err)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
