// Package proxy is the public face of the Minecraft side: one Server that takes connections in, and leaves nothing of
// them behind after Shutdown.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

// shutdownWithin bounds a Shutdown, whatever is stuck. The last part of it is for what is left after every socket has
// been closed.
const (
	shutdownWithin = 10 * time.Second
	afterKill      = 2 * time.Second
)

// Settings are an administrator's choices. See [session.Settings] for those about players.
type Settings struct {
	session.Settings // Auth, Status and Hosts are made from these:

	Auth   auth.Config // used when Online is set
	Status Status
	ByHost []Host

	PingCache time.Duration // how long a server's answer to a ping stands; 0: 10 s

	// Limits on strangers. Rates are per network: an IPv4 /24, an IPv6 /64.
	Logins  limit.Rate     // login attempts; PerSecond 0: no limit
	Pings   limit.Rate     // server list pings; PerSecond 0: no limit
	Exempt  []netip.Prefix // networks without these limits
	Pending int            // connections that are not players yet, see [limit.Shares]; 0: no limit
}

// Status is what the server list shows. Online, Players and Ask are the Server's own.
type Status struct {
	status.Config
	HideSample bool // name no players
}

// Host holds the differences for one host name. Its [session.Host]'s Status is made from Status; nil: there is no
// difference.
type Host struct {
	session.Host
	Status *Status
}

// Dependencies are the callbacks into the rest of the program; see [session.Config]. Each may be nil.
type Dependencies struct {
	Watch    []session.Watch
	Channels []session.Channels
	Hooks    session.Hooks
	Backends session.Backchannel
	Say      func(locale, key string, named ...string) packet.Text
	Admit    func(p session.Player, server string) bool
	Listed   func(player uuid.UUID) bool // see [session.Config]
	Ended    func(e session.Ending, from netip.Addr)
}

// CheckedSettings are Settings that have been checked: applying them cannot fail. They are for one Server.
type CheckedSettings struct {
	settings Settings
	server   *Server
}

