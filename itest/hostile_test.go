package itest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// cost is what the program holds at a moment.
type cost struct{ memory, goroutines, files float64 }

func (p *program) cost() cost {
	p.t.Helper()
	return cost{p.metric("process_resident_memory_bytes"), p.metric("go_goroutines"), p.metric("process_open_fds")}
}

// returnsTo waits until the program holds about what it held before: its memory within 32 MiB, since a garbage
// collector is in no hurry.
func (p *program) returnsTo(before cost) {
	p.t.Helper()
	var now cost
	for end := time.Now().Add(peer.Patience); ; time.Sleep(100 * time.Millisecond) {
		now = p.cost()
		if now.memory < before.memory+float64(room(32<<20)) && now.goroutines <= before.goroutines+4 && now.files <= before.files+2 {
			return
		}
		if time.Now().After(end) {
			p.t.Errorf("before it held %+v, and for good %+v", before, now)
			return
		}
	}
}

// room returns how much memory is allowed where a released program may take so much: the race detector keeps several
// words beside each word, and the stacks are larger too.
func room(bytes int) int {
	if raced {
		return 8 * bytes
	}
	return bytes
}

// peak returns the most memory the program has had.
func (p *program) peak() (bytes int) {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); n == 1 {
			return bytes << 10
		}
	}
	p.t.Fatal("no VmHWM")
	return 0
}

// TestHostile: whatever strangers send, it ends soon, costs little and leaves nothing behind.
func TestHostile(t *testing.T) {
	certFile, keyFile, _ := certificate(t)
	p := start(t, fmt.Sprintf(`online: false
tls: {certificate: %q, key: %q}
proxy-protocol: {trusted: [%s]}
timeouts: {first-byte: 1s, login: 3s, read: 5s}
`, certFile, keyFile, balancer))
	clients := peer.NewRaw(t, "1.16.5")
	clients.Join(p.addr, "First").Quit() // what is made once has been made
	testkit.Until(t, "the first player to be gone", func() bool { return p.metric("earshot_players") == 0 })
	before := p.cost()

	t.Run("at once", func(t *testing.T) { // most of it is waiting to be cut
		for what, fn := range map[string]func(*testing.T){
			"slow": func(t *testing.T) { slowLoris(t, p) }, "garbage": func(t *testing.T) { garbage(t, p) }, "oversized": oversized, "bombs": bombs,
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				fn(t)
			})
		}
	})
	t.Run("crowd", func(t *testing.T) { crowd(t, p) })

	p.returnsTo(before)
	if peak := p.peak(); peak > int(before.memory)+room(192<<20) {
		t.Errorf("the program needed %d MiB at its worst, %d in peace", peak>>20, int(before.memory)>>20)
	}
	begin := time.Now()
	clients.Join(p.addr, "Last")
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("a player waits %v", d)
	}
}

// slowLoris: a byte at a time keeps nobody's place. A stage's time is a total.
func slowLoris(t *testing.T, p *program) {
	login := append(hello(47, "localhost", packet.IntentLogin), 0xff, 0x3f, 0) // a frame of 8191 bytes, which it may be
	status := append(hello(47, "localhost", packet.IntentStatus), 0xff, 0x3f, 0)
	cases := []struct {
		what  string
		from  string
		at    int    // how much comes at once
		bytes []byte // what comes a byte every 250 ms; the last one again and again
		// Around the limit: twice the first byte's second for a handshake, 3 s for a login or a PROXY header, 10 s for
		// a status, 5 s for a request.
		min, max time.Duration
	}{
		{"handshake", "", 0, login, time.Second, 5 * time.Second},
		{"login", "", len(login), login, 2 * time.Second, 7 * time.Second},
		{"status", "", len(status), status, 5 * time.Second, 15 * time.Second},
		{"request", "", 4, []byte("GET /healthz HTTP/1.1\r\nX: " + strings.Repeat("x", 100)), 3 * time.Second, 10 * time.Second},
		{"TLS", "", 3, append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, make([]byte, 100)...), 3 * time.Second, 10 * time.Second},
		{"PROXY header", balancer, 0, []byte("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 and so on"), 2 * time.Second, 7 * time.Second},
		{"legacy ping", "", 3, append([]byte{0xfe, 0x01, 0xfa}, make([]byte, 20)...), 0, 15 * time.Second},
		{"nothing", "", 0, nil, 500 * time.Millisecond, 4 * time.Second},
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, c := range cases {
		conn := dial(t, p.addr, c.from)
		all.Go(func() {
			begin := time.Now()
			var over sync.WaitGroup
			stop := make(chan struct{})
			over.Go(func() {
				conn.Write(c.bytes[:c.at])
				for i := c.at; c.bytes != nil; i++ {
					if _, err := conn.Write(c.bytes[min(i, len(c.bytes)-1):][:1]); err != nil {
						return
					}
					select {
					case <-stop:
						return
					case <-time.After(250 * time.Millisecond):
					}
				}
			})
			io.Copy(io.Discard, conn)
			d := time.Since(begin)
			close(stop)
			over.Wait()
			if d < c.min || d > c.max {
				t.Errorf("%s, a byte at a time, is cut after %v", c.what, d)
			}
		})
	}
}

