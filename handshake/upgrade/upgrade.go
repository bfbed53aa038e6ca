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
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
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

// Refusal is an answer that is not an upgrade.
type Refusal struct {
	Reason string // for the counter
	Status int    // of HTTP
	Text   string
	Free   bool // does not count as a failure of the address
}

// The refusals. An unknown, used, expired or foreign token is one and the same, and is checked before whether the
// player is online: without a token there is nothing to learn.
var (
	shuttingDown = Refusal{"shutting_down", http.StatusServiceUnavailable, "shutting down", true}
	rateLimited  = Refusal{"rate_limited", http.StatusTooManyRequests, "too many failed attempts from this address: a valid token is let in all the same, others are answered slowly", true}
	notWebSocket = Refusal{"not_websocket", http.StatusBadRequest, "not a WebSocket request", false}
	badVersion   = Refusal{"version", http.StatusUpgradeRequired, "WebSocket version 13 is required", false}
	badQuery     = Refusal{"query", http.StatusBadRequest, "token and uuid are required, once each", false}
	badOrigin    = Refusal{"origin", http.StatusForbidden, "pages of this origin may not connect", false}
	badToken     = Refusal{"token", http.StatusUnauthorized, "token is not valid for this player", false}
	offline      = Refusal{"offline", http.StatusForbidden, "player is not online", false}
	// failed is the refusal of a connection that broke while it was upgraded.
	failed = Refusal{"failed", 0, "", true}
)

// Reasons lists the reasons of all refusals, for counters that start at zero.
func Reasons() []string {
	return append(DoorReasons(), badQuery.Reason, badToken.Reason, offline.Reason)
}

// DoorReasons lists those that every door has.
func DoorReasons() []string {
	var out []string
	for _, r := range []Refusal{shuttingDown, rateLimited, notWebSocket, badVersion, badOrigin, failed} {
		out = append(out, r.Reason)
	}
	return out
}

// Handler serves [Path].
type Handler struct{ *Door }

// New makes a handler.
func New(cfg Config) *Handler {
	return &Handler{NewDoor(DoorConfig{
		What: "voice", Sweeper: cfg.Sweeper, Count: cfg.Count, Origins: cfg.Origins, Log: cfg.Log,
		Admit: func(r *http.Request) (*Guest, *Refusal) {
			token, player, ok := credentials(r.URL.RawQuery)
			switch {
			case !ok:
				return nil, &badQuery
			case !cfg.Tokens.Redeem(token, player):
				return nil, &badToken
			case !cfg.Online(player):
				return nil, &offline
			}
			protocol, set := negotiate(r.Header, cfg.Offered())
			// Fill the map directly: Set would change the case of our headers.
			header := http.Header{}
			if protocol != "" {
				header["Sec-WebSocket-Protocol"] = []string{protocol}
			}
			if set.echo {
				set.ToHeaders(header)
			}
			return &Guest{Name: player.String(), Header: header, Limits: socket.Voice, Accept: func(ctx context.Context, s *socket.Socket) {
				cfg.Accept(ctx, s, player, set.Set)
			}}, nil
		},
	})}
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
