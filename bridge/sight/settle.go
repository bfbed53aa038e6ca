package sight

import (
	"math/bits"
	"slices"
	"time"
)

// Settle works out the consequences of everything seen by now. moved is called, without a lock, for sessions that are
// in another part of their world than before. next is when something is due even if nothing happens, zero: never.
func (n *Network) Settle(now time.Time, moved func(*Session)) (changed bool, next time.Time) {
	n.poked.Store(false)
	n.dirty.Store(false)
	n.mu.Lock()
	all := make([]*server, 0, len(n.servers))
	for _, v := range n.servers {
		all = append(all, v)
	}
	n.mu.Unlock()
	var parted []*Session
	for _, v := range all {
		v.mu.Lock()
		c, due := v.settle(now, &parted)
		said := v.said
		v.said = nil
		v.mu.Unlock()
		changed = changed || c
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
		for _, s := range said {
			if n.Log != nil {
				n.Log.Warn(s, "server", v.name)
			}
		}
	}
	for _, s := range parted {
		if moved != nil {
			moved(s)
		}
	}
	return changed, next
}

// Dirty tells whether anything has been seen since the last [Network.Settle].
func (n *Network) Dirty() bool { return n.dirty.Load() }

func (v *server) settle(now time.Time, parted *[]*Session) (changed bool, next time.Time) {
	due := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	v.doubting = slices.DeleteFunc(v.doubting, func(l *seat) bool {
		if l.doubting = v.seats[l.slot] == l && len(l.gone) > 0; !l.doubting {
			return true
		}
		for _, d := range l.gone {
			if until := v.born.Add(d.until); now.Before(until) {
				due(until)
			} else {
				v.mark(l)
			}
		}
		return false
	})
	if v.rule.Mode != Everyone && v.rule.Bodies != Ignore {
		v.walk(now, due)
	}
	for _, q := range v.dirty {
		if q.dirty = false; v.seats[q.slot] != q {
			continue
		}
		if v.row(q, now, due) {
			changed = true
		}
		v.testify(q, now)
		v.suspect(q)
		v.clashes(q, now, due)
	}
	clear(v.dirty) // or sessions that have left are kept
	v.dirty = v.dirty[:0]
	for p, at := range v.clash {
		l, t := v.seats[p.l()], v.seats[p.t()]
		switch {
		case !l.hasBody(t.slot) || !differ(l, t):
			delete(v.clash, p)
		case l.world != t.world && l.bodies.has(t.slot) && t.bodies.has(l.slot) || now.Sub(at) >= persist:
			delete(v.clash, p)
			if v.seenAcross(l, t) {
				changed = true
			}
		default:
			due(at.Add(persist))
		}
	}
	if v.changedApart {
		v.changedApart, changed = false, true
	}
	if v.judge(now, due) {
		changed = true
	}
	v.parting = slices.DeleteFunc(v.parting, func(q *seat) bool {
		if q.parting = v.seats[q.slot] == q && !q.in; q.parting { // it is told when it is there
			return false
		}
		if v.seats[q.slot] == q {
			changed = true
			*parted = append(*parted, q.Session)
		}
		return true
	})
	v.listen(now)
	if len(v.dirty) > 0 { // a body has spoken for somebody who may speak for others now
		due(now)
	}
	return changed, next
}

func (v *server) blank() set { return make(set, v.words) }

