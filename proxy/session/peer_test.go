package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eras is one version for each way of joining.
var eras = []int32{47, 340, 404, 578, 736, 754, 758, 759, 760, 761, 763, 764, 765, 766, 767, 769, 775, 776, 777}

// long reports whether there is time for what takes minutes; make soak says so.
func long() bool { return os.Getenv("EARSHOT_LONG") != "" }

// patienceInTests bounds every wait of a test; nothing ever takes that long in a working program.
const patienceInTests = 10 * time.Second

// peer is one end of a connection at the level of frames: a client, or a backend.
type peer struct {
	t         testing.TB
	conn      net.Conn
	r         *frame.Reader
	w         *frame.Writer
	v         *proto.Version
	sends     proto.Dir
	in, out   proto.State
	threshold int
	patience  time.Duration     // of each read
	mute      bool              // a client that follows does not answer keep-alives
	slow      time.Duration     // before a client that follows acknowledges anything
	login     packet.LoginStart // what a backend was told
	handshake packet.Handshake
}

func newPeer(t testing.TB, conn net.Conn, v *proto.Version, sends proto.Dir) *peer {
	p := &peer{t: t, conn: conn, r: frame.NewReader(conn, frame.Limits{}), w: frame.NewWriter(conn), v: v, sends: sends, threshold: -1, patience: patienceInTests}
	t.Cleanup(func() { conn.Close() })
	return p
}

func (p *peer) compress(threshold int) {
	p.threshold = threshold
	p.r.SetCompression(threshold)
	p.w.SetCompression(threshold)
}

func (p *peer) state(s proto.State) { p.in, p.out = s, s }

func (p *peer) id(q proto.Packet) int32 {
	p.t.Helper()
	id, ok := p.v.ID(p.out, p.sends, q)
	if !ok {
		p.t.Fatalf("protocol %d has no %v to send in %v", p.v.Protocol, q, p.out)
	}
	return id
}

func (p *peer) send(q proto.Packet, body []byte) {
	p.t.Helper()
	if err := p.w.Packet(p.id(q), body); err != nil {
		p.t.Fatalf("send %v: %v", q, err)
	}
}

// raw sends a packet by its id.
func (p *peer) raw(id int32, body []byte) {
	p.t.Helper()
	if err := p.w.Packet(id, body); err != nil {
		p.t.Fatalf("send id %d: %v", id, err)
	}
}

// try reads one packet.
func (p *peer) try() (proto.Packet, int32, []byte, error) {
	p.conn.SetReadDeadline(time.Now().Add(p.patience))
	f, err := p.r.Next()
	if err != nil {
		return 0, 0, nil, err
	}
	body, err := p.r.Body(f)
	if err != nil {
		return 0, 0, nil, err
	}
	q := proto.Unknown
	if f.ID >= 0 && f.ID < 256 {
		q = p.v.Table(p.in, 1-p.sends)[f.ID]
	}
	return q, f.ID, append([]byte(nil), body...), nil
}

// expect reads the next packet, which has to be q.
func (p *peer) expect(q proto.Packet) []byte {
	p.t.Helper()
	got, id, body, err := p.try()
	if err != nil {
		p.t.Fatalf("protocol %d: waiting for %v in %v: %v", p.v.Protocol, q, p.in, err)
	}
	if got != q {
		p.t.Fatalf("protocol %d: got %v (id %#x, %q) in %v, want %v", p.v.Protocol, got, id, body, p.in, q)
	}
	return body
}

// await reads up to the next q.
func (p *peer) await(q proto.Packet) []byte {
	p.t.Helper()
	for {
		got, _, body, err := p.try()
		if err != nil {
			p.t.Fatalf("protocol %d: waiting for %v in %v: %v", p.v.Protocol, q, p.in, err)
		}
		if got == q {
			return body
		}
	}
}

// expectID reads the next packet, which has to have an id that no table knows, or a given one.
func (p *peer) expectID(want int32) []byte {
	p.t.Helper()
	_, id, body, err := p.try()
	if err != nil || id != want {
		p.t.Fatalf("protocol %d: got id %#x, %v, want %#x", p.v.Protocol, id, err, want)
	}
	return body
}

// closed waits until the other side has hung up.
func (p *peer) closed() {
	p.t.Helper()
	for {
		q, _, _, err := p.try()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.t.Fatal("the connection is still open")
		}
		if err != nil {
			p.conn.Close()
			return
		}
		if q == proto.Disconnect {
			p.t.Fatalf("a disconnect packet where only a close was due")
		}
	}
}

// kicked reads up to the disconnect packet and tells its reason.
func (p *peer) kicked() string {
	p.t.Helper()
	text, err := packet.ParseDisconnect(p.v.Protocol, p.in, p.await(proto.Disconnect))
	if err != nil {
		p.t.Fatalf("disconnect packet: %v", err)
	}
	if _, _, _, err := p.try(); err == nil {
		p.t.Fatal("a packet after the disconnect packet")
	}
	p.conn.Close()
	return text.String()
}

