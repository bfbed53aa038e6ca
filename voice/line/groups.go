package line

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Groups is the snapshot of all groups, as one connection gets it.
type Groups struct {
	May     talk.GroupCaps
	Invites []Invitation // the reader's own
	Groups  []talk.GroupRow
	Members []talk.GroupMember
}

// Invitation waits for the reader for so many more Seconds, since the reader's clock is its own.
type Invitation struct {
	Group, From uuid.UUID
	Seconds     int
}

const groupsHeader = "SSVC_GROUPS_V1"

// MaxGroupRows bounds the text of [GroupRows], so that with the longest head in front of it a snapshot stays within
// [MaxS2C].
const MaxGroupRows = MaxS2C - 1024

// AppendGroupsHead writes the part of a snapshot that differs between readers: the header, the row of capabilities and
// the invitations.
func AppendGroupsHead(dst []byte, may talk.GroupCaps, invites []Invitation) []byte {
	dst = append(append(dst, groupsHeader...), "\nC"...)
	for _, on := range [...]bool{may.Use, may.Create, may.Admin, may.Invite} {
		dst = appendFlag(append(dst, ' '), on)
	}
	dst = append(dst, '\n')
	for _, i := range invites {
		dst = appendUUID(append(dst, "I "...), i.Group)
		dst = appendUUID(append(dst, ' '), i.From)
		dst = append(strconv.AppendInt(append(dst, ' '), int64(max(0, i.Seconds)), 10), '\n')
	}
	return dst
}

// GroupRows writes the part that readers share, the groups and then their members. left is how many rows did not fit
// into [MaxGroupRows]: members are left out first, and a group takes its members with it.
func GroupRows(groups []talk.GroupRow, members []talk.GroupMember) (text []byte, left int) {
	var cut map[uuid.UUID]bool
	text = make([]byte, 0, min(128*len(groups)+memberRow*len(members), MaxGroupRows))
	for _, g := range groups {
		before := len(text)
		if text = appendGroupRow(text, g); len(text) > MaxGroupRows {
			if cut == nil {
				cut = map[uuid.UUID]bool{}
			}
			cut[g.ID] = true
			text = text[:before]
			left++
		}
	}
	for _, m := range members {
		if len(text)+memberRow > MaxGroupRows || cut[m.Group] {
			left++
			continue
		}
		text = appendMember(text, m)
	}
	return text, left
}

// memberRow is the length of a member's row.
const memberRow = len("M ") + 36 + len(" ") + 36 + len("\n")

// AppendGroups writes a whole snapshot, however long it is.
func AppendGroups(dst []byte, g *Groups) []byte {
	dst = AppendGroupsHead(dst, g.May, g.Invites)
	for _, r := range g.Groups {
		dst = appendGroupRow(dst, r)
	}
	for _, m := range g.Members {
		dst = appendMember(dst, m)
	}
	return dst
}

func appendGroupRow(dst []byte, g talk.GroupRow) []byte {
	dst = appendUUID(append(dst, "G "...), g.ID)
	dst = append(append(append(dst, ' '), g.Type.String()...), ' ')
	dst = append(appendFlag(dst, g.Locked), ' ')
	dst = append(appendFlag(dst, g.Persistent), ' ')
	if g.Owner == uuid.Nil {
		dst = append(dst, absent...)
	} else {
		dst = appendUUID(dst, g.Owner)
	}
	return append(appendText(append(dst, ' '), g.Name), '\n')
}

func appendMember(dst []byte, m talk.GroupMember) []byte {
	dst = appendUUID(append(dst, "M "...), m.Group)
	return append(appendUUID(append(dst, ' '), m.Player), '\n')
}

// parseGroups reads the text behind the header. Rows may come in any order, but one fault makes the whole snapshot
// worthless: half of it would show people in the wrong place.
func parseGroups(s string) (any, error) {
	g := &Groups{}
	told := false // what the reader may do
	groups := map[uuid.UUID]bool{}
	invited := map[uuid.UUID]bool{}
	members := map[uuid.UUID]bool{}
	for row := range strings.Lines(s) {
		row, ended := strings.CutSuffix(row, "\n")
		if !ended {
			return nil, ErrMalformed
		}
		words := strings.Split(row, " ")
		switch kind := words[0]; {
		case kind == "C" && len(words) == 5 && !told:
			told = true
			for i, on := range [...]*bool{&g.May.Use, &g.May.Create, &g.May.Admin, &g.May.Invite} {
				var ok bool
				if *on, ok = flag(words[i+1]); !ok {
					return nil, ErrMalformed
				}
			}
		case kind == "I" && len(words) == 4:
			group, err := parseUUID(words[1])
			from, ferr := parseUUID(words[2])
			seconds, ok := number(words[3])
			if err != nil || ferr != nil || !ok || invited[group] || len(g.Invites) == talk.MaxInvitations {
				return nil, ErrMalformed
			}
			invited[group] = true
			g.Invites = append(g.Invites, Invitation{group, from, seconds})
		case kind == "G" && len(words) == 7:
			r, ok := parseGroupRow(words)
			if !ok || groups[r.ID] {
				return nil, ErrMalformed
			}
			groups[r.ID] = true
			g.Groups = append(g.Groups, r)
		case kind == "M" && len(words) == 3:
			group, err := parseUUID(words[1])
			player, perr := parseUUID(words[2])
			if err != nil || perr != nil || members[player] { // a player is in one group
				return nil, ErrMalformed
			}
			members[player] = true
			g.Members = append(g.Members, talk.GroupMember{Group: group, Player: player})
		default:
			return nil, ErrMalformed
		}
	}
	for _, m := range g.Members {
		if !groups[m.Group] {
			return nil, ErrMalformed
		}
	}
	if !told {
		return nil, ErrMalformed
	}
	return g, nil
}

func parseGroupRow(words []string) (r talk.GroupRow, ok bool) {
	var err error
	if r.ID, err = parseUUID(words[1]); err != nil {
		return r, false
	}
	if r.Type, ok = talk.ParseGroupType(words[2]); !ok {
		return r, false
	}
	if r.Locked, ok = flag(words[3]); !ok {
		return r, false
	}
	if r.Persistent, ok = flag(words[4]); !ok {
		return r, false
	}
	if words[5] != absent {
		if r.Owner, err = parseUUID(words[5]); err != nil {
			return r, false
		}
	}
	r.Name, ok = decode(words[6])
	return r, ok && talk.ValidGroupName(r.Name)
}
