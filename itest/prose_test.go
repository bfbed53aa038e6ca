package itest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentWidth bounds the lines that have a comment, in columns; a tab counts as four.
const commentWidth = 120

// stumbles are what readers trip over, with what to write instead.
var stumbles = []struct {
	advice string
	prose  bool // in running text only, not in headings
	find   *regexp.Regexp
}{
	{"a player is they, or a name", false, regexp.MustCompile(`(?i)\b(he|his|him|himself|she|her|hers|herself)\b`)},
	{"say it with a word of today", false, regexp.MustCompile(`(?i)\b(besides|anew|wherein|whereof|whereby|thereof|thereby|thereupon|whosoever)\b`)},
	{"no clause to unwind: name them", false, regexp.MustCompile(`(?i)\bthose (of|to|from|by|for|with|in|on|at) (whom|which|whose|what)\b`)},
	{"no clause in a clause", false, regexp.MustCompile(`(?i)\b(whom|what) (whom|what)\b|\bof whom (it|they|one|there)\b|\bwhat it was that\b`)},
	{"begin with who acts, not with a clause", true, regexp.MustCompile(`(^|[.;:] )(Who|Whom|Whose|Whoever) `)},
}

// stumble returns what a reader of the text trips over, with some of the text around it; empty: nothing.
func stumble(text string, prose bool) string {
	for _, s := range stumbles {
		if at := s.find.FindStringIndex(text); at != nil && (prose || !s.prose) {
			return fmt.Sprintf("%q: %s", text[max(0, at[0]-30):min(len(text), at[1]+50)], s.advice)
		}
	}
	return ""
}

// TestStumblesAreFound holds the patterns to sentences that once stood in the code, and to what they are now.
func TestStumblesAreFound(t *testing.T) {
	for _, text := range []string{
		"Hidden are those of whose being here a player must not learn: on his own backend whom it hides from him.",
		"Shown are those of them of whom one may know: without whom a server hides from him.",
		"At is how far an ordinary voice carries at a spot, besides those of which these are the zones.",
		"Whoever has the buckets made anew gets back what is known.",
		"A mute ends. Who is muted is told.",
		"It is not so for those to whom nothing was said.",
	} {
		if stumble(text, true) == "" {
			t.Errorf("nobody trips over %q", text)
		}
	}
	for _, text := range []string{
		"Hidden returns the players that from must not learn about.",
		"At returns the voice range in blocks at x, y, z: that of the first zone containing it, else base.",
		"The player who is muted is told; whose mute it is stands in the log. The theremin plays on the shore.",
	} {
		if s := stumble(text, true); s != "" {
			t.Error(s)
		}
	}
	if verb := deed("At is how far it carries", "At"); verb == "" {
		t.Error("a function is a noun")
	}
	for _, doc := range []string{"At returns it", "At, a method, returns it"} {
		if verb := deed(doc, "At"); verb != "" {
			t.Error(verb)
		}
	}
}

// deed returns what is wrong with the beginning of a function's comment, which is its name and a verb; empty: nothing.
func deed(doc, name string) string {
	words := strings.Fields(doc)
	switch {
	case len(words) == 0:
		return ""
	case strings.TrimRight(words[0], ",:") != name:
		return "begins without its name"
	case len(words) > 1 && slices.Contains([]string{"is", "are", "was", "were"}, words[1]):
		return "says what it is, and not what it does: " + strings.Join(words[:min(6, len(words))], " ")
	}
	return ""
}

// sources calls do with each file of the project that has one of the endings.
func sources(t *testing.T, do func(path, text string), endings ...string) {
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == "node_modules" || name == "testdata" || name == "dist" || strings.HasPrefix(name, ".") && name != ".."):
			return fs.SkipDir
		case !e.IsDir() && slices.Contains(endings, filepath.Ext(name)):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			do(filepath.ToSlash(path[3:]), string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCommentsReadAtOnce: functions' comments begin with the name and a verb, comments and texts have none of the
// patterns that readers trip over, and their lines have one width.
func TestCommentsReadAtOnce(t *testing.T) {
	files := token.NewFileSet()
	n := 0
	sources(t, func(path, text string) {
		f, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		if ast.IsGenerated(f) {
			return
		}
		n++
		wrong := func(at token.Pos, format string, args ...any) {
			p := files.Position(at)
			t.Errorf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
		}
		lines := strings.Split(text, "\n")
		for _, group := range f.Comments {
			if s := stumble(strings.Join(strings.Fields(group.Text()), " "), true); s != "" && path != "itest/prose_test.go" {
				wrong(group.Pos(), "%s", s)
			}
			for _, c := range group.List {
				line := lines[files.Position(c.Pos()).Line-1]
				if w := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); w > commentWidth && !strings.HasPrefix(c.Text, "//go:") {
					wrong(c.Pos(), "a line with a comment is %d columns wide, and may be %d", w, commentWidth)
				}
			}
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for i, d := range f.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			// Methods without a line between them share the comment of the first.
			goesOn := i > 0 && files.Position(f.Decls[i-1].End()).Line+1 == files.Position(fd.Pos()).Line
			if fd.Doc == nil && !goesOn && fd.Name.IsExported() && exported(fd.Recv) {
				wrong(fd.Pos(), "%s has no comment", fd.Name.Name)
			} else if s := deed(fd.Doc.Text(), fd.Name.Name); s != "" {
				wrong(fd.Pos(), "the comment of %s %s", fd.Name.Name, s)
			}
		}
		ast.Inspect(f, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
				if s := stumble(text.Value, false); s != "" {
					wrong(text.Pos(), "%s", s)
				}
			}
			return true
		})
	}, ".go")
	if n < 400 {
		t.Errorf("only %d files were read", n)
	}

	n = 0
	sources(t, func(path, text string) {
		if path == "voice/web/src/text/de.ts" {
			return
		}
		n++
		for i, line := range strings.Split(text, "\n") {
			if s := stumble(line, false); s != "" {
				t.Errorf("%s:%d: %s", path, i+1, s)
			}
		}
	}, ".md", ".yml", ".ts", ".tsx", ".js")
	if n < 40 {
		t.Errorf("only %d other files were read", n)
	}
}

// exported reports whether a function with that receiver, or none, can be seen from other packages.
func exported(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	of := recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
