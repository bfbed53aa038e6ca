package session

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/relay"
)

// never is for the timeouts that a test is not about.
const never = 100 * time.Hour

// bubble is a Core reached over pipes, in a world where time passes only when everybody waits.
type bubble struct {
	t     *testing.T
	core  *Core
	dials chan net.Conn // the backend's ends
	start time.Time
}

// inBubble runs f with all timeouts at never but for what change says.
func inBubble(t *testing.T, change func(*Config), f func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, dials: make(chan net.Conn, 16)}
		cfg := Config{Say: new(commands.Texts).Say, Settings: Settings{
			Threshold: 256,
			Servers: []backend.Server{{Name: "lobby", Dial: func(context.Context) (net.Conn, error) {
				ours, theirs := net.Pipe()
				b.dials <- theirs
				return ours, nil
			}}},
			Try: []string{"lobby"},
			Timeouts: Timeouts{Handshake: never, Login: never, Read: never, Write: never, BackendDial: never, BackendLogin: never,
				BackendConfig: never, BackendJoin: never, ConfigAnswer: never, Replace: never},
		}}
		change(&cfg)
		b.core = New(cfg)
		b.start = time.Now()
		defer func() {
			if err := b.core.Shutdown(t.Context(), "test over"); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second) // those who chatter notice that nobody listens
		}()
		f(b)
	})
}

// took checks how long it took until something happened: d, or up to slack more.
func (b *bubble) took(d, slack time.Duration) {
	b.t.Helper()
	if got := time.Since(b.start); got < d || got > d+slack {
		b.t.Errorf("it took %v, want %v to %v", got, d, d+slack)
	}
}

// reset restarts the clock.
func (b *bubble) reset() { b.start = time.Now() }

func (b *bubble) connect(protocol int32) *peer {
	ours, theirs := net.Pipe()
	go b.core.Serve(theirs)
	p := newPeer(b.t, ours, proto.Lookup(protocol), proto.Serverbound)
	p.patience = 2 * never
	return p
}

func (p *peer) shake() {
	p.raw(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: p.v.Protocol, Host: "h", Port: 1, Intent: packet.IntentLogin}))
	p.state(proto.Login)
}

func (b *bubble) login(protocol int32) *peer {
	p := b.connect(protocol)
	p.shake()
	p.send(proto.LoginStart, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: "Steve"}))
	p.loggedIn()
	return p
}

// backend takes the next dialled connection through its login.
func (b *bubble) backend() *peer {
	f := &fakeBackend{t: b.t, name: "lobby", threshold: 256, peers: make(chan *peer, 1)}
	f.welcome(<-b.dials)
	p := <-f.peers
	p.patience = 2 * never
	return p
}

func (b *bubble) play(protocol int32) (c, s *peer) {
	c = b.login(protocol)
	s = b.backend()
	go s.admit()
	c.join()
	synctest.Wait()
	return c, s
}

// sink reads and forgets, so that nobody waits for this peer, and says when the other side has hung up.
func (p *peer) sink() (gone chan struct{}) {
	gone = make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, _, _, err := p.try(); err != nil {
				return
			}
		}
	}()
	return gone
}

// chatter sends something every few seconds until the connection is gone.
func (p *peer) chatter(q proto.Packet, body []byte) {
	id := p.id(q)
	go func() {
		for p.w.Packet(id, body) == nil {
			time.Sleep(3 * time.Second)
		}
	}()
}

const short = 17 * time.Second

func TestHandshakeTimeout(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Handshake = short }, func(b *bubble) {
		b.connect(767).closed()
		b.took(short, 0)
		synctest.Wait()
		if b.core.Counters.Ended(EndHandshakeTimeout) != 1 {
			t.Error("not counted")
		}
	})
}

// TestSlowLoris: a byte now and then does not prolong anything.
func TestSlowLoris(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Login = short }, func(b *bubble) {
		p := b.connect(767)
		p.shake()
		go func() {
			for _, err := p.conn.Write([]byte{0xf0, 0x01}); err == nil; _, err = p.conn.Write([]byte{0}) {
				time.Sleep(time.Second)
			}
		}()
		if got := p.kicked(); !strings.Contains(got, "slow_login") {
			t.Errorf("told %q", got)
		}
		b.took(short, 0)
	})
}

