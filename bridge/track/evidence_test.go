package track

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// twoVersions are an old one and a new one, for what is told by the same packets in all.
var twoVersions = []int32{proto.V1_12_2, proto.V26_1}

// A server that knows players by other UUIDs than the proxy is named once in a program's life, with what to set;
// however many players it has, and even if it is empty in between.
func TestOtherUUIDsAreWarnedOfOnceAServer(t *testing.T) {
	empty(t, proto.V1_20_3, func(x *scene) {
		names := []string{"Ann", "Bob", "Cid"}
		for _, name := range names {
			a := x.connect(name, x.protocol)
			a.enter("same") // which knows them as the proxy does
			a.as = uuid.NewSHA1(uuid.Max, []byte(name))
		}
		if n := x.logged("UUID"); n != 0 {
			x.t.Fatalf("%d warnings about a server that goes by the proxy's UUIDs", n)
		}
		for range 2 {
			for _, server := range []string{"main", "lobby"} {
				for _, a := range x.all {
					a.enter(server)
					x.lasts(time.Second)
				}
			}
		}
		for _, server := range []string{"main", "lobby"} {
			if n := x.logged("level=WARN", server+" knows Ann by another UUID than the proxy", "set `forwarding` for "+server, "server="+server); n != 1 {
				x.t.Errorf("%d warnings about %s", n, server)
			}
		}
		if n := x.logged("UUID"); n != 2 {
			x.t.Errorf("%d warnings about two servers:\n%s", n, &x.log.text)
		}
	})
}

// A server that shows none of its players to any other is named once they have been there for ten seconds, with what to
// set; and once more if that comes back.
func TestServerThatShowsNobodyIsInTheLog(t *testing.T) {
	said := func(x *scene) int {
		return x.logged("level=WARN", "main shows none of its players", "`visibility: everyone` for main", "server=main")
	}
	empty(t, proto.V1_20_3, func(x *scene) {
		x.ann = x.join("Ann")
		x.lasts(time.Minute)
		if said(x) != 0 {
			x.t.Fatal("one player alone is shown to nobody, and the log complains")
		}
		x.bob = x.join("Bob")
		x.lasts(9 * time.Second)
		if said(x) != 0 {
			x.t.Fatal("the log complains too early")
		}
		x.within(2*time.Second, "a line in the log", func() bool { return said(x) == 1 })
		x.lasts(time.Minute)
		x.ann.list(x.bob) // one is enough
		x.lasts(time.Minute)
		if n := said(x); n != 1 {
			x.t.Fatalf("the log complains %d times about one thing", n)
		}
		x.ann.unlist(x.bob)
		x.lasts(12 * time.Second)
		if n := said(x); n != 2 {
			x.t.Fatalf("%d lines in the log when it has come back", n)
		}
		x.bob.enter("lobby")
		x.reg.Sights().SetRules(map[string]sight.Rule{"main": {Mode: sight.Everyone}}, sight.Rule{})
		x.join("Cid")
		x.lasts(time.Minute)
		if n := said(x); n != 2 {
			x.t.Errorf("the log complains about a server that shows everybody to everybody")
		}
	})
}

// What tells worlds apart is named in the log when a body shows that it does not, once.
func TestDiscreditedSeedsAreInTheLog(t *testing.T) {
	scenes(t, []int32{578, proto.V26_1}, func(x *scene) {
		said := func() int {
			return x.logged("level=WARN", "main sends players of one world different seeds", "seeds tell no worlds apart", "server=main")
		}
		x.bob.seed = 78 // bodies were seen across equal ones, so that this is another world
		for range 3 {
			x.ann.unbody(x.bob)
			x.bob.reborn(overworld)
			x.ages()
			if said() == 0 {
				x.within(time.Second, "silence", func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) })
			}
			x.ann.body(x.bob)
			x.bob.body(x.ann)
			x.within(time.Second, "they hear each other", func() bool { return x.hears(x.ann, x.bob) && x.hears(x.bob, x.ann) })
		}
		x.always(5*time.Second, true)
		if n := said(); n != 1 {
			x.t.Errorf("the log says it %d times:\n%s", n, &x.log.text)
		}
	})
}

