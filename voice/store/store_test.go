package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/itest/testkit/natsd"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("EARSHOT_STORE_CHILD"); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// thing is what the tests store.
type thing struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

var things = Spec[thing]{Name: "things", Version: 2, Check: func(key string, v *thing) error {
	if v.Name == "" {
		return errors.New("it has no name")
	}
	return nil
}}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open opens a store and one bucket, closed with the test.
func open(t testing.TB, cfg Config) (*Store, *Bucket[thing]) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	s, err := Open(ctxOf(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.release) // a second time does nothing
	b, err := OpenBucket(ctxOf(t), s, things)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

func put(t testing.TB, b *Bucket[thing], key string, n int) {
	t.Helper()
	if err := b.Put(ctxOf(t), key, thing{key, n}); err != nil {
		t.Fatal(err)
	}
}

func holds(t testing.TB, b *Bucket[thing], want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for key, v := range b.Load() {
		got[key] = v.N
		if one, ok := b.Get(key); !ok || one != v {
			t.Errorf("%q is %v, alone %v", key, v, one)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("holds %v, want %v", got, want)
	}
}

func TestWhatIsPutIsThereAgain(t *testing.T) {
	dir := t.TempDir()
	s, b := open(t, Config{Dir: dir})
	holds(t, b, map[string]int{})
	odd := "team rot/§ \x00*.>=="
	for i, key := range []string{"a", "b", "c", odd, "A", strings.Repeat("k", MaxKey)} {
		put(t, b, key, i)
	}
	put(t, b, "a", 100)
	if err := b.Delete(ctxOf(t), "b"); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(ctxOf(t), "never there"); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a": 100, "c": 2, odd: 3, "A": 4, strings.Repeat("k", MaxKey): 5}
	holds(t, b, want)
	if h := s.Health(); !h.OK || h.Waiting != 0 || !strings.Contains(h.Where, dir) {
		t.Errorf("health %+v", h)
	}
	if err := s.Close(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	_, b = open(t, Config{Dir: dir})
	holds(t, b, want)
	if changes := b.Take(); len(changes) > 0 {
		t.Errorf("what was there from the start is news: %v", changes)
	}
}

func TestSettingIsInForceAtOnceAndStoredByClose(t *testing.T) {
	dir := t.TempDir()
	s, b := open(t, Config{Dir: dir})
	want := map[string]int{}
	for i := range 200 {
		key := fmt.Sprint("k", i%20)
		if i%7 == 6 {
			delete(want, key)
			if err := b.Unset(key, nil); err != nil {
				t.Fatal(err)
			}
		} else {
			want[key] = i
			if err := b.Set(key, thing{key, i}, nil); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, b, want)
	}
	if err := s.Close(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	s, b = open(t, Config{Dir: dir})
	holds(t, b, want)
	if n := s.Health().Waiting; n != 0 {
		t.Errorf("%d waiting", n)
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	_, b := open(t, Config{Dir: t.TempDir()})
	put(t, b, "a", 1)
	for name, err := range map[string]error{
		"no key":     b.Put(ctxOf(t), "", thing{"x", 1}),
		"long key":   b.Put(ctxOf(t), strings.Repeat("k", MaxKey+1), thing{"x", 1}),
		"check":      b.Set("a", thing{"", 2}, nil),
		"large":      b.Put(ctxOf(t), "a", thing{strings.Repeat("x", MaxRecord), 2}),
		"delete key": b.Unset("", nil),
	} {
		if err == nil || errors.Is(err, ErrNotYet) {
			t.Errorf("%s: %v", name, err)
		}
	}
	holds(t, b, map[string]int{"a": 1})
}

func TestADirectoryIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, Config{Dir: dir})
	if second, err := Open(ctxOf(t), Config{Dir: dir, Log: quiet()}); err == nil {
		second.release()
		t.Error("opened twice")
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not say which: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "lock")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("lock file: %v, %v", info, err)
	}
	s.release()
	open(t, Config{Dir: dir})
}

func TestOpenFailsWithWordsThatHelp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"nothing":      {},
		"a file":       {Dir: file},
		"no url":       {URL: "secret-in-no-url"},
		"broken url":   {URL: "nats://user:s3cr3t@ho st:4222"},
		"nobody there": {URL: "nats://user:s3cr3t@127.0.0.1:1"},
		"no such file": {URL: "nats://127.0.0.1:1", Credentials: file + ".creds"},
	} {
		cfg.Log = quiet()
		s, err := Open(ctxOf(t), cfg)
		if err == nil {
			s.release()
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

// raw writes into a bucket past the store.
func raw(t *testing.T, s *Store, key, value string) uint64 {
	t.Helper()
	kv, err := s.keyValue(ctxOf(t), prefix+"things")
	if err != nil {
		t.Fatal(err)
	}
	revision, err := kv.Put(ctxOf(t), key, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func onServer(t *testing.T, s *Store, key string) string {
	t.Helper()
	kv, err := s.keyValue(ctxOf(t), prefix+"things")
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(ctxOf(t), key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value())
}

func TestUnreadableRecordsAreSetAside(t *testing.T) {
	bad := map[string]string{ // by key: each wrong in another way
		"nothing":  ``,
		"no-json":  `{"v":2,"data":{"name":"x"`,
		"binary":   "\x00\xff\x80",
		"no-data":  `{"v":2}`,
		"type":     `{"v":2,"data":{"name":5}}`,
		"field":    `{"v":2,"data":{"name":"x","n":1,"more":1}}`,
		"envelope": `{"v":2,"data":{"name":"x","n":1},"more":1}`,
		"sum":      `{"v":2,"sum":"00000000","data":{"name":"x","n":1}}`,
		"trailing": `{"v":2,"data":{"name":"x","n":1}} x`,
		"check":    `{"v":2,"data":{"name":"","n":1}}`,
		"v0":       `{"v":0,"data":{"name":"x","n":1}}`,
		"old":      `{"v":1,"data":{"name":"x","n":1}}`,
		"bad.key":  `{"v":2,"data":{"name":"x","n":1}}`,
		"=4":       `{"v":2,"data":{"name":"x","n":1}}`,
		"=41":      `{"v":2,"data":{"name":"x","n":1}}`, // an A, which is written as it is
		"large":    `{"v":2,"data":{"name":"` + strings.Repeat("x", MaxRecord) + `","n":1}}`,
	}
	for _, when := range []string{"at the start", "while running"} {
		t.Run(when, func(t *testing.T) {
			dir := t.TempDir()
			s, b := open(t, Config{Dir: dir})
			put(t, b, "good", 1)
			s.release()
			if when == "at the start" {
				plain(t, dir, bad).release()
			}
			var log testkit.Log
			s, b = open(t, Config{Dir: dir, Log: log.Logger(slog.LevelInfo)})
			if when == "while running" {
				for key, value := range bad {
					raw(t, s, key, value)
				}
			}
			testkit.Until(t, "all are in quarantine", func() bool {
				all, err := s.Quarantined(ctxOf(t))
				return err == nil && len(all) == len(bad)
			})
			all, _ := s.Quarantined(ctxOf(t))
			for _, a := range all {
				if string(a.Data) != bad[a.Key] || a.Reason == "" || a.Bucket != prefix+"things" {
					t.Errorf("in quarantine: %+v", a)
				}
			}
			for key := range bad {
				testkit.Until(t, key+" is gone from its place", func() bool { return onServer(t, s, key) == "" })
				// Which comes last.
				testkit.Until(t, key+" is in the log", func() bool { return strings.Contains(log.String(), key) })
			}
			if h := s.Health(); h.Aside != len(bad) || !h.OK {
				t.Errorf("health %+v", h)
			}
			holds(t, b, map[string]int{"good": 1})
			put(t, b, "type", 7) // and their keys can be used again
			s.release()
			s, b = open(t, Config{Dir: dir})
			holds(t, b, map[string]int{"good": 1, "type": 7})
			if h := s.Health(); h.Aside != 0 {
				t.Errorf("set aside twice: %+v", h)
			}
		})
	}
}

// plain returns a store that writes records without reading them.
func plain(t *testing.T, dir string, records map[string]string) *Store {
	t.Helper()
	s, err := Open(ctxOf(t), Config{Dir: dir, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range records {
		raw(t, s, key, value)
	}
	return s
}

func TestABadOverwriteBringsTheLastGoodOneBack(t *testing.T) {
	s, b := open(t, Config{Dir: t.TempDir()})
	put(t, b, "a", 1)
	good := onServer(t, s, "a")
	raw(t, s, "a", "rubbish")
	testkit.Until(t, "the good one is back", func() bool { return onServer(t, s, "a") == good })
	holds(t, b, map[string]int{"a": 1})
	if changes := b.Take(); len(changes) != 0 {
		t.Errorf("news %v", changes)
	}
	if all, err := s.Quarantined(ctxOf(t)); err != nil || len(all) != 1 || string(all[0].Data) != "rubbish" {
		t.Errorf("in quarantine %v, %v", all, err)
	}
}

// A program that is behind the others must not take their records from them.
func TestRecordsOfALaterVersionStayWhereTheyAre(t *testing.T) {
	dir := t.TempDir()
	s, b := open(t, Config{Dir: dir})
	put(t, b, "a", 1)
	s.release()
	const later = `{"v":3,"data":{"called":"x"}}`
	s = plain(t, dir, map[string]string{"a": later, "b": later})
	s.release()
	var log testkit.Log
	s, b = open(t, Config{Dir: dir, Log: log.Logger(slog.LevelInfo)})
	holds(t, b, map[string]int{})
	for _, key := range []string{"a", "b"} {
		if got := onServer(t, s, key); got != later {
			t.Errorf("%s is now %s", key, got)
		}
	}
	if h := s.Health(); h.Aside != 2 || strings.Count(log.String(), "update this Earshot") != 2 {
		t.Errorf("health %+v, log %s", h, log.String())
	}
	b.resync()
	raw(t, s, "c", `{"v":2,"data":{"name":"c","n":3}}`)
	testkit.Until(t, "it is read again", func() bool { _, ok := b.Get("c"); return ok })
	if h := s.Health(); h.Aside != 2 {
		t.Errorf("counted twice: %+v", h)
	}
	put(t, b, "a", 5) // what is overwritten is kept
	if all, err := s.Quarantined(ctxOf(t)); err != nil || len(all) != 1 || string(all[0].Data) != later || all[0].Key != "a" {
		t.Errorf("in quarantine %v, %v", all, err)
	}
	holds(t, b, map[string]int{"a": 5, "c": 3})
}

func TestOlderVersionsAreUpgraded(t *testing.T) {
	dir := t.TempDir()
	s := plain(t, dir, map[string]string{"a": `{"v":1,"data":"anna 7"}`, "b": `{"v":1,"data":"broken"}`})
	defer s.release()
	spec := things
	spec.Upgrade = func(version int, data []byte) (v thing, err error) {
		if version != 1 {
			return v, errors.New("not version 1")
		}
		_, err = fmt.Sscanf(string(data), `"%s %d"`, &v.Name, &v.N)
		return v, err
	}
	b, err := OpenBucket(ctxOf(t), s, spec)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, b, map[string]int{"a": 7})
	testkit.Until(t, "the other one is in quarantine", func() bool {
		all, err := s.Quarantined(ctxOf(t))
		return err == nil && len(all) == 1 && all[0].Key == "b"
	})
}

func TestMarksOfDeletedRecordsAreTidiedUp(t *testing.T) {
	dir := t.TempDir()
	s, b := open(t, Config{Dir: dir})
	for i := range 20 {
		put(t, b, fmt.Sprint("k", i), i)
		if i%2 == 0 {
			if err := b.Delete(ctxOf(t), fmt.Sprint("k", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	records := func() uint64 {
		kv, err := s.keyValue(ctxOf(t), prefix+"things")
		if err != nil {
			t.Fatal(err)
		}
		status, err := kv.Status(ctxOf(t))
		if err != nil {
			t.Fatal(err)
		}
		return status.Values()
	}
	if n := records(); n != 20 {
		t.Fatalf("%d records and marks", n)
	}
	want := map[string]int{}
	for i := 1; i < 20; i += 2 {
		want[fmt.Sprint("k", i)] = i
	}
	s.release()
	s, err := Open(ctxOf(t), Config{Dir: dir, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	s.marks = time.Nanosecond
	if b, err = OpenBucket(ctxOf(t), s, things); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the marks are gone", func() bool { return records() == 10 })
	holds(t, b, want)
	s.release()
	_, b = open(t, Config{Dir: dir})
	holds(t, b, want)
}

func TestKeys(t *testing.T) {
	for _, key := range []string{"a", "-_", "a.b", " ", "=", "=41", "ä", "\x00\xff", "*", ">", "a/b"} {
		e, err := escape(key)
		if err != nil || strings.Trim(e, "=-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is written as %q, %v", key, e, err)
		}
		if back, ok := unescape(e); !ok || back != key {
			t.Errorf("%q is written as %q and read as %q", key, e, back)
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, key := range []string{"", "a", "=2E", "=2e", "=41", "=", "a.b"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if e, err := escape(key); err == nil {
			if back, ok := unescape(e); !ok || back != key {
				t.Fatalf("%q is written as %q and read as %q", key, e, back)
			}
		}
		if k, ok := unescape(key); ok {
			if e, err := escape(k); err != nil || e != key {
				t.Fatalf("%q is read as %q and written as %q", key, k, e)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, raw := range []string{`{"v":2,"data":{"name":"x","n":1}}`, `{"v":3,"data":{}}`, `{"v":2,"data":{"name":"","n":1}}`, `{}`, ``, `[]`, `{"v":2,"data":null}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := things.decode("k", raw)
		if err != nil {
			return
		}
		again, err := things.encode("k", v)
		if err != nil {
			return // valid as read, but too large or not UTF-8 any more
		}
		if w, err := things.decode("k", again); err != nil || w != v {
			t.Fatalf("%q is %v, written as %q, which is %v: %v", raw, v, again, w, err)
		}
	})
}

// elsewhere is somebody else's NATS, with a login.
type elsewhere struct{ *natsd.Server }

func hire(t *testing.T) elsewhere { return elsewhere{natsd.Run(t, natsd.Login("earshot", "s3cr3t"))} }

func (e elsewhere) config() Config {
	return Config{URL: fmt.Sprintf("nats://earshot:s3cr3t@127.0.0.1:%d", e.Options.Port)}
}

func TestNodesLearnOfEachOther(t *testing.T) {
	e := hire(t)
	s, a := open(t, e.config())
	_, b := open(t, Config{URL: e.URL(), User: "earshot", Password: "s3cr3t"})
	if h := s.Health(); !h.OK || strings.Contains(h.Where, "s3cr3t") || !strings.Contains(h.Where, "127.0.0.1") {
		t.Errorf("health %+v", h)
	}
	put(t, a, "before", 1)
	testkit.Until(t, "b knows", func() bool { _, ok := b.Get("before"); return ok })
	woken := make(chan struct{}, 100)
	b.Watch(func() { woken <- struct{}{} })
	<-woken // there is something already
	news := map[string]Change[thing]{}
	put(t, a, "x", 1)
	put(t, a, "x", 2)
	if err := a.Delete(ctxOf(t), "before"); err != nil {
		t.Fatal(err)
	}
	for x := news["x"]; x.Value.N != 2 || !news["before"].Gone; x = news["x"] {
		select {
		case <-woken:
		case <-time.After(30 * time.Second):
			t.Fatalf("not told; so far %v", news)
		}
		for _, c := range b.Take() {
			news[c.Key] = c
		}
	}
	holds(t, b, map[string]int{"x": 2})
	// What b changes itself is no news to b, but to a.
	a.Take()
	b.Take()
	for i := range 50 {
		put(t, b, "y", i)
	}
	put(t, b, "end", 1)
	testkit.Until(t, "a knows", func() bool { _, ok := a.Get("end"); return ok })
	if got := len(a.Take()); got != 2 {
		t.Errorf("a has %d changes, want y and end", got)
	}
	if got := b.Take(); len(got) != 0 {
		t.Errorf("b is told of its own doing: %v", got)
	}
}

// Two nodes change the same keys at once: in the end they agree.
func TestNodesAgree(t *testing.T) {
	e := hire(t)
	_, a := open(t, e.config())
	_, b := open(t, e.config())
	var wg sync.WaitGroup
	for i, bucket := range []*Bucket[thing]{a, b} {
		wg.Go(func() {
			for n := range 150 {
				key := fmt.Sprint("k", n%5)
				var err error
				if n%7 == i {
					err = bucket.Delete(ctxOf(t), key)
				} else {
					err = bucket.Put(ctxOf(t), key, thing{key, n*2 + i})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	put(t, a, "end of a", 1)
	put(t, b, "end of b", 1)
	testkit.Until(t, "both have seen the end", func() bool {
		_, ok := a.Get("end of b")
		_, too := b.Get("end of a")
		return ok && too
	})
	if !maps.Equal(a.Load(), b.Load()) {
		t.Errorf("a has %v, b has %v", a.Load(), b.Load())
	}
}

func TestALostServerLeavesWhatIsKnown(t *testing.T) {
	e := hire(t)
	var log testkit.Log
	cfg := e.config()
	cfg.Log = log.Logger(slog.LevelInfo)
	s, b := open(t, cfg)
	put(t, b, "kept", 1)
	put(t, b, "deleted meanwhile", 2)
	put(t, b, "changed meanwhile", 3)
	e.Stop()
	testkit.Until(t, "the loss shows", func() bool { return !s.Health().OK })
	if h := s.Health(); h.Problem == "" || h.Since.IsZero() {
		t.Errorf("health %+v", h)
	}
	holds(t, b, map[string]int{"kept": 1, "deleted meanwhile": 2, "changed meanwhile": 3})
	began := time.Now()
	if err := b.Put(ctxOf(t), "put meanwhile", thing{"x", 4}); !errors.Is(err, ErrNotYet) {
		t.Errorf("put: %v", err)
	}
	if took := time.Since(began); took > attemptTime/2 {
		t.Errorf("the refusal took %v", took)
	}
	if err := b.Unset("kept", nil); err != nil {
		t.Error(err)
	}
	holds(t, b, map[string]int{"deleted meanwhile": 2, "changed meanwhile": 3, "put meanwhile": 4})
	if n := s.Health().Waiting; n != 2 {
		t.Errorf("%d waiting, want 2", n)
	}
	// Somebody else is faster when it is back.
	e.Start()
	nc, err := nats.Connect(e.config().URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(ctxOf(t), prefix+"things")
	if err != nil {
		t.Fatal(err)
	}
	deleted, _ := escape("deleted meanwhile")
	changed, _ := escape("changed meanwhile")
	if err := kv.Delete(ctxOf(t), deleted); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctxOf(t), changed, []byte(`{"v":2,"data":{"name":"x","n":30}}`)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"changed meanwhile": 30, "put meanwhile": 4}
	testkit.Until(t, "all is well", func() bool { return s.Health().OK && s.Health().Waiting == 0 && len(b.Load()) == len(want) })
	holds(t, b, want)
	if changes := b.Take(); len(changes) != 2 {
		t.Errorf("news %v", changes)
	}
	_, other := open(t, e.config())
	holds(t, other, want)
	for _, word := range []string{"lost", "back"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("the log does not say %q", word)
		}
	}
	if strings.Contains(log.String(), "s3cr3t") {
		t.Error("the log has the password")
	}
}

// A server that is there and has no room: what is changed is in force, and those who look into the log or ask for the
// health are told.
func TestAFullServer(t *testing.T) {
	e := hire(t)
	e.Stop()
	e.Options.JetStreamMaxStore = 256 << 10
	e.Start()
	var log testkit.Log
	cfg := e.config()
	cfg.Log = log.Logger(slog.LevelInfo)
	s, b := open(t, cfg)
	long := strings.Repeat("x", 48<<10)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = b.Put(ctxOf(t), fmt.Sprint(n), thing{long, n})
	}
	if !errors.Is(err, ErrNotYet) || len(b.Load()) != n {
		t.Fatalf("after %d records: %v, and %d are known", n, err, len(b.Load()))
	}
	if h := s.Health(); h.OK || h.Waiting != 1 {
		t.Errorf("health %+v", h)
	}
	testkit.Until(t, "the log says so", func() bool { return strings.Count(log.String(), "cannot be stored for now") == 1 })
}

// A server has lost its files: records that are known here go back, whoever has made a new bucket.
func TestAServerThatForgetsIsTold(t *testing.T) {
	for _, remade := range []bool{false, true} {
		e := hire(t)
		s, b := open(t, e.config())
		put(t, b, "a", 1)
		put(t, b, "b", 2)
		if err := b.Delete(ctxOf(t), "b"); err != nil {
			t.Fatal(err)
		}
		e.Stop()
		e.Options.StoreDir = t.TempDir()
		if remade { // by a program that knew nothing but what it has put there
			before := elsewhere{natsd.Run(t, natsd.Login("earshot", "s3cr3t"), func(o *natsd.Options) { o.StoreDir = e.Options.StoreDir })}
			other, bucket := open(t, before.config())
			put(t, bucket, "d", 4)
			other.release()
			before.Stop()
		}
		e.Start()
		testkit.Until(t, "it has the record again", func() bool {
			kv, err := s.keyValue(ctxOf(t), prefix+"things") // which may make the bucket, too
			if err != nil {
				return false
			}
			_, err = kv.Get(ctxOf(t), "a")
			return err == nil
		})
		want, news := map[string]int{"a": 1}, 0
		if remade {
			want["d"], news = 4, 1
		}
		holds(t, b, want)
		if changes := b.Take(); len(changes) != news {
			t.Errorf("news %v", changes)
		}
		// The bucket goes while the connection stays.
		if err := s.js.DeleteKeyValue(ctxOf(t), prefix+"things"); err != nil {
			t.Fatal(err)
		}
		b.Put(ctxOf(t), "c", thing{"c", 3}) // which finds out
		testkit.Until(t, "all is stored", func() bool { return s.Health().OK && s.Health().Waiting == 0 })
		_, other := open(t, e.config())
		want["c"] = 3
		holds(t, other, want)
	}
}

// A caller that asked to be told is told once, whatever happens to the server meanwhile, and does not wait for its
// return.
func TestEverybodyIsTold(t *testing.T) {
	e := hire(t)
	s, b := open(t, e.config())
	var told, kept atomic.Int32
	var stopping sync.WaitGroup
	const n = 300
	for i := range n {
		if i == n/2 {
			stopping.Go(e.Stop)
		}
		key := fmt.Sprint("k", i%100)
		if err := b.Set(key, thing{key, i}, func(err error) {
			told.Add(1)
			if err == nil {
				kept.Add(1)
			} else if !errors.Is(err, ErrNotYet) {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "all are told", func() bool { return told.Load() == n })
	testkit.Until(t, "the loss shows", func() bool { return !s.Health().OK })
	stopping.Wait()
	e.Start()
	testkit.Until(t, "all is stored", func() bool { return s.Health().OK && s.Health().Waiting == 0 })
	if got := told.Load(); got != n {
		t.Errorf("%d were told, want %d; %d of them that it was stored", got, n, kept.Load())
	}
	_, other := open(t, e.config())
	want := map[string]int{}
	for i := range n {
		want[fmt.Sprint("k", i%100)] = i
	}
	holds(t, other, want)
}

func TestClosingWithoutAServerSaysWhatIsLost(t *testing.T) {
	e := hire(t)
	s, b := open(t, e.config())
	e.Stop()
	testkit.Until(t, "the loss shows", func() bool { return !s.Health().OK })
	b.Set("a", thing{"a", 1}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var lost *LostError
	if err := s.Close(ctx); !errors.As(err, &lost) || len(lost.Changes) != 1 || !strings.HasPrefix(lost.Changes[0], "things a ") {
		t.Errorf("closed with %v", err)
	}
}

func TestWithoutJetStream(t *testing.T) {
	e := natsd.Run(t, func(o *natsd.Options) { o.JetStream = false })
	s, err := Open(ctxOf(t), Config{URL: e.URL(), Log: quiet()})
	if err == nil {
		s.release()
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("the error does not say what is missing: %v", err)
	}
}

func BenchmarkPut(b *testing.B) {
	_, bucket := open(b, Config{Dir: b.TempDir()})
	i := 0
	for b.Loop() {
		put(b, bucket, fmt.Sprint("k", i%100), i)
		i++
	}
}

// With 1,000 records in the directory.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s, bucket := open(b, Config{Dir: dir})
	for i := range 1000 {
		bucket.Set(fmt.Sprint("k", i), thing{"x", i}, nil)
	}
	if err := s.Close(ctxOf(b)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(ctxOf(b), Config{Dir: dir, Log: quiet()})
		if err != nil {
			b.Fatal(err)
		}
		if bucket, err := OpenBucket(ctxOf(b), s, things); err != nil || len(bucket.Load()) != 1000 {
			b.Fatal(err)
		}
		b.StopTimer()
		s.release()
		b.StartTimer()
	}
}
