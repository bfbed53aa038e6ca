// Package sight decides who is shown to whom, who stands in one place and who has vanished, from what the servers send
// their players anyway: entries of the player list, bodies, ages and seeds of worlds.
//
// T is shown to L while L has a body or an entry of T. They are in one place if server and world have one name and
// nothing tells the worlds apart; a body of one in the other's world is the better witness, also of the world of a
// client that is told no names of worlds. A player who sees without being seen has vanished; vanish.go says what else
// looks like that.
//
// The taps (the methods of [Session]) note bits under the lock of one server and return. [Network.Settle], a turn,
// works out the consequences, for changed rows and for doubts whose time is up.
package sight

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Times and distances of the rule.
const (
	Grace   = 500 * time.Millisecond // without entry and body until a player is hidden: a skin refresh is shorter
	Missing = 3 * time.Second        // a one-sided absence that no removal explains, until it counts
	Settled = time.Second            // in a world, until a player's sight is a testimony
	Switch  = 5 * time.Second        // between two servers, while the last verdict stays
	Absent  = 2 * time.Second        // a mutual absence on an honest server, until it counts
	Silent  = 10 * time.Second       // nobody shown to anybody, until it is logged
	race    = 2 * time.Second        // by which a body may be ahead of its player's login
	ahead   = 500 * time.Millisecond // by which one may be ahead of its player's respawn
	persist = 500 * time.Millisecond // a body between worlds that differ, until it is believed
	lesson  = 10 * time.Minute       // a point is forgotten after this; a server must be honest for as long

	Near     = 24 // blocks within which two players are tracked for sure
	Touching = 16 // blocks between a body and where its player is, at most

	culling = 3 // points at which a server is known to cull
)

// Max bounds the UUIDs on one server's player lists. Those beyond count as hidden, which costs voice and not memory.
const Max = 1 << 16

// Mode says by what a server's players are shown to each other.
type Mode uint8

// The modes.
const (
	Seen     Mode = iota // by entries and bodies
	TabList              // by entries alone
	Everyone             // everybody to everybody
)

// Bodies says what missing bodies mean.
type Bodies uint8

// The meanings.
const (
	Learn  Bodies = iota // what the server has shown them to mean
	Hide                 // that somebody is hidden, always
	Ignore               // nothing, ever
)

// Rule holds a server's settings.
type Rule struct {
	Mode   Mode
	Bodies Bodies
	// As is the name of the server that it is the same as, by address; empty: itself. A change waits until the server
	// has no players.
	As string
}

// ParseRule reads the settings: seen, tab-list or everyone; and learn, hide or ignore, empty for learn.
func ParseRule(visibility, bodies string) (r Rule, err error) {
	switch visibility {
	case "seen":
	case "tab-list":
		r.Mode = TabList
	case "everyone":
		r.Mode = Everyone
	default:
		return r, fmt.Errorf("%q is no visibility: write seen, tab-list or everyone", visibility)
	}
	switch bodies {
	case "", "learn":
	case "hide":
		r.Bodies = Hide
	case "ignore":
		r.Bodies = Ignore
	default:
		return r, fmt.Errorf("missing-bodies cannot be %q: write learn, hide or ignore", bodies)
	}
	return r, nil
}

// Network holds all servers and the players on them.
type Network struct {
	Log *slog.Logger // may be nil; set before the first Session

	mu      sync.Mutex
	rules   map[string]Rule
	other   Rule // of servers that have none
	servers map[string]*server
	called  map[string]*alias // of servers with players, by their own names
	warned  map[string]bool

	dirty atomic.Bool
	poked atomic.Bool
	news  news
}

// alias is the name under which players came to a server. It stays while any of them is there, and so does everything
// known under it.
type alias struct {
	own     string // of the server
	name    string
	players int
}

// New returns a network without players.
func New() *Network {
	n := &Network{servers: map[string]*server{}, called: map[string]*alias{}, warned: map[string]bool{}}
	n.news.revealed = map[*Session]struct{}{}
	return n
}

// SetRules sets the rules of servers, by name; other is for those without a name there.
func (n *Network) SetRules(rules map[string]Rule, other Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules, n.other = rules, other
	for name, v := range n.servers {
		v.mu.Lock()
		if r := n.rule(name); r != v.rule {
			v.rule = r
			v.amnesty()
		}
		v.mu.Unlock()
	}
	n.dirty.Store(true)
}

func (n *Network) rule(name string) Rule {
	if r, ok := n.rules[name]; ok {
		return r
	}
	return n.other
}

// Name returns the name under which a server is known here: its own, or that of the one that it is the same as.
func (n *Network) Name(server string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name(server)
}

func (n *Network) name(server string) string {
	if a := n.called[server]; a != nil {
		return a.name
	}
	if as := n.rule(server).As; as != "" {
		return as
	}
	return server
}

// Session is one player's connection. Its methods may be called from any goroutine.
type Session struct {
	Name string
	P    uuid.UUID                            // as the proxy knows the player
	Self any                                  // the owner's session
	At   func() (x, y, z float64, known bool) // the player's place; must not block
	Poke func()                               // called when a turn has something to do; must not block

	net     *Network
	located atomic.Pointer[World]
	public  atomic.Bool // not vanished, and known to be somewhere
	seated  atomic.Pointer[seat]

	// ByNumber is whether the player's client is told the number of a dimension, and no name of its world, as before
	// 1.16.
	ByNumber bool

	waiting    atomic.Bool // among the news
	prev, next *Session    // there

	mu sync.Mutex // guards against changes of server
}

