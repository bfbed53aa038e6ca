package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// network returns a Core whose servers nobody can reach: limbo and those named. Nothing is dialled unless a test does.
func network(t *testing.T, f Fallback, names ...string) *Core {
	set := Settings{Fallback: f, Try: append(names, "limbo"), Servers: []backend.Server{{Name: "limbo", Address: "127.0.0.1:1", Limbo: true}}}
	for _, name := range names {
		set.Servers = append(set.Servers, backend.Server{Name: name, Address: "127.0.0.1:1"})
	}
	c := New(Config{Settings: set})
	t.Cleanup(func() { c.Shutdown(context.Background(), "test over") })
	return c
}

// bystander returns a player on a server.
func bystander(t *testing.T, c *Core, on string) *Session {
	t.Helper()
	s := &Session{core: c, client: client{identity: identity{id: uuid.New()}}}
	s.client.name = s.client.id.String()
	if c.players.claim(s, s.client.id, s.client.name) != nil {
		t.Fatal("a UUID twice")
	}
	c.mu.Lock()
	c.live[s] = struct{}{}
	c.mu.Unlock()
	t.Cleanup(func() { // there is no connection to close
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.live, s)
	})
	s.route.where.set(on, "")
	return s
}

func anybody(*backend.Server) bool { return true }

// pick returns the name of the server that a newcomer is sent to.
func pick(c *Core, may func(*backend.Server) bool) string {
	s := &Session{core: c}
	b := s.choose(s.tryList(), may)
	if b == nil {
		return ""
	}
	if _, to := s.route.where.get(); to != b.Name {
		return "no way noted to " + b.Name
	}
	return b.Name
}

var errUnreachable = errors.New("refused")

func open(c *Core, name string) {
	for range 3 {
		c.board.Failed(name, errUnreachable)
	}
}

// TestStrategies: each strategy has its order; open breakers are passed over, draining servers get nobody, and the
// built-in world is the last resort of those strategies that know no order.
func TestStrategies(t *testing.T) {
	for _, strategy := range strategyNames {
		t.Run(strategy, func(t *testing.T) {
			how, err := ParseStrategy(strategy)
			if err != nil {
				t.Fatal(err)
			}
			c := network(t, Fallback{Strategy: how}, "a", "b", "c")
			for range 4 {
				bystander(t, c, "A")
			}
			bystander(t, c, "c")
			got := map[string]int{}
			for range 300 {
				got[pick(c, anybody)]++
			}
			if got["limbo"] > 0 {
				t.Error("somebody was sent to limbo although there are servers")
			}
			switch how {
			case Sequential:
				if got["a"] != 300 {
					t.Errorf("not all to the first: %v", got)
				}
			case Random:
				if got["a"] < 50 || got["b"] < 50 || got["c"] < 50 {
					t.Errorf("not at random: %v", got)
				}
			case LeastPlayers:
				if got["b"] != 300 {
					t.Errorf("not all to the empty one: %v", got)
				}
			}
			not := func(name string) func(*backend.Server) bool {
				return func(b *backend.Server) bool { return b.Name != name }
			}
			c.Drain("a", true, false, nil)
			open(c, "b")
			for range 20 {
				if to := pick(c, anybody); to != "c" {
					t.Fatalf("a is draining, b open: to %q", to)
				}
				if to := pick(c, not("c")); to != "limbo" {
					t.Fatalf("and c has failed: to %q", to)
				}
				if to := pick(c, func(b *backend.Server) bool { return b.Name == "b" || b.Name == "a" }); to != "b" {
					t.Fatalf("and limbo as well: to %q, and b is the only one", to)
				}
				if to := pick(c, func(b *backend.Server) bool { return b.Name == "a" }); to != "" {
					t.Fatalf("to %q, although it is draining", to)
				}
			}
			c.Drain("A", false, false, nil)
			if to := pick(c, func(b *backend.Server) bool { return b.Name == "a" }); to != "a" {
				t.Errorf("to %q after it is no longer draining", to)
			}
		})
	}
	if _, err := ParseStrategy("fastest"); err == nil || !strings.Contains(err.Error(), "least-players") {
		t.Errorf("an unknown strategy: %v", err)
	}
	c := network(t, Fallback{})
	if to := pick(c, anybody); to != "limbo" {
		t.Errorf("to %q where limbo is all there is", to)
	}
	for _, name := range []string{"limbo", "nowhere"} {
		if err := c.Drain(name, true, false, nil); err == nil {
			t.Errorf("%s can be drained", name)
		}
	}
}

