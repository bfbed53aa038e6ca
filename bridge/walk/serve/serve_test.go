package serve

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/walk"
	"github.com/earshot-mc/earshot/bridge/walk/wire"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/handshake/socket"
	"github.com/earshot-mc/earshot/itest/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var plaza = walk.Config{
	Server: "survival", World: "minecraft:overworld", To: walk.Point{X: 400, Z: 250.5}, Spawn: walk.Point{X: 200, Z: 125},
	TickRate: 20, MaxGuests: 6,
}

// tally keeps what is counted, by "what word".
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) of(what string) func(string) {
	return func(word string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[what+" "+word]++
	}
}

func (c *tally) get(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

func (c *tally) counts() Counts {
	refused := c.of("refused")
	return Counts{c.of("message"), c.of("closed"), c.of("dropped"), c.of("ignored"), func(r string, _ netip.Addr) { refused(r) }}
}

// memory is a connection that keeps what it is sent, but at most so many messages as a socket does while it is stuck.
type memory struct {
	mu     sync.Mutex
	got    []string // hex
	closed string
	at     time.Time
}

func (m *memory) Queue(frame []byte, rank int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, hex.EncodeToString(frame))
	return -1
}

func (m *memory) Close(code socket.Code, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.at = fmt.Sprint(code, " ", reason), time.Now()
}

func (m *memory) end() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

func (m *memory) first(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.got {
		if strings.HasPrefix(g, prefix) {
			return g
		}
	}
	return ""
}

// stand is a server with one area, in stopped time, and in-memory connections to it.
type stand struct {
	*Server
	counts *tally
}

func newStand(t *testing.T) *stand {
	s := &stand{counts: &tally{n: map[string]int{}}}
	sweep := socket.NewSweeper()
	s.Server = New(Config{Players: world.New(), Sweeper: sweep, Counts: s.counts.counts()})
	s.Set(map[string]walk.Config{"plaza": plaza})
	t.Cleanup(func() { s.Stop(); s.Wait(); sweep.Close() })
	return s
}

func (s *stand) connect() (*session, *memory, func()) {
	m := &memory{}
	s.mu.Lock()
	r := s.find(nil)
	s.mu.Unlock()
	k, ok := s.enter(r, m, netip.Addr{})
	if !ok {
		return k, m, func() {}
	}
	return k, m, func() { s.leave(k, netip.Addr{}) }
}

func unhex(s string) []byte {
	p, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return p
}

// inMemory runs a test with a stand in stopped time.
func inMemory(t *testing.T, f func(t *testing.T, s *stand)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t)
		f(t, s)
		s.Stop()
	})
}

const hello = "010103416e6e"

// TestNoHello: acceptance 2. A client that does not say Hello is dropped after five seconds; unknown messages are none.
func TestNoHello(t *testing.T) {
	inMemory(t, func(t *testing.T, s *stand) {
		begin := time.Now()
		k, m, leave := s.connect()
		k.Binary([]byte{0x10})
		late, w, leaveLate := s.connect()
		late.Binary([]byte{0x10})
		time.Sleep(4 * time.Second)
		late.Binary(unhex(hello))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if m.end() != "1002 hello expected" || m.at.Sub(begin) != 5*time.Second {
			t.Errorf("%q after %v", m.end(), m.at.Sub(begin))
		}
		if w.end() != "" || w.first("81") == "" {
			t.Errorf("a Hello after 4 seconds: closed %q, got %q", w.end(), w.got)
		}
		leave()
		leaveLate()
	})
}

