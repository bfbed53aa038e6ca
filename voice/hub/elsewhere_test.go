package hub

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/why"
)

// moves puts a player on another backend, where nobody is listed yet.
func (x *test) moves(p *person, backend string) {
	p.Player.HideAll()
	p.Player.SetPose(nil)
	p.Player.SetFacts(world.Facts{})
	x.settle()
	place := x.reg.Place(backend, "overworld")
	p.Player.SetFacts(world.Facts{Place: place})
	p.Player.SetPose(&world.Pose{Place: place})
	x.settle()
}

// rosters gives the names on the last roster that p got, and drops all that it got.
func (p *person) rosters() string {
	last := ""
	for _, e := range p.fake.take() {
		if names, ok := strings.CutPrefix(e, "roster "); ok {
			last = names
		}
	}
	return last
}

// A player with voice anywhere on the network is in rosters and in the rows of groups and heard there, unless they have
// vanished: then nobody elsewhere knows about them either. Distance is another question.
func TestGroupsAcrossBackends(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [talk.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		a, b := x.join("anna"), x.join("ben")
		c := x.join("cleo", a)
		mod, out := x.join("mod"), x.join("olga")
		for _, p := range []*person{b, mod, out} {
			x.moves(p, "lobby")
		}
		mod.Player.Show(b.Player.ID, out.Player.ID) // who see each other, and not mod
		b.Player.Show(out.Player.ID)
		out.Player.Show(b.Player.ID)
		time.Sleep(2 * time.Second)
		for _, p := range []*person{a, b, c, out} {
			if got := p.rosters(); got != "anna ben cleo olga" {
				t.Errorf("%s's roster is %q", p.Player.Name, got)
			}
		}
		if n := x.says(b); n != 2 {
			t.Errorf("%d hear ben, want olga and mod", n)
		}
		r := newReader()
		x.hub.Join(x.player("reader"), r, Wants{Status: true, Groups: true})
		x.hub.Ask(b.Member, talk.GroupRequest{Verb: talk.Create, Name: "team"})
		time.Sleep(2 * Flush)
		texts := r.take(groups)
		if s := texts[len(texts)-1]; !strings.Contains(s, "\nM ") || strings.Count(s, b.Player.ID.String()) != 2 {
			t.Errorf("a group of people elsewhere is %q: they have to be in it, and own it", s)
		}
		var team uuid.UUID
		if err := x.hub.Do(func(time.Time) { g, _ := x.hub.groups.Of(b.Player.ID); team = g.ID }); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*person{a, mod} {
			x.hub.Ask(p.Member, talk.GroupRequest{Verb: talk.Join, Group: team})
		}
		time.Sleep(2 * Flush)
		if x.says(a) != 2 || x.says(b) != 2 { // their group, wherever it is
			t.Errorf("%d hear anna, want ben and mod; %d hear ben, want anna and mod", x.says(a), x.says(b))
		}
		if n := x.says(mod); n != 0 {
			t.Errorf("%d hear mod, who has vanished", n)
		}
	})
}

// A declared voice is heard on other backends, and from the listener alone nothing comes back.
func TestDeclaredAcrossBackends(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a, b, s := x.join("anna"), x.join("ben"), x.join("spy")
		x.moves(b, "lobby")
		x.moves(s, "arena")
		time.Sleep(2 * time.Second)
		if err := x.hub.Declare(func(book *relation.Book) error {
			book.Listens.Put(relation.Listen{Listener: s.Player.ID, Domain: "red"})
			return book.AddMembers("red", a.Player.ID, b.Player.ID)
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * Flush)
		for p, want := range map[*person]string{a: "anna ben spy", b: "anna ben spy", s: "anna ben spy"} {
			if got := p.rosters(); got != want {
				t.Errorf("%s's roster is %q, want %q", p.Player.Name, got, want)
			}
		}
		if x.says(a) != 2 || x.says(b) != 2 || x.says(s) != 0 {
			t.Error("the radio is not heard by all of it, or the listener is")
		}
		if err := x.hub.Declare(func(book *relation.Book) error { book.Domains.Delete("red"); return nil }); err != nil {
			t.Fatal(err)
		}
		if x.says(a) != 0 || x.says(b) != 0 {
			t.Error("the radio is heard after it has been taken down")
		}
		answer, err := x.hub.Explain(a.Player.ID, s.Player.ID)
		want := []why.Clause{{Text: "no", Values: []string{"speaker", "anna", "listener", "spy"}}, {Text: "servers", Values: []string{"from", "survival", "to", "arena"}}}
		if got := answer.Clauses(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
