// Package serve lets people without Minecraft into areas, over the walk protocol at /ws/game. It promises that a
// connection is closed with the code and the words for what it did, that a client that does not read costs 32 messages
// and holds nobody up, and that nobody is there before a whole Hello.
package serve

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/bridge/walk"
	"github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/budget"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
)

// Path is where guests connect.
const Path = "/ws/game"

// The bounds of connections.
const (
	HelloWithin       = 5 * time.Second // from the upgrade
	MessagesPerSecond = 240
	PerAddress        = 4 // connections of an IPv4 address or an IPv6 /64
)

// The ranks of messages, lowest first to be dropped.
const (
	rankSnapshot = iota
	rankPong
	rankWelcome
)

// Counts are told what happens, in words that [Labels] lists. They must not block.
type Counts struct {
	Message func(kind string)                    // from clients
	Closed  func(code string)                    // connections that have ended
	Dropped func(kind string)                    // messages that a client was too slow for
	Ignored func(reason string)                  // messages from clients
	Refused func(reason string, from netip.Addr) // requests
}

// Labels are all words of each count, for counters that start at zero.
var Labels = struct{ Message, Closed, Dropped, Ignored, Refused []string }{
	Message: []string{"hello", "input", "ping", "unknown", "malformed"},
	Closed:  []string{"1001", "1002", "1007", "1008", "1009", "4008", "peer", "lost"},
	Dropped: []string{"snapshot", "pong"},
	Ignored: []string{"old_sequence", "unknown", "misrouted"},
	Refused: append(upgrade.Reasons(), noArea.Reason, full.Reason, crowded.Reason),
}

// Refusals of our own.
var (
	noArea  = upgrade.Refusal{Reason: "area", Status: http.StatusNotFound, Text: "there is no such area: ?area= takes one of walk.areas, and may be left out where there is one alone"}
	full    = upgrade.Refusal{Reason: "full", Status: http.StatusServiceUnavailable, Text: "the area has as many guests as it may (max-guests)", Free: true}
	crowded = upgrade.Refusal{Reason: "address", Status: http.StatusTooManyRequests, Text: "there are too many guests of this address", Free: true}
)

// Config has what a server needs. All fields but Failures and Log are required.
type Config struct {
	Players *world.Registry
	Sweeper *socket.Sweeper
	Counts  Counts
	// Failures counts the failures of all addresses; doors may share it. Nil: the server has its own.
	Failures *front.Failures
	Log      *slog.Logger
}

// Server has the areas and the connections to them.
type Server struct {
	cfg  Config
	door *upgrade.Door

	mu      sync.Mutex
	stopped bool
	rooms   map[string]*room
	from    map[netip.Addr]int // connections
}

// room is an area and who is connected to it.
type room struct {
	area *walk.Area
	end  context.CancelFunc
	done chan struct{}
	// With the server's mu held.
	closed   string // why; empty: it is not
	sessions map[*session]struct{}
}

// New makes a server without areas.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, rooms: map[string]*room{}, from: map[netip.Addr]int{}}
	s.door = upgrade.NewDoor(upgrade.DoorConfig{
		What: "walk", Sweeper: cfg.Sweeper, Admit: s.admit, Log: cfg.Log, Count: cfg.Counts.Refused, Failures: cfg.Failures,
	})
	return s
}

// SetOrigins replaces the further pages that may connect, as scheme://host[:port].
func (s *Server) SetOrigins(origins []string) { s.door.SetOrigins(origins) }

// Set replaces the areas. An area that stays as it is keeps its guests; the connections of all others are closed.
// Nothing changes once the server is closed.
func (s *Server) Set(areas map[string]walk.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	for name, r := range s.rooms {
		if c, ok := areas[name]; !ok || !reflect.DeepEqual(c, r.area.Config()) {
			s.drop(name, "area closed")
		}
	}
	for name, c := range areas {
		if s.rooms[name] == nil {
			s.open(name, c)
		}
	}
}

func (s *Server) open(name string, c walk.Config) *room {
	ctx, end := context.WithCancel(context.Background())
	r := &room{area: walk.New(c, s.cfg.Players), end: end, done: make(chan struct{}), sessions: map[*session]struct{}{}}
	s.rooms[name] = r
	go func() {
		defer close(r.done)
		r.area.Run(ctx)
	}()
	return r
}

