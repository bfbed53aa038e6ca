package lite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keeper is an Owner.
type keeper struct {
	servers  []*backend.Server
	dialed   []string
	poke     chan struct{}
	ended    atomic.Bool
	panicked chan any
}

func newKeeper(servers ...*backend.Server) *keeper {
	return &keeper{servers: servers, poke: make(chan struct{}, 1), panicked: make(chan any, 2)}
}

func (k *keeper) Next(untried func(*backend.Server) bool) *backend.Server {
	if i := slices.IndexFunc(k.servers, untried); i >= 0 {
		return k.servers[i]
	}
	return nil
}

func (k *keeper) Dialed(_ context.Context, b *backend.Server, err error) {
	what := b.Name
	if err != nil {
		what += " failed"
	}
	k.dialed = append(k.dialed, what)
}

func (k *keeper) Timeouts() Timeouts {
	return Timeouts{Dial: 5 * time.Second, Read: 20 * time.Second, Write: 30 * time.Second}
}

func (k *keeper) Poked() <-chan struct{} { return k.poke }
func (k *keeper) Ended() bool            { return k.ended.Load() }
func (k *keeper) Panicked(v any)         { k.panicked <- v }

// conn returns a connection that is to be passed on, and its client.
func conn(k *keeper) (c *Conn, client net.Conn) {
	ours, client := net.Pipe()
	return &Conn{Owner: k, Client: ours, Counters: new(Counters), Log: slog.New(slog.DiscardHandler)}, client
}

func server(name string, dial func() (net.Conn, error)) *backend.Server {
	return &backend.Server{Name: name, Dial: func(context.Context) (net.Conn, error) { return dial() }}
}

// TestReach: servers are tried one after the other, each once, until one can be reached or there is no time left.
func TestReach(t *testing.T) {
	down := func() (net.Conn, error) { return nil, errors.New("nobody listens") }
	up := func() (net.Conn, error) {
		c, _ := net.Pipe()
		return c, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := func() (net.Conn, error) {
		cancel()
		return nil, ctx.Err()
	}
	for what, x := range map[string]struct {
		servers []*backend.Server
		dialed  string
	}{
		"the second is up":       {[]*backend.Server{server("a", down), server("b", up), server("c", up)}, "a failed, b"},
		"one by two names":       {[]*backend.Server{server("a", down), server("A", up)}, "a failed"},
		"none":                   {nil, ""},
		"no time for the second": {[]*backend.Server{server("a", over), server("b", up)}, "a failed"},
	} {
		k := newKeeper(x.servers...)
		c, _ := conn(k)
		b, to := c.Reach(ctx)
		if got := strings.Join(k.dialed, ", "); got != x.dialed {
			t.Errorf("%s: %s", what, got)
		}
		if (b == nil) != strings.HasSuffix("failed"+x.dialed, "failed") || (b == nil) != (to == nil) {
			t.Errorf("%s: reached %v", what, b)
		}
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

// TestPass: what the client has said comes first, then everything, both ways, and it is counted.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		c, client := conn(k)
		to, s := net.Pipe()
		passed := make(chan error)
		go func() { passed <- c.Pass(to, []byte("hello ")) }()
		go client.Write([]byte("server"))
		got := make([]byte, 12)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello server" {
			t.Errorf("the server got %q, %v", got, err)
		}
		go s.Write([]byte("hello client"))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != "hello client" {
			t.Errorf("the client got %q, %v", got, err)
		}
		if n := c.Counters.Open.Load(); n != 1 {
			t.Errorf("%d are open", n)
		}
		s.Close()
		client.Close()
		if err := <-passed; err != nil {
			t.Error(err)
		}
		n := c.Counters
		if n.Open.Load() != 0 || n.Connections.Load() != 1 || n.Bytes[proto.Serverbound].Load() != 12 || n.Bytes[proto.Clientbound].Load() != 12 {
			t.Errorf("counted: %+v", n)
		}
	})
}

// TestTakesNothing: of a server that takes no byte the owner is told.
func TestTakesNothing(t *testing.T) {
	c, _ := conn(newKeeper())
	to, s := net.Pipe()
	s.Close()
	if err := c.Pass(to, []byte("hello")); err == nil {
		t.Error("no error")
	}
	if c.Counters.Open.Load() != 0 {
		t.Error("it stays open")
	}
}

// TestEnds: whatever either side does, or the owner wants, a connection ends in time; a silent one does not.
func TestEnds(t *testing.T) {
	for what, x := range map[string]struct {
		do     func(k *keeper, client, server net.Conn)
		within time.Duration
	}{
		"the owner": {func(k *keeper, _, _ net.Conn) {
			k.ended.Store(true)
			k.poke <- struct{}{}
		}, time.Second},
		"the server closes, the client stays": {func(_ *keeper, _, s net.Conn) { s.Close() }, 21 * time.Second},
		"the client closes, the server stays": {func(_ *keeper, c, _ net.Conn) { c.Close() }, 21 * time.Second},
		"the client takes nothing": {func(_ *keeper, _, s net.Conn) {
			go io.Copy(s, bytes.NewReader(make([]byte, 1<<20)))
		}, 92 * time.Second},
		"the server takes nothing": {func(_ *keeper, c, _ net.Conn) {
			go io.Copy(c, bytes.NewReader(make([]byte, 1<<20)))
		}, 92 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeeper()
				c, client := conn(k)
				to, s := net.Pipe()
				passed := make(chan struct{})
				go func() {
					c.Pass(to, []byte("hello"))
					close(passed)
				}()
				io.ReadFull(s, make([]byte, 5))
				k.poke <- struct{}{} // without an order
				time.Sleep(5 * time.Hour)
				select {
				case <-passed:
					t.Fatal("silence ended it")
				default:
				}
				begun := time.Now()
				x.do(k, client, s)
				<-passed
				if took := time.Since(begun); took > x.within {
					t.Errorf("it took %v", took)
				}
				client.Close()
				s.Close()
			})
		})
	}
}

// explosive is a connection that cannot be read.
type explosive struct{ net.Conn }

func (explosive) Read([]byte) (int, error) { panic("boom") }

// TestPanic: the owner hears of a panic, and the connection ends once the owner has closed it.
func TestPanic(t *testing.T) {
	k := newKeeper()
	c, client := conn(k)
	to, s := net.Pipe()
	passed := make(chan struct{})
	go func() {
		c.Pass(explosive{to}, []byte("hello"))
		close(passed)
	}()
	io.ReadFull(s, make([]byte, 5))
	if v := <-k.panicked; v != "boom" {
		t.Errorf("panicked with %v", v)
	}
	client.Close()
	s.Close()
	<-passed
}
