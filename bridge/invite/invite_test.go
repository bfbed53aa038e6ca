package invite

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/handshake/token"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/session"
)

// client is a player that remembers what it was sent.
type client struct {
	session.Player // what is not used is not there
	id             uuid.UUID
	protocol       int32
	host           string
	port           uint16
	full           error

	mu   sync.Mutex
	sent []message
}

type message struct {
	channel string
	data    []byte
}

func (c *client) ID() uuid.UUID              { return c.id }
func (c *client) Protocol() int32            { return c.protocol }
func (c *client) Host() string               { return c.host }
func (c *client) Port() uint16               { return c.port }
func (c *client) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }

func (c *client) SendPlugin(channel string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full == nil {
		c.sent = append(c.sent, message{channel, data})
	}
	return c.full
}

// last takes the newest message as "handshake URL" or "unavailable REASON", and the token.
func (c *client) last(t *testing.T) (what, secret string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sent) == 0 {
		return "", ""
	}
	m := c.sent[len(c.sent)-1]
	c.sent = nil
	switch m.channel {
	case offer.Handshake:
		o, err := offer.ParseHandshake(m.data)
		if err != nil || o.TTL != time.Minute {
			t.Fatalf("%+v %v", o, err)
		}
		return "handshake " + o.URL, o.Token
	case offer.Unavailable, offer.Unavail:
		r, err := offer.ParseUnavailable(m.data)
		if err != nil {
			t.Fatal(err)
		}
		return "unavailable " + string(r), ""
	}
	t.Fatalf("sent on %s", m.channel)
	return "", ""
}

func newClient() *client {
	return &client{id: uuid.New(), protocol: 775, host: "play.example.org", port: 25565}
}

var hello = offer.AppendHello(nil)

func TestHello(t *testing.T) {
	tokens := token.New(10)
	i, c := New(Config{Tokens: tokens}), newClient()
	i.Message(c, "socketsvc:hello", hello)
	what, secret := c.last(t)
	if what != "handshake http://play.example.org:25565" || i.Offered.Load() != 1 {
		t.Fatal(what)
	}
	if tokens.Redeem(secret, uuid.New()) || !tokens.Redeem(secret, c.id) {
		t.Error("the token is not the player's")
	}
	i.Message(c, "socketsvc:hello", []byte{2}) // a later version
	if what, _ := c.last(t); !strings.HasPrefix(what, "handshake ") {
		t.Error(what)
	}
}

func TestRegistered(t *testing.T) {
	i, c := New(Config{Tokens: token.New(10)}), newClient()
	i.Registered(c, []string{"minecraft:brand", "socketsvc:handshakes"})
	if what, _ := c.last(t); what != "" {
		t.Error(what)
	}
	i.Registered(c, []string{"a:b", "socketsvc:handshake", "socketsvc:handshake"})
	if what, _ := c.last(t); what != "handshake http://play.example.org:25565" || i.Offered.Load() != 1 {
		t.Error(what, i.Offered.Load())
	}
	i.Joined(c) // alone is no reason
	if what, _ := c.last(t); what != "" {
		t.Error(what)
	}
}

// What is not a hello goes nowhere and is answered with nothing.
func TestForgedMessages(t *testing.T) {
	i, c := New(Config{Tokens: token.New(10)}), newClient()
	for n, m := range []message{
		{"socketsvc:handshake", offer.AppendHandshake(nil, "http://evil", "token", time.Minute)},
		{"socketsvc:unavailable", offer.AppendUnavailable(nil, offer.Disabled)},
		{"socketsvc:hello", nil},
		{"socketsvc:hello", []byte{1, 1}},
		{"socketsvc:hello", []byte{0x80}},
		{"socketsvc:", hello},
		{"socketsvc:hello2", hello},
	} {
		if !i.Owns(m.channel) {
			t.Errorf("%s would be forwarded", m.channel)
		}
		i.Message(c, m.channel, m.data)
		if what, _ := c.last(t); what != "" || i.Ignored.Load() != uint64(n+1) {
			t.Errorf("%v: %q, %d ignored", m, what, i.Ignored.Load())
		}
	}
	for _, other := range []string{"minecraft:brand", "socketsvc", "socketsvcx:hello", "x:socketsvc:hello", "", "REGISTER"} {
		if i.Owns(other) {
			t.Errorf("%q is taken away", other)
		}
	}
}

func TestUnavailable(t *testing.T) {
	allowed := true
	i, c := New(Config{
		Tokens:  token.New(10),
		Terms:   Terms{Off: true},
		Allowed: func(uuid.UUID) bool { return allowed },
	}), newClient()
	ask := func() string {
		i.Message(c, offer.Hello, hello)
		what, _ := c.last(t)
		return what
	}
	if got := ask(); got != "unavailable disabled" {
		t.Error(got)
	}
	allowed = false
	i.Apply(Terms{})
	if got, _ := c.last(t); got != "unavailable no_permission" {
		t.Errorf("who asked in vain is told %q when there is voice", got)
	}
	i.Apply(Terms{PublicURL: "https://voice.example"})
	if got, _ := c.last(t); got != "" {
		t.Errorf("told %q without having been refused for want of voice", got)
	}
	if got := ask(); got != "unavailable no_permission" {
		t.Error(got)
	}
	allowed = true
	for range 5 {
		if got := ask(); !strings.HasPrefix(got, "handshake ") {
			t.Error(got)
		}
	}
	if got := ask(); got != "unavailable rate_limited" {
		t.Error(got)
	}
	if i.Unavailable.Load() != 4 || i.Offered.Load() != 5 {
		t.Error(i.Unavailable.Load(), i.Offered.Load())
	}
}

