package voice

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	vc "github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// TestClientKnowsItsControls has the client package on the other end, as a player's program would be.
func TestClientKnowsItsControls(t *testing.T) {
	limits := openGroups
	s := open(t, Config{Groups: limits, Policy: route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}}})
	p := s.player("anna", 0)
	texts := make(chan string, 64)
	dial := func(ask caps.Set) *vc.Client {
		t.Helper()
		c, err := vc.Dial(t.Context(), vc.Config{
			URL: "ws://" + s.addr, Token: "t", Player: p.ID, Ask: ask, NoDecode: true, Text: func(x string) { texts <- x },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatalf("waited for %s", what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	old := dial(spatial)
	if err := old.Group(talk.GroupRequest{Verb: talk.Leave}); !errors.Is(err, vc.ErrNotGranted) {
		t.Errorf("groups were not asked for: %v", err)
	}
	s.count("accepted", 1, func(st Stats) uint64 { return st.Accepted }) // or it might replace the newer one
	c := dial(caps.Newest())
	until("the lines of the connect", func() bool {
		return c.Groups() != nil && c.Ranges() == line.Ranges{Tiers: talk.TiersOf(talk.Whisper)} && c.Mute() == line.Mute{}
	})
	if err := c.Group(talk.GroupRequest{Verb: talk.Create, Type: talk.OpenGroup, Name: "team"}); err != nil {
		t.Fatal(err)
	}
	until("the group", func() bool {
		g := c.Groups()
		return len(g.Groups) == 1 && len(g.Members) == 1 && g.Members[0].Player == p.ID
	})
	until("the answer", func() bool {
		select {
		case x := <-texts:
			return strings.HasPrefix(x, "SSVC_GROUP_RESULT_V1 CREATE OK")
		default:
			return false
		}
	})
	if err := s.gw.Mute(mute.Record{Player: p.ID, Reason: "quiet", Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	until("the mute", func() bool {
		m := c.Mute()
		return m.Kind == talk.MutedPlayer && m.Timed && m.Seconds > 3590 && m.Reason == "quiet"
	})
}
