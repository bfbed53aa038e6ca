package voice

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/testkit/natsd"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/store"
	"github.com/earshot-mc/earshot/voice/talk"
)

// stored opens a gateway whose state lasts. end closes both, as the end of the test does.
func stored(t *testing.T, cfg store.Config) (s *site, st *store.Store, end func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg.Log = slog.New(slog.DiscardHandler)
	st, err := store.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	shut := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := st.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(shut)
	state, err := OpenState(ctx, st, cfg.Log)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, Config{Groups: openGroups, Store: state, Speakers: state.Speakers()})
	return s, st, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.gw.Close(ctx); err != nil {
			t.Error(err)
		}
		shut()
	}
}

func (s *site) muted() (names []string) {
	s.t.Helper()
	list, err := s.gw.Mutes()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// declared returns everything that stands.
func (s *site) declared() (all string) {
	s.t.Helper()
	if err := s.gw.Declare(func(b *relation.Book) error {
		all = fmt.Sprint(b.Domains.All(), b.Listens.All(), b.Edges.All())
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// Everything that lasts outlives the gateway, although each of its parts starts over.
func TestStateOutlivesTheGateway(t *testing.T) {
	dir := t.TempDir()
	s, st, end := stored(t, store.Config{Dir: dir})
	a := s.join("anna", 0, groups)
	if got := a.request("CREATE OPEN 1 %s %s", b64("lasting"), b64("pass")); got != "CREATE OK" {
		t.Fatal(got)
	}
	a.waitFor("its group", func() bool { return a.groupsNow() != nil && len(a.groupsNow().Groups) == 1 })
	id := a.groupsNow().Groups[0].ID
	b := s.join("ben", 0, groups)
	if got := b.request("CREATE OPEN 0 %s -", b64("passing")); got != "CREATE OK" {
		t.Fatal(got)
	}
	s.eventually("they are counted", func() bool { c := s.gw.Stats().Counts; return c == Counts{Groups: 2, Members: 2} })
	now := time.Now()
	for _, r := range []mute.Record{
		{Player: a.player.ID, Name: "anna", By: "mod", Reason: "too loud", Until: now.Add(time.Hour)},
		{Player: uuid.New(), Name: "soon", Until: now.Add(300 * time.Millisecond)},
		{Player: uuid.New(), Name: "lifted"},
	} {
		if err := s.gw.Mute(r); err != nil {
			t.Fatal(err)
		}
		if r.Name == "lifted" {
			if was, err := s.gw.Unmute(r.Player); err != nil || !was {
				t.Fatal(was, err)
			}
		}
	}
	if err := s.gw.Declare(func(b *relation.Book) error {
		b.Listens.Put(relation.Listen{Listener: a.player.ID, Domain: "red/§"})
		b.Edges.Put(relation.Edge{Talker: a.player.ID, Listener: uuid.Max})
		b.Domains.Put(relation.Domain{Name: "gone"})
		b.Domains.Delete("gone")
		return b.AddMembers("red/§", a.player.ID, uuid.Max)
	}); err != nil {
		t.Fatal(err)
	}
	declared := s.declared()
	book := s.gw.SpeakerBook()
	for _, name := range []string{"Stage", "gone"} {
		if err := book.Put(speaker.Record{
			Name: name, Server: "survival", World: "minecraft:overworld", X: 1, Y: 64, Z: -2, Volume: 0.5, Range: 20, Allow: []uuid.UUID{a.player.ID},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := book.Relay("Stage", b.player.ID); err != nil || !book.Remove("gone") {
		t.Fatal(err)
	}
	speakers := fmt.Sprint(book.All())
	s.gw.SpeakersStored()
	if n := st.Health().Waiting; n != 0 {
		t.Errorf("%d changes wait after all was acknowledged", n)
	}
	end()
	time.Sleep(time.Until(now.Add(300 * time.Millisecond))) // it lapses while nobody is there

	s, st, _ = stored(t, store.Config{Dir: dir})
	if got := fmt.Sprint(s.gw.SpeakerBook().All()); got != speakers || !strings.Contains(got, b.player.ID.String()) {
		t.Errorf("speakers: %s, before %s", got, speakers)
	}
	if got := s.muted(); !slices.Equal(got, []string{"anna"}) {
		t.Errorf("muted: %q", got)
	}
	if got := s.declared(); got != declared {
		t.Errorf("declared: %s, before %s", got, declared)
	}
	a = s.join("anna", 0, groups)
	a.waitFor("the mute", func() bool { return len(a.lines("SSVC_MUTE_V1 1 ")) > 0 })
	if l := a.lines("SSVC_MUTE_V1 1 "); !strings.HasSuffix(l[0], b64("too loud")) {
		t.Error(l)
	}
	a.waitFor("the group", func() bool {
		g := a.groupsNow()
		return g != nil && len(g.Groups) == 1 && g.Groups[0] == talk.GroupRow{
			ID: id, Name: "lasting", Type: talk.OpenGroup, Persistent: true, Locked: true, Owner: a.player.ID,
		}
	})
	if got := a.request("JOIN %s %s", id, b64("password")); got != "JOIN WRONG_PASSWORD" {
		t.Error(got)
	}
	if got := a.request("JOIN %s %s", id, b64("pass")); got != "JOIN OK" {
		t.Error(got)
	}
	s.eventually("they are counted", func() bool { return s.gw.Stats().Counts == Counts{Groups: 1, Members: 1, Mutes: 1} })
	s.eventually("all is stored", func() bool { return st.Health().Waiting == 0 })
	// The one that has lapsed is kept for a while, in case that the clock was wrong.
	if got := records[mute.Record](t, st, store.Mutes); len(got) != 2 {
		t.Errorf("stored: %v", got)
	}
}

// A player who is sent away at the end keeps what they own, although others of the group are sent away later.
func TestFreezing(t *testing.T) {
	dir := t.TempDir()
	s, _, end := stored(t, store.Config{Dir: dir})
	a := s.join("anna", 0, groups)
	b := s.join("ben", 0, groups, a)
	if got := a.request("CREATE OPEN 1 %s -", b64("hers")); got != "CREATE OK" {
		t.Fatal(got)
	}
	b.waitFor("the group", func() bool { return b.groupsNow() != nil && len(b.groupsNow().Groups) == 1 })
	if got := b.request("JOIN %s -", b.groupsNow().Groups[0].ID); got != "JOIN OK" {
		t.Fatal(got)
	}
	s.gw.Freeze()
	s.reg.Remove(a.player)
	time.Sleep(50 * time.Millisecond) // in which a turn would see it
	end()
	b.ends("1001 shutting down")
	_, st, _ := stored(t, store.Config{Dir: dir})
	kept := records[group.Record](t, st, store.Groups)
	if len(kept) != 1 {
		t.Errorf("%v", kept)
	}
	for _, g := range kept {
		if g.Owner != a.player.ID {
			t.Errorf("it is %s's", g.Owner)
		}
	}
}

// records returns those of a bucket.
func records[T any](t *testing.T, st *store.Store, bucket string) map[string]T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, err := store.OpenBucket(ctx, st, store.Spec[T]{Name: bucket, Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b.Load()
}

// late is a store of speakers that says when something is stored.
type late struct{ dones []func() }

func (s *late) Load() []speaker.Record                              { return nil }
func (s *late) Watch(func())                                        {}
func (s *late) Take() ([]speaker.Record, []uuid.UUID)               { return nil, nil }
func (s *late) Save(_ []speaker.Record, _ []uuid.UUID, done func()) { s.dones = append(s.dones, done) }

// A caller that has changed the book waits for all earlier changes, in whichever order they are stored, and for no
// later ones.
func TestSpeakersAreStoredWhenAllIs(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}} {
		st := new(late)
		s := open(t, Config{Speakers: st})
		s.gw.SpeakersStored() // nothing has been changed
		for _, name := range []string{"one", "two", "three"} {
			if err := s.gw.SpeakerBook().Put(speaker.Record{Name: name, Server: "survival", World: "minecraft:overworld", Volume: 1, Range: 20}); err != nil {
				t.Fatal(err)
			}
		}
		waited := make(chan struct{})
		go func() { s.gw.SpeakersStored(); close(waited) }()
		time.Sleep(20 * time.Millisecond) // in which it begins to
		s.gw.SpeakerBook().Remove("one")
		for i, n := range order {
			select {
			case <-waited:
				t.Fatalf("%v: stored after %d of three", order, i)
			case <-time.After(20 * time.Millisecond):
			}
			st.dones[n]()
		}
		select {
		case <-waited:
		case <-time.After(patience):
			t.Fatalf("%v: waits for what came later", order)
		}
		st.dones[3]()
		s.gw.SpeakersStored()
	}
}

// slow is a store that says when something is stored.
type slow struct {
	mu    sync.Mutex
	saved []Changes
	dones []func()
}

func (s *slow) Load() Changes     { return Changes{} }
func (s *slow) Take() Changes     { return Changes{} }
func (s *slow) Watch(wake func()) {}
func (s *slow) Save(c Changes, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved, s.dones = append(s.saved, c), append(s.dones, done)
}

func (s *slow) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.dones)
}

// finish says that the i-th change is stored.
func (s *slow) finish(i int) {
	s.mu.Lock()
	done := s.dones[i]
	s.mu.Unlock()
	done()
}

// Nobody is told that something is done before it is stored; it is in force at once, and whoever changes nothing that
// lasts does not wait.
func TestNothingIsAcknowledgedBeforeItIsStored(t *testing.T) {
	st := &slow{}
	s := open(t, Config{Groups: openGroups, Store: st})
	a := s.join("anna", 0, groups)
	b := s.join("ben", 0, groups, a)
	if got := b.request("CREATE OPEN 0 %s -", b64("passing")); got != "CREATE OK" || st.waiting() != 0 {
		t.Fatal(got, st.saved)
	}
	a.text(fmt.Sprintf("SSVC_GROUP_V1:CREATE OPEN 1 %s -", b64("lasting")))
	a.waitFor("the group", func() bool { return a.groupsNow() != nil && len(a.groupsNow().Groups) == 2 })
	s.eventually("it is given to the store", func() bool { return st.waiting() == 1 })
	muted := make(chan error)
	go func() {
		defer close(muted)
		if err := s.gw.Mute(mute.Record{Player: a.player.ID}); err != nil {
			muted <- err
		}
	}()
	a.told("SSVC_MUTE_V1 ", "1 - -")
	s.eventually("it is given to the store", func() bool { return st.waiting() == 2 })
	if got, err := s.gw.Mutes(); len(got) != 1 || err != nil { // which waits for nothing
		t.Error(got, err)
	}
	b.text("SSVC_GROUP_V1:LEAVE")
	b.waitFor("it is out of the group", func() bool { return len(b.groupsNow().Groups) == 1 })
	time.Sleep(50 * time.Millisecond) // in which answers would come
	select {
	case <-muted:
		t.Error("the mute was acknowledged")
	default:
	}
	if l := append(a.lines("SSVC_GROUP_RESULT_V1 "), b.lines("SSVC_GROUP_RESULT_V1 ")...); len(l) != 1 {
		t.Errorf("answered %q", l) // and only to what ben made
	}
	st.finish(1)
	if err := <-muted; err != nil {
		t.Error(err)
	}
	if l := a.lines("SSVC_GROUP_RESULT_V1 "); len(l) != 0 {
		t.Errorf("answered %q", l)
	}
	st.finish(0)
	a.told("SSVC_GROUP_RESULT_V1 ", "CREATE OK")
	b.told("SSVC_GROUP_RESULT_V1 ", "LEAVE OK")
}

// Gateways on one store learn of each other, also of what was said while the store was lost to both.
func TestGatewaysShareWhatLasts(t *testing.T) {
	e := natsd.Run(t)
	one, lost, _ := stored(t, store.Config{URL: e.URL()})
	two, _, _ := stored(t, store.Config{URL: e.URL()})
	a, b := one.join("anna", 0, groups), two.join("ben", 0, groups)
	if got := a.request("CREATE OPEN 1 %s %s", b64("ours"), b64("pass")); got != "CREATE OK" {
		t.Fatal(got)
	}
	if err := two.gw.Mute(mute.Record{Player: a.player.ID, Name: "anna"}); err != nil {
		t.Fatal(err)
	}
	if err := one.gw.Declare(func(b *relation.Book) error { return b.AddMembers("red", a.player.ID) }); err != nil {
		t.Fatal(err)
	}
	a.told("SSVC_MUTE_V1 ", "1 - -")
	b.waitFor("the group", func() bool { return b.groupsNow() != nil && len(b.groupsNow().Groups) == 1 })
	if err := one.gw.SpeakerBook().Put(speaker.Record{Name: "Stage", Server: "survival", World: "w", Volume: 1, Range: 9}); err != nil {
		t.Fatal(err)
	}
	two.eventually("the speaker is there", func() bool { all := two.gw.SpeakerBook().All(); return len(all) == 1 && all[0].Range == 9 })
	if !two.gw.SpeakerBook().Remove("stage") {
		t.Error("it cannot be removed")
	}
	one.eventually("the speaker is gone", func() bool { return len(one.gw.SpeakerBook().All()) == 0 })
	two.eventually("the domain is there", func() bool { return two.declared() == one.declared() })
	if got := b.request("JOIN %s %s", b.groupsNow().Groups[0].ID, b64("pass")); got != "JOIN OK" {
		t.Error(got)
	}

	e.Stop()
	one.eventually("it is lost", func() bool { return !lost.Health().OK })
	if err := one.gw.Mute(mute.Record{Player: b.player.ID, Name: "ben"}); err != nil {
		t.Fatal(err) // it is in force
	}
	if _, err := one.gw.Unmute(a.player.ID); err != nil {
		t.Fatal(err)
	}
	a.told("SSVC_MUTE_V1 ", "0 - -")
	if got := a.request("DELETE %s", b.groupsNow().Groups[0].ID); got != "DELETE OK" {
		t.Error(got)
	}
	if got := two.muted(); !slices.Equal(got, []string{"anna"}) {
		t.Errorf("%q", got)
	}
	e.Start()
	b.told("SSVC_MUTE_V1 ", "1 - -")
	b.waitFor("the end of the group", func() bool { return len(b.groupsNow().Groups) == 0 })
	two.eventually("it knows all", func() bool { return slices.Equal(two.muted(), []string{"ben"}) })
}

// The largest domain that can be declared can be stored.
func TestTheLargestDomainLasts(t *testing.T) {
	s, st, _ := stored(t, store.Config{Dir: t.TempDir()})
	name := strings.Repeat("§", relation.MaxName/2)
	all := make([]uuid.UUID, relation.MaxMembers)
	for i := range all {
		all[i] = uuid.New()
	}
	add := func(players ...uuid.UUID) error {
		return s.gw.Declare(func(b *relation.Book) error { return b.AddMembers(name, players...) })
	}
	if err := add(all...); err != nil {
		t.Fatal(err)
	}
	if err := add(all[0]); err != nil {
		t.Errorf("who is in it already has no room: %v", err)
	}
	if err := add(uuid.New()); err == nil {
		t.Error("there is room for one more")
	}
	if got := records[relation.Domain](t, st, store.Domains)[name]; len(got.Members) != len(all) {
		t.Errorf("stored: %d members", len(got.Members))
	}
}
