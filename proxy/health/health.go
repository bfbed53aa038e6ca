// Package health knows how servers do: whether they take players, need to be left alone for a while, or are to be
// emptied.
//
// It promises that one check at a time asks a server, however many players wait for it, that nobody waits for a check,
// and that a server which stays away is asked ever more rarely, up to a bound.
package health

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is the state of a server's circuit breaker.
type State uint8

// The states. A closed breaker lets every player through. A half-open one lets through a single player at a time, to
// see. An open one lets through nobody who can go elsewhere.
const (
	Closed State = iota
	HalfOpen
	Open
)

// String returns the state's name in logs and answers.
func (s State) String() string { return [...]string{"closed", "half-open", "open"}[s%3] }

// Policy says how to judge servers. Zero values mean the defaults.
type Policy struct {
	Failures int           // in a row that open a breaker: 3
	Interval time.Duration // between checks of servers in good standing; 0: these are not checked
	Timeout  time.Duration // of a check: 2 s
}

func (p Policy) withDefaults() Policy {
	if p.Failures <= 0 {
		p.Failures = 3
	}
	if p.Timeout <= 0 {
		p.Timeout = 2 * time.Second
	}
	return p
}

const (
	soonest = time.Second      // between checks of a doubtful server, at first
	rarest  = 10 * time.Second // and at last
	wanting = 5 * time.Second  // how long one Want lasts
	trying  = 30 * time.Second // how long a half-open breaker waits to learn how the one player fared
)

// Board knows how all servers do. It compares their names without case. Servers that Watch did not name take players,
// and nothing is noted of them. All methods may be called from any goroutine, and none waits.
type Board struct {
	check func(ctx context.Context, server string) error
	log   *slog.Logger
	poked chan struct{} // one slot: something may be due earlier

	mu      sync.Mutex
	policy  Policy
	servers map[string]*server
	asked   [2]uint64 // checks that failed, and that did not
}

type server struct {
	name     string
	state    State
	failures int       // in a row
	why      error     // the last of them
	doubt    time.Time // when something went wrong, unless it has shown life since
	wanted   time.Time // until when somebody waits for it
	alive    time.Time // the last sign of life
	trial    time.Time // until when the one try of a half-open breaker is taken
	draining bool

	asking bool          // a check is under way
	next   time.Time     // when the next is due; zero: none is
	wait   time.Duration // from there to the one after
	took   time.Duration // the last that was answered
}

// New returns a Board without servers. It checks nothing before Run. check asks a server whether it is there. log may
// be nil.
func New(check func(ctx context.Context, server string) error, log *slog.Logger) *Board {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Board{check: check, log: log, poked: make(chan struct{}, 1), policy: Policy{}.withDefaults(), servers: map[string]*server{}}
}

// Watch says which servers there are from now on, and how to judge them. The Board keeps what it knows of those that
// stay.
func (b *Board) Watch(names []string, p Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.policy = p.withDefaults()
	old := b.servers
	b.servers = map[string]*server{}
	for _, name := range names {
		s := old[strings.ToLower(name)]
		if s == nil {
			s = &server{wait: soonest}
		}
		s.name = name
		b.servers[strings.ToLower(name)] = s
		if !s.asking && !s.doubted(time.Now()) {
			s.next = time.Time{}
			if b.policy.Interval > 0 {
				s.next = time.Now().Add(rand.N(b.policy.Interval)) // not all at once
			}
		}
	}
	b.poke()
}

// Moved says that a server has another address now, so that its past counts no more. It stays drained if it was.
func (b *Board) Moved(name string) {
	b.about(name, func(s *server) {
		s.failures, s.doubt, s.trial, s.alive, s.why = 0, time.Time{}, time.Time{}, time.Time{}, nil
		b.turn(s, Closed)
		if !s.asking {
			s.next, s.wait = time.Time{}, soonest
			if b.policy.Interval > 0 {
				s.next = time.Now()
			}
			b.poke()
		}
	})
}

// Run checks servers until ctx ends.
func (b *Board) Run(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due := b.due(func(name string, within time.Duration) {
			checks.Go(func() { b.ask(ctx, name, within) })
		})
		timer.Stop()
		if !due.IsZero() {
			timer.Reset(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return
		case <-b.poked:
		case <-timer.C:
		}
	}
}

// due starts the checks whose time has come and returns when the next one is due; zero: none is planned.
func (b *Board) due(start func(name string, within time.Duration)) (next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, s := range b.servers {
		switch {
		case s.asking || s.next.IsZero():
		case !now.Before(s.next):
			s.asking = true
			start(s.name, b.policy.Timeout)
		case next.IsZero() || s.next.Before(next):
			next = s.next
		}
	}
	return next
}

// ask makes one check and draws the conclusions.
func (b *Board) ask(ctx context.Context, name string, within time.Duration) {
	checking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	begin := time.Now()
	err := b.check(checking, name)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.servers[strings.ToLower(name)]
	if s == nil || ctx.Err() != nil {
		return
	}
	s.asking = false
	now := time.Now()
	if err != nil {
		b.asked[0]++
		b.failed(s, err)
	} else {
		b.asked[1]++
		s.took = now.Sub(begin)
		b.lives(s, begin, s.state == Open)
	}
	switch {
	case s.doubted(now):
		s.next, s.wait = now.Add(Jitter(s.wait)), min(2*s.wait, rarest)
	case b.policy.Interval > 0:
		s.next, s.wait = now.Add(Jitter(b.policy.Interval)), soonest
	default:
		s.next, s.wait = time.Time{}, soonest
	}
	b.poke()
}