// TestOldClientsAreAnswered: clients before 1.13 read channel names of at most 20 characters, and lose their connection
// over a longer one. They are told on a shorter one why they get no voice.
func TestOldClientsAreAnswered(t *testing.T) {
	for protocol, channel := range map[int32]string{47: offer.Unavail, 340: offer.Unavail, 393: offer.Unavailable, 775: offer.Unavailable} {
		i, c := New(Config{Tokens: token.New(10)}), newClient()
		c.protocol = protocol
		i.Message(c, offer.Hello, hello)
		if len(c.sent) != 1 || c.sent[0].channel != offer.Handshake {
			t.Errorf("%d: %v", protocol, c.sent)
		}
		c.sent = nil
		i.Apply(Terms{Off: true})
		i.Message(c, offer.Hello, hello)
		if len(c.sent) != 1 || c.sent[0].channel != channel || protocol < 393 && len(c.sent[0].channel) > offer.LegacyChannel {
			t.Errorf("%d: %v", protocol, c.sent)
		}
		if what, _ := c.last(t); what != "unavailable disabled" {
			t.Errorf("%d: %s", protocol, what)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for _, c := range []struct {
		host string
		port uint16
		tls  bool
		want string
	}{
		{"play.example.org", 25565, false, "http://play.example.org:25565"},
		{"play.example.org", 443, true, "https://play.example.org:443"},
		{"127.0.0.1", 1, false, "http://127.0.0.1:1"},
		{"::1", 25565, false, "http://[::1]:25565"},
		{"[2001:db8::1]", 25565, true, "https://[2001:db8::1]:25565"},
		{"fe80::1%eth0", 25565, false, "http://[fe80::1]:25565"},
		{"under_score", 25565, false, "http://under_score:25565"},
		{"", 25565, false, ""},
		{"play.example.org", 0, false, ""},
		{"evil.example/path", 25565, false, ""},
		{"user@evil.example", 25565, false, ""},
		{"evil.example?x", 25565, false, ""},
		{"evil example", 25565, false, ""},
		{"evil\x00example", 25565, false, ""},
		{"exämple", 25565, false, ""},
		{strings.Repeat("a", 254), 25565, false, ""},
	} {
		if got, ok := baseURL(c.host, c.port, c.tls); got != c.want || ok != (c.want != "") {
			t.Errorf("%q %d: %q %v", c.host, c.port, got, ok)
		}
	}
}

func TestPublicURLAndOddHosts(t *testing.T) {
	c := newClient()
	c.host = "evil\x00host"
	i := New(Config{Tokens: token.New(10), Terms: Terms{PublicURL: "https://voice.example", TLS: true}})
	i.Message(c, offer.Hello, hello)
	if what, _ := c.last(t); what != "handshake https://voice.example" {
		t.Error(what)
	}
	i = New(Config{Tokens: token.New(10)})
	i.Message(c, offer.Hello, hello)
	if what, _ := c.last(t); what != "unavailable disabled" {
		t.Error(what)
	}
}

func TestLeftVoidsTheToken(t *testing.T) {
	tokens := token.New(10)
	i, c := New(Config{Tokens: tokens}), newClient()
	i.Joined(c)
	i.Message(c, offer.Hello, hello)
	_, secret := c.last(t)
	i.Left(c)
	if tokens.Redeem(secret, c.id) {
		t.Error("the token outlived the player's stay")
	}
	if len(i.present) != 0 {
		t.Error("the player is remembered")
	}
}

// A player who rejoins before the old connection is gone keeps the new token.
func TestOlderSessionEndsLater(t *testing.T) {
	tokens := token.New(10)
	i, old := New(Config{Tokens: tokens}), newClient()
	i.Joined(old)
	again := newClient()
	again.id = old.id
	i.Registered(again, []string{offer.Handshake})
	_, secret := again.last(t)
	i.Left(old)
	if !tokens.Redeem(secret, old.id) {
		t.Error("the older session's end voided the newer one's token")
	}
	i.Left(again)
	if len(i.present) != 0 {
		t.Error("the player is remembered")
	}
}

func TestNoTokenInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		i, c := New(Config{Tokens: token.New(10), Log: log.Logger(slog.LevelDebug)}), newClient()
		i.Message(c, offer.Hello, hello)
		_, secret := c.last(t)
		c.full = errors.New("queue is full")
		for range 10 {
			i.Message(c, offer.Hello, hello)
			i.Message(c, offer.Handshake, []byte(secret))
		}
		if !strings.Contains(log.String(), "queue is full") || strings.Contains(log.String(), secret) {
			t.Errorf("log: %s", &log)
		}
		if i.Offered.Load() != 1 {
			t.Errorf("%d counted as sent", i.Offered.Load())
		}
	})
}
