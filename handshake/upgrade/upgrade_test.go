package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ann = uuid.MustParse("00000000-0000-4000-8000-00000000000a")
	bob = uuid.MustParse("00000000-0000-4000-8000-00000000000b") // not online
)

// tokens are good once.
type tokens struct {
	mu   sync.Mutex
	left map[string]uuid.UUID
}

func (k *tokens) Redeem(token string, player uuid.UUID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ok := k.left[token] == player && player != uuid.Nil
	if ok {
		delete(k.left, token)
	}
	return ok
}

// stand is a running handler.
type stand struct {
	*Handler
	t       *testing.T
	server  *httptest.Server
	tokens  *tokens
	offered caps.Set

	mu      sync.Mutex
	refused []string
	got     chan string // "player set: messages", as sockets end
}

type echo struct {
	s    *socket.Socket
	seen strings.Builder
}

func (e *echo) Binary(p []byte) { fmt.Fprintf(&e.seen, " %s", p); e.s.Audio(nil, p) }
func (e *echo) Text(p []byte)   { fmt.Fprintf(&e.seen, " %s", p) }

func start(t *testing.T, change func(*Config)) *stand {
	s := &stand{t: t, tokens: &tokens{left: map[string]uuid.UUID{}}, got: make(chan string, 10), offered: caps.Set{Audio: 2, Status: 1, Spatial: 1, Pose: 1}}
	sweep := socket.NewSweeper()
	cfg := Config{
		Tokens:  s.tokens,
		Online:  func(id uuid.UUID) bool { return id == ann },
		Offered: func() caps.Set { return s.offered },
		Sweeper: sweep,
		Accept: func(ctx context.Context, sock *socket.Socket, player uuid.UUID, set caps.Set) {
			e := &echo{s: sock}
			sock.Run(ctx, e)
			s.got <- fmt.Sprintf("%x %s:%s", player[15], set.Token(), &e.seen)
		},
		Count: func(reason string, _ netip.Addr) {
			s.mu.Lock()
			s.refused = append(s.refused, reason)
			s.mu.Unlock()
		},
	}
	if change != nil {
		change(&cfg)
	}
	s.Handler = New(cfg)
	mux := http.NewServeMux()
	mux.Handle(Path, s)
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "other page\n") })
	s.server = httptest.NewServer(mux)
	t.Cleanup(func() { s.server.Close(); s.Stop(); s.Wait(); sweep.Close() })
	return s
}

// request returns a good upgrade request; lines with a header of the same name are replaced, "Name:" alone removes it,
// and "> LINE" replaces the first line.
func (s *stand) request(change ...string) string {
	s.t.Helper()
	s.tokens.mu.Lock()
	s.tokens.left["good"] = ann
	s.tokens.left["bobs"] = bob
	s.tokens.mu.Unlock()
	first := "GET /voice?token=good&uuid=" + ann.String() + " HTTP/1.1"
	lines := []string{"Host: voice.example:25565", "Upgrade: websocket", "Connection: Upgrade",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
	for _, c := range change {
		if line, ok := strings.CutPrefix(c, "> "); ok {
			first = line
			continue
		}
		name, value, _ := strings.Cut(c, ":")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+":") })
		if value != "" {
			lines = append(lines, strings.Split(c, "\n")...)
		}
	}
	return first + "\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func (s *stand) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

// answer reads one response as it came.
func answer(t *testing.T, br *bufio.Reader) (raw string, status int, body string) {
	t.Helper()
	var head strings.Builder
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", head.String(), err)
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 {
		b := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(br, b); err != nil {
			t.Fatal(err)
		}
		body = string(b)
	}
	return head.String(), resp.StatusCode, body
}

func (s *stand) ask(request string) (raw string, status int, body string) {
	s.t.Helper()
	conn := s.dial()
	defer conn.Close()
	io.WriteString(conn, request)
	return answer(s.t, bufio.NewReader(conn))
}

func (s *stand) lastRefusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return ""
	}
	return s.refused[len(s.refused)-1]
}

