package peer

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal with a person at one end. The program at the other end takes Program for its standard
// input and output.
type Terminal struct {
	Program *os.File

	t      testing.TB
	person *os.File
	mu     sync.Mutex
	cond   *sync.Cond
	seen   strings.Builder // since the last Await
	done   chan struct{}
}

// NewTerminal opens one.
func NewTerminal(t testing.TB) *Terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	var n int
	raw, err := person.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{t: t, person: person, done: make(chan struct{})}
	x.cond = sync.NewCond(&x.mu)
	if x.Program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Program.Close() })
	go x.watch()
	return x
}

func (x *Terminal) watch() {
	defer close(x.done)
	buf := make([]byte, 4096)
	for {
		n, err := x.person.Read(buf)
		x.mu.Lock()
		x.seen.Write(buf[:n])
		x.cond.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type presses keys.
func (x *Terminal) Type(keys string) {
	x.t.Helper()
	if _, err := x.person.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// Await returns when want has been seen since the last Await, and what has been seen before it.
func (x *Terminal) Await(want string) (before string) {
	x.t.Helper()
	late := time.AfterFunc(Patience, x.cond.Broadcast)
	defer late.Stop()
	end := time.Now().Add(Patience)
	x.mu.Lock()
	defer x.mu.Unlock()
	for !strings.Contains(x.seen.String(), want) {
		if !time.Now().Before(end) {
			x.t.Fatalf("%q is not seen, but %q", want, x.seen.String())
		}
		x.cond.Wait()
	}
	before, rest, _ := strings.Cut(x.seen.String(), want)
	x.seen.Reset()
	x.seen.WriteString(rest)
	return before
}

// Close ends the terminal, once the program has closed its end.
func (x *Terminal) Close() {
	x.Program.Close()
	<-x.done
}
