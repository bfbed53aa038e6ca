package socket

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// ways are the kinds of connection a socket may run over.
var ways = []struct {
	name string
	open func(testing.TB) (server, client net.Conn)
}{
	{"tcp", tcp},
	{"tls", func(t testing.TB) (net.Conn, net.Conn) { return overTLS(t, Buffered) }},
	{"waiting", func(t testing.TB) (net.Conn, net.Conn) {
		server, client := tcp(t)
		server.(*net.TCPConn).SetWriteBuffer(32 << 10) // or the freeze takes megabytes
		return struct{ net.Conn }{server}, client
	}},
}

func overTLS(t testing.TB, wrap func(net.Conn) net.Conn) (server, client net.Conn) {
	t.Helper()
	raw, peer := tcp(t)
	s := tls.Server(wrap(raw), &tls.Config{Certificates: []tls.Certificate{certificate()}})
	c := tls.Client(peer, &tls.Config{InsecureSkipVerify: true})
	done := make(chan error, 1)
	go func() { done <- c.Handshake() }()
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestEveryWay(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			server, client := w.open(t)
			h := &record{}
			s := New(server, nil, newSweeper(t))
			wait := run(t, s, h)
			p := &peer{t, client, bufio.NewReader(client)}
			p.send(frame(bin, whole, "in"))
			s.Audio([]byte("he"), []byte("ad"))
			p.want("binary head")
			s.Reply([]byte("reply"))
			p.want("text reply")
			big := bytes.Repeat([]byte("v"), 262_144)
			s.View(1, big)
			p.want("text " + string(big))
			p.send(frame(ping, whole, "x"))
			p.want("pong x")
			if len(h.got) != 1 || h.got[0] != "b:in" {
				t.Errorf("handler saw %q", h.got)
			}
			s.Close(Replaced, "")
			p.want("close 4001 replaced")
			p.send(frame(bye, whole, "\x0f\xa1"))
			wantClosed(t, wait(), Replaced, false)
			if _, err := p.br.ReadByte(); err != io.EOF {
				t.Errorf("after the close: %v", err)
			}
		})
	}
}