func (x *scene) bodies(b sight.Bodies) {
	x.reg.Sights().SetRules(map[string]sight.Rule{"main": {Bodies: b}}, sight.Rule{})
}

func (x *scene) onlyBobHears() bool { return x.hears(x.bob, x.ann) && !x.hears(x.ann, x.bob) }
func (x *scene) hear() bool         { return x.hears(x.bob, x.ann) && x.hears(x.ann, x.bob) }

// missing-bodies: ignore. Whatever bodies are missing, entries decide; also if it is set while somebody is hidden.
func TestMissingBodiesAreIgnored(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		x.apart()
		x.comes()
		x.within(4*time.Second, "Ann does not hear Bob", x.onlyBobHears)
		x.bodies(sight.Ignore)
		x.within(time.Second, "they hear each other", x.hear)
		x.always(10*time.Second, true)
		x.everywhere(0, x.bob, true, x.ann)
		x.ann.unlist(x.bob) // the entry counts
		x.within(800*time.Millisecond, "Ann does not hear Bob", x.onlyBobHears)
		x.ann.list(x.bob)
		x.bodies(sight.Learn)
		x.within(4*time.Second, "Ann does not hear Bob", x.onlyBobHears)
	})
	for _, v := range twoVersions { // and where there are no ages, two without bodies are in one place
		empty(t, v, func(x *scene) {
			x.rate = 0
			x.ann, x.bob = x.join("Ann"), x.join("Bob")
			x.meet(x.ann, x.bob)
			x.lasts(2 * time.Second)
			x.ann.unbody(x.bob)
			x.bob.unbody(x.ann)
			x.within(3*time.Second, "silence", func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) })
			x.bodies(sight.Ignore)
			x.within(time.Second, "they hear each other", x.hear)
			x.always(10*time.Second, true)
		})
	}
}

// missing-bodies: hide. A missing body hides always: on both sides after two seconds, and on a server that has been
// found to cull.
func TestMissingBodiesHide(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		for range 2 {
			x.culled()
		}
		x.apart()
		x.comes()
		x.always(10*time.Second, true)
		x.bodies(sight.Hide)
		x.within(4*time.Second, "Ann does not hear Bob", x.onlyBobHears)
		x.ann.body(x.bob)
		x.within(time.Second, "they hear each other", x.hear)
	})
	scenes(t, twoVersions, func(x *scene) {
		x.bodies(sight.Hide)
		for range 4 {
			x.ann.unbody(x.bob)
			x.bob.unbody(x.ann)
			x.always(1900*time.Millisecond, true)
			x.within(1200*time.Millisecond, "silence", func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) })
			x.ann.body(x.bob)
			x.bob.body(x.ann)
			x.within(time.Second, "they hear each other", x.hear)
			x.always(2*time.Second, true)
		}
		if n := x.culls(); n != 0 {
			x.t.Errorf("%d: the log says %d times what has been learnt, and nothing is to be", x.protocol, n)
		}
	})
}

// A point is forgotten each ten minutes: who culls seldom is not taken for one who culls.
func TestPointsAreForgotten(t *testing.T) {
	points := func(x *scene) int { return x.ann.player.Why(x.bob.player).Points }
	once := func(x *scene) { // a body that goes and comes back on one side is one point
		x.ann.unbody(x.bob)
		x.lasts(600 * time.Millisecond)
		x.ann.body(x.bob)
		x.lasts(time.Second)
	}
	scenes(t, twoVersions, func(x *scene) {
		for want := 1; want <= 3; want++ {
			if n := x.culls(); n != 0 {
				x.t.Fatalf("%d: it culls after %d points", x.protocol, want-1)
			}
			once(x)
			if got := points(x); got != want {
				x.t.Fatalf("%d: %d points, want %d", x.protocol, got, want)
			}
		}
		if n := x.culls(); n != 1 {
			x.t.Fatalf("%d: three points in a minute, and the log says %d times that it culls", x.protocol, n)
		}
	})
	scenes(t, twoVersions, func(x *scene) {
		for i := range 8 { // one each nine minutes: they grow by a tenth a time
			if once(x); points(x) > 2 || x.culls() > 0 {
				x.t.Fatalf("%d: %d points the %d. time", x.protocol, points(x), i+1)
			}
			x.lasts(9 * time.Minute)
		}
		x.lasts(21 * time.Minute)
		if got := points(x); got != 0 {
			x.t.Fatalf("%d: %d points are left after half an hour", x.protocol, got)
		}
		once(x)
		once(x)
		if x.culls() != 0 {
			x.t.Fatalf("%d: it culls after two points", x.protocol)
		}
		once(x)
		if x.culls() != 1 {
			x.t.Fatalf("%d: it does not cull after three points", x.protocol)
		}
	})
}

