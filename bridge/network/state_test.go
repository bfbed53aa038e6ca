package network

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/earshot-mc/earshot/configs"
)

// TestStateThatCannotBeHad: a server that is there and does not give us what we need is an error in time, which says what
// it does not give.
func TestStateThatCannotBeHad(t *testing.T) {
	defer func(d time.Duration) { stateWithin = d }(stateWithin)
	stateWithin = 5 * time.Second
	s, err := nats.NewServer(&nats.Options{
		Host: "127.0.0.1", Port: nats.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	c := configs.State{URL: configs.URLs(fmt.Sprintf("nats://%s", s.Addr())), Replicas: 3}
	on, _, err := OpenState(t.Context(), &c, t.TempDir(), slog.New(slog.DiscardHandler))
	if err == nil {
		on.Close(t.Context())
		t.Fatal("opened on a server that keeps no replicas")
	}
	for _, want := range []string{"earshot_mutes", "replicas", s.Addr().String(), "section state"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
