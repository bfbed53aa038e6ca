package listen

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts collects refusals and lets a test wait for them.
type counts struct {
	mu   sync.Mutex
	cond *sync.Cond
	by   map[string]int
}

func newCounts() *counts {
	c := &counts{by: map[string]int{}}
	c.cond = sync.NewCond(&c.mu)
	return c
}

func (c *counts) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[reason]++
	c.cond.Broadcast()
}

// wait returns when reason was counted n times; the test's own deadline is the limit.
func (c *counts) wait(reason string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.by[reason] < n {
		c.cond.Wait()
	}
}

func (c *counts) get(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[reason]
}

// start serves cfg on a free loopback port until the test ends.
func start(t *testing.T, cfg Config) (*Listener, *counts) {
	t.Helper()
	ln, err := Open(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, ln, cfg)
}

func startOn(t *testing.T, ln net.Listener, cfg Config) (*Listener, *counts) {
	t.Helper()
	n := newCounts()
	cfg.Count = func(reason string, _ netip.Addr) { n.add(reason) }
	l := New(ln, cfg)
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve ended with %v, want net.ErrClosed", err)
		}
	})
	return l, n
}

func dial(t *testing.T, l *Listener, write []byte) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if len(write) > 0 {
		if _, err := c.Write(write); err != nil {
			t.Fatal(err)
		}
	}
	return c.(*net.TCPConn)
}

func accept(t *testing.T, ln net.Listener) *Conn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*Conn)
}

// expectClosed fails unless the other side closed c without a word.
func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n != 0 || errors.Is(err, syscall.EAGAIN) || err == nil {
		t.Errorf("read %d bytes, %v; want the connection closed", n, err)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		t.Error("the connection was left open")
	}
}

func TestSorts(t *testing.T) {
	l, _ := start(t, Config{TLS: true})
	for _, c := range firstBytes {
		var ln net.Listener
		switch c.want {
		case frame, legacy, maybeLegacy:
			ln = l.Minecraft()
		case httpRequest:
			ln = l.HTTP()
		case tlsRecord:
			ln = l.TLS()
		case nothing:
			expectClosed(t, dial(t, l, c.bytes))
			continue
		default:
			continue
		}
		client := dial(t, l, c.bytes)
		conn := accept(t, ln)
		if want := c.want == legacy || c.want == maybeLegacy; Legacy(conn) != want {
			t.Errorf("%s: legacy is %v, want %v", c.name, !want, want)
		}
		if conn.RemoteAddr().String() != client.LocalAddr().String() {
			t.Errorf("%s: remote address %v, want %v", c.name, conn.RemoteAddr(), client.LocalAddr())
		}
		client.Write([]byte("more"))
		client.CloseWrite()
		got, err := io.ReadAll(conn)
		if want := append(slices.Clone(c.bytes), "more"...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: read % x, %v, want % x", c.name, got, err, want)
		}
	}
}

