package sight

import (
	"math/bits"
	"slices"
	"time"
)

// A player who sees without being seen has vanished. Three things look like it and are not. A player who hides others
// for themselves (an item in a lobby) sees nobody either. A plugin that tidies the list takes people off it who stand
// in the open. And a server may fail to send one player to another by mishap. Colleagues, who may see the vanished,
// must not unveil them. So:
//
// A player is blind to T if T has its body or an entry of it, and it has neither an entry nor a body of T. It counts
//   - once it has been in one place for a second,
//   - if its eyes are open: it is shown at least half of the players who have its body or an entry of it,
//   - and, if T has only an entry of it, if lists tell anything: its own list has at least half of the players who have
//     an entry of it, nobody has T's body without an entry of T, and it has an entry of somebody in T's world or is
//     there.
//
// A player who is blind so does not know about T, whatever others see: see [Session.Knows]. And T has vanished for all
// if one such player is there for each 16 who are shown T. Or T has vanished, open eyes or not, if T is not shown to
// half of the players whose bodies T has, or whose entries T has if T has no bodies.
//
// A player who could see T while T had vanished does not unveil T by that, when the blind ones have gone or have closed
// their eyes. It takes somebody who is shown T and was not, or has come since.

const (
	colleagues = 16              // who may see the vanished, for each who may not
	firmly     = 2 * time.Second // vanished, until a player counts as such for the evidence of others
)

// veil holds what is known about a player who sees others and is hidden from them.
type veil struct {
	from  set       // players blind to this one
	since time.Time // when it vanished
	last  time.Time // when somebody was last blind while it had vanished; zero: it has not
	back  bool      // one of these has been shown the player since
}

// testify finds what a player's sight says about others. It says nothing until it is settled. Of the players that it is
// shown, it speaks about the ones who are not shown everybody, and about others only if its eyes are open.
func (v *server) testify(q *seat, now time.Time) {
	settled := q.in && now.Sub(q.movedAt) >= Settled
	many := settled && (q.count > 1 || v.small)
	one := settled && !many && q.count == 1
	open := q.in && (v.small || 2*int(q.count) >= max(int(q.listedBy), len(q.seenBy))-v.firm)
	reads := open && (v.small || 2*int(q.lists) >= int(q.listedBy)-v.firm)
	put := func(s set, on bool) {
		if s.has(q.slot) != on {
			s[q.slot/64] ^= 1 << (q.slot % 64)
			v.testified = true
		}
	}
	put(v.witness, many)
	put(v.narrow, one)
	put(v.open, open)
	put(v.reads, reads)
}

// judge finds who has vanished.
func (v *server) judge(now time.Time, due func(time.Time)) (changed bool) {
	firm := 0
	v.veiled = slices.DeleteFunc(v.veiled, func(t *seat) bool {
		switch since := t.veil.since.Add(firmly); {
		case v.seats[t.slot] != t:
			return true
		case t.veil.last.IsZero():
			if slices.ContainsFunc(t.veil.from, func(word uint64) bool { return word != 0 }) {
				return false
			}
			t.veil = nil
			return true
		case now.Before(since):
			due(since)
		case t.in:
			firm++
		}
		return false
	})
	if small := v.n-firm < 3; small != v.small || firm != v.firm {
		v.small, v.firm = small, firm
		for _, q := range v.seats {
			if q != nil {
				v.testify(q, now)
			}
		}
	}
	v.settling = slices.DeleteFunc(v.settling, func(q *seat) bool {
		if q.settling = v.seats[q.slot] == q && q.in; !q.settling {
			return true
		}
		v.testify(q, now)
		if at := q.movedAt.Add(Settled); now.Before(at) {
			due(at)
		} else {
			q.settling = false
		}
		return !q.settling
	})
	if v.testified {
		v.testified = false
		for _, q := range v.seats {
			if q != nil {
				v.suspect(q)
			}
		}
	}
	v.suspected = slices.DeleteFunc(v.suspected, func(t *seat) bool {
		if t.suspected = false; v.seats[t.slot] != t || !t.in {
			return true
		}
		if v.find(t, now, due) {
			changed = true
		}
		return !t.suspected
	})
	return changed
}

