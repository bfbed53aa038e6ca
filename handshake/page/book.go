package page

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Lives.
const (
	LinkTTL    = 5 * time.Minute  // a link's code
	LettersTTL = 2 * time.Minute  // six letters
	AwayTTL    = 30 * time.Minute // a session whose player has left the network
	sessionTTL = 24 * time.Hour   // a session in any case
)

// Bounds of the memory for pages. Both go far beyond the needs of players.
const (
	perPlayer   = 4       // sessions of a player; the oldest goes for a new one
	maxSessions = 1 << 16 // in all
	maxCodes    = 1 << 16
)

// alphabet has the letters of short codes, without those that look like digits or like each other.
const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ"

const letters = 6

// secretSize is the entropy in bytes of a link's code and of a session.
const secretSize = 16

// hash is the kept form of a secret.
type hash [sha256.Size]byte

func hashOf(s string) hash { return sha256.Sum256([]byte(s)) }

// Book keeps who may open a page: codes that players get in the game, and the sessions that they trade them for. It
// keeps only hashes, and nothing outlives the process. Its methods may be called from any goroutine.
type Book struct {
	mu       sync.Mutex
	codes    map[hash]*code
	latest   map[uuid.UUID]*[2]hash // the outstanding code of each kind, by player
	sessions map[hash]*session
	players  map[uuid.UUID][]*session // oldest first
	swept    time.Time
}

// kind of a code.
type kind uint8

const (
	link kind = iota
	short
)

type code struct {
	player  uuid.UUID
	kind    kind
	expires time.Time
	used    bool // kept until it expires, to tell a used link from a wrong one
}

type session struct {
	key    hash
	player uuid.UUID
	begun  time.Time
	left   time.Time // when the player left the network; zero: there
}

// over reports whether the session has ended.
func (s *session) over(now time.Time) bool {
	return now.Sub(s.begun) >= sessionTTL || !s.left.IsZero() && now.Sub(s.left) >= AwayTTL
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{codes: map[hash]*code{}, latest: map[uuid.UUID]*[2]hash{}, sessions: map[hash]*session{}, players: map[uuid.UUID][]*session{}}
}

// Link returns a new one-time code for the fragment of a link. It lives for [LinkTTL] and voids the player's former
// one.
func (b *Book) Link(player uuid.UUID) string {
	s := secret()
	b.put(player, link, s, LinkTTL)
	return s
}

// Letters returns a new one-time code of six letters, for players who have to type it. It lives for [LettersTTL] and
// voids the player's former one.
func (b *Book) Letters(player uuid.UUID) string {
	for {
		s := make([]byte, letters)
		random := make([]byte, 8*letters)
		rand.Read(random) // never fails
		n := 0
		for _, r := range random {
			if limit := byte(256 / len(alphabet) * len(alphabet)); r < limit && n < letters { // letters equally likely
				s[n] = alphabet[int(r)%len(alphabet)]
				n++
			}
		}
		if n == letters && b.put(player, short, string(s), LettersTTL) {
			return string(s)
		}
	}
}

func secret() string {
	var s [secretSize]byte
	rand.Read(s[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(s[:])
}

// put notes a code, unless another player has the same.
func (b *Book) put(player uuid.UUID, k kind, s string, ttl time.Duration) bool {
	key, now := hashOf(s), time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.codes[key]; c != nil && now.Before(c.expires) && c.player != player {
		return false
	}
	b.sweep(now, len(b.codes) >= maxCodes)
	mine := b.latest[player]
	if mine == nil {
		mine = new([2]hash)
		b.latest[player] = mine
	}
	if old := b.codes[mine[k]]; old != nil && old.player == player {
		delete(b.codes, mine[k])
	}
	mine[k] = key
	b.codes[key] = &code{player: player, kind: k, expires: now.Add(ttl)}
	return true
}

// sweepEvery is how often expired codes and sessions are looked for.
const sweepEvery = time.Minute

// sweep forgets expired codes and sessions. b.mu is held.
func (b *Book) sweep(now time.Time, full bool) {
	if !full && now.Sub(b.swept) < sweepEvery {
		return
	}
	b.swept = now
	for key, c := range b.codes {
		if !now.Before(c.expires) {
			delete(b.codes, key)
		}
	}
	for player, mine := range b.latest {
		if b.codes[mine[link]] == nil && b.codes[mine[short]] == nil {
			delete(b.latest, player)
		}
	}
	for _, s := range b.sessions {
		if s.over(now) {
			b.drop(s)
		}
	}
}

// typed returns a short code as it was given out, in whatever case and with whatever blanks and dashes it was typed.
func typed(s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r
		case strings.ContainsRune(" \t\u00a0\u2010\u2011\u2012\u2013-_.", r):
			return -1
		}
		return '?'
	}, s)
	return s, len(s) == letters && strings.Trim(s, alphabet) == ""
}

// whose returns the player a code was given to. found is false for one that was never given out or has run out, used
// says that it has been traded.
func (b *Book) whose(s string) (player uuid.UUID, found, used bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.codes[hashOf(s)]
	if c == nil || !time.Now().Before(c.expires) {
		return uuid.Nil, false, false
	}
	return c.player, true, c.used
}

// trade uses a code up and returns the secret of a new session, or false where another page was quicker.
func (b *Book) trade(s string) (string, bool) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.codes[hashOf(s)]
	if c == nil || c.used || !now.Before(c.expires) {
		return "", false
	}
	c.used = true
	b.sweep(now, len(b.sessions) >= maxSessions)
	if len(b.sessions) >= maxSessions {
		return "", false
	}
	if all := b.players[c.player]; len(all) >= perPlayer {
		b.drop(all[0])
	}
	fresh := secret()
	n := &session{key: hashOf(fresh), player: c.player, begun: now}
	b.sessions[n.key] = n
	b.players[c.player] = append(b.players[c.player], n)
	return fresh, true
}

// drop ends a session. b.mu is held.
func (b *Book) drop(s *session) {
	delete(b.sessions, s.key)
	all := b.players[s.player]
	kept := make([]*session, 0, len(all))
	for _, other := range all {
		if other != s {
			kept = append(kept, other)
		}
	}
	if len(kept) == 0 {
		delete(b.players, s.player)
		return
	}
	b.players[s.player] = kept
}

// of returns the player of the session that a secret opens.
func (b *Book) of(s string) (player uuid.UUID, ok bool) {
	if s == "" {
		return uuid.Nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.sessions[hashOf(s)]
	if n == nil {
		return uuid.Nil, false
	}
	if n.over(time.Now()) {
		b.drop(n)
		return uuid.Nil, false
	}
	return n.player, true
}

// end ends the session that a secret opens, if there is one.
func (b *Book) end(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.sessions[hashOf(s)]; n != nil {
		b.drop(n)
	}
}

// Joined notes that a player is on the network.
func (b *Book) Joined(player uuid.UUID) { b.stay(player, time.Time{}) }

// Left notes that a player has left: their sessions end [AwayTTL] later, unless they come back.
func (b *Book) Left(player uuid.UUID) { b.stay(player, time.Now()) }

func (b *Book) stay(player uuid.UUID, left time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.players[player] {
		if !s.over(time.Now()) {
			s.left = left
		}
	}
}