// TestLeastPlayersAtOnce: players who come at the same moment spread as evenly as those who come one by one.
func TestLeastPlayersAtOnce(t *testing.T) {
	c := network(t, Fallback{Strategy: LeastPlayers}, "a", "b", "c", "d")
	var all []*Session
	for range 200 {
		all = append(all, bystander(t, c, ""))
	}
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() { s.choose(s.tryList(), anybody) })
	}
	wg.Wait()
	got := c.population()
	for _, name := range []string{"a", "b", "c", "d"} {
		if got[name] != 50 {
			t.Errorf("%v", got)
			break
		}
	}
}

// TestHalfOpenServer: one player tries a half-open server, and nobody else until the outcome is known.
func TestHalfOpenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := health.New(nil, nil)
		c := &Core{board: b, players: newRegistry()}
		set := Settings{Servers: []backend.Server{{Name: "a"}, {Name: "b"}}, Try: []string{"a", "b"}}
		c.settings.Store(set.withDefaults())
		up := make(chan error, 1)
		b = health.New(func(context.Context, string) error { return <-up }, nil)
		c.board = b
		b.Watch([]string{"a", "b"}, health.Policy{Failures: 1})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); b.Run(ctx) }()
		b.Failed("a", errUnreachable)
		if to := pick(c, anybody); to != "b" {
			t.Errorf("to %q while a is open", to)
		}
		up <- nil
		synctest.Wait()
		for i, want := range []string{"a", "b", "b"} {
			if to := pick(c, anybody); to != want {
				t.Errorf("player %d goes to %q, want %q", i, to, want)
			}
		}
		c.judge("a", nil, false)
		if to := pick(c, anybody); to != "a" {
			t.Errorf("to %q after one was let in", to)
		}
		cancel()
		close(up)
		<-over
	})
}

// asked is an error of a login that the client had a part in.
type asked struct{ error }

func (a asked) Unwrap() error { return a.error }

// TestBlame: what is the player's fault says nothing about the server, what a player can bring about is checked first,
// and what only a server can do to everybody counts.
func TestBlame(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errUnreachable}
	for _, x := range []struct {
		name string
		err  error
		want string
	}{
		{"let in", nil, "alive"},
		{"kicked", fmt.Errorf("x: %w", &backend.KickError{Server: "a"}), "alive"},
		{"unreachable", fmt.Errorf("x: %w", dial), "failed"},
		{"silent in login", fmt.Errorf("x: %w", os.ErrDeadlineExceeded), "failed"},
		{"silent in dialling", fmt.Errorf("x: %w", context.DeadlineExceeded), "failed"},
		{"too old a client", fmt.Errorf("x: %w", backend.ErrNeedsNewer), ""},
		{"silent, perhaps the client", asked{os.ErrDeadlineExceeded}, "doubt"},
		{"hung up", fmt.Errorf("x: %w", io.EOF), "doubt"},
		{"reset in login", &net.OpError{Op: "read", Err: errUnreachable}, "doubt"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Core{board: health.New(nil, nil)}
				c.board.Watch([]string{"a"}, health.Policy{})
				begin := time.Now()
				time.Sleep(time.Second)
				_, mods := x.err.(asked)
				c.judge("a", x.err, mods)
				got, f := "", c.board.Servers()[0]
				switch {
				case f.Failures > 0:
					got = "failed"
				case !f.Next.IsZero():
					got = "doubt"
				case c.board.AliveSince("a", begin):
					got = "alive"
				}
				if got != x.want {
					t.Errorf("%q, want %q", got, x.want)
				}
			})
		})
	}
}

// TestPatience: the pauses of a player whom the server refuses again and again grow, up to a bound.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hold
		want := firstRefusal
		for range 12 {
			h.delay("A")
			if d := time.Until(h.next); d < want*3/4 || d > want*5/4 {
				t.Errorf("the next look is after %v, want about %v", d, want)
			}
			if h.missed["a"] != time.Now() {
				t.Error("not noted when")
			}
			time.Sleep(time.Until(h.next))
			want = min(2*want, lastRefusal)
		}
	})
}

