package relation

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	alice = iota
	bob
	carol
	dave
	people
)

// everybody sees everybody.
func everybody(n int) [][]uint64 {
	views := make([][]uint64, n)
	for i := range views {
		views[i] = make([]uint64, (n+63)/64)
		for j := range n {
			set(views[i]).add(j)
		}
	}
	return views
}

// turnOf has everybody in it.
func turnOf(n int) *Turn {
	t := &Turn{}
	for i := range n {
		t.Participant(i, 0)
	}
	return t
}

func hears(t *Table, talker, listener int) bool { return set(t.Hearers(talker)).has(listener) }

// pairs names who hears whom, like "alice>bob".
func pairs(t *Table, n int) (out []string) {
	names := []string{"alice", "bob", "carol", "dave"}
	for s := range n {
		for l := range n {
			if hears(t, s, l) {
				out = append(out, names[s]+">"+names[l])
			}
		}
	}
	return out
}

func TestTheThreePrimitives(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(*Turn)
		want    []string
		warned  []string
	}{
		{"silence by default", func(t *Turn) {}, nil, nil},
		{"domain, without self", func(t *Turn) { t.Domain("RED", alice, bob) }, []string{"alice>bob", "bob>alice"}, nil},
		{"domain of one", func(t *Turn) { t.Domain("RED", alice) }, nil, nil},
		{"listen", func(t *Turn) { t.Domain("RED", alice, bob); t.Listen(carol, "RED") }, []string{"alice>bob", "alice>carol", "bob>alice", "bob>carol"}, nil},
		{"listen before the domain", func(t *Turn) { t.Listen(carol, "RED"); t.Domain("RED", alice) }, []string{"alice>carol"}, nil},
		{"listen to one's own", func(t *Turn) { t.Domain("RED", alice, bob); t.Listen(alice, "RED") }, []string{"alice>bob", "bob>alice"}, nil},
		{"edge", func(t *Turn) { t.Edge(dave, alice) }, []string{"dave>alice"}, nil},
		{"edge to self", func(t *Turn) { t.Edge(dave, dave) }, nil, nil},
		{"the whole picture", func(t *Turn) { t.Domain("RED", alice, bob); t.Listen(carol, "RED"); t.Edge(dave, alice) },
			[]string{"alice>bob", "alice>carol", "bob>alice", "bob>carol", "dave>alice"}, nil},
		{"accumulation", func(t *Turn) { t.Domain("RED", alice); t.Domain("RED", bob) }, []string{"alice>bob", "bob>alice"}, nil},
		{"repetition", func(t *Turn) {
			for range 3 {
				t.Domain("RED", alice, bob, alice)
				t.Listen(carol, "RED")
				t.Edge(alice, carol)
			}
		}, []string{"alice>bob", "alice>carol", "bob>alice", "bob>carol"}, nil},
		{"undeclared", func(t *Turn) {
			t.Domain("RED", alice, bob)
			t.Listen(carol, "REED")
			t.Listen(dave, "REED")
			t.Listen(carol, "BLUE")
		},
			[]string{"alice>bob", "bob>alice"}, []string{"REED", "BLUE"}},
		{"declared and empty", func(t *Turn) { t.Domain("RED"); t.Listen(carol, "RED") }, nil, nil},
		{"names that differ in case", func(t *Turn) { t.Domain("RED", alice); t.Domain("red", bob) }, nil, nil},
		{"two domains do not mix", func(t *Turn) { t.Domain("RED", alice, bob); t.Domain("BLUE", bob, carol) },
			[]string{"alice>bob", "bob>alice", "bob>carol", "carol>bob"}, nil},
		{"nobody's slots", func(t *Turn) {
			t.Domain("RED", alice, 99, -1)
			t.Listen(99, "RED")
			t.Listen(-1, "RED")
			t.Edge(99, alice)
			t.Edge(alice, -1)
			t.Sight(99, nil)
		}, nil, nil},
	} {
		turn := turnOf(people)
		c.declare(turn)
		table, err := NewCompiler().Compile(turn, everybody(people))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := pairs(table, people); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !slices.Equal(table.Undeclared, c.warned) {
			t.Errorf("%s: warned of %v, want %v", c.name, table.Undeclared, c.warned)
		}
	}
}

func TestFlagsAreCompiledIn(t *testing.T) {
	for _, c := range []struct {
		flags Flags
		want  []string
	}{
		{0, []string{"alice>bob", "bob>alice", "carol>bob"}},
		{Muted, []string{"alice>bob", "carol>bob"}},
		{Suppressed, []string{"alice>bob", "carol>bob"}},
		{Deafened, []string{"bob>alice"}},
		{Muted | Suppressed | Deafened, nil},
	} {
		turn := turnOf(people)
		turn.Domain("RED", alice, bob)
		turn.Edge(carol, bob)
		turn.Participant(bob, c.flags)
		table, err := NewCompiler().Compile(turn, everybody(people))
		if got := pairs(table, people); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("flags %b: %v, want %v (%v)", c.flags, got, c.want, err)
		}
	}
}

