package network

import (
	"errors"
	"slices"
	"strings"

	"github.com/earshot-mc/earshot/configs"
)

// keyed is a fault at a key of the configuration.
type keyed struct {
	key string
	err error
}

// Error implements error.
func (k *keyed) Error() string { return k.key + ": " + k.err.Error() }

// Unwrap returns the fault.
func (k *keyed) Unwrap() error { return k.err }

// at adds the key at fault to an error; nil stays nil.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	return &keyed{key, err}
}

// faults collects what other packages than configs find wrong with a configuration.
type faults struct {
	l     *configs.Loaded
	known []string // keys with which configs has found fault already
	all   []error
}

func newFaults(l *configs.Loaded, loaded error) *faults {
	f := &faults{l: l}
	each(loaded, func(err error) {
		if m := (*configs.Mistake)(nil); errors.As(err, &m) && m.Key != "" {
			f.known = append(f.known, m.Key)
		}
	})
	return f
}

// each calls fn for each error that others have been joined of.
func each(err error, fn func(error)) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			each(e, fn)
		}
	} else if err != nil {
		fn(err)
	}
}

// bad notes a fault at a key.
func (f *faults) bad(key string, err error) {
	if !slices.ContainsFunc(f.known, func(k string) bool { return configs.Related(k, key) }) {
		f.all = append(f.all, f.l.Bad(key, "%w", err))
	}
}

// add notes errors, each at its key where it has one.
func (f *faults) add(err error) {
	each(err, func(err error) {
		if k := (*keyed)(nil); errors.As(err, &k) {
			f.bad(k.key, k.err)
		} else {
			f.all = append(f.all, err)
		}
	})
}

// permissions notes errors of package perm, which begin with the key.
func (f *faults) permissions(err error) {
	each(err, func(err error) {
		key, what, _ := strings.Cut(err.Error(), ": ")
		f.bad(key, errors.New(what))
	})
}

// texts notes errors of languages, which begin with the language and the key of the text.
func (f *faults) texts(err error) {
	each(err, func(err error) {
		where, what, _ := strings.Cut(err.Error(), ": ")
		tag, key, _ := strings.Cut(where, ".")
		f.all = append(f.all, f.l.BadText(tag, key, "%s", what))
	})
}

// Check returns everything that is wrong with a configuration, nil when nothing is. loaded is the error of
// [configs.Load].
func Check(l *configs.Loaded, loaded error) error {
	if loaded != nil && !l.Whole() {
		return loaded
	}
	n := newNetwork(l, Options{})
	_, err := n.compile(l, loaded)
	return configs.Join(loaded, err)
}
