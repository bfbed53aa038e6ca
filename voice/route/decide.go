package route

import (
	"math"
	"slices"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Rights restrict a member; the zero value restricts nothing.
type Rights struct {
	Muted        bool // neither its microphone nor its clips reach anybody
	NoSpeak      bool // its microphone does not
	NoSoundboard bool // its clips do not
	NoListen     bool // it hears nobody
}

// Groups divides the listeners of a talker by the word of groups about them.
type Groups interface {
	// Split divides the listeners who may hear the member in a slot, one bit each, from the 64 times at'th slot on:
	// together gets the listeners of its group, ears keeps the listeners that distance decides about.
	Split(slot, at int, ears, together []uint64)
	// Moved calls visit for every slot whose answer has changed since the last call.
	Moved(visit func(slot int))
}

// SetGroups sets who decides about groups; nil: nobody. Each Compile calls it.
func (c *Compiler) SetGroups(g Groups) { c.groups, c.all = g, true }

// SetDeclared sets the voices that are given outright, whatever groups, the spectator rule and distance say. The table
// is of the members' slots as they are now; nil gives nobody anything.
func (c *Compiler) SetDeclared(t *relation.Table) {
	for slot, m := range c.members {
		if m != nil && !slices.Equal(hearers(c.declared, slot), hearers(t, slot)) {
			c.touchRow(m)
		}
	}
	c.declared = t
}

func hearers(t *relation.Table, slot int) []uint64 {
	if t == nil {
		return nil
	}
	return t.Hearers(slot)
}

// SetSoundboard sets whether clips are heard at all.
func (c *Compiler) SetSoundboard(on bool) { c.soundboardOff, c.all = !on, true }

// SetRights sets what a member may do. Streams to it begin again when it may listen again.
func (c *Compiler) SetRights(m *Member, r Rights) {
	if m.rights.NoListen != r.NoListen {
		c.epochs++
		m.epoch = c.epochs
		c.changed = true
	}
	if m.rights != r {
		m.rights, m.again, c.anew = r, true, true
	}
}

// survey looks where everybody is, and whether they hear.
func (c *Compiler) survey() {
	if c.all {
		c.all, c.anew, c.changed = false, true, true
		c.gatherings, c.servers = make(map[*world.Place]*gathering), make(map[string]*server)
		for _, s := range []*set{&c.spectators, &c.hearing, &c.together, &c.nobody[0], &c.nobody[1], &c.nobody[2]} {
			*s = c.blank(*s)
		}
		for _, m := range c.members {
			if m != nil {
				m.facts, m.place, m.gathering = nil, nil, nil
				c.touchRow(m)
			}
		}
	}
	for slot, m := range c.members {
		if m == nil {
			continue
		}
		facts, hears := m.Player.Facts(), !m.deafened && !m.rights.NoListen
		if facts == m.facts && hears == c.hearing.has(slot) {
			continue
		}
		spectates := facts.Mode == world.Spectator
		if facts.Place == m.place && spectates == c.spectators.has(slot) && hears == c.hearing.has(slot) {
			m.facts = facts
			continue
		}
		if m.facts != nil && (facts.Place != m.place || spectates != c.spectators.has(slot)) {
			c.touchRow(m)
		}
		c.touchColumn(slot)
		c.changed = true
		c.hearing.put(slot, hears)
		c.spectators.put(slot, spectates)
		m.facts = facts
		if facts.Place != m.place {
			c.gather(m, facts.Place)
		}
		if m.gathering != nil {
			m.gathering.ears.put(slot, hears)
		}
	}
}

// gather puts a member into a place, nil for none.
func (c *Compiler) gather(m *Member, place *world.Place) {
	slot := m.Slot()
	if g := m.gathering; g != nil {
		g.ears.del(slot)
		g.server.set.del(slot)
		if g.server.members--; g.server.members == 0 {
			delete(c.servers, m.place.Backend)
		}
		if g.members--; g.members == 0 {
			delete(c.gatherings, m.place)
		}
	}
	if m.place, m.gathering = place, nil; place == nil {
		return
	}
	g := c.gatherings[place]
	if g == nil {
		v := c.servers[place.Backend]
		if v == nil {
			v = &server{set: make(set, c.words)}
			c.servers[place.Backend] = v
		}
		g = &gathering{ears: make(set, c.words), server: v, reach: c.policy.Gain.Range(place), zones: c.policy.Gain.Zones(place)}
		c.gatherings[place] = g
	}
	g.members++
	g.server.members++
	g.server.set.add(slot)
	m.gathering = g
}

// fill writes the part of a row that is about the talker alone.
func (c *Compiler) fill(r *row, m *Member, slot int) {
	r.member, r.factor = m, c.policy.Gain.Factor(m.tier)
	if g := m.gathering; g != nil {
		r.base, r.zones = g.reach, g.zones
	}
	if m.rights.NoSpeak {
		r.deny[Voice] = NoSpeak
	}
	switch {
	case c.soundboardOff: // before the permission
		r.deny[Clip] = SoundboardOff
	case m.rights.NoSoundboard:
		r.deny[Clip] = NoSoundboard
	}
	if m.rights.Muted { // before both
		r.deny[Voice], r.deny[Clip] = Muted, Muted
	}
}

// sort decides who hears the talker in a slot, in the order of the protocol's checks; see [row] for the three sets,
// which are equally long and begin with the word at. It is the only place that decides: to explain a pair is to watch
// where the listener is lost.
func (c *Compiler) sort(slot, at int, near, may, wide set, watch *watch) {
	m, n := c.members[slot], len(may)
	of := func(s set) set { return s[at:][:n] }
	copy(may, of(c.hearing))
	if i := slot/64 - at; i >= 0 && i < n {
		may[i] &^= 1 << (slot % 64) // its own voice would come back doubled
	}
	watch.after(Deaf, may, nil)
	for i, heard := range of(m.heard) {
		may[i] &= heard
	}
	watch.after(Untold, may, nil)

	clear(wide)
	if given := hearers(c.declared, slot); at < len(given) {
		for i, word := range given[at:min(at+n, len(given))] {
			wide[i] = may[i] & word
		}
	}
	watch.declared(wide)
	if c.spectators.has(slot) {
		switch c.policy.Spectators {
		case HeardByNobody:
			clear(may)
		case HeardBySpectators:
			for i, spectates := range of(c.spectators) {
				may[i] &= spectates
			}
		}
	}
	watch.after(SpectatorRule, may, wide)
	copy(near, may)
	if c.groups != nil {
		together := of(c.together)
		c.groups.Split(slot, at, near, together)
		for i, word := range together {
			may[i] = near[i] | word
			wide[i] |= word
		}
	}
	watch.after(GroupRule, may, wide)
	g := m.gathering
	if g == nil {
		clear(near)
	} else {
		for i, ears := range of(g.ears) {
			near[i] &= ears &^ wide[i]
		}
	}
	watch.after(ElsewhereWorld, near, wide)
	for i, shown := range of(m.shownTo) { // by distance only shown listeners hear: to be known of is not enough
		near[i] &= shown
		if g != nil { // no server shows or hides players of another one
			may[i] &= shown | wide[i] | ^g.server.set[at+i]
		}
	}
	watch.after(Hidden, near, wide)
	for i, close := range of(m.closeTo) {
		near[i] &= close
	}
	watch.after(Apart, near, wide)
}

// Verdict says why a listener hears a talker's microphone, or which check silences it first.
type Verdict uint8

// The verdicts, in the order of the checks.
const (
	ByDistance     Verdict = iota // heard, as loudly as the distance lets
	ByGroup                       // heard at full loudness: both are in one group
	ByDeclaration                 // heard at full loudness: it was declared
	ServerMuted                   // the talker is muted by the server
	MayNotSpeak                   // the talker lacks the permission
	Self                          // nobody hears their own voice
	Deaf                          // the listener has deafened itself, or see MayNotListen
	MayNotListen                  // the listener lacks the permission
	Hidden                        // the talker is not shown to the listener
	Untold                        // the listener has not been told of the talker yet
	SpectatorRule                 // the talker is a spectator whom the listener may not hear
	GroupRule                     // one of them is in a group that keeps the other out
	ElsewhereWorld                // they are not in one world, or it is not known where they are
	Apart                         // their worlds have one name, and neither has the other's body
	NoPosition                    // it is not known where in the world one of them is
	OutOfRange
)

var verdicts = [...]string{
	"distance", "group", "declared", "muted", "may not speak", "the same player", "deafened", "may not listen", "hidden",
	"not told yet", "spectator", "group rule", "another world", "not in one place", "no position", "out of range",
}

// String returns the verdict in a few words.
func (v Verdict) String() string { return verdicts[v] }

// Heard tells whether the listener hears the talker.
func (v Verdict) Heard() bool { return v <= ByDeclaration }

// Why explains a pair.
type Why struct {
	Verdict  Verdict
	Level    byte    // of a frame now; 255 is full loudness
	Distance float64 // blocks; NaN where the checks ended before it
	Range    float64 // blocks, the shorter of both ends with the tier in it; NaN as Distance
	Tier     talk.Tier
	Talker   *world.Place // nil when not known
	Listener *world.Place
}

// watch follows one listener through the checks. nil follows nobody.
type watch struct {
	slot   int
	lost   Verdict // ByDistance while it is not lost
	given  bool    // by declaration
	reason bool
}

func (w *watch) after(v Verdict, a, b set) {
	if w == nil || w.reason {
		return
	}
	if !a.has(w.slot) && (b == nil || !b.has(w.slot)) {
		w.lost, w.reason = v, true
	}
}

func (w *watch) declared(wide set) {
	if w != nil {
		w.given = wide.has(w.slot)
	}
}

// Explain tells whether the listener hears the talker's microphone now, and why. Both are in the compiler.
func (c *Compiler) Explain(talker, listener *Member) (why Why) {
	c.survey()
	slot, to := talker.Slot(), listener.Slot()
	why = Why{
		Distance: math.NaN(), Range: math.NaN(), Tier: talker.tier,
		Talker: talker.Player.Facts().Place, Listener: listener.Player.Facts().Place,
	}
	var r row
	c.fill(&r, talker, slot)
	switch r.deny[Voice] {
	case Muted:
		why.Verdict = ServerMuted
		return why
	case NoSpeak:
		why.Verdict = MayNotSpeak
		return why
	}
	if slot == to {
		why.Verdict = Self
		return why
	}
	wide, near, may := c.nobody[0], c.nobody[1], c.nobody[2]
	w := &watch{slot: to}
	c.sort(slot, 0, near, may, wide, w)
	switch {
	case w.lost == Deaf && !listener.deafened:
		why.Verdict = MayNotListen
		return why
	case w.lost == Untold && !listener.sees.has(slot):
		why.Verdict = Hidden
		return why
	case w.reason:
		why.Verdict = w.lost
		return why
	case wide.has(to):
		why.Verdict, why.Level = ByGroup, 255
		if w.given {
			why.Verdict = ByDeclaration
		}
		return why
	}
	mouth, ear := talker.Player.Pose(), listener.Player.Pose()
	switch {
	case mouth == nil || ear == nil:
		why.Verdict = NoPosition
		return why
	case mouth.Place != ear.Place:
		why.Verdict = ElsewhereWorld
		return why
	}
	at := gain.At(r.zones, r.base, mouth.X, mouth.Y, mouth.Z)
	why.Range = r.reach(ear, at, r.factor)
	dx, dy, dz := mouth.X-ear.X, mouth.Y-ear.Y, mouth.Z-ear.Z
	why.Distance = math.Sqrt(dx*dx + dy*dy + dz*dz)
	why.Level = gain.Level(1, dx*dx+dy*dy+dz*dz, why.Range)
	if why.Level == 0 {
		why.Verdict = OutOfRange
	}
	return why
}
