package route

import (
	"fmt"
	"math/bits"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/relation"
)

// Spectators is who hears a spectator. Spectators themselves hear everybody.
type Spectators uint8

// The spectator rules.
const (
	HeardBySpectators Spectators = iota
	HeardByNobody
	HeardByEveryone
)

// ParseSpectators reads the setting: spectators, nobody or everyone.
func ParseSpectators(s string) (Spectators, error) {
	switch s {
	case "spectators":
		return HeardBySpectators, nil
	case "nobody":
		return HeardByNobody, nil
	case "everyone":
		return HeardByEveryone, nil
	}
	return 0, fmt.Errorf("%q is no spectator rule: write nobody, spectators or everyone", s)
}

// Visibility is who may know of whom.
type Visibility uint8

// The visibility rules.
const (
	// TabList is of those whom the backend shows in the player's tab list. Of players on other backends, whom no backend
	// could show or hide, it is of those to whom the player is tied: see [Compiler.Tie].
	TabList      Visibility = iota
	EveryoneSeen            // everybody, whatever the backends show
)

// ParseVisibility reads the setting: tab-list or everyone.
func ParseVisibility(s string) (Visibility, error) {
	switch s {
	case "tab-list":
		return TabList, nil
	case "everyone":
		return EveryoneSeen, nil
	}
	return 0, fmt.Errorf("%q is no visibility rule: write tab-list or everyone", s)
}

// Policy is a server's settings.
type Policy struct {
	Gain       gain.Rules
	Spectators Spectators
	Visibility Visibility
}

// Compiler keeps what the turns know of all pairs, in bit sets, so that a turn costs what has changed and not the
// square of the members. It belongs to the one goroutine that runs the turns.
type Compiler struct {
	policy  Policy
	members []*Member // by slot; nil where free
	free    []int
	words   int    // length of every set
	epochs  uint64 // the last one given out
	next    int    // slot at which Look goes on

	backends map[string]set // who is where, as of Locate
	located  set            // whose backend is known
	moves    uint64

	asked    []*world.Player // everybody; empty when that has changed
	groups   Groups
	declared *relation.Table

	soundboardOff bool
	// Scratch of one call.
	seen        []*world.Player
	fresh       set
	gatherings  map[*world.Place]*gathering
	gatheringOf []*gathering // by slot
	spectators  set
	hearing     set // who is neither deafened nor forbidden to listen
	together    set
	nobody      [3]set
	away        set
}

// gathering is the members in one place.
type gathering struct {
	ears  set     // of those who want to hear, and may
	reach float64 // of an ordinary voice
	zones []gain.Region
}

// NewCompiler returns a compiler without members.
func NewCompiler(p Policy) *Compiler {
	return &Compiler{policy: p, gatherings: make(map[*world.Place]*gathering), backends: make(map[string]set)}
}

// Add takes a member in. It hears and is heard once rosters have told of it; see [Compiler.Tell].
func (c *Compiler) Add(m *Member) {
	var slot int
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
		c.members[slot] = m
	} else {
		slot = len(c.members)
		c.members = append(c.members, m)
		if words := (len(c.members) + 63) / 64; words > c.words {
			c.words = words
			for _, o := range c.members[:slot] {
				if o != nil {
					for _, s := range o.sets() {
						*s = append(*s, 0)
					}
				}
			}
		}
	}
	c.asked = c.asked[:0]
	for _, s := range m.sets() {
		*s = make(set, c.words)
	}
	m.backend = ""
	m.listed.add(slot)
	m.sight = m.Player.SightVersion() - 1 // Look has to look
	c.epochs++
	m.epoch = c.epochs
	for _, o := range c.members {
		switch {
		case o == nil:
		case o == m || c.policy.Visibility == EveryoneSeen:
			o.sees.add(slot)
			o.view++
			if o != m {
				m.sees.add(o.Slot())
			}
		case o.Player.Sees(m.Player.ID):
			o.listed.add(slot)
			o.sees.add(slot)
			o.view++
		}
	}
	m.slot.Store(int32(slot) + 1)
}

