package socket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is a handler that keeps what it got, as "b:…" and "t:…".
type record struct {
	mu  sync.Mutex
	got []string
	on  func(string)
}

func (r *record) Binary(p []byte) { r.add("b:" + string(p)) }
func (r *record) Text(p []byte)   { r.add("t:" + string(p)) }

func (r *record) add(s string) {
	r.mu.Lock()
	r.got = append(r.got, s)
	r.mu.Unlock()
	if r.on != nil {
		r.on(s)
	}
}

// peer is the client's end of a connection.
type peer struct {
	t    testing.TB
	conn net.Conn
	br   *bufio.Reader
}

// tcp returns both ends of a connection on loopback.
func tcp(t testing.TB) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return server, client
}

func newSweeper(t testing.TB) *Sweeper {
	w := NewSweeper()
	t.Cleanup(w.Close)
	return w
}

// run starts a socket and returns a function that waits for its end.
func run(t testing.TB, s *Socket, h Handler) (wait func() error) {
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- s.Run(ctx, h) }()
	ended := false
	wait = func() error {
		ended = true
		return <-done
	}
	t.Cleanup(func() {
		cancel()
		if !ended {
			s.conn.Close()
			<-done
		}
	})
	return wait
}

// open starts a socket over TCP.
func open(t testing.TB, h Handler) (s *Socket, p *peer, wait func() error) {
	t.Helper()
	sweep := newSweeper(t)
	server, client := tcp(t)
	s = New(server, nil, sweep)
	if _, ok := s.sink.(*direct); !ok {
		t.Fatalf("a TCP connection is written through %T", s.sink)
	}
	return s, &peer{t, client, bufio.NewReader(client)}, run(t, s, h)
}

// frame encodes a masked frame.
func frame(op ws.OpCode, fin bool, p string) []byte {
	return ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, fin, []byte(p))))
}

func (p *peer) send(b ...[]byte) {
	p.t.Helper()
	if _, err := p.conn.Write(bytes.Join(b, nil)); err != nil {
		p.t.Fatal(err)
	}
}

// next reads one frame, e.g. "binary abc" or "close 1001 shutting down".
func (p *peer) next() string {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	s, err := readFrame(p.br)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func readFrame(r io.Reader) (string, error) {
	h, err := ws.ReadHeader(r)
	if err != nil {
		return "", err
	}
	if err := ws.CheckHeader(h, ws.StateClientSide); err != nil || !h.Fin || h.Length > 1<<20 {
		return "", fmt.Errorf("bad header %+v: %v", h, err)
	}
	b := make([]byte, h.Length)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", err
	}
	switch h.OpCode {
	case ws.OpBinary:
		return "binary " + string(b), nil
	case ws.OpText:
		return "text " + string(b), nil
	case ws.OpPing:
		return "ping " + string(b), nil
	case ws.OpPong:
		return "pong " + string(b), nil
	case ws.OpClose:
		code, reason := ws.ParseCloseFrameData(b)
		return fmt.Sprintf("close %d %s", code, reason), nil
	}
	return "", fmt.Errorf("opcode %d", h.OpCode)
}

func (p *peer) want(frames ...string) {
	p.t.Helper()
	for _, f := range frames {
		if got := p.next(); got != f {
			p.t.Fatalf("got %.80q, want %.80q", got, f)
		}
	}
}

func (p *peer) wantEOF() {
	p.t.Helper()
	p.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if b, err := io.ReadAll(p.br); err != nil || len(b) > 0 {
		p.t.Fatalf("%d more bytes, %v", len(b), err)
	}
}

func wantClosed(t *testing.T, err error, code Code, byPeer bool) {
	t.Helper()
	var c *Closed
	if !errors.As(err, &c) || c.Code != code || c.Peer != byPeer {
		t.Fatalf("ended with %v, want code %d", err, code)
	}
}

const (
	text, bin, cont    = ws.OpText, ws.OpBinary, ws.OpContinuation
	ping, pong, bye    = ws.OpPing, ws.OpPong, ws.OpClose
	wide, pair         = "語", "😀" // three bytes and one character, four bytes and two
	whole, more        = true, false
	notUTF8, cutInRune = "\xff\xfe", "\xe8\xaa"
)

