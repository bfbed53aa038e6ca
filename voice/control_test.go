package voice

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

// groups asks for all that has to do with groups.
var groups = caps.Set{Audio: 2, Status: 1, Spatial: 1, Groups: 2, GroupEdit: 1}

var openGroups = group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}, Passwords: true, Persistent: true}

// lines returns the texts that begin so, oldest first.
func (c *client) lines(prefix string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.texts {
		if strings.HasPrefix(t, prefix) {
			all = append(all, t)
		}
	}
	return all
}

// told waits until the newest text with this prefix is want, and fails when it is not.
func (c *client) told(prefix, want string) {
	c.s.t.Helper()
	c.waitFor(prefix+want, func() bool { l := c.lines(prefix); return len(l) > 0 && l[len(l)-1] == prefix+want })
}

// hears speaks until the listener gets a frame that ok likes.
func (c *client) heardBy(l *client, what string, ok func(wire.S2C) bool) {
	c.s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		l.take()
		c.say()
		time.Sleep(20 * time.Millisecond)
		if slices.ContainsFunc(l.take(), func(f wire.S2C) bool { return f.Source == c.player.ID && ok(f) }) {
			return
		}
		if time.Now().After(deadline) {
			c.s.t.Fatalf("%s: %s does not hear %s so", what, l.player.Name, c.player.Name)
		}
	}
}

// unheard says ten frames and fails when the listener gets one; marker has to be heard by it all the time, so that what
// does not come has had its time.
func (c *client) unheard(l, marker *client) {
	c.s.t.Helper()
	l.take()
	for range 10 {
		c.say()
	}
	// What c sent is routed once a later frame of its has been answered for: the counters see all frames.
	marker.heardBy(l, "marker", func(wire.S2C) bool { return true })
	time.Sleep(50 * time.Millisecond)
	if slices.ContainsFunc(l.take(), func(f wire.S2C) bool { return f.Source == c.player.ID }) {
		c.s.t.Fatalf("%s hears %s", l.player.Name, c.player.Name)
	}
}

func (s *site) why(a, b *client) Why {
	s.t.Helper()
	w, err := s.gw.Why(a.player.ID, b.player.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func TestRangesLine(t *testing.T) {
	s := open(t, Config{Policy: route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}}})
	a, old := s.join("anna", 0, spatial), s.dial(s.player("old", 1), v2)
	a.told("SSVC_RANGES_V1 ", "1 0")
	a.text("SSVC_RANGE_V1:shout") // accepted, although it is off
	a.text("SSVC_RANGE_V1:shout")
	if err := s.gw.SetPolicy(route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2}}}); err != nil {
		t.Fatal(err)
	}
	a.told("SSVC_RANGES_V1 ", "1 1")
	a.waitFor("the shout on the roster", func() bool {
		l := a.lines("")
		return slices.ContainsFunc(l, func(t string) bool { return strings.Contains(t, "SSVC_SHOUTING_V1 "+a.player.ID.String()) })
	})
	if err := s.gw.SetPolicy(route.Policy{Gain: gain.Rules{Default: 48}}); err != nil {
		t.Fatal(err)
	}
	a.told("SSVC_RANGES_V1 ", "0 0")
	a.waitFor("a roster without the shout", func() bool {
		l := a.lines(a.player.ID.String())
		return strings.HasSuffix(l[len(l)-1], "SSVC_SHOUTING_V1 \n")
	})
	if got := old.lines("SSVC_"); got != nil {
		t.Errorf("without status: %q", got)
	}
	if got := a.lines("SSVC_RANGES_V1 "); len(got) != 3 {
		t.Errorf("one line for each change: %q", got)
	}
}

