package main

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
)

// The load speaks 1.12.2: its join game is twenty bytes, and the cost of a passed frame does not depend on the version.
const (
	protocol   = 340
	joinGame   = 0x23
	mapChunk   = 0x20
	movement   = 0x0d // serverbound position
	entityMove = 0x26
	payload    = 0x18 // clientbound plugin message
	threshold  = 256
	positionIn = 1 + 8*3 + 1
)

// relay runs the baseline: it copies every connection to the backend and back, in the kernel as io.Copy does between
// two sockets or, with seen, through a buffer, as a program has to that looks at the bytes.
func relay(backend string, seen bool) error {
	pipe := func(dst, src net.Conn) {
		if seen {
			io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 64<<10))
		} else {
			io.Copy(dst, src)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	for {
		client, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", backend)
			if err != nil {
				return
			}
			defer server.Close()
			go func() { pipe(server, client); server.(*net.TCPConn).CloseWrite() }()
			pipe(client, server)
		}()
	}
}

// answer runs the baseline of server list pings: it accepts, reads once, writes as much as an answer has, and closes.
func answer() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	text := make([]byte, 300)
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			b := make([]byte, 512)
			if _, err := c.Read(b); err == nil {
				c.Write(text)
				c.Read(b)
			}
		}()
	}
}

// peer is one end of a player's path: the connection, past login.
type peer struct {
	name string // of a client
	conn net.Conn
	r    *frame.Reader
	w    *frame.Writer
}

func newPeer(conn net.Conn) *peer {
	return &peer{"", conn, frame.NewReader(conn, frame.Limits{MaxFrame: 1<<21 - 1, MaxInflated: 8 << 20}), frame.NewWriter(conn)}
}

// backend is the server behind: it logs players in and hands them out by name.
type backend struct {
	ln       net.Listener
	compress bool
	mu       sync.Mutex
	waiting  map[string]chan *peer
}

func newBackend(compress bool) *backend {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	b := &backend{ln: ln, compress: compress, waiting: map[string]chan *peer{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go b.login(newPeer(c))
		}
	}()
	return b
}

func (b *backend) player(name string) chan *peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.waiting[name]
	if c == nil {
		c = make(chan *peer, 1)
		b.waiting[name] = c
	}
	return c
}

func (b *backend) login(p *peer) {
	p.conn.SetDeadline(time.Now().Add(30 * time.Second))
	var name string
	for i := range 2 {
		f, err := p.r.Next()
		if err != nil {
			p.conn.Close()
			return
		}
		body, _ := p.r.Body(f)
		if i == 1 {
			name = field.NewReader(body).String(16)
		}
	}
	if b.compress {
		p.w.Packet(3, field.AppendVarInt(nil, threshold))
		p.w.SetCompression(threshold)
		p.r.SetCompression(threshold)
	}
	p.w.Packet(2, field.AppendString(field.AppendString(nil, "00000000-0000-3000-8000-000000000000"), name))
	p.w.Packet(joinGame, append(field.AppendString([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 20}, "default"), 0))
	p.conn.SetDeadline(time.Time{})
	b.player(name) <- p
}

