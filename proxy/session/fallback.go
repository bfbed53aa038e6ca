package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/earshot-mc/earshot/proxy/backend"
	"github.com/earshot-mc/earshot/proxy/health"
	"github.com/earshot-mc/earshot/proxy/limit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// Strategy says which server of a list a player is offered first.
type Strategy uint8

// The strategies: the order of the list, chance, or where the fewest players are. The built-in world keeps its place in
// the first; in the others it comes last.
const (
	Sequential Strategy = iota
	Random
	LeastPlayers
	strategies
)

var strategyNames = [strategies]string{"sequential", "random", "least-players"}

// ParseStrategy finds a strategy by its name in the configuration.
func ParseStrategy(s string) (Strategy, error) {
	if i := slices.Index(strategyNames[:], s); i >= 0 {
		return Strategy(i), nil
	}
	return 0, fmt.Errorf("strategy %q does not exist; choose %s", s, strings.Join(strategyNames[:], ", "))
}

// Fallback says how players who are on no server find one. The zero Fallback is the default.
type Fallback struct {
	Strategy  Strategy
	Attempts  int           // servers tried in one chain, the built-in world apart; 0: all of the list, each once
	Within    time.Duration // how long one chain tries servers before only the built-in world is left: 60 s
	EndOnLoss bool          // a server that is lost without a kick ends the session instead
	Stranded  bool          // players stay in the built-in world even when a server is up again
	Moves     limit.Rate    // players taken out of it, or off draining servers; zero: 20 a second
}

// Waits of a player in the built-in world because no server took them.
const (
	lookEvery    = time.Second     // between looks for a server that has given a sign of life
	firstRefusal = 2 * time.Second // from the server's refusal to the next look, at first
	lastRefusal  = time.Minute     // and at last
)

// resettle is the pause between attempts to take the same player off a draining server.
const resettle = 5 * time.Second

// say returns a text for the player.
func (s *Session) say(key string, named ...string) packet.Text {
	if say := s.core.cfg.Say; say != nil {
		return say(s.Locale(), key, named...)
	}
	return packet.Plain(key + " " + strings.Join(named, " "))
}

// choose picks the server of a list for a player, or a connection to be passed on, that is not on its way anywhere; may
// filters. nil: none qualifies. Draining servers get nobody. One with an open breaker is passed over as long as there
// is another one, and restricted ones are for those who may join them. The choice is noted at once, so that many who
// choose at the same time spread.
func (s *Session) choose(names []string, may func(*backend.Server) bool) *backend.Server {
	c, set := s.core, s.set()
	c.choosing.Lock()
	defer c.choosing.Unlock()
	var usable, shut, limbo []*backend.Server
	for _, name := range names {
		b := set.server(name)
		switch {
		case b == nil || c.board.Draining(b.Name) || !s.admits(b) || !may(b):
		case !c.board.Usable(b.Name):
			shut = append(shut, b)
		case b.Limbo && set.Fallback.Strategy != Sequential:
			limbo = append(limbo, b)
		default:
			usable = append(usable, b)
		}
	}
	for _, list := range [][]*backend.Server{usable, limbo, shut} {
		if len(list) == 0 {
			continue
		}
		b := list[0]
		switch set.Fallback.Strategy {
		case Random:
			b = list[rand.N(len(list))]
		case LeastPlayers:
			on := c.population()
			b = slices.MinFunc(list, func(x, y *backend.Server) int { // the first of those with the fewest
				return on[strings.ToLower(x.Name)] - on[strings.ToLower(y.Name)]
			})
		}
		c.board.Take(b.Name)
		at, _ := s.route.where.get()
		s.route.where.set(at, b.Name)
		return b
	}
	return nil
}

