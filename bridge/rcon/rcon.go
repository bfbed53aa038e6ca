// Package rcon takes commands from tools that administer game servers, over RCON: https://minecraft.wiki/w/RCON.
//
// It promises that only clients with the password give commands, that guesses at it are slow and reported, that every
// wait ends, and that nobody makes it hold more than a packet of 4096 bytes.
package rcon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	mc "github.com/Tnze/go-mc/net"

	"github.com/earshot-mc/earshot/proxy/limit"
)

// Why a connection is refused or ended.
const (
	Password  = "password"  // a wrong one
	Throttled = "throttled" // after too many wrong ones from that network
	NoLogin   = "no_login"  // something else first, or nothing in time
	Malformed = "malformed" // not RCON
	Crowded   = "crowded"   // too many connections; the ones silent for the longest give way
)

// Reasons lists them.
func Reasons() []string { return []string{Password, Throttled, NoLogin, Malformed, Crowded} }

// MaxAnswer bounds the answer to a command, in bytes.
const MaxAnswer = 256 << 10

// Bounds.
const (
	strangers = 16 // connections that have not logged in
	guests    = 64 // that have

	loginWithin  = 10 * time.Second
	packetWithin = 10 * time.Second // from its first byte to its last
	idleFor      = time.Hour        // between two commands
	runWithin    = 30 * time.Second // a command
	writeWithin  = 10 * time.Second
	wrongAfter   = time.Second // until the answer to a wrong password
)

// guesses bounds the wrong passwords of a network: five at once, then five a minute.
var guesses = limit.Rate{PerSecond: 5.0 / 60, Burst: 5}

// Types of packets. An answer to a login has the type of a command.
const (
	answer  = 0
	command = 2
	login   = 3
)

// refused is the id in the answer to a login with a wrong password.
const refused = -1

// maxPayload bounds a packet of an answer, as the game has it.
const maxPayload = 4096

// Config holds what a server needs. Run is required.
type Config struct {
	// Run carries out a command and returns the answer. It ends when ctx does.
	Run func(ctx context.Context, from netip.Addr, line string) string
	// Refused is called for each connection that is refused or ended, with one of [Reasons]. It may be nil.
	Refused func(reason string, from netip.Addr)
	Log     *slog.Logger // nil: none
}

// Server serves RCON. Make one with [New].
type Server struct {
	cfg      Config
	password atomic.Pointer[[sha256.Size]byte] // its digest; nil: nobody gets in
	wrong    *limit.Networks
	outside  *limit.Places
	inside   *limit.Places
	ctx      context.Context
	cancel   func()
	running  sync.WaitGroup

	mu    sync.Mutex
	ended bool
	ln    net.Listener
	open  map[*conn]struct{}

	// Logins and Commands count successes.
	Logins, Commands atomic.Uint64
}

