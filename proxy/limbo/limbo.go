// Package limbo is the world built into the proxy: a stone floor in the void, so that a proxy without any Minecraft
// server behind it can be joined, and a network has a place to hold players.
//
// A World is a backend like any other, but the proxy reaches it through memory: Dial returns the client's end of a
// connection to a Minecraft server that expects legacy (BungeeCord) forwarding. It promises to let in every player whom
// the proxy sends, for every protocol of Protocols, to refuse the rest with a reason, and to cost little: data that
// does not depend on the player is generated (gen/generate.js), kept once per protocol and written from there.
package limbo

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/google/uuid"
)

// Where a player arrives, and is put back to: the middle of the floor, which the generator puts at y 69.
const (
	spawnX = 8
	spawnY = 70
	spawnZ = 8
)

// Waits. A player is thrown out who does not answer keep-alives for answerWithin, takes nothing for writeWithin, or has
// not got into the world joinWithin after connecting.
const (
	keepAliveEvery = 10 * time.Second
	answerWithin   = 30 * time.Second
	joinWithin     = 30 * time.Second
	writeWithin    = 30 * time.Second
	goodbyeWithin  = time.Second
)

// Config is a World's settings.
type Config struct {
	Welcome packet.Text  // said to each player who joins; the zero Text is not said
	Log     *slog.Logger // nil: nothing is logged
}

// World is one built-in world. Its methods may be called from any goroutine.
type World struct {
	cfg   Config
	log   *slog.Logger
	tasks sync.WaitGroup // one per connection
	ids   atomic.Int32   // entity ids

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{} // before the player is in the world
	players map[uuid.UUID]*player
	bodies  int
}

// New makes a World without players. Close ends it.
func New(cfg Config) *World {
	w := &World{cfg: cfg, log: cfg.Log, conns: map[net.Conn]struct{}{}, players: map[uuid.UUID]*player{}}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w
}

// ErrClosed is returned by Dial after Close.
var ErrClosed = errors.New("the built-in world is closed")

// Dial connects to the world. The other end of the returned connection is a Minecraft server that neither compresses
// nor encrypts.
func (w *World) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	client, server := net.Pipe()
	w.conns[server] = struct{}{}
	w.tasks.Go(func() {
		defer server.Close()
		err := w.serve(server)
		w.forget(server)
		w.log.Debug("a connection to the built-in world ended", "error", err)
	})
	return client, nil
}

// Close throws everybody out, telling those who still listen why, and waits until all is over.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	for c := range w.conns {
		c.Close()
	}
	for _, p := range w.players {
		p.kick(packet.Translatable("multiplayer.disconnect.server_shutdown"))
	}
	w.mu.Unlock()
	w.tasks.Wait()
	return nil
}

func (w *World) forget(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// enter makes p one of the players, shows everybody to everybody and says the welcome. A player with the same id is
// thrown out: it must be the same person, through a connection that nobody knows to be dead yet.
func (w *World) enter(p *player) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, p.conn)
	if old := w.players[p.id]; old != nil {
		w.remove(old)
		old.kick(packet.Translatable("multiplayer.disconnect.duplicate_login"))
	}
	w.players[p.id] = p
	everybody := make([]*player, 0, len(w.players))
	for _, q := range w.players {
		everybody = append(everybody, q)
	}
	p.out.send(appendShow(nil, p.version, everybody...))
	for _, q := range everybody {
		if q.body {
			p.out.send(appendBody(nil, p.version, q))
		}
	}
	w.broadcast(func(dst []byte, to *player) []byte {
		if to == p {
			return dst
		}
		return appendShow(dst, to.version, p)
	})
	w.embody(p)
	if w.cfg.Welcome.String() != "" {
		p.out.send(appendSay(nil, p.version, w.cfg.Welcome))
	}
	if w.closed {
		p.kick(packet.Translatable("multiplayer.disconnect.server_shutdown"))
	}
}

// leave undoes enter, unless another connection has taken p's place.
func (w *World) leave(p *player) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.players[p.id] == p {
		w.remove(p)
	}
}

func (w *World) remove(p *player) {
	delete(w.players, p.id)
	w.disembody(p)
	w.broadcast(func(dst []byte, to *player) []byte { return appendHide(dst, to.version, p.id) })
}

// say shows a line of chat to everybody.
func (w *World) say(t packet.Text) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broadcast(func(dst []byte, to *player) []byte { return appendSay(dst, to.version, t) })
}

// broadcast sends each player what f appends for them, possibly nothing.
func (w *World) broadcast(f func(dst []byte, to *player) []byte) {
	var buf []byte
	for _, p := range w.players {
		if buf = f(buf[:0], p); len(buf) > 0 {
			p.out.send(buf)
		}
	}
}