// join logs a player in through addr and waits for join game.
func join(addr, name string) (*peer, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := newPeer(conn)
	p.name = name
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	p.w.Packet(0, append(field.AppendString(field.AppendVarInt(nil, protocol), "127.0.0.1"), 0x63, 0xdd, 2))
	p.w.Packet(0, field.AppendString(nil, name))
	for {
		f, err := p.r.Next()
		if err != nil {
			conn.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		body, err := p.r.Body(f)
		if err != nil {
			return nil, err
		}
		switch f.ID {
		case 0:
			return nil, fmt.Errorf("%s refused: %s", name, body)
		case 1:
			err = p.encrypt(body)
		case 3:
			p.w.SetCompression(threshold)
			p.r.SetCompression(threshold)
		case joinGame:
			conn.SetDeadline(time.Time{})
			return p, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *peer) encrypt(body []byte) error {
	r := field.NewReader(body)
	r.String(20)
	der, token := r.Bytes(1024), r.Bytes(64)
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return err
	}
	secret := make([]byte, 16)
	rand.Read(secret)
	var out []byte
	for _, x := range [][]byte{secret, token} {
		//lint:ignore SA1019 the game's protocol is what it is
		c, err := rsa.EncryptPKCS1v15(rand.Reader, key.(*rsa.PublicKey), x)
		if err != nil {
			return err
		}
		out = field.AppendBytes(out, c)
	}
	if err := p.w.Packet(1, out); err != nil {
		return err
	}
	if err := p.w.SetCipher(secret); err != nil {
		return err
	}
	return p.r.SetCipher(secret)
}

// path is one way from player to backend.
type path struct {
	name    string
	proc    *process
	backend *backend
	other   *backend // a second one, of Earshot
}

func (w *path) close() {
	w.proc.stop()
	w.backend.ln.Close()
	if w.other != nil {
		w.other.ln.Close()
	}
}

var nameCount atomic.Int64

// players joins n of them; each is a client end and its backend end.
func (w *path) players(n int) (clients, servers []*peer, err error) {
	for range n {
		name := fmt.Sprint("p", nameCount.Add(1))
		c, err := join(w.proc.addr, name)
		if err != nil {
			return nil, nil, err
		}
		select {
		case s := <-w.backend.player(name):
			clients, servers = append(clients, c), append(servers, s)
		case <-time.After(10 * time.Second):
			return nil, nil, fmt.Errorf("%s never reached the backend", name)
		}
	}
	return clients, servers, nil
}

// relay starts an io.Copy relay or Earshot in front of a new backend.
func (b *proxyBench) relay(compress bool) (*path, error) {
	back := newBackend(compress)
	p, err := launch(true, selfPath(), "relay", back.ln.Addr().String())
	if err != nil {
		return nil, err
	}
	return &path{"io.Copy", p, back, nil}, nil
}

// earshot takes further lines of settings.
func (b *proxyBench) earshot(compress, online bool, more string) (*path, error) {
	back, other := newBackend(compress), newBackend(compress)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().String()
	ln.Close()
	t := -1
	if compress {
		t = threshold
	}
	file := filepath.Join(b.dir, "bench.yml")
	text := fmt.Sprintf("listen: %q\nonline: %v\nsession-server: %q\ntry: [stub]\nservers: {stub: {address: %q}, other: {address: %q}}\ncompression: {threshold: %d}\nlimits: {exempt: [127.0.0.0/8], bungeecord: {per-second: 1000000, burst: 1000000}}\nlog: {level: error}\n%s",
		addr, online, b.session.URL, back.ln.Addr(), other.ln.Addr(), t, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := launch(false, b.binary, "run", "--config", file, "--data", b.dir)
	if err != nil {
		return nil, err
	}
	p.addr = addr
	for range 100 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return &path{"earshot", p, back, other}, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	return nil, fmt.Errorf("earshot never listened on %s", addr)
}

// chunky returns data that deflates about as well as a chunk does.
func chunky(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		if i%4 == 0 {
			b[i] = byte(mrand.IntN(64))
		} else {
			b[i] = byte(i >> 8)
		}
	}
	return b
}

// wire returns one clientbound frame of n bytes of content as it stands on the wire.
func wire(n int, compress bool) []byte { return framed(content(n), compress) }

func content(n int) []byte { return append([]byte{mapChunk}, chunky(n-1)...) }

func framed(content []byte, compress bool) []byte {
	n := len(content)
	var body []byte
	switch {
	case !compress:
		body = content
	case n < threshold:
		body = append([]byte{0}, content...)
	default:
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		w.Write(content)
		w.Close()
		body = append(field.AppendVarInt(nil, int32(n)), z.Bytes()...)
	}
	return append(field.AppendVarInt(nil, int32(len(body))), body...)
}

// load sends frames to every player and tells what the process spent on them.
type load struct {
	players, size int
	compress      bool
	pause         time.Duration // between writes; 0: as fast as it goes
	burst         int           // frames in a write, as a server sends a tick; 0: one
	total         int           // bytes in all where there is no pause
	window        time.Duration
	content       []byte // of the frames, in place of size bytes that nobody looks at
}

type cost struct{ perGiB, perFrame, kib float64 }

func (w *path) run(l load) (c cost, err error) {
	idle := w.proc.rss()
	clients, servers, err := w.players(l.players)
	if err != nil {
		return c, err
	}
	defer func() {
		for i := range clients {
			clients[i].conn.Close()
			servers[i].conn.Close()
		}
	}()
	burst := max(1, l.burst)
	if l.content == nil {
		l.content = content(l.size)
	}
	one := bytes.Repeat(framed(l.content, l.compress), burst)
	each := l.total / l.players / len(one)
	if l.pause > 0 {
		each = int(l.window / l.pause)
	}
	var got atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			buf := make([]byte, 256<<10)
			for want := each * len(one); want > 0; {
				n, err := clients[i].conn.Read(buf)
				if err != nil {
					log.Printf("%s: %v", w.name, err)
					return
				}
				got.Add(int64(n))
				want -= n
			}
		})
	}
	start := w.proc.cpu()
	for i := range servers {
		all.Go(func() {
			time.Sleep(mrand.N(l.pause + 1))
			next := time.Now()
			for range each {
				if _, err := servers[i].conn.Write(one); err != nil {
					return
				}
				if l.pause > 0 {
					next = next.Add(l.pause)
					time.Sleep(time.Until(next))
				}
			}
		})
	}
	all.Wait()
	spent, busy := (w.proc.cpu() - start).Seconds(), w.proc.rss()
	if want := int64(each * len(one) * l.players); got.Load() < want {
		return c, fmt.Errorf("%s: %d of %d bytes came", w.name, got.Load(), want)
	}
	return cost{
		perGiB:   spent / float64(got.Load()) * (1 << 30),
		perFrame: spent / float64(each*burst*l.players) * 1e6,
		kib:      float64(busy-idle) / 1024 / float64(l.players),
	}, nil
}