// row works out the players that one is shown.
func (v *server) row(l *seat, now time.Time, due func(time.Time)) (changed bool) {
	// Shown are players with an entry whose bodies are not taken away, and those with a body.
	entries, taken, bodies, in := l.entryOf, v.none, v.scratch, v.in
	clear(bodies)
	switch {
	case !l.in:
		in = v.none
	case v.rule.Mode == Everyone:
		copy(bodies, in)
		bodies.del(l.slot)
	case v.rule.Mode == Seen:
		if l.taken != nil {
			l.taken.grow(v.words)
			taken = l.taken
		}
		for _, t := range l.bodies {
			bodies[t/64] |= 1 << (t % 64)
		}
		for _, b := range l.odd {
			bodies.add(int(b.slot))
		}
	}
	raw := func(i int) uint64 { return (entries[i]&^taken[i] | bodies[i]) & in[i] }
	if len(l.gone) > 0 { // players who are back, or were not shown anyway, need no wait
		l.gone = slices.DeleteFunc(l.gone, func(d doubt) bool {
			return raw(int(d.slot/64))>>(d.slot%64)&1 != 0 || !l.shown.has(int(d.slot))
		})
	}
	shown := l.shown
	entries, taken, bodies, in = entries[:len(shown)], taken[:len(shown)], bodies[:len(shown)], in[:len(shown)]
	for i, was := range shown {
		is := (entries[i]&^taken[i] | bodies[i]) & in[i]
		if is == was {
			continue
		}
		for lost := was &^ is; lost != 0; lost &= lost - 1 {
			t := i*64 + bits.TrailingZeros64(lost)
			if l.taken.has(t) || v.seats[t] == nil { // that was waited for already
				l.believe(t)
				continue
			}
			if until := v.born.Add(v.wait(l, t, now)); now.Before(until) {
				is |= 1 << (t % 64)
				due(until)
			} else {
				l.believe(t)
			}
		}
		l.count += int32(bits.OnesCount64(is) - bits.OnesCount64(was))
		v.pairs += bits.OnesCount64(is) - bits.OnesCount64(was)
		for diff := was ^ is; diff != 0; diff &= diff - 1 {
			t := i*64 + bits.TrailingZeros64(diff)
			changed = true
			o := v.seats[t]
			if is>>(t%64)&1 != 0 {
				o.shownTo.add(l.slot)
			} else {
				o.shownTo.del(l.slot)
			}
			l.note(o.Session)
			v.suspect(o)
		}
		shown[i] = is
	}
	return changed
}

// clashes looks for bodies of players who should be in another world.
func (v *server) clashes(l *seat, now time.Time, due func(time.Time)) {
	if len(v.worlds[l.world]) < 2 && (v.byNumber == 0 || len(v.worlds) < 2) {
		return
	}
	look := func(t *seat) {
		if !differ(l, t) {
			return
		}
		p := of(l.slot, t.slot)
		if _, ok := v.clash[p]; !ok {
			v.clash[p] = now
			due(now.Add(persist))
		}
	}
	for _, t := range l.bodies {
		look(v.seats[t])
	}
	for _, b := range l.odd {
		if t := v.seats[b.slot]; b.stay == t.stay {
			look(t)
		}
	}
}

// walk looks for missing bodies: of players who see, alone or both, or neither.
func (v *server) walk(now time.Time, due func(time.Time)) {
	v.oneSided(now, due)
	if now.Sub(v.walked) < time.Second/2 {
		return
	}
	v.walked = now
	v.mutual(now)
}

// fair tells whether a missing body of the one can mean anything: both live, and others are sent the bodies of both.
func fair(a, b *seat) bool { return !a.dead && !b.dead && !a.spectator && !b.spectator && a.in && b.in }

func (v *server) oneSided(now time.Time, due func(time.Time)) {
	if v.learnt() || v.rule.Mode != Seen {
		return
	}
	for p := range v.asym {
		if l, t := v.seats[p.l()], v.seats[p.t()]; l == nil || t == nil || !l.entryOf.has(t.slot) || !l.seenBy.has(t.slot) || l.hasBody(t.slot) {
			delete(v.asym, p)
		}
	}
	for _, l := range v.dirty {
		if v.seats[l.slot] == l {
			v.compare(l)
		}
	}
	v.lopsided = slices.DeleteFunc(v.lopsided, func(l *seat) bool {
		if v.seats[l.slot] == l && l.in {
			l.oneWay = slices.DeleteFunc(l.oneWay, func(t uint16) bool { return v.missing(l, v.seats[t], now, due) })
		}
		l.lopsided = v.seats[l.slot] == l && len(l.oneWay) > 0
		return !l.lopsided
	})
}

// compare finds players who have a player's body although it has none of theirs.
func (v *server) compare(l *seat) {
	l.oneWay = l.oneWay[:0]
	if len(l.odd) == 0 && slices.Equal(l.bodies, l.seenBy) {
		return
	}
	rest := l.bodies // both are sorted
	for _, t := range l.seenBy {
		for len(rest) > 0 && rest[0] < t {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] == t || !l.entryOf.has(int(t)) || l.taken.has(int(t)) || len(l.odd) > 0 && l.hasBody(int(t)) {
			continue
		}
		l.oneWay = append(l.oneWay, t)
	}
	if len(l.oneWay) > 0 && !l.lopsided {
		l.lopsided = true
		v.lopsided = append(v.lopsided, l)
	}
}

