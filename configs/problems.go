package configs

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Mistake is one mistake in a configuration: its error names the file, the line and the key, and says what to do.
type Mistake struct {
	File string // empty: in none
	Line int    // 0: in none of its lines
	Key  string // the path to it, or to the section that lacks something; empty: not known
	err  error
}

// Error implements error.
func (m *Mistake) Error() string { return m.err.Error() }

// Unwrap returns the cause, such as a file that is not there.
func (m *Mistake) Unwrap() error { return errors.Unwrap(m.err) }

// Mistakes are all mistakes in a configuration, by files and lines. The error shows the first of them and how many more
// there are, for a place that has one line.
type Mistakes []error

// Error implements error.
func (m Mistakes) Error() string {
	return fmt.Sprintf("%v; and %d more: earshot check lists them", m[0], len(m)-1)
}

// Unwrap returns them all.
func (m Mistakes) Unwrap() []error { return m }

// Join makes one error of several: nil of none, the only one of one, or else Mistakes, by files and lines and each
// once. Those without a file come last.
func Join(all ...error) error {
	place := func(err error) (file string, line int) {
		if m := (*Mistake)(nil); errors.As(err, &m) && m.File != "" {
			return m.File, m.Line
		}
		return "\uffff", 0
	}
	var out Mistakes
	for _, err := range all {
		if many := Mistakes(nil); errors.As(err, &many) {
			out = append(out, many...)
		} else if err != nil {
			out = append(out, err)
		}
	}
	slices.SortStableFunc(out, func(a, b error) int {
		aFile, aLine := place(a)
		bFile, bLine := place(b)
		return cmp.Or(cmp.Compare(aFile, bFile), cmp.Compare(aLine, bLine), cmp.Compare(a.Error(), b.Error()))
	})
	out = slices.CompactFunc(out, func(a, b error) bool { return a.Error() == b.Error() })
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return out
}

// problems collects the mistakes in a configuration, and warnings.
type problems struct {
	src      *source
	all      []error
	unread   []string // keys with unreadable values: consequences of that are no mistakes of their own
	warnings []string
}

// add notes an error that has its place already. Its key could not be read.
func (p *problems) add(err error, key string) {
	p.all = append(p.all, err)
	if key != "" {
		p.unread = append(p.unread, key)
	}
}

// bad notes a mistake at a key, given as its path: see [source.bad].
func (p *problems) bad(key, format string, args ...any) {
	if !slices.ContainsFunc(p.unread, func(u string) bool { return Related(u, key) }) {
		p.all = append(p.all, p.src.bad(key, format, args...))
	}
}

// Related tells whether two keys are one, or one is in the other's section.
func Related(a, b string) bool {
	a, b = strings.ReplaceAll(a, `"`, "")+".", strings.ReplaceAll(b, `"`, "")+"."
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// warn adds a warning; an empty text adds nothing.
func (p *problems) warn(text string) {
	if text != "" {
		p.warnings = append(p.warnings, text)
	}
}

// oneOf checks that a value is one of a few words.
func (p *problems) oneOf(key, value string, words ...string) {
	if !slices.Contains(words, value) {
		p.bad(key, "%q is not one of %s", value, strings.Join(words, ", "))
	}
}

// networks checks addresses and networks, and warns of those that hold everybody.
func (p *problems) networks(key string, list []string) {
	all, err := Prefixes(list)
	if err != nil {
		p.bad(key, "%w", err)
	}
	p.warn(trust(key, all))
}

// address checks a host:port.
func (p *problems) address(key, value string) {
	if err := CheckAddress(value); err != nil {
		p.bad(key, "%w", err)
	}
}

// link checks a base URL.
func (p *problems) link(key, value string) {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		p.bad(key, "%q is no base URL: write http://host:port or https://host", value)
	}
}

// rate checks that a token bucket lets something through.
func (p *problems) rate(key string, r Rate) {
	if !(r.PerSecond > 0) || r.Burst < 1 {
		p.bad(key, "per-second must be above 0 and burst at least 1")
	}
}

// reachable checks that an address can be reached.
func (p *problems) reachable(key, value string) {
	p.address(key, value)
	if _, port, err := net.SplitHostPort(value); err == nil {
		if n, err := net.LookupPort("tcp", port); err == nil && n == 0 {
			p.bad(key, "%q has port 0, where nobody can be reached: write the port that the server listens on", value)
		}
	}
}
