package route

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Spectators says who hears a spectator. Spectators themselves hear everybody.
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

// Policy is a server's settings.
type Policy struct {
	Gain       gain.Rules
	Spectators Spectators
}

// Compiler keeps the turns' knowledge of all pairs in bit sets, so that the cost of a turn grows with the changes and
// not with the square of the members. It belongs to the one goroutine that runs the turns.
type Compiler struct {
	policy  Policy
	members []*Member // by slot; nil where free
	free    []int
	words   int    // length of every set
	epochs  uint64 // the last one given out
	reg     *world.Registry

	public   set   // members whom everybody may know about, as of Reveal
	veiled   set   // members hidden from somebody all the same
	fresh    []int // slots in which these may be wrong
	groups   Groups
	declared *relation.Table

	soundboardOff bool

	// As of the last survey.
	gatherings map[*world.Place]*gathering
	servers    map[string]*server
	spectators set
	hearing    set // members who are neither deafened nor forbidden to listen

	last    *Table
	stale   set  // words that are stale in every row
	all     bool // everything is
	anew    bool // any row has something stale
	changed bool // the slots have changed, or something about a listener alone

	// Scratch of one call.
	walked   [2]set
	together set
	nobody   [3]set
}

// gathering holds the members in one place.
type gathering struct {
	members int
	ears    set // of those who want to hear, and may
	server  *server
	reach   float64 // of an ordinary voice
	zones   []gain.Region
}

// server holds the members on one server, in any world.
type server struct {
	members int
	set     set
}

// touch has the next Compile work out one pair.
func (c *Compiler) touch(talker *Member, listener int) {
	talker.stale.add(listener / 64)
	c.anew = true
}

// touchRow has it work out a talker's whole row, touchColumn everything of a listener.
func (c *Compiler) touchRow(m *Member) {
	for i := range m.stale {
		m.stale[i] = ^uint64(0)
	}
	m.again, c.anew = true, true
}

func (c *Compiler) touchColumn(slot int) {
	c.stale.add(slot / 64)
	c.anew = true
}

// touchAll has it work out, for one listener, the talkers in which two sets differ: with many of them, all.
func (c *Compiler) touchAll(was, is set, listener int) (one func(talker *Member)) {
	differ := 0
	for i, word := range is {
		differ += bits.OnesCount64(word ^ was[i])
	}
	if differ > c.words {
		c.touchColumn(listener)
		return func(*Member) {}
	}
	return func(talker *Member) { c.touch(talker, listener) }
}

// NewCompiler returns a compiler without members. It becomes the one reader of a world's changes.
func NewCompiler(reg *world.Registry, p Policy) *Compiler {
	return &Compiler{reg: reg, policy: p, all: true}
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
					o.stale = make(set, (words+63)/64)
				}
			}
			c.stale, c.all = make(set, (words+63)/64), true
		}
	}
	m.stale, m.facts = make(set, len(c.stale)), nil
	c.touchRow(m)
	c.touchColumn(slot)
	c.changed = true
	for _, s := range m.sets() {
		*s = make(set, c.words)
	}
	for len(c.public) < c.words {
		c.public, c.veiled = append(c.public, 0), append(c.veiled, 0)
	}
	m.Player.Seat = slot + 1
	m.slot.Store(int32(slot) + 1)
	m.Player.LookAgain() // a Look reads what it is shown
	c.epochs++
	m.epoch = c.epochs
	m.Player.EachHidden(func(p *world.Player) {
		if o := c.member(p); o != nil {
			o.hiddenFrom.add(slot)
			c.veiled.add(o.Slot())
		}
	})
	c.resee(m)
	m.view++
	m.Player.EachShownTo(func(p *world.Player, apart bool) { // earlier members' sights go on
		if o := c.member(p); o != nil {
			c.see(o, slot, true, apart)
		}
	})
	c.fresh = append(c.fresh, slot)
}

// member returns a player's member, nil without voice.
func (c *Compiler) member(p *world.Player) *Member {
	if slot := p.Seat - 1; slot >= 0 && slot < len(c.members) && c.members[slot] != nil && c.members[slot].Player == p {
		return c.members[slot]
	}
	return nil
}

