package commands

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// run starts a console, and gives a way to wait for its end.
func run(t *testing.T, c *Console) (stop func(), ended chan error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(cancel)
	return cancel, ended
}

func TestConsoleTerminal(t *testing.T) {
	x := peer.NewTerminal(t)
	program := x.Program
	before, err := term.GetState(int(program.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_, cfg := setup()
	cfg.Aliases = map[string][]string{"hub": {"lobby"}}
	commands := must(t, cfg)
	c := NewConsole(program, program, func() *Commands { return commands })
	stop, ended := run(t, c)
	x.Await("> ")
	x.Type("/earshot version\r")
	x.Await("Earshot 1.2.3\r\n> ")

	// A log line does not run into what is being typed, which stands below it again.
	x.Type("fin")
	x.Await("fin")
	fmt.Fprintln(c, "log line")
	x.Await("log line\r\n> fin")
	x.Type("d jeb_\r")
	x.Await("jeb_ is on Survival.")

	// The arrow up brings back the line before.
	x.Type("\x1b[A\r")
	x.Await("find jeb_")
	x.Await("jeb_ is on Survival.")

	// Tab completes names of commands and arguments, as far as they agree; then it shows what there is.
	x.Type("fi\t")
	x.Await("find ")
	x.Type("JE\t\r")
	x.Await("jeb_ is on Survival.")
	x.Type("glist \t")
	x.Await("all  broken  empty  lobby  Survival")
	x.Type("lo\t\r")
	x.Await("lobby (2)")
	x.Type("/s\t")
	x.Await("send  server  shutdown")
	x.Type("er\tx\x01\x0b/nothing\t\r") // from the front, all deleted
	x.Await("There is no command nothing.")

	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after, err := term.GetState(int(program.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	fmt.Fprintln(c, "after") // goes straight to the terminal, which translates it
	x.Await("after\r\n")
	x.Close()
}

// TestConsoleColours: at a terminal that takes colours an answer has those of the game, piece by piece; and whatever is
// in it, a terminal obeys no code but ours.
func TestConsoleColours(t *testing.T) {
	x := peer.NewTerminal(t)
	_, cfg := setup()
	commands := must(t, cfg)
	c := NewConsole(x.Program, x.Program, func() *Commands { return commands })
	c.Colours = true
	stop, ended := run(t, c)
	x.Await("> ")
	x.Type("find jeb_\r")
	x.Await("\x1b[93mjeb_\x1b[0m\x1b[37m is on \x1b[0m\x1b[93mSurvival\x1b[0m")
	for _, s := range []struct{ text, want string }{
		{"plain", "plain"},
		{`{"text":"a","color":"#ff5050","bold":true,"extra":["b",{"text":"c","bold":false,"color":"reset"}]}`, "\x1b[1;91ma\x1b[0m\x1b[1;91mb\x1b[0mc"},
		{`{"text":"a\u001b[2Jb\u009b31mc\u0007\nd"}`, "a[2Jb31mc\nd"},
		{`{"text":"§cred\u001b§rplain"}`, "\x1b[91mred\x1b[0mplain\x1b[0m"},
		{`{"translate":"%s%n","with":["x"],"color":"nonsense\u001b[2J"}`, "%s%n (x)"},
		{`{"text":"x","italic":true,"underlined":true,"strikethrough":true}`, "\x1b[3;4;9mx\x1b[0m"},
	} {
		if got := coloured(packet.JSONText([]byte(s.text))); got != s.want {
			t.Errorf("%s:\n have %q\n want %q", s.text, got, s.want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	x.Close()
}

// TestConsoleQuit: Ctrl-C and Ctrl-D on an empty line end the program.
func TestConsoleQuit(t *testing.T) {
	for name, keys := range map[string]string{"ctrl-c": "\x03", "ctrl-c twice": "abc\x03\x03", "ctrl-d": "\x04"} {
		x := peer.NewTerminal(t)
		_, cfg := setup()
		commands := must(t, cfg)
		_, ended := run(t, NewConsole(x.Program, x.Program, func() *Commands { return commands }))
		x.Await("> ")
		x.Type(keys)
		if err := <-ended; err != ErrQuit {
			t.Errorf("%s: %v", name, err)
		}
		x.Close()
	}
}

// TestConsoleClearsALine: Ctrl-C on a half-typed line clears it, wherever the cursor is, also where the line is an old
// one.
func TestConsoleClearsALine(t *testing.T) {
	x := peer.NewTerminal(t)
	_, cfg := setup()
	commands := must(t, cfg)
	stop, ended := run(t, NewConsole(x.Program, x.Program, func() *Commands { return commands }))
	x.Await("> ")
	x.Type("shutdown now\x01\x03find jeb_\r") // Ctrl-A: the cursor is in front
	x.Await("jeb_ is on Survival.")
	x.Type("\x1b[A\x03earshot version\r")
	x.Await("Earshot 1.2.3")
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	default:
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	x.Close()
}

// pipes returns a console between two pipes.
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
	expect("/server [server]: takes you to a server, or lists the servers")
	for !strings.HasPrefix(out.Text(), "For the parts of a command, type: help voice") {
		if strings.HasPrefix(out.Text(), "There is no") || !out.Scan() {
			t.Fatal("no end of the list")
		}
	}
	fmt.Fprint(in, "? /shutdown\nHELP nope\nstop now\nlist\nhelp end\n")
	expect("/shutdown [reason]: stops Earshot; players are told the reason")
	expect("There is no command nope. Type help for a list.")
	expect("There is no command stop here. Type shutdown.")
	expect("There is no command list here. Type glist.")
	expect("There is no command end here. Type shutdown.")
	fmt.Fprint(in, "find new") // the end of the input ends the line
	in.Close()
	expect("new is on no server yet.")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestConsoleLongLine: a line without end costs no memory, is no command, and the next one is.
func TestConsoleLongLine(t *testing.T) {
	in, out, c := pipes(t)
	_, ended := run(t, c)
	go func() {
		in.Write([]byte(strings.Repeat("x", 3*maxLine) + "shutdown\nfind jeb_\n"))
		in.Close()
	}()
	for _, want := range []string{fmt.Sprintf("That line is too long to be a command: at most %d bytes.", maxLine), "jeb_ is on Survival."} {
		if !out.Scan() || out.Text() != want {
			t.Errorf("%q, want %q", out.Text(), want)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestConsoleNamedPipe: whoever writes to a named pipe and goes does not end it for the next one.
func TestConsoleNamedPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "in")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(line string) {
		t.Helper()
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(w, line)
		w.Close()
	}
	first := make(chan error, 1)
	go func() { first <- os.WriteFile(name, []byte("find jeb_\n"), 0) }()
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	read, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer w.Close()
	_, cfg := setup()
	commands, out := must(t, cfg), bufio.NewScanner(read)
	stop, ended := run(t, NewConsole(r, w, func() *Commands { return commands }))
	for _, line := range []string{"", "find jeb_", "find jeb_"} {
		if line != "" {
			write(line)
		}
		if !out.Scan() || out.Text() != "jeb_ is on Survival." {
			t.Fatalf("%q", out.Text())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
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
