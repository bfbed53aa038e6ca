package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/testkit"
)

// small runs the test once more with a small file system of its own, which ends with that process, and returns its
// folder in there.
func small(t *testing.T) (dir string) {
	t.Helper()
	if dir := os.Getenv("EARSHOT_STORE_SMALL"); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), "EARSHOT_STORE_SMALL="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("no file system can be made here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return ""
}

// fill takes what room there is.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "fill"))
	must(t, err)
	defer f.Close()
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// A full disk loses nothing that was acknowledged, holds what is changed meanwhile, says so, and is over within ten
// seconds of there being room; a second time, too.
func TestAFullDisk(t *testing.T) {
	dir := small(t)
	if dir == "" {
		return
	}
	var log testkit.Log
	s, b := open(t, Config{Dir: filepath.Join(dir, "state"), Log: log.Logger(slog.LevelInfo)})
	put(t, b, "before", 1)
	want := map[string]int{"before": 1}
	for round := range 2 {
		fill(t, dir)
		for i := range 200 {
			key := fmt.Sprint("k", round, " ", i)
			err := b.Put(ctxOf(t), key, thing{key, i})
			if want[key] = i; err != nil {
				break
			}
		}
		testkit.Until(t, "it shows", func() bool { h := s.Health(); return !h.OK && h.Waiting > 0 })
		// What is asked for now is told at once that it is not stored.
		began := time.Now()
		if err := b.Put(ctxOf(t), "meanwhile", thing{"meanwhile", round}); !errors.Is(err, ErrNotYet) {
			t.Errorf("stored on a full disk: %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		want["meanwhile"] = round
		holds(t, b, want)
		testkit.Until(t, "why shows", func() bool { return strings.Contains(s.Health().Problem, "no space left") })
		must(t, os.Remove(filepath.Join(dir, "fill")))
		freed := time.Now()
		testkit.Until(t, "all is stored", func() bool { h := s.Health(); return h.OK && h.Waiting == 0 })
		if took := time.Since(freed); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		put(t, b, "after", round)
		want["after"] = round
	}
	if n := strings.Count(log.String(), "nothing can be stored"); n != 2 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	must(t, s.Close(ctxOf(t)))
	s, b = open(t, Config{Dir: filepath.Join(dir, "state")})
	holds(t, b, want)
	if h := s.Health(); h.Restored+h.Missing > 0 {
		t.Errorf("health %+v", h)
	}
	// What is lost at the end is listed.
	fill(t, dir)
	for i := 0; s.Health().Waiting == 0; i++ {
		key := fmt.Sprint("last ", i)
		b.Put(ctxOf(t), key, thing{key, i})
	}
	b.Unset("before", nil)
	var lost *LostError
	if err := s.Close(ctxOf(t)); !errors.As(err, &lost) || !strings.Contains(err.Error(), "things before delete") || !strings.Contains(err.Error(), "things last ") {
		t.Errorf("closed with %v", err)
	}
}