// Drop forgets a member. Tables that are published already still hold it until the next one.
func (c *Compiler) Drop(m *Member) {
	slot := m.Slot()
	c.gather(m, nil)
	m.slot.Store(0)
	for _, s := range []set{c.hearing, c.spectators} { // of the last survey
		if slot/64 < len(s) {
			s.del(slot)
		}
	}
	c.touchColumn(slot)
	c.changed = true
	c.members[slot] = nil
	m.Player.Seat = 0
	c.public.del(slot)
	c.veiled.del(slot)
	c.free = append(c.free, slot)
	for _, o := range c.members {
		if o == nil {
			continue
		}
		for _, s := range [...]set{o.shown, o.shownTo, o.close, o.closeTo, o.hiddenFrom} {
			s.del(slot)
		}
		if o.sees.has(slot) {
			o.sees.del(slot)
			o.named.del(slot)
			o.told.del(slot)
			o.view++
		}
		o.heard.del(slot)
	}
}

func (m *Member) sets() [9]*set {
	return [...]*set{&m.sees, &m.named, &m.told, &m.heard, &m.shown, &m.shownTo, &m.close, &m.closeTo, &m.hiddenFrom}
}

// SetDeafened sets whether the member wants to hear. Streams to it begin again either way.
func (c *Compiler) SetDeafened(m *Member, on bool) {
	m.deafened = on
	c.epochs++
	m.epoch = c.epochs
	c.changed = true
}

// SetTier sets how loudly the member speaks.
func (c *Compiler) SetTier(m *Member, t talk.Tier) { m.tier, m.again, c.anew = t, true, true }

// SetPolicy changes the settings.
func (c *Compiler) SetPolicy(p Policy) { c.policy, c.all = p, true }

// Reveal reads who is public: whom everybody may know about, wherever they are, but for those they are hidden from.
func (c *Compiler) Reveal() {
	c.reg.Revealed(func(p *world.Player) { c.fresh = append(c.fresh, p.Seat-1) })
	c.fresh = slices.DeleteFunc(c.fresh, func(slot int) bool {
		if slot < 0 || slot >= len(c.members) || c.members[slot] == nil {
			return true
		}
		public := c.members[slot].Player.Sight.Public()
		same := public == c.public.has(slot)
		c.public.put(slot, public)
		return !c.veil(c.members[slot]) && same
	})
	for _, m := range c.members {
		switch {
		case m == nil:
		case len(c.fresh) > c.words:
			c.resee(m)
		default:
			for _, slot := range c.fresh {
				c.reseeOne(m, slot)
			}
		}
	}
	c.fresh = c.fresh[:0]
}

// veil reads from whom a member is hidden, and tells whether that has changed.
func (c *Compiler) veil(m *Member) (changed bool) {
	from := c.blank(c.walked[0])
	c.walked[0] = from
	m.Player.EachHiddenFrom(func(p *world.Player) {
		if c.member(p) != nil {
			from.add(p.Seat - 1)
		}
	})
	changed = !slices.Equal(m.hiddenFrom, from)
	copy(m.hiddenFrom, from)
	c.veiled.put(m.Slot(), !from.empty())
	return changed
}

// Look reads again whom the players are shown, for at most so many players with a change, and tells whether that was
// all. A server that shows one more player to a thousand changes a thousand sights at once, which is more than one turn
// may cost: call it again, now or in the next turn; it goes on where it stopped.
func (c *Compiler) Look(players int) (done bool) {
	for range players {
		p := c.reg.NextSight()
		if p == nil {
			return true
		}
		m := c.member(p)
		if whole := p.EachNews(func(o *world.Player, shown, apart bool) {
			if m != nil && c.member(o) != nil {
				c.see(m, o.Seat-1, shown, apart)
			}
		}); whole && m != nil {
			c.look(m)
		}
	}
	return false
}

// see notes whether a member is shown the one in a slot, and whether both are apart.
func (c *Compiler) see(m *Member, slot int, shown, apart bool) {
	o, mine := c.members[slot], m.Slot()
	m.shown.put(slot, shown)
	o.shownTo.put(mine, shown)
	m.close.put(slot, shown && !apart)
	o.closeTo.put(mine, shown && !apart)
	c.touch(o, mine)
	c.reseeOne(m, slot)
}

