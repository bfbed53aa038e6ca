// Package hub is the only writer of voice state. Joins, leaves and requests of clients come in from any goroutine and
// wait there as state; a turn takes them all, looks at the world, compiles the routing table and publishes it, and only
// then tells the clients.
//
// It promises that sound never waits for a turn, since a frame only loads the last table, and that a turn never waits
// for a socket, since every call of a [Client] returns at once.
package hub

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/roster"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// Times of the hub. Flush is ten ticks of the game.
const (
	Flush    = 500 * time.Millisecond // between passes that bring every reader up to date
	TierHold = 100 * time.Millisecond // between changes of one member's tier
	PoseGap  = 50 * time.Millisecond  // between pose lines to one member

	// AwayAfter is how long a page may be silent until it counts as away: the browser holds its connection while the
	// page itself sleeps.
	AwayAfter = 10 * time.Second

	idleFlush = 5 * time.Second // between the same while nobody is on the network

	gap      = 2 * time.Millisecond // at least, between two turns
	rest     = 4                    // times its own length of quiet after a turn, once its rosters', at most Flush
	lookTime = 2 * time.Millisecond // of one turn, for reading what players see, or as much as all else in the last one
	tellTime = 5 * time.Millisecond // of one turn, for rosters, or as much as all else in the last one

	tellAgain = 5 * time.Millisecond   // between looks whether a roster has left
	tellSoon  = 100 * time.Millisecond // in which it is expected to; after that a flush looks
)

// Client is the hub's hold on one connection. It is shown values that many clients share: it must not change them, and
// may keep them. Of each kind it needs only the newest. No method may block.
type Client interface {
	route.Receiver
	// ShowRoster shows who is in voice, as far as the player may know.
	ShowRoster(s *roster.Snapshot)
	// ShowPose shows where the client's own player is. Only with [Wants.Pose].
	ShowPose(p *world.Pose)
	// ShowMute shows the mute on the player, and ShowTiers the tiers that the server offers. Only with [Wants.Status].
	ShowMute(n *mute.Notice)
	ShowTiers(o *talk.Offer)
	// ShowNear shows where people with a voice are, the nearest first and [MostNear] at most, and ShowRights what the
	// player may do. ToggleMic asks to close an open microphone, or to open a closed one. Only with [Wants.Page].
	ShowNear(people []talk.Nearby)
	ShowRights(r talk.Rights)
	ToggleMic()
	// ShowGroups shows the groups. Only with [Wants.Groups].
	ShowGroups(p *group.Page)
	// Answer brings the result of a request of [Hub.Ask].
	Answer(r talk.GroupResult)
	// Waits tells whether the last roster has still to reach the player. Once it has not, the player has it before any
	// frame that is delivered from then on.
	Waits() bool
	// End ends the client, once it has told the player why as far as it can. Only the first reason counts.
	End(why End)
}

// End says why a client is ended.
type End uint8

// The reasons.
const (
	PlayerLeft   End = iota // the network
	Replaced                // by another client of the same player
	ShuttingDown            // voice is over, for now or for good
)

// Sent counts what clients have been sent.
type Sent struct {
	Frames uint64            // that went out
	Writes uint64            // system calls for all that went out
	Lost   map[string]uint64 // frames that could not, by reason
}

// Wants is what a client takes. A client of the zero value hears the people around it, and is told who they are.
type Wants struct {
	Status          bool // the state of people, the mute on the player, the tiers
	Pose, Groups    bool
	Speakers        bool // which speakers it may hear: from the speakers' set, not the hub
	Page            bool // who is around, what the player may do; see [Hub.ToggleMic]
	Clips, Channels bool // frames of these kinds
	Changes         bool // of the roster, each after the one before: a roster waits until the one before has left
}

// Member is one client in the hub.
type Member struct {
	route.Member
	client Client
	wants  Wants

	// The client's last requests. Its reader writes, the turn reads: state, not a queue, so that nothing piles up and
	// nothing is lost.
	deafen atomic.Uint32 // counts changes; odd is deafened. So the turn sees a change there and back
	tier   atomic.Uint32
	beat   atomic.Int64 // Unix ns of the last sign of life of a page

	// The turn's.
	at         int // index in members, -1 when not there
	deafenSeen uint32
	away       bool // a page that has been silent for [AwayAfter]
	tierNow    talk.Tier
	tierAt     time.Time
	copy       roster.Copy
	rosterAt   time.Time
	cut        bool // not everybody fitted into the roster
	telling    bool // the roster of then may still be queued
	shown      *world.Pose
	shownAt    time.Time

	bits   Bits
	judged bool       // bits and mute are in force as they are
	mute   mute.State // of now
	// What it has been told.
	muteShown  *mute.Notice
	offer      *talk.Offer
	page       *group.Page
	pageSent   time.Time
	near       []talk.Nearby
	nearTold   bool
	rights     talk.Rights
	rightsTold bool
	pageAt     uint64 // revision, view and permissions that page was made from
	pageView   uint64
	pageBits   Bits
}