// refusing returns a backend that lets nobody in.
func refusing(t *testing.T, name, why string) *fakeBackend {
	return newBackend(t, name, func(b *fakeBackend) {
		b.refuse = func(p *peer) bool {
			p.send(proto.Disconnect, packet.AppendDisconnect(nil, p.v.Protocol, proto.Login, packet.Plain(why)))
			p.conn.Close()
			return true
		}
	})
}

// limbo marks a server as the built-in world.
func (c *Config) limbo(name string) {
	for i := range c.Settings.Servers {
		if c.Settings.Servers[i].Name == name {
			c.Settings.Servers[i].Limbo = true
		}
	}
}

// TestBudget: one chain tries so many servers, for so long, and then only the built-in world is left.
func TestBudget(t *testing.T) {
	for what, f := range map[string]Fallback{"attempts": {Attempts: 2}, "time": {Within: time.Nanosecond}} {
		for _, last := range []bool{false, true} {
			t.Run(fmt.Sprint(what, last), func(t *testing.T) {
				limbo := newBackend(t, "limbo", nil)
				servers := []*fakeBackend{refusing(t, "a", "a is full"), refusing(t, "b", "b is full"), refusing(t, "c", "c is full"), limbo}
				e := newEnv(t, func(c *Config) {
					c.Settings.Fallback = f
					c.limbo("limbo")
					if !last {
						c.Settings.Try = []string{"a", "b", "c"}
					}
				}, servers...)
				c := e.login(765, "Steve")
				want := uint64(f.Attempts)
				if f.Attempts == 0 {
					want = 1
				}
				if last {
					limbo.next()
					want++
				} else if got := c.kicked(); got != []string{"", "a is full", "b is full"}[want] {
					t.Errorf("told %q", got)
				}
				if n := e.core.Counters.Dials.Load(); n != want {
					t.Errorf("%d servers dialled, want %d", n, want)
				}
			})
		}
	}
}

// TestEndOnLoss: with it a server that breaks off ends the session, with the reason; one that kicks is followed by the
// next as ever.
func TestEndOnLoss(t *testing.T) {
	each(t, eras, func(t *testing.T, protocol int32) {
		for _, kick := range []bool{false, true} {
			a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
			e := newEnv(t, func(c *Config) { c.Settings.Fallback.EndOnLoss = true }, a, b)
			c, s := e.settle(protocol, a)
			if kick {
				s.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, s.out, packet.Plain("restarting")))
				c.moved(b)
				continue
			}
			s.conn.Close()
			if got := c.kicked(); !strings.Contains(got, "Server a") {
				t.Errorf("told %q", got)
			}
			e.ended(EndBackendLost, 1)
		}
	})
}

// outage is a server that can be away for a while.
type outage struct{ atomic.Bool }

