// Package token mints the secrets that open a voice socket. It promises that a token opens one socket, once, for one
// player, within its life; that only hashes of tokens are kept; and that memory stays bounded whatever is asked of it.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// TTL is how long a token can be redeemed.
const TTL = 60 * time.Second

// A player may have one token a second, five at once.
const (
	every = time.Second
	burst = 5
)

// size is the entropy of a token in bytes.
const size = 32

// ErrRateLimited refuses a player who asks too often, and everybody while the table is full.
var ErrRateLimited = errors.New("too many voice tokens asked for, try again in a second")

// Issuer mints and redeems. Its methods may be called from any goroutine.
type Issuer struct {
	max int

	mu      sync.Mutex
	players map[uuid.UUID]*entry
}

// entry holds a player's last token, while it can still be redeemed, and the rate, so long as it matters.
type entry struct {
	hash    [sha256.Size]byte
	expires time.Time // zero: no token outstanding
	rate    *rate.Limiter
}

// idle tells whether the entry can be forgotten without a difference.
func (e *entry) idle(now time.Time) bool {
	return !now.Before(e.expires) && e.rate.TokensAt(now) >= burst
}

// New returns an issuer that remembers at most max players at a time. Call Forget for those who have left the network.
func New(max int) *Issuer {
	return &Issuer{max: max, players: make(map[uuid.UUID]*entry)}
}

// Mint returns a new token for the player, in base64url without padding, and how long it lives. It voids the player's
// former one.
func (i *Issuer) Mint(player uuid.UUID) (token string, ttl time.Duration, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	e := i.players[player]
	if e == nil {
		if len(i.players) >= i.max && !i.sweep(now) {
			return "", 0, fmt.Errorf("%w: %d players have one already", ErrRateLimited, len(i.players))
		}
		e = &entry{rate: rate.NewLimiter(rate.Every(every), burst)}
		i.players[player] = e
	}
	if !e.rate.AllowN(now, 1) {
		return "", 0, ErrRateLimited
	}
	var secret [size]byte
	rand.Read(secret[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	e.hash, e.expires = sha256.Sum256([]byte(token)), now.Add(TTL)
	return token, TTL, nil
}

// sweep drops idle entries and tells whether there were any.
func (i *Issuer) sweep(now time.Time) bool {
	n := len(i.players)
	for id, e := range i.players {
		if e.idle(now) {
			delete(i.players, id)
		}
	}
	return len(i.players) < n
}

// Redeem tells whether the token is the player's outstanding one, and uses it up. A wrong token leaves the right one as
// it is, so that a stranger who knows a UUID cannot void it.
func (i *Issuer) Redeem(token string, player uuid.UUID) bool {
	hash := sha256.Sum256([]byte(token))
	i.mu.Lock()
	defer i.mu.Unlock()
	var want [sha256.Size]byte
	e := i.players[player]
	live := e != nil && time.Now().Before(e.expires)
	if live {
		want = e.hash
	}
	// Hash and compare even when there is nothing to redeem: the time taken says nothing about who holds a token.
	if subtle.ConstantTimeCompare(hash[:], want[:]) != 1 || !live {
		return false
	}
	e.hash, e.expires = [sha256.Size]byte{}, time.Time{}
	return true
}

// Forget voids the player's token; call it when the player leaves. The rate is remembered until it has recovered, so
// that rejoining gains nothing.
func (i *Issuer) Forget(player uuid.UUID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.players[player]; e != nil {
		e.hash, e.expires = [sha256.Size]byte{}, time.Time{}
		if e.idle(time.Now()) {
			delete(i.players, player)
		}
	}
}