// TestLoginNeverAcknowledged: login success is not yet the end of the login.
func TestLoginNeverAcknowledged(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Login = short }, func(b *bubble) {
		p := b.connect(767)
		p.shake()
		time.Sleep(5 * time.Second) // the time counts from the first byte
		p.send(proto.LoginStart, packet.AppendLoginStart(nil, 767, packet.LoginStart{Name: "Steve"}))
		p.expect(proto.SetCompression)
		p.compress(256)
		p.expect(proto.LoginSuccess)
		p.in = proto.Config
		if got := p.kicked(); !strings.Contains(got, "slow_login") {
			t.Errorf("told %q", got)
		}
		b.took(short, 0)
	})
}

func TestClientIdle(t *testing.T) {
	for _, protocol := range []int32{47, 767} {
		inBubble(t, func(c *Config) {
			c.Settings.Timeouts.Read = short
		}, func(b *bubble) {
			c, s := b.play(protocol)
			s.chatter(proto.UpdateHealth, []byte{1})
			gone := s.sink()
			b.reset()
			if got := c.kicked(); !strings.Contains(got, "disconnect.timeout") {
				t.Errorf("told %q", got)
			}
			b.took(short-relay.Tick, 3*relay.Tick)
			<-gone
			synctest.Wait()
			if b.core.Counters.Ended(EndIdle) != 1 {
				t.Error("not counted")
			}
		})
	}
}

func TestBackendIdle(t *testing.T) {
	for _, protocol := range []int32{47, 767} {
		inBubble(t, func(c *Config) { c.Settings.Timeouts.Read = short }, func(b *bubble) {
			c, s := b.play(protocol)
			c.chatter(proto.Flying, []byte{1})
			gone := s.sink()
			b.reset()
			if got := c.kicked(); !strings.Contains(got, "lobby does not answer") {
				t.Errorf("told %q", got)
			}
			b.took(short-relay.Tick, 3*relay.Tick)
			<-gone
			synctest.Wait()
			if b.core.Counters.Ended(EndBackendTimeout) != 1 {
				t.Error("not counted")
			}
		})
	}
}

func TestBackendIdleInConfiguration(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.BackendConfig = short }, func(b *bubble) {
		c := b.login(767)
		s := b.backend()
		gone := s.sink()
		// As long as there are frames there is hope.
		for range 5 {
			s.send(proto.Ping, []byte{0, 0, 0, 1})
			c.await(proto.Ping)
			time.Sleep(10 * time.Second)
			c.send(proto.Pong, []byte{0, 0, 0, 1})
		}
		b.reset()
		if got := c.kicked(); !strings.Contains(got, "lobby does not answer") {
			t.Errorf("told %q", got)
		}
		b.took(short-10*time.Second-relay.Tick, 3*relay.Tick)
		<-gone
	})
}

func TestBackendNeverConnects(t *testing.T) {
	inBubble(t, func(c *Config) {
		c.Settings.Timeouts.BackendDial = short
		c.Settings.Servers[0].Dial = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	}, func(b *bubble) {
		c := b.login(767)
		if got := c.kicked(); !strings.Contains(got, "lobby does not answer") {
			t.Errorf("told %q", got)
		}
		b.took(short, 0)
	})
}

func TestBackendNeverLetsIn(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.BackendLogin = short }, func(b *bubble) {
		c := b.login(47)
		go newPeer(b.t, <-b.dials, c.v, proto.Clientbound).sink()
		if got := c.kicked(); !strings.Contains(got, "lobby does not answer") {
			t.Errorf("told %q", got)
		}
		b.took(short, 0)
	})
}

// TestNoJoinGame: everything is well but the one packet that matters. Keep-alives do not make up for it.
func TestNoJoinGame(t *testing.T) {
	for _, protocol := range []int32{47, 763, 764, 767} {
		inBubble(t, func(c *Config) { c.Settings.Timeouts.BackendJoin = short }, func(b *bubble) {
			c := b.login(protocol)
			s := b.backend()
			if s.v.HasConfiguration() {
				go func() {
					s.send(proto.FinishConfiguration, nil)
				}()
				c.expect(proto.FinishConfiguration)
				time.Sleep(5 * time.Second) // the client's own time does not count
				c.in = proto.Play
				go c.send(proto.FinishConfiguration, nil)
				s.expect(proto.FinishConfiguration)
				s.state(proto.Play)
			}
			gone := s.sink()
			b.reset()
			s.chatter(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 1))
			if got := c.kicked(); !strings.Contains(got, "lobby does not let you in") {
				t.Errorf("protocol %d: told %q", protocol, got)
			}
			b.took(short, 0)
			<-gone
		})
	}
}