// oversized: sizes are judged when they are announced, not when they have come or when time is up.
func oversized(t *testing.T) {
	p := start(t, "", "--offline")
	greeting := hello(47, "localhost", packet.IntentLogin)
	long := func(n int) []byte { return field.AppendString(nil, strings.Repeat("x", n)) }
	handshake := func(host []byte) []byte {
		return framed(0, append(append(field.AppendVarInt(nil, 47), host...), 0, 80, 2))
	}
	for what, b := range map[string][]byte{
		"a frame of 2 MiB":             append(field.AppendVarInt(nil, 1<<21-1), 0, 47),
		"a frame of 4 GiB":             {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0},
		"a frame of 9 KiB":             append(field.AppendVarInt(nil, 9<<10), 0, 47),
		"a negative length":            {0x80, 0x80, 0x00, 0, 0},
		"a host of 400 characters":     handshake(long(400)),
		"a host longer than its frame": framed(0, append(field.AppendVarInt(nil, 47), 0xff, 0xff, 0x7f)),
		"a host of negative length":    framed(0, append(field.AppendVarInt(nil, 47), 0xff, 0xff, 0xff, 0xff, 0x0f)),
		"a name of 17 characters":      append(bytes.Clone(greeting), framed(0, long(17))...),
		"a name of 8000 characters":    append(bytes.Clone(greeting), framed(0, long(8000))...),
		"no name":                      append(bytes.Clone(greeting), framed(0, nil)...),
		"something behind the name":    append(bytes.Clone(greeting), framed(0, append(long(3), 1, 2, 3))...),
		"an answer to no question":     append(bytes.Clone(greeting), framed(1, make([]byte, 4000))...),
		"empty frames":                 append(bytes.Clone(greeting), make([]byte, 4096)...),
		"a request of 1 MiB":           []byte("GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\n\r\n"),
		"headers of 1 MiB":             []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20)),
	} {
		c := dial(t, p.addr, "")
		var writing sync.WaitGroup
		writing.Go(func() { c.Write(b) }) // it may be cut in the middle of that
		got, d := ended(t, c)
		c.Close()
		writing.Wait()
		if d > 4*time.Second { // sooner than any timeout
			t.Errorf("%s is cut only after %v", what, d)
		}
		if len(got) > 0 && got[0] != 'H' && !strings.Contains(what, "name") {
			t.Errorf("%s is answered with %q", what, got)
		}
	}
}

