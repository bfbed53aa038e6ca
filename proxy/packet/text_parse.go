package packet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseText reads a text from a configuration file. The text shows its own notation:
//
//   - JSON: it begins like a component (`{"`, `[{`, `["`, `"`) and is one;
//   - MiniMessage: it has at least one known tag. Colours (<red>, <#ff8800>, <color:gold>), <bold> <italic>
//     <underlined> <strikethrough> <obfuscated> and their short forms, <!bold>, <gradient:a:b>, <reset>, <newline>,
//     closing tags; a backslash keeps a < from opening a tag, and tags that are not known stay text;
//   - else &c, &l, &#ff8800 and &x&f&f&8&8&0&0 are codes.
//
// § codes are codes in either of the last two. The error is about broken JSON.
//
// Layout: https://docs.papermc.io/adventure/minimessage/format/.
func ParseText(s string) (Text, error) {
	if t := strings.TrimSpace(s); looksLikeJSON(t) {
		if !json.Valid([]byte(t)) {
			if t[0] == '"' { // a quotation
				return parseMarkup(s), nil
			}
			return Text{}, errors.New("text begins like a JSON component and is not valid JSON; correct it, or write it as MiniMessage")
		}
		return Text{tree: parseJSON([]byte(t))}, nil
	}
	return parseMarkup(s), nil
}

func looksLikeJSON(s string) bool {
	if s == "" || s[0] == '"' {
		return len(s) > 1
	}
	rest := strings.TrimLeft(s[1:], " \t\r\n")
	return s[0] == '{' && strings.HasPrefix(rest, `"`) ||
		s[0] == '[' && (strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, `"`))
}

// glyph is one character and its look; texts in configs are short, so the parser can afford to keep each.
type glyph struct {
	r  rune
	st style
}

// open is a tag that has not been closed: its name, the style to return to, and the gradient it began.
type open struct {
	name     string
	before   style
	gradient int
	colors   []string
	from     int
}

type markup struct {
	out       []glyph
	st        style
	stack     []open
	gradients int
}