func TestWhatPeersSend(t *testing.T) {
	a := strings.Repeat
	long := func(first, second byte, length uint64) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{first, second}, length), 1, 2, 3, 4)
	}
	for _, c := range []struct {
		name string
		in   [][]byte
		got  string // what the handler saw: sizes of messages
		code Code   // that the socket closes with; 0: stays open
	}{
		{"binary", [][]byte{frame(bin, whole, "abc")}, "b3", 0},
		{"text", [][]byte{frame(text, whole, "abcd")}, "t4", 0},
		{"empty ones", [][]byte{frame(bin, whole, ""), frame(text, whole, "")}, "b0 t0", 0},
		{"in order", [][]byte{frame(bin, whole, "1"), frame(text, whole, "22"), frame(bin, whole, "333")}, "b1 t2 b3", 0},
		{"longest binary", [][]byte{frame(bin, whole, a("x", 1292))}, "b1292", 0},
		{"binary too long", [][]byte{frame(bin, whole, "1"), frame(bin, whole, a("x", 1293))}, "b1", TooBig},
		{"binary far too long", [][]byte{frame(bin, whole, a("x", 100_000))}, "", TooBig},
		{"binary of 2^62", [][]byte{long(0x82, 0xff, 1<<62)}, "", TooBig},
		{"length with the top bit", [][]byte{long(0x82, 0xff, 1<<63)}, "", Protocol},
		{"longest text", [][]byte{frame(text, whole, a("x", 1024))}, "t1024", 0},
		{"text too long", [][]byte{frame(text, whole, a("x", 1025))}, "", TooBig},
		{"longest text, three bytes each", [][]byte{frame(text, whole, a(wide, 1024))}, "t3072", 0},
		{"text too long, three bytes each", [][]byte{frame(text, whole, a(wide, 1025))}, "", TooBig},
		{"longest text, pairs", [][]byte{frame(text, whole, a(pair, 512))}, "t2048", 0},
		{"text too long, pairs", [][]byte{frame(text, whole, a(pair, 512)+"x")}, "", TooBig},
		{"text not UTF-8", [][]byte{frame(text, whole, notUTF8)}, "", InvalidData},
		{"text cut in a character", [][]byte{frame(text, whole, cutInRune)}, "", InvalidData},
		{"fragments", [][]byte{frame(bin, more, "ab"), frame(cont, more, ""), frame(cont, whole, "c"), frame(bin, whole, "d")}, "b3 b1", 0},
		{"fragments cut in a character", [][]byte{frame(text, more, cutInRune), frame(cont, whole, "\x9e")}, "t3", 0},
		{"fragments, not UTF-8 together", [][]byte{frame(text, more, cutInRune), frame(cont, whole, "x")}, "", InvalidData},
		{"fragments, control between", [][]byte{frame(bin, more, "ab"), frame(ping, whole, ""), frame(pong, whole, "x"), frame(cont, whole, "c")}, "b3", 0},
		{"fragments, longest", [][]byte{frame(bin, more, a("x", 1000)), frame(cont, whole, a("x", 292))}, "b1292", 0},
		{"fragments too long", [][]byte{frame(bin, more, a("x", 1000)), frame(cont, whole, a("x", 293))}, "", TooBig},
		{"many small fragments", append([][]byte{frame(bin, more, "x")}, bytes.Split(bytes.Repeat(append(frame(cont, more, "xxxx"), '|'), 400), []byte("|"))...), "", TooBig},
		{"fragments of text too long", [][]byte{frame(text, more, a("x", 1024)), frame(cont, whole, "x")}, "", TooBig},
		{"not masked", [][]byte{ws.MustCompileFrame(ws.NewBinaryFrame([]byte("abc")))}, "", Protocol},
		{"reserved opcode", [][]byte{frame(3, whole, "abc")}, "", Protocol},
		{"reserved control opcode", [][]byte{frame(11, whole, "abc")}, "", Protocol},
		{"compressed", [][]byte{{0xc2, 0x81, 0, 0, 0, 0, 1}}, "", Protocol},
		{"continuation of nothing", [][]byte{frame(cont, whole, "abc")}, "", Protocol},
		{"message inside a message", [][]byte{frame(bin, more, "abc"), frame(bin, whole, "abc")}, "", Protocol},
		{"fragmented ping", [][]byte{frame(ping, more, "abc")}, "", Protocol},
		{"long ping", [][]byte{{0x89, 0xfe, 0, 126, 0, 0, 0, 0}}, "", Protocol},
		{"close with half a code", [][]byte{frame(bye, whole, "\x03")}, "", Protocol},
		{"close with 1005", [][]byte{frame(bye, whole, "\x03\xed")}, "", Protocol},
		{"close with bad text", [][]byte{frame(bye, whole, "\x03\xe8\xff")}, "", Protocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &record{}
			_, p, wait := open(t, h)
			p.send(c.in...)
			if c.code == 0 {
				p.send(frame(ping, whole, "end"))
				for p.next() != "pong end" {
				}
				p.send(frame(bye, whole, "\x03\xe8"))
				p.want("close 1000 ")
				wantClosed(t, wait(), 1000, true)
			} else {
				got := p.next()
				if !strings.HasPrefix(got, fmt.Sprintf("close %d %s", c.code, c.code.Reason())) {
					t.Fatalf("peer is told %q, want %d", got, c.code)
				}
				p.conn.Close()
				wantClosed(t, wait(), c.code, false)
			}
			var seen []string
			for _, m := range h.got {
				seen = append(seen, fmt.Sprint(m[:1], len(m)-2))
			}
			if got := strings.Join(seen, " "); got != c.got {
				t.Errorf("handler saw %q, want %q", got, c.got)
			}
		})
	}
}

