package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/earshot-mc/earshot/itest/testkit"
)

// damaged are all ways in which we know a state folder to come to harm.
var damaged = []struct {
	name string
	do   func(t *testing.T, dir string)
	lost int  // records at most that are gone for good
	said bool // the damage must be named
}{
	{"nothing", func(*testing.T, string) {}, 0, false},
	{"a flipped bit at the beginning", flips(streamFolder(prefix+"things")+"/msgs/1.blk", 30), 0, true},
	{"a flipped bit at the end", flips(streamFolder(prefix+"things")+"/msgs/1.blk", -3), 0, true},
	{"cut to nothing", cuts(streamFolder(prefix+"things")+"/msgs/1.blk", 0), 0, true},
	{"cut in the middle", cuts(streamFolder(prefix+"things")+"/msgs/1.blk", 700), 0, true},
	{"the messages are gone", removes(streamFolder(prefix+"things") + "/msgs"), 0, true},
	{"the bucket is gone", removes(streamFolder(prefix + "things")), 0, true},
	{"the description is garbage", flips(streamFolder(prefix+"things")+"/meta.inf", 10), 0, false},
	{"the description's sum is gone", removes(streamFolder(prefix+"things") + "/meta.sum"), 0, false},
	{"all of the server's files are gone", removes(serverFolder), 0, true},
	{"the server's folder is a file", func(t *testing.T, dir string) {
		removes(serverFolder)(t, dir)
		must(t, os.WriteFile(filepath.Join(dir, serverFolder), []byte("x"), 0o600))
	}, 0, true},
	{"the copy is gone", removes(copiesFolder), 0, false},
	{"a flipped bit in the copy", flips(copiesFolder+"/things.txt", 200), 0, false},
	{"the copy is cut", cuts(copiesFolder+"/things.txt", 300), 0, false},
	{"the copy is garbage", func(t *testing.T, dir string) {
		must(t, os.WriteFile(filepath.Join(dir, copiesFolder, "things.txt"), bytes.Repeat([]byte{0xff, '\n', 0}, 999), 0o600))
	}, 0, false},
	{"no server files, and a flipped bit in the copy", func(t *testing.T, dir string) {
		removes(serverFolder)(t, dir)
		flips(copiesFolder+"/things.txt", 200)(t, dir)
	}, 2, true}, // a line's end may be what was flipped
	{"both are cut", func(t *testing.T, dir string) {
		cuts(streamFolder(prefix+"things")+"/msgs/1.blk", 700)(t, dir)
		cuts(copiesFolder+"/things.txt", 300)(t, dir)
	}, 10, true},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func flips(file string, at int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		must(t, err)
		b[(at+len(b))%len(b)] ^= 4
		must(t, os.WriteFile(path, b, 0o600))
	}
}

func cuts(file string, to int64) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, file), to)) }
}

func removes(file string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, file))) }
}

// filled returns a directory with ten records, of which one was changed, and one that was deleted.
func filled(t *testing.T) (dir string, want map[string]int) {
	t.Helper()
	dir, want = t.TempDir(), map[string]int{}
	s, b := open(t, Config{Dir: dir})
	for i := range 10 {
		put(t, b, fmt.Sprint("key ", i), i)
		want[fmt.Sprint("key ", i)] = i
	}
	put(t, b, "gone", 1)
	must(t, b.Delete(ctxOf(t), "gone"))
	put(t, b, "key 3", 33)
	want["key 3"] = 33
	must(t, s.Close(ctxOf(t)))
	return dir, want
}

// Whatever has happened to the files, the store opens with all that is whole anywhere, says what it had to bring back
// and what it could not, and goes on storing.
func TestDamageIsMendedAndNamed(t *testing.T) {
	for _, d := range damaged {
		t.Run(d.name, func(t *testing.T) {
			dir, want := filled(t)
			d.do(t, dir)
			var log testkit.Log
			s, b := open(t, Config{Dir: dir, Log: log.Logger(slog.LevelInfo)})
			h := s.Health()
			got := b.Load()
			for key, n := range want {
				if v, ok := got[key]; ok && v.N != n && d.lost == 0 { // else an old one may be all there is
					t.Errorf("%s is %d, want %d", key, v.N, n)
				}
			}
			if _, ok := got["gone"]; ok {
				t.Error("a deleted record is back")
			}
			if lost := len(want) - len(got); lost > d.lost || lost > h.Missing {
				t.Errorf("%d of %d records are lost, %d said to be missing", lost, len(want), h.Missing)
			}
			if len(h.Damage) == 0 && d.name != "nothing" && d.name != "the copy is gone" {
				t.Error("nothing is said of it")
			}
			if said := h.Restored+h.Missing > 0 && len(h.Damage) > 0; said != d.said {
				t.Errorf("said %v, want %v: %+v", said, d.said, h)
			}
			if h.Missing > 0 && !strings.Contains(log.String(), "earshot state import") {
				t.Errorf("the log does not say what to do:\n%s", log.String())
			}
			put(t, b, "new", 7)
			testkit.Until(t, "all is stored", func() bool { h := s.Health(); return h.OK && h.Waiting == 0 })
			must(t, s.Close(ctxOf(t)))
			s, b = open(t, Config{Dir: dir})
			if h := s.Health(); h.Restored+h.Missing > 0 || len(b.Load()) != len(got)+1 {
				t.Errorf("the next start finds %+v, and %d records", h, len(b.Load()))
			}
		})
	}
}

