package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
)

// logs holds how the program reports at this moment.
type logs struct {
	level slog.LevelVar
	json  atomic.Bool
}

// newLogs returns a logger that follows logs. At a terminal its lines of text are short.
func newLogs(w io.Writer, terminal, colour bool) (*slog.Logger, *logs) {
	l := &logs{}
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

// atTerminal tells whether w writes to a terminal.
func atTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && commands.IsTerminal(f)
}

// coloured tells whether a terminal may be written to in colour: https://no-color.org.
func coloured(environ []string) bool {
	return !slices.ContainsFunc(environ, func(v string) bool {
		return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" || v == "TERM=dumb"
	})
}

func (l *logs) apply(c configs.Log) {
	var level slog.Level
	level.UnmarshalText([]byte(c.Level)) // checked by Load
	l.level.Set(level)
	l.json.Store(c.Format == "json")
}

// formats has a handler for each format; one of them writes.
type formats struct {
	by         *logs
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
