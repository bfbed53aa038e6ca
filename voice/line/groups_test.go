package line

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

func id(n int) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n))
	return u
}

// crowd returns n groups and per members in each, all names as long as they get.
func crowd(n, per int) (groups []talk.GroupRow, members []talk.GroupMember) {
	for i := range n {
		groups = append(groups, talk.GroupRow{ID: id(1<<20 + i), Type: talk.IsolatedGroup, Locked: true, Owner: id(i * per), Name: strings.Repeat("語", talk.MaxGroupName)})
		for j := range per {
			members = append(members, talk.GroupMember{Group: groups[i].ID, Player: id(i*per + j)})
		}
	}
	return groups, members
}

// head returns the longest.
func head() (h Groups) {
	h.May = talk.GroupCaps{Use: true, Create: true, Admin: true, Invite: true}
	for i := range talk.MaxInvitations {
		h.Invites = append(h.Invites, Invitation{id(1<<20 + i), id(i), maxNumber})
	}
	return h
}

// A snapshot stays within its bound, however many groups and members there are, and what it holds is still whole.
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
	g := &Groups{Groups: []talk.GroupRow{{ID: id(1 << 20), Type: talk.OpenGroup, Name: strings.Repeat("a", 15)}}}
	for i := range 3448 {
		g.Members = append(g.Members, talk.GroupMember{Group: g.Groups[0].ID, Player: id(i)})
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

// The encoders keep within what a client takes, whatever they are given.
func TestEncodersKeepBounds(t *testing.T) {
	var list []talk.Speaker
	for i := range talk.MaxSpeakers + 1 {
		list = append(list, talk.Speaker{ID: id(i), Name: strings.Repeat("語", talk.MaxSpeakerName)})
	}
	text := AppendSpeakers(nil, list)
	m, err := ParseS2C(text)
	if err != nil || !reflect.DeepEqual(m.(*Speakers).List, list[:talk.MaxSpeakers]) {
		t.Errorf("speakers: %v", err)
	}
	if len(text) > maxSpeakersChars {
		t.Errorf("speakers: %d characters", len(text))
	}
	for seconds, want := range map[int]int{-5: 0, 7: 7, 1 << 40: maxNumber} {
		m, err := ParseS2C(AppendMute(nil, &Mute{Kind: talk.MutedPlayer, Timed: true, Seconds: seconds}))
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
