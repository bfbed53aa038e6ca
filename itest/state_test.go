package itest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/itest/testkit/natsd"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/store"
	"github.com/earshot-mc/earshot/voice/talk"
)

// moderated lets Mod do everything, as fast as Mod can type.
const moderated = `
permissions: {players: {Mod: {nodes: ["earshot.command.voice", "earshot.command.voice.*"]}}}
commands: {rate: {per-second: 10000, burst: 10000}}
`

// withGroups asks for all that clients are shown.
var withGroups = caps.Set{Audio: 2, Spatial: 1, Status: 1, Speakers: 1, Groups: 2, GroupEdit: 1}

// says gives a command and waits for an answer that has all of these in it.
func says(bot *peer.Bot, command string, answer ...string) {
	bot.Chat(command)
	bot.Await("chat", func(e peer.Event) bool {
		for _, part := range answer {
			if !strings.Contains(e.Text, part) {
				return false
			}
		}
		return true
	})
}

// member is a player with a voice connection that knows of groups.
type member struct {
	*talker
	texts chan string
}

func newMember(t *testing.T, p *program, bot *peer.Bot) *member {
	t.Helper()
	m := &member{newTalker(t, p, bot, nil), make(chan string, 1000)}
	m.connect(client.Config{Ask: withGroups, Text: func(text string) { m.texts <- text }})
	return m
}

// asks makes a request about groups and waits for this answer.
func (m *member) asks(r talk.GroupRequest, answer string) {
	m.t.Helper()
	late := time.After(peer.Patience)
	for again := true; ; {
		if again {
			if err := m.c.Group(r); err != nil {
				m.t.Fatal(err)
			}
			again = false
		}
		select {
		case text := <-m.texts:
			if got, ok := strings.CutPrefix(text, "SSVC_GROUP_RESULT_V1 "); ok {
				if got != r.Verb.String()+" "+answer {
					m.t.Fatalf("%s is answered %q, want %q", r.Verb, got, answer)
				}
				time.Sleep(200 * time.Millisecond) // as often as one may ask
				return
			}
		case <-late:
			m.t.Fatalf("%s is not answered", r.Verb)
		}
	}
}

// shows waits until the client has been told something.
func (m *member) shows(what string, ok func(c *client.Client) bool) {
	m.t.Helper()
	testkit.Until(m.t, m.bot.Name+" is told of "+what, func() bool { return ok(m.c) })
}

func hasGroup(name string) func(c *client.Client) bool {
	return func(c *client.Client) bool {
		return c.Groups() != nil && len(c.Groups().Groups) == 1 && c.Groups().Groups[0].Name == name
	}
}