func TestEndings(t *testing.T) {
	l, n := start(t, Config{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, FirstByte: 150 * time.Millisecond,
	})
	for reason, send := range map[string]string{
		Silent: "", Slow: "GE", Unknown: "\x7f\x7f", TLSOff: "\x16\x03\x01", ProxyUntrusted: "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
	} {
		c := dial(t, l, []byte(send))
		expectClosed(t, c)
		n.wait(reason, 1)
	}
	dial(t, l, []byte("G")).Close()
	n.wait(HungUp, 1)
	// A loris that stays within every single pause is cut at the total.
	c := dial(t, l, nil)
	began := time.Now()
	for _, b := range []byte("POST") {
		c.Write([]byte{b})
		c.SetReadDeadline(time.Now().Add(60 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.EAGAIN) && !isTimeout(err) {
			break
		}
	}
	n.wait(Slow, 2)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("slow loris was cut after %v, want 150 ms", d)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestUnserved(t *testing.T) {
	l, n := start(t, Config{FirstByte: 50 * time.Millisecond})
	expectClosed(t, dial(t, l, handshake("localhost"))) // nobody accepts
	n.wait(Unserved, 1)
	l.HTTP().Close()
	if _, err := l.HTTP().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v, want net.ErrClosed", err)
	}
	expectClosed(t, dial(t, l, []byte("GET / HTTP/1.1\r\n\r\n")))
	n.wait(Unserved, 2)
}

func TestProxyHeader(t *testing.T) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	var asked []netip.Addr
	var mu sync.Mutex
	l, n := start(t, Config{Trusted: loopback, RequireProxy: true, Gate: func(a netip.Addr) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a)
		if a == netip.MustParseAddr("203.0.113.66") {
			return time.Second
		}
		return 0
	}})
	src, dst := &net.TCPAddr{IP: net.IPv4(198, 51, 100, 7), Port: 4711}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 25565}
	for _, version := range []byte{1, 2} { // as the library itself writes it
		h, err := proxyproto.HeaderProxyFromAddrs(version, src, dst).Format()
		if err != nil {
			t.Fatal(err)
		}
		client := dial(t, l, append(h, handshake("localhost")...))
		c := accept(t, l.Minecraft())
		if got := c.RemoteAddr().String(); got != "198.51.100.7:4711" {
			t.Errorf("v%d: remote address %s", version, got)
		}
		if ap := c.RemoteAddr().(*net.TCPAddr).AddrPort(); !ap.Addr().Is4() {
			t.Errorf("v%d: %v is not a plain IPv4 address", version, ap)
		}
		client.CloseWrite()
		if got, _ := io.ReadAll(c); !bytes.Equal(got, handshake("localhost")) {
			t.Errorf("v%d: read % x behind the header", version, got)
		}
	}
	// A client bigger than any buffer here: the header, then HTTP, in one segment.
	dial(t, l, append(v2(0x21, 0x21, addrs6, 3000), "GET / HTTP/1.1\r\n"...))
	if got := accept(t, l.HTTP()).RemoteAddr().String(); got != "[2001:db8::1]:12345" {
		t.Errorf("remote address %s", got)
	}

	expectClosed(t, dial(t, l, handshake("localhost")))
	n.wait(ProxyMissing, 1)
	expectClosed(t, dial(t, l, []byte("PROXY TCP9 x\r\n")))
	n.wait(ProxyInvalid, 1)
	expectClosed(t, dial(t, l, []byte("PROXY TCP4 203.0.113.66 10.0.0.1 1 2\r\n")))
	n.wait(Throttled, 1)

	mu.Lock()
	defer mu.Unlock()
	want := []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("203.0.113.66")}
	if !slices.Equal(asked, want) {
		t.Errorf("the throttle was asked about %v, want %v: once for each connection, with the player's address", asked, want)
	}
}