// A respawn, a teleport and a death explain why a body goes, on whichever connection the server says so first and
// however long it then takes to send the body again: that is no culling.
func TestMovesAreNoCulling(t *testing.T) {
	for what, moves := range map[string]func(x *scene){
		"respawn":  func(x *scene) { x.bob.reborn(overworld) },
		"teleport": func(x *scene) { x.bob.arrives(overworld) },
		"other world and back": func(x *scene) {
			x.bob.reborn(nether)
			x.lasts(200 * time.Millisecond)
			x.bob.reborn(overworld)
		},
		"death": func(x *scene) {
			x.bob.health(0)
			x.lasts(200 * time.Millisecond)
			x.bob.health(20)
			x.bob.reborn(overworld)
		},
	} {
		t.Run(what, func(t *testing.T) {
			scenes(t, twoVersions, func(x *scene) {
				for i := range 6 {
					switch i % 3 {
					case 0:
						x.ann.unbody(x.bob)
						x.lasts(50 * time.Millisecond)
						moves(x)
					case 1:
						moves(x)
						x.lasts(50 * time.Millisecond)
						x.ann.unbody(x.bob)
					case 2:
						moves(x)
						if what != "teleport" { // a teleport says nothing of which body it is
							x.lasts(1500 * time.Millisecond) // of a slow connection
						}
						x.ann.unbody(x.bob)
					}
					x.lasts(700 * time.Millisecond)
					x.ann.body(x.bob)
					x.bob.body(x.ann)
					x.lasts(5 * time.Second)
					if n := x.ann.player.Why(x.bob.player).Points; n != 0 || x.culls() != 0 {
						x.t.Fatalf("%d: %d points the %d. time", x.protocol, n, i+1)
					}
				}
				x.both(true)
			})
		})
	}
}

// Nor is a spectator, whose body others are not sent, and whose comes back when the player plays again.
func TestSpectatorsAreNoCulling(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		for i := range 6 {
			modes := []func(){func() { x.bob.mode(float32(world.Spectator)) }, func() { x.ann.unbody(x.bob) }}
			if i%2 == 0 {
				slices.Reverse(modes)
			}
			for _, does := range modes {
				does()
				x.lasts(50 * time.Millisecond)
			}
			x.lasts(5 * time.Second)
			x.bob.mode(float32(world.Survival))
			x.lasts(100 * time.Millisecond)
			x.both(true)
			x.ann.body(x.bob)
			x.always(5*time.Second, true)
			if n := x.ann.player.Why(x.bob.player).Points; n != 0 || x.culls() != 0 {
				x.t.Fatalf("%d: %d points the %d. time", x.protocol, n, i+1)
			}
		}
	})
}

// A server is honest once four players have had each other's bodies for ten minutes without a point. From then on two
// without bodies are in two places, as in worlds of one age that have one name.
func TestHonestServers(t *testing.T) {
	phase := func(x *scene) { // Bob goes into another phase of the world
		x.bob.reborn(overworld)
		for _, a := range x.all {
			if a != x.bob {
				a.unbody(x.bob)
			}
		}
		x.ages()
	}
	quiet := func(x *scene) func() bool {
		return func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) }
	}
	crowd := func(x *scene, more ...string) {
		for _, name := range more {
			x.join(name)
		}
		x.meet(x.all...)
	}
	scenes(t, twoVersions, func(x *scene) {
		crowd(x, "Cid", "Dan")
		x.lasts(9 * time.Minute)
		phase(x)
		x.always(10*time.Second, true) // not yet
		x.meet(x.all...)
		x.lasts(2 * time.Minute)
		phase(x)
		x.always(1900*time.Millisecond, true)
		x.within(1200*time.Millisecond, "silence", quiet(x))
		x.always(10*time.Second, false)
		x.everywhere(0, x.bob, true, x.ann) // not vanished: on the list
		if why := x.ann.player.Why(x.bob.player); why.Cause != world.Bodiless {
			x.t.Errorf("%d: why is %+v", x.protocol, why)
		}
		x.ann.body(x.bob)
		x.bob.body(x.ann)
		x.within(time.Second, "they hear each other", x.hear)

		x.ann.unbody(x.bob) // the first point ends it
		x.lasts(600 * time.Millisecond)
		x.ann.body(x.bob)
		x.lasts(time.Second)
		phase(x)
		x.always(10*time.Second, true)
	})
	scenes(t, twoVersions, func(x *scene) {
		crowd(x, "Cid") // three are too few to prove anything
		x.lasts(15 * time.Minute)
		phase(x)
		x.always(10*time.Second, true)
	})
}

