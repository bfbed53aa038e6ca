// Package upgrade answers GET /voice: either with a plain HTTP refusal, or with a WebSocket whose player and
// capabilities are known. It promises that nothing is upgraded before every check has passed, that a refusal tells a
// stranger nothing about the players on the network, and that each is counted by its reason.
package upgrade

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
)

// Path is where clients connect, below the base URL that they are offered.
const Path = "/voice"

// Redeemer uses up a token that was minted for a player.
type Redeemer interface {
	Redeem(token string, player uuid.UUID) bool
}

// Config holds what a handler needs. All fields but Origins and Log are required.
type Config struct {
	Tokens  Redeemer
	Online  func(player uuid.UUID) bool // is the player on the network now
	Offered func() caps.Set             // what the server supports at this moment
	Sweeper *socket.Sweeper
	// Accept owns the socket and runs it; the connection is closed when it returns.
	Accept func(ctx context.Context, s *socket.Socket, player uuid.UUID, negotiated caps.Set)
	// Count is called with the reason of every refusal, one of Reasons, and the refused address: an IPv4 address or an
	// IPv6 /64.
	Count func(reason string, from netip.Addr)
	// Origins are further pages that may connect, as browsers name them: scheme://host[:port]. A page of the requested
	// host always may.
	Origins []string
	Log     *slog.Logger
}

// A refusal is an answer that is not an upgrade.
type refusal struct {
	reason string // for the counter
	status int
	text   string
	free   bool // it does not count as a failure of the address
}

// The refusals. An unknown, used, expired or foreign token is one and the same, and is checked before whether the
// player is online: without a token there is nothing to learn.
var (
	shuttingDown = refusal{"shutting_down", http.StatusServiceUnavailable, "shutting down", true}
	rateLimited  = refusal{"rate_limited", http.StatusTooManyRequests, "too many failed attempts from this address: a valid token is let in all the same, others are answered slowly", true}
	notWebSocket = refusal{"not_websocket", http.StatusBadRequest, "not a WebSocket request", false}
	badVersion   = refusal{"version", http.StatusUpgradeRequired, "WebSocket version 13 is required", false}
	badQuery     = refusal{"query", http.StatusBadRequest, "token and uuid are required, once each", false}
	badOrigin    = refusal{"origin", http.StatusForbidden, "pages of this origin may not connect", false}
	badToken     = refusal{"token", http.StatusUnauthorized, "token is not valid for this player", false}
	offline      = refusal{"offline", http.StatusForbidden, "player is not online", false}
	// failed is the refusal of a connection that broke while it was upgraded.
	failed = refusal{"failed", 0, "", true}
)

// Reasons lists the reasons of all refusals, for counters that start at zero.
func Reasons() []string {
	var out []string
	for _, r := range []refusal{shuttingDown, rateLimited, notWebSocket, badVersion, badQuery, badOrigin, badToken, offline, failed} {
		out = append(out, r.reason)
	}
	return out
}

// An address may fail this often: at once, and then one more each time the interval is over. A household of players
// with stale links stays below it.
const (
	failBurst = 20
	failEvery = 3 * time.Second
)

// writeTimeout bounds the answer to an upgrade.
const writeTimeout = 5 * time.Second

// Handler serves [Path].
type Handler struct {
	cfg      Config
	origins  atomic.Pointer[[]string]
	failures front.Failures
	mu       sync.Mutex  // held while stopped is set and while serving grows
	stopped  atomic.Bool // readable without it
	stop     chan struct{}
	serving  sync.WaitGroup
	slowed   atomic.Int32 // answers that are being held back
}

// New makes a handler.
func New(cfg Config) *Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{cfg: cfg, stop: make(chan struct{}), failures: front.Failures{Burst: failBurst, Every: failEvery}}
	h.SetOrigins(cfg.Origins)
	return h
}

// SetOrigins replaces [Config].Origins for requests from now on.
func (h *Handler) SetOrigins(origins []string) { h.origins.Store(&origins) }

// Stop refuses every request from now on. Sockets that are open stay so.
func (h *Handler) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped.Swap(true) {
		close(h.stop)
	}
}

// Wait returns when every socket that was handed on has ended; call Stop first.
func (h *Handler) Wait() { h.serving.Wait() }

