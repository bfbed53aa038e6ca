package track

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/sight"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// scene is players whose servers send them packets, and all that comes of it: the registry, the turns of voice, and the
// commands, with a clock of the test's own.
type scene struct {
	t        *testing.T
	protocol int32
	reg      *world.Registry
	hub      *hub.Hub
	commands *commands.Commands
	log      journal
	all      []*actor
	ann, bob *actor

	born time.Time // of the world that all are in
	rate float64   // its ticks a second; 0: the server sends no ages
	at   time.Time // when the next ages come
}

// journal keeps the log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// logged returns how many lines of the log have all of these words.
func (x *scene) logged(words ...string) (n int) {
	x.log.mu.Lock()
	defer x.log.mu.Unlock()
	for _, l := range strings.Split(x.log.text.String(), "\n") {
		if l != "" && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) }) {
			n++
		}
	}
	return n
}

// actor is a player with voice, and the server that speaks to the player's client.
type actor struct {
	*session
	x     *scene
	name  string
	as    uuid.UUID // as the server knows the player
	place [3]float64
	world string
	seed  int64
	older int64 // than the world of the others, in ticks
	id    int32 // of the last teleport

	*ears
	member *hub.Member
	voice  *route.Source
	clip   *route.Source
	group  uuid.UUID // that it asked for
}

// ears are a client of voice.
type ears struct {
	mu      sync.Mutex
	frames  map[uuid.UUID]int
	roster  []string
	ever    map[string]bool // who was on any roster
	rows    *group.Rows
	answers []talk.GroupResult
}

func (e *ears) Deliver(f *route.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frames[f.Talker]++
}

func (e *ears) ShowRoster(r *roster.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roster = nil
	for p := range r.All() {
		e.roster, e.ever[p.Name] = append(e.roster, p.Name), true
	}
}

func (e *ears) ShowGroups(p *group.Page) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rows = p.Rows
}

func (e *ears) Answer(r talk.GroupResult) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers = append(e.answers, r)
}

func (e *ears) ShowPose(*world.Pose)   {}
func (e *ears) ShowMute(*mute.Notice)  {}
func (e *ears) ShowTiers(*talk.Offer)  {}
func (e *ears) ShowNear([]talk.Nearby) {}
func (e *ears) ShowRights(talk.Rights) {}
func (e *ears) ToggleMic()             {}
func (e *ears) Waits() bool            { return false }
func (e *ears) End(hub.End)            {}

// someVersions are one of each way in which a server shows its players.
var someVersions = []int32{proto.V1_8, proto.V1_12_2, 578, proto.V1_17, proto.V1_20_3, proto.V1_21_4, proto.V26_1, proto.V26_2, proto.V26_3}

// empty is a scene without anybody in it.
func empty(t *testing.T, protocol int32, fn func(x *scene)) {
	synctest.Test(t, func(t *testing.T) {
		x := &scene{t: t, protocol: protocol, reg: world.New(), born: time.Now(), at: time.Now(), rate: 20}
		log := slog.New(slog.NewTextHandler(&x.log, nil))
		x.reg.Sights().Log = log
		x.hub = hub.New(x.reg, route.Policy{Gain: gain.Rules{Default: 48}})
		x.hub.Log, x.hub.Permissions = log, func(uuid.UUID) hub.Bits { return hub.Open | hub.AdminGroups }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); x.hub.Run(ctx) }()
		defer func() { stop(); <-done }()
		var err error
		if x.commands, err = commands.New(commands.Config{Network: network{x}}); err == nil {
			err = x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}})
		}
		if err != nil {
			t.Fatal(err)
		}
		fn(x)
		for _, a := range x.all {
			a.understood()
			a.track.Close()
			x.reg.Remove(a.player)
		}
		time.Sleep(sight.Switch) // what was to end later has
	})
}

