package network

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ended is every part of an [ending] at once. It keeps what was ended, in order.
type ended struct {
	mu    sync.Mutex
	order []string
	wait  map[string]<-chan struct{} // until which it takes
	err   map[string]error
}

func (e *ended) note(what string) error {
	e.mu.Lock()
	e.order = append(e.order, what)
	e.mu.Unlock()
	if c := e.wait[what]; c != nil {
		<-c
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.order = append(e.order, what+" done")
	return e.err[what]
}

type endedPart struct {
	*ended
	name string
}

func (e endedPart) Close() error                               { return e.note(e.name) }
func (e endedPart) Stop()                                      { e.note(e.name + " refused") }
func (e endedPart) Wait()                                      { e.note(e.name + " gone") }
func (e endedPart) Freeze()                                    { e.note(e.name + " frozen") }
func (e endedPart) close()                                     { e.note(e.name) }
func (e endedPart) stop(context.Context) error                 { return e.note(e.name) }
func (e endedPart) Shutdown(_ context.Context, _ string) error { return e.note(e.name) }

type endedGateway struct{ endedPart }

func (e endedGateway) Close(context.Context) error { return e.note(e.name) }

type endedSweeper struct{ endedPart }

func (e endedSweeper) Close() { e.note(e.name) }

type endedRemote struct{ endedPart }

func (e endedRemote) Stop() { e.note(e.name) }

func endingOf(e *ended) *ending {
	part := func(name string) endedPart { return endedPart{e, name} }
	return &ending{
		log: slog.New(slog.DiscardHandler), sockets: part("sockets"), rooms: part("rooms"), guests: part("guests"), port: part("port"), voice: endedGateway{part("voice")},
		players: part("players"), web: part("web"), remote: endedRemote{part("rcon")}, commands: part("commands"), limbo: part("limbo"),
		sweeper: endedSweeper{part("sweeper")}, store: endedGateway{part("store")},
	}
}

// TestStoppingHasAnOrder: nobody comes in while players are sent away, groups stay as they are, and the store is open
// for as long as anything is left that could store; the slow ones do not wait for each other.
func TestStoppingHasAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		lost := errors.New("lost")
		e := &ended{
			wait: map[string]<-chan struct{}{"voice": slow, "players": slow, "web": slow, "rcon": slow, "rooms": slow},
			err:  map[string]error{"voice": errors.New("late"), "store": lost},
		}
		end := endingOf(e)
		end.serving.Go(func() { e.note("serving") })
		result := make(chan error, 1)
		go func() { result <- end.stop(t.Context(), "") }()
		synctest.Wait()
		if !end.stopping.Load() {
			t.Error("/healthz does not say it")
		}
		for _, what := range []string{"voice", "players", "web", "rcon", "rooms"} {
			if !slices.Contains(e.order, what) {
				t.Errorf("%s waits for others", what)
			}
		}
		close(slow)
		if err := <-result; err != lost {
			t.Errorf("the error is %v, and only what is lost should be one", err)
		}
		for _, pair := range [][2]string{
			{"sockets refused done", "voice"}, // else a socket is accepted by a gateway that has closed
			{"port done", "players"},          // else players join a proxy that sends them away
			{"voice frozen done", "players"},  // else those who are sent away leave their groups
			{"rcon done", "limbo"},            // its commands send players there
			{"rcon done", "store"},            // and mute
			{"players done", "commands"},      // while they are here they give some
			{"commands done", "limbo"},        // commands send players there
			{"voice done", "sockets gone"},    // it closes them
			{"sockets gone done", "sweeper"},  // it looks after them
			{"rooms refused done", "rooms"},   // else somebody enters one that has closed
			{"rooms done", "rooms gone"},      // it closes them
			{"rooms gone done", "sweeper"},    // it looks after them
			{"guests refused done", "guests gone"},
			{"guests gone done", "sweeper"}, // it looks after them
			{"commands done", "store"},      // they mute
			{"voice done", "store"},         // it stores
			{"players done", "store"},       // names
			{"web done", "store"},           // /healthz asks it
			{"sweeper done", "store"},       // the last thing to end
			{"limbo done", "store"},         //
			{"serving done", "store"},       //
		} {
			before, after := slices.Index(e.order, pair[0]), slices.Index(e.order, pair[1])
			if before < 0 || after < 0 || before > after {
				t.Errorf("%q is not before %q: %q", pair[0], pair[1], e.order)
			}
		}
	})
}

// TestStuckIsAnError: whatever does not end, Run returns in time and says what was running.
func TestStuckIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		began := time.Now()
		err := inTime(func() error { <-never; return nil })
		var stuck *StuckError
		if !errors.As(err, &stuck) || !strings.Contains(stuck.Stacks, "TestStuckIsAnError") || time.Since(began) > stopWithin {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
