package journal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// short is a slog.Handler for people at a terminal: the time of day, the room, what happened and its details, and a
// level only where it is not the ordinary one. With colour the eye finds the levels first.
type short struct {
	out    *shared
	level  slog.Leveler
	colour bool
	room   string
	attrs  string // rendered
	group  string // names with a dot behind each
}

// shared is the output of the handlers of one logger.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func newShort(w io.Writer, level slog.Leveler, colour bool) *short {
	return &short{out: &shared{w: w}, level: level, colour: colour}
}

// Codes of terminals.
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
)

// Enabled implements slog.Handler.
func (s *short) Enabled(_ context.Context, l slog.Level) bool { return l >= s.level.Level() }

// Handle implements slog.Handler.
func (s *short) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	in := func(code, text string) {
		if s.colour && code != "" {
			text = code + text + plain
		}
		b.WriteString(text)
	}
	in(faint, r.Time.Format(time.TimeOnly))
	b.WriteByte(' ')
	code := ""
	switch {
	case r.Level >= slog.LevelError:
		code = red
	case r.Level >= slog.LevelWarn:
		code = yellow
	}
	if r.Level != slog.LevelInfo {
		in(code+bold, r.Level.String()+" ")
	}
	if s.room != "" {
		in(faint, s.room+": ")
	}
	in(code, readable(r.Message))
	b.WriteString(s.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(s.attr(s.group, a))
		return true
	})
	b.WriteByte('\n')
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	_, err := s.out.w.Write(b.Bytes())
	return err
}

// attr renders one attribute, with a space in front.
func (s *short) attr(group string, a slog.Attr) string {
	v := a.Value.Resolve()
	if a.Key == "" && v.Kind() != slog.KindGroup || v.Kind() == slog.KindAny && v.Any() == nil {
		return "" // nothing, such as no error
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		all := ""
		for _, below := range v.Group() {
			all += s.attr(group, below)
		}
		return all
	}
	key := group + a.Key + "="
	if s.colour {
		key = faint + key + plain
	}
	return " " + key + worded(v.String())
}

// worded returns a value in one word, or in quotation marks.
func worded(s string) string {
	if s == "" || strings.ContainsAny(s, " =\"") || readable(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// readable keeps the terminal from obeying codes in foreign texts.
func readable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// WithAttrs implements slog.Handler.
func (s *short) WithAttrs(all []slog.Attr) slog.Handler {
	c := *s
	for _, a := range all {
		if a.Key == "room" && s.group == "" {
			c.room = fmt.Sprint(a.Value)
			continue
		}
		c.attrs += s.attr(s.group, a)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (s *short) WithGroup(name string) slog.Handler {
	c := *s
	c.group += name + "."
	return &c
}