// TestClientDoesNotAcknowledge: neither the start nor the end of a configuration.
func TestClientDoesNotAcknowledge(t *testing.T) {
	for _, end := range []bool{true, false} {
		inBubble(t, func(c *Config) { c.Settings.Timeouts.ConfigAnswer = short }, func(b *bubble) {
			var c, s *peer
			if end {
				c = b.login(767)
				s = b.backend()
				go s.send(proto.FinishConfiguration, nil)
				c.expect(proto.FinishConfiguration)
				c.in = proto.Play
			} else {
				c, s = b.play(767)
				go s.send(proto.StartConfiguration, nil)
				c.expect(proto.StartConfiguration)
				c.in = proto.Config
			}
			gone := s.sink()
			b.reset()
			if got := c.kicked(); !strings.Contains(got, "did not answer in time") {
				t.Errorf("told %q", got)
			}
			b.took(short, 0)
			<-gone
			synctest.Wait()
			if b.core.Counters.Ended(EndUnanswered) != 1 {
				t.Error("not counted")
			}
		})
	}
}

// TestClientTakesNothing: what is to be written waits without progress.
func TestClientTakesNothing(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Write = short }, func(b *bubble) {
		c, s := b.play(767)
		b.reset()
		c.chatter(proto.Flying, []byte{1})
		s.chatter(proto.UpdateHealth, []byte{1})
		<-s.sink()
		b.took(short, short*3/2)
		synctest.Wait()
		if b.core.Counters.Ended(EndStalled) != 1 {
			t.Error("not counted")
		}
	})
}

// TestBackendTakesNothing likewise. The player hears of it.
func TestBackendTakesNothing(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Write = short }, func(b *bubble) {
		c, s := b.play(767)
		b.reset()
		c.chatter(proto.Flying, []byte{1})
		s.chatter(proto.UpdateHealth, []byte{1})
		if got := c.kicked(); !strings.Contains(got, "lobby") {
			t.Errorf("told %q", got)
		}
		b.took(short, short*3/2)
	})
}

// TestSlowIsNotIdle: a backend whose packets wait for a slow client is not taken for silent.
func TestSlowIsNotIdle(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Read = short }, func(b *bubble) {
		c, s := b.play(767)
		c.chatter(proto.Flying, []byte{1})
		s.sink()
		go func() {
			for range 20 {
				s.send(proto.UpdateHealth, []byte{1})
			}
		}()
		for range 20 {
			time.Sleep(2 * short)
			c.expect(proto.UpdateHealth)
		}
	})
}

// TestOwnKeepAlive: while backends are tried neither side takes the other for dead, and the answers go nowhere.
func TestOwnKeepAlive(t *testing.T) {
	for _, protocol := range []int32{47, 340, 763, 764, 775} {
		inBubble(t, func(c *Config) {
			c.Settings.Timeouts.Read = 15 * time.Second
			c.Settings.Timeouts.BackendLogin = time.Minute
		}, func(b *bubble) {
			c := b.login(protocol)
			s := newPeer(b.t, <-b.dials, c.v, proto.Clientbound)
			s.patience = never
			heard := make(chan int)
			go func() {
				n := 0
				for {
					if _, _, _, err := s.try(); err != nil {
						heard <- n
						return
					}
					n++
				}
			}()
			for range 5 {
				c.send(proto.KeepAlive, c.expect(proto.KeepAlive))
			}
			b.took(5*ownAlive, relay.Tick)
			if got := c.kicked(); !strings.Contains(got, "lobby does not answer") {
				t.Errorf("protocol %d: told %q", protocol, got)
			}
			if n := <-heard; n != 2 {
				t.Errorf("protocol %d: the backend heard %d packets, want handshake and login start only", protocol, n)
			}
		})
	}
}