// of puts it in the way to the first server.
func (o *outage) of(c *Config) {
	b := &c.Settings.Servers[0]
	addr := b.Address
	b.Dial = func(ctx context.Context) (net.Conn, error) {
		if o.Load() {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errUnreachable}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

// ages bounds waits for what waits itself, longer and longer, where the machine has much else to do.
const ages = time.Minute

// visited waits until somebody has logged in.
func (b *fakeBackend) visited() {
	b.t.Helper()
	within(b.t, ages, func() bool { return len(b.peers) > 0 }, "nobody has come to %s", func() []any { return []any{b.name} })
}

// TestBroughtBack: a player whom no server took waits in the built-in world, is told so, and is on a server again when
// one is back, whether they had been on it or not.
func TestBroughtBack(t *testing.T) {
	each(t, []int32{47, 763, 765, 767, 775}, func(t *testing.T, protocol int32) {
		for _, newcomer := range []bool{false, true} {
			lobby, limbo := newBackend(t, "lobby", func(b *fakeBackend) { b.quiet = true }), newBackend(t, "limbo", nil)
			var away outage
			e := newEnv(t, func(c *Config) {
				c.limbo("limbo")
				c.Settings.TCPChecks = true
				away.of(c)
			}, lobby, limbo)
			var c *peer
			if newcomer {
				away.Store(true)
				c = e.login(protocol, "Steve")
				c.moved(limbo)
			} else {
				var s *peer
				c, s = e.settle(protocol, lobby)
				away.Store(true)
				s.conn.Close()
				c.moved(limbo)
			}
			e.on("limbo")
			until(t, func() bool { return e.core.Counters.Held.Load() == 1 }, "nobody is held", func() []any { return nil })
			if protocol == 767 && !newcomer { // as well as any
				failed := func() uint64 { n, _ := e.core.Checks(); return n }
				within(t, ages, func() bool { return failed() >= 3 }, "%d checks", func() []any { return []any{failed()} })
				if n := e.core.Counters.DialFails.Load(); n != 0 {
					t.Errorf("%d times a player was sent to find out what checks do", n)
				}
			}
			away.Store(false)
			lobby.visited()
			seen, _ := c.moved(lobby)
			e.on("lobby")
			text := ""
			for _, x := range seen {
				text += string(x.body)
			}
			if !newcomer && !strings.Contains(text, " is back. Taking you there") {
				t.Error("not told that he is brought back")
			}
			if n := e.core.Counters.Switches.Returned.Load(); n != 1 {
				t.Errorf("%d returns counted", n)
			}
			until(t, func() bool { return e.core.Counters.Held.Load() == 0 }, "still held", func() []any { return nil })
		}
	})
}

// TestLeftAlone: a player who wants to be in the built-in world, or belongs there, stays.
func TestLeftAlone(t *testing.T) {
	each(t, []int32{47, 767}, func(t *testing.T, protocol int32) {
		for what, change := range map[string]func(*Settings){
			"by request": func(*Settings) {},
			"only limbo": func(s *Settings) { s.Try = []string{"limbo"} },
			"first":      func(s *Settings) { s.Try = []string{"limbo", "lobby"} },
			"switched off": func(s *Settings) {
				s.Try = []string{"gone", "limbo"}
				s.Fallback.Stranded = true
			},
		} {
			lobby, limbo, gone := newBackend(t, "lobby", nil), newBackend(t, "limbo", nil), newBackend(t, "gone", nil)
			gone.ln.Close()
			e := newEnv(t, func(c *Config) {
				c.limbo("limbo")
				c.Settings.Try = []string{"lobby", "limbo"}
				change(&c.Settings)
			}, lobby, limbo, gone)
			var c *peer
			if what == "by request" {
				c, _ = e.settle(protocol, lobby)
				e.player().Connect("limbo")
				c.moved(limbo)
				e.on("limbo")
			} else {
				c, _ = e.settle(protocol, limbo)
			}
			if what == "only limbo" {
				// And not after they have lost a server that is no part of the list, either.
				e.player().Connect("lobby")
				_, s := c.moved(lobby)
				s.conn.Close()
				c.moved(limbo)
				e.on("limbo")
			}
			asked := make(chan bool)
			e.player().post(letter{any: true, do: func() { asked <- e.player().route.hold.on }})
			if <-asked {
				t.Errorf("%s: is to be taken away", what)
			}
		}
	})
}

// TestTurnedAway: a server that lives and does not want the player does not get them every second, and they are told
// once; when the refusal is final, they are disconnected with it.
func TestTurnedAway(t *testing.T) {
	each(t, []int32{47, 767}, func(t *testing.T, protocol int32) {
		why := "full"
		var mu sync.Mutex
		lobby := newBackend(t, "lobby", func(b *fakeBackend) {
			b.refuse = func(p *peer) bool {
				mu.Lock()
				defer mu.Unlock()
				p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Plain(why)))
				p.conn.Close()
				return true
			}
		})
		limbo := newBackend(t, "limbo", nil)
		e := newEnv(t, func(c *Config) {
			c.limbo("limbo")
			c.Settings.TCPChecks = true
			c.Settings.FinalReasons = []string{"banned"}
		}, lobby, limbo)
		c, _ := e.settle(protocol, limbo)
		c.patience = ages
		refused := &e.core.Counters.Switches.Refused
		within(t, ages, func() bool { return refused.Load() == 2 }, "%d returns refused", func() []any { return []any{refused.Load()} })
		// Behind what came of it.
		e.player().post(letter{any: true, do: func() { e.player().SendChat(packet.Plain("so far")) }})
		var seen []string
		count := func(want string) int {
			return len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return !strings.Contains(s, want) }))
		}
		for count("so far") == 0 {
			q, _, body, err := c.try()
			if err != nil {
				t.Fatal(err)
			}
			if q == proto.Chat || q == proto.SystemChat {
				seen = append(seen, string(body))
			}
		}
		if count(" is back. Taking you there") != 1 || count("Cannot take you to ") != 1 {
			t.Errorf("told %q, want once each", seen)
		}
		mu.Lock()
		why = "you are banned"
		mu.Unlock()
		if got := c.kicked(); got != why {
			t.Errorf("told %q", got)
		}
	})
}

