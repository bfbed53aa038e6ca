package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/client"
	"github.com/earshot-mc/earshot/bridge/rooms/frame"
	"github.com/earshot-mc/earshot/bridge/rooms/packed"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
	"github.com/earshot-mc/earshot/handshake/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a game: a number that everybody may raise, and one that raises itself.
type counter struct {
	count, clock int64
	identities   []string
}

func (c *counter) Capacity() int { return 400 }
func (c *counter) ValidateJoin(j *rooms.Join) error {
	c.identities = append(c.identities, j.Identity)
	return nil
}
func (c *counter) Joined(string)               {}
func (c *counter) Left(string)                 {}
func (c *counter) Welcome(string) state.Object { return nil }
func (c *counter) Epoch() int64                { return 1 }
func (c *counter) Step(_ uint64, n int)        { c.clock += int64(n) }
func (c *counter) Command(string, *rooms.Command) error {
	c.count++
	return nil
}
func (c *counter) Snapshot(_ rooms.View, dst state.Object) state.Object {
	return append(dst[:0], state.Member{Key: "clock", Value: state.OfInt(c.clock)}, state.Member{Key: "count", Value: state.OfInt(c.count)})
}

var schema = packed.NewSchema(packed.Table{Fields: []packed.Field{{Key: "clock", Of: packed.Int}, {Key: "count", Of: packed.Int}}})

// stand is a room on a web server.
type stand struct {
	t    *testing.T
	game *counter
	hub  *rooms.Hub
	web  *httptest.Server
	h    *Handler
	url  string

	mu      sync.Mutex
	refused map[string]int
}

func serveRoom(t *testing.T) *stand {
	s := &stand{t: t, game: &counter{}, refused: map[string]int{}}
	s.hub = rooms.New(s.game, rooms.Config{Codec: schema})
	sweeper := socket.NewSweeper()
	s.h = New(Config{
		Sweeper: sweeper, Origins: []string{"https://panel.example"},
		Enter: func(token, key string) (string, func() (*rooms.Hub, error), bool) {
			open := func() (*rooms.Hub, error) {
				if key != "counter" {
					return nil, rooms.ErrNoRoom
				}
				return s.hub, nil
			}
			switch token {
			case "":
				return "", open, true
			case "good":
				return "app:good", open, true
			}
			return "", nil, false
		},
		Count: func(reason string, _ netip.Addr) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused[reason]++
		},
	})
	mux := http.NewServeMux()
	mux.Handle(Path, s.h)
	mux.Handle(SpecPath, Spec())
	s.web = httptest.NewServer(mux)
	s.url = strings.Replace(s.web.URL, "http", "ws", 1) + Path + "counter"
	t.Cleanup(func() {
		s.h.Stop()
		s.hub.Close()
		s.h.Wait()
		sweeper.Close()
		s.web.Close()
	})
	return s
}

// wire is a WebSocket whose frames a test writes and reads itself.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (s *stand) dial(t *testing.T) *wire {
	t.Helper()
	conn, br, _, err := ws.Dialer{Timeout: 10 * time.Second}.Dial(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if br == nil {
		br = bufio.NewReader(conn)
	}
	return &wire{t, conn, br}
}

func (w *wire) send(texts ...string) *wire {
	var b []byte
	for _, text := range texts {
		b = append(b, ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(text))))...)
	}
	w.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	w.conn.Write(b)
	return w
}

// next returns a frame that came, or "close CODE REASON".
func (w *wire) next() string {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	head, err := ws.ReadHeader(w.r)
	if err != nil || head.Length > 2<<20 {
		w.t.Fatal(err, head.Length)
	}
	b := make([]byte, head.Length)
	if _, err := io.ReadFull(w.r, b); err != nil {
		w.t.Fatal(err)
	}
	if head.OpCode == ws.OpClose {
		code, reason := ws.ParseCloseFrameData(b)
		return fmt.Sprintf("close %d %s", code, reason)
	}
	return string(b)
}

// until reads up to a frame of a type, or the close.
func (w *wire) until(typ string) string {
	w.t.Helper()
	for {
		s := w.next()
		if strings.HasPrefix(s, "close") || strings.HasPrefix(s, `{"type":"`+typ+`"`) {
			return s
		}
	}
}

func (w *wire) refused(why string) {
	w.t.Helper()
	want := `{"type":"error","message":"` + why + `"}`
	if got := w.until(frame.Error); got != want {
		w.t.Errorf("told %s, want %s", got, want)
	}
	if got := w.until("none"); got != "close 1008 Invalid request" {
		w.t.Error(got)
	}
}

const join = `{"type":"join","protocol":1,"name":"Ann"}`

