package packet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Slot stands in a text for another one, put there by [Text.Put].
const Slot = "\uFFFC"

// Bounds of a quoted text: bytes as it came from the wire, and levels.
const (
	maxQuoted      = 32 << 10
	maxQuotedDepth = 32
)

// Put returns the text with part in the place of each [Slot], in the style of its surroundings where it has none of its
// own.
func (t Text) Put(part Text) Text { return Text{tree: put(t.value(), part.value())} }

func put(v, part any) any {
	switch v := v.(type) {
	case string:
		before, after, found := strings.Cut(v, Slot)
		if !found {
			return v
		}
		return map[string]any{"text": before, "extra": behind(part, after)}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = put(e, part)
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		extra, _ := v["extra"].([]any)
		if extra != nil {
			extra = put(extra, part).([]any)
			out["extra"] = extra
		}
		if text, ok := v["text"].(string); ok {
			if before, after, found := strings.Cut(text, Slot); found {
				out["text"], out["extra"] = before, append(behind(part, after), extra...)
			}
		}
		return out
	}
	return v
}

// behind returns part and the text that follows it.
func behind(part any, after string) []any {
	if after == "" {
		return []any{part}
	}
	return []any{part, put(after, part)}
}

// Quote returns the text as a part of another one: its words and their look, and nothing else that a server may have
// put there, in a form that every client reads. Clients still translate what only they can.
func (t Text) Quote() Text {
	if len(t.json)+len(t.nbt) > maxQuoted {
		s := t.String()
		return Plain(strings.ToValidUTF8(s[:min(len(s), maxQuoted)], ""))
	}
	return Text{tree: quote(t.value(), 0)}
}

func quote(v any, depth int) any {
	if depth > maxQuotedDepth {
		return Text{tree: v}.String()
	}
	all := func(list []any) []any {
		out := make([]any, len(list))
		for i, e := range list {
			out[i] = quote(e, depth+1)
		}
		return out
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any: // the first is the parent of the others
		if len(v) == 0 {
			return ""
		}
		out, ok := quote(v[0], depth+1).(map[string]any)
		if !ok {
			out = map[string]any{"text": quote(v[0], depth+1)}
		}
		if rest := all(v[1:]); len(rest) > 0 {
			extra, _ := out["extra"].([]any)
			out["extra"] = append(extra, rest...)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		words, ok := v["text"]
		if !ok {
			words, ok = v[""]
		}
		key, translated := v["translate"].(string)
		switch {
		case ok:
			out["text"] = Text{tree: words}.String()
		case translated:
			out["translate"] = key
			if fallback, ok := v["fallback"].(string); ok {
				out["fallback"] = fallback
			}
			if with, _ := v["with"].([]any); len(with) > 0 {
				out["with"] = all(with)
			}
		default:
			out["text"] = ""
		}
		st := inherit(style{}, v)
		if _, hex := parseHex(st.color); hex || slices.Contains(colorNames[:], st.color) {
			out["color"] = st.color
		}
		for i, d := range decorations {
			if _, ok := v[d.name]; ok {
				out[d.name] = st.flags&(1<<i) != 0
			}
		}
		if extra, _ := v["extra"].([]any); len(extra) > 0 {
			out["extra"] = all(extra)
		}
		return out
	}
	return fmt.Sprint(v)
}
