// Package status answers the server list: the status exchange of 1.7 and later, the three pings of the clients before
// that, and their logins. It compiles its entry once. An answer is those bytes with the numbers spliced in, or with the
// status of a server behind the proxy.
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

// MaxSample bounds the players that are named; the game shows no more.
const MaxSample = 12

// Player is one line of the sample.
type Player struct {
	Name string
	ID   uuid.UUID
}

// Config holds what to show.
type Config struct {
	MOTD       packet.Text
	Icon       string // a data URI as [LoadIcon] returns it; empty: none
	MaxPlayers int    // as shown; nobody is refused because of it
	// Version is the version line that clients show when we do not support them; empty: the range of versions.
	Version string
	// Takes tells whether a client of an unknown version gets in; nil: none does. Newer is a line above the sample that
	// tells it what to expect, since nothing can be said to it later; empty: none.
	Takes func(protocol int32) bool
	Newer packet.Text
	// Lines is a fixed sample, any text a line. Empty: the sample comes from Players.
	Lines []packet.Text

	Online  func() int                           // how many players there are; nil: 0
	Players func(dst []Player, max int) []Player // appends at most max players who may be shown; nil: none
	Timeout time.Duration                        // of a whole exchange; 0 = 10 s

	// Pass are the fields that are taken from the result of Ask: the status of a server behind the proxy, nil when none
	// answers. Ask must not keep the client waiting for long.
	Pass Fields
	Ask  func(Client) *Answer
}

// Client says who asks, as far as it matters for the answer.
type Client struct {
	Protocol int32  // as it announced; clients before 1.7 are -1
	Host     string // the name it came by, cleaned
}

// Status answers pings. It is safe for concurrent use.
type Status struct {
	cfg     Config
	targets [3]target
	lines   []byte // the fixed sample as JSON, nil: none
	motd    string // with § codes, on one line
	bare    string // without
	names   string // the version line; empty: the range of versions
	newer   []byte // Newer as an entry of the sample

	answers sync.Pool // *answer
}

// Shown returns the description and the icon.
func (s *Status) Shown() (packet.Text, string) { return s.cfg.MOTD, s.cfg.Icon }

// version returns the version line.
func (s *Status) version() string {
	if s.names != "" {
		return s.names
	}
	return "Earshot " + proto.Span()
}

// target has the answer for one class of clients: JSON of the text, and of the icon with its key.
type target struct{ description, favicon []byte }

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

// New compiles cfg. Its errors are for the administrator: something does not fit the protocol.
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
	if cfg.Takes == nil {
		cfg.Takes = func(int32) bool { return false }
	}
	s := &Status{cfg: cfg, names: oneLine(cfg.Version)}
	s.answers.New = func() any { return new(answer) }
	for i, protocol := range targets {
		s.targets[i] = target{
			description: cfg.MOTD.JSON(protocol),
		}
		if cfg.Icon != "" {
			s.targets[i].favicon = appendString([]byte(`,"favicon":`), cfg.Icon)
		}
	}
	for i, l := range cfg.Lines {
		s.lines = appendPlayer(s.lines, i, Player{Name: l.Legacy()})
	}
	s.motd, s.bare = oneLine(cfg.MOTD.Legacy()), oneLine(cfg.MOTD.String())
	if line := cfg.Newer.Legacy(); line != "" {
		s.newer = appendPlayer(nil, 0, Player{Name: line})
	}

	widest := 0
	for i := range s.targets {
		t := &s.targets[i]
		widest = max(widest, units(t.description)+units(t.favicon))
	}
	widest += units(s.lines) + units([]byte(s.version())) + units(s.newer)
	if s.lines == nil {
		widest += MaxSample * len(`{"name":"0123456789abcdef","id":"00000000-0000-0000-0000-000000000000"},`)
	}
	if widest += 200; widest > maxAnswer { // the numbers and their keys
		return nil, fmt.Errorf("the status has %d characters, at most %d fit: use a smaller icon, a shorter motd or fewer sample lines", widest, maxAnswer)
	}
	return s, nil
}

