package rooms

import (
	"slices"
	"time"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

// said is a message of the history.
type said struct {
	Message
	about  string   // the peer it is about
	secret bool     // not everybody could know about the peer
	to     []string // of a secret one: who was told
}

// firstSecret begins the numbers of messages that are not for everybody: a gap in the others' would tell of them.
const firstSecret = 1 << 40

// knows reports whether a peer may know about another. An empty subject is nobody, and everybody may know about nobody.
func (h *Hub) knows(recipient, subject string) bool {
	return h.audience == nil || subject == "" || recipient == subject || h.audience.Knows(recipient, subject)
}

// notice tells everybody a change of a peer.
func (h *Hub) notice(s *slot, what string) {
	h.tell(s.id, Message{PlayerID: s.id, PlayerName: s.name, Text: s.name + " " + what, System: true})
}

// tell sends a message to those who may know about a peer, and keeps it for others.
func (h *Hub) tell(about string, m Message) {
	entry := said{about: about, secret: !h.knows("", about)}
	if entry.secret {
		h.secret++
		m.ID = firstSecret + h.secret
	} else {
		h.messages++
		m.ID = h.messages
	}
	entry.Message = m
	b := frame.AppendChat(nil, &m)
	for _, s := range h.slots {
		if !h.knows(s.id, about) {
			continue
		}
		if entry.secret {
			entry.to = append(entry.to, s.id)
		}
		if s.peer != nil {
			h.control(s.peer, frame.Chat, b)
		}
	}
	// Each kind has its own bound, so that secret messages push nothing out that all can see.
	kept := 0
	for i := range h.history {
		if h.history[i].secret == entry.secret {
			kept++
		}
	}
	if kept >= frame.History {
		at := slices.IndexFunc(h.history, func(x said) bool { return x.secret == entry.secret })
		h.history = slices.Delete(h.history, at, at+1)
	}
	h.history = append(h.history, entry)
}

// toldTo returns the messages that a peer may know about.
func (h *Hub) toldTo(id string) []Message {
	out := []Message{}
	for i := range h.history {
		e := &h.history[i]
		switch {
		case e.secret && !slices.Contains(e.to, id):
		case h.slot(e.about) != nil && !h.knows(id, e.about):
		default:
			out = append(out, e.Message)
		}
	}
	return out[max(len(out)-frame.History, 0):]
}

// seldom notes that something happens now, unless it has happened too often lately.
func seldom(times *[]time.Duration, now, within time.Duration, most int) bool {
	*times = slices.DeleteFunc(*times, func(t time.Duration) bool { return now-t >= within })
	if len(*times) >= most {
		return false
	}
	*times = append(*times, now)
	return true
}

func (h *Hub) tellOff(p *Peer, why string) {
	h.control(p, frame.Notice, frame.AppendSaid(nil, frame.Notice, why))
}

func (h *Hub) chat(p *Peer, f *frame.Client) {
	s := p.slot
	text, ok := frame.Text(f.Text, frame.MaxChat)
	if !ok {
		h.tellOff(p, noticeText)
		return
	}
	if h.talk != nil {
		if err := h.talk.MayChat(s.id, text); err != nil {
			why := noticeMayNot
			if r, ok := err.(Refusal); ok {
				why = string(r)
			}
			h.tellOff(p, why)
			return
		}
	}
	if !seldom(&s.chats, h.now(), chatWithin, frame.ChatEach) {
		h.tellOff(p, noticeChat)
		return
	}
	h.tell(s.id, Message{PlayerID: s.id, PlayerName: s.name, Text: text})
}

func (h *Hub) ping(p *Peer, f *frame.Client) {
	s := p.slot
	if !slices.Contains([]string{"here", "help", "ball"}, f.Kind) {
		h.tellOff(p, noticeKind)
		return
	}
	at, err := Location{}, errNowhere
	if h.social != nil {
		at, err = h.social.PingLocation(s.id, f.Kind)
	}
	if err != nil {
		why := noticeNowhere
		if r, ok := err.(Refusal); ok {
			why = string(r)
		}
		h.tellOff(p, why)
		return
	}
	if !seldom(&s.pings, h.now(), pingWithin, frame.PingEach) {
		h.tellOff(p, noticePing)
		return
	}
	pinged := frame.Pinged{PlayerID: s.id, PlayerName: s.name, Kind: f.Kind, At: at}
	if h.knows("", s.id) {
		h.pings++
		pinged.ID = h.pings
	} else {
		h.secret++
		pinged.ID = firstSecret + h.secret
	}
	b := frame.AppendPing(nil, &pinged)
	for _, other := range h.slots {
		if other.peer != nil && h.knows(other.id, s.id) {
			h.control(other.peer, frame.Ping, b)
		}
	}
}

func (h *Hub) moderate(p *Peer, f *frame.Client) {
	if p.slot.id != h.leader {
		h.tellOff(p, noticeLeader)
		return
	}
	switch f.Action {
	case frame.Lock:
		if h.locked != f.Locked {
			h.locked = f.Locked
			h.changed()
		}
	case frame.Kick, frame.Ban:
		target := h.slot(f.PlayerID)
		switch {
		case target == nil || !h.knows(p.slot.id, target.id):
			h.tellOff(p, noticeNobody)
		case target == p.slot || f.Action == frame.Ban && target.identity != "" && target.identity == p.slot.identity:
			h.tellOff(p, noticeYourself)
		case f.Action == frame.Kick:
			h.remove(target, toldRemoved)
		default:
			if err := h.ban(target); err != nil {
				h.tellOff(p, string(refusal(err)))
			}
		}
	default:
		h.tellOff(p, noticeAction)
	}
}

func (h *Hub) members() []Member {
	out := make([]Member, len(h.slots))
	for i, s := range h.slots {
		out[i] = Member{ID: s.id, Name: s.name, Connected: s.peer != nil, CanBan: s.identity != ""}
	}
	return out
}

// changed notes that the roster has changed, and works out who leads.
func (h *Hub) changed() {
	h.edition++
	h.leader = ""
	if h.social != nil {
		members := h.members()
		leader := h.social.Leader(members)
		if slices.ContainsFunc(members, func(m Member) bool { return m.ID == leader && m.Connected }) {
			h.leader = leader
		}
		return
	}
	for _, s := range h.slots {
		if s.peer != nil {
			h.leader = s.id
			return
		}
	}
}

// roster writes what a peer may know about the others.
func (h *Hub) roster(id string, history bool) []byte {
	members := slices.DeleteFunc(h.members(), func(m Member) bool { return !h.knows(id, m.ID) })
	leader := h.leader
	if leader != "" && !h.knows(id, leader) {
		leader = ""
	}
	var said []Message
	if history {
		said = h.toldTo(id)
	}
	return frame.AppendSocial(nil, leader, h.locked, members, said)
}

// sendRoster tells everybody who is there; peers that have been told are left out.
func (h *Hub) sendRoster(now time.Duration) {
	h.told = h.edition
	h.rosterAt = now + max(rosterEach, time.Duration(len(h.slots))*rosterPer)
	same := map[View][]byte{}
	for _, s := range h.slots {
		p := s.peer
		if p == nil || p.roster == h.edition {
			continue
		}
		var group View
		if h.audience != nil {
			if group = h.audience.AudienceOf(s.id); !h.audience.Knows(s.id, s.id) {
				group = own(s.id) // it knows about one more than the others: itself
			}
		}
		b := same[group]
		if b == nil {
			b = h.roster(s.id, false)
			same[group] = b
		}
		p.roster = h.told
		h.control(p, frame.Social, b)
	}
}
