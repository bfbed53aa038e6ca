package health

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ward is a Board whose servers answer as told, with the times at which each was asked.
type ward struct {
	*Board
	log testkit.Log

	mu    sync.Mutex
	down  map[string]bool
	takes time.Duration
	asked map[string][]time.Time
	busy  int
	most  int // checks at a time
}

// begin runs a ward in a bubble, with a clock of its own, until f returns.
func begin(t *testing.T, p Policy, f func(w *ward), names ...string) {
	synctest.Test(t, func(t *testing.T) {
		w := &ward{down: map[string]bool{}, asked: map[string][]time.Time{}}
		w.Board = New(w.ask, w.log.Logger(slog.LevelInfo))
		w.Watch(names, p)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); w.Run(ctx) }()
		f(w)
		cancel()
		<-over
	})
}

func (w *ward) ask(ctx context.Context, name string) error {
	w.mu.Lock()
	down, takes := w.down[name], w.takes
	w.asked[name] = append(w.asked[name], time.Now())
	w.busy++
	w.most = max(w.most, w.busy)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.busy--
		w.mu.Unlock()
	}()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if down {
		return errors.New("nothing listens there")
	}
	return nil
}

func (w *ward) set(name string, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[name] = down
}

func (w *ward) checks(name string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Time(nil), w.asked[name]...)
}

func (w *ward) state(name string) State {
	for _, f := range w.Servers() {
		if f.Server == name {
			return f.State
		}
	}
	return 99
}

var errDown = errors.New("refused")

func wait(d time.Duration) { time.Sleep(d); synctest.Wait() }

// TestBreaker takes a server through all states: so many failures in a row open its breaker, its first answer leaves it
// half-open, for one player at a time, and the next closes it. Each change is logged, once.
func TestBreaker(t *testing.T) {
	begin(t, Policy{Failures: 3}, func(w *ward) {
		w.set("a", true)
		w.Failed("A", errDown) // case does not matter
		w.Succeeded("a")       // in a row, that is
		w.Failed("a", errDown)
		w.Failed("a", errDown)
		if w.state("a") != Closed || !w.Usable("a") {
			t.Fatal("open after two failures")
		}
		w.Failed("a", errDown)
		if w.state("a") != Open || w.Usable("a") {
			t.Fatal("not open after three failures")
		}
		if !w.Usable("b") {
			t.Error("another server is not usable")
		}
		wait(time.Minute)
		if w.state("a") != Open {
			t.Fatal("no longer open, although nothing listens there")
		}
		w.set("a", false)
		for end := time.Now().Add(rarest * 5 / 4); w.state("a") == Open && time.Now().Before(end); wait(10 * time.Millisecond) {
		}
		if w.state("a") != HalfOpen || !w.Usable("a") {
			t.Fatalf("%v after the first answer", w.state("a"))
		}
		w.Take("a")
		if w.Usable("a") {
			t.Error("half-open for a second player while one tries")
		}
		w.Failed("a", errDown)
		if w.state("a") != Open {
			t.Errorf("%v after the one try failed", w.state("a"))
		}
		for end := time.Now().Add(rarest * 5 / 4); w.state("a") == Open && time.Now().Before(end); wait(10 * time.Millisecond) {
		}
		wait(soonest * 5 / 4)
		if w.state("a") != Closed {
			t.Errorf("%v after the second answer", w.state("a"))
		}
		n := len(w.checks("a"))
		wait(time.Hour)
		if more := len(w.checks("a")) - n; more != 0 {
			t.Errorf("%d checks of a server that nobody doubts", more)
		}
		for _, f := range []string{"breaker=open", "breaker=half-open"} {
			if n := strings.Count(w.log.String(), f); n != 2 {
				t.Errorf("%s is in the log %d times:\n%s", f, n, w.log.String())
			}
		}
		if n := strings.Count(w.log.String(), "breaker=closed"); n != 1 {
			t.Errorf("closed is in the log %d times", n)
		}
	}, "a", "b")
}

// TestTakenTry: whoever takes the one try of a half-open breaker and never says what became of it does not block it for
// good; and a player who gets in closes it, without another check.
func TestTakenTry(t *testing.T) {
	begin(t, Policy{Failures: 1}, func(w *ward) {
		w.Failed("a", errDown)
		synctest.Wait() // the check it calls for
		if w.state("a") != HalfOpen {
			t.Fatal(w.state("a"))
		}
		w.takes = time.Hour // so that no check says anything any more
		w.Take("a")
		w.set("a", true)
		wait(trying / 2)
		if w.state("a") == HalfOpen && w.Usable("a") {
			t.Error("usable while one tries")
		}
		w.Succeeded("a")
		if w.state("a") != Closed || !w.Usable("a") {
			t.Errorf("%v after a player got in", w.state("a"))
		}
	}, "a")
	synctest.Test(t, func(t *testing.T) {
		b := New(nil, nil) // is not run, so nothing is checked
		b.Watch([]string{"a"}, Policy{Failures: 1})
		b.Failed("a", errDown)
		b.lives(b.servers["a"], time.Now(), true)
		b.Take("a")
		time.Sleep(trying - time.Second)
		if b.Usable("a") {
			t.Error("usable while one tries")
		}
		time.Sleep(2 * time.Second)
		if !b.Usable("a") {
			t.Error("blocked for good by a try that nobody reported")
		}
	})
}