// No single flipped bit in the server's files or in the copy loses anything, wherever it is.
func TestNoFlippedBitLosesARecord(t *testing.T) {
	dir, want := filled(t)
	whole := os.DirFS(dir)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	for range 12 {
		again := t.TempDir()
		must(t, os.CopyFS(again, whole))
		var files []string
		for _, pattern := range []string{streamFolder(prefix+"things") + "/*", streamFolder(prefix+"things") + "/msgs/*", copiesFolder + "/*"} {
			some, _ := filepath.Glob(filepath.Join(again, pattern))
			files = append(files, some...)
		}
		files = slices.DeleteFunc(files, func(f string) bool { i, err := os.Stat(f); return err != nil || i.IsDir() || i.Size() == 0 })
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(file)
		must(t, err)
		at := r.IntN(len(b))
		b[at] ^= 1 << r.IntN(8)
		must(t, os.WriteFile(file, b, 0o600))
		s, bucket := open(t, Config{Dir: again})
		t.Logf("seed %d: %s, byte %d", seed, strings.TrimPrefix(file, again), at)
		holds(t, bucket, want)
		s.release()
	}
}

// A kill at any moment between a change and its copy is no damage.
func TestACopyThatIsBehindIsNoDamage(t *testing.T) {
	dir, want := filled(t)
	old, err := os.ReadFile(copyPath(dir, "things"))
	must(t, err)
	s, b := open(t, Config{Dir: dir})
	must(t, b.Delete(ctxOf(t), "key 1"))
	put(t, b, "key 2", 22)
	put(t, b, "key 11", 11)
	delete(want, "key 1")
	want["key 2"], want["key 11"] = 22, 11
	must(t, s.Close(ctxOf(t)))
	must(t, os.WriteFile(copyPath(dir, "things"), old, 0o600))
	s, b = open(t, Config{Dir: dir})
	holds(t, b, want)
	if h := s.Health(); h.Restored+h.Missing != 0 {
		t.Errorf("health %+v", h)
	}
}

// A record is what was written, at the key at which it was.
func TestRecordsCarryChecksums(t *testing.T) {
	raw, err := things.encode("a", thing{"x", 1})
	must(t, err)
	if v, err := things.decode("a", raw); err != nil || v.N != 1 {
		t.Error(v, err)
	}
	if _, err := things.decode("b", raw); !errors.Is(err, errDamaged) {
		t.Errorf("at another key: %v", err)
	}
	changed := bytes.Replace(raw, []byte(`"n":1`), []byte(`"n":2`), 1)
	if _, err := things.decode("a", changed); !errors.Is(err, errDamaged) {
		t.Errorf("changed: %v", err)
	}
	if _, err := things.decode("a", []byte(`{"v":2,"data":{"name":"x","n":1}}`)); err != nil {
		t.Errorf("of an Earshot that wrote no sums: %v", err)
	}
}

// The count of a bucket on somebody else's server is kept apart from it. What is missing there is named; what another
// Earshot has deleted is not missing.
func TestMissingRecordsOfAServerElsewhereAreNamed(t *testing.T) {
	e := hire(t)
	s, b := open(t, e.config())
	for i := range 5 {
		put(t, b, fmt.Sprint("k", i), i)
	}
	counts := func(n int) func() bool {
		return func() bool { return s.counted(ctxOf(t), prefix+"things").Records == n }
	}
	testkit.Until(t, "it is counted", counts(5))
	must(t, b.Delete(ctxOf(t), "k0"))
	testkit.Until(t, "it is counted again", counts(4))
	must(t, s.Close(ctxOf(t)))

	s, _ = open(t, e.config())
	if h := s.Health(); h.Missing != 0 {
		t.Errorf("nothing is missing, and yet %+v", h)
	}
	must(t, s.Close(ctxOf(t)))
	plain := must2(t)(Open(ctxOf(t), e.config()))
	stream, err := plain.js.Stream(ctxOf(t), "KV_"+prefix+"things")
	must(t, err)
	must(t, stream.Purge(ctxOf(t), jetstream.WithPurgeSubject("$KV."+prefix+"things.k2")))
	kv, err := plain.keyValue(ctxOf(t), prefix+"things")
	must(t, err)
	must(t, kv.Delete(ctxOf(t), "k3")) // by somebody who does not count
	plain.release()

	looks := e.config()
	looks.Look = true
	for _, cfg := range []Config{looks, looks, e.config()} { // a look does not count twice
		s, b = open(t, cfg)
		if h := s.Health(); h.Missing != 1 || len(h.Damage) != 1 {
			t.Errorf("look %v: health %+v", cfg.Look, h)
		}
		holds(t, b, map[string]int{"k1": 1, "k4": 4})
		if !cfg.Look {
			testkit.Until(t, "what is left is counted", counts(2))
		}
		s.release()
	}
}