// TestRooms27OverWebSocket: item 27. The counter over a WebSocket, in JSON and packed.
func TestRooms27OverWebSocket(t *testing.T) {
	s := serveRoom(t)
	for i, codec := range []client.Codec{nil, client.Packed(schema)} {
		said := make(chan string, 20)
		c, err := client.Join(t.Context(), client.Config{Dial: client.WebSocket(s.url+"?token=good", ws.Dialer{}), Name: "Ann", Codec: codec, OnChat: func(m frame.Message) { said <- m.Text }})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Command("increment", nil); err != nil {
			t.Error(err)
		}
		c.Chat("hello")
		for x := range said {
			if x == "hello" {
				break
			}
		}
		clock, _ := state.Value{}, 0
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if shown := c.Shown(); shown != nil {
				count, _ := shown.State.Get("count")
				if clock, _ = shown.State.Get("clock"); count.Int() == int64(i+1) && clock.Int() > 30 {
					break
				}
			}
		}
		if clock.Int() <= 30 {
			t.Error("the clock stands at", clock.Int())
		}
		if err := c.Leave(t.Context()); err != nil || c.Err() != nil {
			t.Error(err, c.Err())
		}
	}
	s.hub.Do(func() {
		if got := strings.Join(s.game.identities, " "); got != "app:good app:good" {
			t.Error(got)
		}
	})
}

// TestRooms01OverWebSocket: item 1, on the wire.
func TestRooms01OverWebSocket(t *testing.T) {
	s := serveRoom(t)
	s.dial(t).send(`{"type":"join","protocol":2,"name":"Ann"}`).refused("Unsupported protocol version; this server speaks 1")
	silent := s.dial(t)
	begin := time.Now()
	if got := silent.next(); got != `{"type":"error","message":"Join timeout"}` {
		t.Error(got)
	}
	if got := silent.next(); got != "close 1008 Join timeout" {
		t.Error(got)
	}
	if took := time.Since(begin); took < 4800*time.Millisecond || took > 8*time.Second {
		t.Error(took)
	}
}

// TestRooms06OverWebSocket: item 6, on the wire.
func TestRooms06OverWebSocket(t *testing.T) {
	s := serveRoom(t)
	of := func(n int, fill string) string {
		head, tail := `{"type":"chat","text":"`, `"}`
		return head + strings.Repeat(fill, n-len(head)-len(tail)) + tail
	}
	for _, fill := range []string{"a", "€"} {
		w := s.dial(t).send(join, of(4096, fill))
		if got := w.until(frame.Notice); !strings.Contains(got, "Messages are 1 to 280") {
			t.Error(got)
		}
		w.send(of(4097, fill)).refused("Frame too long")
	}
	s.dial(t).send(join, strings.Repeat("x", 200_000)).refused("Frame too long")
	flood := make([]string, 300)
	for i := range flood {
		flood[i] = `{"type":"nothing"}`
	}
	s.dial(t).send(join).send(flood...).refused("Too many frames")
	w := s.dial(t).send(join)
	w.conn.Write(ws.MustCompileFrame(ws.MaskFrame(ws.NewBinaryFrame([]byte{1}))))
	w.refused("Invalid frame")
}

// TestRooms24OverWebSocket: item 24, on the wire; and somebody who comes afterwards.
func TestRooms24OverWebSocket(t *testing.T) {
	s := serveRoom(t)
	w := s.dial(t).send(join)
	w.until(frame.Social)
	begin := time.Now()
	s.h.Stop()
	s.hub.Close()
	if got := w.until("none"); got != "close 1001 Host closed the room" || time.Since(begin) > 2*time.Second {
		t.Error(got, time.Since(begin))
	}
	w.conn.Close()
	s.h.Wait()
	if r := s.get(t, "/play/counter", nil); r.StatusCode != http.StatusServiceUnavailable {
		t.Error(r.Status)
	}
}

