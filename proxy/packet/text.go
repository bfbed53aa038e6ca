package packet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Bounds of a text component on the wire: characters of its JSON, bytes of its NBT, and the largest NBT that is
// converted (a larger one still passes as it is).
const (
	maxTextJSON    = 262144
	maxTextNBT     = 2 << 20
	maxTextDecoded = 262144
)

// Text is a text component. It goes out as JSON or as network NBT, as the receiver's protocol and state want it. One
// that came from the wire goes out in that form exactly as it came in, however odd it is. The zero Text is empty.
//
// Layout: https://minecraft.wiki/w/Text_component_format, and https://minecraft.wiki/w/NBT_format.
type Text struct {
	tree      any    // string, or what encoding/json makes of a component; nil when the text came from the wire
	json, nbt []byte // as it came from the wire
}

// Plain returns the text s without any formatting; nothing in s is interpreted.
func Plain(s string) Text { return Text{tree: s} }

// Translatable returns a text that the client renders in its own language: a key of the game's language files and the
// values for the places in it.
func Translatable(key string, with ...string) Text {
	c := map[string]any{"translate": key}
	if len(with) > 0 {
		args := make([]any, len(with))
		for i, w := range with {
			args[i] = w
		}
		c["with"] = args
	}
	return Text{tree: c}
}

// JSONText returns a component that another program wrote. It is not checked: a client may well understand JSON that we
// do not.
//
// Layout: https://minecraft.wiki/w/Text_component_format.
func JSONText(raw []byte) Text { return Text{json: slices.Clone(raw)} }

// ReadText reads a component in the form that protocol has in state s.
//
// Layout: https://minecraft.wiki/w/Text_component_format, and https://minecraft.wiki/w/NBT_format.
func ReadText(r *field.Reader, protocol int32, s proto.State) Text {
	if !textIsNBT(protocol, s) {
		return Text{json: bytes.Clone(r.StringBytes(maxTextJSON))}
	}
	b := r.SkipNBT(false)
	if len(b) > maxTextNBT {
		r.Fail(fmt.Errorf("text component of %d bytes, at most %d allowed", len(b), maxTextNBT))
		return Text{}
	}
	return Text{nbt: bytes.Clone(b)}
}

// Append writes the component in the form that protocol has in state s.
func (t Text) Append(dst []byte, protocol int32, s proto.State) []byte {
	if textIsNBT(protocol, s) {
		return append(dst, t.NBT()...)
	}
	return field.AppendBytes(dst, t.JSON(protocol))
}

// textIsNBT tells whether components are NBT: in configuration and play from 765 on. Everywhere else they are JSON in a
// string.
func textIsNBT(protocol int32, s proto.State) bool {
	return proto.Has(protocol, proto.ComponentNBT) && (s == proto.Config || s == proto.Play)
}

