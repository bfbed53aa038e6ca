package backend

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/pires/go-proxyproto"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var notch = uuid.MustParse("069a79f4-44e9-4726-a5be-fca90e38aaf5")

// player returns the player of testdata/modern.json.
func player(protocol int32) Identity {
	id := Identity{
		Protocol: protocol, Name: "Notch", ID: notch, Host: "play.example.org", Port: 25577, Addr: netip.MustParseAddr("::ffff:203.0.113.7"),
		SourcePort: 50000, Properties: []packet.Property{{Name: "textures", Value: "eyJ0", Signature: "c2ln"}, {Name: "x", Value: "<&>"}},
	}
	if protocol == proto.V1_19 || protocol == proto.V1_19_1 {
		id.Key = &packet.ProfileKey{Expires: 1700000000123, PublicKey: make([]byte, 300), Signature: make([]byte, 512)}
		for i := range id.Key.PublicKey {
			id.Key.PublicKey[i] = byte(i)
		}
		for i := range id.Key.Signature {
			id.Key.Signature[i] = byte(7 * i)
		}
	}
	return id
}

// guest is the server's end of a player's connection.
type guest struct {
	net.Conn
	t  *testing.T
	v  *proto.Version
	r  *frame.Reader
	w  *frame.Writer
	hs packet.Handshake
	ls packet.LoginStart
}

// next reads a login packet and insists that it is p.
func (g *guest) next(s proto.State, p proto.Packet) []byte {
	f, err := g.r.Next()
	if err != nil {
		g.t.Errorf("%v: %v", p, err)
		return nil
	}
	if g.v != nil && g.v.Table(s, proto.Serverbound)[f.ID] != p {
		g.t.Errorf("packet %d is not %v", f.ID, p)
	}
	b, err := g.r.Body(f)
	if err != nil {
		g.t.Errorf("%v: %v", p, err)
	}
	return bytes.Clone(b)
}

// greet reads handshake and login start.
func (g *guest) greet() {
	var err error
	if g.hs, err = packet.ParseHandshake(g.next(proto.Handshake, proto.SetProtocol), packet.MaxForwardedHost); err != nil {
		g.t.Error(err)
		return
	}
	g.v = proto.Lookup(g.hs.Protocol)
	if g.ls, err = packet.ParseLoginStart(g.hs.Protocol, g.next(proto.Login, proto.LoginStart)); err != nil {
		g.t.Error(err)
	}
}

func (g *guest) send(p proto.Packet, body []byte) {
	id, ok := g.v.ID(proto.Login, proto.Clientbound, p)
	if !ok {
		g.t.Errorf("%d has no %v", g.v.Protocol, p)
	}
	g.w.Append(id, body)
}

func (g *guest) flush() { g.w.Flush() }

// ask sends a login plugin request and reads the answer.
func (g *guest) ask(channel string, data []byte) packet.LoginPluginResponse {
	g.send(proto.LoginPluginRequest, packet.AppendLoginPluginRequest(nil, packet.LoginPluginRequest{ID: 300, Channel: channel, Data: data}))
	g.flush()
	a, err := packet.ParseLoginPluginResponse(g.next(proto.Login, proto.LoginPluginResponse))
	if err != nil || a.ID != 300 {
		g.t.Errorf("%s: %+v, %v", channel, a, err)
	}
	return a
}

func (g *guest) admit() {
	g.send(proto.LoginSuccess, packet.AppendLoginSuccess(nil, g.v.Protocol, packet.LoginSuccess{ID: notch, Name: "Notch"}))
	g.flush()
}

// serve makes a server that does act with each connection, and leaves it open until the test ends.
func serve(t *testing.T, act func(*guest)) Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() { act(newGuest(t, c)) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return Server{Name: "lobby", Address: ln.Addr().String()}
}

func newGuest(t *testing.T, c net.Conn) *guest {
	return &guest{Conn: c, t: t, r: frame.NewReader(c, frame.Limits{}), w: frame.NewWriter(c)}
}

