package session

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/status"
)

// onlineID returns the account of a name, as the test's session server has it.
func onlineID(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(strings.ToLower(name))) }

// slowAsked tells that the session server has been asked about Slow.
var slowAsked = make(chan struct{}, 100)

// online makes an environment's players authenticate with a session server that knows everybody but Nobody, and spells
// names in its own way.
func online(t testing.TB, cfg auth.Config) func(*Config) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("username")
		switch {
		case name == "Nobody":
			w.WriteHeader(http.StatusNoContent)
			return
		case name == "Down":
			w.WriteHeader(http.StatusInternalServerError)
			return
		case name == "Slow":
			slowAsked <- struct{}{}
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"id":"%s","name":"%s","properties":[{"name":"textures","value":"skin","signature":"sig"}]}`,
			strings.ReplaceAll(onlineID(name).String(), "-", ""), strings.ToUpper(name[:1])+name[1:])
	}))
	t.Cleanup(server.Close)
	cfg.SessionURLs = []string{server.URL}
	a, err := auth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return func(c *Config) { c.Settings.Online, c.Settings.Auth = true, a }
}

// encrypt is the client's part of the exchange.
func (p *peer) encrypt() {
	p.t.Helper()
	r, err := packet.ParseEncryptionRequest(p.v.Protocol, p.expect(proto.EncryptionBegin))
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := x509.ParsePKIXPublicKey(r.PublicKey)
	if err != nil {
		p.t.Fatal(err)
	}
	seal := func(b []byte) []byte {
		//lint:ignore SA1019 as the protocol has it
		out, err := rsa.EncryptPKCS1v15(rand.Reader, key.(*rsa.PublicKey), b)
		if err != nil {
			p.t.Fatal(err)
		}
		return out
	}
	secret := []byte("sixteen bytes ok")
	p.send(proto.EncryptionBegin, packet.AppendEncryptionResponse(nil, p.v.Protocol, packet.EncryptionResponse{Secret: seal(secret), Token: seal(r.Token)}))
	p.r.SetCipher(secret)
	p.w.SetCipher(secret)
}

// TestOnline: encryption, the account's own identity, and traffic both ways in every version.
func TestOnline(t *testing.T) {
	change := online(t, auth.Config{})
	each(t, all(), func(t *testing.T, protocol int32) {
		b := newBackend(t, "lobby", nil)
		e := newEnv(t, change, b)
		c := e.start(protocol, "steve")
		c.encrypt()
		ok := c.loggedIn()
		if ok.Name != "Steve" || ok.ID != onlineID("steve") {
			t.Errorf("logged in as %+v", ok)
		}
		if protocol >= 759 && (len(ok.Properties) != 1 || ok.Properties[0].Signature != "sig") {
			t.Errorf("properties %+v", ok.Properties)
		}
		if ok.Strict != (protocol == 766 || protocol == 767) {
			t.Errorf("strict is %v", ok.Strict)
		}
		s := b.next()
		if s.login.Name != "Steve" {
			t.Errorf("the backend was told %q", s.login.Name)
		}
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
		for i, n := range []int{1, 100, 300, 100000} {
			s.raw(0xf0, body(n, uint64(i)))
			if got := c.expectID(0xf0); !bytes.Equal(got, body(n, uint64(i))) {
				t.Errorf("%d bytes arrived changed", n)
			}
			c.raw(0xf0, body(n, uint64(i)))
			if got := s.expectID(0xf0); !bytes.Equal(got, body(n, uint64(i))) {
				t.Errorf("%d bytes arrived changed at the backend", n)
			}
		}
		p := e.core.Player(onlineID("steve"))
		if p == nil || !p.Online() || p.Host() != "play.example.org" || p.Port() != 25565 || p.Protocol() != protocol ||
			!p.RemoteAddr().Addr().IsLoopback() {
			t.Errorf("player %+v", p)
		}
	})
}

// TestOnlineRefusals: what the session server or the client says no to.
func TestOnlineRefusals(t *testing.T) {
	change := online(t, auth.Config{Timeout: time.Second})
	for _, protocol := range []int32{47, 767} {
		e := newEnv(t, change)
		c := e.start(protocol, "Nobody")
		c.encrypt()
		if got := c.kicked(); got != saying(protocol, "multiplayer.disconnect.unverified_username") {
			t.Errorf("told %q", got)
		}
		e.ended(EndUnauthenticated, 1)
		c = e.start(protocol, "Down")
		c.encrypt()
		if got := c.kicked(); got != saying(protocol, "multiplayer.disconnect.authservers_down") {
			t.Errorf("told %q", got)
		}
		c = e.start(protocol, "Slow")
		c.encrypt()
		if got := c.kicked(); got != saying(protocol, "multiplayer.disconnect.authservers_down") {
			t.Errorf("told %q", got)
		}
		e.ended(EndAuthDown, 2)
		c = e.start(protocol, "a b")
		c.kicked()
		e.ended(EndBadName, 1)

		// A wrong answer cannot be answered to.
		c = e.start(protocol, "Steve")
		c.expect(proto.EncryptionBegin)
		c.send(proto.EncryptionBegin, packet.AppendEncryptionResponse(nil, protocol, packet.EncryptionResponse{Secret: make([]byte, 128), Token: make([]byte, 128)}))
		c.closed()
		e.ended(EndEncryption, 1)
		// Nor is anything but an answer one.
		c = e.start(protocol, "Steve")
		c.expect(proto.EncryptionBegin)
		c.send(proto.LoginStart, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: "Steve"}))
		c.closed()
		e.ended(EndGarbage, 1)
	}
}

// TestLeavesWhileAsked: a client that leaves while the session server thinks is gone at once.
func TestLeavesWhileAsked(t *testing.T) {
	e := newEnv(t, online(t, auth.Config{Timeout: never}))
	for len(slowAsked) > 0 {
		<-slowAsked
	}
	c := e.start(767, "Slow")
	c.encrypt()
	<-slowAsked
	c.conn.Close()
	e.ended(EndClosed, 1)
	// And one that waits hears of a shutdown.
	c = e.start(767, "Slow")
	c.encrypt()
	<-slowAsked
	e.shutdown("closing")
	if got := c.kicked(); got != "closing" {
		t.Errorf("told %q", got)
	}
}

// TestProfileKey: the signed key of a 1.19.1 client belongs to its account and goes on to the backend.
func TestProfileKey(t *testing.T) {
	services, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&services.PublicKey)
	sign := func(id uuid.UUID) *packet.ProfileKey {
		k := &packet.ProfileKey{Expires: time.Now().Add(time.Hour).UnixMilli(), PublicKey: der}
		signed := append(id[:], binary.BigEndian.AppendUint64(nil, uint64(k.Expires))...)
		k.Signature = signature(t, services, append(signed, der...))
		return k
	}
	change := online(t, auth.Config{ServicesKey: &services.PublicKey})
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, change, b)
	c := e.connect(760, packet.IntentLogin)
	k := sign(onlineID("Steve"))
	c.send(proto.LoginStart, packet.AppendLoginStart(nil, 760, packet.LoginStart{Name: "Steve", Key: k}))
	c.encrypt()
	c.loggedIn()
	s := b.next()
	if got := s.login.Key; got == nil || got.Expires != k.Expires || !bytes.Equal(got.Signature, k.Signature) {
		t.Errorf("the backend got the key %+v", got)
	}
	if !s.login.HasID || s.login.ID != onlineID("Steve") {
		t.Errorf("the backend got the id %v", s.login.ID)
	}
	c = e.connect(760, packet.IntentLogin)
	c.send(proto.LoginStart, packet.AppendLoginStart(nil, 760, packet.LoginStart{Name: "Alex", Key: k}))
	c.encrypt()
	if got := c.kicked(); !strings.Contains(got, "invalid_public_key") {
		t.Errorf("told %q", got)
	}
	e.ended(EndBadKey, 1)
}

// TestOutdated: versions we do not know, old and new and in between, hear which ones we do.
func TestOutdated(t *testing.T) {
	for protocol, want := range map[int32]string{5: "outdated_client", 46: "outdated_client", 0: "outdated_client", -1: "outdated_client",
		48: "outdated_server", 778: "outdated_server", 0x40000100: "outdated_server"} {
		e := newEnv(t, func(c *Config) { c.Settings.Unknown = UnknownRefuse })
		conn, err := net.Dial("tcp", e.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, conn, proto.Lookup(767), proto.Serverbound)
		p.raw(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: "h", Intent: packet.IntentLogin}))
		p.state(proto.Login)
		p.send(proto.LoginStart, field.AppendString(nil, "Steve"))
		if got := p.kicked(); !strings.HasPrefix(got, strings.TrimSuffix(saying(protocol, "multiplayer.disconnect."+want, "1.8-26.3"), ")")) || !strings.Contains(got, "26.3") {
			t.Errorf("protocol %d: told %q", protocol, got)
		}
		e.ended(EndOutdated, 1)
	}
}

func TestTransfer(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c := e.connect(767, packet.IntentTransfer)
	if got := c.kicked(); !strings.Contains(got, "transfers_disabled") {
		t.Errorf("told %q", got)
	}
	e.ended(EndTransfer, 1)
	e = newEnv(t, func(c *Config) { c.Settings.AcceptTransfers = true }, b)
	c = e.connect(767, packet.IntentTransfer)
	c.send(proto.LoginStart, packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "Steve"}))
	c.loggedIn()
	b.next()
	if !e.core.Players()[0].(*Session).Transferred() {
		t.Error("it is not known that the player was transferred")
	}
}

// TestNames: the name rule, and its relaxation for accounts that have an older name.
func TestNames(t *testing.T) {
	e := newEnv(t, nil, newBackend(t, "lobby", nil))
	for _, name := range []string{"", "a-b", "ab cd", "\u00e4", "../../etc", "§cRed", ".Bedrock"} {
		e.start(767, name).kicked()
	}
	e.ended(EndBadName, 7)
	e.start(767, "seventeen_letters").closed() // not even a login start
	e.login(767, "sixteen__letters")

	change := online(t, auth.Config{})
	e = newEnv(t, func(c *Config) { change(c); c.Settings.OddNames = true }, newBackend(t, "lobby", nil))
	c := e.start(767, "A-b c")
	c.encrypt()
	if got := c.loggedIn().Name; got != "A-b c" {
		t.Errorf("logged in as %q", got)
	}
	c = e.start(767, "a\nb")
	c.kicked()
}

// TestOutOfOrder: anything but the next step of the login closes the connection.
func TestOutOfOrder(t *testing.T) {
	v := proto.Lookup(767)
	start := packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "Steve"})
	var b *fakeBackend
	for name, f := range map[string]func(e *env, c *peer){
		"acknowledged first": func(e *env, c *peer) { c.send(proto.LoginAcknowledged, nil); c.closed() },
		"encryption first":   func(e *env, c *peer) { c.send(proto.EncryptionBegin, []byte{0, 0}); c.closed() },
		"plugin response":    func(e *env, c *peer) { c.send(proto.LoginPluginResponse, []byte{0, 0}); c.closed() },
		"unknown id":         func(e *env, c *peer) { c.raw(0x33, nil); c.closed() },
		"negative id":        func(e *env, c *peer) { c.raw(-1, nil); c.closed() },
		"trailing bytes":     func(e *env, c *peer) { c.send(proto.LoginStart, append(start, 0)); c.closed() },
		"start twice": func(e *env, c *peer) {
			c.send(proto.LoginStart, start)
			c.send(proto.LoginStart, start)
			c.expect(proto.SetCompression)
			c.compress(256)
			c.expect(proto.LoginSuccess)
			c.in = proto.Config
			c.kicked()
		},
		"acknowledged twice": func(e *env, c *peer) {
			c.send(proto.LoginStart, start)
			c.loggedIn()
			c.send(proto.FinishConfiguration, nil)
			c.kicked()
		},
		"configuration acknowledged in play": func(e *env, c *peer) {
			c.send(proto.LoginStart, start)
			c.loggedIn()
			s := b.next()
			go s.admit()
			c.join()
			c.send(proto.ConfigurationAcknowledged, nil)
			c.kicked()
		},
		"frame larger than a login has": func(e *env, c *peer) { c.raw(0, make([]byte, 9000)); c.closed() },
	} {
		t.Run(name, func(t *testing.T) {
			b = newBackend(t, "lobby", nil)
			e := newEnv(t, nil, b)
			f(e, e.connect(v.Protocol, packet.IntentLogin))
		})
	}
}

// TestFirstPacket: what is no handshake gets no answer.
func TestFirstPacket(t *testing.T) {
	e := newEnv(t, nil)
	bad := [][]byte{
		{1, 0},                         // empty handshake
		{1, 5},                         // another packet
		{0xff, 0xff, 0xff, 0xff, 0x0f}, // no length
		append([]byte{8}, packet.AppendHandshake([]byte{0}, packet.Handshake{Protocol: 767, Host: "h", Intent: 7})...),
		append([]byte{8}, packet.AppendHandshake([]byte{0}, packet.Handshake{Protocol: 767, Host: "h", Intent: 0})...),
		[]byte("SSH-2.0-OpenSSH_9.6\r\n" + strings.Repeat("x", 9000)),
	}
	for _, b := range bad {
		conn, err := net.Dial("tcp", e.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, conn, proto.Lookup(767), proto.Serverbound)
		conn.Write(b)
		p.closed()
	}
	e.ended(EndGarbage, uint64(len(bad)))
}

// TestGates: throttled logins hear why, throttled pings and too many strangers hear nothing; all before anything
// costly.
func TestGates(t *testing.T) {
	var asked atomic.Int32
	e := newEnv(t, func(c *Config) {
		online(t, auth.Config{})(c)
		st, err := status.New(status.Config{MOTD: packet.Plain("hello")})
		if err != nil {
			t.Fatal(err)
		}
		c.Settings.Status = st
		c.LoginGate = func(a netip.Addr) time.Duration { asked.Add(1); return 2100 * time.Millisecond }
		c.StatusGate = func(a netip.Addr) time.Duration { asked.Add(1); return time.Second }
		c.Pending = limit.NewPlaces(limit.Bounds{All: 1})
	})
	c := e.start(767, "Steve")
	if got := c.kicked(); !strings.Contains(got, "too often. Try again in 3 s.") {
		t.Errorf("told %q", got)
	}
	e.ended(EndThrottled, 1)
	e.connect(767, packet.IntentStatus).closed()
	e.ended(EndStatusThrottled, 1)
	if asked.Load() != 2 {
		t.Errorf("the gates were asked %d times", asked.Load())
	}
	first, err := net.Dial("tcp", e.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	until(t, func() bool { return e.core.cfg.Pending.Now() == 1 }, "nobody is pending", func() []any { return nil })
	second, err := net.Dial("tcp", e.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	newPeer(t, first, proto.Lookup(767), proto.Serverbound).closed()
	e.ended(EndCrowded, 1)
}

// TestSilentStrangersMakeRoom: whoever has been silent for the longest, in whatever stage, goes for a newcomer, who
// gets in; and is told, as soon as there is a language for it. Nobody goes whom something else keeps waiting.
func TestSilentStrangersMakeRoom(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	for stage, begin := range map[string]func(e *env) *peer{
		"before the handshake": func(e *env) *peer {
			conn, err := net.Dial("tcp", e.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return newPeer(t, conn, proto.Lookup(767), proto.Serverbound)
		},
		"in a ping":       func(e *env) *peer { return e.connect(767, packet.IntentStatus) },
		"before its name": func(e *env) *peer { return e.connect(767, packet.IntentLogin) },
	} {
		t.Run(stage, func(t *testing.T) {
			e := newEnv(t, func(c *Config) {
				c.Pending = limit.NewPlaces(limit.Bounds{All: 1})
				st, err := status.New(status.Config{MOTD: packet.Plain("hello")})
				if err != nil {
					t.Fatal(err)
				}
				c.Settings.Status = st
			}, b)
			silent := begin(e)
			until(t, func() bool { return e.core.Open() == 1 && e.core.cfg.Pending.Now() == 1 }, "nobody is pending", func() []any { return nil })
			time.Sleep(50 * time.Millisecond) // until what it has said has been read
			e.play(767, "Steve", b)
			if stage == "before its name" {
				if got := silent.kicked(); !strings.Contains(got, "Too many are connecting") {
					t.Errorf("told %q", got)
				}
			}
			silent.closed()
			e.ended(EndCrowded, 1)
		})
	}
}

// TestPendingEndsWithLogin: a player is no stranger, and strangers who leave make room.
func TestPendingEndsWithLogin(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, func(c *Config) { c.Pending = limit.NewPlaces(limit.Bounds{All: 1}) }, b)
	for i := range 5 {
		e.play(767, fmt.Sprint("Steve", i), b)
	}
	e.start(767, "a-b").kicked()
	e.ended(EndBadName, 1)
	until(t, func() bool { return e.core.cfg.Pending.Now() == 0 }, "somebody is pending", func() []any { return nil })
}

// TestStatus: pings are answered, with those players in the sample who do not mind.
func TestStatus(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	var e *env
	e = newEnv(t, func(c *Config) {
		c.Listed = func(id uuid.UUID) bool { return id != auth.OfflineID("Vanished") }
		st, err := status.New(status.Config{
			MOTD: packet.Plain("hello"), Online: func() int { return e.core.Online() },
			Players: func(dst []status.Player, max int) []status.Player { return e.core.Sample(dst, max) },
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Settings.Status = st
	}, b)
	e.play(767, "Shown", b)
	e.play(767, "Vanished", b)
	c, s := e.play(767, "Hidden", b)
	hide := packet.AppendClientInformation(nil, 767, packet.ClientInformation{Locale: "en_us"})
	c.send(proto.ClientInformation, hide)
	s.expect(proto.ClientInformation)
	p := e.connect(767, packet.IntentStatus)
	p.state(proto.Status)
	p.send(proto.StatusRequest, nil)
	json, err := packet.ParseStatusResponse(p.expect(proto.StatusResponse))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"online":3`, `"Shown"`, `hello`} {
		if !strings.Contains(string(json), want) {
			t.Errorf("%s is not in %s", want, json)
		}
	}
	if strings.Contains(string(json), "Hidden") || strings.Contains(string(json), "Vanished") {
		t.Errorf("somebody who does not want to be shown is in %s", json)
	}
	p.send(proto.StatusPing, make([]byte, 8))
	p.expect(proto.StatusPing)
	p.closed()
	e.ended(EndStatus, 1)
}