func TestSinks(t *testing.T) {
	sweep := newSweeper(t)
	plain, _ := overTLS(t, func(c net.Conn) net.Conn { return c })
	wrapped, _ := overTLS(t, func(c net.Conn) net.Conn { return Buffered(inner{c}) })
	foreign, _ := overTLS(t, func(c net.Conn) net.Conn { return Buffered(struct{ net.Conn }{c}) })
	raw, _ := tcp(t)
	peeked, _ := tcp(t)
	for _, c := range []struct {
		name string
		conn net.Conn
		want string
	}{
		{"tcp", raw, "*socket.direct"},
		{"tcp behind NetConn", inner{peeked}, "*socket.direct"},
		{"tls over a plain conn", plain, "*socket.pump"},
		{"tls over a wrapped conn", wrapped, "*socket.buffered"},
		{"tls over something unknown", foreign, "*socket.pump"},
	} {
		if got := fmt.Sprintf("%T", sinkFor(c.conn)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		wait := gap
		if c.want == "*socket.buffered" {
			wait = gapTLS
		}
		if got := New(c.conn, nil, sweep).gap; got != wait {
			t.Errorf("%s: gap %v, want %v", c.name, got, wait)
		}
		c.conn.Close()
	}
}

// inner is a connection like those of a listener that has peeked: the system's connection is behind NetConn.
type inner struct{ net.Conn }

func (i inner) NetConn() net.Conn { return i.Conn }

// stamped sends frames of the given size that say when they were made.
func stamped(start time.Time, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint64(b, uint64(time.Since(start)))
	return b
}

// listen reads frames and hands on how late each is, until the close frame.
func listen(conn net.Conn, start time.Time, late func(time.Duration)) error {
	br := bufio.NewReaderSize(conn, 64<<10)
	for {
		s, err := readFrame(br)
		if err != nil {
			return err
		}
		if strings.HasPrefix(s, "close") {
			return conn.Close()
		}
		if len(s) > 15 && s[:7] == "binary " {
			late(time.Since(start) - time.Duration(binary.BigEndian.Uint64([]byte(s[7:]))))
		}
	}
}

// The freeze test: one talker feeds three listeners, one of which stops reading. The others hear every frame, in time;
// the third, when it reads again, is at once less than 200 ms behind.
func TestFreeze(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			sweep := newSweeper(t)
			start := time.Now()
			var sockets [3]*Socket
			var peers [3]net.Conn
			for i := range sockets {
				server, client := w.open(t)
				sockets[i], peers[i] = New(server, nil, sweep), client
				run(t, sockets[i], &record{})
			}
			var heard [2]atomic.Int64
			var worst [2]atomic.Int64
			var wg sync.WaitGroup
			for i := range heard {
				wg.Go(func() {
					listen(peers[i], start, func(late time.Duration) {
						heard[i].Add(1)
						worst[i].Store(max(worst[i].Load(), int64(late)))
					})
				})
			}

			// Ten talkers' worth, with frames so large that the kernel's buffers are soon full.
			sent := int64(0)
			var slowest, stalled time.Duration // of this test's own goroutine, by a busy machine
			last := time.Now()
			speak := func(until func() bool) {
				for tick := time.NewTicker(2 * time.Millisecond); !until(); <-tick.C {
					f := stamped(start, 1300)
					before := time.Now()
					stalled, last = max(stalled, before.Sub(last)), before
					for _, s := range sockets {
						s.Audio(f[:25], f[25:])
					}
					slowest = max(slowest, time.Since(before))
					sent++
				}
			}
			frozen := sockets[2]
			speak(func() bool { return frozen.Stats().Drops[DropFull] > 300 })

			// Back again. What the kernels hold is old; then come frames that are young, and all that follow stay so.
			resumed := time.Now()
			var young, old atomic.Int64 // frames; old ones after a young one
			var caughtUp atomic.Int64   // after how long
			wg.Go(func() {
				listen(peers[2], start, func(late time.Duration) {
					switch {
					case late < 200*time.Millisecond:
						if young.Add(1) == 1 {
							caughtUp.Store(int64(time.Since(resumed)))
						}
					case young.Load() > 0:
						old.Add(1)
					}
				})
			})
			speak(func() bool { return young.Load() > 100 || time.Since(resumed) > 5*time.Second })
			t.Logf("%d frames; stalled %v; slowest fan-out %v; worst delays %v, %v; caught up in %v; %+v", sent, stalled, slowest,
				time.Duration(worst[0].Load()), time.Duration(worst[1].Load()), time.Duration(caughtUp.Load()), frozen.Stats())
			if caughtUp.Load() == 0 {
				t.Error("never caught up")
			}
			// The rest is about time, which a machine that stalls does not give.
			slack := 150*time.Millisecond + 4*stalled
			if stalled > 100*time.Millisecond {
				slack = time.Hour
			}
			if d := time.Duration(caughtUp.Load()); d > slack || old.Load() > 0 && slack < time.Hour {
				t.Errorf("caught up in %v, with %d old frames after that", d, old.Load())
			}
			if slowest > slack {
				t.Errorf("a talker waited %v", slowest)
			}
			for i := range heard {
				deadline := time.Now().Add(5 * time.Second)
				lost := func() int64 { return int64(sockets[i].Stats().Drops[DropStale]) }
				for heard[i].Load()+lost() < sent && time.Now().Before(deadline) {
					runtime.Gosched()
				}
				if n := heard[i].Load(); n+lost() != sent || lost() > 0 && slack < time.Hour {
					t.Errorf("listener %d heard %d frames of %d: %+v", i, n, sent, sockets[i].Stats())
				}
				if d := time.Duration(worst[i].Load()); d > slack {
					t.Errorf("listener %d waited %v for a frame", i, d)
				}
			}
			for _, p := range peers {
				p.Close()
			}
			wg.Wait()
		})
	}
}

