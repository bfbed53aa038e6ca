// Package backend connects players to Minecraft servers: it dials, forwards the player's identity in the way the server
// expects, and goes through the login until the server has let the player in.
//
// It promises that each stage ends within its own time whatever the server does, that nothing a player sends can pass
// for an identity, and that an error says what the administrator has to change.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Mode says how a server learns who a player is.
type Mode uint8

// The modes. None tells it nothing: the server sees the proxy's address and makes up its own UUIDs. Legacy and
// BungeeGuard put the identity into the handshake, BungeeGuard with a secret. Modern answers the server's question with
// a signed identity; it needs 393 (1.13).
const (
	None Mode = iota
	Legacy
	BungeeGuard
	Modern
	numModes
)

var modeNames = [numModes]string{"none", "legacy", "bungeeguard", "modern"}

// String returns the mode's name in the configuration.
func (m Mode) String() string {
	if m >= numModes {
		return "invalid"
	}
	return modeNames[m]
}

// ParseMode returns the mode with that name.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if name == s {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("forwarding mode %q does not exist; choose none, legacy, bungeeguard or modern", s)
}

// Server describes a backend. Copies are independent; nothing here changes one.
type Server struct {
	Name       string
	Address    string // host:port; without a port, 25565
	Forwarding Mode
	Secret     []byte // BungeeGuard and Modern
	Floodgate  bool   // Floodgate runs there: pass on what Geyser said of players of Bedrock Edition
	// Rules for this server's players: only some may join it (the caller decides who), it may not send players to other
	// addresses, and it may neither store nor read cookies of their clients.
	Restricted, NoTransfers, NoCookies bool

	SendProxy bool // announce the player's address with a PROXY protocol v2 header
	Limbo     bool // the proxy's own world, which keeps players that no other server takes
	// Dial reaches the server in another way than over TCP to Address. nil: over TCP.
	Dial func(context.Context) (net.Conn, error)
}

// Validate reports settings that would keep every player off the server.
func (s Server) Validate() error {
	if s.Name == "" {
		return errors.New("a server has no name")
	}
	if s.Forwarding >= numModes {
		return fmt.Errorf("server %q: forwarding mode %d does not exist", s.Name, s.Forwarding)
	}
	if (s.Forwarding == BungeeGuard || s.Forwarding == Modern) && len(s.Secret) == 0 {
		return fmt.Errorf("server %q: %v forwarding needs a secret, the same one as on the server", s.Name, s.Forwarding)
	}
	if s.Dial == nil {
		host, port, err := s.split()
		if err != nil || host == "" {
			return fmt.Errorf("server %q: address %q is not host:port", s.Name, s.Address)
		}
		if port == 0 {
			return fmt.Errorf("server %q: address %q has port 0, where nobody can be reached", s.Name, s.Address)
		}
	}
	return nil
}

