// Package group holds who talks with whom in groups: membership, invitations, passwords, and what a group means for
// each pair of talker and listener.
//
// It promises that a player is in one group at most, that a group without members is gone unless it is persistent, that
// no password can be got out of it, and that a reader's snapshot shows only people the reader may know about. It is
// pure: it knows players by UUID and by the slots that the caller gives them, takes the time from them, and asks
// nobody. A [State] belongs to the one goroutine that runs the turns.
package group

import (
	"hash/maphash"
	"slices"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Times and counts of groups. Away is this product's choice, the others are the protocol's.
const (
	InviteTime = 60 * time.Second // an invitation lives
	Misses     = 5                // wrong passwords of one player for one group, before none is checked
	MissTime   = time.Minute      // from the first miss
	Declines   = 2                // of one group by one player; then it gets no invitation for the rest of MissTime
	Away       = 30 * time.Second // a member keeps its place after its connection has ended
)

// Limits are the settings. The zero value switches groups off.
type Limits struct {
	Enabled    bool
	Groups     int // at most so many; 0 is no limit
	Members    int // of one group at most; 0 is no limit
	Types      [talk.GroupTypes]bool
	Passwords  bool
	Persistent bool
	Owned      int           // persistent ones of one owner who is no administrator; 0 is no limit
	Unused     time.Duration // a persistent one ends when nobody has been in it for so long; 0: never
}

// Actor is the player who asks for something.
type Actor struct {
	ID   uuid.UUID
	May  talk.GroupCaps
	Keep bool     // may make persistent groups
	Sees []uint64 // the slots of the players it may know about, one bit each; nil: everybody
}

// State is all groups.
type State struct {
	limits  Limits
	groups  map[uuid.UUID]*group
	order   []*group            // as they were made
	names   map[string]*group   // by folded name
	looks   map[string][]*group // by what names look like
	players map[uuid.UUID]*player
	slots   []*player // by slot
	due     time.Time // no later than the first thing that ends by itself; zero: nothing does

	// Sets of slots, all of one length.
	words    int
	isolated set // members whom nobody outside their group reaches
	moved    []int

	revision uint64
	dirty    map[uuid.UUID]struct{} // persistent groups whose state the store does not have

	// Of the present rows.
	concerned set              // members of groups, if all are seen; nil until it is needed
	shared    map[string]*Rows // by which of those the reader sees
	pages     map[pageKey]*Page
	seed      maphash.Seed
}

// player is somebody who is connected, in a group or invited into one.
type player struct {
	id      uuid.UUID
	slot    int // -1 when not connected
	away    time.Time
	group   *group
	invites []invite
	// Of each group that it has declined, when it last did.
	declined map[*group][]time.Time
}

type invite struct {
	group *group
	from  uuid.UUID
	until time.Time
}

type group struct {
	talk.GroupRow // Locked is for the snapshot: it is set where hash is
	hash          Hash
	members       []*player // the longest-standing first
	set           set       // of those who are connected
	misses        misses
	used          time.Time // of a persistent one: when somebody was in it, to a day
	unused        time.Time // when it was first seen to be unused for too long
}

// New returns a state without groups.
func New(l Limits) *State {
	return &State{
		limits: l, groups: make(map[uuid.UUID]*group), names: make(map[string]*group), looks: make(map[string][]*group),
		players: make(map[uuid.UUID]*player), dirty: make(map[uuid.UUID]struct{}), shared: make(map[string]*Rows),
		pages: make(map[pageKey]*Page), seed: maphash.MakeSeed(),
	}
}

// SetLimits changes the settings. Existing groups stay, whatever the new limits say; while groups are switched off they
// only mean nothing.
func (s *State) SetLimits(l Limits) {
	if l.Enabled != s.limits.Enabled {
		for slot := range s.slots {
			s.moved = append(s.moved, slot)
		}
	}
	s.limits = l
	s.soon()
	s.turnOver()
}

// Limits returns the settings in force.
func (s *State) Limits() Limits { return s.limits }

// Revision counts the changes that a snapshot may show: of groups, of members, of connections, of invitations.
func (s *State) Revision() uint64 { return s.revision }

// Count returns how many groups and how many members of groups there are.
func (s *State) Count() (groups, members int) {
	for _, g := range s.order {
		members += len(g.members)
	}
	return len(s.order), members
}

// turnOver marks the rows as changed.
func (s *State) turnOver() {
	s.revision++
	s.concerned = nil
	clear(s.shared)
	clear(s.pages)
}

// Enter says that a player has a voice connection, in this slot. Every connection has to be entered, whether it knows
// of groups or not.
func (s *State) Enter(id uuid.UUID, slot int) {
	p := s.player(id)
	s.disconnect(p)
	for slot >= len(s.slots) {
		s.slots = append(s.slots, nil)
	}
	if words := (len(s.slots) + 63) / 64; words > s.words {
		s.words = words
		s.isolated = s.isolated.grown(words)
		for _, g := range s.order {
			g.set = g.set.grown(words)
		}
	}
	p.slot = slot
	s.slots[slot] = p
	s.place(p)
	s.revision++ // from whom invitations come
	if p.group != nil || s.owns(p) {
		s.turnOver()
	}
}

// Exit says that a player's voice connection has ended. A member keeps its place for the time [Away]; [State.Leave]
// takes a player out who has left the network.
func (s *State) Exit(id uuid.UUID, now time.Time) {
	p := s.players[id]
	if p == nil || p.slot < 0 {
		return
	}
	shown := p.group != nil || s.owns(p)
	s.disconnect(p)
	if p.group != nil {
		p.away = now
		s.endsAt(now.Add(Away))
	}
	s.revision++
	if shown {
		s.turnOver()
	}
	s.forget(p)
}

// Leave takes a player out of their group, as when they have left the network or may use groups no longer.
func (s *State) Leave(id uuid.UUID) {
	if p := s.players[id]; p != nil {
		s.leave(p)
		s.forget(p)
	}
}

func (s *State) player(id uuid.UUID) *player {
	p := s.players[id]
	if p == nil {
		p = &player{id: id, slot: -1}
		s.players[id] = p
	}
	return p
}

// forget drops a player without connection, group and invitations.
func (s *State) forget(p *player) {
	if p.slot < 0 && p.group == nil && len(p.invites) == 0 && len(p.declined) == 0 {
		delete(s.players, p.id)
	}
}

func (s *State) disconnect(p *player) {
	if p.slot < 0 {
		return
	}
	s.unplace(p)
	s.slots[p.slot] = nil
	p.slot = -1
}

// place and unplace keep the sets in step with p's slot and group.
func (s *State) place(p *player) {
	if p.slot < 0 || p.group == nil {
		return
	}
	p.group.set.add(p.slot)
	if isolates(p.group) {
		s.isolated.add(p.slot)
	}
	s.moved = append(s.moved, p.slot)
}

func (s *State) unplace(p *player) {
	if p.slot < 0 || p.group == nil {
		return
	}
	p.group.set.del(p.slot)
	s.isolated.del(p.slot)
	s.moved = append(s.moved, p.slot)
}

// owns tells whether any group names p as its owner.
func (s *State) owns(p *player) bool {
	return slices.ContainsFunc(s.order, func(g *group) bool { return g.Owner == p.id })
}

// reach finds a connected player whom the actor may know about.
func (s *State) reach(a *Actor, id uuid.UUID) *player {
	p := s.players[id]
	if p == nil || p.slot < 0 || p.id != a.ID && !sees(a.Sees, p.slot) {
		return nil
	}
	return p
}

// Do carries out a request and returns the result. A refused request changes nothing, except that a wrong password is
// counted.
func (s *State) Do(a Actor, r *talk.GroupRequest, now time.Time) talk.Code {
	if !s.limits.Enabled {
		return talk.Disabled
	}
	if !a.May.Use {
		return talk.NoPermission
	}
	p := s.players[a.ID]
	if p == nil || p.slot < 0 {
		return talk.NotFound
	}
	s.Expire(now)
	g := s.groups[r.Group]
	switch r.Verb {
	case talk.Create:
		return s.create(a, p, r, now)
	case talk.Leave:
		if p.group == nil {
			return talk.NotInGroup
		}
		s.leave(p)
		return talk.OK
	case talk.Move:
		return s.move(a, g, r)
	}
	if g == nil {
		return talk.NotFound
	}
	if r.Verb.Edits() {
		if !a.May.Admin && g.Owner != a.ID {
			return talk.NoPermission
		}
		return s.edit(a, g, r)
	}
	switch r.Verb {
	case talk.Join:
		return s.join(p, g, r.Password, now)
	case talk.Invite:
		return s.invite(a, p, g, r.Player, now)
	case talk.Accept:
		return s.accept(p, g)
	default: // Decline
		if !p.uninvite(g) {
			return talk.NotFound
		}
		p.decline(g, now)
		s.endsAt(now.Add(MissTime))
		s.revision++
		return talk.OK
	}
}

func (s *State) create(a Actor, p *player, r *talk.GroupRequest, now time.Time) talk.Code {
	l := &s.limits
	name, named := cleanName(r.Name)
	password := cleanPassword(r.Password)
	switch {
	case !a.May.Create:
		return talk.NoPermission
	case p.group != nil:
		return talk.AlreadyInGroup
	case !named:
		return talk.InvalidName
	case password != "" && !talk.ValidPassword(password):
		return talk.InvalidPassword
	case int(r.Type) >= len(l.Types) || !l.Types[r.Type]:
		return talk.TypeNotAllowed
	case password != "" && !l.Passwords:
		return talk.PasswordsNotAllowed
	case r.Persistent && !(l.Persistent && a.Keep):
		return talk.PersistentNotAllowed
	case s.taken(name, nil):
		return talk.NameTaken
	case l.Groups > 0 && len(s.groups) >= l.Groups:
		return talk.TooManyGroups
	case r.Persistent && l.Owned > 0 && !a.May.Admin && s.owned(p.id) >= l.Owned:
		return talk.TooManyGroups
	}
	g := s.add(talk.GroupRow{ID: uuid.New(), Type: r.Type, Persistent: r.Persistent, Owner: p.id, Name: name})
	if password != "" {
		g.lock(newHash(password))
	}
	if g.Persistent {
		g.used = now.Round(0).UTC()
		s.endsAt(now.Add(usedEvery))
	}
	s.enter(p, g)
	s.store(g)
	return talk.OK
}

func (s *State) join(p *player, g *group, password string, now time.Time) talk.Code {
	switch {
	case p.group != nil:
		return talk.AlreadyInGroup
	case s.full(g):
		return talk.GroupFull
	case g.Locked && !g.opens(p.id, password, now):
		return talk.WrongPassword
	}
	s.enter(p, g)
	return talk.OK
}

// opens checks a password and counts a miss. A player who has missed too often is not checked until the minute is over,
// so that trying costs more time than there is. The guesses of others do not count. No password at all is no guess.
func (g *group) opens(who uuid.UUID, password string, now time.Time) bool {
	if password == "" || !g.misses.may(who, now) {
		return false
	}
	// Of an Earshot that took passwords as they came.
	if g.hash.Matches(cleanPassword(password)) || g.hash.Matches(password) {
		return true
	}
	g.misses.add(who, now)
	return false
}

func (s *State) invite(a Actor, p *player, g *group, target uuid.UUID, now time.Time) talk.Code {
	if !a.May.Invite {
		return talk.NoPermission
	}
	if p.group != g {
		return talk.NotInGroup
	}
	t := s.reach(&a, target)
	switch {
	case t == nil:
		return talk.NotFound
	case t.group == g || t.invited(g) || t.declines(g, now):
		return talk.AlreadyInvited
	case len(t.invites) >= talk.MaxInvitations:
		return talk.InboxFull
	}
	until := now.Add(InviteTime)
	t.invites = append(t.invites, invite{g, p.id, until})
	s.endsAt(until)
	s.revision++
	return talk.OK
}

func (s *State) accept(p *player, g *group) talk.Code {
	switch {
	case !p.invited(g):
		return talk.NotFound
	case s.full(g):
		return talk.GroupFull
	}
	s.enter(p, g)
	return talk.OK
}

func (s *State) move(a Actor, g *group, r *talk.GroupRequest) talk.Code {
	if !a.May.Admin {
		return talk.NoPermission
	}
	t := s.reach(&a, r.Player)
	switch {
	case t == nil || g == nil && !r.Out:
		return talk.NotFound
	case r.Out:
		s.leave(t)
	case t.group == g:
	case s.full(g):
		return talk.GroupFull
	default:
		s.enter(t, g)
	}
	return talk.OK
}

// edit carries out a request of an owner or administrator.
func (s *State) edit(a Actor, g *group, r *talk.GroupRequest) talk.Code {
	switch r.Verb {
	case talk.Rename:
		name, ok := cleanName(r.Name)
		if !ok {
			return talk.InvalidName
		}
		if s.taken(name, g) {
			return talk.NameTaken
		}
		s.rename(g, name)
	case talk.Password:
		switch {
		case r.Password == "":
			g.lock(Hash{})
		case r.Password == talk.Garbled || !talk.ValidPassword(cleanPassword(r.Password)):
			return talk.InvalidPassword
		case !s.limits.Passwords:
			return talk.PasswordsNotAllowed
		default:
			g.lock(newHash(cleanPassword(r.Password)))
		}
	case talk.Type:
		if int(r.Type) >= len(s.limits.Types) || !s.limits.Types[r.Type] {
			return talk.TypeNotAllowed
		}
		s.retype(g, r.Type)
	case talk.Kick:
		t := s.reach(&a, r.Player)
		if t == nil || t.group != g {
			return talk.NotInGroup
		}
		s.leave(t)
		return talk.OK
	case talk.Delete:
		s.remove(g)
		return talk.OK
	}
	s.store(g)
	s.turnOver()
	return talk.OK
}

func (s *State) full(g *group) bool {
	return s.limits.Members > 0 && len(g.members) >= s.limits.Members
}

// add makes a group that has no members yet.
func (s *State) add(r talk.GroupRow) *group {
	g := &group{GroupRow: r, set: make(set, s.words)}
	s.groups[g.ID] = g
	s.order = append(s.order, g)
	s.name(g, g.Name)
	s.turnOver()
	return g
}

// remove ends a group, with its members in it or not.
func (s *State) remove(g *group) {
	for _, m := range g.members {
		s.unplace(m)
		m.group = nil
		s.forget(m)
	}
	g.members = nil
	for _, p := range s.players {
		p.uninvite(g)
		delete(p.declined, g)
		s.forget(p)
	}
	delete(s.groups, g.ID)
	s.unname(g)
	s.order = slices.DeleteFunc(s.order, func(o *group) bool { return o == g })
	s.store(g)
	s.turnOver()
}

func (s *State) rename(g *group, name string) {
	s.unname(g)
	s.name(g, name)
}

func (s *State) retype(g *group, t talk.GroupType) {
	for _, m := range g.members {
		s.unplace(m)
	}
	g.Type = t
	for _, m := range g.members {
		s.place(m)
	}
}

// lock sets the password; the zero hash is none.
func (g *group) lock(h Hash) {
	g.hash, g.Locked, g.misses = h, h != Hash{}, misses{}
}

// enter makes p a member, wherever it was before.
func (s *State) enter(p *player, g *group) {
	p.uninvite(g)
	s.leave(p)
	p.group = g
	g.members = append(g.members, p)
	if g.Persistent {
		s.soon() // it is in use
	}
	s.place(p)
	s.turnOver()
}

// leave takes p out of its group, if it is in one. The group passes on to the member of the longest standing. A
// persistent group without members keeps its owner: else the first one to come would own it.
func (s *State) leave(p *player) {
	g := p.group
	if g == nil {
		return
	}
	s.unplace(p)
	p.group = nil
	g.members = slices.DeleteFunc(g.members, func(m *player) bool { return m == p })
	switch {
	case len(g.members) == 0 && !g.Persistent:
		s.remove(g)
	case len(g.members) > 0 && g.Owner == p.id:
		if heir := s.heir(g); heir != g.Owner {
			g.Owner = heir
			s.store(g)
		}
	}
	s.turnOver()
}

func (p *player) invited(g *group) bool {
	return slices.ContainsFunc(p.invites, func(i invite) bool { return i.group == g })
}

// uninvite drops p's invitation into the group and tells whether there was one.
func (p *player) uninvite(g *group) bool {
	n := len(p.invites)
	p.invites = slices.DeleteFunc(p.invites, func(i invite) bool { return i.group == g })
	return len(p.invites) < n
}

// decline notes that p has declined an invitation into the group.
func (p *player) decline(g *group, now time.Time) {
	if p.declined == nil {
		p.declined = make(map[*group][]time.Time)
	}
	times := append(p.declined[g], now)
	p.declined[g] = times[max(len(times)-Declines, 0):]
}

// declines tells whether p has declined the group so often within the last minute that nobody may ask for now.
func (p *player) declines(g *group, now time.Time) bool {
	times := p.declined[g]
	return len(times) >= Declines && now.Sub(times[0]) < MissTime
}

// endsAt notes that something ends at t.
func (s *State) endsAt(t time.Time) {
	if s.due.IsZero() || t.Before(s.due) {
		s.due = t
	}
}

// Expire ends invitations and places of absent members whose time is over, and unused persistent groups. next is when
// it has to be called again, zero when nothing ends by itself. It is cheap to call when nothing is due.
func (s *State) Expire(now time.Time) (next time.Time) {
	if s.due.IsZero() || now.Before(s.due) {
		return s.due
	}
	s.due = time.Time{}
	var gone []*player
	for _, p := range s.players {
		if p.slot < 0 && p.group != nil {
			if until := p.away.Add(Away); now.Before(until) {
				s.endsAt(until)
			} else {
				gone = append(gone, p)
			}
		}
		n := len(p.invites)
		p.invites = slices.DeleteFunc(p.invites, func(i invite) bool { return !now.Before(i.until) })
		if len(p.invites) < n {
			s.revision++
		}
		for g, times := range p.declined {
			if last := times[len(times)-1].Add(MissTime); now.Before(last) {
				s.endsAt(last)
			} else {
				delete(p.declined, g)
			}
		}
		s.forget(p)
		for _, i := range p.invites {
			s.endsAt(i.until)
		}
	}
	// The one who is longest away goes first, so that ownership passes in the order in which it would have.
	slices.SortFunc(gone, func(a, b *player) int { return a.away.Compare(b.away) })
	for _, p := range gone {
		s.leave(p)
		s.forget(p)
	}
	s.sweep(now)
	return s.due
}

// Of returns a player's group.
func (s *State) Of(id uuid.UUID) (row talk.GroupRow, ok bool) {
	if p := s.players[id]; p != nil && p.group != nil && s.limits.Enabled {
		return p.group.GroupRow, true
	}
	return talk.GroupRow{}, false
}

// fold maps texts that differ only in case to one: each rune to the least of those that it folds with.
func fold(name string) string {
	out := []rune(name)
	for i, r := range out {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		out[i] = least
	}
	return string(out)
}