// Hub runs the turns. Make one with [New].
type Hub struct {
	// To be set before Run.
	Log         *slog.Logger
	Permissions func(player uuid.UUID) Bits // called for each member in each turn; must not block. nil: [Open] for all
	Store       Store                       // of lasting state; nil: it does not last
	// Muted is called in a turn for each player on the network whose mute differs from before. It must not block. nil:
	// nobody is told.
	Muted func(player uuid.UUID, was, is mute.State)

	reg    *world.Registry
	policy route.Policy
	table  atomic.Pointer[route.Table]
	wake   chan struct{}
	ended  chan struct{} // closed when Run returns

	groupsOn atomic.Bool
	domains  atomic.Pointer[[]string]

	groupNames atomic.Pointer[[]string]

	mu    sync.Mutex
	inbox []arrival

	news   atomic.Bool // others have stored something
	counts atomic.Pointer[Counts]

	holding sync.Mutex
	held    []*replies // of turns in their order, from the first on that is not stored yet

	// The turn's.
	compiler *route.Compiler
	book     *roster.Book
	members  []*Member
	byID     map[uuid.UUID]*Member
	players  []*world.Player // who was on the proxy in the last turn
	took     time.Duration   // the last turn, without the looks and the rosters
	sending  time.Duration   // of the rosters in the last turn or flush
	poses    int             // members with pose
	near     surroundings

	offer       *talk.Offer  // the tiers
	notice      *mute.Notice // the last that was shown to anybody
	groups      *group.State
	groupsNamed uint64 // revision that groupNames is of
	mutes       *mute.Book
	mutesSeen   uint64
	muteNews    bool                         // some may have been made or lifted since tellMuted
	muteKnown   map[*world.Player]mute.State // what Muted was called with, for muted players
	silenced    sync.Map                     // the same by UUID, for anybody
	answers     []answer
	late        []func() // to be done when the table is in force

	standing     relation.Book
	domainsAt    uint64 // revision that domains is of
	relation     *relation.Compiler
	declarations relation.Turn
	declared     *relation.Table // nil: nothing
	views        [][]uint64
	undeclared   []string
	refused      bool // the last turn was: nothing may be published before another one
	unlimited    bool // for tests: declarations may break the rule of who sees whom
}

// arrival is a member that joins or, with leave, leaves; or else an order.
type arrival struct {
	m     *Member
	leave bool
	order
}

// New returns a hub on a world. It does nothing until [Hub.Run].
func New(reg *world.Registry, p route.Policy) *Hub {
	h := &Hub{
		reg: reg, policy: p, wake: make(chan struct{}, 1), ended: make(chan struct{}), Log: slog.Default(),
		offer: &talk.Offer{Tiers: p.Gain.Offered()}, groups: group.New(group.Limits{}), mutes: mute.New(), relation: relation.NewCompiler(),
		muteKnown: make(map[*world.Player]mute.State),
		compiler:  route.NewCompiler(reg, p), book: roster.New(), byID: make(map[uuid.UUID]*Member),
	}
	h.compiler.SetGroups(h.groups)
	return h
}

// Join takes a client in with the next turn, in place of another one of the same player.
func (h *Hub) Join(p *world.Player, c Client, w Wants) *Member {
	m := &Member{
		Member: route.Member{Player: p, Receiver: c, Clips: w.Clips, Channels: w.Channels},
		client: c, wants: w, at: -1, bits: Open,
	}
	m.beat.Store(time.Now().UnixNano())
	h.post(arrival{m: m})
	return m
}

// Leave forgets a member with the next turn.
func (h *Hub) Leave(m *Member) { h.post(arrival{m: m, leave: true}) }

func (h *Hub) post(a arrival) {
	h.mu.Lock()
	h.inbox = append(h.inbox, a)
	h.mu.Unlock()
	h.Wake()
}

// Wake asks for a turn soon. Many calls are one turn.
func (h *Hub) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Table returns the routing table in force, nil before the first turn.
func (h *Hub) Table() *route.Table { return h.table.Load() }

// SetDeafened records whether the member wants to hear. Calls for one member must not overlap.
func (h *Hub) SetDeafened(m *Member, on bool) {
	n := m.deafen.Load()
	if n&1 == 1 != on {
		m.deafen.Store(n + 1)
		h.Wake()
	}
}