// seat is a session on a server.
type seat struct {
	*Session
	v       *server
	called  *alias // the server's own name
	slot    int
	s       uuid.UUID // as the server knows the player
	e       int32     // its entity id there
	stay    uint16    // counts worlds
	in      bool      // the server has let it into a world
	proven  bool      // the server has shown its UUID under its entity id
	world   string    // where it is by all that is known
	told    string    // as the server has named that to the client
	loginAt time.Time
	movedAt time.Time // of the last login, respawn or teleport

	dead, spectator  bool
	had              bool  // it was sent a player's body in this server's time
	verdict, judged  bool  // vanished, as last found; found by witnesses here
	offList          bool  // lists tell nothing about it: some have its body and no entry
	byEntry          bool  // only players in its list are its witnesses, for want of bodies
	whole            bool  // the reader of the news has to read everything
	at               int32 // part of the world
	witnesses, blind int32
	count            int32         // of shown
	lists, listedBy  int32         // of how many it has an entry, and how many have one of it
	changed          time.Duration // when dead or spectator did, since the server is known; 0: never
	seed             int64
	age              int64
	ageAt            time.Time // zero: unknown in this stay
	news             []*Session

	// Whether it is in the server's list of this name.
	dirty, doubting, settling, suspected, lopsided, parting bool

	entries        set // by the server's list of UUIDs
	entryOf        set // by slot: players with an entry
	shown, shownTo set // the outcome, and from the other side
	taken, apart   set // nil: nobody. Without their bodies; elsewhere in a world of the same name
	bodies         few // bodies that the server shows now: by the present entity id and stay
	odd            []body
	seenBy         few           // players who have its body, odd or not
	oneWay         few           // players with an entry and no body, who have this one's body
	gone           []doubt       // sorted by slot
	lost           []loss        // of bodies that went near by, sorted by slot
	veil           *veil         // nil: it is hidden from nobody it sees
	knew           set           // who was shown it when it was last found to have vanished
	knewAt         time.Time     // when
	bare           time.Duration // since when some have its body and no entry, from when the server is known; 0: nobody
}

// sending says that a player was sent the body of another one: their slots, and the time in beats since the server is
// known, modulo 2^16.
type sending struct{ of, to, at uint16 }

const (
	sendings = 2048 // at most, that are remembered
	beat     = 10 * time.Millisecond
)

// body is an entity that is a player by the UUID alone, or was one in a former stay.
type body struct {
	id   int32
	slot uint16
	stay uint16
}

// doubt is a player who is still shown for a while without entry and body.
type doubt struct {
	until time.Duration // since the server is known
	slot  uint16
}

// few is a set of a few slots, sorted.
type few []uint16

// find does as slices.BinarySearch, in half the time.
func (f few) find(i int) (int, bool) {
	from, to := 0, len(f)
	for from < to {
		if mid := int(uint(from+to) / 2); f[mid] < uint16(i) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from, from < len(f) && f[from] == uint16(i)
}

func (f few) has(i int) bool {
	_, ok := f.find(i)
	return ok
}

func (f *few) add(i int) {
	if at, ok := f.find(i); !ok {
		*f = slices.Insert(*f, at, uint16(i))
	}
}

func (f *few) del(i int) (was bool) {
	at, ok := f.find(i)
	if ok {
		*f = slices.Delete(*f, at, at+1)
	}
	return ok
}

type set []uint64

func (s set) has(i int) bool { return i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }

// each calls visit for every slot in the set. It may leave out slots that visit adds.
func (s set) each(visit func(i int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(i*64 + bits.TrailingZeros64(word))
		}
	}
}

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }
func (s set) del(i int) {
	if i/64 < len(s) {
		s[i/64] &^= 1 << (i % 64)
	}
}

func (s set) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *set) grow(words int) {
	if len(*s) < words {
		grown := make(set, words) // and no room beyond: there are many
		copy(grown, *s)
		*s = grown
	}
}

// put adds to a set that may be too short still.
func (s *set) put(i int) {
	s.grow(i/64 + 1)
	s.add(i)
}

// pair is a listener's and a talker's slot.
type pair uint32

func of(l, t int) pair        { return pair(l)<<16 | pair(t) }
func (p pair) l() int         { return int(p >> 16) }
func (p pair) t() int         { return int(p & 0xffff) }
func (p pair) back() pair     { return of(p.t(), p.l()) }
func (p pair) has(i int) bool { return p.l() == i || p.t() == i }

// loss is the loss of a body while the two were near.
type loss struct {
	at      time.Duration // since the server is known
	slot    uint16        // whose body
	counted bool
}

// sighting is an entity that appeared and was nobody's. A login may follow it.
type sighting struct {
	by int
	id int32
	u  uuid.UUID
	at time.Time
}

const sightings = 1024 // at most, that are remembered

