package group

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Page is what one reader's snapshot shows, apart from the seconds that count down. Pages are compared with ==: while a
// reader's stays equal, there is nothing to send.
type Page struct {
	may     talk.GroupCaps
	invites [talk.MaxInvitations]shown
	rows    string
}

// shown is an invitation as its reader sees it; the zero value is none.
type shown struct {
	group, from uuid.UUID
	until       time.Time
}

// Page makes what a player may see: may says what it may do, seen has the slots of those of whom it may know, one bit
// each, and nil means everybody. Readers who see the same members share one text.
//
// Who is connected but not seen is in no row, and a group that consists of such people alone is not there, unless it is
// persistent and so tells nothing. An owner who is not connected is not shown either, for then nobody can tell the two
// cases apart.
func (s *State) Page(reader uuid.UUID, may talk.GroupCaps, seen []uint64, now time.Time) (g Page) {
	if !s.limits.Enabled {
		return g
	}
	g.may = may
	if p := s.players[reader]; p != nil {
		n := 0
		for _, i := range p.invites {
			if now.Before(i.until) {
				g.invites[n] = shown{i.group.ID, uuid.Nil, i.until}
				if from := s.players[i.from]; from != nil && from.slot >= 0 && sees(seen, from.slot) {
					g.invites[n].from = i.from
				}
				n++
			}
		}
	}
	g.rows = s.rows(seen)
	return g
}

// Append writes the snapshot as of now.
func (g *Page) Append(dst []byte, now time.Time) []byte {
	var invites []line.Invitation
	for _, i := range g.invites {
		if left := i.until.Sub(now); !i.until.IsZero() && left > 0 {
			invites = append(invites, line.Invitation{Group: i.group, From: i.from, Seconds: int((left + time.Second - 1) / time.Second)})
		}
	}
	return append(line.AppendGroupsHead(dst, g.may, invites), g.rows...)
}

// Cut is how many rows did not fit into the last text that was made. It is 0 unless the limits allow more groups and
// members than a snapshot has room for.
func (s *State) Cut() int { return s.cut }

// rows is the part of the snapshot that all have in common who see the same of the people in it.
func (s *State) rows(seen []uint64) string {
	key := []byte("all")
	if seen != nil {
		key = key[:0]
		for i, in := range s.inRows() {
			if i >= len(seen) {
				break // no bytes are no slots
			}
			key = binary.LittleEndian.AppendUint64(key, in&seen[i])
		}
	}
	if text, ok := s.texts[string(key)]; ok {
		return text
	}
	var groups []talk.GroupRow
	var members []talk.GroupMember
	for _, g := range s.order {
		before := len(members)
		for _, m := range g.members {
			if m.slot >= 0 && sees(seen, m.slot) {
				members = append(members, talk.GroupMember{Group: g.ID, Player: m.id})
			}
		}
		if len(members) == before && !g.Persistent {
			continue
		}
		row := g.GroupRow
		if o := s.players[row.Owner]; o == nil || o.slot < 0 || !sees(seen, o.slot) {
			row.Owner = uuid.Nil
		}
		groups = append(groups, row)
	}
	rows, cut := line.GroupRows(groups, members)
	s.cut = cut
	text := string(rows)
	s.texts[string(key)] = text
	return text
}

// inRows is whom the rows would show if they showed all.
func (s *State) inRows() set {
	if s.concerned == nil {
		s.concerned = make(set, s.words)
		for _, g := range s.order {
			for i, in := range g.set {
				s.concerned[i] |= in
			}
			if o := s.players[g.Owner]; o != nil && o.slot >= 0 {
				s.concerned.add(o.slot)
			}
		}
	}
	return s.concerned
}
