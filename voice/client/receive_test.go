//go:build cgo && nolibopusfile

package client

import (
	"encoding/binary"
	"math"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/wire"
)

// listener is a receiver whose sounds are kept.
type listener struct {
	receiver
	heard []Sound
	now   time.Time
}

func listen(format wire.S2CFormat, cfg Config) *listener {
	l := &listener{now: time.Unix(1e9, 0)}
	cfg.Sound = func(s Sound) {
		s.PCM = append([]int16(nil), s.PCM...)
		l.heard = append(l.heard, s)
	}
	l.init(format, true, cfg)
	return l
}

// hear takes one frame of a player on a v2 socket.
func (l *listener) hear(from uuid.UUID, stream, seq int64, packet []byte) {
	l.frame(l.now, wire.AppendS2C(nil, l.format, &wire.S2C{Source: from, Gain: 255, Stream: stream, Seq: seq, Opus: packet}))
}

// seqs returns the sequences heard, concealed ones negative and less one.
func (l *listener) seqs() (all []int64) {
	for _, s := range l.heard {
		if s.Concealed {
			all = append(all, -s.Seq-1)
		} else {
			all = append(all, s.Seq)
		}
	}
	l.heard = nil
	return
}

func packets(t testing.TB, n int) (all [][]byte) {
	t.Helper()
	e, err := opus.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p, err := e.Encode(tone(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// level returns the amplitude of 440 Hz.
func level(pcm []int16) float64 {
	var re, im float64
	for k, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * 440 * float64(k) / opus.SampleRate)
		re += float64(v) * c
		im += float64(v) * s
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm))
}

func TestConcealment(t *testing.T) {
	all := packets(t, 40)
	l := listen(wire.S2CV2, Config{})
	play := func(seqs ...int) {
		for _, s := range seqs {
			l.hear(alice, 9, int64(s), all[s])
		}
	}
	expect := func(name string, want ...int64) {
		t.Helper()
		if got := l.seqs(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: heard %v, want %v", name, got, want)
		}
	}
	play(2, 3, 4)
	expect("a segment may begin at any number", 2, 3, 4)
	play(6)
	expect("one missing", -6, 6)
	play(10)
	expect("three missing", -8, -9, -10, 10)
	play(10, 9, 4, 10)
	expect("duplicates and older ones")
	play(11)
	expect("goes on", 11)
	play(16)
	expect("four missing", 16)
	play(17)
	expect("goes on after a reset", 17)
	l.hear(alice, 10, 30, all[30])
	expect("another stream is no loss", 30)
	l.hear(alice, 10, 29, all[29])
	expect("older in the new stream")
	if n := l.counters(); n != (Counters{Frames: 14, Played: 9, Gaps: 1 + 3 + 4, Concealed: 4, Stale: 5}) {
		t.Errorf("%+v", n)
	}
}

// What is made up continues the tone, and the real successor sounds as sent.
func TestConcealedSoundContinues(t *testing.T) {
	all := packets(t, 40)
	l := listen(wire.S2CV2, Config{})
	for i, p := range all {
		if i != 20 && i != 21 {
			l.hear(alice, 1, int64(i), p)
		}
	}
	if len(l.heard) != 40 {
		t.Fatal(len(l.heard))
	}
	for i, s := range l.heard {
		lowest := 9000.0
		if s.Concealed {
			lowest = 3000
		}
		if got := level(s.PCM); i >= 10 && got < lowest || s.Concealed != (i == 20 || i == 21) {
			t.Errorf("frame %d, concealed %t: 440 Hz at %.0f", i, s.Concealed, got)
		}
	}
}

