package sight

import (
	"slices"
	"time"
)

// Ages of worlds come in ticks, and some builds send the remainder by this.
const (
	// ageSlack is by how many ticks reports may be late or early. A client on a slow line, which is still being sent
	// the world, hears of everything so much later than others. Worlds whose ages are closer are taken for one.
	ageSlack = 400
	agePace  = 21 // ticks a second at most
	ageRound = 192_000
)

// oneWorld tells whether two reports of an age, the first no later than the second, can be of one world.
func oneWorld(a int64, at time.Time, b int64, bt time.Time) bool {
	passed := int64(bt.Sub(at) * agePace / time.Second)
	d := (b - a + ageSlack) % ageRound
	if d < 0 {
		d += ageRound
	}
	return d <= passed+2*ageSlack
}

// fits tells whether a player can be in a part, by what is credible on the server. surely tells whether evidence says
// so, and not only its absence.
func (v *server) fits(q *seat, p *part) (fits, surely bool) {
	if v.seeds && !v.noSeeds && q.seed != 0 && p.seed != 0 {
		if q.seed != p.seed {
			return false, false
		}
		surely = true
	}
	if !v.noAges && !q.ageAt.IsZero() && !p.ageAt.IsZero() {
		one := oneWorld(p.age, p.ageAt, q.age, q.ageAt)
		if q.ageAt.Before(p.ageAt) {
			one = oneWorld(q.age, q.ageAt, p.age, p.ageAt)
		}
		if !one {
			return false, false
		}
		surely = true
	}
	return true, surely
}

// assign puts a player into the part of its world that fits, and tells whether that is another one.
func (v *server) assign(q *seat) (changed bool) {
	if q.world == "" {
		return false
	}
	parts := v.worlds[q.world]
	best := int32(-1)
	if q.at >= 0 {
		if ok, _ := v.fits(q, parts[q.at]); ok {
			best = q.at
		} else if parts[q.at].members == 1 { // nobody else is concerned
			parts[q.at].ageAt, parts[q.at].seed = time.Time{}, 0
		}
	}
	if best < 0 || q.at < 0 {
		best = -1
		for i, p := range parts {
			i := int32(i)
			if p.members == 0 || i == q.at && p.members == 1 {
				continue
			}
			ok, surely := v.fits(q, p)
			if ok && surely {
				best = i
				break
			}
			if ok && (best < 0 || p.members > parts[best].members) {
				best = i
			}
		}
		if best < 0 && q.at >= 0 && parts[q.at].members == 1 {
			best = q.at
		}
		if best < 0 {
			for i, p := range parts {
				if p.members == 0 {
					best = int32(i)
					break
				}
			}
		}
		if best < 0 {
			best = int32(len(parts))
			parts = append(parts, &part{world: &World{q.world, int(best)}})
			v.worlds[q.world] = parts
		}
	}
	if best != q.at {
		changed = q.at >= 0
		v.unpart(q)
		q.at = best
		if parts[best].members == 0 {
			*parts[best] = part{world: parts[best].world}
		}
		parts[best].members++
		was := q.World()
		if q.located.Store(parts[best].world); q.World() != was {
			changed = true
			if !q.parting {
				q.parting = true
				v.parting = append(v.parting, q)
			}
		}
		if changed {
			v.mark(q)
		}
	}
	p := parts[best]
	if !q.ageAt.IsZero() && !q.ageAt.Before(p.ageAt) {
		p.age, p.ageAt = q.age, q.ageAt
	}
	if q.seed != 0 && p.seed == 0 {
		p.seed = q.seed
	}
	return changed
}

// unpart takes a player out of its part.
func (v *server) unpart(q *seat) {
	if q.at >= 0 {
		v.worlds[q.world][q.at].members--
		if all := v.worlds[q.world]; len(all) == 1 && all[0].members == 0 {
			delete(v.worlds, q.world)
		}
		q.at = -1
	}
}