func TestBytesReadWithTheRequest(t *testing.T) {
	for _, size := range []int{16, 4096, 16384} { // of the reader, in bytes
		h := &record{}
		server, client := tcp(t)
		in := bytes.Join([][]byte{frame(bin, whole, strings.Repeat("a", 1000)), frame(text, whole, strings.Repeat("b", 1000))}, nil)
		in = bytes.Repeat(in, 5)
		buffered := in[:min(len(in)-3, size)]
		br := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(buffered), server), size)
		if _, err := br.Peek(len(buffered)); err != nil {
			t.Fatal(err)
		}
		s := New(server, br, newSweeper(t))
		wait := run(t, s, h)
		p := &peer{t, client, bufio.NewReader(client)}
		p.send(in[len(buffered):], frame(bye, whole, ""))
		p.want("close 0 ")
		wantClosed(t, wait(), 1005, true)
		if len(h.got) != 10 {
			t.Errorf("reader of %d: %d messages of 10", size, len(h.got))
		}
	}
}

// peeked is a connection of which bytes have been read already, as a listener's are; it reads like any other.
type peeked struct {
	*net.TCPConn
	had []byte
}

func (p *peeked) Buffered() int { return len(p.had) }

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.had) > 0 {
		n := copy(b, p.had)
		p.had = p.had[n:]
		return n, nil
	}
	return p.TCPConn.Read(b)
}

// What a connection holds itself is read before what its descriptor has.
func TestBytesReadWithTheConnection(t *testing.T) {
	first := frame(bin, whole, "first")
	for _, held := range [][]byte{first[:3], nil} {
		h := &record{}
		server, client := tcp(t)
		s := New(&peeked{server.(*net.TCPConn), held}, nil, newSweeper(t))
		if _, past := s.src.(*direct); past != (held == nil) {
			t.Errorf("holding %d bytes, it is read past Read: %v", len(held), past)
		}
		wait := run(t, s, h)
		p := &peer{t, client, bufio.NewReader(client)}
		p.send(first[len(held):], frame(bin, whole, "second"), frame(bye, whole, ""))
		p.want("close 0 ")
		wantClosed(t, wait(), 1005, true)
		if len(h.got) != 2 || h.got[0] != "b:first" || h.got[1] != "b:second" {
			t.Errorf("%q", h.got)
		}
	}
}

