package session

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/earshot-mc/earshot/bridge/commands"
)

// TestTexts: what is said to players is in the table of texts, and no text of a session is in it that nobody says.
func TestTexts(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	english, said := commands.English(), map[string]bool{}
	word := regexp.MustCompile(`\b(?:(?:say|sayWhy|because|notice)\(|refusal\(.*?, )"([a-z-]+)"`)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range word.FindAllStringSubmatch(string(text), -1) {
			if english[m[1]] == "" {
				t.Errorf("%s says %q, which is no text", f, m[1])
			}
		}
		for key := range english {
			if strings.Contains(string(text), `"`+key+`"`) {
				said[key] = true
			}
		}
	}
	for key := range english {
		if (strings.HasPrefix(key, "kick-") || strings.HasPrefix(key, "backend-")) && !said[key] {
			t.Errorf("nobody says %q", key)
		}
	}
}
