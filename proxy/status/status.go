// Package status answers the server list: the status exchange of 1.7 and later, the three pings of
// the clients before that, and their logins. What it shows is compiled once, and an answer is
// those bytes with the numbers spliced in.
package status

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/frame"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// DefaultTimeout is how long a whole exchange may take.
const DefaultTimeout = 10 * time.Second

// MaxSample is how many players are named; the game shows no more.
const MaxSample = 12

// Player is one line of the sample.
type Player struct {
	Name string
	ID   uuid.UUID
}

// Config is what to show.
type Config struct {
	MOTD       packet.Text
	Icon       string // a data URI as [LoadIcon] returns it; empty: none
	MaxPlayers int    // as shown; nobody is refused because of it
	// Version is the text of the version line, which clients show that we do not support; empty: our range of versions.
	Version string
	// Lines is a fixed sample, any text a line. Empty: the sample comes from Players.
	Lines []packet.Text

	Online  func() int                           // how many players there are; nil: 0
	Players func(dst []Player, max int) []Player // appends at most max players who may be shown; nil: none
	Timeout time.Duration                        // of a whole exchange; 0 = 10 s
}

// Status answers pings. It is safe for concurrent use.
type Status struct {
	cfg     Config
	targets [3]target
	lines   []byte // the fixed sample as JSON, nil: none
	motd    string // with § codes, on one line
	bare    string // without
	names   string // the version line
	kick    []byte // what clients before 1.7 are told at login

	answers sync.Pool // *answer
}

// Shown is the description and the icon.
func (s *Status) Shown() (packet.Text, string) { return s.cfg.MOTD, s.cfg.Icon }

// target is the answer for one class of clients, up to and from behind the numbers.
type target struct{ head, tail []byte }

// answer is the memory one answer is built in.
type answer struct {
	b       []byte
	players []Player
}

// The strings of the protocol are at most this long, in characters of UTF-16.
const (
	maxAnswer = 32767
	maxLegacy = 256
)

// lengthRoom is kept in front of an answer for its length.
const lengthRoom = 5

// New compiles cfg. Its errors are for the administrator: what is shown does not fit the protocol.
func New(cfg Config) (*Status, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Online == nil {
		cfg.Online = func() int { return 0 }
	}
	if cfg.Players == nil {
		cfg.Players = func(dst []Player, _ int) []Player { return dst }
	}
	s := &Status{cfg: cfg, names: cfg.Version}
	all := proto.Supported()
	last := all[len(all)-1].Names
	span := all[0].Names[0] + "-" + last[len(last)-1]
	if s.names == "" {
		s.names = "Earshot " + span
	}
	s.names = oneLine(s.names)
	s.answers.New = func() any { return new(answer) }
	for i, protocol := range targets {
		s.targets[i] = target{
			head: append(appendString([]byte(`{"version":{"name":`), s.names), `,"protocol":`...),
			tail: append([]byte(`]},"description":`), cfg.MOTD.JSON(protocol)...),
		}
		t := &s.targets[i]
		if cfg.Icon != "" {
			t.tail = appendString(append(t.tail, `,"favicon":`...), cfg.Icon)
		}
		t.tail = append(t.tail, '}')
	}
	for i, l := range cfg.Lines {
		s.lines = appendPlayer(s.lines, i, Player{Name: l.Legacy()})
	}
	s.motd, s.bare = oneLine(cfg.MOTD.Legacy()), oneLine(cfg.MOTD.String())
	s.kick = appendKick(nil, "This server is for Minecraft "+span)

	widest := 0
	for i := range s.targets {
		widest = max(widest, units(s.targets[i].head)+units(s.targets[i].tail))
	}
	widest += units(s.lines)
	if s.lines == nil {
		widest += MaxSample * len(`{"name":"0123456789abcdef","id":"00000000-0000-0000-0000-000000000000"},`)
	}
	if widest += 100; widest > maxAnswer { // the numbers and their keys
		return nil, fmt.Errorf("the status has %d characters, at most %d fit: use a smaller icon, a shorter motd or fewer sample lines", widest, maxAnswer)
	}
	return s, nil
}

