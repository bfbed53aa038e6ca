package rooms

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// slot is a place in the room.
type slot struct {
	id, name, identity string
	resume             [sha256.Size]byte // of the token
	peer               *Peer             // nil: gone, but may come back
	until              time.Duration     // then
	seq                int64             // the highest of its commands
	chats, pings       []time.Duration   // when the last were
}

func (h *Hub) slot(id string) *slot {
	at := slices.IndexFunc(h.slots, func(s *slot) bool { return s.id == id })
	if at < 0 {
		return nil
	}
	return h.slots[at]
}

// join lets a peer in, or back in. Everything is checked before anything changes.
func (h *Hub) join(p *Peer, f *frame.Client) {
	no := func(reason string, why Refusal) {
		h.conf.Stats.Refused.add(reason, 1)
		h.refuse(p, why)
	}
	identity := p.conn.Identity()
	banned := identity != "" && slices.Contains(h.bans, identity)
	switch {
	case p.slot != nil:
		h.refuse(p, ErrJoined)
		return
	case f.Protocol != frame.Protocol:
		no("protocol", ErrProtocol)
		return
	case f.HasResume:
		s := h.resumes(f.Resume)
		switch {
		case s == nil || s.identity != identity:
			no("token", ErrToken)
		case banned:
			no("banned", ErrBanned)
		default:
			h.resume(s, p, f.Binary)
		}
		return
	}
	h.numbers++ // a number for refused peers, too: a gap does not tell of somebody who cannot be seen
	j := &Join{ID: "p" + strconv.Itoa(h.numbers), Identity: identity, Fields: f.Fields}
	name, ok := frame.Text(f.Name, frame.MaxName)
	j.Name = name
	same := 0
	for _, s := range h.slots {
		if identity != "" && s.identity == identity {
			same++
		}
	}
	switch {
	case !ok:
		no("name", ErrName)
		return
	case banned:
		no("banned", ErrBanned)
		return
	case h.locked:
		no("locked", ErrLocked)
		return
	case len(h.slots) >= h.auth.Capacity():
		no("full", ErrRoomFull)
		return
	case same >= h.conf.Each:
		no("often", ErrOften)
		return
	}
	if err := h.auth.ValidateJoin(j); err != nil {
		no("validate", refusal(err))
		return
	}
	s := &slot{id: j.ID, name: j.Name, identity: identity}
	h.slots = append(h.slots, s)
	h.auth.Joined(s.id)
	h.enter(s, p, f.Binary)
	h.notice(s, "joined")
}

// resumes finds the place of a token. How long it looks does not depend on the token.
func (h *Hub) resumes(token string) (found *slot) {
	sum := sha256.Sum256([]byte(token))
	for _, s := range h.slots {
		if subtle.ConstantTimeCompare(sum[:], s.resume[:]) == 1 {
			found = s
		}
	}
	return found
}

func (h *Hub) resume(s *slot, p *Peer, binary bool) {
	if old := s.peer; old != nil {
		h.end(old, frame.Normal, frame.Elsewhere, "elsewhere")
	}
	h.reserved = without(h.reserved, s)
	h.enter(s, p, binary)
	h.notice(s, "reconnected")
}

// enter tells a peer about the room.
func (h *Hub) enter(s *slot, p *Peer, binary bool) {
	h.pending = without(h.pending, p)
	p.slot, s.peer = s, p
	h.changed()
	if c, ok := p.conn.(BinaryConn); ok && binary && h.conf.Codec != nil {
		p.binary = c
	}
	g := frame.Greeting{ID: s.id, Resume: s.token(), Capacity: h.auth.Capacity(), Sequence: s.seq}
	if p.binary != nil {
		g.Codec = h.conf.Codec.Name()
	}
	fields := h.auth.Welcome(s.id)
	if err := fields.Check(); err != nil {
		panic(stateError{err})
	}
	h.control(p, frame.Welcome, frame.AppendWelcome(nil, &g, fields))
	tick := int64(h.clock.Tick())
	p.acked.Store(tick)
	p.sent.Store(tick)
	p.joined.Store(true)
	h.turn++
	clear(h.objects)
	p.want = h.viewOf(s.id)
	epoch := h.auth.Epoch()
	h.enterLane(p, tick, epoch, false)
	h.pair(p, tick, epoch, true, false)
	h.control(p, frame.Social, h.roster(s.id, true))
	p.roster = h.edition
}

// token makes a new secret to come back with, and voids the one before.
func (s *slot) token() string {
	var b [32]byte
	rand.Read(b[:])
	t := base64.RawURLEncoding.EncodeToString(b[:])
	s.resume = sha256.Sum256([]byte(t))
	return t
}

func (h *Hub) leave(p *Peer) {
	s := p.slot
	h.control(p, frame.Left, frame.AppendLeft(nil))
	h.end(p, frame.Normal, "", "left")
	h.free(s, "left")
}

// remove sends a peer away for good.
func (h *Hub) remove(s *slot, message string) {
	if p := s.peer; p != nil {
		h.control(p, frame.Remove, frame.AppendSaid(nil, frame.Remove, message))
		h.end(p, frame.Policy, frame.Removed, "removed")
	}
	h.free(s, "was removed")
}

// ban removes everybody with the identity of a place.
func (h *Hub) ban(s *slot) error {
	switch {
	case s == nil:
		return Refusal(noticeNobody)
	case s.identity == "":
		return Refusal(noticeIdentity)
	case len(h.bans) >= frame.Bans:
		return Refusal(noticeBans)
	}
	h.bans = append(h.bans, s.identity)
	for _, other := range h.slots {
		if other.identity == s.identity {
			h.remove(other, toldRemoved)
		}
	}
	return nil
}

// free gives a place up. It tells the others first, as the authority may have forgotten afterwards who knew about it.
func (h *Hub) free(s *slot, how string) {
	if !slices.Contains(h.slots, s) {
		return
	}
	h.notice(s, how)
	h.slots = without(h.slots, s)
	h.reserved = without(h.reserved, s)
	h.changed()
	h.auth.Left(s.id)
}

var errNowhere = errors.New("rooms: no place to point at")
