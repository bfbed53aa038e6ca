package itest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/offer"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
)

// certificate makes one for this machine, signed by nobody else, and returns the two files and who trusts it.
func certificate(t testing.TB) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "earshot test"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, kind string, b []byte) string {
		f := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(f, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	roots = x509.NewCertPool()
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	roots.AddCert(c)
	return file("cert.pem", "CERTIFICATE", der), file("key.pem", "PRIVATE KEY", secret), roots
}

// icon returns a PNG of that many pixels each way.
func icon(t testing.TB, size int) (file string, b []byte) {
	t.Helper()
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewNRGBA(image.Rect(0, 0, size, size))); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "icon.png")
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, buf.Bytes()
}

// balancer is an address of this machine whose PROXY headers are believed; from all its others they are not.
const balancer = "127.0.0.3"

// TestPort: everything there is answers on the one port, each in its own words.
func TestPort(t *testing.T) {
	certFile, keyFile, roots := certificate(t)
	iconFile, iconBytes := icon(t, 64)
	server := peer.Backend(t, "1.21.4", peer.Legacy, "")
	p := start(t, fmt.Sprintf(`online: false
try: [game]
servers: {game: {address: %q, forwarding: legacy}}
tls: {certificate: %q, key: %q}
proxy-protocol: {trusted: [%s]}
status: {motd: "<gold>Come</gold> <bold>closer</bold>", icon: %q, max-players: 77}
voice: {allowed-origins: ["https://map.example"]}
`, server.Addr, certFile, keyFile, balancer, iconFile))
	clients := peer.NewRaw(t, "1.21.4")
	secure := &tls.Config{RootCAs: roots}
	x := &portTest{p, clients, server, secure, "data:image/png;base64," + base64.StdEncoding.EncodeToString(iconBytes)}

	t.Run("status", x.status)
	t.Run("unsupported versions", x.unsupported)
	t.Run("legacy pings", x.legacy)
	t.Run("HTTP", x.http)
	t.Run("HTTPS", x.https)
	t.Run("PROXY headers", x.proxyHeaders)
	t.Run("voice elsewhere", x.elsewhere)
	t.Run("voice", x.voice) // the last: its players stay
}

type portTest struct {
	p       *program
	clients *peer.RawCrowd
	server  *peer.Server
	secure  *tls.Config
	icon    string
}

// pong is a status answer.
type pong struct {
	Version struct {
		Name     string
		Protocol int32
	}
	Players struct {
		Max, Online int
		Sample      []struct{ Name, ID string }
	}
	Description json.RawMessage
	Favicon     string
}

func (x *portTest) status(t *testing.T) {
	read := func(b []byte) (s pong) {
		t.Helper()
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return s
	}
	s := read(x.clients.Ping(x.p.addr))
	var plain func(v any) string
	plain = func(v any) string {
		switch v := v.(type) {
		case string:
			return v
		case []any:
			text := ""
			for _, e := range v {
				text += plain(e)
			}
			return text
		case map[string]any:
			text, _ := v["text"].(string)
			return text + plain(v["extra"])
		}
		return ""
	}
	var motd any
	json.Unmarshal(s.Description, &motd)
	if plain(motd) != "Come closer" || !bytes.Contains(s.Description, []byte(`"gold"`)) || !bytes.Contains(s.Description, []byte(`"bold":true`)) {
		t.Errorf("the text is %s", s.Description)
	}
	if s.Favicon != x.icon {
		t.Errorf("the icon is %.40s… of %d characters", s.Favicon, len(s.Favicon))
	}
	if s.Version.Protocol != 769 || !strings.Contains(s.Version.Name, "1.8") || !strings.Contains(s.Version.Name, "26.3") {
		t.Errorf("the version is %+v", s.Version)
	}
	if s.Players.Max != 77 || s.Players.Online != 0 || len(s.Players.Sample) != 0 {
		t.Errorf("the players are %+v", s.Players)
	}

	ann := x.clients.Join(x.p.addr, "Ann")
	x.server.Joined("Ann")
	testkit.Until(t, "Ann to be named, whom nobody there could call vanished", func() bool {
		s = read(x.clients.Ping(x.p.addr))
		return len(s.Players.Sample) > 0
	})
	if s.Players.Online != 1 || len(s.Players.Sample) != 1 || s.Players.Sample[0].Name != "Ann" || s.Players.Sample[0].ID != offlineID("Ann").String() {
		t.Errorf("with Ann there, the players are %+v", s.Players)
	}
	ann.Quit()
	x.server.Await("leave", "Ann", nil)
}

