// Package session is one player's two connections: login on the client's side, login on a backend's, and between them a
// relay that moves frames as bytes.
//
// It promises that all state of a session belongs to one goroutine, the owner. Two others read the two sides, forward
// frames that need no decision, and ask the owner about the rest, frame by frame in order. So a state changes at one
// exact point of each byte stream and nowhere else. Nothing of a session waits without a bound, and a fault in one
// session ends that session only.
package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Observer sees one player's proxied packets of the configuration and play states, as far as its [Watch] wants them. It
// may neither block nor write to the player nor keep the bytes. Two goroutines call Clientbound and Serverbound;
// Backend comes before the first Clientbound of that backend, from either of them or neither. A panic in an Observer
// ends its player's session.
type Observer interface {
	// Backend tells that from now on packets come from this backend, which knows the player by this UUID.
	Backend(name string, id uuid.UUID)
	Clientbound(state proto.State, p proto.Packet, body []byte) // body is all behind the packet id
	Serverbound(state proto.State, p proto.Packet, body []byte)
	Close() // the player is gone; the last call
}

// Watch makes Observers.
type Watch interface {
	// Wants lists the packets to show to observers; all others pass as bytes. It is called once for each version, state
	// and direction.
	Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet
	// Watch is called once for each player that has logged in, before any packet is relayed. A nil Observer sees
	// nothing.
	Watch(p Player) Observer
}

// Channels owns some plugin channels. Messages on these never cross the proxy in either direction. All calls for one
// player come from one goroutine, which must not be blocked for long: the player's traffic waits.
type Channels interface {
	Owns(channel string) bool
	Message(p Player, channel string, data []byte) // from the client; data is valid during the call
	Registered(p Player, channels []string)        // the client announced channels, its own or others
	Joined(p Player)                               // a join game packet has reached the client: it is on a server now
	Left(p Player)                                 // the last call, once for each player that had logged in
}

var errQuit = errors.New("the session is ending")

// Session is one accepted connection, and the player it may become. Its parts are the owner's, except where it says
// otherwise.
type Session struct {
	core  *Core
	log   *slog.Logger // see from
	named bool         // log names the address

	client client
	screen screen
	route  route
	timers timers

	hook     Hook
	observer Observer
	greeted  bool // Watch and Channels know the player
	claimed  bool // the player is in the registry
	ending   Ending
	place    limit.Place // of a connection that is not a player yet
	pinging  atomic.Bool // it is a server list ping, which can only be closed

	events   chan *relay.Event // of the pumps
	outcomes chan *dialed
	queries  chan *query
	sockets  sockets         // to backends
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	dialing  sync.WaitGroup
	broken   atomic.Bool // a goroutine of ours panicked
	done     chan struct{}
}

// sockets are those that kill has to close. The zero sockets are ready for use.
type sockets struct {
	mu   sync.Mutex
	open map[io.Closer]struct{}
}

func (k *sockets) add(c io.Closer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = map[io.Closer]struct{}{}
	}
	k.open[c] = struct{}{}
}

func (k *sockets) remove(c io.Closer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, c)
}

func (k *sockets) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.open {
		c.Close()
	}
}

// Done returns a channel that is closed when nothing of the session is left: goroutines, sockets, and its place among
// the players.
func (s *Session) Done() <-chan struct{} { return s.done }

// leave orders the owner to end the session. While there is no owner yet the login sees it at its next step.
func (s *Session) leave(e Ending, r reason) {
	s.client.mail.order(leave{e, r})
	s.client.conn.SetReadDeadline(time.Unix(1, 0)) // ends a read of the login; the owner, if there is one, was poked
}

// evict takes a connection that is not a player yet its place.
func (s *Session) evict() {
	s.leave(EndCrowded, s.because("kick-crowded"))
	if s.pinging.Load() {
		s.client.conn.Close()
	}
}

// kill closes all sockets, the last resort: every read and write fails at once.
func (s *Session) kill() {
	s.cancel()
	s.client.conn.Close()
	s.sockets.close()
}

// run takes a connection from its beginning to its end.
func (s *Session) run() {
	defer s.teardown()
	defer s.caught()
	if s.handshake() && s.login() {
		s.own()
	}
}

// caught ends this session, and nothing else, when its goroutine panics. It does not carry on: the state may be half
// changed.
func (s *Session) caught() {
	if v := recover(); v != nil {
		s.panicked(v)
	}
}

func (s *Session) panicked(v any) {
	s.from()
	s.log.Error("panic in a session; the session ends", "panic", v, "stack", string(debug.Stack()))
	s.broken.Store(true)
	s.leave(EndPanic, s.because("kick-internal"))
	s.kill()
}

// teardown leaves nothing behind, whatever state the session was in.
func (s *Session) teardown() {
	s.cancel()
	s.client.conn.Close()
	for l := range s.route.links() {
		s.closeLink(l)
	}
	if s.client.pump != nil {
		s.client.pump.Stop()
		<-s.client.pump.Ended()
	}
	s.dialing.Wait()
	s.client.r.Release()
	s.client.mail.close()
	s.core.cfg.Pending.Leave(&s.place)
	s.holding(false)
	if s.broken.Load() {
		s.ending = EndPanic
	}
	s.farewells()
	s.core.finished(s)
	close(s.done)
}

// farewells tells everybody who was told of the player. Their panics are caught one by one, so that each is told.
func (s *Session) farewells() {
	if !s.greeted {
		return
	}
	s.log.Info("player left", "ending", s.ending)
	call := func(f func()) {
		defer s.caught()
		f()
	}
	if s.relayed() {
		if s.screen.joined {
			s.core.Counters.Relayed.Players.Add(-1)
		}
		return // nobody else was told of them
	}
	if s.observer != nil {
		call(s.observer.Close)
	}
	if s.hook != nil {
		call(s.hook.Close)
	}
	call(func() { s.core.channels.left(s) })
}
