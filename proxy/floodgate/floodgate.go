// Package floodgate reads who a player of Bedrock Edition is. Geyser, which translates for them, puts that into the
// host of the handshake, encrypted with a key that it shares with us: Floodgate's key.pem.
//
//	host NUL "^Floodgate^" version base64(nonce) "!" base64(AES-GCM(fields between NULs))
//
// Anybody with the key can pose as any player, so data counts only from Geyser's address, and only once. The format has
// no time in it, so old data is not told from new. Errors never show the data.
//
// Layout: AesCipher and FloodgateCipher in https://github.com/GeyserMC/Floodgate, core, package crypto, and for the
// fields BedrockData in https://github.com/GeyserMC/Geyser, common, package org.geysermc.floodgate.util.
package floodgate

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// MaxData bounds a player's data, in characters; real ones have some 300.
const MaxData = 4096

const (
	mark    = "^Floodgate^"
	version = "\x3e" // of the format: 0, counted from here
	nonce   = 12
	fields  = 12
	maxName = 16
	// maxSeen bounds the nonces that are remembered. Nobody else can make new ones, and old data is of use only to
	// somebody who can connect from Geyser's address.
	maxSeen = 1 << 14
)

// Faults of data.
var (
	ErrVersion = errors.New("floodgate: data of another version of the format; update Geyser and Floodgate")
	ErrFormat  = errors.New("floodgate: data that is not in the format")
	ErrKey     = errors.New("floodgate: data of another key, or changed on the way; give Geyser and Earshot the same key.pem")
	ErrUsed    = errors.New("floodgate: data that has been used before")
)

// Data returns the data in the host of a handshake, "" when there is none. Only a whole part behind the host counts.
func Data(host string) string {
	parts := strings.Split(host, "\x00")
	for _, p := range parts[1:] {
		if strings.HasPrefix(p, mark) {
			return p
		}
	}
	return ""
}

// Key decrypts. It may be used by several goroutines.
type Key struct {
	aead cipher.AEAD

	mu   sync.Mutex
	seen map[[nonce]byte]struct{}
	ring [][nonce]byte // the same in order, the oldest at next once it is full
	next int
}

// NewKey makes a Key of 16, 24 or 32 bytes.
func NewKey(b []byte) (*Key, error) {
	block, err := aes.NewCipher(b)
	if err != nil {
		return nil, fmt.Errorf("a key has 16, 24 or 32 bytes, as Floodgate's key.pem, and not %d", len(b))
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Key{aead: aead, seen: map[[nonce]byte]struct{}{}}, nil
}

// LoadKey reads a key file, which has the bytes of the key and nothing else.
func LoadKey(file string) (*Key, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	k, err := NewKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// Player is a player of Bedrock Edition.
type Player struct {
	Gamertag string
	XUID     uint64     // of the Xbox account
	Addr     netip.Addr // where the player is; the zero Addr when Geyser does not say
	// Linked is the Java account that the player has joined to the Xbox account, nil without one.
	Linked *Linked
}

// Linked is an account of Java Edition.
type Linked struct {
	Name string
	ID   uuid.UUID
}

// ID returns the player's UUID: the linked account's, or the XUID in the lower half of an otherwise empty one.
func (p *Player) ID() uuid.UUID {
	if p.Linked != nil {
		return p.Linked.ID
	}
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[8:], p.XUID)
	return id
}

// Name returns the player's name on servers: the linked account's, or prefix and gamertag, cut to 16 characters and
// with _ in place of characters that names cannot have.
func (p *Player) Name(prefix string) string {
	if p.Linked != nil {
		return p.Linked.Name
	}
	name := strings.Map(func(c rune) rune {
		if c <= ' ' || c >= 0x7f {
			return '_'
		}
		return c
	}, prefix+p.Gamertag)
	return name[:min(len(name), maxName)]
}

// Open decrypts data, as [Data] finds it, and remembers it, so that it counts once.
func (k *Key) Open(data string) (*Player, error) {
	rest, ok := strings.CutPrefix(data, mark)
	if !ok || len(data) > MaxData {
		return nil, ErrFormat
	}
	if rest, ok = strings.CutPrefix(rest, version); !ok {
		return nil, ErrVersion
	}
	n, c, ok := strings.Cut(rest, "!")
	if !ok {
		return nil, ErrFormat
	}
	var used [nonce]byte
	iv, err := base64.StdEncoding.Strict().DecodeString(n)
	if err != nil || len(iv) != nonce {
		return nil, ErrFormat
	}
	sealed, err := base64.StdEncoding.Strict().DecodeString(c)
	if err != nil {
		return nil, ErrFormat
	}
	plain, err := k.aead.Open(nil, iv, sealed, nil)
	if err != nil {
		return nil, ErrKey
	}
	if copy(used[:], iv); !k.first(used) {
		return nil, ErrUsed
	}
	return parse(string(plain))
}

// first notes a nonce and reports whether it is a new one.
func (k *Key) first(n [nonce]byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.seen[n]; ok {
		return false
	}
	k.seen[n] = struct{}{}
	if len(k.ring) < maxSeen {
		k.ring = append(k.ring, n)
		return true
	}
	delete(k.seen, k.ring[k.next])
	k.ring[k.next] = n
	k.next = (k.next + 1) % maxSeen
	return true
}

// parse reads the fields: version, gamertag, XUID, device, language, interface, input, address, linked account, whether
// a proxy sent it, and two that are about skins.
func parse(plain string) (*Player, error) {
	f := strings.Split(plain, "\x00")
	if len(f) != fields {
		return nil, ErrFormat
	}
	p := &Player{Gamertag: f[1]}
	var err error
	if p.XUID, err = strconv.ParseUint(f[2], 10, 64); err != nil || p.XUID == 0 || p.Gamertag == "" {
		return nil, ErrFormat
	}
	if a, err := netip.ParseAddr(f[7]); err == nil {
		p.Addr = a.Unmap().WithZone("")
	}
	if f[8] == "" || f[8] == "null" {
		return p, nil
	}
	link := strings.Split(f[8], ";") // name, its UUID, the Bedrock player's
	if len(link) != 3 {
		return nil, ErrFormat
	}
	id, err := uuid.Parse(link[1])
	if err != nil || id == uuid.Nil || link[0] == "" || len(link[0]) > maxName || strings.IndexFunc(link[0], func(c rune) bool { return c <= ' ' || c >= 0x7f }) >= 0 {
		return nil, ErrFormat
	}
	p.Linked = &Linked{link[0], id}
	return p, nil
}
