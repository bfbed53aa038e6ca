package store

import (
	"os"
	"strings"
	"testing"
)

func TestTheEmbeddedServerListensNowhere(t *testing.T) {
	before := listening(t)
	s, b := open(t, Config{Dir: t.TempDir()})
	put(t, b, "a", 1)
	if now := listening(t); now != before {
		t.Errorf("%d listening sockets, before %d", now, before)
	}
	if cfg := s.server.JetStreamConfig(); !cfg.SyncAlways {
		t.Error("writes are not synced")
	}
}

// listening counts this process's listening sockets.
func listening(t *testing.T) (n int) {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range strings.Split(string(data), "\n") {
			if f := strings.Fields(row); len(f) > 9 && f[3] == "0A" {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && inodes[to] {
			n++
		}
	}
	return n
}
