package rcon

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	mc "github.com/Tnze/go-mc/net"

	"github.com/earshot-mc/earshot/itest/peer"
)

var packet = peer.RCONPacket

type answered struct {
	id, kind int32
	text     string
}

// read takes one packet off the front of what came.
func read(r io.Reader) (a answered, err error) {
	a.id, a.kind, a.text, err = peer.ReadRCON(r)
	return a, err
}

// wire is a connection from an address.
type wire struct {
	net.Conn
	from net.Addr
}

func (w wire) RemoteAddr() net.Addr { return w.from }

// gate is a listener that tests connect to.
type gate struct {
	come chan net.Conn
	once sync.Once
	shut chan struct{}
}

func newGate() *gate { return &gate{come: make(chan net.Conn), shut: make(chan struct{})} }

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.come:
		return c, nil
	case <-g.shut:
		return nil, net.ErrClosed
	}
}

func (g *gate) Close() error   { g.once.Do(func() { close(g.shut) }); return nil }
func (g *gate) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects from an address.
func (g *gate) dial(from string) net.Conn {
	mine, its := net.Pipe()
	g.come <- wire{its, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 1))}
	return mine
}

// seen is what a server was told to run, and why connections were refused.
type seen struct {
	mu      sync.Mutex
	lines   []string
	refused []string
}

func (s *seen) take() (lines, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, refused = s.lines, s.refused
	s.lines, s.refused = nil, nil
	return lines, refused
}

