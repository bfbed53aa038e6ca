package hub

import (
	"time"

	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Ask has a member's request about groups carried out by the next turn, and answered when it is in force.
func (h *Hub) Ask(m *Member, r talk.GroupRequest) {
	h.post(arrival{order: order{do: func(now time.Time) {
		if m.at < 0 {
			return // the connection ended first
		}
		code := h.groups.Do(group.Actor{ID: m.Player.ID, May: m.bits.groupCaps(), Keep: m.bits.has(KeepGroups), Sees: m.Sees()}, &r, now)
		h.answers = append(h.answers, answer{m, talk.GroupResult{Verb: r.Verb, Code: code}})
	}}})
}

// Groups lists every group.
func (h *Hub) Groups() (all []group.Info, err error) {
	err = h.Read(func(time.Time) { all = h.groups.List() })
	return all, err
}

// GroupNames returns the names of the groups of the last turn. Any goroutine may call it.
func (h *Hub) GroupNames() []string {
	if names := h.groupNames.Load(); names != nil {
		return *names
	}
	return nil
}

// nameGroups brings GroupNames up to date.
func (h *Hub) nameGroups() {
	if revision := h.groups.Revision(); h.groupNames.Load() == nil || revision != h.groupsNamed {
		h.groupsNamed = revision
		names := h.groups.Names()
		h.groupNames.Store(&names)
	}
}

// RuleGroup carries out an order of staff about a group; see [group.State.Rule].
func (h *Hub) RuleGroup(r talk.GroupRequest) (code talk.Code, err error) {
	err = h.Do(func(time.Time) { code = h.groups.Rule(&r) })
	return code, err
}

// answer is the result of a request.
type answer struct {
	to     *Member
	result talk.GroupResult
}

// showGroups shows the present groups to members who need and may have them. It tells whether there was time for all.
func (h *Hub) showGroups(now time.Time, flush bool) (all bool) {
	begun, revision := time.Now(), h.groups.Revision()
	for i, m := range h.members {
		if !m.wants.Groups || m.page != nil && m.pageAt == revision && m.pageView == m.View() && m.pageBits == m.bits {
			continue
		}
		if !flush && m.page != nil && now.Sub(m.pageSent) < roster.Ration {
			continue // a flush looks
		}
		if i%16 == 15 && time.Since(begun) > tellTime {
			return false
		}
		p := h.groups.Page(m.Player.ID, m.bits.groupCaps(), m.Sees(), now)
		m.pageAt, m.pageView, m.pageBits = revision, m.View(), m.bits
		if m.page != nil && m.page.Same(p) {
			continue
		}
		m.page, m.pageSent = p, now
		m.client.ShowGroups(p)
	}
	return true
}
