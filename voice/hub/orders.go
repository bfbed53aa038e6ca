package hub

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/talk"
)

// ErrEnded is the error of an order that came after the hub had ended.
var ErrEnded = errors.New("voice has been shut down")

// order is something to be done in a turn.
type order struct {
	do    func(now time.Time)
	done  chan struct{} // closed when the turn is in force, and stored as well if the order wants that; may be nil
	reads bool          // whether it changes nothing that is stored, and does not wait until others' changes are
}

// Do has fn run by the turn, which owns the state. It waits until the table of that turn is in force, and until the
// [Store] has what the whole turn has changed or has given up for now. fn must neither block nor call the hub.
func (h *Hub) Do(fn func(now time.Time)) error { return h.wait(order{do: fn}) }

// Read does as Do, for an fn that changes nothing that is stored. It waits until the table of that turn is in force,
// and for no store, whatever else that turn has changed.
func (h *Hub) Read(fn func(now time.Time)) error { return h.wait(order{do: fn, reads: true}) }

// wait gives the next turn an order, and returns when it is done.
func (h *Hub) wait(o order) error {
	o.done = make(chan struct{})
	h.post(arrival{order: o})
	select {
	case <-o.done:
		return nil
	case <-h.ended:
		select {
		case <-o.done:
			return nil
		default:
			return ErrEnded
		}
	}
}

// try does as Do, for something that can fail.
func (h *Hub) try(fn func(now time.Time) error) (err error) {
	if ended := h.Do(func(now time.Time) { err = fn(now) }); ended != nil {
		return ended
	}
	return err
}

// SetPolicy changes how far voices carry, which tiers there are, who hears spectators and who knows of whom.
func (h *Hub) SetPolicy(p route.Policy) error {
	return h.Do(func(time.Time) {
		h.policy = p
		h.compiler.SetPolicy(p)
		h.offer = &talk.Offer{Tiers: p.Gain.Offered()} // told again even where it is the same
		for _, m := range h.members {
			h.enter(m)
		}
	})
}

// SetSoundboard says whether clips are heard at all.
func (h *Hub) SetSoundboard(on bool) error {
	return h.Do(func(time.Time) { h.compiler.SetSoundboard(on) })
}

// Mute puts a mute into force, for everybody where the player is [mute.Everybody].
func (h *Hub) Mute(r mute.Record) error {
	return h.try(func(now time.Time) error { return h.mutes.Mute(r, now) })
}

// Unmute lifts a mute. It tells whether there was one.
func (h *Hub) Unmute(player uuid.UUID) (was bool, err error) {
	err = h.Do(func(now time.Time) { was = h.mutes.Lift(player, now) })
	return was, err
}

// Mutes lists the mutes in force, the server-wide one first.
func (h *Hub) Mutes() (list []mute.Record, err error) {
	err = h.Read(func(now time.Time) { list = h.mutes.List(now) })
	return list, err
}

// SetGroups changes the settings of groups.
func (h *Hub) SetGroups(l group.Limits) error {
	h.groupsOn.Store(l.Enabled)
	return h.Do(func(time.Time) { h.groups.SetLimits(l) })
}

// GroupsEnabled tells whether groups are switched on.
func (h *Hub) GroupsEnabled() bool { return h.groupsOn.Load() }

// Declare has fn change the declarations of who is given whose voice outright.
func (h *Hub) Declare(fn func(b *relation.Book) error) error {
	return h.try(func(time.Time) error { return fn(&h.standing) })
}

// Declared has fn read the declarations, and change nothing.
func (h *Hub) Declared(fn func(b *relation.Book) error) (err error) {
	if ended := h.Read(func(time.Time) { err = fn(&h.standing) }); ended != nil {
		return ended
	}
	return err
}

// Changes is lasting state: what is new or different, and what is gone.
type Changes struct {
	Groups      []group.Record
	GroupsGone  []uuid.UUID
	Mutes       []mute.Record
	MutesGone   []uuid.UUID
	Domains     []relation.Domain
	DomainsGone []string
	Listens     []relation.Listen
	ListensGone []string
	Edges       []relation.Edge
	EdgesGone   []string
}

func (c *Changes) empty() bool {
	return len(c.Groups)+len(c.GroupsGone)+len(c.Mutes)+len(c.MutesGone)+len(c.Domains)+len(c.DomainsGone)+
		len(c.Listens)+len(c.ListensGone)+len(c.Edges)+len(c.EdgesGone) == 0
}

// Apply takes in state that is not to be stored. The error names the parts that it could not take.
func (h *Hub) Apply(c Changes) error {
	return h.try(func(time.Time) error { return h.apply(c) })
}

func (h *Hub) apply(c Changes) error {
	var faults []error
	take := func(what string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, id := range c.GroupsGone {
		h.groups.Remove(id)
	}
	for _, r := range c.Groups {
		take("group", h.groups.Apply(r))
	}
	for _, id := range c.MutesGone {
		h.mutes.Remove(id)
	}
	for _, r := range c.Mutes {
		take("mute", h.mutes.Apply(r))
	}
	applyAll(&h.standing.Domains, c.Domains, c.DomainsGone, func(err error) { take("domain", err) })
	applyAll(&h.standing.Listens, c.Listens, c.ListensGone, func(err error) { take("listen", err) })
	applyAll(&h.standing.Edges, c.Edges, c.EdgesGone, func(err error) { take("edge", err) })
	return errors.Join(faults...)
}

func applyAll[R relation.Domain | relation.Listen | relation.Edge, L interface {
	Apply(R) error
	Remove(string)
}](to L, records []R, gone []string, take func(error)) {
	for _, key := range gone {
		to.Remove(key)
	}
	for _, r := range records {
		take(to.Apply(r))
	}
}
