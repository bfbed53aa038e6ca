package proxy

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/limbo"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/listen"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/proxy/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a Server behind a real port, with the built-in world behind it.
func serve(t *testing.T, change func(*Settings)) (*Server, string) {
	t.Helper()
	world := limbo.New(limbo.Config{})
	s := Settings{
		Settings: session.Settings{
			Threshold: 256,
			Servers:   []backend.Server{{Name: "limbo", Forwarding: backend.Legacy, Dial: world.Dial}},
			Try:       []string{"limbo"},
		},
		Status: Status{Config: status.Config{MOTD: packet.Plain("hello"), MaxPlayers: 7}},
	}
	if change != nil {
		change(&s)
	}
	c, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	server := New(c, Dependencies{Say: new(commands.Texts).Say}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listen.New(ln, listen.Config{})
	var wg sync.WaitGroup
	wg.Go(func() { port.Serve() })
	wg.Go(func() {
		if err := server.Serve(port.Minecraft()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background(), "test over"); err != nil {
			t.Error(err)
		}
		port.Close()
		world.Close()
		wg.Wait()
	})
	return server, ln.Addr().String()
}

// client is one end of a connection at the level of frames.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *frame.Reader
	w    *frame.Writer
	v    *proto.Version
	in   proto.State
}

func dial(t *testing.T, addr string, protocol int32, intent packet.Intent) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t, conn, frame.NewReader(conn, frame.Limits{}), frame.NewWriter(conn), proto.Lookup(protocol), proto.Login}
	c.w.Packet(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: "localhost", Port: 25565, Intent: intent}))
	return c
}

// next reads one packet.
func (c *client) next() (proto.Packet, []byte, error) {
	f, err := c.r.Next()
	if err != nil {
		return 0, nil, err
	}
	body, err := c.r.Body(f)
	return c.v.Table(c.in, proto.Clientbound)[f.ID&0xff], body, err
}

func (c *client) send(s proto.State, p proto.Packet, body []byte) {
	id, ok := c.v.ID(s, proto.Serverbound, p)
	if !ok {
		c.t.Fatalf("protocol %d has no %v", c.v.Protocol, p)
	}
	c.w.Packet(id, body)
}

// join goes through login and configuration up to join game, and says why it did not get there.
func (c *client) join(name string) error {
	c.send(proto.Login, proto.LoginStart, packet.AppendLoginStart(nil, c.v.Protocol, packet.LoginStart{Name: name}))
	for {
		p, body, err := c.next()
		if err != nil {
			return err
		}
		switch {
		case p == proto.Disconnect:
			text, _ := packet.ParseDisconnect(c.v.Protocol, c.in, body)
			return fmt.Errorf("disconnected: %v", text)
		case p == proto.SetCompression && c.in == proto.Login:
			n, _ := packet.ParseSetCompression(body)
			c.r.SetCompression(n)
			c.w.SetCompression(n)
		case p == proto.LoginSuccess:
			c.in = proto.Play
			if c.v.HasConfiguration() {
				c.send(proto.Login, proto.LoginAcknowledged, nil)
				c.in = proto.Config
			}
		case p == proto.SelectKnownPacks:
			c.send(proto.Config, proto.SelectKnownPacks, []byte{0})
		case p == proto.FinishConfiguration:
			c.in = proto.Play
			c.send(proto.Config, proto.FinishConfiguration, nil)
		case p == proto.JoinGame:
			return nil
		}
	}
}

// TestServer: players of several versions join the built-in world through the port, the list shows them, and a shutdown
// tells each of them.
func TestServer(t *testing.T) {
	server, addr := serve(t, nil)
	var clients []*client
	for i, v := range []int32{47, 340, 758, 763, 764, 769, 775} {
		c := dial(t, addr, v, packet.IntentLogin)
		if err := c.join(fmt.Sprint("Player", i)); err != nil {
			t.Fatalf("protocol %d: %v", v, err)
		}
		clients = append(clients, c)
	}
	if n := server.Online(); n != len(clients) || len(server.Players()) != n || server.Counters().Logins.Load() != uint64(n) {
		t.Errorf("%d players online, want %d", n, len(clients))
	}
	for _, p := range server.Players() {
		if server.Player(p.ID()) != p {
			t.Errorf("%s is not found by its UUID", p.Name())
		}
	}

	ping := dial(t, addr, 767, packet.IntentStatus)
	ping.in = proto.Status
	ping.send(proto.Status, proto.StatusRequest, nil)
	_, body, err := ping.next()
	if err != nil || !strings.Contains(string(body), `"online":7`) || !strings.Contains(string(body), "Player3") {
		t.Errorf("status %s, %v", body, err)
	}

	start := time.Now()
	done := make(chan error, 1)
	go func() { done <- server.Shutdown(context.Background(), "closing time") }()
	for _, c := range clients {
		for {
			p, body, err := c.next()
			if err != nil {
				t.Errorf("protocol %d: %v before the reason", c.v.Protocol, err)
				break
			}
			if p == proto.Disconnect {
				if text, _ := packet.ParseDisconnect(c.v.Protocol, c.in, body); text.String() != "closing time" {
					t.Errorf("protocol %d: told %q", c.v.Protocol, text)
				}
				break
			}
		}
		c.conn.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > shutdownWithin {
		t.Errorf("the shutdown took %v", d)
	}
	if n := server.Counters().Ended(session.EndShutdown); n != uint64(len(clients)) {
		t.Errorf("%d ended by the shutdown, want %d", n, len(clients))
	}
	if c, err := net.Dial("tcp", addr); err == nil { // the port itself is somebody else's to close
		c.Close()
	}
}

// TestLimits: rates of logins and pings, and who is exempt from them.
func TestLimits(t *testing.T) {
	once := limit.Rate{PerSecond: 0.001, Burst: 1}
	server, addr := serve(t, func(s *Settings) { s.Logins, s.Pings = once, once })
	if err := dial(t, addr, 767, packet.IntentLogin).join("Steve"); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, addr, 767, packet.IntentLogin).join("Alex"); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("the second login: %v", err)
	}
	for i := range 2 {
		ping := dial(t, addr, 767, packet.IntentStatus)
		ping.in = proto.Status
		ping.send(proto.Status, proto.StatusRequest, nil)
		if _, _, err := ping.next(); (err == nil) != (i == 0) {
			t.Errorf("ping %d: %v", i, err)
		}
	}
	testkit.Until(t, "one to be throttled", func() bool { return server.Counters().Ended(session.EndThrottled) == 1 })
}

