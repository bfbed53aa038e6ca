package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// FileName is looked for in the data folder when no file is named.
const FileName = "earshot.yml"

// Loaded is a configuration that has been checked.
type Loaded struct {
	Config
	File     string   // "" when there was none
	Warnings []string // safe only in some places: worth a line at each start
	Notes    []string // worth one too: probably a mistake
	Hints    []string // perhaps a mistake: for earshot check
	// Files are those that this was read from, or would have been had they been there: a change of one is a change of
	// the configuration. Folders stand for their contents.
	Files []string
	Texts map[string]map[string]string // of the languages, by tag and key; not checked
	// Versions are those of the folder versions in the data folder, by number. Names of packets and traits are not
	// checked.
	Versions []*Version

	src       *source
	languages map[string]*source // by tag
	whole     bool
}

// Note adds a note about a key, given as its path, for packages that check what Load cannot.
func (l *Loaded) Note(key, format string, args ...any) {
	l.Notes = append(l.Notes, l.src.bad(key, format, args...).Error())
}

// Bad returns the error of a key, given as its path, for packages that check what Load cannot.
func (l *Loaded) Bad(key, format string, args ...any) error { return l.src.bad(key, format, args...) }

// BadText returns the error of a text of a language, by its tag and key.
func (l *Loaded) BadText(tag, key, format string, args ...any) error {
	src := l.languages[tag]
	if src == nil {
		src = &source{}
	}
	return src.bad(key, format, args...)
}

// Whole tells whether all of the configuration was read. Mistakes in it do not keep the rest from being checked.
func (l *Loaded) Whole() bool { return l.whole }

// Load reads file (or FileName in dir where that exists, or nothing), lays the environment over it, reads the secret
// files it names and checks the whole. Relative paths in the file are relative to it. The error is a [Mistake],
// [Mistakes], or that of a file that cannot be read; each is one line that names the file, the line, the key and what
// to do. With an error only the Files of the result count: those that were looked at so far.
func Load(file, dir string, environ []string) (*Loaded, error) {
	l := &Loaded{Config: Default()}
	if file == "" {
		f := filepath.Join(dir, FileName)
		l.Files = append(l.Files, f)
		if exists(f) {
			file = f
		}
	} else {
		l.Files = append(l.Files, file)
	}
	src := &source{name: file}
	l.src = src
	p := &problems{src: src}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return l, fmt.Errorf("cannot read the configuration: %w", err)
		}
		if err := src.parse(text); err != nil {
			return l, err
		}
		l.Config = read(p, text, Default)
		l.File = file
		if l.secretsInside() {
			p.warn(readable(file, "the configuration has secrets in it, and"))
		}
	}
	l.Notes = overlay(p, &l.Config, environ)
	l.secrets(p, filepath.Dir(file))
	l.versions(p, dir)
	if file != "" {
		dir = filepath.Dir(file)
	}
	l.paths(dir)
	l.texts(p, dir)
	l.check(p)
	l.Warnings, l.whole = p.warnings, true
	if err := Join(p.all...); err != nil {
		return l, err
	}
	more, notes := l.warn(src)
	l.Warnings, l.Notes = append(l.Warnings, more...), append(l.Notes, notes...)
	return l, nil
}

// Print writes what is in force to stdout, and what is probably not meant or not safe to stderr. dir is the data
// folder.
func (l *Loaded) Print(dir string, stdout, stderr io.Writer) {
	for _, w := range slices.Concat(l.Warnings, l.Notes, l.Hints) {
		fmt.Fprintln(stderr, "warning:", w)
	}
	if l.File == "" {
		fmt.Fprintf(stderr, "there is no %s in %s: these are the defaults\n", FileName, Absolute(dir))
	}
	fmt.Fprint(stdout, "# No mistakes. In force:\n", l.Effective())
}