// Everybody with voice anywhere on the network is on rosters, owns and is in groups, is invited, moved and named from
// any server, and from none; vanished players apart.
func TestKnownAcrossServers(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		zoe := x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		x.lasts(2 * time.Second)
		x.gather(zoe)
		x.everywhere(time.Second, zoe, true, x.ann, x.bob)
		x.everywhere(time.Second, x.ann, true, zoe)
		invite := func(by, whom *actor, want talk.Code) {
			x.t.Helper()
			if got := x.ask(by, talk.GroupRequest{Verb: talk.Invite, Group: by.group, Player: whom.player.ID}); got != want {
				x.t.Fatalf("%d: %s invites %s: %v, want %v", x.protocol, by.name, whom.name, got, want)
			}
		}
		invite(zoe, x.bob, talk.OK)
		if got := x.ask(x.bob, talk.GroupRequest{Verb: talk.Accept, Group: zoe.group}); got != talk.OK {
			x.t.Fatalf("%d: Bob cannot accept: %v", x.protocol, got)
		}
		x.bob.group = zoe.group
		x.lasts(time.Second)
		x.want(x.bob, zoe, true)
		x.want(zoe, x.bob, true)
		x.everywhere(time.Second, x.bob, true, zoe, x.ann)
		x.everywhere(time.Second, zoe, true, x.bob, x.ann)

		// Staff of another server vanish there from the join on: nobody finds them, and they find all.
		mod, pat := x.connect("Mod", x.protocol), x.connect("Pat", x.protocol)
		pat.enter("lobby")
		zoe.list(pat)
		pat.list(zoe)
		mod.enter("lobby")
		mod.list(zoe, pat)
		x.lasts(3 * time.Second)
		x.everywhere(0, mod, false, x.ann, x.bob, zoe, pat)
		invite(zoe, mod, talk.NotFound)
		invite(x.bob, mod, talk.NotFound)
		x.everywhere(0, x.bob, true, mod)
		x.everywhere(0, zoe, true, mod)
		mod.group = zoe.group // and in a group the vanished are in no row of it
		if got := x.ask(mod, talk.GroupRequest{Verb: talk.Join, Group: zoe.group}); got != talk.OK {
			x.t.Fatalf("%d: Mod cannot join: %v", x.protocol, got)
		}
		x.lasts(time.Second)
		x.everywhere(0, mod, false, x.ann, x.bob, zoe, pat)
		for _, l := range []*actor{x.ann, x.bob, zoe, pat} {
			x.want(l, mod, false)
		}
		x.want(mod, zoe, true)

		zoe.list(mod)
		pat.list(mod)
		x.everywhere(time.Second, mod, true, x.ann, x.bob, zoe, pat)
		x.want(x.bob, mod, true)

		// And who vanishes in the open is gone from all that within the same time, by the list alone where there is no
		// body.
		zoe.unlist(mod)
		pat.unlist(mod)
		x.within(800*time.Millisecond, "Mod is silent", func() bool { return !x.hears(x.bob, mod) && !x.hears(zoe, mod) && !x.hears(pat, mod) })
		x.everywhere(100*time.Millisecond, mod, false, x.ann, x.bob, zoe, pat)
		invite(x.bob, mod, talk.NotFound)
	})
}