// targets are the protocols the description is compiled for: before 1.16 there are only sixteen colours, and the names
// of hover and click fields changed after 1.20.2.
var targets = [3]int32{proto.V1_8, proto.V1_20_2, proto.Max}

// targetOf picks the class of a client. A number that is no release, as some monitors send, gets the newest form.
func targetOf(protocol int32) int {
	switch {
	case protocol >= 0 && !proto.Has(protocol, proto.HexColors):
		return 0
	case protocol >= 0 && !proto.Has(protocol, proto.ComponentNBT):
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

// Serve runs the status exchange of a client behind its handshake, until it is over or its time is up. r and w frame
// conn, without compression; conn is left open. It returns nil if the client got at least one answer and broke no rule.
func (s *Status) Serve(conn net.Conn, r *frame.Reader, w *frame.Writer, c Client) error {
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
			if err := s.answer(w, c); err != nil {
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

func (s *Status) answer(w *frame.Writer, c Client) error {
	other := s.ask(c)
	a := s.answers.Get().(*answer)
	defer s.answers.Put(a)
	a.b = s.append(append(a.b[:0], make([]byte, lengthRoom)...), a, c.Protocol, other)
	if other != nil && other.units <= maxAnswer && units(a.b[lengthRoom:]) > maxAnswer {
		a.b = s.append(a.b[:lengthRoom], a, c.Protocol, nil) // our part and the server's together are too much
	}
	n := len(a.b) - lengthRoom
	start := lengthRoom - field.VarIntLen(int32(n))
	field.AppendVarInt(a.b[:start], int32(n))
	return w.Packet(idRequest, a.b[start:])
}

// ask returns a server's answer, nil if that does not matter or none answers.
func (s *Status) ask(c Client) *Answer {
	if s.cfg.Pass == 0 || s.cfg.Ask == nil {
		return nil
	}
	return s.cfg.Ask(c)
}

// append writes the JSON for protocol, with the passed-on part of other, which may be nil.
func (s *Status) append(b []byte, a *answer, protocol int32, other *Answer) []byte {
	t := &s.targets[targetOf(protocol)]
	var newer []byte
	switch {
	case proto.Lookup(protocol) != nil:
	case s.cfg.Takes(protocol):
		newer = s.newer
	default:
		protocol = proto.Newest().Protocol // so that the client says who is out of date
	}
	o := s.cfg.Pass.of(other)
	if o.version != nil {
		b = append(append(b, `{"version":`...), o.version...)
	} else {
		b = append(b, `{"version":{"name":`...)
		b = appendString(b, s.version())
		b = append(b, `,"protocol":`...)
		b = strconv.AppendInt(b, int64(protocol), 10)
		b = append(b, '}')
	}
	online, most := s.numbers(o)
	b = append(b, `,"players":{"max":`...)
	b = strconv.AppendInt(b, int64(most), 10)
	b = append(b, `,"online":`...)
	b = strconv.AppendInt(b, int64(online), 10)
	b = append(b, `,"sample":`...)
	switch {
	case o.sample != nil:
		b = append(b, o.sample...)
	case s.lines != nil:
		b = append(b, '[')
		b = append(b, newer...)
		if newer != nil {
			b = append(b, ',')
		}
		b = append(append(b, s.lines...), ']')
	default:
		b = append(append(b, '['), newer...)
		first := 0
		if newer != nil {
			first = 1
		}
		a.players = s.cfg.Players(a.players[:0], MaxSample)
		for i, p := range a.players[:min(len(a.players), MaxSample)] {
			b = appendPlayer(b, first+i, p)
		}
		clear(a.players) // names must not live on in the pool
		b = append(b, ']')
	}
	b = append(b, `},"description":`...)
	if o.description != nil {
		b = append(b, o.description...)
	} else {
		b = append(b, t.description...)
	}
	if o.favicon != nil {
		b = append(append(b, `,"favicon":`...), o.favicon...)
	} else {
		b = append(b, t.favicon...)
	}
	return append(append(b, o.rest...), '}')
}

// numbers returns how many players there are, and how many there may be.
func (s *Status) numbers(o Answer) (online, most int) {
	if o.counted {
		return o.online, o.most
	}
	return s.cfg.Online(), s.cfg.MaxPlayers
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