// server holds everything known about one server.
type server struct {
	name string
	rule Rule

	mu    sync.Mutex
	born  time.Time
	seats []*seat // by slot; nil where free
	free  []int
	words int // of sets by slot
	n     int
	in    set // by slot: players in a world
	pairs int // of shown, in all
	byE   map[int32]*seat
	byS   map[uuid.UUID][]*seat
	byP   map[uuid.UUID][]*seat // where that is another one

	uuids map[uuid.UUID]int // slots of the list of UUIDs
	ids   []uuid.UUID
	refs  []int32
	spare []int

	worlds   map[string][]*part
	byNumber int // how many seats have clients that know of no names
	recent   []sighting
	oldest   int
	sent     []sending
	first    int // of sent

	// Seats that a turn has to look at, each with a mark that it is there. One may have left.
	dirty     []*seat // their rows have changed
	doubting  []*seat // some are shown to them for a while only
	settling  []*seat // have moved lately
	suspected []*seat // may have vanished, or come back
	lopsided  []*seat // have somebody in oneWay
	parting   []*seat // may be in another part of their world than last told

	// By slot: players who testify to everybody, and players who testify only to players that nobody else is shown.
	witness, narrow set
	open, reads     set  // players with open eyes; players whose list also tells of others
	testified       bool // one of these has changed since the last turn
	small           bool // two players at most are not vanished, and both testify
	firm            int  // how many have been vanished for a while
	veiled          []*seat
	scratch, none   set

	asym   map[pair]time.Time
	absent map[pair]time.Time
	clash  map[pair]time.Time

	ages         bool // it sends any
	noAges       bool // they tell nothing
	seeds        bool // they tell worlds apart
	noSeeds      bool
	points       int
	pointAt      time.Time
	culls        bool
	neverHonest  bool
	honestFor    time.Duration
	honestAt     time.Time
	honestOf     set
	dumb         time.Time // since when nobody is shown to anybody
	dumbSaid     bool
	walked       time.Time
	changedApart bool // pairs are apart since the last turn
	said         []string
}

// World is one of the worlds of a server: its name, and which of those that the server names so, 0 for most.
type World struct {
	Name string
	Part int
}

// part is one of the worlds that have one name on a server.
type part struct {
	world   *World
	members int
	age     int64
	ageAt   time.Time
	seed    int64
}

// Session returns a session of a player; p is the proxy's UUID of them. It is on no server.
func (n *Network) Session(name string, p uuid.UUID) *Session {
	return &Session{Name: name, P: p, net: n}
}

// World returns the session's world; the zero one if none is known. Where a server's worlds have names of their own, it
// has that name, once it is known, also for a client that has only been told a number.
func (s *Session) World() World {
	if w := s.located.Load(); w != nil {
		return *w
	}
	return World{}
}

// Public tells whether everybody may know about the player: not vanished, and known to be somewhere.
func (s *Session) Public() bool { return s.public.Load() }

// Server returns the session's server, by the name that [Network.Name] gives; empty: none.
func (s *Session) Server() string {
	if q := s.seated.Load(); q != nil {
		return q.v.name
	}
	return ""
}

func (s *Session) poke() {
	s.net.dirty.Store(true)
	if s.net.poked.Load() || s.net.poked.Swap(true) { // no turn has begun since then
		return
	}
	if s.Poke != nil {
		s.Poke()
	}
}

// Enter says that packets come from a server from now on, which knows the player by id (zero: as the proxy does).
// Everything from a former one is over.
func (s *Session) Enter(name string, id uuid.UUID) {
	s.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == uuid.Nil {
		id = s.P
	}
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	warn := id != s.P && !n.warned[name]
	if warn {
		n.warned[name] = true
	}
	called := name
	name = n.name(name)
	if n.called[called] == nil {
		n.called[called] = &alias{own: called, name: name}
	}
	n.called[called].players++
	v := n.servers[name]
	if v == nil {
		v = &server{
			name: name, born: time.Now(), rule: n.rule(name), byE: map[int32]*seat{}, byS: map[uuid.UUID][]*seat{}, byP: map[uuid.UUID][]*seat{},
			uuids: map[uuid.UUID]int{}, worlds: map[string][]*part{},
			asym: map[pair]time.Time{}, absent: map[pair]time.Time{}, clash: map[pair]time.Time{},
		}
		n.servers[name] = v
	}
	v.mu.Lock()
	q := v.sit(s, id)
	q.called = n.called[called]
	s.seated.Store(q)
	v.mu.Unlock()
	if warn && n.Log != nil {
		n.Log.Warn(called+" knows "+s.Name+" by another UUID than the proxy: voice works, but bans and permissions there go by the other one; set `forwarding` for "+called+", and the same on the server",
			"server", called, "there", id, "here", s.P)
	}
}

// Leave takes the session off its server.
func (s *Session) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.seated.Load()
	if q == nil {
		return
	}
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	v := q.v
	v.mu.Lock()
	v.rise(q)
	empty := v.n == 0
	s.seated.Store(nil)
	v.mu.Unlock()
	if a := q.called; a.players > 1 {
		a.players--
	} else {
		delete(n.called, a.own)
	}
	if empty { // a restart empties a server; its lessons end there
		delete(n.servers, v.name)
	}
	n.news.put(s)
	if s.public.Load() {
		time.AfterFunc(Switch, s.late)
	}
	s.poke()
}

// late ends the verdict of a session that is still between servers.
func (s *Session) late() {
	s.mu.Lock()
	q := s.seated.Load()
	changed := false
	if q == nil {
		changed = s.reveal(false)
	} else {
		q.v.mu.Lock()
		changed = !q.in && s.reveal(false)
		q.v.mu.Unlock()
	}
	s.mu.Unlock()
	if changed {
		s.poke()
	}
}

// reveal sets whether everybody may know about the player, and tells whether that is new.
func (s *Session) reveal(public bool) (changed bool) {
	if s.public.Swap(public) == public {
		return false
	}
	s.net.news.reveal(s)
	return true
}

// Close ends the session: it is on no server and not public.
func (s *Session) Close() {
	s.Leave()
	s.mu.Lock()
	if s.public.Swap(false) {
		s.poke()
	}
	s.mu.Unlock()
	s.net.news.forget(s)
}

// tap runs a tap on the session's server.
func (s *Session) tap(do func(v *server, q *seat) (poke bool)) {
	q := s.seated.Load()
	if q == nil {
		return
	}
	q.v.mu.Lock()
	poke := q.v.seats[q.slot] == q && do(q.v, q)
	q.v.mu.Unlock()
	if poke {
		s.poke()
	} else if !s.net.dirty.Load() { // else the players' goroutines would fight for it
		s.net.dirty.Store(true)
	}
}

