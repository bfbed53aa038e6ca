package backend

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// TestPing: the question as a server expects it, the answer as the server gives it, data of mods behind it included,
// and an end to the wait for one that gives none.
func TestPing(t *testing.T) {
	const status = `{"players":{"max":3,"online":1}}`
	answer := packet.AppendStatusResponse(nil, []byte(status))
	long := packet.AppendStatusResponse(nil, []byte(strings.Repeat("x", 300_000)))
	for name, c := range map[string]struct {
		answer []byte // nil: silence
		id     int32
		host   string
		header bool
		fails  string
	}{
		"plain":         {answer: answer},
		"host":          {answer: answer, host: "play.example.org"},
		"PROXY header":  {answer: answer, header: true},
		"trailing data": {answer: append(append([]byte{}, answer...), 1, 2, 3)},
		"too long":      {answer: long, fails: "status response"},
		"another":       {answer: answer, id: 1, fails: "packet 1"},
		"cut short":     {answer: answer[:5], fails: "status response"},
		"silent":        {fails: "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var head [16]byte
			var asked packet.Handshake
			s := serve(t, func(g *guest) {
				if c.header {
					io.ReadFull(g.Conn, head[:])
				}
				asked, _ = packet.ParseHandshake(g.next(proto.Handshake, proto.SetProtocol), packet.MaxHost)
				if b := g.next(proto.Status, 0); len(b) != 0 {
					t.Errorf("asked with %x", b)
				}
				if c.answer != nil {
					g.w.Packet(c.id, c.answer)
				}
			})
			s.SendProxy = c.header
			within := 20 * time.Second
			if c.answer == nil {
				within = 50 * time.Millisecond
			}
			got, err := Ping(t.Context(), s, Question{Protocol: 767, Host: c.host}, within)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), s.Name) {
					t.Errorf("ended with %v", err)
				}
				return
			}
			if err != nil || string(got) != status {
				t.Fatalf("answered %q, %v", got, err)
			}
			host, port, _ := s.split()
			if c.host != "" {
				host = c.host
			}
			if want := (packet.Handshake{Protocol: 767, Host: host, Port: port, Intent: packet.IntentStatus}); asked != want {
				t.Errorf("asked as %+v, want %+v", asked, want)
			}
			if c.header && string(head[:]) != "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00" {
				t.Errorf("the header is %x, want one that names nobody", head)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(g *guest) { cancel() })
	if _, err := Ping(ctx, s, Question{}, time.Hour); err == nil {
		t.Error("an answer from a silent server")
	}
}

// TestOpen: a connection that nothing has been said on, but for whose it is.
func TestOpen(t *testing.T) {
	s := serve(t, func(g *guest) { io.Copy(g.Conn, g.Conn) })
	n, err := s.Open(t.Context(), netip.MustParseAddrPort("203.0.113.7:50000"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	n.SetDeadline(time.Now().Add(20 * time.Second))
	n.Write([]byte("hello"))
	b := make([]byte, 5)
	if _, err := io.ReadFull(n, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	gone := Server{Name: "gone", SendProxy: true, Dial: func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		far.Close()
		return near, nil
	}}
	if _, err := gone.Open(t.Context(), netip.MustParseAddrPort("203.0.113.7:50000"), time.Minute); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("ended with %v", err)
	}
}