// Jitter returns d, more or less, so that many who wait for the same do not ask at the same moment.
func Jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// doubted reports whether a server is to be checked until it shows how it does.
func (s *server) doubted(now time.Time) bool {
	return !s.doubt.IsZero() || s.failures > 0 || s.state != Closed || now.Before(s.wanted)
}

// lives notes a sign of life. One that only half convinces leaves the breaker half-open. A check that began before
// something went wrong does not count against that.
func (b *Board) lives(s *server, at time.Time, half bool) {
	s.alive, s.failures, s.trial = at, 0, time.Time{}
	if at.After(s.doubt) {
		s.doubt = time.Time{}
	}
	to := Closed
	if half {
		to = HalfOpen
		s.wait = soonest
	}
	b.turn(s, to)
}

func (b *Board) failed(s *server, err error) {
	s.failures++
	s.why, s.trial = err, time.Time{}
	if s.state == HalfOpen || s.failures >= b.policy.Failures {
		b.turn(s, Open)
	}
}

// turn changes a breaker.
func (b *Board) turn(s *server, to State) {
	if s.state == to {
		return
	}
	s.state = to
	switch to {
	case Open:
		b.log.Warn("server is left alone until it answers again", "backend", s.name, "breaker", to, "failures", s.failures, "error", s.why)
	default:
		b.log.Info("server answers again", "backend", s.name, "breaker", to)
	}
}

// soon has a server checked, unless it is about to be.
func (b *Board) soon(s *server, was bool) {
	if was || s.asking {
		return
	}
	s.next, s.wait = time.Now(), soonest
	b.poke()
}

func (b *Board) poke() {
	select {
	case b.poked <- struct{}{}:
	default:
	}
}

// about calls f for a server, if there is one of that name.
func (b *Board) about(name string, f func(s *server)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.servers[strings.ToLower(name)]; s != nil {
		f(s)
	}
}

// Succeeded notes that a server has taken a player, or at least answered one.
func (b *Board) Succeeded(name string) {
	b.about(name, func(s *server) { b.lives(s, time.Now(), false) })
}

// Failed notes that a server could not be reached.
func (b *Board) Failed(name string, err error) {
	b.about(name, func(s *server) {
		was := s.doubted(time.Now())
		b.failed(s, err)
		b.soon(s, was)
	})
}

// Doubt notes trouble that need not be the server's fault. The server is checked.
func (b *Board) Doubt(name string) {
	b.about(name, func(s *server) {
		now := time.Now()
		was := s.doubted(now)
		s.doubt, s.trial = now, time.Time{}
		b.soon(s, was)
	})
}

// Want says that somebody waits for a sign of life of a server. It is checked, repeatedly as long as Want is called
// every second or so.
func (b *Board) Want(name string) {
	b.about(name, func(s *server) {
		now := time.Now()
		was := s.doubted(now)
		s.wanted = now.Add(wanting)
		b.soon(s, was)
	})
}

// AliveSince reports whether a server has shown a sign of life after t.
func (b *Board) AliveSince(name string, t time.Time) (yes bool) {
	b.about(name, func(s *server) { yes = s.alive.After(t) })
	return yes
}

// Usable reports whether a player who can go elsewhere may be sent to a server. Draining servers take nobody at all;
// [Board.Draining] tells that.
func (b *Board) Usable(name string) bool {
	yes := true
	b.about(name, func(s *server) {
		yes = s.state == Closed || s.state == HalfOpen && !time.Now().Before(s.trial)
	})
	return yes
}

// Take says that a player is sent to a server. With a half-open breaker that player is the one who may try, until the
// outcome is known.
func (b *Board) Take(name string) {
	b.about(name, func(s *server) {
		if s.state == HalfOpen {
			s.trial = time.Now().Add(trying)
		}
	})
}

// Drain sets whether a server is to get no new players. It reports whether there is such a server.
func (b *Board) Drain(name string, on bool) (found bool) {
	b.about(name, func(s *server) {
		found = true
		if s.draining != on {
			s.draining = on
			b.log.Info("server is drained", "backend", s.name, "on", on)
		}
	})
	return found
}

// Draining reports whether a server is to get no new players.
func (b *Board) Draining(name string) (yes bool) {
	b.about(name, func(s *server) { yes = s.draining })
	return yes
}

// Facts describe one server.
type Facts struct {
	Server   string
	State    State
	Draining bool
	Failures int           // in a row
	Why      error         // the last of them
	Next     time.Time     // when it is checked again; zero: not planned
	Took     time.Duration // the last check that was answered; 0: there was none
}

// Servers returns the facts of all servers, by name.
func (b *Board) Servers() []Facts {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Facts, 0, len(b.servers))
	for _, s := range b.servers {
		all = append(all, Facts{s.name, s.state, s.draining, s.failures, s.why, s.next, s.took})
	}
	slices.SortFunc(all, func(x, y Facts) int { return strings.Compare(x.Server, y.Server) })
	return all
}

// Checks returns how many checks have failed so far, and how many were answered.
func (b *Board) Checks() (failed, answered uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[0], b.asked[1]
}
