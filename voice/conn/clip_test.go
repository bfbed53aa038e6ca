package conn

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talker"
	"github.com/earshot-mc/earshot/voice/wire"
)

var (
	board1 = caps.Set{Audio: 2, Spatial: 1, Soundboard: 1}
	board2 = caps.Set{Audio: 2, Spatial: 1, Soundboard: 2}
)

func framed(source wire.Source, stream, seq int64) []byte {
	return wire.AppendC2S(nil, wire.C2SBoard, &wire.C2S{Source: source, Stream: stream, Seq: seq, Opus: speech})
}

// drops returns the counters that are not 0.
func drops(b *bench) string {
	var all []string
	for _, d := range talker.Drops() {
		if n := b.cfg.Stats.Drops[d].Load(); n > 0 && d != talker.NotListed {
			all = append(all, fmt.Sprint(d, " ", n))
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// timed runs a test of one client in made-up time, in which nothing takes any.
func timed(t *testing.T, c caps.Set, test func(b *bench, k *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		k := b.pipe(c)
		time.Sleep(time.Second)
		test(b, k)
		b.close()
	})
}

func expect(t *testing.T, b *bench, what, want string) {
	t.Helper()
	if got := drops(b); got != want {
		t.Errorf("%s: dropped %s, want %s", what, got, want)
	}
	for i := range b.cfg.Stats.Drops {
		b.cfg.Stats.Drops[i].Store(0)
	}
}

// Microphone and soundboard do not drain each other's budget, and each stream of a clip has one of its own.
func TestClipBudgets(t *testing.T) {
	timed(t, board1, func(b *bench, k *Conn) {
		for seq := range int64(70) {
			k.Binary(framed(wire.Mic, 1, seq))
		}
		expect(t, b, "the microphone", "[rate 10]")
		for seq := range int64(75) {
			k.Binary(framed(wire.Board, 1, seq))
		}
		expect(t, b, "version 1", "[clip_rate 15]")
		time.Sleep(500 * time.Millisecond)
		for seq := range int64(40) {
			k.Binary(framed(wire.Board, 1, 75+seq))
			k.Binary(framed(wire.Mic, 1, 75+seq))
		}
		expect(t, b, "half a second later", "[clip_rate 10 rate 10]")
	})
	timed(t, board2, func(b *bench, k *Conn) {
		for seq := range int64(70) {
			for stream := range int64(10) {
				k.Binary(framed(wire.Board, 1+stream, seq))
			}
		}
		expect(t, b, "ten streams", "[clip_rate 100]")
		time.Sleep(time.Second)
		for seq := range int64(70) {
			k.Binary(framed(wire.Board, 1, seq))
		}
		expect(t, b, "one stream", "[clip_rate 10]")
		for seq := range int64(60) {
			for stream := int64(2); stream <= 10; stream++ {
				k.Binary(framed(wire.Board, stream, seq))
			}
		}
		// 600 a second in all: 530 were left.
		expect(t, b, "the other nine", "[clip_rate 10]")
	})
}

func TestClipsOfVersion1(t *testing.T) {
	timed(t, board1, func(b *bench, k *Conn) {
		k.Binary(framed(wire.Board, 1, 0))
		time.Sleep(talker.ClipEvery - time.Millisecond)
		k.Binary(framed(wire.Board, 2, 0))
		k.Binary(framed(wire.Board, 1, 1))
		expect(t, b, "299 ms after the last", "[clip_start 1]")
		time.Sleep(time.Millisecond)
		k.Binary(framed(wire.Board, 2, 1))
		expect(t, b, "300 ms after", "[]")
		k.Binary(framed(wire.Board, 1, 2))
		time.Sleep(talker.ClipEvery)
		k.Binary(framed(wire.Board, 1, 3))
		k.Binary(framed(wire.Board, 2, 2))
		expect(t, b, "two at once", "[clip_over 2]")
	})
}

func TestElevenClips(t *testing.T) {
	timed(t, board2, func(b *bench, k *Conn) {
		seq := int64(0)
		say := func(streams ...int64) {
			for _, s := range streams {
				k.Binary(framed(wire.Board, s, seq))
			}
			seq++
			time.Sleep(20 * time.Millisecond)
		}
		ten := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		for i := range ten {
			say(ten[:i+1]...)
		}
		expect(t, b, "ten", "[]")
		say(append(ten[1:], 11)...) // the client ended its oldest
		expect(t, b, "an eleventh", "[]")
		say(append(ten, 11)...) // and one that did not
		expect(t, b, "the oldest goes on", "[clip_over 1]")
		for range 15 { // 5 has ended, 2 is the oldest now
			say(2, 3, 4, 6, 7, 8, 9, 10, 11)
		}
		say(2, 3, 4, 6, 7, 8, 9, 10, 11, 12)
		say(2, 3, 4, 6, 7, 8, 9, 10, 11, 12)
		expect(t, b, "one has ended", "[]")
		say(13)
		say(2, 3, 4, 6, 7, 8, 9, 10, 11, 12)
		expect(t, b, "none has ended", "[clip_over 1]")
		say(3, 4, 6, 7, 8, 9, 10, 11, 12, 13)
		expect(t, b, "the ten that go on", "[]")
		say(2)
		expect(t, b, "the one that was replaced", "[clip_over 1]")
	})
}

// A client cannot make listeners keep a decoder for each of hundreds of clips.
func TestManyStarts(t *testing.T) {
	timed(t, board2, func(b *bench, k *Conn) {
		for i := range int64(100) {
			k.Binary(framed(wire.Board, 1+i, 0))
		}
		expect(t, b, "a hundred at once", "[clip_start 80]")
		time.Sleep(500 * time.Millisecond)
		for i := range int64(100) {
			k.Binary(framed(wire.Board, 201+i, 0))
		}
		expect(t, b, "half a second later", "[clip_start 90]")
	})
}

func TestSoundboardGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		notices := map[talker.Reason]int{}
		b := newBench(t, func(id uuid.UUID) hub.Bits {
			if refused.Load() || id != (uuid.UUID{15: 1}) {
				return hub.Open &^ hub.Soundboard
			}
			return hub.Open
		})
		may := func(yes bool) {
			refused.Store(!yes)
			time.Sleep(2 * hub.Flush) // in which it is asked for
		}
		if err := b.cfg.Hub.SetSoundboard(false); err != nil {
			t.Fatal(err)
		}
		b.cfg.Notice = func(id uuid.UUID, why talker.Reason) {
			if id != (uuid.UUID{15: 1}) {
				t.Errorf("tells %v", id)
			}
			notices[why]++
		}
		k := b.pipe(board2)
		time.Sleep(time.Second)
		seq := int64(0)
		say := func(seconds int) {
			for range seconds * 50 {
				k.Binary(framed(wire.Board, 1, seq))
				seq++
				time.Sleep(20 * time.Millisecond)
			}
		}
		told := func(what string, off, refused int) {
			t.Helper()
			if notices[talker.SoundboardOff] != off || notices[talker.SoundboardRefused] != refused {
				t.Errorf("%s: told %v", what, notices)
			}
			clear(notices)
		}
		say(5)
		expect(t, b, "switched off", "[clips_off 250]")
		told("for five seconds", 1, 0)
		say(5)
		told("for ten", 1, 0)
		expect(t, b, "switched off", "[clips_off 250]")
		if err := b.cfg.Hub.SetSoundboard(true); err != nil {
			t.Fatal(err)
		}
		say(1)
		expect(t, b, "on", "[]")
		may(false)
		say(1)
		told("not allowed, right after another reason", 0, 1)
		expect(t, b, "not allowed", "[clips_refused 50]")
		k.Binary(framed(wire.Mic, 1, 0))
		expect(t, b, "the microphone", "[]")
		may(true)
		say(1)
		expect(t, b, "allowed again", "[]")
		b.cfg.Notice = nil
		k = b.pipe(board2) // who may not use it either
		time.Sleep(time.Second)
		say(1)
		expect(t, b, "nobody to tell", "[clips_refused 50]")
		b.close()
		if s := talker.SoundboardOff.String() + talker.SoundboardRefused.String(); len(s) < 20 {
			t.Error(s)
		}
	})
}

