package session

import (
	"math/rand/v2"
	"time"

	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// ownAlive is how often a client that waits for a backend is asked for a sign of life, so that neither side takes the
// other for dead meanwhile.
const ownAlive = 10 * time.Second

// timers hold what happens when time is up. They are the owner's; before there is one, only born is set.
type timers struct {
	born      time.Time   // when the first byte was there
	clock     *time.Timer // what is due first
	deadline  deadline
	nextAlive time.Time  // when to send a keep-alive of our own, while there is no backend
	alive     keepAlives // that the proxy asked for itself
}

// deadline ends a stage that takes too long. A zero at means no end.
type deadline struct {
	at   time.Time
	late func()
}

// within starts a stage that must be over in d; the next call replaces it.
func (t *timers) within(d time.Duration, late func()) {
	t.deadline = deadline{time.Now().Add(d), late}
}

// settled ends the stage.
func (t *timers) settled() { t.deadline = deadline{} }

// aliveEvery returns ownAlive, or less where less silence is allowed.
func (s *Session) aliveEvery() time.Duration { return min(ownAlive, s.set().Timeouts.Read*2/3) }

// waits reports whether the client is waiting for a backend: it has none, the one it has configures it, or that one has
// been silent for a while. Its silence is then not its own, and nobody may be asking for signs of life.
func (s *Session) waits() bool {
	l := s.route.current
	return l == nil || s.client.in == proto.Config || s.client.out == proto.Config || l.pump.Silent() >= s.aliveEvery()/2
}

// allowance returns how long the client may be silent. While it waits for a backend that counts from the first time it
// is asked, so that a backend which is silent for as long is found out first.
func (s *Session) allowance() time.Duration {
	read := s.set().Timeouts.Read
	if s.route.current == nil || s.client.in == proto.Config || s.client.out == proto.Config {
		read += s.aliveEvery()
	}
	return read
}

// arm sets the timer to whatever is due first.
func (s *Session) arm() {
	at := s.timers.deadline.at
	if at.IsZero() || s.timers.nextAlive.Before(at) {
		at = s.timers.nextAlive
	}
	if s.route.hold.on && (at.IsZero() || s.route.hold.next.Before(at)) {
		at = s.route.hold.next
	}
	s.timers.clock.Reset(time.Until(at))
}

func (s *Session) tick() {
	now := time.Now()
	if d := s.timers.deadline; !d.at.IsZero() && !now.Before(d.at) {
		s.timers.settled()
		d.late()
		return
	}
	if !now.Before(s.timers.nextAlive) {
		s.timers.nextAlive = now.Add(s.aliveEvery())
		if s.waits() {
			s.keepAlive()
		}
		return
	}
	if s.route.hold.on && !now.Before(s.route.hold.next) {
		s.look()
	}
}

// keepAlive asks the client for a sign of life; its answer belongs to no backend and is swallowed.
func (s *Session) keepAlive() {
	id, ok := s.client.version.ID(s.client.out, proto.Clientbound, proto.KeepAlive)
	if !ok || s.ending != endNone || s.client.in != s.client.out {
		return
	}
	question := int64(rand.Int32())
	s.timers.alive.ask(question, s.client.out, time.Now())
	s.toClient(id, packet.AppendKeepAlive(nil, s.client.version.Protocol, question))
}
