package itest

import (
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
)

// binary builds the program once: as make build does where libopus is, or with the race detector where the test itself
// has it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "earshot-itest")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "earshot")
	cmd := exec.Command("go", "build", "-o", file, "../cmd/earshot")
	if raced {
		cmd = exec.Command("go", "build", "-race", "-o", file, "../cmd/earshot")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return file, nil
})

// long reports whether there is time for the long matrix; make soak says so.
func long() bool { return os.Getenv("EARSHOT_LONG") != "" }

// program is Earshot as a process of its own.
type program struct {
	t    testing.TB
	file string
	args []string
	cmd  *exec.Cmd
	addr string          // host:port of everything
	dir  string          // of the configuration and all data
	at   func(*exec.Cmd) // puts the process at something else than the log; nil does not
	log  testkit.Log
	once *sync.Once
	done chan struct{} // closed when the process is gone
	err  error         // what it ended with; read it once done is closed
}

// freeAddr returns an address on loopback that nothing listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// start runs the program with these settings, which need not say where it listens, and waits until it does. When the
// test ends it has to stop on SIGTERM in time, with status 0 and no panic in its log.
func start(t testing.TB, settings string, args ...string) *program {
	t.Helper()
	p := newProgram(t, settings, args...)
	p.run()
	return p
}

// newProgram does as start, without running anything yet.
func newProgram(t testing.TB, settings string, args ...string) *program {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, file: file, addr: freeAddr(t), dir: t.TempDir()}
	p.write(settings)
	p.args = append([]string{"run", "--config", filepath.Join(p.dir, "earshot.yml")}, args...)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("earshot said:\n%s", p.log.String())
		}
	})
	return p
}

// run starts the program, again if it was started before, and waits until it listens.
func (p *program) run() {
	t := p.t
	t.Helper()
	p.cmd = exec.Command(p.file, p.args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, &p.log, &p.log
	if p.at != nil {
		p.at(p.cmd)
	}
	p.once = new(sync.Once)
	if err := p.cmd.Start(); err != nil {
		p.once.Do(func() {}) // there is nothing to stop
		t.Fatal(err)
	}
	p.done, p.err = make(chan struct{}), nil
	go func(cmd *exec.Cmd, done chan struct{}) {
		defer close(done)
		p.err = cmd.Wait()
	}(p.cmd, p.done)
	for end := time.Now().Add(peer.Patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-p.done:
			t.Fatalf("earshot ended at once: %v", p.err)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("earshot does not listen: %v", err)
		}
	}
}

// write changes the settings as editors do: a new file takes the place of the old one.
func (p *program) write(settings string) {
	p.t.Helper()
	conf := filepath.Join(p.dir, "earshot.yml")
	text := fmt.Sprintf("listen: %q\nlimits: {exempt: [127.0.0.0/8]}\n", p.addr) + settings
	if err := os.WriteFile(conf+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(conf+".new", conf); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the program as a failing machine does.
func (p *program) kill() {
	p.once.Do(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
}

// ends waits until the program, which has been told to, has ended of its own accord. A signal that comes on its very
// last steps would still be what it dies of.
func (p *program) ends() {
	p.t.Helper()
	select {
	case <-p.done:
		if p.err != nil {
			p.t.Errorf("earshot ended with %v", p.err)
		}
	case <-time.After(peer.Patience):
		p.t.Fatal("earshot does not end")
	}
}

// stop ends the program as an administrator does.
func (p *program) stop() {
	p.once.Do(func() {
		begin := time.Now()
		p.cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
		defer late.Stop()
		if <-p.done; p.err != nil {
			p.t.Errorf("earshot ended with %v", p.err)
		}
		if d := time.Since(begin); d > 10*time.Second {
			p.t.Errorf("earshot took %v to stop", d)
		}
		for _, bad := range []string{"panic", "DATA RACE"} {
			if strings.Contains(p.log.String(), bad) {
				p.t.Errorf("a %s is in the log", bad)
			}
		}
	})
}

// metric reads one value off /metrics; a name without labels adds up all of them.
func (p *program) metric(name string) float64 {
	p.t.Helper()
	resp, err := http.Get("http://" + p.addr + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("/metrics: %s, %v", resp.Status, err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err == nil {
			sum, found = sum+v, true
		}
	}
	if !found {
		p.t.Fatalf("/metrics has no %s:\n%s", name, text)
	}
	return sum
}

// counts waits for a value of /metrics: what is counted may be seen a moment before it is.
func (p *program) counts(name string, want float64) {
	p.t.Helper()
	testkit.Until(p.t, fmt.Sprintf("%s to be %v", name, want), func() bool { return p.metric(name) == want })
}

// offlineID returns the UUID that a player gets whom nobody authenticates.
func offlineID(name string) uuid.UUID {
	sum := md5.Sum([]byte("OfflinePlayer:" + name))
	sum[6] = sum[6]&0x0f | 0x30
	sum[8] = sum[8]&0x3f | 0x80
	return sum
}