func TestClose(t *testing.T) {
	for _, code := range []Code{ShuttingDown, Protocol, Unsupported, InvalidData, TooBig, Failed, Replaced, Left, Flood} {
		if code.Reason() == "" {
			t.Errorf("%d has no text", code)
		}
		h := &record{}
		s, p, wait := open(t, h)
		s.Close(code, "")
		s.Close(Failed, "a second time")
		p.want(fmt.Sprintf("close %d %s", code, code.Reason()))
		p.send(frame(bin, whole, "too late"), frame(bye, whole, "\x03\xe8"))
		p.wantEOF()
		wantClosed(t, wait(), code, false)
		if len(h.got) > 0 {
			t.Errorf("messages after the close: %v", h.got)
		}
		s.Audio([]byte("x"), nil) // nothing happens
		s.View(0, []byte("x"))
		s.Reply([]byte("x"))
		if got := s.Stats(); got.Drops[DropClosed] != 1 || got.Sent != 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestCloseReasonIsCut(t *testing.T) {
	s, p, _ := open(t, &record{})
	s.Close(Flood, strings.Repeat("x", 200))
	p.want("close 4008 " + strings.Repeat("x", 123))
}

func TestContextEndsTheSocket(t *testing.T) {
	server, client := tcp(t)
	s := New(server, nil, newSweeper(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, &record{}) }()
	p := &peer{t, client, bufio.NewReader(client)}
	p.send(frame(ping, whole, "1"))
	p.want("pong 1")
	cancel()
	p.want("close 1001 shutting down")
	p.send(frame(bye, whole, "\x03\xe9"))
	p.wantEOF()
	wantClosed(t, <-done, ShuttingDown, false)
}

func TestPeerVanishes(t *testing.T) {
	_, p, wait := open(t, &record{})
	p.conn.Close()
	if err := wait(); !errors.Is(err, io.EOF) {
		t.Fatalf("ended with %v", err)
	}
}

// A handler that panics takes its socket along, not the connection's peer.
func TestPanicClosesTheConnection(t *testing.T) {
	sweep := newSweeper(t)
	server, client := tcp(t)
	s := New(server, nil, sweep)
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		s.Run(context.Background(), &record{on: func(string) { panic("boom") }})
	}()
	p := &peer{t, client, bufio.NewReader(client)}
	p.send(frame(bin, whole, "x"))
	p.wantEOF()
	if got := <-done; got != "boom" || sweep.Len() != 0 {
		t.Fatalf("recovered %v, %d sockets left", got, sweep.Len())
	}
}

func TestOnlyTheNewestPingIsAnswered(t *testing.T) {
	s, p, _ := open(t, &record{})
	for i := range 50 { // in one go: the answers meet the write gap
		p.send(frame(ping, whole, fmt.Sprint(i)))
	}
	n := 1
	for ; p.next() != "pong 49"; n++ {
	}
	t.Logf("%d answers to 50 pings, %d writes", n, s.Stats().Writes)
	if writes := s.Stats().Writes; writes > 50 {
		t.Errorf("%d writes", writes)
	}
}

// pipe starts a socket over net.Pipe, which synctest can follow.
func pipe(t *testing.T, h Handler) (s *Socket, p *peer, end func(), wait func() error) {
	server, client := net.Pipe()
	sweep := NewSweeper()
	s = New(server, nil, sweep)
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background(), h) }()
	return s, &peer{t, client, bufio.NewReader(client)}, func() { client.Close(); sweep.Close() }, func() error { return <-done }
}

func TestPingAndDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, p, end, wait := pipe(t, &record{})
		defer end()
		p.conn.SetReadDeadline(time.Time{})
		for i := range 5 { // a peer that only answers pings lives
			if s, err := readFrame(p.br); s != "ping " || err != nil {
				t.Fatal(s, err)
			}
			if at := time.Since(start); at < 10*time.Second*time.Duration(i+1) || at > 11*time.Second*time.Duration(i+1) {
				t.Fatalf("ping %d after %v", i, at)
			}
			p.send(frame(pong, whole, ""))
		}
		last := time.Now()
		if s, err := readFrame(p.br); s != "ping " || err != nil {
			t.Fatal(s, err)
		}
		_, err := readFrame(p.br) // the second ping comes as the peer is given up
		for err == nil {
			_, err = readFrame(p.br)
		}
		if silent := time.Since(last); silent < 20*time.Second || silent > 21*time.Second {
			t.Fatalf("given up after %v", silent)
		}
		if err := wait(); !errors.Is(err, ErrDead) {
			t.Fatal(err)
		}
	})
}

func TestDataIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, end, wait := pipe(t, &record{})
		defer end()
		go io.Copy(io.Discard, p.br) // never answers a ping
		for range 10 {
			time.Sleep(15 * time.Second)
			p.send(frame(bin, whole, "x"))
		}
		start := time.Now()
		if err := wait(); !errors.Is(err, ErrDead) || time.Since(start) < 20*time.Second || time.Since(start) > 21*time.Second {
			t.Fatal(err, time.Since(start))
		}
	})
}

