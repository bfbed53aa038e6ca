package network

import (
	"context"
	"net/netip"
	"strings"
	"sync"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/rcon"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// remote is a tool that has given a command over RCON. It gets everything until the command is done; later lines go to
// the log.
type remote struct {
	n *Network

	mu   sync.Mutex
	text strings.Builder
	done bool
}

// Allowed implements commands.Source: the password stands for every permission.
func (*remote) Allowed(string) bool { return true }

// Name implements commands.Source, as the methods below do.
func (*remote) Name() string            { return "rcon" }
func (*remote) Player() commands.Player { return nil }
func (*remote) Locale() string          { return "" }

func (r *remote) Send(t packet.Text) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		r.n.controller.log.Info("answer", "to", r.Name(), "text", t.String())
	case r.text.Len() < rcon.MaxAnswer:
		if r.text.Len() > 0 {
			r.text.WriteByte('\n')
		}
		r.text.WriteString(t.String())
	}
}

// answer returns the answer when the command is done.
func (r *remote) answer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	return r.text.String()
}

// remoteLine carries out a line that came over RCON, and returns the answer.
func (n *Network) remoteLine(ctx context.Context, _ netip.Addr, line string) string {
	r := &remote{n: n}
	n.controller.guard(r, line, func() { n.Commands().Line(ctx, r, line) })
	return r.answer()
}
