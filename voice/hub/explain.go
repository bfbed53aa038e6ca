package hub

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/why"
)

// Explain walks the checks for a pair. The table is compiled by the same decision.
func (h *Hub) Explain(talker, listener uuid.UUID) (w why.Answer, err error) {
	err = h.Read(func(now time.Time) {
		h.late = append(h.late, func() { w = h.explain(talker, listener, now) }) // after everything else in this turn
	})
	return w, err
}

func (h *Hub) explain(talker, listener uuid.UUID, now time.Time) why.Answer {
	s, l := h.byID[talker], h.byID[listener]
	w := why.Answer{Talker: h.called(talker), Listener: h.called(listener), TalkerHere: s != nil, ListenerHere: l != nil, Asked: now}
	if s != nil {
		w.Mute, w.TalkerGroup = s.mute, h.groupName(talker)
	}
	if l != nil {
		w.ListenerGroup = h.groupName(listener)
	}
	if s != nil && l != nil {
		w.Why = h.compiler.Explain(&s.Member, &l.Member)
		w.Sight = l.Player.Why(s.Player)
	}
	return w
}

// called returns the name of a player on the network, or else the UUID.
func (h *Hub) called(player uuid.UUID) string {
	if p := h.reg.Get(player); p != nil {
		return p.Name
	}
	return player.String()
}

func (h *Hub) groupName(player uuid.UUID) string {
	if g, ok := h.groups.Of(player); ok {
		return fmt.Sprintf("%q (%s)", g.Name, g.Type)
	}
	return ""
}
