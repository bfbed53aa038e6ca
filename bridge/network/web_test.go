package network

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-mc/earshot/itest/testkit"
)

// TestVisitors: HTTP connections have a bound in all and for a network, and the one unused for the longest goes; a
// voice socket counts no more, and a reverse proxy is no network.
func TestVisitors(t *testing.T) {
	closed := make(chan string, 100)
	v := newVisitors(func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") }, func(_ string, from netip.Addr) { closed <- from.String() })
	v.set(32, nil) // two of a network
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijack" {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				t.Cleanup(func() { c.Close() })
				io.WriteString(c, "HTTP/1.1 200 taken over\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	s := newWeb(mux, v, slog.New(slog.DiscardHandler))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	defer func() {
		if err := (web{s}).stop(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
	}()
	open := func(from, request string) net.Conn {
		t.Helper()
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if request != "" {
			ask(t, c, request)
		}
		return c
	}
	now := func(n int) {
		t.Helper()
		if !testkit.Wait(testkit.Patience, func() bool { return v.places.Now() == n }) {
			t.Fatalf("%d connections, want %d", v.places.Now(), n)
		}
	}
	for range 5 { // these are voice sockets
		open("127.0.0.1", "/hijack")
		now(0)
	}
	a := open("127.0.0.1", "/")
	b := open("127.0.0.1", "")
	now(2)
	ask(t, a, "/") // the newer use counts
	open("127.0.0.1", "/")
	if n, err := b.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Error("the one that asked for nothing is still there")
	}
	if from := <-closed; from != "127.0.0.1" {
		t.Error(from)
	}
	now(2)
	for range 6 {
		open("127.0.0.2", "/") // a reverse proxy
	}
	now(8)
	select {
	case from := <-closed:
		t.Errorf("one more of %s had to go", from)
	default:
	}
}

// ask sends a request and reads the whole answer.
func ask(t *testing.T, c net.Conn, path string) {
	t.Helper()
	io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

// TestStopWeb: an answer that nobody reads does not hold up the end.
func TestStopWeb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe() // where every write waits for a read
		s := newWeb(http.NotFoundHandler(), newVisitors(func(netip.Addr) bool { return false }, func(string, netip.Addr) {}), slog.New(slog.DiscardHandler))
		ln := &once{c: ours, done: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(ln) }()
		io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		began := time.Now()
		if err := (web{s}).stop(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
		if took := time.Since(began); took > httpStop {
			t.Error(took)
		}
		theirs.Close()
	})
}

// TestAnswersHaveADeadline: a client that reads nothing is let go.
func TestAnswersHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := newWeb(http.NotFoundHandler(), newVisitors(func(netip.Addr) bool { return false }, func(string, netip.Addr) {}), slog.New(slog.DiscardHandler))
		ln := &once{c: ours, done: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(ln) }()
		io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(httpAnswer + time.Second)
		synctest.Wait()
		if _, err := io.WriteString(theirs, "G"); err == nil {
			t.Error("the connection is still open")
		}
		s.Close()
		<-served
	})
}

// once is a listener with one connection.
type once struct {
	c    net.Conn
	done chan struct{}
}

func (o *once) Accept() (net.Conn, error) {
	if c := o.c; c != nil {
		o.c = nil
		return c, nil
	}
	<-o.done
	return nil, net.ErrClosed
}

func (o *once) Close() error {
	select {
	case <-o.done:
	default:
		close(o.done)
	}
	return nil
}

func (o *once) Addr() net.Addr { return &net.TCPAddr{} }

// TestTurnedAwayIsSampled: the first of a kind is in the log, then one line a minute, with the setting and how many
// more there were; addresses only where they may be.
func TestTurnedAwayIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tr := newTurned(slog.New(slog.NewTextHandler(&out, nil)))
		a := netip.MustParseAddr("192.0.2.1")
		lines := func() string {
			s := out.String()
			out.Reset()
			return s
		}
		for reason, w := range connectionsTurned {
			for range 100 {
				tr.connection(reason, a)
			}
			if got := lines(); strings.Count(got, "\n") != 1 || !strings.Contains(got, w.setting) || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "from=192.0.2.1") {
				t.Errorf("%s: %s", reason, got)
			}
		}
		for e := range sessionsTurned {
			tr.session(e, a)
		}
		for reason := range socketsTurned {
			tr.voice(reason, a)
		}
		tr.http(httpCrowded, a)
		if got := strings.Count(lines(), "\n"); got != len(sessionsTurned)+len(socketsTurned)+1 {
			t.Errorf("%d lines", got)
		}
		time.Sleep(turnedEvery)
		tr.hide.Store(true)
		tr.connection("throttled", a)
		if got := lines(); !strings.Contains(got, "also=99") || strings.Contains(got, "192.0.2.1") {
			t.Error(got)
		}
		tr.connection("hung_up", a)
		tr.session(0, a)
		if got := lines(); got != "" {
			t.Errorf("nobody was turned away: %s", got)
		}
	})
}