// dial logs the player in and closes the connection when the test ends.
func dial(t *testing.T, s Server, id Identity) (*Conn, error) {
	t.Helper()
	c, err := Dial(t.Context(), s, id, Timeouts{})
	if c != nil {
		t.Cleanup(func() { c.Close(); c.Reader.Release() })
	}
	return c, err
}

func TestLogin(t *testing.T) {
	for _, v := range proto.Supported() {
		p := v.Protocol
		heard := make(chan struct{})
		s := serve(t, func(g *guest) {
			defer close(heard)
			g.greet()
			if want := (packet.Handshake{Protocol: p, Host: "play.example.org", Port: 25577, Intent: packet.IntentLogin}); g.hs != want {
				t.Errorf("%d: %+v", p, g.hs)
			}
			if g.ls.Name != "Notch" || g.ls.HasID != (p >= 760) || g.ls.HasID && g.ls.ID != notch || (g.ls.Key != nil) != (p == 759 || p == 760) {
				t.Errorf("%d: %+v", p, g.ls)
			}
			if p >= 393 {
				if a := g.ask("mod:unknown", []byte("x")); a.Understood {
					t.Errorf("%d: understood: %+v", p, a)
				}
			}
			g.send(proto.SetCompression, packet.AppendSetCompression(nil, 64))
			g.flush()
			g.w.SetCompression(64)
			g.r.SetCompression(64)
			if p >= 393 {
				if a := g.ask(strings.Repeat("long/", 30), make([]byte, 1000)); a.Understood { // compressed
					t.Errorf("%d: understood: %+v", p, a)
				}
			}
			if p >= 393 && g.ask(playerInfo, []byte{4}).Understood {
				t.Errorf("%d: told who the player is without being asked to forward", p)
			}
			if p >= 766 {
				g.send(proto.CookieRequest, packet.AppendCookieRequest(nil, "a:b"))
				g.flush()
				if c, err := packet.ParseCookieResponse(g.next(proto.Login, proto.CookieResponse)); err != nil || c.Key != "a:b" || c.Found {
					t.Errorf("%d: %+v, %v", p, c, err)
				}
			}
			g.send(proto.LoginSuccess, packet.AppendLoginSuccess(nil, p, packet.LoginSuccess{ID: notch, Name: "Notch"}))
			g.w.Append(0x71, bytes.Repeat([]byte("after"), 100)) // in the same write
			g.flush()
			if got := g.nextRaw(); string(got) != "hello" {
				t.Errorf("%d: %q", p, got)
			}
		})
		c, err := dial(t, s, player(p))
		if err != nil {
			t.Errorf("%d: %v", p, err)
			continue
		}
		f, err := c.Reader.Next()
		if err != nil || f.ID != 0x71 || c.Threshold != 64 || c.Server != "lobby" {
			t.Errorf("%d: %+v, %v, %+v", p, f, err, c)
		}
		if b, err := c.Reader.Body(f); err != nil || len(b) != 500 {
			t.Errorf("%d: %d bytes, %v", p, len(b), err)
		}
		if err := c.Writer.Packet(0x01, []byte("hello")); err != nil {
			t.Errorf("%d: %v", p, err)
		}
		<-heard
	}
}

// nextRaw reads a packet of any kind.
func (g *guest) nextRaw() []byte {
	f, err := g.r.Next()
	if err != nil {
		g.t.Error(err)
		return nil
	}
	b, _ := g.r.Body(f)
	return bytes.Clone(b)
}