// Drop forgets a member. Tables that are published already still hold it until the next one.
func (c *Compiler) Drop(m *Member) {
	slot := m.Slot()
	m.slot.Store(0)
	c.members[slot] = nil
	c.asked = c.asked[:0]
	c.free = append(c.free, slot)
	for _, o := range c.members {
		if o == nil {
			continue
		}
		o.listed.del(slot)
		o.tied.del(slot)
		if o.sees.has(slot) {
			o.sees.del(slot)
			o.named.del(slot)
			o.told.del(slot)
			o.view++
		}
		o.heard.del(slot)
	}
}

func (m *Member) sets() [6]*set {
	return [...]*set{&m.sees, &m.named, &m.told, &m.heard, &m.listed, &m.tied}
}

// SetDeafened says whether the member wants to hear. Streams to it begin anew either way.
func (c *Compiler) SetDeafened(m *Member, on bool) {
	m.deafened = on
	c.epochs++
	m.epoch = c.epochs
}

// SetTier says how loudly the member speaks.
func (c *Compiler) SetTier(m *Member, t line.Tier) { m.tier = t }

// SetPolicy changes the settings. Who is no longer seen is no longer heard from the next Compile on; who is seen now is
// heard once rosters have told of it.
func (c *Compiler) SetPolicy(p Policy) {
	before := c.policy.Visibility
	c.policy = p
	if p.Visibility == before {
		return
	}
	c.moves++ // whoever is away is another question now
	for _, m := range c.members {
		switch {
		case m == nil:
		case p.Visibility == EveryoneSeen:
			clear(m.tied)
			for slot, o := range c.members {
				if o != nil {
					m.sees.add(slot)
				}
			}
			m.view++
		default:
			c.look(m)
		}
	}
}

// Look reads again whom the players see, of at most so many players whose sight has changed, and tells whether that
// was all. A backend that shows one more player to a thousand changes a thousand sights at once, which is more than
// one turn may cost: call it again, now or in the next turn; it goes on where it stopped.
func (c *Compiler) Look(players int) (done bool) {
	if c.policy.Visibility == EveryoneSeen {
		return true
	}
	for range c.members {
		if c.next >= len(c.members) {
			c.next = 0
		}
		m := c.members[c.next]
		if m != nil && m.sight != m.Player.SightVersion() {
			if players == 0 {
				return false
			}
			players--
			c.look(m)
		}
		c.next++
	}
	return true
}

// look reads one member's sight.
func (c *Compiler) look(m *Member) {
	if len(c.asked) == 0 {
		for _, o := range c.members {
			if o != nil {
				c.asked = append(c.asked, o.Player)
			}
		}
	}
	m.sight = m.Player.SightVersion() // before the reading: a change during it is read again
	c.seen = m.Player.AppendSeen(c.seen[:0], c.asked)
	c.fresh = c.blank(c.fresh)
	c.fresh.add(m.Slot())
	rest := c.seen
	for slot, o := range c.members { // both are in the order of slots
		if len(rest) == 0 {
			break
		}
		if o != nil && o.Player == rest[0] {
			c.fresh.add(slot)
			rest = rest[1:]
		}
	}
	copy(m.listed, c.fresh)
	c.resee(m)
}

// resee works out anew whom a member may know of.
func (c *Compiler) resee(m *Member) {
	changed := false
	for i := range m.sees {
		now := m.listed[i] | m.tied[i]
		changed = changed || now != m.sees[i]
		m.sees[i] = now
		for gone := m.told[i] &^ now; gone != 0; gone &= gone - 1 {
			c.members[i*64+bits.TrailingZeros64(gone)].heard.del(m.Slot())
		}
		m.named[i] &= now // who comes back has to be told of again
		m.told[i] &= now
	}
	if changed {
		m.view++
	}
}

// Locate looks on which backends everybody is, for [Compiler.Tie] and [Compiler.Away].
func (c *Compiler) Locate() {
	c.located = c.blank(c.located)
	for name, s := range c.backends {
		if s.empty() { // for a whole turn
			delete(c.backends, name)
			continue
		}
		c.backends[name] = c.blank(s)
	}
	for slot, m := range c.members {
		if m == nil {
			continue
		}
		backend := ""
		if p := m.Player.Facts().Place; p != nil {
			backend = p.Backend
			if len(c.backends[backend]) == 0 {
				c.backends[backend] = c.blank(nil)
			}
			c.located.add(slot)
			c.backends[backend].add(slot)
		}
		if backend != m.backend {
			m.backend = backend
			c.moves++
		}
	}
}