// drop closes an area. s.mu is held.
func (s *Server) drop(name, why string) {
	r := s.rooms[name]
	delete(s.rooms, name)
	r.closed = why
	for k := range r.sessions {
		k.close(socket.ShuttingDown, why)
	}
	r.end()
	<-r.done // it waits for nothing
}

// Stop refuses all requests from now on, and closes all connections.
func (s *Server) Stop() {
	s.door.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for name := range s.rooms {
		s.drop(name, "shutting down")
	}
}

// Wait returns when every connection has ended; call Stop first.
func (s *Server) Wait() { s.door.Wait() }

// Guests returns how many guests are in each area.
func (s *Server) Guests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for name, r := range s.rooms {
		out[name] = r.area.Guests()
	}
	return out
}

// ServeHTTP upgrades, or refuses. Without areas it finds nothing.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	none := len(s.rooms) == 0 && !s.stopped
	s.mu.Unlock()
	if none {
		s.cfg.Counts.Refused(noArea.Reason, front.Address(r.RemoteAddr))
		http.NotFound(w, r)
		return
	}
	s.door.ServeHTTP(w, r)
}

// find returns the area that is asked for: the only one, if none is named.
func (s *Server) find(names []string) *room {
	switch {
	case len(names) == 1:
		return s.rooms[names[0]]
	case len(names) == 0 && len(s.rooms) == 1:
		return slices.Collect(maps.Values(s.rooms))[0]
	}
	return nil
}

func (s *Server) admit(q *http.Request) (*upgrade.Guest, *upgrade.Refusal) {
	addr := front.Address(q.RemoteAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(q.URL.Query()["area"])
	switch {
	case r == nil:
		return nil, &noArea
	case s.from[addr] >= PerAddress:
		return nil, &crowded
	case len(r.sessions) >= r.area.Config().MaxGuests:
		return nil, &full
	}
	// A text has no more bytes than the bound either: it may have a third as many characters, of three bytes each.
	limits := socket.Limits{Binary: wire.MaxMessage, Text: wire.MaxMessage}
	return &upgrade.Guest{Name: addr.String(), Limits: limits, Accept: func(ctx context.Context, sock *socket.Socket) {
		k, ok := s.enter(r, sock, addr)
		if ok {
			defer s.leave(k, addr)
		}
		s.ended(addr, sock.Run(ctx, k))
	}}, nil
}

// enter begins a session. false: the connection has been closed, since others were quicker.
func (s *Server) enter(r *room, conn Conn, addr netip.Addr) (*session, bool) {
	k := &session{counts: s.cfg.Counts, area: r.area, conn: conn, budget: budget.Second(MessagesPerSecond)}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.closed != "":
		k.close(socket.ShuttingDown, r.closed)
		return k, false
	case s.from[addr] >= PerAddress:
		k.close(socket.Policy, crowded.Text)
		return k, false
	case len(r.sessions) >= r.area.Config().MaxGuests:
		k.close(socket.Policy, full.Text)
		return k, false
	}
	r.sessions[k] = struct{}{}
	s.from[addr]++
	k.room = r
	k.late = time.AfterFunc(HelloWithin, func() { k.close(socket.Protocol, "hello expected") })
	return k, true
}

// leave ends a session.
func (s *Server) leave(k *session, addr netip.Addr) {
	k.late.Stop()
	if k.avatar != nil {
		k.avatar.Leave()
	}
	s.mu.Lock()
	delete(k.room.sessions, k)
	if s.from[addr]--; s.from[addr] == 0 {
		delete(s.from, addr)
	}
	s.mu.Unlock()
}

// ended counts a connection that is over.
func (s *Server) ended(addr netip.Addr, err error) {
	label := "lost"
	var why *socket.Closed
	if errors.As(err, &why) {
		label = "peer"
		if code := strconv.Itoa(int(why.Code)); !why.Peer && slices.Contains(Labels.Closed, code) {
			label = code
		}
	}
	s.cfg.Counts.Closed(label)
	s.cfg.Log.Debug("guest's connection ended", "addr", addr, "why", err)
}