func TestModern(t *testing.T) {
	var want struct {
		Secret  string
		Answers map[int32]string
	}
	if b, err := os.ReadFile("testdata/modern.json"); err != nil || json.Unmarshal(b, &want) != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		protocol int32
		question []byte
		noKey    bool
		version  int32
	}{
		{393, nil, false, 1}, {393, []byte{1}, false, 1}, {393, []byte{4}, false, 1}, {758, []byte{200}, false, 1},
		{759, nil, false, 1}, {759, []byte{1}, false, 1}, {759, []byte{2}, false, 2}, {759, []byte{3}, false, 2}, {759, []byte{4}, false, 2}, {759, []byte{4}, true, 1},
		{760, []byte{1}, false, 1}, {760, []byte{2}, false, 1}, {760, []byte{3}, false, 3}, {760, []byte{4}, false, 3}, {760, []byte{4}, true, 1},
		{761, []byte{1}, false, 1}, {761, []byte{3}, false, 1}, {761, []byte{4}, false, 4}, {761, []byte{255}, false, 4}, {775, []byte{4}, false, 4},
		{775, nil, false, 1}, {775, []byte{0}, false, 1}, {775, []byte{4, 4}, false, 1},
	} {
		s := serve(t, func(g *guest) {
			g.greet()
			if g.hs.Host != "play.example.org" {
				t.Errorf("host %q", g.hs.Host)
			}
			a := g.ask(playerInfo, c.question)
			if hex := hex.EncodeToString(a.Data); !a.Understood || hex != want.Answers[c.version] {
				t.Errorf("%d asked %x: answer\n%s, want version %d\n%s", c.protocol, c.question, hex, c.version, want.Answers[c.version])
			}
			g.admit()
		})
		s.Forwarding, s.Secret = Modern, []byte(want.Secret)
		id := player(c.protocol)
		if c.noKey {
			id.Key = nil
		}
		// The property must not arrive.
		id.Properties = append(id.Properties, packet.Property{Name: "BungeeGuard-Token", Value: "guess"})
		if _, err := dial(t, s, id); err != nil {
			t.Error(err)
		}
	}
	// a server that does not ask takes anybody
	s := serve(t, func(g *guest) { g.greet(); g.admit() })
	s.Forwarding, s.Secret = Modern, []byte("x")
	if _, err := dial(t, s, player(775)); !errors.Is(err, ErrNotAsked) || !strings.Contains(err.Error(), "turn on Velocity forwarding") {
		t.Errorf("not asked: %v", err)
	}
	if _, err := dial(t, s, player(340)); !errors.Is(err, ErrNeedsNewer) {
		t.Errorf("1.12.2: %v", err)
	}
}

// forwarded is what a Spigot server in BungeeCord mode makes of the host.
type forwarded struct {
	host, ip, id string
	properties   []map[string]string
}

func parseForwarded(t *testing.T, host string) (f forwarded) {
	t.Helper()
	parts := strings.Split(host, "\x00")
	if len(parts) != 4 {
		t.Errorf("%d parts in %q", len(parts), host)
		return
	}
	f.host, f.ip, f.id = parts[0], parts[1], parts[2]
	if err := json.Unmarshal([]byte(parts[3]), &f.properties); err != nil {
		t.Errorf("%q: %v", parts[3], err)
	}
	return f
}

