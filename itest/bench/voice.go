package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"crypto/tls"

	"github.com/gobwas/ws"
)

// scenario: groups of clients; in each some speak, 50 frames of 80 bytes a second, and everybody else in the group
// hears them.
type scenario struct {
	groups, clients, talkers int
	floor                    float64 // CPU goal as a ratio to the bare fan-out
}

func (s scenario) String() string { return fmt.Sprintf("%dx%d:%d", s.groups, s.clients, s.talkers) }

var scenarios = []scenario{{20, 10, 1, 1.1}, {40, 5, 5, 0.95}, {1, 100, 5, 0.8}, {1, 200, 10, 0.45}, {10, 50, 5, 0.65}}

// voiceServer is one of the servers compared.
type voiceServer struct {
	name  string
	start func(s scenario) (*process, error)
	path  func(g, i int) string
	tls   bool
	all   bool // every capability is negotiated, and the groups use all routes
}

type voiceResult struct {
	perFrame, rate, lost, cores, p50, p99, kib float64
}

const (
	frameTime = 20 * time.Millisecond
	opusSize  = 80
	upHead    = 16              // stream, sequence
	downHead  = 16 + 1 + 8 + 16 // talker, gain, dx and dz, stream and sequence
)

// crowd is a server and all its clients. They speak only while they are measured, so that several servers can be
// measured in turn, and the machine's other work falls on all of them.
type crowd struct {
	voiceServer
	s       scenario
	p       *process
	idle    int64 // bytes, before anybody came
	conns   []*voiceConn
	readers sync.WaitGroup

	base                time.Time
	from, until         atomic.Int64 // since base: the time that counts
	heard, copies, sent atomic.Int64
	d                   delays
}

func (v voiceServer) open(s scenario) (c *crowd, err error) {
	p, err := v.start(s)
	if err != nil {
		return nil, err
	}
	c = &crowd{voiceServer: v, s: s, p: p, idle: p.rss(), base: time.Now()}
	c.from.Store(1 << 62)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for j := range s.groups * s.clients {
		conn, err := dialVoice(p.addr, v.path(j/s.clients, j%s.clients), v.tls, v.all)
		if err != nil {
			return nil, err
		}
		c.conns = append(c.conns, conn)
		if v.all {
			conn.kind = wayOf(j / s.clients).kind()
			if wayOf(j/s.clients) == byGroup {
				conn.team = base64.StdEncoding.EncodeToString(fmt.Append(nil, "g", j/s.clients))
				if j%s.clients == 0 {
					if err := conn.text("SSVC_GROUP_V1:CREATE NORMAL 0 " + conn.team + " -"); err != nil {
						return nil, err
					}
					conn.joined = true
				}
			}
		}
		c.readers.Go(func() {
			conn.read(func(payload []byte) {
				if len(payload) == downHead+conn.kinds+opusSize {
					c.hears(int64(binary.BigEndian.Uint64(payload[downHead+conn.kinds:])))
				}
			})
		})
	}
	if v.all { // everybody is where it is heard before anything counts
		for deadline := time.Now().Add(10 * time.Second); !settled(c.conns); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				return nil, fmt.Errorf("%s %v: not everybody has joined its group", v.name, s)
			}
		}
	}
	_, err = c.measure(time.Second) // by then the rest of hundreds of handshakes is cleared
	return c, err
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		conn.conn.Close()
	}
	c.readers.Wait()
	c.p.stop()
}

// hears counts a frame that was sent at a time since base.
func (c *crowd) hears(at int64) {
	now, from, until := int64(time.Since(c.base)), c.from.Load(), c.until.Load()
	if now >= from && now < until {
		c.heard.Add(1)
		c.d.add(time.Duration(now - at))
	}
	if at >= from && at < until {
		c.copies.Add(1)
	}
}

// speak sends until quit, and counts the frames within the time that counts.
func (c *crowd) speak(conn *voiceConn, quit <-chan struct{}) {
	at := time.Now().Add(rand.N(frameTime))
	for {
		select {
		case <-quit:
			return
		case <-time.After(time.Until(at)):
		}
		at = at.Add(frameTime)
		now := int64(time.Since(c.base))
		if conn.speak(now) != nil {
			return
		}
		if now >= c.from.Load() && now < c.until.Load() {
			c.sent.Add(1)
		}
	}
}