// look reads one member's whole sight.
func (c *Compiler) look(m *Member) {
	shown, near := c.blank(c.walked[0]), c.blank(c.walked[1])
	c.walked = [2]set{shown, near}
	m.Player.EachShown(func(p *world.Player, apart bool) {
		if c.member(p) == nil {
			return
		}
		shown.add(p.Seat - 1)
		if !apart {
			near.add(p.Seat - 1)
		}
	})
	turn := func(mine, now set, theirs func(o *Member) set) {
		touch := c.touchAll(mine, now, m.Slot())
		for i, word := range now {
			for diff := mine[i] ^ word; diff != 0; diff &= diff - 1 {
				slot := i*64 + bits.TrailingZeros64(diff)
				if o := c.members[slot]; o != nil {
					theirs(o).put(m.Slot(), word>>(slot%64)&1 != 0)
					touch(o)
				}
			}
			mine[i] = word
		}
	}
	turn(m.shown, shown, func(o *Member) set { return o.shownTo })
	turn(m.close, near, func(o *Member) set { return o.closeTo })
	c.resee(m)
}

// reseeOne works out again whether a member may know about the one in a slot.
func (c *Compiler) reseeOne(m *Member, slot int) {
	now := m.shown.has(slot) || c.public.has(slot) && !c.members[slot].hiddenFrom.has(m.Slot()) || slot == m.Slot()
	if now == m.sees.has(slot) {
		return
	}
	m.sees.put(slot, now)
	m.view++
	if !now {
		if m.told.has(slot) {
			c.members[slot].heard.del(m.Slot())
			c.touch(c.members[slot], m.Slot())
		}
		m.named.del(slot) // a member who comes back has to be told of again
		m.told.del(slot)
	}
}

// resee works out again whom a member may know about.
func (c *Compiler) resee(m *Member) {
	changed := false
	for i := range m.sees {
		now := m.shown[i] | c.public[i]
		for veiled := now & c.veiled[i] &^ m.shown[i]; veiled != 0; veiled &= veiled - 1 {
			if c.members[i*64+bits.TrailingZeros64(veiled)].hiddenFrom.has(m.Slot()) {
				now &^= veiled & -veiled
			}
		}
		if slot := m.Slot(); i == slot/64 {
			now |= 1 << (slot % 64)
		}
		changed = changed || now != m.sees[i]
		m.sees[i] = now
		for gone := m.told[i] &^ now; gone != 0; gone &= gone - 1 {
			o := c.members[i*64+bits.TrailingZeros64(gone)]
			o.heard.del(m.Slot())
			c.touch(o, m.Slot())
		}
		m.named[i] &= now // members who come back have to be told of again
		m.told[i] &= now
	}
	if changed {
		m.view++
	}
}

// View counts the changes of [Member.Sees].
func (m *Member) View() uint64 { return m.view }

// Sees returns the slots of the members that this one may know about, itself included, one bit each. It is for the turn
// to read until its next call of the compiler.
func (m *Member) Sees() []uint64 { return m.sees }

// Around reports whether a member may be told where another one in its place is: it is shown that one there, has been
// told of it, and would hear it if it is a spectator. It is for the turn, after its Compile.
func (c *Compiler) Around(m, o *Member) bool {
	from := o.Slot()
	if from < 0 || m.Slot() < 0 || !m.told.has(from) || !m.shown.has(from) || !m.close.has(from) {
		return false
	}
	spectates := func(m *Member) bool { return m.facts != nil && m.facts.Mode == world.Spectator }
	return !spectates(o) || c.policy.Spectators == HeardByEveryone || c.policy.Spectators == HeardBySpectators && spectates(m)
}

// Slot returns the member's place in the tables and in the sets. It is for the turn; a member that is not in any table
// has a negative one.
func (m *Member) Slot() int { return int(m.slot.Load()) - 1 }

// Name records that a roster is on its way to the member which names those in the slots of a set, some or all of its
// [Member.Sees].
func (c *Compiler) Name(m *Member, who []uint64) { copy(m.named, who) }

// Tell records that the roster of the last [Compiler.Name] has reached the member. It tells whether that opens any
// route; the next Compile has it.
func (c *Compiler) Tell(m *Member) (opened bool) {
	slot := m.Slot()
	touch := c.touchAll(m.told, m.named, slot)
	for i, now := range m.named {
		for fresh := now &^ m.told[i]; fresh != 0; fresh &= fresh - 1 {
			o := c.members[i*64+bits.TrailingZeros64(fresh)]
			o.heard.add(slot)
			touch(o)
			opened = true
		}
		for gone := m.told[i] &^ now; gone != 0; gone &= gone - 1 {
			o := c.members[i*64+bits.TrailingZeros64(gone)]
			o.heard.del(slot)
			touch(o)
		}
		m.told[i] = now
	}
	return opened
}

