package line

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func id(n int) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n))
	return u
}

// crowd is n groups and per members in each, all names as long as they get.
func crowd(n, per int) (groups []GroupRow, members []GroupMember) {
	for i := range n {
		groups = append(groups, GroupRow{ID: id(1<<20 + i), Type: IsolatedGroup, Locked: true, Owner: id(i * per), Name: strings.Repeat("語", MaxGroupName)})
		for j := range per {
			members = append(members, GroupMember{groups[i].ID, id(i*per + j)})
		}
	}
	return groups, members
}

// head is the longest.
func head() (h Groups) {
	h.May = GroupCaps{true, true, true, true}
	for i := range MaxInvitations {
		h.Invites = append(h.Invites, Invitation{id(1<<20 + i), id(i), maxNumber})
	}
	return h
}

// A snapshot stays within its bound, however many groups and members there are,
// and what it holds is still whole.
func TestGroupRowsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		groups, per int
		left        bool
	}{
		{"empty", 0, 0, false},
		{"one server", 50, 20, false},
		{"many members", 10, 400, true},
		{"many groups", 3000, 1, true},
	} {
		groups, members := crowd(c.groups, c.per)
		rows, left := GroupRows(groups, members)
		h := head()
		text := append(AppendGroupsHead(nil, h.May, h.Invites), rows...)
		if len(text) > MaxS2C {
			t.Errorf("%s: %d characters", c.name, len(text))
		}
		m, err := ParseS2C(text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := m.(*Groups)
		if !reflect.DeepEqual(got.Invites, h.Invites) || got.May != h.May {
			t.Errorf("%s: head %+v", c.name, got)
		}
		if n := len(groups) + len(members) - len(got.Groups) - len(got.Members); n != left || (left > 0) != c.left {
			t.Errorf("%s: %d rows left out, %d said", c.name, n, left)
		}
		if left > 0 && len(rows) < MaxGroupRows-250 {
			t.Errorf("%s: rows left out of %d characters", c.name, len(rows))
		}
		if len(got.Groups) < min(c.groups, 1000) {
			t.Errorf("%s: only %d groups", c.name, len(got.Groups))
		}
	}
}

// The bound of the reader, to the character.
func TestLargestSnapshot(t *testing.T) {
	g := &Groups{Groups: []GroupRow{{ID: id(1 << 20), Type: OpenGroup, Name: strings.Repeat("a", 15)}}}
	for i := range 3448 {
		g.Members = append(g.Members, GroupMember{g.Groups[0].ID, id(i)})
	}
	text := AppendGroups(nil, g)
	if len(text) != MaxS2C {
		t.Fatalf("%d characters", len(text))
	}
	if m, err := ParseS2C(text); err != nil || !reflect.DeepEqual(m, g) {
		t.Errorf("the largest is not read back: %v", err)
	}
	g.Groups[0].Name += "a"
	text = AppendGroups(nil, g)
	if m, err := ParseS2C(text); err == nil {
		t.Errorf("%d characters are read as %T", len(text), m)
	}
}

func TestWhatMayBeCalledHow(t *testing.T) {
	for _, c := range []struct {
		text                    string
		name, password, speaker bool
	}{
		{"a", true, true, true},
		{"", false, false, false},
		{" ", false, true, false},
		{"\u3000\t", false, false, false},
		{"a b", true, true, true},
		{"§a", false, false, false},
		{"a\u0000", false, false, false},
		{"a\u202e", false, false, false},
		{"\ufeff", false, false, false},
		{"a\u00ad", false, false, false},
		{Garbled, false, false, false},
		{"\xed\xa0\x80", false, false, false},
		{strings.Repeat("a", 24), true, true, true},
		{strings.Repeat("a", 25), false, true, true},
		{strings.Repeat("a", 64), false, true, true},
		{strings.Repeat("a", 65), false, false, false},
		{strings.Repeat("語", 24), true, true, true},
		{strings.Repeat("😀", 12), true, true, true},
		{strings.Repeat("😀", 12) + "a", false, true, true},
		{strings.Repeat("😀", 32), false, true, true},
		{strings.Repeat("😀", 32) + "a", false, false, false},
	} {
		if got := ValidGroupName(c.text); got != c.name {
			t.Errorf("group name %q: %v", c.text, got)
		}
		if got := ValidPassword(c.text); got != c.password {
			t.Errorf("password %q: %v", c.text, got)
		}
		if got := ValidSpeakerName(c.text); got != c.speaker {
			t.Errorf("speaker name %q: %v", c.text, got)
		}
	}
}

func TestVerbsOfTheEditExtension(t *testing.T) {
	for v := Create; v <= Delete; v++ {
		_, want := map[Verb]bool{Rename: true, Password: true, Type: true, Kick: true, Delete: true}[v]
		if v.Edits() != want {
			t.Errorf("%v: %v", v, v.Edits())
		}
	}
}

// The encoders keep within what a client takes, whatever they are given.
func TestEncodersKeepBounds(t *testing.T) {
	var list []Speaker
	for i := range MaxSpeakers + 1 {
		list = append(list, Speaker{id(i), strings.Repeat("語", MaxSpeakerName)})
	}
	text := AppendSpeakers(nil, list)
	m, err := ParseS2C(text)
	if err != nil || !reflect.DeepEqual(m.(*Speakers).List, list[:MaxSpeakers]) {
		t.Errorf("speakers: %v", err)
	}
	if len(text) > maxSpeakersChars {
		t.Errorf("speakers: %d characters", len(text))
	}
	for seconds, want := range map[int]int{-5: 0, 7: 7, 1 << 40: maxNumber} {
		m, err := ParseS2C(AppendMute(nil, &Mute{Kind: MutedPlayer, Timed: true, Seconds: seconds}))
		if err != nil || m.(*Mute).Seconds != want {
			t.Errorf("mute of %d s: %+v, %v", seconds, m, err)
		}
	}
}

func BenchmarkGroupRows(b *testing.B) {
	groups, members := crowd(50, 20)
	for b.Loop() {
		GroupRows(groups, members)
	}
}