// Past three missing frames the decoder begins again: it sounds exactly as a fresh one.
func TestResetAfterLongGap(t *testing.T) {
	all := packets(t, 40)
	l := listen(wire.S2CV2, Config{})
	for i := range 20 {
		l.hear(alice, 1, int64(i), all[i])
	}
	l.heard = nil
	l.hear(alice, 1, 30, all[30])
	d, _ := opus.NewDecoder()
	want, _ := d.Decode(all[30])
	if len(l.heard) != 1 || !reflect.DeepEqual(l.heard[0].PCM, want) {
		t.Error("does not sound like a first frame")
	}
}

func TestLegacyTalkersHaveNoGaps(t *testing.T) {
	all := packets(t, 3)
	l := listen(wire.S2CV2, Config{})
	for i := range 3 {
		l.hear(alice, 0, 0, all[i])
	}
	l.hear(alice, 5, 7, all[0]) // the talker has a new client
	l.hear(alice, 5, 9, all[1])
	l.hear(alice, 0, 0, all[2])
	l.hear(alice, 0, 0, all[2])
	if got := l.seqs(); !reflect.DeepEqual(got, []int64{0, 0, 0, 7, -9, 9, 0, 0}) {
		t.Error(got)
	}
	if n := l.counters(); n.Gaps != 1 || n.Stale != 0 || n.Played != 7 {
		t.Errorf("%+v", n)
	}
	l = listen(wire.S2CV1, Config{})
	for i := range 3 {
		l.frame(l.now, wire.AppendS2C(nil, wire.S2CV1, &wire.S2C{Source: alice, Gain: 128, DX: -3, DZ: 4, Opus: all[i]}))
	}
	if len(l.heard) != 3 || l.heard[0].Gain != 128.0/255 || l.heard[0].DX != -3 || l.heard[0].DZ != 4 || l.heard[0].Source != alice {
		t.Errorf("%+v", l.heard)
	}
}

// A sequence that jumps by 2^62 costs nothing and cannot wrap the counter.
func TestGapCounterSaturates(t *testing.T) {
	p := packets(t, 1)[0]
	l := listen(wire.S2CV2, Config{})
	for range 5 {
		for _, seq := range []int64{0, math.MaxInt64 - 1} {
			l.hear(alice, 1+int64(len(l.heard)/2), seq, p)
		}
	}
	if n := l.counters(); n.Gaps != math.MaxUint64 || n.Concealed != 0 || len(l.heard) != 10 {
		t.Errorf("%+v", n)
	}
}

// Sources do not share decoders: a channel goes by its own ID, not by whose microphone it carries, and a player's clips
// are streams of their own.
func TestSourcesAreSeparate(t *testing.T) {
	all := packets(t, 4)
	l := listen(wire.S2CSpatial, Config{})
	take := func(kind wire.Kind, source, origin uuid.UUID, stream, seq int64) {
		l.frame(l.now, wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{Kind: kind, Source: source, Origin: origin, Gain: 255, Stream: stream, Seq: seq, Opus: all[seq]}))
	}
	for seq := range int64(2) {
		take(wire.KindPlayer, alice, uuid.Nil, 1, seq)
		take(wire.KindChannel, bob, alice, 1, seq)
		take(wire.KindChannel, alice, alice, 1, seq)
		take(wire.KindBoard, alice, uuid.Nil, 1, seq)
		take(wire.KindBoard, alice, uuid.Nil, 2, seq)
	}
	if n := l.counters(); n.Played != 10 || n.Stale+n.Gaps+n.Invalid != 0 || len(l.sources) != 5 {
		t.Errorf("%+v, %d sources", n, len(l.sources))
	}
	if s := l.heard[1]; s.Kind != wire.KindChannel || s.Source != bob || s.Origin != alice {
		t.Errorf("%+v", s)
	}
	take(wire.KindChannel, bob, alice, 0, 0) // a channel always counts
	l.frame(l.now, []byte{7, 1, 2, 3})
	l.frame(l.now, nil)
	if n := l.counters(); n.Invalid != 3 {
		t.Errorf("%+v", n)
	}
}