// TestEndings: acceptance 2, 3 and 4. What a client does wrong closes its connection with the code for that, and
// nothing else does.
func TestEndings(t *testing.T) {
	long := hex.EncodeToString(bytes.Repeat([]byte{0x10}, wire.MaxMessage))
	for name, c := range map[string]struct {
		messages []string
		want     string
	}{
		"input first":         {[]string{"020100000008"}, "1002 hello expected"},
		"ping first":          {[]string{"03ffffffffffffffff"}, "1002 hello expected"},
		"hello twice":         {[]string{hello, hello}, "1002 hello was said before"},
		"version 0":           {[]string{"010003416e6e"}, "1002 protocol version 1 is spoken here"},
		"version 2":           {[]string{"010203416e6e"}, "1002 protocol version 1 is spoken here"},
		"version 255":         {[]string{"01ff03416e6e"}, "1002 protocol version 1 is spoken here"},
		"version 2, short":    {[]string{"0102"}, "1002 protocol version 1 is spoken here"},
		"name of 33":          {[]string{"010121" + strings.Repeat("61", 33)}, "1007 a name of more than 32 bytes"},
		"name of 32":          {[]string{"010120" + strings.Repeat("61", 32)}, ""},
		"name is cut":         {[]string{"010103416e"}, "1007 a message of another length than its layout"},
		"name goes on":        {[]string{hello + "6e"}, "1007 a message of another length than its layout"},
		"name is not UTF-8":   {[]string{"010101ff"}, "1007 a name that is not UTF-8"},
		"input of 5 bytes":    {[]string{hello, "0201000000"}, "1007 a message of another length than its layout"},
		"input of 7 bytes":    {[]string{hello, "02010000000800"}, "1007 a message of another length than its layout"},
		"ping of 8 bytes":     {[]string{hello, "03ffffffffffffff"}, "1007 a message of another length than its layout"},
		"ping of 10 bytes":    {[]string{hello, "03ffffffffffffffffff"}, "1007 a message of another length than its layout"},
		"no bytes":            {[]string{hello, ""}, "1007 a message without bytes"},
		"unknown ids":         {[]string{"10", hello, "10", "7f", "80", "82", "ff"}, ""},
		"an unknown long one": {[]string{hello, long}, ""},
		"one too long":        {[]string{hello, long + "10"}, "1009 a message of more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, s *stand) {
				k, m, leave := s.connect()
				for _, p := range c.messages {
					k.Binary(unhex(p))
				}
				if m.end() != c.want {
					t.Errorf("closed %q, want %q", m.end(), c.want)
				}
				if c.want != "" {
					k.Binary(unhex("03ffffffffffffffff"))
					if m.first("83") != "" {
						t.Error("answered after the close")
					}
				}
				leave()
			})
		})
	}
	inMemory(t, func(t *testing.T, s *stand) {
		for text, want := range map[string]string{"hi": "1007 messages are binary", strings.Repeat("é", 40000): "1009 "} {
			k, m, leave := s.connect()
			k.Text([]byte(text))
			if m.end() != want {
				t.Errorf("a text of %d bytes: %q", len(text), m.end())
			}
			leave()
		}
		k, _, leave := s.connect()
		for _, p := range []string{"10", hello, "7f", "80", "82", "ff"} {
			k.Binary(unhex(p))
		}
		if u, m := s.counts.get("ignored unknown"), s.counts.get("ignored misrouted"); u != 2 || m != 3 {
			t.Errorf("%d unknown and %d misrouted messages are counted", u, m)
		}
		leave()
	})
}

// TestWelcomeFirst: acceptance 5 and 11. The first message is a Welcome, the first snapshot behind it has the guest's
// own entity, and a Pong has the same clock and the present tick.
func TestWelcomeFirst(t *testing.T) {
	inMemory(t, func(t *testing.T, s *stand) {
		other, _, leaveOther := s.connect()
		other.Binary(unhex(hello))
		time.Sleep(time.Second)
		k, m, leave := s.connect()
		k.Binary(unhex(hello))
		time.Sleep(time.Second + 10*time.Millisecond) // between two ticks
		k.Binary(unhex("03ffffffffffffffff"))
		if m.got[0] != "8101020000001400"+"00c84300807a43" {
			t.Errorf("the first message is %s", m.got[0])
		}
		if !strings.HasPrefix(m.got[1], "82") || !strings.Contains(m.got[1], "0200000001"+"00004843"+"0000fa42") {
			t.Errorf("the second is %s", m.got[1])
		}
		last := m.got[len(m.got)-2]
		if pong := m.first("83"); pong != "83ffffffffffffffff"+last[2:10] {
			t.Errorf("pong %s behind snapshot %s", pong, last)
		}
		if n := len(m.got); n < 21 || n > 23 {
			t.Errorf("%d messages in a second", n)
		}
		leave()
		leaveOther()
	})
}