// JSON returns the component for a client of that protocol. Below 735 (1.16) colours are one of the sixteen with a
// name, and below 335 (1.12) reasons of a disconnect are in English.
func (t Text) JSON(protocol int32) []byte {
	if t.json != nil {
		return t.json
	}
	v := t.value()
	if !proto.Has(protocol, proto.TranslatedReasons) {
		v = inWords(v)
	}
	if s, ok := v.(string); ok {
		v = map[string]any{"text": s} // every reader of components knows this form
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(jsonValue(v, !proto.Has(protocol, proto.HexColors))); err != nil {
		return []byte(`{"text":""}`) // numbers JSON cannot have, NaN and infinities: no text has them
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// NBT returns the component as NBT without a root name, with the type byte of its root.
func (t Text) NBT() []byte {
	if t.nbt != nil {
		return t.nbt
	}
	v := t.value()
	if tooDeep(v, 0) {
		v = t.String()
	}
	if c, ok := v.(map[string]any); ok && len(c) == 1 {
		if s, ok := c["text"].(string); ok {
			v = s // the short form of the same
		}
	}
	return appendNBT(nil, v)
}

// String returns the bare text: no formatting, no codes, no control characters but line breaks. It is fit for logs. A
// part that only the client can translate is shown as its key and the values in brackets.
func (t Text) String() string {
	var b strings.Builder
	walk(t.value(), style{}, func(_ style, s string) { b.WriteString(stripCodes(s)) })
	return b.String()
}

// Run is a piece of a text that looks the same from end to end.
type Run struct {
	Text  string // with its § codes, and without control characters but line breaks
	Color string // one of the sixteen names, the nearest where it is another colour; empty: the reader's own

	Bold, Italic, Underlined, Strikethrough bool
}

// Runs returns the text in pieces, for readers that are no clients of the game. What String says of translations holds
// here as well.
func (t Text) Runs() (all []Run) {
	walk(t.value(), style{}, func(st style, s string) {
		s = strings.Map(func(c rune) rune {
			if c == '\n' || c >= ' ' && (c < 0x7f || c > 0x9f) {
				return c
			}
			return -1
		}, s)
		if s == "" {
			return
		}
		r := Run{Text: s, Bold: st.has("bold"), Italic: st.has("italic"), Underlined: st.has("underlined"), Strikethrough: st.has("strikethrough")}
		if name := nearest(st.color); slices.Contains(colorNames[:], name) {
			r.Color = name
		}
		all = append(all, r)
	})
	return all
}

// has tells whether a decoration is set.
func (st style) has(name string) bool {
	i := slices.IndexFunc(decorations[:], func(d struct{ name, code string }) bool { return d.name == name })
	return st.flags&(1<<i) != 0
}

// Legacy returns the text with § codes for clients without components, colours reduced to the sixteen.
func (t Text) Legacy() string {
	var b strings.Builder
	var last style
	walk(t.value(), style{}, func(st style, s string) {
		if s == "" {
			return
		}
		if st != last {
			if c := slices.Index(colorNames[:], nearest(st.color)); c >= 0 {
				fmt.Fprintf(&b, "§%x", c) // which also ends bold and the like
			} else if last != (style{}) {
				b.WriteString("§r")
			}
			for i, d := range decorations {
				if st.flags&(1<<i) != 0 {
					b.WriteString("§" + d.code)
				}
			}
			last = st
		}
		b.WriteString(s)
	})
	return b.String()
}

// value returns the component as a tree of string, bool, numbers, []any and map[string]any.
func (t Text) value() any {
	switch {
	case t.json != nil:
		return parseJSON(t.json)
	case t.nbt != nil:
		return parseNBT(t.nbt)
	case t.tree == nil:
		return ""
	}
	return t.tree
}

// parseJSON returns JSON that cannot be parsed as plain text: servers were long allowed to leave out quotes.
func parseJSON(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if json.Valid(raw) && d.Decode(&v) == nil {
		return v
	}
	return string(raw)
}

// style holds the look of a piece of text. The zero style inherits everything.
type style struct {
	color    string // "" none, a name of colorNames, or #rrggbb
	flags    uint8  // bit i is decorations[i]
	gradient int    // while parsing: the gradient that will colour it, 0 none
}

var decorations = [...]struct{ name, code string }{
	{"bold", "l"}, {"italic", "o"}, {"underlined", "n"}, {"strikethrough", "m"}, {"obfuscated", "k"},
}

// colorNames are in the order of their § codes, 0 to f; colorRGB are their values.
var colorNames = [16]string{"black", "dark_blue", "dark_green", "dark_aqua", "dark_red", "dark_purple", "gold", "gray",
	"dark_gray", "blue", "green", "aqua", "red", "light_purple", "yellow", "white"}
var colorRGB = [16]uint32{0x000000, 0x0000aa, 0x00aa00, 0x00aaaa, 0xaa0000, 0xaa00aa, 0xffaa00, 0xaaaaaa,
	0x555555, 0x5555ff, 0x55ff55, 0x55ffff, 0xff5555, 0xff55ff, 0xffff55, 0xffffff}

// nearest returns the name closest to #rrggbb, and color itself when it is anything else.
func nearest(color string) string {
	rgb, ok := parseHex(color)
	if !ok {
		return color
	}
	best, name := -1, ""
	for i, c := range colorRGB {
		d := 0
		for shift := 0; shift < 24; shift += 8 {
			e := int(rgb>>shift&0xff) - int(c>>shift&0xff)
			d += e * e
		}
		if best < 0 || d < best {
			best, name = d, colorNames[i]
		}
	}
	return name
}

// walk calls f for each piece of text in order, with the style it inherits.
func walk(v any, st style, f func(style, string)) {
	switch v := v.(type) {
	case nil:
	case string:
		f(st, v)
	case []any: // the first is the parent of the others
		if len(v) > 0 {
			if m, ok := v[0].(map[string]any); ok {
				st = inherit(st, m)
			}
		}
		for _, e := range v {
			walk(e, st, f)
		}
	case map[string]any:
		st = inherit(st, v)
		if text, ok := v["text"]; ok {
			walk(text, st, f)
		} else if bare, ok := v[""]; ok {
			walk(bare, st, f)
		} else if key, ok := v["translate"].(string); ok {
			if fallback, ok := v["fallback"].(string); ok {
				key = fallback
			}
			f(st, key)
			if with, ok := v["with"].([]any); ok && len(with) > 0 {
				for i, w := range with {
					f(st, map[bool]string{true: " (", false: ", "}[i == 0])
					walk(w, st, f)
				}
				f(st, ")")
			}
		}
		if extra, ok := v["extra"].([]any); ok {
			for _, e := range extra {
				walk(e, st, f)
			}
		}
	default:
		f(st, fmt.Sprint(v))
	}
}

func inherit(st style, c map[string]any) style {
	if color, ok := c["color"].(string); ok {
		st.color = strings.ToLower(color)
		if st.color == "reset" {
			st.color = ""
		}
	}
	for i, d := range decorations {
		switch c[d.name] {
		case true, "true", int8(1):
			st.flags |= 1 << i
		case false, "false", int8(0):
			st.flags &^= 1 << i
		}
	}
	return st
}

// jsonValue copies a tree into what JSON can hold: colours reduced when asked, NBT's 0 and 1 turned into booleans where
// a component has booleans, and single values out of the compounds that mixed NBT lists wrap them in.
func jsonValue(v any, reduce bool) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = jsonValue(e, reduce)
		}
		return out
	case map[string]any:
		if bare, ok := v[""]; ok && len(v) == 1 {
			return jsonValue(bare, reduce)
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			if b, ok := e.(int8); ok && (k == "interpret" || isDecoration(k)) {
				e = b != 0
			}
			if s, ok := e.(string); ok && k == "color" && reduce {
				e = nearest(s)
			}
			out[k] = jsonValue(e, reduce)
		}
		return out
	}
	return v
}

func isDecoration(name string) bool {
	for _, d := range decorations {
		if d.name == name {
			return true
		}
	}
	return false
}

// stripCodes removes § codes and control characters other than line breaks.
func stripCodes(s string) string {
	var b strings.Builder
	skip := false
	for _, c := range s {
		switch {
		case skip:
			skip = false
		case c == '§':
			skip = true
		case c == '\n' || c >= ' ' && (c < 0x7f || c > 0x9f):
			b.WriteRune(c)
		}
	}
	return b.String()
}