func TestServerMute(t *testing.T) {
	var notices atomic.Int32
	s := open(t, Config{
		Notice: func(_ uuid.UUID, why Reason) {
			if why == ServerMuted {
				notices.Add(1)
			}
		},
		Permissions: func(id uuid.UUID) Bits {
			if id == uuid.NewSHA1(uuid.Nil, []byte("chef")) {
				return Open | MuteExempt
			}
			return Open
		},
	})
	a := s.join("anna", 0, spatial)
	b := s.join("ben", 1, spatial, a)
	chef := s.join("chef", 2, spatial, a, b)
	s.ready(a, b, chef)
	a.told("SSVC_MUTE_V1 ", "0 - -")
	if err := s.gw.Mute(mute.Record{Player: a.player.ID, Name: "anna", Reason: "no shouting"}); err != nil {
		t.Fatal(err)
	}
	reason := base64.StdEncoding.EncodeToString([]byte("no shouting"))
	a.told("SSVC_MUTE_V1 ", "1 - "+reason)
	a.unheard(b, chef)
	b.heardBy(a, "a muted player still hears", func(wire.S2C) bool { return true })
	if w := s.why(a, b); w.Heard() || w.Verdict != route.ServerMuted || !strings.Contains(fmt.Sprint(w.Clauses()), "[{no [speaker anna listener ben]} {muted [speaker anna listener ben]} {muted-reason [reason no shouting]}]") {
		t.Errorf("why: %v", w)
	}
	if n := notices.Load(); n != 1 {
		t.Errorf("%d notices for many frames", n)
	}
	if list, err := s.gw.Mutes(); err != nil || len(list) != 1 || list[0].Name != "anna" {
		t.Errorf("%v, %v", list, err)
	}
	if was, err := s.gw.Unmute(a.player.ID); !was || err != nil {
		t.Error(was, err)
	}
	a.told("SSVC_MUTE_V1 ", "0 - -")
	a.heardBy(b, "unmuted", func(wire.S2C) bool { return true })

	// Everybody, for a while, except for the exempt.
	if err := s.gw.MuteAll(mute.Record{Until: time.Now().Add(3 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	a.waitFor("a mute that ends", func() bool {
		l := a.lines("SSVC_MUTE_V1 2 ")
		return len(l) == 1 && (l[0] == "SSVC_MUTE_V1 2 3 -" || l[0] == "SSVC_MUTE_V1 2 2 -")
	})
	a.unheard(b, chef)
	late := s.join("late", 3, spatial, a, b, chef)
	late.waitFor("its mute", func() bool { l := late.lines("SSVC_MUTE_V1 2 "); return len(l) == 1 })
	a.told("SSVC_MUTE_V1 ", "0 - -") // by itself
	a.heardBy(b, "lapsed", func(wire.S2C) bool { return true })
	if got := chef.lines("SSVC_MUTE_V1 "); !slices.Equal(got, []string{"SSVC_MUTE_V1 0 - -"}) {
		t.Errorf("the exempt one got %q", got)
	}
	if got := a.lines("SSVC_MUTE_V1 "); len(got) != 5 {
		t.Errorf("told on connect and on each change: %q", got)
	}
}

// TestMuteComesBeforeTheSoundboard: of two things that silence a clip the player is told of the first.
func TestMuteComesBeforeTheSoundboard(t *testing.T) {
	notices := make(chan Reason, 10)
	s := open(t, Config{SoundboardOff: true, Notice: func(_ uuid.UUID, why Reason) { notices <- why }})
	a := s.join("anna", 0, caps.Set{Audio: 2, Status: 1, Spatial: 1, Soundboard: 2})
	clip := func() Reason {
		a.send(ws.OpBinary, wire.AppendC2S(nil, wire.C2SBoard, &wire.C2S{Source: wire.Board, Stream: 5, Seq: 1, Opus: opus}))
		select {
		case why := <-notices:
			return why
		case <-time.After(patience):
			t.Fatal("no notice")
		}
		return 0
	}
	if got := clip(); got != SoundboardOff {
		t.Error(got)
	}
	if err := s.gw.Mute(mute.Record{Player: a.player.ID}); err != nil {
		t.Fatal(err)
	}
	if got := clip(); got != ServerMuted {
		t.Error(got)
	}
}

func TestPermissions(t *testing.T) {
	var mu sync.Mutex
	bits := map[uuid.UUID]Bits{}
	var notices []string
	s := open(t, Config{
		Permissions: func(id uuid.UUID) Bits {
			mu.Lock()
			defer mu.Unlock()
			if b, ok := bits[id]; ok {
				return b
			}
			return Open
		},
		Notice: func(_ uuid.UUID, why Reason) { mu.Lock(); defer mu.Unlock(); notices = append(notices, why.String()) },
	})
	set := func(c *client, b Bits) { mu.Lock(); defer mu.Unlock(); bits[c.player.ID] = b }
	a := s.join("anna", 0, spatial)
	b := s.join("ben", 1, spatial, a)
	c := s.join("carl", 1, spatial, a, b)
	s.ready(a, b, c)
	set(a, Open&^Speak)
	waitWhy := func(from, to *client, want route.Verdict) {
		t.Helper()
		if !testkit.Wait(patience, func() bool { return s.why(from, to).Verdict == want }) {
			t.Fatal(s.why(from, to))
		}
	}
	waitWhy(a, b, route.MayNotSpeak)
	a.unheard(b, c)
	set(a, Open)
	waitWhy(a, b, route.ByDistance)
	set(b, Open&^Listen)
	waitWhy(a, b, route.MayNotListen)
	a.heardBy(c, "carl may listen", func(wire.S2C) bool { return true })
	if got := b.take(); got != nil {
		t.Errorf("who may not listen got %d frames", len(got))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(notices) != 1 || notices[0] != "You may not speak here" {
		t.Errorf("%q", notices)
	}
}

// request sends a request when one is due, and returns its result.
func (c *client) request(format string, args ...any) string {
	c.s.t.Helper()
	time.Sleep(210 * time.Millisecond)
	before := len(c.lines("SSVC_GROUP_RESULT_V1 "))
	c.text("SSVC_GROUP_V1:" + fmt.Sprintf(format, args...))
	c.waitFor("a result", func() bool { return len(c.lines("SSVC_GROUP_RESULT_V1 ")) > before })
	return strings.TrimPrefix(c.lines("SSVC_GROUP_RESULT_V1 ")[before], "SSVC_GROUP_RESULT_V1 ")
}

// groupsNow returns the newest snapshot.
func (c *client) groupsNow() *line.Groups {
	l := c.lines("SSVC_GROUPS_V1\n")
	if len(l) == 0 {
		return nil
	}
	v, err := line.ParseS2C([]byte(l[len(l)-1]))
	if err != nil {
		c.s.t.Fatal(err)
	}
	return v.(*line.Groups)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestGroups(t *testing.T) {
	s := open(t, Config{Groups: openGroups})
	a := s.join("anna", 0, groups)
	b := s.join("ben", 5000, groups, a)
	c := s.join("carl", 1, spatial, a, b) // knows nothing of groups
	a.waitFor("the first snapshot", func() bool { return a.groupsNow() != nil })
	if g := a.groupsNow(); g.May != (talk.GroupCaps{Use: true, Create: true, Invite: true}) || len(g.Groups) != 0 {
		t.Errorf("%+v", g)
	}
	if got := a.request("CREATE NORMAL 0 %s %s", b64("team"), b64("pass")); got != "CREATE OK" {
		t.Fatal(got)
	}
	b.waitFor("the group", func() bool { return len(b.groupsNow().Groups) == 1 })
	g := b.groupsNow().Groups[0]
	if g.Name != "team" || !g.Locked || g.Owner != a.player.ID || g.Type != talk.NormalGroup {
		t.Errorf("%+v", g)
	}
	for _, r := range [][2]string{
		{"JOIN " + g.ID.String() + " " + b64("wrong"), "JOIN WRONG_PASSWORD"},
		{"RENAME " + g.ID.String() + " " + b64("mine"), "RENAME NO_PERMISSION"},
		{"MOVE " + a.player.ID.String() + " -", "MOVE NO_PERMISSION"},
		{"JOIN " + g.ID.String() + " " + b64("pass"), "JOIN OK"},
	} {
		if got := b.request("%s", r[0]); got != r[1] {
			t.Errorf("%s: %s", r[0], got)
		}
	}
	// In force with the answer: at full gain from nowhere, in another place; outside, nothing.
	a.heardBy(b, "one group", func(f wire.S2C) bool { return f.Gain == 255 && f.DX == 0 && f.DZ == 0 })
	if w := s.why(a, b); w.Verdict != route.ByGroup || w.Level != 255 || !strings.Contains(fmt.Sprint(w.Clauses()), `{group [group "team" (NORMAL)]}`) {
		t.Error(w)
	}
	if w := s.why(a, c); w.Verdict != route.GroupRule {
		t.Error(w)
	}
	c.heardBy(a, "a normal group hears others", func(f wire.S2C) bool { return f.Gain < 255 })
	c.take()
	for range 10 {
		a.say()
	}
	a.heardBy(b, "still", func(wire.S2C) bool { return true })
	if got := c.take(); got != nil {
		t.Errorf("outside the group %d frames are heard", len(got))
	}
	if got := c.lines("SSVC_GROUP"); got != nil {
		t.Errorf("not negotiated: %q", got)
	}
	for _, text := range append(a.lines(""), b.lines("")...) {
		if strings.Contains(text, b64("pass")) || strings.Contains(text, "pass") {
			t.Errorf("a password on the wire: %q", text)
		}
	}
	// The owner's edits, and leaving.
	if got := a.request("KICK %s %s", g.ID, b.player.ID); got != "KICK OK" {
		t.Error(got)
	}
	if got := a.request("INVITE %s %s", g.ID, b.player.ID); got != "INVITE OK" {
		t.Error(got)
	}
	b.waitFor("the invitation", func() bool {
		i := b.groupsNow().Invites
		return len(i) == 1 && i[0].From == a.player.ID && i[0].Group == g.ID && i[0].Seconds > 50 && i[0].Seconds <= 60
	})
	if len(a.groupsNow().Invites) != 0 {
		t.Error("an inbox is nobody else's business")
	}
	if got := b.request("ACCEPT %s", g.ID); got != "ACCEPT OK" {
		t.Error(got)
	}
	if got := a.request("DELETE %s", g.ID); got != "DELETE OK" {
		t.Error(got)
	}
	b.waitFor("no groups", func() bool { g := b.groupsNow(); return len(g.Groups) == 0 && len(g.Members) == 0 })
	a.heardBy(c, "outside again", func(f wire.S2C) bool { return f.Gain < 255 })
}

func TestGroupRequestsAreRationed(t *testing.T) {
	s := open(t, Config{Groups: openGroups})
	a := s.join("anna", 0, groups)
	a.text("SSVC_GROUP_V1:LEAVE")
	a.text("SSVC_GROUP_V1:LEAVE") // a double click
	a.text("SSVC_GROUP_V1:LEAVE")
	if got := a.request("LEAVE"); got != "LEAVE NOT_IN_GROUP" {
		t.Error(got)
	}
	if got := a.lines("SSVC_GROUP_RESULT_V1 "); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestGroupRequestsThatClose(t *testing.T) {
	for name, c := range map[string]struct {
		ask    caps.Set
		limits group.Limits
		text   string
	}{
		"not negotiated":      {spatial, openGroups, "LEAVE"},
		"edit not negotiated": {caps.Set{Status: 1, Groups: 2}, openGroups, "DELETE " + uuid.Nil.String()},
		"does not parse":      {groups, openGroups, "LEAVE now"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Groups: c.limits})
			a := s.join("anna", 0, c.ask)
			a.text("SSVC_GROUP_V1:" + c.text)
			a.ends("1003 unsupported control message")
		})
	}
	t.Run("switched off", func(t *testing.T) {
		s := open(t, Config{Groups: openGroups})
		a := s.join("anna", 0, groups)
		if err := s.gw.SetGroups(group.Limits{}); err != nil {
			t.Fatal(err)
		}
		if c := s.gw.Offers(); c.Groups != 0 || c.GroupEdit != 0 {
			t.Errorf("still offered: %+v", c)
		}
		a.text("SSVC_GROUP_V1:LEAVE")
		a.ends("1003 unsupported control message")
	})
}

func TestVanishedIsInNoGroupRow(t *testing.T) {
	s := open(t, Config{Groups: openGroups})
	a := s.join("anna", 0, groups)
	b := s.join("ben", 1, groups, a)
	v := s.dial(s.player("vanished", 2), groups)
	v.player.Show(a.player.ID, b.player.ID)
	v.waitFor("a roster", func() bool { return v.groupsNow() != nil && slices.Contains(v.roster(), "anna") })
	if got := v.request("CREATE OPEN 0 %s -", b64("staff")); got != "CREATE OK" {
		t.Fatal(got)
	}
	v.waitFor("its group", func() bool { return len(v.groupsNow().Groups) == 1 })
	if got := a.request("CREATE OPEN 0 %s -", b64("others")); got != "CREATE OK" {
		t.Fatal(got)
	}
	b.waitFor("the other group", func() bool { return len(b.groupsNow().Groups) > 0 })
	for _, text := range append(a.lines(""), b.lines("")...) {
		if strings.Contains(text, v.player.ID.String()) || strings.Contains(text, b64("staff")) {
			t.Errorf("gives a vanished player away: %q", text)
		}
	}
}

func TestDeclared(t *testing.T) {
	s := open(t, Config{Policy: route.Policy{Spectators: route.HeardByNobody}})
	a := s.join("anna", 0, spatial)
	b := s.join("ben", 5000, spatial, a)
	c := s.join("carl", 9000, spatial, a, b)
	red := func(book *relation.Book) error { return book.AddMembers("red", a.player.ID) }
	if err := s.gw.Declare(red); err != nil {
		t.Fatal(err)
	}
	// Assembled in two steps, and heard by one who is not.
	if err := s.gw.Declare(func(book *relation.Book) error {
		if err := book.Listens.Put(relation.Listen{Listener: c.player.ID, Domain: "red"}); err != nil {
			return err
		}
		return book.AddMembers("red", b.player.ID)
	}); err != nil {
		t.Fatal(err)
	}
	far := func(f wire.S2C) bool { return f.Gain == 255 && f.DX == 0 && f.DZ == 0 }
	a.heardBy(b, "domain", far)
	b.heardBy(a, "domain", far)
	a.heardBy(c, "listen", far)
	if w := s.why(a, c); w.Verdict != route.ByDeclaration {
		t.Error(w)
	}
	if w := s.why(c, a); w.Heard() || w.Verdict != route.OutOfRange {
		t.Error(w)
	}
	c.unheard(a, b)
	// A mute and a hidden speaker are compiled in.
	if err := s.gw.Mute(mute.Record{Player: a.player.ID}); err != nil {
		t.Fatal(err)
	}
	a.unheard(c, b)
	s.gw.Unmute(a.player.ID)
	c.player.Hide(a.player.ID)
	if !testkit.Wait(patience, func() bool { return s.why(a, c).Verdict == route.Hidden }) {
		t.Fatal(s.why(a, c))
	}
	a.unheard(c, b)
	a.heardBy(b, "the others keep their radio", far)
	if err := s.gw.Declare(func(book *relation.Book) error { book.Domains.Delete("red"); return nil }); err != nil {
		t.Fatal(err)
	}
	if w := s.why(a, b); w.Verdict != route.OutOfRange {
		t.Error(w)
	}
}

func TestGroupsByPermission(t *testing.T) {
	var admin atomic.Bool // anna's permissions; without them anna may not even use groups
	admin.Store(true)
	s := open(t, Config{Groups: openGroups, Permissions: func(id uuid.UUID) Bits {
		switch {
		case id != uuid.NewSHA1(uuid.Nil, []byte("anna")):
			return Open &^ CreateGroups
		case admin.Load():
			return Open | AdminGroups
		}
		return Open &^ UseGroups
	}})
	a := s.join("anna", 0, groups)
	b := s.join("ben", 5000, groups, a)
	if got := b.request("CREATE OPEN 0 %s -", b64("mine")); got != "CREATE NO_PERMISSION" {
		t.Error(got)
	}
	if got := a.request("CREATE OPEN 0 %s -", b64("team")); got != "CREATE OK" {
		t.Fatal(got)
	}
	a.waitFor("the group", func() bool { return len(a.groupsNow().Groups) == 1 })
	if got := a.request("MOVE %s %s", b.player.ID, a.groupsNow().Groups[0].ID); got != "MOVE OK" {
		t.Error(got)
	}
	a.heardBy(b, "moved", func(f wire.S2C) bool { return f.Gain == 255 })
	admin.Store(false)
	a.waitFor("nothing that it may do", func() bool { return a.groupsNow().May == talk.GroupCaps{} })
	b.waitFor("a group of its own", func() bool {
		g := b.groupsNow()
		return len(g.Members) == 1 && g.Members[0].Player == b.player.ID && g.Groups[0].Owner == b.player.ID
	})
	if got := a.request("LEAVE"); got != "LEAVE NO_PERMISSION" {
		t.Error(got)
	}
}

func TestMembershipSurvivesAReconnect(t *testing.T) {
	s := open(t, Config{Groups: openGroups})
	a := s.join("anna", 0, groups)
	if got := a.request("CREATE OPEN 0 %s -", b64("team")); got != "CREATE OK" {
		t.Fatal(got)
	}
	a.conn.Close()
	<-a.done
	again := s.dial(a.player, groups)
	again.waitFor("its group", func() bool {
		g := again.groupsNow()
		return g != nil && len(g.Members) == 1 && g.Members[0].Player == a.player.ID
	})
}

func TestWhyWithoutAConnection(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, spatial)
	silent := s.player("ben", 1) // who is named all the same
	for who, called := range map[uuid.UUID]string{uuid.Max: uuid.Max.String(), silent.ID: "ben"} {
		w, err := s.gw.Why(a.player.ID, who)
		if err != nil || w.Heard() || !strings.Contains(fmt.Sprint(w.Clauses()), "{absent [player "+called+"]}") {
			t.Errorf("%v, %v", w, err)
		}
	}
}

// TestSetEnabled: voice that is switched off ends all sockets, and takes new ones again when it is switched on.
func TestSetEnabled(t *testing.T) {
	s := open(t, Config{})
	a := s.join("anna", 0, spatial)
	s.gw.SetEnabled(false)
	a.ends("1001 shutting down")
	b := s.dial(s.player("ben", 1), v2)
	b.ends("1001 shutting down")
	s.gw.SetEnabled(true)
	s.join("cid", 2, spatial)
}
