//go:build cgo && nolibopusfile

package voice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	vc "github.com/earshot-mc/earshot/voice/client"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/wire"
)

// everything is what the newest client asks for.
var everything = caps.Newest()

// everySet has each set of capabilities that can be granted whole, in every version of each.
func everySet() (all []caps.Set) {
	for bits := range 1 << 10 {
		has := func(i int) uint8 { return uint8(bits >> i & 1) }
		if has(4)+has(5) == 2 {
			continue // the soundboard has one version at a time
		}
		s := caps.Set{
			Audio: 2 * has(0), Status: has(1), Spatial: has(2), Speakers: has(3), Soundboard: has(4) + 2*has(5),
			Groups: 2 * has(6), GroupEdit: has(7), Pose: has(8), Roster: 2 * has(9),
		}
		if s.Negotiate(s) == s {
			all = append(all, s)
		}
	}
	return all
}

// foreign tells what a client has got that is not for a set of capabilities. The answers of the group requests that it
// has made itself are in verbs.
func foreign(s caps.Set, frames []wire.S2C, texts []string, verbs ...talk.Verb) (faults []string) {
	blame := func(format string, args ...any) {
		if len(faults) < 5 {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	for _, f := range frames { // of the format, else reading them has failed
		if f.Kind == wire.KindBoard && s.Soundboard == 0 {
			blame("a clip: %+v", f)
		}
		if f.Kind == wire.KindChannel && s.Spatial == 0 {
			blame("a channel: %+v", f)
		}
	}
	for _, text := range texts {
		v, err := line.ParseS2C([]byte(text))
		if err != nil {
			blame("%v: %q", err, text)
			continue
		}
		ok := false
		switch v := v.(type) {
		case *line.Roster:
			// And no row beside these.
			ok = s.Roster == 0 && v.Status == (s.Status == 1) && string(line.AppendRoster(nil, v)) == text
		case *line.Changes:
			ok = s.Roster == 2 && string(line.AppendChanges(nil, v)) == text
		case *line.Mute, *line.Ranges:
			ok = s.Status == 1
		case *line.Speakers:
			ok = s.Speakers == 1
		case *line.Pose:
			ok = s.Pose == 1
		case *line.Groups:
			ok = s.Groups == 2
		case *talk.GroupResult:
			ok = s.Groups == 2 && slices.Contains(verbs, v.Verb)
		}
		if !ok {
			blame("%q", text)
		}
	}
	return faults
}

// saw tells whether any of the texts that have come passes.
func saw[T any](c *client, pass func(*T) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.texts, func(text string) bool {
		l, ok := c.parse(text).(*T)
		return ok && pass(l)
	})
}

// got tells whether any of the frames that have come passes.
func (c *client) got(pass func(wire.S2C) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.frames, pass)
}

