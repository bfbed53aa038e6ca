// Package mute holds the server's mutes: of single players or of everybody, with their end and reason.
//
// It promises that a mute ends for every reader at once, whether or not it has been swept away, and that two readings
// of one state are equal, so that a client is told of a change and not of every passing second. It is pure; a [Book]
// belongs to the one goroutine that runs the turns.
package mute

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/talk"
)

// Everybody is the player of the server-wide mute.
var Everybody = uuid.Nil

// Record is one mute, as it is listed and stored.
type Record struct {
	Player uuid.UUID `json:"player"`           // or Everybody
	Name   string    `json:"name,omitempty"`   // of the player at the time, for lists
	By     string    `json:"by,omitempty"`     // who did it, for lists
	Since  time.Time `json:"since"`            // for lists
	Until  time.Time `json:"until,omitzero"`   // zero: until it is lifted
	Reason string    `json:"reason,omitempty"` // see [talk.ValidReason]
}

// Check returns what is wrong with a record.
func (r *Record) Check() error {
	if r.Reason != "" && !talk.ValidReason(r.Reason) {
		return fmt.Errorf("%q is no reason: write 1 to %d characters, without line ends or formatting", r.Reason, talk.MaxReason)
	}
	return nil
}

// Keep is how long a lapsed mute is kept, in time that really passes. For a clock that has jumped every mute is over;
// when it has been put right within that time, they are in force as before.
const Keep = time.Hour

// lookAgain bounds how long it takes to notice that the clock was put right.
const lookAgain = time.Minute

// over tells whether the mute has lapsed.
func (r *Record) over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// State is the mute on one player. States are compared with ==: a client need not be told of an equal one.
type State struct {
	Kind   talk.MuteKind
	Until  time.Time // zero: until it is lifted
	Reason string
}

// Left returns how many seconds the mute has still to go, rounded up; timed is false where it stays until it is lifted.
func (s State) Left(now time.Time) (seconds int, timed bool) {
	if s.Until.IsZero() {
		return 0, false
	}
	return int((s.Until.Sub(now) + time.Second - 1) / time.Second), true
}

// Notice shows one or many clients the mute on their player. It must not be changed.
type Notice struct {
	State
	At time.Time // the left seconds count from here
	talk.Texts
}

// Book holds the mutes.
type Book struct {
	records  map[uuid.UUID]Record
	lapsed   map[uuid.UUID]time.Time // when that was seen first; such records are kept for a while
	due      time.Time               // no later than the next change by itself; zero: there is none
	revision uint64
	dirty    map[uuid.UUID]struct{} // what the store does not know
}

// New returns a book without mutes.
func New() *Book {
	return &Book{records: make(map[uuid.UUID]Record), lapsed: make(map[uuid.UUID]time.Time), dirty: make(map[uuid.UUID]struct{})}
}

// Revision counts the changes of [Book.State], those by time only as [Book.Expire] finds them.
func (b *Book) Revision() uint64 { return b.revision }

// Mute puts a mute into force, in place of the former one of that player.
func (b *Book) Mute(r Record, now time.Time) error {
	if r.over(now) {
		return fmt.Errorf("a mute cannot end at %s, which is past", r.Until.Format(time.DateTime))
	}
	if err := b.Apply(r); err != nil {
		return err
	}
	b.dirty[r.Player] = struct{}{}
	return nil
}

// Lift ends a mute. It tells whether there was one in force.
func (b *Book) Lift(player uuid.UUID, now time.Time) bool {
	r, ok := b.records[player]
	if ok {
		b.Remove(player)
		b.dirty[player] = struct{}{}
	}
	return ok && !r.over(now)
}

// Apply takes a mute from the store. One that is over by now does no harm.
func (b *Book) Apply(r Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("mute of %s: %w", r.Player, err)
	}
	// Neither the time zone nor a monotonic reading may make equal states differ.
	r.Since, r.Until = r.Since.Round(0).UTC(), r.Until.Round(0).UTC()
	b.records[r.Player] = r
	delete(b.lapsed, r.Player)
	if !r.Until.IsZero() {
		b.dueBy(r.Until)
	}
	b.revision++
	return nil
}

// Remove ends a mute that is gone from the store.
func (b *Book) Remove(player uuid.UUID) {
	delete(b.records, player)
	delete(b.lapsed, player)
	b.revision++
}

func (b *Book) dueBy(t time.Time) {
	if b.due.IsZero() || t.Before(b.due) {
		b.due = t
	}
}

// State returns the mute on a player now. Exempt players are outside the server-wide mute, but not outside their own.
func (b *Book) State(player uuid.UUID, exempt bool, now time.Time) State {
	if r, ok := b.records[Everybody]; ok && !exempt && !r.over(now) {
		return State{talk.MutedServer, r.Until, r.Reason}
	}
	if r, ok := b.records[player]; ok && player != Everybody && !r.over(now) {
		return State{talk.MutedPlayer, r.Until, r.Reason}
	}
	return State{}
}

// Len returns how many mutes are in force, or have lapsed since the last [Book.Expire].
func (b *Book) Len() int { return len(b.records) - len(b.lapsed) }

// List returns every mute in force, the server-wide one first and then by player.
func (b *Book) List(now time.Time) []Record {
	var all []Record
	for _, r := range b.records {
		if !r.over(now) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Record) int { return bytes.Compare(x.Player[:], y.Player[:]) })
	return all
}

// Expire notes mutes that are over, and forgets them when they have been over for the time [Keep]. next is when to call
// it again, zero when nothing lapses; compiled states are out of date then. now should be of [time.Now], for its
// monotonic reading. It is cheap to call when nothing is due.
func (b *Book) Expire(now time.Time) (next time.Time) {
	if b.due.IsZero() || now.Before(b.due) {
		return b.due
	}
	b.due = time.Time{}
	for id, r := range b.records {
		first, was := b.lapsed[id]
		switch {
		case r.Until.IsZero():
		case !r.over(now):
			if was { // the clock has been put right
				delete(b.lapsed, id)
				b.revision++
			}
			b.dueBy(r.Until)
		case !was:
			b.lapsed[id] = now
			b.revision++
		case now.Sub(first) >= Keep:
			delete(b.records, id)
			delete(b.lapsed, id)
			b.dirty[id] = struct{}{}
		}
	}
	if len(b.lapsed) > 0 {
		b.dueBy(now.Add(lookAgain))
	}
	return b.due
}

// Changes returns the mutes that were made here since the last call, and the players whose mutes were lifted or have
// lapsed long enough ago. It leaves out those of [Book.Apply] and [Book.Remove].
func (b *Book) Changes() (put []Record, gone []uuid.UUID) {
	for id := range b.dirty {
		if r, ok := b.records[id]; ok {
			put = append(put, r)
		} else {
			gone = append(gone, id)
		}
	}
	clear(b.dirty)
	return put, gone
}
