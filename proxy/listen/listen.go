// Package listen puts Minecraft, HTTP and TLS on one TCP port and tells them apart by their first bytes. It believes a
// PROXY protocol header only from networks it was told to trust, charges a connection to the address that results
// before it reads anything else, and never lets a stranger hold more than one of a fixed number of places for more than
// a few seconds.
package listen

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/earshot-mc/earshot/proxy/limit"
)

// Why a connection was closed here, as [Config].Count gets it.
const (
	AcceptFailed   = "accept_failed"   // the system could not accept a connection; it is tried again
	Throttled      = "throttled"       // [Config].Gate said no
	Crowded        = "crowded"         // silent for the longest of [MaxSniffing] connections, or of a network's
	ProxyUntrusted = "proxy_untrusted" // a PROXY header from an address that may not send one
	ProxyMissing   = "proxy_missing"   // no PROXY header where one is required
	ProxyInvalid   = "proxy_invalid"   // a PROXY header that cannot be read
	ProxySlow      = "proxy_slow"      // a PROXY header that did not arrive in time
	Silent         = "silent"          // not one byte in time; such a client waits for the server to speak
	Slow           = "slow"            // some bytes in time, but too few to tell what they are
	HungUp         = "hung_up"         // closed by the other side before it could be told apart
	Unknown        = "unknown"         // nothing that is served here
	TLSOff         = "tls_off"         // TLS, and no certificate to answer it with
	Unserved       = "unserved"        // told apart, but nobody took it; or the listener is closing
)

// Reasons lists all reasons, so that each can be exported at zero from the start.
var Reasons = []string{AcceptFailed, Throttled, Crowded, ProxyUntrusted, ProxyMissing, ProxyInvalid, ProxySlow,
	Silent, Slow, HungUp, Unknown, TLSOff, Unserved}

// MaxSniffing bounds the connections that are on the way from accept to their server, by the [limit.Shares] of
// networks: the one that has been silent for the longest goes for the next one.
const MaxSniffing = 2048

// MaxTold bounds the connections that [Config].Gate has refused and that are on the way to being told so; one network
// has at most an eighth of them. All others are closed without a reply.
const MaxTold = 64

// toldWithin is how long such a connection has to say what it is.
const toldWithin = 2 * time.Second

// Defaults for [Config].
const (
	DefaultFirstByte   = 5 * time.Second
	DefaultProxyHeader = 3 * time.Second
)

// legacyWait is how long a connection that began like an old server list ping may pause before it is taken for one: the
// three oldest forms of that ping are prefixes of each other and of a frame.
const legacyWait = 300 * time.Millisecond

// Config says how to treat connections. The zero value serves Minecraft and HTTP without limits.
type Config struct {
	Trusted      []netip.Prefix // networks that may send a PROXY protocol header (v1 or v2)
	RequireProxy bool           // Trusted peers must send one; others are not affected
	TLS          bool           // somebody accepts from Listener.TLS

	FirstByte   time.Duration // time from accept (or PROXY header) until a connection is told apart; 0 = 5 s
	ProxyHeader time.Duration // time for the whole PROXY header; 0 = 3 s

	// Players serves each player, ping and old client in the goroutine that has told it apart, which saves a server
	// list ping two hand-overs. nil: they come out of [Listener.Minecraft].
	Players func(*Conn)

	// Gate returns how long this address has to wait until it may connect; it is called once for each connection. 0: it
	// may now. nil: everybody may. A few of those that have to wait are passed on all the same, to be told: see [Wait].
	Gate  func(netip.Addr) time.Duration
	Log   *slog.Logger                         // nil = silent
	Count func(reason string, from netip.Addr) // a connection was closed here; from any goroutine; nil: not counted
}

// Listener accepts from one TCP listener and hands its connections to three others.
type Listener struct {
	cfg  atomic.Pointer[Config]
	ln   net.Listener
	room *limit.Places
	told *limit.Places // of connections that Gate has refused
	done chan struct{}

	minecraft, http, tls *queue

	mu     sync.Mutex
	closed bool
	open   map[*net.TCPConn]struct{} // connections not yet handed out
	wg     sync.WaitGroup
}

