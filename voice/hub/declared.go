package hub

import (
	"slices"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Domains are the names of all declared domains, as of the last turn, sorted. Any goroutine may ask, and not write to them.
func (h *Hub) Domains() []string {
	if names := h.domains.Load(); names != nil {
		return *names
	}
	return nil
}

// relate compiles what has been declared for the members of this turn. The rules of who may see whom are compiled in
// like a mute, so that a radio stays a radio when a vanished player is on it; should the outcome show a listener's ears
// more than its eyes all the same, the turn is refused whole.
func (h *Hub) relate() error {
	if now := h.standing.Revision(); now != h.domainsAt {
		h.domainsAt = now
		names := h.standing.Names()
		h.domains.Store(&names)
	}
	if h.standing.Revision() == 0 { // nothing was ever declared
		return nil
	}
	t := &h.declarations
	t.Reset()
	h.views = h.views[:0]
	for _, m := range h.members {
		var f relation.Flags
		if m.mute.Kind != talk.NotMuted {
			f |= relation.Muted
		}
		if m.deaf() || !m.bits.has(Listen) {
			f |= relation.Deafened
		}
		slot := m.Slot()
		t.Participant(slot, f)
		for slot >= len(h.views) {
			h.views = append(h.views, nil)
		}
		h.views[slot] = m.Sees() // what it sees changes in place
		if !h.unlimited {
			t.Sight(slot, m.Sees())
		}
	}
	h.standing.Declare(t, func(player uuid.UUID) (int, bool) {
		if m := h.byID[player]; m != nil {
			return m.Slot(), true
		}
		return 0, false
	})
	// Who has been told of whom is kept by the routes, for declared voices and for others alike.
	table, err := h.relation.Compile(t, h.views)
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
