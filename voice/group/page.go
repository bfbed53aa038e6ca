package group

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Page is one or many readers' view of the groups. It must not be changed.
type Page struct {
	May     talk.GroupCaps
	Invites []Invitation // of the reader, at most [talk.MaxInvitations]
	At      time.Time    // when they were read
	Rows    *Rows
	talk.Texts
}

// Rows is the part of a page that readers share who see the same members. It must not be changed.
type Rows struct {
	Groups  []talk.GroupRow
	Members []talk.GroupMember
	talk.Texts
	digest uint64
}

// Invitation waits for the reader of a page.
type Invitation struct {
	Group uuid.UUID
	From  uuid.UUID // zero: the reader may not know who
	Until time.Time
}

// Same tells whether two pages show the same, so that there is nothing to send.
func (p *Page) Same(o *Page) bool {
	return p == o || p.May == o.May && p.Rows.digest == o.Rows.digest && slices.Equal(p.Invites, o.Invites)
}

// pageKey identifies a page without invitations.
type pageKey struct {
	may  talk.GroupCaps
	rows *Rows
}

// Page returns a player's view: may says what it may do, seen has the slots of the players it may know about, one bit
// each, and nil means everybody. Readers who see the same members share one page, unless they are invited.
//
// A connected player who is not seen is in no row, and a group of such players alone is not there, unless it is
// persistent and so tells nothing. An owner who is not connected is not shown either, for then nobody can tell the two
// cases apart.
func (s *State) Page(reader uuid.UUID, may talk.GroupCaps, seen []uint64, now time.Time) *Page {
	if !s.limits.Enabled {
		return s.page(talk.GroupCaps{}, &noRows, nil, now)
	}
	var invites []Invitation
	if p := s.players[reader]; p != nil {
		for _, i := range p.invites {
			if now.Before(i.until) {
				shown := Invitation{Group: i.group.ID, Until: i.until}
				if from := s.players[i.from]; from != nil && from.slot >= 0 && sees(seen, from.slot) {
					shown.From = i.from
				}
				invites = append(invites, shown)
			}
		}
	}
	return s.page(may, s.rows(seen), invites, now)
}

var noRows Rows

func (s *State) page(may talk.GroupCaps, rows *Rows, invites []Invitation, now time.Time) *Page {
	if len(invites) > 0 {
		return &Page{May: may, Invites: invites, At: now, Rows: rows}
	}
	key := pageKey{may, rows}
	p := s.pages[key]
	if p == nil {
		p = &Page{May: may, Rows: rows}
		s.pages[key] = p
	}
	return p
}

// rows returns the rows that all readers share who see the same members.
func (s *State) rows(seen []uint64) *Rows {
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
	if r := s.shared[string(key)]; r != nil {
		return r
	}
	r := &Rows{}
	for _, g := range s.order {
		before := len(r.Members)
		for _, m := range g.members {
			if m.slot >= 0 && sees(seen, m.slot) {
				r.Members = append(r.Members, talk.GroupMember{Group: g.ID, Player: m.id})
			}
		}
		if len(r.Members) == before && !g.Persistent {
			continue
		}
		row := g.GroupRow
		if o := s.players[row.Owner]; o == nil || o.slot < 0 || !sees(seen, o.slot) {
			row.Owner = uuid.Nil
		}
		r.Groups = append(r.Groups, row)
	}
	for i := range r.Groups {
		r.digest = (r.digest + maphash.Comparable(s.seed, r.Groups[i])) * mix // the order counts
	}
	for i := range r.Members {
		r.digest = (r.digest + maphash.Comparable(s.seed, r.Members[i])) * mix
	}
	s.shared[string(key)] = r
	return r
}

// mix is odd, so that nothing of a hash is lost by it.
const mix = 0x9e3779b97f4a7c15

// inRows returns the players of the rows if they showed all.
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