// measure has them speak for the window, and a moment before and after it.
func (c *crowd) measure(window time.Duration) (r voiceResult, err error) {
	const before, after = 200 * time.Millisecond, 100 * time.Millisecond // late ones are late, not lost
	quit := make(chan struct{})
	var talkers sync.WaitGroup
	for j, conn := range c.conns {
		if j%c.s.clients < c.s.talkers {
			talkers.Go(func() { c.speak(conn, quit) })
		}
	}
	time.Sleep(before)
	c.heard.Store(0)
	c.copies.Store(0)
	c.sent.Store(0)
	c.d.clear()
	cpu0, start := c.p.cpu(), time.Since(c.base)
	c.until.Store(1 << 62)
	c.from.Store(int64(start))
	time.Sleep(window)
	end := time.Since(c.base)
	c.until.Store(int64(end))
	cpu1 := c.p.cpu()
	time.Sleep(after)
	close(quit)
	talkers.Wait()
	time.Sleep(after)
	c.from.Store(1 << 62)

	n := float64(c.heard.Load())
	if n == 0 {
		return r, fmt.Errorf("%s %v: nothing was delivered", c.name, c.s)
	}
	cpu, secs := (cpu1 - cpu0).Seconds(), (end - start).Seconds()
	return voiceResult{
		perFrame: cpu / n * 1e6, rate: n / secs, cores: cpu / secs,
		lost: 1 - float64(c.copies.Load())/(float64(c.sent.Load())*float64(c.s.clients-1)),
		p50:  c.d.at(.5), p99: c.d.at(.99), kib: float64(c.p.rss()-c.idle) / 1024 / float64(len(c.conns)),
	}, nil
}

// way is a route by which a group's frames reach its members.
type way int

const (
	byDistance way = iota
	byGroup
	byDeclaration
	byClip
	ways
)

// wayOf divides the groups of a scenario. The target declares for the third of each four.
func wayOf(g int) way { return way(g) % ways }

// kind returns the first byte of a talker's frames.
func (w way) kind() byte {
	if w == byClip {
		return 1
	}
	return 0
}

func settled(conns []*voiceConn) bool {
	for _, c := range conns {
		if c.team != "" && !c.in.Load() {
			return false
		}
	}
	return true
}

// voiceConn is the cheapest client to measure with: it speaks what audio 2 negotiates and nothing else, or everything.
type voiceConn struct {
	conn   net.Conn
	br     *bufio.Reader
	stream uint64
	seq    uint64
	out    []byte

	kinds  int    // bytes for the kind at the front of each frame
	kind   byte   // of the frames it sends
	team   string // in base64: the voice group to be in; empty: none
	joined bool   // has asked for that; the reader's
	in     atomic.Bool
	mu     sync.Mutex // of writing
}

// everything asks for every capability.
const everything = "X-SocketSVC-Status: 1\r\nX-SocketSVC-Spatial: 1\r\nX-SocketSVC-Speakers: 1\r\nX-SocketSVC-Soundboard: 2\r\n" +
	"X-SocketSVC-Groups: 2\r\nX-SocketSVC-Group-Edit: 1\r\nX-SocketSVC-Pose: 1\r\n"