// Somebody who comes hidden is hidden from the first moment on, even while nobody's sight is a testimony since all move
// between worlds.
func TestHiddenWhileNobodyCanTell(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		zoe := x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		x.lasts(time.Second)
		var mod *actor
		for range 20 {
			for _, a := range []*actor{x.ann, x.bob} {
				a.reborn(overworld)
			}
			x.ann.body(x.bob)
			x.bob.body(x.ann)
			if mod == nil {
				mod = x.join("Mod")
				mod.list(x.ann, x.bob)
			}
			mod.unbody(x.ann, x.bob)
			mod.body(x.ann, x.bob)
			x.lasts(700 * time.Millisecond)
		}
		x.lasts(2 * time.Second)
		for _, l := range []*actor{x.ann, x.bob, zoe} {
			if l.ever["Mod"] {
				x.t.Errorf("%d: Mod was on a roster of %s", x.protocol, l.name)
			}
		}
	})
}

// Nobody hears the vanished, in whichever way they heard them: near by, on the soundboard, in a group, or because it is
// declared, on the same server or another. Players who are shown them hear them, and all do within a second when they
// are back.
func TestNoWayToHearTheVanished(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		cid, zoe := x.join("Cid"), x.connect("Zoe", x.protocol)
		zoe.enter("lobby")
		x.meet(x.ann, x.bob, cid)
		ways := func(l *actor) []func() bool {
			all := []func() bool{func() bool { return x.hears(l, x.bob) }}
			if l != zoe { // clips go by distance alone
				all = append(all, func() bool { return x.plays(l, x.bob) })
			}
			return all
		}
		are := func(want bool, all ...*actor) func() bool {
			return func() bool {
				for _, l := range all {
					for _, way := range ways(l) {
						if way() != want {
							return false
						}
					}
				}
				return true
			}
		}
		vanishes := func(how string, to ...*actor) {
			x.t.Helper()
			x.within(time.Second, how+" they hear Bob", are(true, to...))
			x.ann.unlist(x.bob)
			x.ann.unbody(x.bob)
			for _, l := range to {
				if l != cid {
					x.within(800*time.Millisecond, how+" "+l.name+" does not hear Bob", are(false, l))
				}
			}
			x.throughout(3*time.Second, how+" only Cid hears Bob", func() bool {
				for _, l := range to {
					if !are(l == cid, l)() {
						return false
					}
				}
				return true
			})
			x.ann.list(x.bob)
			x.ann.body(x.bob)
			x.within(time.Second, how+" they hear Bob again", are(true, to...))
		}
		x.lasts(2 * time.Second)
		vanishes("near by", x.ann, cid)
		if err := x.hub.Declare(func(b *relation.Book) error {
			for _, l := range []*actor{x.ann, cid, zoe} {
				if err := b.Edges.Put(relation.Edge{Talker: x.bob.player.ID, Listener: l.player.ID}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			x.t.Fatal(err)
		}
		vanishes("by declaration", x.ann, cid, zoe)
		if err := x.hub.Declare(func(b *relation.Book) error {
			for _, e := range b.Edges.All() {
				b.Edges.Delete(e.Key())
			}
			return nil
		}); err != nil {
			x.t.Fatal(err)
		}
		x.want(zoe, x.bob, false)
		x.gather(x.bob, x.ann, cid, zoe)
		vanishes("in a group", x.ann, cid, zoe)
	})
}

// Between two servers the last verdict stays for five seconds; then a player is on no surface until a server has let
// the player in. A vanished player is so on the way, too.
func TestBetweenServers(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		x.lasts(time.Second)
		x.bob.switches("lobby")
		x.ann.unlist(x.bob)
		x.ann.unbody(x.bob)
		x.lasts(4 * time.Second)
		x.everywhere(0, x.bob, true, x.ann)
		x.lasts(1500 * time.Millisecond)
		x.everywhere(100*time.Millisecond, x.bob, false, x.ann)
		x.bob.login(overworld)
		x.everywhere(1500*time.Millisecond, x.bob, true, x.ann)
		x.bob.enter("main")
		x.bob.list(x.ann)
		x.bob.body(x.ann)
		x.everywhere(1500*time.Millisecond, x.bob, false, x.ann)
		x.ann.ever = map[string]bool{}
		x.lasts(3 * time.Second)
		x.bob.switches("lobby")
		x.lasts(10 * time.Second)
		if x.ann.ever["Bob"] {
			x.t.Errorf("%d: who had vanished was on a roster on the way to another server", x.protocol)
		}
	})
}