// Compile checks settings and prepares them for a Server. Its errors are for the administrator.
func Compile(s Settings) (c *CheckedSettings, err error) {
	c = &CheckedSettings{settings: s}
	if c.settings.Settings.Status, err = c.status(s.Status, nil); err != nil {
		return nil, err
	}
	c.settings.Hosts = nil
	for _, h := range s.ByHost {
		if h.Status != nil {
			if h.Host.Status, err = c.status(*h.Status, &h.Host); err != nil {
				return nil, fmt.Errorf("host %s: %w", h.Name, err)
			}
		}
		c.settings.Hosts = append(c.settings.Hosts, h.Host)
	}
	if s.Online {
		if c.settings.Settings.Auth, err = auth.New(s.Auth); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// status makes the server list entry of a host name; h nil: of all names without an entry.
func (c *CheckedSettings) status(s Status, h *session.Host) (*status.Status, error) {
	s.Online = func() int { return c.server.core.Online() }
	if !s.HideSample {
		s.Players = func(dst []status.Player, max int) []status.Player { return c.server.core.Sample(dst, max) }
	}
	list, lite := c.settings.Try, false
	if h != nil && len(h.Try) > 0 {
		list = h.Try
	}
	if h != nil && len(h.Lite) > 0 {
		list, lite = h.Lite, true
	}
	var servers []backend.Server
	for _, name := range list {
		i := slices.IndexFunc(c.settings.Servers, func(b backend.Server) bool { return strings.EqualFold(b.Name, name) })
		if i < 0 {
			continue
		}
		if c.settings.Servers[i].Dial != nil {
			break // the built-in world shows our own entry, and nobody gets past it
		}
		servers = append(servers, c.settings.Servers[i])
	}
	s.Takes = c.settings.Unknown.Takes
	s.Ask = func(client status.Client) *status.Answer { return c.server.ask(servers, client, lite) }
	return status.New(s.Config)
}

// pingWithin bounds the answer of servers to a ping that is passed on, and the client's wait for it.
const pingWithin = 2 * time.Second

// ask returns the answer of the first server that gives one; nil: none does. Behind a Lite host the servers hear the
// client's name and protocol, whatever it is; elsewhere strangers could choose questions that way.
func (p *Server) ask(servers []backend.Server, c status.Client, lite bool) *status.Answer {
	q := backend.Question{Protocol: c.Protocol}
	if known := proto.Lookup(c.Protocol) != nil; !known && (!lite || c.Protocol < 0) {
		q.Protocol = proto.Newest().Protocol
	}
	if lite && c.Protocol >= 0 {
		q.Host = c.Host
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingWithin)
	defer cancel()
	for _, b := range servers {
		ask := func(ctx context.Context) ([]byte, error) { return backend.Ping(ctx, b, q, pingWithin) }
		if a := p.pongs.Get(ctx, status.Key{Server: b.Address, Host: q.Host, Protocol: q.Protocol}, ask); a != nil {
			return a
		}
	}
	return nil
}

// Server is the Minecraft side of the proxy.
type Server struct {
	core    *session.Core
	pongs   *status.Cache // answers of servers to pings
	log     *slog.Logger
	logins  *limit.Networks
	pings   *limit.Networks
	pending *limit.Places

	mu        sync.Mutex
	closed    bool
	auth      *auth.Auth // the newest
	listeners map[net.Listener]struct{}
	conns     sync.WaitGroup
}

// New returns a Server for these settings. log may be nil.
func New(c *CheckedSettings, d Dependencies, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Server{
		log: log, listeners: map[net.Listener]struct{}{},
		logins: limit.NewNetworks(limit.Rate{}, false, nil), pings: limit.NewNetworks(limit.Rate{}, false, nil), pending: limit.NewPlaces(limit.Bounds{}),
	}
	p.pongs = status.NewCache(0, pingWithin, log)
	p.core = session.New(session.Config{
		Watch: d.Watch, Channels: d.Channels, Hooks: d.Hooks, Backends: d.Backends, Say: d.Say, Admit: d.Admit, Listed: d.Listed, Ended: d.Ended,
		LoginGate: p.logins.Take, StatusGate: p.pings.Take, Pending: p.pending, Log: log,
	})
	p.Apply(c)
	return p
}

// Apply puts other settings in force for everything that is decided from now on; see [session.Core.Apply].
func (p *Server) Apply(c *CheckedSettings) {
	c.server = p
	s := &c.settings
	p.logins.Set(s.Logins, s.Exempt)
	p.pings.Set(s.Pings, s.Exempt)
	p.pending.Set(limit.Shares(s.Pending), s.Exempt)
	p.pongs.Fresh(cmp.Or(s.PingCache, 10*time.Second))
	p.core.Apply(s.Settings)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.auth != nil {
		p.auth.Close()
	}
	p.auth = s.Settings.Auth
}

// Announce tells the clients of all players their commands, where those have changed.
func (p *Server) Announce() { p.core.Announce() }

// Serve takes connections from ln until ln is closed or Shutdown, which closes it; then it returns nil. Connections are
// expected to send bytes soon: with a bare socket, only the handshake bounds silent ones.
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

// Players returns the players, in no order.
func (p *Server) Players() []session.Player { return p.core.Players() }

// Player finds a player by UUID; nil: there is none.
func (p *Server) Player(id uuid.UUID) session.Player { return p.core.Player(id) }

// Online returns the number of players.
func (p *Server) Online() int { return p.core.Online() }

// Health returns the facts of all servers except the built-in world, by name.
func (p *Server) Health() []health.Facts { return p.core.Health() }

// Checks returns how many checks of servers have failed so far, and how many were answered.
func (p *Server) Checks() (failed, answered uint64) { return p.core.Checks() }

// Drain sets whether a server is to get no new players, and whether its players are taken to other servers; see
// [session.Core.Drain].
func (p *Server) Drain(server string, on, move bool, done func(session.Emptied)) error {
	return p.core.Drain(server, on, move, done)
}

// Counters returns the counts of what has happened so far.
func (p *Server) Counters() *session.Counters { return &p.core.Counters }

// Shutdown stops accepting and disconnects everybody with the reason, each in the state it is in. It ends with ctx or
// after ten seconds, whatever is stuck: before that it closes the sockets. An error says that some session has not
// ended even then.
func (p *Server) Shutdown(ctx context.Context, reason string) error {
	p.mu.Lock()
	p.closed = true
	for ln := range p.listeners {
		ln.Close()
	}
	p.mu.Unlock()
	p.pongs.Close()
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