// population returns how many players and passed-on connections are on each server or on the way there, by lower-case
// name.
func (c *Core) population() map[string]int {
	on := map[string]int{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.live {
		at, to := s.route.where.get()
		if to != "" {
			at = to
		}
		on[strings.ToLower(at)]++
	}
	return on
}

// judge tells the board the outcome of dialling a server, as far as it says something about the server and not about
// the player. If either may be to blame, a check finds out: a client must not be able to shut a server. asked tells
// whether the client had a part in the login, and so may be to blame for a missing answer.
func (c *Core) judge(server string, err error, asked bool) {
	var kick *backend.KickError
	var op *net.OpError
	late := isTimeout(err) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case err == nil, errors.As(err, &kick):
		c.board.Succeeded(server)
	case errors.Is(err, backend.ErrNeedsNewer), errors.Is(err, backend.ErrNoPlayerAddr):
	case errors.As(err, &op) && op.Op == "dial", late && !asked:
		c.board.Failed(server, err)
	default:
		c.board.Doubt(server)
	}
}

// check asks a server whether it is there.
func (c *Core) check(ctx context.Context, server string) error {
	set := c.settings.Load()
	b := set.server(server)
	if b == nil {
		return fmt.Errorf("there is no server %q", server)
	}
	if set.TCPChecks {
		conn, err := b.Open(ctx, netip.AddrPort{}, set.Health.Timeout)
		if err == nil {
			conn.Close()
		}
		return err
	}
	_, err := backend.Ping(ctx, *b, backend.Question{Protocol: proto.Newest().Protocol}, set.Health.Timeout)
	return err
}

// stranded reports whether a player who has come to the built-in world along the list is only there because no other
// server of it took them.
func (s *Session) stranded(l *link) bool {
	set := s.set()
	if !l.server.Limbo || !l.planned || set.Fallback.Stranded {
		return false
	}
	last := s.route.plan.first != nil || set.Fallback.Strategy != Sequential
	for _, name := range s.tryList() {
		switch b := set.server(name); {
		case b == nil || !s.admits(b):
		case !b.Limbo:
			return true
		case !last:
			return false // it was their first choice
		}
	}
	return false
}

// holding notes whether the player waits in the built-in world.
func (s *Session) holding(on bool) {
	h := &s.route.hold
	if h.on != on {
		h.on = on
		if on {
			s.core.Counters.Held.Add(1)
		} else {
			s.core.Counters.Held.Add(-1)
		}
	}
	if on {
		h.told = ""
		h.next = time.Now().Add(health.Jitter(max(h.wait, lookEvery)))
	}
}

// look takes a player out of the built-in world when a server of the list has shown life since it last lost or refused
// them.
func (s *Session) look() {
	h, c := &s.route.hold, s.core
	h.next = time.Now().Add(health.Jitter(lookEvery))
	if l := s.route.current; l == nil || !l.server.Limbo || !s.screen.playing || s.route.attempt != nil || s.route.inflight != nil {
		return
	}
	ready := func(b *backend.Server) bool {
		return !b.Limbo && s.admits(b) && c.board.Usable(b.Name) && c.board.AliveSince(b.Name, h.missed[strings.ToLower(b.Name)])
	}
	set, any := s.set(), false
	for _, name := range s.tryList() {
		b := set.server(name)
		switch {
		case b == nil || b.Limbo || c.board.Draining(b.Name) || !s.admits(b):
		case ready(b):
			any = true
		default:
			c.board.Want(b.Name)
		}
	}
	if !any || !c.moves.Load().Allow() {
		return
	}
	if _, to := s.route.where.get(); to != "" {
		return // a request of the player's is on its way
	}
	if b := s.choose(s.tryList(), ready); b != nil {
		if h.told == "" { // else they have heard that it is up and does not want them
			s.tell(s.say("held-return", "server", b.Name))
		}
		s.connect(b, true)
	}
}

// Emptied reports on the players who were on a server, or on the way there, when it was to be emptied.
type Emptied struct {
	Players, Moved, Left int      // all; of these, on another server now; and gone from the proxy
	Nowhere, Refused     []string // still there: no other server of the list is up; no other took them
}

// Drain sets whether a server is to get no new players, and whether its players are taken to other servers. With move,
// done is called once, from another goroutine, when each of them has been tried; done may be nil. Players who could not
// be moved are tried again every few seconds.
func (c *Core) Drain(server string, on, move bool, done func(Emptied)) error {
	b := c.settings.Load().server(server)
	switch {
	case b == nil:
		return noServer(server)
	case b.Limbo:
		return refusal("the built-in world cannot be drained", "drain-limbo")
	case !c.board.Drain(b.Name, on):
		return noServer(server)
	}
	if on && move {
		if done == nil {
			done = func(Emptied) {}
		}
		c.empty(b.Name, done)
	}
	return nil
}