// Behind another proxy entities have other ids than the login says: then bodies go by their UUIDs, where the players
// are.
func TestBodiesBehindAnotherProxy(t *testing.T) {
	scenes(t, someVersions, func(x *scene) {
		cid := x.connect("Cid", x.protocol)
		cid.enter("main")
		cid.list(x.ann, x.bob)
		id := cid.self + 6000 // as the others are told
		x.ann.appears(id, cid.as, 0, 64, 0)
		x.within(time.Second, "Ann hears Cid", func() bool { return x.hears(x.ann, cid) })
		x.throughout(5*time.Second, "Ann hears Cid", func() bool { return x.hears(x.ann, cid) })
		x.ann.destroy(id)
		x.within(800*time.Millisecond, "Ann does not hear Cid", func() bool { return !x.hears(x.ann, cid) })
		x.ann.appears(id, cid.as, 60, 64, 0) // with Cid's UUID, and stands elsewhere
		x.throughout(5*time.Second, "Ann does not hear Cid", func() bool { return !x.hears(x.ann, cid) })
		// And one who stood there before Cid came is not Cid.
		x.ann.appears(7000, uuid.NewSHA1(uuid.Nil, []byte("Dan")), 0, 64, 0)
		x.lasts(5 * time.Second)
		dan := x.join("Dan")
		dan.list(x.ann, x.bob)
		x.throughout(5*time.Second, "Ann does not hear Dan", func() bool { return !x.hears(x.ann, dan) })
		x.everywhere(0, dan, false, x.ann, x.bob)
	})
}

// visibility: tab-list goes by entries alone, everyone by nothing, each server by its own.
func TestVisibilityOfAServer(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		rule := func(m sight.Mode) {
			x.reg.Sights().SetRules(map[string]sight.Rule{"main": {Mode: m}}, sight.Rule{Mode: sight.TabList})
		}
		rule(sight.TabList)
		x.ann.unlist(x.bob)
		x.within(800*time.Millisecond, "Ann does not hear Bob", x.onlyBobHears)
		x.everywhere(100*time.Millisecond, x.bob, false, x.ann)
		rule(sight.Seen)
		x.within(time.Second, "they hear each other", x.hear)
		x.ann.unbody(x.bob)
		x.within(800*time.Millisecond, "Ann does not hear Bob", x.onlyBobHears)
		rule(sight.Everyone)
		x.within(time.Second, "they hear each other", x.hear)
		x.always(5*time.Second, true)
		x.everywhere(0, x.bob, true, x.ann)
	})
}

// What /voice why says of a pair is what silences it.
func TestWhyNamesTheEvidence(t *testing.T) {
	scenes(t, []int32{578, proto.V26_1}, func(x *scene) {
		why := func(want world.Why) {
			x.t.Helper()
			got := x.ann.player.Why(x.bob.player)
			want.There, want.World, want.Since, want.Ages = x.bob.as, overworld, got.Since, got.Ages
			want.Server = "main"
			if got != want {
				x.t.Errorf("%d: why is %+v, want %+v", x.protocol, got, want)
			}
		}
		cid := x.join("Cid")
		x.meet(x.ann, x.bob, cid)
		x.lasts(2 * time.Second)
		why(world.Why{Cause: world.Plain, Witnesses: 2})

		for _, a := range []*actor{x.ann, cid} {
			a.unlist(x.bob)
			a.unbody(x.bob)
		}
		x.lasts(time.Second)
		why(world.Why{Cause: world.Unlisted, Witnesses: 2, Blind: 2, Vanished: true})
		x.meet(x.ann, x.bob, cid)
		x.lasts(2 * time.Second)
		x.ann.enter("lobby")
		x.lasts(time.Second)
		if w := x.ann.player.Why(x.bob.player); w.Cause != world.Servers || w.Server != "lobby" {
			x.t.Errorf("%d: on two servers why is %+v", x.protocol, w)
		}
		x.ann.enter("main")
		x.meet(x.ann, x.bob, cid)
		x.lasts(2 * time.Second)

		x.ann.unbody(x.bob)
		x.lasts(time.Second)
		why(world.Why{Cause: world.Removed, Witnesses: 2, Blind: 1, Vanished: true})
		if since := x.ann.player.Why(x.bob.player).Since; since < 900*time.Millisecond || since > 1100*time.Millisecond {
			x.t.Errorf("%d: a body left a second ago, and why says %v", x.protocol, since)
		}
		x.ann.body(x.bob)
		x.lasts(time.Second)

		x.bob.older = 5000
		x.bob.reborn(overworld)
		x.ann.unbody(x.bob)
		cid.unbody(x.bob)
		x.ages()
		x.lasts(time.Second)
		why(world.Why{Cause: world.Ages, Witnesses: 2, Points: 1})
		if w := x.ann.player.Why(x.bob.player); w.Ages[1]-w.Ages[0] < 4950 || w.Ages[1]-w.Ages[0] > 5050 {
			x.t.Errorf("%d: worlds are 5,000 ticks apart, and why says %v", x.protocol, w.Ages)
		}
		x.bob.older, x.bob.seed = 0, 78
		x.bob.reborn(overworld)
		x.ages()
		x.lasts(time.Second)
		why(world.Why{Cause: world.Seeds, Witnesses: 2, Points: 1})

		x.bob.seed = 77
		x.bob.reborn(overworld)
		x.bodies(sight.Hide)
		x.ages()
		x.lasts(4 * time.Second)
		why(world.Why{Cause: world.Bodiless, Witnesses: 2, Points: 1})
	})
}