func TestBadKindIsCounted(t *testing.T) {
	timed(t, board2, func(b *bench, k *Conn) {
		bad := framed(wire.Board, 1, 0)
		bad[0] = 2
		for range 99 {
			k.Binary(bad)
		}
		expect(t, b, "kind 2", "[bad_kind 99]")
		k.Binary(frame(1, 0, speech)) // without a kind: of the wrong format
		time.Sleep(3 * time.Second)   // in which a close is over
		if b.sweep.Len() != 0 {
			t.Error("the hundredth bad frame does not close")
		}
	})
}

// Whatever is delivered, a client gets no byte that it did not negotiate.
func TestKindsAreForWhoNegotiatedThem(t *testing.T) {
	for name, c := range map[string]caps.Set{"v1": {}, "v2": {Audio: 2}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			k := b.pipe(c)
			time.Sleep(time.Second)
			before := k.sock.Stats()
			for _, kind := range []route.Kind{route.Clip, route.Channel} {
				k.Deliver(&route.Frame{Kind: kind, Gain: 1, Stream: 1, Opus: speech})
			}
			k.Retract(uuid.UUID{})
			time.Sleep(time.Second)
			if after := k.sock.Stats(); after != before {
				t.Errorf("%s: %+v, before %+v", name, after, before)
			}
			b.close()
		})
	}
}