// TestApply: other settings count for the next ping, the next login and the next way of whoever is there already.
func TestApply(t *testing.T) {
	var s Settings
	server, addr := serve(t, func(base *Settings) { s = *base })
	ann := dial(t, addr, 767, packet.IntentLogin)
	if err := ann.join("Ann"); err != nil {
		t.Fatal(err)
	}
	other := limbo.New(limbo.Config{})
	defer other.Close()
	s.Servers = []backend.Server{{Name: "other", Forwarding: backend.Legacy, Dial: other.Dial}}
	s.Try, s.Status.HideSample = []string{"other"}, true
	s.Settings.Threshold, s.Status.MOTD = -1, packet.Plain("changed")
	s.Logins = limit.Rate{PerSecond: 0.001, Burst: 1}
	c, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	server.Apply(c)

	ping := dial(t, addr, 767, packet.IntentStatus)
	ping.in = proto.Status
	ping.send(proto.Status, proto.StatusRequest, nil)
	_, body, err := ping.next()
	if err != nil || !strings.Contains(string(body), "changed") || !strings.Contains(string(body), `"online":1`) || strings.Contains(string(body), "Ann") {
		t.Errorf("status %s, %v", body, err)
	}
	there := server.Players()[0]
	for range 1000 { // Ann may still be on the way in
		if there.Server() != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if there.Server() != "limbo" {
		t.Errorf("Ann is on %q: whoever is on a server that is gone stays there", there.Server())
	}
	if err := there.Connect("limbo"); err == nil {
		t.Error("a server that is gone can still be gone to")
	}
	if err := dial(t, addr, 767, packet.IntentLogin).join("Bob"); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, addr, 767, packet.IntentLogin).join("Cid"); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("the second login since: %v", err)
	}
	if err := there.Connect("other"); err != nil {
		t.Fatal(err)
	}
	for ann.in == proto.Play { // until Ann is taken to the configuration of the other
		p, _, err := ann.next()
		if err != nil {
			t.Fatal(err)
		}
		if p == proto.StartConfiguration {
			ann.in = proto.Config
		}
	}
}

// TestHiddenSample: the list may name nobody.
func TestHiddenSample(t *testing.T) {
	_, addr := serve(t, func(s *Settings) { s.Status.HideSample = true })
	if err := dial(t, addr, 767, packet.IntentLogin).join("Steve"); err != nil {
		t.Fatal(err)
	}
	ping := dial(t, addr, 767, packet.IntentStatus)
	ping.in = proto.Status
	ping.send(proto.Status, proto.StatusRequest, nil)
	_, body, err := ping.next()
	if err != nil || !strings.Contains(string(body), `"online":1`) || strings.Contains(string(body), "Steve") {
		t.Errorf("status %s, %v", body, err)
	}
}

// TestServeAfterShutdown: a listener that comes too late is closed, not left waiting.
func TestServeAfterShutdown(t *testing.T) {
	server, _ := serve(t, nil)
	if err := server.Shutdown(context.Background(), "bye"); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(ln); err != nil {
		t.Error(err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

// TestCompile: settings that cannot work are refused.
func TestCompile(t *testing.T) {
	if _, err := Compile(Settings{Status: Status{Config: status.Config{MOTD: packet.Plain(strings.Repeat("x", 40000))}}}); err == nil {
		t.Error("a status that fits no packet was taken")
	}
	s := Settings{}
	s.Online = true
	s.Auth.SessionURLs = []string{"nonsense"}
	if _, err := Compile(s); err == nil {
		t.Error("a session server without an address was taken")
	}
}