// TestMixedVersions has a client of every set of capabilities on a server that has them all, and the newest client on a
// server of every set, all in one place in which everything happens that voice knows. Each gets all that is for it and
// not a byte else, and nothing that the newest client sends to an older server offends it.
func TestMixedVersions(t *testing.T) {
	gains := gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}
	s := openToAll(t, Config{
		Groups: openGroups, Policy: route.Policy{Gain: gains},
		Permissions: func(uuid.UUID) Bits { return Open | AdminGroups },
	})
	anna, chef := s.bot(s.player("anna", 0), everything), s.bot(s.player("chef", 0), everything)
	legacy := s.dial(s.player("legacy", 0), v1)
	var old []*client // clients
	var fresh []*bot  // on old servers
	for i, set := range everySet() {
		old = append(old, s.dial(s.player(fmt.Sprint("old", i), 5), set))
		b := &bot{s: s, player: s.player(fmt.Sprint("new", i), 5)}
		addr := s.serve(func() caps.Set { return set })
		c, err := vc.Dial(context.Background(), vc.Config{URL: "ws://" + addr, Token: "t", Player: b.player.ID, Ask: everything, NoDecode: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if want := everything.Negotiate(set); c.Caps() != want {
			t.Fatalf("a server of %+v grants %+v, want %+v", set, c.Caps(), want)
		}
		b.Client = c
		fresh = append(fresh, b)
	}
	if len(old) != 98 {
		t.Fatalf("%d sets of capabilities", len(old))
	}

	// stage tries one thing; what comes next needs that.
	stage := func(name string, fn func(t *testing.T)) {
		t.Helper()
		if !t.Run(name, func(sub *testing.T) {
			s.t = sub // whoever waits fails here
			defer func() { s.t = t }()
			fn(sub)
		}) {
			t.FailNow()
		}
	}
	named := func(name string) func(*client) bool {
		return func(c *client) bool { return slices.Contains(c.roster(), name) }
	}
	verbs := map[*client][]talk.Verb{}

	// all waits until every old client has what it is to have.
	all := func(what string, ok func(c *client) bool) {
		s.t.Helper()
		for _, c := range old {
			c.waitFor(fmt.Sprintf("%s, with %+v", what, c.caps), func() bool { return ok(c) })
		}
	}
	status := func(what string, ok func(c *client) bool) {
		s.t.Helper()
		all(what, func(c *client) bool { return c.caps.Status == 0 || ok(c) })
	}

	spec := radio
	spec.Range = 48
	ch := s.channel(spec)
	live, err := ch.Live()
	if err != nil {
		t.Fatal(err)
	}
	clip, err := anna.StartClip()
	if err != nil {
		t.Fatal(err)
	}
	speak := func(what string, ok func(c *client) bool) {
		s.t.Helper()
		s.eventually(what, func() bool {
			anna.SendOpus(opus)
			clip.SendOpus(opus)
			live.Send(opus)
			legacy.say()
			time.Sleep(20 * time.Millisecond)
			return !slices.ContainsFunc(old, func(c *client) bool { return !ok(c) })
		})
	}
	stage("voices with sequences and without, clips, a channel", func(t *testing.T) {
		speak("everybody to hear what is for them", func(c *client) bool {
			of := func(id uuid.UUID, k wire.Kind) bool {
				return c.got(func(f wire.S2C) bool { return f.Source == id && f.Kind == k })
			}
			return of(anna.player.ID, wire.KindPlayer) && of(legacy.player.ID, wire.KindPlayer) &&
				of(ch.ID(), wire.KindChannel) == (c.caps.Spatial == 1) && of(anna.player.ID, wire.KindBoard) == (c.caps.Soundboard != 0)
		})
		for _, c := range old {
			if c.got(func(f wire.S2C) bool { return f.Source == legacy.player.ID && (f.Stream != 0 || f.Seq != 0) }) ||
				c.caps.Audio == 2 && c.got(func(f wire.S2C) bool { return f.Source == anna.player.ID && f.Stream <= 0 }) {
				t.Errorf("%+v: wrong streams", c.caps)
			}
		}
	})

	stage("rosters, states and tiers", func(t *testing.T) {
		late := s.dial(s.player("late", 0), v1)
		all("the late one", named("late"))
		late.conn.Close()
		all("nobody late", func(c *client) bool { return !named("late")(c) })
		anna.SetDeafened(true)
		chef.SetTier(talk.Whisper)
		status("who is deafened and whispers", func(c *client) bool {
			return saw(c, func(r *line.Roster) bool {
				return slices.Equal(r.Deafened, []uuid.UUID{anna.player.ID}) && slices.Equal(r.Tiers[talk.Whisper], []uuid.UUID{chef.player.ID})
			})
		})
		anna.SetDeafened(false)
		chef.SetTier(talk.Normal)
		if err := s.gw.SetPolicy(route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5, talk.Shout: 2}}}); err != nil {
			t.Fatal(err)
		}
		status("the shout", func(c *client) bool {
			return saw(c, func(r *line.Ranges) bool { return *r == line.Ranges{Tiers: talk.TiersOf(talk.Whisper)} }) &&
				saw(c, func(r *line.Ranges) bool { return *r == line.Ranges{Tiers: talk.TiersOf(talk.Whisper, talk.Shout)} })
		})
		for _, c := range old {
			c.player.SetPose(&world.Pose{X: 4, Y: 64, Yaw: 90, Place: s.place})
		}
		all("its pose", func(c *client) bool {
			return c.caps.Pose == 0 || saw(c, func(p *line.Pose) bool { return p.X == 4 && p.Yaw == 90 })
		})
	})

	stage("mutes of each and of all", func(t *testing.T) {
		var muted Changes
		for _, c := range old {
			muted.Mutes = append(muted.Mutes, mute.Record{Player: c.player.ID, Reason: "quiet"})
			muted.MutesGone = append(muted.MutesGone, c.player.ID)
		}
		told := func(kind talk.MuteKind) func(c *client) bool {
			return func(c *client) bool {
				return saw(c, func(m *line.Mute) bool { return m.Kind == kind && (m.Reason == "quiet") == (kind == talk.MutedPlayer) })
			}
		}
		if err := s.gw.Apply(Changes{Mutes: muted.Mutes}); err != nil {
			t.Fatal(err)
		}
		status("its mute", told(talk.MutedPlayer))
		if err := s.gw.Apply(Changes{MutesGone: muted.MutesGone}); err != nil {
			t.Fatal(err)
		}
		if err := s.gw.MuteAll(mute.Record{}); err != nil {
			t.Fatal(err)
		}
		status("the mute of all", told(talk.MutedServer))
		if _, err := s.gw.Unmute(mute.Everybody); err != nil {
			t.Fatal(err)
		}
		status("no mute", func(c *client) bool {
			l := c.lines("SSVC_MUTE_V1 ")
			return len(l) > 0 && l[len(l)-1] == "SSVC_MUTE_V1 0 - -"
		})
	})

	stage("the newest client says to older servers what they know", func(t *testing.T) {
		for _, b := range fresh {
			b.SetDeafened(true)
			b.SetTier(talk.Whisper)
			if err := b.Group(talk.GroupRequest{Verb: talk.Leave}); (err == nil) != (b.Caps().Groups == 2) {
				t.Errorf("%+v: %v", b.Caps(), err)
			}
			// Lost: too soon.
			if err := b.Group(talk.GroupRequest{Verb: talk.Delete}); (err == nil) != (b.Caps().GroupEdit == 1) {
				t.Errorf("%+v: %v", b.Caps(), err)
			}
			k, err := b.StartClip()
			if err != nil {
				t.Fatal(err)
			}
			if err := k.SendOpus(append(slices.Clone(opus), 'c')); err != nil {
				t.Fatal(err)
			}
			k.End()
			if err := b.SendOpus(append(slices.Clone(opus), 'm')); err != nil {
				t.Fatal(err)
			}
		}
		newest := old[slices.IndexFunc(old, func(c *client) bool { return c.caps == everything })]
		for _, b := range fresh {
			kind := wire.KindPlayer // by the microphone where there is no soundboard
			if b.Caps().Soundboard != 0 {
				kind = wire.KindBoard
			}
			newest.waitFor(fmt.Sprintf("voice and clip on a server of %+v", b.Caps()), func() bool {
				of := func(k wire.Kind, last byte) bool {
					return newest.got(func(f wire.S2C) bool {
						return f.Source == b.player.ID && f.Kind == k && string(f.Opus[:4]) == string(opus) && f.Opus[4] == last
					})
				}
				return of(wire.KindPlayer, 'm') && of(kind, 'c')
			})
		}
		status("all who deafened themselves and whisper", func(c *client) bool {
			return saw(c, func(r *line.Roster) bool {
				return !slices.ContainsFunc(fresh, func(b *bot) bool {
					known := b.Caps().Status == 1
					return slices.Contains(r.Deafened, b.player.ID) != known || slices.Contains(r.Tiers[talk.Whisper], b.player.ID) != known
				})
			})
		})
	})

	stage("groups, by invitation, password and move", func(t *testing.T) {
		if err := anna.Group(talk.GroupRequest{Verb: talk.Create, Name: "team", Password: "pass"}); err != nil {
			t.Fatal(err)
		}
		var group uuid.UUID
		s.eventually("the group", func() bool {
			g := anna.Groups()
			if g == nil || len(g.Groups) == 0 {
				return false
			}
			group = g.Groups[0].ID
			return true
		})
		var knowing, others []*client
		for _, c := range old {
			if c.caps.Groups == 2 {
				knowing = append(knowing, c)
			} else {
				others = append(others, c)
			}
		}
		for _, to := range []*client{knowing[0], others[0], others[len(others)-1]} {
			s.eventually("the invitation of "+to.player.Name, func() bool {
				if err := anna.Group(talk.GroupRequest{Verb: talk.Invite, Group: group, Player: to.player.ID}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(210 * time.Millisecond)
				return to.caps.Groups == 0 || saw(to, func(g *line.Groups) bool { return len(g.Invites) == 1 && g.Invites[0].From == anna.player.ID })
			})
		}
		if len(others) > len(knowing) { // each moves one
			t.Fatalf("%d sets with groups, %d without", len(knowing), len(others))
		}
		for _, c := range knowing {
			c.text("SSVC_GROUP_V1:JOIN " + group.String() + " " + b64("pass"))
			verbs[c] = []talk.Verb{talk.Join, talk.Move}
			c.waitFor("an answer", func() bool {
				return saw(c, func(r *talk.GroupResult) bool { return *r == talk.GroupResult{Verb: talk.Join} })
			})
		}
		time.Sleep(210 * time.Millisecond) // of which the server keeps 200 free
		for i, c := range knowing {
			c.text("SSVC_GROUP_V1:MOVE " + others[i%len(others)].player.ID.String() + " " + group.String())
		}
		all("the group", func(c *client) bool {
			return c.caps.Groups == 0 || saw(c, func(g *line.Groups) bool {
				return len(g.Groups) == 1 && g.Groups[0].Locked && g.Groups[0].Name == "team" && len(g.Members) == len(old)+1
			}) && saw(c, func(r *talk.GroupResult) bool { return *r == talk.GroupResult{Verb: talk.Move} })
		})
		speak("everybody to hear the group", func(c *client) bool {
			central := func(k wire.Kind) bool {
				return c.got(func(f wire.S2C) bool {
					return f.Source == anna.player.ID && f.Kind == k && f.Gain == 255 && f.DX == 0 && f.DZ == 0
				})
			}
			return central(wire.KindPlayer) && central(wire.KindBoard) == (c.caps.Soundboard != 0)
		})
		time.Sleep(210 * time.Millisecond)
		for _, c := range knowing { // an owner or admin may edit, with the extension
			if c.caps.GroupEdit == 1 {
				verbs[c] = append(verbs[c], talk.Rename)
				c.text("SSVC_GROUP_V1:RENAME " + group.String() + " " + b64("crew"))
			}
		}
		all("the new name", func(c *client) bool {
			return c.caps.Groups == 0 || saw(c, func(g *line.Groups) bool { return len(g.Groups) == 1 && g.Groups[0].Name == "crew" })
		})
	})

	stage("declared voices, and the end of the channel", func(t *testing.T) {
		far := s.player("far", 5000)
		star := s.dial(far, v1)
		all("the star", named("far"))
		if err := s.gw.Declare(func(b *relation.Book) error {
			for _, c := range old {
				if err := b.Edges.Put(relation.Edge{Talker: far.ID, Listener: c.player.ID}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.eventually("everybody to hear the star", func() bool {
			star.say()
			time.Sleep(20 * time.Millisecond)
			return !slices.ContainsFunc(old, func(c *client) bool {
				return !c.got(func(f wire.S2C) bool { return f.Source == far.ID && f.Gain == 255 && f.Stream == 0 })
			})
		})
		all("the channel's name", func(c *client) bool {
			return c.caps.Speakers == 0 || saw(c, func(l *line.Speakers) bool { return len(l.List) == 1 && l.List[0].Name == radio.Name })
		})
		ch.Close()
		all("no channel", func(c *client) bool {
			l := c.lines("SSVC_SPEAKERS_V1\n")
			return c.caps.Speakers == 0 || l[len(l)-1] == "SSVC_SPEAKERS_V1\n"
		})
	})

	stage("nothing else has come", func(t *testing.T) {
		off := openGroups
		off.Enabled = false
		if err := s.gw.SetGroups(off); err != nil {
			t.Fatal(err)
		}
		bye := s.dial(s.player("bye", 0), v1)
		all("the last one", named("bye")) // so that whatever else was to come has come
		bye.conn.Close()

		for _, c := range old {
			c.mu.Lock()
			if faults := foreign(c.caps, c.frames, c.texts, verbs[c]...); faults != nil || c.err != nil {
				t.Errorf("a client of %+v: end %v, got\n%s", c.caps, c.err, strings.Join(faults, "\n"))
			}
			c.mu.Unlock()
		}
		for _, b := range append(fresh, anna, chef) {
			select {
			case <-b.Done():
				t.Errorf("on a server of %+v: %v", b.Caps(), b.Wait())
			default:
			}
			if n := b.Counters(); n.Frames == 0 || n.Invalid != 0 || n.BadText != 0 {
				t.Errorf("on a server of %+v: %+v", b.Caps(), n)
			}
		}
		for why, n := range s.gw.Stats().Dropped {
			if n > 0 && strings.HasPrefix(why, "bad_") {
				t.Errorf("%d frames dropped for %s", n, why)
			}
		}
	})
}

// TestRollback: a player's next connection negotiates again, whichever end has changed meanwhile, and the others need
// not notice.
func TestRollback(t *testing.T) {
	s := openToAll(t, Config{Groups: openGroups})
	ben := s.dial(s.player("ben", 1), everything)
	anna := s.player("anna", 0)
	steps := everySet()
	steps = []caps.Set{everything, v1, v2, steps[len(steps)/2], v1, everything}
	var former *client
	for i, set := range steps {
		a := s.dial(anna, set)
		if former != nil {
			former.ends("4001 replaced")
		}
		a.heardBy(ben, "the new connection", func(f wire.S2C) bool { return (f.Stream > 0) == (set.Audio == 2) })
		ben.heardBy(a, "the new connection", func(f wire.S2C) bool { return (f.Stream > 0) == (set.Audio == 2) })
		if set.Groups == 2 {
			a.waitFor("groups", func() bool { return a.groupsNow() != nil })
		}
		a.mu.Lock()
		if faults := foreign(set, a.frames, a.texts); faults != nil {
			t.Errorf("connection %d, of %+v, got\n%s", i, set, strings.Join(faults, "\n"))
		}
		a.mu.Unlock()
		former = a
	}
}

// TestMuteNeedsNoClient: whoever knows nothing of mutes is silent under one all the same, by microphone and clip.
func TestMuteNeedsNoClient(t *testing.T) {
	s := openToAll(t, Config{})
	ben := s.dial(s.player("ben", 1), everything.Negotiate(Offers()))
	marker := s.dial(s.player("marker", 1), v1)
	marker.heardBy(ben, "the marker", func(wire.S2C) bool { return true })
	for _, set := range []caps.Set{v1, v2, {Audio: 2, Spatial: 1, Soundboard: 2}} {
		p := s.player(fmt.Sprintf("muted %d.%d", set.Audio, set.Soundboard), 0)
		a := s.dial(p, set)
		speak := a.say
		if set.Soundboard != 0 {
			clip := func() []byte {
				a.seq++
				return wire.AppendC2S(nil, wire.C2SBoard, &wire.C2S{Source: wire.Board, Stream: 5, Seq: a.seq, Opus: opus})
			}
			speak = func(...byte) int64 { a.send(ws.OpBinary, clip()); return a.seq }
		}
		hears := func() bool {
			ben.take()
			for range 5 {
				speak()
			}
			time.Sleep(20 * time.Millisecond)
			return slices.ContainsFunc(ben.take(), func(f wire.S2C) bool { return f.Source == p.ID })
		}
		s.eventually("ben to hear "+p.Name, func() bool { time.Sleep(100 * time.Millisecond); return hears() })
		if err := s.gw.Mute(mute.Record{Player: p.ID}); err != nil {
			t.Fatal(err)
		}
		before := s.gw.Stats().Dropped["muted"]
		ben.take()
		for range 5 {
			speak()
		}
		s.count("frames of "+p.Name, before+5, func(s Stats) uint64 { return s.Dropped["muted"] })
		marker.heardBy(ben, "the marker", func(wire.S2C) bool { return true })
		if got := a.lines("SSVC_MUTE"); got != nil {
			t.Errorf("told %q", got)
		}
		if hears() {
			t.Errorf("ben hears %s, who is muted", p.Name)
		}
	}
}

// TestStateEndsWithTheConnection: what a client has said of itself is forgotten with it; the next one says it again.
func TestStateEndsWithTheConnection(t *testing.T) {
	s := openToAll(t, Config{Policy: route.Policy{Gain: gain.Rules{Default: 48, Tiers: [talk.Tiers]float64{talk.Whisper: 0.5}}}})
	ben := s.dial(s.player("ben", 1), status)
	p := s.player("anna", 0)
	rows := func(deaf, low bool) func() bool {
		return func() bool {
			ben.mu.Lock()
			defer ben.mu.Unlock()
			for _, text := range slices.Backward(ben.texts) {
				v, _ := line.ParseS2C([]byte(text))
				if r, ok := v.(*line.Roster); ok {
					here := slices.ContainsFunc(r.People, func(q line.Person) bool { return q.ID == p.ID })
					return here && slices.Contains(r.Deafened, p.ID) == deaf && slices.Contains(r.Tiers[talk.Whisper], p.ID) == low
				}
			}
			return false
		}
	}
	for range 2 {
		a := s.dial(p, status)
		ben.waitFor("anna with nothing said", rows(false, false))
		ben.heardBy(a, "not deafened", func(wire.S2C) bool { return true })
		a.text("SSVC_DEAFEN_V1:1")
		a.text("SSVC_RANGE_V1:whisper")
		ben.waitFor("what anna says", rows(true, true))
		a.conn.Close()
		<-a.done
	}
}