func TestStatuses(t *testing.T) {
	at := func(query string) string { return "> GET /voice" + query + " HTTP/1.1" }
	id := "&uuid=" + ann.String()
	for _, c := range []struct {
		name   string
		change []string
		status int
		reason string
	}{
		{"good", nil, 101, ""},
		{"upper case uuid", []string{at("?token=good&uuid=" + strings.ToUpper(ann.String()))}, 101, ""},
		{"other parameters", []string{at("?x=1&token=good" + id)}, 101, ""},
		{"words in any case, in a list", []string{"Upgrade: WebSocket", "Connection: keep-alive, upgrade"}, 101, ""},
		{"no query", []string{at("")}, 400, "query"},
		{"no uuid", []string{at("?token=good")}, 400, "query"},
		{"no token", []string{at("?uuid=" + ann.String())}, 400, "query"},
		{"empty token", []string{at("?token=" + id)}, 400, "query"},
		{"long token", []string{at("?token=" + strings.Repeat("x", 129) + id)}, 400, "query"},
		{"two tokens", []string{at("?token=good&token=good" + id)}, 400, "query"},
		{"two uuids", []string{at("?token=good" + id + id)}, 400, "query"},
		{"short uuid", []string{at("?token=good&uuid=" + ann.String()[1:])}, 400, "query"},
		{"uuid in braces", []string{at("?token=good&uuid={" + ann.String() + "}")}, 400, "query"},
		{"uuid without dashes", []string{at("?token=good&uuid=" + strings.ReplaceAll(ann.String(), "-", ""))}, 400, "query"},
		{"uuid not hexadecimal", []string{at("?token=good&uuid=" + strings.Replace(ann.String(), "a", "g", 1))}, 400, "query"},
		{"bad escape", []string{at("?token=good%zz" + id)}, 400, "query"},
		{"semicolon", []string{at("?token=good;uuid=" + ann.String())}, 400, "query"},
		{"POST", []string{"> POST /voice?token=good" + id + " HTTP/1.1", "Content-Length: 0"}, 400, "not_websocket"},
		{"body", []string{"Content-Length: 3"}, 400, "not_websocket"},
		{"no Upgrade", []string{"Upgrade:"}, 400, "not_websocket"},
		{"other Upgrade", []string{"Upgrade: h2c"}, 400, "not_websocket"},
		{"no Connection", []string{"Connection:"}, 400, "not_websocket"},
		{"no key", []string{"Sec-WebSocket-Key:"}, 400, "not_websocket"},
		{"short key", []string{"Sec-WebSocket-Key: c2hvcnQ="}, 400, "not_websocket"},
		{"no version", []string{"Sec-WebSocket-Version:"}, 400, "not_websocket"},
		{"version 12", []string{"Sec-WebSocket-Version: 12"}, 426, "version"},
		{"version 14", []string{"Sec-WebSocket-Version: 14"}, 426, "version"},
		{"unknown token", []string{at("?token=bad" + id)}, 401, "token"},
		{"somebody else's token", []string{at("?token=bobs" + id)}, 401, "token"},
		{"token of one who is not online", []string{at("?token=bobs&uuid=" + bob.String())}, 403, "offline"},
		{"bad token of one who is not online", []string{at("?token=bad&uuid=" + bob.String())}, 401, "token"},
		{"own page", []string{"Origin: http://voice.example:25565"}, 101, ""},
		{"own page, other case", []string{"Origin: https://VOICE.example:25565"}, 101, ""},
		{"own page, implied port", []string{"Host: voice.example", "Origin: https://voice.example:443"}, 101, ""},
		{"own page, implied port, http", []string{"Host: voice.example:80", "Origin: http://voice.example"}, 101, ""},
		{"allowed page", []string{"Origin: https://panel.example"}, 101, ""},
		{"other page", []string{"Origin: https://evil.example"}, 403, "origin"},
		{"allowed page, other scheme", []string{"Origin: http://panel.example"}, 403, "origin"},
		{"other port", []string{"Origin: http://voice.example:8080"}, 403, "origin"},
		{"longer name", []string{"Origin: http://voice.example:25565.evil.example"}, 403, "origin"},
		{"no origin in particular", []string{"Origin: null"}, 403, "origin"},
		{"two origins", []string{"Origin: http://voice.example:25565\nOrigin: http://voice.example:25565"}, 403, "origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(cfg *Config) { cfg.Origins = []string{"http://panel.example"} }) // as it was before
			s.SetOrigins([]string{"https://panel.example"})
			request := s.request(c.change...)
			if c.name == "body" {
				request += "abc"
			}
			raw, status, body := s.ask(request)
			if status != c.status || s.lastRefusal() != c.reason {
				t.Fatalf("%d %q, want %d %q\n%s", status, s.lastRefusal(), c.status, c.reason, raw)
			}
			if status == 101 {
				return
			}
			if !strings.HasSuffix(body, "\n") || strings.Count(body, "\n") != 1 || !strings.Contains(raw, "text/plain") {
				t.Errorf("body %q\n%s", body, raw)
			}
			if (status == 426) != strings.Contains(raw, "Sec-WebSocket-Version: 13\r\n") {
				t.Errorf("headers %s", raw)
			}
			// Nothing but redeeming uses the token up.
			_, still := s.tokens.left["good"]
			if !still {
				t.Error("a refusal cost the token")
			}
		})
	}
}

