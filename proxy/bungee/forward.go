package bungee

import (
	"bytes"
	"strings"
)

// maxWaiting bounds the bytes that wait for a server.
const maxWaiting = 1 << 20

// queue holds messages until somebody is on a server.
type queue struct {
	messages [][]byte
	size     int
}

// forward sends everything behind the first field, as it is, to other servers: to each through one of the players
// there.
func (q *request) forward() {
	target := q.args[0]
	everywhere := target == all || target == "ONLINE"
	if q.self && (everywhere || !same(target, q.from.Server())) {
		q.refuse()
		return
	}
	if !everywhere {
		if s, ok := q.cfg.Network.Server(target); ok {
			q.deliver(s.Name, q.cfg.Network.Players(), true)
		}
		return
	}
	players := q.cfg.Network.Players()
	for _, s := range q.cfg.Network.Servers() {
		if !same(s.Name, q.from.Server()) {
			q.deliver(s.Name, players, target == all)
		}
	}
}

// deliver sends to one server through the first of players that can. If there is none, the message waits or is lost.
func (q *request) deliver(server string, players []Player, wait bool) {
	for _, p := range players {
		if same(p.Server(), server) && p.ToServer(ChannelFor(p.Protocol()), q.rest) == nil {
			return
		}
	}
	if !wait || q.cfg.Queue <= 0 {
		q.Lost.Add(1)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	key := strings.ToLower(server)
	w := q.waiting[key]
	if w == nil {
		w = &queue{}
		q.waiting[key] = w
	}
	w.messages, w.size = append(w.messages, bytes.Clone(q.rest)), w.size+len(q.rest)
	for len(w.messages) > q.cfg.Queue || w.size > maxWaiting { // the oldest go
		w.size -= len(w.messages[0])
		w.messages = w.messages[1:]
		q.Lost.Add(1)
	}
}

// forwardToPlayer sends everything behind the first field, as it is, to that player's server.
func (q *request) forwardToPlayer() {
	q.ifPlayer(func(p Player) {
		if p.ToServer(ChannelFor(p.Protocol()), q.rest) != nil {
			q.Lost.Add(1)
		}
	})
}

// Joined sends the messages that waited for somebody to be on p's server. Call it when a player has come to a server.
func (m *Messages) Joined(p Player) {
	if m.cfg.Queue <= 0 {
		return
	}
	key := strings.ToLower(p.Server())
	m.mu.Lock()
	w := m.waiting[key]
	delete(m.waiting, key)
	m.mu.Unlock()
	if w == nil {
		return
	}
	for _, data := range w.messages {
		if p.ToServer(ChannelFor(p.Protocol()), data) != nil {
			m.Lost.Add(1)
		}
	}
}
