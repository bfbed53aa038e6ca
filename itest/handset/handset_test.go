package handset

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/talker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opus is one 20 ms mono packet, going by its first byte.
const opus = "\x78 hello"

// anybody may connect.
type anybody struct{}

func (anybody) Redeem(string, uuid.UUID) bool { return true }

// TestAnotherKindOfClient: a client that is no socket and knows no text line is in voice as any other is, among its own
// kind and beside a WebSocket: in rosters, in groups, muted, told of speakers, heard and hearing.
func TestAnotherKindOfClient(t *testing.T) {
	reg := world.New()
	reg.Sights().SetRules(nil, sight.Rule{Mode: sight.Everyone})
	place := reg.Place("survival", "minecraft:overworld")
	gw := voice.New(voice.Config{
		Log:    slog.New(slog.DiscardHandler),
		Policy: route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}},
		Groups: group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}},
	}, reg)
	var serving sync.WaitGroup
	var closing sync.Once
	end := func() {
		closing.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := gw.Close(ctx); err != nil {
				t.Error(err)
			}
			serving.Wait()
		})
	}
	defer end()
	player := func(name string, x float64) *world.Player {
		p := reg.Add(uuid.NewSHA1(uuid.Nil, []byte(name)), name)
		p.SetFacts(world.Facts{Place: place})
		p.SetPose(&world.Pose{X: x, Y: 64, Place: place})
		return p
	}
	until := func(what string, ok func() bool) { t.Helper(); testkit.Until(t, what, ok) }
	call := func(p *world.Player) *Handset {
		h := New()
		serving.Go(func() {
			if err := gw.Serve(h, p.ID, Wants, "kind", "handset"); err != nil {
				t.Error(err)
			}
		})
		return h
	}

	anna, ben, cleo := player("anna", 0), player("ben", 8), player("cleo", 16)
	a, b := call(anna), call(ben)
	sweep := socket.NewSweeper()
	defer sweep.Close()
	web := httptest.NewServer(upgrade.New(upgrade.Config{
		Tokens: anybody{}, Online: func(uuid.UUID) bool { return true }, Offered: gw.Offers, Sweeper: sweep,
		Accept: func(_ context.Context, s *socket.Socket, id uuid.UUID, c caps.Set) { gw.Accept(s, id, c) },
		Count:  func(reason string, _ netip.Addr) { t.Errorf("upgrade refused: %s", reason) },
	}))
	defer web.Close()
	defer end() // before the server waits for its sockets
	var mu sync.Mutex
	heard := map[uuid.UUID]int{}
	c, err := client.Dial(context.Background(), client.Config{
		URL: "ws://" + web.Listener.Addr().String(), Token: "t", Player: cleo.ID, Ask: caps.Set{Audio: 2, Status: 1, Spatial: 1, Groups: 2},
		Sound: func(s client.Sound) { mu.Lock(); heard[s.Source]++; mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	// In the roster, of its own kind and of the other.
	named := func(h *Handset) string {
		var names []string
		for _, p := range h.Seen().Roster {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for _, h := range []*Handset{a, b} {
		until("the roster", func() bool { return named(h) == "anna ben cleo" })
	}
	until("the socket's roster", func() bool { return c.Roster() != nil && len(c.Roster().People) == 3 })
	until("the pose and the tiers", func() bool { s := a.Seen(); return s.Pose != nil && s.Tiers == talk.TiersOf(talk.Whisper) })

	// Heard and hearing, by distance.
	var seq int64
	from := func(h *Handset, who *world.Player) (last Sound, n int) {
		for _, s := range h.Seen().Sounds {
			if s.From == who.ID {
				last, n = s, n+1
			}
		}
		return last, n
	}
	until("ben and cleo to hear anna", func() bool {
		a.Say(seq, opus)
		seq++
		mu.Lock()
		defer mu.Unlock()
		_, n := from(b, anna)
		return n > 0 && heard[anna.ID] > 0
	})
	if got, _ := from(b, anna); got.Kind != route.Voice || got.Gain != gain.Level(1, 64, 48) || got.Opus != opus {
		t.Errorf("ben hears %+v", got)
	}
	if _, n := from(a, anna); n != 0 {
		t.Error("anna hears herself")
	}
	until("anna to hear cleo", func() bool {
		c.SendOpus([]byte(opus))
		_, n := from(a, cleo)
		return n > 0
	})

	// A tier, and deafness, are in everybody's roster.
	a.Do(func(t *talker.Talker) error { t.SetTier(talk.Whisper); t.SetDeafened(true); return nil })
	until("word of anna's whisper", func() bool {
		for _, p := range b.Seen().Roster {
			if p.ID == anna.ID {
				r := c.Roster()
				return p.Tier == talk.Whisper && p.Deafened && slices.Contains(r.Tiers[talk.Whisper], anna.ID) && slices.Contains(r.Deafened, anna.ID)
			}
		}
		return false
	})
	a.Do(func(t *talker.Talker) error { t.SetTier(talk.Normal); t.SetDeafened(false); return nil })

	// In a group, with both kinds.
	a.Do(func(t *talker.Talker) error { t.Ask(talk.GroupRequest{Verb: talk.Create, Name: "team"}); return nil })
	until("the answer", func() bool {
		return slices.Equal(a.Seen().Answers, []talk.GroupResult{{Verb: talk.Create, Code: talk.OK}})
	})
	until("the group", func() bool { p := b.Seen().Groups; return p != nil && len(p.Rows.Groups) == 1 })
	team := b.Seen().Groups.Rows.Groups[0]
	if team.Name != "team" || team.Owner != anna.ID {
		t.Errorf("the group is %+v", team)
	}
	b.Do(func(t *talker.Talker) error { t.Ask(talk.GroupRequest{Verb: talk.Join, Group: team.ID}); return nil })
	until("the socket to see both in it", func() bool { g := c.Groups(); return g != nil && len(g.Members) == 2 })
	ben.SetPose(&world.Pose{X: 5000, Y: 64, Place: place})
	until("ben to hear anna from afar", func() bool {
		a.Say(seq, opus)
		seq++
		got, _ := from(b, anna)
		return got.Gain == 255
	})

	// Muted, and told so. What they said before counts as said before.
	a.Do(func(*talker.Talker) error { return nil })
	if err := gw.Mute(mute.Record{Player: anna.ID, Reason: "an event"}); err != nil {
		t.Fatal(err)
	}
	until("word of the mute", func() bool { return a.Seen().Mute == mute.State{Kind: talk.MutedPlayer, Reason: "an event"} })
	_, before := from(b, anna)
	a.Say(seq, opus)
	a.Do(func(*talker.Talker) error { return nil }) // that one has been seen to
	if _, n := from(b, anna); n != before {
		t.Error("anna is heard in spite of the mute")
	}
	if n := gw.Stats().Dropped["muted"]; n != 1 {
		t.Errorf("%d frames are counted as muted", n)
	}

	// Told of speakers.
	if _, err := gw.Speakers().Open(speaker.Spec{Name: "Radio", Backend: "survival", World: "minecraft:overworld", Volume: 1, Range: 10}); err != nil {
		t.Fatal(err)
	}
	until("the speaker", func() bool { l := a.Seen().Speakers; return len(l) == 1 && l[0].Name == "Radio" })

	// Counted, replaced, and ended.
	if s := gw.Stats(); s.Sockets != 3 || s.Accepted != 3 || s.Sent == 0 {
		t.Errorf("%d clients of %d, which were sent %d frames", s.Sockets, s.Accepted, s.Sent)
	}
	again := call(anna)
	until("the former one's end", func() bool { return slices.Equal(a.Seen().Ended, []hub.End{hub.Replaced}) })
	until("its count", func() bool { return gw.Stats().Ended["hung up"] == 1 })
	until("the new one's group", func() bool { p := again.Seen().Groups; return p != nil && len(p.Rows.Members) == 2 })
	reg.Remove(anna)
	until("the end of who left", func() bool { return slices.Equal(again.Seen().Ended, []hub.End{hub.PlayerLeft}) })
	late := New()
	var refused *voice.Refused
	if err := gw.Serve(late, anna.ID, Wants); !errors.As(err, &refused) || refused.Why != hub.PlayerLeft || !slices.Equal(late.Seen().Ended, []hub.End{hub.PlayerLeft}) {
		t.Errorf("who is not on the network: %v, %v", err, late.Seen().Ended)
	}
	end()
	if got := b.Seen().Ended; !slices.Equal(got, []hub.End{hub.ShuttingDown}) {
		t.Errorf("at the end %v", got)
	}
	late = New()
	if err := gw.Serve(late, ben.ID, Wants); !errors.As(err, &refused) || refused.Why != hub.ShuttingDown {
		t.Errorf("after the end: %v", err)
	}
}

// TestWhatAClientNeedsToKnow: a kind of client needs neither the socket nor the text lines, nor what negotiates them.
func TestWhatAClientNeedsToKnow(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/earshot-mc/earshot/voice/hub") {
		t.Fatalf("the list is not one: %v", deps)
	}
	for _, never := range []string{"handshake/socket", "handshake/caps", "handshake/upgrade", "voice/conn", "voice/line", "voice/wire", "voice/render"} {
		if slices.Contains(deps, "github.com/earshot-mc/earshot/"+never) {
			t.Errorf("it needs %s", never)
		}
	}
}
