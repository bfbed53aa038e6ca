// Package invite joins the game connection to the voice socket: a player's client asks, and gets a base URL and a fresh
// token, or a reason why not. It promises that messages of a backend or a client on these channels go no further than
// here, and that no token outlives its player's stay.
package invite

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/proxy/session"
)

// Issuer makes and voids tokens; [token.Issuer] is one.
//
// [token.Issuer]: https://pkg.go.dev/github.com/earshot-mc/earshot/handshake/token#Issuer
type Issuer interface {
	// Mint fails when the player asks too often.
	Mint(player uuid.UUID) (token string, ttl time.Duration, err error)
	Forget(player uuid.UUID)
}

// Config holds how invitations are made. Tokens is required.
type Config struct {
	Tokens Issuer
	Terms  Terms // at the start; see [Inviter.Apply]
	// Allowed tells whether a player may have voice; nil: everybody.
	Allowed func(player uuid.UUID) bool
	Log     *slog.Logger // nil: none
}

// Terms are an administrator's choices about invitations.
type Terms struct {
	// PublicURL is the base URL to offer. Empty: the player's own address for the game, since voice is served on the
	// same port.
	PublicURL string
	// TLS says that this port speaks TLS, so that https is offered. Browsers have no microphone without it, except on
	// loopback.
	TLS bool
	Off bool // there is no voice
}

// Inviter is the [session.Channels] of the voice channels. Its methods may be called from any goroutine, and none of
// them waits.
type Inviter struct {
	cfg Config

	mu      sync.Mutex
	terms   Terms
	present map[uuid.UUID]player // by the newest session
	said    map[uuid.UUID]bool   // those whose client has said hello: it has a voice of its own
	refused map[uuid.UUID]bool   // those who asked while there was no voice

	// Counts since the start.
	Offered     atomic.Uint64 // handshakes sent
	Unavailable atomic.Uint64 // players told why not
	Ignored     atomic.Uint64 // messages that were no hello
}

// player is the part of a [session.Player] that an invitation needs.
type player interface {
	ID() uuid.UUID
	Protocol() int32
	Host() string
	Port() uint16
	SendPlugin(channel string, data []byte) error
}

var _ session.Channels = (*Inviter)(nil)

// New makes an inviter.
func New(cfg Config) *Inviter {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Inviter{cfg: cfg, terms: cfg.Terms, present: make(map[uuid.UUID]player), said: make(map[uuid.UUID]bool), refused: make(map[uuid.UUID]bool)}
}

// Apply changes the terms of invitations from now on. Players who asked in vain while there was no voice are invited
// when there is.
func (i *Inviter) Apply(t Terms) {
	i.mu.Lock()
	i.terms = t
	var now []player
	if !t.Off {
		for id := range i.refused {
			now = append(now, i.present[id])
		}
		clear(i.refused)
	}
	i.mu.Unlock()
	for _, p := range now {
		i.invite(p)
	}
}

// Owns reports whether a channel is ours. These never pass the proxy, in either direction.
func (i *Inviter) Owns(channel string) bool { return strings.HasPrefix(channel, offer.Prefix) }

// Message answers a client's hello. Any other message on our channels breaks the protocol.
func (i *Inviter) Message(p session.Player, channel string, data []byte) {
	if channel != offer.Hello {
		i.ignore(p, channel)
		return
	}
	// A hello of a later version is answered too: the answer says which version this end speaks.
	if err := offer.ParseHello(data); err != nil && !errors.Is(err, offer.ErrVersion) {
		i.ignore(p, channel)
		return
	}
	i.invite(p)
}

// Registered invites a client that announces that it listens for handshakes.
func (i *Inviter) Registered(p session.Player, channels []string) {
	for _, c := range channels {
		if c == offer.Handshake {
			i.invite(p)
			return
		}
	}
}

// Joined notes the player's session, so that the end of an older one of the same player does not void the newer one's
// token.
func (i *Inviter) Joined(p session.Player) {
	i.mu.Lock()
	i.present[p.ID()] = p
	i.mu.Unlock()
}

// Left voids the player's token.
func (i *Inviter) Left(p session.Player) {
	id := p.ID()
	i.mu.Lock()
	defer i.mu.Unlock()
	if now, ok := i.present[id]; ok && now != player(p) {
		return
	}
	delete(i.present, id)
	delete(i.refused, id)
	delete(i.said, id)
	i.cfg.Tokens.Forget(id)
}

func (i *Inviter) ignore(p player, channel string) {
	i.Ignored.Add(1)
	i.cfg.Log.Debug("message on a voice channel ignored", "player", p.ID(), "channel", channel)
}

// invite sends a handshake, or the reason why there is none.
func (i *Inviter) invite(p player) {
	id := p.ID()
	i.mu.Lock()
	terms := i.terms
	i.present[id] = p
	i.said[id] = true
	if terms.Off {
		i.refused[id] = true
	}
	i.mu.Unlock()
	if terms.Off {
		i.unavailable(p, offer.Disabled)
		return
	}
	if i.cfg.Allowed != nil && !i.cfg.Allowed(id) {
		i.unavailable(p, offer.NoPermission)
		return
	}
	url, ok := terms.base(p)
	if !ok {
		i.cfg.Log.Debug("no voice for a client that did not say which address it joined by", "player", id)
		i.unavailable(p, offer.Disabled)
		return
	}
	token, ttl, err := i.cfg.Tokens.Mint(id)
	if err != nil {
		i.unavailable(p, offer.RateLimited)
		return
	}
	if err := p.SendPlugin(offer.Handshake, offer.AppendHandshake(nil, url, token, ttl)); err != nil {
		i.cfg.Log.Debug("voice handshake not sent", "player", id, "err", err)
		return
	}
	i.Offered.Add(1)
}

// Base returns the base URL that a player who is on the network is offered; false: their client did not say by which
// address it joined.
func (i *Inviter) Base(id uuid.UUID) (url string, ok bool) {
	i.mu.Lock()
	p, terms := i.present[id], i.terms
	i.mu.Unlock()
	if p == nil {
		return "", false
	}
	return terms.base(p)
}

// SaidHello tells whether a player's client has a voice of its own: it has asked for one.
func (i *Inviter) SaidHello(id uuid.UUID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.said[id]
}

func (t *Terms) base(p player) (url string, ok bool) {
	if t.PublicURL != "" {
		return t.PublicURL, true
	}
	return baseURL(p.Host(), p.Port(), t.TLS)
}

func (i *Inviter) unavailable(p player, why offer.Reason) {
	i.Unavailable.Add(1)
	if err := p.SendPlugin(offer.UnavailableFor(p.Protocol()), offer.AppendUnavailable(nil, why)); err != nil {
		i.cfg.Log.Debug("voice refusal not sent", "player", p.ID(), "err", err)
	}
}

// baseURL returns where the client already found the proxy. The host is the client's word; it goes back to nobody but
// that client, and only if it can be a host.
func baseURL(host string, port uint16, secure bool) (string, bool) {
	host = strings.Trim(host, "[]")
	if host == "" || port == 0 {
		return "", false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.WithZone("").String() // a zone means nothing to others
	} else if len(host) > 253 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" {
		return "", false
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(port))), true
}
