// Package render writes what a client is shown as text lines of the voice socket.
//
// It promises that a text for many clients is written once for all of them, and that no client gets a row that it has
// not negotiated.
package render

import (
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/talk"
)

// The forms: lines, lines with the rows that only a status socket gets, and the whole roster of roster 2.
var lines, status, whole = talk.Form{Name: "lines"}, talk.Form{Name: "lines with status"}, talk.Form{Name: "roster 2"}

// Roster returns a roster, with status also the rows of deafened players and of the tiers.
func Roster(s *roster.Snapshot, withStatus bool) []byte {
	if withStatus {
		return s.In(&status, func() []byte { return writeRoster(s, true) })
	}
	return s.In(&lines, func() []byte { return writeRoster(s, false) })
}

func writeRoster(s *roster.Snapshot, withStatus bool) []byte {
	text := make([]byte, 0, rosterRow*s.Len())
	var deafened []uuid.UUID
	var tiers [talk.Tiers][]uuid.UUID
	for e := range s.All() {
		text = append(text, e.In(&lines, func() []byte {
			return line.AppendPerson(nil, line.Person{ID: e.ID, Name: e.Name})
		})...)
		if e.Deafened {
			deafened = append(deafened, e.ID)
		}
		if e.Tier != talk.Normal {
			tiers[e.Tier] = append(tiers[e.Tier], e.ID)
		}
	}
	if withStatus {
		text = line.AppendStatus(text, deafened, &tiers)
	}
	return text
}

// Changes returns a roster of roster 2, to a reader who has a former one or, with nil, none. It is whole where much has
// changed.
func Changes(s, has *roster.Snapshot) []byte {
	if has != nil {
		if c := s.Since(has); !c.Many(s) {
			return c.In(&lines, func() []byte {
				text := line.AppendChangesHead(nil, false, line.Revision(has.Revision()), line.Revision(s.Revision()))
				for _, e := range c.Put {
					text = append(text, state(e)...)
				}
				for _, id := range c.Gone {
					text = line.AppendGone(text, id)
				}
				return text
			})
		}
	}
	return s.In(&whole, func() []byte {
		text := line.AppendChangesHead(make([]byte, 0, stateRow*(1+s.Len())), true, 0, line.Revision(s.Revision()))
		for e := range s.All() {
			text = append(text, state(e)...)
		}
		return text
	})
}

func state(e *roster.Entry) []byte {
	return e.In(&whole, func() []byte {
		return line.AppendState(nil, &line.State{Person: line.Person{ID: e.ID, Name: e.Name}, Deafened: e.Deafened, Tier: e.Tier})
	})
}

// stateRow is the length of an ordinary row of roster 2.
const stateRow = rosterRow + len("P 0 normal ")

// rosterRow is the length of an ordinary row: a UUID, a name of up to 16 characters, a blank and a line end.
const rosterRow = 36 + 16 + 2

// Groups returns a page of groups.
func Groups(p *group.Page) []byte {
	return p.In(&lines, func() []byte {
		var invites []line.Invitation
		for _, i := range p.Invites {
			if left := i.Until.Sub(p.At); left > 0 {
				invites = append(invites, line.Invitation{Group: i.Group, From: i.From, Seconds: int((left + time.Second - 1) / time.Second)})
			}
		}
		rows := p.Rows.In(&lines, func() []byte {
			text, _ := line.GroupRows(p.Rows.Groups, p.Rows.Members)
			return text
		})
		return append(line.AppendGroupsHead(make([]byte, 0, groupsHead+len(rows)), p.May, invites), rows...)
	})
}

// groupsHead is the length of a page's head without invitations.
const groupsHead = 32

// Speakers returns a list of speakers.
func Speakers(s *talk.Speakers) []byte {
	return s.In(&lines, func() []byte { return line.AppendSpeakers(nil, s.List) })
}

// Mute returns the mute on a player.
func Mute(n *mute.Notice) []byte {
	return n.In(&lines, func() []byte {
		m := line.Mute{Kind: n.Kind, Reason: n.Reason}
		m.Seconds, m.Timed = n.Left(n.At)
		return line.AppendMute(nil, &m)
	})
}

// Ranges returns the tiers that the server offers.
func Ranges(o *talk.Offer) []byte {
	return o.In(&lines, func() []byte { return line.AppendRanges(nil, line.Ranges{Tiers: o.Tiers}) })
}

// Pose returns the place of the client's own player.
func Pose(p *world.Pose) []byte {
	return line.AppendPose(nil, &line.Pose{Yaw: float64(p.Yaw), X: p.X, Y: p.Y, Z: p.Z, World: p.Place.World})
}

// Result returns the result of a request.
func Result(r talk.GroupResult) []byte { return line.AppendGroupResult(nil, r) }

// Near returns the people around a client.
func Near(people []talk.Nearby) []byte { return line.AppendNear(nil, people) }

// Rights returns what a player may do.
func Rights(r talk.Rights) []byte { return line.AppendRights(nil, r) }

// MicToggle returns the line that opens or closes a page's microphone.
func MicToggle() []byte { return line.AppendMicToggle(nil) }

// Beaten returns the answer to a beat.
func Beaten(beat int32, accepted int64) []byte {
	return line.AppendBeaten(nil, line.Beaten{Beat: beat, Accepted: accepted})
}