// movementDelay returns p50 and p99 in ms from a client's position packet to the backend.
func (w *path) movementDelay(players int, window time.Duration) (p50, p99 float64, err error) {
	clients, servers, err := w.players(players)
	if err != nil {
		return 0, 0, err
	}
	var d delays
	base := time.Now()
	var readers, writers sync.WaitGroup
	for i := range servers {
		readers.Go(func() {
			for {
				f, err := servers[i].r.Next()
				if err != nil {
					return
				}
				if body, _ := servers[i].r.Body(f); f.ID == movement && len(body) == positionIn-1 {
					at := math.Float64frombits(binary.BigEndian.Uint64(body))
					d.add(time.Since(base) - time.Duration(at))
				}
			}
		})
	}
	for i := range clients {
		go io.Copy(io.Discard, clients[i].conn)
		writers.Go(func() {
			time.Sleep(mrand.N(50 * time.Millisecond))
			for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				body := binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(time.Since(base))))
				if clients[i].w.Packet(movement, append(body, make([]byte, 17)...)) != nil {
					return
				}
			}
		})
	}
	writers.Wait()
	for i := range clients {
		clients[i].conn.Close()
		servers[i].conn.Close()
	}
	readers.Wait()
	return d.at(.5), d.at(.99), nil
}

