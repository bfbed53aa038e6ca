package group

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"

	"github.com/earshot-mc/earshot/voice/talk"
)

// blankPattern is a character that looks like a space and is none.
const blankPattern = '\u2800'

// cleanName returns a group's name as it is kept: trimmed, and in the form in which compatible characters are one
// (NFKC). It refuses invisible names: default-ignorable characters, line separators, and names without any character
// that stands by itself.
func cleanName(s string) (name string, ok bool) {
	if strings.ContainsFunc(s, unseen) {
		return "", false
	}
	name = strings.TrimSpace(norm.NFKC.String(strings.TrimSpace(s)))
	ok = talk.ValidGroupName(name) && !strings.ContainsFunc(name, unseen) && strings.ContainsFunc(name, func(r rune) bool {
		return r != blankPattern && unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S)
	})
	return name, ok
}

// unseen tells whether a character is default-ignorable or ends a line. Format characters, most of which are ignorable
// too, are refused elsewhere.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Zl, unicode.Zp)
}

// cleanPassword returns a password in the one form in which the same letters are the same bytes, however a keyboard
// made them.
func cleanPassword(s string) string { return norm.NFC.String(s) }

// looks returns the looks of a name: as it is written, and in capitals and in small letters, which look different. Two
// names that have one in common look alike. A look is the skeleton of Unicode's report 39, from a library with its
// table of six thousand entries.
func looks(name string) []string {
	name = strings.Join(strings.Fields(name), " ")
	all := []string{confusables.Skeleton(name), confusables.Skeleton(strings.ToUpper(name)), confusables.Skeleton(strings.ToLower(name))}
	slices.Sort(all)
	return slices.Compact(all)
}

// taken finds a group other than except whose name is this one, or looks like it.
func (s *State) taken(name string, except *group) bool {
	if g := s.names[fold(name)]; g != nil && g != except {
		return true
	}
	for _, l := range looks(name) {
		for _, g := range s.looks[l] {
			if g != except {
				return true
			}
		}
	}
	return false
}

// name and unname keep the indexes of names in step with a group's.
func (s *State) name(g *group, name string) {
	g.Name = name
	s.names[fold(name)] = g
	for _, l := range looks(name) {
		s.looks[l] = append(s.looks[l], g)
	}
}

func (s *State) unname(g *group) {
	delete(s.names, fold(g.Name))
	for _, l := range looks(g.Name) {
		if s.looks[l] = slices.DeleteFunc(s.looks[l], func(o *group) bool { return o == g }); len(s.looks[l]) == 0 {
			delete(s.looks, l)
		}
	}
}