func TestLegacy(t *testing.T) {
	textures := map[string]string{"name": "textures", "value": "eyJ0", "signature": "c2ln"}
	x := map[string]string{"name": "x", "value": "<&>"}
	token := map[string]string{"name": "bungeeguard-token", "value": "s3cret", "signature": ""}
	extra := func(v string) map[string]string { return map[string]string{"name": "extraData", "value": v} }
	for name, c := range map[string]struct {
		mode   Mode
		change func(*Identity)
		ip     string
		want   []map[string]string
	}{
		"legacy":        {Legacy, func(*Identity) {}, "203.0.113.7", []map[string]string{textures, x}},
		"no properties": {Legacy, func(id *Identity) { id.Properties = nil }, "203.0.113.7", []map[string]string{}},
		"zone":          {Legacy, func(id *Identity) { id.Addr = netip.MustParseAddr("fe80::1%eth0") }, "fe80::1", []map[string]string{textures, x}},
		"Forge 1.12":    {Legacy, func(id *Identity) { id.Marker = "\x00FML\x00" }, "203.0.113.7", []map[string]string{textures, x, extra("\x01FML\x01")}},
		"Forge 1.16":    {BungeeGuard, func(id *Identity) { id.Marker = "\x00FML2\x00" }, "203.0.113.7", []map[string]string{textures, x, extra("\x01FML2\x01"), token}},
		"bungeeguard":   {BungeeGuard, func(*Identity) {}, "203.0.113.7", []map[string]string{textures, x, token}},
		"forged":        {BungeeGuard, forge, "203.0.113.7", []map[string]string{textures, x, token}},
		"forged legacy": {Legacy, forge, "203.0.113.7", []map[string]string{textures, x}},
	} {
		var got forwarded
		s := serve(t, func(g *guest) {
			g.greet()
			got = parseForwarded(t, g.hs.Host)
			if strings.Contains(g.hs.Host, `\u003c`) {
				t.Errorf("%s: properties are escaped for the web", name)
			}
			g.admit()
		})
		s.Forwarding, s.Secret = c.mode, []byte("s3cret")
		id := player(340)
		c.change(&id)
		if _, err := dial(t, s, id); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.host != "play.example.org" || got.ip != c.ip || got.id != "069a79f444e94726a5befca90e38aaf5" || !slices.EqualFunc(got.properties, c.want, equal) {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
	big := player(340)
	big.Properties = slices.Repeat([]packet.Property{{Name: "x", Value: strings.Repeat("x", 20000)}}, 2)
	s := serve(t, func(g *guest) { io.Copy(io.Discard, g) })
	s.Forwarding = Legacy
	if _, err := dial(t, s, big); err == nil || !strings.Contains(err.Error(), "use modern forwarding") {
		t.Errorf("40 KB of profile: %v", err)
	}
}

func forge(id *Identity) {
	id.Properties = append([]packet.Property{{Name: "bungeeguard-token", Value: "guess"}}, id.Properties...)
	id.Properties = append(id.Properties, packet.Property{Name: "extraData", Value: "\x01FML\x01"})
}

func equal(a, b map[string]string) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		mode   Mode
		change func(*Identity)
		host   string
		port   uint16
	}{
		// Appended, never in place of the host.
		{None, func(id *Identity) { id.Marker = "\x00FML\x00" }, "play.example.org\x00FML\x00", 25577},
		{None, func(id *Identity) { id.Marker = "\x00FORGE" }, "play.example.org\x00FORGE", 25577},
		{None, func(id *Identity) { id.Host, id.Port = "", 0 }, "127.0.0.1", 0},
		{Modern, func(id *Identity) { id.Marker = "\x00FML2\x00" }, "play.example.org\x00FML2\x00", 25577},
	} {
		s := serve(t, func(g *guest) {
			g.greet()
			want := c.port
			if want == 0 {
				want = uint16(g.LocalAddr().(*net.TCPAddr).Port)
			}
			if g.hs.Host != c.host || g.hs.Port != want {
				t.Errorf("%q %d, want %q %d", g.hs.Host, g.hs.Port, c.host, want)
			}
			if c.mode == Modern {
				g.ask(playerInfo, nil)
			}
			g.admit()
		})
		s.Forwarding, s.Secret = c.mode, []byte("x")
		id := player(763)
		c.change(&id)
		if _, err := dial(t, s, id); err != nil {
			t.Error(err)
		}
	}
}

