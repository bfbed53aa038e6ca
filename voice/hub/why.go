package hub

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/line"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
)

// Why is why a listener hears a speaker's microphone at this moment, or the first check that keeps it from it.
type Why struct {
	Speaker, Listener string // their names, or UUIDs where there is no connection
	// Whether they have a voice connection. Without both the rest is empty.
	SpeakerHere, ListenerHere bool

	route.Why
	Mute                        mute.State // of the speaker
	SpeakerGroup, ListenerGroup string     // with its type; empty: none

	asked time.Time
}

// Heard tells whether the listener hears the speaker.
func (w *Why) Heard() bool { return w.SpeakerHere && w.ListenerHere && w.Verdict.Heard() }

// Explain walks the checks for a pair. The decision is the one that the table is compiled by.
func (h *Hub) Explain(speaker, listener uuid.UUID) (w Why, err error) {
	err = h.Do(func(now time.Time) {
		h.late = append(h.late, func() { w = h.why(speaker, listener, now) }) // after what else this turn brings
	})
	return w, err
}

func (h *Hub) why(speaker, listener uuid.UUID, now time.Time) Why {
	s, l := h.byID[speaker], h.byID[listener]
	w := Why{Speaker: speaker.String(), Listener: listener.String(), SpeakerHere: s != nil, ListenerHere: l != nil, asked: now}
	if s != nil {
		w.Speaker, w.Mute, w.SpeakerGroup = s.Player.Name, s.mute, h.groupName(speaker)
	}
	if l != nil {
		w.Listener, w.ListenerGroup = l.Player.Name, h.groupName(listener)
	}
	if s != nil && l != nil {
		w.Why = h.compiler.Explain(&s.Member, &l.Member)
	}
	return w
}

func (h *Hub) groupName(player uuid.UUID) string {
	if g, ok := h.groups.Of(player); ok {
		return fmt.Sprintf("%q (%s)", g.Name, g.Type)
	}
	return ""
}

// String is the answer in a sentence.
func (w Why) String() string {
	switch {
	case !w.SpeakerHere:
		return w.Speaker + " has no voice connection"
	case !w.ListenerHere:
		return w.Listener + " has no voice connection"
	}
	yes, no := w.Listener+" hears "+w.Speaker, w.Listener+" does not hear "+w.Speaker+": "
	place := func() string {
		name := func(p string, ok bool) string {
			if !ok {
				return "nowhere yet"
			}
			return p
		}
		var a, b string
		if w.Why.Speaker != nil {
			a = w.Why.Speaker.Backend + "/" + w.Why.Speaker.World
		}
		if w.Why.Listener != nil {
			b = w.Why.Listener.Backend + "/" + w.Why.Listener.World
		}
		return fmt.Sprintf("%s is in %s, %s in %s", w.Speaker, name(a, a != ""), w.Listener, name(b, b != ""))
	}
	tier := ""
	if w.Tier != line.Normal {
		tier = ", with a " + w.Tier.String()
	}
	switch w.Verdict {
	case route.ByDistance:
		return fmt.Sprintf("%s at %.0f %%: %.1f blocks away, and the range is %.1f%s", yes, float64(w.Level)/2.55, w.Distance, w.Range, tier)
	case route.ByGroup:
		return fmt.Sprintf("%s at 100 %%, from anywhere: both are in the group %s", yes, w.SpeakerGroup)
	case route.ByDeclaration:
		return yes + " at 100 %, from anywhere: a domain, a listen or an edge says so"
	case route.ServerMuted:
		var more strings.Builder
		if l := w.Mute.Line(w.asked); l.Timed {
			fmt.Fprintf(&more, ", for %d s more", l.Seconds)
		}
		if w.Mute.Reason != "" {
			fmt.Fprintf(&more, ", for: %s", w.Mute.Reason)
		}
		who := w.Speaker + " is"
		if w.Mute.Kind == line.MutedServer {
			who = "everybody is"
		}
		return no + who + " muted" + more.String()
	case route.MayNotSpeak:
		return no + w.Speaker + " lacks socketsvc.speak"
	case route.Himself:
		return no + "nobody hears himself"
	case route.Deaf:
		return no + w.Listener + " has deafened himself"
	case route.MayNotListen:
		return no + w.Listener + " lacks socketsvc.listen"
	case route.Hidden:
		if s, l := w.Why.Speaker, w.Why.Listener; s != nil && l != nil && s.Backend != l.Backend {
			return no + "they are on different servers, " + s.Backend + " and " + l.Backend + ", and have no group or declared voice in common"
		}
		return no + "the server hides " + w.Speaker + " from " + w.Listener
	case route.Untold:
		return no + w.Listener + " has not received the roster with " + w.Speaker + " on it yet"
	case route.SpectatorRule:
		return no + w.Speaker + " is a spectator"
	case route.GroupRule:
		group := func(s string) string {
			if s == "" {
				return "in no group"
			}
			return "in the group " + s
		}
		return no + w.Speaker + " is " + group(w.SpeakerGroup) + ", " + w.Listener + " " + group(w.ListenerGroup)
	case route.ElsewhereWorld:
		return no + place()
	case route.NoPosition:
		return no + "it is not known where one of them stands"
	}
	return fmt.Sprintf("%s%.1f blocks away, and the range is %.1f%s", no, w.Distance, w.Range, tier)
}
