package session

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// rawServer hands its connections to f, each in a goroutine of its own, and closes them when f returns.
func rawServer(t testing.TB, name string, f func(c *net.TCPConn)) backend.Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(patienceInTests))
				f(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return backend.Server{Name: name, Address: ln.Addr().String()}
}

// deadServer returns an address at which nothing listens.
func deadServer(t testing.TB, name string) backend.Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return backend.Server{Name: name, Address: ln.Addr().String()}
}

func (e *env) tcp() *net.TCPConn {
	e.t.Helper()
	c, err := net.Dial("tcp", e.ln.Addr().String())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patienceInTests))
	return c.(*net.TCPConn)
}

// liteHello returns the handshake of a client of no version that there is.
func liteHello(host string) []byte {
	return framed(-1, 0, packet.AppendHandshake(nil, packet.Handshake{Protocol: 99999, Host: host, Port: 4711, Intent: packet.IntentLogin}))
}

// liteEnv makes an environment that passes connections by *.pack.example on to servers.
func liteEnv(t testing.TB, change func(*Config), servers ...backend.Server) *env {
	return newEnv(t, func(c *Config) {
		h := Host{Name: "*.pack.example", Lite: []string{"not configured"}}
		for _, b := range servers {
			c.Settings.Servers = append(c.Settings.Servers, b)
			h.Lite = append(h.Lite, strings.ToUpper(b.Name))
		}
		c.Settings.Hosts = []Host{h}
		if change != nil {
			change(c)
		}
	})
}

// TestLiteBytes: every byte from the handshake on gets to the first server that can be reached, as it was, and back,
// and each side can finish after the other has.
func TestLiteBytes(t *testing.T) {
	up, down := make([]byte, 3<<20), make([]byte, 2<<20)
	r := rand.NewChaCha8([32]byte{})
	r.Read(up)
	r.Read(down)
	for name, host := range map[string]string{
		"plain": "a.pack.example", "forge": "A.Pack.Example.\x00FML3\x00", "forwarded": "x.pack.example\x00203.0.113.7\x00069a79f444e94726a5befca90e38aaf5\x00[]",
		"real ip": "b.c.pack.example///203.0.113.7:1///2",
	} {
		for _, header := range []bool{false, true} {
			got := make(chan []byte, 1)
			b := rawServer(t, "up", func(c *net.TCPConn) {
				c.Write(down)
				b, _ := io.ReadAll(c) // the client finishes first
				c.Write([]byte("the end"))
				c.CloseWrite()
				got <- b
			})
			b.SendProxy = header
			e := liteEnv(t, nil, deadServer(t, "down"), b)
			c := e.tcp()
			hello := liteHello(host)
			c.Write(hello[:3])
			c.Write(append(hello[3:], up[:100]...))
			go func() {
				c.Write(up[100:])
				c.CloseWrite()
			}()
			if back, err := io.ReadAll(c); err != nil || !bytes.Equal(back, append(bytes.Clone(down), "the end"...)) {
				t.Errorf("%s: %d bytes came back changed, %v", name, len(back), err)
			}
			b1 := <-got
			if header {
				port := c.LocalAddr().(*net.TCPAddr).Port
				if !bytes.HasPrefix(b1, []byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01")) || int(b1[24])<<8|int(b1[25]) != port {
					t.Errorf("%s: the header is %x", name, b1[:28])
				}
				b1 = b1[28:]
			}
			if !bytes.Equal(b1, append(bytes.Clone(hello), up...)) {
				t.Errorf("%s: %d bytes arrived changed: %.200q", name, len(b1), b1)
			}
			e.ended(EndForwarded, 1)
			l := &e.core.Counters.Lite
			if l.Connections.Load() != 1 || l.Open.Load() != 0 || l.Failed.Load() != 0 || l.Bytes[proto.Serverbound].Load() != uint64(len(hello)+len(up)) ||
				l.Bytes[proto.Clientbound].Load() != uint64(len(down)+7) {
				t.Errorf("%s: counted %d, %d open, %d up, %d down", name, l.Connections.Load(), l.Open.Load(), l.Bytes[0].Load(), l.Bytes[1].Load())
			}
		}
	}
}

