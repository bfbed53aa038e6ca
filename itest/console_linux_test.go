package itest

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/client"
)

// startAtTerminal does as start, for a program that somebody sits in front of, who sees colours or does not.
func startAtTerminal(t *testing.T, settings string, colours bool) (*program, *peer.Terminal) {
	t.Helper()
	p, x := newProgram(t, settings), peer.NewTerminal(t)
	p.args = append(p.args, "--data", p.dir)
	p.at = func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Program, x.Program, x.Program
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") }), "TERM=xterm")
		if !colours {
			cmd.Env = append(cmd.Env, "NO_COLOR=1")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a shell starts it: in the foreground
	}
	p.run()
	x.Await("> ")
	return p, x
}

// TestConsole: who starts the program in a terminal types commands there, with completion and history, sees the log
// above the line, and gets the terminal back as it was.
func TestConsole(t *testing.T) {
	p, x := startAtTerminal(t, "online: false\n", false)
	x.Type("gli\t")
	x.Await("glist ")
	x.Type("\r")
	x.Await("Players online: 0.")
	x.Type("\x1b[A\r") // the line before
	x.Await("Players online: 0.")
	x.Type("earshot re\t\r")
	x.Await("earshot reload")
	x.Await("Reloaded: nothing changed.")
	x.Type("/earshot dump\r")
	x.Await("Written to " + p.dir)

	// A change of the file is logged above what is being typed.
	x.Type("earshot ver")
	x.Await("earshot ver")
	p.write("online: false\nvoice: {range: 32}\n")
	x.Await("voice.range: 48.0 → 32.0")
	x.Await("> earshot ver")
	x.Type("\t\r")
	x.Await("Earshot ")
	x.Type("shutdown now\x03nonsense\r") // Ctrl-C clears the line
	x.Await("There is no command nonsense.")
	x.Type("shutdown until tomorrow\r")
	x.Await("Stopping: until tomorrow")
	p.ends()
	if out, err := exec.Command("stty", "-F", x.Program.Name(), "-a").Output(); err != nil || strings.Contains(string(out), "-icanon") || strings.Contains(string(out), "-echo ") {
		t.Errorf("the terminal is not as it was: %s, %v", out, err)
	}
	x.Close()
}