// read looks at the session's server.
func (s *Session) read(do func(v *server, q *seat)) {
	q := s.seated.Load()
	if q == nil {
		return
	}
	q.v.mu.Lock()
	defer q.v.mu.Unlock()
	if q.v.seats[q.slot] == q {
		do(q.v, q)
	}
}

// Login says that the server has let the player into a world, as an entity. seed 0 is unknown.
func (s *Session) Login(e int32, world string, seed int64) {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool {
		v.nameless(q)
		if o := v.byE[e]; o != nil {
			v.nameless(o)
		}
		q.e = e
		v.byE[e] = q
		q.loginAt = now
		if !q.in {
			q.in = true
			v.in.add(q.slot)
			v.refresh(q)
			for _, o := range v.seats { // those who have its entry already are shown it now
				if o != nil && (v.rule.Mode == Everyone || o.entryOf.has(q.slot)) {
					v.mark(o)
				}
			}
			for _, o := range q.seenBy {
				v.mark(v.seats[o])
			}
		}
		v.enter(q, world, seed, now)
		for _, r := range v.recent {
			if now.Sub(r.at) <= race && v.seats[r.by] != nil && (r.id == e || r.u == q.s || r.u == q.P) {
				v.spawned(v.seats[r.by], r.id, r.u, 0, 0, 0, false, now)
			}
		}
		return true
	})
}

// Outside says that the player is in no world of the server now, as in a configuration.
func (s *Session) Outside() {
	s.tap(func(v *server, q *seat) bool {
		v.enter(q, "", 0, time.Now())
		if q.in {
			q.in = false
			v.in.del(q.slot)
			q.shown.each(func(t int) {
				v.seats[t].shownTo.del(q.slot)
				v.suspect(v.seats[t])
			})
			clear(q.shown)
			v.pairs -= int(q.count)
			q.count, q.gone = 0, nil
			q.shownTo.each(func(l int) { v.mark(v.seats[l]) })
			v.nameless(q)
			v.void(q)
			v.mark(q)
		}
		return true
	})
	if s.public.Load() {
		time.AfterFunc(Switch, s.late)
	}
}

// Respawn says that the player appears in a world, new or the same. All bodies are gone.
func (s *Session) Respawn(world string, seed int64) {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool {
		v.enter(q, world, seed, now)
		return true
	})
}

// Teleported says that the server has moved the player.
func (s *Session) Teleported() {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool { v.moved(q, now); return false })
}

// Spectates says whether the player is a spectator. Others are not sent the bodies of spectators.
func (s *Session) Spectates(on bool) {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool {
		if q.spectator != on {
			q.spectator, q.changed = on, v.since(now)
		}
		return false
	})
}

// Dead says whether the player is dead. Others lose a dead player's body until the respawn.
func (s *Session) Dead(on bool) {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool {
		if q.dead != on {
			q.dead, q.changed = on, v.since(now)
		}
		return false
	})
}

// Age says how old the player's world is, in ticks.
func (s *Session) Age(ticks int64) {
	now := time.Now()
	s.tap(func(v *server, q *seat) bool {
		v.ages = true
		q.age, q.ageAt = ticks, now
		return v.assign(q)
	})
}

// Show adds entries of players to the list that the player's client has.
func (s *Session) Show(ids ...uuid.UUID) {
	s.tap(func(v *server, q *seat) (poke bool) {
		for _, id := range ids {
			u, ok := v.intern(id)
			if !ok {
				break
			}
			if q.entries.has(u) {
				v.release(u)
				continue
			}
			q.entries.put(u)
			if v.entry(q, id, true) {
				poke = true
			}
		}
		return poke
	})
}

// Hide takes entries out of the list.
func (s *Session) Hide(ids ...uuid.UUID) {
	s.tap(func(v *server, q *seat) (poke bool) {
		for _, id := range ids {
			if u, ok := v.uuids[id]; ok && q.entries.has(u) {
				q.entries.del(u)
				if v.entry(q, id, false) {
					poke = true
				}
				v.release(u)
			}
		}
		return poke
	})
}

// HideAll empties the list.
func (s *Session) HideAll() {
	s.tap(func(v *server, q *seat) bool {
		for i, word := range q.entries {
			for ; word != 0; word &= word - 1 {
				v.release(i*64 + bits.TrailingZeros64(word))
			}
		}
		if q.entries.count() == 0 {
			return false
		}
		q.entries = nil
		for i, word := range q.entryOf {
			for ; word != 0; word &= word - 1 {
				v.unlisted(q, i*64+bits.TrailingZeros64(word))
			}
		}
		return true
	})
}

// Listed tells whether the list has an entry with this UUID.
func (s *Session) Listed(id uuid.UUID) (yes bool) {
	s.tap(func(v *server, q *seat) bool {
		u, ok := v.uuids[id]
		yes = ok && q.entries.has(u)
		return false
	})
	return yes
}

// Spawn says that an entity has just appeared to the player's client. now is the time, read by the caller.
func (s *Session) Spawn(now time.Time, id int32, u uuid.UUID, x, y, z float64) {
	s.tap(func(v *server, q *seat) bool { return v.spawned(q, id, u, x, y, z, true, now) })
}

// Destroy says that entities are gone from the player's client.
func (s *Session) Destroy(ids ...int32) {
	s.tap(func(v *server, q *seat) (poke bool) {
		if len(q.bodies) == 0 && len(q.odd) == 0 {
			return false
		}
		var now time.Time
		for _, id := range ids {
			t, present, ok := v.drop(q, id)
			if !ok {
				continue
			}
			if now.IsZero() {
				now = v.now()
			}
			// One of a former stay goes because its owner has gone into another world, or into this one again.
			if v.bodyGone(q, t, present, now) {
				poke = true
			}
		}
		return poke
	})
}

