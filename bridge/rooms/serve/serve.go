// Package serve puts rooms on a web server: GET /play/KEY is upgraded to a WebSocket that carries the Rooms protocol.
//
// It promises that a refusal by HTTP tells nothing about which rooms there are, and that it keeps few connections of
// strangers who do not join.
package serve

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/handshake/upgrade"
)

// The paths that are served.
const (
	Path     = "/play/" // and the room's key
	SpecPath = "/spec/rooms-protocol.json"
)

// MaxKey is the most bytes that a room's key has.
const MaxKey = 256

// Bounds of the transports that have not joined.
const (
	maxPending        = 256
	maxPendingRoom    = 64
	maxPendingAddress = 8
)

var limits = socket.Limits{Binary: frame.MaxBytes, Text: frame.MaxChars}

// Config has what a handler needs. All fields but Origins, Failures and Log are required.
type Config struct {
	Sweeper *socket.Sweeper
	// Enter returns the identity of a token's owner, and the way into the room for them. An error of open is a
	// [rooms.Refusal], which they are told. ok is false if the token is not valid for the room. An empty token stands
	// for somebody who shows none. It is always valid, but may lead nowhere: open alone tells whether there is such a
	// room, after the upgrade.
	Enter    func(token, key string) (identity string, open func() (*rooms.Hub, error), ok bool)
	Count    func(reason string, from netip.Addr)
	Origins  []string
	Failures *front.Failures // of another door of the same address
	Log      *slog.Logger
}

// Refusals in addition to the ones of every door.
var (
	badPath  = upgrade.Refusal{Reason: "path", Status: http.StatusNotFound, Text: "a room's address is /play/ and its key"}
	badToken = upgrade.Refusal{Reason: "token", Status: http.StatusUnauthorized, Text: "the token is not valid for this room"}
	crowded  = upgrade.Refusal{Reason: "crowded", Status: http.StatusServiceUnavailable, Text: "too many connections that have not joined yet: try again in a moment", Free: true}
	many     = upgrade.Refusal{Reason: "many", Status: http.StatusTooManyRequests, Text: "too many connections from this address that have not joined yet", Free: true}
)

// Reasons lists the reasons of all refusals, for counters that start at zero.
func Reasons() []string {
	return append(upgrade.DoorReasons(), badPath.Reason, badToken.Reason, crowded.Reason, many.Reason)
}

// Handler serves [Path].
type Handler struct {
	*upgrade.Door
	cfg Config

	mu        sync.Mutex // guards these counts of transports that have not joined
	pending   int
	rooms     map[string]int
	addresses map[netip.Addr]int
}

// New makes a handler.
func New(cfg Config) *Handler {
	h := &Handler{cfg: cfg, rooms: map[string]int{}, addresses: map[netip.Addr]int{}}
	h.Door = upgrade.NewDoor(upgrade.DoorConfig{
		What: "room", Sweeper: cfg.Sweeper, Count: cfg.Count, Origins: cfg.Origins, Failures: cfg.Failures, Log: cfg.Log, Admit: h.admit,
	})
	return h
}

// Key returns the room's key in a path; false: there is none. A key has only letters, digits and _ . : - @ =, in one
// spelling, so that a reverse proxy has nothing to decode.
func Key(u *url.URL) (string, bool) {
	key, ok := strings.CutPrefix(u.EscapedPath(), Path)
	if !ok || key == "" || len(key) > MaxKey || key == "." || key == ".." {
		return "", false
	}
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_.:-@=", c) >= 0:
		default:
			return "", false
		}
	}
	return key, true
}

// maxToken bounds what is hashed.
const maxToken = 256

// Token returns the token of a request, from its header or its query; false: there are several, or it is not one.
func Token(r *http.Request) (token string, ok bool) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false
	}
	all := q["token"]
	for _, line := range r.Header.Values("Authorization") {
		kind, t, found := strings.Cut(line, " ")
		if !found || !strings.EqualFold(kind, "Bearer") {
			return "", false
		}
		all = append(all, strings.TrimSpace(t))
	}
	switch {
	case len(all) == 0:
		return "", true
	case len(all) > 1 || all[0] == "" || len(all[0]) > maxToken:
		return "", false
	}
	return all[0], true
}

