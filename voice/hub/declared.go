package hub

import (
	"slices"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Domains returns the names of all declared domains, as of the last turn, sorted. Any goroutine may call it, and must
// not write to them.
func (h *Hub) Domains() []string {
	if names := h.domains.Load(); names != nil {
		return *names
	}
	return nil
}

// relate compiles the declarations for the members of this turn. The rules of who may see whom are compiled in like a
// mute, so that a radio stays a radio when a vanished player is on it. Should a listener hear more players than they
// see all the same, the whole turn is refused.
func (h *Hub) relate() error {
	if now := h.standing.Revision(); now != h.domainsAt {
		h.domainsAt = now
		names := h.standing.Names()
		h.domains.Store(&names)
	}
	if h.standing.Empty() {
		if h.undeclared = nil; h.declared != nil {
			h.declared = nil
			h.compiler.SetDeclared(nil)
		}
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
		h.views[slot] = m.Sees() // its contents change in place
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
	// The routes keep who has been told of whom, for declared voices and for others alike.
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
