package hub

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
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

// A backend can neither show nor hide players of another one: those in one group know of each other wherever they are,
// and nobody else does. On one backend a group shows nobody whom that backend hides.
func TestGroupsAcrossBackends(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		if err := x.hub.SetGroups(group.Limits{Enabled: true, Types: [line.GroupTypes]bool{true, true, true}}); err != nil {
			t.Fatal(err)
		}
		a, b := x.join("anna"), x.join("ben")
		c := x.join("cleo") // whom her backend hides from anna
		out := x.join("olga")
		x.moves(b, "lobby")
		x.moves(out, "lobby")
		r := &reader{}
		x.hub.Join(x.player("reader"), r, caps.Set{Status: 1, Groups: 2})
		x.hub.Ask(b.Member, line.GroupRequest{Verb: line.Create, Name: "team"})
		time.Sleep(Flush)
		texts := r.take(Groups)
		if s := texts[len(texts)-1]; !strings.Contains(s, "\nG ") || strings.Contains(s, "\nM ") || strings.Contains(s, b.Player.ID.String()) {
			t.Errorf("a group of people elsewhere is %q: it has to be there, and nobody in it", s)
		}
		var team uuid.UUID
		if err := x.hub.Do(func(time.Time) { g, _ := x.hub.groups.Of(b.Player.ID); team = g.ID }); err != nil {
			t.Fatal(err)
		}
		if n := x.says(a); n != 0 {
			t.Errorf("%d hear her across backends without a group", n)
		}
		a.rosters()
		x.hub.Ask(a.Member, line.GroupRequest{Verb: line.Join, Group: team})
		x.hub.Ask(c.Member, line.GroupRequest{Verb: line.Join, Group: team})
		time.Sleep(2 * Flush)
		if got := a.rosters(); got != "anna ben" {
			t.Errorf("anna's roster is %q", got)
		}
		if got := b.rosters(); got != "anna ben cleo" {
			t.Errorf("ben's roster is %q", got)
		}
		if got := out.rosters(); got != "olga" {
			t.Errorf("olga's roster is %q", got)
		}
		if n := x.says(a); n != 1 {
			t.Errorf("%d hear anna, want ben", n)
		}
		if n := x.says(b); n != 2 {
			t.Errorf("%d hear ben, want anna and cleo", n)
		}
		// Once they are on one backend that hides her, she is hidden.
		x.moves(b, "survival")
		if n := x.says(a); n != 0 {
			t.Errorf("%d hear anna, whom the backend hides from ben", n)
		}
		time.Sleep(Flush)
		if got := b.rosters(); got != "ben" {
			t.Errorf("ben's roster is %q", got)
		}
		x.moves(b, "lobby")
		time.Sleep(Flush)
		if n := x.says(a); n != 1 {
			t.Errorf("%d hear anna again", n)
		}
		x.hub.Ask(b.Member, line.GroupRequest{Verb: line.Leave})
		x.settle()
		if n := x.says(a); n != 0 {
			t.Errorf("%d still hear anna, of which nobody is in her group", n)
		}
	})
}

// A declared voice names its speaker to the listener on another backend, and not the listener to the speaker.
func TestDeclaredAcrossBackends(t *testing.T) {
	run(t, route.Policy{}, func(x *test) {
		a, b, s := x.join("anna"), x.join("ben"), x.join("spy")
		x.moves(b, "lobby")
		x.moves(s, "arena")
		if err := x.hub.Declare(func(book *relation.Book) error {
			book.Listens.Put(relation.Listen{Listener: s.Player.ID, Domain: "red"})
			return book.AddMembers("red", a.Player.ID, b.Player.ID)
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * Flush)
		for p, want := range map[*person]string{a: "anna ben", b: "anna ben", s: "anna ben spy"} {
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
		time.Sleep(Flush)
		if got := s.rosters(); got != "spy" {
			t.Errorf("the listener's roster is %q", got)
		}
		why, err := x.hub.Explain(a.Player.ID, s.Player.ID)
		want := []Clause{{"no", []string{"speaker", "anna", "listener", "spy"}}, {"servers", []string{"from", "survival", "to", "arena"}}}
		if got := why.Clauses(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