// bombs: packets of a player that are small on the wire and large behind it.
func bombs(t *testing.T) {
	var taken atomic.Int64
	sink := serving(t, func(c net.Conn) {
		if name, err := arrive(c); err == nil {
			c.Write(append(success(proto.V1_8, name), joinGame()...))
			n, _ := io.Copy(io.Discard, c)
			taken.Add(n)
		}
	})
	p := start(t, fmt.Sprintf("online: false\ntry: [sink]\nservers: {sink: {address: %q}}\n", sink))
	packed := func(declared int, b []byte) []byte {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		w.Write(b)
		w.Close()
		body := append(field.AppendVarInt(nil, int32(declared)), z.Bytes()...)
		return append(field.AppendVarInt(nil, int32(len(body))), body...)
	}
	zeros := func(n int) []byte { return append([]byte{0x12}, make([]byte, n-1)...) } // the proxy does not look at it
	noise := make([]byte, 16<<10)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	dense := append(zeros(900<<10), noise...) // nothing outrageous by itself

	p.gone(t, "Fine", func(c *wire) {
		write(t, c, packed(len(dense), dense))
		testkit.Until(t, "an honest packet to pass", func() bool { return p.metric("earshot_players") == 1 })
	})
	testkit.Until(t, "the backend to have had it", func() bool { return taken.Load() > int64(len(dense)) })
	before := p.cost()
	for what, c := range map[string]struct {
		bytes []byte
		why   string
	}{
		"2 MiB out of one KiB":        {framed(2<<20, make([]byte, 1<<10)), "ratio"},
		"more than any packet":        {packed(4<<20, zeros(4<<20)), "larger than allowed"},
		"declared as 2 GiB":           {packed(1<<31-1, zeros(1000)), "larger than allowed"},
		"more than is declared":       {packed(1000, zeros(100<<10)), "differs"},
		"less than is declared":       {packed(50<<10, zeros(1000)), "differs"},
		"declared as less than none":  {packed(-5, zeros(1000)), "malformed"},
		"not compressed though large": {framed(0, append([]byte{0x12}, make([]byte, 1000)...)), "uncompressed"},
		"compressed though small":     {packed(20, zeros(20)), "below the threshold"},
		"no zlib at all":              {framed(1000, make([]byte, 100)), "damaged"},
		"58 MiB in a moment":          {bytes.Repeat(packed(len(dense), dense), 64), "per second"},
	} {
		p.gone(t, "Bomber", func(w *wire) {
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() { w.Write(c.bytes) })
			if reason := string(w.until(proto.Disconnect)); !strings.Contains(reason, c.why) {
				t.Errorf("%s: the player is told %q", what, reason)
			}
			w.Close()
		})
	}
	p.returnsTo(before)
	if peak := p.peak(); peak > int(before.memory)+room(48<<20) {
		t.Errorf("the program needed %d MiB at its worst, %d in peace", peak>>20, int(before.memory)>>20)
	}
}

// gone lets a player in for fn and waits until it has left again.
func (p *program) gone(t *testing.T, name string, fn func(*wire)) {
	t.Helper()
	c := logIn(t, p.addr, name)
	c.until(proto.JoinGame)
	fn(c)
	c.Close()
	testkit.Until(t, name+" to be gone", func() bool { return p.metric("earshot_players") == 0 })
}

// garbage: bytes without a sense, before and after a login.
func garbage(t *testing.T, p *program) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	heads := [][]byte{
		nil, {0}, {0xfe}, {0xfe, 1, 0xfa}, {2}, {0x10, 0}, {0x16, 3, 1}, []byte("GET "), []byte("POST /voice HTTP/1.1\r\n"), []byte("PROXY TCP4 "),
		[]byte("\r\n\r\n\x00\r\nQUIT\n"), hello(47, "localhost", packet.IntentLogin), hello(769, "localhost", packet.IntentLogin),
		hello(47, "localhost", packet.IntentStatus), append(hello(47, "x\x00FML\x00", packet.IntentLogin), loginStart(47, "§k!")...),
	}
	var all sync.WaitGroup
	defer all.Wait()
	for range 4 {
		for i, head := range heads {
			c, b := dial(t, p.addr, []string{"", balancer}[i%2]), append(bytes.Clone(head), noise(300)...)
			all.Go(func() {
				defer c.Close()
				c.Write(b)
				begin := time.Now()
				io.Copy(io.Discard, c)
				if d := time.Since(begin); d > 20*time.Second {
					t.Errorf("%.20q… and noise is cut after %v", b, d)
				}
			})
		}
	}
	for i := range 8 {
		c, b := logIn(t, p.addr, fmt.Sprintf("Noise%d", i)), noise(4000)
		c.until(proto.JoinGame)
		all.Go(func() {
			defer c.Close()
			c.Write(b)
			begin := time.Now()
			io.Copy(io.Discard, c)
			if d := time.Since(begin); d > 20*time.Second {
				t.Errorf("a player who sends noise is cut after %v", d)
			}
		})
	}
}