// TestFlood: 240 messages a second are a client's, and more are a flood.
func TestFlood(t *testing.T) {
	inMemory(t, func(t *testing.T, s *stand) {
		k, m, leave := s.connect()
		k.Binary(unhex(hello))
		for range 10 {
			for range 200 {
				k.Binary([]byte{0x10})
			}
			time.Sleep(time.Second)
		}
		if m.end() != "" {
			t.Fatal(m.end())
		}
		for range 300 {
			k.Binary([]byte{0x10})
		}
		if m.end() != "1008 flood" {
			t.Errorf("%q", m.end())
		}
		leave()
	})
}

// TestOldInputIsCounted: acceptance 9, that the wire reaches the avatar and what is late is counted.
func TestOldInputIsCounted(t *testing.T) {
	inMemory(t, func(t *testing.T, s *stand) {
		k, m, leave := s.connect()
		k.Binary(unhex(hello))
		for _, p := range []string{"020a00000008", "020900000004", "020a00000008", "020b00000000"} {
			k.Binary(unhex(p))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := s.counts.get("ignored old_sequence"); n != 1 {
			t.Errorf("%d are counted", n)
		}
		x := float32(200)
		for _, p := range m.got[1:] {
			e, err := wire.ParseServer(unhex(p))
			if err != nil {
				t.Fatal(err)
			}
			if at := e.(wire.Snapshot).Entities[0].X; at < x {
				t.Errorf("went left, from %v to %v", x, at)
			} else {
				x = at
			}
		}
		if x < 201 || x > 202 {
			t.Errorf("ends at %v", x)
		}
		leave()
	})
}

// TestSet: acceptance 18. An area that is changed or gone closes its connections; one that stays as it is keeps them.
func TestSet(t *testing.T) {
	inMemory(t, func(t *testing.T, s *stand) {
		k, m, leave := s.connect()
		k.Binary(unhex(hello))
		s.Set(map[string]walk.Config{"plaza": plaza, "hill": plaza})
		if m.end() != "" || len(s.Guests()) != 2 || s.Guests()["plaza"] != 1 {
			t.Errorf("closed %q, guests %v", m.end(), s.Guests())
		}
		s.mu.Lock()
		if s.find(nil) != nil || s.find([]string{"hill"}) == nil || s.find([]string{"valley"}) != nil || s.find([]string{"hill", "hill"}) != nil {
			t.Error("the wrong area is found")
		}
		s.mu.Unlock()
		changed := plaza
		changed.Spawn.X = 1
		s.Set(map[string]walk.Config{"plaza": changed})
		if m.end() != "1001 area closed" {
			t.Errorf("%q", m.end())
		}
		leave()
		s.Stop()
		s.Set(map[string]walk.Config{"plaza": plaza})
		if len(s.Guests()) != 0 {
			t.Error("areas after the end")
		}
	})
}

// served is a server behind HTTP.
func served(t *testing.T) (*stand, string) {
	s := newStand(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, "ws" + strings.TrimPrefix(web.URL, "http") + Path
}

// dial connects a WebSocket client that nobody here wrote.
func dial(t *testing.T, url string) net.Conn {
	t.Helper()
	conn, _, _, err := ws.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	return conn
}

// closes reads until the server closes, and returns how.
func closes(t *testing.T, conn net.Conn) string {
	t.Helper()
	for {
		_, _, err := wsutil.ReadServerData(conn)
		var why wsutil.ClosedError
		if err == nil {
			continue
		}
		if c, ok := err.(wsutil.ClosedError); ok {
			why = c
			return fmt.Sprint(uint16(why.Code), " ", why.Reason)
		}
		t.Fatalf("not closed: %v", err)
	}
}

// TestOverWebSocket: acceptance 4, 5, 7 and 11 over a real socket: a guest walks and pings.
func TestOverWebSocket(t *testing.T) {
	s, url := served(t)
	conn := dial(t, url)
	send := func(p []byte) {
		t.Helper()
		if err := wsutil.WriteClientBinary(conn, p); err != nil {
			t.Fatal(err)
		}
	}
	next := func() any {
		t.Helper()
		p, op, err := wsutil.ReadServerData(conn)
		if err != nil || op != ws.OpBinary {
			t.Fatal(op, err)
		}
		m, err := wire.ParseServer(p)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	send(unhex(hello))
	w, ok := next().(wire.Welcome)
	if !ok || w.Width != 400 || w.Height != 250.5 || w.TickRate != 20 || w.Version != 1 {
		t.Fatalf("%+v", w)
	}
	send(wire.Ping{Clock: -1}.Append(nil))
	var x float32 = 200
	var pong bool
	var seq uint32
	for tick := uint32(0); x < 203 || !pong; {
		switch m := next().(type) {
		case wire.Snapshot:
			if m.Tick <= tick || m.Entities[0].ID != w.Own {
				t.Fatalf("%+v after tick %d", m, tick)
			}
			tick, x = m.Tick, m.Entities[0].X
			seq++
			send(wire.Input{Sequence: seq, Buttons: wire.Right | wire.Up}.Append(nil))
		case wire.Pong:
			pong = m.Clock == -1
		}
	}
	send(bytes.Repeat([]byte{0x10}, wire.MaxMessage))
	send([]byte{0x10})
	if s.Guests()["plaza"] != 1 {
		t.Errorf("%v", s.Guests())
	}
	if err := wsutil.WriteClientText(conn, []byte("hi")); err != nil {
		t.Fatal(err)
	}
	if end := closes(t, conn); end != "1007 messages are binary" {
		t.Error(end)
	}
	testkit.Until(t, "the guest is gone and counted", func() bool {
		return s.Guests()["plaza"] == 0 && s.counts.get("closed 1007") == 1
	})
}

// TestTooBig: acceptance 4. A message above 64 KiB closes with 1009, whole or in fragments, before it has come.
func TestTooBig(t *testing.T) {
	_, url := served(t)
	for name, frames := range map[string][]ws.Frame{
		"whole":        {ws.NewBinaryFrame(make([]byte, wire.MaxMessage+1))},
		"in fragments": {ws.NewFrame(ws.OpBinary, false, make([]byte, 40000)), ws.NewFrame(ws.OpContinuation, true, make([]byte, wire.MaxMessage+1-40000))},
	} {
		conn := dial(t, url)
		for _, f := range frames {
			ws.WriteFrame(conn, ws.MaskFrame(f)) // the last may not be read to its end
		}
		if end := closes(t, conn); !strings.HasPrefix(end, "1009 ") {
			t.Errorf("%s: %s", name, end)
		}
	}
}

// TestRefused: a client that may not come in is told why before the upgrade, and it is counted.
func TestRefused(t *testing.T) {
	s, url := served(t)
	refused := func(url string, header http.Header) string {
		t.Helper()
		d := ws.Dialer{Header: ws.HandshakeHeaderHTTP(header)}
		conn, _, _, err := d.Dial(context.Background(), url)
		if err == nil {
			conn.Close()
			return "let in"
		}
		return err.Error()
	}
	for name, c := range map[string]struct {
		query  string
		header http.Header
		want   string
	}{
		"another area":   {"?area=hill", nil, "404"},
		"two areas":      {"?area=plaza&area=plaza", nil, "404"},
		"another origin": {"", http.Header{"Origin": {"https://evil.example"}}, "403"},
	} {
		if got := refused(url+c.query, c.header); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	var all []net.Conn
	for range PerAddress {
		all = append(all, dial(t, url+"?area=plaza"))
	}
	testkit.Until(t, "four are in", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.from[netip.MustParseAddr("127.0.0.1")] == PerAddress
	})
	if got := refused(url, nil); !strings.Contains(got, "429") {
		t.Errorf("a fifth of one address: %s", got)
	}
	for _, c := range all {
		c.Close()
	}
	testkit.Until(t, "they are gone", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.from) == 0 })
	one := plaza
	one.MaxGuests = 1
	s.Set(map[string]walk.Config{"plaza": one})
	last := dial(t, url)
	testkit.Until(t, "one is in", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.from) == 1 })
	if got := refused(url, nil); !strings.Contains(got, "503") {
		t.Errorf("a second guest: %s", got)
	}
	s.Set(nil)
	if end := closes(t, last); end != "1001 area closed" {
		t.Error(end)
	}
	if got := refused(url, nil); !strings.Contains(got, "404") {
		t.Errorf("without areas: %s", got)
	}
	for reason, n := range map[string]int{"area": 3, "origin": 1, "address": 1, "full": 1} {
		if got := s.counts.get("refused " + reason); got != n {
			t.Errorf("%d are counted as %s", got, reason)
		}
	}
}