// missing tells whether a one-sided absence is due to count, and has it count.
func (v *server) missing(l, t *seat, now time.Time, due func(time.Time)) bool {
	p := of(l.slot, t.slot)
	if !fair(l, t) || l.world != t.world || !v.near(l, t, Near) {
		delete(v.asym, p)
		return false
	}
	since, ok := v.asym[p]
	if !ok {
		since = now
		v.asym[p] = now
	}
	for _, q := range [...]*seat{l, t} {
		if at := q.reason(); at.After(since) {
			since = at
		}
	}
	at := since.Add(Missing)
	if i, ok := l.loses(t.slot); ok {
		if gone := v.born.Add(l.lost[i].at); !l.reason().After(gone) && !t.reason().After(gone) {
			at = gone.Add(Grace)
		}
	}
	if now.Before(at) {
		due(at)
		return false
	}
	if l.taken == nil {
		l.taken = v.blank()
	}
	l.taken.put(t.slot)
	delete(v.asym, p)
	v.mark(l)
	return true
}

// mutual looks for pairs without each other's body although both stand together. Where no ages tell worlds apart, or
// the server has proven to send every body, they are in two worlds of one name.
func (v *server) mutual(now time.Time) {
	honest := v.honestFor >= lesson && !v.neverHonest || v.rule.Bodies == Hide
	counts := !v.learnt() && v.rule.Mode == Seen && (!v.ages || honest)
	learning := !v.neverHonest && v.honestFor < lesson && v.ages && v.n >= 4
	if !counts && !learning {
		clear(v.absent)
		return
	}
	wait := Absent
	if !v.ages {
		wait = Grace
	}
	type cell struct{ x, z int32 }
	cells := make(map[cell][]*seat)
	xs, zs := make([]float64, len(v.seats)), make([]float64, len(v.seats))
	ys := make([]float64, len(v.seats))
	still := make(map[pair]bool)
	bodies := false
	for i, q := range v.seats {
		if q == nil || !q.in || q.dead || q.spectator || !q.had {
			continue
		}
		x, y, z, known := q.where()
		if !known {
			continue
		}
		xs[i], ys[i], zs[i] = x, y, z
		at := cell{int32(x / Near), int32(z / Near)}
		for dx := int32(-1); dx <= 1; dx++ {
			for dz := int32(-1); dz <= 1; dz++ {
				for _, o := range cells[cell{at.x + dx, at.z + dz}] {
					if o.world != q.world || o.at != q.at {
						continue
					}
					if !within(x-xs[o.slot], y-ys[o.slot], z-zs[o.slot], Near) {
						continue
					}
					a, b := q.hasBody(o.slot), o.hasBody(q.slot)
					if a || b {
						if a && b && learning {
							bodies = true
							v.honestOf.put(q.slot)
							v.honestOf.put(o.slot)
						}
						continue
					}
					if !counts || q.apart.has(o.slot) {
						continue
					}
					p := of(min(q.slot, o.slot), max(q.slot, o.slot))
					still[p] = true
					since, ok := v.absent[p]
					if !ok {
						v.absent[p] = now
						continue
					}
					if now.Sub(since) < wait || now.Sub(q.movedAt) < wait || now.Sub(o.movedAt) < wait {
						continue
					}
					q.apart.put(o.slot)
					o.apart.put(q.slot)
					q.note(o.Session)
					o.note(q.Session)
					v.changedApart = true
				}
			}
		}
		cells[at] = append(cells[at], q)
	}
	for p := range v.absent {
		if !still[p] {
			delete(v.absent, p)
		}
	}
	if bodies {
		if since := now.Sub(v.honestAt); since < 2*time.Second && v.honestOf.count() >= 4 {
			v.honestFor += since
		}
		v.honestAt = now
	}
}

// listen logs when nobody on a server is shown to anybody.
func (v *server) listen(now time.Time) {
	if v.pairs > 0 || v.in.count() < 2 {
		v.dumb, v.dumbSaid = time.Time{}, false
		return
	}
	if v.dumb.IsZero() {
		v.dumb = now
	}
	if !v.dumbSaid && now.Sub(v.dumb) >= Silent {
		v.dumbSaid = true
		v.said = append(v.said, v.name+" shows none of its players to any other, so nobody hears anybody nearby there: if a plugin hides them all from player lists and from sight, set `visibility: everyone` for "+v.name)
	}
}