func TestWhoLeftTakesPartInNothing(t *testing.T) {
	turn := &Turn{}
	for _, slot := range []int{alice, carol, dave} {
		turn.Participant(slot, 0)
	}
	turn.Domain("RED", alice, bob, carol)
	table, err := NewCompiler().Compile(turn, everybody(people))
	if got := pairs(table, people); err != nil || !slices.Equal(got, []string{"alice>carol", "carol>alice"}) {
		t.Errorf("%v (%v)", got, err)
	}
}

func TestNothingOutlivesItsTurn(t *testing.T) {
	c, turn := NewCompiler(), turnOf(people)
	turn.Domain("RED", alice, bob)
	turn.Listen(carol, "RED")
	turn.Edge(dave, alice)
	turn.Sight(bob, []uint64{0})
	c.Compile(turn, everybody(people))
	turn.Reset()
	for i := range people {
		turn.Participant(i, 0)
	}
	turn.Domain("BLUE", bob, dave)
	turn.Listen(carol, "RED")
	table, err := c.Compile(turn, everybody(people))
	if got := pairs(table, people); err != nil || !slices.Equal(got, []string{"bob>dave", "dave>bob"}) {
		t.Errorf("%v (%v)", got, err)
	}
	if !slices.Equal(table.Undeclared, []string{"RED"}) {
		t.Errorf("the former turn's domain is still declared: %v", table.Undeclared)
	}
	turn.Reset()
	turn.Reset() // now nobody declares RED for a whole turn
	if len(turn.domains) != 0 {
		t.Errorf("%d domains are remembered", len(turn.domains))
	}
}

