package hub

import (
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/talk"
)

// MuteOf returns the mute on a player as the last turn knew it, with any client or none. Any goroutine may call it; it
// does not wait.
func (h *Hub) MuteOf(player uuid.UUID) mute.State {
	s, _ := h.silenced.Load(player)
	state, _ := s.(mute.State)
	return state
}

// tellMuted calls Muted for each player on the network whose mute differs from the one that they were told of. Players
// without a voice connection are told, too: they would connect in vain. Players who come back are told again.
func (h *Hub) tellMuted(now time.Time) {
	h.muteNews = false
	if h.Muted == nil || h.mutes.Len() == 0 && len(h.muteKnown) == 0 {
		return
	}
	for p, was := range h.muteKnown {
		if h.reg.Get(p.ID) != p { // left, or came back by another connection
			delete(h.muteKnown, p)
			h.silenced.CompareAndDelete(p.ID, was)
		}
	}
	for _, p := range h.reg.All() {
		if p.Facts().Place == nil {
			continue // and whether the player is exempt is not known
		}
		was, is := h.muteKnown[p], h.mutes.State(p.ID, h.exempt(p), now)
		if is == was {
			continue
		}
		if is.Kind == talk.NotMuted {
			delete(h.muteKnown, p)
			h.silenced.Delete(p.ID)
		} else {
			h.muteKnown[p] = is
			h.silenced.Store(p.ID, is)
		}
		h.Muted(p.ID, was, is)
	}
}

// exempt tells whether the mute of everybody leaves a player out.
func (h *Hub) exempt(p *world.Player) bool {
	if m := h.byID[p.ID]; m != nil {
		return m.bits.has(MuteExempt)
	}
	return h.Permissions != nil && h.Permissions(p.ID).has(MuteExempt)
}