func TestProxyHeaderSlow(t *testing.T) {
	l, n := start(t, Config{Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.1/128")}, ProxyHeader: 100 * time.Millisecond})
	expectClosed(t, dial(t, l, []byte("PROXY TCP4 198.51.100.7")))
	n.wait(ProxySlow, 1)
	dial(t, l, handshake("localhost")) // no header, and none required
	if got := accept(t, l.Minecraft()).RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.1" {
		t.Errorf("remote address %s", got)
	}
}

// TestThrottleFirst: a throttled stranger is closed although it never wrote a byte, and costs no place.
func TestThrottleFirst(t *testing.T) {
	l, n := start(t, Config{Gate: never, FirstByte: time.Hour})
	full(t, l.told, MaxTold)
	expectClosed(t, dial(t, l, nil))
	n.wait(Throttled, 1)
	if got := l.room.Now(); got != 0 {
		t.Errorf("%d places taken", got)
	}
}

// never lets nobody in for a while.
func never(netip.Addr) time.Duration { return 2500 * time.Millisecond }

// full takes all places but n less.
func full(t *testing.T, p *limit.Places, n int) {
	t.Helper()
	for range n {
		if !p.Enter(new(limit.Place), netip.Addr{}, nil) {
			t.Fatal("no place")
		}
	}
}

// TestCrowded: whoever has said nothing for the longest goes for the next one; where nobody is silent the next one
// goes.
func TestCrowded(t *testing.T) {
	l, n := start(t, Config{FirstByte: time.Hour})
	full(t, l.room, MaxSniffing-1)
	silent := dial(t, l, nil)
	testkit.Until(t, "all places to be taken", func() bool { return l.room.Now() == MaxSniffing })
	dial(t, l, handshake("localhost"))
	accept(t, l.Minecraft())
	expectClosed(t, silent)
	n.wait(Crowded, 1)
	full(t, l.room, 1)
	expectClosed(t, dial(t, l, handshake("localhost")))
	n.wait(Crowded, 2)
}

// TestSilentNetwork: one network does not get all places, and takes none from others.
func TestSilentNetwork(t *testing.T) {
	l, n := start(t, Config{FirstByte: time.Hour})
	l.room.Set(limit.Bounds{All: 100, Network: 3}, nil)
	var mine []*net.TCPConn
	for range 5 {
		mine = append(mine, dial(t, l, []byte("P")))
		time.Sleep(5 * time.Millisecond) // so that the system has them in this order
	}
	expectClosed(t, mine[0])
	expectClosed(t, mine[1])
	n.wait(Crowded, 2)
	if got := l.room.Now(); got != 3 {
		t.Errorf("%d places", got)
	}
	mine[4].Write([]byte("OST / HTTP/1.1\r\n\r\n"))
	accept(t, l.HTTP())
}

// TestBalancerIsNoNetwork: connections of a balancer count for those whom its headers name.
func TestBalancerIsNoNetwork(t *testing.T) {
	l, n := start(t, Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, FirstByte: time.Hour})
	l.room.Set(limit.Bounds{All: 100, Network: 2}, nil)
	line := func(last int) []byte { return fmt.Appendf(nil, "PROXY TCP4 203.0.%d.1 127.0.0.1 1 2\r\n", last) }
	for i := range 6 {
		dial(t, l, line(i))
	}
	testkit.Until(t, "six places to be taken", func() bool { return l.room.Now() == 6 })
	first := dial(t, l, line(9))
	testkit.Until(t, "seven places to be taken", func() bool { return l.room.Now() == 7 })
	dial(t, l, line(9))
	testkit.Until(t, "eight places to be taken", func() bool { return l.room.Now() == 8 })
	dial(t, l, line(9))
	expectClosed(t, first)
	n.wait(Crowded, 1)
}

// TestThrottledAreTold: a few of those whose network has to wait are passed on to be told so, a request with an answer;
// and the more there are, the fewer of them cost anything.
func TestThrottledAreTold(t *testing.T) {
	l, n := start(t, Config{Gate: never, FirstByte: time.Hour, TLS: true})
	dial(t, l, handshake("localhost"))
	if got := Wait(accept(t, l.Minecraft())); got != never(netip.Addr{}) {
		t.Errorf("a player has to wait %v", got)
	}
	n.wait(Throttled, 1)
	c := dial(t, l, []byte("GET /voice HTTP/1.1\r\nHost: x\r\n\r\n"))
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 429 ") || !strings.Contains(string(answer), "Retry-After: 3\r\n") || !strings.Contains(string(answer), "limits.connections") {
		t.Errorf("%q, %v", answer, err)
	}
	n.wait(Throttled, 2)
	expectClosed(t, dial(t, l, []byte{0x16, 3, 1}))
	expectClosed(t, dial(t, l, []byte{0x02}))
	n.wait(Throttled, 4)
	began := time.Now()
	expectClosed(t, dial(t, l, nil)) // in spite of the hour
	if took := time.Since(began); took > 5*toldWithin {
		t.Errorf("silent for %v", took)
	}
	n.wait(Throttled, 5)
	testkit.Until(t, "nobody to be told any more", func() bool { return l.told.Now() == 0 })
	for range MaxTold / 8 {
		dial(t, l, nil)
	}
	testkit.Until(t, "as many to be told as may be", func() bool { return l.told.Now() == MaxTold/8 })
	expectClosed(t, dial(t, l, handshake("localhost")))
	if got := l.room.Now(); got != 0 {
		t.Errorf("%d places taken", got)
	}
}