// switches returns how often players come to the other backend per second of clock, with the driver on the same cores,
// and the process's CPU in ms for each.
func (w *path) switches(players int, window time.Duration) (perSecond, each float64, err error) {
	clients, servers, err := w.players(players)
	if err != nil {
		return 0, 0, err
	}
	utf := func(dst []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint16(dst, uint16(len(s))), s...)
	}
	var n atomic.Int64
	var all sync.WaitGroup
	start, cpu := time.Now(), w.proc.cpu()
	for i, c := range clients {
		all.Go(func() {
			at := servers[i]
			defer c.conn.Close()
			defer func() { at.conn.Close() }()
			to, back, from, home := "other", w.other, "stub", w.backend
			for time.Since(start) < window {
				// As a plugin on the server says it.
				if err := at.w.Packet(payload, utf(utf(field.AppendString(nil, "BungeeCord"), "Connect"), to)); err != nil {
					log.Print(err)
					return
				}
				c.conn.SetDeadline(time.Now().Add(30 * time.Second))
				for {
					f, err := c.r.Next()
					if err != nil {
						log.Printf("%s on the way to %s: %v", c.name, to, err)
						return
					}
					if f.ID == joinGame {
						break
					}
				}
				at.conn.Close()
				at = <-back.player(c.name)
				n.Add(1)
				to, back, from, home = from, home, to, back
			}
		})
	}
	all.Wait()
	spent := time.Since(start).Seconds()
	return float64(n.Load()) / spent, (w.proc.cpu() - cpu).Seconds() * 1000 / float64(max(n.Load(), 1)), nil
}