// TestChecksOfOneServer: however many players want it, a server is asked by one check at a time, at growing intervals
// that have a bound, and never by all servers' checks at the same moments.
func TestChecksOfOneServer(t *testing.T) {
	begin(t, Policy{Failures: 2, Timeout: 3 * time.Second}, func(w *ward) {
		w.set("a", true)
		w.takes = 500 * time.Millisecond
		for range 300 { // five minutes
			for range 50 { // players
				w.Want("a")
				w.Failed("a", errDown)
				w.Doubt("a")
			}
			wait(time.Second)
		}
		at := w.checks("a")
		if w.most != 1 {
			t.Errorf("%d checks at a time", w.most)
		}
		if n := len(at); n < 20 || n > 50 {
			t.Errorf("%d checks in five minutes", n)
		}
		even := 0
		for i := 6; i < len(at); i++ {
			d := at[i].Sub(at[i-1]) - w.takes
			if d < rarest*3/4 || d > rarest*5/4+time.Second {
				t.Errorf("%v between checks %d and %d", d, i-1, i)
			}
			if d == rarest {
				even++
			}
		}
		if even > 2 {
			t.Error("no jitter")
		}
		if n := len(w.checks("b")); n != 0 {
			t.Errorf("another server was checked %d times", n)
		}
	}, "a", "b")
}

// TestSilentServer: a check ends with its time, and counts.
func TestSilentServer(t *testing.T) {
	begin(t, Policy{Failures: 2, Timeout: time.Second}, func(w *ward) {
		w.takes = time.Hour
		w.Doubt("a")
		wait(time.Minute)
		if w.state("a") != Open {
			t.Errorf("%v although it does not answer", w.state("a"))
		}
		if failed, answered := w.Checks(); failed < 5 || answered != 0 {
			t.Errorf("%d checks failed, %d were answered", failed, answered)
		}
	}, "a")
}

// TestInterval: with an interval servers are checked although nobody doubts them, and one that dies is found out.
func TestInterval(t *testing.T) {
	begin(t, Policy{Failures: 2, Interval: 5 * time.Second}, func(w *ward) {
		wait(time.Minute)
		for _, name := range []string{"a", "b"} {
			if n := len(w.checks(name)); n < 8 || n > 16 {
				t.Errorf("%s was checked %d times in a minute", name, n)
			}
		}
		w.set("b", true)
		wait(15 * time.Second)
		if w.state("a") != Closed || w.state("b") != Open {
			t.Errorf("a is %v, b %v", w.state("a"), w.state("b"))
		}
		w.set("b", false)
		wait(20 * time.Second)
		if w.state("b") != Closed {
			t.Errorf("b is %v long after it is back", w.state("b"))
		}
		// Other settings: a goes, c comes, b keeps what is known of it.
		w.set("b", true)
		wait(15 * time.Second)
		w.Drain("b", true)
		w.Watch([]string{"B", "c"}, Policy{})
		if w.state("B") != Open || !w.Draining("b") || w.state("a") != 99 {
			t.Errorf("after the change %+v", w.Servers())
		}
		n := len(w.checks("a")) + len(w.checks("c"))
		wait(time.Minute)
		if more := len(w.checks("a")) + len(w.checks("c")) - n; more != 0 {
			t.Errorf("%d checks without an interval", more)
		}
		w.Failed("a", errDown) // is gone, and nobody minds
		if !w.Usable("a") || w.Draining("a") || w.AliveSince("a", time.Time{}) || w.Drain("a", true) {
			t.Error("something is noted of a server that is gone")
		}
	}, "a", "b")
}

// TestSignOfLife: an answer to a check that began before a server was lost says nothing about afterwards.
func TestSignOfLife(t *testing.T) {
	begin(t, Policy{}, func(w *ward) {
		w.takes = time.Second
		w.Want("a")
		wait(500 * time.Millisecond)
		lost := time.Now()
		w.Doubt("a")
		wait(600 * time.Millisecond)
		if n := len(w.checks("a")); n != 1 || w.AliveSince("a", lost) {
			t.Fatalf("alive by the first of %d checks", n)
		}
		wait(5 * time.Second)
		if !w.AliveSince("a", lost) {
			t.Error("not alive after another check")
		}
		if w.AliveSince("a", time.Now()) {
			t.Error("alive in the future")
		}
	}, "a")
}

// TestDraining is a flag of its own, whatever the breaker says.
func TestDraining(t *testing.T) {
	begin(t, Policy{}, func(w *ward) {
		if !w.Drain("A", true) || !w.Draining("a") || w.Draining("b") || w.Drain("c", true) {
			t.Error("not the right server is draining")
		}
		if !w.Usable("a") {
			t.Error("draining changed the breaker")
		}
		w.Succeeded("a")
		if !w.Draining("a") {
			t.Error("an answer ended the draining")
		}
		w.Drain("a", false)
		if w.Draining("a") {
			t.Error("still draining")
		}
	}, "a", "b")
}

// TestMoved: of a server that has got another address nothing is known, but that it is drained.
func TestMoved(t *testing.T) {
	b := New(func(context.Context, string) error { return errors.New("not there") }, nil)
	b.Watch([]string{"a"}, Policy{Failures: 1})
	b.Drain("a", true)
	b.Failed("a", errors.New("gone"))
	if b.Usable("a") {
		t.Fatal("usable")
	}
	b.Moved("A")
	if f := b.Servers()[0]; !b.Usable("a") || !b.Draining("a") || f.State != Closed || f.Failures != 0 || b.AliveSince("a", time.Time{}) {
		t.Errorf("it is %+v", f)
	}
}