// ping asks for the status as a client of any protocol and checks the pong too.
func (x *portTest) ping(t *testing.T, c *net.TCPConn, protocol int32) (s pong) {
	t.Helper()
	w := newWire(t, c, proto.V1_8)
	write(t, c, hello(protocol, "localhost", packet.IntentStatus), framed(0, nil))
	_, body := w.next(proto.Status)
	b, err := packet.ParseStatusResponse(body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	write(t, c, framed(1, []byte("12345678")))
	if _, body := w.next(proto.Status); string(body) != "12345678" {
		t.Errorf("the pong is %q", body)
	}
	ended(t, c)
	return s
}

// unsupported: a version that we do not speak is told so, in the list and at the door, and nobody pretends.
func (x *portTest) unsupported(t *testing.T) {
	for protocol, want := range map[int32]int32{46: proto.Max, 47: 47, 764: 764, proto.Max: proto.Max, 778: 778, 1 << 30: proto.Max, -1: proto.Max} {
		if s := x.ping(t, dial(t, x.p.addr, ""), protocol); s.Version.Protocol != want {
			t.Errorf("a client of protocol %d is told %d", protocol, s.Version.Protocol)
		}
	}
	for protocol, want := range map[int32]string{46: "Outdated client!", 500: "outdated_server", 1 << 30: "outdated_server"} {
		if r := refusal(t, x.p.addr, protocol, "Ann"); !strings.Contains(r, want) || !strings.Contains(r, "26.3") {
			t.Errorf("a login of protocol %d is refused with %s", protocol, r)
		}
	}
	// The only intents are 1, 2 and 3, and the last is switched off.
	c := newWire(t, dial(t, x.p.addr, ""), proto.V1_8)
	write(t, c, hello(769, "localhost", 3), loginStart(769, "Ann"))
	if p, body := c.next(proto.Login); p != proto.Disconnect || !bytes.Contains(body, []byte("transfers_disabled")) {
		t.Errorf("a transferred player gets %v %q", p, body)
	}
	d := dial(t, x.p.addr, "")
	write(t, d, hello(769, "localhost", 7))
	if b, _ := ended(t, d); len(b) != 0 {
		t.Errorf("intent 7 is answered with %q", b)
	}
}

func (x *portTest) legacy(t *testing.T) {
	utf16be := func(s string) (b []byte) {
		for _, u := range utf16.Encode([]rune(s)) {
			b = field.AppendU16(b, u)
		}
		return b
	}
	counted := func(s string) []byte {
		return append(field.AppendU16(nil, uint16(len(s))), utf16be(s)...)
	}
	rest := append([]byte{74}, append(counted("localhost"), 0, 0, 0x63, 0xdd)...)
	full := append([]byte{0xfe, 0x01, 0xfa}, counted("MC|PingHost")...)
	full = append(field.AppendU16(full, uint16(len(rest))), rest...)
	ask := func(parts ...[]byte) string {
		t.Helper()
		c := dial(t, x.p.addr, "")
		for i, b := range parts {
			if i > 0 { // long enough to be a segment of its own, too short to be all there is
				time.Sleep(20 * time.Millisecond)
			}
			write(t, c, b)
		}
		b, _ := ended(t, c)
		r := field.NewReader(b)
		kick, units := r.U8(), make([]uint16, r.U16())
		for i := range units {
			units[i] = r.U16()
		}
		if err := r.End(); err != nil || kick != 0xff {
			t.Fatalf("%x is answered with %x: %v", parts, b, err)
		}
		return string(utf16.Decode(units))
	}
	if got := ask([]byte{0xfe}); got != "Come closer§0§77" {
		t.Errorf("FE: %q", got)
	}
	for what, parts := range map[string][][]byte{
		"FE 01": {{0xfe, 0x01}}, "FE 01 in two": {{0xfe}, {0x01}}, "FE 01 FA": {full}, "FE 01 FA in three": {full[:3], full[3:20], full[20:]},
	} {
		got := strings.Split(ask(parts...), "\x00")
		if len(got) != 6 || got[0] != "§1" || got[1] != "127" || !strings.Contains(got[2], "26.3") || stripped(got[3]) != "Come closer" || !strings.Contains(got[3], "§6") || got[4] != "0" || got[5] != "77" {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := ask([]byte{0x02, 61, 0, 3, 0, 'A', 0, 'n', 0, 'n'}); !strings.Contains(got, "1.8") {
		t.Errorf("a login of 1.6 is told %q", got)
	}
}

// stripped returns a text without its § codes.
func stripped(s string) string {
	var b strings.Builder
	skip := false
	for _, r := range s {
		switch {
		case skip:
			skip = false
		case r == '§':
			skip = true
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// through returns an HTTP client whose connections come from an address and begin with these bytes.
func through(t testing.TB, from string, head []byte, secure *tls.Config) *http.Client {
	tr := &http.Transport{TLSClientConfig: secure, DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		c := dial(t, addr, from)
		write(t, c, head)
		return c, nil
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: peer.Patience}
}

func get(t testing.TB, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// headerV1 and headerV2 say that a connection comes from port 4711 of an address.
func headerV1(addr string) []byte {
	family := "TCP4"
	to := "127.0.0.1"
	if strings.Contains(addr, ":") {
		family, to = "TCP6", "::1"
	}
	return fmt.Appendf(nil, "PROXY %s %s %s 4711 25565\r\n", family, addr, to)
}

func headerV2(addr string) []byte {
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21"), 0x11, 0, 12+7)
	b = append(b, net.ParseIP(addr).To4()...)
	b = append(b, 127, 0, 0, 1, 4711>>8, 4711&255, 25565>>8, 25565&255)
	return append(b, 4, 0, 4, 1, 2, 3, 4) // and a TLV that means nothing
}

func (x *portTest) http(t *testing.T) {
	base := "http://" + x.p.addr
	inside := through(t, "", nil, nil)
	if code, body := get(t, inside, base+"/healthz"); code != 200 || !strings.Contains(body, `"state":"running"`) || !strings.Contains(body, `"players"`) {
		t.Errorf("/healthz: %d %s", code, body)
	}
	code, body := get(t, inside, base+"/metrics")
	for _, name := range []string{
		"earshot_players 0", "earshot_voice_sockets 0", "earshot_voice_frames_in_total 0", "earshot_voice_frames_delivered_total 0",
		`earshot_voice_frames_dropped_total{reason=`, `earshot_voice_refused_total{reason="token"} 0`, `earshot_connections_refused_total{reason="proxy_untrusted"}`,
		`earshot_connections_ended_total{why="outdated"}`, `earshot_undecoded_total{packet="keep_alive",version="777"} 0`, `earshot_undecoded_total{packet="player_info",version="777"} 0`, "earshot_logins_total",
		`earshot_voice_frames_lost_total{reason="full"} 0`, "earshot_queue_overflows_total 0", `earshot_clientbound_frames_total{how="passed"}`,
		`earshot_packets_dropped_total{direction="serverbound"} 0`, `earshot_bytes_total{direction="clientbound"}`, "go_goroutines", "process_resident_memory_bytes",
	} {
		if code != 200 || !strings.Contains(body, name) {
			t.Errorf("/metrics: %d, without %s", code, name)
		}
	}
	if code, body := get(t, inside, base+"/nowhere"); code != 404 {
		t.Errorf("/nowhere: %d %s", code, body)
	}
	if code, body := get(t, inside, base+"/voice?token=T&uuid="+offlineID("Ann").String()); code != 400 || strings.Count(body, "\n") != 1 {
		t.Errorf("/voice without an upgrade: %d %q", code, body)
	}
	// Nobody outside learns more than that it runs.
	for what, head := range map[string][]byte{"v1": headerV1("203.0.113.7"), "v1 IPv6": headerV1("2001:db8::7"), "v2": headerV2("203.0.113.7")} {
		outside := through(t, balancer, head, nil)
		if code, body := get(t, outside, base+"/metrics"); code != 403 || strings.Contains(body, "earshot_") {
			t.Errorf("/metrics from outside (%s): %d %s", what, code, body)
		}
		if code, body := get(t, outside, base+"/healthz"); code != 200 || strings.Contains(body, "players") || strings.Contains(body, "version") {
			t.Errorf("/healthz from outside (%s): %d %s", what, code, body)
		}
	}
	// A header that says we are at home counts as well.
	if code, _ := get(t, through(t, balancer, headerV1("127.0.0.1"), nil), base+"/metrics"); code != 200 {
		t.Errorf("/metrics from inside through the balancer: %d", code)
	}
}

func (x *portTest) https(t *testing.T) {
	inside := through(t, "", nil, x.secure)
	if code, body := get(t, inside, "https://"+x.p.addr+"/healthz"); code != 200 || !strings.Contains(body, "running") {
		t.Errorf("/healthz: %d %s", code, body)
	}
	outside := through(t, balancer, headerV2("203.0.113.7"), x.secure)
	if code, body := get(t, outside, "https://"+x.p.addr+"/metrics"); code != 403 {
		t.Errorf("/metrics from outside: %d %s", code, body)
	}
	c := tls.Client(dial(t, x.p.addr, ""), &tls.Config{RootCAs: x.secure.RootCAs, ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS11})
	if err := c.Handshake(); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// proxyHeaders: they count from whoever is trusted, for players and pings too, and anybody else's closes the
// connection.
func (x *portTest) proxyHeaders(t *testing.T) {
	for what, head := range map[string][]byte{"v1": headerV1("203.0.113.7"), "v2": headerV2("198.51.100.9"), "v1 IPv6": headerV1("2001:db8::7"), "none": nil} {
		name := "P" + strings.ReplaceAll(what, " ", "")
		addr := serving(t, func(in net.Conn) { // a balancer for a client that cannot send headers
			out, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(balancer)}}).Dial("tcp", x.p.addr)
			if err != nil {
				return
			}
			defer out.Close()
			out.Write(head)
			done := make(chan struct{})
			go func() {
				defer close(done)
				io.Copy(in, out)
				in.Close()
			}()
			io.Copy(out, in)
			out.Close()
			<-done
		})
		raw := x.clients.Join(addr, name)
		want := map[string]string{"v1": "203.0.113.7", "v2": "198.51.100.9", "v1 IPv6": "2001:db8::7", "none": balancer}[what]
		if f := x.server.Joined(name).Forwarded; f == nil || f.Address != want {
			t.Errorf("%s: the backend is told %+v, want %s", what, f, want)
		}
		x.p.says(1, want)
		raw.Quit()
		x.server.Await("leave", name, nil)
		c := dial(t, x.p.addr, balancer)
		write(t, c, head)
		x.ping(t, c, 769)
	}
	for what, head := range map[string][]byte{"v1": headerV1("203.0.113.7"), "v2": headerV2("203.0.113.7")} {
		was := x.p.metric(`earshot_connections_refused_total{reason="proxy_untrusted"}`)
		c := dial(t, x.p.addr, "127.0.0.2")
		write(t, c, append(head, hello(769, "localhost", packet.IntentStatus)...))
		if b, d := ended(t, c); len(b) != 0 || d > 4*time.Second {
			t.Errorf("%s from a stranger is answered with %q after %v", what, b, d)
		}
		x.p.counts(`earshot_connections_refused_total{reason="proxy_untrusted"}`, was+1)
	}
	for _, head := range []string{"PROXY TCP4 203.0.113.700 127.0.0.1 1 2\r\n", "PROXY TCP4 " + strings.Repeat("1", 200), "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff"} {
		c := dial(t, x.p.addr, balancer)
		write(t, c, []byte(head))
		if b, d := ended(t, c); len(b) != 0 || d > 10*time.Second {
			t.Errorf("%.20q… is answered with %q after %v", head, b, d)
		}
	}
}

// voice: over TLS on the game's own port, by headers and as a browser does it, and not for pages from elsewhere.
func (x *portTest) voice(t *testing.T) {
	join := func(name string) *talker {
		return newTalker(t, x.p, &peer.Bot{Client: x.clients.Join(x.p.addr, name).Client}, x.server)
	}
	ann, bob := join("Ann"), join("Bob")
	ann.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}, TLS: x.secure})
	if want := "https://" + x.p.addr; ann.offer.URL != want {
		t.Errorf("the offer is for %s, want %s", ann.offer.URL, want)
	}
	bob.connect(client.Config{
		Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}, TLS: x.secure, Subprotocol: true,
		Header: http.Header{"Origin": {"https://map.example"}},
	})
	if bob.c.Caps() != (caps.Set{Audio: 2, Spatial: 1, Status: 1, Pose: 1}) {
		t.Errorf("the browser negotiated %+v", bob.c.Caps())
	}
	at := func(s *talker, x0, z float64) {
		x.server.Teleport(s.bot.Name, x0, 70, z, 0, 0)
		x.server.At(s.bot.Name, x0, 70, z)
	}
	at(ann, 0, 0)
	at(bob, 12, -9)
	bob.hears(ann, 1-15.0/48, -12, 9)
	ann.hears(bob, 1-15.0/48, 12, -9)

	// A page of the gateway's own host needs no permission.
	bob.c.Close()
	bob.connect(client.Config{Ask: caps.Set{Audio: 2}, TLS: x.secure, Subprotocol: true, Header: http.Header{"Origin": {"https://" + x.p.addr}}})
	bob.hears(ann, 1-15.0/48, -12, 9)

	bob.c.Close()
	for _, origin := range []string{"https://evil.example", "https://map.example.evil.example", "http://map.example", "null"} {
		o := bob.invited()
		cfg := client.Config{URL: o.URL, Token: o.Token, Player: bob.id, TLS: x.secure, Subprotocol: true, Header: http.Header{"Origin": {origin}}}
		_, err := client.Dial(t.Context(), cfg)
		var refused *client.Refused
		if !errors.As(err, &refused) || refused.Status != 403 {
			t.Errorf("a page of %s: %v", origin, err)
		}
		if origin == "null" { // the token was not used up by somebody else's page
			cfg.Header = nil
			c, err := client.Dial(t.Context(), cfg)
			if err != nil {
				t.Errorf("the player's own page behind a stranger's: %v", err)
			} else {
				c.Close()
			}
		}
	}
	x.p.counts(`earshot_voice_refused_total{reason="origin"}`, 4)
}

// elsewhere: what players are offered follows the settings.
func (x *portTest) elsewhere(t *testing.T) {
	ask := func(p *program) peer.Event {
		r := x.clients.Join(p.addr, "Cat")
		r.Skip("payload")
		r.Payload(offer.Hello, offer.AppendHello(nil))
		e := r.Await("payload", func(e peer.Event) bool { return strings.HasPrefix(e.Channel, offer.Prefix) })
		r.Quit()
		r.Await("end", nil)
		return e
	}
	p := start(t, "voice: {public-url: 'https://voice.example/earshot'}\n", "--offline")
	o, err := offer.ParseHandshake(ask(p).Data)
	if err != nil || o.URL != "https://voice.example/earshot" || len(o.Token) < 40 {
		t.Errorf("the offer is %+v, %v", o, err)
	}
	p = start(t, "voice: {enabled: false}\n", "--offline")
	e := ask(p)
	if r, err := offer.ParseUnavailable(e.Data); e.Channel != offer.Unavailable || r != offer.Disabled || err != nil {
		t.Errorf("without voice the answer on %s is %q, %v", e.Channel, r, err)
	}
	if code, body := get(t, through(t, "", nil, nil), "http://"+p.addr+"/voice"); code != 404 {
		t.Errorf("without voice, /voice: %d %s", code, body)
	}
}

// TestSendsProxyHeader: a backend that asks for it is told where the player is, before the first byte of the game.
func TestSendsProxyHeader(t *testing.T) {
	heads := make(chan []byte, 1)
	backend := serving(t, func(c net.Conn) {
		b := make([]byte, 28)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		heads <- b
		if name, err := arrive(c); err == nil {
			c.Write(append(success(proto.V1_8, name), joinGame()...))
			hold(c)
		}
	})
	p := start(t, fmt.Sprintf("online: false\nproxy-protocol: {trusted: [%s]}\ntry: [game]\nservers: {game: {address: %q, send-proxy-protocol: true}}\n", balancer, backend))
	c := dial(t, p.addr, balancer)
	write(t, c, headerV1("203.0.113.7"), hello(proto.V1_8, "localhost", packet.IntentLogin), loginStart(proto.V1_8, "Ann"))
	select {
	case b := <-heads:
		if want := headerV2("203.0.113.7")[:22]; !bytes.Equal(b[:14], want[:14]) || !bytes.Equal(b[16:20], want[16:20]) || int(b[24])<<8|int(b[25]) != 4711 {
			t.Errorf("the backend is told %x", b)
		}
	case <-time.After(peer.Patience):
		t.Fatal("the backend was told nothing")
	}
	testkit.Until(t, "the player to be there", func() bool { return p.metric("earshot_players") == 1 })
}