// TestLiteOrder: connections that are passed on are offered servers as players are: by the strategy, past a server that
// keeps failing, and to none that is being drained.
func TestLiteOrder(t *testing.T) {
	here := make(chan string, 100)
	up := func(name string) backend.Server {
		return rawServer(t, name, func(c *net.TCPConn) {
			io.ReadFull(c, make([]byte, len(liteHello("a.pack.example"))))
			here <- name
			io.Copy(io.Discard, c)
		})
	}
	come := func(e *env) string {
		t.Helper()
		e.tcp().Write(liteHello("a.pack.example"))
		select {
		case name := <-here:
			return name
		case <-time.After(patienceInTests):
			t.Fatal("nobody is passed on")
		}
		return ""
	}

	e := liteEnv(t, func(c *Config) { c.Settings.Fallback.Strategy = LeastPlayers }, up("a"), up("b"), up("c"))
	got := map[string]int{}
	for range 9 {
		got[come(e)]++
	}
	if got["a"] != 3 || got["b"] != 3 || got["c"] != 3 {
		t.Errorf("not to where the fewest are: %v", got)
	}

	down := deadServer(t, "down")
	e = liteEnv(t, func(c *Config) { c.Settings.TCPChecks = true }, down, up("a"), up("b"))
	for range 10 {
		if to := come(e); to != "a" {
			t.Errorf("to %s, which is not the first that is up", to)
		}
	}
	if n := e.core.Counters.DialFails.Load(); n > 3 {
		t.Errorf("%d times a server was dialled that keeps failing", n)
	}
	if err := e.core.Drain("a", true, false, nil); err != nil {
		t.Fatal(err)
	}
	if to := come(e); to != "b" {
		t.Errorf("to %s although a is draining", to)
	}
}

// TestLiteIsNoPlayer: whoever is passed on holds no place among those who are not players yet, is none either, and is
// let go when the proxy shuts down, whichever of the two does not say a word.
func TestLiteIsNoPlayer(t *testing.T) {
	here := make(chan struct{}, 10)
	b := rawServer(t, "up", func(c *net.TCPConn) {
		io.ReadFull(c, make([]byte, len(liteHello("a.pack.example"))))
		here <- struct{}{}
		c.SetDeadline(time.Time{})
		io.Copy(io.Discard, c)
	})
	e := liteEnv(t, func(c *Config) { c.Pending = limit.NewPlaces(limit.Bounds{All: 1}) }, b)
	var all []*net.TCPConn
	for range 5 {
		c := e.tcp()
		c.Write(liteHello("a.pack.example"))
		select {
		case <-here:
		case <-time.After(patienceInTests):
			t.Fatal("nobody is passed on")
		}
		all = append(all, c)
	}
	if n := e.core.Counters.Lite.Open.Load(); n != 5 || e.core.Online() != 0 || e.core.Open() != 5 || len(e.core.Players()) != 0 {
		t.Errorf("%d passed on, %d players", n, e.core.Online())
	}
	all[0].Close()
	e.ended(EndForwarded, 1)
	go e.core.Shutdown(context.Background(), "over") // with all the time it wants, so that nobody is cut off
	e.ended(EndShutdown, 4)
	for _, c := range all[1:] {
		if b, _ := io.ReadAll(c); len(b) != 0 {
			t.Errorf("told %q, which it cannot understand", b)
		}
	}
}

// explosive is a connection that cannot be read.
type explosive struct{ net.Conn }

func (explosive) Read([]byte) (int, error) { panic("boom") }

// TestLitePanic: a fault of ours ends the one connection that it is in, be it before or after a server was reached.
func TestLitePanic(t *testing.T) {
	for where, dial := range map[string]func(context.Context) (net.Conn, error){
		"choosing": func(context.Context) (net.Conn, error) { panic("boom") },
		"passing on": func(context.Context) (net.Conn, error) {
			c, s := net.Pipe()
			go io.Copy(io.Discard, s)
			return explosive{c}, nil
		},
	} {
		t.Run(where, func(t *testing.T) {
			here := make(chan struct{}, 1)
			good := rawServer(t, "good", func(c *net.TCPConn) {
				here <- struct{}{}
				io.Copy(c, c)
			})
			e := newEnv(t, func(c *Config) {
				c.Settings.Servers = []backend.Server{good, {Name: "bad", Dial: dial}}
				c.Settings.Hosts = []Host{{Name: "good.example", Lite: []string{"good"}}, {Name: "bad.example", Lite: []string{"bad"}}}
			})
			other := e.tcp()
			other.Write(liteHello("good.example"))
			<-here
			c := e.tcp()
			c.Write(liteHello("bad.example"))
			io.Copy(io.Discard, c)
			e.ended(EndPanic, 1)
			other.Write([]byte("still here"))
			want := append(liteHello("good.example"), "still here"...)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(other, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("another connection: %q, %v", got, err)
			}
		})
	}
}

