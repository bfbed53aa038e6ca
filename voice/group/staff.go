package group

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Info is a group as staff see it, hidden members included.
type Info struct {
	talk.GroupRow
	Members []uuid.UUID // the longest-standing first
	Used    time.Time   // of a persistent one: when somebody was in it, to a day; zero: not known yet
}

// List returns all groups, in the order in which they were made.
func (s *State) List() (all []Info) {
	for _, g := range s.order {
		i := Info{GroupRow: g.GroupRow, Used: g.used}
		for _, m := range g.members {
			i.Members = append(i.Members, m.id)
		}
		all = append(all, i)
	}
	return all
}

// Names returns the names of all groups.
func (s *State) Names() (all []string) {
	for _, g := range s.order {
		all = append(all, g.Name)
	}
	return all
}

// Rule carries out an order of staff: RENAME, KICK or DELETE, of any group, also while groups are switched off.
func (s *State) Rule(r *talk.GroupRequest) talk.Code {
	g := s.groups[r.Group]
	if g == nil {
		return talk.NotFound
	}
	switch r.Verb {
	case talk.Kick:
		t := s.players[r.Player]
		if t == nil || t.group != g {
			return talk.NotInGroup
		}
		s.leave(t)
		s.forget(t)
		return talk.OK
	case talk.Rename, talk.Delete:
		return s.edit(Actor{May: talk.GroupCaps{Use: true, Admin: true}}, g, r)
	}
	return talk.NoPermission
}

// Times of persistent groups.
const (
	usedEvery  = 24 * time.Hour // the precision of when a group was used
	unusedTime = time.Hour      // a group must have been unused for too long for so long, by a clock that cannot be set
)

// owned returns how many persistent groups a player owns.
func (s *State) owned(id uuid.UUID) (n int) {
	for _, g := range s.order {
		if g.Persistent && g.Owner == id {
			n++
		}
	}
	return n
}

// heir returns the next owner of a group whose owner has left: the longest-standing of its members, of a persistent
// group the first of them who may own one more. Else a player could hand groups on to a friend and make more of them
// without end.
func (s *State) heir(g *group) uuid.UUID {
	if g.Persistent && s.limits.Owned > 0 {
		i := slices.IndexFunc(g.members, func(m *player) bool { return s.owned(m.id) < s.limits.Owned })
		if i < 0 {
			return g.Owner
		}
		return g.members[i].id
	}
	return g.members[0].id
}

// sweep ends the persistent groups that nobody has used for too long, and notes which are in use.
func (s *State) sweep(now time.Time) {
	for _, g := range slices.Clone(s.order) {
		if !g.Persistent {
			continue
		}
		// By a clock that was wrong.
		if g.used.IsZero() || len(g.members) > 0 && now.Sub(g.used) >= usedEvery || g.used.Sub(now) > usedEvery {
			g.used = now.Round(0).UTC()
			s.store(g)
		}
		over := g.used.Add(s.limits.Unused)
		switch {
		case len(g.members) > 0:
			g.unused = time.Time{}
			s.endsAt(g.used.Add(usedEvery))
		case s.limits.Unused <= 0:
		case now.Before(over):
			g.unused = time.Time{}
			s.endsAt(over)
		case g.unused.IsZero(): // by a clock that may have jumped
			g.unused = now
			s.endsAt(now.Add(unusedTime))
		case now.Sub(g.unused) < unusedTime:
			s.endsAt(g.unused.Add(unusedTime))
		default:
			s.remove(g)
		}
	}
}

// soon has the next [State.Expire] look at everything.
func (s *State) soon() { s.due = time.Unix(0, 0) }
