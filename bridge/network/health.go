package network

import (
	"time"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/voice/store"
)

// health returns the content of /healthz.
func (n *Network) health(p *parts) admin.Health {
	h := admin.Health{OK: true, State: "running", Details: map[string]any{
		"version": n.opt.Version, "players": p.server.Online(), "voice_sockets": p.gateway.Stats().Sockets,
	}}
	describe(&h, p.store.Health())
	if p.ending.stopping.Load() {
		h.OK, h.State = false, "stopping"
	}
	return h
}

// describe adds the health of the state to /healthz. A lost server is no reason to end the program: voice goes on.
func describe(h *admin.Health, s store.Health) {
	h.Details["state_server"], h.Details["state_waiting"], h.Details["state_set_aside"] = s.Where, s.Waiting, s.Aside
	if len(s.Damage) > 0 {
		h.Details["state_restored"], h.Details["state_missing"], h.Details["state_damage"] = s.Restored, s.Missing, s.Damage
	}
	if s.Missing > 0 {
		h.State = "degraded"
		h.Details["state_advice"] = "restore missing records with earshot state import FILE, from a file of earshot state export"
	}
	if !s.OK {
		h.State = "degraded"
		h.Details["state_problem"], h.Details["state_problem_since"] = s.Problem, s.Since.UTC().Format(time.RFC3339)
	}
}