// Effective returns the configuration as YAML, secrets hidden.
func (l *Loaded) Effective() string {
	b, err := yaml.MarshalWithOptions(l.Config, yaml.IndentSequence(true))
	if err != nil {
		return err.Error() // for plain data only a broken build gets here
	}
	return string(b)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// maxMistakes bounds the unreadable values that are looked for.
const maxMistakes = 100

// read makes a value of a parsed text, over the defaults of def. An unreadable value, or an unknown key, is a problem,
// and the rest is read without it.
func read[T any](p *problems, text []byte, def func() T) T {
	out := def()
	if len(bytes.TrimSpace(text)) == 0 {
		return out
	}
	err := yaml.UnmarshalWithOptions(text, &out, yaml.Strict())
	if err == nil {
		return out
	}
	rest, perr := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	for n := 0; err != nil && n < maxMistakes; n++ {
		at := tokenOf(err)
		bad := p.src.explain(err)
		p.add(bad, bad.Key)
		if perr != nil || at == nil || at.Position == nil || len(rest.Docs) == 0 || !prune(rest.Docs[0].Body, at.Position) {
			break
		}
		out = def()
		err = yaml.NodeToValue(rest.Docs[0].Body, &out, yaml.Strict())
	}
	return out
}

// tokenOf returns the place of an error of the library.
func tokenOf(err error) *token.Token {
	if any := yaml.Error(nil); errors.As(err, &any) {
		return any.GetToken()
	}
	return nil
}

// source tells where in the file a key stands.
type source struct {
	name string
	tree *ast.File
	root reflect.Type // of the text; nil: a whole Config
}

func (s *source) at(t *token.Token) string {
	if s.name == "" {
		return ""
	}
	if t == nil || t.Position == nil {
		return s.name + ": "
	}
	return fmt.Sprintf("%s:%d: ", s.name, t.Position.Line)
}

// parse parses the text. If it is no YAML at all, nothing else can be said of it.
func (s *source) parse(text []byte) error {
	var err error
	if s.tree, err = parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()); err == nil {
		return nil
	}
	m := s.explain(err)
	if t := tokenOf(err); m.Key == "" && t != nil && t.Position != nil {
		if m.Key = nearKey(text, t.Position.Line); m.Key != "" && !strings.Contains(m.Error(), m.Key) {
			m.err = fmt.Errorf("%w (near %s)", m.err, m.Key)
		}
	}
	return m
}

// nearKey returns the path to the last key at or above a line, by how far lines are indented.
func nearKey(text []byte, line int) string {
	lines := strings.Split(string(text), "\n")
	var path []string
	below := math.MaxInt
	for i := min(line, len(lines)) - 1; i >= 0 && below > 0; i-- {
		m := keyLine.FindStringSubmatch(lines[i])
		if m == nil || len(m[1]) >= below {
			continue
		}
		path, below = append(path, m[2]), len(m[1])
	}
	slices.Reverse(path)
	return strings.Join(path, ".")
}

var keyLine = regexp.MustCompile(`^(\s*)(?:- )?["']?([\w.*-]+)["']?\s*:(?:\s|$)`)

// bad returns the error of one key, given as its path: voice.range, or hosts."example.net".try where a key has dots.
func (s *source) bad(key, format string, args ...any) *Mistake {
	var at *token.Token
	if s.tree != nil {
		var parts []string
		for i, part := range strings.Split(key, `"`) {
			if i%2 == 1 {
				parts = append(parts, part)
				continue
			}
			parts = append(parts, strings.FieldsFunc(part, func(r rune) bool { return r == '.' })...)
		}
		for ; len(parts) > 0; parts = parts[:len(parts)-1] { // a missing key is reported at the section that lacks it
			b := (&yaml.PathBuilder{}).Root()
			for _, part := range parts {
				b = b.Child(part)
			}
			if n, err := b.Build().FilterFile(s.tree); err == nil {
				at = n.GetToken()
				break
			}
		}
	}
	return s.mistake(at, key, "%s: %w", key, fmt.Errorf(format, args...))
}

// mistake returns an error at a token; nil: anywhere.
func (s *source) mistake(at *token.Token, key, format string, args ...any) *Mistake {
	m := &Mistake{File: s.name, Key: key}
	if at != nil && at.Position != nil && s.name != "" {
		m.Line = at.Position.Line
	}
	m.err = fmt.Errorf("%s"+format, append([]any{s.at(at)}, args...)...)
	return m
}

