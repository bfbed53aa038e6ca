package network

import (
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/voice/mute"
)

// voices is the voice gateway as commands see it.
type voices struct{ n *Network }

func (v voices) Mute(m commands.Mute) error {
	return v.n.parts.gateway.Mute(mute.Record{Player: m.Player, Name: m.Name, By: m.By, Until: m.Until, Reason: m.Reason}) // uuid.Nil is mute.Everybody
}

func (v voices) Unstored() (changes int, problem string) {
	h := v.n.parts.store.Health()
	if h.OK { // and what waits is being stored
		return 0, ""
	}
	return h.Waiting, h.Problem
}

func (v voices) Unmute(player uuid.UUID) (bool, error) { return v.n.parts.gateway.Unmute(player) }

func (v voices) Mutes() (all []commands.Mute, err error) {
	list, err := v.n.parts.gateway.Mutes()
	for _, r := range list {
		all = append(all, commands.Mute{Player: r.Player, Name: r.Name, By: r.By, Until: r.Until, Reason: r.Reason})
	}
	return all, err
}

func (v voices) Why(speaker, listener uuid.UUID) (all []commands.Clause, err error) {
	w, err := v.n.parts.gateway.Why(speaker, listener)
	if p := v.n.world.Get(speaker); p != nil { // who has no voice connection has no name there
		w.Speaker = p.Name
	}
	if p := v.n.world.Get(listener); p != nil {
		w.Listener = p.Name
	}
	for _, c := range w.Clauses() {
		all = append(all, commands.Clause(c))
	}
	return all, err
}
