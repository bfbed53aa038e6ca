package client

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/talk"
)

// roll is the roster of roster 2. The server sends its changes.
type roll struct {
	has    bool
	at     line.Revision
	people []line.State // in the order in which they came
	index  map[uuid.UUID]int
}

// errOtherRoster is the error of changes to a roster that the client has not. What it has stays as it is until a whole
// one comes.
var errOtherRoster = errors.New("changes to another roster")

// apply takes changes, and returns the roster that they lead to.
func (r *roll) apply(c *line.Changes) (*line.Roster, error) {
	switch {
	case c.Whole:
		r.people, r.index = nil, make(map[uuid.UUID]int, len(c.Put))
	case !r.has || r.at != c.From:
		return nil, errOtherRoster
	}
	r.has, r.at = true, c.To
	gone := make(map[uuid.UUID]bool, len(c.Gone))
	for _, id := range c.Gone {
		gone[id] = true
	}
	if len(gone) > 0 {
		r.people = slices.DeleteFunc(r.people, func(p line.State) bool { return gone[p.ID] })
		clear(r.index)
		for i, p := range r.people {
			r.index[p.ID] = i
		}
	}
	for _, p := range c.Put {
		if i, ok := r.index[p.ID]; ok {
			r.people[i] = p
			continue
		}
		r.index[p.ID] = len(r.people)
		r.people = append(r.people, p)
	}
	all := &line.Roster{Status: true}
	for _, p := range r.people {
		all.People = append(all.People, p.Person)
		if p.Deafened {
			all.Deafened = append(all.Deafened, p.ID)
		}
		if p.Tier != talk.Normal {
			all.Tiers[p.Tier] = append(all.Tiers[p.Tier], p.ID)
		}
	}
	return all, nil
}
