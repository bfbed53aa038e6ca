package socket

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
)

// stopped runs a test with a socket on a fake sink in stopped time.
func stopped(t *testing.T, f func(*testing.T, *Socket, *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, sink, sweep := timed(t)
		defer sweep.Close()
		f(t, s, sink)
	})
}

// TestLanesOrder: control in order, then the newest state alone, and the close frame behind what is on the control
// lane.
func TestLanesOrder(t *testing.T) {
	stopped(t, func(t *testing.T, s *Socket, f *fake) {
		f.room = -1
		s.Control([]byte("a"), false)
		s.State([]byte("old"), false)
		s.Control([]byte("b"), true)
		s.State([]byte("new"), true)
		f.room = 0
		s.mu.Lock()
		s.retry = 0
		s.flush(s.sweep.now())
		s.mu.Unlock()
		f.want(t, "text a", "binary b", "binary new")
		f.room = -1
		s.State([]byte("never"), false)
		s.Control([]byte("last"), false)
		s.Close(Policy, "out")
		f.room = 0
		s.mu.Lock()
		s.flush(s.sweep.now())
		s.mu.Unlock()
		f.want(t, "text a", "binary b", "binary new", "text last", "close 1008 out")
		if !s.Control([]byte("late"), false) {
			t.Error("a closed socket is full")
		}
	})
}

// TestLanesInPieces: whatever the kernel takes at a time, small and long frames arrive whole.
func TestLanesInPieces(t *testing.T) {
	for _, at := range []int{1, 7, 5000} {
		stopped(t, func(t *testing.T, s *Socket, f *fake) {
			f.room = -1
			var want []string
			for i := range 12 {
				text := strings.Repeat(fmt.Sprint(i%10), 1+i%4*3000)
				s.Control([]byte(text), false)
				want = append(want, "text "+text)
			}
			s.State([]byte(strings.Repeat("s", 9000)), true)
			want = append(want, "binary "+strings.Repeat("s", 9000))
			for range 200_000 {
				f.room = at
				s.mu.Lock()
				s.flush(s.sweep.now())
				done := s.outbox.empty()
				s.mu.Unlock()
				if done {
					break
				}
			}
			f.want(t, want...)
		})
	}
}

// TestRecoveryIsReplaced: of two recoveries that wait the first is gone, and nothing else.
func TestRecoveryIsReplaced(t *testing.T) {
	stopped(t, func(t *testing.T, s *Socket, f *fake) {
		f.room = -1
		s.Control([]byte("first"), false)
		s.Recover(false, []byte("one"), []byte("two"))
		s.Control([]byte("between"), false)
		s.Recover(true, []byte("three"), []byte("four"))
		if n := s.outbox.lanes.bytes; n != len("betweenthreefour") {
			t.Error(n, "bytes wait")
		}
		f.room = 0
		s.mu.Lock()
		s.flush(s.sweep.now())
		s.mu.Unlock()
		f.want(t, "text first", "text between", "binary three", "binary four")
	})
}

// TestControlIsBounded: by bytes, or by the longest frame where that is long; one more is on its way.
func TestControlIsBounded(t *testing.T) {
	for size, most := range map[int]int{1000: 263, 100_000: 9} {
		stopped(t, func(t *testing.T, s *Socket, f *fake) {
			f.room = -1
			n := 0
			for s.Control(make([]byte, size), false) && n < 1000 {
				n++
			}
			if n != most {
				t.Errorf("%d frames of %d bytes wait, want %d", n, size, most)
			}
		})
	}
}

// TestStateWaits: how long one waits, whatever replaces it.
func TestStateWaits(t *testing.T) {
	stopped(t, func(t *testing.T, s *Socket, f *fake) {
		if s.StateWaits() != 0 {
			t.Error("waits from the start")
		}
		f.room = -1
		s.State([]byte("a"), false) // is on its way
		s.State([]byte("b"), false)
		time.Sleep(20 * time.Millisecond)
		s.State([]byte("c"), false)
		if s.StateWaits() < 15*time.Millisecond {
			t.Error(s.StateWaits())
		}
		f.room = 0
		s.mu.Lock()
		s.flush(s.sweep.now())
		s.mu.Unlock()
		if s.StateWaits() != 0 {
			t.Error("waits when it is gone")
		}
	})
}

// long is a handler that is told of long messages.
type long struct {
	record
	tooLong func()
}

func (l *long) TooLong() { l.tooLong() }

// TestOtherLimits: messages longer than the buffer, and who is told of those beyond the limits.
func TestOtherLimits(t *testing.T) {
	server, client := tcp(t)
	s := New(server, nil, newSweeper(t))
	s.SetLimits(Limits{Binary: 100, Text: 4096})
	got := make(chan string, 10)
	h := &long{record: record{on: func(x string) { got <- x }}, tooLong: func() {
		s.Control([]byte("too long"), false)
		s.Close(Policy, "Invalid request")
	}}
	wait := run(t, s, h)
	p := &peer{t: t, conn: client, br: bufio.NewReader(client)}
	three := strings.Repeat("€", 4096)
	p.send(frame(ws.OpText, true, three), frame(ws.OpText, false, three[:6000]), frame(ws.OpContinuation, true, three[6000:]), frame(ws.OpBinary, true, strings.Repeat("b", 100)))
	for _, want := range []string{"t:" + three, "t:" + three, "b:" + strings.Repeat("b", 100)} {
		if x := <-got; x != want {
			t.Fatalf("%d bytes, want %d", len(x), len(want))
		}
	}
	p.send(frame(ws.OpText, true, strings.Repeat("a", 4097)))
	if a, b := p.next(), p.next(); a != "text too long" || b != "close 1008 Invalid request" {
		t.Error(a, b)
	}
	client.Close()
	if err := wait(); !bytes.Contains([]byte(err.Error()), []byte("1008")) {
		t.Error(err)
	}
}

// TestQueue: of more than 32 messages the oldest of the lowest rank goes, and those of a higher rank stay in their
// place.
func TestQueue(t *testing.T) {
	stopped(t, func(t *testing.T, s *Socket, f *fake) {
		f.room = -1
		s.Queue([]byte("first"), 2) // what the socket tries at once is not in the queue any more
		want := []string{"binary first", "binary welcome"}
		s.Queue([]byte("welcome"), 2)
		for i := range 40 {
			dropped := s.Queue(fmt.Appendf(nil, "snapshot %d", i), 0)
			if want := 0; i < Queued-1 {
				if dropped != -1 {
					t.Errorf("snapshot %d drops %d", i, dropped)
				}
			} else if dropped != want {
				t.Errorf("snapshot %d drops %d", i, dropped)
			}
		}
		for i := 40 - (Queued - 1); i < 40; i++ {
			want = append(want, fmt.Sprintf("binary snapshot %d", i))
		}
		f.room = 0
		s.mu.Lock()
		s.retry = 0
		s.flush(s.sweep.now())
		s.mu.Unlock()
		f.want(t, want...)
		f.room = -1
		s.Queue([]byte("tried"), 0)
		for range Queued {
			s.Queue([]byte("pong"), 1)
		}
		if d := s.Queue([]byte("pong"), 1); d != 1 {
			t.Errorf("of nothing but pongs %d is dropped", d)
		}
		if d := s.Queue([]byte("late snapshot"), 0); d != 0 {
			t.Errorf("beside pongs %d is dropped", d)
		}
		s.Close(Policy, "out")
		if d := s.Queue([]byte("x"), 0); d != -1 {
			t.Errorf("a closed socket drops %d", d)
		}
	})
}
