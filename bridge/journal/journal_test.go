package journal

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestFormChanges: level, format and destination may change while the log is written, for loggers that were made
// before, too.
func TestFormChanges(t *testing.T) {
	var first, second bytes.Buffer
	to := NewOutput(&first)
	root, form := New(to, false, false)
	log := root.With("room", "proxy").WithGroup("g")
	log.Debug("one")
	log.Info("two", "n", 1)
	form.Set("debug", "json")
	log.Debug("three", "level", slog.LevelWarn, "took", time.Second)
	form.Set("warn", "text")
	log.Info("four")
	if before := to.Redirect(&second); before != &first {
		t.Error("where it went is not known")
	}
	log.Warn("five")
	lines := strings.Split(strings.TrimSuffix(first.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=INFO msg=two room=proxy g.n=1") {
		t.Fatalf("%q", lines)
	}
	var got struct {
		Msg, Room string
		G         struct{ Level string }
	}
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil || got.Msg != "three" || got.Room != "proxy" || got.G.Level != "WARN" {
		t.Errorf("%s: %+v, %v", lines[1], got, err)
	}
	if s := second.String(); !strings.Contains(s, "level=WARN msg=five") || strings.Contains(s, "four") {
		t.Errorf("%q", s)
	}
}