func parseMarkup(s string) Text {
	tags := hasTag(s)
	var m markup
	for s != "" {
		if tags && s[0] == '\\' && len(s) > 1 && (s[1] == '<' || s[1] == '\\') {
			m.put(rune(s[1]))
			s = s[2:]
			continue
		}
		if n := m.code(s, !tags); n > 0 {
			s = s[n:]
			continue
		}
		if tags && s[0] == '<' {
			if end := strings.IndexByte(s, '>'); end > 0 && m.tag(s[1:end]) {
				s = s[end+1:]
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s)
		m.put(r)
		s = s[n:]
	}
	for len(m.stack) > 0 {
		m.pop()
	}
	return Text{tree: component(m.out)}
}

// hasTag tells whether s has a tag that would be obeyed.
func hasTag(s string) bool {
	for {
		_, rest, ok := strings.Cut(s, "<")
		if !ok {
			return false
		}
		s = rest
		if tag, _, ok := strings.Cut(s, ">"); ok && new(markup).tag(tag) {
			return true
		}
	}
}

// tagLike matches the inside of something meant as a tag.
var tagLike = regexp.MustCompile(`^(/?!?[a-zA-Z][a-zA-Z0-9_-]*(:[^<]*)?|#[0-9a-zA-Z]+)$`)

// UnknownTags lists the insides of MiniMessage tags in s that do not exist, so that players would read them: grean of
// <grean>. There are none in JSON.
func UnknownTags(s string) (all []string) {
	if looksLikeJSON(strings.TrimSpace(s)) && json.Valid([]byte(strings.TrimSpace(s))) {
		return nil
	}
	var m markup
	for s != "" {
		if s[0] == '\\' && len(s) > 1 {
			s = s[2:]
			continue
		}
		if end := strings.IndexByte(s, '>'); s[0] == '<' && end > 0 {
			inside := s[1:end]
			if m.tag(inside) {
				s = s[end+1:]
				continue
			}
			if tagLike.MatchString(inside) && !slices.Contains(all, strings.TrimPrefix(inside, "/")) {
				all = append(all, inside)
			}
		}
		s = s[1:]
	}
	return all
}

// TagNames returns the names of the tags that [ParseText] obeys.
func TagNames() []string {
	return slices.Concat(slices.Sorted(maps.Keys(decorationTags)), colorNames[:], []string{"reset", "newline", "br", "gradient", "color"})
}

func (m *markup) put(r rune) { m.out = append(m.out, glyph{r, m.st}) }

// code obeys a § code, or an & code if asked, at the start of s; it returns its length, 0 if there is none.
func (m *markup) code(s string, ampersand bool) int {
	mark := "§"
	if ampersand && s[0] == '&' {
		mark = "&"
	}
	rest, ok := strings.CutPrefix(s, mark)
	if !ok || rest == "" {
		return 0
	}
	c, n := rest[0]|0x20, len(mark)+1 // letters of either case; digits are not changed
	switch i := strings.IndexByte("0123456789abcdef", c); {
	case i >= 0:
		m.st = style{color: colorNames[i]}
		return n
	case c == 'r':
		m.st = style{}
		return n
	case c == 'x': // then six digits, each behind a mark
		hex := "#"
		for rest = rest[1:]; len(hex) < 7 && strings.HasPrefix(rest, mark) && len(rest) > len(mark); rest = rest[len(mark)+1:] {
			hex += rest[len(mark) : len(mark)+1]
		}
		if _, ok := parseHex(hex); ok {
			m.st = style{color: strings.ToLower(hex)}
			return n + 6*n
		}
	case rest[0] == '#' && len(rest) >= 7:
		if _, ok := parseHex(rest[:7]); ok {
			m.st = style{color: strings.ToLower(rest[:7])}
			return n + 6
		}
	}
	for i, d := range decorations {
		if d.code[0] == c {
			m.st.flags |= 1 << i
			return n
		}
	}
	return 0
}

var decorationTags = map[string]int{"bold": 0, "b": 0, "italic": 1, "i": 1, "em": 1, "underlined": 2, "u": 2,
	"strikethrough": 3, "st": 3, "obfuscated": 4, "obf": 4}

// tag obeys the tag with that inside; false: it is not one, or closes nothing, and stays text.
func (m *markup) tag(inside string) bool {
	if name, ok := strings.CutPrefix(inside, "/"); ok {
		return m.close(strings.ToLower(name))
	}
	args := strings.Split(strings.ToLower(inside), ":")
	name := args[0]
	st := m.st
	switch {
	case name == "reset" && len(args) == 1:
		for len(m.stack) > 0 {
			m.pop()
		}
		m.st = style{}
		return true
	case (name == "newline" || name == "br") && len(args) == 1:
		m.put('\n')
		return true
	case name == "gradient":
		colors, ok := colorList(args[1:])
		if !ok {
			return false
		}
		m.gradients++
		st.color, st.gradient = "", m.gradients
		m.stack = append(m.stack, open{name, m.st, m.gradients, colors, len(m.out)})
		m.st = st
		return true
	case (name == "color" || name == "colour" || name == "c") && len(args) == 2:
		color, ok := parseColor(args[1])
		if !ok {
			return false
		}
		st.color, st.gradient = color, 0
	case len(args) <= 2:
		off := strings.HasPrefix(name, "!") || len(args) == 2 && args[1] == "false"
		if i, ok := decorationTags[strings.TrimPrefix(name, "!")]; ok {
			if st.flags |= 1 << i; off {
				st.flags &^= 1 << i
			}
			break
		}
		color, ok := parseColor(name)
		if !ok || len(args) == 2 {
			return false
		}
		st.color, st.gradient = color, 0
	default:
		return false
	}
	m.stack = append(m.stack, open{name: tagName(name), before: m.st})
	m.st = st
	return true
}

// tagName returns the one name for all names by which a tag can be closed.
func tagName(name string) string {
	if i, ok := decorationTags[strings.TrimPrefix(name, "!")]; ok {
		return decorations[i].name
	}
	switch name {
	case "colour", "c":
		return "color"
	}
	return strings.Replace(name, "grey", "gray", 1)
}

// close ends the innermost tag of that name and everything within it.
func (m *markup) close(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = tagName(name)
	for i := len(m.stack) - 1; i >= 0; i-- {
		if m.stack[i].name == name {
			for len(m.stack) > i {
				m.pop()
			}
			return true
		}
	}
	return false
}

func (m *markup) pop() {
	o := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	m.st = o.before
	if o.gradient == 0 {
		return
	}
	var shaded []*style
	for i := range m.out[o.from:] {
		if st := &m.out[o.from+i].st; st.gradient == o.gradient {
			shaded = append(shaded, st)
		}
	}
	for i, st := range shaded {
		at := 0.0
		if len(shaded) > 1 {
			at = float64(i) / float64(len(shaded)-1)
		}
		st.color, st.gradient = mix(o.colors, at), 0
	}
}

// mix returns the colour at a place from 0 to 1 on the way along colors, which has at least two.
func mix(colors []string, at float64) string {
	at *= float64(len(colors) - 1)
	i := min(int(at), len(colors)-2)
	a, b := rgb(colors[i]), rgb(colors[i+1])
	var c uint32
	for shift := 0; shift < 24; shift += 8 {
		from, to := float64(a>>shift&0xff), float64(b>>shift&0xff)
		c |= uint32(math.Round(from+(to-from)*(at-float64(i)))) << shift
	}
	return fmt.Sprintf("#%06x", c)
}

func colorList(args []string) ([]string, bool) {
	if len(args) == 0 {
		return []string{"white", "black"}, true
	}
	var out []string
	for _, a := range args {
		c, ok := parseColor(a)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, len(out) > 1
}

// parseColor accepts a colour's name and #rrggbb, in lower case.
func parseColor(s string) (string, bool) {
	s = strings.Replace(s, "grey", "gray", 1)
	for _, n := range colorNames {
		if n == s {
			return s, true
		}
	}
	_, ok := parseHex(s)
	return s, ok
}

func parseHex(s string) (uint32, bool) {
	if len(s) != 7 || s[0] != '#' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:], 16, 32)
	return uint32(n), err == nil
}

func rgb(color string) uint32 {
	for i, n := range colorNames {
		if n == color {
			return colorRGB[i]
		}
	}
	n, _ := parseHex(color)
	return n
}

// component puts runs of equal style together: a string, one component, or an empty one with the runs as extra.
func component(out []glyph) any {
	var runs []any
	for len(out) > 0 {
		n := 1
		for n < len(out) && out[n].st == out[0].st {
			n++
		}
		var b strings.Builder
		for _, g := range out[:n] {
			b.WriteRune(g.r)
		}
		st := out[0].st
		out = out[n:]
		if st == (style{}) {
			runs = append(runs, b.String())
			continue
		}
		c := map[string]any{"text": b.String()}
		if st.color != "" {
			c["color"] = st.color
		}
		for i, d := range decorations {
			if st.flags&(1<<i) != 0 {
				c[d.name] = true
			}
		}
		runs = append(runs, c)
	}
	switch len(runs) {
	case 0:
		return ""
	case 1:
		return runs[0]
	}
	for i, r := range runs {
		if s, ok := r.(string); ok {
			runs[i] = map[string]any{"text": s}
		}
	}
	return map[string]any{"text": "", "extra": runs}
}
