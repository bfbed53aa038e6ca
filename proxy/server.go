// Package proxy is the public face of the Minecraft side: one Server that takes connections in, and with Shutdown leaves
// nothing of them behind.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

// shutdownWithin is the longest a Shutdown takes, whatever is stuck; the last part of it is for what is left after every
// socket has been closed.
const (
	shutdownWithin = 10 * time.Second
	afterKill      = 2 * time.Second
)

// Settings are what an administrator may choose. See [session.Settings] for those about players.
type Settings struct {
	session.Settings

	Auth   auth.Config   // used when Online is set
	Status status.Config // Online and Players are the Server's own

	// Limits on strangers. Rates are per network: an IPv4 /24, an IPv6 /64.
	Logins  limit.Rate     // login attempts; PerSecond 0: no limit
	Pings   limit.Rate     // server list pings; PerSecond 0: no limit
	Exempt  []netip.Prefix // networks without these limits
	Pending int            // connections that are not players yet; 0: no limit

	HideSample bool // name no players in the server list
}

// Others are those whom the sessions ask and tell; see [session.Config]. Each may be nil.
type Others struct {
	Watch    session.Watch
	Channels session.Channels
	Hooks    session.Hooks
	Backends session.Backchannel
	Say      func(locale, key string, named ...string) packet.Text
}

// Compiled are Settings with which nothing can go wrong any more. They are for one Server.
type Compiled struct {
	settings Settings
	server   *Server
}

// Compile checks settings, and makes of them what takes time. Its errors are for the administrator.
func Compile(s Settings) (c *Compiled, err error) {
	c = &Compiled{settings: s}
	s.Status.Online = func() int { return c.server.core.Online() }
	if !s.HideSample {
		s.Status.Players = func(dst []status.Player, max int) []status.Player { return c.server.core.Sample(dst, max) }
	}
	if c.settings.Settings.Status, err = status.New(s.Status); err != nil {
		return nil, err
	}
	if s.Online {
		if c.settings.Settings.Auth, err = auth.New(s.Auth); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Server is the Minecraft side of the proxy.
type Server struct {
	core    *session.Core
	log     *slog.Logger
	logins  *limit.Networks
	pings   *limit.Networks
	pending *limit.Gauge

	mu        sync.Mutex
	closed    bool
	auth      *auth.Auth // the newest
	listeners map[net.Listener]struct{}
	conns     sync.WaitGroup
}

// New returns a Server for these settings. log may be nil.
func New(c *Compiled, others Others, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Server{
		log: log, listeners: map[net.Listener]struct{}{},
		logins: limit.NewNetworks(limit.Rate{}, false, nil), pings: limit.NewNetworks(limit.Rate{}, false, nil), pending: limit.NewGauge(0),
	}
	p.core = session.New(session.Config{
		Watch: others.Watch, Channels: others.Channels, Hooks: others.Hooks, Backends: others.Backends, Say: others.Say,
		LoginGate: p.logins.Allow, StatusGate: p.pings.Allow, Pending: p.pending, Log: log,
	})
	p.Apply(c)
	return p
}

// Apply puts other settings in force, for everything that is decided from now on; see [session.Core.Apply].
func (p *Server) Apply(c *Compiled) {
	c.server = p
	s := &c.settings
	p.logins.Set(s.Logins, s.Exempt)
	p.pings.Set(s.Pings, s.Exempt)
	p.pending.Set(s.Pending)
	p.core.Apply(s.Settings)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.auth != nil {
		p.auth.Close()
	}
	p.auth = s.Settings.Auth
}

// Announce tells the clients of all players for whom that has changed which commands there are.
func (p *Server) Announce() { p.core.Announce() }

// Serve takes connections from ln until ln is closed or Shutdown, which closes it; then it returns nil. Connections are
// expected to send bytes soon: whoever accepts from a socket directly has no bound on silent ones but that of the
// handshake.
func (p *Server) Serve(ln net.Listener) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		ln.Close()
		return nil
	}
	p.listeners[ln] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.listeners, ln)
		p.mu.Unlock()
	}()
	for {
		c, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accept players: %w", err)
		}
		go p.Handle(c)
	}
}

// Handle serves one connection until it ends; after Shutdown it closes it.
func (p *Server) Handle(c net.Conn) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.Close()
		return
	}
	p.conns.Add(1)
	p.mu.Unlock()
	defer p.conns.Done()
	p.core.Serve(c)
}

// Players is a snapshot of the players, in no order.
func (p *Server) Players() []session.Player { return p.core.Players() }

// Player finds a player by UUID, nil when there is none.
func (p *Server) Player(id uuid.UUID) session.Player { return p.core.Player(id) }

// Online is how many players there are.
func (p *Server) Online() int { return p.core.Online() }

// Counters are what has happened so far.
func (p *Server) Counters() *session.Counters { return &p.core.Counters }

// Shutdown stops accepting and disconnects everybody with the reason, each in the state it is in. It is over when ctx
// ends or after ten seconds, whatever is stuck: before that the sockets are closed. An error says that some session has
// not ended even then.
func (p *Server) Shutdown(ctx context.Context, reason string) error {
	p.mu.Lock()
	p.closed = true
	for ln := range p.listeners {
		ln.Close()
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, shutdownWithin-afterKill)
	defer cancel()
	if err := p.core.Shutdown(ctx, reason); err != nil {
		return err
	}
	p.conns.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.auth != nil {
		p.auth.Close()
	}
	return nil
}