// explain turns the library's errors into one line each.
func (s *source) explain(err error) *Mistake {
	var (
		unknown *yaml.UnknownFieldError
		kind    *yaml.TypeError
		form    *yaml.UnexpectedNodeTypeError
		twice   *yaml.DuplicateKeyError
		any     yaml.Error
	)
	named := func(path string) string {
		if path != "" {
			path += ": "
		}
		return path
	}
	switch {
	case errors.As(err, &unknown):
		key := unknown.Token.Value
		path, section := s.where(unknown.Token)
		in := ""
		if i := strings.LastIndexByte(path, '.'); i >= 0 && path[i+1:] == key {
			in = path[:i] + ": "
		}
		hint := "remove it"
		if near := nearest(key, own(section)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if all := own(section); len(all) > 0 && len(all) <= 12 {
			hint += "; there are " + strings.Join(all, ", ")
		}
		return s.mistake(unknown.Token, path, "%sunknown key %q: %s", in, key, hint)
	case errors.As(err, &kind):
		path, _ := s.where(kind.Token)
		return s.mistake(kind.Token, path, "%s%q is not a %s", named(path), kind.Token.Value, plain(kind.DstType))
	case errors.As(err, &form):
		path, of := s.where(form.Token)
		if of != nil && path != "" {
			return s.mistake(form.Token, path, "%s: %s", path, formOf(of, form.Token.Value))
		}
		what := "write a section with keys of its own"
		if form.Expected == ast.SequenceType {
			what = "write a list, as [a, b]"
		} else if looksLikeTOML(s.tree) {
			what = "this is no YAML; the settings of another program do not fit: see earshot.yml of the release for ours"
		}
		return s.mistake(form.Token, path, "%s", what)
	case errors.As(err, &twice):
		path, _ := s.where(twice.Token)
		return s.mistake(twice.Token, path, "%s", twice.Message)
	case errors.As(err, &any):
		message := any.GetMessage()
		if strings.Contains(message, "'\t'") {
			message += ": indent with spaces"
		}
		path, _ := s.where(any.GetToken())
		if strings.HasPrefix(message, "mapping key ") { // named twice
			return s.mistake(any.GetToken(), path, "%s", message)
		}
		return s.mistake(any.GetToken(), path, "%s%s", named(path), message)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return s.mistake(nil, "", "%s", text)
}

// formOf says how to write a value of a type.
func formOf(of reflect.Type, value string) string {
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		if value == "" || strings.ContainsAny(value, ":{}[],\n") {
			value = "a, b"
		}
		return "write a list, as [" + value + "]"
	case reflect.Map:
		return "write a section with names of yours in it, each with its value behind a colon"
	case reflect.Struct:
		return "write a section with keys of its own: " + strings.Join(own(of), ", ")
	}
	return "write a " + plain(of)
}

// looksLikeTOML tells whether the text is another program's settings.
func looksLikeTOML(tree *ast.File) bool {
	if tree == nil || len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return false
	}
	text, _, _ := strings.Cut(tree.Docs[0].Body.String(), ":")
	return strings.Contains(text, "=")
}

func plain(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "yes/no value: write true or false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "section with keys of its own"
	}
	return t.String()
}

// keys returns all key names below t.
func keys(t reflect.Type) []string {
	var out []string
	switch t.Kind() {
	case reflect.Map:
		return keys(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			out = append(append(out, name), keys(f.Type)...)
		}
	}
	return out
}

// nearest returns the candidate within a third of the word's length in edits.
func nearest(word string, candidates []string) string {
	best, limit := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(word, c); d < limit {
			best, limit = c, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace, and the neighbours to swap, that make b of a.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Prefix starts every environment variable of ours.
const Prefix = "EARSHOT_"

// Variables returns the environment variables: one per key, sections included, whose value is then YAML.
func Variables() []string {
	var out []string
	walk(reflect.ValueOf(&Config{}).Elem(), Prefix[:len(Prefix)-1], "", func(name, _ string, _ reflect.Value) { out = append(out, name) })
	sort.Strings(out)
	return out
}

// walk calls fn for every key below v, with the variable's name and the path.
func walk(v reflect.Value, name, path string, fn func(name, path string, field reflect.Value)) {
	for f, field := range v.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		full, below := name+"_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_")), strings.TrimPrefix(path+"."+key, ".")
		fn(full, below, field)
		if field.Kind() == reflect.Struct {
			walk(field, full, below, fn)
		}
	}
}

// overlay lays the environment over c. An unknown name with our prefix is a note and not an error: orchestrators inject
// EARSHOT_PORT and the like for a service of that name.
func overlay(p *problems, c *Config, environ []string) (notes []string) {
	env := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, Prefix) {
			env[name] = value
		}
	}
	walk(reflect.ValueOf(c).Elem(), Prefix[:len(Prefix)-1], "", func(name, key string, field reflect.Value) {
		value, ok := env[name]
		if !ok {
			return
		}
		delete(env, name)
		if field.Kind() == reflect.String {
			field.SetString(value)
			return
		}
		if err := yaml.UnmarshalWithOptions([]byte(value), field.Addr().Interface(), yaml.Strict()); err != nil {
			in := &source{root: field.Type()}
			in.tree, _ = parser.ParseBytes([]byte(value), 0)
			p.add(fmt.Errorf("environment variable %s: %w", name, in.explain(err)), key)
		}
	})
	for name := range env {
		hint := ""
		if near := nearest(name, Variables()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		notes = append(notes, fmt.Sprintf("environment variable %s is no setting%s", name, hint))
	}
	sort.Strings(notes)
	return notes
}