// scenes play a scene in each version: Ann and Bob have equal coordinates, entries and bodies both ways, and ages once
// a second.
func scenes(t *testing.T, versions []int32, fn func(x *scene)) {
	for _, v := range versions {
		t.Run(proto.Lookup(v).Names[0], func(t *testing.T) {
			empty(t, v, func(x *scene) {
				x.ann, x.bob = x.join("Ann"), x.join("Bob")
				x.meet(x.ann, x.bob)
				x.lasts(2 * time.Second)
				x.both(true)
				fn(x)
			})
		})
	}
}

// connect returns a player with voice, on no server.
func (x *scene) connect(name string, protocol int32) *actor {
	id := uuid.NewSHA1(uuid.Nil, []byte(name))
	s := &session{t: x.t, reg: x.reg, player: x.reg.Add(id, name), protocol: protocol, wanted: map[proto.Packet]bool{}}
	s.track = New(s.player, x.reg, proto.Lookup(protocol))
	s.track.Failures = new(Failures)
	for _, p := range Wants(proto.Lookup(protocol), proto.Play, proto.Clientbound) {
		s.wanted[p] = true
	}
	a := &actor{
		session: s, x: x, name: name, as: id, place: [3]float64{0, 64, 0}, seed: 77,
		ears: &ears{frames: map[uuid.UUID]int{}, ever: map[string]bool{}, rows: &group.Rows{}},
	}
	s.self = int32(100 + len(x.all))
	a.member = x.hub.Join(s.player, a.ears, hub.Wants{Status: true, Groups: true, Clips: true})
	a.voice, a.clip = route.NewSource(&a.member.Member), route.NewClip(&a.member.Member)
	x.all = append(x.all, a)
	return a
}

// join returns a player with voice in the overworld of main, which knows the player by the proxy's UUID.
func (x *scene) join(name string) *actor {
	a := x.connect(name, x.protocol)
	a.enter("main")
	return a
}

// Enter is what a server sends first: the success, of which the proxy has the UUID, and the login.
func (a *actor) enter(server string) {
	a.switches(server)
	a.login(overworld)
}

// switches is a server's success without anything behind it.
func (a *actor) switches(server string) {
	a.t.Helper()
	body := packet.AppendLoginSuccess(nil, a.protocol, packet.LoginSuccess{ID: a.as, Name: a.name})
	success, err := packet.ParseLoginSuccess(a.protocol, body)
	if err != nil {
		a.t.Fatal(err)
	}
	a.world = ""
	a.track.Backend(server, success.ID)
}

// login is a login into a world, and the teleport that follows.
func (a *actor) login(world string) {
	vector := a.vector("join_game", world)
	j, err := packet.ParseJoinGame(a.protocol, vector)
	if err != nil {
		a.t.Fatal(err)
	}
	body := a.seeded(vector, j.Seed)
	binary.BigEndian.PutUint32(body, uint32(a.self))
	a.to(proto.JoinGame, body)
	a.arrives(world)
}

// reborn is a respawn in a world, and the teleport that follows.
func (a *actor) reborn(world string) {
	vector := a.vector("respawn", world)
	r, err := packet.ParseRespawn(a.protocol, vector)
	if err != nil {
		a.t.Fatal(err)
	}
	a.to(proto.Respawn, a.seeded(vector, r.Seed))
	a.arrives(world)
}

// resource is a world that has a name of its own, and is like the overworld otherwise.
const resource = "minecraft:resources"

// vector returns the packet that lets a player into a world. Clients before 1.16 are told the number of the overworld
// for resource.
func (a *actor) vector(p, world string) []byte {
	of := world
	if world == resource {
		of = overworld
	}
	v, ok := vectors()[fmt.Sprint(p, "/", a.protocol, "/", of)]
	if !ok {
		a.t.Fatalf("no vector of %s to %s for %d", p, world, a.protocol)
	}
	return bytes.ReplaceAll(v.body, []byte(of), []byte(world)) // which are equally long
}

// seeded returns a packet with the actor's seed in place of the vector's.
func (a *actor) seeded(body []byte, was int64) []byte {
	if was == 0 { // before 573 there is none
		return bytes.Clone(body)
	}
	return bytes.Replace(body, field.AppendI64(nil, was), field.AppendI64(nil, a.seed), 1)
}

