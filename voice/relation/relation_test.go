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

// all is everybody being where nothing is new to them.
func all(n int) []uint64 {
	reached := make([]uint64, n)
	for i := range reached {
		reached[i] = 1 << 40
	}
	return reached
}

// turnOf has everybody in it, each in its own session.
func turnOf(n int) *Turn {
	t := &Turn{}
	for i := range n {
		t.Participant(i, uint64(i)+1, 0)
	}
	return t
}

// pairs names who hears whom, like "alice>bob".
func pairs(t *Table, n int) (out []string) {
	names := []string{"alice", "bob", "carol", "dave"}
	for s := range n {
		for l := range n {
			if t.Hears(s, l, 1<<40) {
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
		table, err := NewCompiler().Compile(turn, everybody(people), nil)
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
		turn.Participant(bob, bob+1, c.flags)
		table, err := NewCompiler().Compile(turn, everybody(people), nil)
		if got := pairs(table, people); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("flags %b: %v, want %v (%v)", c.flags, got, c.want, err)
		}
	}
}

func TestWhoLeftTakesPartInNothing(t *testing.T) {
	turn := turnOf(people)
	turn.Domain("RED", alice, bob, carol)
	turn.Participant(bob, 0, 0)
	table, err := NewCompiler().Compile(turn, everybody(people), nil)
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
	c.Compile(turn, everybody(people), all(people))
	turn.Reset()
	for i := range people {
		turn.Participant(i, uint64(i)+1, 0)
	}
	turn.Domain("BLUE", bob, dave)
	turn.Listen(carol, "RED")
	table, err := c.Compile(turn, everybody(people), all(people))
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
	former, err := c.Compile(turn, everybody(people), nil)
	if err != nil {
		t.Fatal(err)
	}
	views := everybody(people)
	set(views[carol]).del(alice)
	turn.Domain("RED", alice, dave)
	turn.Listen(carol, "RED")
	got, err := c.Compile(turn, views, nil)
	var unseen *Unseen
	if !errors.As(err, &unseen) || *unseen != (Unseen{Listener: carol, Speaker: alice}) {
		t.Fatalf("error %v", err)
	}
	if got != former || got.Version() != 1 {
		t.Errorf("got version %d, want the former table", got.Version())
	}
	if _, err := c.Compile(turn, views[:carol], nil); !errors.As(err, &unseen) {
		t.Errorf("no view at all: %v", err)
	}
	// What does not reach carol is no violation, whatever else she may not see.
	for name, change := range map[string]func(*Turn){
		"alice is muted":    func(t *Turn) { t.Participant(alice, alice+1, Muted) },
		"carol is deafened": func(t *Turn) { t.Participant(carol, carol+1, Deafened) },
		"her sight is said": func(t *Turn) { t.Sight(carol, views[carol]) },
	} {
		turn := turnOf(people)
		turn.Domain("RED", alice, dave)
		turn.Listen(carol, "RED")
		change(turn)
		table, err := c.Compile(turn, views, nil)
		if err != nil || table.Hears(alice, carol, 1<<40) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The refused views have not been sent: what they would have shown is still new.
	table, err := c.Compile(turn, everybody(people), all(people))
	if err != nil || table.Since(alice, carol) == 0 {
		t.Errorf("alice is not new to carol, who was never shown her: %v", err)
	}
}

func TestSightCutsAndOthersKeepTheirRoutes(t *testing.T) {
	turn := turnOf(people)
	turn.Domain("RED", alice, bob, carol)
	turn.Sight(alice, []uint64{1<<alice | 1<<carol})
	table, err := NewCompiler().Compile(turn, everybody(people), nil)
	if got := pairs(table, people); err != nil || !slices.Equal(got, []string{"alice>bob", "alice>carol", "bob>carol", "carol>alice", "carol>bob"}) {
		t.Errorf("%v (%v)", got, err)
	}
}

// A new route is inert until the listener has the view that shows the speaker; one that is taken away is gone at once.
func TestFreshRoutesWaitAndRevokedOnesDoNot(t *testing.T) {
	c, turn := NewCompiler(), turnOf(2)
	turn.Edge(alice, bob)
	reached := []uint64{0, 0}
	hears := func(want bool, table *Table) {
		t.Helper()
		if got := table.Hears(alice, bob, reached[bob]); got != want {
			t.Errorf("version %d, reached %d: hears %v", table.Version(), reached[bob], got)
		}
		live := table.AppendLive(nil, alice, reached)
		if got := set(live).has(bob); got != want {
			t.Errorf("version %d, reached %d: live %x", table.Version(), reached[bob], live)
		}
	}
	compile := func(views [][]uint64) *Table {
		t.Helper()
		table, err := c.Compile(turn, views, reached)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	seeing := everybody(2)
	first := compile(seeing)
	hears(false, first) // published, not told
	second := compile(seeing)
	hears(false, second) // nor by another turn
	reached[bob] = 1
	hears(true, first)
	hears(true, second)
	hears(true, compile(seeing))

	// The backend hides alice: no route. It shows her again: not before bob is told again.
	blind := everybody(2)
	set(blind[bob]).del(alice)
	turn.Reset()
	turn.Participant(alice, 1, 0)
	turn.Participant(bob, 2, 0)
	gone := compile(blind)
	hears(false, gone)
	reached[bob] = gone.Version()
	turn.Edge(alice, bob)
	back := compile(seeing)
	hears(false, back)
	reached[bob] = back.Version()
	hears(true, back)

	// Somebody else in alice's slot is as new as anybody.
	turn.Participant(alice, 77, 0)
	other := compile(seeing)
	hears(false, other)
	reached[bob] = other.Version()
	hears(true, other)
	if !other.Holds(alice, 77) || other.Holds(alice, 1) || other.Holds(alice, 0) || other.Holds(9, 0) || other.Holds(-1, 1) {
		t.Error("the table does not know whom it was compiled for")
	}
	// And to somebody else in bob's slot everybody is new.
	turn.Participant(bob, 78, 0)
	reached[bob] = 0
	hears(false, compile(seeing))
	hears(false, compile(seeing))
}

// Who never receives a view costs a bounded amount and is told nothing too early.
func TestAListenerThatReceivesNothing(t *testing.T) {
	const n = 100
	c, turn := NewCompiler(), turnOf(n)
	views := everybody(n)
	clear(views[0])
	reached := all(n)
	reached[0] = 0
	shown := map[int]uint64{}
	for s := 1; s < n; s++ {
		set(views[0]).add(s)
		turn.Edge(s, 0)
		table, err := c.Compile(turn, views, reached)
		if err != nil {
			t.Fatal(err)
		}
		shown[s] = table.Version()
		if got := len(c.listeners[0].stages); got > maxStages {
			t.Fatalf("%d stages", got)
		}
		for s, v := range shown {
			if table.Hears(s, 0, v-1) {
				t.Fatalf("version %d: %d is heard before version %d, in which it was first shown", table.Version(), s, v)
			}
			if !table.Hears(s, 0, table.Version()) {
				t.Fatalf("version %d: %d is not heard by who is up to date", table.Version(), s)
			}
		}
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

// model is the relation in the plainest form: pairs, and for each the version that showed the speaker.
type model struct {
	hears map[[2]int]bool
	since map[[2]int]uint64
	view  map[[2]int]bool
}

// Random turns, against pairs in maps.
func TestAgainstPairs(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 2 + r.IntN(90)
		c := NewCompiler()
		turn := &Turn{}
		sessions := make([]uint64, n)
		views := make([][]uint64, n)
		reached := make([]uint64, n)
		m := model{map[[2]int]bool{}, map[[2]int]uint64{}, map[[2]int]bool{}}
		version := uint64(0)
		for i := range views {
			views[i] = make([]uint64, (n+63)/64)
		}
		next := uint64(1)
		for step := range 60 {
			turn.Reset()
			flags := make([]Flags, n)
			replaced := make([]bool, n)
			for i := range n {
				if r.IntN(20) == 0 || step == 0 {
					sessions[i], next = next, next+1
					replaced[i] = true
					reached[i] = 0
					if r.IntN(4) == 0 {
						sessions[i] = 0
					}
				}
				flags[i] = [...]Flags{0, 0, 0, 0, Muted, Suppressed, Deafened, Muted | Deafened}[r.IntN(8)]
				turn.Participant(i, sessions[i], flags[i])
				for range 3 {
					if j := r.IntN(n); r.IntN(3) > 0 {
						set(views[i]).add(j)
					} else {
						set(views[i]).del(j)
					}
				}
				if r.IntN(3) == 0 {
					reached[i] = version
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
				if s == l || sessions[s] == 0 || sessions[l] == 0 || flags[s]&(Muted|Suppressed) != 0 || flags[l]&Deafened != 0 || cut && !set(views[l]).has(s) {
					delete(want, p)
				} else if !set(views[l]).has(s) {
					violated = true
				}
			}
			table, err := c.Compile(turn, views, reached)
			if violated != (err != nil) {
				t.Fatalf("seed %d, step %d: violated %v, error %v", seed, step, violated, err)
			}
			if err != nil {
				if table.Version() != version {
					t.Fatalf("seed %d, step %d: refused, but version %d", seed, step, table.Version())
				}
				for i := range n {
					if replaced[i] {
						// The table that stays is not about this one.
						if sessions[i] != 0 && table.Holds(i, sessions[i]) {
							t.Fatalf("seed %d, step %d: holds a session it never saw", seed, step)
						}
					}
				}
				// For the model the slot changes hands when a turn is accepted.
				for i := range n {
					if replaced[i] {
						for j := range n {
							delete(m.view, [2]int{i, j})
							delete(m.view, [2]int{j, i})
						}
					}
				}
				continue
			}
			version++
			view := map[[2]int]bool{}
			for l := range n {
				for s := range n {
					if !set(views[l]).has(s) {
						continue
					}
					p := [2]int{s, l}
					view[p] = true
					if !m.view[p] || replaced[s] || replaced[l] {
						m.since[p] = version
					}
				}
			}
			m.view, m.hears = view, want
			for s := range n {
				live := table.AppendLive(nil, s, reached)
				for l := range n {
					p := [2]int{s, l}
					if got := set(table.Hearers(s)).has(l); got != want[p] {
						t.Fatalf("seed %d, step %d: %d to %d: %v, want %v", seed, step, s, l, got, want[p])
					}
					told := want[p] && m.since[p] <= reached[l]
					got := table.Hears(s, l, reached[l])
					if got != set(live).has(l) {
						t.Fatalf("seed %d, step %d: %d to %d: Hears %v, AppendLive not", seed, step, s, l, got)
					}
					if got && !told {
						t.Fatalf("seed %d, step %d: %d to %d is heard at %d, shown at %d", seed, step, s, l, reached[l], m.since[p])
					}
					if m.since[p] > reached[l] && table.Hears(s, l, m.since[p]-1) {
						t.Fatalf("seed %d, step %d: %d to %d is heard one version before it was shown (again)", seed, step, s, l)
					}
					// Stages that were merged may keep a route inert for longer, but never for one who is up to date.
					if want[p] && !table.Hears(s, l, version) {
						t.Fatalf("seed %d, step %d: %d to %d is inert for who has everything", seed, step, s, l)
					}
				}
			}
		}
	}
}

func TestCompileOfNobody(t *testing.T) {
	table, err := NewCompiler().Compile(&Turn{}, nil, nil)
	if err != nil || table.Version() != 1 || table.Hearers(0) != nil || table.Hears(0, 0, 1) || len(table.AppendLive(nil, 3, nil)) != 0 {
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
	views, reached := everybody(n), all(n)
	c, turn := NewCompiler(), &Turn{}
	var table *Table
	b.ReportAllocs()
	for b.Loop() {
		turn.Reset()
		for i := range n {
			turn.Participant(i, uint64(i)+1, 0)
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
		table, _ = c.Compile(turn, views, reached)
	}
	heard := 0
	for s := range n {
		for _, w := range table.Hearers(s) {
			heard += bits.OnesCount64(w)
		}
	}
	b.ReportMetric(float64(heard), "pairs")
}
