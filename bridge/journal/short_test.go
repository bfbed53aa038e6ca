package journal

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

// On a terminal a line is the time of day, the room, and what happened; a level only where it is not the ordinary one.
func TestLogLinesOnATerminalAreShort(t *testing.T) {
	var b bytes.Buffer
	level := &slog.LevelVar{}
	log := slog.New(newShort(&b, level, false)).With("room", "proxy", "from", "10.0.0.1:5")
	log.Debug("not told")
	log.Info("player left", "player", "Ann", "why", error(nil), "ending", "kicked by \"x\"")
	log.Warn("odd", "text", "\x1b[2Jgone\n", "empty", "", "number", 3)
	log.WithGroup("g").With("a", 1).Error("broken", "error", errors.New("no luck"), slog.Group("h", "b", 2))
	slog.New(newShort(&b, level, false)).Info("with\x1b[31m")
	want := []string{
		`proxy: player left from=10.0.0.1:5 player=Ann ending="kicked by \"x\""`,
		`WARN proxy: odd from=10.0.0.1:5 text="\x1b[2Jgone\n" empty="" number=3`,
		`ERROR proxy: broken from=10.0.0.1:5 g.a=1 g.error="no luck" g.h.b=2`,
		`with\x1b[31m`,
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, line := range lines {
		if m := regexp.MustCompile(`^\d\d:\d\d:\d\d (.*)$`).FindStringSubmatch(line); m == nil || m[1] != want[i] {
			t.Errorf("have %q\nwant %q", line, want[i])
		}
	}
}

// Colours are of the level, and every one ends where it began.
func TestLogLinesOnATerminalAreColoured(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newShort(&b, &slog.LevelVar{}, true))
	log.Info("calm", "a", 1)
	log.Warn("odd")
	log.Error("broken")
	lines := strings.Split(b.String(), "\n")
	for i, code := range []string{faint, yellow, red} {
		if !strings.Contains(lines[i], code) || !strings.Contains(lines[i], plain) || strings.LastIndex(lines[i], "\x1b[") != strings.LastIndex(lines[i], plain) {
			t.Errorf("%q", lines[i])
		}
	}
	if strings.Contains(lines[0], yellow) || strings.Contains(lines[0], red) {
		t.Errorf("%q", lines[0])
	}
}

// Only a terminal is written to like that, and its owner can switch colours off.
func TestColoursAreForTerminals(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    bool
	}{{nil, true}, {[]string{"NO_COLOR=1"}, false}, {[]string{"NO_COLOR="}, true}, {[]string{"TERM=dumb"}, false}, {[]string{"TERM=xterm"}, true}} {
		if got := Colours(c.environ); got != c.want {
			t.Errorf("%v: %v", c.environ, got)
		}
	}
}