// TestAnAnswerIsSeenOnce: at a terminal, where answers and the log are side by side, the outcome of a command is one
// line and not two, in the colours of the game; with colours off there are none.
func TestAnAnswerIsSeenOnce(t *testing.T) {
	codes, stamp := regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`), regexp.MustCompile(`^\d\d:\d\d:\d\d `)
	for _, colours := range []bool{true, false} {
		p, x := startAtTerminal(t, "online: false\n", colours)
		for _, c := range []struct {
			typed string
			want  []string
		}{
			{"find nobody", []string{"There is no player nobody here."}},
			{"nonsense", []string{"There is no command nonsense. Type help for a list."}},
			{"glist", []string{"limbo (0)", "Players online: 0."}},
			{"earshot reload", []string{"Reloaded: nothing changed."}},
			{"voice mute nobody", []string{"Nobody called nobody is or was here. For a player who has never been here, use the UUID."}},
			{"voice muteall on", []string{"Everybody who is not exempt is muted until you type /voice muteall off."}},
			{"alert somebody is there", []string{`commands: alert text="[Alert] somebody is there"`}},
		} {
			x.Type(c.typed + "\r")
			x.Type("voice group list\r") // the answer to this is the end of the one before
			seen := strings.ReplaceAll(x.Await("There are no groups."), "\x1b[K", "")
			if codes.MatchString(seen) != colours {
				t.Errorf("%s: colours %v: %q", c.typed, colours, seen)
			}
			var got []string
			for line := range strings.Lines(codes.ReplaceAllString(seen, "")) {
				if line = strings.TrimSpace(line); line != "" && strings.TrimPrefix(line, "> ") != c.typed && line != "> voice group list" {
					got = append(got, stamp.ReplaceAllString(line, ""))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", c.typed, got, c.want)
			}
		}
		x.Type("shutdown until tomorrow\r")
		x.Await("Stopping: until tomorrow")
		p.ends()
		x.Close()
	}
}

// TestConsoleOnAPipe: where the standard input is no terminal, whoever writes lines to it gives commands, and reads the
// answers on the standard output, as panels and scripts do; the log stays where it is.
func TestConsoleOnAPipe(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (in, to *os.File){
		"pipe": func(t *testing.T) (in, to *os.File) {
			in, to, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return in, to
		},
		"socket": func(t *testing.T) (in, to *os.File) {
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "to")
		},
		"FIFO": func(t *testing.T) (in, to *os.File) {
			name := filepath.Join(t.TempDir(), "in")
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
			both, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			in, err = os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			return in, both
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t, "online: false\n")
			p.args = append(p.args, "--data", p.dir)
			in, to := open(t)
			defer to.Close()
			var answers testkit.Log
			p.at = func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, &answers }
			p.run()
			in.Close()
			says := func(command, answer string) {
				t.Helper()
				fmt.Fprintln(to, command)
				testkit.Until(t, answer, func() bool { return strings.Contains(answers.String(), answer) })
			}
			says("glist", "Players online: 0.")
			says("/nonsense", "There is no command nonsense.")
			if log := p.log.String(); !strings.Contains(log, "command=glist") || strings.Contains(log, "Players online") {
				t.Errorf("the log has %s", log)
			}
			says("shutdown until tomorrow", "Stopping: until tomorrow")
			p.ends()
		})
	}
}

// TestConsoleWithoutAReader: who reads the answers may go; the next command is carried out all the same.
func TestConsoleWithoutAReader(t *testing.T) {
	p := newProgram(t, "online: false\n")
	p.args = append(p.args, "--data", p.dir)
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.at = func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = in, out }
	p.run()
	in.Close()
	out.Close()
	read.Close()
	fmt.Fprintln(to, "glist")
	p.says(1, "command=glist")
	fmt.Fprintln(to, "glist")
	p.says(2, "command=glist")
	fmt.Fprintln(to, "shutdown")
	p.ends()
}

// TestVoiceOnTheConsole: voice obeys whoever sits in front of it as it does an administrator in the game: what is typed
// there is heard, and not heard, by players.
func TestVoiceOnTheConsole(t *testing.T) {
	p, x := startAtTerminal(t, "online: false\n", false)
	bots := peer.NewBots(t, "1.21.4")
	ann, bob := newTalker(t, p, bots.Join(p.addr, "Ann"), nil), newTalker(t, p, bots.Join(p.addr, "Bob"), nil)
	says := func(command, answer string) {
		t.Helper()
		x.Type(command + "\r")
		x.Await(answer)
	}
	says("voice", "/voice <mute|unmute|muteall|mutes|why|domain|listen|edge|speaker|group>")
	says("voice why Ann Bob", "Ann has no voice connection.")
	for _, s := range []*talker{ann, bob} {
		s.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1, Status: 1, Speakers: 1}})
	}
	bob.hears(ann, 1, 0, 0)
	says("/voice mute ann 10m too loud", "Ann is muted for 10m. Reason: too loud")
	bob.hearsNothingFrom(ann, "while she is muted")
	says("voice why Ann Bob", "Bob does not hear Ann: Ann is muted, for ")
	says("voice mutes", "Ann, by console, for ")
	says("voice unm\tAnn", "The mute of Ann is lifted.")
	says("voice muteall on", "Everybody who is not exempt is muted")
	bob.hearsNothingFrom(ann, "while everybody is muted")
	says("voice muteall off", "The mute of everybody is lifted.")
	says("voice why Ann Bob", "Bob hears Ann at 100 %: 0.0 blocks away")

	says("voice group list", "There are no groups.")
	says("voice group delete none", "There is no group none.")
	says("voice domain create red Ann Bob", "The domain red is there. Members: 2.")
	says("voice domain list", "red (2): Ann, Bob")
	says("voice why Ann Bob", "Bob hears Ann at 100 %, from anywhere: a domain, a listen or an edge says so.")
	says("voice domain delete red", "The domain red is gone.")
	says("voice listen add Bob blue", "There is no domain blue: Bob hears nothing")
	says("voice listen list", "Bob listens to blue")
	says("voice edge add Ann Bob", "Bob hears Ann, wherever both are.")
	says("voice edge remove Ann Bob", "The edge from Ann to Bob is gone.")

	// What the configuration declares stands beside that, and only the configuration takes it back.
	p.write(fmt.Sprintf("online: false\nvoice: {domains: {radio: [%s, %s]}}\n", ann.id, bob.id))
	x.Await("the configuration was read again")
	says("voice why Ann Bob", "Bob hears Ann at 100 %, from anywhere: a domain, a listen or an edge says so.")
	says("voice domain delete radio", "This comes from the configuration: take it out of voice.domains there.")
	p.write("online: false\n")
	x.Await("the configuration was read again")
	says("voice why Ann Bob", "Bob hears Ann at 100 %: 0.0 blocks away")

	// Ann on the stage: Bob hears Ann from there, by name, and Ann does not hear Ann.
	at := bob.bot.Where()
	says("voice speaker create Stage", "Say where: write server, world, x, y and z behind the name")
	says(fmt.Sprintf("voice speaker create Stage limbo overworld %.2f %.2f %.2f", at.X+3, at.Y, at.Z-4), "Stage: limbo minecraft:overworld ")
	says("voice speaker range Stage 20", "range 20")
	says("voice speaker relay Stage Ann", "Stage carries the voice of Ann")
	var stage uuid.UUID
	testkit.Until(t, "the name of the stage", func() bool {
		l := bob.c.Speakers()
		if l == nil || len(l.List) != 1 || l.List[0].Name != "Stage" {
			return false
		}
		stage = l.List[0].ID
		return true
	})
	ann.take()
	bob.take()
	good := 0
	testkit.Until(t, "Bob to hear Ann from the stage", func() bool {
		ann.say(t.Context(), 10)
		for _, h := range bob.take() {
			if h.from == stage && h.origin == ann.id && math.Abs(h.gain-(1-5./20)) < .005 && math.Abs(h.dx-3) < .02 && math.Abs(h.dz+4) < .02 && math.Abs(h.hz-440) < 5 && h.level > .3 {
				good++
			}
		}
		return good >= 25
	})
	if own := ann.take(); len(own) > 0 {
		t.Errorf("Ann hears herself: %+v", own[0])
	}
	says("voice mute Ann", "Ann is muted until")
	bob.hearsNothingFrom(ann, "muted, and on the stage")
	says("shutdown", "Stopping")
	p.ends()
	x.Close()
}