// assignAll puts everybody into parts once more, since something else is credible now.
func (v *server) assignAll() {
	for _, q := range v.seats {
		if q != nil {
			v.unpart(q)
		}
	}
	clear(v.worlds)
	for _, q := range v.seats {
		if q != nil {
			v.assign(q) // which marks those who are elsewhere now
		}
	}
}

// seenAcross believes a body between two whose worlds differ: what told them apart tells nothing on this server, or one
// of them has only been told a number. It tells whether that changes anything.
func (v *server) seenAcross(l, t *seat) (changed bool) {
	if l.world != t.world {
		return v.recognise(l, t) || v.recognise(t, l)
	}
	if l.seed != 0 && t.seed != 0 && l.seed != t.seed && !v.noSeeds {
		v.noSeeds = true
		v.said = append(v.said, v.name+" sends players of one world different seeds: seeds tell no worlds apart there")
	}
	if !l.ageAt.IsZero() && !t.ageAt.IsZero() && !v.noAges {
		one := oneWorld(l.age, l.ageAt, t.age, t.ageAt)
		if t.ageAt.Before(l.ageAt) {
			one = oneWorld(t.age, t.ageAt, l.age, l.ageAt)
		}
		if !one {
			v.noAges = true
			v.said = append(v.said, v.name+" sends players of one world different ages: ages tell no worlds apart there")
		}
	}
	v.assignAll()
	return true
}

// Clients before 1.16 are told the number of a dimension; later ones know that as one of three names. A translator
// makes every world that such a server lets an old client into a number: so worlds with names of their own have one of
// these names, too. Bodies say which world it is: a client that has the body of somebody there, or is that body, is
// there until its next login or respawn. Nothing else says it, so two old clients with one number, in two worlds, never
// get into one of them.

// plain tells whether a name is one of the three that stand for a number.
func plain(world string) bool {
	return world == "minecraft:overworld" || world == "minecraft:the_nether" || world == "minecraft:the_end"
}

// sure tells whether the name of a player's world is its own.
func (q *seat) sure() bool { return !q.ByNumber || q.world != q.told }

// may tells whether a player can be in a world of this name, by what its client has been told.
func (q *seat) may(world string) bool {
	return q.ByNumber && q.told != "" && world != "" && (world == q.told || !plain(world))
}

// differ tells whether two are in two worlds by what is known, although a body of the one in the other's would mean
// that it is one world.
func differ(l, t *seat) bool {
	if l.world == t.world {
		return l.at != t.at
	}
	return t.sure() && l.may(t.world) || l.sure() && t.may(l.world)
}

// recognise puts a player whose client was told a number into the world of another one, since one has the body of the
// other. The other is surely there. Where ages or seeds say otherwise, both have to have it.
func (v *server) recognise(q, there *seat) bool {
	if !there.sure() || !q.may(there.world) || there.at < 0 || v.vouched(q) {
		return false
	}
	both := q.bodies.has(there.slot) && there.bodies.has(q.slot)
	if fits, _ := v.fits(q, v.worlds[there.world][there.at]); !fits && !both {
		return false
	}
	v.unpart(q)
	q.world = there.world
	v.assign(q)
	v.mark(q)
	for _, l := range q.seenBy { // who may be recognised by this one now
		v.mark(v.seats[l])
	}
	return true
}

// vouched tells whether bodies say that a player is where it is taken to be.
func (v *server) vouched(q *seat) bool {
	there := func(o *seat) bool { return o.sure() && o.world == q.world }
	for _, t := range q.bodies {
		if there(v.seats[t]) {
			return true
		}
	}
	for _, b := range q.odd {
		if o := v.seats[b.slot]; b.stay == o.stay && there(o) {
			return true
		}
	}
	for _, at := range q.seenBy {
		l := v.seats[at]
		if there(l) && (l.bodies.has(q.slot) || slices.ContainsFunc(l.odd, func(b body) bool { return int(b.slot) == q.slot && b.stay == q.stay })) {
			return true
		}
	}
	return false
}
