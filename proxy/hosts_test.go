package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

// listed is a server that answers pings, and notes what it is asked as.
type listed struct {
	backend.Server
	mu    sync.Mutex
	asked []packet.Handshake
	stop  func()
}

func newListed(t *testing.T, name string, online int) *listed {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listed{Server: backend.Server{Name: name, Address: ln.Addr().String()}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(10 * time.Second))
				r := frame.NewReader(c, frame.Limits{})
				defer r.Release()
				f, err := r.Next()
				if err != nil {
					return
				}
				body, _ := r.Body(f)
				h, err := packet.ParseHandshake(body, packet.MaxHost)
				if err != nil || h.Intent != packet.IntentStatus {
					return
				}
				l.mu.Lock()
				l.asked = append(l.asked, h)
				l.mu.Unlock()
				text := fmt.Sprintf(`{"version":{"name":"%s","protocol":%d},"players":{"max":1000,"online":%d},"description":"%[1]s","forgeData":{"d":1}}`, name, h.Protocol, online)
				frame.NewWriter(c).Packet(0, packet.AppendStatusResponse(nil, []byte(text)))
			})
		}
	})
	l.stop = sync.OnceFunc(func() { ln.Close(); wg.Wait() })
	t.Cleanup(l.stop)
	return l
}

func (l *listed) questions() []packet.Handshake {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]packet.Handshake(nil), l.asked...)
}

// shownBy asks for the status by a host name.
func shownBy(t *testing.T, addr string, protocol int32, host string) (got struct {
	Version struct {
		Name     string
		Protocol int32
	}
	Players     struct{ Max, Online int }
	Description any
	ForgeData   any
}) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	w, r := frame.NewWriter(conn), frame.NewReader(conn, frame.Limits{})
	defer r.Release()
	w.Packet(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: host, Port: 1, Intent: packet.IntentStatus}))
	w.Packet(0, nil)
	f, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := r.Body(f)
	raw, err := packet.ParseStatusResponse(body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if d, ok := got.Description.(map[string]any); ok {
		got.Description = d["text"]
	}
	return got
}

// TestPassthrough: by each name the servers are asked that players by it go to, as far as the settings say, once in a
// while, and what they are asked is not for strangers to choose.
func TestPassthrough(t *testing.T) {
	game, pack := newListed(t, "game", 5), newListed(t, "pack", 6)
	world := backend.Server{Name: "world", Forwarding: backend.Legacy, Dial: func(context.Context) (net.Conn, error) {
		t.Error("the built-in world was pinged")
		return nil, net.ErrClosed
	}}
	shown := func(motd string, pass status.Fields) Status {
		return Status{Config: status.Config{MOTD: packet.Plain(motd), MaxPlayers: 7, Pass: pass}}
	}
	with := func(motd string, pass status.Fields) *Status { s := shown(motd, pass); return &s }
	_, addr := serve(t, func(s *Settings) {
		s.Servers = append(s.Servers, game.Server, pack.Server, world)
		s.Try = []string{"missing", "Game", "limbo"}
		s.Status = shown("all", status.Players)
		s.PingCache = time.Hour
		s.ByHost = []Host{
			{Host: session.Host{Name: "quiet.example"}, Status: with("quiet", 0)},
			{Host: session.Host{Name: "*.pack.example", Lite: []string{"pack"}}, Status: with("pack down", status.AllFields)},
			{Host: session.Host{Name: "world.example", Try: []string{"world", "game"}}, Status: with("world", status.AllFields)},
			{Host: session.Host{Name: "same.example", Try: []string{"game"}}},
		}
	})
	for _, c := range []struct {
		protocol int32
		host     string
		text     string
		online   int
		version  int32
	}{
		{767, "any.example", "all", 5, 767}, {767, "same.example", "all", 5, 767}, {767, "quiet.example", "quiet", 0, 767},
		{767, "world.example", "world", 0, 767}, {767, "A.pack.example.", "pack", 6, 767}, {99999, "b.pack.example", "pack", 6, 99999},
		{99999, "x.example", "all", 5, 99999}, {1 << 30, "y.example", "all", 5, proto.Max}, {-1, "b.pack.example", "pack", 6, proto.Max},
	} {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a late one counts as lost
			got := shownBy(t, addr, c.protocol, c.host)
			if got.Description == c.text && got.Players.Online == c.online && got.Version.Protocol == c.version && (got.ForgeData != nil) == (c.text == "pack") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("a client of %d by %s sees %+v", c.protocol, c.host, got)
			}
		}
	}
	host, _, _ := net.SplitHostPort(game.Address)
	for l, want := range map[*listed]string{
		game: fmt.Sprintf("%s 767, %[1]s %d", host, proto.Max),
		pack: fmt.Sprintf("%s %d, a.pack.example 767, b.pack.example 99999", host, proto.Max),
	} {
		var asked []string
		for _, q := range l.questions() {
			asked = append(asked, fmt.Sprint(q.Host, " ", q.Protocol))
		}
		slices.Sort(asked)
		if got := strings.Join(slices.Compact(asked), ", "); got != want {
			t.Errorf("%s was asked as %s, want %s", l.Name, got, want)
		}
	}
	// What they answered stands when they are gone.
	game.stop()
	if got := shownBy(t, addr, 767, "any.example"); got.Players.Online != 5 {
		t.Errorf("behind a dead server: %+v", got)
	}
}

// TestPassthroughOfDeadServers: they cost nobody more than a moment, and what is ours is shown.
func TestPassthroughOfDeadServers(t *testing.T) {
	game, spare := newListed(t, "game", 5), newListed(t, "spare", 6)
	_, addr := serve(t, func(s *Settings) {
		s.Servers = append(s.Servers, game.Server, spare.Server)
		s.Try = []string{"game", "spare"}
		s.Status = Status{Config: status.Config{MOTD: packet.Plain("ours"), MaxPlayers: 7, Pass: status.AllFields}}
		s.PingCache = 10 * time.Millisecond
	})
	until := func(text string) {
		t.Helper()
		var got any
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if got = shownBy(t, addr, 767, "x").Description; got == text {
				return
			}
		}
		t.Fatalf("%v is shown, want %s", got, text)
	}
	until("game")
	game.stop()
	until("spare")
	spare.stop()
	until("ours")
}

// TestHostErrors: what does not fit names the host.
func TestHostErrors(t *testing.T) {
	_, err := Compile(Settings{ByHost: []Host{{Host: session.Host{Name: "a.example"}, Status: &Status{Config: status.Config{MOTD: packet.Plain(strings.Repeat("x", 40000))}}}}})
	if err == nil || !strings.Contains(err.Error(), "a.example") {
		t.Errorf("%v", err)
	}
}
