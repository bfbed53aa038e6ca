package itest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stubs returns a folder with the Makefile in which only the named programs are to be found: scripts of these texts,
// and tools of the system where the text is empty.
func stubs(t *testing.T, programs map[string]string) (dir string, run func(target string) (output string, status int)) {
	t.Helper()
	dir = t.TempDir()
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{bin, filepath.Join(dir, "itest", "peers")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"../Makefile": "Makefile", "apt.sh": "itest/apt.sh", "tell.sh": "itest/tell.sh"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "itest/peers/package-lock.json"), []byte("{}"), 0o600)
	for _, tool := range []string{"make", "sh", "sleep", "ps", "sed", "sort", "tr", "dirname", "cmp", "touch", "cp", "env"} {
		programs[tool] = ""
	}
	for name, text := range programs {
		if text != "" {
			if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		file, err := exec.LookPath(name)
		if err != nil {
			if name == "ps" || name == "cmp" { // of which there need not be any
				continue
			}
			t.Fatal(err)
		}
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(target string) (string, int) {
		cmd := exec.Command(filepath.Join(bin, "make"), target)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + bin, "TELL_EVERY=1"}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
}

// TestMakeAsksOnce: all that is missing is asked for at once.
func TestMakeAsksOnce(t *testing.T) {
	_, run := stubs(t, map[string]string{"id": "echo 1000"})
	out, status := run("deps")
	if status == 0 || strings.Count(out, "please run: sudo apt-get") != 1 || !strings.Contains(out, "gcc libc6-dev pkg-config libopus-dev nodejs npm") {
		t.Errorf("status %d:\n%s", status, out)
	}
	_, run = stubs(t, map[string]string{"id": "echo 0", "apt-get": `echo "apt $*" >>"$0.log"; case "$*" in *install*) for p in cc pkg-config npm; do cp "$0" "${0%/*}/$p"; done; printf '#!/bin/sh\necho 22\n' >"${0%/*}/node"; esac`, "node": "echo 22"})
	out, _ = run("deps") // fails in the end: npm is a copy of apt-get here, which fetches nothing
	if n := len(regexp.MustCompile(`(?m)^installing gcc .* npm$`).FindAllString(out, -1)); n != 1 || strings.Count(out, "fetching the list of packages") != 1 {
		t.Errorf("installed %d times:\n%s", n, out)
	}
}

// TestMakeShowsTheReason: what npm says when it cannot fetch something is shown, whichever of the two fetches fails.
func TestMakeShowsTheReason(t *testing.T) {
	for version, what := range map[string]string{"22": "fetching the test peers", "12": "is too old for the test peers"} {
		_, run := stubs(t, map[string]string{
			"cc": "exit 0", "pkg-config": "exit 0", "node": "echo " + version,
			"npm": `case "$*" in *silent*) exit 1;; esac; echo "npm error code ENOTFOUND: no such host" >&2; exit 1`,
		})
		out, status := run("deps")
		if status == 0 || !strings.Contains(out, what) || !strings.Contains(out, "ENOTFOUND: no such host") || !strings.Contains(out, "its reason is above") {
			t.Errorf("node %s: status %d:\n%s", version, status, out)
		}
	}
}

// TestMakeTellsWhatItDoes: whatever takes long says so again and again, and its status is that of make.
func TestMakeTellsWhatItDoes(t *testing.T) {
	for status := range 2 {
		_, run := stubs(t, map[string]string{
			"cc": "exit 0", "pkg-config": "exit 0", "node": "echo 22", "npm": "mkdir node_modules; sleep 3", "mkdir": "", "go": fmt.Sprintf("sleep 4; exit %d", status), "git": "exit 1",
		})
		out, got := run("test")
		if (got != 0) != (status != 0) {
			t.Errorf("status %d of %d:\n%s", got, status, out)
		}
		for _, what := range []string{"fetching the test peers", "testing all packages"} {
			if n := len(regexp.MustCompile(`(?m)^… `+what+`.*: \d+ s so far`).FindAllString(out, -1)); n < 2 {
				t.Errorf("%s is told of %d times:\n%s", what, n, out)
			}
		}
	}
}
