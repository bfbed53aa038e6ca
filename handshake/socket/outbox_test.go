package socket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a sink that takes what it is allowed to.
type fake struct {
	got    bytes.Buffer
	writes int
	room   int // bytes; negative: none at all; 0: everything
	below  bool
	err    error
	at     []time.Duration
	clock  func() time.Duration
}

func (f *fake) busy() bool { return f.below }

func (f *fake) try(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n := len(p)
	if f.room != 0 {
		n = min(n, max(f.room, 0))
		f.room -= n
		if f.room == 0 {
			f.room = -1
		}
	}
	if n > 0 {
		f.writes++
		if f.clock != nil {
			f.at = append(f.at, f.clock())
		}
	}
	f.got.Write(p[:n])
	return n, nil
}

// frames takes what the sink got apart.
func (f *fake) frames(t testing.TB) (out []string) {
	t.Helper()
	r := bytes.NewReader(f.got.Bytes())
	for {
		s, err := readFrame(r)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("after %d frames: %v", len(out), err)
		}
		out = append(out, s)
	}
}

func (f *fake) want(t *testing.T, frames ...string) {
	t.Helper()
	if got := f.frames(t); strings.Join(got, "|") != strings.Join(frames, "|") {
		t.Fatalf("sent %q, want %q", got, frames)
	}
}

func TestOrder(t *testing.T) {
	o, f := &outbox{}, &fake{}
	o.view(3, []byte("view 3"))
	o.view(1, []byte("view 1"))
	o.audio(0, []byte("he"), []byte("ad"))
	o.reply([]byte("reply 1"))
	o.audio(0, nil, []byte("second"))
	o.reply([]byte("reply 2"))
	o.ping, o.ponged, o.pong = true, true, []byte("p")
	if _, err := o.flush(0, f); err != nil || !o.empty() {
		t.Fatal(err, o.empty())
	}
	f.want(t, "text reply 1", "text reply 2", "pong p", "ping ", "binary head", "binary second", "text view 1", "text view 3")
	if o.stats.Sent != 2 {
		t.Errorf("%+v", o.stats)
	}
}

func TestManyFramesInOneWrite(t *testing.T) {
	o, f := &outbox{}, &fake{}
	for i := range 100 {
		o.audio(0, []byte{byte(i)}, bytes.Repeat([]byte("x"), 120))
	}
	o.flush(0, f)
	if f.writes != 1 || len(f.frames(t)) != 100 || o.stats.Writes != 1 || o.stats.Sent != 100 {
		t.Fatalf("%d writes, %+v", f.writes, o.stats)
	}
}

func TestDropOldest(t *testing.T) {
	o, f := &outbox{}, &fake{}
	body := bytes.Repeat([]byte("x"), 1020) // 1024 bytes each with the header
	for i := range 40 {
		o.audio(0, []byte{}, append([]byte{byte('A' + i)}, body[1:]...))
	}
	if d := o.stats.Drops[DropFull]; d != 8 {
		t.Fatalf("%d dropped of 40 KiB in %d", d, maxSound)
	}
	o.flush(0, f)
	got := f.frames(t)
	if len(got) != 32 || got[0][7] != 'A'+8 || got[31][7] != 'A'+39 {
		t.Fatalf("%d frames left, from %q", len(got), got[0][7])
	}
	if cap(o.sound) > 3*maxSound {
		t.Errorf("grew to %d bytes", cap(o.sound))
	}
}

func TestStaleIsDroppedWhenItIsSent(t *testing.T) {
	o, f := &outbox{}, &fake{room: -1}
	for i := range 10 {
		o.audio(time.Duration(i)*50*time.Millisecond, nil, fmt.Append(nil, i))
		o.flush(time.Duration(i)*50*time.Millisecond, f)
	}
	f.room = 0
	o.flush(500*time.Millisecond, f)
	f.want(t, "binary 6", "binary 7", "binary 8", "binary 9") // 300 ms and later
	if o.stats.Drops[DropStale] != 6 || o.stats.Sent != 4 {
		t.Errorf("%+v", o.stats)
	}
	o.audio(0, nil, []byte("old"))
	o.view(0, []byte("view"))
	o.flush(time.Second, f)
	f.want(t, "binary 6", "binary 7", "binary 8", "binary 9", "text view") // all stale: goes on with the rest
}

