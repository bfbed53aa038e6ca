package peer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// recorder is a test that may fail without failing the one it is part of.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(f, args...))
}
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)            { r.Fatalf("%s", fmt.Sprint(args...)) }

// failing runs f as a test of its own and returns how that failed.
func failing(t *testing.T, f func(t testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return strings.Join(r.failures, "\n")
}

// TestComplaints: whatever is wrong with a packet, the test of the peer that got it fails.
func TestComplaints(t *testing.T) {
	v := Version{"1.20.4", 765}
	s := Backend(t, v.Name, None, "")
	status := field.AppendVarInt(nil, id(t, v, proto.Clientbound, proto.EntityStatus))
	for name, c := range map[string]struct {
		packet []byte
		want   string
	}{
		"cut short":      {append(status, 0, 0), "complains: PartialReadError"},
		"trailing bytes": {append(status, 0, 0, 0, 1, 24, 99), "complains: Chunk size is 7"},
		"unknown packet": {[]byte{0x7f}, "got packets it cannot read (Rita): packet 127 is unknown in play"},
	} {
		t.Run(name, func(t *testing.T) {
			got := failing(t, func(t testing.TB) {
				r := NewRaw(t, v.Name).Join(s.Addr, "Rita")
				s.Raw("Rita", c.packet)
				r.Await("never", nil)
			})
			if !strings.Contains(got, c.want) || !strings.Contains(got, "raw.js 1.20.4") {
				t.Errorf("the test failed with %q, want %q", got, c.want)
			}
			s.Await("leave", "Rita", nil)
		})
	}
}

func TestEndings(t *testing.T) {
	got := failing(t, func(t testing.TB) {
		s := Backend(t, "1.8.8", None, "")
		s.cmd.Process.Kill()
		s.Joined("Nobody")
	})
	if !strings.Contains(got, "ended by itself") {
		t.Errorf("a peer that crashed: %q", got)
	}
	got = failing(t, func(t testing.TB) {
		s := Backend(t, "1.8.8", None, "")
		s.Kick("Nobody", "x")
	})
	if !strings.Contains(got, "Nobody is not here") {
		t.Errorf("a command that cannot be carried out: %q", got)
	}
	got = failing(t, func(t testing.TB) { Backend(t, "1.14.2", None, "") })
	if !strings.Contains(got, `no peers for version "1.14.2"`) {
		t.Errorf("a version nobody speaks: %q", got)
	}
}
