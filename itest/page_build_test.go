package itest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/voice/web"
)

// pageSource is where the voice page is built.
const pageSource = "../voice/web"

// inPage runs a command where the page's source is, and fails with all that it said.
func inPage(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = pageSource
	cmd.Env = append(os.Environ(), "CI=1", "NO_COLOR=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v (the page is built by Node 20 or later: make deps)\n%s", name, strings.Join(args, " "), err, out)
	}
}

// installPage fetches what the lock file names, unless that is there already.
func installPage(t *testing.T) {
	t.Helper()
	want, err := os.Stat(pageSource + "/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.Stat(pageSource + "/node_modules/.package-lock.json"); err == nil && have.ModTime().After(want.ModTime()) {
		return
	}
	inPage(t, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
}

// TestPageIsBuilt: what is embedded is what its source builds to, to the byte, and the tests of the source pass.
func TestPageIsBuilt(t *testing.T) {
	installPage(t)
	built := filepath.Join(t.TempDir(), "dist")
	inPage(t, "npm", "run", "--silent", "build", "--", "--outDir", built, "--emptyOutDir", "--logLevel", "error")
	want, have := testkit.Tree(t, os.DirFS(built)), testkit.Tree(t, web.Files)
	if len(want) < 10 || want["index.html"] == nil {
		t.Fatalf("built only %d files", len(want))
	}
	for path, text := range want {
		if !bytes.Equal(text, have[path]) {
			t.Errorf("%s is not what the source builds to: run make web and commit dist", path)
		}
	}
	for path := range have {
		if want[path] == nil {
			t.Errorf("%s is no longer built: run make web and commit dist", path)
		}
	}
	inPage(t, "npm", "test", "--silent")
}
