package commands

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// pty opens a pseudo terminal: what a person sees and types at, and what a program has as its standard input.
func pty(t *testing.T) (person, program *os.File) {
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
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// screen collects what a person sees.
type screen struct {
	mu   sync.Mutex
	cond *sync.Cond
	all  strings.Builder
	done chan struct{}
}

func watch(f *os.File) *screen {
	s := &screen{done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			s.mu.Lock()
			s.all.Write(buf[:n])
			s.cond.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// wait returns when want has been seen since the last wait.
func (s *screen) wait(t *testing.T, want string) {
	t.Helper()
	stop := time.AfterFunc(10*time.Second, s.cond.Broadcast)
	defer stop.Stop()
	end := time.Now().Add(10 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.all.String(), want) {
		if time.Now().After(end) {
			t.Fatalf("%q is not seen, but %q", want, s.all.String())
		}
		s.cond.Wait()
	}
	rest := s.all.String()
	rest = rest[strings.Index(rest, want)+len(want):]
	s.all.Reset()
	s.all.WriteString(rest)
}

// run starts a console, and gives a way to wait for its end.
func run(t *testing.T, c *Console) (stop func(), ended chan error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(cancel)
	return cancel, ended
}

func TestConsoleTerminal(t *testing.T) {
	person, program := pty(t)
	before, err := term.GetState(int(program.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_, cfg := setup()
	cfg.Aliases = map[string][]string{"hub": {"lobby"}}
	commands := must(t, cfg)
	c := NewConsole(program, program, func() *Commands { return commands })
	s := watch(person)
	stop, ended := run(t, c)
	s.wait(t, "> ")
	fmt.Fprint(person, "/earshot version\r")
	s.wait(t, "Earshot 1.2.3\r\n> ")

	// A log line does not run into what is being typed, which stands below it again.
	fmt.Fprint(person, "fin")
	s.wait(t, "fin")
	fmt.Fprintln(c, "log line")
	s.wait(t, "log line\r\n> fin")
	fmt.Fprint(person, "d jeb_\r")
	s.wait(t, "jeb_ is on Survival.")

	// The arrow up brings back the line before.
	fmt.Fprint(person, "\x1b[A\r")
	s.wait(t, "find jeb_")
	s.wait(t, "jeb_ is on Survival.")

	// Tab completes names of commands and arguments, as far as they agree; then it shows what there is.
	fmt.Fprint(person, "fi\t")
	s.wait(t, "find ")
	fmt.Fprint(person, "JE\t\r")
	s.wait(t, "jeb_ is on Survival.")
	fmt.Fprint(person, "glist \t")
	s.wait(t, "all  broken  empty  lobby  Survival")
	fmt.Fprint(person, "lo\t\r")
	s.wait(t, "lobby (2)")
	fmt.Fprint(person, "/s\t")
	s.wait(t, "send  server  shutdown")
	fmt.Fprint(person, "er\tx\x01\x0b/nothing\t\r") // from the front, all deleted
	s.wait(t, "There is no command nothing.")

	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after, err := term.GetState(int(program.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	fmt.Fprintln(c, "after") // goes straight to the terminal, which translates it
	s.wait(t, "after\r\n")
	program.Close()
	<-s.done
}

// Ctrl-C and Ctrl-D end the program, in whatever line.
func TestConsoleQuit(t *testing.T) {
	for name, keys := range map[string]string{"ctrl-c": "abc\x03", "ctrl-d": "\x04"} {
		person, program := pty(t)
		_, cfg := setup()
		commands := must(t, cfg)
		s := watch(person)
		_, ended := run(t, NewConsole(program, program, func() *Commands { return commands }))
		s.wait(t, "> ")
		fmt.Fprint(person, keys)
		if err := <-ended; err != ErrQuit {
			t.Errorf("%s: %v", name, err)
		}
		program.Close()
		<-s.done
	}
}

// pipes is a console between two pipes.
func pipes(t *testing.T) (in *os.File, out *bufio.Scanner, c *Console) {
	t.Helper()
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); in.Close(); read.Close(); w.Close() })
	_, cfg := setup()
	commands := must(t, cfg)
	return in, bufio.NewScanner(read), NewConsole(r, w, func() *Commands { return commands })
}

func TestConsolePipe(t *testing.T) {
	in, out, c := pipes(t)
	_, ended := run(t, c)
	expect := func(want string) {
		t.Helper()
		if !out.Scan() || out.Text() != want {
			t.Errorf("%q, want %q", out.Text(), want)
		}
	}
	fmt.Fprint(in, "earshot version\n\n  /find jeb_  \r\nnope x\n")
	expect("Earshot 1.2.3")
	expect("jeb_ is on Survival.")
	expect("There is no command nope. Type help for a list.")
	fmt.Fprint(in, "help\n")
	expect("/server [server]")
	for out.Text() != "/shutdown [reason]" {
		if !out.Scan() {
			t.Fatal("no end of the list")
		}
	}
	fmt.Fprint(in, "find new") // the end of the input ends the line
	in.Close()
	expect("new is on no server yet.")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A line without end is an error, not memory.
func TestConsoleLongLine(t *testing.T) {
	in, _, c := pipes(t)
	_, ended := run(t, c)
	in.Write(make([]byte, maxLine+1))
	if err := <-ended; err == nil {
		t.Error("accepted")
	}
}

// The end comes also while nobody types anything, from a pipe as from a terminal.
func TestConsoleStops(t *testing.T) {
	_, _, c := pipes(t)
	stop, ended := run(t, c)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := NewConsole(null, os.Stderr, nil).Run(t.Context()); err != nil {
		t.Error(err)
	}
}