// TestOddFamilies: a v2 header of a family that cannot have connected here says nothing of the client, as UNSPEC does.
func TestOddFamilies(t *testing.T) {
	l, _ := start(t, Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RequireProxy: true})
	for family, size := range map[byte]int{0x00: 0, 0x01: 12, 0x10: 12, 0x12: 12, 0x20: 36, 0x22: 36, 0x30: 216, 0x31: 216, 0x32: 216, 0x41: 3, 0xff: 300} {
		head := append([]byte(sigV2), 0x21, family, byte(size>>8), byte(size))
		c := dial(t, l, append(append(head, make([]byte, size)...), handshake("localhost")...))
		if got, want := accept(t, l.Minecraft()).RemoteAddr().String(), c.LocalAddr().String(); got != want {
			t.Errorf("family %#x: from %s, want %s", family, got, want)
		}
	}
}

// flaky fails a few times before it accepts.
type flaky struct {
	net.Listener
	left atomic.Int32
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{Listener: ln}
	f.left.Store(3)
	l, n := startOn(t, f, Config{})
	dial(t, l, handshake("localhost"))
	accept(t, l.Minecraft())
	if got := n.get(AcceptFailed); got != 3 {
		t.Errorf("%d failures counted, want 3", got)
	}
	// Close must not wait for the pause behind a failure.
	f.left.Store(1 << 20)
	dial(t, l, handshake("localhost"))
	n.wait(AcceptFailed, 8)
	began := time.Now()
	l.Close()
	if d := time.Since(began); d > time.Second/2 {
		t.Errorf("Close took %v", d)
	}
}

func TestBrokenListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(ln, Config{})
	defer l.Close()
	ln.Close()
	if err := l.Serve(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v, want net.ErrClosed", err)
	}
}

func TestClose(t *testing.T) {
	l, n := start(t, Config{FirstByte: time.Hour})
	silent := dial(t, l, []byte{0x10})            // too little to tell
	waiting := dial(t, l, handshake("localhost")) // told apart, and nobody accepts
	served := dial(t, l, []byte("GET / HTTP/1.1\r\n\r\n"))
	c := accept(t, l.HTTP())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	expectClosed(t, silent)
	expectClosed(t, waiting)
	if n.get(HungUp)+n.get(Unserved) != 2 {
		t.Errorf("counted %v, want two that were closed", n.by)
	}
	for _, ln := range []net.Listener{l.Minecraft(), l.HTTP(), l.TLS()} {
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("a connection that was handed out is not ours any more, but: %v", err)
	}
	served.Close()
}