// find finds whether a player has vanished, and from which players it is hidden. It stays suspected if it has to be
// looked at again.
func (v *server) find(t *seat, now time.Time, due func(time.Time)) (changed bool) {
	t.witnesses, t.blind, t.byEntry = 0, 0, false
	unseen := false
	if v.rule.Mode != Everyone {
		if v.rule.Mode == Seen {
			unseen = v.askBodies(t)
			v.askLists(t, now, due)
		}
		if t.witnesses == 0 && !t.offList {
			t.byEntry = true
			t.ask(t.entryOf, v.witness, v.narrow)
		}
	}
	half := t.witnesses > 0 && 2*t.blind >= t.witnesses
	all, surely, changed := v.blindTo(t, unseen)
	veiled := t.verdict && t.veil != nil && !t.veil.last.IsZero()
	enough := func(blind int) bool { return blind > 0 && colleagues*blind >= t.shownTo.count() }
	public := true
	switch {
	case v.rule.Mode == Everyone:
		t.verdict = false
	case half || enough(surely):
		if !half {
			t.witnesses, t.blind = int32(surely+t.shownTo.count()), int32(surely)
		}
		if x := t.veil; x != nil && surely > 0 {
			if x.last.IsZero() {
				x.since, x.back = now, false
			}
			x.last = now
		}
		public, t.verdict, t.judged = false, true, true
		t.knew.grow(v.words)
		copy(t.knew, t.shownTo)
		t.knewAt = now
	case veiled && !t.veil.back && !v.unveils(t):
		public = false
	case enough(all): // they may be about to be shown the player
		public = t.public.Load()
	case t.witnesses > 0 || veiled:
		t.verdict, t.judged = false, true
	case t.judged:
		t.verdict = t.verdict && !v.unveils(t)
		public = !t.verdict
	case now.Sub(t.loginAt) < Settled: // nobody can tell yet
		public = t.known()
		t.suspected = true
		due(t.loginAt.Add(Settled))
	case !t.known() && v.awaits(t): // nor now
		public = false
		t.suspected = true
	}
	if !t.verdict {
		if t.knew = nil; t.veil != nil {
			t.veil.last = time.Time{}
		}
	}
	return t.reveal(public) || changed
}

// blindTo finds the players who are blind to a player, and how many of them count by now for all. unseen tells whether
// any may be among those whose bodies it has.
func (v *server) blindTo(t *seat, unseen bool) (all, surely int, changed bool) {
	listed, shownTo, open := t.entryOf, t.shownTo[:len(t.entryOf)], v.open[:len(t.entryOf)]
	if v.rule.Mode == Everyone {
		listed = v.none
	}
	var any uint64
	for i, word := range listed {
		any |= word &^ shownTo[i] & open[i]
	}
	if any == 0 && !unseen && t.veil == nil {
		return 0, 0, false
	}
	whom := v.scratch
	copy(whom, listed)
	if unseen {
		for _, w := range t.bodies {
			whom.add(int(w))
		}
		for _, b := range t.odd {
			whom.add(int(b.slot))
		}
	}
	for i := range whom {
		whom[i] &= open[i] &^ shownTo[i]
	}
	if t.veil == nil {
		t.veil = &veil{}
		v.veiled = append(v.veiled, t)
	}
	x := t.veil
	x.from.grow(v.words)
	lists, mates := v.rule.Mode == TabList || !t.offList && t.bare == 0, set(nil)
	for i, word := range whom {
		was, now := x.from[i], uint64(0)
		for ; word != 0; word &= word - 1 {
			bit := word & -word
			at := i*64 + bits.TrailingZeros64(word)
			r := v.seats[at]
			switch {
			case r.entryOf.has(t.slot): // and only the body is missing
				continue
			case was&bit != 0 || v.rule.Mode == Seen && t.hasBody(at):
			case !lists || v.reads[i]&bit == 0:
				continue
			case r.world != t.world:
				if mates == nil {
					mates = v.mates(t)
				}
				if !meet(r.entryOf, mates) {
					continue
				}
			}
			now |= bit
			all++
			if (v.witness[i]|v.narrow[i])&bit != 0 {
				surely++
			}
		}
		if was&t.shownTo[i] != 0 {
			x.back = true
		}
		if now != was {
			x.from[i], changed = now, true
		}
	}
	if changed {
		t.net.news.reveal(t.Session)
	}
	return all, surely, changed
}

