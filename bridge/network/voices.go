package network

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/store"
)

// voices is the voice gateway as commands see it, from assemble on: itself, and what it does not know.
type voices struct {
	*voice.Gateway
	store *store.Store
	world *world.Registry
}

// SpeakerBook implements commands.Voice, as the methods below do.
func (v *voices) SpeakerBook() commands.SpeakerBook { return v.Gateway.SpeakerBook() }

func (v *voices) Where(player uuid.UUID) *world.Pose {
	if p := v.world.Get(player); p != nil {
		return p.Pose()
	}
	return nil
}

func (v *voices) Unstored() (changes int, problem string) {
	h := v.store.Health()
	if h.OK { // and waiting changes are being stored
		return 0, ""
	}
	return h.Waiting, h.Problem
}
