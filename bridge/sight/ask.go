package sight

import (
	"time"

	"github.com/google/uuid"
)

// ShownApart tells whether the session is shown the other's player, and if so whether they are apart all the same.
func (s *Session) ShownApart(other *Session) (yes, apart bool) {
	s.read(func(v *server, q *seat) {
		o := other.seated.Load()
		yes = o != nil && o.v == v && q.shown.has(o.slot)
		apart = yes && q.apart.has(o.slot)
	})
	return yes, apart
}

// EachShown calls visit for every player the session is shown. apart tells whether the two are not in one place
// although their worlds have one name.
func (s *Session) EachShown(visit func(other *Session, apart bool)) {
	s.read(func(v *server, q *seat) {
		q.shown.each(func(t int) { visit(v.seats[t].Session, q.apart.has(t)) })
	})
}

// EachShownTo calls visit for every session that is shown this one; apart is as in [Session.EachShown].
func (s *Session) EachShownTo(visit func(other *Session, apart bool)) {
	s.read(func(v *server, q *seat) {
		q.shownTo.each(func(l int) { visit(v.seats[l].Session, v.seats[l].apart.has(q.slot)) })
	})
}

// Knows tells whether the session's player may know about the other, wherever they are: it is shown that one, or
// everybody may know about that one and it is not blind to them.
func (s *Session) Knows(other *Session) bool {
	knows := other.Public()
	s.read(func(v *server, q *seat) {
		if o := other.seated.Load(); o != nil && o.v == v {
			knows = q.shown.has(o.slot) || knows && !o.hiddenFrom(q)
		}
	})
	return knows
}

// hiddenFrom tells whether somebody is blind to the player, and does not know of it.
func (t *seat) hiddenFrom(l *seat) bool { return t.veil != nil && t.veil.from.has(l.slot) }

// EachHidden calls visit for everybody to whom the session's player is blind: whatever others are shown, it does not
// know of them.
func (s *Session) EachHidden(visit func(other *Session)) {
	s.read(func(v *server, q *seat) {
		for _, t := range v.veiled {
			if v.seats[t.slot] == t && t.hiddenFrom(q) {
				visit(t.Session)
			}
		}
	})
}

// EachHiddenFrom calls visit for everybody who is blind to the session's player.
func (s *Session) EachHiddenFrom(visit func(other *Session)) {
	s.read(func(v *server, q *seat) {
		if q.veil != nil {
			q.veil.from.each(func(l int) { visit(v.seats[l].Session) })
		}
	})
}

// Cause is the subject of a [Why].
type Cause uint8

// The causes.
const (
	Plain    Cause = iota // shown, and nothing says that they are not in one place
	Nowhere               // one of them is on no server, or in no world of it yet
	Servers               // they are on two servers
	Unlisted              // the listener has neither an entry nor a body
	Removed               // the body is missing, although the talker sees the listener
	Ages                  // ages tell two worlds of one name apart
	Seeds                 // seeds do
	Bodiless              // neither has the other's body although they stand together
)

// Why explains a pair to an administrator.
type Why struct {
	Cause            Cause
	Server, World    string
	There            uuid.UUID     // the server's UUID of the talker
	Witnesses, Blind int           // players that the talker sees, and how many of these are not shown the talker
	Vanished         bool          // by these
	Since            time.Duration // since a body left; 0 unknown
	Ages             [2]int64      // of the listener's world and of the talker's, at one time
	Culls            bool          // missing bodies do not count
	Points           int           // how often bodies went and came back
}

// Explain returns the evidence about a talker for a listener.
func (s *Session) Explain(talker *Session) (w Why) {
	w.Cause = Nowhere
	now := time.Now()
	s.read(func(v *server, l *seat) {
		t := talker.seated.Load()
		if t == nil || !t.in || !l.in {
			return
		}
		v.decay(now)
		w.Server, w.World, w.Culls, w.Points = v.name, l.world, v.learnt(), v.points
		if t.v != v {
			w.Cause = Servers
			return
		}
		w.There, w.Witnesses, w.Blind, w.Vanished = t.s, int(t.witnesses), int(t.blind), !t.public.Load()
		switch {
		case !l.shown.has(t.slot) && l.taken.has(t.slot):
			w.Cause = Removed
			if at, ok := l.loses(t.slot); ok {
				w.Since = v.since(now) - l.lost[at].at
			}
		case !l.shown.has(t.slot):
			w.Cause = Unlisted
		case l.apart.has(t.slot):
			w.Cause = Bodiless
		case l.world == t.world && l.at != t.at:
			w.Cause = Seeds
			if !l.ageAt.IsZero() && !t.ageAt.IsZero() && !v.noAges {
				w.Cause = Ages
				at := func(q *seat) int64 { return q.age + int64(now.Sub(q.ageAt)*20/time.Second) }
				w.Ages = [2]int64{at(l), at(t)}
				if v.seeds && !v.noSeeds && l.seed != t.seed && oneWorld(l.age, l.ageAt, t.age, t.ageAt) {
					w.Cause = Seeds
				}
			}
		default:
			w.Cause = Plain
		}
	})
	return w
}
