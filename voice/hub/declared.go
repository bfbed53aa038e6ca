package hub

import (
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/relation"
)

// relate compiles what has been declared for the members of this turn. The rules of who may see whom are compiled in
// like a mute, so that a radio stays a radio when a vanished player is on it; should the outcome show a listener's ears
// more than its eyes all the same, the turn is refused whole. limited is false in tests of that.
func (h *Hub) relate(limited bool) error {
	if h.standing.Domains.Revision()+h.standing.Listens.Revision()+h.standing.Edges.Revision() == 0 {
		return nil // nothing was ever declared
	}
	t := &h.declarations
	t.Reset()
	h.views, h.reached = h.views[:0], h.reached[:0]
	for _, m := range h.members {
		var f relation.Flags
		if m.mute.Kind != line.NotMuted {
			f |= relation.Muted
		}
		if m.deafenSeen&1 == 1 || !m.bits.has(Listen) {
			f |= relation.Deafened
		}
		slot := m.Slot()
		t.Participant(slot, m.session, f)
		for slot >= len(h.views) {
			h.views, h.reached = append(h.views, nil), append(h.reached, math.MaxUint64)
		}
		h.views[slot] = m.Sees()
		if limited {
			t.Sight(slot, m.Sees())
		}
	}
	h.standing.Declare(t, func(player uuid.UUID) (int, bool) {
		if m := h.byID[player]; m != nil {
			return m.Slot(), true
		}
		return 0, false
	})
	// Who has been told of whom is kept by the routes themselves, for declared voices and for others alike.
	table, err := h.relation.Compile(t, h.views, h.reached)
	if err != nil {
		return err
	}
	if !slices.Equal(table.Undeclared, h.undeclared) {
		h.undeclared = table.Undeclared
		if len(h.undeclared) > 0 {
			slices.Sort(h.undeclared)
			h.Log.Warn("somebody listens to a domain that does not exist, and hears nothing", "domains", h.undeclared)
		}
	}
	h.declared = table
	h.compiler.SetDeclared(table)
	return nil
}