// Everybody calls everything while sockets end in every way.
func TestConcurrentUse(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			sweep := newSweeper(t)
			for round := range 5 {
				var given atomic.Uint64
				server, client := w.open(t)
				s := New(server, nil, sweep)
				wait := run(t, s, &record{on: func(string) { given.Add(1); s.Audio(nil, []byte("echo")) }})
				var wg sync.WaitGroup
				wg.Go(func() { listen(client, time.Now(), func(time.Duration) {}) })
				wg.Go(func() {
					for range 50 {
						if _, err := client.Write(frame(bin, whole, "x")); err != nil {
							return
						}
					}
				})
				for i := range 4 {
					wg.Go(func() {
						for n := range 200 {
							given.Add(1)
							s.Audio([]byte("head"), make([]byte, n))
							s.View(i, []byte("view"))
							if n%10 == 0 {
								s.Reply([]byte("reply"))
							}
							s.Stats()
							sweep.Stats()
							sweep.Len()
						}
						switch round {
						case 0:
							s.Close(Left, "")
						case 1:
							client.Close()
						case 2:
							server.Close()
						case 3:
							s.Close(Code(4000+i), "")
						}
					})
				}
				if round == 4 {
					time.AfterFunc(0, func() { s.Close(Flood, "") })
				}
				err := wait()
				wg.Wait()
				if err == nil {
					t.Error("ended without a reason")
				}
				client.Close()
				st := s.Stats()
				if sum := st.Sent + st.Drops[DropFull] + st.Drops[DropStale] + st.Drops[DropClosed]; sum != given.Load() {
					t.Errorf("%d frames given, %d accounted for: %+v", given.Load(), sum, st)
				}
			}
			if st := sweep.Stats(); sweep.Len() != 0 || st.Sent == 0 {
				t.Errorf("%d sockets, %+v", sweep.Len(), st)
			}
		})
	}
}

// drained returns a socket whose peer throws away what comes, without garbage.
func drained(tb testing.TB, open func(testing.TB) (net.Conn, net.Conn)) *Socket {
	server, client := open(tb)
	s := New(server, nil, newSweeper(tb))
	run(tb, s, &record{})
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := client.Read(buf); err != nil {
				return
			}
		}
	})
	tb.Cleanup(func() {
		client.Close()
		wg.Wait()
	})
	return s
}

func TestNoAllocations(t *testing.T) {
	head, body := make([]byte, 42), make([]byte, 80)
	for _, w := range ways {
		s := drained(t, w.open)
		for range 500 { // buffers grow to their size
			s.Audio(head, body)
		}
		waitEmpty(s)
		if n := testing.AllocsPerRun(2000, func() { s.Audio(head, body) }); n != 0 {
			t.Errorf("%s: %v allocations a frame, gathered", w.name, n)
		}
		if n := testing.AllocsPerRun(500, func() {
			s.Audio(head, body)
			s.mu.Lock()
			s.flush(s.sweep.now()) // as if the last write were long ago
			s.mu.Unlock()
			// The tls package pools a buffer, and pools forget under the race detector.
		}); n != 0 && !(raceEnabled && w.name == "tls") {
			t.Errorf("%s: %v allocations a frame, at once", w.name, n)
		}
	}
}

func waitEmpty(s *Socket) {
	for {
		s.mu.Lock()
		empty := s.outbox.empty() && !s.sink.busy()
		s.mu.Unlock()
		if empty {
			return
		}
		runtime.Gosched()
	}
}

// Receiving allocates nothing either.
func TestNoAllocationsReceiving(t *testing.T) {
	in := bytes.Repeat(append(frame(bin, whole, string(make([]byte, 100))), frame(text, whole, "SSVC_DEAFEN_V1:1")...), 5000)
	var before, after runtime.MemStats
	s := New(&canned{r: bytes.NewReader(in)}, nil, newSweeper(t))
	n := 0
	h := &count{&n}
	runtime.ReadMemStats(&before)
	s.receive(h)
	runtime.ReadMemStats(&after)
	if n != 10_000 {
		t.Fatalf("%d messages", n)
	}
	if a := after.Mallocs - before.Mallocs; a > 100 {
		t.Errorf("%d allocations for %d messages", a, n)
	}
}