// split returns host and port of the address; the port is 25565 when it names none.
func (s Server) split() (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s.Address)
	if err != nil {
		var missing *net.AddrError
		if !errors.As(err, &missing) || missing.Err != "missing port in address" {
			return "", 0, err
		}
		if host, text, err = net.SplitHostPort(s.Address + ":25565"); err != nil {
			return "", 0, err
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, uint16(n), err
}

// Identity is the player to log in.
type Identity struct {
	Protocol   int32
	Name       string
	ID         uuid.UUID
	Properties []packet.Property
	Key        *packet.ProfileKey // of 759 and 760
	Host       string             // the name the client connected to, cleaned; empty: the server's own
	RawHost    string             // the same as the client sent it; for logs
	Marker     string             // of the client's mod loader, see packet.CleanHost
	Floodgate  string             // what Geyser said of the player, see floodgate.Data; empty: nothing
	Port       uint16             // the port the client connected to; 0: the server's own
	Addr       netip.Addr         // where the client is
	SourcePort uint16             // the client's own port, for the PROXY header

	// Ask takes login plugin requests that are not about forwarding, such as those of a mod loader. When it returns
	// nil, it calls answer once, or never, from any goroutine; after the login answer does nothing. When it returns
	// ErrNotUnderstood, the server is told so. Any other error ends the login. Without Ask no request is understood.
	Ask func(q packet.LoginPluginRequest, answer func(packet.LoginPluginResponse)) error
}

// Timeouts bound the stages of Dial. Zero means the default.
type Timeouts struct {
	Dial  time.Duration // until there is a connection; 0: 5 s
	Login time.Duration // from there until the server has let the player in; 0: 10 s
	// Answer replaces Login after each request that Identity.Ask has taken, since the player's client is asked. 0: 30
	// s.
	Answer time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	if t.Dial <= 0 {
		t.Dial = 5 * time.Second
	}
	if t.Login <= 0 {
		t.Login = 10 * time.Second
	}
	if t.Answer <= 0 {
		t.Answer = 30 * time.Second
	}
	return t
}

// KickError is a server's refusal, in its own words.
type KickError struct {
	Server string
	Reason packet.Text
}

// Error implements error.
func (e *KickError) Error() string {
	return fmt.Sprintf("backend %q refuses the player: %s", e.Server, e.Reason)
}

// Errors that are the same for every player of a server or version, and so worth telling apart.
var (
	ErrOnlineMode   = errors.New("it asks for encryption, so it is in online mode; set online-mode=false in its server.properties, and let nobody but the proxy reach it")
	ErrNotAsked     = errors.New("it let the player in without asking who it is; turn on Velocity forwarding there with the same secret, or set another forwarding mode here")
	ErrNeedsNewer   = errors.New("modern forwarding does not exist for this player's version; use 1.13 or newer, or legacy or bungeeguard forwarding")
	ErrNoPlayerAddr = errors.New("the player's address is not known, and this forwarding mode must name it")
)

// ErrNotUnderstood says that a login plugin request was not understood.
var ErrNotUnderstood = errors.New("the request is not understood")

// Conn is a connection to a server that has let the player in. Reader still has everything that the server sent after
// its login success. Reader and Writer have the compression the server asked for. Use the net.Conn underneath only for
// closing, addresses and deadlines; reading or writing it directly breaks the framing.
type Conn struct {
	net.Conn
	Server    string
	Reader    *frame.Reader // to be released by its reader; Close does not
	Writer    *frame.Writer
	Threshold int       // of compression; negative: none
	Player    uuid.UUID // as the server knows the player; zero where its login success cannot be read
}

// Dial logs a player in on a server and returns once the server has let the player in. It fails with a *KickError when
// the server refuses. A stage that takes too long is a net.Error with Timeout. When ctx ends, so does Dial.
func Dial(ctx context.Context, s Server, id Identity, t Timeouts) (*Conn, error) {
	v := proto.Lookup(id.Protocol)
	if v == nil && id.Protocol > proto.Newest().Protocol {
		v = proto.Unknowing(id.Protocol) // only its login packets matter here
	}
	err := s.Validate()
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, s.failed(fmt.Errorf("protocol %d is not supported", id.Protocol))
	case s.Forwarding == Modern && !proto.Has(id.Protocol, proto.NamespacedChannels):
		return nil, s.failed(ErrNeedsNewer)
	case (s.Forwarding != None || s.SendProxy) && !id.Addr.IsValid():
		return nil, s.failed(ErrNoPlayerAddr)
	}
	t = t.withDefaults()
	n, err := s.Open(ctx, netip.AddrPortFrom(id.Addr, id.SourcePort), t.Dial)
	if err != nil {
		return nil, err
	}
	c := &Conn{n, s.Name, frame.NewReader(n, frame.Limits{}), frame.NewWriter(n), -1, uuid.Nil}
	n.SetDeadline(time.Now().Add(t.Login))
	stop := context.AfterFunc(ctx, func() { n.SetDeadline(time.Unix(1, 0)) })
	l := login{Server: s, id: id, v: v, c: c, ctx: ctx, answerWithin: t.Answer}
	err = l.run()
	l.end()
	if !stop() && err == nil {
		err = ctx.Err() // the deadline may already be in the past
	}
	if err == nil {
		err = n.SetDeadline(time.Time{})
	}
	if err != nil {
		n.Close()
		c.Reader.Release()
		return nil, l.explain(ctx, t.Login, err)
	}
	return c, nil
}