// The part of a frame that a peer has is followed by the rest of it, however old.
func TestPartOfAFrame(t *testing.T) {
	o, f := &outbox{}, &fake{room: 5}
	o.audio(0, nil, []byte("first frame"))
	o.audio(0, nil, []byte("second frame"))
	o.flush(0, f)
	f.room = 0
	o.audio(time.Minute, nil, []byte("third frame"))
	o.flush(time.Minute, f)
	f.want(t, "binary first frame", "binary third frame")
	if o.stats.Drops[DropStale] != 1 || o.stats.Sent != 2 {
		t.Errorf("%+v", o.stats)
	}
}

func TestViewsAreNewestOnlyAndWait(t *testing.T) {
	o, f := &outbox{}, &fake{room: 3}
	o.audio(0, nil, []byte("sound"))
	o.view(2, []byte("old"))
	o.flush(0, f)
	o.view(2, []byte("new"))
	o.view(5, []byte("taken back"))
	o.view(5, nil)
	f.room, f.below = 0, true
	o.flush(0, f)
	f.want(t, "binary sound") // something is buffered below
	f.below = false
	o.flush(0, f)
	f.want(t, "binary sound", "text new")
	if !o.empty() {
		t.Error("something is left")
	}
}

func TestWaits(t *testing.T) {
	s, f, sweep := timed(t)
	defer sweep.Close()
	f.room = 3
	s.Audio(nil, []byte("sound"))
	s.View(2, []byte("view"))
	if !s.Waits(2) || s.Waits(1) {
		t.Error("a view behind sound does not wait")
	}
	s.mu.Lock()
	f.room = 10 // the sound, and a part of the view
	s.flush(s.sweep.now())
	s.mu.Unlock()
	if s.Waits(2) {
		t.Error("a view on its way waits")
	}
}

func TestLargeView(t *testing.T) {
	o, f := &outbox{}, &fake{room: 1000}
	view := bytes.Repeat([]byte("v"), 262_144)
	o.view(0, view)
	o.flush(0, f)
	o.audio(0, nil, []byte("meanwhile"))
	for !o.empty() {
		f.room = 10_000
		o.flush(0, f)
	}
	f.want(t, "text "+string(view), "binary meanwhile")
}

// A view goes whole and in its place however little the peer takes at a time, and a long one is not copied for each
// peer.
func TestViewsInPieces(t *testing.T) {
	for _, size := range []int{0, 1, 125, 126, longView - 1, longView, longView + 1, 70_000} {
		for _, room := range []int{1, 2, 3, 5, longView} {
			if size/room > 10_000 {
				continue
			}
			o, f := &outbox{}, &fake{room: room}
			view := bytes.Repeat([]byte("v"), size)
			o.view(0, view)
			o.flush(0, f)
			if long := len(o.body) > 0 && &o.body[0] == &view[0]; long != (size >= longView && room < 4) && room < 4 {
				t.Errorf("%d bytes: the rest is the same bytes: %v", size, long)
			}
			o.audio(0, nil, []byte("meanwhile"))
			o.view(1, []byte("next"))
			o.pong, o.ponged = []byte("p"), true
			for !o.empty() {
				f.room = room
				o.flush(0, f)
			}
			f.want(t, "text "+string(view), "pong p", "binary meanwhile", "text next")
		}
	}
}

func TestRepliesAreBounded(t *testing.T) {
	o, f := &outbox{}, &fake{room: -1}
	n := 0
	for o.reply(make([]byte, 1000)) {
		n++
		o.flush(0, f)
	}
	if n < 16 || n > 40 {
		t.Errorf("%d replies of 1000 bytes fit", n)
	}
	if !o.reply([]byte("x")) {
		t.Error("a small one would have fitted")
	}
}

