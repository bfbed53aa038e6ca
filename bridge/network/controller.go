package network

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
)

// controller decides about players' chat and commands: it finds those that are ours and carries them out.
type controller struct {
	n        *Network
	log      *slog.Logger
	counters command.Counters
	ending   sync.WaitGroup // commands of players who have left
}

// table and options return what is in force now, for filters.
func (c *controller) table() *command.Table[commands.Source] { return c.n.policy().commands.Table() }
func (c *controller) options() *command.Options              { return &c.n.policy().options }

// close waits for commands that run. The sessions are over by then.
func (c *controller) close() { c.ending.Wait() }

// Wants implements session.Hooks.
func (c *controller) Wants(v *proto.Version, dir proto.Dir) []proto.Packet {
	return command.Wants(v, dir)
}

// Hook implements session.Hooks.
func (c *controller) Hook(p session.Player) session.Hook {
	h := &hook{controller: c, src: &source{player: p, players: c.n.players}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.filter = command.NewFilter[commands.Source](c.table, h.src, p.Protocol(), c.options, &c.counters)
	return h
}

// hook decides about one player's commands.
type hook struct {
	*controller
	src    *source
	filter *command.Filter[commands.Source]
	queue  command.Queue
	ctx    context.Context
	cancel func()
}

// Serverbound implements session.Hook.
func (h *hook) Serverbound(p proto.Packet, body []byte) session.Answer {
	d := h.filter.Serverbound(p, body)
	switch d.Action {
	case command.Run:
		if !h.queue.Post(func() { h.run(d.Command) }) {
			h.src.Send(h.n.say(h.src.Locale(), "too-fast"))
		}
		return session.Answer{Drop: true, Ack: d.Ack}
	case command.Answer:
		return session.Answer{Reply: d.Body}
	case command.Drop:
		return session.Answer{Drop: true}
	case command.Kick:
		return session.Answer{Kick: &d.Reason}
	case command.Flood:
		return session.Answer{Kick: &d.Reason, Flood: true}
	}
	return session.Answer{}
}

// run carries a command out.
func (h *hook) run(text string) {
	h.guard(h.src, text, func() { h.n.Commands().Execute(h.ctx, h.src, text) })
}

// guard has run carry out what src typed. A panic costs the command only.
func (c *controller) guard(src commands.Source, text string, run func()) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("panic in a command", "by", src.Name(), "text", text, "panic", v, "stack", string(debug.Stack()))
			src.Send(c.n.say(src.Locale(), "internal"))
		}
	}()
	run()
}

// Clientbound implements session.Hook.
func (h *hook) Clientbound(p proto.Packet, body []byte) []byte { return h.filter.Clientbound(p, body) }

// Announce implements session.Hook.
func (h *hook) Announce() []byte { return h.filter.Announce() }

// Reset implements session.Hook.
func (h *hook) Reset() {
	h.filter.Reset()
	h.queue.Drop()
}

// Close implements session.Hook.
func (h *hook) Close() {
	h.cancel()
	h.ending.Go(h.queue.Close)
}

// source is a player who types.
type source struct {
	player  session.Player
	players *players
	may     grants
}

// Allowed implements commands.Source.
func (s *source) Allowed(permission string) bool {
	return s.players.granted(&s.may, s.player, permission)
}

// Player implements commands.Source, as the methods below do.
func (s *source) Player() commands.Player { return s.player }
func (s *source) Name() string            { return s.player.Name() }
func (s *source) Locale() string          { return s.player.Locale() }

// Send drops a text that a full queue refuses.
func (s *source) Send(t packet.Text) { s.player.SendChat(t) }