// The methods from here on are called with the server's lock held.

func (v *server) sit(s *Session, id uuid.UUID) *seat {
	q := &seat{Session: s, v: v, s: id}
	if n := len(v.free); n > 0 {
		q.slot, v.free = v.free[n-1], v.free[:n-1]
		v.seats[q.slot] = q
	} else {
		q.slot = len(v.seats)
		v.seats = append(v.seats, q)
		if words := (len(v.seats) + 63) / 64; words > v.words {
			v.words = words + words/16
			words = v.words
			for _, o := range v.seats {
				if o != nil {
					for _, x := range o.sets() {
						x.grow(words)
					}
				}
			}
		}
	}
	backing := make(set, len(q.sets())*v.words)
	for i, x := range q.sets() {
		*x = backing[i*v.words : (i+1)*v.words : (i+1)*v.words]
	}
	for _, x := range []*set{&v.in, &v.witness, &v.narrow, &v.open, &v.reads, &v.scratch, &v.none} {
		x.grow(v.words)
	}
	v.n++
	if s.ByNumber {
		v.byNumber++
	}
	v.void(q)
	q.at = -1
	v.byS[id] = append(v.byS[id], q)
	if id != s.P {
		v.byP[s.P] = append(v.byP[s.P], q)
	}
	v.intern(id)
	v.intern(s.P)
	v.concern(id, s.P)
	v.mark(q)
	s.located.Store(nil)
	return q
}

func (q *seat) sets() [3]*set { return [...]*set{&q.entryOf, &q.shown, &q.shownTo} }

func (v *server) rise(q *seat) {
	v.unpart(q)
	for i, word := range q.entries {
		for ; word != 0; word &= word - 1 {
			v.release(i*64 + bits.TrailingZeros64(word))
		}
	}
	drop := func(m map[uuid.UUID][]*seat, id uuid.UUID) {
		m[id] = slices.DeleteFunc(m[id], func(o *seat) bool { return o == q })
		if len(m[id]) == 0 {
			delete(m, id)
		}
	}
	q.entryOf.each(func(t int) { v.seats[t].listedBy-- })
	if q.veil != nil { // whoever has read from whom the player is hidden
		q.net.news.reveal(q.Session)
	}
	drop(v.byS, q.s)
	drop(v.byP, q.P)
	for _, id := range []uuid.UUID{q.s, q.P} {
		if u, ok := v.uuids[id]; ok {
			v.release(u)
		}
	}
	if v.byE[q.e] == q {
		delete(v.byE, q.e)
	}
	for _, l := range q.seenBy {
		o := v.seats[l]
		o.bodies.del(q.slot)
		o.odd = slices.DeleteFunc(o.odd, func(b body) bool { return int(b.slot) == q.slot })
		v.suspect(o)
	}
	for _, t := range q.bodies {
		v.seats[t].seenBy.del(q.slot)
	}
	for _, b := range q.odd {
		v.seats[b.slot].seenBy.del(q.slot)
	}
	v.seats[q.slot] = nil
	v.free = append(v.free, q.slot)
	v.n--
	if q.ByNumber {
		v.byNumber--
	}
	v.pairs -= int(q.count)
	v.in.del(q.slot)
	if v.witness.has(q.slot) || v.narrow.has(q.slot) {
		v.testified = true
	}
	for _, x := range []set{v.witness, v.narrow, v.open, v.reads} {
		x.del(q.slot)
	}
	for _, o := range v.seats {
		if o == nil {
			continue
		}
		if o.shown.has(q.slot) {
			o.count--
			v.pairs--
			o.note(q.Session)
			v.mark(o)
		}
		if o.entryOf.has(q.slot) {
			o.lists--
		}
		for _, x := range o.sets() {
			x.del(q.slot)
		}
		o.taken.del(q.slot)
		o.apart.del(q.slot)
		o.oneWay.del(q.slot)
		o.believe(q.slot)
		o.finds(q.slot)
		if o.veil != nil && o.veil.from.has(q.slot) {
			o.veil.from.del(q.slot)
			o.net.news.reveal(o.Session)
			v.suspect(o)
		}
	}
	v.forget(func(p pair) bool { return p.has(q.slot) })
	for i := range v.recent {
		if v.recent[i].by == q.slot {
			v.recent[i].at = time.Time{}
		}
	}
	v.concern(q.s, q.P)
}

func (v *server) forget(which func(pair) bool) {
	for _, m := range []map[pair]time.Time{v.asym, v.absent, v.clash} {
		for p := range m {
			if which(p) {
				delete(m, p)
			}
		}
	}
}

// losses are how many lost bodies a player has, at most.
const losses = 256