func TestPingsOfADeafPeerDoNotPileUp(t *testing.T) {
	o, f := &outbox{}, &fake{room: -1}
	for range 1000 {
		o.pong, o.ponged, o.ping = []byte("p"), true, true
		o.flush(0, f)
	}
	f.room = 0
	o.flush(0, f)
	if got := f.frames(t); len(got) > 3 {
		t.Errorf("%d frames", len(got))
	}
}

func TestCloseFrameComesLast(t *testing.T) {
	o, f := &outbox{}, &fake{room: 4}
	o.audio(0, nil, []byte("in part"))
	o.flush(0, f)
	o.audio(0, nil, []byte("never sent"))
	o.view(0, []byte("never sent"))
	o.ping = true
	o.reply([]byte("reply"))
	o.close(&Closed{Code: Left, Reason: "left"})
	f.room = 0
	o.flush(0, f)
	f.want(t, "binary in part", "text reply", "close 4003 left")
	if !o.empty() || o.stats.Drops[DropClosed] != 1 {
		t.Errorf("%+v", o.stats)
	}
}

// Whatever is put in, and however little the sink takes at a time, what comes out is whole frames, each kind in its
// order, every loss counted.
func TestAnyWriteSizes(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		o, f := &outbox{}, &fake{room: -1}
		var now time.Duration
		var sounds, replies int
		for range 500 {
			now += time.Duration(rnd.IntN(10)) * time.Millisecond
			switch rnd.IntN(8) {
			case 0:
				if o.reply(fmt.Appendf(nil, "r%d", replies)) {
					replies++
				}
			case 1:
				o.view(rnd.IntN(Views), bytes.Repeat([]byte("v"), rnd.IntN(70_000)))
			case 2:
				o.pong, o.ponged = []byte("pong"), true
			case 3:
				o.ping = true
			case 4:
				f.room = 1 + rnd.IntN(3000)
			default:
				o.audio(now, fmt.Appendf(nil, "%d ", sounds), make([]byte, rnd.IntN(1300)))
				sounds++
			}
			o.flush(now, f)
		}
		f.room = 0
		o.flush(now, f)
		last, nextReply, arrived := -1, 0, 0
		for _, s := range f.frames(t) {
			var n int
			switch {
			case strings.HasPrefix(s, "binary "):
				fmt.Sscan(s[7:], &n)
				if n <= last {
					t.Fatalf("seed %d: frame %d after %d", seed, n, last)
				}
				last = n
				arrived++
			case strings.HasPrefix(s, "text r"):
				if s != fmt.Sprintf("text r%d", nextReply) {
					t.Fatalf("seed %d: %q, want reply %d", seed, s, nextReply)
				}
				nextReply++
			}
		}
		st := o.stats
		if !o.empty() || nextReply != replies || arrived != int(st.Sent) || arrived+int(st.Drops[DropFull]+st.Drops[DropStale]) != sounds {
			t.Fatalf("seed %d: %d of %d replies, %d of %d frames, %+v", seed, nextReply, replies, arrived, sounds, st)
		}
	}
}

func TestSinkErrorEndsTheSocket(t *testing.T) {
	sweep := newSweeper(t)
	s := New(&canned{r: strings.NewReader("")}, nil, sweep)
	boom := errors.New("boom")
	s.sink = &fake{err: boom}
	s.Audio(nil, []byte("x"))
	s.Audio(nil, []byte("y"))
	if err := s.Run(t.Context(), &record{}); !errors.Is(err, boom) {
		t.Fatalf("ended with %v", err)
	}
	if st := s.Stats(); st.Drops[DropClosed] != 2 {
		t.Errorf("%+v", st)
	}
}

