// Package testkit is what the tests of several packages need: vectors, trees of files, waiting, and a log to read.
//
// It stands beside the floors, and only tests import it. Tools that need a library have packages of their own below, so
// that a test which only waits does not wait for these.
package testkit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait. It is long because test machines are slow, and never used up where all is well.
const Patience = 45 * time.Second

// Until waits until ok, which nothing announces. The test ends when that takes longer than [Patience], and names what
// it waited for.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Wait(Patience, ok) {
		t.Fatalf("waited in vain for this: %s", what)
	}
}

// Wait waits until ok for as long as d, and reports whether it is.
func Wait(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Lines reads a file of JSON values, one a line. A file without any is an error, for then nothing would be tested.
func Lines[V any](path string) (all []V, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var v V
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no vectors", path)
	}
	return all, nil
}

// Row is one line of a file of vectors.
type Row struct {
	Where   string // "c2s.txt:12"
	Columns []string
}

// Rows reads testdata/name: lines of so many columns with | between them; the last column may hold more of those. Empty
// lines and those that begin with # are left out. A file without any row ends the test, for then nothing would be
// tested.
func Rows(t testing.TB, name string, columns int) []Row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parse(name, string(data), columns)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func parse(name, text string, columns int) (rows []Row, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		r := Row{fmt.Sprintf("%s:%d", name, i+1), strings.SplitN(line, "|", columns)}
		if len(r.Columns) != columns {
			return nil, fmt.Errorf("%s: %d columns, want %d", r.Where, len(r.Columns), columns)
		}
		for j := range r.Columns {
			r.Columns[j] = strings.TrimSpace(r.Columns[j])
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s holds no vectors", name)
	}
	return rows, nil
}

// Bytes reads a column of bytes: words of hexadecimal digits, each of which may be followed by *n for n times the same,
// and 'text' without spaces.
func (r Row) Bytes(t testing.TB, column int) []byte {
	t.Helper()
	b, err := bytesOf(r.Columns[column])
	if err != nil {
		t.Fatalf("%s: %v", r.Where, err)
	}
	return b
}

func bytesOf(s string) (b []byte, err error) {
	for _, word := range strings.Fields(s) {
		if word[0] == '\'' {
			b = append(b, strings.Trim(word, "'")...)
			continue
		}
		digits, times, repeated := strings.Cut(word, "*")
		piece, err := hex.DecodeString(digits)
		n := 1
		if err == nil && repeated {
			n, err = strconv.Atoi(times)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
		b = append(b, bytes.Repeat(piece, n)...)
	}
	return b, nil
}

// Log holds what was logged, or written otherwise. Any goroutine may use it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes lines of text here, from this level on.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// Tree reads all files of a tree, by their paths. The test ends when one cannot be read.
func Tree(t testing.TB, tree fs.FS) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[path], err = fs.ReadFile(tree, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