// Beat records that a page is awake.
func (h *Hub) Beat(m *Member) {
	now := time.Now().UnixNano()
	if was := m.beat.Swap(now); now-was >= int64(AwayAfter) {
		h.Wake()
	}
}

// asleep reports whether a page has been silent for too long.
func (m *Member) asleep(now time.Time) bool {
	return m.wants.Page && now.UnixNano()-m.beat.Load() >= int64(AwayAfter)
}

// deaf reports whether nothing is to be sent to a member: it wants nothing, or nobody is there to hear it.
func (m *Member) deaf() bool { return m.deafenSeen&1 == 1 || m.away }

// SetTier records how loudly the member speaks. A change within [TierHold] of the one before waits, and the newest
// wins, so that a press and a release are never left at the press.
func (h *Hub) SetTier(m *Member, t talk.Tier) {
	if m.tier.Swap(uint32(t)) != uint32(t) {
		h.Wake()
	}
}

// Run makes the turns until ctx is done.
func (h *Hub) Run(ctx context.Context) {
	defer close(h.ended)
	h.begin()
	flush := time.NewTicker(Flush)
	defer flush.Stop()
	moved, stop := h.reg.Follow()
	defer stop()
	poses := time.NewTicker(PoseGap)
	poses.Stop()
	defer poses.Stop()
	ticking, busy := false, true
	var held <-chan time.Time
	for {
		changed := true
		select {
		case <-ctx.Done():
			return
		case <-poses.C:
			h.showPoses()
			continue
		case <-flush.C:
			changed = false
		case <-h.wake:
		case <-moved:
		case <-held:
		}
		begun := time.Now()
		if changed {
			held = nil
			if next := h.turn(begun); next > 0 {
				held = time.After(next)
			}
		} else if seen, due := h.reg.Settle(begun); h.tellAll(begun, true) > 0 || h.evaluate() || h.dozing(begun) || seen || held == nil && !due.IsZero() {
			h.Wake() // and the turn finds out what is due
		}
		if some := len(h.members) > 0 || len(h.reg.All()) > 0; some != busy {
			if busy = some; some {
				flush.Reset(Flush)
			} else {
				flush.Reset(idleFlush)
			}
		}
		if want := h.poses > 0; want != ticking {
			if ticking = want; want {
				poses.Reset(PoseGap)
			} else {
				poses.Stop()
			}
		}
		if !changed {
			continue // the next flush is far enough away
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(gap, h.sending+rest*(time.Since(begun)-h.sending)), Flush)):
		}
	}
}

// turn brings everything up to date. It returns the time until another one is due by itself, or 0.
func (h *Hub) turn(now time.Time) (next time.Duration) {
	begun := time.Now()
	h.mu.Lock()
	inbox := h.inbox
	h.inbox = nil
	h.mu.Unlock()
	h.takeNews()
	for _, a := range inbox {
		switch {
		case a.do != nil:
			a.do(now)
		case a.leave:
			h.drop(a.m)
		default:
			h.add(a.m)
		}
	}
	h.dropGone()
	h.evaluate()
	for _, m := range h.members {
		next = sooner(next, h.obey(m, now))
	}
	if _, due := h.reg.Settle(now); !due.IsZero() {
		next = sooner(next, max(due.Sub(now), soon))
	}
	h.compiler.Reveal()
	looks, most := time.Now(), max(lookTime, h.took)
	for !h.compiler.Look(16) {
		if time.Since(looks) > most {
			next = soon
			break
		}
	}
	looked := time.Since(looks)
	h.sending = 0
	defer func() { h.took = time.Since(begun) - looked - h.sending }()
	for _, due := range []time.Time{h.judge(now), h.groups.Expire(now)} {
		if !due.IsZero() {
			next = sooner(next, max(due.Sub(now), soon))
		}
	}
	// The table comes first, so that a revoked route is silent before anybody is told, and a granted one stays silent
	// until they are.
	if err := h.relate(); err != nil {
		h.Log.Error("a turn was refused; everybody hears whom they heard before", "error", err)
		h.refused = true
	} else {
		h.refused = false
		h.table.Store(h.compiler.Compile())
		next = sooner(next, h.tellAll(now, false))
	}
	h.settle(inbox)
	return next
}

// tellAll tells the clients what has changed for them, and opens the routes to those who have been told. It returns as
// turn does.
func (h *Hub) tellAll(now time.Time, flush bool) (next time.Duration) {
	if h.refused {
		return 0
	}
	for _, m := range h.members {
		h.showControls(m, now)
	}
	if flush {
		h.showNear()
	}
	if flush || h.muteNews {
		h.tellMuted(now)
	}
	if !h.showGroups(now, flush) {
		next = soon
	}
	if !h.showRosters(now, flush) {
		next = soon
	}
	opened, again := h.tell(now)
	if opened {
		h.table.Store(h.compiler.Compile())
	}
	if again {
		next = sooner(next, tellAgain)
	}
	return next
}