// logins counts complete offline logins per second of clock, with the driver on the same cores.
func (w *path) logins(window time.Duration) float64 {
	var n atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range 8 {
		all.Go(func() {
			for time.Since(start) < window {
				name := fmt.Sprint("p", nameCount.Add(1))
				c, err := join(w.proc.addr, name)
				if err != nil {
					log.Print(err)
					return
				}
				s := <-w.backend.player(name)
				c.conn.Close()
				s.conn.Close()
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(start).Seconds()
}

// statuses returns answers per second of the process's CPU.
func (w *path) statuses(window time.Duration) float64 {
	var n atomic.Int64
	var all sync.WaitGroup
	start, cpu := time.Now(), w.proc.cpu()
	hello := frameBytes(append(field.AppendString(field.AppendVarInt([]byte{0}, protocol), "127.0.0.1"), 0x63, 0xdd, 1))
	hello = append(hello, frameBytes([]byte{0})...)
	for range 64 {
		all.Go(func() {
			buf := make([]byte, 4<<10)
			for time.Since(start) < window {
				conn, err := net.Dial("tcp", w.proc.addr)
				if err != nil {
					log.Print(err)
					return
				}
				conn.Write(hello)
				if _, err := conn.Read(buf); err == nil {
					n.Add(1)
				}
				conn.(*net.TCPConn).SetLinger(0) // no port waits for a late segment
				conn.Close()
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / (w.proc.cpu() - cpu).Seconds()
}

func frameBytes(b []byte) []byte { return append(field.AppendVarInt(nil, int32(len(b))), b...) }

type proxyBench struct {
	binary, dir string
	session     *httptest.Server
	rounds      int
	window      time.Duration
	good        bool
}

// each runs fn once per round and path, and returns the medians per path.
func (b *proxyBench) each(make []func() (*path, error), fn func(*path) (float64, error)) []float64 {
	got := map[int][]float64{}
	for range b.rounds {
		for i, start := range make {
			w, err := start()
			if err == nil {
				var v float64
				if v, err = fn(w); err == nil {
					got[i] = append(got[i], v)
				}
				w.close()
			}
			if err != nil {
				log.Print(err)
				b.good = false
			}
		}
	}
	var out []float64
	for i := range make {
		out = append(out, median(got[i]))
	}
	return out
}

// near tells whether a figure holds: it is no more than the goal, or, on a machine whose baseline in the same run costs
// nearly as much as the goal allows, no more than ratio times that baseline. The goals in plain figures are those of
// another machine; a ratio in one run is the same on any.
func near(figure, goal, ratio, baseline float64) bool { return figure <= max(goal, ratio*baseline) }

func (b *proxyBench) row(name, figures string, ok bool, goal string) {
	fmt.Printf("%-46s %-44s %s\n", name, figures, verdict(ok, goal, &b.good))
}

// proxyTable prints the proxy half.
func proxyTable(binary, dir string, rounds int, window time.Duration) bool {
	session := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("username")
		fmt.Fprintf(w, `{"id":"%032x","name":%q,"properties":[]}`, name, name)
	}))
	defer session.Close()
	b := &proxyBench{binary, dir, session, rounds, window, true}
	plainRelay := func() (*path, error) { return b.relay(false) }
	seenRelay := func() (*path, error) {
		back := newBackend(false)
		p, err := launch(true, selfPath(), "copy", back.ln.Addr().String())
		return &path{"copy", p, back, nil}, err
	}
	plain := func() (*path, error) { return b.earshot(false, false, "") }
	packedRelay := func() (*path, error) { return b.relay(true) }
	packed := func() (*path, error) { return b.earshot(true, false, "") }
	online := func() (*path, error) { return b.earshot(false, true, "") }
	ways := func(f ...func() (*path, error)) []func() (*path, error) { return f }
	perGiB := func(l load) func(*path) (float64, error) {
		return func(w *path) (float64, error) { c, err := w.run(l); return c.perGiB, err }
	}
	perFrame := func(l load) func(*path) (float64, error) {
		return func(w *path) (float64, error) { c, err := w.run(l); return c.perFrame, err }
	}
	fmt.Printf("\nproxy, beside an io.Copy relay of the same connections\n")

	v := b.each(ways(plainRelay, plain), perGiB(load{players: 100, size: 3000, pause: 50 * time.Millisecond, window: window}))
	b.row("play load, 3 KB per 50 ms, 100 players", fmt.Sprintf("%.2f CPU s/GiB, io.Copy %.2f: x %.2f", v[1], v[0], v[1]/v[0]), v[1] <= 1.25*v[0], "≤ 1.25")

	bulk := load{players: 20, size: 32 << 10, total: 2 << 30}
	v = b.each(ways(plainRelay, plain, seenRelay), perGiB(bulk))
	clear := v[1]
	b.row("bulk, 32 KiB frames, 20 players", fmt.Sprintf("%.2f CPU s/GiB, io.Copy %.2f, with a buffer %.2f", v[1], v[0], v[2]), near(v[1], .6, 1, v[2]), "≤ 0.6 CPU s/GiB or the relay with a buffer")

	bulk.total = 256 << 20
	v = b.each(ways(online), perGiB(bulk))
	b.row("the same, encrypted client", fmt.Sprintf("%.2f CPU s/GiB, %.2f on top", v[0], v[0]-clear), v[0]-clear <= 19, "≤ 19 on top")

	// A compressed frame costs the look at its id more, whatever its length. So frames are compared that are as long on
	// the wire: first those of the bulk above, then those that 32 KiB make.
	small := len(wire(32<<10, true))
	for i, inflated := range []int{(32 << 10) * (32 << 10) / small, 32 << 10} {
		size := len(wire(inflated, true))
		v = b.each(ways(plain), perGiB(load{players: 20, size: size - 3, total: 1 << 30}))
		flat := v[0]
		v = b.each(ways(packedRelay, packed), perGiB(load{players: 20, size: inflated, compress: true, total: 1 << 30}))
		text := fmt.Sprintf("%.2f CPU s/GiB, uncompressed %.2f, io.Copy %.2f: x %.2f", v[1], flat, v[0], v[1]/flat)
		name := fmt.Sprintf("compressed frames of %.0f KiB on the wire", float64(size)/(1<<10))
		if i > 0 {
			b.row(name, text, true, "no goal")
		} else {
			b.row(name, text, v[1] <= 1.1*flat, "≤ 1.1 of uncompressed frames as long")
		}
	}

	for _, f := range []struct {
		name  string
		l     load
		limit float64
	}{
		{"16 KiB frames, compressed", load{players: 4, size: 16 << 10, compress: true, total: 512 << 20}, 10},
		{"64 KiB frames, compressed", load{players: 4, size: 64 << 10, compress: true, total: 1 << 30}, 25},
		{"100-byte frames, 50 players at 200/s", load{players: 50, size: 100, compress: true, pause: 50 * time.Millisecond, burst: 10, window: window}, 4},
	} {
		v = b.each(ways(packedRelay, packed), perFrame(f.l))
		b.row(f.name, fmt.Sprintf("%.2f µs a frame, io.Copy %.2f", v[1], v[0]), near(v[1], f.limit, 1.25, v[0]), fmt.Sprintf("≤ %g µs or io.Copy x 1.25", f.limit))
	}

	v = b.each(ways(packedRelay, packed), func(w *path) (float64, error) {
		c, err := w.run(load{players: 50, size: 16 << 10, compress: true, pause: 50 * time.Millisecond, window: window})
		return c.kib, err
	})
	b.row("memory per player under chunk load", fmt.Sprintf("%.0f KiB, io.Copy %.0f", v[1], v[0]), v[1] <= 128, "≤ 128 KiB")

	// The voice gateway looks most at moves of entities. Without it nobody looks.
	unseen := func() (*path, error) { return b.earshot(true, false, "voice: {enabled: false}\n") }
	moves := load{players: 50, compress: true, pause: 50 * time.Millisecond, burst: 10, window: window,
		content: append([]byte{entityMove, 77}, make([]byte, 3*2+1)...)}
	v = b.each(ways(packedRelay, unseen, packed), perFrame(moves))
	b.row("entity moves, 50 players at 200/s, taps on", fmt.Sprintf("%.2f µs a frame, off %.2f, io.Copy %.2f", v[2], v[1], v[0]), near(v[2], 4, 1.25, v[0]), "≤ 4 µs or io.Copy x 1.25")

	for _, players := range []int{100, 500} {
		middle := map[string][]float64{}
		v = b.each(ways(plainRelay, plain), func(w *path) (float64, error) {
			p50, p99, err := w.movementDelay(players, window)
			middle[w.name] = append(middle[w.name], p50)
			return p99, err
		})
		ok, goal := v[1]-v[0] <= .3, "≤ 0.3 ms over io.Copy"
		if players > 100 {
			ok, goal = true, "no goal"
		}
		b.row(fmt.Sprintf("movement packet delay, %d players, p99", players), fmt.Sprintf("%.2f ms, io.Copy %.2f: %+.2f; p50 %.2f, io.Copy %.2f",
			v[1], v[0], v[1]-v[0], median(middle["earshot"]), median(middle["io.Copy"])), ok, goal)
	}

	var spent []float64
	v = b.each(ways(plain), func(w *path) (float64, error) {
		n, each, err := w.switches(32, window)
		spent = append(spent, each)
		return n, err
	})
	b.row("switches, 32 players, 1.12.2", fmt.Sprintf("%.0f/s on all cores, driver included; %.2f CPU ms each", v[0], median(spent)), true, "no goal")

	v = b.each(ways(plain), func(w *path) (float64, error) { return w.logins(window), nil })
	b.row("offline logins", fmt.Sprintf("%.0f/s on all cores, driver included", v[0]), v[0] >= 500, "≥ 500/s")
	bare := func() (*path, error) {
		p, err := launch(true, selfPath(), "answer", "-")
		return &path{"bare answer", p, newBackend(false), nil}, err
	}
	v = b.each(ways(bare, plain), func(w *path) (float64, error) { return w.statuses(window), nil })
	b.row("status answers", fmt.Sprintf("%.0f per CPU second, accept-answer-close alone %.0f", v[1], v[0]), near(1/v[1], 1./20000, 1.25, 1/v[0]), "≥ 20,000/s a core, or at most 1.25 times the cost of that")
	return b.good
}