// mates returns the other players in a player's world.
func (v *server) mates(t *seat) set {
	all := v.blank()
	for _, o := range v.seats {
		if o != nil && o != t && o.in && o.world == t.world {
			all.add(o.slot)
		}
	}
	return all
}

func meet(a, b set) bool {
	for i, word := range a {
		if word&b[i] != 0 {
			return true
		}
	}
	return false
}

// unveils tells whether a player is shown T who was not when T was last found to have vanished, or who has come since.
func (v *server) unveils(t *seat) (yes bool) {
	t.shownTo.each(func(at int) {
		if v.seats[at].loginAt.After(t.knewAt) {
			yes = yes || v.witness.has(at) || v.narrow.has(at)
		} else {
			yes = yes || !t.knew.has(at)
		}
	})
	return yes
}

// askLists finds whether lists say anything about a player: not where somebody is shown its body and has no entry of
// it.
func (v *server) askLists(t *seat, now time.Time, due func(time.Time)) {
	bare := int(t.listedBy) < v.n-1 && slices.ContainsFunc(t.seenBy, func(l uint16) bool { return !v.seats[l].entryOf.has(t.slot) })
	switch {
	case !bare:
		t.bare = 0
		t.offList = t.offList && len(t.seenBy) == 0
	case t.bare == 0:
		t.bare = v.since(now)
		t.suspected = true
		due(now.Add(Grace))
	case now.Sub(v.born)-t.bare >= Grace:
		t.offList = true
	default:
		t.suspected = true
		due(v.born.Add(t.bare + Grace))
	}
}

// known tells whether somebody is shown the player, or everybody may know about them.
func (t *seat) known() bool {
	return t.public.Load() || slices.ContainsFunc(t.shownTo, func(word uint64) bool { return word != 0 })
}

// awaits tells whether a player whom this one sees has just come there, and may soon be a witness.
func (v *server) awaits(t *seat) bool {
	return slices.ContainsFunc(v.settling, func(w *seat) bool { return w != t && (t.entryOf.has(w.slot) || t.hasBody(w.slot)) })
}

// askBodies asks the players whose bodies a player has, and tells whether any of them may not be shown the player.
func (v *server) askBodies(t *seat) (unseen bool) {
	if len(t.odd) > 0 { // several may be of one
		whom := v.blank()
		for _, w := range t.bodies {
			whom.add(int(w))
		}
		for _, b := range t.odd {
			whom.add(int(b.slot))
		}
		t.ask(whom, v.witness, v.narrow)
		return true
	}
	for _, w := range t.bodies {
		at, bit := w/64, uint64(1)<<(w%64)
		shown := t.shownTo[at]
		unseen = unseen || shown&bit == 0
		if (v.witness[at]|v.narrow[at]&^shown)&bit == 0 {
			continue
		}
		t.witnesses++
		if shown&bit == 0 {
			t.blind++
		}
	}
	return unseen
}

func (t *seat) ask(whom, witness, narrow set) {
	for i, w := range whom {
		w &= witness[i] | narrow[i]&^t.shownTo[i]
		t.witnesses += int32(bits.OnesCount64(w))
		t.blind += int32(bits.OnesCount64(w &^ t.shownTo[i]))
	}
}