func TestBadOpusIsCounted(t *testing.T) {
	all := packets(t, 3)
	l := listen(wire.S2CV2, Config{})
	l.hear(alice, 1, 0, all[0])
	l.hear(alice, 1, 1, []byte{30 << 3, 1, 2}) // 10 ms
	l.hear(alice, 1, 2, all[2])
	if n := l.counters(); n.DecodeErrors != 1 || n.Gaps != 0 || n.Played != 2 {
		t.Errorf("%+v", n)
	}
}

func TestDecodersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := packets(t, 2)
		var concealed int
		c, s := mustConnect(t, Config{Ask: most, Sound: func(s Sound) {
			if s.Concealed {
				concealed++
			}
		}}, answer{echo: most})
		say := func(seq int64) {
			s.send(ws.OpBinary, wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{Source: alice, Gain: 9, Stream: 4, Seq: seq, Opus: p[0]}))
			synctest.Wait()
		}
		have := func() int {
			c.recv.mu.Lock()
			defer c.recv.mu.Unlock()
			return len(c.recv.sources)
		}
		say(0)
		time.Sleep(idleAfter - time.Millisecond)
		if have() != 1 {
			t.Error("expired early")
		}
		say(2)
		if concealed != 1 {
			t.Errorf("%d concealed", concealed)
		}
		time.Sleep(idleAfter + time.Second)
		if have() != 0 {
			t.Error("not expired")
		}
		say(4) // the past is forgotten
		if n := c.Counters(); n.Gaps != 1 || n.Played != 3 || concealed != 1 {
			t.Errorf("%+v", n)
		}
	})
}

func TestSourcesAreBounded(t *testing.T) {
	p := packets(t, 1)[0]
	l := listen(wire.S2CV2, Config{})
	for i := range maxSources + 50 {
		var id uuid.UUID
		binary.BigEndian.PutUint32(id[:], uint32(i+1))
		l.hear(id, 1, 0, p)
	}
	if n := l.counters(); len(l.sources) != maxSources || n.Crowded != 50 || n.Played != maxSources {
		t.Errorf("%d sources, %+v", len(l.sources), n)
	}
	l.expire(l.now.Add(idleAfter))
	if len(l.sources) != 0 {
		t.Errorf("%d stay", len(l.sources))
	}
}

// Deafened is silent at once, and what was missed is not taken for loss.
func TestDeafenedHearsNothing(t *testing.T) {
	all := packets(t, 6)
	l := listen(wire.S2CV2, Config{})
	for i, p := range all {
		l.setDeafened(i == 2 || i == 3)
		l.hear(alice, 1, int64(i), p)
	}
	if got := l.seqs(); !reflect.DeepEqual(got, []int64{0, 1, 4, 5}) {
		t.Error(got)
	}
	if n := l.counters(); n.Deafened != 2 || n.Gaps != 0 {
		t.Errorf("%+v", n)
	}
	l = listen(wire.S2CV2, Config{Deafened: true})
	if l.hear(alice, 1, 0, all[0]); len(l.heard) != 0 {
		t.Error("hears although deafened from the start")
	}
}

func TestWithoutDecoding(t *testing.T) {
	l := listen(wire.S2CV2, Config{NoDecode: true})
	for _, seq := range []int64{0, 1, 3, 3, 9} {
		l.hear(alice, 1, seq, []byte{1, 2, 3})
	}
	if n := l.counters(); n != (Counters{Frames: 5, Played: 4, Gaps: 6, Stale: 1}) || len(l.heard) != 4 || len(l.heard[0].PCM) != 0 {
		t.Errorf("%+v", n)
	}
	l = listen(wire.S2CV2, Config{})
	l.callback = nil // nobody listens
	l.hear(alice, 1, 0, packets(t, 1)[0])
	if n := l.counters(); n.Played != 1 {
		t.Errorf("%+v", n)
	}
}

