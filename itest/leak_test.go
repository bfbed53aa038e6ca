package itest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// looksForLeaks is the line by which a package's tests fail on a goroutine that is left when they are through.
var looksForLeaks = regexp.MustCompile(`(?m)^func TestMain\(m \*testing\.M\) \{\n?(.*\n)*?.*goleak\.VerifyTestMain\(`)

// TestEveryPackageLooksForLeaks: no test package can leave a goroutine behind unseen, also one whose code starts none
// today.
func TestEveryPackageLooksForLeaks(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files := append(p.TestGoFiles, p.XTestGoFiles...)
		if len(files) == 0 {
			continue
		}
		tested++
		if !slices.ContainsFunc(files, func(name string) bool {
			b, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return looksForLeaks.Match(b)
		}) {
			t.Errorf("%s does not look for goroutines that are left: give it a TestMain with goleak, as proxy/limit has", p.ImportPath)
		}
	}
	if tested < 40 {
		t.Errorf("only %d packages with tests were found", tested)
	}
}