// That two servers have one address can be set while players are on both. What is known of them stays, and it is in
// force once the server has emptied.
func TestOneAddressIsSetWhilePlayersAreThere(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		cid, dan := x.connect("Cid", x.protocol), x.connect("Dan", x.protocol)
		for _, a := range []*actor{cid, dan} {
			a.as = uuid.NewSHA1(uuid.Max, []byte(a.name))
			a.enter("alias")
		}
		x.meet(cid, dan)
		hear := func(a, b *actor) func() bool { return func() bool { return x.hears(a, b) && x.hears(b, a) } }
		x.within(time.Second, "Cid and Dan hear each other", hear(cid, dan))
		set := func(as string, beside ...*actor) {
			x.reg.Sights().SetRules(map[string]sight.Rule{"alias": {As: as}}, sight.Rule{})
			cid.reborn(overworld)
			x.ages()
			for _, a := range beside {
				a.unbody(cid)
				a.body(cid)
				cid.body(a)
			}
			x.within(time.Second, "Cid and Dan still hear each other", hear(cid, dan))
			x.throughout(3*time.Second, "Cid and Dan still hear each other", hear(cid, dan))
		}
		set("main", dan)
		for _, server := range []string{"lobby", "alias"} {
			for _, a := range []*actor{cid, dan} {
				a.enter(server)
			}
		}
		x.meet(x.ann, x.bob, cid, dan)
		x.within(time.Second, "Ann and Cid hear each other", hear(x.ann, cid))
		set("", x.ann, x.bob, dan)
		x.throughout(3*time.Second, "Ann and Cid hear each other", hear(x.ann, cid))
	})
}

// A client that cannot keep up, as on a slow line after a join, hears everything late, and the age of its world too. It
// is not in another world for that, and ages go on to tell worlds apart.
func TestASlowLineIsNoOtherWorld(t *testing.T) {
	scenes(t, twoVersions, func(x *scene) {
		late := func(ticks int64) {
			x.bob.older = -ticks
			x.bob.login(overworld)
			x.ann.unbody(x.bob)
			x.ages()
		}
		for _, ticks := range []int64{60, 200, 380} {
			late(ticks)
			x.always(3*time.Second, true) // before anybody's body comes
			x.meet(x.ann, x.bob)
			x.always(3*time.Second, true)
			x.bob.older = 0 // and catches up
			x.always(3*time.Second, true)
		}
		if n := x.logged("ages"); n != 0 {
			x.t.Errorf("%d: the log says something of ages:\n%s", x.protocol, &x.log.text)
		}
		late(-5000)
		x.within(700*time.Millisecond, "silence", func() bool { return !x.hears(x.ann, x.bob) && !x.hears(x.bob, x.ann) })
		x.always(5*time.Second, false)
	})
}