// ServeHTTP refuses, or upgrades and returns when the socket has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addr := front.Address(r.RemoteAddr)
	player, no := h.check(r, addr)
	if no != nil {
		h.refuse(w, r, addr, no)
		return
	}
	token, set := negotiate(r.Header, h.cfg.Offered())
	// Fill the map directly: Set would change the case of our headers.
	header := http.Header{}
	if token != "" {
		header["Sec-WebSocket-Protocol"] = []string{token}
	}
	if set.echo {
		set.ToHeaders(header)
	}
	conn, rw, _, err := ws.HTTPUpgrader{Header: header, Timeout: writeTimeout}.Upgrade(r, w)
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		h.cfg.Count(failed.reason, addr)
		h.cfg.Log.Debug("voice upgrade failed", "addr", addr, "player", player, "err", err)
		return
	}
	// The goroutine of net/http would hold the request, two buffers and a deep stack for as long as the socket lives:
	// more than a quiet socket itself needs.
	sock := socket.New(conn, rw.Reader, h.cfg.Sweeper)
	h.mu.Lock()
	if h.stopped.Load() { // since it was checked
		h.mu.Unlock()
		conn.Close()
		return
	}
	h.serving.Add(1) // under mu, so that it is before any Wait
	h.mu.Unlock()
	go func() {
		defer h.serving.Done()
		defer conn.Close()
		defer func() { // a fault of ours ends this socket and no other
			if fault := recover(); fault != nil {
				h.cfg.Log.Error("voice socket ended by a bug; please report this", "player", player, "panic", fault, "stack", string(debug.Stack()))
			}
		}()
		h.cfg.Accept(context.Background(), sock, player, set.Set)
	}()
}

// Answers to an address that fails too often are held back for slowFor, so many at a time; all further ones go at once.
const (
	slowFor   = time.Second
	maxSlowed = 64
)

// slow holds an answer back. Its cost is bounded: the connection, for as long as it may be silent anyway.
func (h *Handler) slow(r *http.Request) {
	defer h.slowed.Add(-1)
	if h.slowed.Add(1) > maxSlowed {
		return
	}
	t := time.NewTimer(slowFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	case <-h.stop:
	}
}

// check returns the player whose token was redeemed, or a refusal. A good token counts whatever else has come from its
// address: failures are counted after it has been tried, so that nobody can shut out others at the same address.
func (h *Handler) check(r *http.Request, addr netip.Addr) (uuid.UUID, *refusal) {
	switch {
	case h.stopped.Load():
		return uuid.Nil, &shuttingDown
	case !isUpgrade(r):
		return uuid.Nil, &notWebSocket
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return uuid.Nil, &badVersion
	}
	token, player, ok := credentials(r.URL.RawQuery)
	switch {
	case !ok:
		return uuid.Nil, &badQuery
	case !front.Ours(r, *h.origins.Load()):
		return uuid.Nil, &badOrigin
	case !h.cfg.Tokens.Redeem(token, player):
		return uuid.Nil, &badToken
	case !h.cfg.Online(player):
		return uuid.Nil, &offline
	}
	return player, nil
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, addr netip.Addr, why *refusal) {
	if !why.free && h.failures.Add(addr) {
		h.slow(r)
		why = &rateLimited
		w.Header().Set("Retry-After", strconv.Itoa(int(failEvery/time.Second)))
	}
	h.cfg.Count(why.reason, addr)
	h.cfg.Log.Debug("voice connection refused", "addr", addr, "reason", why.reason)
	if why == &badVersion {
		w.Header()["Sec-WebSocket-Version"] = []string{"13"}
	}
	http.Error(w, why.text, why.status)
}

// isUpgrade tells a WebSocket request of any version: RFC 6455, 4.2.1. A body would be read as frames.
func isUpgrade(r *http.Request) bool {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1 &&
		r.ContentLength == 0 && len(r.TransferEncoding) == 0 && r.Host != "" &&
		hasWord(r.Header, "Upgrade", "websocket") && hasWord(r.Header, "Connection", "upgrade") &&
		err == nil && len(key) == 16 && r.Header.Get("Sec-WebSocket-Version") != ""
}

// hasWord tells whether a header's comma-separated list has the word in any case.
func hasWord(h http.Header, name, word string) bool {
	return slices.ContainsFunc(list(h, name), func(s string) bool { return strings.EqualFold(s, word) })
}

// list takes a header of several lines and values apart.
func list(h http.Header, name string) []string {
	var out []string
	for _, line := range h.Values(name) {
		for word := range strings.SplitSeq(line, ",") {
			out = append(out, strings.TrimSpace(word))
		}
	}
	return out
}

// maxToken bounds the bytes that are hashed; our tokens have 43.
const maxToken = 128

// credentials reads ?token=T&uuid=U and ignores other parameters.
func credentials(query string) (token string, player uuid.UUID, ok bool) {
	q, err := url.ParseQuery(query)
	if err != nil || len(q["token"]) != 1 || len(q["uuid"]) != 1 {
		return "", uuid.Nil, false
	}
	token, id := q["token"][0], q["uuid"][0]
	if token == "" || len(token) > maxToken || len(id) != 36 {
		return "", uuid.Nil, false
	}
	player, err = uuid.Parse(id)
	return token, player, err == nil
}

// negotiated is a set, and whether headers asked for it; then headers echo it.
type negotiated struct {
	caps.Set
	echo bool
}

// negotiate picks the subprotocol, if any are offered, and the capabilities. A token that asks for something decides
// alone; the base token leaves it to the headers.
func negotiate(h http.Header, offered caps.Set) (token string, set negotiated) {
	token, s, ok := caps.Choose(list(h, "Sec-WebSocket-Protocol"), offered)
	if ok && s != (caps.Set{}) {
		return token, negotiated{Set: s}
	}
	return token, negotiated{caps.FromHeaders(h).Negotiate(offered), true}
}