// soon is when another turn may follow.
const soon = time.Nanosecond

// sooner returns the shorter of two waits; 0 means that no wait is due.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (h *Hub) add(m *Member) {
	if old := h.byID[m.Player.ID]; old != nil {
		h.drop(old)
	}
	m.at = len(h.members)
	h.members = append(h.members, m)
	h.byID[m.Player.ID] = m
	h.players = nil // look whether the player is still there
	h.compiler.Add(&m.Member)
	h.groups.Enter(m.Player.ID, m.Slot())
	h.enter(m)
	if m.wants.Pose {
		h.poses++
		h.showPose(m, time.Now())
	}
}

func (h *Hub) drop(m *Member) {
	if m.at < 0 {
		return
	}
	last := h.members[len(h.members)-1]
	h.members[m.at], last.at = last, m.at
	h.members[len(h.members)-1] = nil
	h.members = h.members[:len(h.members)-1]
	m.at = -1
	delete(h.byID, m.Player.ID)
	h.groups.Exit(m.Player.ID, time.Now())
	h.book.Drop(m.Slot())
	h.compiler.Drop(&m.Member)
	if m.wants.Pose {
		h.poses--
	}
}

// enter writes what others may know about the member into the book.
func (h *Hub) enter(m *Member) {
	tier := m.tierNow
	if !h.policy.Gain.Offers(tier) {
		tier = talk.Normal
	}
	h.book.Put(m.Slot(), roster.Person{ID: m.Player.ID, Name: m.Player.Name, Deafened: m.deaf(), Tier: tier})
}

// dropGone drops and ends members whose player has left the network, or has come back by another connection, which
// makes it another player.
func (h *Hub) dropGone() {
	all := h.reg.All() // the same slice as long as nobody joins or leaves
	if len(all) == len(h.players) && len(all) > 0 && &all[0] == &h.players[0] {
		return
	}
	h.players = all
	for i := len(h.members) - 1; i >= 0; i-- { // backwards: drop moves the last one
		if m := h.members[i]; h.reg.Get(m.Player.ID) != m.Player {
			h.drop(m)
			if h.reg.Get(m.Player.ID) == nil {
				h.groups.Leave(m.Player.ID)
			}
			m.client.End(PlayerLeft)
		}
	}
}

// obey applies the requests of the member's client. It returns how long a change has to wait that came too soon.
func (h *Hub) obey(m *Member, now time.Time) (wait time.Duration) {
	changed := false
	if n, away := m.deafen.Load(), m.asleep(now); n != m.deafenSeen || away != m.away {
		m.deafenSeen, m.away, changed = n, away, true
		h.compiler.SetDeafened(&m.Member, m.deaf())
	}
	if t := talk.Tier(m.tier.Load()); t != m.tierNow {
		if wait = TierHold - now.Sub(m.tierAt); wait <= 0 {
			m.tierNow, m.tierAt, changed = t, now, true
			h.compiler.SetTier(&m.Member, t)
		}
	}
	if changed {
		h.enter(m)
	}
	return max(wait, 0)
}

// dozing reports whether a page has just gone to sleep.
func (h *Hub) dozing(now time.Time) bool {
	return slices.ContainsFunc(h.members, func(m *Member) bool { return m.asleep(now) && !m.away })
}

// tell opens the routes to members whose roster has left. again tells whether some still wait that should be done soon;
// the flush takes care of slower ones.
func (h *Hub) tell(now time.Time) (opened, again bool) {
	for _, m := range h.members {
		switch {
		case !m.telling:
		case m.client.Waits():
			again = again || now.Sub(m.rosterAt) < tellSoon
		default:
			m.telling = false
			if h.compiler.Tell(&m.Member) {
				opened = true
			}
		}
	}
	return opened, again
}

func (h *Hub) showPoses() {
	now := time.Now()
	for _, m := range h.members {
		if m.wants.Pose && now.Sub(m.shownAt) >= PoseGap {
			h.showPose(m, now)
		}
	}
}

// showPose tells the member where its own player is, if that is known and new.
func (h *Hub) showPose(m *Member, now time.Time) {
	p := m.Player.Pose()
	if p == nil || p == m.shown || m.shown != nil && *p == *m.shown {
		return
	}
	m.shown, m.shownAt = p, now
	m.client.ShowPose(p)
}
