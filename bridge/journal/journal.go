// Package journal writes the log: as text, as JSON, or in short lines for people at a terminal.
package journal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Form holds a log's levels and format at this moment. Its methods may be called at any time.
type Form struct {
	level slog.LevelVar
	json  atomic.Bool
}

// New returns a logger to w, and its form, which begins with text from level info on. At a terminal its lines of text
// are short, and coloured where colour says so.
func New(w io.Writer, terminal, colour bool) (*slog.Logger, *Form) {
	l := &Form{}
	opts := slog.HandlerOptions{Level: &l.level}
	named := opts
	// It would write a word that stands for a number as that number.
	named.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Value.Kind() == slog.KindAny {
			a.Value = slog.StringValue(s.String())
		}
		return a
	}
	var text slog.Handler = slog.NewTextHandler(w, &opts)
	if terminal {
		text = newShort(w, &l.level, colour)
	}
	return slog.New(formats{l, text, slog.NewJSONHandler(w, &named)}), l
}

// Colours tells whether a terminal may be written to in colour: https://no-color.org.
func Colours(environ []string) bool {
	return !slices.ContainsFunc(environ, func(v string) bool {
		return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" || v == "TERM=dumb"
	})
}

// Set changes the level, which is debug, info, warn or error, and the format, text or json.
func (l *Form) Set(level, format string) {
	var to slog.Level
	if to.UnmarshalText([]byte(level)) == nil {
		l.level.Set(to)
	}
	l.json.Store(format == "json")
}

// Output is where a log goes, which may change while the log is written. Make one with [NewOutput].
type Output struct {
	mu sync.Mutex
	w  io.Writer
}

// NewOutput returns one that goes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// Redirect has the log go to w from now on, and returns where it went before.
func (o *Output) Redirect(w io.Writer) (before io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.w = o.w, w
	return before
}

// formats has a handler for each format; one of them writes.
type formats struct {
	by         *Form
	text, json slog.Handler
}

// Enabled implements slog.Handler.
func (f formats) Enabled(ctx context.Context, l slog.Level) bool { return f.text.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (f formats) Handle(ctx context.Context, r slog.Record) error {
	if f.by.json.Load() {
		return f.json.Handle(ctx, r)
	}
	return f.text.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f formats) WithAttrs(a []slog.Attr) slog.Handler {
	return formats{f.by, f.text.WithAttrs(a), f.json.WithAttrs(a)}
}

// WithGroup implements slog.Handler.
func (f formats) WithGroup(name string) slog.Handler {
	return formats{f.by, f.text.WithGroup(name), f.json.WithGroup(name)}
}