func TestWhoIsNotShownRefusesTheWholeTurn(t *testing.T) {
	c := NewCompiler()
	turn := turnOf(people)
	turn.Edge(alice, bob)
	former, err := c.Compile(turn, everybody(people))
	if err != nil {
		t.Fatal(err)
	}
	views := everybody(people)
	set(views[carol]).del(alice)
	turn.Domain("RED", alice, dave)
	turn.Listen(carol, "RED")
	got, err := c.Compile(turn, views)
	var unseen *Unseen
	if !errors.As(err, &unseen) || *unseen != (Unseen{Listener: carol, Talker: alice}) {
		t.Fatalf("error %v", err)
	}
	if got != former || !slices.Equal(pairs(got, people), []string{"alice>bob"}) {
		t.Errorf("got %v, want the former table", pairs(got, people))
	}
	if _, err := c.Compile(turn, views[:carol]); !errors.As(err, &unseen) {
		t.Errorf("no view at all: %v", err)
	}
	// A voice that does not reach carol is no violation, whatever else carol may not see.
	for name, change := range map[string]func(*Turn){
		"alice is muted":    func(t *Turn) { t.Participant(alice, Muted) },
		"carol is deafened": func(t *Turn) { t.Participant(carol, Deafened) },
		"her sight is said": func(t *Turn) { t.Sight(carol, views[carol]) },
	} {
		turn := turnOf(people)
		turn.Domain("RED", alice, dave)
		turn.Listen(carol, "RED")
		change(turn)
		table, err := c.Compile(turn, views)
		if err != nil || hears(table, alice, carol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSightCutsAndOthersKeepTheirRoutes(t *testing.T) {
	turn := turnOf(people)
	turn.Domain("RED", alice, bob, carol)
	turn.Sight(alice, []uint64{1<<alice | 1<<carol})
	table, err := NewCompiler().Compile(turn, everybody(people))
	if got := pairs(table, people); err != nil || !slices.Equal(got, []string{"alice>bob", "alice>carol", "bob>carol", "carol>alice", "carol>bob"}) {
		t.Errorf("%v (%v)", got, err)
	}
}

// What is taken away is gone with the next table, whoever was given it before.
func TestRevokedRoutesAreGone(t *testing.T) {
	c, turn := NewCompiler(), turnOf(2)
	compile := func(views [][]uint64) *Table {
		t.Helper()
		table, err := c.Compile(turn, views)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	turn.Edge(alice, bob)
	first := compile(everybody(2))
	blind := everybody(2)
	set(blind[bob]).del(alice)
	turn.Sight(bob, blind[bob])
	if gone := compile(blind); hears(gone, alice, bob) || !hears(first, alice, bob) {
		t.Error("a route survives the sight of its talker, or a table was written to")
	}
	turn.Reset()
	turn.Participant(alice, 0)
	turn.Participant(bob, 0)
	if hears(compile(everybody(2)), alice, bob) {
		t.Error("a route survives its declaration")
	}
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 63, 64, 65, 200} {
		words := (n + 63) / 64
		in := make([]uint64, n*words)
		for i := range n {
			for j := range n {
				if r.IntN(3) == 0 {
					set(in[i*words:]).add(j)
				}
			}
		}
		out := transposed(in, n, words)
		for i := range n {
			for j := range n {
				if set(in[i*words:]).has(j) != set(out[j*words:]).has(i) {
					t.Fatalf("%d: %d, %d", n, i, j)
				}
			}
		}
	}
}

// Random turns, against pairs in maps.
func TestAgainstPairs(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 2 + r.IntN(90)
		c := NewCompiler()
		turn := &Turn{}
		here := make([]bool, n)
		views := make([][]uint64, n)
		var former *Table
		for i := range views {
			views[i] = make([]uint64, (n+63)/64)
		}
		for step := range 60 {
			turn.Reset()
			flags := make([]Flags, n)
			for i := range n {
				if r.IntN(20) == 0 || step == 0 {
					here[i] = r.IntN(4) != 0
				}
				flags[i] = [...]Flags{0, 0, 0, 0, Muted, Suppressed, Deafened, Muted | Deafened}[r.IntN(8)]
				if here[i] {
					turn.Participant(i, flags[i])
				}
				for range 3 {
					if j := r.IntN(n); r.IntN(3) > 0 {
						set(views[i]).add(j)
					} else {
						set(views[i]).del(j)
					}
				}
			}
			want := map[[2]int]bool{}
			members := map[string][]int{}
			for range r.IntN(6) {
				name := fmt.Sprint("d", r.IntN(4))
				for range r.IntN(n) {
					members[name] = append(members[name], r.IntN(n))
				}
				turn.Domain(name, members[name]...)
			}
			for _, who := range members {
				for _, a := range who {
					for _, b := range who {
						want[[2]int{a, b}] = true
					}
				}
			}
			for range r.IntN(6) {
				l, name := r.IntN(n), fmt.Sprint("d", r.IntN(6))
				turn.Listen(l, name)
				for _, s := range members[name] {
					want[[2]int{s, l}] = true
				}
			}
			for range r.IntN(n) {
				s, l := r.IntN(n), r.IntN(n)
				turn.Edge(s, l)
				want[[2]int{s, l}] = true
			}
			cut := r.IntN(4) > 0
			if cut {
				for i := range n {
					turn.Sight(i, views[i])
				}
			}
			violated := false
			for p := range want {
				s, l := p[0], p[1]
				if s == l || !here[s] || !here[l] || flags[s]&(Muted|Suppressed) != 0 || flags[l]&Deafened != 0 || cut && !set(views[l]).has(s) {
					delete(want, p)
				} else if !set(views[l]).has(s) {
					violated = true
				}
			}
			table, err := c.Compile(turn, views)
			if violated != (err != nil) {
				t.Fatalf("seed %d, step %d: violated %v, error %v", seed, step, violated, err)
			}
			if err != nil {
				if former != nil && table != former {
					t.Fatalf("seed %d, step %d: refused, but the table is another one", seed, step)
				}
				continue
			}
			former = table
			for s := range n {
				for l := range n {
					if got := hears(table, s, l); got != want[[2]int{s, l}] {
						t.Fatalf("seed %d, step %d: %d to %d: %v, want %v", seed, step, s, l, got, !got)
					}
				}
			}
		}
	}
}

func TestCompileOfNobody(t *testing.T) {
	table, err := NewCompiler().Compile(&Turn{}, nil)
	if err != nil || table.Hearers(0) != nil || table.Hearers(-1) != nil {
		t.Errorf("%+v, %v", table, err)
	}
}

// 1,000 players, 50 groups of 20 and 100 domains of 10 to 200, 200 listens and 1,000 edges, declared and compiled.
func BenchmarkTurn1000(b *testing.B) {
	const n = 1000
	r := rand.New(rand.NewPCG(1, 1))
	var domains [150][]int
	var names [150]string
	for i := range domains {
		size := 20
		if i >= 50 {
			size = 10 + r.IntN(191)
		}
		names[i] = fmt.Sprint("domain ", i)
		for range size {
			domains[i] = append(domains[i], r.IntN(n))
		}
	}
	views := everybody(n)
	c, turn := NewCompiler(), &Turn{}
	var table *Table
	b.ReportAllocs()
	for b.Loop() {
		turn.Reset()
		for i := range n {
			turn.Participant(i, 0)
			turn.Sight(i, views[i])
		}
		for i, d := range domains {
			turn.Domain(names[i], d...)
		}
		for i := range 200 {
			turn.Listen(i, names[i%150])
		}
		for i := range n {
			turn.Edge(i, (i+1)%n)
		}
		table, _ = c.Compile(turn, views)
	}
	heard := 0
	for s := range n {
		for _, w := range table.Hearers(s) {
			heard += bits.OnesCount64(w)
		}
	}
	b.ReportMetric(float64(heard), "pairs")
}
