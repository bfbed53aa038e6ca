package hub

import (
	"math/bits"
	"time"

	"github.com/earshot-mc/earshot/voice/roster"
)

// showRosters sends new rosters to those who need and may have one. It tells whether there was time for all.
func (h *Hub) showRosters(now time.Time, flush bool) (all bool) {
	begun, version := time.Now(), h.book.Version()
	defer func() { h.sending = time.Since(begun) }()
	for i, m := range h.members {
		if m.copy.Fresh(version, m.View()) && !m.cut || !m.copy.Due(now, flush) {
			continue
		}
		if m.telling && m.wants.Changes && m.client.Waits() {
			continue // tell looks again soon, the flush later
		}
		if i%16 == 15 && time.Since(begun) > max(tellTime, h.took) {
			return false // who has one is fresh now, so that the others come first
		}
		form := roster.Lines
		if m.wants.Changes {
			form = roster.Revisions
		}
		who, most := m.Sees(), form.Most
		if m.copy.Empty() {
			most = roster.First
		}
		s := h.book.Snapshot(who)
		if m.cut = s.Size(form) > most; m.cut {
			who = h.fit(m, form, most)
			s = h.book.Snapshot(who)
		}
		if m.copy.Take(s, m.wants.Status, form, version, m.View(), now) {
			m.client.ShowRoster(s)
			m.rosterAt = now
		} else if m.cut {
			m.copy.Again(now) // they walk about
		}
		h.compiler.Name(&m.Member, who)
		m.telling = true
	}
	return true
}

// fit returns as many of the members that one sees as a roster of most bytes has room for: the member, those in their
// group, those near by, and then the others.
func (h *Hub) fit(m *Member, form roster.Form, left int) []uint64 {
	sees := m.Sees()
	set := make([]uint64, len(sees))
	add := func(slot int) {
		word, bit := slot/64, uint64(1)<<(slot%64)
		if word >= len(sees) || sees[word]&bit == 0 || set[word]&bit != 0 {
			return
		}
		if n := h.book.Size(slot, form); n <= left {
			set[word] |= bit
			left -= n
		}
	}
	add(m.Slot())
	each(h.groups.Fellows(m.Slot()), add)
	if me := m.Player.Pose(); me != nil && me.Place != nil {
		for _, within := range [...]float64{128, 1024} {
			for _, o := range h.members {
				if p := o.Player.Pose(); p != nil && p.Place == me.Place {
					dx, dy, dz := p.X-me.X, p.Y-me.Y, p.Z-me.Z
					if dx*dx+dy*dy+dz*dz <= within*within {
						add(o.Slot())
					}
				}
			}
		}
	}
	each(sees, add)
	return set
}

// each calls what for the slots of a set.
func each(set []uint64, what func(slot int)) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			what(i*64 + bits.TrailingZeros64(word))
		}
	}
}