// A peer that neither answers a close frame nor goes away is left after a while, and one that does not even read it,
// too.
func TestCloseDoesNotWaitForever(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, p, end, wait := pipe(t, &record{})
			defer end()
			if reads {
				go io.Copy(io.Discard, p.br)
			}
			start := time.Now()
			s.Close(Left, "")
			wantClosed(t, wait(), Left, false)
			if d := time.Since(start); d > 2*time.Second {
				t.Fatalf("took %v", d)
			}
		})
	}
}

// TestFloodOfFrames: a peer that sends frames that are no messages, whatever they are, is told that it floods and sent
// away; up to the budget it is not, nor ever at the rate of the budget.
func TestFloodOfFrames(t *testing.T) {
	join := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	for _, c := range []struct {
		what         string
		first, again []byte
		most         int // that may come at once
		rate         int // that may come in a second, for ever
	}{
		{"pings", nil, frame(ping, whole, "x"), 400, 20},
		{"pongs", nil, frame(pong, whole, ""), 400, 20},
		{"pings between fragments", frame(bin, more, "a"), frame(ping, whole, ""), 400, 20},
		{"empty fragments", frame(bin, more, ""), frame(cont, more, ""), 1000, 200},
		{"empty fragments of text", frame(text, more, "a"), frame(cont, more, ""), 1000, 200},
		{"messages in pieces", nil, join(frame(bin, more, "a"), frame(cont, more, "b"), frame(cont, whole, "")), 3333, 666},
		{"messages begun with nothing", nil, join(frame(bin, more, ""), frame(cont, whole, "")), 909, 181},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, p, end, wait := pipe(t, &record{})
				defer end()
				p.conn.SetReadDeadline(time.Time{})
				told := make(chan string, 1)
				go func() {
					for {
						s, err := readFrame(p.br)
						if strings.HasPrefix(s, "close") || err != nil {
							told <- s
							io.Copy(io.Discard, p.br)
							return
						}
					}
				}()
				if c.first != nil {
					p.send(c.first)
				}
				for range 60 {
					time.Sleep(time.Second)
					for range c.rate {
						p.send(c.again)
					}
				}
				time.Sleep(19 * time.Second)
				for range c.most {
					p.send(c.again)
				}
				synctest.Wait()
				if len(told) > 0 {
					t.Fatalf("within the budget the peer is told %q", <-told)
				}
				p.conn.Write(c.again)
				if got := <-told; got != "close 4008 flood" {
					t.Errorf("the peer is told %q", got)
				}
				wantClosed(t, wait(), Flood, false)
			})
		})
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, wide: 1, pair: 2, pair + "a" + wide: 4} {
		if got := units([]byte(s)); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// FuzzReceive feeds arbitrary bytes: whatever they are, the handler only sees messages within the limits, and the
// socket ends.
func FuzzReceive(f *testing.F) {
	f.Add(frame(bin, whole, "abc"))
	f.Add(bytes.Join([][]byte{frame(text, more, cutInRune), frame(ping, whole, "x"), frame(cont, whole, "\x9e")}, nil))
	f.Add(frame(bye, whole, "\x03\xe8bye"))
	f.Add([]byte{0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4})
	sweep := NewSweeper()
	f.Cleanup(sweep.Close)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(&canned{r: bytes.NewReader(b)}, nil, sweep)
		s.sink = &fake{}
		s.Run(context.Background(), limits{t})
	})
}

type limits struct{ t *testing.T }

func (l limits) Binary(p []byte) {
	if len(p) > MaxBinary {
		l.t.Fatalf("%d bytes", len(p))
	}
}

func (l limits) Text(p []byte) {
	if len([]rune(string(p))) > MaxText || strings.ContainsRune(string(p), 0xfffd) && !bytes.Contains(p, []byte("\ufffd")) {
		l.t.Fatalf("text %q", p)
	}
}

// canned is a connection that has a given input and no output.
type canned struct {
	net.Conn
	r io.Reader
}

func (c *canned) Read(p []byte) (int, error)      { return c.r.Read(p) }
func (c *canned) Close() error                    { return nil }
func (c *canned) SetReadDeadline(time.Time) error { return nil }