func (a *actor) arrives(world string) {
	a.world = world
	a.mode(0)
	a.id++
	a.teleport(packet.Teleport{ID: a.id, X: a.place[0], Y: a.place[1], Z: a.place[2]})
	a.answer(a.id, a.place[0], a.place[1], a.place[2])
}

// goes walks a player to a place on the x axis.
func (a *actor) goes(to float64) {
	a.place[0] = to
	a.walk(a.place[0], a.place[1], a.place[2])
}

// list and unlist are entries of the player list; body and unbody are bodies.
func (a *actor) list(all ...*actor) {
	for _, o := range all {
		a.show(true, o.as)
	}
}

func (a *actor) unlist(all ...*actor) {
	for _, o := range all {
		a.hide(o.as)
	}
}

func (a *actor) body(all ...*actor) {
	for _, o := range all {
		a.appears(o.self, o.as, o.place[0], o.place[1], o.place[2])
	}
}

func (a *actor) unbody(all ...*actor) {
	for _, o := range all {
		a.destroy(o.self)
	}
}

// appears is the spawn of a player's body.
func (a *actor) appears(id int32, u uuid.UUID, x, y, z float64) {
	b := append(field.AppendVarInt(nil, id), u[:]...)
	if a.wanted[proto.NamedEntitySpawn] {
		a.to(proto.NamedEntitySpawn, append(a.session.place(b, x, y, z), 0, 0, 0, 0, 0x7f))
		return
	}
	b = field.AppendVarInt(b, proto.Lookup(a.protocol).PlayerType)
	a.to(proto.SpawnEntity, append(a.session.place(b, x, y, z), make([]byte, 10)...))
}

// cow is the spawn of a cow.
func (a *actor) cow(id int32, x, y, z float64) {
	b := field.AppendVarInt(nil, id)
	if a.protocol >= proto.V1_9 {
		u := uuid.UUID{7}
		b = append(b, u[:]...)
	}
	b = append(b, 92)
	p := proto.SpawnEntityLiving
	if !a.wanted[p] {
		p = proto.SpawnEntity
	}
	a.to(p, append(a.session.place(b, x, y, z), make([]byte, 12)...))
}

func (a *actor) health(h float32) {
	a.to(proto.UpdateHealth, f32s(append(f32s(nil, h), 20), 5))
}

func (a *actor) age(ticks int64) {
	b := field.AppendI64(field.AppendI64(nil, ticks), 6000) // and it is noon
	if a.protocol >= proto.V1_21_2 {
		b = append(b, 1)
	}
	a.to(proto.UpdateTime, b)
}

// meet gives everybody everybody's entry and body.
func (x *scene) meet(all ...*actor) {
	for _, a := range all {
		for _, o := range all {
			if o != a {
				a.list(o)
				a.body(o)
			}
		}
	}
}

// lasts lets time pass, with ages once a second.
func (x *scene) lasts(d time.Duration) {
	step := 50 * time.Millisecond
	if d > 30*time.Second {
		step = time.Second
	}
	for end := time.Now().Add(d); ; time.Sleep(min(time.Until(end), step)) {
		if now := time.Now(); !now.Before(x.at) {
			x.at = now.Add(time.Second)
			x.ages()
		}
		if !time.Now().Before(end) {
			synctest.Wait()
			return
		}
	}
}

// ages is how old the worlds are, told to all.
func (x *scene) ages() {
	for _, a := range x.all {
		if x.rate > 0 && a.world != "" {
			a.age(x.ticks() + a.older)
		}
	}
}

func (x *scene) ticks() int64 { return int64(time.Since(x.born).Seconds() * x.rate) }

// within waits until something is so, and for no longer than that.
func (x *scene) within(d time.Duration, what string, so func() bool) {
	x.t.Helper()
	for end := time.Now().Add(d); ; {
		x.lasts(10 * time.Millisecond)
		if so() {
			return
		}
		if !time.Now().Before(end) {
			x.t.Fatalf("%d: not within %v: %s", x.protocol, d, what)
		}
	}
}

