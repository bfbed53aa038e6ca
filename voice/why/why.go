// Package why is the answer to why one player hears another one or does not: the findings, and the sentence for it in
// parts whose texts can be translated. It is pure; the owner of the players and of the table fills it in.
package why

import (
	"strconv"
	"time"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Answer says why a listener hears a talker's microphone at one moment, or which check keeps it from them first.
type Answer struct {
	Talker, Listener string // their names, or UUIDs of players who are not on the network
	// Whether they have a voice connection. Without both the rest is empty.
	TalkerHere, ListenerHere bool

	route.Why
	Mute                       mute.State // of the talker
	TalkerGroup, ListenerGroup string     // with its type; empty: none
	Sight                      world.Why  // how the listener is shown the talker

	Asked time.Time
}

// Heard tells whether the listener hears the talker.
func (w *Answer) Heard() bool { return w.TalkerHere && w.ListenerHere && w.Verdict.Heard() }

// Clause is a part of the sentence that says why: the name of a text, and its values, each behind its name.
type Clause struct {
	Text   string
	Values []string
}

// Clauses returns the answer: one behind the other they are a sentence without its full stop.
func (w Answer) Clauses() (all []Clause) {
	say := func(text string, values ...string) { all = append(all, Clause{text, values}) }
	switch {
	case !w.TalkerHere:
		say("absent", "player", w.Talker)
		return all
	case !w.ListenerHere:
		say("absent", "player", w.Listener)
		return all
	}
	both := []string{"speaker", w.Talker, "listener", w.Listener}
	if w.Heard() {
		say("yes", both...)
	} else {
		say("no", both...)
	}
	blocks := func(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
	here, there := w.Why.Talker, w.Why.Listener
	switch w.Verdict {
	case route.ByDistance, route.OutOfRange:
		if w.Heard() {
			say("percent", "percent", strconv.FormatFloat(float64(w.Level)/2.55, 'f', 0, 64))
		}
		say("distance", "distance", blocks(w.Distance), "range", blocks(w.Range))
		if w.Tier != talk.Normal {
			say(w.Tier.String())
		}
	case route.ByGroup:
		say("group", "group", w.TalkerGroup)
	case route.ByDeclaration:
		say("declared")
	case route.ServerMuted:
		if w.Mute.Kind == talk.MutedServer {
			say("muted-all")
		} else {
			say("muted", both...)
		}
		if seconds, timed := w.Mute.Left(w.Asked); timed {
			say("muted-left", "seconds", strconv.Itoa(seconds))
		}
		if w.Mute.Reason != "" {
			say("muted-reason", "reason", w.Mute.Reason)
		}
	case route.MayNotSpeak:
		say("may-not-speak", both...)
	case route.Self:
		say("self")
	case route.Deaf:
		say("deafened", both...)
	case route.MayNotListen:
		say("may-not-listen", both...)
	case route.Hidden:
		w.hidden(say, both)
	case route.Apart:
		say("bodiless", append(both, "server", w.Sight.Server)...)
	case route.Untold:
		say("untold", both...)
	case route.SpectatorRule:
		say("spectator", both...)
	case route.GroupRule:
		for i, g := range []string{w.TalkerGroup, w.ListenerGroup} {
			if g == "" {
				say([]string{"ungrouped", "and-ungrouped"}[i], "player", both[2*i+1])
			} else {
				say([]string{"grouped", "and-grouped"}[i], "player", both[2*i+1], "group", g)
			}
		}
	case route.ElsewhereWorld:
		switch {
		case here == nil:
			say("nowhere", "player", w.Talker)
		case there == nil:
			say("nowhere", "player", w.Listener)
		case here.Backend != there.Backend:
			say("servers", "from", here.Backend, "to", there.Backend)
		case w.Sight.Cause == world.Ages && here.World == there.World:
			say("ages", "world", here.World, "from", strconv.FormatInt(w.Sight.Ages[1], 10), "to", strconv.FormatInt(w.Sight.Ages[0], 10))
		case w.Sight.Cause == world.Seeds && here.World == there.World:
			say("seeds", "world", here.World)
		default:
			say("worlds", append(both, "from", here.Backend+"/"+here.World, "to", there.Backend+"/"+there.World)...)
		}
	case route.NoPosition:
		say("no-position")
	}
	return all
}

// hidden says why a listener is not shown a talker.
func (w *Answer) hidden(say func(text string, values ...string), both []string) {
	here, there, x := w.Why.Talker, w.Why.Listener, &w.Sight
	switch {
	case here != nil && there != nil && here.Backend != there.Backend:
		say("servers", "from", here.Backend, "to", there.Backend)
	case x.Cause == world.Removed:
		say("removed", append(both, "server", x.Server)...)
	case x.Cause == world.Unlisted:
		say("unlisted", append(both, "server", x.Server, "uuid", x.There.String())...)
		if x.Witnesses > 0 && x.Vanished {
			say("vanished", append(both, "seen", strconv.Itoa(x.Witnesses), "blind", strconv.Itoa(x.Blind))...)
		}
	default:
		say("hidden", both...)
	}
}
