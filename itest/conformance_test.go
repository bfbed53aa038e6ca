package itest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// testName is a test as the documents name it: the package's folder, a dot, the function.
	testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz|Benchmark|Example)\\w*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
)

// TestConformance: each test that a document names exists, and each row of a CONFORMANCE.md names one. So nothing is
// promised there that no test holds.
func TestConformance(t *testing.T) {
	root := os.DirFS("..")
	functions := map[string]map[string]bool{} // by folder
	var documents []string
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			documents = append(documents, path)
		case strings.HasSuffix(path, "_test.go"):
			text, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			dir := filepath.ToSlash(filepath.Dir(path))
			if functions[dir] == nil {
				functions[dir] = map[string]bool{}
			}
			for _, f := range testFunc.FindAllSubmatch(text, -1) {
				functions[dir][string(f[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, path := range documents {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			t.Fatal(err)
		}
		table := filepath.Base(path) == "CONFORMANCE.md"
		rows, head := 0, true
		for i, line := range strings.Split(string(text), "\n") {
			named := testName.FindAllStringSubmatch(line, -1)
			for _, n := range named {
				if !functions[n[1]][n[2]] {
					t.Errorf("%s:%d: there is no test %s in %s", path, i+1, n[2], n[1])
				}
			}
			switch {
			case !strings.HasPrefix(line, "|"):
				head = true
			case strings.HasPrefix(strings.ReplaceAll(line, " ", ""), "|---"):
				head = false
			case !head:
				if rows++; table && len(named) == 0 {
					t.Errorf("%s:%d: no test holds this row", path, i+1)
				}
			}
		}
		if table {
			tables++
			if rows < 10 {
				t.Errorf("%s: only %d rows", path, rows)
			}
		}
	}
	if tables == 0 {
		t.Error("there is no CONFORMANCE.md")
	}
}