// throughout looks again and again whether something is so.
func (x *scene) throughout(d time.Duration, what string, so func() bool) {
	x.t.Helper()
	for begun := time.Now(); time.Since(begun) < d; {
		x.lasts(50 * time.Millisecond)
		if !so() {
			x.t.Fatalf("%d: after %v, not: %s", x.protocol, time.Since(begun), what)
		}
	}
}

// hears tells whether a frame of t's microphone reaches l, and plays whether one of t's soundboard does.
func (x *scene) hears(l, t *actor) bool { return x.reaches(l, t, t.voice) }
func (x *scene) plays(l, t *actor) bool { return x.reaches(l, t, t.clip) }

func (x *scene) reaches(l, t *actor, from *route.Source) bool {
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.frames[t.player.ID]
	}
	was := count()
	from.Send(x.hub.Table(), 1, 0, []byte{1})
	return count() > was
}

func (x *scene) want(l, t *actor, want bool) {
	x.t.Helper()
	if x.hears(l, t) != want {
		x.t.Fatalf("%d: %s hears %s: %v; %+v", x.protocol, l.name, t.name, !want, l.player.Why(t.player))
	}
}

func (x *scene) both(want bool) {
	x.t.Helper()
	x.lasts(20 * time.Millisecond)
	x.want(x.ann, x.bob, want)
	x.want(x.bob, x.ann, want)
}

// always is both for some time.
func (x *scene) always(d time.Duration, want bool) {
	x.t.Helper()
	x.throughout(d, fmt.Sprint("both ways: ", want), func() bool {
		return x.hears(x.ann, x.bob) == want && x.hears(x.bob, x.ann) == want
	})
}

// ask returns an answer to a request of a member about groups.
func (x *scene) ask(a *actor, r talk.GroupRequest) talk.Code {
	x.t.Helper()
	x.hub.Ask(a.member, r)
	x.lasts(20 * time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) == 0 {
		x.t.Fatalf("%s has no answer to %v", a.name, r.Verb)
	}
	got := a.answers[len(a.answers)-1]
	a.answers = nil
	if got.Verb != r.Verb {
		x.t.Fatalf("%s asked for %v, and has an answer to %v", a.name, r.Verb, got.Verb)
	}
	return got.Code
}

// gather puts players into one group, of which the first is the owner.
func (x *scene) gather(all ...*actor) {
	x.t.Helper()
	if code := x.ask(all[0], talk.GroupRequest{Verb: talk.Create, Name: "team of " + all[0].name}); code != talk.OK {
		x.t.Fatal(code)
	}
	groups, err := x.hub.Groups()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, g := range groups {
		if g.Owner == all[0].player.ID {
			all[0].group = g.ID
		}
	}
	for _, a := range all[1:] {
		a.group = all[0].group
		if code := x.ask(all[0], talk.GroupRequest{Verb: talk.Move, Group: a.group, Player: a.player.ID}); code != talk.OK {
			x.t.Fatalf("%s cannot be moved into the group: %v", a.name, code)
		}
	}
}

// named returns the surfaces on which one player can find another, and whether it does.
func (x *scene) named(l, t *actor) map[string]bool {
	x.t.Helper()
	on := map[string]bool{
		"MOVE": x.ask(l, talk.GroupRequest{Verb: talk.Move, Group: t.group, Out: t.group == uuid.Nil, Player: t.player.ID}) != talk.NotFound,
	}
	if l.group != uuid.Nil {
		on["INVITE"] = x.ask(l, talk.GroupRequest{Verb: talk.Invite, Group: l.group, Player: t.player.ID}) != talk.NotFound
	}
	l.mu.Lock()
	rows := 0
	for _, name := range l.roster {
		if name == t.name {
			rows++
		}
	}
	if on["roster"] = rows > 0; rows > 1 {
		x.t.Errorf("%s has %d rows of %s", l.name, rows, t.name)
	}
	if t.group != uuid.Nil {
		on["member's row"] = slices.Contains(l.rows.Members, talk.GroupMember{Group: t.group, Player: t.player.ID})
	}
	for _, g := range l.rows.Groups {
		if g.ID == t.group && strings.HasSuffix(g.Name, " "+t.name) {
			on["owner"] = g.Owner == t.player.ID
		}
	}
	l.mu.Unlock()
	src := &typist{by: commandPlayer{l}}
	x.commands.Execute(x.t.Context(), src, "glist all")
	on["/glist"] = slices.ContainsFunc(src.told, func(s string) bool {
		_, names, _ := strings.Cut(s, ": ")
		return slices.Contains(strings.Split(names, ", "), t.name)
	})
	for _, text := range []string{"/find ", "/send "} {
		s, _ := x.commands.Table().Complete(src, text)
		on["completion of "+text] = slices.ContainsFunc(s.Matches, func(m packet.Suggestion) bool { return m.Text == t.name })
	}
	return on
}

