package group

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// What a program stores, the next one has.
func TestPersistentGroupsSurvive(t *testing.T) {
	b := sit(t, open, 4)
	g := b.create(anna, "Red", persistent, locked("p"), typed(talk.IsolatedGroup))
	h := b.create(ben, "Blue", persistent)
	b.create(cleo, "gone tomorrow")
	put, gone := b.s.Changes()
	if len(put) != 2 || len(gone) != 0 {
		t.Fatalf("to store: %v, gone %v", put, gone)
	}
	if again, _ := b.s.Changes(); len(again) != 0 {
		t.Errorf("to store again: %v", again)
	}
	if all := b.s.Records(); len(all) != 2 {
		t.Errorf("all: %v", all)
	}
	c := sit(t, open, 4)
	for _, r := range put {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var read Record
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, r) {
			t.Errorf("%s is read as %+v", text, read)
		}
		if err := c.s.Apply(read); err != nil {
			t.Error(err)
		}
	}
	if put, gone := c.s.Changes(); len(put)+len(gone) != 0 {
		t.Errorf("what came from the store goes back: %v %v", put, gone)
	}
	c.ask(dora, talk.WrongPassword, join(g, "q"))
	c.ask(dora, talk.OK, join(g, "p"))
	c.ask(cleo, talk.OK, join(h, ""))
	c.ask(cleo, talk.NoPermission, on(talk.Delete, h))
	c.ask(ben, talk.OK, on(talk.Delete, h)) // still ben's
	if put, gone := c.s.Changes(); len(put) != 0 || !slices.Equal(gone, []uuid.UUID{h}) {
		t.Errorf("after the end of one: put %v, gone %v", put, gone)
	}
	c.ask(anna, talk.NameTaken, talk.GroupRequest{Verb: talk.Create, Name: "RED"})
}

func TestChangesAreToldOnce(t *testing.T) {
	b := sit(t, open, 3)
	g := b.create(anna, "g", persistent)
	b.s.Changes()
	for _, r := range []talk.GroupRequest{
		{Verb: talk.Rename, Name: "new"}, {Verb: talk.Password, Password: "p"}, {Verb: talk.Type, Type: talk.OpenGroup},
	} {
		r.Group = g
		b.ask(anna, talk.OK, r)
		if put, gone := b.s.Changes(); len(put) != 1 || len(gone) != 0 || put[0] != b.s.Records()[0] {
			t.Errorf("%v: put %v, gone %v", r.Verb, put, gone)
		}
	}
	b.ask(ben, talk.OK, join(g, "p"))
	b.ask(ben, talk.NoPermission, talk.GroupRequest{Verb: talk.Rename, Group: g, Name: "mine"})
	if put, _ := b.s.Changes(); len(put) != 0 {
		t.Errorf("joining changes nothing that is stored, but put %v", put)
	}
	b.ask(anna, talk.OK, on(talk.Leave, uuid.Nil))
	if put, _ := b.s.Changes(); len(put) != 1 || put[0].Owner != ben {
		t.Errorf("the new owner: put %v", put)
	}
	// A group that is not persistent is nobody's business.
	h := b.create(anna, "h")
	b.ask(anna, talk.OK, on(talk.Delete, h))
	if put, gone := b.s.Changes(); len(put)+len(gone) != 0 {
		t.Errorf("put %v, gone %v", put, gone)
	}
}

