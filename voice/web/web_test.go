package web

import (
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/itest/testkit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFiles: the page asks for what is embedded, and holds nothing that a strict content policy would forbid.
func TestFiles(t *testing.T) {
	have := testkit.Tree(t, Files)
	index := string(have["index.html"])
	for _, forbidden := range []string{"<style", "style=", "onclick", "javascript:", "http://", "https://", "//"} {
		if strings.Contains(index, forbidden) {
			t.Errorf("index.html contains %q", forbidden)
		}
	}
	for _, part := range strings.Split(index, `"./`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if have[name] == nil {
			t.Errorf("index.html asks for %s, which is not there", name)
		}
	}
	if strings.Count(index, "<script") != 1 || !strings.Contains(index, `<script type="module" crossorigin src="./assets/`) {
		t.Error("index.html has a script of its own, or none")
	}
}
