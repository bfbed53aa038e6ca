package itest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// within is how soon who is hidden must be silent and unnamed, and who is shown again be heard and named.
const within = time.Second

// TestWhoIsHeard: real players on servers that show them to each other as servers with ordinary plugins do, who all
// talk all the time. A player in view is heard, whatever lists and walls do; one who sees without being seen is neither
// heard nor named; one in another world of the same name is not heard; and a group is one wherever its members are. The
// versions are one of each way in which a server says such things.
func TestWhoIsHeard(t *testing.T) {
	versions := []peer.Version{
		{Name: "1.8.8", Protocol: 47}, {Name: "1.12.2", Protocol: 340}, {Name: "1.15.2", Protocol: 578},
		{Name: "1.20.4", Protocol: 765}, {Name: "1.21.4", Protocol: 769}, {Name: "26.1", Protocol: 775},
	}
	if long() {
		versions = peer.Versions
	}
	for _, v := range versions {
		alongside(t, v.Name, func(t *testing.T) { newScene(t, v).play() })
	}
}

// scene is three players who talk.
type scene struct {
	t             *testing.T
	late          *lateness
	p             *program
	main, other   *peer.Server
	ann, bob, cid *member
	elsewhere     string // a world of main's, beside the one where players arrive
}

const overworld = "minecraft:overworld"

func newScene(t *testing.T, v peer.Version) *scene {
	s := &scene{t: t, late: newLateness(t), elsewhere: overworld + "#resource"}
	ages, seeds := map[string]int64{overworld: 105_000, s.elsewhere: 100_000}, map[string]int32{}
	switch {
	case v.Protocol >= proto.V26_1: // all worlds are told one age, so that names alone tell them apart
		s.elsewhere = "minecraft:the_nether"
	case v.Name == "1.15.2": // by seeds alone
		ages[overworld] = ages[s.elsewhere]
		seeds[overworld], seeds[s.elsewhere] = 1, 2
	}
	s.main = peer.Backend(t, v.Name, peer.None, "", peer.Quiet("look"), peer.Bodies(tracked), peer.Ages(ages), peer.Seeds(seeds))
	s.other = peer.Backend(t, v.Name, peer.None, "", peer.Quiet("look"), peer.Bodies(tracked), peer.Ages(ages), peer.Seeds(seeds))
	s.p = start(t, fmt.Sprintf("online: false\ntry: [main]\nservers: {main: {address: %q}, other: {address: %q}}\npermissions: {players: {Ann: {nodes: [socketsvc.groups.admin]}}}\n", s.main.Addr, s.other.Addr))
	bots := peer.NewBots(t, v.Name)
	all := []*peer.Bot{bots.Dial(s.p.addr, "Ann"), bots.Dial(s.p.addr, "Bob"), bots.Dial(s.p.addr, "Cid")}
	for i, m := range []**member{&s.ann, &s.bob, &s.cid} {
		all[i].Spawned()
		*m = newMember(t, s.p, all[i])
	}
	var talk sync.WaitGroup
	t.Cleanup(talk.Wait)
	for _, m := range s.all() {
		talk.Go(m.talk)
		t.Cleanup(m.c.Close)
	}
	for _, l := range s.all() {
		for _, from := range s.all() {
			if l != from {
				testkit.Until(t, fmt.Sprintf("%s hears %s", l.bot.Name, from.bot.Name), func() bool { return !l.last(from).IsZero() })
			}
		}
	}
	return s
}

// tracked is how many blocks bodies are seen, which is less than voices are heard.
const tracked = 30

func (s *scene) all() []*member { return []*member{s.ann, s.bob, s.cid} }

func (s *scene) play() {
	s.behindListsAndWalls()
	s.vanish()
	s.worldsOfOneName()
	s.oneGroup()
	if n := s.p.metric("earshot_undecoded_total"); n != 0 {
		s.t.Errorf("%v packets were not understood", n)
	}
}