// TestStop: acceptance 19. At the end every connection is closed with 1001, within two seconds though the peer does not
// answer.
func TestStop(t *testing.T) {
	s, url := served(t)
	conn := dial(t, url)
	if err := wsutil.WriteClientBinary(conn, unhex(hello)); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the guest is in", func() bool { return s.Guests()["plaza"] == 1 })
	s.Stop()
	if end := closes(t, conn); end != "1001 shutting down" {
		t.Error(end)
	}
	s.Wait()
	if _, _, _, err := ws.Dial(t.Context(), url); err == nil {
		t.Error("let in after the end")
	}
}

// TestSlowReader: acceptance 10. A client that does not read for a while gets the newest messages when it does, and the
// others get all of theirs meanwhile.
func TestSlowReader(t *testing.T) {
	s, url := served(t)
	fast := plaza
	fast.TickRate = walk.MaxTickRate
	for i := range 256 {
		fast.Obstacles = append(fast.Obstacles, walk.Obstacle{At: walk.Point{X: float64(i)}, Radius: 0.1})
	}
	s.Set(map[string]walk.Config{"plaza": fast})
	slow, quick := dial(t, url), dial(t, url)
	slow.(*net.TCPConn).SetReadBuffer(4 << 10)
	for _, c := range []net.Conn{slow, quick} {
		if err := wsutil.WriteClientBinary(c, unhex(hello)); err != nil {
			t.Fatal(err)
		}
	}
	var ticks []uint32
	read := func(c net.Conn) (tick uint32) {
		t.Helper()
		for tick == 0 {
			p, _, err := wsutil.ReadServerData(c)
			if err != nil {
				t.Fatal(err)
			}
			if m, _ := wire.ParseServer(p); m != nil {
				if snap, ok := m.(wire.Snapshot); ok {
					tick = snap.Tick
				}
			}
		}
		return tick
	}
	for s.counts.get("dropped snapshot") < 50 {
		ticks = append(ticks, read(quick))
	}
	for i := 1; i < len(ticks); i++ {
		if ticks[i] != ticks[i-1]+1 {
			t.Fatalf("the quick one gets tick %d after %d", ticks[i], ticks[i-1])
		}
	}
	gap, last := 0, uint32(0)
	for range 5000 {
		now := read(slow)
		if last != 0 && now != last+1 {
			gap++
		}
		if last = now; now > ticks[len(ticks)-1] {
			break
		}
	}
	if gap == 0 || last <= ticks[len(ticks)-1] {
		t.Errorf("the slow one has %d gaps and ends at tick %d of %d", gap, last, ticks[len(ticks)-1])
	}
}
