package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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
	Warnings []string // not wrong, but not safe either: worth a line at each start
	Notes    []string // worth one too: probably not what was meant
	Hints    []string // perhaps not what was meant: for who checks the configuration
	// Files are those that this was read from, or would have been had they been there: a change of one is a change of the
	// configuration. Folders stand for what is in them.
	Files []string
	Texts map[string]map[string]string // of the languages, by tag and key; not checked
	// Versions are those of the folder versions in the data folder, by number. What their packets and traits are called is
	// not checked.
	Versions []*Version

	src *source
}

// Note adds a note about a key, given as its path, for those who check what Load cannot.
func (l *Loaded) Note(key, format string, args ...any) {
	l.Notes = append(l.Notes, l.src.bad(key, format, args...).Error())
}

// Load reads file (or FileName in dir where that exists, or nothing), lays the
// environment over it, reads the secret files it names and checks the whole.
// Relative paths in the file are relative to it. Every error is one line that
// names the file, the line, the key and what to do; of what is returned with it
// only Files count, those that were looked at so far.
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
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return l, fmt.Errorf("cannot read the configuration: %w", err)
		}
		if src.tree, err = parser.ParseBytes(text, 0); err != nil {
			return l, src.explain(err)
		}
		if err := decode(text, &l.Config); err != nil {
			return l, src.explain(err)
		}
		l.File = file
		if l.secretsInside() {
			if w := readable(file, "the configuration has secrets in it, and"); w != "" {
				l.Warnings = append(l.Warnings, w)
			}
		}
	}
	notes, err := overlay(&l.Config, environ)
	if err != nil {
		return l, err
	}
	l.Notes = notes
	if err := l.secrets(src, filepath.Dir(file)); err != nil {
		return l, err
	}
	if err := l.versions(dir); err != nil {
		return l, err
	}
	if file != "" {
		dir = filepath.Dir(file)
	}
	l.paths(dir)
	if err := l.texts(dir); err != nil {
		return l, err
	}
	more, err := l.check(src)
	l.Warnings = append(l.Warnings, more...)
	if err != nil {
		return l, err
	}
	more, notes = l.warn(src)
	l.Warnings, l.Notes = append(l.Warnings, more...), append(l.Notes, notes...)
	return l, nil
}

// Effective is the configuration as YAML, secrets hidden.
func (l *Loaded) Effective() string {
	b, err := yaml.MarshalWithOptions(l.Config, yaml.IndentSequence(true))
	if err != nil {
		return err.Error() // of plain data: only a broken build gets here
	}
	return string(b)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

func decode(text []byte, into *Config) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return yaml.UnmarshalWithOptions(text, into, yaml.Strict())
}

// source tells where in the file a key stands.
type source struct {
	name string
	tree *ast.File
	root reflect.Type // of what the text is; nil: a whole Config
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

// bad is the error of one key, given as its path: voice.range, or hosts."example.net".try where a key has dots.
func (s *source) bad(key, format string, args ...any) error {
	where := s.at(nil)
	if s.tree != nil {
		var parts []string
		for i, part := range strings.Split(key, `"`) {
			if i%2 == 1 {
				parts = append(parts, part)
				continue
			}
			parts = append(parts, strings.FieldsFunc(part, func(r rune) bool { return r == '.' })...)
		}
		for ; len(parts) > 0; parts = parts[:len(parts)-1] { // of a key that is not there, the section that it is not in
			b := (&yaml.PathBuilder{}).Root()
			for _, part := range parts {
				b = b.Child(part)
			}
			if n, err := b.Build().FilterFile(s.tree); err == nil {
				where = s.at(n.GetToken())
				break
			}
		}
	}
	return fmt.Errorf("%s%s: %w", where, key, fmt.Errorf(format, args...))
}

// explain turns the library's errors into one line each.
func (s *source) explain(err error) error {
	var (
		unknown *yaml.UnknownFieldError
		kind    *yaml.TypeError
		form    *yaml.UnexpectedNodeTypeError
		twice   *yaml.DuplicateKeyError
		any     yaml.Error
	)
	named := func(t *token.Token) string {
		if path, _ := s.where(t); path != "" {
			return path + ": "
		}
		return ""
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
		return fmt.Errorf("%s%sunknown key %q: %s", s.at(unknown.Token), in, key, hint)
	case errors.As(err, &kind):
		return fmt.Errorf("%s%s%q is not a %s", s.at(kind.Token), named(kind.Token), kind.Token.Value, plain(kind.DstType))
	case errors.As(err, &form):
		path, of := s.where(form.Token)
		if of != nil && path != "" {
			return fmt.Errorf("%s%s: %s", s.at(form.Token), path, formOf(of, form.Token.Value))
		}
		what := "write a section with keys of its own"
		if form.Expected == ast.SequenceType {
			what = "write a list, as [a, b]"
		} else if looksLikeTOML(s.tree) {
			what = "this is no YAML; the settings of another program do not fit: see earshot.yml of the release for ours"
		}
		return fmt.Errorf("%s%s", s.at(form.Token), what)
	case errors.As(err, &twice):
		return fmt.Errorf("%s%s", s.at(twice.Token), twice.Message)
	case errors.As(err, &any):
		message := any.GetMessage()
		if strings.Contains(message, "'\t'") {
			message += ": indent with spaces"
		}
		return fmt.Errorf("%s%s", s.at(any.GetToken()), message)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s%s", s.at(nil), text)
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

// looksLikeTOML tells whether the text is that of another program's settings.
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

// keys are all key names below t.
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

// nearest is the candidate within a third of the word's length in edits.
func nearest(word string, candidates []string) string {
	best, limit := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(word, c); d < limit {
			best, limit = c, d
		}
	}
	return best
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			prev, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, prev+cost)
		}
	}
	return row[len(b)]
}

// Prefix starts every environment variable of ours.
const Prefix = "EARSHOT_"

// Variables are the environment variables: one per key, sections included,
// whose value is then YAML.
func Variables() []string {
	var out []string
	walk(reflect.ValueOf(&Config{}).Elem(), Prefix[:len(Prefix)-1], func(name string, _ reflect.Value) error {
		out = append(out, name)
		return nil
	})
	sort.Strings(out)
	return out
}

func walk(v reflect.Value, name string, fn func(string, reflect.Value) error) error {
	for f, field := range v.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		full := name + "_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		if err := fn(full, field); err != nil {
			return err
		}
		if field.Kind() == reflect.Struct {
			if err := walk(field, full, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlay lays the environment over c. A name of ours that is no key is a
// note and not an error: orchestrators inject EARSHOT_PORT and the like for
// a service of that name.
func overlay(c *Config, environ []string) (notes []string, err error) {
	env := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, Prefix) {
			env[name] = value
		}
	}
	err = walk(reflect.ValueOf(c).Elem(), Prefix[:len(Prefix)-1], func(name string, field reflect.Value) error {
		value, ok := env[name]
		if !ok {
			return nil
		}
		delete(env, name)
		if field.Kind() == reflect.String {
			field.SetString(value)
			return nil
		}
		if err := yaml.UnmarshalWithOptions([]byte(value), field.Addr().Interface(), yaml.Strict()); err != nil {
			in := &source{root: field.Type()}
			in.tree, _ = parser.ParseBytes([]byte(value), 0)
			return fmt.Errorf("environment variable %s: %w", name, in.explain(err))
		}
		return nil
	})
	for name := range env {
		hint := ""
		if near := nearest(name, Variables()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		notes = append(notes, fmt.Sprintf("environment variable %s is no setting%s", name, hint))
	}
	sort.Strings(notes)
	return notes, err
}