// run has fn use a server that answers each line with itself in brackets, in a bubble.
func run(t *testing.T, fn func(t *testing.T, s *Server, g *gate, x *seen)) {
	synctest.Test(t, func(t *testing.T) {
		x, g := &seen{}, newGate()
		s := New(Config{
			Run: func(_ context.Context, _ netip.Addr, line string) string {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.lines = append(x.lines, line)
				return "<" + line + ">"
			},
			Refused: func(reason string, _ netip.Addr) {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.refused = append(x.refused, reason)
			},
		})
		s.SetPassword("secret")
		served := make(chan error, 1)
		go func() { served <- s.Serve(g) }()
		fn(t, s, g, x)
		s.Stop()
		if err := <-served; err != net.ErrClosed {
			t.Errorf("served: %v", err)
		}
		if n := s.Open(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// say sends bytes and reads one packet.
func say(t *testing.T, c net.Conn, b []byte) answered {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	a, err := read(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// enter connects and logs in.
func enter(t *testing.T, g *gate, from string) net.Conn {
	t.Helper()
	c := g.dial(from)
	if a := say(t, c, packet(7, 3, "secret")); a != (answered{7, 2, ""}) {
		t.Fatalf("the login is answered %+v", a)
	}
	return c
}

func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if a, err := read(c); err == nil {
		t.Errorf("%+v instead of the end", a)
	}
}

// TestCommandsAreAnswered: a client that has sent the password gives commands, one after the other, and each answer has
// the id of its command.
func TestCommandsAreAnswered(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
		c := enter(t, g, "127.0.0.1")
		for _, q := range []struct {
			sent []byte
			want answered
		}{
			{packet(1, 2, "glist"), answered{1, 0, "<glist>"}},
			{packet(-5, 2, ""), answered{-5, 0, "<>"}},
			{packet(2, 2, "alert two\nlines\x1b[2J \xff"), answered{2, 0, "<alert two lines [2J \uFFFD>"}},
			{packet(3, 2, "cut\x00here"), answered{3, 0, "<cut>"}},
			{packet(4, 0xc8, ""), answered{4, 0, "Unknown request c8"}}, // as tools look for the end of an answer
			{packet(5, 3, "secret"), answered{5, 2, ""}},
			{packet(6, 2, "ünï"), answered{6, 0, "<ünï>"}},
		} {
			if a := say(t, c, q.sent); a != q.want {
				t.Errorf("%q: %+v, want %+v", q.sent, a, q.want)
			}
		}
		go c.Write(slices.Concat(packet(8, 2, "a"), packet(9, 2, "b"))) // both at once
		for _, want := range []answered{{8, 0, "<a>"}, {9, 0, "<b>"}} {
			if a, err := read(c); a != want || err != nil {
				t.Errorf("%+v, want %+v (%v)", a, want, err)
			}
		}
		if s.Logins.Load() != 2 || s.Commands.Load() != 7 || s.Open() != 1 {
			t.Errorf("%d logins, %d commands, %d open", s.Logins.Load(), s.Commands.Load(), s.Open())
		}
		c.Close()
		synctest.Wait()
		if _, refused := x.take(); refused != nil || s.Open() != 0 {
			t.Errorf("a tool that leaves counts as %q", refused)
		}
	})
}

// TestLongAnswersComeInPieces: of 4096 bytes at most and whole characters, in one go, and not without end.
func TestLongAnswersComeInPieces(t *testing.T) {
	for _, n := range []int{4094, 4095, 4096, 4097, 8192, MaxAnswer, MaxAnswer + 1} {
		for _, of := range []string{"x", "ü", "☃"} {
			run(t, func(t *testing.T, s *Server, g *gate, _ *seen) {
				text := strings.Repeat(of, n/len(of))
				s.cfg.Run = func(context.Context, netip.Addr, string) string { return text }
				c := enter(t, g, "127.0.0.1")
				if _, err := c.Write(packet(1, 2, "x")); err != nil {
					t.Fatal(err)
				}
				var all strings.Builder
				for {
					a, err := read(c)
					if err != nil || a.id != 1 || a.kind != 0 || len(a.text) > 4096 || !utf8.ValidString(a.text) {
						t.Fatalf("%d bytes of %d/%d: %v", len(a.text), a.id, a.kind, err)
					}
					all.WriteString(a.text)
					if all.Len() >= min(len(text), MaxAnswer/len(of)*len(of)) {
						break
					}
				}
				if got := all.String(); !strings.HasPrefix(text, got) || len(got) > MaxAnswer {
					t.Errorf("%d bytes of %d", len(got), len(text))
				}
				if a := say(t, c, packet(2, 9, "")); a.id != 2 {
					t.Errorf("more comes: %+v", a)
				}
				c.Close()
			})
		}
	}
}

// TestNobodyCommandsWithoutThePassword: nothing but the password itself, as the first packet, lets anybody in.
func TestNobodyCommandsWithoutThePassword(t *testing.T) {
	command := packet(2, 2, "shutdown")
	for what, c := range map[string]struct {
		set    string
		first  []byte
		reason string
	}{
		"a wrong one":       {"secret", packet(1, 3, "Secret"), Password},
		"none":              {"secret", packet(1, 3, ""), Password},
		"the beginning":     {"secret", packet(1, 3, "secre"), Password},
		"more":              {"secret", packet(1, 3, "secrets"), Password},
		"a zero behind":     {"secret", packet(1, 3, "secret\x00"), Password},
		"a command first":   {"secret", command, NoLogin},
		"an unknown type":   {"secret", packet(1, 0, "secret"), NoLogin},
		"no password known": {"", packet(1, 3, ""), Password},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
				s.SetPassword(c.set)
				conn := g.dial("192.0.2.1")
				go conn.Write(slices.Concat(c.first, command))
				if a, err := read(conn); err != nil || a.id != -1 || a.kind != 2 {
					t.Errorf("%+v (%v)", a, err)
				}
				closed(t, conn)
				synctest.Wait()
				if lines, refused := x.take(); lines != nil || !slices.Equal(refused, []string{c.reason}) {
					t.Errorf("ran %q, refused %q", lines, refused)
				}
				conn.Close()
			})
		})
	}
}

