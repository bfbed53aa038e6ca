package hub

import (
	"time"

	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Bits are the permissions of one player that voice asks for, one for each node.
type Bits uint16

// The permissions.
const (
	Speak        Bits = 1 << iota // socketsvc.speak
	Listen                        // socketsvc.listen
	Soundboard                    // socketsvc.soundboard
	UseGroups                     // socketsvc.groups
	CreateGroups                  // socketsvc.groups.create
	Invite                        // socketsvc.groups.invite
	AdminGroups                   // socketsvc.groups.admin
	MuteExempt                    // socketsvc.mute.exempt
	KeepGroups                    // socketsvc.groups.persistent

	// Open holds everybody's permissions where nothing else is known, as for a player who has not been evaluated yet.
	Open = Speak | Listen | Soundboard | UseGroups | CreateGroups | Invite | KeepGroups
)

func (b Bits) has(all Bits) bool { return b&all == all }

// groupCaps returns what a player may do with groups: nothing without the use of them.
func (b Bits) groupCaps() talk.GroupCaps {
	use := b.has(UseGroups)
	return talk.GroupCaps{Use: use, Create: use && b.has(CreateGroups), Admin: use && b.has(AdminGroups), Invite: use && b.has(Invite)}
}

// evaluate asks for everybody's permissions and tells whether any have changed.
func (h *Hub) evaluate() (changed bool) {
	if h.Permissions == nil {
		return false
	}
	for _, m := range h.members {
		if now := h.Permissions(m.Player.ID); now != m.bits {
			m.bits, m.judged, changed = now, false, true
			if !now.has(UseGroups) {
				h.groups.Leave(m.Player.ID)
			}
		}
	}
	return changed
}

// judge brings mutes and permissions into force. It returns when a mute lapses by itself, zero for never.
func (h *Hub) judge(now time.Time) (next time.Time) {
	next = h.mutes.Expire(now)
	all := h.mutes.Revision() != h.mutesSeen
	h.mutesSeen = h.mutes.Revision()
	h.muteNews = h.muteNews || all
	for _, m := range h.members {
		if m.judged && !all {
			continue
		}
		m.judged = true
		m.mute = h.mutes.State(m.Player.ID, m.bits.has(MuteExempt), now)
		h.compiler.SetRights(&m.Member, route.Rights{
			Muted: m.mute.Kind != talk.NotMuted, NoSpeak: !m.bits.has(Speak), NoListen: !m.bits.has(Listen), NoSoundboard: !m.bits.has(Soundboard),
		})
	}
	return next
}

// showControls tells a member of the mute on it and of the tiers, as far as it does not know: it compares the state and
// not the seconds that are left.
func (h *Hub) showControls(m *Member, now time.Time) {
	if r := (talk.Rights{Speak: m.bits.has(Speak), Listen: m.bits.has(Listen), Clips: m.bits.has(Soundboard)}); m.wants.Page && (!m.rightsTold || r != m.rights) {
		m.rights, m.rightsTold = r, true
		m.client.ShowRights(r)
	}
	if !m.wants.Status {
		return
	}
	if m.offer != h.offer {
		m.offer = h.offer
		m.client.ShowTiers(m.offer)
	}
	if m.muteShown == nil || m.mute != m.muteShown.State {
		if h.notice == nil || h.notice.State != m.mute || !h.notice.At.Equal(now) {
			h.notice = &mute.Notice{State: m.mute, At: now}
		}
		m.muteShown = h.notice
		m.client.ShowMute(m.muteShown)
	}
}
