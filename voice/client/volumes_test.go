//go:build cgo && nolibopusfile

package client

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

// A clip has the volume of its player's clips and a speaker that of its channel, and of the player too whose microphone
// it carries; the voice of a player knows of neither.
func TestVolumes(t *testing.T) {
	const here, there = "wss://Voice.test:1/sub/", "https://other.test:1/sub"
	v := &Volumes{}
	v.SetPlayer(alice, 0.5)
	v.SetClips(alice, 0)
	v.SetSpeaker(here, bob, 3)
	v.SetSpeaker(there, alice, 7) // another server's, by a UUID that is used here too
	for _, c := range []struct {
		name   string
		kind   wire.Kind
		source uuid.UUID
		origin uuid.UUID
		want   float64
	}{
		{"a voice", wire.KindPlayer, alice, uuid.Nil, 0.5},
		{"a voice of whom nothing was chosen", wire.KindPlayer, bob, uuid.Nil, 1},
		{"a clip", wire.KindBoard, alice, uuid.Nil, 0},
		{"a clip of whom nothing was chosen", wire.KindBoard, bob, uuid.Nil, 1},
		{"a speaker", wire.KindChannel, bob, uuid.Nil, 3},
		{"a microphone out of a speaker", wire.KindChannel, bob, alice, 1.5},
		{"a microphone of whom nothing was chosen", wire.KindChannel, bob, bob, 3},
		{"a speaker of which nothing was chosen here", wire.KindChannel, alice, uuid.Nil, 1},
	} {
		for range 2 { // and so for the next connection
			l := listen(wire.S2CSpatial, Config{URL: "https://voice.test:1/sub", NoDecode: true, Volumes: v})
			l.frame(l.now, wire.AppendS2C(nil, wire.S2CSpatial, &wire.S2C{
				Kind: c.kind, Source: c.source, Origin: c.origin, Gain: 255, Stream: 1, Opus: []byte{0x78},
			}))
			if len(l.heard) != 1 || l.heard[0].Volume != c.want || l.heard[0].Gain != 1 {
				t.Errorf("%s: %+v, want volume %v", c.name, l.heard, c.want)
			}
		}
	}
	l := listen(wire.S2CV2, Config{})
	l.hear(alice, 1, 0, packets(t, 1)[0])
	if l.heard[0].Volume != 1 {
		t.Errorf("nobody has chosen anything: %v", l.heard[0].Volume)
	}
}

// What the server counts down goes on counting here, and an invitation that has run out is not offered any more.
func TestSecondsRunHere(t *testing.T) {
	all := caps.Newest()
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: all}, answer{echo: all})
		s.send(ws.OpText, line.AppendMute(nil, &line.Mute{Kind: talk.MutedPlayer, Timed: true, Seconds: 5, Reason: "spam"}))
		s.send(ws.OpText, line.AppendGroups(nil, &line.Groups{Invites: []line.Invitation{{Group: alice, From: bob, Seconds: 5}, {Group: bob, From: bob, Seconds: 60}}}))
		synctest.Wait()
		at := func(after time.Duration, muted int, left ...int) {
			t.Helper()
			time.Sleep(after - time.Since(start))
			var seconds []int
			for _, i := range c.Groups().Invites {
				seconds = append(seconds, i.Seconds)
			}
			if m := c.Mute(); m != (line.Mute{Kind: talk.MutedPlayer, Timed: true, Seconds: muted, Reason: "spam"}) || !slices.Equal(seconds, left) {
				t.Errorf("after %v: %+v, invitations for %v", after, m, seconds)
			}
		}
		at(0, 5, 5, 60)
		at(999*time.Millisecond, 5, 5, 60)
		at(time.Second, 4, 4, 59)
		at(4900*time.Millisecond, 1, 1, 56)
		at(5*time.Second, 0, 55)
		s.send(ws.OpText, line.AppendMute(nil, &line.Mute{Kind: talk.MutedServer}))
		synctest.Wait()
		if m := c.Mute(); m != (line.Mute{Kind: talk.MutedServer}) {
			t.Errorf("%+v", m)
		}
	})
}

// An empty snapshot clears the speakers that are shown, a bad one does not, and the end of the connection clears all.
func TestWhatIsShownEndsWithTheConnection(t *testing.T) {
	all := caps.Newest()
	synctest.Test(t, func(t *testing.T) {
		c, s := mustConnect(t, Config{Ask: all}, answer{echo: all})
		shown := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			if l := c.Speakers(); l == nil || len(l.List) != want {
				t.Errorf("%s: %+v", what, l)
			}
		}
		two := line.AppendSpeakers(nil, []talk.Speaker{{ID: alice, Name: "Radio"}, {ID: bob, Name: "Radio"}})
		s.send(ws.OpText, two)
		shown("two of one name", 2)
		s.send(ws.OpText, append(slices.Clone(two), two[len("SSVC_SPEAKERS_V1\n"):]...))
		shown("twice the same", 2)
		s.send(ws.OpText, line.AppendSpeakers(nil, nil))
		shown("none", 0)
		s.send(ws.OpText, two)
		shown("again", 2)
		s.send(ws.OpText, line.AppendRoster(nil, &line.Roster{People: []line.Person{{ID: alice, Name: "Alice"}}}))
		s.send(ws.OpText, line.AppendGroups(nil, &line.Groups{}))
		s.send(ws.OpText, line.AppendRanges(nil, line.Ranges{Tiers: talk.TiersOf(talk.Shout)}))
		s.send(ws.OpText, line.AppendMute(nil, &line.Mute{Kind: talk.MutedServer}))
		synctest.Wait()
		if c.Roster() == nil || c.Groups() == nil || !c.Ranges().Tiers.Has(talk.Shout) || c.Mute().Kind != talk.MutedServer {
			t.Error("not all is shown")
		}
		s.send(ws.OpClose, ws.NewCloseFrameBody(ws.StatusGoingAway, ""))
		c.Wait()
		if c.Roster() != nil || c.Groups() != nil || c.Speakers() != nil || c.Pose() != nil || c.Ranges() != (line.Ranges{}) || c.Mute() != (line.Mute{}) {
			t.Error("something is shown after the end")
		}
	})
}
