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
	// Files are those that this was read from, or would have been had they been there: a change of one is a change of the
	// configuration. Folders stand for what is in them.
	Files []string
	Texts map[string]map[string]string // of the languages, by tag and key; not checked
	// Versions are those of the folder versions in the data folder, by number. What their packets and traits are called is
	// not checked.
	Versions []*Version
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
		b := (&yaml.PathBuilder{}).Root()
		for i, part := range strings.Split(key, `"`) {
			if i%2 == 1 {
				b = b.Child(part)
				continue
			}
			for _, part := range strings.FieldsFunc(part, func(r rune) bool { return r == '.' }) {
				b = b.Child(part)
			}
		}
		if n, err := b.Build().FilterFile(s.tree); err == nil {
			where = s.at(n.GetToken())
		}
	}
	return fmt.Errorf("%s%s: %w", where, key, fmt.Errorf(format, args...))
}

// explain turns the library's errors into one line each.
func (s *source) explain(err error) error {
	var (
		unknown *yaml.UnknownFieldError
		kind    *yaml.TypeError
		twice   *yaml.DuplicateKeyError
		any     yaml.Error
	)
	switch {
	case errors.As(err, &unknown):
		key := unknown.Token.Value
		hint := "remove it"
		if near := nearest(key, keys(reflect.TypeFor[Config]())); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return fmt.Errorf("%sunknown key %q: %s", s.at(unknown.Token), key, hint)
	case errors.As(err, &kind):
		return fmt.Errorf("%s%q is not a %s", s.at(kind.Token), kind.Token.Value, plain(kind.DstType))
	case errors.As(err, &twice):
		return fmt.Errorf("%s%s", s.at(twice.Token), twice.Message)
	case errors.As(err, &any):
		return fmt.Errorf("%s%s", s.at(any.GetToken()), any.GetMessage())
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s%s", s.at(nil), text)
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
			if field.Kind() == reflect.Struct || field.Kind() == reflect.Map {
				value = "its value" // may hold a secret
			}
			return fmt.Errorf("environment variable %s: %w", name, (&source{}).explain(err))
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
