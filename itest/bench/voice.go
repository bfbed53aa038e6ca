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

// scenario: groups of clients; in each some speak, 50 frames of 80 bytes a
// second, and everybody else in the group hears them.
type scenario struct {
	groups, clients, speakers int
	floor                     float64 // CPU goal as a ratio to the bare fan-out
}

func (s scenario) String() string { return fmt.Sprintf("%dx%d:%d", s.groups, s.clients, s.speakers) }

var scenarios = []scenario{{20, 10, 1, 1.1}, {40, 5, 5, 0.95}, {1, 100, 5, 0.8}, {1, 200, 10, 0.45}, {10, 50, 5, 0.65}}

// voiceServer is one of the servers compared.
type voiceServer struct {
	name  string
	start func(s scenario) (*process, error)
	path  func(g, i int) string
	tls   bool
	all   bool // every capability is negotiated, and the groups take all ways that there are
}

type voiceResult struct {
	perFrame, rate, lost, cores, p50, p99, kib float64
}

const (
	frameTime = 20 * time.Millisecond
	opusSize  = 80
	upHead    = 16              // stream, sequence
	downHead  = 16 + 1 + 8 + 16 // speaker, gain, dx and dz, stream and sequence
)

func (v voiceServer) run(s scenario, warm, window time.Duration) (r voiceResult, err error) {
	p, err := v.start(s)
	if err != nil {
		return r, err
	}
	defer p.stop()
	idle := p.rss()
	base := time.Now()
	var from, until atomic.Int64
	from.Store(1 << 62)
	until.Store(1 << 62)
	var heard, copies, sent atomic.Int64
	var d delays

	conns := make([]*voiceConn, s.groups*s.clients)
	var readers sync.WaitGroup
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.conn.Close()
			}
		}
		readers.Wait()
	}()
	for j := range conns {
		c, err := dialVoice(p.addr, v.path(j/s.clients, j%s.clients), v.tls, v.all)
		if err != nil {
			return r, err
		}
		conns[j] = c
		if v.all {
			c.kind = wayOf(j / s.clients).kind()
			if wayOf(j/s.clients) == byGroup {
				c.team = base64.StdEncoding.EncodeToString(fmt.Append(nil, "g", j/s.clients))
				if j%s.clients == 0 {
					if err := c.text("SSVC_GROUP_V1:CREATE NORMAL 0 " + c.team + " -"); err != nil {
						return r, err
					}
					c.joined = true
				}
			}
		}
		readers.Go(func() {
			c.read(func(payload []byte) {
				if len(payload) != downHead+c.kinds+opusSize {
					return
				}
				now, at := int64(time.Since(base)), int64(binary.BigEndian.Uint64(payload[downHead+c.kinds:]))
				if a, b := from.Load(), until.Load(); now >= a && now < b {
					heard.Add(1)
					d.add(time.Duration(now - at))
				}
				if a, b := from.Load(), until.Load(); at >= a && at < b {
					copies.Add(1)
				}
			})
		})
	}
	quit := make(chan struct{})
	var speakers sync.WaitGroup
	for g := range s.groups {
		for i := range s.speakers {
			c := conns[g*s.clients+i]
			speakers.Go(func() {
				at := time.Now().Add(rand.N(frameTime))
				for {
					select {
					case <-quit:
						return
					case <-time.After(time.Until(at)):
					}
					at = at.Add(frameTime)
					now := int64(time.Since(base))
					if c.speak(now) != nil {
						return
					}
					if now >= from.Load() && now < until.Load() {
						sent.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(warm)
	if v.all { // everybody is where it is heard before anything counts
		for deadline := time.Now().Add(10 * time.Second); !settled(conns); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				return r, fmt.Errorf("%s %v: not everybody has joined its group", v.name, s)
			}
		}
	}
	cpu0, start := p.cpu(), time.Since(base)
	from.Store(int64(start))
	time.Sleep(window)
	end := time.Since(base)
	until.Store(int64(end))
	cpu1, busy := p.cpu(), p.rss()
	time.Sleep(time.Second) // late ones are late, not lost
	close(quit)
	speakers.Wait()

	n := float64(heard.Load())
	if n == 0 {
		return r, fmt.Errorf("%s %v: nothing was delivered", v.name, s)
	}
	cpu, secs := (cpu1 - cpu0).Seconds(), (end - start).Seconds()
	return voiceResult{
		perFrame: cpu / n * 1e6, rate: n / secs, cores: cpu / secs,
		lost: 1 - float64(copies.Load())/(float64(sent.Load())*float64(s.clients-1)),
		p50:  d.at(.5), p99: d.at(.99), kib: float64(busy-idle) / 1024 / float64(len(conns)),
	}, nil
}

// way is how a group's frames reach its members.
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

// kind is what a speaker's frames begin with.
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

// voiceConn is the cheapest client that can be measured with: it speaks what
// audio 2 negotiates and nothing else, or what everything does.
type voiceConn struct {
	conn   net.Conn
	br     *bufio.Reader
	stream uint64
	seq    uint64
	out    []byte

	kinds  int    // bytes for the kind at the front of each frame
	kind   byte   // of what it sends
	team   string // in base64: the voice group that it is to be in; empty: none
	joined bool   // has asked for that; the reader's
	in     atomic.Bool
	mu     sync.Mutex // of writing
}

// everything asks for all that there is.
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
			c.text("SSVC_GROUP_V1:JOIN " + words[1] + " -") // that it fails shows as not being in
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

// fanout is the floor: it upgrades sockets at /GROUP and copies each frame at
// once to everybody else of the group behind a header of the right size. No
// checks, no distances; one write per listener and frame.
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

// voiceTable prints the voice half.
func voiceTable(target string, rounds int, window time.Duration) bool {
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
	for _, s := range scenarios {
		res := map[string][]voiceResult{}
		for range rounds {
			for _, v := range servers {
				r, err := v.run(s, 2*time.Second, window) // what hundreds of handshakes leave behind is cleared by then
				if err != nil {
					log.Printf("%v %s: %v", s, v.name, err)
					good = false
				}
				res[v.name] = append(res[v.name], r)
			}
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
				if limit := map[int]float64{1: 2, 10: 16}[s.speakers]; limit > 0 { // what one speaker, and ten, may take
					ok, text = ok && p99 <= limit, fmt.Sprintf("%s, p99 ≤ %.0f ms", text, limit)
				}
				goal = verdict(ok, text, &good)
			case 2:
				w := ratio("earshot")
				goal = verdict(w <= 1.1, fmt.Sprintf("wss/ws %.2f ≤ 1.1", w), &good)
			case 3:
				w := ratio("earshot")
				goal = verdict(w <= 1.15 && lost < .01, fmt.Sprintf("with every capability/without %.2f ≤ 1.15, none lost", w), &good)
			}
			fmt.Printf("%-10s %-13s %9.0f %7.2f %7.2f %6.2f %8.2f %8.2f %10.1f %9.2f  %s\n", s, v.name,
				med(func(r voiceResult) float64 { return r.rate }), med(func(r voiceResult) float64 { return r.perFrame }), x,
				med(func(r voiceResult) float64 { return r.cores }), med(func(r voiceResult) float64 { return r.p50 }), p99, kib, lost, goal)
		}
	}
	return good
}

func voicePath(g, i int) string {
	return fmt.Sprintf("/voice?token=%d.%d&uuid=%08x-0000-4000-8000-%012x", g, i, g, i)
}