// behindListsAndWalls: a plugin takes Bob off Ann's list while Bob's body stands in view; another keeps Bob's and Cid's
// bodies from each other, as if there were a wall between them; and Bob goes so far away that nobody has Bob's body.
func (s *scene) behindListsAndWalls() {
	begin := s.begin()
	s.main.Hide("Ann", "Bob")
	// Longer than an absence has to last where it counts.
	for _, stands := range []time.Duration{sight.Absent + 1200*time.Millisecond, sight.Grace + 200*time.Millisecond} {
		s.wall(true)
		time.Sleep(stands)
		if s.sees(s.ann) != 2 || s.sees(s.bob) != 1 || s.sees(s.cid) != 1 || slices.Contains(s.ann.bot.Where().Names, "Bob") {
			s.t.Fatal("the server does not show who it should")
		}
		s.wall(false)
	}
	s.main.Show("Ann", "Bob")
	s.main.Teleport("Bob", 8, 70, 8+tracked+5, 0, 0)
	s.main.At("Bob", 8, 70, 8+tracked+5)
	testkit.Until(s.t, "nobody sees Bob", func() bool { return s.sees(s.ann) == 1 && s.sees(s.bob) == 0 })
	time.Sleep(sight.Grace + 200*time.Millisecond)
	s.main.Teleport("Bob", 8, 70, 8, 0, 0)
	testkit.Until(s.t, "everybody sees Bob", func() bool { return s.sees(s.ann) == 2 && s.sees(s.bob) == 2 })
	for _, l := range s.all() {
		for _, from := range s.all() {
			s.heardSince(begin, l, from)
		}
	}
}

func (s *scene) wall(on bool) {
	s.main.Cull("Bob", "Cid", on)
	s.main.Cull("Cid", "Bob", on)
}

// sees returns how many others a client has the bodies of.
func (s *scene) sees(m *member) int { return m.bot.Where().Seen["player"] - 1 }

// vanish: Bob sees everybody, whom nobody sees, and comes back.
func (s *scene) vanish() {
	begin := s.begin()
	s.main.Vanish("Bob")
	vanished := time.Now()
	for _, l := range []*member{s.ann, s.cid} {
		s.falls(vanished, l, s.bob)
		s.named(vanished, l, s.bob, false)
	}
	s.main.Appear("Bob")
	back := time.Now()
	for _, l := range []*member{s.ann, s.cid} {
		s.rises(back, l, s.bob)
		s.named(back, l, s.bob, true)
		s.heardSince(begin, s.bob, l)
	}
	s.heardSince(begin, s.ann, s.cid)
}

// worldsOfOneName: Bob is at the same coordinates of another world, of which all that clients are told is its age or
// seed, and all lists have everybody; then Ann follows.
func (s *scene) worldsOfOneName() {
	s.begin()
	s.main.Respawn("Bob", s.elsewhere, 0, 8, 70, 8)
	gone := time.Now()
	for _, l := range []*member{s.ann, s.cid} {
		s.falls(gone, l, s.bob)
		s.falls(gone, s.bob, l)
		s.named(gone, l, s.bob, true)
	}
	s.main.Respawn("Ann", s.elsewhere, 0, 8, 70, 8)
	gone = time.Now()
	s.falls(gone, s.ann, s.cid)
	s.falls(gone, s.cid, s.ann)
	s.rises(gone, s.ann, s.bob)
	s.rises(gone, s.bob, s.ann)
}

// oneGroup: Ann and Cid are in different worlds of a server whose lists are each world's own, and then on two servers.
// They are on each other's roster all the time, and hear each other in a group.
func (s *scene) oneGroup() {
	s.main.ListsPerWorld()
	s.ann.asks(talk.GroupRequest{Verb: talk.Create, Name: "Team", Type: talk.NormalGroup}, "OK")
	s.ann.shows("the group", hasGroup("Team"))
	team := s.ann.c.Groups().Groups[0].ID
	if slices.Contains(s.ann.bot.Where().Names, "Cid") {
		s.t.Fatal("the server does not show who it should")
	}
	invite := func() {
		s.t.Helper()
		s.ann.asks(talk.GroupRequest{Verb: talk.Invite, Group: team, Player: s.cid.id}, "OK")
		s.cid.shows("the invitation", func(c *client.Client) bool { return len(c.Groups().Invites) == 1 })
		s.cid.asks(talk.GroupRequest{Verb: talk.Accept, Group: team}, "OK")
	}
	together := func() {
		s.t.Helper()
		for l, from := range map[*member]*member{s.ann: s.cid, s.cid: s.ann} {
			s.begin()
			s.rises(time.Now(), l, from)
			s.named(time.Now(), l, from, true)
			s.named(time.Now(), l, s.bob, true)
		}
		s.ann.shows("both members", func(c *client.Client) bool {
			members := c.Groups().Members
			return slices.Contains(members, talk.GroupMember{Group: team, Player: s.ann.id}) && slices.Contains(members, talk.GroupMember{Group: team, Player: s.cid.id})
		})
	}
	invite()
	together()
	s.cid.bot.Chat("/server other")
	s.other.Joined("Cid")
	together()
	s.ann.asks(talk.GroupRequest{Verb: talk.Move, Player: s.cid.id, Out: true}, "OK")
	s.begin()
	s.falls(time.Now(), s.ann, s.cid)
	s.named(time.Now(), s.ann, s.cid, true)
	invite()
	together()
	s.ann.asks(talk.GroupRequest{Verb: talk.Move, Player: s.bob.id, Group: team}, "OK")
	s.begin()
	s.rises(time.Now(), s.cid, s.bob)
	s.ann.asks(talk.GroupRequest{Verb: talk.Move, Player: s.cid.id, Out: true}, "OK")
	s.ann.asks(talk.GroupRequest{Verb: talk.Move, Player: s.cid.id, Group: team}, "OK")
	together()
}