// Moves counts the changes of who is on which backend that Locate has found.
func (c *Compiler) Moves() uint64 { return c.moves }

// Away has the slots of those who were on another backend than the member in the last Locate; nobody is where that is not
// known. It is valid until the next call.
func (c *Compiler) Away(m *Member) []uint64 {
	c.away = c.blank(c.away)
	if m.backend == "" || c.policy.Visibility == EveryoneSeen {
		return c.away
	}
	copy(c.away, c.located)
	for i, here := range c.backends[m.backend] {
		c.away[i] &^= here
	}
	return c.away
}

// Tie says to whom the member has ties, by slot, such as a group that both are in: those of them who are on another
// backend it may know of. On its own backend nobody is shown to it by a tie, for that backend may have hidden somebody.
func (c *Compiler) Tie(m *Member, with ...[]uint64) {
	changed := false
	for i, word := range c.Away(m) {
		now := uint64(0)
		for _, w := range with {
			if i < len(w) {
				now |= word & w[i]
			}
		}
		if now != m.tied[i] {
			m.tied[i], changed = now, true
		}
	}
	if changed {
		c.resee(m)
	}
}

// View counts the changes of [Member.Sees].
func (m *Member) View() uint64 { return m.view }

// Sees has the slots of those of whom the member may know, itself included, one bit each. It is for the turn to read
// until its next call of the compiler.
func (m *Member) Sees() []uint64 { return m.sees }

// Slot is the member's place in the tables and in the sets. It is for the turn; a member that is not in any table has
// a negative one.
func (m *Member) Slot() int { return int(m.slot.Load()) - 1 }

// Name records that a roster is on its way to the member which names everybody in its [Member.Sees].
func (c *Compiler) Name(m *Member) { copy(m.named, m.sees) }

// Tell records that the roster of the last [Compiler.Name] has reached the member. It tells whether that opens any
// route; the next Compile has it.
func (c *Compiler) Tell(m *Member) (opened bool) {
	slot := m.Slot()
	for i, now := range m.named {
		for fresh := now &^ m.told[i]; fresh != 0; fresh &= fresh - 1 {
			c.members[i*64+bits.TrailingZeros64(fresh)].heard.add(slot)
			opened = true
		}
		for gone := m.told[i] &^ now; gone != 0; gone &= gone - 1 {
			c.members[i*64+bits.TrailingZeros64(gone)].heard.del(slot)
		}
		m.told[i] = now
	}
	return opened
}

// Compile makes the table of the present state.
func (c *Compiler) Compile() *Table {
	n := len(c.members)
	t := &Table{
		players: make([]*world.Player, n), listeners: make([]listener, n), rows: make([]row, n),
		clips: make(set, c.words), channels: make(map[*world.Place]set),
	}
	placed := c.survey()
	for slot, m := range c.members {
		if m == nil {
			continue
		}
		t.players[slot], t.listeners[slot] = m.Player, listener{m.Receiver, m.epoch}
		if m.Clips {
			t.clips.add(slot)
		}
		if g := c.gatheringOf[slot]; g != nil && m.Channels && c.hearing.has(slot) {
			if t.channels[m.place] == nil {
				t.channels[m.place] = make(set, c.words)
			}
			t.channels[m.place].add(slot)
		}
	}
	sets := make(set, 2*placed*c.words) // of all rows in one allocation
	var wides set
	wide := c.nobody[0]
	for slot, m := range c.members {
		if m == nil {
			continue
		}
		r := &t.rows[slot]
		c.fill(r, m, slot)
		near, may := c.nobody[1], c.nobody[2]
		if c.gatheringOf[slot] != nil {
			near, may, sets = sets[:c.words:c.words], sets[c.words:2*c.words:2*c.words], sets[2*c.words:]
			r.near, r.may = near, may
		}
		c.sort(slot, near, may, wide, nil)
		if wide.empty() {
			continue
		}
		if len(wides) == 0 {
			wides = make(set, 64*c.words)
		}
		r.wide, wides = wides[:c.words:c.words], wides[c.words:]
		copy(r.wide, wide)
	}
	return t
}

// blank returns s emptied and as long as the sets of now.
func (c *Compiler) blank(s set) set {
	s = append(s[:0], make(set, c.words)...)
	return s
}
