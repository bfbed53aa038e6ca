package sight

import "time"

// Ages of worlds come in ticks, and some builds send the remainder by this.
const (
	ageSlack = 40 // ticks by which reports may be late or early
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

// fits tells whether a player can be in a part, by what is credible on the server. surely is whether anything but the
// lack of evidence says so.
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
					*p = part{}
					best = int32(i)
					break
				}
			}
		}
		if best < 0 {
			best = int32(len(parts))
			parts = append(parts, new(part))
			v.worlds[q.world] = parts
		}
	}
	if best != q.at {
		changed = q.at >= 0
		v.unpart(q)
		q.at = best
		if parts[best].members == 0 {
			*parts[best] = part{}
		}
		parts[best].members++
		if q.part.Swap(best) != best {
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

// assignAll puts everybody into parts anew, since something else is credible now.
func (v *server) assignAll() {
	for _, q := range v.seats {
		if q != nil {
			v.unpart(q)
		}
	}
	clear(v.worlds)
	for _, q := range v.seats {
		if q != nil {
			was := q.part.Load()
			v.assign(q)
			if q.part.Load() != was {
				v.mark(q)
			}
		}
	}
}

// seenAcross believes a body between two whose worlds differ: what told them apart tells nothing on this server.
func (v *server) seenAcross(l, t *seat) {
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
}