// saying returns what a text of the game is to a client of that protocol.
func saying(protocol int32, key string, with ...string) string {
	return packet.JSONText(packet.Translatable(key, with...).JSON(protocol)).String()
}

// message returns the body of a plugin message.
func message(channel, data string) []byte {
	return packet.AppendPluginMessage(nil, packet.PluginMessage{Channel: channel, Data: []byte(data)})
}

// env is a Core on a port, with what its tests look at.
type env struct {
	t    testing.TB
	core *Core
	ln   net.Listener
	log  *testkit.Log
}

// newEnv starts a Core for backends, in the order in which they are tried.
func newEnv(t testing.TB, change func(*Config), backends ...*fakeBackend) *env {
	t.Helper()
	e := &env{t: t, log: new(testkit.Log)}
	cfg := Config{Settings: Settings{Threshold: 256}, Say: new(commands.Texts).Say, Log: e.log.Logger(slog.LevelDebug)}
	for _, b := range backends {
		cfg.Settings.Servers = append(cfg.Settings.Servers, backend.Server{Name: b.name, Address: b.ln.Addr().String()})
		cfg.Settings.Try = append(cfg.Settings.Try, b.name)
	}
	if change != nil {
		change(&cfg)
	}
	e.core = New(cfg)
	var err error
	if e.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := e.ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { e.core.Serve(c) })
		}
	})
	t.Cleanup(func() {
		e.ln.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patienceInTests)
		defer cancel()
		if err := e.core.Shutdown(ctx, "test over"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if n := e.core.Online(); n != 0 {
			t.Errorf("%d players are left on the list", n)
		}
		if t.Failed() {
			t.Log(e.log.String())
		}
	})
	return e
}

// shutdown begins a Shutdown, which the end of the test waits for.
func (e *env) shutdown(reason string) {
	e.t.Helper()
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patienceInTests)
		defer cancel()
		done <- e.core.Shutdown(ctx, reason)
	}()
	e.t.Cleanup(func() {
		if err := <-done; err != nil {
			e.t.Error(err)
		}
	})
}

// ended waits until n connections have ended in that way.
func (e *env) ended(how Ending, n uint64) {
	e.t.Helper()
	until(e.t, func() bool { return e.core.Counters.Ended(how) == n }, "%d connections ended as %v, want %d", func() []any {
		return []any{e.core.Counters.Ended(how), how, n}
	})
}

func until(t testing.TB, ok func() bool, format string, args func() []any) {
	t.Helper()
	within(t, patienceInTests, ok, format, args)
}

func within(t testing.TB, d time.Duration, ok func() bool, format string, args func() []any) {
	t.Helper()
	if !testkit.Wait(d, ok) {
		t.Fatalf(format, args()...)
	}
}

// known returns a version, or one of which only the number is known.
func known(protocol int32) *proto.Version {
	if v := proto.Lookup(protocol); v != nil || protocol < proto.Max {
		return v
	}
	return proto.Unknowing(protocol)
}

// connect opens a connection and says who it is.
func (e *env) connect(protocol int32, intent packet.Intent) *peer {
	e.t.Helper()
	return e.come(protocol, "Play.Example.org.", intent)
}

// come does as connect by a host name.
func (e *env) come(protocol int32, host string, intent packet.Intent) *peer {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.ln.Addr().String())
	if err != nil {
		e.t.Fatal(err)
	}
	p := newPeer(e.t, conn, known(protocol), proto.Serverbound)
	p.raw(0, packet.AppendHandshake(nil, packet.Handshake{Protocol: protocol, Host: host, Port: 25565, Intent: intent}))
	p.state(proto.Login)
	return p
}

// start does as connect and login start.
func (e *env) start(protocol int32, name string) *peer {
	e.t.Helper()
	p := e.connect(protocol, packet.IntentLogin)
	p.send(proto.LoginStart, packet.AppendLoginStart(nil, protocol, packet.LoginStart{Name: name}))
	return p
}

// loggedIn reads up to login success and acknowledges it: the client is in configuration, or in play before 1.20.2.
func (p *peer) loggedIn() packet.LoginSuccess {
	p.t.Helper()
	for {
		q, id, body, err := p.try()
		switch {
		case err != nil:
			p.t.Fatalf("protocol %d: login: %v", p.v.Protocol, err)
		case q == proto.SetCompression:
			n, err := packet.ParseSetCompression(body)
			if err != nil {
				p.t.Fatal(err)
			}
			p.compress(n)
		case q == proto.LoginSuccess:
			s, err := packet.ParseLoginSuccess(p.v.Protocol, body)
			if err != nil {
				p.t.Fatal(err)
			}
			p.state(proto.Play)
			if p.v.HasConfiguration() {
				p.in, p.out = proto.Config, proto.Login
				p.send(proto.LoginAcknowledged, nil)
				p.out = proto.Config
			}
			return s
		default:
			p.t.Fatalf("protocol %d: login: got %v (id %d) %q", p.v.Protocol, q, id, body)
		}
	}
}

