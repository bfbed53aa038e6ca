//go:build cgo && nolibopusfile

package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

var (
	board1 = caps.Set{Audio: 2, Spatial: 1, Soundboard: 1}
	board2 = caps.Set{Audio: 2, Spatial: 1, Soundboard: 2}
)

func begun(t *testing.T, c *Client) *Clip {
	t.Helper()
	k, err := c.StartClip()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Clips are streams of their own beside the microphone, each from sequence 0.
func TestClipsBesideTheMicrophone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: board2}, answer{echo: board2})
		a, b := begun(t, c), begun(t, c)
		for i, send := range []func([]byte) error{c.SendOpus, a.SendOpus, b.SendOpus, a.SendOpus, c.SendOpus} {
			if err := send([]byte{0x78, byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		got := s.frames(wire.C2SBoard)
		if len(got) != 5 {
			t.Fatalf("%d frames", len(got))
		}
		for i, want := range []struct {
			source wire.Source
			seq    int64
			same   int // the first frame of the stream
		}{{wire.Mic, 0, 0}, {wire.Board, 0, 1}, {wire.Board, 0, 2}, {wire.Board, 1, 1}, {wire.Mic, 1, 0}} {
			if f := got[i]; f.Source != want.source || f.Seq != want.seq || f.Stream != got[want.same].Stream || f.Opus[1] != byte(i) {
				t.Errorf("frame %d: %+v", i, f)
			}
		}
		if got[0].Stream == got[1].Stream || got[1].Stream == got[2].Stream {
			t.Error("streams are not their own")
		}
		if n := c.Counters(); n.Sent != 5 {
			t.Errorf("counted %d", n.Sent)
		}
	})
}

func TestEleventhClipEndsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := mustConnect(t, Config{Ask: board2}, answer{echo: board2})
		var all []*Clip
		for range 11 {
			all = append(all, begun(t, c))
		}
		for i, k := range all {
			if err := k.SendOpus([]byte{0x78}); errors.Is(err, ErrClipOver) != (i == 0) {
				t.Errorf("clip %d: %v", i, err)
			}
		}
		all[5].End() // makes room, so that none is replaced
		all = append(all, begun(t, c))
		for i, k := range all {
			if err := k.SendOpus([]byte{0x78}); errors.Is(err, ErrClipOver) != (i == 0 || i == 5) {
				t.Errorf("clip %d after an end: %v", i, err)
			}
		}
	})
}

func TestClipsOfVersion1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: board1}, answer{echo: board1})
		a := begun(t, c)
		time.Sleep(299 * time.Millisecond)
		if _, err := c.StartClip(); !errors.Is(err, ErrCooldown) {
			t.Fatalf("within the cooldown: %v", err)
		}
		if err := a.SendOpus([]byte{0x78}); err != nil {
			t.Errorf("the clip before: %v", err)
		}
		time.Sleep(time.Millisecond)
		b := begun(t, c)
		if err := a.SendOpus([]byte{0x78}); !errors.Is(err, ErrClipOver) {
			t.Errorf("two at once: %v", err)
		}
		if err := b.Speak(tone(0)); err != nil {
			t.Error(err)
		}
		got := s.frames(wire.C2SBoard)
		if len(got) != 2 || got[0].Source != wire.Board || got[1].Source != wire.Board || got[0].Stream == got[1].Stream {
			t.Errorf("%+v", got)
		}
	})
}

// Without the capability, or with a server that has the older version only, the microphone carries a clip.
func TestClipFallsBackToTheMicrophone(t *testing.T) {
	for _, echo := range []caps.Set{{Audio: 2, Spatial: 1}, board1} {
		synctest.Test(t, func(t *testing.T) {
			c, s := mustConnect(t, Config{Ask: board2}, answer{echo: echo})
			if err := c.SendOpus([]byte{0x78}); err != nil {
				t.Fatal(err)
			}
			if err := begun(t, c).SendOpus([]byte{0x78}); err != nil {
				t.Fatal(err)
			}
			got := s.frames(wire.C2SV2)
			if len(got) != 2 || got[1].Source != wire.Mic || got[1].Stream == got[0].Stream || got[1].Seq != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What was not negotiated is not heard and not shown.
func TestWhatWasNotNegotiated(t *testing.T) {
	text := line.AppendSpeakers(nil, []talk.Speaker{{ID: bob, Name: "Radio"}})
	for _, ask := range []caps.Set{{Audio: 2, Spatial: 1}, {Audio: 2, Spatial: 1, Soundboard: 2, Speakers: 1}} {
		synctest.Test(t, func(t *testing.T) {
			clips, named := 0, 0
			cfg := Config{Ask: ask, NoDecode: true}
			cfg.Sound = func(s Sound) { clips++ }
			cfg.Speakers = func(l *line.Speakers) { named += len(l.List) }
			c, s := mustConnect(t, cfg, answer{echo: ask})
			s.send(ws.OpBinary, wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{Kind: wire.KindBoard, Source: alice, Gain: 9, Stream: 1, Opus: []byte{0x78}}))
			s.send(ws.OpText, text)
			synctest.Wait()
			want := int(ask.Speakers)
			if clips != want || named != want || (c.Speakers() != nil) != (want == 1) || int(c.Counters().Invalid) != 1-want {
				t.Errorf("%+v: %d clips, %d speakers, %+v, %+v", ask, clips, named, c.Speakers(), c.Counters())
			}
		})
	}
}