// TestDuplicateOffline: whoever came first under a name stays, however it is spelled; and leaves its place to the next.
func TestDuplicateOffline(t *testing.T) {
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, nil, b)
	c, s := e.play(767, "Steve", b)
	for _, name := range []string{"Steve", "STEVE", "steve"} {
		if got := e.start(767, name).kicked(); !strings.Contains(got, "already playing") {
			t.Errorf("told %q", got)
		}
	}
	e.ended(EndDuplicate, 3)
	if e.core.Online() != 1 || e.core.Player(auth.OfflineID("Steve")) == nil {
		t.Error("the refused ones took the real one off the list")
	}
	c.raw(0xf0, nil)
	s.expectID(0xf0)
	c.conn.Close()
	e.ended(EndLeft, 1)
	e.play(767, "steve", b)
}

// TestDuplicateOnline: the account's new session replaces the old one, and only after the old one's backend has seen
// its connection end.
func TestDuplicateOnline(t *testing.T) {
	var mu sync.Mutex
	on := map[string]bool{}
	b := newBackend(t, "lobby", nil)
	e := newEnv(t, online(t, auth.Config{}), b)
	login := func() (*peer, *peer) {
		c := e.start(767, "Steve")
		c.encrypt()
		c.loggedIn()
		s := b.next()
		mu.Lock()
		if on["Steve"] {
			t.Error("the backend has the player twice")
		}
		on["Steve"] = true
		mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
		return c, s
	}
	c, s := login()
	for range 3 {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			s.closed()
			mu.Lock()
			on["Steve"] = false
			mu.Unlock()
		}()
		told := make(chan string)
		go func() { told <- c.kicked() }()
		c2 := e.start(767, "steve")
		c2.encrypt()
		if got := <-told; !strings.Contains(got, "duplicate_login") {
			t.Errorf("the old one was told %q", got)
		}
		<-gone
		c2.loggedIn()
		c, s = c2, b.next()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
	}
	e.ended(EndReplaced, 3)
	if e.core.Online() != 1 {
		t.Errorf("%d players", e.core.Online())
	}
}