// login does as start and loggedIn.
func (e *env) login(protocol int32, name string) *peer {
	e.t.Helper()
	p := e.start(protocol, name)
	p.loggedIn()
	return p
}

// join goes on to the join game packet, whose body it returns.
func (p *peer) join() []byte {
	p.t.Helper()
	if p.v.HasConfiguration() {
		p.await(proto.FinishConfiguration)
		p.in = proto.Play
		p.send(proto.FinishConfiguration, nil)
		p.out = proto.Play
	}
	return p.await(proto.JoinGame)
}

// fakeBackend is a backend in offline mode that does what its script says.
type fakeBackend struct {
	t         testing.TB
	name      string
	ln        net.Listener
	threshold int
	wg        sync.WaitGroup
	peers     chan *peer // logged in: in configuration, or in play before 1.20.2
	refuse    func(p *peer) bool
	quiet     bool // players may come and go while they log in
}

// newBackend starts a backend. Those who log in come out of next.
func newBackend(t testing.TB, name string, change func(*fakeBackend)) *fakeBackend {
	t.Helper()
	b := &fakeBackend{t: t, name: name, threshold: 256, peers: make(chan *peer, 4096)}
	if change != nil {
		change(b)
	}
	var err error
	if b.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	b.wg.Go(func() {
		for {
			c, err := b.ln.Accept()
			if err != nil {
				return
			}
			b.wg.Go(func() { b.welcome(c) })
		}
	})
	t.Cleanup(func() { b.ln.Close(); b.wg.Wait() })
	return b
}

// welcome is the backend's side of a login. It runs outside the test's goroutine, so it fails by closing.
func (b *fakeBackend) welcome(c net.Conn) {
	p := newPeer(b.t, c, proto.Lookup(47), proto.Clientbound)
	if err := func() error {
		_, _, body, err := p.try()
		if err != nil {
			return err
		}
		if p.handshake, err = packet.ParseHandshake(body, packet.MaxForwardedHost); err != nil {
			return err
		}
		if p.v = known(p.handshake.Protocol); p.v == nil || p.handshake.Intent != packet.IntentLogin {
			return fmt.Errorf("handshake %+v", p.handshake)
		}
		p.state(proto.Login)
		q, _, body, err := p.try()
		if err != nil || q != proto.LoginStart {
			return fmt.Errorf("%v instead of login start: %w", q, err)
		}
		if p.login, err = packet.ParseLoginStart(p.v.Protocol, body); err != nil {
			return err
		}
		if b.refuse != nil && b.refuse(p) {
			return nil
		}
		if b.threshold >= 0 {
			p.w.Append(p.id(proto.SetCompression), packet.AppendSetCompression(nil, b.threshold))
			p.compress(b.threshold)
		}
		success := packet.AppendLoginSuccess(nil, p.v.Protocol, packet.LoginSuccess{ID: p.login.ID, Name: p.login.Name})
		if err := p.w.Packet(p.id(proto.LoginSuccess), success); err != nil {
			return err
		}
		p.state(proto.Play)
		if p.v.HasConfiguration() {
			p.in, p.out = proto.Login, proto.Config
			if q, _, _, err := p.try(); err != nil || q != proto.LoginAcknowledged {
				return fmt.Errorf("%v instead of login acknowledged: %w", q, err)
			}
			p.in = proto.Config
		}
		b.peers <- p
		return nil
	}(); err != nil {
		if !b.quiet && !errors.Is(err, io.EOF) {
			b.t.Logf("backend %s: %v", b.name, err)
		}
		c.Close()
	}
}

// next returns the next player who has logged in.
func (b *fakeBackend) next() *peer {
	b.t.Helper()
	select {
	case p := <-b.peers:
		return p
	case <-time.After(patienceInTests):
		b.t.Fatalf("nobody has logged in on backend %s", b.name)
		return nil
	}
}

// serve calls f for each player who logs in, until the test ends.
func (b *fakeBackend) serve(f func(p *peer)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case p := <-b.peers:
				f(p)
			case <-stop:
				return
			}
		}
	}()
	b.t.Cleanup(func() { close(stop); <-stopped })
}

// admit takes a player from the end of its login into play.
func (p *peer) admit() {
	p.t.Helper()
	if p.v.HasConfiguration() {
		p.send(proto.FinishConfiguration, nil)
		p.out = proto.Play
		p.await(proto.FinishConfiguration)
		p.in = proto.Play
	}
	p.send(proto.JoinGame, joinBody)
}

// joinBody is a join game packet's body; to a relay it is just bytes.
var joinBody = field.AppendString([]byte{0, 0, 0, 7, 1}, "minecraft:overworld")

// play brings a client and its backend into play.
func (e *env) play(protocol int32, name string, b *fakeBackend) (client, server *peer) {
	e.t.Helper()
	client = e.login(protocol, name)
	server = b.next()
	done := make(chan struct{})
	go func() { defer close(done); server.admit() }()
	if got := client.join(); string(got) != string(joinBody) {
		e.t.Fatalf("join game arrived as %q", got)
	}
	<-done
	return client, server
}
