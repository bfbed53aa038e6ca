package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// Config is what a [Core] works with. Everybody needs Log and Settings.
type Config struct {
	Settings Settings
	Watch    []Watch     // all observers
	Channels []Channels  // all owners of plugin channels; of two that own one, the first
	Hooks    Hooks       // nil: nobody decides about packets
	Backends Backchannel // nil: messages of backends on BungeeCord's channel are dropped

	// Gates return how long a connection has to wait for a status or a login; 0: it may now. They are called once for
	// each, before anything costly. nil: everybody may.
	StatusGate, LoginGate func(netip.Addr) time.Duration
	Pending               *limit.Places // connections that are not players yet; nil: no bound

	// Say returns a text for a player with this locale; named are names and values in turn. nil: plain ones, for tests.
	Say func(locale, key string, named ...string) packet.Text
	// Admit tells whether a player may join a server that is Restricted. It must not block. nil: all may.
	Admit func(p Player, server string) bool
	// Listed tells whether a player may be named in the server list; their own wish counts as well. It must not block.
	// nil: all may.
	Listed func(player uuid.UUID) bool

	Ended func(e Ending, from netip.Addr) // a connection has ended; it must not block; nil: nobody is told

	Log *slog.Logger // nil: silent
}

// Core holds what the sessions of one proxy share.
type Core struct {
	Counters Counters

	cfg      Config
	settings atomic.Pointer[Settings]
	watchers watchers
	channels owners
	players  *registry
	relay    *relay.Relay
	board    *health.Board
	moves    atomic.Pointer[limit.Bucket] // of players who did not ask to move

	complaints complaints

	ctx    context.Context // ends with Shutdown, and then tasks do
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	choosing sync.Mutex // one player at a time, each seeing where those before are going

	mu       sync.Mutex
	live     map[*Session]struct{}
	closing  *leave          // set: nobody comes in any more
	emptying map[string]*int // servers that players are being taken off, and the current turn of each
	alive    sync.WaitGroup
}

// New returns a Core, which [Core.Shutdown] ends.
func New(cfg Config) *Core {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	yes := func(netip.Addr) time.Duration { return 0 }
	if cfg.StatusGate == nil {
		cfg.StatusGate = yes
	}
	if cfg.LoginGate == nil {
		cfg.LoginGate = yes
	}
	if cfg.Pending == nil {
		cfg.Pending = limit.NewPlaces(limit.Bounds{})
	}
	c := &Core{
		cfg: cfg, channels: cfg.Channels, players: newRegistry(), live: map[*Session]struct{}{}, emptying: map[string]*int{},
	}
	c.board = health.New(c.check, cfg.Log)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.watchers.list = cfg.Watch
	c.relay = relay.New(&c.Counters.Traffic, c.wants)
	c.Apply(cfg.Settings)
	c.tasks.Go(func() { c.board.Run(c.ctx) })
	return c
}

// Apply replaces the settings. Sessions go by the new ones with their next decision: compression with the next login, a
// timeout with the next wait. Players on a server that is gone stay there.
func (c *Core) Apply(s Settings) {
	set := s.withDefaults()
	old := c.settings.Swap(set)
	c.moves.Store(limit.NewBucket(set.Fallback.Moves))
	var names []string
	for _, b := range set.Servers {
		if !b.Limbo {
			names = append(names, b.Name)
		}
	}
	c.board.Watch(names, set.Health)
	for _, name := range names {
		if old == nil {
			break
		}
		if was := old.server(name); was != nil && was.Address != set.server(name).Address {
			c.board.Moved(name)
		}
	}
}

// Health returns the facts of all servers except the built-in world, by name.
func (c *Core) Health() []health.Facts { return c.board.Servers() }

// Checks returns how many checks of servers have failed so far, and how many were answered.
func (c *Core) Checks() (failed, answered uint64) { return c.board.Checks() }

// set returns the settings in force, for one decision: the next one may find others.
func (s *Session) set() *Settings { return s.core.settings.Load() }

// Serve runs one connection from its first byte to its end.
func (c *Core) Serve(conn net.Conn) {
	s := newSession(c, conn)
	c.mu.Lock()
	if c.closing != nil {
		c.mu.Unlock()
		conn.Close()
		return
	}
	c.live[s] = struct{}{}
	c.alive.Add(1)
	c.mu.Unlock()
	c.Counters.Connections.Add(1)
	defer c.alive.Done()
	s.run()
}

// finished strikes a session off every list.
func (c *Core) finished(s *Session) {
	if s.claimed {
		c.players.release(s, s.client.id, s.client.name)
	}
	c.mu.Lock()
	delete(c.live, s)
	c.mu.Unlock()
	c.Counters.ended[s.ending].Add(1)
	if c.cfg.Ended != nil {
		c.cfg.Ended(s.ending, s.client.address.Addr())
	}
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.from()
		s.log.Debug("connection ended", "ending", s.ending)
	}
}

// Players returns the players, in no order.
func (c *Core) Players() []Player {
	all := c.players.all()
	list := make([]Player, len(all))
	for i, s := range all {
		list[i] = s
	}
	return list
}

// Player finds a player by UUID; nil: there is none.
func (c *Core) Player(id uuid.UUID) Player {
	if s := c.players.get(id); s != nil {
		return s
	}
	return nil
}

// Online returns the number of players.
func (c *Core) Online() int { return c.players.len() }

// Open returns the number of connections, players included.
func (c *Core) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.live)
}

// server finds a backend by name.
func (s *Settings) server(name string) *backend.Server {
	for i := range s.Servers {
		if strings.EqualFold(s.Servers[i].Name, name) {
			return &s.Servers[i]
		}
	}
	return nil
}

var errStuck = errors.New("sessions were still ending when the time for it was over")

// Shutdown lets nobody in any more and disconnects everybody, each in the state it is in, with the reason; an empty one
// stands for a text of the table. When ctx ends before they are gone, their sockets are closed. It returns when no
// session is left, or, with an error, a moment after ctx ended.
func (c *Core) Shutdown(ctx context.Context, r string) error {
	l := leave{ending: EndShutdown}
	c.mu.Lock()
	first := c.closing == nil
	c.closing = &l
	for s := range c.live {
		why := plain(r)
		if r == "" {
			why = s.because("kick-restart")
		}
		s.leave(l.ending, why)
	}
	c.mu.Unlock()
	gone := make(chan struct{})
	c.cancel()
	go func() {
		c.alive.Wait()
		c.tasks.Wait()
		if first {
			c.relay.Close()
		}
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	for s := range c.live {
		s.kill()
	}
	c.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-time.After(time.Second):
		return errStuck
	}
}
