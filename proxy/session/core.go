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

// Config is what a [Core] works with. Only Log and Settings are needed by everybody.
type Config struct {
	Settings Settings
	Watch    []Watch     // all that observe
	Channels []Channels  // all that own plugin channels; of two that own one, the first
	Hooks    Hooks       // nil: nobody decides about packets
	Backends Backchannel // nil: what backends send on BungeeCord's channel is dropped

	// Gates are asked once for each connection that wants a status or a login, before anything costly, and tell how long
	// it would have to wait for that; 0: it may now. nil: everybody may.
	StatusGate, LoginGate func(netip.Addr) time.Duration
	Pending               *limit.Places // connections that are not players yet; nil: no bound

	// Say gives the text that a player with this locale is told; named are names and values in turn. nil: plain ones, for
	// tests.
	Say func(locale, key string, named ...string) packet.Text
	// Admit tells whether a player may join a server that is Restricted. It must not block. nil: all may.
	Admit func(p Player, server string) bool
	// Listed tells whether a player may be named in the server list, besides his own wish. It must not block. nil: all may.
	Listed func(player uuid.UUID) bool

	Ended func(e Ending, from netip.Addr) // a connection has ended; it must not block; nil: nobody is told

	Log *slog.Logger // nil: silent
}

// Core is what the sessions of one proxy share.
type Core struct {
	Counters Counters

	cfg      Config
	settings atomic.Pointer[Settings]
	watchers watchers
	channels owners
	players  *registry
	relay    *relay.Relay
	board    *health.Board
	moves    atomic.Pointer[limit.Bucket] // of players whom nobody asked to move

	complaints complaints

	ctx    context.Context // ends with Shutdown, and then tasks do
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	choosing sync.Mutex // one player at a time, each seeing where those before are going

	mu       sync.Mutex
	live     map[*Session]struct{}
	closing  *leave          // set: nobody comes in any more
	emptying map[string]*int // servers that players are being taken off, with whose turn that is
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

// Apply replaces the settings. Sessions, too, go by the new ones with the next thing they decide: compression with the
// next login, a timeout with the next wait. Whoever is on a server that is gone stays there.
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

// Health is what is known of the servers, besides the built-in world, by name.
func (c *Core) Health() []health.Facts { return c.board.Servers() }

// Checks is how many checks of servers have failed so far, and how many were answered.
func (c *Core) Checks() (failed, answered uint64) { return c.board.Checks() }

// set are the settings in force, for one decision: the next one may find others.
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

// Players is a snapshot of the players, in no order.
func (c *Core) Players() []Player {
	all := c.players.all()
	list := make([]Player, len(all))
	for i, s := range all {
		list[i] = s
	}
	return list
}

// Player finds a player by UUID, nil when there is none.
func (c *Core) Player(id uuid.UUID) Player {
	if s := c.players.get(id); s != nil {
		return s
	}
	return nil
}

// Online is how many players there are.
func (c *Core) Online() int { return c.players.len() }

// Open is how many connections there are, players included.
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

// Shutdown lets nobody in any more and disconnects everybody with the reason, or if it is empty with a text of the
// table, each in the state it is in. When ctx ends
// before they are gone their sockets are closed under them. It returns when no session is left, or, with an error, a
// moment after ctx ended.
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
