package network

import (
	"log/slog"
	"strings"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/session"
)

// backchannel hears servers: that a player has joined one, and the messages of their plugins on BungeeCord's channel.
type backchannel struct {
	n        *Network
	messages *bungee.Messages
	log      *slog.Logger
}

func newBackchannel(n *Network, log *slog.Logger) *backchannel {
	b := &backchannel{n: n, log: log}
	b.messages = bungee.New(bungee.Config{
		Network: bungeeNetwork{n}, Mode: func(server string) bungee.Mode { return n.policy().modeOf(server) },
		Budget: func() limit.Rate { return n.policy().budget }, Queue: 64, Log: log,
	})
	return b
}

// Message implements session.Backchannel.
func (b *backchannel) Message(from session.Backend, channel string, data []byte) {
	b.messages.Handle(backendConn{from, b.n}, channel, data)
}

// Joined implements session.Backchannel.
func (b *backchannel) Joined(on session.Backend) {
	if strings.EqualFold(on.Server(), configs.LimboName) {
		b.n.welcome(on.Player())
	}
	if b.n.policy().modeOf(on.Server()) == bungee.Off {
		return
	}
	m := bungee.Announcement(on.Player().Protocol())
	if err := on.SendPlugin(m.Channel, m.Data); err != nil {
		b.log.Debug("BungeeCord's channel not announced", "server", on.Server(), "error", err)
	}
	b.messages.Joined(bungeePlayer{on.Player(), b.n})
}

// bungeeNetwork is the network as plugins of backends see it.
type bungeeNetwork struct{ n *Network }

func (b bungeeNetwork) Players() (all []bungee.Player) {
	for _, p := range b.n.parts.server.Players() {
		all = append(all, bungeePlayer{p, b.n})
	}
	return all
}

func (b bungeeNetwork) Player(name string) (bungee.Player, bool) {
	p, ok := b.n.players.named(name)
	return bungeePlayer{p, b.n}, ok
}

func (b bungeeNetwork) Servers() (all []bungee.Server) {
	p := b.n.policy()
	for _, s := range p.servers {
		all = append(all, bungee.Server{Name: s.Name, Addr: p.addrs[s.Name]})
	}
	return all
}

func (b bungeeNetwork) Server(name string) (bungee.Server, bool) {
	for _, s := range b.Servers() {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return bungee.Server{}, false
}

// bungeePlayer lets plugins of servers move a player.
type bungeePlayer struct {
	session.Player
	n *Network
}

// Connect implements bungee.Player.
func (p bungeePlayer) Connect(server string) {
	if p.n.policy().restricted[strings.ToLower(server)] && !p.n.players.admit(p.Player, server) {
		p.SendChat(p.n.say(p.Locale(), "server-restricted", "server", server, "permission", commands.Enter(server)))
		return
	}
	if p.n.draining(server) {
		p.SendChat(p.n.say(p.Locale(), "draining", "server", server))
		return
	}
	if err := p.Player.Connect(server); err != nil {
		p.SendChat(p.n.texts().Failure(p.Locale(), err))
	}
}

// backendConn is a connection to a backend as the channel sees it.
type backendConn struct {
	session.Backend
	n *Network
}

// Player implements bungee.Backend.
func (b backendConn) Player() bungee.Player { return bungeePlayer{b.Backend.Player(), b.n} }