// TestDrain: a draining server keeps its players and gets no others, or they are taken off it; when that is over it
// gets players again.
func TestDrain(t *testing.T) {
	each(t, []int32{47, 763, 767, 775}, func(t *testing.T, protocol int32) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		e := newEnv(t, func(c *Config) { c.Settings.Fallback.Moves = limit.Rate{PerSecond: 100, Burst: 1} }, a, b)
		c, s := e.settle(protocol, a)
		if err := e.core.Drain("A", true, false, nil); err != nil {
			t.Fatal(err)
		}
		second := e.login(protocol, "Alex")
		second.moved(b)
		s.raw(0xf2, []byte("still here"))
		for {
			if _, id, _, err := c.try(); err != nil {
				t.Fatal(err)
			} else if id == 0xf2 {
				break
			}
		}
		done := make(chan Emptied, 1)
		if err := e.core.Drain("a", true, true, func(x Emptied) { done <- x }); err != nil {
			t.Fatal(err)
		}
		seen, _ := c.moved(b)
		if got := <-done; got.Players != 1 || got.Moved != 1 || got.Nowhere != nil || got.Refused != nil || got.Left != 0 {
			t.Errorf("reported: %+v", got)
		}
		if !slices.ContainsFunc(seen, func(x seenPacket) bool { return strings.Contains(string(x.body), " is being emptied. Taking you to ") }) {
			t.Errorf("not told: %v", names(seen))
		}
		until(t, func() bool { return e.core.population()["b"] == 2 }, "they are at %v", func() []any { return []any{e.core.population()} })
		e.core.Drain("a", false, false, nil)
		e.login(protocol, "Eve")
		a.next()
	})
}

// TestDrainNowhere: players of a draining server stay where they are when there is no other, and go when there is.
func TestDrainNowhere(t *testing.T) {
	t.Parallel() // with others that wait
	a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
	var set Settings
	e := newEnv(t, func(c *Config) {
		set = c.Settings
		c.Settings.Try = []string{"a"}
	}, a, b)
	c, _ := e.settle(765, a)
	done := make(chan Emptied, 1)
	e.core.Drain("a", true, true, func(x Emptied) { done <- x })
	until(t, func() bool { return strings.Contains(e.log.String(), "no server to take the player to") }, "nobody tried", func() []any { return nil })
	if at := e.player().Server(); at != "a" {
		t.Fatalf("on %q", at)
	}
	if got := <-done; got.Players != 1 || got.Moved != 0 || !slices.Equal(got.Nowhere, []string{"Steve"}) || got.Refused != nil {
		t.Errorf("reported: %+v", got)
	}
	e.core.Apply(set)
	b.visited()
	c.moved(b)
}

// TestDrainRefused: a player whom every other server refuses stays, and the report says so; one who loses the server on
// the way is told that it was being emptied, and why nobody else took them.
func TestDrainRefused(t *testing.T) {
	each(t, []int32{340, 767}, func(t *testing.T, protocol int32) {
		full := func(b *fakeBackend) {
			b.refuse = func(p *peer) bool {
				p.send(proto.Disconnect, packet.AppendDisconnect(nil, protocol, proto.Login, packet.Plain("no room")))
				p.conn.Close()
				return true
			}
		}
		a, b := newBackend(t, "a", nil), newBackend(t, "b", full)
		e := newEnv(t, nil, a, b)
		c, s := e.settle(protocol, a)
		e.settled("Steve")
		done := make(chan Emptied, 1)
		e.core.Drain("a", true, true, func(x Emptied) { done <- x })
		if got := <-done; got.Players != 1 || !slices.Equal(got.Refused, []string{"Steve"}) || got.Nowhere != nil || got.Moved != 0 {
			t.Errorf("reported: %+v", got)
		}
		e.on("a")
		s.conn.Close()
		if got := c.kicked(); !strings.Contains(got, "Server a is being emptied, and no other server takes you: Server a closed the connection.") {
			t.Errorf("told %q", got)
		}
		// And who comes while the only other one is full or gone is told too.
		set := *e.core.settings.Load()
		set.Try = []string{"a"}
		e.core.Apply(set)
		if got := e.login(protocol, "Alex").kicked(); !strings.Contains(got, "Server a is being emptied and takes nobody at the moment") {
			t.Errorf("a newcomer is told %q", got)
		}
	})
}