func TestApplyFromAnotherNode(t *testing.T) {
	b := sit(t, open, 3)
	g := b.create(anna, "g", persistent, locked("old"))
	b.ask(ben, talk.OK, join(g, "old"))
	b.s.Changes()
	r := b.s.Records()[0]
	r.Name, r.Type, r.Owner, r.Password = "Renamed", "ISOLATED", cleo, Hash{}
	revision := b.s.Revision()
	if err := b.s.Apply(r); err != nil {
		t.Fatal(err)
	}
	row, _ := b.s.Of(ben)
	if row.Name != "Renamed" || row.Type != talk.IsolatedGroup || row.Owner != cleo || row.Locked || b.s.Revision() == revision {
		t.Errorf("now %+v", row)
	}
	if d := b.s.Decide(cleo, ben); d != Silent {
		t.Errorf("the new type does not count: %v", d)
	}
	if err := splits(b.s, 3); err != nil {
		t.Error(err)
	}
	b.s.Remove(g)
	b.in(anna, uuid.Nil)
	b.s.Remove(g) // once more is nothing
	if put, gone := b.s.Changes(); len(put)+len(gone) != 0 {
		t.Errorf("what came from the store goes back: %v %v", put, gone)
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	good := Record{ID: uuid.New(), Name: "g", Type: "OPEN"}
	for name, change := range map[string]func(*Record){
		"no id":     func(r *Record) { r.ID = uuid.Nil },
		"bad name":  func(r *Record) { r.Name = " " },
		"long name": func(r *Record) { r.Name = strings.Repeat("a", 25) },
		"bad type":  func(r *Record) { r.Type = "LOUD" },
		"taken":     func(r *Record) { r.Name = "TAKEN" },
	} {
		b := sit(t, open, 1)
		b.create(anna, "taken")
		r := good
		change(&r)
		if err := b.s.Apply(r); err == nil {
			t.Errorf("%s: taken in", name)
		}
		if n := len(b.s.Records()); n != 0 {
			t.Errorf("%s: %d records", name, n)
		}
	}
	for _, text := range []string{"", "sha256:", "md5:AAAA", "sha256:AAAA", "sha256:" + strings.Repeat("A", 64) + "\n", "sha256:" + strings.Repeat("A", 65)} {
		var h Hash
		if h.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is a hash", text)
		}
	}
}

func FuzzHash(f *testing.F) {
	for _, text := range []string{"", "sha256:", "sha256:" + strings.Repeat("A", 64), "sha256:" + strings.Repeat("/", 64)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var h Hash
		if h.UnmarshalText([]byte(text)) != nil {
			return
		}
		if again, _ := h.MarshalText(); string(again) != text {
			t.Fatalf("%q is written as %q", text, again)
		}
	})
}

// How long a comparison takes must not tell how much of a hash was right, which no run can show: the one function that
// compares does so in constant time, and nothing else compares sums.
func TestPasswordsAreComparedInConstantTime(t *testing.T) {
	set := token.NewFileSet()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constant := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		sums := func(n ast.Node) (found bool) {
			ast.Inspect(n, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				found = found || ok && s.Sel.Name == "sum"
				return true
			})
			return found
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				harmless := false // a comparison of lengths, or of the constant time's own result
				if call, ok := n.X.(*ast.CallExpr); ok {
					switch f := call.Fun.(type) {
					case *ast.Ident:
						harmless = f.Name == "len"
					case *ast.SelectorExpr:
						harmless = f.Sel.Name == "ConstantTimeCompare"
					}
				}
				if (n.Op == token.EQL || n.Op == token.NEQ) && !harmless && (sums(n.X) || sums(n.Y)) {
					t.Errorf("%s compares a sum", set.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && sums(n) {
					switch s.Sel.Name {
					case "ConstantTimeCompare":
						constant++
					case "Equal", "Compare":
						t.Errorf("%s compares a sum", set.Position(n.Pos()))
					}
				}
			}
			return true
		})
	}
	if constant != 1 {
		t.Errorf("%d comparisons in constant time, want 1", constant)
	}
	// And it tells right from wrong, at either end of the sum.
	h := newHash("pass")
	if !h.Matches("pass") || h.Matches("past") || h.Matches("") {
		t.Error("passwords match as they should not")
	}
	for _, i := range []int{0, len(h.sum) - 1} {
		other := h
		other.sum[i] ^= 1
		if other.Matches("pass") {
			t.Errorf("byte %d does not count", i)
		}
	}
}
