package itest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
)

// TestConsole: who starts the program in a terminal types commands there, with completion and history, sees the log above
// the line, and gets the terminal back as it was.
func TestConsole(t *testing.T) {
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	addr, dir := freeAddr(t), t.TempDir()
	conf := filepath.Join(dir, "earshot.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(fmt.Sprintf("listen: %q\nonline: false\n%s", addr, text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	x := peer.NewTerminal(t)
	cmd := exec.Command(file, "run", "--data", dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Program, x.Program, x.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a shell starts it: in the foreground
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	x.Await("> ")
	x.Type("gli\t")
	x.Await("glist ")
	x.Type("\r")
	x.Await("Players online: 0.")
	x.Type("\x1b[A\r") // the line before
	x.Await("Players online: 0.")
	x.Type("earshot re\t\r")
	x.Await("earshot reload")
	x.Await("Read again: nothing has changed.")
	x.Type("/earshot dump\r")
	x.Await("Written to " + dir)

	// A change of the file is logged above what is being typed.
	x.Type("earshot ver")
	x.Await("earshot ver")
	write("voice: {range: 32}\n")
	x.Await("voice.range: 48.0 → 32.0")
	x.Await("> earshot ver")
	x.Type("\t\r")
	x.Await("Earshot ")
	x.Type("nonsense\r")
	x.Await("There is no command nonsense.")
	x.Type("shutdown until tomorrow\r")
	x.Await("Stopping: until tomorrow")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(peer.Patience):
		t.Fatal("the program does not end")
	}
	if out, err := exec.Command("stty", "-F", x.Program.Name(), "-a").Output(); err != nil || strings.Contains(string(out), "-icanon") || strings.Contains(string(out), "-echo ") {
		t.Errorf("the terminal is not as it was: %s, %v", out, err)
	}
	x.Close()
}