// begin returns now, of which the machine's lateness counts.
func (s *scene) begin() time.Time {
	s.late.forget()
	return time.Now()
}

// heardSince: l has heard from without a break.
func (s *scene) heardSince(begin time.Time, l, from *member) {
	s.t.Helper()
	if l == from {
		return
	}
	const most = 350 * time.Millisecond // a busy machine makes gaps; what silences somebody makes longer ones
	l.mu.Lock()
	defer l.mu.Unlock()
	last, gap, until := begin, time.Duration(0), time.Now()
	for _, h := range l.heard {
		if h.from == from.id && h.at.After(last) {
			gap, last = max(gap, h.at.Sub(last)), h.at
		}
	}
	if gap = max(gap, until.Sub(last)); gap > most+s.late.slack() {
		s.t.Fatalf("%s did not hear %s for %v of the last %v, and %v is the most (the machine is late by up to %v)",
			l.bot.Name, from.bot.Name, gap, until.Sub(begin), most, s.late.slack())
	}
}

// falls waits until l hears from no longer, which has to be soon after since.
func (s *scene) falls(since time.Time, l, from *member) {
	s.t.Helper()
	const silence = 400 * time.Millisecond // they talk all the time
	testkit.Until(s.t, fmt.Sprintf("%s hears %s no longer", l.bot.Name, from.bot.Name), func() bool { return time.Since(l.last(from)) > silence+s.late.slack() })
	if d := l.last(from).Sub(since); d > within+s.late.slack() {
		s.t.Fatalf("%s heard %s for another %v, and %v is the most (the machine is late by up to %v)", l.bot.Name, from.bot.Name, d, within, s.late.slack())
	}
}

// rises waits until l hears from, which has to be soon after since.
func (s *scene) rises(since time.Time, l, from *member) {
	s.t.Helper()
	testkit.Until(s.t, fmt.Sprintf("%s hears %s", l.bot.Name, from.bot.Name), func() bool { return l.last(from).After(since) })
	if d := time.Since(since); d > within+s.late.slack() {
		s.t.Fatalf("%s heard %s only after %v, and %v is the most (the machine is late by up to %v)", l.bot.Name, from.bot.Name, d, within, s.late.slack())
	}
}

// named waits until whom is on l's roster, or not on it, which has to be soon after since.
func (s *scene) named(since time.Time, l, whom *member, want bool) {
	s.t.Helper()
	testkit.Until(s.t, fmt.Sprintf("%s is told of %s: %v", l.bot.Name, whom.bot.Name, want), func() bool { return l.knows(whom.id) == want })
	if d := time.Since(since); d > within+within+s.late.slack() { // it may wait for others
		s.t.Fatalf("%s was told of %s (%v) only after %v", l.bot.Name, whom.bot.Name, want, d)
	}
}

// knows tells whether somebody is on the roster.
func (m *member) knows(id uuid.UUID) bool {
	r := m.c.Roster()
	return r != nil && slices.ContainsFunc(r.People, func(p line.Person) bool { return p.ID == id })
}

// last returns when m last heard somebody.
func (m *member) last(from *member) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range slices.Backward(m.heard) {
		if h.from == from.id {
			return h.at
		}
	}
	return time.Time{}
}

// talk sends silence as fast as speech until the connection ends.
func (m *member) talk() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.c.SendOpus([]byte{0xf8, 0xff, 0xfe})
		case <-m.c.Done():
			return
		}
	}
}