// TestLiteUnreachable: a client is told in the one way that every version understands, and one that leaves or is sent
// away while a server is dialled does not stay.
func TestLiteUnreachable(t *testing.T) {
	e := liteEnv(t, nil, deadServer(t, "down"), deadServer(t, "gone"))
	c := e.tcp()
	c.Write(append(liteHello("a.pack.example"), framed(-1, 0, field.AppendString(nil, "Steve"))...))
	b, _ := io.ReadAll(c)
	if !bytes.Contains(b, []byte("No server is available")) || b[1] != disconnectLogin {
		t.Errorf("told %q", b)
	}
	e.ended(EndNoServer, 1)
	if n := e.core.Counters.Lite.Failed.Load(); n != 1 {
		t.Errorf("%d counted", n)
	}
	if !strings.Contains(e.log.String(), "cannot be reached") || !strings.Contains(e.log.String(), "not configured") {
		t.Error("the log does not say why")
	}

	for what, end := range map[string]func(e *env, c *net.TCPConn){
		"leaves": func(e *env, c *net.TCPConn) { c.Close(); e.ended(EndClosed, 1) },
		"is sent away": func(e *env, c *net.TCPConn) {
			e.shutdown("over")
			if b, _ := io.ReadAll(c); !bytes.Contains(b, []byte("over")) {
				t.Errorf("told %q", b)
			}
			e.ended(EndShutdown, 1)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dialling := make(chan struct{}, 1)
			e := liteEnv(t, func(c *Config) { c.Settings.Timeouts.BackendDial = never }, backend.Server{Name: "slow", Dial: hanging(dialling)})
			c := e.tcp()
			c.Write(liteHello("a.pack.example"))
			<-dialling
			end(e, c)
		})
	}
}

// TestLiteTimes: two sides that say nothing for longer than any timeout stay joined; but one that does not take what it
// is sent, or that stays when the other has gone, does not keep the connection for ever.
func TestLiteTimes(t *testing.T) {
	change := func(c *Config) {
		c.Settings.Hosts = []Host{{Name: "h", Lite: []string{"lobby"}}}
		c.Settings.Timeouts = Timeouts{}
	}
	// begin joins a client and a server that has read its handshake.
	begin := func(b *bubble) (c *peer, s net.Conn) {
		c = b.connect(767)
		c.shake()
		s = <-b.dials
		if n, err := s.Read(make([]byte, 100)); n == 0 || err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.reset()
		return c, s
	}
	inBubble(t, change, func(b *bubble) {
		c, s := begin(b)
		time.Sleep(5 * time.Hour)
		for _, d := range [][2]net.Conn{{c.conn, s}, {s, c.conn}} {
			go d[0].Write([]byte("still here"))
			got := make([]byte, 10)
			if _, err := io.ReadFull(d[1], got); err != nil || string(got) != "still here" {
				t.Errorf("%q, %v", got, err)
			}
		}
		s.Close()
		c.closed()
		synctest.Wait()
		if n := b.core.Counters.Ended(EndForwarded); n != 1 {
			t.Errorf("%d ended", n)
		}
	})
	for what, side := range map[string]int{"the client": 0, "the server": 1} {
		inBubble(t, change, func(b *bubble) {
			c, s := begin(b)
			from := []net.Conn{s, c.conn}[side] // to whom the other does not listen
			go func() {
				for {
					if _, err := from.Write(make([]byte, 100)); err != nil {
						return
					}
				}
			}()
			for b.core.Counters.Ended(EndForwarded) == 0 {
				if time.Sleep(time.Second); time.Since(b.start) > time.Hour {
					t.Fatalf("%s keeps the connection", what)
				}
			}
			b.took(30*time.Second, 35*time.Second)
			from.Close()
		})
	}
	inBubble(t, change, func(b *bubble) {
		_, s := begin(b)
		s.Close() // which a pipe cannot pass on to a client that goes on listening
		for b.core.Counters.Ended(EndForwarded) == 0 {
			if time.Sleep(time.Second); time.Since(b.start) > time.Hour {
				t.Fatal("the client keeps the connection")
			}
		}
		b.took(30*time.Second, 2*time.Second)
	})
}

// hanging dials for as long as it may.
func hanging(begun chan<- struct{}) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
}
