package status

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/earshot-mc/earshot/proxy/proto"
)

// legacyPause is how long a ping may pause before it is taken as whole: each of its three forms is the beginning of the
// next.
const legacyPause = 300 * time.Millisecond

// lingering is how long a client is listened to after its answer, so that bytes it still sends do not make the system
// throw the answer away.
const lingering = time.Second

// legacyForm is a form of the ping before 1.7.
type legacyForm uint8

const (
	beta    legacyForm = iota // FE, up to 1.3
	plain14                   // FE 01, 1.4 and 1.5
	full16                    // FE 01 FA and a plugin message, 1.6
)

// legacyPing is such a ping. Only the 1.6 form says more than that it is one.
type legacyPing struct {
	form     legacyForm
	protocol uint8
	host     string
	port     int32
}

const (
	pingChannel = "MC|PingHost"
	maxHost     = 255 // characters
)

// parseLegacyPing reads a ping from b; more of it may be on the way. whole is false if b is the beginning of a longer
// form; p is then what b is by itself.
func parseLegacyPing(b []byte) (p legacyPing, whole bool, err error) {
	want := func(n int) bool { return len(b) >= n }
	if want(1) && b[0] != 0xfe || want(2) && b[1] != 0x01 || want(3) && b[2] != 0xfa {
		return p, false, errLegacy
	}
	if !want(2) {
		return p, false, nil
	}
	p.form = plain14
	if !want(3) {
		return p, false, nil
	}
	p.form = full16
	const name = 3 + 2 + 2*len(pingChannel) // bytes up to the end of the channel
	head := binary.BigEndian.AppendUint16(nil, uint16(len(pingChannel)))
	for _, c := range pingChannel {
		head = binary.BigEndian.AppendUint16(head, uint16(c))
	}
	if n := min(len(b), name); string(b[3:n]) != string(head[:n-3]) {
		return p, false, errLegacy
	}
	const fixed = name + 2 + 1 + 2 // … and of length, protocol and host length
	if !want(fixed) {
		return p, false, nil
	}
	rest := int(binary.BigEndian.Uint16(b[name:]))
	chars := int(binary.BigEndian.Uint16(b[fixed-2:]))
	if chars > maxHost || rest != 1+2+2*chars+4 {
		return p, false, errLegacy
	}
	end := fixed + 2*chars + 4
	if !want(end) {
		return p, false, nil
	}
	p.protocol = b[name+2]
	host := make([]uint16, chars)
	for i := range host {
		host[i] = binary.BigEndian.Uint16(b[fixed+2*i:])
	}
	p.host = string(utf16.Decode(host))
	p.port = int32(binary.BigEndian.Uint32(b[end-4:]))
	return p, true, nil
}

// maxLegacyPing is the size of the longest ping.
const maxLegacyPing = 3 + 2 + 2*len(pingChannel) + 2 + 1 + 2 + 2*maxHost + 4

// ErrUnwanted says that ServeLegacy has nothing to answer.
var ErrUnwanted = errors.New("status: not by this name")

// ServeLegacy answers a client older than 1.7. Nobody has read from conn yet. A ping gets what such a client can show,
// a login is told which versions are welcome. choose returns the Status for the host name as the client sent it (only
// the newest of them do); nil: no answer. The whole takes no longer than timeout. conn is left open.
func ServeLegacy(conn net.Conn, timeout time.Duration, choose func(host string) *Status) error {
	end := time.Now().Add(timeout)
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	var buf [maxLegacyPing]byte
	b := buf[:0]
	for {
		p, whole, err := parseLegacyPing(b)
		if err != nil {
			return err
		}
		if !whole {
			until := end
			if len(b) > 0 && p.form != full16 { // it may be all there is
				if u := time.Now().Add(legacyPause); u.Before(end) {
					until = u
				}
			}
			conn.SetReadDeadline(until)
			n, err := conn.Read(buf[len(b):])
			if b = buf[:len(b)+n]; n > 0 {
				if b[0] == 0x02 {
					s := choose("")
					if s == nil {
						return ErrUnwanted
					}
					return hangUp(conn, appendKick(nil, "This server is for Minecraft "+proto.Span()), end)
				}
				continue
			}
			if err == nil {
				continue
			}
			if len(b) == 0 || p.form == full16 || err != io.EOF && !isTimeout(err) {
				return err
			}
		}
		s := choose(p.host)
		if s == nil {
			return ErrUnwanted
		}
		return hangUp(conn, s.legacyAnswer(p.form, s.ask(Client{Protocol: -1, Host: p.host})), end)
	}
}

// legacyAnswer returns the answer that the form's clients expect. Their protocol is none of ours, so 127 makes them
// show the version line.
func (s *Status) legacyAnswer(form legacyForm, other *Answer) []byte {
	o := s.cfg.Pass.of(other)
	n, m := s.numbers(o)
	online, most := strconv.Itoa(n), strconv.Itoa(m)
	motd, bare := s.motd, s.bare
	if o.description != nil {
		motd, bare = o.motd, o.bare
	}
	if form == beta {
		// Codes begin with the separator, so there can be none in the text.
		tail := "§" + online + "§" + most
		return appendKick(nil, cut(bare, maxLegacy-len(tail))+tail)
	}
	head, tail := "§1\x00127\x00"+cut(s.version(), maxLegacy/4)+"\x00", "\x00"+online+"\x00"+most
	return appendKick(nil, head+cut(motd, maxLegacy-len(head)-len(tail))+tail)
}

// appendKick writes the only packet that such clients take at this point.
func appendKick(b []byte, text string) []byte {
	u := utf16.Encode([]rune(text))
	b = append(b, 0xff)
	b = binary.BigEndian.AppendUint16(b, uint16(len(u)))
	for _, c := range u {
		b = binary.BigEndian.AppendUint16(b, c)
	}
	return b
}

// hangUp sends the last words and waits, within bounds, for the client to hear them: closing with unread input would
// reset the connection and may take the words with it.
func hangUp(conn net.Conn, last []byte, end time.Time) error {
	if _, err := conn.Write(last); err != nil {
		return fmt.Errorf("status: legacy answer: %w", err)
	}
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
	if u := time.Now().Add(lingering); u.Before(end) {
		end = u
	}
	conn.SetReadDeadline(end)
	io.CopyN(io.Discard, conn, 4<<10)
	return nil
}

// oneLine makes text fit between separators.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n':
			return ' '
		case 0:
			return -1
		}
		return r
	}, text)
}

// cut shortens s to at most n UTF-16 units, and not within a § code.
func cut(s string, n int) string {
	used := 0
	for i, r := range s {
		if used += max(utf16.RuneLen(r), 1); used > n {
			return strings.TrimSuffix(s[:i], "§")
		}
	}
	return s
}