// The jitter queue waits until it is filled, then plays in step, whatever the arrival; it waits again when it ran
// empty, and bounds the delay.
func TestJitterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := packets(t, 60)
		type played struct {
			seq int64
			at  time.Duration
		}
		var mu sync.Mutex
		var got []played
		c, s := mustConnect(t, Config{Ask: most, Jitter: 3, Sound: func(s Sound) {
			mu.Lock()
			defer mu.Unlock()
			seq := s.Seq
			if s.Concealed {
				seq = -seq - 1
			}
			got = append(got, played{seq, time.Since(start)})
		}}, answer{echo: most})
		say := func(seqs ...int64) {
			for _, seq := range seqs {
				s.send(ws.OpBinary, wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{Source: alice, Gain: 9, Stream: 4, Seq: seq, Opus: all[seq]}))
			}
		}
		expect := func(want ...played) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v: heard %v, want %v", time.Since(start), got, want)
			}
			got = nil
		}
		at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
		until := func(ms int) { time.Sleep(at(ms) - time.Since(start)) }
		until(5)
		say(0, 1)
		until(25)
		expect()
		until(35)
		say(2, 3) // a burst
		until(85)
		expect(played{0, at(40)}, played{1, at(60)}, played{2, at(80)})
		until(145)
		expect(played{3, at(100)}) // then empty
		say(4)
		until(195)
		expect()
		until(225) // alone, it waits as long as three would take to come
		expect(played{4, at(220)})
		say(6, 7, 8)
		until(305)
		expect(played{-6, at(240)}, played{6, at(240)}, played{7, at(260)}, played{8, at(280)})
		// After a stall much arrives at once; the queue keeps the newest nine.
		say(9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
		until(325)
		expect(played{-10, at(320)}, played{-11, at(320)}, played{11, at(320)})
		until(500)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n := c.Counters(); n.Overflow != 2 || n.Gaps != 1+2 || n.Concealed != 3 || len(got) != 8 {
			t.Errorf("%+v, %d played", n, len(got))
		}
	})
}

// FuzzReceive: whatever a server sends, counters add up, concealment is bounded and every sound is whole.
func FuzzReceive(f *testing.F) {
	all := packets(f, 3)
	for format := range wire.S2CFormat(3) {
		var b []byte
		for i, seq := range []int64{0, 1, 3, 2, 90} {
			m := wire.AppendS2C(nil, format, &wire.S2C{Kind: wire.Kind(i % 3), Source: alice, Origin: bob, Gain: 255, DX: 1, DZ: -1, Stream: 5, Seq: seq, Opus: all[i%3]})
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(m))), m...)
		}
		f.Add(b, uint8(format), uint8(0))
		f.Add(b, uint8(format), uint8(2))
	}
	f.Add([]byte{0, 0, 0, 1, 9}, uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, format, jitter uint8) {
		l := listen(wire.S2CFormat(format%3), Config{Jitter: int(jitter % 4)})
		messages := uint64(0)
		for len(b) >= 2 && messages < 200 {
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			l.frame(l.now, b[2:2+n])
			b = b[2+n:]
			l.now = l.now.Add(7 * time.Millisecond)
			if messages++; jitter%4 > 0 {
				l.tick(l.now)
			}
		}
		queued := uint64(0)
		for _, s := range l.sources {
			queued += uint64(len(s.queue))
		}
		n := l.counters()
		if sum := n.Played + n.Stale + n.Invalid + n.DecodeErrors + n.Overflow + n.Crowded + queued; n.Frames != messages || sum != messages {
			t.Fatalf("%d messages, %d queued: %+v", messages, queued, n)
		}
		if n.Concealed > maxConceal*n.Frames || n.Concealed > n.Gaps || uint64(len(l.heard)) != n.Played+n.Concealed {
			t.Fatalf("%d sounds, %+v", len(l.heard), n)
		}
		for _, s := range l.heard {
			if len(s.PCM) != opus.FrameSize || s.Gain < 0 || s.Gain > 1 {
				t.Fatalf("%+v", s)
			}
		}
	})
}