// Open connects to the server. Where the server expects a PROXY header, it says that the connection is from from; an
// invalid address stands for the proxy itself. It takes no longer than within, and no longer than ctx.
func (s Server) Open(ctx context.Context, from netip.AddrPort, within time.Duration) (net.Conn, error) {
	n, err := s.connect(ctx, within)
	if err != nil || !s.SendProxy {
		return n, err
	}
	// A fresh connection takes a header without waiting, unless it is no TCP connection.
	n.SetWriteDeadline(time.Now().Add(within))
	if _, err := n.Write(proxyHeader(from, n.RemoteAddr())); err != nil {
		n.Close()
		return nil, s.failed(fmt.Errorf("it does not take a PROXY header: %w", err))
	}
	n.SetWriteDeadline(time.Time{})
	return n, nil
}

func (s Server) connect(ctx context.Context, within time.Duration) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var n net.Conn
	var err error
	if s.Dial != nil {
		n, err = s.Dial(dialing)
	} else {
		host, port, _ := s.split() // Validate has checked it
		var d net.Dialer
		n, err = d.DialContext(dialing, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	if err == nil {
		return n, nil
	}
	var ne net.Error
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED):
		err = fmt.Errorf("nothing listens there; start the server or correct its address in the config: %w", err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		err = fmt.Errorf("no connection within %v; check its address and the firewall: %w", within, err)
	default:
		err = fmt.Errorf("no connection; check its address in the config: %w", err)
	}
	return nil, s.failed(err)
}

// failed adds the server's name to an error.
func (s Server) failed(err error) error {
	if s.Address == "" {
		return fmt.Errorf("backend %q: %w", s.Name, err)
	}
	return fmt.Errorf("backend %q at %s: %w", s.Name, s.Address, err)
}

// login is the player's side of a login on a server.
type login struct {
	Server
	id    Identity
	v     *proto.Version
	c     *Conn
	asked bool // by modern forwarding

	ctx          context.Context
	answerWithin time.Duration
	mu           sync.Mutex // answers come from other goroutines
	over         bool       // and too late
}

// end makes later answers do nothing: the server would take them for something else.
func (l *login) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// answer sends a client's answer to a request.
func (l *login) answer(a packet.LoginPluginResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.wait()
	// Run sees the error.
	l.c.Writer.Packet(l.out(proto.Login, proto.LoginPluginResponse), packet.AppendLoginPluginResponse(nil, a))
}

// wait gives the login as long as a client may take.
func (l *login) wait() {
	l.c.SetDeadline(time.Now().Add(l.answerWithin))
	if l.ctx.Err() != nil {
		l.c.SetDeadline(time.Unix(1, 0)) // the end of ctx may have set it before
	}
}

func (l *login) run() error {
	if err := l.greet(); err != nil {
		return err
	}
	for {
		f, err := l.c.Reader.Next()
		if err != nil {
			return err
		}
		body, err := l.c.Reader.Body(f)
		if err != nil {
			return err
		}
		var p proto.Packet
		if f.ID >= 0 && f.ID < 256 {
			p = l.v.Table(proto.Login, proto.Clientbound)[f.ID]
		}
		if p == proto.LoginSuccess {
			if l.Forwarding == Modern && !l.asked {
				return ErrNotAsked
			}
			// Only voice uses the id, so nobody is refused for it.
			if s, err := packet.ParseLoginSuccess(l.id.Protocol, body); err == nil {
				l.c.Player = s.ID
			}
			return nil
		}
		if err := l.packet(p, body); err != nil {
			return err
		}
	}
}

