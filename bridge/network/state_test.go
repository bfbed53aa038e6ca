package network

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/itest/testkit/natsd"
)

// TestStateThatCannotBeHad: a server that is there and does not give us what we need is an error in time, which says
// what it does not give.
func TestStateThatCannotBeHad(t *testing.T) {
	defer func(d time.Duration) { stateWithin = d }(stateWithin)
	stateWithin = 5 * time.Second
	s := natsd.Run(t)
	c := configs.State{URL: configs.URLs(s.URL()), Replicas: 3}
	on, _, err := openState(t.Context(), &c, t.TempDir(), slog.New(slog.DiscardHandler))
	if err == nil {
		on.Close(t.Context())
		t.Fatal("opened on a server that keeps no replicas")
	}
	for _, want := range []string{"earshot_mutes", "replicas", strings.TrimPrefix(s.URL(), "nats://"), "section state"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