// TestSilentServer: a server that falls silent, in whatever phase, is found out, and its player goes on to the next
// one. What waits for a server is not the client's silence, however little the client has to say. All timeouts are the
// defaults.
func TestSilentServer(t *testing.T) {
	for _, protocol := range []int32{47, 340, 763, 764, 765, 767, 775} {
		for name, begin := range map[string]func(b *bubble, silent chan net.Conn) *peer{
			"newcomer": func(b *bubble, silent chan net.Conn) *peer {
				c := b.login(protocol)
				b.quiet(silent)
				return c
			},
			"switch": func(b *bubble, silent chan net.Conn) *peer {
				c, s := b.play(protocol)
				if !c.v.HasConfiguration() { // the old server asks for signs of life until the new one is there
					s.chatter(proto.KeepAlive, packet.AppendKeepAlive(nil, protocol, 7))
				}
				s.sink()
				b.reset()
				if err := b.core.Players()[0].Connect("silent"); err != nil {
					b.t.Fatal(err)
				}
				b.quiet(silent)
				return c
			},
			"configured again": func(b *bubble, silent chan net.Conn) *peer {
				c, s := b.play(protocol)
				if c.v.HasConfiguration() {
					s.send(proto.StartConfiguration, nil)
				}
				s.sink()
				b.reset()
				return c
			},
			"play": func(b *bubble, silent chan net.Conn) *peer {
				c, s := b.play(protocol)
				s.sink()
				b.reset()
				return c
			},
		} {
			for _, mute := range []bool{false, true} {
				if mute && (name == "play" || !proto.Lookup(protocol).HasConfiguration()) {
					continue // whoever is in play and says nothing at all is gone
				}
				var silent, next chan net.Conn
				inBubble(t, func(c *Config) {
					c.Settings.Timeouts = Timeouts{}
					for name, dials := range map[string]*chan net.Conn{"silent": &silent, "next": &next} {
						to := make(chan net.Conn, 16)
						*dials = to
						c.Settings.Servers = append(c.Settings.Servers, backend.Server{Name: name, Dial: func(context.Context) (net.Conn, error) {
							ours, theirs := net.Pipe()
							to <- theirs
							return ours, nil
						}})
					}
					c.Settings.Try = []string{"lobby", "next"}
					if name == "newcomer" {
						c.Settings.Try = []string{"silent", "lobby"}
					}
				}, func(b *bubble) {
					after := &bubble{t: b.t, dials: next}
					if name == "newcomer" || name == "switch" {
						after = b
					}
					c := begin(b, silent)
					c.mute = mute
					stays := name == "switch" && !c.v.HasConfiguration() // where it is, with a message
					if !stays {
						go func() {
							s := after.backend()
							s.admit()
							s.sink()
						}()
						asked := 0
						for _, x := range c.follow() {
							if x.q == proto.KeepAlive {
								asked++
							}
						}
						if asked < 2 {
							b.t.Errorf("%d, %s: the client was asked for a sign of life %d times", protocol, name, asked)
						}
					} else {
						for done := false; !done; {
							q, _, body, err := c.try()
							if err != nil {
								b.t.Fatal(err)
							}
							switch {
							case q == proto.KeepAlive:
								c.send(proto.KeepAlive, body)
							case q == proto.Disconnect:
								b.t.Fatalf("%d, %s: disconnected: %q", protocol, name, body)
							default:
								done = strings.Contains(string(body), "Cannot take you to")
							}
						}
					}
					b.took(29*time.Second, 4*relay.Tick)
					synctest.Wait()
					if n := b.core.Counters.Ended(EndIdle); n != 0 || b.core.Online() != 1 {
						b.t.Errorf("%d, %s, mute %v: %d ended as idle, %d are on", protocol, name, mute, n, b.core.Online())
					}
				})
			}
		}
	}
}

// quiet lets a player in on a server that says nothing more.
func (b *bubble) quiet(dials chan net.Conn) {
	f := &fakeBackend{t: b.t, name: "silent", threshold: 256, peers: make(chan *peer, 1), quiet: true}
	go func() {
		f.welcome(<-dials)
		p := <-f.peers
		p.patience = 2 * never
		p.sink()
	}()
}

// TestClientSilentInConfiguration: a client that answers nothing is gone, whatever its server takes its time for.
func TestClientSilentInConfiguration(t *testing.T) {
	inBubble(t, func(c *Config) { c.Settings.Timeouts.Read = short }, func(b *bubble) {
		c := b.login(767)
		s := b.backend()
		s.chatter(proto.Ping, []byte{0, 0, 0, 1})
		gone := s.sink()
		b.reset()
		if got := c.kicked(); !strings.Contains(got, "disconnect.timeout") {
			t.Errorf("told %q", got)
		}
		b.took(short+ownAlive-relay.Tick, 3*relay.Tick)
		<-gone
	})
}