// Compile makes the table of the present state, out of the last one and the changes since.
func (c *Compiler) Compile() *Table {
	c.survey()
	if c.groups != nil {
		c.groups.Moved(func(slot int) {
			c.touchColumn(slot)
			if slot < len(c.members) && c.members[slot] != nil {
				c.touchRow(c.members[slot])
			}
		})
	}
	if c.last != nil && !c.anew && !c.changed {
		return c.last
	}
	n := len(c.members)
	t := &Table{rows: make([]*row, n)}
	if c.last != nil {
		*t = *c.last
		t.rows = make([]*row, n)
		copy(t.rows, c.last.rows)
	}
	if c.changed {
		c.list(t)
	}
	for slot, m := range c.members {
		switch r := t.rows[slot]; {
		case m == nil:
			t.rows[slot] = nil
		case r == nil || r.member != m:
			c.touchRow(m)
			t.rows[slot] = c.row(&row{}, m, slot)
		default:
			t.rows[slot] = c.row(r, m, slot)
		}
	}
	clear(c.stale)
	c.anew, c.changed = false, false
	c.last = t
	return t
}

// list notes the members of the slots in a table.
func (c *Compiler) list(t *Table) {
	n := len(c.members)
	t.players, t.listeners, t.spots = make([]*world.Player, n), make([]listener, n), make([]*world.Spot, n)
	t.clips, t.channels = make(set, c.words), make(map[*world.Place]set)
	for slot, m := range c.members {
		if m == nil {
			continue
		}
		t.players[slot], t.listeners[slot], t.spots[slot] = m.Player, listener{m.Receiver, m.epoch}, m.Player.Spot()
		if m.Clips {
			t.clips.add(slot)
		}
		if m.gathering != nil && m.Channels && c.hearing.has(slot) {
			whole := m.place.Whole() // a channel names its world, so whole worlds count
			if t.channels[whole] == nil {
				t.channels[whole] = make(set, c.words)
			}
			t.channels[whole].add(slot)
		}
	}
}

// row works out the stale parts of a member's row. The former one is not changed.
func (c *Compiler) row(r *row, m *Member, slot int) *row {
	stale := 0
	for i, w := range m.stale {
		m.stale[i] = w | c.stale[i]
		stale += bits.OnesCount64(m.stale[i])
	}
	if stale == 0 && !m.again {
		return r
	}
	former, now, changed := r, *r, m.again
	if m.again {
		now = row{near: r.near, may: r.may, wide: r.wide}
		c.fill(&now, m, slot)
	}
	placed := m.gathering != nil
	if placed != (r.near != nil) || stale > c.words/4 || len(r.near) != c.words && placed {
		now.near, now.may, now.wide = nil, nil, nil
		former = &row{}
		if placed {
			both := make(set, 2*c.words)
			now.near, now.may = both[:c.words:c.words], both[c.words:]
		}
		c.work(&now, former, slot, 0, c.words)
		changed = true
	} else {
		for i, w := range m.stale {
			for ; w != 0; w &= w - 1 {
				if at := i*64 + bits.TrailingZeros64(w); at < c.words && c.work(&now, former, slot, at, at+1) {
					changed = true
				}
			}
		}
	}
	clear(m.stale)
	m.again = false
	if !changed {
		return r
	}
	made := new(row) // not now itself: most rows stay
	*made = now
	return made
}

// work works out some words of a row and tells whether any differs. It copies sets that the row shares with the former
// one before it changes them.
func (c *Compiler) work(r, former *row, slot, from, to int) (changed bool) {
	near, may, wide := c.nobody[0][from:to], c.nobody[1][from:to], c.nobody[2][from:to]
	c.sort(slot, from, near, may, wide, nil)
	change := func(mine *set, former, now set) {
		if slices.Equal((*mine)[from:to], now) {
			return
		}
		changed = true
		if len(former) > 0 && &(*mine)[0] == &former[0] {
			*mine = slices.Clone(former)
		}
		copy((*mine)[from:to], now)
	}
	if r.near != nil {
		change(&r.near, former.near, near)
		change(&r.may, former.may, may)
	}
	if r.wide == nil {
		if wide.empty() {
			return changed
		}
		r.wide = make(set, c.words)
	}
	change(&r.wide, former.wide, wide)
	if wide.empty() && r.wide.empty() {
		r.wide = nil
	}
	return changed
}

// blank returns s emptied and as long as the sets now are.
func (c *Compiler) blank(s set) set {
	s = append(s[:0], make(set, c.words)...)
	return s
}
