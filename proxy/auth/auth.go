// Package auth proves who a player is: the encryption exchange of an online login, the question to the session server,
// and the signed chat keys of 1.19 to 1.19.2.
//
// It promises that hostile clients cannot make it expensive: private-key operations run at most one per core, questions
// to the session server are bounded in number, time and size, and all of it ends when the client is gone.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	"github.com/Tnze/go-mc/offline"
	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// DefaultSessionURL is the session server that the game's own servers ask.
const DefaultSessionURL = "https://sessionserver.mojang.com/session/minecraft/hasJoined"

// What Config means when it says nothing.
const (
	defaultTimeout    = 10 * time.Second
	defaultConcurrent = 64
	defaultKeyBits    = 1024 // what the game uses; the client's answer then has 128 bytes
)

// The ways a login fails. Reason has the words for the player.
var (
	ErrEncryption  = errors.New("encryption exchange failed") // the client did not prove that it read our request
	ErrUnverified  = errors.New("session server does not know this login")
	ErrServersDown = errors.New("session server gives no answer; check its address and the network")
	ErrKeyMissing  = errors.New("client has no signed chat key")
	ErrKeyExpired  = errors.New("the client's chat key has expired")
	ErrKeyInvalid  = errors.New("the client's chat key is not signed by the game's services")
)

// Reason returns what to tell a player whose login failed with err, in words that the client translates. ok is false
// when it has none.
func Reason(err error) (t packet.Text, ok bool) {
	for _, r := range []struct {
		err error
		key string
	}{
		{ErrUnverified, "unverified_username"}, {ErrServersDown, "authservers_down"}, {ErrKeyMissing, "missing_public_key"},
		{ErrKeyExpired, "invalid_public_key_signature"}, {ErrKeyInvalid, "invalid_public_key"},
	} {
		if errors.Is(err, r.err) {
			return packet.Translatable("multiplayer.disconnect." + r.key), true
		}
	}
	return packet.Text{}, false
}

// Config says how to authenticate players. The zero value does as the game's own servers do.
type Config struct {
	// SessionURLs are asked in order until one knows the login. Each is a whole hasJoined address, or only
	// scheme://host; none: DefaultSessionURL.
	SessionURLs []string
	Timeout     time.Duration // for all questions about one login, waiting for a turn included; 0: 10 s
	Concurrent  int           // questions asked at the same time; 0: 64
	// SendAddress has the session server refuse players who did not log in there from the address they play from.
	SendAddress bool
	// RequireKey turns away players of 1.19 to 1.19.2 without a signed chat key.
	RequireKey  bool
	ServicesKey *rsa.PublicKey // signs chat keys; nil: Mojang's
	KeyBits     int            // of our own key, 1024 to 2048; 0: 1024
}

// Auth authenticates players. Its methods may be called from any goroutine.
type Auth struct {
	cfg      Config
	urls     []*url.URL
	key      *rsa.PrivateKey
	der      []byte // the public half as clients get it
	http     *http.Client
	decrypts chan struct{} // one slot a core
	asking   chan struct{}
}

// New makes a key pair and the client for the session server. Close ends its idle connections.
func New(cfg Config) (*Auth, error) {
	if len(cfg.SessionURLs) == 0 {
		cfg.SessionURLs = []string{DefaultSessionURL}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Concurrent <= 0 {
		cfg.Concurrent = defaultConcurrent
	}
	if cfg.KeyBits == 0 {
		cfg.KeyBits = defaultKeyBits
	}
	if cfg.KeyBits < 1024 || cfg.KeyBits > 2048 {
		return nil, fmt.Errorf("authentication key of %d bits: clients take 1024 to 2048", cfg.KeyBits)
	}
	if cfg.ServicesKey == nil {
		cfg.ServicesKey = mojangKey
	}
	a := &Auth{
		cfg:      cfg,
		http:     newHTTPClient(cfg.Concurrent),
		decrypts: make(chan struct{}, runtime.GOMAXPROCS(0)),
		asking:   make(chan struct{}, cfg.Concurrent),
	}
	for _, s := range cfg.SessionURLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("session server %q: write an address like %s", s, DefaultSessionURL)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/session/minecraft/hasJoined"
		}
		a.urls = append(a.urls, u)
	}
	var err error
	if a.key, err = rsa.GenerateKey(rand.Reader, cfg.KeyBits); err != nil {
		return nil, fmt.Errorf("authentication key: %w", err)
	}
	if a.der, err = x509.MarshalPKIXPublicKey(&a.key.PublicKey); err != nil {
		return nil, fmt.Errorf("authentication key: %w", err)
	}
	return a, nil
}

// Close drops idle connections to the session server. Logins that are under way end as they would.
func (a *Auth) Close() { a.http.CloseIdleConnections() }