// New returns a Listener that takes over ln, as [Open] makes it; its connections must be TCP ones. Nothing is accepted
// before [Listener.Serve].
func New(ln net.Listener, cfg Config) *Listener {
	l := &Listener{ln: ln, room: limit.NewPlaces(limit.Shares(MaxSniffing)), told: limit.NewPlaces(limit.Bounds{All: MaxTold, Wide: MaxTold / 4, Network: MaxTold / 8}), done: make(chan struct{}), open: map[*net.TCPConn]struct{}{}}
	l.Apply(cfg)
	for _, q := range []**queue{&l.minecraft, &l.http, &l.tls} {
		*q = &queue{addr: ln.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}
	}
	return l
}

// Apply replaces the Config for connections that are accepted from now on. Players must stay the same.
func (l *Listener) Apply(cfg Config) {
	if cfg.FirstByte <= 0 {
		cfg.FirstByte = DefaultFirstByte
	}
	if cfg.ProxyHeader <= 0 {
		cfg.ProxyHeader = DefaultProxyHeader
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Count == nil {
		cfg.Count = func(string, netip.Addr) {}
	}
	if cfg.Gate == nil {
		cfg.Gate = func(netip.Addr) time.Duration { return 0 }
	}
	cfg.Trusted = append([]netip.Prefix(nil), cfg.Trusted...)
	for i, p := range cfg.Trusted {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // peers are compared without the mapping
			cfg.Trusted[i] = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
	}
	l.cfg.Store(&cfg)
}

// Minecraft returns the listener for players, server list pings and clients older than 1.7 (see [Legacy]). Its
// connections are *[Conn]s.
func (l *Listener) Minecraft() net.Listener { return l.minecraft }

// HTTP returns the listener for plain HTTP requests. Its connections are *[Conn]s.
func (l *Listener) HTTP() net.Listener { return l.http }

// TLS returns the listener for connections that begin with a TLS record, the handshake not yet read. Without
// [Config].TLS it never has one. Its connections are *[Conn]s.
func (l *Listener) TLS() net.Listener { return l.tls }

// Serve accepts until Close, and then returns ErrClosed, or until the listening socket breaks. Running out of file
// descriptors and the like does not end it.
func (l *Listener) Serve() error {
	var pause time.Duration
	for {
		c, err := l.ln.Accept()
		if err != nil {
			if broken(err) {
				return err
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			cfg := l.cfg.Load()
			cfg.Count(AcceptFailed, netip.Addr{})
			cfg.Log.Warn("cannot accept connections, trying again", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
				continue
			case <-l.done:
				return net.ErrClosed
			}
		}
		pause = 0
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			c.Close()
			return errors.New("listen: not a TCP listener")
		}
		l.admit(tcp)
	}
}

// broken tells an accept error that will not go away. Linux reports many passing network errors of the peer through
// accept, so everything else is worth another try.
func broken(err error) bool {
	for _, e := range []error{net.ErrClosed, syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit does in the accept loop what costs nothing, so that a flood does not even get a goroutine, and starts one for
// the rest.
func (l *Listener) admit(tcp *net.TCPConn) {
	peer, ok := tcp.RemoteAddr().(*net.TCPAddr)
	if !ok { // the peer was gone before it could be asked
		l.refuse(tcp, netip.AddrPort{}, HungUp)
		return
	}
	from := unmap(peer.AddrPort())
	cfg := l.cfg.Load()
	a := &arrival{tcp: tcp, from: from, trusted: cfg.trusts(from.Addr())}
	if !a.trusted {
		a.wait = cfg.Gate(from.Addr())
	}
	if !l.enter(a) {
		l.refuse(tcp, from, a.reason())
		return
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.leave(a)
		l.refuse(tcp, from, Unserved)
		return
	}
	l.open[tcp] = struct{}{}
	l.wg.Add(1)
	l.mu.Unlock()
	go func() {
		player := l.receive(cfg, a)
		l.leave(a)
		l.wg.Done()
		if player != nil {
			cfg.Players(player)
		}
	}()
}

// arrival is a connection on the way from accept to its server.
type arrival struct {
	limit.Place
	tcp     *net.TCPConn
	from    netip.AddrPort
	trusted bool          // from may send a PROXY header
	wait    time.Duration // the gate's answer; the client comes in to be told
	evicted atomic.Bool
}

// enter takes a place for a: either to come in, or to be told why it may not. A balancer's connections are counted by
// the client's address, once that is known.
func (l *Listener) enter(a *arrival) bool {
	if a.wait > 0 {
		return l.told.Enter(&a.Place, a.from.Addr(), nil)
	}
	from := a.from.Addr()
	if a.trusted {
		from = netip.Addr{}
	}
	return l.room.Enter(&a.Place, from, func() {
		a.evicted.Store(true)
		a.tcp.SetReadDeadline(time.Unix(1, 0))
	})
}

func (l *Listener) leave(a *arrival) {
	if a.wait > 0 {
		l.told.Leave(&a.Place)
		return
	}
	l.room.Leave(&a.Place)
}

// reason returns why there is no place for a.
func (a *arrival) reason() string {
	if a.wait > 0 {
		return Throttled
	}
	return Crowded
}

// header reads the client's address from a balancer's connection.
func (l *Listener) header(cfg *Config, a *arrival, buf []byte) ([]byte, error) {
	from, buf, err := readHeader(a, a.from, buf, cfg.ProxyHeader, cfg.RequireProxy)
	if err != nil {
		return buf, err
	}
	l.leave(a)
	a.from, a.trusted = from, false
	a.wait = cfg.Gate(from.Addr())
	if !l.enter(a) {
		return buf, refusal(a.reason())
	}
	return buf, nil
}

// Read implements socket.
func (a *arrival) Read(b []byte) (int, error) { return a.tcp.Read(b) }

// SetReadDeadline implements socket. A connection that has lost its place reads nothing any more.
func (a *arrival) SetReadDeadline(t time.Time) error {
	err := a.tcp.SetReadDeadline(t)
	if a.evicted.Load() {
		err = refusal(Crowded)
	}
	return err
}

// receive tells one connection apart and hands it out, or returns it where Config.Players is to have it. Nagle's
// algorithm is off in every connection the net package makes.
func (l *Listener) receive(cfg *Config, a *arrival) (player *Conn) {
	tcp, buf := a.tcp, make([]byte, 0, 512)
	var err error
	if a.trusted {
		buf, err = l.header(cfg, a, buf)
	}
	from := a.from
	var k kind
	if err == nil {
		patience := cfg.FirstByte
		if a.wait > 0 {
			patience = min(patience, toldWithin)
		}
		k, buf, err = sniff(a, buf, patience)
	}
	if a.evicted.Load() {
		err = refusal(Crowded)
	}
	if a.wait > 0 && (err != nil || k == legacy || k == tlsRecord) {
		err = refusal(Throttled)
	}
	if a.wait > 0 && err == nil && k == httpRequest {
		sayTooMany(tcp, a.wait)
		err = refusal(Throttled)
	}
	if a.wait > 0 && err == nil {
		cfg.Count(Throttled, from.Addr())
	}
	if err == nil && k == tlsRecord && !cfg.TLS {
		err = refusal(TLSOff)
	}
	if err == nil {
		tcp.SetReadDeadline(time.Time{})
	}
	l.mu.Lock()
	delete(l.open, tcp)
	l.mu.Unlock()
	var why refusal
	if errors.As(err, &why) {
		l.refuse(tcp, from, string(why))
		return nil
	}
	c := &Conn{TCPConn: tcp, remote: net.TCPAddrFromAddrPort(from), peeked: buf, legacy: k == legacy, wait: a.wait}
	q := l.minecraft
	switch k {
	case httpRequest:
		q = l.http
	case tlsRecord:
		q = l.tls
	default:
		if cfg.Players != nil {
			return c
		}
	}
	if !q.put(c, cfg.FirstByte) {
		l.refuse(tcp, from, Unserved)
	}
	return nil
}

// sayTooMany answers an HTTP request, possibly before it is read, without waiting for anything.
func sayTooMany(tcp *net.TCPConn, wait time.Duration) {
	const text = "too many connections from your network (limits.connections)\n"
	tcp.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // a fresh connection takes it at once
	fmt.Fprintf(tcp, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nRetry-After: %d\r\nConnection: close\r\n\r\n%s",
		len(text), int((wait+time.Second-1)/time.Second), text)
	tcp.CloseWrite()
	// Read what has come, or closing would take the answer with it.
	tcp.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	io.Copy(io.Discard, io.LimitReader(tcp, 16<<10))
}

func (l *Listener) refuse(tcp *net.TCPConn, from netip.AddrPort, reason string) {
	cfg := l.cfg.Load()
	cfg.Count(reason, from.Addr()) // before the client can see that it was refused
	cfg.Log.Debug("connection refused", "from", from, "reason", reason)
	tcp.Close()
}

func (c *Config) trusts(a netip.Addr) bool {
	a = a.WithZone("")
	for _, p := range c.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// Close closes the listening socket, the three listeners and every connection not yet handed out, and waits for all
// goroutines of this Listener. Connections that were handed out stay open.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.wg.Wait()
		return nil
	}
	l.closed = true
	close(l.done)
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	err := l.ln.Close()
	for _, q := range []*queue{l.minecraft, l.http, l.tls} {
		q.Close()
	}
	l.wg.Wait()
	return err
}

// queue is a net.Listener fed by hand. It holds nothing: a connection that nobody has accepted waits in its goroutine,
// within the bound of MaxSniffing.
type queue struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// put hands c to the next Accept and reports whether one came within patience.
func (q *queue) put(c net.Conn, patience time.Duration) bool {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case q.conns <- c:
		return true
	case <-q.done:
	case <-t.C:
	}
	return false
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

func (q *queue) Addr() net.Addr { return q.addr }

// Conn is a TCP connection whose first bytes have been looked at and are read once more. Behind them it is the TCP
// connection itself: nothing is copied, and vectored writes reach the socket.
type Conn struct {
	*net.TCPConn
	remote *net.TCPAddr
	peeked []byte
	legacy bool
	wait   time.Duration
}

// Wait returns how long the network of c, which came from a [Listener], has to wait before it may connect; its server
// may tell it so, and does no more. 0: it may.
func Wait(c net.Conn) time.Duration {
	if lc, ok := c.(*Conn); ok {
		return lc.wait
	}
	return 0
}

// Legacy reports whether c came from a [Listener] and is a server list ping (first byte FE) or a login (first byte 02)
// of a client older than 1.7. The first byte alone does not tell: a frame of 254 bytes begins with FE too.
func Legacy(c net.Conn) bool {
	lc, ok := c.(*Conn)
	return ok && lc.legacy
}

// Read reads the bytes that were looked at, then from the socket. It may not be called concurrently with itself or
// WriteTo before those bytes are used up.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.peeked) == 0 {
		return c.TCPConn.Read(b)
	}
	n := copy(b, c.peeked)
	if c.peeked = c.peeked[n:]; len(c.peeked) == 0 {
		c.peeked = nil // let the buffer go
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	var n int64
	if p := c.peeked; len(p) > 0 {
		m, err := w.Write(p)
		c.peeked = p[m:]
		n = int64(m)
		if err != nil {
			return n, err
		}
		c.peeked = nil
	}
	m, err := c.TCPConn.WriteTo(w)
	return n + m, err
}

// Buffered returns the number of bytes that were looked at and not read yet. While it is zero, a read from the
// descriptor itself misses nothing.
func (c *Conn) Buffered() int { return len(c.peeked) }

// RemoteAddr returns the client's address, a *net.TCPAddr: the one a trusted PROXY header named, or the socket's. It is
// never an IPv4-mapped IPv6 address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// NetConn returns the *net.TCPConn below. Bytes already looked at cannot be read there.
func (c *Conn) NetConn() net.Conn { return c.TCPConn }