// TestRooms25OverWebSocket: item 25, on the wire. A peer that stops reading is sent away, and the others lose nothing.
func TestRooms25OverWebSocket(t *testing.T) {
	s := serveRoom(t)
	s.dial(t).send(join) // and is never read
	var mu sync.Mutex
	var shown []int64
	c, err := client.Join(t.Context(), client.Config{Dial: client.WebSocket(s.url, ws.Dialer{}), Name: "Bob", OnState: func(x *state.Snapshot) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, x.Tick)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r := c.Roster(); len(r.Members) == 2 && !r.Members[0].Connected {
			break
		}
	}
	if r := c.Roster(); len(r.Members) != 2 || r.Members[0].Connected {
		t.Error("who does not read is still there:", r)
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range shown[1:] {
		// One that is late by its turn leaves a step out; none is lost on the way.
		if d := shown[i+1] - shown[i]; d > 24 {
			t.Errorf("%d ticks between two snapshots", d)
		}
	}
}

func (s *stand) get(t *testing.T, path string, change func(*http.Request)) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.web.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// TestRefusedByHTTP: which requests are not upgraded, with which status; a room that is not there is told of later.
func TestRefusedByHTTP(t *testing.T) {
	s := serveRoom(t)
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	for _, c := range []struct {
		what, path string
		change     func(*http.Request)
		status     int
	}{
		{"a wrong token", "/play/counter?token=bad", nil, 401}, {"two tokens", "/play/counter?token=good&token=good", nil, 401}, {"an empty token", "/play/counter?token=", nil, 401},
		{"a wrong bearer", "/play/counter", header("Authorization", "Bearer bad"), 401}, {"another scheme", "/play/counter", header("Authorization", "Basic Z29vZDo="), 401},
		{"both", "/play/counter?token=good", header("Authorization", "Bearer good"), 401},
		{"a page from elsewhere", "/play/counter", header("Origin", "https://evil.example"), 403}, {"a page of nobody", "/play/counter", header("Origin", "null"), 403},
		{"no upgrade", "/play/counter", func(r *http.Request) { r.Header.Del("Upgrade") }, 400}, {"an old version", "/play/counter", header("Sec-WebSocket-Version", "8"), 426},
		{"no key", "/play/", nil, 404}, {"a slash", "/play/a/b", nil, 404}, {"another spelling", "/play/%63ounter", nil, 404}, {"a long key", "/play/" + strings.Repeat("a", 257), nil, 404},
		{"a good bearer", "/play/counter", header("Authorization", "bearer good"), 101}, {"a page of ours", "/play/counter", header("Origin", "https://panel.example"), 101},
	} {
		if r := s.get(t, c.path, c.change); r.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.what, r.Status, c.status)
		}
	}
	s.mu.Lock()
	for _, reason := range []string{"token", "origin", "path", "version", "not_websocket"} {
		if s.refused[reason] == 0 {
			t.Errorf("%s is not counted: %v", reason, s.refused)
		}
	}
	s.mu.Unlock()
	s.url = strings.Replace(s.url, "counter", "nowhere", 1)
	s.dial(t).refused("No such room")
}

// TestPendingAreFew: transports that have not joined are bounded, and the ones that have do not count.
func TestPendingAreFew(t *testing.T) {
	s := serveRoom(t)
	for range 3 * maxPendingAddress {
		w := s.dial(t).send(join, `{"type":"nothing"}`)
		w.until(frame.Social)
		w.send(`{"type":"nothing"}`)
		s.until(t, 0)
	}
	var waiting []*wire
	for range maxPendingAddress {
		waiting = append(waiting, s.dial(t))
	}
	if r := s.get(t, "/play/counter", nil); r.StatusCode != http.StatusTooManyRequests {
		t.Error(r.Status)
	}
	waiting[0].conn.Close()
	s.until(t, maxPendingAddress-1)
	s.dial(t).send(join).until(frame.Social)
	h := &Handler{rooms: map[string]int{}, addresses: map[netip.Addr]int{}}
	for i := range 1000 {
		h.enter(fmt.Sprint("room", i%2), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	if h.pending != 2*maxPendingRoom {
		t.Error(h.pending)
	}
}

// until waits until so many transports have not joined.
func (s *stand) until(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s.h.mu.Lock()
		now := s.h.pending
		s.h.mu.Unlock()
		if now == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d have not joined, want %d", now, n)
		}
	}
}

// TestSpec: what is served is JSON, for everybody.
func TestSpec(t *testing.T) {
	s := serveRoom(t)
	r, err := http.Get(s.web.URL + SpecPath)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	var spec struct {
		Name     string
		Protocol int
	}
	if json.Unmarshal(b, &spec) != nil || spec.Name != "rooms" || spec.Protocol != 1 || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%s %v", b, r.Header)
	}
	http.DefaultClient.CloseIdleConnections()
}

// FuzzKey: a key has one spelling, and is in the path as it stands.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"/play/counter", "/play/minecraft:overworld@survival", "/play/a=20b", "/play/..", "/play/%2e%2e", "/play/a/b", "/play/", "/voice"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.ParseRequestURI(s)
		if err != nil {
			return
		}
		key, ok := Key(u)
		if ok && (u.Path != Path+key || strings.ContainsAny(key, "/%\\ ") || len(key) > MaxKey || key == "." || key == "..") {
			t.Fatalf("%q is the key of %q", key, s)
		}
	})
}
