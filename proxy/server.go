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

	Hooks    session.Hooks       // decide about packets of players in play; nil: nobody does
	Backends session.Backchannel // hears what servers say on BungeeCord's channel; nil: nobody does

	HideAddresses bool // keep players' addresses out of the log
	HideSample    bool // name no players in the server list
}

// Server is the Minecraft side of the proxy.
type Server struct {
	core *session.Core
	auth *auth.Auth
	log  *slog.Logger

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     sync.WaitGroup
}

// New returns a Server for these settings. watch and channels may be nil, log too.
func New(s Settings, watch session.Watch, channels session.Channels, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Server{log: log, listeners: map[net.Listener]struct{}{}}
	s.Status.Online = func() int { return p.core.Online() }
	if !s.HideSample {
		s.Status.Players = func(dst []status.Player, max int) []status.Player { return p.core.Sample(dst, max) }
	}
	answers, err := status.New(s.Status)
	if err != nil {
		return nil, err
	}
	if s.Online {
		if p.auth, err = auth.New(s.Auth); err != nil {
			return nil, err
		}
	}
	p.core = session.New(session.Config{
		Settings: s.Settings, Auth: p.auth, Status: answers, Watch: watch, Channels: channels, Hooks: s.Hooks, Backends: s.Backends,
		LoginGate:  limit.NewNetworks(s.Logins, false, s.Exempt).Allow,
		StatusGate: limit.NewNetworks(s.Pings, false, s.Exempt).Allow,
		Pending:    limit.NewGauge(s.Pending),
		Log:        log, HideAddresses: s.HideAddresses,
	})
	return p, nil
}

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
	if p.auth != nil {
		p.auth.Close()
	}
	return nil
}
