package testkit

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRows(t *testing.T) {
	rows, err := parse("x.txt", "# of what\n\na | b|c | d\n e||f\n", 3)
	if err != nil || len(rows) != 2 || rows[1].Where != "x.txt:4" || rows[0].Columns[2] != "c | d" || rows[1].Columns[1] != "" {
		t.Errorf("%q, %v", rows, err)
	}
	for text, want := range map[string]string{"": "holds no vectors", "# nothing\n": "holds no vectors", "a|b|c\na|b\n": "x.txt:2: 2 columns"} {
		if _, err := parse("x.txt", text, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if b, err := bytesOf("0a0b ff*3 'text' "); err != nil || !bytes.Equal(b, []byte("\x0a\x0b\xff\xff\xfftext")) {
		t.Errorf("%x, %v", b, err)
	}
	for _, s := range []string{"0", "zz", "00*x"} {
		if b, err := bytesOf(s); err == nil {
			t.Errorf("%q is %x", s, b)
		}
	}
}

// vain is a test that may fail.
type vain struct {
	testing.TB
	failed string
}

func (v *vain) Helper() {}
func (v *vain) Fatalf(format string, args ...any) {
	v.failed = format
	panic(v)
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		Until(t, "a while to pass", func() bool { return time.Since(begin) > time.Second })
		v := &vain{TB: t}
		func() {
			defer func() { recover() }()
			Until(v, "the sun to rise", func() bool { return false })
		}()
		if v.failed == "" || time.Since(begin) < Patience {
			t.Errorf("failed with %q after %v", v.failed, time.Since(begin))
		}
	})
}

func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	for text, want := range map[string]string{
		"{\"a\":1}\n\n{\"a\":2}": "[1 2] <nil>", "{\"a\":1}\n{\n": "[] x.jsonl:2: unexpected end of JSON input", "\n": "[] x.jsonl holds no vectors",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Lines[struct{ A int }](path)
		got := []int{}
		for _, v := range all {
			got = append(got, v.A)
		}
		if have := strings.ReplaceAll(fmt.Sprint(got, " ", err), filepath.Dir(path)+string(filepath.Separator), ""); have != want {
			t.Errorf("%q: %s, want %s", text, have, want)
		}
	}
	if _, err := Lines[int](path + "x"); err == nil {
		t.Error("no file, no error")
	}
}

func TestLog(t *testing.T) {
	var l Log
	log := l.Logger(slog.LevelInfo)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { log.Debug("no"); log.Info("yes") })
	}
	all.Wait()
	if s := l.String(); strings.Count(s, "msg=yes\n") != 10 || strings.Contains(s, "msg=no") {
		t.Errorf("%q", s)
	}
}

func TestTree(t *testing.T) {
	got := Tree(t, fstest.MapFS{"a": {Data: []byte("1")}, "b/c": {Data: []byte("2")}})
	if len(got) != 2 || string(got["a"]) != "1" || string(got["b/c"]) != "2" {
		t.Errorf("%q", got)
	}
}
