package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/floodgate"
)

var geyserKey = []byte("sixteen bytes ok")

// geyserSays returns what Geyser puts into the host for a player. proxy/floodgate has vectors that are not ours.
func geyserSays(t testing.TB, key []byte, gamertag, xuid, address, linked string) string {
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, _ := cipher.NewGCM(block)
	nonce := make([]byte, 12)
	rand.Read(nonce)
	fields := strings.Join([]string{"1.21", gamertag, xuid, "7", "en", "0", "1", address, linked, "0", "1", "code"}, "\x00")
	return "^Floodgate^>" + base64.StdEncoding.EncodeToString(nonce) + "!" + base64.StdEncoding.EncodeToString(aead.Seal(nil, nonce, []byte(fields), nil))
}

const steveXUID = "2535428712345678"

var steveID = uuid.MustParse("00000000-0000-0000-0009-01f57fc0b04e")

// bedrock lets players of Bedrock Edition in, from this machine.
func bedrock(t testing.TB, c *Config, trusted string) {
	k, err := floodgate.NewKey(geyserKey)
	if err != nil {
		t.Fatal(err)
	}
	c.Settings.Bedrock = &Bedrock{Key: k, Trusted: []netip.Prefix{netip.MustParsePrefix(trusted)}, Prefix: "."}
}

// TestBedrock: a player who comes from Geyser has their Xbox account's identity without a question to the session
// server, in front of every kind of server, and a server with Floodgate gets Geyser's data.
func TestBedrock(t *testing.T) {
	change := online(t, auth.Config{})
	each(t, []int32{47, 340, 763, 767, 775}, func(t *testing.T, protocol int32) {
		for _, mode := range []backend.Mode{backend.None, backend.Legacy, backend.BungeeGuard} {
			b := newBackend(t, "b", nil)
			e := newEnv(t, func(c *Config) {
				change(c)
				bedrock(t, c, "127.0.0.0/8")
				c.Settings.Servers[0].Forwarding, c.Settings.Servers[0].Secret, c.Settings.Servers[0].Floodgate = mode, []byte("s"), true
			}, b)
			data := geyserSays(t, geyserKey, "Steve the 1st", steveXUID, "203.0.113.9", "null")
			c := e.startAs(protocol, "Anything", "Play.Example.org\x00"+data)
			if ok := c.loggedIn(); ok.ID != steveID || ok.Name != ".Steve_the_1st" {
				t.Fatalf("logged in as %+v", ok)
			}
			s := b.next()
			parts := strings.Split(s.handshake.Host, "\x00")
			want := []string{"play.example.org", data}
			if mode != backend.None {
				want = append(want, "203.0.113.9", strings.ReplaceAll(steveID.String(), "-", ""))
			}
			if len(parts) < len(want) || strings.Join(parts[:len(want)], "|") != strings.Join(want, "|") || s.login.Name != ".Steve_the_1st" {
				t.Errorf("%v: the server heard %q of %q", mode, parts, s.login.Name)
			}
			p := e.core.Player(steveID)
			if p == nil || p.Name() != ".Steve_the_1st" || p.RemoteAddr().Addr() != netip.MustParseAddr("203.0.113.9") || p.Host() != "play.example.org" || !p.Online() {
				t.Errorf("player %+v", p)
			}
			done := make(chan struct{})
			go func() { defer close(done); s.admit() }()
			c.join()
			<-done
			if log := e.log.String(); strings.Contains(log, "^Floodgate^") || strings.Contains(log, string(geyserKey)) || strings.Contains(log, steveXUID) {
				t.Error("what only Geyser and we know is in the log")
			}
			if e.core.Counters.Ended(EndBedrockData)+e.core.Counters.Ended(EndBedrockSource) != 0 {
				t.Error("counted as refused")
			}
		}
	})
}

// TestBedrockLinked: with a linked account the player is that account's, which can be on only once, wherever it plays.
// Without a prefix a gamertag may be somebody's Java name: whoever is on stays.
func TestBedrockLinked(t *testing.T) {
	change := online(t, auth.Config{})
	b := newBackend(t, "b", nil)
	e := newEnv(t, func(c *Config) {
		change(c)
		bedrock(t, c, "127.0.0.0/8")
		c.Settings.Bedrock.Prefix = ""
	}, b)
	java := e.start(767, "Alex")
	java.encrypt()
	java.loggedIn()
	b.next()
	c := e.startAs(767, "x", "h\x00"+geyserSays(t, geyserKey, "Alex", steveXUID, "203.0.113.9", "null"))
	if got := c.kicked(); !strings.Contains(got, "already playing") {
		t.Errorf("the other Alex was told %q", got)
	}
	e.ended(EndDuplicate, 1)
	c = e.startAs(767, "x", "h\x00"+geyserSays(t, geyserKey, "Alex", steveXUID, "203.0.113.9", "Alex;"+onlineID("alex").String()+";"+steveID.String()))
	if ok := c.loggedIn(); ok.ID != onlineID("alex") || ok.Name != "Alex" {
		t.Errorf("logged in as %+v", ok)
	}
	if got := java.kicked(); !strings.Contains(got, "duplicate_login") {
		t.Errorf("the same account was told %q", got)
	}
	e.ended(EndReplaced, 1)
}