// Profile is who a player is: the account's own UUID, spelling and properties, not what the client said.
type Profile struct {
	ID         uuid.UUID
	Name       string
	Properties []packet.Property
}

// Login is the authentication of one client, in this order: Begin, Request, Answer, Join. It serves one goroutine and
// cannot be repeated.
type Login struct {
	auth     *Auth
	protocol int32
	start    packet.LoginStart
	key      *rsa.PublicKey // of start.Key
	token    [4]byte
	answered bool
	secret   []byte
}

// Begin looks at a client's login start. It fails with ErrKeyMissing, ErrKeyExpired or ErrKeyInvalid.
func (a *Auth) Begin(protocol int32, start packet.LoginStart) (*Login, error) {
	l := &Login{auth: a, protocol: protocol, start: start}
	rand.Read(l.token[:])
	if !proto.Has(protocol, proto.ProfileKeys) {
		return l, nil
	}
	if start.Key == nil {
		if a.cfg.RequireKey {
			return nil, ErrKeyMissing
		}
		return l, nil
	}
	if !time.Now().Before(time.UnixMilli(start.Key.Expires)) {
		return nil, ErrKeyExpired
	}
	if !proto.Has(protocol, proto.ProfileKeysLinked) && !verifyFirst(a.cfg.ServicesKey, start.Key) {
		return nil, ErrKeyInvalid
	}
	var err error
	if l.key, err = parseKey(start.Key.PublicKey); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeyInvalid, err)
	}
	return l, nil
}

// Request returns the question for the client to answer.
func (l *Login) Request() packet.EncryptionRequest {
	return packet.EncryptionRequest{PublicKey: l.auth.der, Token: l.token[:], Authenticate: true}
}

// Answer checks the client's answer and returns the secret of 16 bytes. The next byte in either direction is encrypted
// with it. Every failure is an ErrEncryption, except those of ctx. A second answer fails.
func (l *Login) Answer(ctx context.Context, r packet.EncryptionResponse) ([]byte, error) {
	if l.answered {
		return nil, fmt.Errorf("%w: answered twice", ErrEncryption)
	}
	l.answered = true
	secret, err := l.auth.decrypt(ctx, r.Secret)
	if err != nil {
		return nil, err
	}
	if r.Signed {
		if l.key == nil || !verifyNonce(l.key, l.token[:], r.Salt, r.Signature) {
			return nil, fmt.Errorf("%w: the token is not signed with the client's chat key", ErrEncryption)
		}
	} else if token, err := l.auth.decrypt(ctx, r.Token); err != nil {
		return nil, err
	} else if subtle.ConstantTimeCompare(token, l.token[:]) != 1 {
		return nil, fmt.Errorf("%w: the token came back changed", ErrEncryption)
	}
	if len(secret) != 16 {
		return nil, fmt.Errorf("%w: the secret has %d bytes", ErrEncryption, len(secret))
	}
	l.secret = secret
	return secret, nil
}

// decrypt runs the expensive part of a login, so no more of them run at once than there are cores.
func (a *Auth) decrypt(ctx context.Context, b []byte) ([]byte, error) {
	select {
	case a.decrypts <- struct{}{}:
		defer func() { <-a.decrypts }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	//lint:ignore SA1019 the protocol has no other padding, and the key protects nothing but this exchange
	plain, err := rsa.DecryptPKCS1v15(nil, a.key, b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncryption, err)
	}
	return plain, nil
}

// Join asks the session servers whether the client has logged in there with the secret, and returns who it is. addr is
// where the client plays from. It fails with ErrUnverified, ErrServersDown, ErrKeyInvalid or what ended ctx.
func (l *Login) Join(ctx context.Context, addr netip.Addr) (Profile, error) {
	if l.secret == nil {
		return Profile{}, fmt.Errorf("%w: not answered", ErrEncryption)
	}
	p, err := l.auth.hasJoined(ctx, l.start.Name, ServerHash("", l.secret, l.auth.der), addr)
	if err != nil {
		return Profile{}, err
	}
	if l.key != nil && proto.Has(l.protocol, proto.ProfileKeysLinked) && !verifySecond(l.auth.cfg.ServicesKey, l.start.Key, p.ID) {
		return Profile{}, ErrKeyInvalid
	}
	return p, nil
}

// ServerHash returns the name that both sides give a login towards the session server: a SHA-1 written as a signed
// number in hex without leading zeros.
func ServerHash(serverID string, secret, publicKey []byte) string {
	h := sha1.New()
	h.Write([]byte(serverID))
	h.Write(secret)
	h.Write(publicKey)
	sum := h.Sum(nil)
	n := new(big.Int).SetBytes(sum)
	if sum[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(sum))))
	}
	return n.Text(16)
}

// OfflineID returns the UUID of a player whom nobody authenticates: version 3 over a fixed prefix and the name, case
// included.
func OfflineID(name string) uuid.UUID { return offline.NameToUUID(name) }