func TestProxyHeader(t *testing.T) {
	for _, from := range []string{"203.0.113.7", "::ffff:203.0.113.7", "2001:db8::7"} {
		var got *proxyproto.Header
		var rest []byte
		s := serve(t, func(g *guest) {
			c := proxyproto.NewConn(g.Conn)
			g = newGuest(t, c)
			g.greet()
			got, rest = c.ProxyHeader(), nil
			g.admit()
		})
		s.SendProxy = true
		id := player(775)
		id.Addr = netip.MustParseAddr(from)
		if _, err := dial(t, s, id); err != nil {
			t.Fatal(err)
		}
		src, dst, ok := got.TCPAddrs()
		if !ok || got.Version != 2 || src.AddrPort().Addr().Unmap() != id.Addr.Unmap() || src.Port != 50000 || dst.AddrPort().Port() == 0 || !dst.IP.IsLoopback() || rest != nil {
			t.Errorf("%s: %+v", from, got)
		}
	}
	// through memory there is nothing to name
	h := proxyHeader(netip.MustParseAddrPort("203.0.113.7:1"), pipeAddr{})
	if hex.EncodeToString(h) != "0d0a0d0a000d0a515549540a20000000" {
		t.Errorf("%x", h)
	}
	// bytes of the specification, checked by hand
	h = proxyHeader(netip.MustParseAddrPort("1.2.3.4:258"), &net.TCPAddr{IP: net.IPv4(5, 6, 7, 8), Port: 772})
	if hex.EncodeToString(h) != "0d0a0d0a000d0a515549540a2111000c01020304050607080102"+"0304" {
		t.Errorf("%x", h)
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// TestServersThatFail: whatever the server does instead of letting the player in, Dial says what to change.
func TestServersThatFail(t *testing.T) {
	raw := func(b ...byte) func(*guest) { return func(g *guest) { g.greet(); g.Write(b); io.Copy(io.Discard, g) } }
	for name, c := range map[string]struct {
		act  func(*guest)
		want string
	}{
		"closes at once":         {func(g *guest) { g.Close() }, "it closed the connection during login"},
		"closes after the start": {func(g *guest) { g.greet(); g.Close() }, "it closed the connection during login"},
		"closes within a frame":  {func(g *guest) { g.greet(); g.Write([]byte{20, 0}); g.Close() }, "it closed the connection during login"},
		"speaks HTTP": {func(g *guest) {
			g.greet()
			g.Write([]byte(strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 5)))
			io.Copy(io.Discard, g)
		}, "login of protocol"},
		"endless length": {raw(0xff, 0xff, 0xff, 0xff, 0xff), "it does not speak Minecraft's protocol"},
		"online mode": {func(g *guest) {
			g.greet()
			g.send(proto.EncryptionBegin, packet.AppendEncryptionRequest(nil, 775, packet.EncryptionRequest{}))
			g.flush()
		}, "online-mode=false"},
		"a packet of play":        {raw(2, 0x40, 0), "login of protocol 775 does not have"},
		"a huge id":               {raw(6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0), "login of protocol 775 does not have"},
		"half a disconnect":       {raw(3, 0, 5, 'a'), "disconnect: field runs past"},
		"half a compression":      {raw(1, 3), "set compression: "},
		"half a request":          {raw(2, 4, 0), "login plugin request: "},
		"half a cookie":           {raw(2, 5, 9), "cookie request: "},
		"wrong compressed size":   {raw(2, 3, 0, 5, 1, 0x78, 0x9c, 3, 0), "it does not speak Minecraft's protocol"},
		"closes after compressed": {func(g *guest) { g.greet(); g.send(proto.SetCompression, []byte{0}); g.flush(); g.Close() }, "it closed the connection during login"},
	} {
		s := serve(t, c.act)
		got, err := dial(t, s, player(775))
		if err == nil || got != nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `backend "lobby" at 127.0.0.1:`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// nobody there
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	if _, err := dial(t, Server{Name: "lobby", Address: address}, player(775)); err == nil || !strings.Contains(err.Error(), "nothing listens there") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := dial(t, Server{Name: "lobby", Address: "no.such.host.invalid"}, player(775)); err == nil || !strings.Contains(err.Error(), "check its address in the config") {
		t.Errorf("no such host: %v", err)
	}
	if _, err := dial(t, Server{Name: "lobby", Address: address}, player(500)); err == nil || !strings.Contains(err.Error(), "500 is not supported") {
		t.Errorf("unknown protocol: %v", err)
	}
	for _, s := range []Server{{Name: "lobby", Address: address, SendProxy: true}, {Name: "lobby", Address: address, Forwarding: Legacy}} {
		id := player(775)
		id.Addr = netip.Addr{}
		if _, err := dial(t, s, id); !errors.Is(err, ErrNoPlayerAddr) {
			t.Errorf("no address: %v", err)
		}
	}
}

func TestKick(t *testing.T) {
	for _, reason := range []string{`{"text":"full","odd":[1,{}]}`, `"just text"`, `not json`, ``} {
		s := serve(t, func(g *guest) {
			g.greet()
			g.send(proto.Disconnect, field.AppendString(nil, reason))
			g.flush()
			g.Close()
		})
		_, err := dial(t, s, player(775))
		var kick *KickError
		if !errors.As(err, &kick) || kick.Server != "lobby" || string(kick.Reason.JSON(775)) != reason {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestDurations: each configured duration is how long that stage lasts, on a clock of our own.
func TestDurations(t *testing.T) {
	never := func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	for _, c := range []struct {
		name     string
		timeouts Timeouts
		stage    func(t *testing.T, g *guest) // nil: the connection never comes
		want     time.Duration
	}{
		{"dial", Timeouts{Dial: 1234 * time.Millisecond, Login: time.Hour}, nil, 1234 * time.Millisecond},
		{"dial, default", Timeouts{}, nil, 5 * time.Second},
		{"deaf", Timeouts{Dial: time.Hour, Login: 4321 * time.Millisecond}, func(*testing.T, *guest) {}, 4321 * time.Millisecond},
		{"silent", Timeouts{Login: 30 * time.Second}, func(_ *testing.T, g *guest) { g.greet() }, 30 * time.Second},
		{"silent, default", Timeouts{}, func(_ *testing.T, g *guest) { g.greet() }, 10 * time.Second},
		{"silent after compression", Timeouts{}, func(_ *testing.T, g *guest) { g.greet(); g.send(proto.SetCompression, []byte{1}); g.flush() }, 10 * time.Second},
		{"busy without end", Timeouts{Login: 7 * time.Second}, func(_ *testing.T, g *guest) {
			g.greet()
			for g.w.Err() == nil { // the deadline is for the whole login, so being busy does not help
				time.Sleep(time.Second)
				g.send(proto.SetCompression, []byte{0x80, 0x80, 0x80, 0x80, 0x08})
				g.flush()
			}
		}, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			s := Server{Name: "lobby", Dial: never}
			var wg sync.WaitGroup
			if c.stage != nil {
				s.Dial = func(ctx context.Context) (net.Conn, error) {
					if at, ok := ctx.Deadline(); !ok || time.Until(at) != c.timeouts.withDefaults().Dial {
						t.Errorf("%s: the dial has %v", c.name, time.Until(at))
					}
					wg.Go(func() { c.stage(t, newGuest(t, server)) })
					return client, nil
				}
			}
			begun := time.Now()
			got, err := Dial(t.Context(), s, player(775), c.timeouts)
			var ne net.Error
			if got != nil || !errors.As(err, &ne) || !ne.Timeout() || !strings.Contains(err.Error(), c.want.String()) {
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(begun); took != c.want {
				t.Errorf("%s took %v, want %v", c.name, took, c.want)
			}
			client.Close()
			server.Close()
			wg.Wait()
		})
	}
	// once the player is in, no deadline is left
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go func() {
			g := newGuest(t, server)
			g.greet()
			g.admit()
			time.Sleep(time.Hour)
			g.w.Packet(0x20, nil)
		}()
		c, err := Dial(t.Context(), Server{Name: "lobby", Dial: func(context.Context) (net.Conn, error) { return client, nil }}, player(775), Timeouts{})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := c.Reader.Next(); err != nil || f.ID != 0x20 {
			t.Errorf("an hour later: %+v, %v", f, err)
		}
		c.Close()
		c.Reader.Release()
		server.Close()
	})
}

// TestGivesUpWithItsContext: when the player leaves, Dial returns at once in every stage.
func TestGivesUpWithItsContext(t *testing.T) {
	for name, stage := range map[string]func(*guest){
		"connecting": nil,
		"deaf":       func(*guest) {},
		"silent":     func(g *guest) { g.greet() },
		"compressed": func(g *guest) { g.greet(); g.send(proto.SetCompression, []byte{1}); g.flush() },
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			s := Server{Name: "lobby", Dial: func(ctx context.Context) (net.Conn, error) {
				if stage == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				wg.Go(func() { stage(newGuest(t, server)) })
				return client, nil
			}}
			begun := time.Now()
			time.AfterFunc(time.Second, cancel)
			if c, err := Dial(ctx, s, player(775), Timeouts{}); c != nil || err != context.Canceled {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took != time.Second {
				t.Errorf("%s: took %v", name, took)
			}
			if stage != nil {
				if _, err := client.Write([]byte{0}); err != io.ErrClosedPipe {
					t.Errorf("%s: the connection is still open: %v", name, err)
				}
			}
			client.Close()
			server.Close()
			wg.Wait()
		})
	}
}

func TestValidate(t *testing.T) {
	for _, s := range []Server{
		{Name: "a", Address: "h:1"}, {Name: "a", Address: "h"}, {Name: "a", Address: "[::1]"}, {Name: "a", Address: "[::1]:25"}, {Name: "a", Address: "10.0.0.1"},
		{Name: "a", Address: "h", Forwarding: Legacy}, {Name: "a", Address: "h", Forwarding: Modern, Secret: []byte("x")},
		{Name: "a", Dial: func(context.Context) (net.Conn, error) { return nil, nil }},
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []Server{
		{Address: "h:1"}, {Name: "a"}, {Name: "a", Address: ":25565"}, {Name: "a", Address: "h:http"}, {Name: "a", Address: "h:70000"}, {Name: "a", Address: "h:0"}, {Name: "a", Address: "::1"},
		{Name: "a", Address: "h:1", Forwarding: Modern}, {Name: "a", Address: "h:1", Forwarding: BungeeGuard}, {Name: "a", Address: "h:1", Forwarding: 4},
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%+v accepted", s)
		}
		if c, err := Dial(t.Context(), s, player(775), Timeouts{}); err == nil {
			c.Close()
			t.Errorf("%+v dialled", s)
		}
	}
	for m := None; m <= Modern; m++ {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("velocity"); err == nil || Mode(9).String() != "invalid" {
		t.Error("an unknown mode was accepted")
	}
	if host, port, err := (Server{Address: "h"}).split(); host != "h" || port != 25565 || err != nil {
		t.Error(host, port, err)
	}
}

// script is a connection that says fixed bytes, whatever it is told.
type script struct{ io.Reader }

func (script) Write(b []byte) (int, error)      { return len(b), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return pipeAddr{} }
func (script) RemoteAddr() net.Addr             { return pipeAddr{} }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }

// FuzzServer is a server that may say anything.
func FuzzServer(f *testing.F) {
	whole := func(protocol int32, mode Mode) []byte {
		var b bytes.Buffer
		w := frame.NewWriter(&b)
		if protocol >= 393 {
			w.Append(4, packet.AppendLoginPluginRequest(nil, packet.LoginPluginRequest{ID: 1, Channel: playerInfo, Data: []byte{4}}))
		}
		if protocol >= 766 {
			w.Append(5, packet.AppendCookieRequest(nil, "a:b"))
		}
		w.Append(3, packet.AppendSetCompression(nil, 256))
		w.Flush()
		w.SetCompression(256)
		w.Packet(2, packet.AppendLoginSuccess(nil, protocol, packet.LoginSuccess{ID: notch, Name: "Notch"}))
		return b.Bytes()
	}
	for i, p := range []int32{47, 393, 759, 760, 775} {
		for m := None; m <= Modern; m++ {
			b := whole(p, m)
			f.Add(b, uint8(i), uint8(m))
			f.Add(b[:len(b)/2], uint8(i), uint8(m))
		}
	}
	f.Add([]byte{3, 0, 1, 'x'}, uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, which, mode uint8) {
		p := []int32{47, 393, 759, 760, 775}[which%5]
		s := Server{Name: "a", Forwarding: Mode(mode % 4), Secret: []byte("x"), Dial: func(context.Context) (net.Conn, error) { return script{bytes.NewReader(b)}, nil }}
		c, err := Dial(context.Background(), s, player(p), Timeouts{})
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if c != nil {
			c.Reader.Release()
		}
	})
}