func TestTokenFaultsLookAlike(t *testing.T) {
	s := start(t, nil)
	good := s.request()
	if _, status, _ := s.ask(good); status != 101 {
		t.Fatal(status)
	}
	raw1, _, body1 := s.ask(good) // used
	raw2, _, body2 := s.ask(s.request("> GET /voice?token=never&uuid=" + ann.String() + " HTTP/1.1"))
	raw3, _, body3 := s.ask(s.request("> GET /voice?token=bobs&uuid=" + ann.String() + " HTTP/1.1"))
	cut := func(raw string) string { return raw[:strings.Index(raw, "Date: ")] } // the clock may tick
	if body1 != body2 || body2 != body3 || cut(raw1) != cut(raw2) || cut(raw2) != cut(raw3) || !strings.Contains(raw1, " 401 ") {
		t.Errorf("%s%s%s%s%s%s", raw1, body1, raw2, body2, raw3, body3)
	}
}

func TestShuttingDown(t *testing.T) {
	s := start(t, nil)
	s.Stop()
	if _, status, body := s.ask(s.request()); status != 503 || body != "shutting down\n" || s.lastRefusal() != "shutting_down" {
		t.Errorf("%d %q %s", status, body, s.lastRefusal())
	}
}

func TestTooManyFailures(t *testing.T) {
	s := start(t, nil)
	id := "&uuid=" + ann.String() + " HTTP/1.1"
	bad, plain := s.request("> GET /voice?token=bad"+id), s.request("> GET /voice?token=bad"+id, "Upgrade:")
	for i := range failBurst {
		if _, status, _ := s.ask([]string{bad, plain}[i%2]); status != 401-i%2 {
			t.Fatal(status)
		}
	}
	for _, request := range []string{bad, plain} {
		began := time.Now()
		raw, status, body := s.ask(request)
		if status != 429 || s.lastRefusal() != "rate_limited" || !strings.Contains(raw, "Retry-After: ") || strings.Count(body, "\n") != 1 {
			t.Fatal(raw, body, s.lastRefusal())
		}
		if took := time.Since(began); took < slowFor {
			t.Errorf("answered after %v", took)
		}
	}
	if s.tokens.left["good"] != ann {
		t.Error("the token was used up")
	}
}

// TestGoodTokenDespiteOthersFailures: whoever shares an address with somebody who fails all the time is let in, at
// once.
func TestGoodTokenDespiteOthersFailures(t *testing.T) {
	s := start(t, nil)
	id := "&uuid=" + ann.String() + " HTTP/1.1"
	kinds := []string{s.request("> GET /voice?token=bad" + id), s.request("> GET /voice HTTP/1.1"), s.request("Upgrade:"), s.request("Sec-WebSocket-Version: 12"), s.request("Origin: https://evil.example")}
	for i := range 3 * failBurst {
		s.cfg.Failures.Add(front.Address("127.0.0.1:1"))
		if i%failBurst == 0 {
			for _, kind := range kinds {
				io.WriteString(s.dial(), kind) // answered late
			}
		}
	}
	for range 5 {
		began := time.Now()
		if _, status, body := s.ask(s.request()); status != 101 {
			t.Fatal(status, body)
		}
		if took := time.Since(began); took >= slowFor {
			t.Errorf("let in after %v", took)
		}
	}
}

// TestHeldBackAnswersAreBounded: a crowd of failures costs a bounded number of waiting answers, and none outlives Stop.
func TestHeldBackAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Count: func(string, netip.Addr) {}})
		began := time.Now()
		var waiting, gone atomic.Int32
		for range maxSlowed + 50 {
			waiting.Add(1)
			go func() {
				h.slow(httptest.NewRequest("GET", Path, nil))
				gone.Add(1)
			}()
		}
		synctest.Wait()
		if gone.Load() != 50 {
			t.Errorf("%d of %d were answered at once", gone.Load(), waiting.Load())
		}
		h.Stop()
		h.Stop()
		synctest.Wait()
		if gone.Load() != waiting.Load() || time.Since(began) != 0 {
			t.Errorf("%d of %d after Stop, %v", gone.Load(), waiting.Load(), time.Since(began))
		}
	})
}