func (h *Handler) admit(r *http.Request) (*upgrade.Guest, *upgrade.Refusal) {
	key, ok := Key(r.URL)
	if !ok {
		return nil, &badPath
	}
	token, ok := Token(r)
	if !ok {
		return nil, &badToken
	}
	identity, open, ok := h.cfg.Enter(token, key)
	if !ok {
		return nil, &badToken
	}
	addr := front.Address(r.RemoteAddr)
	if no := h.enter(key, addr); no != nil {
		return nil, no
	}
	done := sync.OnceFunc(func() { h.leave(key, addr) })
	// A request that does not reach Accept was not upgraded, or too late.
	timer := time.AfterFunc(2*frame.JoinMs*time.Millisecond, done)
	return &upgrade.Guest{Name: identity, Limits: limits, Accept: func(ctx context.Context, s *socket.Socket) {
		defer done()
		defer timer.Stop()
		h.accept(ctx, s, identity, open, done)
	}}, nil
}

// enter counts a transport that has not joined.
func (h *Handler) enter(key string, addr netip.Addr) *upgrade.Refusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.addresses[addr] >= maxPendingAddress:
		return &many
	case h.pending >= maxPending, h.rooms[key] >= maxPendingRoom:
		return &crowded
	}
	h.pending++
	h.rooms[key]++
	h.addresses[addr]++
	return nil
}

// leave takes a transport off the count again.
func (h *Handler) leave(key string, addr netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending--
	if h.rooms[key]--; h.rooms[key] == 0 {
		delete(h.rooms, key)
	}
	if h.addresses[addr]--; h.addresses[addr] == 0 {
		delete(h.addresses, addr)
	}
}

// accept runs a socket in its room. joined is called once it has joined.
func (h *Handler) accept(ctx context.Context, s *socket.Socket, identity string, open func() (*rooms.Hub, error), joined func()) {
	hub, err := open()
	if err != nil {
		why, ok := err.(rooms.Refusal)
		if !ok {
			why = rooms.ErrNoRoom
		}
		s.Control(frame.AppendSaid(nil, frame.Error, string(why)), false)
		s.Close(socket.Policy, frame.Invalid)
		s.Run(ctx, deaf{})
		return
	}
	p := hub.Attach(conn{s, identity})
	p.Gone(s.Run(ctx, &reader{p: p, joined: joined}))
}

// deaf is a handler that hears nothing.
type deaf struct{}

func (deaf) Binary([]byte) {}
func (deaf) Text([]byte)   {}

// reader gives a peer what its socket reads.
type reader struct {
	p      *rooms.Peer
	joined func() // nil: it has been called
}

// Text implements [socket.Handler].
func (r *reader) Text(b []byte) {
	r.p.Text(b)
	if r.joined != nil && r.p.Joined() {
		r.joined()
		r.joined = nil
	}
}

// Binary implements [socket.Handler].
func (r *reader) Binary(b []byte) { r.p.Binary(b) }

// TooLong implements [socket.LongHandler].
func (r *reader) TooLong() { r.p.TooLong() }

// conn is a WebSocket as a room's transport.
type conn struct {
	s        *socket.Socket
	identity string
}

var _ rooms.BinaryConn = conn{}

func full(fits bool) error {
	if !fits {
		return rooms.ErrFull
	}
	return nil
}

// Control implements [rooms.Conn].
func (c conn) Control(b []byte) error { return full(c.s.Control(b, false)) }

// ControlBinary implements [rooms.BinaryConn].
func (c conn) ControlBinary(b []byte) error { return full(c.s.Control(b, true)) }

// State implements [rooms.Conn].
func (c conn) State(b []byte) { c.s.State(b, false) }

// StateBinary implements [rooms.BinaryConn].
func (c conn) StateBinary(b []byte) { c.s.State(b, true) }

// Recover implements [rooms.Conn].
func (c conn) Recover(frames ...[]byte) { c.s.Recover(false, frames...) }

// RecoverBinary implements [rooms.BinaryConn].
func (c conn) RecoverBinary(frames ...[]byte) { c.s.Recover(true, frames...) }

// Waiting implements [rooms.Conn].
func (c conn) Waiting() time.Time {
	d := c.s.StateWaits()
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(-d)
}

// Reliable implements [rooms.Conn].
func (c conn) Reliable() bool { return true }

// Identity implements [rooms.Conn].
func (c conn) Identity() string { return c.identity }

// Close implements [rooms.Conn].
func (c conn) Close(code frame.Code, reason string) { c.s.Close(socket.Code(code), reason) }

// Spec serves the protocol in a form for programs, to everybody.
func Spec() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only to be read", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Write(frame.SpecFile)
	})
}