// timed returns a socket on a fake sink, with the clock of a synctest bubble.
func timed(t *testing.T) (*Socket, *fake, *Sweeper) {
	sweep := NewSweeper()
	s := New(&canned{}, nil, sweep)
	f := &fake{clock: sweep.now}
	s.sink = f
	return s, f, sweep
}

// gaps has what a plain socket and one over TLS are to wait.
var gaps = []struct{ gap, want time.Duration }{{gap, 10 * time.Millisecond}, {gapTLS, 12 * time.Millisecond}}

func TestALoneTalkerWaitsForNothing(t *testing.T) {
	for _, c := range gaps {
		synctest.Test(t, func(t *testing.T) {
			s, f, sweep := timed(t)
			defer sweep.Close()
			s.gap, s.wrote = c.gap, -c.gap
			jitter := 19*time.Millisecond - c.want
			for i := range 50 {
				s.Audio(nil, []byte("frame"))
				if f.writes != i+1 {
					t.Fatalf("frame %d waits", i)
				}
				time.Sleep(20*time.Millisecond + time.Duration(i%3-1)*jitter) // 11 to 29, 13 to 27
			}
		})
	}
}

func TestCompanyShares(t *testing.T) {
	for _, c := range gaps {
		synctest.Test(t, func(t *testing.T) {
			s, f, sweep := timed(t)
			defer sweep.Close()
			s.gap, s.wrote = c.gap, -c.gap
			const talkers = 10
			for range 50 { // a second of ten talkers, two milliseconds apart
				for range talkers {
					s.Audio(nil, []byte("frame"))
					time.Sleep(2 * time.Millisecond)
				}
			}
			time.Sleep(20 * time.Millisecond)
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := len(f.frames(t)); got != 50*talkers {
				t.Fatalf("%d frames arrived", got)
			}
			if f.writes > int(time.Second/c.want)+2 || f.writes < 60 {
				t.Errorf("%d writes in a second", f.writes)
			}
			for i := 1; i < len(f.at); i++ {
				most := c.want + 2*time.Millisecond - 1 // the next frame takes it along
				if i == len(f.at)-1 {
					most = c.want + 6*time.Millisecond // nothing comes but the sweeper
				}
				if d := f.at[i] - f.at[i-1]; d < c.want || d > most {
					t.Errorf("write %d came %v after the one before", i, d)
				}
			}
		})
	}
}

func TestTwoFramesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, sweep := timed(t)
		defer sweep.Close()
		s.Audio(nil, []byte("1"))
		s.Audio(nil, []byte("2"))
		time.Sleep(15 * time.Millisecond)
		synctest.Wait()
		if f.writes != 2 || f.at[1] < 10*time.Millisecond || f.at[1] > 15*time.Millisecond {
			t.Fatalf("%d writes at %v", f.writes, f.at)
		}
		if len(sweep.queue) != 0 {
			t.Fatal("still something to sweep")
		}
	})
}

// A peer that takes nothing is tried less and less often, but within 60 ms.
func TestFullPeerIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, sweep := timed(t)
		defer sweep.Close()
		f.room = -1
		for range 500 {
			s.Audio(nil, []byte("frame"))
			time.Sleep(2 * time.Millisecond)
		}
		s.mu.Lock()
		f.room = 0
		back := sweep.now()
		s.mu.Unlock()
		time.Sleep(60 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(f.at) == 0 || f.at[0]-back > 55*time.Millisecond {
			t.Fatalf("back at %v, written to at %v", back, f.at)
		}
		if n := len(f.frames(t)); n > 101 {
			t.Errorf("%d frames, which is more than 200 ms", n)
		}
		if st := s.outbox.stats; st.Sent+st.Drops[DropStale] != 500 {
			t.Errorf("%+v", st)
		}
	})
}

func TestDropsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Drops() {
		if d.String() == "" || seen[d.String()] {
			t.Errorf("reason %d is called %q", d, d)
		}
		seen[d.String()] = true
	}
	if len(seen) != int(numDrops) {
		t.Errorf("%d reasons of %d", len(seen), numDrops)
	}
}