func TestNegotiation(t *testing.T) {
	full := caps.Newest().Token()
	const some = "socketsvc.audio-2.status-1.spatial-1.pose-1"
	for _, c := range []struct {
		name    string
		request []string
		echoed  []string // header lines, exactly
		set     string   // what the socket got
	}{
		{"nothing asked", nil, nil, "socketsvc"},
		{"all headers", []string{"X-SocketSVC-Audio: 2", "X-SocketSVC-Status: 1", "X-SocketSVC-Spatial: 1", "X-SocketSVC-Speakers: 1",
			"X-SocketSVC-Soundboard: 2", "X-SocketSVC-Groups: 2", "X-SocketSVC-Group-Edit: 1", "X-SocketSVC-Pose: 1"},
			[]string{"X-SocketSVC-Audio: 2", "X-SocketSVC-Pose: 1", "X-SocketSVC-Spatial: 1", "X-SocketSVC-Status: 1"}, some},
		{"lower case", []string{"x-socketsvc-audio: 2"}, []string{"X-SocketSVC-Audio: 2"}, "socketsvc.audio-2"},
		{"unknown version", []string{"X-SocketSVC-Audio: 3", "X-SocketSVC-Status: 1"}, []string{"X-SocketSVC-Status: 1"}, "socketsvc.status-1"},
		{"spatial without audio", []string{"X-SocketSVC-Spatial: 1"}, nil, "socketsvc"},
		{"unknown header", []string{"X-SocketSVC-Video: 1"}, nil, "socketsvc"},
		{"full token, then less", []string{"Sec-WebSocket-Protocol: " + full + ", " + some + ", socketsvc"}, []string{"Sec-WebSocket-Protocol: " + some}, some},
		{"tokens on several lines", []string{"Sec-WebSocket-Protocol: " + full + "\nSec-WebSocket-Protocol: socketsvc.audio-2,socketsvc"}, []string{"Sec-WebSocket-Protocol: socketsvc.audio-2"}, "socketsvc.audio-2"},
		{"base token", []string{"Sec-WebSocket-Protocol: socketsvc"}, []string{"Sec-WebSocket-Protocol: socketsvc"}, "socketsvc"},
		{"base token and headers", []string{"Sec-WebSocket-Protocol: socketsvc", "X-SocketSVC-Audio: 2"},
			[]string{"Sec-WebSocket-Protocol: socketsvc", "X-SocketSVC-Audio: 2"}, "socketsvc.audio-2"},
		{"token that asks, and headers", []string{"Sec-WebSocket-Protocol: socketsvc.audio-2", "X-SocketSVC-Status: 1"},
			[]string{"Sec-WebSocket-Protocol: socketsvc.audio-2"}, "socketsvc.audio-2"},
		{"somebody else's token", []string{"Sec-WebSocket-Protocol: chat"}, nil, "socketsvc"},
		{"not a token", []string{"Sec-WebSocket-Protocol: a b, \"x\", ,socketsvc"}, []string{"Sec-WebSocket-Protocol: socketsvc"}, "socketsvc"},
		{"compression is not answered", []string{"Sec-WebSocket-Extensions: permessage-deflate"}, nil, "socketsvc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, nil)
			conn := s.dial()
			// The first frames come together with the request.
			fmt.Fprintf(conn, "%s%s%s", s.request(c.request...), mask(ws.OpBinary, "hello"), mask(ws.OpClose, ""))
			br := bufio.NewReader(conn)
			raw, status, _ := answer(t, br)
			if status != 101 {
				t.Fatal(raw)
			}
			var echoed []string
			for line := range strings.SplitSeq(raw, "\r\n") {
				if strings.HasPrefix(strings.ToLower(line), "x-") || strings.HasPrefix(line, "Sec-WebSocket-Protocol") || strings.HasPrefix(line, "Sec-WebSocket-Ext") {
					echoed = append(echoed, line)
				}
			}
			slices.Sort(echoed)
			if !slices.Equal(echoed, c.echoed) {
				t.Errorf("echoed %q, want %q", echoed, c.echoed)
			}
			if !strings.Contains(raw, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") {
				t.Error(raw)
			}
			if rest, err := io.ReadAll(br); err != nil || !bytes.Contains(rest, []byte("hello")) {
				t.Errorf("answered %q, %v", rest, err)
			}
			if got, want := <-s.got, "a "+c.set+": hello"; got != want {
				t.Errorf("socket got %q, want %q", got, want)
			}
		})
	}
}