// loses finds the loss of a body.
func (q *seat) loses(t int) (int, bool) {
	from, to := 0, len(q.lost)
	for from < to {
		if mid := int(uint(from+to) / 2); q.lost[mid].slot < uint16(t) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from, from < len(q.lost) && q.lost[from].slot == uint16(t)
}

// finds forgets the loss of a body.
func (q *seat) finds(t int) {
	if at, ok := q.loses(t); ok {
		q.lost = slices.Delete(q.lost, at, at+1)
	}
}

// now returns the time by the monotonic clock alone, which is read in half the time.
func (v *server) now() time.Time { return v.born.Add(time.Since(v.born)) }

// since returns a time as a duration since the server is known, never 0, in a third of the memory.
func (v *server) since(t time.Time) time.Duration { return max(t.Sub(v.born), 1) }
func (v *server) beat(t time.Time) uint16         { return uint16(v.since(t) / beat) }

// mark has a turn work out a player's row.
func (v *server) mark(q *seat) {
	if !q.dirty {
		q.dirty = true
		v.dirty = append(v.dirty, q)
	}
}

// suspect has a turn ask whether a player has vanished.
func (v *server) suspect(q *seat) {
	if !q.suspected {
		q.suspected = true
		v.suspected = append(v.suspected, q)
	}
}

// moved notes that a player has just come to their place.
func (v *server) moved(q *seat, now time.Time) {
	q.movedAt = now
	if !q.settling {
		q.settling = true
		v.settling = append(v.settling, q)
	}
}

// intern finds or makes the slot of a UUID and takes a reference.
func (v *server) intern(id uuid.UUID) (int, bool) {
	u, ok := v.uuids[id]
	switch {
	case ok:
	case len(v.spare) > 0:
		u, v.spare = v.spare[len(v.spare)-1], v.spare[:len(v.spare)-1]
		v.ids[u], v.uuids[id] = id, u
	case len(v.ids) < Max:
		u = len(v.ids)
		v.ids, v.refs = append(v.ids, id), append(v.refs, 0)
		v.uuids[id] = u
	default:
		return 0, false
	}
	v.refs[u]++
	return u, true
}

func (v *server) release(u int) {
	if v.refs[u]--; v.refs[u] == 0 {
		delete(v.uuids, v.ids[u])
		v.spare = append(v.spare, u)
	}
}

// owner returns the player whose entries a UUID stands for: the one player that the server knows by it, or else the one
// that the proxy does.
func (v *server) owner(id uuid.UUID) *seat {
	if all := v.byS[id]; len(all) > 0 {
		if len(all) == 1 {
			return all[0]
		}
		return nil
	}
	if all := v.byP[id]; len(all) == 1 {
		return all[0]
	}
	return nil
}

// concern works out the entries of all players that UUIDs may name.
func (v *server) concern(ids ...uuid.UUID) {
	for _, id := range ids {
		for _, q := range v.byS[id] {
			v.refresh(q)
		}
		for _, q := range v.byP[id] {
			v.refresh(q)
		}
	}
}

// refresh works out who has an entry of a player.
func (v *server) refresh(t *seat) {
	us := t.names()
	for _, l := range v.seats {
		if l == nil || l == t {
			continue
		}
		if has := us[0] >= 0 && l.entries.has(us[0]) || us[1] >= 0 && l.entries.has(us[1]); has != l.entryOf.has(t.slot) {
			if has {
				v.listed(l, t.slot)
			} else {
				v.unlisted(l, t.slot)
			}
		}
	}
}

// names returns the slots of the UUIDs of the player's entries; -1: none.
func (q *seat) names() (us [2]int) {
	us = [2]int{-1, -1}
	for i, id := range []uuid.UUID{q.s, q.P} {
		if u, ok := q.v.uuids[id]; ok && q.v.owner(id) == q {
			us[i] = u
		}
	}
	return us
}

// entry notes that a UUID has been put on a list or taken off it.
func (v *server) entry(l *seat, id uuid.UUID, on bool) (poke bool) {
	t := v.owner(id)
	if t == nil || t == l {
		return false
	}
	if on {
		return v.listed(l, t.slot)
	}
	if us := t.names(); us[0] >= 0 && l.entries.has(us[0]) || us[1] >= 0 && l.entries.has(us[1]) {
		return false // they have another one
	}
	return v.unlisted(l, t.slot)
}

func (v *server) listed(l *seat, t int) (poke bool) {
	if l.entryOf.has(t) {
		return false
	}
	l.entryOf.add(t)
	l.lists++
	v.seats[t].listedBy++
	l.taken.del(t)
	delete(v.asym, of(l.slot, t))
	v.mark(l)
	return !l.shown.has(t) || len(l.gone) > 0
}

func (v *server) unlisted(l *seat, t int) (poke bool) {
	if l.entryOf.has(t) {
		l.entryOf.del(t)
		l.lists--
		v.seats[t].listedBy--
	}
	l.finds(t)
	v.mark(l)
	return v.doubt(l, t, time.Now())
}

// doubt gives a player without entry and body the time until they are hidden.
func (v *server) doubt(l *seat, t int, now time.Time) (poke bool) {
	if !l.shown.has(t) || v.raw(l, t) {
		return false
	}
	v.wait(l, t, now)
	return true
}

// wait gives a player that time, unless it runs already, and returns when it ends.
func (v *server) wait(l *seat, t int, now time.Time) (until time.Duration) {
	at, ok := l.doubts(t)
	if !ok {
		l.gone = slices.Insert(l.gone, at, doubt{now.Add(Grace).Sub(v.born), uint16(t)})
	}
	if !l.doubting {
		l.doubting = true
		v.doubting = append(v.doubting, l)
	}
	return l.gone[at].until
}

// doubts finds the doubt about a player.
func (q *seat) doubts(t int) (int, bool) {
	return slices.BinarySearchFunc(q.gone, uint16(t), func(d doubt, t uint16) int { return cmp.Compare(d.slot, t) })
}

// believe ends the doubt about a player.
func (q *seat) believe(t int) {
	if at, ok := q.doubts(t); ok {
		q.gone = slices.Delete(q.gone, at, at+1)
	}
}

// hasBody tells whether a player's world has another one's body.
func (q *seat) hasBody(t int) bool {
	return q.bodies.has(t) || len(q.odd) > 0 && slices.ContainsFunc(q.odd, func(b body) bool { return int(b.slot) == t })
}

// whose returns the player that an entity is the body of. e is the player who has its id on the server.
func (v *server) whose(l *seat, id int32, e *seat) (t int, ok bool) {
	if at, ok := l.oddly(id); ok {
		return int(l.odd[at].slot), true
	}
	if e != nil && l.bodies.has(e.slot) {
		return e.slot, true
	}
	return 0, false
}

// drop takes a body away and returns whose it was, and whether of the current stay. [server.bodyGone] has to follow.
func (v *server) drop(l *seat, id int32) (t int, present, ok bool) {
	if at, ok := l.oddly(id); ok {
		b := l.odd[at]
		l.odd = slices.Delete(l.odd, at, at+1)
		return int(b.slot), b.stay == v.seats[b.slot].stay, true
	}
	if t := v.byE[id]; t != nil && l.bodies.del(t.slot) {
		return t.slot, true, true
	}
	return 0, false, false
}

func (q *seat) oddly(id int32) (int, bool) {
	return slices.BinarySearchFunc(q.odd, id, func(b body, id int32) int { return cmp.Compare(b.id, id) })
}

// outdate turns the bodies that the server has shown of a player into those of a former stay, or of a former entity.
func (v *server) outdate(t *seat) {
	for _, at := range t.seenBy {
		l := v.seats[at]
		if !l.bodies.del(t.slot) {
			continue
		}
		if i, ok := l.oddly(t.e); !ok {
			l.odd = slices.Insert(l.odd, i, body{t.e, uint16(t.slot), t.stay})
		}
	}
}

// nameless takes its entity id from a player.
func (v *server) nameless(q *seat) {
	if v.byE[q.e] == q {
		v.outdate(q)
		delete(v.byE, q.e)
	}
}

// raw tells whether evidence shows one player to another now.
func (v *server) raw(l *seat, t int) bool {
	switch v.rule.Mode {
	case Everyone:
		return true
	case TabList:
		return l.entryOf.has(t)
	}
	return l.entryOf.has(t) && !l.taken.has(t) || l.hasBody(t)
}

// spawned takes an entity in, if it is a player's body. live tells whether it appears now.
func (v *server) spawned(l *seat, id int32, u uuid.UUID, x, y, z float64, live bool, now time.Time) (poke bool) {
	e := v.byE[id]
	if _, ok := v.whose(l, id, e); ok && !live {
		return false
	} else if ok { // in its place
		t, _, _ := v.drop(l, id)
		poke = v.bodyGone(l, t, false, now)
	}
	near := func(t *seat) bool {
		if t == l || !t.in {
			return false
		}
		tx, ty, tz, known := t.where()
		return !live || !known || within(tx-x, ty-y, tz-z, Touching)
	}
	t := e
	switch {
	case t != nil && near(t):
		if u != uuid.Nil && u == t.s && !t.proven {
			t.proven = true
			v.prove(t, now)
		}
	default:
		if t = nil; u != uuid.Nil {
			t = v.owner(u)
		}
		if t == nil || t.proven || !near(t) {
			if live {
				s := sighting{l.slot, id, u, now}
				if len(v.recent) < sightings {
					v.recent = append(v.recent, s)
				} else {
					v.recent[v.oldest], v.oldest = s, (v.oldest+1)%sightings
				}
			}
			return poke
		}
	}
	known := l.hasBody(t.slot)
	if e == t {
		l.bodies.add(t.slot)
		if x := (sending{uint16(t.slot), uint16(l.slot), v.beat(now)}); len(v.sent) < sendings {
			v.sent = append(v.sent, x)
		} else {
			v.sent[v.first], v.first = x, (v.first+1)%sendings
		}
	} else if i, ok := l.oddly(id); !ok {
		l.odd = slices.Insert(l.odd, i, body{id, uint16(t.slot), t.stay})
	}
	l.had = true
	if known {
		return poke
	}
	t.seenBy.add(l.slot)
	v.mark(l)
	v.mark(t)
	poke = v.came(l, t, now) || poke
	if l.seed != 0 && t.seed != 0 && l.seed != t.seed && l.at == t.at && l.world == t.world {
		v.noSeeds = true
	}
	if l.seed != 0 && t.seed == l.seed && l.world == t.world && !v.seeds && !v.noSeeds {
		v.seeds = true
		v.assignAll()
	}
	return poke || !l.shown.has(t.slot) || l.at != t.at || l.world != t.world
}

// reason returns when something last happened to the player that makes bodies go and come.
func (q *seat) reason() time.Time {
	if at := q.v.born.Add(q.changed); q.changed > 0 && at.After(q.movedAt) {
		return at
	}
	return q.movedAt
}

// came draws the conclusions from a body that has come: nobody is missing there any longer, and it may have been gone
// without reason.
func (v *server) came(l, t *seat, now time.Time) (poke bool) {
	p := of(l.slot, t.slot)
	l.taken.del(t.slot)
	if l.apart.has(t.slot) {
		l.apart.del(t.slot)
		t.apart.del(l.slot)
		l.note(t.Session)
		t.note(l.Session)
		v.changedApart, poke = true, true
	}
	if len(v.asym) > 0 {
		delete(v.asym, p)
	}
	if len(v.absent) > 0 {
		delete(v.absent, p)
		delete(v.absent, p.back())
	}
	at, ok := l.loses(t.slot)
	if !ok {
		return poke
	}
	x := l.lost[at]
	l.lost = slices.Delete(l.lost, at, at+1)
	since := v.born.Add(x.at - Settled) // a teleport comes by another connection, and may be ahead of its effects
	if x.counted || v.since(now)-x.at < Grace || !v.near(l, t, Near) || !fair(l, t) || l.reason().After(since) || t.reason().After(since) {
		return poke
	}
	points := 1
	if at, ok := t.loses(l.slot); ok && (t.lost[at].at-x.at).Abs() <= time.Second {
		points = 2
		t.lost[at].counted = true
	}
	if v.decay(now); v.points == 0 {
		v.pointAt = now
	}
	v.points, v.neverHonest = v.points+points, true
	if v.rule.Bodies != Learn {
		return poke
	}
	switch {
	case v.points >= culling && !v.culls:
		v.culls = true
		v.said = append(v.said, v.name+" takes players' bodies away and brings them back, as plugins against cheats do behind walls: missing bodies do not count there (missing-bodies)")
		v.amnesty()
		return true
	case v.ages: // it is not honest, so nobody is elsewhere for want of bodies
		for _, q := range v.seats {
			if q != nil && q.apart != nil {
				q.apart = nil
				v.void(q)
				v.changedApart, poke = true, true
			}
		}
	}
	return poke
}

// decay forgets a point for each [lesson] without new ones.
func (v *server) decay(now time.Time) {
	if forgotten := int(now.Sub(v.pointAt) / lesson); v.points > 0 && forgotten > 0 {
		v.points = max(0, v.points-forgotten)
		v.pointAt = v.pointAt.Add(time.Duration(forgotten) * lesson)
	}
}

// learnt tells whether missing bodies do not count because of the server's behaviour.
func (v *server) learnt() bool { return v.culls && v.rule.Bodies == Learn }

// amnesty has nobody missing, until new evidence finds somebody to be.
func (v *server) amnesty() {
	for _, q := range v.seats {
		if q != nil {
			q.taken, q.apart = nil, nil
			v.void(q)
			v.mark(q)
		}
	}
	clear(v.asym)
	clear(v.absent)
	v.changedApart = true
}

// bodyGone notes that one body of a player is gone; told tells whether the server has said so about this one.
func (v *server) bodyGone(l *seat, t int, told bool, now time.Time) (poke bool) {
	if l.hasBody(t) {
		return false
	}
	o := v.seats[t]
	v.mark(l)
	if o == nil {
		return false
	}
	o.seenBy.del(l.slot)
	v.mark(o)
	if told && fair(l, o) && l.entryOf.has(t) && v.near(l, o, Near) && len(l.lost) < losses {
		if at, ok := l.loses(t); ok {
			l.lost[at] = loss{at: v.since(now), slot: uint16(t)}
		} else {
			l.lost = slices.Insert(l.lost, at, loss{at: v.since(now), slot: uint16(t)})
		}
		poke = true
	}
	return v.doubt(l, t, now) || poke
}

// prove takes away entities that were taken for a player's body, when the server shows the player by their own id.
func (v *server) prove(t *seat, now time.Time) {
	for _, at := range slices.Clone(t.seenBy) {
		l := v.seats[at]
		l.odd = slices.DeleteFunc(l.odd, func(b body) bool { return int(b.slot) == t.slot && b.id != t.e })
		v.bodyGone(l, t.slot, false, now)
	}
}

// enter puts a player into a world.
func (v *server) enter(q *seat, world string, seed int64, now time.Time) {
	v.outdate(q)
	bodies, odd := q.bodies, q.odd
	q.bodies, q.odd = q.bodies[:0], nil
	left := func(t int) {
		if o := v.seats[t]; o.seenBy.del(q.slot) {
			v.mark(o)
			v.doubt(q, t, now)
		}
	}
	for _, t := range bodies {
		left(int(t))
	}
	for _, b := range odd {
		left(int(b.slot))
	}
	q.stay++
	for i := range v.sent {
		x := v.sent[(v.first+len(v.sent)-1-i)%len(v.sent)] // the last ones first
		const late = 10                                    // a caller that waited for the lock has an older clock
		if world == "" || v.beat(now)-x.at+late > uint16(ahead/beat)+late {
			break
		}
		l := v.seats[x.to]
		if int(x.of) != q.slot || l == nil {
			continue
		}
		if i, ok := l.oddly(q.e); ok && int(l.odd[i].slot) == q.slot { // it may well be the body in this world
			l.odd = slices.Delete(l.odd, i, i+1)
			l.bodies.add(q.slot)
			v.mark(l)
		}
	}
	v.moved(q, now)
	if q.dead {
		q.dead, q.changed = false, v.since(now)
	}
	q.taken = nil
	if q.apart != nil {
		q.apart = nil
		v.void(q)
	}
	q.lost = nil
	for _, o := range v.seats {
		if o == nil {
			continue
		}
		if o.finds(q.slot); o.taken == nil && o.apart == nil {
			continue
		}
		if o.apart.has(q.slot) {
			o.note(q.Session)
			o.apart.del(q.slot)
		}
		if o.taken.has(q.slot) {
			o.taken.del(q.slot)
			v.mark(o)
		}
	}
	for _, m := range []map[pair]time.Time{v.asym, v.absent, v.clash} {
		for p := range m {
			if p.has(q.slot) {
				delete(m, p)
			}
		}
	}
	v.unpart(q)
	q.world, q.told, q.seed, q.ageAt = world, world, seed, time.Time{}
	v.assign(q)
	v.mark(q)
}

func (q *seat) where() (x, y, z float64, known bool) {
	if q.At == nil {
		return 0, 0, 0, false
	}
	return q.At()
}

func (v *server) near(a, b *seat, blocks float64) bool {
	ax, ay, az, ok := a.where()
	bx, by, bz, also := b.where()
	return ok && also && within(ax-bx, ay-by, az-bz, blocks)
}

func within(dx, dy, dz, blocks float64) bool { return dx*dx+dy*dy+dz*dz <= blocks*blocks }
