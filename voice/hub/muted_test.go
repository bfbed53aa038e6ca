package hub

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// told is what players are told of mutes: "anna none>player spam".
type told struct {
	mu  sync.Mutex // the hub tells
	all []string
}

func (w *told) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.all
	w.all = nil
	return got
}

// tell makes the hub tell; exempt are the names of who is outside the mute of everybody.
func (x *test) tell(exempt ...string) *told {
	w := &told{}
	kinds := map[talk.MuteKind]string{talk.NotMuted: "none", talk.MutedPlayer: "player", talk.MutedServer: "all"}
	err := x.hub.Do(func(time.Time) {
		x.hub.Permissions = func(id uuid.UUID) Bits {
			if slices.Contains(exempt, names[id]) {
				return Open | MuteExempt
			}
			return Open
		}
		x.hub.Muted = func(id uuid.UUID, was, is mute.State) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.all = append(w.all, fmt.Sprintf("%s %s>%s %s", names[id], kinds[was.Kind], kinds[is.Kind], is.Reason))
		}
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return w
}

func (x *test) mute(r mute.Record) {
	x.t.Helper()
	if err := x.hub.Mute(r); err != nil {
		x.t.Fatal(err)
	}
	x.settle()
}

// A muted player is told at once, with a voice connection or without, once, and of the end: by a lift and by the clock.
func TestMutedPlayersAreTold(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		w := x.tell()
		anna, ben := x.player("anna"), x.player("ben")
		x.hub.Join(anna, &writer{}, Wants{})
		x.settle()
		expect := func(what string, want ...string) {
			t.Helper()
			if got := w.take(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		x.mute(mute.Record{Player: anna.ID, Reason: "spam"})
		expect("with voice", "anna none>player spam")
		x.mute(mute.Record{Player: ben.ID, Until: time.Now().Add(5 * time.Second)})
		expect("without voice", "ben none>player ")
		if s := x.hub.MuteOf(anna.ID); s.Kind != talk.MutedPlayer || s.Reason != "spam" {
			t.Errorf("MuteOf says %+v", s)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		expect("meanwhile")
		time.Sleep(time.Second)
		x.settle()
		expect("by the clock", "ben player>none ")
		if _, err := x.hub.Unmute(anna.ID); err != nil {
			t.Fatal(err)
		}
		x.settle()
		expect("lifted", "anna player>none ")
		if s := x.hub.MuteOf(anna.ID); s != (mute.State{}) {
			t.Errorf("MuteOf says %+v of who is not muted", s)
		}
	})
}

// The mute of everybody is told to everybody who is not exempt, and who is muted alone stays so when it ends.
func TestTheMuteOfEverybodyIsTold(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		w := x.tell("staff")
		x.player("anna")
		ben := x.player("ben")
		x.player("staff")
		x.mute(mute.Record{Player: ben.ID, Reason: "own"})
		w.take()
		x.mute(mute.Record{Player: mute.Everybody, Reason: "event"})
		got := w.take()
		slices.Sort(got)
		if want := []string{"anna none>all event", "ben player>all event"}; !slices.Equal(got, want) {
			t.Errorf("muted: %q, want %q", got, want)
		}
		x.hub.Unmute(mute.Everybody)
		x.settle()
		got = w.take()
		slices.Sort(got)
		if want := []string{"anna all>none ", "ben all>player own"}; !slices.Equal(got, want) {
			t.Errorf("lifted: %q, want %q", got, want)
		}
	})
}

// A player who joins while muted is told, once it is known where they are, each time; others are not told that they are
// not.
func TestWhoComesBackMutedIsToldAgain(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		w := x.tell("staff")
		x.player("ben")
		x.mute(mute.Record{Player: uuid.NewSHA1(uuid.Nil, []byte("anna")), Reason: "spam"})
		x.mute(mute.Record{Player: mute.Everybody})
		w.take()
		for range 2 {
			p := x.reg.Add(uuid.NewSHA1(uuid.Nil, []byte("anna")), "anna")
			x.calm()
			if got := w.take(); len(got) != 0 {
				t.Errorf("told before it is known where: %q", got)
			}
			p.SetFacts(world.Facts{Place: x.reg.Place("survival", "overworld")})
			x.player("staff")
			x.calm()
			if got := w.take(); !slices.Equal(got, []string{"anna none>all "}) {
				t.Errorf("told %q", got)
			}
			x.reg.Remove(p)
			x.calm()
			if s := x.hub.MuteOf(p.ID); s != (mute.State{}) {
				t.Errorf("known of who has left: %+v", s)
			}
		}
	})
}
