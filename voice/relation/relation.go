// Package relation is the directed relation of who is given whose voice, declared outright for each turn and compiled
// into a table that is replaced whole.
//
// It promises silence by default: nothing is implied, a voice that is not declared is not heard, and a name that nobody
// has declared connects nobody. It also promises that no table ever gives a voice to somebody who is not shown the
// talker, and that a revoked route is gone with the table that lacks it. It knows connections by the slots that the
// caller gives them, and does not know what anybody has been told: see [route.Compiler.Tell], which holds for declared
// voices as for all others.
package relation

import (
	"fmt"
	"math/bits"
	"slices"
)

// Flags silence a participant or keep it from hearing. They are compiled into the table.
type Flags uint8

// The flags. Muted and Suppressed do the same; a participant may have been given either.
const (
	Muted      Flags = 1 << iota // by somebody
	Suppressed                   // by a rule
	Deafened
)

// Turn holds one turn's declarations. They may come in any order, and repeating one is harmless. A slot in which nobody
// takes part is silent and deaf, whatever names it. The zero value is an empty turn.
type Turn struct {
	participants []participant // by slot
	domains      map[string]*domain
	listens      []listen
	edges        []edge
	sights       []sight
	given        func(listener int, talkers []uint64)
}

type participant struct {
	here  bool
	flags Flags
}

type domain struct {
	declared bool // in this turn
	members  set
}

type listen struct {
	listener int
	domain   string
}

type edge struct{ talker, listener int }

type sight struct {
	listener int
	talkers  []uint64
}

// Reset empties the turn and keeps its memory.
func (t *Turn) Reset() {
	clear(t.participants)
	t.participants = t.participants[:0]
	for name, d := range t.domains {
		if !d.declared { // for a whole turn
			delete(t.domains, name)
			continue
		}
		d.declared = false
		clear(d.members)
	}
	t.listens, t.edges = t.listens[:0], t.edges[:0]
	clear(t.sights)
	t.sights, t.given = t.sights[:0], nil
}

// Participant says that somebody is in a slot.
func (t *Turn) Participant(slot int, f Flags) {
	for slot >= len(t.participants) {
		t.participants = append(t.participants, participant{})
	}
	t.participants[slot] = participant{true, f}
}

// Domain declares a domain whose members all hear each other. A second call with the same name adds members.
func (t *Turn) Domain(name string, members ...int) {
	d := t.domains[name]
	if d == nil {
		if t.domains == nil {
			t.domains = make(map[string]*domain)
		}
		d = &domain{}
		t.domains[name] = d
	}
	d.declared = true
	for _, m := range members {
		d.members = d.members.with(m)
	}
}

// Listen lets a participant hear a domain without being heard by it.
func (t *Turn) Listen(listener int, domain string) {
	t.listens = append(t.listens, listen{listener, domain})
}

// Edge lets one participant hear one other.
func (t *Turn) Edge(talker, listener int) { t.edges = append(t.edges, edge{talker, listener}) }

// Sight limits a listener to talkers in the set of slots. It is compiled in like a flag, for rules that know more than
// the declarations do: a moderator who has vanished is silent for players who may not see them, and a team with the
// moderator on its radio keeps its radio. The set is read when the turn is compiled; without a call there is no limit.
func (t *Turn) Sight(listener int, talkers []uint64) {
	t.sights = append(t.sights, sight{listener, talkers})
}

// Given sets a function that is called when the turn is compiled, once for each slot, with the talkers that domains,
// listens and edges give it. It is called before any set of [Turn.Sight] or view is read: a declaration may itself be
// the reason why somebody is shown.
func (t *Turn) Given(tell func(listener int, talkers []uint64)) { t.given = tell }

// Unseen is the error of a turn that would have given a listener the voice of somebody whom its view does not show.
type Unseen struct{ Listener, Talker int }

// Error implements error.
func (u *Unseen) Error() string {
	return fmt.Sprintf("the listener in slot %d would hear the talker in slot %d without being shown that player: the whole turn is refused", u.Listener, u.Talker)
}

// Compiler makes tables. It belongs to the one goroutine that runs the turns.
type Compiler struct {
	last *Table

	// Scratch of one turn.
	words  int
	hears  []uint64 // words for each slot: the talkers it hears
	silent set
}

// NewCompiler returns a compiler. Before its first turn nobody hears anybody.
func NewCompiler() *Compiler { return &Compiler{last: &Table{}} }

// Compile makes the table of a turn. views has, by listener's slot, the slots of the players that the listener's view
// of this turn shows.
//
// Publish the table before any view of its turn is sent, so that a revoked voice is silent before anybody is told. When
// a listener would hear somebody whom its view does not show, the turn is refused whole: Compile returns the former
// table and [*Unseen], and no view of that turn may be sent. A kept table keeps the slots of its own turn.
func (c *Compiler) Compile(t *Turn, views [][]uint64) (*Table, error) {
	n := len(t.participants)
	c.words = (n + 63) / 64
	undeclared := c.relate(t)
	for slot := range n {
		view := at(views, slot)
		for i, hears := range c.row(slot) {
			if i < len(view) {
				hears &^= view[i]
			}
			if hears != 0 {
				return c.last, &Unseen{slot, i*64 + bits.TrailingZeros64(hears)}
			}
		}
	}
	c.last = &Table{slots: n, words: c.words, hearers: transposed(c.hears, n, c.words), Undeclared: undeclared}
	return c.last, nil
}

// at returns s[i], or the zero value.
func at[T any](s []T, i int) (v T) {
	if i < len(s) {
		v = s[i]
	}
	return v
}

func (c *Compiler) row(slot int) set { return c.hears[slot*c.words : (slot+1)*c.words] }

// relate makes the relation of the turn, by listener.
func (c *Compiler) relate(t *Turn) (undeclared []string) {
	n := len(t.participants)
	c.hears = blank(c.hears, n*c.words)
	c.silent = blank(c.silent, c.words)
	for _, d := range t.domains {
		if !d.declared {
			continue
		}
		for i, word := range d.members[:min(len(d.members), c.words)] {
			for ; word != 0; word &= word - 1 {
				if m := i*64 + bits.TrailingZeros64(word); m < n {
					c.row(m).join(d.members)
				}
			}
		}
	}
	for _, l := range t.listens {
		switch d := t.domains[l.domain]; {
		case d == nil || !d.declared:
			if !slices.Contains(undeclared, l.domain) {
				undeclared = append(undeclared, l.domain)
			}
		case l.listener >= 0 && l.listener < n:
			c.row(l.listener).join(d.members)
		}
	}
	for _, e := range t.edges {
		if e.listener >= 0 && e.listener < n && e.talker >= 0 && e.talker < n {
			c.row(e.listener).add(e.talker)
		}
	}
	for slot := range n {
		if t.given != nil {
			t.given(slot, c.row(slot))
		}
	}
	for _, s := range t.sights {
		if s.listener >= 0 && s.listener < n {
			c.row(s.listener).meet(s.talkers)
		}
	}
	for i := range c.silent {
		c.silent[i] = ^uint64(0) // even slots that nobody has
	}
	for slot, p := range t.participants {
		if p.here && p.flags&(Muted|Suppressed) == 0 {
			c.silent.del(slot)
		}
	}
	for slot, p := range t.participants {
		row := c.row(slot)
		if !p.here || p.flags&Deafened != 0 {
			clear(row)
			continue
		}
		row.del(slot) // its own voice would come back doubled
		for i := range row {
			row[i] &^= c.silent[i]
		}
	}
	return undeclared
}
