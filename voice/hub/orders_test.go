package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
)

// stuck is a store whose disk hangs: nothing that it takes is ever stored, until its owner calls done.
type stuck struct{ done []func() }

func (s *stuck) Load() Changes               { return Changes{} }
func (s *stuck) Save(_ Changes, done func()) { s.done = append(s.done, done) }
func (s *stuck) Watch(func())                {}
func (s *stuck) Take() Changes               { return Changes{} }

// TestReadingWaitsForNoDisk: while what a turn has changed cannot be written, whoever made the change waits, and
// whoever only asks is answered, in that very turn and in later ones.
func TestReadingWaitsForNoDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, disk := world.New(), &stuck{}
		h := New(reg, route.Policy{})
		h.Store = disk
		player := reg.Add(uuid.New(), "anna").ID
		muted := make(chan error, 1)
		read := map[string]func() error{
			"the mutes":        func() error { _, err := h.Mutes(); return err },
			"the groups":       func() error { _, err := h.Groups(); return err },
			"why":              func() error { _, err := h.Explain(player, player); return err },
			"the declarations": func() error { return h.Declared(func(*relation.Book) error { return nil }) },
			"a microphone":     func() error { h.ToggleMic(player); return nil },
		}
		ask := func() {
			for what, fn := range read {
				answered := make(chan error, 1)
				go func() { answered <- fn() }()
				synctest.Wait()
				time.Sleep(2 * Flush)
				select {
				case err := <-answered:
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				default:
					t.Errorf("%s: waits for the disk", what)
				}
			}
		}
		go func() { muted <- h.Mute(mute.Record{Player: player}) }()
		early := make(chan error, 1)
		go func() { _, err := h.Mutes(); early <- err }()
		synctest.Wait() // both are in the inbox of the first turn
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); h.Run(ctx) }()
		time.Sleep(2 * Flush)
		select {
		case err := <-early:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("who asks in the turn of the change waits for the disk")
		}
		ask()
		select {
		case <-muted:
			t.Error("a mute is said to be done, and is not stored")
		default:
		}
		if len(disk.done) != 1 {
			t.Fatalf("saved %d times", len(disk.done))
		}
		disk.done[0]()
		if err := <-muted; err != nil {
			t.Error(err)
		}
		stop()
		<-over
	})
}
