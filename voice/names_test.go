package voice

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/store"
)

// remembered opens the names that are stored in dir, and closes them at the end of fn.
func remembered(t *testing.T, dir string, most int, fn func(n *Names)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := store.Open(ctx, store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	state, err := OpenState(ctx, st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	fn(state.Names(most))
}

// The names of players who were here are known after a restart, the newest of each player, and two players can have had
// one name.
func TestNamesOutlastARestart(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	anna, ben, other := uuid.New(), uuid.New(), uuid.New()
	remembered(t, dir, 100, func(n *Names) {
		n.Seen(anna, "Anna", now.Add(-time.Hour))
		n.Seen(ben, "Ben", now)
		n.Seen(other, "ANNA", now)
		n.Seen(ben, "Benjamin", now) // at once, whatever the day
		n.Seen(uuid.Nil, "nobody", now)
		n.Seen(uuid.New(), "", now)
	})
	remembered(t, dir, 100, func(n *Names) {
		if n.Name(ben) != "Benjamin" || n.Name(anna) != "Anna" || n.Name(uuid.New()) != "" || n.Find("ben") != nil {
			t.Errorf("%q, %q, %v", n.Name(ben), n.Name(anna), n.Find("ben"))
		}
		if all := n.Find("aNNa"); len(all) != 2 || all[0].Player != other || all[1].Player != anna {
			t.Errorf("found %v", all)
		}
	})
	remembered(t, dir, 0, func(n *Names) {
		n.Seen(anna, "Anna", now)
		if n.Name(anna) != "" {
			t.Error("kept, though none are to be")
		}
	})
	remembered(t, dir, 100, func(n *Names) {
		if n.Name(ben) != "" {
			t.Error("still stored, though none were to be kept")
		}
	})
}

// There is a bound, and those who were here longest ago are forgotten first.
func TestNamesAreBounded(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	id := func(i int) uuid.UUID { return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i)) }
	remembered(t, dir, 10, func(n *Names) {
		for i := range 50 {
			n.Seen(id(i), fmt.Sprint("p", i), now.Add(time.Duration(i)*time.Minute))
		}
		if len(n.byID) != 10 || len(n.byName) != 10 || n.Name(id(49)) == "" || n.Name(id(39)) != "" {
			t.Errorf("%d names, %d by name", len(n.byID), len(n.byName))
		}
	})
	remembered(t, dir, 5, func(n *Names) {
		if len(n.byID) != 5 || n.Name(id(45)) == "" {
			t.Errorf("%d names with a smaller bound", len(n.byID))
		}
	})
}