// TestDuplicateStorm: a thousand logins of one name at once leave exactly one player, offline and online, and a proxy
// that still answers.
func TestDuplicateStorm(t *testing.T) {
	for _, mode := range []string{"offline", "online"} {
		t.Run(mode, func(t *testing.T) {
			n := 1000
			b := newBackend(t, "lobby", func(b *fakeBackend) { b.quiet = true })
			e := newEnv(t, func(c *Config) {
				if mode == "online" {
					online(t, auth.Config{Timeout: never})(c)
				}
				// For busy machines.
				c.Settings.Timeouts.Replace, c.Settings.Timeouts.Login = never, never
				c.Log = nil
			}, b)
			b.serve(func(p *peer) { p.sink() })
			var wg sync.WaitGroup
			slots := make(chan struct{}, 250) // file descriptors are not what this is about
			var stay atomic.Int32
			names := []string{"Steve", "steve", "STEVE"}
			for i := range n {
				slots <- struct{}{}
				wg.Go(func() {
					c := e.start(767, names[i%3])
					c.patience = 12 * patienceInTests
					go func() {
						defer func() { <-slots }()
						defer stay.Add(-1)
						defer c.conn.Close()
						stay.Add(1)
						if mode == "online" {
							c.encrypt()
						}
						for {
							q, _, _, err := c.try()
							if err != nil {
								return
							}
							switch q {
							case proto.SetCompression:
								c.compress(256)
							case proto.LoginSuccess:
								c.in = proto.Config
							}
						}
					}()
				})
			}
			wg.Wait()
			out := func() (n uint64) {
				for _, how := range Endings() {
					n += e.core.Counters.Ended(how)
				}
				return n
			}
			within(t, 6*patienceInTests, func() bool { return out() == uint64(n-1) }, "%d connections have ended, want %d", func() []any { return []any{out(), n - 1} })
			if refused, replaced := e.core.Counters.Ended(EndDuplicate), e.core.Counters.Ended(EndReplaced); refused+replaced != uint64(n-1) {
				t.Errorf("%d were refused and %d replaced, together want %d", refused, replaced, n-1)
			}
			until(t, func() bool { return stay.Load() == 1 && e.core.Online() == 1 }, "%d connections, %d players are left, want 1", func() []any {
				return []any{stay.Load(), e.core.Online()}
			})
			e.core.Players()[0].Disconnect("over")
			until(t, func() bool { return e.core.Online() == 0 && e.core.Open() == 0 }, "%d players are left", func() []any { return []any{e.core.Online()} })
		})
	}
}