// readFrame reads the payload of a short frame.
func readFrame(r io.Reader) (string, error) {
	h, err := ws.ReadHeader(r)
	b := make([]byte, min(h.Length, 1000))
	if err == nil {
		_, err = io.ReadFull(r, b)
	}
	return string(b), err
}

func mask(op ws.OpCode, p string) []byte {
	return ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, true, []byte(p))))
}

// What is offered is asked for each request: groups can be switched while running.
func TestOfferedIsLive(t *testing.T) {
	s := start(t, nil)
	ask := []string{"X-SocketSVC-Status: 1", "X-SocketSVC-Groups: 2"}
	if raw, _, _ := s.ask(s.request(ask...)); strings.Contains(raw, "Groups") {
		t.Error(raw)
	}
	s.offered.Groups = 2
	if raw, _, _ := s.ask(s.request(ask...)); !strings.Contains(raw, "X-SocketSVC-Groups: 2\r\n") {
		t.Error(raw)
	}
}

// An upgrade may be the second request on a connection, and a refusal leaves the connection fit for another.
func TestKeptAlive(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	br := bufio.NewReader(conn)
	io.WriteString(conn, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, status, body := answer(t, br); status != 200 || body != "other page\n" {
		t.Fatal(status, body)
	}
	io.WriteString(conn, s.request("> GET /voice?token=bad&uuid="+ann.String()+" HTTP/1.1"))
	if _, status, _ := answer(t, br); status != 401 {
		t.Fatal(status)
	}
	conn.Write(append([]byte(s.request()), mask(ws.OpBinary, "again")...))
	if _, status, _ := answer(t, br); status != 101 {
		t.Fatal(status)
	}
	if got, err := readFrame(br); err != nil || got != "again" {
		t.Errorf("%q %v", got, err)
	}
}

// A client that somebody else wrote, and net/http's.
func TestGoClients(t *testing.T) {
	s := start(t, nil)
	s.request() // mints the token
	u := strings.Replace(s.server.URL, "http", "ws", 1) + "/voice?token=good&uuid=" + ann.String()
	var echoed []string
	d := ws.Dialer{
		Protocols: []string{caps.Newest().Token(), "socketsvc.audio-2", "socketsvc"},
		Header:    ws.HandshakeHeaderHTTP{"Origin": {s.server.URL}},
		OnHeader:  func(k, v []byte) error { echoed = append(echoed, string(k)); return nil },
	}
	conn, br, hs, err := d.Dial(t.Context(), u)
	if err != nil || hs.Protocol != "socketsvc.audio-2" {
		t.Fatal(hs, err)
	}
	defer conn.Close()
	if br != nil {
		ws.PutReader(br)
	}
	conn.Write(mask(ws.OpBinary, "hello"))
	if got, err := readFrame(conn); err != nil || got != "hello" {
		t.Fatal(got, err)
	}
	resp, err := http.Get(s.server.URL + "/voice?token=good&uuid=" + ann.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || string(body) != "not a WebSocket request\n" {
		t.Error(resp.StatusCode, string(body))
	}
	http.DefaultClient.CloseIdleConnections()
}

// A broken Accept must not leave the connection behind.
func TestPanicInAccept(t *testing.T) {
	s := start(t, func(cfg *Config) {
		cfg.Accept = func(context.Context, *socket.Socket, uuid.UUID, caps.Set) { panic(http.ErrAbortHandler) }
	})
	conn := s.dial()
	io.WriteString(conn, s.request())
	br := bufio.NewReader(conn)
	answer(t, br)
	if b, err := io.ReadAll(br); err != nil || len(b) > 0 {
		t.Errorf("%q %v", b, err)
	}
}

// Over TLS the socket writes without waiting, if the listener wraps its connections.
func TestTLS(t *testing.T) {
	s := start(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	server := &http.Server{Handler: s}
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(tls.NewListener(wrapping{ln}, &tls.Config{Certificates: cert.TLS.Certificates}))
	}()
	defer func() { server.Close(); <-done }()
	s.request()
	d := ws.Dialer{TLSConfig: &tls.Config{InsecureSkipVerify: true}}
	conn, _, _, err := d.Dial(t.Context(), "wss://"+ln.Addr().String()+"/voice?token=good&uuid="+ann.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		conn.Write(mask(ws.OpBinary, "hello"))
		if got, err := readFrame(conn); err != nil || got != "hello" {
			t.Fatal(got, err)
		}
	}
}

type wrapping struct{ net.Listener }

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return socket.Buffered(c), nil
}

func TestReasonsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if seen[r] || r == "" {
			t.Errorf("%q", r)
		}
		seen[r] = true
	}
}