func dialVoice(addr, path string, secure, all bool) (*voiceConn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // our own throw-away certificate on loopback
	}
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	more := ""
	if all {
		more = everything
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nX-SocketSVC-Audio: 2\r\n%s\r\n", path, addr, more)
	c := &voiceConn{conn: conn, br: bufio.NewReaderSize(conn, 4096), stream: rand.Uint64() >> 1}
	if all {
		c.kinds = 1
	}
	resp, err := http.ReadResponse(c.br, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return c, nil
}

// speak sends one frame; its first eight bytes of audio are the time of sending.
func (c *voiceConn) speak(now int64) error {
	var whole [1 + upHead + opusSize]byte
	whole[0] = c.kind
	body := whole[1:]
	binary.BigEndian.PutUint64(body, c.stream)
	binary.BigEndian.PutUint64(body[8:], c.seq)
	c.seq++
	binary.BigEndian.PutUint64(body[upHead:], uint64(now))
	return c.write(0x82, whole[1-c.kinds:])
}

func (c *voiceConn) text(s string) error { return c.write(0x81, []byte(s)) }

// write sends a message of less than 126 bytes, which it masks in place.
func (c *voiceConn) write(op byte, body []byte) error {
	mask := ws.NewMask()
	ws.Cipher(body, mask, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(append(append(c.out[:0], op, 0x80|byte(len(body))), mask[:]...), body...)
	_, err := c.conn.Write(c.out)
	return err
}

// groups reads a snapshot of the groups: it joins its own once it is there.
func (c *voiceConn) groups(text string) {
	if c.team == "" || c.in.Load() || !strings.HasPrefix(text, "SSVC_GROUP") {
		return
	}
	if strings.HasPrefix(text, "SSVC_GROUP_RESULT_V1") {
		c.in.Store(strings.HasSuffix(text, " OK"))
		return
	}
	for row := range strings.Lines(text) {
		words := strings.Fields(row)
		if len(words) == 7 && words[0] == "G" && words[6] == c.team && !c.joined {
			c.joined = true
			c.text("SSVC_GROUP_V1:JOIN " + words[1] + " -") // a failure shows as not being in
		}
	}
}

func (c *voiceConn) read(fn func([]byte)) {
	var buf []byte
	for {
		h, err := ws.ReadHeader(c.br)
		if err != nil {
			return
		}
		if int64(cap(buf)) < h.Length {
			buf = make([]byte, h.Length)
		}
		b := buf[:h.Length]
		if _, err := io.ReadFull(c.br, b); err != nil {
			return
		}
		switch h.OpCode {
		case ws.OpBinary:
			fn(b)
		case ws.OpText:
			c.groups(string(b))
		case ws.OpPing:
			if c.write(0x8a, append([]byte(nil), b...)) != nil {
				return
			}
		}
	}
}

// fanout runs the floor: it upgrades sockets at /GROUP and copies each frame at once to everybody else of the group
// behind a header of the right size. No checks, no distances; one write per listener and frame.
func fanout(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	type room struct {
		sync.RWMutex
		conns map[net.Conn]*sync.Mutex
	}
	var mu sync.Mutex
	rooms := map[string]*room{}
	serve := func(conn net.Conn) {
		defer conn.Close()
		var name string
		up := ws.Upgrader{OnRequest: func(uri []byte) error { name = string(uri); return nil }}
		if _, err := up.Upgrade(conn); err != nil {
			return
		}
		mu.Lock()
		r := rooms[name]
		if r == nil {
			r = &room{conns: map[net.Conn]*sync.Mutex{}}
			rooms[name] = r
		}
		mu.Unlock()
		r.Lock()
		r.conns[conn] = new(sync.Mutex)
		r.Unlock()
		defer func() { r.Lock(); delete(r.conns, conn); r.Unlock() }()
		br := bufio.NewReaderSize(conn, 2048)
		in, out := make([]byte, 2048), make([]byte, 0, 2048)
		for {
			h, err := ws.ReadHeader(br)
			if err != nil || h.Length > int64(len(in)) {
				return
			}
			b := in[:h.Length]
			if _, err := io.ReadFull(br, b); err != nil {
				return
			}
			ws.Cipher(b, h.Mask, 0)
			if h.OpCode != ws.OpBinary {
				continue
			}
			n := downHead - upHead + len(b)
			out = append(out[:0], 0x82)
			if n < 126 {
				out = append(out, byte(n))
			} else {
				out = binary.BigEndian.AppendUint16(append(out, 126), uint16(n))
			}
			out = append(append(out, make([]byte, downHead-upHead)...), b...)
			r.RLock()
			for c, l := range r.conns {
				if c != conn {
					l.Lock()
					c.Write(out)
					l.Unlock()
				}
			}
			r.RUnlock()
		}
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

// inTurn measures all servers for a second each, one after the other, again and again: a machine that is slower for a
// while is so for all of them.
func inTurn(servers []voiceServer, s scenario, turns int) (map[string][]voiceResult, error) {
	var crowds []*crowd
	defer func() {
		for _, c := range crowds {
			c.close()
		}
	}()
	for _, v := range servers {
		c, err := v.open(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		crowds = append(crowds, c)
	}
	res := map[string][]voiceResult{}
	for range turns {
		for _, c := range crowds {
			r, err := c.measure(time.Second)
			if err != nil {
				return nil, err
			}
			res[c.name] = append(res[c.name], r)
		}
	}
	return res, nil
}

// voiceTable prints the voice half.
func voiceTable(target string, turns int) bool {
	self := selfPath()
	servers := []voiceServer{
		{"bare fan-out", func(scenario) (*process, error) { return launch(true, self, "fanout", "127.0.0.1:0") },
			func(g, _ int) string { return fmt.Sprint("/", g) }, false, false},
		{"earshot", func(scenario) (*process, error) { return launch(true, target, "-listen", "127.0.0.1:0") }, voicePath, false, false},
		{"earshot wss", func(scenario) (*process, error) {
			return launch(true, target, "-listen", "127.0.0.1:0", "-tls")
		}, voicePath, true, false},
		{"earshot, all", func(scenario) (*process, error) {
			return launch(true, target, "-listen", "127.0.0.1:0", "-all")
		}, voicePath, false, true},
	}
	fmt.Printf("%-10s %-13s %9s %7s %7s %6s %8s %8s %10s %9s  %s\n", "voice", "server", "frames/s", "µs/fr", "x bare", "cores", "p50 ms", "p99 ms", "KiB/client", "lost %", "goal")
	good := true
	var secure []float64 // wss/ws of each scenario
	for _, s := range scenarios {
		res, err := inTurn(servers, s, turns)
		if err != nil {
			log.Printf("%v: %v", s, err)
			good = false
			continue
		}
		for k, v := range servers {
			med := func(f func(voiceResult) float64) float64 {
				var x []float64
				for _, r := range res[v.name] {
					x = append(x, f(r))
				}
				return median(x)
			}
			ratio := func(to string) float64 {
				var x []float64
				for i, r := range res[v.name] {
					if b := res[to][i]; b.perFrame > 0 && r.perFrame > 0 {
						x = append(x, r.perFrame/b.perFrame)
					}
				}
				return median(x)
			}
			x, goal := ratio("bare fan-out"), "the floor"
			p99 := med(func(r voiceResult) float64 { return r.p99 })
			lost := med(func(r voiceResult) float64 { return 100 * r.lost })
			kib := med(func(r voiceResult) float64 { return r.kib })
			switch k {
			case 1:
				ok, text := x <= s.floor && lost < .01 && kib <= 64, fmt.Sprintf("≤ %.2f, none lost, ≤ 64 KiB", s.floor)
				if limit := map[int]float64{1: 2, 10: 16}[s.talkers]; limit > 0 { // allowed for one and ten
					ok, text = ok && p99 <= limit, fmt.Sprintf("%s, p99 ≤ %.0f ms", text, limit)
				}
				goal = verdict(ok, text, &good)
			case 2:
				w := ratio("earshot")
				secure = append(secure, w)
				goal = fmt.Sprintf("wss/ws %.2f", w)
			case 3:
				w := ratio("earshot")
				goal = verdict(w <= 1.15 && lost < .01, fmt.Sprintf("with every capability/without %.2f ≤ 1.15, none lost", w), &good)
			}
			fmt.Printf("%-10s %-13s %9.0f %7.2f %7.2f %6.2f %8.2f %8.2f %10.1f %9.2f  %s\n", s, v.name,
				med(func(r voiceResult) float64 { return r.rate }), med(func(r voiceResult) float64 { return r.perFrame }), x,
				med(func(r voiceResult) float64 { return r.cores }), med(func(r voiceResult) float64 { return r.p50 }), p99, kib, lost, goal)
		}
	}
	w := mean(secure) // the design has one goal for all
	fmt.Println("wss/ws, mean of the scenarios:", verdict(w <= 1.1, fmt.Sprintf("%.2f ≤ 1.1", w), &good))
	return good
}

func voicePath(g, i int) string {
	return fmt.Sprintf("/voice?token=%d.%d&uuid=%08x-0000-4000-8000-%012x", g, i, g, i)
}
