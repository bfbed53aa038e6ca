package relation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func who(n int) uuid.UUID { return uuid.UUID{15: byte(n + 1)} }

// slotOf has the first three connected.
func slotOf(id uuid.UUID) (int, bool) { return int(id[15]) - 1, id[15] <= 3 }

func declared(t *testing.T, b *Book) ([]string, []string) {
	t.Helper()
	turn := turnOf(people)
	b.Declare(turn, slotOf)
	table, err := NewCompiler().Compile(turn, everybody(people))
	if err != nil {
		t.Fatal(err)
	}
	return pairs(table, people), table.Undeclared
}

func TestStandingDeclarations(t *testing.T) {
	var b Book
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.AddMembers("RED", who(alice), who(dave))) // dave is not connected
	must(b.AddMembers("RED", who(bob), who(alice)))
	must(b.Listens.Put(Listen{who(carol), "RED"}))
	must(b.Listens.Put(Listen{who(carol), "BLUE"}))
	must(b.Listens.Put(Listen{who(dave), "GREEN"}))
	must(b.Edges.Put(Edge{who(carol), who(alice)}))
	must(b.Edges.Put(Edge{who(dave), who(alice)}))
	got, warned := declared(t, &b)
	if want := []string{"alice>bob", "alice>carol", "bob>alice", "bob>carol", "carol>alice"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if !slices.Equal(warned, []string{"BLUE"}) {
		t.Errorf("warned of %v", warned)
	}
	if d, _ := b.Domains.Get("RED"); !slices.Equal(d.Members, []uuid.UUID{who(alice), who(bob), who(dave)}) {
		t.Errorf("members %v", d.Members)
	}
	if !b.RemoveMember("RED", who(bob)) || b.RemoveMember("RED", who(bob)) || b.RemoveMember("BLUE", who(bob)) {
		t.Error("removing is once")
	}
	if !b.Edges.Delete(Edge{who(carol), who(alice)}.Key()) || b.Edges.Delete("x") {
		t.Error("deleting is of what there is")
	}
	must(b.AddMembers("BLUE"))
	if got, warned = declared(t, &b); !slices.Equal(got, []string{"alice>carol"}) || warned != nil {
		t.Errorf("%v, warned of %v", got, warned)
	}
	for name, err := range map[string]error{
		"empty name": b.AddMembers("", who(alice)), "blank": b.AddMembers("a b"), "control": b.AddMembers("a\x00"),
		"long": b.AddMembers(strings.Repeat("a", MaxName+1)), "utf-8": b.AddMembers("\xff"),
		"self": b.Edges.Put(Edge{who(1), who(1)}), "listen to nothing": b.Listens.Put(Listen{who(1), ""}),
	} {
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// What the configuration declares adds to what administrators declare, and neither takes from the other.
func TestFixedDeclarations(t *testing.T) {
	var b Book
	b.AddMembers("RED", who(bob))
	fixed := Declarations{
		Domains: []Domain{{"RED", []uuid.UUID{who(alice)}}}, Listens: []Listen{{who(carol), "RED"}}, Edges: []Edge{{who(carol), who(alice)}},
	}
	if err := b.Fix(fixed); err != nil {
		t.Fatal(err)
	}
	if got, _ := declared(t, &b); !slices.Equal(got, []string{"alice>bob", "alice>carol", "bob>alice", "bob>carol", "carol>alice"}) {
		t.Errorf("%v", got)
	}
	b.Domains.Delete("RED")
	if got, warned := declared(t, &b); !slices.Equal(got, []string{"alice>carol", "carol>alice"}) || warned != nil {
		t.Errorf("%v, warned of %v", got, warned)
	}
	revision := b.Revision()
	if err := b.Fix(Declarations{Edges: []Edge{{who(1), who(1)}}}); err == nil || b.Revision() != revision || len(b.Fixed().Domains) != 1 {
		t.Errorf("%v, %+v", err, b.Fixed())
	}
	b.AddMembers("RED", who(bob))
	if err := b.Fix(Declarations{}); err != nil || b.Revision() == revision {
		t.Error(err)
	}
	if got, _ := declared(t, &b); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if put, _ := b.Domains.Changes(); len(put) != 1 || len(put[0].Members) != 1 {
		t.Errorf("the store is told %+v", put)
	}
}

func TestTheStoreIsKeptUpToDate(t *testing.T) {
	var b, mirror Book
	sync := func() {
		t.Helper()
		pass(t, &b.Domains, &mirror.Domains)
		pass(t, &b.Listens, &mirror.Listens)
		pass(t, &b.Edges, &mirror.Edges)
	}
	b.AddMembers("RED", who(2), who(1))
	b.Listens.Put(Listen{who(3), "RED"})
	b.Edges.Put(Edge{who(1), who(2)})
	sync()
	revision := b.Revision()
	b.RemoveMember("RED", who(1))
	if b.Revision() == revision {
		t.Error("a change is not counted")
	}
	b.Listens.Delete(Listen{who(3), "RED"}.Key())
	sync()
	b.Domains.Delete("RED")
	sync()
}

// pass does what a store does, and compares.
func pass[R record](t *testing.T, from, to *Ledger[R]) {
	t.Helper()
	put, gone := from.Changes()
	for _, r := range put {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var read R
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if err := to.Apply(read); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range gone {
		to.Remove(key)
	}
	if put, gone := from.Changes(); len(put)+len(gone) > 0 {
		t.Errorf("told twice: %v %v", put, gone)
	}
	if put, gone := to.Changes(); len(put)+len(gone) > 0 {
		t.Errorf("what came from the store goes back: %v %v", put, gone)
	}
	if !reflect.DeepEqual(from.All(), to.All()) {
		t.Errorf("stored %v, have %v", to.All(), from.All())
	}
}