// New makes a server, which lets nobody in before [Server.SetPassword].
func New(cfg Config) *Server {
	if cfg.Refused == nil {
		cfg.Refused = func(string, netip.Addr) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: cfg, wrong: limit.NewNetworks(guesses, true, nil), outside: limit.NewPlaces(limit.Bounds{All: strangers, Network: strangers / 2}),
		inside: limit.NewPlaces(limit.Bounds{All: guests}), open: map[*conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// SetPassword changes the password. Connections that are in stay in. With an empty one nobody else gets in.
func (s *Server) SetPassword(password string) {
	if password == "" {
		s.password.Store(nil)
		return
	}
	sum := sha256.Sum256([]byte(password))
	s.password.Store(&sum)
}

// is tells whether a password is the right one, in a time that says nothing of it.
func (s *Server) is(password string) bool {
	right, sum := s.password.Load(), sha256.Sum256([]byte(password))
	return right != nil && subtle.ConstantTimeCompare(sum[:], right[:]) == 1
}

// Open returns the number of connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Serve takes connections until [Server.Stop], and returns [net.ErrClosed] then.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln = ln
	ended := s.ended
	s.mu.Unlock()
	if ended {
		ln.Close()
	}
	for pause := 5 * time.Millisecond; ; {
		c, err := ln.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.take(c)
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		default: // no file left, for instance
			s.cfg.Log.Warn("cannot accept", "error", err)
			select {
			case <-time.After(pause):
				pause = min(2*pause, time.Second)
			case <-s.ctx.Done():
			}
		}
	}
}

// Stop ends all connections, and returns when the commands that run have been answered. Their contexts have ended.
func (s *Server) Stop() {
	s.mu.Lock()
	s.ended = true
	if s.ln != nil {
		s.ln.Close()
	}
	s.cancel()
	for c := range s.open {
		c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	s.running.Wait()
}

// take begins with a connection.
func (s *Server) take(nc net.Conn) {
	c := &conn{Conn: nc, server: s}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.from = a.AddrPort().Addr().Unmap()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		nc.Close()
		return
	}
	s.open[c] = struct{}{}
	s.running.Go(func() {
		why := s.serve(c)
		s.mu.Lock()
		delete(s.open, c)
		ended := s.ended
		s.mu.Unlock()
		nc.Close()
		if c.crowded.Load() {
			why = Crowded
		}
		if why != "" && !ended {
			s.cfg.Refused(why, c.from)
		}
	})
}

// serve handles a connection until it ends, and returns the reason where it was refused or ended.
func (s *Server) serve(c *conn) (why string) {
	if s.wrong.Wait(c.from) > 0 {
		return Throttled
	}
	var place limit.Place
	if !s.outside.Enter(&place, c.from, c.evict) {
		return Crowded
	}
	defer func() { s.outside.Leave(&place) }()
	r := &mc.RCONConn{Conn: c}
	if why := s.login(c, r); why != "" {
		return why
	}
	s.outside.Leave(&place)
	var seat limit.Place
	if !s.inside.Enter(&seat, c.from, c.evict) {
		return Crowded
	}
	defer s.inside.Leave(&seat)
	for {
		c.expect(idleFor)
		id, kind, payload, err := r.ReadPacket()
		if err != nil {
			return c.ending()
		}
		s.inside.Busy(&seat)
		switch kind {
		case command:
			s.Commands.Add(1)
			err = c.answer(r, id, s.run(c.from, line(payload)))
		case login:
			if why := s.check(c, r, id, payload); why != "" {
				return why
			}
		default: // tools send such a packet behind a command to find the end of its answer
			err = c.answer(r, id, fmt.Sprintf("Unknown request %x", uint32(kind)))
		}
		if err != nil {
			return "" // nobody is there any more
		}
		s.inside.Spoke(&seat)
	}
}

// login waits for the first packet, which has to be the password.
func (s *Server) login(c *conn, r *mc.RCONConn) (why string) {
	c.expect(loginWithin)
	id, kind, payload, err := r.ReadPacket()
	switch {
	case err != nil && errors.Is(c.failed, os.ErrDeadlineExceeded):
		return NoLogin
	case err != nil:
		return c.ending() // nothing for a look whether the port is open
	case kind != login:
		r.WritePacket(refused, command, "")
		c.flush()
		return NoLogin
	}
	return s.check(c, r, id, payload)
}

// check answers a login.
func (s *Server) check(c *conn, r *mc.RCONConn, id int32, password string) (why string) {
	if s.is(password) {
		s.Logins.Add(1)
		s.cfg.Log.Debug("logged in", "from", c.from)
		r.WritePacket(id, command, "")
		if c.flush() != nil {
			return NoLogin
		}
		return ""
	}
	s.wrong.Take(c.from)
	select {
	case <-time.After(wrongAfter):
	case <-s.ctx.Done():
	}
	r.WritePacket(refused, command, "")
	c.flush()
	return Password
}

// run carries out a command, bounded in time and in the size of its answer.
func (s *Server) run(from netip.Addr, line string) string {
	ctx, cancel := context.WithTimeout(s.ctx, runWithin)
	defer cancel()
	text := s.cfg.Run(ctx, from, line)
	return text[:whole(text, MaxAnswer)]
}

// line returns a command as it is typed: one line of text.
func line(payload string) string {
	payload, _, _ = strings.Cut(payload, "\x00")
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(payload, "\uFFFD"))
}

// whole returns how much of a text fits into n bytes and ends behind a character.
func whole(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	for i := n; i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return n
}

// conn puts bounds around a connection that go-mc reads packets from and writes packets to.
type conn struct {
	net.Conn
	server  *Server
	from    netip.Addr
	said    int   // bytes of the packet that is being read
	failed  error // the end of the reading, which go-mc does not return
	out     bytes.Buffer
	crowded atomic.Bool
}

// expect gives the next packet its time.
func (c *conn) expect(within time.Duration) {
	c.said = 0
	c.hurry(within)
}

// hurry bounds the reads from now on, unless the server has ended.
func (c *conn) hurry(within time.Duration) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if !c.server.ended {
		c.Conn.SetReadDeadline(time.Now().Add(within))
	}
}

// Read implements io.Reader. A packet that has begun has to end soon.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.said == 0 {
		c.hurry(packetWithin)
	}
	c.said += n
	if err != nil {
		c.failed = err
	}
	return n, err
}

// Write implements io.Writer. It keeps packets until flush, so that tools get a whole answer at once.
func (c *conn) Write(p []byte) (int, error) { return c.out.Write(p) }

// flush sends the kept packets.
func (c *conn) flush() error {
	c.Conn.SetWriteDeadline(time.Now().Add(writeWithin))
	_, err := c.Conn.Write(c.out.Bytes())
	c.out = bytes.Buffer{}
	return err
}

// answer sends an answer in as many packets as it takes, one if it is empty.
func (c *conn) answer(r *mc.RCONConn, id int32, text string) error {
	for {
		n := whole(text, maxPayload)
		r.WritePacket(id, answer, text[:n])
		if text = text[n:]; text == "" {
			return c.flush()
		}
	}
}

// evict ends the connection to make room.
func (c *conn) evict() {
	c.crowded.Store(true)
	c.Conn.Close()
}

// ending returns the reason why no packet could be read: nothing where the other side has gone, or said nothing more.
func (c *conn) ending() (why string) {
	if c.said == 0 {
		return ""
	}
	return Malformed
}
