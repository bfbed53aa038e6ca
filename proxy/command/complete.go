package command

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// maxMatches bounds the completions in one answer; a longer list helps nobody.
const maxMatches = 1000

// Complete completes text whose first word, with or without a slash, is a whole command of ours. It returns what to
// replace, counted in UTF-16 units from the beginning of text, and by what. ours is false when the command is not ours
// or src may not use it; with ours there may still be no matches. What is replaced is always the last word, to the end.
func (t *Table[S]) Complete(src S, text string) (s packet.Suggestions, ours bool) {
	name, rest, more := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if !more {
		return s, false
	}
	c := t.lookup(name)
	if c == nil || !c.allows(src) {
		return s, false
	}
	at := strings.LastIndexByte(text, ' ') + 1
	s.Start, s.Length = int32(utf16Len(text[:at])), int32(utf16Len(text[at:]))
	before := strings.Fields(rest[:len(rest)-(len(text)-at)])
	i := len(before)
	if last := len(c.Args) - 1; i > last {
		if last < 0 || c.Args[last].Kind != Greedy {
			return s, true
		}
		i = last
	}
	a := c.Args[i]
	var all []packet.Suggestion
	switch a.Kind {
	case Player:
		all = t.names.Players(src)
	case Server:
		all = t.names.Servers(src)
	}
	if a.Suggest != nil {
		all = append(slices.Clip(all), a.Suggest(src, before)...)
	}
	s.Matches = matching(all, text[at:])
	return s, true
}

// CompleteName lists names and aliases that begin with prefix, in order, of commands that src may use.
func (t *Table[S]) CompleteName(src S, prefix string) []string {
	prefix = strings.ToLower(prefix)
	var out []string
	for _, c := range t.Allowed(src) {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// merge adds our commands to a backend's answer to a request. Below 393 the backend completes command names: sorted,
// each once.
func (t *Table[S]) merge(src S, request string, s *packet.Suggestions) {
	for _, name := range t.CompleteName(src, request[1:]) {
		s.Matches = append(s.Matches, packet.Suggestion{Text: "/" + name})
	}
	slices.SortStableFunc(s.Matches, byText)
	s.Matches = slices.CompactFunc(s.Matches, sameText)
}

// merges tells whether our commands belong into a backend's answer to q.
func (t *Table[S]) merges(src S, protocol int32, q packet.SuggestionsRequest) bool {
	return !proto.Has(protocol, proto.CommandTree) && !q.InBlock && strings.HasPrefix(q.Text, "/") && !strings.Contains(q.Text, " ") &&
		len(t.CompleteName(src, q.Text[1:])) > 0
}

// matching keeps those that begin with prefix, whatever the case, sorted and each once.
func matching(all []packet.Suggestion, prefix string) []packet.Suggestion {
	var out []packet.Suggestion
	for _, m := range all {
		if len(m.Text) >= len(prefix) && strings.EqualFold(m.Text[:len(prefix)], prefix) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, byText)
	out = slices.CompactFunc(out, sameText)
	return out[:min(len(out), maxMatches)]
}

func byText(a, b packet.Suggestion) int {
	return cmp.Or(cmp.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text)), cmp.Compare(a.Text, b.Text))
}

func sameText(a, b packet.Suggestion) bool { return a.Text == b.Text }

// utf16Len counts as the game's client does.
func utf16Len(s string) (n int) {
	for _, c := range s {
		n++
		if c > 0xffff && c <= utf8.MaxRune {
			n++
		}
	}
	return n
}
