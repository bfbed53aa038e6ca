package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// restart lists the keys, or sections, whose changes wait for the next start. All others are in force with a reload.
var restart = []string{"listen", "state", "rcon.address"}

// NeedsRestart tells whether a change of a key, given as its path, waits for the next start.
func NeedsRestart(key string) bool {
	return slices.ContainsFunc(restart, func(k string) bool { return key == k || strings.HasPrefix(key, k+".") })
}

// Change is one key that two configurations differ in.
type Change struct {
	Key      string // its path, as voice.range
	Old, New string // as the file has it, secrets hidden; empty: not there
	Restart  bool   // the new value is not in force before the next start
}

// String returns the change as an administrator reads it.
func (c Change) String() string {
	switch {
	case c.Restart:
		return fmt.Sprintf("%s: still %s, %s needs a restart", c.Key, c.Old, c.New)
	case c.Old == c.New:
		return c.Key + ": changed" // the value is hidden, or too long to show where it differs
	case c.Old == "":
		return fmt.Sprintf("%s: added, %s", c.Key, c.New)
	case c.New == "":
		return c.Key + ": removed"
	}
	return fmt.Sprintf("%s: %s → %s", c.Key, c.Old, c.New)
}

// Changes lists the changes from one configuration to another one, in the order of the keys' names.
func Changes(from, to *Config) []Change {
	var all []Change
	compare("", reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem(), &all)
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// Keep gives the keys that need a restart their values in a configuration that is in force.
func (c *Config) Keep(now *Config) {
	for _, key := range restart {
		field(reflect.ValueOf(c).Elem(), key).Set(field(reflect.ValueOf(now).Elem(), key))
	}
}

// field finds the value of a key.
func field(v reflect.Value, key string) reflect.Value {
	for word := range strings.SplitSeq(key, ".") {
		for f, x := range v.Fields() {
			if keyOf(f) == word {
				v = x
				break
			}
		}
	}
	return v
}

func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func compare(key string, from, to reflect.Value, all *[]Change) {
	join := func(word string) string {
		if key == "" {
			return word
		}
		return key + "." + word
	}
	switch {
	case reflect.DeepEqual(from.Interface(), to.Interface()):
	case from.Kind() == reflect.Struct:
		for f, v := range from.Fields() {
			compare(join(keyOf(f)), v, to.FieldByIndex(f.Index), all)
		}
	case from.Kind() == reflect.Map:
		for _, k := range from.MapKeys() {
			name := join(fmt.Sprint(k.Interface()))
			if there := to.MapIndex(k); there.IsValid() {
				compare(name, from.MapIndex(k), there, all)
			} else {
				*all = append(*all, Change{Key: name, Old: show(from.MapIndex(k))})
			}
		}
		for _, k := range to.MapKeys() {
			if !from.MapIndex(k).IsValid() {
				*all = append(*all, Change{Key: join(fmt.Sprint(k.Interface())), New: show(to.MapIndex(k))})
			}
		}
	default:
		*all = append(*all, Change{key, show(from), show(to), NeedsRestart(key)})
	}
}

// maxShown bounds the shown part of a value, in characters.
const maxShown = 60

// show writes a value on one line, as the file would have it.
func show(v reflect.Value) string {
	b, err := yaml.MarshalWithOptions(v.Interface(), yaml.Flow(true), yaml.JSON())
	if err != nil {
		return "?" // for plain data only a broken build gets here
	}
	text := []rune(strings.Join(strings.Fields(string(b)), " "))
	if len(text) > maxShown {
		text = append(text[:maxShown], '…')
	}
	return string(text)
}