// TestBedrockRefused: another key, changed or used data, data from elsewhere and without a key here are each refused in
// words and counted; whoever has no data of Geyser's is none of it. A player of Java Edition cannot have such a name.
func TestBedrockRefused(t *testing.T) {
	host := func(key string) string {
		return "h\x00" + geyserSays(t, []byte(key), "Steve", steveXUID, "203.0.113.9", "null")
	}
	good := host(string(geyserKey))
	e := newEnv(t, func(c *Config) { bedrock(t, c, "127.0.0.0/8") }, newBackend(t, "b", nil))
	for what, h := range map[string]string{
		"another key": host("another key, 16b"), "changed": good[:len(good)-10] + "AAAAA" + good[len(good)-5:], "version": strings.Replace(good, ">", "?", 1),
		"nothing in it": "h\x00^Floodgate^>", "too long": good + strings.Repeat("A", 3900),
	} {
		before := e.core.Counters.Ended(EndBedrockData)
		if got := e.startAs(767, "Steve", h).kicked(); !strings.Contains(got, "cannot tell who you are") {
			t.Errorf("%s: told %q", what, got)
		}
		e.ended(EndBedrockData, before+1)
	}
	c := e.startAs(767, "Steve", good)
	c.loggedIn()
	if got := e.startAs(767, "Steve", good).kicked(); !strings.Contains(got, "cannot tell") {
		t.Errorf("used data: told %q", got)
	}
	if log := e.log.String(); !strings.Contains(log, "same key.pem") || !strings.Contains(log, "used before") {
		t.Error("the log does not say why")
	}
	if got := e.startAs(767, ".Alex", "h").kicked(); !strings.Contains(got, "name is not allowed") {
		t.Errorf("a false one was told %q", got)
	}
	java := e.startAs(767, "Alex", "h")
	if ok := java.loggedIn(); ok.ID != auth.OfflineID("Alex") {
		t.Errorf("a player of Java Edition is %v", ok.ID)
	}

	e = newEnv(t, func(c *Config) { bedrock(t, c, "198.51.100.0/24") }, newBackend(t, "b", nil))
	if got := e.startAs(767, "Steve", host(string(geyserKey))).kicked(); !strings.Contains(got, "Bedrock") {
		t.Errorf("from elsewhere: told %q", got)
	}
	e.ended(EndBedrockSource, 1)
	e = newEnv(t, nil, newBackend(t, "b", nil))
	if got := e.startAs(47, "Steve", host(string(geyserKey))).kicked(); !strings.Contains(got, "Bedrock") {
		t.Errorf("without a key: told %q", got)
	}
	e.ended(EndBedrockSource, 1)
}

// proxied is a connection whose PROXY header named another address.
type proxied struct {
	net.Conn
	from netip.AddrPort
}

func (p proxied) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(p.from) }
func (p proxied) NetConn() net.Conn    { return p.Conn }

// TestBedrockPeer: it is the socket's other end that has to be trusted, not whom a PROXY header names; and the header
// says better than the data where the player is.
func TestBedrockPeer(t *testing.T) {
	for _, c := range []struct {
		trusted string
		in      bool
	}{{"127.0.0.0/8", true}, {"198.51.100.0/24", false}} {
		e := newEnv(t, func(cfg *Config) { bedrock(t, cfg, c.trusted) }, newBackend(t, "b", nil))
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := ln.Accept()
			if err == nil {
				e.core.Serve(proxied{conn, netip.MustParseAddrPort("198.51.100.7:4711")})
			}
		}()
		t.Cleanup(func() { ln.Close(); <-done })
		p := e.startAt(ln.Addr(), 767, "x", "h\x00"+geyserSays(t, geyserKey, "Steve", steveXUID, "203.0.113.9", "null"))
		if !c.in {
			p.kicked()
			e.ended(EndBedrockSource, 1)
			continue
		}
		p.loggedIn()
		if got := e.core.Player(steveID).RemoteAddr(); got != netip.MustParseAddrPort("198.51.100.7:4711") {
			t.Errorf("the player is at %v", got)
		}
		p.conn.Close()
	}
}