func TestConn(t *testing.T) {
	l, _ := start(t, Config{})
	client := dial(t, l, handshake("localhost"))
	c := accept(t, l.Minecraft())

	// Read in small steps across the end of what was peeked.
	var got []byte
	for len(got) < len(handshake("localhost")) {
		if want := len(handshake("localhost")) - len(got); c.Buffered() != want {
			t.Errorf("%d bytes buffered, want %d", c.Buffered(), want)
		}
		b := make([]byte, 3)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	if !bytes.Equal(got, handshake("localhost")) {
		t.Errorf("read % x", got)
	}
	if c.peeked != nil {
		t.Error("the peeked bytes are kept in memory after they were read")
	}

	var _ syscall.Conn = c
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	opt := func(level, name int) (v int) {
		raw.Control(func(fd uintptr) { v, err = syscall.GetsockoptInt(int(fd), level, name) })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if opt(syscall.IPPROTO_TCP, syscall.TCP_NODELAY) == 0 || opt(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 || opt(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE) != 30 {
		t.Error("TCP_NODELAY or keep-alive is off")
	}
	if tcp, ok := c.NetConn().(*net.TCPConn); !ok || tcp.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("NetConn is %T", c.NetConn())
	}
	// Vectored writes must reach the socket in one go: the net package looks for the real thing.
	bufs := net.Buffers{[]byte("a"), []byte("b")}
	if _, err := bufs.WriteTo(c); err != nil {
		t.Fatal(err)
	}
	if b := make([]byte, 2); func() error { _, err := io.ReadFull(client, b); return err }() != nil || string(b) != "ab" {
		t.Errorf("the client read %q", b)
	}
	x := []byte("x")
	if got := testing.AllocsPerRun(50, func() {
		client.Write(x)
		c.Read(got[:8])
	}); got != 0 {
		t.Errorf("%v allocations per read", got)
	}
}

func TestWriteTo(t *testing.T) {
	l, _ := start(t, Config{})
	client := dial(t, l, handshake("localhost"))
	c := accept(t, l.Minecraft())
	client.Write([]byte("and more"))
	client.CloseWrite()
	var b bytes.Buffer
	if n, err := io.Copy(&b, c); err != nil || n != int64(b.Len()) || b.String() != string(handshake("localhost"))+"and more" {
		t.Errorf("copied %d bytes, %v: %q", n, err, b.String())
	}
}

// TestServers: the standard library's own HTTP and TLS, with everybody at once on one port.
func TestServers(t *testing.T) {
	l, _ := start(t, Config{TLS: true})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	pool := x509.NewCertPool()
	leaf, _ := x509.ParseCertificate(der)
	pool.AddCert(leaf)

	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %v", r.Method, r.RemoteAddr, len(body), r.TLS != nil)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(l.HTTP()) })
	wg.Go(func() { srv.Serve(tls.NewListener(l.TLS(), &tls.Config{Certificates: []tls.Certificate{cert}})) })
	wg.Go(func() {
		for {
			c, err := l.Minecraft().Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				io.Copy(c, c) // an echo
			})
		}
	})
	defer wg.Wait()
	defer l.Close()
	defer srv.Close()

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	defer client.CloseIdleConnections()
	var clients sync.WaitGroup
	for i := range 30 {
		clients.Go(func() {
			if i%3 == 2 {
				c, err := net.Dial("tcp", l.ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				h := handshake(strings.Repeat("h", 5*i))
				c.Write(h)
				c.(*net.TCPConn).CloseWrite()
				if got, err := io.ReadAll(bufio.NewReader(c)); err != nil || !bytes.Equal(got, h) {
					t.Errorf("echo %d: %d bytes, %v", i, len(got), err)
				}
				return
			}
			scheme := []string{"http", "https"}[i%3]
			resp, err := client.Post(scheme+"://"+l.ln.Addr().String()+"/x", "text/plain", strings.NewReader(strings.Repeat("y", 10000)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if !strings.HasPrefix(string(body), "POST 127.0.0.1:") || !strings.HasSuffix(string(body), fmt.Sprintf(" 10000 %v", scheme == "https")) {
				t.Errorf("%s: %q", scheme, body)
			}
		})
	}
	clients.Wait()
}

func BenchmarkAccept(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l := New(ln, Config{})
	var wg sync.WaitGroup
	wg.Go(func() { l.Serve() })
	h := handshake("localhost")
	b.ReportAllocs()
	for b.Loop() {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		c.Write(h)
		s, err := l.Minecraft().Accept()
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
		c.Close()
	}
	l.Close()
	wg.Wait()
}

// TestApply: other settings count for the next connection.
func TestApply(t *testing.T) {
	cfg := Config{TLS: true, FirstByte: time.Hour}
	l, n := start(t, cfg)
	cfg.Count = func(reason string, _ netip.Addr) { n.add(reason) }
	dial(t, l, []byte("\x16\x03\x01"))
	accept(t, l.TLS())
	cfg.TLS, cfg.Trusted, cfg.RequireProxy = false, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
	l.Apply(cfg)
	expectClosed(t, dial(t, l, []byte("\x16\x03\x01")))
	n.wait(ProxyMissing, 1)
	cfg.RequireProxy = false
	l.Apply(cfg)
	expectClosed(t, dial(t, l, []byte("\x16\x03\x01")))
	n.wait(TLSOff, 1)
	cfg.Trusted = nil
	l.Apply(cfg)
	expectClosed(t, dial(t, l, []byte("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n")))
	n.wait(ProxyUntrusted, 1)
}
