package hub

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/gain"
	"github.com/earshot-mc/earshot/voice/talk"
)

// MostNear bounds the people whose places a client is shown.
const MostNear = 50

// nearTime bounds the time of one flush for it; the rest waits for the next.
const nearTime = 3 * time.Millisecond

// surroundings holds everybody's place at the last flush at which somebody wanted to know.
type surroundings struct {
	places map[*world.Place][]spot // by x
	next   int                     // the member to begin with
	found  []distant
}

// spot is where a member is.
type spot struct {
	x, y, z float64
	m       *Member
}

// distant is a spot, and how far away it is.
type distant struct {
	square float64
	*spot
}

// showNear shows who is around to members who want to know, as far as that has changed. It leaves out players whom the
// member may not see, or has not been told of by a roster.
func (h *Hub) showNear() {
	if !slices.ContainsFunc(h.members, func(m *Member) bool { return m.wants.Page }) {
		h.near = surroundings{}
		return
	}
	n := &h.near
	if n.places == nil {
		n.places = make(map[*world.Place][]spot)
	}
	for p, spots := range n.places {
		if len(spots) == 0 {
			delete(n.places, p)
		} else {
			n.places[p] = spots[:0]
		}
	}
	for _, m := range h.members {
		if p := m.Player.Pose(); p != nil && p.Place != nil {
			n.places[p.Place] = append(n.places[p.Place], spot{p.X, p.Y, p.Z, m})
		}
	}
	for _, spots := range n.places {
		slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.x, b.x) })
	}
	begun := time.Now()
	for i := range h.members {
		at := (n.next + i) % len(h.members)
		if m := h.members[at]; m.wants.Page {
			h.showAround(m)
		}
		if i%8 == 7 && time.Since(begun) > nearTime {
			n.next = at + 1
			return
		}
	}
}

// showAround shows one member who is around.
func (h *Hub) showAround(m *Member) {
	n := &h.near
	n.found = n.found[:0]
	me := m.Player.Pose()
	if me != nil && me.Place != nil {
		spots := n.places[me.Place]
		at := sort.Search(len(spots), func(i int) bool { return spots[i].x >= me.X })
		// From both sides outward, until nobody farther off in x can be nearer than those who were found.
		for left, right := at-1, at; left >= 0 || right < len(spots); {
			var s *spot
			if left < 0 || right < len(spots) && spots[right].x-me.X <= me.X-spots[left].x {
				s, right = &spots[right], right+1
			} else {
				s, left = &spots[left], left-1
			}
			dx := s.x - me.X
			if len(n.found) == MostNear && dx*dx > n.found[MostNear-1].square {
				break
			}
			if s.m == m || !h.compiler.Around(&m.Member, &s.m.Member) {
				continue
			}
			dy, dz := s.y-me.Y, s.z-me.Z
			d := distant{dx*dx + dy*dy + dz*dz, s}
			i, _ := slices.BinarySearchFunc(n.found, d, func(a, b distant) int { return cmp.Compare(a.square, b.square) })
			if i == MostNear {
				continue
			}
			if len(n.found) == MostNear {
				n.found = n.found[:MostNear-1]
			}
			n.found = slices.Insert(n.found, i, d)
		}
	}
	if m.nearTold && len(n.found) == len(m.near) && !slices.ContainsFunc(n.found, func(d distant) bool { return !slices.Contains(m.near, nearby(d, me)) }) {
		return
	}
	people := make([]talk.Nearby, len(n.found))
	for i, d := range n.found {
		people[i] = nearby(d, me)
	}
	m.near, m.nearTold = people, true
	m.client.ShowNear(people)
}

// nearby returns somebody's place in whole blocks from a player.
func nearby(d distant, me *world.Pose) talk.Nearby {
	return talk.Nearby{ID: d.m.Player.ID, DX: blocks(d.x - me.X), DY: blocks(d.y - me.Y), DZ: blocks(d.z - me.Z)}
}

func blocks(v float64) int32 { return int32(math.Round(min(max(v, -maxAway), maxAway))) }

// maxAway is farther than the game's world is wide.
const maxAway = 60_000_000

// Earshot tells how far an ordinary voice carries where a player is, in blocks, and how many with a voice are within
// that, of those whom the player may know of. It waits for a turn, and not for a disk.
func (h *Hub) Earshot(player uuid.UUID) (near int, reach float64) {
	h.Read(func(time.Time) { // fails only where voice has ended
		reach = h.policy.Gain.Default
		p := h.reg.Get(player)
		if p == nil {
			return
		}
		me := p.Pose()
		if me == nil {
			return
		}
		reach = gain.At(h.policy.Gain.Zones(me.Place), h.policy.Gain.Range(me.Place), me.X, me.Y, me.Z)
		for _, m := range h.members {
			at := m.Player.Pose()
			if m.Player == p || at == nil || at.Place != me.Place || !p.Knows(m.Player) {
				continue
			}
			if dx, dy, dz := at.X-me.X, at.Y-me.Y, at.Z-me.Z; dx*dx+dy*dy+dz*dz < reach*reach {
				near++
			}
		}
	})
	return near, reach
}

// ToggleMic asks a player's page, if they have one open, to open or close its microphone. It reports whether there is
// one.
func (h *Hub) ToggleMic(player uuid.UUID) (asked bool) {
	h.Read(func(time.Time) {
		if m := h.byID[player]; m != nil && m.wants.Page {
			m.client.ToggleMic()
			asked = true
		}
	})
	return asked // false as well when voice has ended
}