// targets are the protocols the description is compiled for: before 1.16 there are only sixteen
// colours, and the names of hover and click fields changed after 1.20.2.
var targets = [3]int32{proto.V1_8, proto.V1_20_2, proto.Max}

// targetOf picks the class of a client. What is no release, among them the numbers some monitors
// send, is given the newest form.
func targetOf(protocol int32) int {
	switch {
	case protocol >= 0 && protocol < proto.V1_16:
		return 0
	case protocol >= 0 && protocol <= proto.V1_20_2:
		return 1
	}
	return 2
}

func units(b []byte) (n int) {
	for _, r := range string(b) {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// Ways an exchange ends that are not a plain end.
var (
	errUnexpected = errors.New("status: unexpected packet")
	errLegacy     = errors.New("status: malformed legacy ping")
)

// The ids of the status state, which no version changed.
const (
	idRequest = 0
	idPing    = 1
)

// Serve runs the status exchange of a client that announced protocol in its handshake, until it is
// over or its time is up. r and w frame conn, without compression; conn is left open. It returns nil
// if the client got at least one answer and broke no rule.
func (s *Status) Serve(conn net.Conn, r *frame.Reader, w *frame.Writer, protocol int32) error {
	w.SetWriteTimeout(0) // the deadline is ours, for both directions and in total
	if err := conn.SetDeadline(time.Now().Add(s.cfg.Timeout)); err != nil {
		return err
	}
	for answered := false; ; {
		f, err := r.Next()
		if err != nil {
			if answered && errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		body, err := r.Body(f)
		switch {
		case err != nil:
			return err
		case f.ID == idRequest && len(body) == 0 && !answered:
			if err := s.answer(w, protocol); err != nil {
				return err
			}
			answered = true
		case f.ID == idPing && len(body) == 8:
			return w.Packet(idPing, body)
		default:
			return errUnexpected
		}
	}
}

func (s *Status) answer(w *frame.Writer, protocol int32) error {
	a := s.answers.Get().(*answer)
	defer s.answers.Put(a)
	a.b = s.append(append(a.b[:0], make([]byte, lengthRoom)...), a, protocol)
	n := len(a.b) - lengthRoom
	start := lengthRoom - field.VarIntLen(int32(n))
	field.AppendVarInt(a.b[:start], int32(n))
	return w.Packet(idRequest, a.b[start:])
}

// append writes the JSON for protocol.
func (s *Status) append(b []byte, a *answer, protocol int32) []byte {
	t := &s.targets[targetOf(protocol)]
	if proto.Lookup(protocol) == nil {
		protocol = proto.Max // so that the client says who is out of date
	}
	b = append(b, t.head...)
	b = strconv.AppendInt(b, int64(protocol), 10)
	b = append(b, `},"players":{"max":`...)
	b = strconv.AppendInt(b, int64(s.cfg.MaxPlayers), 10)
	b = append(b, `,"online":`...)
	b = strconv.AppendInt(b, int64(s.cfg.Online()), 10)
	b = append(b, `,"sample":[`...)
	if s.lines != nil {
		b = append(b, s.lines...)
	} else {
		a.players = s.cfg.Players(a.players[:0], MaxSample)
		for i, p := range a.players[:min(len(a.players), MaxSample)] {
			b = appendPlayer(b, i, p)
		}
		clear(a.players) // names must not live on in the pool
	}
	return append(b, t.tail...)
}

func appendPlayer(b []byte, i int, p Player) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = appendString(append(b, `{"name":`...), p.Name)
	b = append(b, `,"id":"`...)
	const hex = "0123456789abcdef"
	for i, c := range p.ID {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, hex[c>>4], hex[c&15])
	}
	return append(b, `"}`...)
}

// appendString writes s as JSON. encoding/json would allocate.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s { // bytes that are not UTF-8 become U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, fmt.Sprintf(`\u%04x`, r)...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// isTimeout tells a pause or a deadline from a connection that ended.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