// TestGuessesAreSlow: a wrong password is answered after a second, and after five of them that address has to wait,
// even with the right one. Others need not.
func TestGuessesAreSlow(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
		guess := func(from, password string) (took time.Duration, id int32) {
			c := g.dial(from)
			defer c.Close()
			begun := time.Now()
			if _, err := c.Write(packet(1, 3, password)); err != nil {
				return time.Since(begun), 0
			}
			a, err := read(c)
			if err != nil {
				return time.Since(begun), 0
			}
			return time.Since(begun), a.id
		}
		for range guesses.Burst {
			if took, id := guess("192.0.2.1", "wrong"); took < wrongAfter || id != -1 {
				t.Errorf("answered %d after %v", id, took)
			}
		}
		synctest.Wait()
		x.take()
		if _, id := guess("192.0.2.1", "secret"); id != 0 {
			t.Error("guesses do not run out")
		}
		synctest.Wait()
		if _, refused := x.take(); !slices.Equal(refused, []string{Throttled}) {
			t.Errorf("refused %q", refused)
		}
		if took, id := guess("192.0.2.2", "secret"); took != 0 || id != 1 {
			t.Errorf("somebody else: %d after %v", id, took)
		}
		time.Sleep(time.Minute)
		if _, id := guess("192.0.2.1", "secret"); id != 1 {
			t.Error("a minute later the right password is refused still")
		}
		s.SetPassword("other")
		if _, id := guess("192.0.2.2", "secret"); id != -1 {
			t.Error("the former password lets somebody in")
		}
		if _, id := guess("192.0.2.2", "other"); id != 1 {
			t.Error("the new password does not")
		}
	})
}

// TestEveryWaitEnds: for a login, for the rest of a packet, for a command, and for somebody who does not read.
func TestEveryWaitEnds(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
		gone := func(c net.Conn, after time.Duration, reason ...string) {
			t.Helper()
			time.Sleep(after - time.Millisecond)
			synctest.Wait()
			if s.Open() != 1 {
				t.Error("it ends too soon")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if _, refused := x.take(); s.Open() != 0 || !slices.Equal(refused, reason) {
				t.Errorf("%d open, refused %q", s.Open(), refused)
			}
			c.Close()
		}
		gone(g.dial("192.0.2.1"), loginWithin, NoLogin)
		c := g.dial("192.0.2.1")
		time.Sleep(5 * time.Second)
		c.Write(packet(1, 3, "secret")[:9])
		gone(c, packetWithin, NoLogin)
		c = enter(t, g, "192.0.2.1")
		c.Write(packet(1, 2, "x")[:5])
		gone(c, packetWithin, Malformed)
		c = enter(t, g, "192.0.2.1")
		gone(c, idleFor)
		c = enter(t, g, "192.0.2.1")
		c.Write(packet(1, 2, "x")) // and does not read
		gone(c, writeWithin)
	})
}

// TestHostileLengths: a length that no packet has ends the connection, and nothing is made for it.
func TestHostileLengths(t *testing.T) {
	for _, n := range []uint32{0, 9, 4097, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for _, inside := range []bool{false, true} {
			run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
				c := g.dial("192.0.2.1")
				if inside {
					say(t, c, packet(1, 3, "secret"))
				}
				c.Write(binary.LittleEndian.AppendUint32(nil, n))
				closed(t, c)
				synctest.Wait()
				if _, refused := x.take(); !slices.Equal(refused, []string{Malformed}) {
					t.Errorf("%d: refused %q", n, refused)
				}
				c.Close()
			})
		}
	}
}

// TestStrangersGiveWay: connections that do not log in push out each other, and not those that have.
func TestStrangersGiveWay(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
		in := enter(t, g, "127.0.0.1")
		var all []net.Conn
		for i := range 3 * strangers {
			all = append(all, g.dial(fmt.Sprintf("192.0.%d.1", i)))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := s.Open(); n != 1+strangers {
			t.Errorf("%d are open", n)
		}
		if _, refused := x.take(); len(refused) != 2*strangers || slices.ContainsFunc(refused, func(r string) bool { return r != Crowded }) {
			t.Errorf("refused %q", refused)
		}
		if a := say(t, in, packet(1, 2, "still")); a.text != "<still>" {
			t.Errorf("%+v", a)
		}
		for _, c := range append(all, in) {
			c.Close()
		}
	})
}