// empty takes all players who are on a draining server, or on the way there, to other servers, a few at a time. A
// second order starts over.
func (c *Core) empty(server string, done func(Emptied)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil {
		return
	}
	turn := new(int) // its address tells turns apart
	c.emptying[server] = turn
	mine := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.emptying[server] == turn && c.board.Draining(server)
	}
	var leaving []*Session
	for _, s := range c.players.all() {
		if s.bound(server) {
			leaving = append(leaving, s)
		}
	}
	c.tasks.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.emptying[server] == turn {
				delete(c.emptying, server)
			}
		}()
		everybody, nowhere := leaving, map[*Session]bool{}
		remaining := func(s *Session) bool { return c.players.get(s.client.id) == s && s.bound(server) }
		for told := false; ; {
			for _, s := range leaving {
				for mine() && !c.moves.Load().Allow() {
					if !c.pause(50 * time.Millisecond) {
						return
					}
				}
				if mine() && remaining(s) {
					nowhere[s] = !s.displace(server)
				}
			}
			if !told {
				told = true
				if !c.underWay(leaving) {
					return
				}
				done(c.emptied(everybody, remaining, nowhere))
			}
			leaving = slices.DeleteFunc(slices.Clone(leaving), func(s *Session) bool { return !remaining(s) })
			if len(leaving) == 0 || !mine() || !c.pause(resettle) || !mine() {
				return
			}
		}
	})
}

// arriveWithin bounds the wait of a drain's report for players who are on their way.
const arriveWithin = 15 * time.Second

// underWay waits until nobody of all is on the way to another server, or for arriveWithin. It returns false at the end
// of the Core.
func (c *Core) underWay(all []*Session) bool {
	for end := time.Now().Add(arriveWithin); time.Now().Before(end); {
		if !slices.ContainsFunc(all, func(s *Session) bool {
			_, to := s.route.where.get()
			return to != "" && c.players.get(s.client.id) == s
		}) {
			break
		}
		if !c.pause(50 * time.Millisecond) {
			return false
		}
	}
	return true
}

// emptied counts where the players of a drained server have gone.
func (c *Core) emptied(everybody []*Session, remaining func(*Session) bool, nowhere map[*Session]bool) Emptied {
	e := Emptied{Players: len(everybody)}
	for _, s := range everybody {
		switch {
		case c.players.get(s.client.id) != s:
			e.Left++
		case !remaining(s):
			e.Moved++
		case nowhere[s]:
			e.Nowhere = append(e.Nowhere, s.client.name)
		default:
			e.Refused = append(e.Refused, s.client.name)
		}
	}
	slices.Sort(e.Nowhere)
	slices.Sort(e.Refused)
	return e
}

// pause waits for d, and reports whether the Core is still there.
func (c *Core) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// bound reports whether the player is on a server or on the way there.
func (s *Session) bound(server string) bool {
	at, to := s.route.where.get()
	return strings.EqualFold(at, server) || strings.EqualFold(to, server)
}

// displace begins to take the player from a draining server to another one, unless they are on their way. It returns
// false when there is none.
func (s *Session) displace(from string) bool {
	if _, to := s.route.where.get(); to != "" {
		return true
	}
	b := s.choose(s.tryList(), func(b *backend.Server) bool {
		return !strings.EqualFold(b.Name, from) && s.core.board.Usable(b.Name)
	})
	if b == nil {
		s.log.Info("there is no server to take the player to from a draining one", "backend", from)
		return false
	}
	s.post(letter{do: func() {
		switch l := s.route.current; {
		case s.route.attempt != nil || s.route.inflight != nil: // overtaken; the destination is noted
		case l == nil || !strings.EqualFold(l.name, from):
			at, _ := s.route.where.get()
			s.route.where.set(at, "")
		default:
			s.route.draining = l.name
			s.tell(s.say("drained", "server", l.name, "to", b.Name))
			s.connect(b, true)
		}
	}})
	return true
}