// TestStateLasts: mutes and a persistent group with its password outlast a kill; a mute that ends while nobody is there
// has ended.
func TestStateLasts(t *testing.T) {
	p := start(t, moderated, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	join := func() (ann, bob *member, mod *peer.Bot) {
		mod = bots.Join(p.addr, "Mod")
		return newMember(t, p, bots.Join(p.addr, "Ann")), newMember(t, p, bots.Join(p.addr, "Bob")), mod
	}
	ann, bob, mod := join()
	ann.asks(talk.GroupRequest{Verb: talk.Create, Name: "lasting", Password: "pass", Type: talk.OpenGroup, Persistent: true}, "OK")
	says(mod, "/voice mute Ann 1h too loud", "Ann is muted for 1h. Reason: too loud")
	says(mod, "/voice mute Bob", "Bob is muted")
	says(mod, "/voice unmute Bob", "The mute of Bob is lifted.")
	says(mod, "/voice domain create red Bob Mod", "The domain red is there.")
	says(mod, "/voice edge add Mod Ann", "Ann hears Mod")
	says(mod, "/voice speaker create Stage limbo the_end 1 2 3", "Stage: limbo minecraft:the_end 1 2 3")
	says(mod, "/voice speaker relay Stage Bob", "Stage carries the voice of Bob")
	says(mod, "/voice speaker create gone limbo the_end 1 2 3", "gone: ")
	says(mod, "/voice speaker remove gone", "is gone")
	says(mod, "/voice mute "+uuid.NewString()+" 2s", "is muted for 2s.")
	over := time.Now().Add(2 * time.Second)
	p.kill()
	for _, bot := range []*peer.Bot{ann.bot, bob.bot, mod} {
		bot.Await("end", nil)
	}
	time.Sleep(time.Until(over))
	p.run()

	ann, bob, mod = join()
	ann.shows("the mute", func(c *client.Client) bool {
		m := c.Mute()
		return m.Kind == talk.MutedPlayer && m.Timed && m.Seconds > 0 && m.Seconds <= 3600 && m.Reason == "too loud"
	})
	bob.hearsNothingFrom(ann.talker, "who is muted since before the restart")
	ann.hears(bob.talker, 1, 0, 0)
	p.counts("earshot_voice_mutes", 1)
	says(mod, "/voice domain list", "red", "(2): Bob, Mod")
	says(mod, "/voice edge list", "Ann hears Mod")
	says(mod, "/voice speaker list", "Stage: limbo minecraft:the_end 1 2 3", "carries the voice of Bob")
	testkit.Until(t, "Ann is told of the one speaker", func() bool {
		s := ann.c.Speakers()
		return s != nil && len(s.List) == 1 && s.List[0].Name == "Stage"
	})
	bob.shows("the group", hasGroup("lasting"))
	g := bob.c.Groups().Groups[0]
	if g.Type != talk.OpenGroup || !g.Persistent || !g.Locked {
		t.Errorf("the group is %+v", g)
	}
	bob.asks(talk.GroupRequest{Verb: talk.Join, Group: g.ID, Password: "wrong"}, "WRONG_PASSWORD")
	bob.asks(talk.GroupRequest{Verb: talk.Join, Group: g.ID, Password: "pass"}, "OK")
	testkit.Until(t, "Bob is counted", func() bool { return p.metric("earshot_voice_group_members") == 1 })
	p.counts("earshot_voice_groups", 1)
	says(mod, "/voice unmute Ann", "The mute of Ann is lifted.")
	bob.hears(ann.talker, 1, 0, 0)
}

// TestNamesOfThoseWhoLeft: somebody who has left is muted and put into a domain by name, also after a restart, and
// lists name them.
func TestNamesOfThoseWhoLeft(t *testing.T) {
	p := start(t, moderated, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	bots.Join(p.addr, "Ann").Quit()
	testkit.Until(t, "Ann has left", func() bool { return p.metric("earshot_players") == 0 })
	mod := bots.Join(p.addr, "Mod")
	says(mod, "/voice mute Nobody", "Nobody called Nobody is or was here.")
	says(mod, "/voice mute ann 1h too loud", "Ann is muted for 1h. Reason: too loud")
	p.kill()
	mod.Await("end", nil)
	p.run()
	mod = bots.Join(p.addr, "Mod")
	says(mod, "/voice domain create red ANN", "The domain red is there. Members: 1.")
	says(mod, "/voice domain list", "red", "(1): Ann")
	says(mod, "/voice edge add Mod Ann", "Ann hears Mod")
	says(mod, "/voice mutes", "Ann, by Mod, for ")
	says(mod, "/voice unmute ann", "The mute of Ann is lifted.")
}

// stored returns what the program has stored; it must not run.
func (p *program) stored() map[string]mute.Record {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peer.Patience)
	defer cancel()
	s, err := store.Open(ctx, store.Config{Dir: filepath.Join(p.dir, "state"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Close(ctx)
	b, err := store.OpenBucket(ctx, s, store.Spec[mute.Record]{Name: store.Mutes, Version: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	return b.Load()
}

// TestNothingAcknowledgedIsLost: the program is killed at random points while an administrator mutes and unmutes as
// fast as possible, and started again. Acknowledged changes are there; others may be.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	p := start(t, moderated, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	want := map[string]string{} // reasons, of what was acknowledged
	var id, reason string       // of the one that was not
	check := func() {
		t.Helper()
		got := map[string]string{}
		for key, r := range p.stored() {
			got[key] = r.Reason
		}
		if !maps.Equal(got, want) {
			if want[id] = reason; reason == "" {
				delete(want, id)
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("stored: %v, acknowledged: %v", got, want)
		}
	}
	begin, n := time.Now(), 0
	for life := range 4 {
		mod := bots.Join(p.addr, "Mod")
		p.counts("earshot_voice_mutes", float64(len(want)))
		// The last thing is not waited for: it dies anywhere within it.
		for left := 20 + rand.IntN(60); ; left-- {
			n++
			id, reason = uuid.NewSHA1(uuid.Nil, []byte{byte(n * 7 % 30)}).String(), fmt.Sprint("number ", n)
			command, answer := "/voice mute "+id+" "+reason, "Reason: "+reason
			if n%5 == 4 {
				command, answer, reason = "/voice unmute "+id, id, ""
			}
			mod.Chat(command)
			if left == 0 || life > 0 && time.Since(begin) > 8*time.Second {
				time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
				break
			}
			mod.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, answer) })
			if want[id] = reason; reason == "" {
				delete(want, id)
			}
		}
		p.kill()
		check()
		mod.Await("end", nil)
		p.run()
	}
	t.Logf("%d changes", n)
}

// health returns what /healthz says to those who may know.
func (p *program) health() (status int, h map[string]any) {
	p.t.Helper()
	resp, err := http.Get("http://" + p.addr + "/healthz")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, h
}

// TestStateElsewhere: two programs share what lasts in a NATS that is neither's. While it is lost, voice goes on with
// what is known, and says so; when it is back, everything is stored and known to both.
func TestStateElsewhere(t *testing.T) {
	const password = "sw0rdfish"
	e := natsd.Run(t, natsd.Login("earshot", password))
	there := moderated + fmt.Sprintf("state: {url: '%s', user: earshot, password: %s}\n", e.URL(), password)
	one, two := start(t, there, "--offline"), start(t, there, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	mod := bots.Join(one.addr, "Mod")
	ann := newMember(t, two, bots.Join(two.addr, "Ann"))
	says(mod, "/voice mute "+ann.id.String()+" everywhere", "is muted")
	ann.shows("the mute", func(c *client.Client) bool { return c.Mute().Reason == "everywhere" })
	ann.asks(talk.GroupRequest{Verb: talk.Create, Name: "ours", Type: talk.OpenGroup, Persistent: true}, "OK")
	testkit.Until(t, "the other one has the group", func() bool { return one.metric("earshot_voice_groups") == 1 })
	if status, h := one.health(); status != 200 || h["state"] != "running" || !strings.Contains(fmt.Sprint(h["state_server"]), "127.0.0.1") {
		t.Errorf("%d %v", status, h)
	}

	e.Stop()
	testkit.Until(t, "the loss shows", func() bool { return one.metric("earshot_state_up") == 0 && two.metric("earshot_state_up") == 0 })
	if status, h := one.health(); status != 200 || h["state"] != "degraded" || h["state_problem"] == nil {
		t.Errorf("%d %v", status, h)
	}
	says(mod, "/voice unmute "+ann.id.String(), "not stored yet: 1", "cannot be reached")
	bob := newMember(t, two, bots.Join(two.addr, "Bob"))
	bob.hearsNothingFrom(ann.talker, "who is muted as far as is known")
	one.counts("earshot_state_waiting", 1)
	e.Start()
	testkit.Until(t, "it is back", func() bool { return one.metric("earshot_state_up") == 1 && two.metric("earshot_state_up") == 1 })
	ann.shows("its end", func(c *client.Client) bool { return c.Mute().Kind == talk.NotMuted })
	bob.hears(ann.talker, 1, 0, 0)
	for _, p := range []*program{one, two} {
		p.stop()
		if log := p.log.String(); strings.Contains(log, password) || !strings.Contains(log, "is lost") || !strings.Contains(log, "is back") {
			t.Errorf("the log:\n%s", log)
		}
	}
}