// TestStopWaitsForCommands: a command that runs is told to end and answered, and all others are gone.
func TestStopWaitsForCommands(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, x *seen) {
		s.cfg.Run = func(ctx context.Context, _ netip.Addr, line string) string {
			<-ctx.Done()
			time.Sleep(time.Second)
			return "ended"
		}
		stranger, idle, busy := g.dial("192.0.2.1"), enter(t, g, "127.0.0.1"), enter(t, g, "127.0.0.1")
		busy.Write(packet(1, 2, "long"))
		stopped := make(chan struct{})
		go func() { s.Stop(); close(stopped) }()
		closed(t, stranger)
		closed(t, idle)
		select {
		case <-stopped:
			t.Error("it does not wait")
		default:
		}
		if a, err := read(busy); err != nil || a.text != "ended" {
			t.Errorf("%+v (%v)", a, err)
		}
		closed(t, busy)
		<-stopped
		if _, refused := x.take(); refused != nil {
			t.Errorf("refused %q", refused)
		}
		for _, c := range []net.Conn{stranger, idle, busy} {
			c.Close()
		}
	})
}

// TestACommandEnds: one that takes too long is told to.
func TestACommandEnds(t *testing.T) {
	run(t, func(t *testing.T, s *Server, g *gate, _ *seen) {
		s.cfg.Run = func(ctx context.Context, _ netip.Addr, line string) string {
			<-ctx.Done()
			return ctx.Err().Error()
		}
		c := enter(t, g, "127.0.0.1")
		begun := time.Now()
		if a := say(t, c, packet(1, 2, "long")); a.text != context.DeadlineExceeded.Error() || time.Since(begun) != runWithin {
			t.Errorf("%+v after %v", a, time.Since(begun))
		}
		c.Close()
	})
}

// TestAnotherClient: one that was not written beside this server, over TCP.
func TestAnotherClient(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Run: func(_ context.Context, from netip.Addr, line string) string { return from.String() + " " + line }})
	s.SetPassword("secret")
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	if _, err := mc.DialRCON(ln.Addr().String(), "wrong"); err == nil {
		t.Error("a wrong password lets it in")
	}
	c, err := mc.DialRCON(ln.Addr().String(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"a", "b c"} {
		if err := c.Cmd(line); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Resp(); err != nil || got != "127.0.0.1 "+line {
			t.Errorf("%q (%v)", got, err)
		}
	}
	c.Close()
	s.Stop()
	<-served
}

// stream is a connection whose other side has said all of it, and takes everything.
type stream struct {
	net.Conn
	in *bytes.Reader
}

func (s stream) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s stream) Write(p []byte) (int, error)      { return len(p), nil }
func (s stream) Close() error                     { return nil }
func (s stream) SetReadDeadline(time.Time) error  { return nil }
func (s stream) SetWriteDeadline(time.Time) error { return nil }

// FuzzServe: whatever somebody sends, a command runs only behind the password, and it is a line.
func FuzzServe(f *testing.F) {
	in := packet(1, 3, "secret")
	f.Add(slices.Concat(in, packet(2, 2, "glist"), packet(3, 0, ""), packet(4, 3, "secret")))
	f.Add(packet(2, 2, "glist"))
	f.Add(slices.Concat(in, packet(2, 2, "a\x00b\n\xff"), []byte{0xff, 0xff, 0xff, 0xff}))
	f.Add(slices.Concat(in, in[:7]))
	f.Add(in[:3])
	f.Fuzz(func(t *testing.T, b []byte) {
		ran := 0
		s := New(Config{Run: func(_ context.Context, _ netip.Addr, line string) string {
			ran++
			if len(line) > 3*4096 || !utf8.ValidString(line) || strings.ContainsAny(line, "\x00\r\n\x1b") {
				t.Errorf("the line %q", line)
			}
			return line
		}})
		s.SetPassword("secret")
		s.ended = true // what is asked for the right password a second time waits for nothing
		s.cancel()
		s.serve(&conn{Conn: stream{in: bytes.NewReader(b)}, server: s, from: netip.MustParseAddr("127.0.0.1")})
		want, r := 0, bytes.NewReader(b)
		for first := true; ; first = false {
			a, err := read(r)
			if err != nil || first && (a.kind != 3 || a.text != "secret") || a.kind == 3 && a.text != "secret" {
				break
			}
			if a.kind == 2 {
				want++
			}
		}
		if ran > want {
			t.Errorf("%d commands ran, of %d that came behind the password", ran, want)
		}
	})
}
