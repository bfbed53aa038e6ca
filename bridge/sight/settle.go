package sight

import (
	"math/bits"
	"time"
)

// Settle works out what follows from what has been seen by now. moved is called, without a lock, for sessions that are
// in another part of their world than before. next is when something is due without anything's happening, zero: never.
func (n *Network) Settle(now time.Time, moved func(*Session)) (changed bool, next time.Time) {
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
	for p, until := range v.gone {
		switch l := v.seats[p.l()]; {
		case l == nil || v.seats[p.t()] == nil:
			delete(v.gone, p)
		case !now.Before(until):
			v.mark(l)
		default:
			due(until)
		}
	}
	if v.rule.Mode != Everyone && v.rule.Bodies != Ignore {
		v.walk(now, due)
	}
	if v.anyDirty {
		v.anyDirty = false
		in := v.blank()
		for i, q := range v.seats {
			if q != nil && q.in {
				in.add(i)
			}
		}
		for _, q := range v.seats {
			if q == nil || !q.dirty {
				continue
			}
			q.dirty = false
			if v.row(q, in, now, due) {
				changed = true
			}
			v.clashes(q, now, due)
		}
	}
	for p, at := range v.clash {
		l, t := v.seats[p.l()], v.seats[p.t()]
		switch {
		case !l.bodyOf.has(t.slot) || l.at == t.at || l.world != t.world:
			delete(v.clash, p)
		case now.Sub(at) >= persist:
			delete(v.clash, p)
			v.seenAcross(l, t)
			changed = true
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
	for _, q := range v.seats {
		if q != nil && q.in && q.reported != q.part.Load() {
			q.reported = q.part.Load()
			changed = true
			*parted = append(*parted, q.Session)
		}
	}
	v.listen(now)
	return changed, next
}

func (v *server) blank() set { return make(set, v.words) }

// row works out whom a player is shown.
func (v *server) row(l *seat, in set, now time.Time, due func(time.Time)) (changed bool) {
	for i, was := range l.shown {
		var raw uint64
		switch v.rule.Mode {
		case Everyone:
			raw = ^uint64(0)
		case TabList:
			raw = l.entryOf[i]
		default:
			raw = l.entryOf[i]
			if i < len(l.taken) {
				raw &^= l.taken[i]
			}
			raw |= l.bodyOf[i]
		}
		raw &= in[i]
		if i == l.slot/64 {
			raw &^= 1 << (l.slot % 64)
		}
		if !l.in {
			raw = 0
		}
		if len(v.gone) > 0 {
			for back := raw & was; back != 0; back &= back - 1 {
				delete(v.gone, of(l.slot, i*64+bits.TrailingZeros64(back)))
			}
		}
		is := raw
		for lost := was &^ raw; lost != 0; lost &= lost - 1 {
			t := i*64 + bits.TrailingZeros64(lost)
			p := of(l.slot, t)
			until, doubted := v.gone[p]
			switch {
			case l.taken.has(t) || v.seats[t] == nil: // that was waited for already
				delete(v.gone, p)
			case !doubted:
				until = now.Add(Grace)
				v.gone[p] = until
				fallthrough
			case now.Before(until):
				is |= 1 << (t % 64)
				due(until)
			default:
				delete(v.gone, p)
			}
		}
		for diff := was ^ is; diff != 0; diff &= diff - 1 {
			t := i*64 + bits.TrailingZeros64(diff)
			changed = true
			if o := v.seats[t]; o != nil {
				if is>>(t%64)&1 != 0 {
					o.shownTo.add(l.slot)
				} else {
					o.shownTo.del(l.slot)
				}
			}
		}
		l.shown[i] = is
	}
	if changed {
		l.version.Add(1)
	}
	return changed
}

// clashes looks for bodies of those who are said to be in another world.
func (v *server) clashes(l *seat, now time.Time, due func(time.Time)) {
	if all := v.worlds[l.world]; len(all) < 2 {
		return
	}
	for _, b := range l.bodies {
		t := v.seats[b.slot]
		if t == nil || t.world != l.world || t.at == l.at || b.stay != t.stay {
			continue
		}
		p := of(l.slot, t.slot)
		if _, ok := v.clash[p]; !ok {
			v.clash[p] = now
			due(now.Add(persist))
		}
	}
}

// judge finds who has vanished: who sees at least as many who are not shown him as are.
func (v *server) judge(now time.Time, due func(time.Time)) (changed bool) {
	ready, many, one := v.blank(), v.blank(), v.blank()
	for i, q := range v.seats {
		if q == nil || !q.in {
			continue
		}
		if since := now.Sub(q.movedAt); since >= Settled {
			ready.add(i)
		} else {
			due(q.movedAt.Add(Settled))
		}
		switch n := q.shown.count(); {
		case n > 1 || v.n < 3:
			many.add(i)
		case n == 1:
			one.add(i)
		}
	}
	for _, t := range v.seats {
		if t == nil || !t.in {
			continue
		}
		t.witnesses, t.blind = 0, 0
		if v.rule.Mode != Everyone {
			if v.rule.Mode == Seen {
				t.ask(t.bodyOf, ready, many, one)
			}
			if t.witnesses == 0 {
				t.ask(t.entryOf, ready, many, one)
			}
		}
		public := true
		switch {
		case v.rule.Mode == Everyone:
		case t.witnesses > 0:
			t.verdict, t.judged = 2*t.blind >= t.witnesses, true
			public = !t.verdict
		case t.judged:
			public = !t.verdict
		case now.Sub(t.loginAt) < Settled: // nobody can tell yet
			public = t.shownTo.count() > 0 || t.public.Load()
			due(t.loginAt.Add(Settled))
		}
		if t.public.Load() != public {
			t.public.Store(public)
			changed = true
		}
	}
	return changed
}

func (t *seat) ask(whom, ready, many, one set) {
	for i, w := range whom {
		w &= ready[i] & (many[i] | one[i]&^t.shownTo[i])
		t.witnesses += bits.OnesCount64(w)
		t.blind += bits.OnesCount64(w &^ t.shownTo[i])
	}
}

// walk looks for bodies that are missing: of those who see, alone or both, or neither.
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
	if v.culls || v.rule.Mode != Seen {
		return
	}
	for p := range v.asym {
		if l, t := v.seats[p.l()], v.seats[p.t()]; l == nil || t == nil || !l.entryOf.has(t.slot) || !l.seenBy.has(t.slot) || l.bodyOf.has(t.slot) {
			delete(v.asym, p)
		}
	}
	for _, l := range v.seats {
		if l == nil || !l.in {
			continue
		}
		for i, word := range l.seenBy {
			word &= l.entryOf[i] &^ l.bodyOf[i]
			if i < len(l.taken) {
				word &^= l.taken[i]
			}
			for ; word != 0; word &= word - 1 {
				t := v.seats[i*64+bits.TrailingZeros64(word)]
				p := of(l.slot, t.slot)
				if !fair(l, t) || l.world != t.world || !v.near(l, t, Near) {
					delete(v.asym, p)
					continue
				}
				since, ok := v.asym[p]
				if !ok {
					since = now
					v.asym[p] = now
				}
				for _, at := range []time.Time{l.movedAt, t.movedAt} {
					if at.After(since) {
						since = at
					}
				}
				at := since.Add(Missing)
				if x, ok := v.lost[p]; ok && !l.movedAt.After(x.at) && !t.movedAt.After(x.at) {
					at = x.at.Add(Grace)
				}
				if now.Before(at) {
					due(at)
					continue
				}
				if l.taken == nil {
					l.taken = v.blank()
				}
				l.taken.put(t.slot)
				delete(v.asym, p)
				v.mark(l)
			}
		}
	}
}

// mutual looks for pairs neither of whom has the other's body although both stand together: where no ages tell worlds
// apart, or the server has proven to send every body, they do not.
func (v *server) mutual(now time.Time) {
	honest := v.honestFor >= lesson && !v.neverHonest || v.rule.Bodies == Hide
	counts := !v.culls && v.rule.Mode == Seen && (!v.ages || honest)
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
					a, b := q.bodyOf.has(o.slot), o.bodyOf.has(q.slot)
					if a || b {
						if a && b && learning {
							bodies = true
							v.honestOf.put(q.slot)
							v.honestOf.put(o.slot)
						}
						continue
					}
					if !counts || q.apart.has(o.slot) || now.Sub(q.movedAt) < wait || now.Sub(o.movedAt) < wait {
						continue
					}
					p := of(min(q.slot, o.slot), max(q.slot, o.slot))
					still[p] = true
					since, ok := v.absent[p]
					if !ok {
						v.absent[p] = now
						continue
					}
					if now.Sub(since) < wait {
						continue
					}
					q.apart.put(o.slot)
					o.apart.put(q.slot)
					q.version.Add(1)
					o.version.Add(1)
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

// listen says in the log when nobody on a server is shown to anybody.
func (v *server) listen(now time.Time) {
	in, shown := 0, false
	for _, q := range v.seats {
		if q != nil && q.in {
			in++
			shown = shown || q.shown.count() > 0
		}
	}
	if in < 2 || shown {
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