// greet sends handshake and login start in one write.
func (l *login) greet() error {
	host, port := l.id.Host, l.id.Port
	if own, ownPort, err := l.split(); err == nil {
		if host == "" {
			host = own
		}
		if port == 0 {
			port = ownPort
		}
	}
	host, err := l.hostField(host)
	if err != nil {
		return err
	}
	start := packet.LoginStart{Name: l.id.Name, Key: l.id.Key, ID: l.id.ID, HasID: true}
	l.c.Writer.Append(l.out(proto.Handshake, proto.SetProtocol), packet.AppendHandshake(nil,
		packet.Handshake{Protocol: l.id.Protocol, Host: host, Port: port, Intent: packet.IntentLogin}))
	l.c.Writer.Append(l.out(proto.Login, proto.LoginStart), packet.AppendLoginStart(nil, l.id.Protocol, start))
	return l.c.Writer.Flush()
}

// out returns the id of a packet that every version with the question has.
func (l *login) out(s proto.State, p proto.Packet) int32 {
	id, _ := l.v.ID(s, proto.Serverbound, p)
	return id
}

// packet answers one packet of the server, except the success.
func (l *login) packet(p proto.Packet, body []byte) error {
	switch p {
	case proto.Disconnect:
		reason, err := packet.ParseDisconnect(l.id.Protocol, proto.Login, body)
		if err != nil {
			return err
		}
		return &KickError{l.Name, reason}
	case proto.EncryptionBegin:
		return ErrOnlineMode
	case proto.SetCompression:
		threshold, err := packet.ParseSetCompression(body)
		if err != nil {
			return err
		}
		l.c.Threshold = max(threshold, -1)
		l.c.Reader.SetCompression(l.c.Threshold)
		l.c.Writer.SetCompression(l.c.Threshold)
		return nil
	case proto.LoginPluginRequest:
		q, err := packet.ParseLoginPluginRequest(body)
		if err != nil {
			return err
		}
		a := packet.LoginPluginResponse{ID: q.ID}
		switch {
		case q.Channel == playerInfo && l.Forwarding == Modern:
			l.asked = true
			a.Understood, a.Data = true, signedIdentity(l.id, l.Secret, q.Data)
		case q.Channel != playerInfo && l.id.Ask != nil:
			l.wait()
			if err := l.id.Ask(q, func(a packet.LoginPluginResponse) { a.ID = q.ID; l.answer(a) }); err != ErrNotUnderstood {
				return err
			}
		}
		return l.c.Writer.Packet(l.out(proto.Login, proto.LoginPluginResponse), packet.AppendLoginPluginResponse(nil, a))
	case proto.CookieRequest: // the client is past its login and cannot be asked
		key, err := packet.ParseCookieRequest(body)
		if err != nil {
			return err
		}
		return l.c.Writer.Packet(l.out(proto.Login, proto.CookieResponse), packet.AppendCookieResponse(nil, packet.CookieResponse{Key: key}))
	}
	return fmt.Errorf("it sent a packet that the login of protocol %d does not have; check that a Minecraft server of the player's version is there", l.id.Protocol)
}

// explain puts the end of a login into words for the log.
func (l *login) explain(ctx context.Context, within time.Duration, err error) error {
	var kick *KickError
	var violation frame.Violation
	var ne net.Error
	switch {
	case errors.As(err, &kick):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &violation):
		err = fmt.Errorf("it does not speak Minecraft's protocol; check its address and, with a PROXY header, that it expects one: %w", err)
	case errors.As(err, &ne) && ne.Timeout():
		err = fmt.Errorf("it did not let the player in within %v; it is overloaded, or something else is there: %w", within, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		err = fmt.Errorf("it closed the connection during login; its log says why: %w", err)
	}
	return l.failed(err)
}