func must2(t *testing.T) func(*Store, error) *Store {
	return func(s *Store, err error) *Store { must(t, err); return s }
}

// What is exported is all that is in force, and can be imported elsewhere.
func TestExportAndImport(t *testing.T) {
	dir, want := filled(t)
	from, _ := open(t, Config{Dir: dir})
	var file bytes.Buffer
	must(t, WriteSections(&file, from.Export()))
	from.release()
	copies, err := Copies(dir)
	if err != nil || len(copies) != 1 || len(copies[0].Rows) != len(want) || len(copies[0].Problems()) != 0 {
		t.Errorf("the copies: %+v, %v", copies, err)
	}

	all, err := ReadSections(bytes.NewReader(file.Bytes()))
	must(t, err)
	s, b := open(t, Config{Dir: t.TempDir()})
	put(t, b, "key 1", 99)
	put(t, b, "mine", 1)
	all = append(all, Section{Bucket: "unheard", Rows: []Row{{Key: "a", Raw: []byte("{}")}}})
	if n, err := s.Import(ctxOf(t), all); n != len(want) || err == nil || !strings.Contains(err.Error(), "unheard") {
		t.Errorf("%d imported: %v", n, err)
	}
	want["mine"] = 1
	holds(t, b, want)
	// A damaged file costs the damaged lines.
	half := file.Bytes()
	half[len(half)-5] ^= 1
	all, err = ReadSections(bytes.NewReader(half))
	must(t, err)
	if p := all[0].Problems(); len(p) != 2 || !strings.Contains(p[0], "damaged") || !strings.Contains(p[1], "1 of 10") {
		t.Errorf("problems %q", p)
	}
	for _, other := range []string{"", "x", "\n\n\n", "00000000 earshot-state 1\n", string(appendLine("earshot-state 2"))} {
		if _, err := ReadSections(strings.NewReader(other)); err == nil {
			t.Errorf("%q was read", other)
		}
	}
}

func appendLine(s string) []byte { return []byte(checksum(s) + " " + s + "\n") }

// TestFilesAreWrittenWhole: a file is the new one or the old one, for its owner's eyes alone, with nothing beside it;
// and what a program left that was killed while it wrote a copy is gone with the next start.
func TestFilesAreWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	for _, n := range []int{3, 1} {
		must(t, WriteFile(path, Section{Bucket: Mutes, Records: n, Rows: slices.Repeat([]Row{{Key: "a", Revision: 1, Raw: []byte("{}")}}, n)}))
		all, err := ReadFile(path)
		if err != nil || len(all) != 1 || len(all[0].Rows) != n {
			t.Errorf("%+v, %v", all, err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "backup")); err == nil {
		t.Error("a folder that is not there")
	}
	must(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "taken", "x"), nil, 0o600))
	if err := WriteFile(filepath.Join(dir, "taken")); err == nil {
		t.Error("a folder is replaced by a file")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	state := t.TempDir()
	old := copyPath(state, "things") + newFile + "123"
	must(t, os.MkdirAll(filepath.Dir(old), 0o700))
	must(t, os.WriteFile(old, []byte("half"), 0o600))
	s, err := Open(t.Context(), Config{Dir: state})
	must(t, err)
	must(t, s.Close(t.Context()))
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("what was left is there still: %v", err)
	}
}

func FuzzReadSections(f *testing.F) {
	f.Add(appendSections(nil, Section{Bucket: "mutes", Records: 2, Revision: 7, Rows: []Row{{"a", 1, []byte(`{"v":1}`)}, {"b=20c", 7, []byte("x")}, {"c", 5, nil}}}))
	f.Add(appendSections(nil, Section{Bucket: "mutes"}, Section{Bucket: "groups", Records: 1}))
	f.Add([]byte("deadbeef 1 key {}\n"))
	f.Add(appendLine("bucket x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readSections(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := readSections(bytes.NewReader(appendSections(nil, all...)))
		if err != nil {
			t.Fatal(err)
		}
		rows, had := 0, 0
		for _, s := range all {
			had += len(s.Rows)
		}
		for _, s := range again {
			if rows += len(s.Rows); len(s.Damaged) > 0 && s.Bucket != "" && !strings.ContainsAny(s.Bucket, " ") {
				t.Errorf("damaged by writing: %q", s.Damaged)
			}
		}
		if rows != had {
			t.Errorf("%d rows of %d", rows, had)
		}
	})
}