// knows tells whether all surfaces say of t to l what is wanted, and names one that does not.
func (x *scene) knows(l, t *actor, want bool) (so bool, but string) {
	x.t.Helper()
	for surface, found := range x.named(l, t) {
		if found != want {
			return false, fmt.Sprintf("%s finds %s by %s: %v; %+v", l.name, t.name, surface, found, l.player.Why(t.player))
		}
	}
	return true, ""
}

// everywhere waits until all surfaces say to all these what is wanted of t.
func (x *scene) everywhere(d time.Duration, t *actor, want bool, readers ...*actor) {
	x.t.Helper()
	begun := time.Now()
	for _, l := range readers {
		for {
			so, but := x.knows(l, t, want)
			if so {
				break
			}
			if time.Since(begun) > d {
				x.t.Fatalf("%d: after %v %s", x.protocol, time.Since(begun), but)
			}
			x.lasts(10 * time.Millisecond)
		}
	}
}

// public waits until everybody may know of a player, or not: as the list of servers names them.
func (x *scene) public(d time.Duration, a *actor, want bool) {
	x.t.Helper()
	x.within(d, fmt.Sprintf("%s is public: %v", a.name, want), func() bool { return a.player.Sight.Public() == want })
}

// network is the scene as commands see it.
type network struct{ x *scene }

func (n network) Players() (all []commands.Player) {
	for _, a := range n.x.all {
		all = append(all, commandPlayer{a})
	}
	return all
}

func (n network) Shown(to commands.Player) []commands.Player {
	return slices.DeleteFunc(n.Players(), func(p commands.Player) bool { return !n.x.reg.Knows(to.ID(), p.ID()) })
}

func (n network) Player(name string) (commands.Player, bool) {
	for _, a := range n.x.all {
		if a.name == name {
			return commandPlayer{a}, true
		}
	}
	return nil, false
}

func (n network) Servers() []commands.Server {
	return []commands.Server{{Name: "main"}, {Name: "lobby"}, {Name: "alias"}}
}

// commandPlayer is an actor as commands see a player.
type commandPlayer struct{ a *actor }

func (p commandPlayer) ID() uuid.UUID                 { return p.a.player.ID }
func (p commandPlayer) Name() string                  { return p.a.name }
func (p commandPlayer) Protocol() int32               { return p.a.protocol }
func (p commandPlayer) Relayed() bool                 { return false }
func (p commandPlayer) Locale() string                { return "" }
func (p commandPlayer) Ping() time.Duration           { return 0 }
func (p commandPlayer) Connect(string) error          { return errors.New("not here") }
func (p commandPlayer) Transfer(string, uint16) error { return errors.New("not here") }
func (p commandPlayer) SendChat(packet.Text) error    { return nil }
func (p commandPlayer) Server() string                { return p.a.player.Sight.Server() }

// typist gives commands, and may give all.
type typist struct {
	by   commandPlayer
	told []string
}

func (s *typist) Allowed(string) bool     { return true }
func (s *typist) Name() string            { return s.by.a.name }
func (s *typist) Player() commands.Player { return s.by }
func (s *typist) Locale() string          { return "" }
func (s *typist) Send(t packet.Text)      { s.told = append(s.told, t.String()) }