// TestReplaceIsBounded: a newcomer does not wait for ever for a session that does not end.
func TestReplaceIsBounded(t *testing.T) {
	gate := make(chan struct{})
	b := newBackend(t, "lobby", nil)
	change := online(t, auth.Config{})
	e := newEnv(t, func(c *Config) {
		change(c)
		c.Watch = []Watch{&watch{wants: func(*proto.Version, proto.State, proto.Dir) []proto.Packet { return nil }, on: func(_ Player, what string) {
			if what == "closed" {
				<-gate
			}
		}}}
		c.Settings.Timeouts.Replace = 50 * time.Millisecond
	}, b)
	defer close(gate)
	c := e.start(767, "Steve")
	c.encrypt()
	c.loggedIn()
	go c.kicked()
	c = e.start(767, "Steve")
	c.encrypt()
	if got := c.kicked(); !strings.Contains(got, "still ending") {
		t.Errorf("told %q", got)
	}
	e.ended(EndDuplicate, 1)
}

// TestChatSession: a chat session is signed for the account's UUID; a backend without forwarding knows another one.
func TestChatSession(t *testing.T) {
	for _, mode := range []backend.Mode{backend.None, backend.Legacy} {
		b := newBackend(t, "lobby", nil)
		change := online(t, auth.Config{})
		e := newEnv(t, func(c *Config) { change(c); c.Settings.Servers[0].Forwarding = mode }, b)
		c := e.start(767, "Steve")
		c.encrypt()
		c.loggedIn()
		s := b.next()
		done := make(chan struct{})
		go func() { defer close(done); s.admit() }()
		c.join()
		<-done
		c.send(proto.ChatSessionUpdate, make([]byte, 100))
		c.raw(0xf0, nil)
		if mode != backend.None {
			s.expect(proto.ChatSessionUpdate)
		}
		s.expectID(0xf0)
	}
}

func signature(t testing.TB, k *rsa.PrivateKey, what []byte) []byte {
	t.Helper()
	sum := sha1.Sum(what)
	out, err := rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA1, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return out
}