type count struct{ n *int }

func (c *count) Binary([]byte) { *c.n++ }
func (c *count) Text([]byte)   { *c.n++ }

// A socket that has been talked through costs a few kilobytes.
func TestMemory(t *testing.T) {
	const n = 100
	sweep := newSweeper(t)
	var before, after runtime.MemStats
	var servers, clients [n]net.Conn
	for i := range n {
		servers[i], clients[i] = tcp(t)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	var sockets [n]*Socket
	for i := range n {
		sockets[i] = New(servers[i], nil, sweep)
		run(t, sockets[i], &record{})
	}
	buf := make([]byte, 64<<10)
	for range 5 {
		for _, s := range sockets {
			for range 10 {
				s.Audio(nil, make([]byte, 122))
			}
		}
		for i, s := range sockets {
			waitEmpty(s)
			clients[i].Read(buf)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := int(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / n
	t.Logf("%d bytes a socket", per)
	if per > 24<<10 {
		t.Errorf("%d bytes a socket", per)
	}
	runtime.KeepAlive(sockets)
}

// A peer that makes TLS answer (key updates) without reading is cut off, and keeps no memory.
func TestCipherIsBounded(t *testing.T) {
	raw, _ := tcp(t)
	b := Buffered(raw).(*buffered)
	if !b.takeOver(nil) {
		t.Fatal("not taken over")
	}
	record := make([]byte, 4096)
	for i := range 100_000 {
		if _, err := b.Write(record); err == errCipherFull {
			if len(b.rest) > maxCipher {
				t.Fatalf("keeps %d bytes", len(b.rest))
			}
			return
		} else if err != nil {
			t.Fatal(i, err)
		}
	}
	t.Fatal("never full")
}

// cpu returns the process's CPU time.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSend measures the CPU of one write, with the reading of the peer in the same process, by frames in it.
func BenchmarkSend(b *testing.B) {
	head, body := make([]byte, 42), make([]byte, 80)
	for _, w := range ways[:2] {
		for _, k := range []int{1, 5, 20} {
			b.Run(fmt.Sprintf("%s/%d", w.name, k), func(b *testing.B) {
				s := drained(b, w.open)
				b.ReportAllocs()
				before, frames := cpu(b), 0
				for b.Loop() {
					s.mu.Lock()
					for range k {
						s.outbox.audio(s.sweep.now(), head, body)
					}
					s.flush(s.sweep.now())
					s.mu.Unlock()
					frames += k
				}
				b.ReportMetric(float64(cpu(b)-before)/float64(frames), "cpu-ns/frame")
			})
		}
	}
}

// BenchmarkAudio measures the cost of giving a frame that waits for company.
func BenchmarkAudio(b *testing.B) {
	s := New(&canned{}, nil, newSweeper(b))
	s.sink = &null{}
	head, body := make([]byte, 42), make([]byte, 80)
	b.ReportAllocs()
	for b.Loop() {
		s.Audio(head, body)
	}
}

type null struct{}

func (null) try(p []byte) (int, error) { return len(p), nil }
func (null) busy() bool                { return false }

// BenchmarkReceive measures the cost of a frame from the peer, without the kernel's.
func BenchmarkReceive(b *testing.B) {
	one := frame(bin, whole, string(make([]byte, 100)))
	n := 0
	s := New(&canned{r: &endless{one: bytes.Repeat(one, 20), left: b.N}}, nil, newSweeper(b))
	b.ReportAllocs()
	s.Run(context.Background(), &count{&n})
	b.ReportMetric(float64(n)/float64(b.N), "frames/op")
}

type endless struct {
	one  []byte
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left--; e.left < 0 {
		return 0, io.EOF
	}
	return copy(p, e.one), nil
}