// crowd: three hundred who say nothing, and a flood of those who begin a login.
func crowd(t *testing.T, p *program) {
	half := append(hello(47, "localhost", packet.IntentLogin), loginStart(47, "Nobody")[:4]...)
	const taken = "earshot_connections_total"
	before := p.metric(taken)
	conns := make([]net.Conn, 600)
	for i := range conns {
		conns[i] = dial(t, p.addr, "")
		if i%2 == 0 {
			write(t, conns[i], half)
		}
	}
	testkit.Until(t, "the crowd to be taken in", func() bool { return p.metric(taken) >= before+300 })
	begin := time.Now() // meanwhile others come in
	c := logIn(t, p.addr, "Amid")
	c.until(proto.JoinGame)
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("amid the crowd a player waits %v", d)
	}
	c.Close()
	for i, c := range conns {
		if _, d := ended(t, c); d > 10*time.Second {
			t.Errorf("connection %d is cut after %v", i, d)
		}
		c.Close()
	}
	if n := p.metric(`earshot_connections_refused_total{reason="silent"}`); n < 300 {
		t.Errorf("%v silent connections were counted", n)
	}
}

// TestThrottles: who is not exempt is held to the limits, and told so where there is a way to.
func TestThrottles(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_EXEMPT", "[127.0.1.0/24]") // not where the others come from
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 0.1, burst: 30}")
	t.Setenv("EARSHOT_LIMITS_STATUS", "{per-second: 0.1, burst: 2}")
	t.Setenv("EARSHOT_LIMITS_LOGINS", "{per-second: 0.1, burst: 3}")
	p := start(t, "online: false\n")
	outside := through(t, "127.0.1.1", nil, nil)
	metrics := func() string { _, s := get(t, outside, "http://"+p.addr+"/metrics"); return s }

	for i := range 3 {
		c := logIn(t, p.addr, fmt.Sprintf("Fine%d", i))
		c.until(proto.JoinGame)
	}
	if r := refusal(t, p.addr, 47, "Fourth"); !regexp.MustCompile(`too often\. Try again in ([1-9]|10) s\.`).MatchString(r) {
		t.Errorf("the fourth login at once is refused with %s", r)
	}
	x := &portTest{p: p}
	for range 2 {
		x.ping(t, dial(t, p.addr, ""), 47)
	}
	c := dial(t, p.addr, "")
	write(t, c, hello(47, "localhost", packet.IntentStatus), framed(0, nil))
	if b, _ := ended(t, c); len(b) != 0 {
		t.Errorf("the third ping is answered with %q", b)
	}
	testkit.Until(t, "a connection to be refused", func() bool {
		c := dial(t, p.addr, "")
		write(t, c, []byte{0xfe, 1, 0xfa})
		return strings.Contains(metrics(), `earshot_connections_refused_total{reason="throttled"} 1`)
	})
	// A player whose network has connected too often is told, and for how long, and so is a page.
	if r := refusal(t, p.addr, 47, "Fifth"); !regexp.MustCompile(`too often\. Try again in ([1-9]|10) s\.`).MatchString(r) {
		t.Errorf("a connection too many is refused with %s", r)
	}
	if code, body := get(t, through(t, "", nil, nil), "http://"+p.addr+"/healthz"); code != 429 || !strings.Contains(body, "limits.connections") {
		t.Errorf("a request too many is answered %d %s", code, body)
	}
	for _, setting := range []string{"limits.connections", "limits.logins", "limits.status"} {
		testkit.Until(t, "the log to name "+setting, func() bool { return strings.Contains(p.log.String(), `setting="`+setting) })
		if n := strings.Count(p.log.String(), `setting="`+setting); n != 1 {
			t.Errorf("%d lines of the log name %s", n, setting)
		}
	}
	for _, want := range []string{`earshot_connections_ended_total{why="throttled"} 1`, `earshot_connections_ended_total{why="status_throttled"}`, "earshot_players 3"} {
		testkit.Until(t, "/metrics to say "+want, func() bool { return strings.Contains(metrics(), want) })
	}
	for i := range 5 { // who is exempt is not concerned
		c := newWire(t, dial(t, p.addr, "127.0.1.1"), proto.V1_8)
		write(t, c, hello(47, "localhost", packet.IntentLogin), loginStart(47, fmt.Sprintf("Free%d", i)))
		if got, _ := c.next(proto.Login); got == proto.Disconnect {
			t.Error("an exempt network is throttled")
		}
	}
}
